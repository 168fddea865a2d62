"""Agreement in a group: which final answers are one, what counts to the group, and when a majority is unknown."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from builtin_rewards.consistency import self_consistency
from builtin_rewards.math import same_answer
from rewardkit import Rollout, Runtime


def values(made: Any, completions: list[str]) -> list[float | None]:
    return [score.value for score in made(completions=completions)]


@pytest.mark.parametrize(
    ("completions", "scores"),
    [
        (["\\boxed{4}", "\\boxed{4}"], [1.0, 1.0]),
        (["\\boxed{4}", "\\boxed{5}"], [0.5, 0.5]),
        (["\\boxed{\\frac{1}{2}}", "the answer is 0.5", "Answer: 50%", "\\boxed{2}"], [0.75, 0.75, 0.75, 0.25]),
        (["\\boxed{x^2+2x+1}", "\\boxed{(x+1)^2}"], [1.0, 1.0]),
        (["\\boxed{4}", "I cannot say.", ""], [1 / 3, 1 / 3, 0.0]),
        (["\\boxed{4} or \\boxed{5}", "\\boxed{4}"], [0.0, 0.5]),
        (["\\boxed{yes}", "\\boxed{Yes.}"], [1.0, 1.0]),
        (["", "", ""], [0.0, 0.0, 0.0]),
        (["\\boxed{4}"], [None]),
        (["\ud800 \0", "[" * 10_000], [0.5, 0.0]),
    ],
)
def test_the_share_that_agrees(completions: list[str], scores: list[float | None]) -> None:
    """Equal answers in other writings are one; what has no answer, or several, agrees with none."""
    assert values(self_consistency, completions) == [None if one is None else pytest.approx(one) for one in scores]


@pytest.mark.parametrize(
    ("completions", "scores"),
    [
        (["\\boxed{4}", "\\boxed{4.0}", "\\boxed{5}"], [1.0, 1.0, 0.0]),
        (["\\boxed{4}", "\\boxed{5}"], [None, None]),
        (["\\boxed{4}", "\\boxed{5}", ""], [None, None, 0.0]),
        (["\\boxed{4}", "", ""], [1.0, 0.0, 0.0]),
        (["", ""], [0.0, 0.0]),
        (["\\boxed{4}"], [None]),
    ],
)
def test_the_majority_is_right_where_there_is_one(completions: list[str], scores: list[float | None]) -> None:
    """Of several answers that are given equally often none is known to be the majority's."""
    assert scores == values(self_consistency(majority=True), completions)


def test_texts_are_compared_without_case_and_articles() -> None:
    """What is marked counts, and without a mark all that follows the thoughts."""
    texts = ["<think>a</think>\nThe New  York.", "<answer>new york</answer>", "York"]
    assert values(self_consistency("text"), texts) == [pytest.approx(2 / 3), pytest.approx(2 / 3), pytest.approx(1 / 3)]


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [("1/2", "0.5", True), ("7 cm", "70 mm", True), ("B", "(B) a cat", True), ("4", "", False)],
)
def test_equality_has_no_direction(first: str, second: str, same: bool) -> None:
    """Whichever of the two is taken for the gold."""
    assert same is same_answer(first, second) is same_answer(second, first)


def test_other_comparisons_are_refused() -> None:
    """By name."""
    with pytest.raises(ValueError, match=r"compared_as='words': expected one of math, text"):
        self_consistency("words")


def test_it_runs_in_a_worker_by_group() -> None:
    """Each prompt is a group of its own, and the setting travels."""
    made = pickle.loads(pickle.dumps(self_consistency(majority=True)))
    rollouts = [Rollout(prompt, f"\\boxed{{{answer}}}", {}) for prompt in "ab" for answer in (1, 1, 2)]
    with Runtime([made], workers=1) as runtime:
        assert [1.0, 1.0, 0.0] * 2 == runtime.score(rollouts).totals
