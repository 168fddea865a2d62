"""What a stored call was: its outcome, from the letters and numbers of a row."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

from rewardkit.record.batch_rows import LETTERS
from rewardkit.record.store import RecordRow
from rewardkit.record.texts import unpacked
from rewardkit.rows.strict_json import number_of
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
    """Return a call's outcome, from its letter, its score (``nan`` for no score) and its row of details, if any."""
    status, value = _STATUS[letter.lower()], None if math.isnan(score) else score  # a capital: from the cache
    if details is None:
        return Outcome(status, value, duration_s=took, version=digits, cached=letter.isupper())
    cause, metrics, unanswered = details["cause"], details["metrics"], details["unanswered"]
    return Outcome(
        status,
        value,
        reason=details["reason"],
        metrics=object_of(metrics) if metrics else {},
        cause=None if cause is None else Cause(cause),
        error=details["error"],
        traceback=_text(details["trace_body"], unpack),
        attempts=details["attempts"],
        duration_s=took,
        logs=_text(details["log_body"], unpack) or "",
        version=digits,
        cached=letter.isupper(),
        unanswered=tuple(Unanswered(**record) for record in json.loads(unanswered)) if unanswered else (),
    )


def object_of(text: str) -> dict[str, Any]:
    """Return the object in a text of JSON; ValueError where there is another value."""
    value = json.loads(text, parse_float=number_of)
    if not isinstance(value, dict):
        raise ValueError(f"{type(value).__name__} in place of an object")
    return value


def weights_in(text: str, count: int) -> tuple[float, ...]:
    """Return the weights of a batch's ``count`` rewards from JSON; 1 for each where a record has none of them."""
    return tuple(float(weight) for weight in json.loads(text)) or (1.0,) * count


def _text(body: bytes | None, unpack: Callable[[bytes], str]) -> str | None:
    return None if body is None else unpack(body)
