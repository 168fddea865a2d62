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

__all__ = ["Z_95", "Interval", "best_of_n_kl", "best_of_n_weights", "mean_interval", "wilson", "within_share"]

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
