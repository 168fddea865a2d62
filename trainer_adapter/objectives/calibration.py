"""Whether probabilities mean what they say: of the pairs given 0.8, eight in ten are to come out so.

A reward model's pairs become probabilities by :func:`pair_probabilities`; any other probabilities with outcomes 0 and 1
do as well. N counts probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, NamedTuple

import numpy as np

from rewardkit import ObjectiveError
from trainer_adapter.objectives import arrays
from trainer_adapter.objectives.arrays import Array, ArrayT

_ROUNDING = 4  # Spacings of floats within which a probability is on the edge of a bin: log-odds and back cost as many


@dataclass(frozen=True, slots=True)
class ReliabilityCurve(Generic[ArrayT]):
    """What each bin of probabilities holds; arrays of one entry a bin, B of them."""

    edges: ArrayT
    """(B + 1,), ascending: bin b goes from ``edges[b]`` up to, and without, ``edges[b + 1]``; the last has its end."""
    mean_probability: ArrayT
    """(B,), the mean probability in the bin; ``nan`` in an empty one."""
    frequency: ArrayT
    """(B,), the share of labels 1 in the bin; ``nan`` in an empty one."""
    count: ArrayT
    """(B,), how many probabilities are in the bin; integers."""


def pair_probabilities(chosen: ArrayT, rejected: ArrayT, *, seed: int) -> tuple[ArrayT, ArrayT]:
    """Put each pair in random order; return the probability that its first is preferred, and whether it is.

    In the order (chosen, rejected) every label is 1, and a calibration error measures how sure the model is, not how
    rightly: a model that always says 1 has no such error. The order comes from the seed alone, the same in numpy and
    torch.

    Args:
        chosen: Scores, (P,).
        rejected: Scores, (P,).
        seed: Of the order, 0 or more.

    Returns:
        Probabilities, (P,), and labels 0 and 1, (P,), both of the scores' dtype.

    Raises:
        ObjectiveError: The shapes differ or are not (P,), or the seed is not a whole number of 0 or more.
    """
    xp, won, lost = arrays.floats(chosen=chosen, rejected=rejected)
    arrays.same_shape(chosen=won, rejected=lost)
    if won.ndim != 1:
        raise ObjectiveError(f"scores of shape {tuple(won.shape)}: expected (pairs,)")
    if not arrays.is_whole(seed, 0):
        raise ObjectiveError(f"seed={seed!r}: expected a whole number, 0 or more")
    first = arrays.beside(np.random.default_rng(seed).integers(0, 2, size=len(won)), won)
    difference = arrays.wide(won) - arrays.wide(lost)
    probability = arrays.sigmoid(xp.where(first == 1, difference, -difference))
    return arrays.cast(probability, won.dtype), arrays.cast(first, won.dtype)


def expected_calibration_error(probs: ArrayT, labels: ArrayT, bins: int, adaptive: bool = False) -> ArrayT:
    """Return the mean distance between probability and frequency over the bins, weighted by their counts: a scalar.

    Naeini et al. (2015, AAAI, "Obtaining well calibrated probabilities using Bayesian binning"). Every probability
    counts, 0 and 1 too: see :func:`reliability_curve` for the bins.

    Args:
        probs: (N,), from 0 to 1.
        labels: (N,), whether it came out so: booleans, 0 or 1.
        bins: How many, 1 or more.
        adaptive: Bins of equal counts (Nguyen and O'Connor, 2015, arXiv 1508.05154) instead of equal widths.

    Raises:
        ObjectiveError: As for :func:`reliability_curve`.
    """
    prob, label = _check(probs, labels)
    binned = _bin(prob, label, bins, adaptive)
    gap = abs(binned.probabilities - binned.labels).sum() / binned.count.sum()
    error: ArrayT = arrays.cast(gap, prob.dtype)
    return error


def brier(probs: ArrayT, labels: ArrayT) -> ArrayT:
    """Return the mean of (probability - label)², a scalar (Brier, 1950, Monthly Weather Review 78, 1-3).

    Args:
        probs: (N,), from 0 to 1.
        labels: (N,), booleans, 0 or 1.

    Raises:
        ObjectiveError: The shapes differ, there is no probability, or a value is out of range.
    """
    prob, label = _check(probs, labels)
    score: ArrayT = arrays.cast(((arrays.wide(prob) - arrays.wide(label)) ** 2).mean(), prob.dtype)
    return score


def reliability_curve(probs: ArrayT, labels: ArrayT, bins: int, adaptive: bool = False) -> ReliabilityCurve[ArrayT]:
    """Return mean probability, frequency of label 1 and count in each bin (DeGroot and Fienberg, 1983).

    A bin holds its lower edge and not its upper, but the last holds 1, as in ``numpy.histogram``. Edge b of bins of
    equal widths is b / bins, so that 0.3 lies on the edge that is printed as 0.3; so does a probability that rounding
    has moved off it, by four spacings of its dtype or less. With equal counts, equal probabilities share a bin, so that
    the order of the rows does not matter; the counts are then less equal.

    Args:
        probs: (N,), from 0 to 1.
        labels: (N,), booleans, 0 or 1.
        bins: How many, 1 or more; with ``adaptive`` at most one a probability.
        adaptive: Bins of equal counts instead of equal widths.

    Raises:
        ObjectiveError: The shapes differ, there is no probability, a value is out of range, or ``bins`` is below 1.
    """
    prob, label = _check(probs, labels)
    binned = _bin(prob, label, bins, adaptive)
    xp = arrays.namespace(prob)
    size = arrays.cast(binned.count, "float64")
    size = xp.where(binned.count > 0, size, arrays.like(float("nan"), size))
    return ReliabilityCurve(
        edges=binned.edges,
        mean_probability=arrays.cast(binned.probabilities / size, prob.dtype),
        frequency=arrays.cast(binned.labels / size, prob.dtype),
        count=binned.count,
    )


class _Binned(NamedTuple):
    """Bins of probabilities with their labels; arrays of one entry a bin."""

    edges: Any  # One more than bins; of the probabilities' dtype, so that 0.7 is on the edge 0.7 in float32 too
    count: Any
    probabilities: Any  # Their sums, in float64
    labels: Any  # The same


def _bin(prob: Array, label: Array, bins: int, adaptive: bool) -> _Binned:
    """Return the probabilities and labels in bins of equal widths, or with ``adaptive`` of equal counts."""
    if not arrays.is_whole(bins, 1):
        raise ObjectiveError(f"bins={bins!r}: expected a whole number, 1 or more")
    xp = arrays.namespace(prob)
    edges = _equal_counts(prob, bins) if adaptive else arrays.like(np.arange(int(bins) + 1) / int(bins), prob)
    reached = edges[1:-1]
    if not adaptive and prob.dtype.itemsize >= 4:  # an edge of halves is as coarse as the probabilities are
        reached = reached * (1 - _ROUNDING * xp.finfo(prob.dtype).eps)
    index, number = xp.searchsorted(reached, prob, side="right"), len(edges) - 1
    probabilities, labels = (
        xp.bincount(index, weights=arrays.cast(column, "float64"), minlength=number) for column in (prob, label)
    )
    return _Binned(edges, xp.bincount(index, minlength=number), probabilities, labels)


def _equal_counts(prob: Array, bins: int) -> Any:
    """Return edges from 0 to 1 between which there are about as many probabilities; ties move to the upper bin."""
    xp, n = arrays.namespace(prob), len(prob)
    order = xp.sort(prob) if xp is np else xp.sort(prob).values
    starts = np.cumsum([len(part) for part in np.array_split(np.empty(n), min(bins, n))])[:-1]
    inner = xp.unique(order[arrays.beside(starts, prob)])
    ends = arrays.like([0.0, 1.0], prob)
    inner = inner[inner > 0]
    return xp.concatenate([ends[:1], inner, ends[1:]])


def _check(probs: object, labels: object) -> tuple[Any, Any]:
    """Return probabilities and labels as arrays of one dtype; raise ``ObjectiveError`` as the callers say."""
    _, prob = arrays.floats(probs=probs)
    label = arrays.cast(arrays.numbers("labels", labels, prob), prob.dtype)
    arrays.same_shape(probs=prob, labels=label)
    if prob.ndim != 1 or not len(prob):
        raise ObjectiveError(f"probs of shape {tuple(prob.shape)}: expected (probabilities,), one or more")
    for name, array, wrong in (
        ("probability", prob, ~((prob >= 0) & (prob <= 1))),
        ("label", label, ~((label == 0) | (label == 1))),
    ):
        if bool(wrong.any()):
            row = int(wrong.nonzero()[0][0])
            expected = "0 to 1" if name == "probability" else "0 or 1"
            raise ObjectiveError(f"row {row}: {name} {array[row].item()!r}: expected {expected}")
    return prob, label
