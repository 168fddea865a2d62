"""What several jurors say together, and how far they agree.

Owns the reduction of a jury's scores to one and the measures of agreement between jurors. Who is asked, and what
becomes of a jury without a score, is in ``jury``; agreement of a judge with labels is in ``calibration``.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

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


class Agreement(NamedTuple):
    """How far the jurors of a jury agree.

    Attributes:
        share: The share of pairs of jurors whose scores of one rollout are within the tolerance, 0 to 1; ``None``
            where no rollout has two scores.
        alpha: Krippendorff's alpha: 1 for perfect agreement, 0 for what chance gives, below 0 for less; ``None``
            where no rollout has two scores, or all scores are equal.
        pairs: How many pairs of scores the share is of.
    """

    share: float | None
    alpha: float | None
    pairs: int


def agreement(scores: Sequence[Sequence[float | None]], tolerance: float = 0.0) -> Agreement:
    """Gives how far jurors agree over one or more rollouts.

    Args:
        scores: For each rollout the score of each juror; ``None`` for a juror that gave none, which is left out.
        tolerance: How far two scores may be apart and still agree.
    """
    given = [[score for score in row if score is not None] for row in scores]
    pairs = [pair for row in given for pair in itertools.combinations(row, 2)]
    agreeing = sum(abs(first - second) <= tolerance + _SAME for first, second in pairs)
    return Agreement(agreeing / len(pairs) if pairs else None, krippendorff_alpha(scores), len(pairs))


def krippendorff_alpha(scores: Sequence[Sequence[float | None]]) -> float | None:
    """Gives Krippendorff's alpha with the interval metric, (a - b)².

    Formula: 1 - D_o / D_e. With m_u scores of rollout u, SS_u their sum of squares about their mean, n scores in all
    and SS theirs about the common mean: D_o = (2/n) Σ_u m_u SS_u / (m_u - 1) and D_e = 2 SS / (n - 1), since the
    squared differences of all pairs of m numbers add up to m SS. Rollouts with fewer than two scores are left out.
    For scores of 0 and 1 only it is the alpha of the nominal metric. Source: Krippendorff, Computing Krippendorff's
    Alpha-Reliability (2011), https://repository.upenn.edu/asc_papers/43.

    Args:
        scores: For each rollout the score of each juror, ``None`` where it gave none.

    Returns:
        ``None`` where no rollout has two scores, or all scores are equal: then alpha is not defined.
    """
    rows = [given for row in scores if len(given := [score for score in row if score is not None]) > 1]
    everything = list(itertools.chain.from_iterable(rows))
    if not everything or min(everything) == max(everything):
        return None
    observed = math.fsum(_squares(row) * len(row) / (len(row) - 1) for row in rows) / len(everything)
    expected = _squares(everything) / (len(everything) - 1)
    return 1 - observed / expected


def _squares(values: Sequence[float]) -> float:
    mean = statistics.fmean(values)
    return math.fsum((value - mean) ** 2 for value in values)
