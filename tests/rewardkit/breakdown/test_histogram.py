"""Histograms agree with numpy over the export, and what moved is what has to be moved."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rewardkit.breakdown.histogram import Histogram, SpreadShift, histogram, shift
from rewardkit.breakdown.run_scores import Measured, RunScores, Scores, measure

WEIGHTS = {"correct": 10.0, "style": 0.05, "length": -2.0, "watch": 0.0}


@pytest.mark.parametrize("name", ["reward", *WEIGHTS])
@pytest.mark.parametrize("slices", [1, 5, 48])
def test_counts_agree_with_numpy_over_the_export(recorded: Any, name: str, slices: int) -> None:
    """Each value is in one bin of the slice of its step; what has no value is counted by its reason."""
    run_scores = RunScores()
    run_scores.read(recorded.reader)
    scores = run_scores.of("train")
    spread = histogram(scores, measure(scores, recorded.reader.rewards, name), slices)
    rows = [row for row in recorded.rows if row["split"] == "train"]
    steps = sorted({row["step"] for row in rows})
    assert min(slices, len(steps)) == len(spread.slices)
    assert steps == [step for part in spread.slices for step in range(part.first, part.last + 1)]
    for part, counts in zip(spread.slices, spread.counts, strict=True):
        own = [row for row in rows if part.first <= row["step"] <= part.last]
        values = np.array([value for row in own if (value := value_of(row, name)) is not None])
        assert (len(values), len(values)) == (part.values, counts.sum())
        assert len(own) == part.values + part.skipped + part.failed
        assert pytest.approx(values.mean()) == part.mean
        for bounds, count in zip(spread.bins, counts.tolist(), strict=True):
            assert bounds.low is not None
            assert bounds.high is not None
            if bounds.low == bounds.high:
                assert int(np.isclose(values, bounds.low).sum()) == count
            else:
                assert int(((values >= bounds.low) & (values < bounds.high)).sum()) == count


def value_of(row: dict[str, Any], name: str) -> float | None:
    """Return the reward or score of a row of the export; None where a call failed or was skipped."""
    if name != "reward":
        return row[name] if row[f"{name}.status"] == "scored" else None
    failed = any(row[f"{reward}.status"] == "failed" for reward, weight in WEIGHTS.items() if weight)
    return None if failed else row["reward"]


def spread_of(values: list[list[float]]) -> Histogram:
    """Return the histogram of values of a reward, a list for each step."""
    flat = np.array([value for step in values for value in step])
    steps = np.array([number for number, step in enumerate(values) for _ in step], np.int64)
    zeros, no = np.zeros(len(flat), np.int64), np.zeros(len(flat), np.bool_)
    scores = Scores(zeros, steps, zeros, zeros, flat, {}, {}, {}, {})
    return histogram(scores, Measured("good", False, flat, no, no, ~no))


MOVES = {
    "nothing": ([[0.0, 1.0], [1.0, 0.0]], SpreadShift(0.0, 0.0, [])),
    "half of them": ([[0.0, 0.0], [0.0, 1.0]], SpreadShift(0.5, 0.5, [(0, 1, 0.5)])),
    "all of them, one step each": ([[0.0, 0.5], [0.5, 1.0]], SpreadShift(0.5, 0.5, [(0, 1, 0.5), (1, 2, 0.5)])),
    "to and fro": ([[0.5, 0.5], [0.0, 1.0]], SpreadShift(1.0, 0.5, [(1, 0, 0.5), (1, 2, 0.5)])),
    "other numbers of them": ([[0.0], [0.0, 4.0, 4.0, 4.0]], SpreadShift(0.75, 3.0, [(0, 1, 0.75)])),
}


@pytest.mark.parametrize(("values", "expected"), MOVES.values(), ids=MOVES.keys())
def test_what_moved_is_the_least_that_has_to_move(values: list[list[float]], expected: SpreadShift) -> None:
    """The share of it, how far it went on average, and from where to where."""
    change = shift(spread_of(values), 0, 1)
    assert pytest.approx((expected.moved, expected.distance)) == (change.moved, change.distance)
    assert sorted(expected.flows) == sorted((flow.start, flow.end, pytest.approx(flow.share)) for flow in change.flows)


def test_a_slice_without_values_has_no_shift() -> None:
    """It is not known what moved."""
    spread = spread_of([[0.0], [1.0]])
    spread.counts[1] = 0
    assert SpreadShift(None, None, []) == shift(spread, 0, 1)


def test_outliers_do_not_flatten_a_histogram() -> None:
    """What lies far out is in a bin without an end, and all else is told apart."""
    rng = np.random.default_rng(0)
    spread = spread_of([[*rng.normal(size=2000).tolist(), 1e9], [-1e6]])
    assert (None, None) == (spread.bins[0].low, spread.bins[-1].high)
    assert 2002 == spread.counts.sum()
    assert (spread.counts.sum(axis=0) > 20).sum() >= 10
    assert spread.counts[1, 0] == 1


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e12])
def test_edges_are_in_order_at_any_scale(scale: float) -> None:
    """And each value lies in its bin."""
    values = np.linspace(-scale, 2 * scale, 500)
    spread = spread_of([values.tolist()])
    edges = [part.low for part in spread.bins if part.low is not None]
    assert sorted(set(edges)) == edges
    assert 500 == spread.counts.sum()
    assert 12 <= len(spread.bins) <= 45


@pytest.mark.parametrize("size", [1e300, 1e15], ids=str)
@pytest.mark.parametrize("count", [2, 40], ids=["few values", "many values"])
def test_huge_scores_have_bins_of_their_own(size: float, count: int) -> None:
    """No bin is infinite, and each value is in one."""
    spread = spread_of([[size * part / count for part in range(-count, count)]] * 2)
    assert 2 * count == spread.counts[0].sum()
    assert all(np.isfinite(part.middle) for part in spread.bins)
    assert len(spread.bins) > 2
    assert (0.0, 0.0) == shift(spread, 0, 1)[:2]
