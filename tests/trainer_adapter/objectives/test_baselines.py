"""OPO's and REINFORCE++'s advantages: plain loops, the least variance, and rewards that are not known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from rewardkit import ObjectiveError
from trainer_adapter.objectives import leave_one_out_advantages, opo_advantages, reinforce_plus_plus_advantages


def test_opos_baseline_is_the_mean_weighted_by_length() -> None:
    """And of completions of one length it is GRPO's mean."""
    found = opo_advantages([1.0, 0.0, 1.0, 0.0], [10, 30, 5, 5], 2)
    assert [0.75, -0.25, 0.5, -0.5] == found.tolist()


def test_no_other_baseline_has_less_variance() -> None:
    """Of gradients whose squared norm is the completion's length, the least mean of the squares is at OPO's."""
    drawn = np.random.default_rng(0)
    rewards, lengths = drawn.normal(size=64), drawn.integers(1, 400, size=64)
    baseline = rewards - opo_advantages(rewards, lengths, 64)
    assert np.allclose(baseline, baseline[0])

    def squares(value: float) -> float:
        return float(np.sum(lengths * (rewards - value) ** 2))

    assert all(squares(baseline[0]) < squares(baseline[0] + step) for step in (-0.5, -0.01, 0.01, 0.5))


@pytest.mark.parametrize(
    ("rewards", "lengths", "expected"),
    [
        ([1.0, math.nan, 0.0, math.nan], [1, 100, 3, 9], [0.75, 0.0, -0.25, 0.0]),
        ([0.7, math.nan, math.nan, math.nan], [4, 1, 1, 1], [0.0] * 4),
        ([math.nan] * 4, [1] * 4, [0.0] * 4),
        ([1.0, 0.0, 0.0, 0.0], [0, 0, 0, 0], [0.0] * 4),
    ],
    ids=["some", "one", "none", "no token"],
)
def test_a_completion_without_a_reward_leaves_opos_baseline(
    rewards: list[float], lengths: list[int], expected: list[float]
) -> None:
    """Its advantage is 0, as is that of a completion alone, and of completions without a token."""
    assert expected == pytest.approx(opo_advantages(rewards, lengths, 4).tolist())


def by_loops(rewards: Any, mask: Any, kl: Any, beta: float, discount: float) -> Any:
    """Return REINFORCE++'s advantages in plain loops over completions and tokens."""
    returns = np.zeros(mask.shape)
    for row, reward in enumerate(rewards):
        places = [index for index, mark in enumerate(mask[row]) if mark]
        following = reward
        for index in reversed(places):
            following = (following if index == places[-1] else discount * following) - beta * kl[row, index]
            returns[row, index] = following
    known = returns[mask == 1]
    return np.where(mask == 1, (returns - known.mean()) / math.sqrt(known.var(ddof=1) + 1e-8), 0.0)


@pytest.mark.parametrize("discount", [1.0, 0.9, 0.0])
@pytest.mark.parametrize("beta", [0.0, 0.2])
def test_reinforce_plus_plus_is_that_of_plain_loops(beta: float, discount: float) -> None:
    """With holes in a completion, as a tool's tokens make them, and a completion without a token."""
    drawn = np.random.default_rng(1)
    mask = (drawn.random((7, 6)) < 0.7).astype(int)
    mask[3] = 0
    rewards, kl = drawn.normal(size=7), drawn.exponential(size=(7, 6))
    found = reinforce_plus_plus_advantages(rewards, mask, kl=kl, beta=beta, discount=discount)
    assert by_loops(rewards, mask, kl, beta, discount) == pytest.approx(found, rel=1e-12)


def test_without_costs_and_discount_all_tokens_of_a_completion_share_its_advantage() -> None:
    """The mean over tokens is 0: a long completion weighs more in it than a short one."""
    found = reinforce_plus_plus_advantages([1.0, 0.0], [[1, 1, 1], [1, 0, 0]])
    assert [0.5, 0.5, 0.5] == pytest.approx(found[0].tolist(), rel=1e-6)
    assert [-1.5, 0.0, 0.0] == pytest.approx(found[1].tolist(), rel=1e-6)


def test_a_baseline_of_groups_is_taken_off_first() -> None:
    """Then an easy prompt's completions have no higher advantages than a hard one's."""
    rewards, mask = np.array([1.0, 0.9, 0.1, 0.0]), np.ones((4, 2), dtype=int)
    found = reinforce_plus_plus_advantages(rewards, mask, num_generations=2)
    assert np.sign(leave_one_out_advantages(rewards, 2)).tolist() == np.sign(found[:, 0]).tolist()
    assert found[0].tolist() == pytest.approx(found[2].tolist())


def test_a_completion_without_a_reward_counts_in_no_mean() -> None:
    """Its advantage is 0, and the others' are as if it were not there."""
    alone = reinforce_plus_plus_advantages([1.0, 0.0, 0.5], np.ones((3, 2)))
    found = reinforce_plus_plus_advantages([1.0, math.nan, 0.0, 0.5], np.ones((4, 2)))
    assert [0.0, 0.0] == found[1].tolist()
    assert alone.tolist() == found[[0, 2, 3]].tolist()


def test_one_token_has_no_deviation_and_no_advantage() -> None:
    """Nor has a batch of equal returns one that rounding makes large."""
    assert [[0.0, 0.0]] == reinforce_plus_plus_advantages([0.7], [[1, 0]]).tolist()
    assert 1e-6 > np.abs(reinforce_plus_plus_advantages([0.1] * 3, np.ones((3, 3)))).max()


MISTAKES: dict[str, tuple[Any, str]] = {
    "groups": (lambda: opo_advantages([1.0, 0.0, 1.0], [1, 1, 1], 2), "3 rewards make no whole groups"),
    "length": (lambda: opo_advantages([1.0, 0.0], [1, -1], 2), r"lengths=\[1, -1\]: expected numbers of tokens"),
    "lengths": (lambda: opo_advantages([1.0, 0.0], [1], 2), r"rewards \(2,\), lengths \(1,\)"),
    "endless reward": (lambda: opo_advantages([1.0, math.inf], [1, 1], 2), "completion 1 has an infinite reward"),
    "mask": (lambda: reinforce_plus_plus_advantages([1.0], [1]), r"rewards \(1,\), mask \(1,\): expected"),
    "marks": (lambda: reinforce_plus_plus_advantages([1.0], [[2]]), "mask: expected 1 on the tokens"),
    "no divergence": (lambda: reinforce_plus_plus_advantages([1.0], [[1]], beta=0.1), "beta=0.1 needs kl"),
    "shape of kl": (
        lambda: reinforce_plus_plus_advantages([1.0], [[1]], kl=[[1.0, 2.0]], beta=0.1),
        r"kl \(1, 2\)",
    ),
    "unknown divergence": (
        lambda: reinforce_plus_plus_advantages([1.0], [[1]], kl=[[math.nan]], beta=0.1),
        r"kl\[0, 0\] is nan",
    ),
    "discount": (
        lambda: reinforce_plus_plus_advantages([1.0], [[1]], discount=1.5),
        "discount=1.5: expected a number from 0 to 1",
    ),
    "groups of tokens": (
        lambda: reinforce_plus_plus_advantages([1.0], [[1]], num_generations=2),
        "1 rewards make no whole groups",
    ),
}


@pytest.mark.parametrize(("call", "words"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_named(call: Any, words: str) -> None:
    """With the argument, its value and what was expected."""
    with pytest.raises(ObjectiveError, match=words):
        call()
