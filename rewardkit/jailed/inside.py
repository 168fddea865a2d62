"""What rewardkit adds to the jail of a reward given as text: ``Score``, and how what it returns leaves.

Sent into the jail as compiled code, so it imports the standard library only. What the text returned is judged
outside, by the rules for every reward.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

REASON_CHARS = 12_000  # Characters of a reason that leave; fewer than these are kept
_MAX_SHOWN_CHARS = 80


class Score:
    """Stands in for :class:`rewardkit.types.Score`."""

    def __init__(self, value: object, reason: object = None, metrics: object = None) -> None:
        self.value = value
        self.reason = reason
        self.metrics = {} if metrics is None else metrics

    def __repr__(self) -> str:
        return f"Score({self.value!r}, reason={self.reason!r}, metrics={self.metrics!r})"


def _leave(value: object) -> dict[str, Any]:
    """Return what a reward returned as plain values: ``{"value": ...}``, ``{"score": [...]}`` or ``{"odd": words}``."""
    if not isinstance(value, Score):
        flaw = _oddness(value)
        return {"value": _number(value)} if flaw is None else {"odd": flaw}
    flaw = _oddness(value.value)
    if flaw is not None:
        return {"odd": f"Score with the value {flaw}"}
    if not isinstance(value.metrics, dict):
        return {"odd": f"Score with metrics={_preview(value.metrics)}"}
    for name, metric in value.metrics.items():
        flaw = _preview(metric) if metric is None else _oddness(metric)
        if flaw is not None:
            return {"odd": f"Score with the metric {name!r}={flaw}"}
    reason = None if value.reason is None else str(value.reason)[:REASON_CHARS]
    metrics = {str(name): _number(metric) for name, metric in value.metrics.items()}
    return {"score": [_number(value.value), reason, metrics]}


def _oddness(value: object) -> str | None:
    """Return words for a value that is no number, or too large for a float; ``None`` for a number and for ``None``."""
    if value is None or isinstance(value, int | float):
        return None
    if not isinstance(value, Fraction | Decimal):
        return _preview(value)
    try:
        endless = float(value) in (float("inf"), float("-inf"))
    except OverflowError:
        endless = True
    except ValueError:  # a signaling NaN
        return _preview(value)
    if endless and (isinstance(value, Fraction) or value.is_finite()):
        return f"{type(value).__name__} too large for a float (at most 1.8e308)"
    return None


def _number(value: object) -> Any:
    return float(value) if isinstance(value, Fraction | Decimal) else value


def _preview(value: object) -> str:
    text = repr(value[:_MAX_SHOWN_CHARS]) if isinstance(value, str | bytes | list | tuple) else repr(value)
    return f"{type(value).__name__} {text if len(text) <= _MAX_SHOWN_CHARS else text[:_MAX_SHOWN_CHARS] + '...'}"
