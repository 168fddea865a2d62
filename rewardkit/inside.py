"""What rewardkit adds to the jail of a reward given as text: ``Score``, and how what it returns leaves.

Sent into the jail as compiled code, so it imports the standard library only. What the text returned is judged
outside, by the rules for every reward.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

REASON_CHARS = 12_000
"""Characters of a reason that leave; fewer than these are kept."""
_MAX_SHOWN_CHARS = 80


class Score:
    """Stands in for :class:`rewardkit.types.Score`."""

    def __init__(self, value: Any, reason: Any = None, metrics: Any = None) -> None:
        self.value = value
        self.reason = reason
        self.metrics = {} if metrics is None else metrics

    def __repr__(self) -> str:
        return f"Score({self.value!r}, reason={self.reason!r}, metrics={self.metrics!r})"


def _leave(value: Any) -> dict[str, Any]:
    """Gives what a reward returned as plain values: ``{"value": ...}``, ``{"score": [...]}`` or ``{"odd": words}``."""
    if not isinstance(value, Score):
        return {"value": _number(value)} if _is_number(value) else {"odd": _shown(value)}
    if not _is_number(value.value):
        return {"odd": f"Score with the value {_shown(value.value)}"}
    if not isinstance(value.metrics, dict):
        return {"odd": f"Score with metrics={_shown(value.metrics)}"}
    for name, metric in value.metrics.items():
        if metric is None or not _is_number(metric):
            return {"odd": f"Score with the metric {name!r}={_shown(metric)}"}
    reason = None if value.reason is None else str(value.reason)[:REASON_CHARS]
    metrics = {str(name): _number(metric) for name, metric in value.metrics.items()}
    return {"score": [_number(value.value), reason, metrics]}


def _is_number(value: Any) -> bool:
    return value is None or isinstance(value, int | float | Fraction | Decimal)


def _number(value: Any) -> Any:
    return float(value) if isinstance(value, Fraction | Decimal) else value


def _shown(value: Any) -> str:
    text = repr(value[:_MAX_SHOWN_CHARS]) if isinstance(value, str | bytes | list | tuple) else repr(value)
    return f"{type(value).__name__} {text if len(text) <= _MAX_SHOWN_CHARS else text[:_MAX_SHOWN_CHARS] + '...'}"
