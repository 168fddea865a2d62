"""A jury's one score, and how far its jurors agree."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builtin_rewards.judge.agreement import Agreement, Reduction, agreement, krippendorff_alpha, reduce_scores

GRADES = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])
JURY = st.lists(st.none() | GRADES | st.floats(0, 1), max_size=9)


@pytest.mark.parametrize(
    ("how", "scores", "reduced"),
    [
        ("median", [0.2, 0.9, 0.4], 0.4),
        ("median", [0.0, 1.0, 0.5, 0.25], 0.375),
        ("mean", [0.0, 0.5, 1.0, 1.0], 0.625),
        ("min", [0.5, 0.25, 1.0], 0.25),
        ("majority", [0.5, 0.5, 1.0], 0.5),
        ("majority", [0.5, 0.5, 1.0, 1.0], None),
        ("majority", [0.0, 0.5, 1.0], None),
        ("majority", [0.1 + 0.2, 0.3, 1.0], 0.3),
        ("majority", [0.75], 0.75),
    ],
)
def test_scores_are_reduced(how: str, scores: list[float], reduced: float | None) -> None:
    """Each reduction is as computed by hand; without more than half there is no majority."""
    assert (None if reduced is None else pytest.approx(reduced)) == reduce_scores(scores, how)


@pytest.mark.parametrize(
    ("scores", "reduced"),
    [
        ([0.5, 0.75, 0.0], 1.0),
        ([0.25, 0.75, 0.0], 0.0),
        ([0.25, 0.75], None),
        ([0.25, 0.75, None], None),
        ([0.9, 0.75, None], 1.0),
        ([0.5 - 1e-16, 0.5 - 1e-16, 0.0], 1.0),
    ],
)
def test_a_majority_accepts_or_rejects_at_a_threshold(scores: list[float | None], reduced: float | None) -> None:
    """Grades that differ on one side of the threshold are one verdict; nobody breaks a tie."""
    assert reduced == reduce_scores(scores, "majority", threshold=0.5)


@pytest.mark.parametrize("how", list(Reduction))
def test_a_missing_juror_is_left_out(how: Reduction) -> None:
    """It neither counts as low nor as an abstention, and a jury that says nothing has no score."""
    assert reduce_scores([1.0, 0.5, 1.0], how) == reduce_scores([None, 1.0, None, 0.5, 1.0], how)
    assert reduce_scores([], how) is None
    assert reduce_scores([None, None], how) is None


def test_an_unknown_reduction_is_named() -> None:
    """The message names the value and those that exist."""
    with pytest.raises(ValueError, match=r"median, mean, majority, min, got 'max'"):
        reduce_scores([1.0], "max")


@given(JURY.flatmap(lambda jury: st.tuples(st.just(jury), st.permutations(jury))), st.sampled_from(Reduction))
def test_the_order_of_jurors_makes_no_difference(juries: tuple[list[float], list[float]], how: Reduction) -> None:
    """Every reduction is a function of the set of votes."""
    assert reduce_scores(juries[0], how) == reduce_scores(juries[1], how)


@given(JURY, st.sampled_from(Reduction), st.none() | st.floats(0, 1))
def test_a_reduced_score_lies_among_the_scores(jury: list[float | None], how: Reduction, threshold: float) -> None:
    """No reduction leaves [0, 1], nor the range of the votes where it is over grades."""
    reduced = reduce_scores(jury, how, threshold=threshold)
    given_scores = [score for score in jury if score is not None]
    if reduced is not None:
        assert 0.0 <= reduced <= 1.0
        if how is not Reduction.MAJORITY:
            assert min(given_scores) <= reduced <= max(given_scores)


# The data of Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), part C: four observers, twelve units.
OBSERVERS = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
]
UNITS = [list(unit) for unit in zip(*OBSERVERS, strict=True)]


def test_alpha_is_that_of_its_author() -> None:
    """With missing values and a unit of one value alpha for interval data is the published 0.849."""
    assert pytest.approx(0.849, abs=5e-4) == krippendorff_alpha(UNITS)


@pytest.mark.parametrize(
    ("scores", "alpha"),
    [
        # Of the 2 ordered pairs of each rollout 0 and 2 differ: D_o = 2/4; of the 12 of all four 6 do: D_e = 6/12.
        ([[0.0, 0.0], [0.0, 1.0]], 0.0),
        ([[0.0, 0.0], [1.0, 1.0]], 1.0),
        # All 4 pairs within rollouts differ: D_o = 4/4; of the 12 of all four 8 do: D_e = 8/12.
        ([[0.0, 1.0], [1.0, 0.0]], -0.5),
    ],
    ids=repr,
)
def test_alpha_by_hand(scores: list[list[float | None]], alpha: float) -> None:
    """1 for perfect agreement, 0 where disagreement is that of chance, below 0 for more."""
    assert pytest.approx(alpha) == krippendorff_alpha(scores)


@pytest.mark.parametrize(
    "scores",
    [[], [[]], [[1.0]], [[1.0, None], [None, 0.0]], [[0.1 + 0.2, 0.1 + 0.2], [0.1 + 0.2, 0.1 + 0.2]]],
    ids=repr,
)
def test_alpha_is_none_where_it_is_not_defined(scores: list[list[float | None]]) -> None:
    """Without two scores of one rollout, or without any difference, there is nothing to correct for chance."""
    assert krippendorff_alpha(scores) is None


@given(st.lists(st.lists(st.none() | GRADES, min_size=2, max_size=4), max_size=8))
def test_alpha_equals_the_sums_over_pairs(scores: list[list[float | None]]) -> None:
    """The short way through sums of squares gives what the definition over all pairs does."""
    rows = [given for row in scores if len(given := [score for score in row if score is not None]) > 1]
    everything = [score for row in rows for score in row]
    n = len(everything)
    distances = math.fsum((a - b) ** 2 for a in everything for b in everything)
    if not distances:
        assert krippendorff_alpha(scores) is None
        return
    observed = math.fsum((a - b) ** 2 / (len(row) - 1) for row in rows for a in row for b in row) / n
    assert pytest.approx(1 - observed / (distances / (n * (n - 1))), abs=1e-9) == krippendorff_alpha(scores)


def test_agreement_is_the_share_of_pairs_within_the_tolerance() -> None:
    """Pairs are within a rollout; a missing juror makes none."""
    scores = [[0.0, 0.25, 1.0], [0.5, None, 0.5], [None, 1.0, None]]
    assert Agreement(1 / 4, krippendorff_alpha(scores), 4) == agreement(scores)
    assert Agreement(2 / 4, krippendorff_alpha(scores), 4) == agreement(scores, tolerance=0.25)
    assert Agreement(None, None, 0) == agreement([[1.0, None], []])


def test_agreement_forgives_rounding() -> None:
    """Grades a step apart agree within a step, however the step was divided out."""
    assert 1.0 == agreement([[0.1, 0.1 + 0.2]], tolerance=0.2).share
