"""A jury's one score, and how far its jurors agree."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builtin_rewards.judge.jury import Reduction, agreement, reduce_scores

GRADES = st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0])
JURY = st.lists(GRADES | st.floats(0, 1), max_size=9)


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
    assert (None if reduced is None else pytest.approx(reduced)) == reduce_scores(scores, Reduction(how))


@pytest.mark.parametrize(
    ("scores", "reduced"),
    [
        ([0.5, 0.75, 0.0], 1.0),
        ([0.25, 0.75, 0.0], 0.0),
        ([0.25, 0.75], None),
        ([0.9, 0.75], 1.0),
        ([], None),
        ([0.5 - 1e-16, 0.5 - 1e-16, 0.0], 1.0),
    ],
)
def test_a_majority_accepts_or_rejects_at_a_threshold(scores: list[float], reduced: float | None) -> None:
    """Grades that differ on one side of the threshold are one verdict; nobody breaks a tie."""
    assert reduced == reduce_scores(scores, Reduction.MAJORITY, 0.5)


@given(JURY.flatmap(lambda jury: st.tuples(st.just(jury), st.permutations(jury))), st.sampled_from(Reduction))
def test_the_order_of_jurors_makes_no_difference(juries: tuple[list[float], list[float]], how: Reduction) -> None:
    """Every reduction is a function of the set of votes."""
    assert reduce_scores(juries[0], how) == reduce_scores(juries[1], how)


@given(JURY, st.sampled_from(Reduction), st.none() | st.floats(0, 1))
def test_a_reduced_score_lies_among_the_scores(jury: list[float], how: Reduction, threshold: float) -> None:
    """No reduction leaves [0, 1], nor the range of the votes where it is over grades."""
    reduced = reduce_scores(jury, how, threshold)
    assert (reduced is None) <= (not jury or how is Reduction.MAJORITY)
    if reduced is not None:
        assert 0.0 <= reduced <= 1.0
        if how is not Reduction.MAJORITY:
            assert min(jury) <= reduced <= max(jury)


@pytest.mark.parametrize(
    ("scores", "share"),
    [([0.0, 0.25, 1.0], 0.0), ([0.5, 0.5], 1.0), ([0.5, 0.5, 1.0], 1 / 3), ([0.3, 0.1 + 0.2], 1.0), ([1.0], None)],
)
def test_agreement_is_the_share_of_pairs_that_gave_the_same(scores: list[float], share: float | None) -> None:
    """However the score was rounded; of fewer than two there is none."""
    assert (None if share is None else pytest.approx(share)) == agreement(scores)
