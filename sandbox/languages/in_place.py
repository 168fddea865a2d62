"""What a function without a result gives: the argument that it changes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from sandbox.languages.wire import DriverAnswer, as_answered

_NO_RESULT = (None, ())


def with_changed_arguments(answers: Sequence[DriverAnswer], calls: Sequence[Sequence[Any]]) -> list[DriverAnswer]:
    """Return answers in which the argument that a function changes is the value of a call without one.

    It is the first argument that any call has changed. Where no call has a result, it is the value of every call, also
    of one that had nothing to change in it, such as a list that was sorted before.
    """
    indices = [answer.changed[0][0] for answer in answers if answer.value in _NO_RESULT and answer.changed]
    if not indices:
        return list(answers)
    index = min(indices)
    has_results = any(answer.value not in _NO_RESULT for answer in answers)
    return [
        answer
        if answer.value not in _NO_RESULT or answer.error is not None
        else _changed(answer, call, index, has_results)
        for answer, call in zip(answers, calls, strict=True)
    ]


def _changed(answer: DriverAnswer, call: Sequence[Any], index: int, has_results: bool) -> DriverAnswer:
    changed = dict(answer.changed)
    if changed:
        value = changed.get(index, answer.changed[0][1])
    elif has_results or not 0 <= index < len(call):
        return answer
    else:
        value = as_answered(call[index])
    return dataclasses.replace(answer, value=value)
