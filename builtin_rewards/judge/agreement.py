"""What several jurors say together, and how far they agree.

Owns the reduction of a jury's scores to one and the measures of agreement between jurors. Who is asked, and what
becomes of a jury without a score, is in ``jury``; agreement of a judge with labels is in ``own_labels``.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from enum import StrEnum

_SAME = 1e-9
"""Scores no further apart than this are the same grade: they were weighted, and divided by a scale's width."""


class Reduction(StrEnum):
    """How the scores of several jurors become one."""

    MEDIAN = "median"
    """The middle score; of an even number the mean of the middle two."""
    MEAN = "mean"
    """The arithmetic mean."""
    MAJORITY = "majority"
    """What more than half of the jurors say that gave a score; no score where there is no such majority."""
    MIN = "min"
    """The lowest score."""


def reduce_scores(
    scores: Sequence[float | None], how: str = "median", *, threshold: float | None = None
) -> float | None:
    """Gives one score for several jurors' scores.

    A majority is over grades: the score that more than half of the jurors gave. With a threshold it is over
    verdicts: 1.0 if more than half gave at least the threshold, 0.0 if more than half gave less. Nobody breaks a tie.

    Args:
        scores: One for each juror; ``None`` for a juror that gave none, which is left out and never counts as low.
        how: A :class:`Reduction` or its value.
        threshold: The least score that accepts, for a majority; otherwise ignored.

    Returns:
        ``None`` where no juror gave a score, or there is no majority.

    Raises:
        ValueError: There is no such reduction.
    """
    if how not in tuple(Reduction):
        raise ValueError(f"how: expected one of {', '.join(Reduction)}, got {how!r}")
    given = [score for score in scores if score is not None]
    if not given:
        return None
    match Reduction(how):
        case Reduction.MEDIAN:
            return statistics.median(given)
        case Reduction.MEAN:
            # Rounding must not put it outside the scores: three times 0.1 make a mean of 0.10000000000000002.
            return min(max(statistics.fmean(given), min(given)), max(given))
        case Reduction.MIN:
            return min(given)
        case Reduction.MAJORITY:
            return _majority(given if threshold is None else [float(accepts(score, threshold)) for score in given])


def accepts(score: float, threshold: float) -> bool:
    """Whether a score accepts; one that weights have rounded off the threshold is on it."""
    return score >= threshold - _SAME


def _majority(scores: Sequence[float]) -> float | None:
    # A score that more than half gave is the median too, whatever the others are.
    middle = statistics.median_low(scores)
    return middle if 2 * sum(abs(score - middle) <= _SAME for score in scores) > len(scores) else None


def agreement(scores: Sequence[float]) -> float | None:
    """Gives the share of pairs of jurors that gave the same score, 0 to 1; ``None`` with fewer than two scores."""
    pairs = list(itertools.combinations(scores, 2))
    return sum(abs(first - second) <= _SAME for first, second in pairs) / len(pairs) if pairs else None
