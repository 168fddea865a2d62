"""Public: rates and means with their intervals, and the best of several draws.

Owns the arithmetic only, on plain numbers and numpy. No result is ever ``nan``; a result that the input does not
define is ``None``.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "Z_95",
    "Interval",
    "best_of_n_kl",
    "best_of_n_weights",
    "mean_interval",
    "paired_interval",
    "rate_change",
    "wilson",
    "within_share",
]

Z_95 = 1.96
"""The standard normal quantile of a 95 % interval."""


class Interval(NamedTuple):
    """A rate or a mean with its 95 % interval, and how many were observed; without any the rate is ``None``."""

    rate: float | None
    low: float
    high: float
    of: int


def wilson(successes: float, trials: int) -> Interval:
    """Return a rate with its Wilson score interval, which stays inside [0, 1] and is honest at 0 % and 100 %.

    Formula, with p = successes / trials and n = trials: (p + z²/2n ± z √(p(1-p)/n + z²/4n²)) / (1 + z²/n). Source:
    Wilson, JASA 22 (1927), 209-212. A tie may count as half a success.

    Raises:
        ValueError: ``successes`` is not from 0 to ``trials``.
    """
    if not 0 <= successes <= trials:
        raise ValueError(f"successes: expected 0 to {trials} (trials), got {successes}")
    if not trials:
        return Interval(None, 0.0, 1.0, 0)
    rate, width = successes / trials, Z_95 * Z_95 / trials
    middle = rate + width / 2
    half = math.sqrt(width * (rate * (1 - rate) + width / 4))
    # Rounding must not put the rate itself outside, which at 0 % and 100 % is an end of the interval.
    low, high = max(0.0, (middle - half) / (1 + width)), min(1.0, (middle + half) / (1 + width))
    return Interval(rate, min(rate, low), max(rate, high), trials)


def rate_change(before: Interval, after: Interval) -> Interval:
    """Return the difference of two independent rates with Newcombe's interval, honest also where a rate is 0 or 1.

    Formula, with p and the ends l and u of the Wilson interval of each: d = p_after - p_before, from d - √((p_after -
    l_after)² + (u_before - p_before)²) to d + √((u_after - p_after)² + (p_before - l_before)²). Source: Newcombe,
    Statistics in Medicine 17 (1998), 873-890, method 10.

    Args:
        before: A rate as :func:`wilson` returns it.
        after: Another one.

    Returns:
        The difference, -1 to 1; ``None`` between -1 and 1 where one of the rates is not known.
    """
    count = before.of + after.of
    if before.rate is None or after.rate is None:
        return Interval(None, -1.0, 1.0, count)
    change = after.rate - before.rate
    low = change - math.hypot(after.rate - after.low, before.high - before.rate)
    high = change + math.hypot(after.high - after.rate, before.rate - before.low)
    return Interval(change, max(-1.0, low), min(1.0, high), count)


def mean_interval(values: Sequence[float]) -> Interval:
    """Return the mean of values with its normal 95 % interval: mean ± z·s/√n, with s of n - 1.

    One value has the interval from minus to plus infinity: nothing is known of its spread.
    """
    if not values:
        return Interval(None, -math.inf, math.inf, 0)
    middle = statistics.fmean(values)
    if len(values) == 1:
        return Interval(middle, -math.inf, math.inf, 1)
    half = Z_95 * statistics.stdev(values) / math.sqrt(len(values))
    return Interval(middle, middle - half, middle + half, len(values))


def paired_interval(differences: Sequence[float], clusters: Sequence[int] | None = None) -> Interval:
    """Return the mean of paired differences with its 95 % interval, with a standard error clustered by question.

    Formula, for n differences d_i with the mean d in G clusters: d ± t·√v with v = G / (G - 1) · Σ_c (Σ_{i in c} (d_i -
    d))² / n², and t the 97.5 % quantile of Student's distribution of G - 1 degrees. With a cluster each it is the
    paired t-test's: Student, Biometrika 6 (1908), 1-25. Sources: paired differences and clustered errors of
    evaluations: Miller, arXiv 2411.00640, sections 2.2 and 4.2; G / (G - 1) and t of G - 1: Cameron and Miller,
    Journal of Human Resources 50 (2015), 317-372.

    Args:
        differences: The differences, one a pair; finite.
        clusters: The number of each pair's cluster, such as its question: pairs of one cluster are not independent of
            each other. Each pair is its own cluster unless given.

    Returns:
        The interval from minus to plus infinity with a single cluster: nothing is known of the spread.
    """
    if not differences:
        return Interval(None, -math.inf, math.inf, 0)
    count, size = len(differences), max(map(abs, differences)) or 1.0  # of size 1, no sum or square overflows
    middle = math.fsum(difference / size for difference in differences) / count
    sums: dict[int, float] = {}
    for cluster, difference in zip(range(count) if clusters is None else clusters, differences, strict=True):
        sums[cluster] = sums.get(cluster, 0.0) + (difference / size - middle)
    if len(sums) == 1:
        return Interval(middle * size, -math.inf, math.inf, count)
    squares = math.fsum(value * value for value in sums.values())
    half = _student_95(len(sums) - 1) * math.sqrt(len(sums) / (len(sums) - 1) * squares) / count
    return Interval(middle * size, (middle - half) * size, (middle + half) * size, count)


def _student_95(degrees: int) -> float:
    """Return the 97.5 % quantile of Student's distribution, right to seven digits.

    Up to 30 degrees it is where the distribution of Abramowitz and Stegun, 26.7.3 and 26.7.4, is 0.95 in the middle,
    above the expansion 26.7.5.
    """
    z = statistics.NormalDist().inv_cdf(0.975)
    if degrees > 30:
        terms = (
            (z**3 + z) / 4,
            (5 * z**5 + 16 * z**3 + 3 * z) / 96,
            (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
            (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
        )
        return z + math.fsum(term / degrees**power for power, term in enumerate(terms, 1))
    low, high = z, 13.0  # that of one degree is 12.7
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if _student_middle(middle, degrees) < 0.95 else (low, middle)
    return middle


def _student_middle(t: float, degrees: int) -> float:
    """Return the probability of Student's distribution between -t and t."""
    sine, cosine = t / math.sqrt(degrees + t * t), math.sqrt(degrees / (degrees + t * t))
    odd = degrees % 2
    total, term = 0.0, cosine if odd else 1.0
    for power in range(1 + odd, degrees, 2):
        total += term
        term *= cosine * cosine * power / (power + 1)
    return 2 / math.pi * (math.atan2(sine, cosine) + sine * total) if odd else sine * total


def within_share(groups: Sequence[Sequence[float]]) -> float | None:
    """Return the share of the variance of values that is within their groups, 0 to 1: of a judge's scores its own.

    It is 1 - ICC(1) of a one-way analysis of variance, for k groups of n_i of the N values: with W = Σ (value -
    mean_i)² / (N - k) and B = (Σ n_i (mean_i - mean)² / (k - 1) - W) / n0, at least 0, and n0 = (N - Σ n_i² / N) /
    (k - 1), the share is W / (W + B). Source: Shrout and Fleiss, Psychological Bulletin 86 (1979), 420-428.

    Returns:
        ``None`` where there are less than two groups, no group has two values, or all values are equal.
    """
    values = [value for group in groups for value in group]
    count, total = len(groups), len(values)
    if count < 2 or total <= count:
        return None
    mean, means = statistics.fmean(values), [statistics.fmean(group) for group in groups]
    pairs = list(zip(groups, means, strict=True))
    within = math.fsum((value - center) ** 2 for group, center in pairs for value in group) / (total - count)
    among = math.fsum(len(group) * (center - mean) ** 2 for group, center in pairs) / (count - 1)
    size = (total - sum(len(group) ** 2 for group in groups) / total) / (count - 1)
    between = max(0.0, among - within) / size
    return within / (within + between) if within + between > 0 else None


def best_of_n_weights(count: int, n: int) -> NDArray[np.float64]:
    """Return the weight of each of ``count`` values, in rising order, in the unbiased estimate of the best of ``n``.

    The weight of the i-th smallest is C(i - 1, n - 1) / C(count, n): the share of the subsets of n in which it is the
    largest. The weights sum to 1, and the weighted sum of the values is the mean of the best over all subsets. Source:
    Nakano et al., WebGPT, arXiv 2112.09332, appendix I.

    Returns:
        Shape (count,).

    Raises:
        ValueError: ``n`` is not from 1 to ``count``.
    """
    if not 1 <= n <= count:
        raise ValueError(f"n={n}: expected 1 to {count}, the number of values")
    import numpy as np  # judges use the intervals above, and are quick to import

    ranks = np.arange(count, n, -1, dtype=np.float64)  # from the largest down: no binomial overflows
    weights = np.zeros(count)
    weights[n - 1 :] = (n / count * np.cumprod(np.concatenate([[1.0], (ranks - n) / (ranks - 1)])))[::-1]
    return weights


def best_of_n_kl(n: int) -> float:
    """Return the bound of KL(best of n ‖ policy) in nats: log n - (n - 1) / n.

    The divergence is equal to it where no two completions are alike, and smaller otherwise. Sources: Stiennon et al.,
    arXiv 2009.01325, appendix G.3; that it is a bound: Beirami et al., arXiv 2401.01879, theorem 1.

    Raises:
        ValueError: ``n`` is below 1.
    """
    if n < 1:
        raise ValueError(f"n={n}: expected a number of completions, 1 or more")
    return math.log(n) - (n - 1) / n
