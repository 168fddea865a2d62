"""What a stored call was: its outcome, from the letters and numbers of a row."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from rewardkit.record.batch_rows import DETAILS, LETTERS
from rewardkit.record.store import RecordRow
from rewardkit.record.texts import unpacked
from rewardkit.types import Cause, Outcome, Unanswered

_STATUS = {letter: status for status, letter in LETTERS.items()}
_READ: Mapping[str, Callable[[Any], Any]] = {
    "metrics": lambda text: object_of(text or "{}"),
    "cause": lambda text: None if text is None else Cause(text),
    "unanswered": lambda text: tuple(Unanswered(**record) for record in json.loads(text or "[]")),
}


def outcome_of(
    letter: str,
    score: float,
    took: float,
    digits: str,
    details: RecordRow | None,
    unpack: Callable[[bytes], str] = unpacked,
) -> Outcome:
    """Return a call's outcome, from its letter, its score (``nan`` for no score) and its row of details, if any."""
    status, value = _STATUS[letter.lower()], None if math.isnan(score) else score  # a capital: from the cache
    if details is None:
        return Outcome(status, value, duration_s=took, version=digits, cached=letter.isupper())
    fields: dict[str, Any] = {name: _READ[name](details[name]) if name in _READ else details[name] for name in DETAILS}
    fields["traceback"] = _text(details["trace_body"], unpack)
    fields["logs"] = _text(details["log_body"], unpack) or ""
    return Outcome(status, value, duration_s=took, version=digits, cached=letter.isupper(), **fields)


def object_of(text: str) -> dict[str, Any]:
    """Return the object in a text of JSON; ValueError where there is another value."""
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError(f"{type(value).__name__} in place of an object")
    return value


def weights_in(text: str, count: int) -> tuple[float, ...]:
    """Return the weights of a batch's ``count`` rewards from JSON; 1 for each where a record has none of them."""
    return tuple(float(weight) for weight in json.loads(text)) or (1.0,) * count


def _text(body: bytes | None, unpack: Callable[[bytes], str]) -> str | None:
    return None if body is None else unpack(body)
