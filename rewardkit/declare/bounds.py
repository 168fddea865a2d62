"""The lowest and highest value of a function of several scores, from the lowest and highest of each."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

Bounds: TypeAlias = tuple[float, float]
"""The lowest and the highest score; an end that nobody declares is infinite."""
UNBOUNDED: Bounds = (-math.inf, math.inf)
_MOST_VARYING = 12  # of more scores the combinations of their ends are too many to try


def finite(bounds: Bounds | None) -> Bounds | None:
    """Return bounds whose two ends are numbers; ``None`` for others."""
    return bounds if bounds is not None and all(map(math.isfinite, bounds)) else None


def extremes(function: Callable[[Sequence[float]], float], scores: Sequence[Bounds]) -> Bounds:
    """Return the lowest and highest value of a function over all combinations of its scores' ends.

    These are its bounds where it never turns back while one score rises. It is unbounded where it makes no number of
    infinite ends, and for more than 12 scores.
    """
    if len(scores) > _MOST_VARYING:
        return UNBOUNDED
    try:
        values = [function(combination) for combination in itertools.product(*scores)]
    except (ArithmeticError, ValueError):  # such as the difference of infinite ends
        return UNBOUNDED
    return UNBOUNDED if any(map(math.isnan, values)) else (min(values), max(values))
