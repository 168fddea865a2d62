"""How far a judge agrees with labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builtin_rewards.judge.calibration import (
    Table,
    auc,
    brier,
    expected_calibration_error,
    kappa,
    spearman,
)

CHANCES = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.7, 1.0]) | st.floats(0, 1)
JUDGED = st.lists(st.tuples(CHANCES, st.booleans()), min_size=1, max_size=30)
Measure = Callable[[Sequence[Any], Sequence[Any]], float | None]
CALIBRATION: list[Measure] = [brier, expected_calibration_error]
ALL: list[Measure] = [*CALIBRATION, auc, spearman]


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
    found = kappa(Table.of(verdicts, labels))
    assert pytest.approx(value) == found.rate
    assert found.low <= value <= found.high


def test_kappa_of_one_class_is_none() -> None:
    """Where both sides say the same throughout, chance gives all of it."""
    assert kappa(Table(3, 0, 0, 0)).rate is None
    assert kappa(Table(0, 0, 0, 0)).rate is None


def test_four_times_the_rows_halve_the_interval_of_kappa() -> None:
    """For the proposals it is about that of the formula: 0.4 more or less 0.26."""
    few, many = kappa(Table(20, 5, 10, 15)), kappa(Table(80, 20, 40, 60))
    assert pytest.approx(2, abs=0.2) == (few.high - few.low) / (many.high - many.low)
    assert pytest.approx(0.52, abs=0.06) == few.high - few.low


@pytest.mark.parametrize(
    ("scores", "labels", "area"),
    [
        # The example of scikit-learn's roc_auc_score.
        ([0.1, 0.4, 0.35, 0.8], [False, False, True, True], 0.75),
        ([0.1, 0.2, 0.8, 0.9], [False, False, True, True], 1.0),
        ([0.9, 0.1], [False, True], 0.0),
        ([0.5, 0.5, 0.5], [False, True, True], 0.5),
        ([0.2, 0.5, 0.5, 0.9], [False, False, True, True], 3.5 / 4),
    ],
)
def test_auc_by_hand(scores: list[float], labels: list[bool], area: float) -> None:
    """The share of pairs of a good and a bad one in the right order, ties half."""
    assert pytest.approx(area) == auc(scores, labels)


@given(JUDGED)
def test_auc_counts_pairs(judged: list[tuple[float, bool]]) -> None:
    """The way through ranks gives what counting all pairs gives; one class gives nothing."""
    good = [score for score, label in judged if label]
    bad = [score for score, label in judged if not label]
    scores, labels = zip(*judged, strict=True)
    pairs = [(g > b) + (g == b) / 2 for g in good for b in bad]
    assert (pytest.approx(sum(pairs) / len(pairs)) if pairs else None) == auc(scores, labels)


@pytest.mark.parametrize(
    ("scores", "labels", "correlation"),
    [
        ([1, 2, 3], [10, 100, 1000], 1.0),
        ([1, 2, 3], [3, 2, 1], -1.0),
        # Without ties it is 1 - 6 Σd² / (n (n² - 1)): here Σd² = 0 + 1 + 1 + 0.
        ([1, 2, 3, 4], [1, 3, 2, 4], 1 - 6 * 2 / 60),
        # Ranks 1.5 1.5 3 against 1 2 3: covariance 1.5, squares 1.5 and 2.
        ([1, 1, 2], [1, 2, 3], 1.5 / math.sqrt(1.5 * 2)),
    ],
)
def test_spearman_by_hand(scores: list[float], labels: list[float], correlation: float) -> None:
    """The correlation of ranks, ties shared."""
    assert pytest.approx(correlation) == spearman(scores, labels)


@pytest.mark.parametrize(("scores", "labels"), [([1], [2]), ([1, 1], [1, 2]), ([1, 2], [3, 3])])
def test_spearman_of_a_constant_is_none(scores: list[float], labels: list[float]) -> None:
    """What does not vary is correlated with nothing."""
    assert spearman(scores, labels) is None


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=2, max_size=20))
def test_spearman_cares_for_order_only(pairs: list[tuple[int, int]]) -> None:
    """A growing function of the scores changes nothing, a falling one the sign."""
    scores, labels = zip(*pairs, strict=True)
    plain = spearman(scores, labels)
    assert plain == spearman([score**3 for score in scores], labels)
    mirrored = spearman([-score for score in scores], labels)
    assert (None if plain is None else pytest.approx(-plain, abs=1e-12)) == mirrored


def test_brier_by_hand() -> None:
    """(0.01 + 0.64 + 0.09) / 3."""
    assert pytest.approx(0.74 / 3) == brier([0.9, 0.8, 0.3], [True, False, False])


@pytest.mark.parametrize(
    ("chances", "labels", "bins", "error"),
    [
        # One bin: |mean 0.6 - share 1/2|.
        ([0.4, 0.8], [True, False], 1, 0.1),
        # Two bins: 1/2 |0.4 - 1| + 1/2 |0.8 - 0|.
        ([0.4, 0.8], [True, False], 2, 0.7),
        # A number on an edge is in the lower bin: (0.5 - 1 + 0.3 - 0) / 2 in absolute value.
        ([0.5, 0.3], [True, False], 2, 0.1),
        # 0.28 * 100 is above 28 in floats, yet 0.28 is the edge: with 0.275 in one bin the gaps cancel in part.
        ([0.28, 0.275], [True, False], 100, 0.2225),
        ([0.0, 1.0], [False, True], 10, 0.0),
    ],
)
def test_calibration_error_by_hand(chances: list[float], labels: list[bool], bins: int, error: float) -> None:
    """The mean over bins of |what was said - what was true|, by numbers."""
    assert pytest.approx(error) == expected_calibration_error(chances, labels, bins)


@pytest.mark.parametrize("measure", CALIBRATION)
@given(judged=JUDGED.flatmap(lambda judged: st.tuples(st.just(judged), st.permutations(judged))))
def test_order_makes_no_difference(measure: Measure, judged: tuple[Any, Any]) -> None:
    """Also among equal probabilities with different labels; every error is in [0, 1]."""
    one, other = (measure(*zip(*rows, strict=True)) for rows in judged)
    assert one is not None
    assert 0.0 <= one <= 1.0
    assert pytest.approx(one, abs=1e-12) == other


@given(JUDGED, st.integers(1, 20))
def test_errors_are_at_least_the_whole_bias(judged: list[tuple[float, bool]], bins: int) -> None:
    """Bins cannot hide that probabilities are too high or too low on the whole (triangle inequality)."""
    chances, labels = zip(*judged, strict=True)
    bias = abs(sum(chances) - sum(labels)) / len(labels)
    error = expected_calibration_error(chances, labels, bins)
    assert error is not None
    assert bias <= error + 1e-12


@pytest.mark.parametrize("measure", ALL, ids=lambda measure: measure.__name__)
def test_nothing_measures_none(measure: Measure) -> None:
    """No rollouts give no measure, never 0 or nan."""
    assert measure([], []) is None


@pytest.mark.parametrize("measure", ALL, ids=lambda measure: measure.__name__)
def test_lengths_must_match(measure: Measure) -> None:
    """A verdict without a label is the caller's mistake."""
    with pytest.raises(ValueError, match="2 verdicts and 1 labels"):
        measure([0.0, 1.0], [True])


@pytest.mark.parametrize("measure", [*CALIBRATION, auc, spearman], ids=lambda measure: measure.__name__)
def test_a_score_that_is_no_number_is_refused(measure: Measure) -> None:
    """nan in would be nan out."""
    with pytest.raises(ValueError, match="nan"):
        measure([0.5, math.nan], [True, False])


@pytest.mark.parametrize("measure", CALIBRATION, ids=lambda measure: measure.__name__)
def test_a_probability_is_from_zero_to_one(measure: Measure) -> None:
    """A grade of 4 of 5 is no probability."""
    with pytest.raises(ValueError, match="probabilities from 0 to 1, got 4"):
        measure([4], [True])


@pytest.mark.parametrize("measure", CALIBRATION[1:], ids=lambda measure: measure.__name__)
def test_there_is_at_least_one_bin(measure: Any) -> None:
    """The message names the setting."""
    with pytest.raises(ValueError, match="bins: expected at least 1, got 0"):
        measure([0.5], [True], 0)
