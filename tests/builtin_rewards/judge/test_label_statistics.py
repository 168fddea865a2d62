"""Intervals, agreement with labels."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builtin_rewards.judge.own_labels import ConfusionTable, auc, mean_move
from rewardkit.statistics import Interval, wilson

JUDGED = st.lists(st.tuples(st.sampled_from([0.0, 0.25, 0.5, 1.0]) | st.floats(0, 1), st.booleans()), max_size=30)


@pytest.mark.parametrize(
    ("successes", "trials", "rate", "low", "high"),
    [
        # Brown, Cai and DasGupta, Statistical Science 16(2) (2001): at 0 of n the upper end is z² / (n + z²).
        (0, 10, 0.0, 0.0, 3.8416 / 13.8416),
        (10, 10, 1.0, 10 / 13.8416, 1.0),
        # Newcombe, Statistics in Medicine 17 (1998), 857-872, table I, method 3 (z = 1.959964).
        (81, 263, 81 / 263, 0.2553, 0.3662),
        (15, 148, 15 / 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.0, 0.1611),
        (1, 29, 1 / 29, 0.0061, 0.1718),
    ],
)
def test_wilson_gives_published_intervals(successes: int, trials: int, rate: float, low: float, high: float) -> None:
    """The ends are those of the tables in the literature, to the digits that these print."""
    assert (rate, pytest.approx(low, abs=6e-5), pytest.approx(high, abs=6e-5), trials) == wilson(successes, trials)


def test_wilson_of_nothing_has_no_rate() -> None:
    """No trials are no rate of 0: anything is possible."""
    assert Interval(None, 0.0, 1.0, 0) == wilson(0, 0)


@pytest.mark.parametrize(("successes", "trials"), [(-1, 3), (4, 3), (0, -1), (math.nan, 3)])
def test_wilson_wants_counts(successes: float, trials: int) -> None:
    """More successes than trials, or fewer than none, are the caller's mistake."""
    with pytest.raises(ValueError, match="successes"):
        wilson(successes, trials)


@given(st.data(), st.integers(1, 10**7))
def test_wilson_holds_its_rate_inside_zero_and_one(data: st.DataObject, trials: int) -> None:
    """For any counts the interval contains the rate and stays in [0, 1]; failures have the mirrored one."""
    successes = data.draw(st.integers(0, trials))
    rate, low, high, _ = wilson(successes, trials)
    assert rate is not None
    assert 0.0 <= low <= rate <= high <= 1.0
    assert (pytest.approx(1 - high), pytest.approx(1 - low)) == wilson(trials - successes, trials)[1:3]


def test_a_mean_move_of_few_is_uncertain() -> None:
    """Four that do not move: with -1 and 1 beside them a deviation of √(2/5), over √6; of none anything is possible."""
    half = 1.96 * math.sqrt(2 / 5 / 6)
    assert pytest.approx((0.0, -half, half, 4)) == mean_move([0.0] * 4)
    assert (None, -1.0, 1.0, 0) == mean_move([])


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=50))
def test_a_mean_move_is_inside_its_interval(moves: list[float]) -> None:
    """Whatever the moves are, and the ends are moves that there can be."""
    rate, low, high, _ = mean_move(moves)
    assert rate is not None
    assert -1.0 <= low <= rate <= high <= 1.0


@pytest.mark.parametrize(
    ("verdicts", "labels", "value"),
    [
        # The example of 50 proposals read by two: 20 both yes, 15 both no; p_o = 0.7, p_e = 0.5 * 0.6 + 0.5 * 0.4.
        ([1] * 25 + [0] * 25, [1] * 20 + [0] * 5 + [1] * 10 + [0] * 15, 0.4),
        ([1, 0, 1, 0], [1, 0, 1, 0], 1.0),
        ([1, 1, 0, 0], [1, 0, 1, 0], 0.0),
        ([1, 0], [0, 1], -1.0),
        ([1, 1], [1, 0], 0.0),
    ],
    ids=["proposals", "perfect", "chance", "opposite", "one verdict"],
)
def test_kappa_by_hand(verdicts: list[bool], labels: list[bool], value: float) -> None:
    """Agreement beyond chance: 1, 0 and below."""
    found = ConfusionTable.of(verdicts, labels).kappa
    assert pytest.approx(value) == found.rate
    assert found.low <= value <= found.high


def test_kappa_of_one_class_is_none() -> None:
    """Where both sides say the same throughout, chance gives all of it."""
    assert [None, None] == [ConfusionTable(3, 0, 0, 0).kappa.rate, ConfusionTable(0, 0, 0, 0).kappa.rate]


def test_four_times_the_rows_halve_the_interval_of_kappa() -> None:
    """For the proposals it is about that of the formula, 0.4 more or less 0.26; perfect agreement has a width."""
    few, many = ConfusionTable(20, 5, 10, 15).kappa, ConfusionTable(80, 20, 40, 60).kappa
    assert pytest.approx(2, abs=0.2) == (few.high - few.low) / (many.high - many.low)
    assert pytest.approx(0.52, abs=0.06) == few.high - few.low
    assert ConfusionTable(5, 0, 0, 5).kappa.low < 0.5


@given(JUDGED)
def test_auc_counts_pairs(judged: list[tuple[float, bool]]) -> None:
    """It is the share of pairs of a good and a bad one in the right order, ties half; one class gives nothing."""
    good = [score for score, label in judged if label]
    bad = [score for score, label in judged if not label]
    pairs = [(g > b) + (g == b) / 2 for g in good for b in bad]
    found = auc([score for score, _ in judged], [label for _, label in judged])
    assert (pytest.approx(sum(pairs) / len(pairs)) if pairs else None) == found
