"""What a case expects of one outcome: a score, a range of scores, a skip, or a failure with its cause."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rewardkit.types import Cause, Outcome, Status

TOLERANCE = 1e-6  # How far a score may be from the expected one, unless a case or its table says otherwise

_FORMS = "a score, [lowest, highest], null for skipped, {failed: CAUSE}, or {score: ..., tolerance: ...}"


@dataclass(frozen=True, slots=True)
class Expectation:
    """What one outcome should be.

    Attributes:
        status: Scored, skipped or failed; the three are never taken for one another.
        lowest: The least score; ``None`` unless scored.
        highest: The greatest score; ``None`` unless scored.
        tolerance: How far outside the score may be.
        cause: Why it should fail; ``None`` unless failed.
    """

    status: Status
    lowest: float | None = None
    highest: float | None = None
    tolerance: float = 0.0
    cause: Cause | None = None

    def holds(self, outcome: Outcome) -> bool:
        """Return whether an outcome is as expected."""
        if outcome.status is not self.status:
            return False
        if self.status is Status.FAILED:
            return outcome.cause is self.cause
        if self.lowest is None or self.highest is None or outcome.score is None:
            return True
        return self.lowest - self.tolerance <= outcome.score <= self.highest + self.tolerance

    def __str__(self) -> str:
        if self.status is Status.FAILED:
            return f"failed ({self.cause})"
        if self.status is Status.SKIPPED:
            return "skipped"
        if self.lowest != self.highest:
            return f"scored {self.lowest!r} to {self.highest!r}"
        return f"scored {self.lowest!r}" + (f" (within {self.tolerance:g})" if self.tolerance else "")


def outcome_words(outcome: Outcome) -> str:
    """Return an outcome in the words of expectations, with the error where it failed."""
    if outcome.status is Status.FAILED:
        return f"failed ({outcome.cause}): {outcome.error}"
    return "skipped" if outcome.status is Status.SKIPPED else f"scored {outcome.score!r}"


def parse_expectation(value: object, tolerance: float) -> Expectation:
    """Return the expectation that a table's value means.

    A value is a number, a pair, ``None``, ``{"failed": cause}`` or ``{"score": ..., "tolerance": ...}``; ``tolerance``
    is how far an exact score may be off where the value does not say. Raises ValueError, which says what was expected,
    for anything else.
    """
    match value:
        case None:
            return Expectation(Status.SKIPPED)
        case {"failed": cause, **others} if not others:
            if cause not in list(Cause):
                raise ValueError(f"failed: expected one of {', '.join(Cause)}, got {cause!r}")
            return Expectation(Status.FAILED, cause=Cause(cause))
        case {"score": score, "tolerance": own, **others} if not others:
            return parse_expectation(_number(score), parse_tolerance(own, "tolerance: "))
        case {"score": score, **others} if not others:
            return parse_expectation(_number(score), tolerance)
        case [low, high]:
            lowest, highest = _number(low), _number(high)
            if lowest > highest:
                raise ValueError(f"expected the lowest score first, got [{lowest:g}, {highest:g}]")
            return Expectation(Status.SCORED, lowest, highest)
        case [*values]:
            raise ValueError(f"expected [lowest, highest], got {len(values)} values")
    number = _number(value)
    return Expectation(Status.SCORED, number, number, tolerance)


def parse_tolerance(value: object, what: str = "") -> float:
    """Return a tolerance, or raise :class:`ValueError` with words that begin with ``what``."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise ValueError(f"{what}expected a number, 0 or more, got {value!r}")
    return float(value)


def _number(value: object) -> float:
    """Return a score, which may be infinite; ValueError for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        raise ValueError(f"expected {_FORMS}; got {value!r}")
    return float(value)
