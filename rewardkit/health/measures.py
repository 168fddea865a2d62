"""The arithmetic of the detectors: sums by group, bounds of means, lines through series. Arrays in, numbers out.

A bound of a mean is taken over groups or steps and not over completions, because the completions of a group resemble
each other. ``Z`` standard errors keep chance alone from raising a flag in about 1 of 2,000 looks.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rewardkit.record.table import Floats, Whole

Z = 3.3  # Standard errors that a mean must lie beyond a threshold


class Grouped(NamedTuple):
    """Statistics of the values of each group that are not ``nan``; shape (groups,)."""

    places: Whole  # Of each completion, the place of its group
    counts: Floats  # Known values
    means: Floats  # Their means; `nan` without any
    stds: Floats  # Their standard deviations (`ddof=1`); `nan` with fewer than two
    flat: Any  # Whether they are all the same; `False` with fewer than two

    @property
    def low(self) -> float:
        """What the mean share of the groups is at least, see :func:`lower_share`."""
        return lower_share(self.means, self.size)

    @property
    def high(self) -> float:
        """What the mean share of the groups is at most."""
        return upper_share(self.means, self.size)

    @property
    def size(self) -> float:
        """The mean count of the groups that have a known value: a group that was skipped takes no certainty away."""
        counts = self.counts[self.counts > 0]
        return float(counts.mean()) if len(counts) else 0.0


def by_group(values: ArrayLike, groups: Whole) -> Grouped:
    """Return the statistics of each group, in the order of the groups' numbers."""
    array = np.asarray(values, dtype=np.float64)
    _, places = np.unique(groups, return_inverse=True)
    size = int(places.max()) + 1 if len(places) else 0
    is_number = ~np.isnan(array)
    filled = np.where(is_number, array, 0.0)
    counts = np.bincount(places, weights=is_number, minlength=size).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.bincount(places, weights=filled, minlength=size) / counts
        off = np.where(is_number, filled - means[places], 0.0)
        # squares of larger numbers are no floats
        unit = 1.0 if not len(off) or float(np.abs(off).max()) < 1e150 else 2.0**520
        squares = np.bincount(places, weights=(off / unit) ** 2, minlength=size)
        stds = unit * np.sqrt(squares / np.where(counts > 1, counts - 1, np.nan))
    flat = (counts > 1) & np.isclose(np.nan_to_num(stds, nan=1.0), 0.0)
    return Grouped(places.astype(np.int64), counts, means, stds, flat)


def without_nan(values: ArrayLike) -> Floats:
    array = np.asarray(values, dtype=np.float64)
    return array[~np.isnan(array)]


def highest(values: ArrayLike) -> Whole:
    """Return the indices of the values from the highest to the lowest; ``nan`` counts as 0."""
    order: Whole = np.argsort(-np.nan_to_num(np.asarray(values, dtype=np.float64)), kind="stable")
    return order


def mean_of(values: ArrayLike) -> float:
    """Return the mean of the values that are not ``nan``; ``nan`` without any."""
    numbers = without_nan(values)
    return float(numbers.mean()) if len(numbers) else math.nan


def lower_share(values: ArrayLike, size: float = 1.0) -> float:
    """Return the lower bound of a share: its mean less ``Z`` standard errors.

    ``size`` completions stand behind each value, which bounds how little the shares may seem to vary.
    """
    return _bound(values, size, -Z)


def upper_share(values: ArrayLike, size: float = 1.0) -> float:
    """Return the upper bound of a share: its mean and ``Z`` standard errors; see :func:`lower_share`."""
    return _bound(values, size, Z)


def _bound(values: ArrayLike, size: float, z: float) -> float:
    numbers = without_nan(values)
    if len(numbers) < 2:
        return math.nan
    near = (numbers.sum() + 1) / (len(numbers) + 2)  # keeps shares of exactly 0 or 1 from having no error at all
    spread = max(float(numbers.var(ddof=1)), near * (1 - near) / max(size, 1.0))
    return float(numbers.mean()) + z * math.sqrt(spread / len(numbers))


class BaselineShare(NamedTuple):
    """A share in the baseline."""

    share: float
    high: float  # its upper bound


class MeanBounds(NamedTuple):
    """A mean less and plus ``Z`` standard errors."""

    low: float
    high: float


def mean_bounds(values: ArrayLike) -> MeanBounds:
    """Return the bounds of values' mean; ``nan`` with fewer than two values."""
    numbers = without_nan(values)
    if len(numbers) < 2:
        return MeanBounds(math.nan, math.nan)
    mean, error = float(numbers.mean()), Z * float(numbers.std(ddof=1)) / math.sqrt(len(numbers))
    return MeanBounds(mean - error, mean + error)


class Shift(NamedTuple):
    """How far a mean moved from one set of values to another."""

    before: float  # The mean before
    after: float  # The mean after
    errors: float  # The difference in standard errors (Welch's t); 0 where it is not known


def change(before: ArrayLike, after: ArrayLike) -> Shift:
    """Return both means and their distance in standard errors; 0 of them with fewer than three values on a side."""
    first, second = without_nan(before), without_nan(after)
    if len(first) < 3 or len(second) < 3:
        return Shift(mean_of(first), mean_of(second), 0.0)
    error = math.sqrt(first.var(ddof=1) / len(first) + second.var(ddof=1) / len(second))  # Welch
    moved = float(second.mean() - first.mean())
    return Shift(float(first.mean()), float(second.mean()), moved / error if error > 0 else math.copysign(1e6, moved))


class Line(NamedTuple):
    """A line of least squares through a series at 0, 1, 2 and so on."""

    start: float  # Its value at 0
    slope: float  # Its rise a place
    error: float  # The slope's standard error
    noise: float  # The standard deviation of what is left (`ddof=2`)


def line(series: Floats) -> Line:
    """Return the line through three values or more."""
    places = np.arange(len(series), dtype=np.float64)
    off = places - places.mean()
    square = float((off**2).sum())
    slope = float((off * series).sum()) / square
    start = float(series.mean()) - slope * float(places.mean())
    noise = math.sqrt(float(((series - start - slope * places) ** 2).sum()) / max(len(series) - 2, 1))
    return Line(start, slope, noise / math.sqrt(square), noise)


class Correlation(NamedTuple):
    """A correlation with its bounds at ``Z`` standard errors of Fisher's z."""

    r: float
    low: float
    high: float


def inside_groups(left: ArrayLike, right: ArrayLike, groups: Whole) -> Correlation | None:
    """Return the correlation of values less their group's mean; ``None`` where under 20 pairs or no spread tell."""
    first, second = np.asarray(left, dtype=np.float64), np.asarray(right, dtype=np.float64)
    is_pair = ~(np.isnan(first) | np.isnan(second))
    if is_pair.sum() < 20:
        return None
    first, second, labels = first[is_pair], second[is_pair], groups[is_pair]
    a, b = by_group(first, labels), by_group(second, labels)
    x, y = first - a.means[a.places], second - b.means[b.places]
    size = math.sqrt(float((x**2).sum()) * float((y**2).sum()))
    freedom = len(x) - len(a.means) - 2  # the mean of each group takes one
    if size < 1e-12 or freedom < 10:
        return None
    r = min(max(float((x * y).sum()) / size, -0.999999), 0.999999)  # atanh of 1 is infinite
    error = Z / math.sqrt(freedom)
    return Correlation(r, math.tanh(math.atanh(r) - error), math.tanh(math.atanh(r) + error))
