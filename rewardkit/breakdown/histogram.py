"""How values spread at each step, and which part of them moved where between two moments."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rewardkit.breakdown.run_scores import Measured, Scores
from rewardkit.record.table import Floats, Whole

MOST_VALUES = 12  # Different values that have bins of their own; more of them share bins of one width
BINS = 20  # Bins of one width, about so many
SLICES = 48  # Stretches of steps, at most
FLOWS = 4  # Moves that a shift names, the largest ones
TAIL = 0.005  # The share of the values at either end that may lie far out, and then has a bin without an end
FAR = 3.0  # How many times as wide all values have to be as those between the tails
_ROUNDING = 9  # Digits by which values are the same
_TOO_LARGE_TO_ROUND = 1e7  # From here on a float has no such digits, and rounding a score of 1e300 makes it infinite


class Bin(NamedTuple):
    """Values from ``low`` on and below ``high``; one value where both are the same, no end where one is ``None``."""

    low: float | None
    high: float | None
    middle: float  # The mean of the values in it, over all steps


class StepSlice(NamedTuple):
    """Some steps after one another, or what was scored at no step."""

    first: int | None
    last: int | None
    values: int  # Completions with a value
    skipped: int  # Completions that have none because nothing applied
    failed: int  # Completions that have none because a call failed
    mean: float | None  # The mean of the values


class Histogram(NamedTuple):
    """How often values lie in each bin, by slice of steps."""

    bins: Sequence[Bin]
    slices: Sequence[StepSlice]
    counts: NDArray[np.int64]  # Shape (slices, bins)


class Flow(NamedTuple):
    """A share of the completions that went from one bin to another."""

    start: int  # The place of the bin that it left
    end: int  # The place of the bin in which it arrived
    share: float


class SpreadShift(NamedTuple):
    """What changed between two slices, see :func:`shift`; ``None`` where one of them has no value."""

    moved: float | None  # The share of the completions that lie in other bins than before
    distance: float | None  # How far the mean completion went, in the unit of the values
    flows: Sequence[Flow]  # The largest moves


def histogram(scores: Scores, measured: Measured, slices: int = SLICES) -> Histogram:
    """Return the histogram of what is measured, over at most so many slices with about as many steps each.

    Up to :data:`MOST_VALUES` different values have bins of their own. More of them share about :data:`BINS` bins of one
    width; where all values lie :data:`FAR` times as wide as those without the outer 0.5 % at either end, the first and
    the last bin have no end.
    """
    has_value = measured.has_call & ~np.isnan(measured.values)
    values = measured.values[has_value]
    places, bins = _binned(values)
    spans, numbers = _slices(scores.steps, measured, slices)
    cells = numbers[has_value] * len(bins) + places
    counts = np.bincount(cells, minlength=len(spans) * len(bins)).reshape(len(spans), len(bins))
    sums = np.bincount(numbers[has_value], values, minlength=len(spans))
    skipped, failed = (np.bincount(numbers[mask], minlength=len(spans)) for mask in (measured.skipped, measured.failed))
    return Histogram(
        bins,
        [
            StepSlice(*span, total := int(counts[index].sum()), int(skipped[index]), int(failed[index]),
                      float(sums[index]) / total if total else None)
            for index, span in enumerate(spans)
        ],
        counts,
    )  # fmt: skip


def shift(spread: Histogram, before: int, after: int) -> SpreadShift:
    """Return what changed from one slice of a histogram to another, over the shares p and q of their bins.

    ``moved`` is the total variation ½ Σ |p - q|. ``distance`` is the first Wasserstein distance Σ |P - Q| · d, with the
    cumulative shares P and Q and the distances d between the middles of neighbouring bins. The flows are those of the
    least work that makes q of p, which on a line pairs the completions in their order. Source: Rubner, Tomasi and
    Guibas, IJCV 40 (2000), 99-121.
    """
    counts = spread.counts[before].astype(np.float64), spread.counts[after].astype(np.float64)
    if not all(column.sum() for column in counts):
        return SpreadShift(None, None, [])
    start, end = (column / column.sum() for column in counts)
    middles = np.array([part.middle for part in spread.bins])
    distance = float((np.abs(np.cumsum(start - end))[:-1] * np.diff(middles)).sum())
    flows = sorted(_flows(start, end), key=lambda flow: -flow.share)[:FLOWS]
    return SpreadShift(float(np.abs(start - end).sum() / 2), distance, flows)


def _flows(start: Floats, end: Floats) -> list[Flow]:
    """Return the shares that go from a bin to another where completions keep their order."""
    left, right = np.cumsum(start), np.cumsum(end)
    cuts = np.unique(np.concatenate([[0.0], left, right]))
    flows: dict[tuple[int, int], float] = {}
    for low, high in itertools.pairwise(cuts.tolist()):
        middle = (low + high) / 2
        pair = (int(np.searchsorted(left, middle)), int(np.searchsorted(right, middle)))
        if pair[0] != pair[1] and max(pair) < len(start) and high - low > 1e-12:
            flows[pair] = flows.get(pair, 0.0) + high - low
    return [Flow(*pair, share) for pair, share in flows.items()]


def _binned(values: Floats) -> tuple[Whole, list[Bin]]:
    """Return the bin of each value, and the bins."""
    if not len(values):
        return np.zeros(0, np.int64), []
    rounded = np.where(np.abs(values) < _TOO_LARGE_TO_ROUND, values, 0.0).round(_ROUNDING)
    rounded = np.where(np.abs(values) < _TOO_LARGE_TO_ROUND, rounded, values)
    distinct, places = np.unique(rounded, return_inverse=True)
    if len(distinct) <= MOST_VALUES:
        return places.reshape(-1), [Bin(value, value, value) for value in distinct.tolist()]
    low, high = float(values.min()), float(values.max())
    inner = np.quantile(values, [TAIL, 1 - TAIL])
    is_far = high - low > FAR * float(inner[1] - inner[0]) > 0
    edges = _even_edges(*inner.tolist()) if is_far else _even_edges(low, high)
    places = np.searchsorted(edges, values, side="right") - (0 if is_far else 1)
    size = len(edges) + (1 if is_far else -1)
    places = np.clip(places, 0, size - 1)
    sums, counts = np.bincount(places, values, minlength=size), np.bincount(places, minlength=size)
    ends = [None, *edges.tolist(), None] if is_far else edges.tolist()
    pairs = list(itertools.pairwise(ends))
    middles = [
        float(total / count) if count else sum(end for end in pair if end is not None) / (2 - pair.count(None))
        for total, count, pair in zip(sums, counts, pairs, strict=True)
    ]
    return places, [Bin(*pair, middle) for pair, middle in zip(pairs, middles, strict=True)]


def _even_edges(low: float, high: float) -> Floats:
    """Return edges of about :data:`BINS` bins from at most ``low`` to at least ``high``, at numbers easy to read."""
    rough = high / BINS - low / BINS  # the width itself may be no float
    power = 10.0 ** math.floor(math.log10(rough))
    width = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * (1 - 1e-9))
    first, last = math.floor(low / width + 1e-9), math.ceil(high / width - 1e-9)
    return np.array([float(f"{number * width:.9g}") for number in range(first, last + 1)])


def _slices(steps: Whole, measured: Measured, most: int) -> tuple[list[tuple[int | None, int | None]], Whole]:
    """Return the first and last step of each slice, and each completion's slice; completions of no step come first."""
    present = np.unique(steps[measured.has_call])
    stepped = present[present >= 0]
    chunks = [chunk for chunk in np.array_split(stepped, min(most, len(stepped)) or 1) if len(chunk)]
    spans: list[tuple[int | None, int | None]] = [(None, None)] if len(present) > len(stepped) else []
    offset = len(spans)
    firsts = np.array([chunk[0] for chunk in chunks], np.int64)
    numbers = np.searchsorted(firsts, steps, side="right") - 1 + offset
    numbers[steps < 0] = 0
    return [*spans, *((int(chunk[0]), int(chunk[-1])) for chunk in chunks)], np.clip(numbers, 0, None)
