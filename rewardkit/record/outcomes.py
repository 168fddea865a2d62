"""What a stored call was: its outcome, from the letters and numbers of a row."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

from rewardkit.record.batch_rows import LETTERS
from rewardkit.record.store import RecordRow
from rewardkit.record.texts import unpacked
from rewardkit.types import Cause, Outcome, Unanswered

_STATUS = {letter: status for status, letter in LETTERS.items()}


def outcome_of(
    letter: str,
    score: float,
    took: float,
    digits: str,
    details: RecordRow | None,
    unpack: Callable[[bytes], str] = unpacked,
) -> Outcome:
    """Return a call's outcome, from its letter and score (``nan`` for no score) and the row of what it said, if any."""
    status, value = _STATUS[letter.lower()], None if math.isnan(score) else score  # a capital: from the cache
    if details is None:
        return Outcome(status, value, duration_s=took, version=digits, cached=letter.isupper())
    return Outcome(
        status, value, details["reason"], object_of(details["metrics"] or "{}"),
        None if details["cause"] is None else Cause(details["cause"]), details["error"],
        _text(details["trace_body"], unpack), details["attempts"], took, _text(details["log_body"], unpack) or "",
        digits, letter.isupper(),
        tuple(Unanswered(**record) for record in json.loads(details["unanswered"] or "[]")),
    )  # fmt: skip


def object_of(text: str) -> dict[str, Any]:
    """Return what a text of JSON holds; ValueError where that is not an object."""
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError(f"{type(value).__name__} in place of an object")
    return value


def _text(body: bytes | None, unpack: Callable[[bytes], str]) -> str | None:
    return None if body is None else unpack(body)
