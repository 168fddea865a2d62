"""Rates and means with their uncertainty: intervals, a test of paired flips, ranks with ties.

Owns the arithmetic only. How far jurors agree is in ``agreement``, how far a judge agrees with labels in
``calibration``, which rates are reported and what they must not exceed in ``audit``. Nothing here is ever ``nan``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple


class Interval(NamedTuple):
    """A rate or a mean with the interval that it is uncertain in.

    Attributes:
        rate: The estimate; ``None`` where nothing was observed.
        low: The lower end.
        high: The upper end.
    """

    rate: float | None
    low: float
    high: float


def wilson(successes: float, trials: int, z: float = 1.96) -> Interval:
    """Gives a rate with its Wilson score interval, which stays inside [0, 1] and is honest at 0% and 100%.

    Formula, with p = successes / trials and n = trials: (p + z²/2n ± z √(p(1-p)/n + z²/4n²)) / (1 + z²/n). Source:
    Wilson, Probable Inference, the Law of Succession, and Statistical Inference, JASA 22 (1927), 209-212.

    Args:
        successes: How many trials succeeded; a tie may count as half.
        trials: How many there were. With none the rate is ``None`` and the interval is all of [0, 1].
        z: Standard normal quantile: 1.96 for 95%.

    Raises:
        ValueError: ``successes`` is not from 0 to ``trials``.
    """
    if not 0 <= successes <= trials:
        raise ValueError(f"successes: expected 0 to {trials} (trials), got {successes}")
    if not trials:
        return Interval(None, 0.0, 1.0)
    rate = successes / trials
    width = z * z / trials
    middle = rate + width / 2
    half = math.sqrt(width * (rate * (1 - rate) + width / 4))
    # Rounding must not put the rate itself outside, which at 0% and 100% is an end of the interval.
    low = min(rate, max(0.0, (middle - half) / (1 + width)))
    high = max(rate, min(1.0, (middle + half) / (1 + width)))
    return Interval(rate, low, high)


def cluster_bootstrap(
    clusters: Sequence[Sequence[float]], *, resamples: int = 2000, confidence: float = 0.95, seed: int = 0
) -> Interval | None:
    """Gives the mean of all values with a percentile interval for which whole clusters are drawn.

    Values of one prompt depend on each other, so a prompt is a cluster: it is drawn with all its values or not at
    all. The mean is over values, so a prompt with more of them weighs more. Source: Davison and Hinkley, Bootstrap
    Methods and their Application (1997), sections 3.8 (clusters) and 5.3 (percentiles).

    Args:
        clusters: The values of each prompt; empty ones are left out.
        resamples: How often the clusters are drawn.
        confidence: How often such an interval should hold the true mean, in (0, 1).
        seed: The same seed gives the same interval on one version of numpy.

    Returns:
        ``None`` with fewer than two clusters, which say nothing about how prompts differ.

    Raises:
        ValueError: ``resamples`` is below 1, or ``confidence`` not inside (0, 1).
    """
    if resamples < 1:
        raise ValueError(f"resamples: expected at least 1, got {resamples}")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence: expected a number inside (0, 1), got {confidence}")
    clusters = [values for values in clusters if values]
    if len(clusters) < 2:
        return None
    import numpy as np

    sums = np.array([math.fsum(values) for values in clusters])
    counts = np.array([len(values) for values in clusters])
    random = np.random.default_rng(seed)
    means = np.empty(resamples)
    for index in range(resamples):
        drawn = random.integers(len(sums), size=len(sums))
        means[index] = sums[drawn].sum() / counts[drawn].sum()
    low, high = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(math.fsum(sums) / int(counts.sum()), float(low), float(high))


def mcnemar(first_only: int, second_only: int) -> float:
    """Gives the exact two-sided p-value that two paired conditions succeed equally often.

    Formula: min(1, 2 P(X ≤ min(b, c))) with X binomial of b + c trials at one half; pairs in which both conditions
    agree do not count. 1.0 where none differ. Source: McNemar, Psychometrika
    12 (1947), 153-157, with the binomial in place of its chi-squared approximation.

    Args:
        first_only: b, the pairs in which only the first condition succeeded.
        second_only: c, those in which only the second did.

    Raises:
        ValueError: One of them is negative.
    """
    fewer, trials = min(first_only, second_only), first_only + second_only
    if fewer < 0:
        raise ValueError(f"expected counts of pairs from 0, got {first_only} and {second_only}")
    tail = ways = 1  # in whole numbers, however many: of none, then of one more each
    for below in range(fewer):
        ways = ways * (trials - below) // (below + 1)
        tail += ways
    return min(1.0, 2 * tail / (1 << trials))


def mean_ranks(values: Sequence[float], tolerance: float = 0.0) -> list[float]:
    """Gives each value's rank from 1, the smallest; equal ones share the mean of their ranks.

    Args:
        values: Finite numbers.
        tolerance: Neighbours in the order that are no further apart than this count as equal.
    """
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    start = 0
    for end in range(1, len(order) + 1):
        if end == len(order) or values[order[end]] - values[order[end - 1]] > tolerance:
            for index in order[start:end]:
                ranks[index] = (start + 1 + end) / 2
            start = end
    return ranks
