"""JSON values in a completion: where one stands, how strictly it is read, and when two are equal."""

from __future__ import annotations

import contextlib
import json
import math
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from builtin_rewards.reading.answer import AnswerRule, final_answer
from builtin_rewards.reading.markdown import last_code
from builtin_rewards.reading.thoughts import unframed

_MAX_DEPTH = 100
"""The deepest value that a row may expect, so that comparing with it cannot recurse too deep."""
_SHOWN_CHARS = 200


class Untyped(str):
    """A value in a form without types, such as an XML tag: ``5`` may be the number or the text."""


def json_text(completion: str) -> str | None:
    """Return the last block marked ``json`` of the :func:`spoken` part, else the last unmarked one, else all of it."""
    return last_code(spoken(completion), ("json",))


def spoken(completion: str) -> str:
    """Return the final answer by its tags, or all of a completion that is one JSON value as it stands.

    Text in JSON may itself hold tags and boxes.
    """
    bare = unframed(completion)
    if bare.lstrip()[:1] in ("{", "[", '"'):
        with contextlib.suppress(ValueError):
            read_json(bare)
            return bare
    return final_answer(completion, (AnswerRule.TAG,))


def read_json(text: str) -> Any:
    """Return the one JSON value that a text is, read strictly by RFC 8259; raise a ``ValueError`` where it is not.

    ``NaN`` and ``Infinity`` are refused, and so are a key twice in an object, numbers beyond a double's range and
    nesting beyond the standard library's parser (about 1,000 levels).
    """
    try:
        return _DECODER.decode(text)
    except RecursionError:
        raise ValueError("nested too deep") from None


def read_json_at(text: str, place: int) -> tuple[Any, int]:
    """Return the JSON value at a place, and the place behind it; as strict as :func:`read_json`."""
    try:
        return _DECODER.raw_decode(text, place)
    except RecursionError:
        raise ValueError("nested too deep") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise ValueError(f"the key {twice[:_SHOWN_CHARS]!r} stands twice in an object")
    return made


def _number(text: str) -> int | float:
    if not math.isfinite(number := float(text)):
        raise ValueError(f"{text[:_SHOWN_CHARS]} is not a JSON number within a double's range")
    return int(text) if text.lstrip("-").isdigit() else number


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_number, parse_float=_number, parse_int=_number)


def expected_json(answer: Any) -> Any:
    """Return the JSON value that a row expects, from JSON text or an object; raise a ``ValueError`` for none."""
    if answer is None or (isinstance(answer, str) and answer.strip() in ("", "null", "None")):
        raise ValueError("the row has no answer")
    try:
        value = read_json(answer if isinstance(answer, str) else json.dumps(answer))
        if deeper_than(value, _MAX_DEPTH):
            raise ValueError(f"nested more than {_MAX_DEPTH} deep")
    except (TypeError, ValueError, RecursionError) as fault:
        raise ValueError(f"the row's answer is not JSON that can be used: {fault}") from None
    return value


def same(wanted: Any, given: Any) -> bool:
    """Whether two JSON values are equal: 1 is 1.0, and neither ``true`` nor ``"1"``; text counts to the letter.

    An :class:`Untyped` value equals its own text, and any other value whose JSON it is.
    """
    if isinstance(given, Untyped):
        return wanted == str(given) if isinstance(wanted, str) else _is_written(wanted, given.strip())
    if isinstance(wanted, bool) or isinstance(given, bool):
        return wanted is given
    if isinstance(wanted, Mapping) and isinstance(given, Mapping):
        return wanted.keys() == given.keys() and all(same(value, given[name]) for name, value in wanted.items())
    if isinstance(wanted, list) and isinstance(given, list | tuple):
        return len(wanted) == len(given) and all(map(same, wanted, given))
    numbers = isinstance(wanted, int | float) and isinstance(given, int | float)
    return (numbers or type(wanted) is type(given)) and bool(wanted == given)


_PYTHON_CONSTANTS = {"True": "true", "False": "false", "None": "null"}


def _is_written(wanted: Any, text: str) -> bool:
    with contextlib.suppress(ValueError):
        return same(wanted, read_json(_PYTHON_CONSTANTS.get(text, text)))
    return False


def _inner(value: Any) -> Collection[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def deeper_than(value: Any, levels: int) -> bool:
    """Whether a JSON value is nested deeper than so many levels; text and numbers are one level."""
    row = [value]
    for _ in range(levels):
        row = [inner for outer in row for inner in _inner(outer)]
    return bool(row)


def count_leaves(value: Any) -> int:
    """Return how many values in a JSON value hold no others; an empty object or array is one."""
    count, pending = 0, [value]
    while pending:
        inner = _inner(pending.pop())
        pending.extend(inner)
        count += not inner
    return count
