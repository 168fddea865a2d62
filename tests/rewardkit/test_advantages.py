"""Advantages: TRL's numbers, and what becomes of groups without a spread or without rewards."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from rewardkit import RewardDefinitionError
from rewardkit.advantages import (
    gdpo_advantages,
    group_advantages,
    leave_one_out_advantages,
    weighted_rewards,
    zero_variance,
)

NAN = math.nan


def test_a_group_is_centred_and_scaled_as_trl_has_it() -> None:
    """Measured in TRL: rewards 1, 0, 1, 0 give 0.5 / (0.57735 + 1e-4)."""
    assert [0.865875, -0.865875, 0.865875, -0.865875] == pytest.approx(group_advantages([1, 0, 1, 0], 4), abs=1e-6)


def test_a_completion_without_a_reward_leaves_the_baseline() -> None:
    """Measured in TRL without scaling's epsilon: 1, None, 3, None give -0.7071, 0, 0.7071, 0."""
    assert [-0.70706, 0.0, 0.70706, 0.0] == pytest.approx(group_advantages([1, None, 3, None], 4), abs=1e-5)


@pytest.mark.parametrize(
    ("rewards", "why"),
    [
        ([2, 2, 2, 2], "all equal"),
        ([None, None, None, 5], "one reward"),
        ([NAN] * 4, "none"),
        ([1, 2, 3, 4], "one each"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_what_tells_nothing_moves_nothing(rewards: list[Any], why: str) -> None:
    """A group without a spread has the advantage 0."""
    size = 1 if why == "one each" else 4
    assert [0.0] * 4 == group_advantages(rewards, size).tolist() == leave_one_out_advantages(rewards, size).tolist()


@pytest.mark.parametrize("scale", ["group", "batch", "none"])
@pytest.mark.parametrize("size", [2, 4, 8])
def test_they_are_what_torch_computes_as_trl_does(scale: str, size: int) -> None:
    """On random rewards with gaps."""
    torch = pytest.importorskip("torch", reason="TRL's formulas are torch's")
    from trl.trainer.utils import nanstd

    drawn = np.random.default_rng(size)
    rewards = drawn.normal(size=64)
    rewards[drawn.random(64) < 0.2] = NAN
    tensor = torch.tensor(rewards)
    grouped = tensor.view(-1, size)
    spread = {"group": nanstd(grouped, dim=1, keepdim=True), "batch": nanstd(tensor), "none": torch.tensor(1.0 - 1e-4)}
    expected = (grouped - torch.nanmean(grouped, dim=1, keepdim=True)) / (spread[scale] + 1e-4)
    expected = torch.nan_to_num(expected.view(-1), nan=0.0)
    assert expected.tolist() == pytest.approx(
        group_advantages(rewards, size, scale=scale).tolist(), abs=1e-6
    )  # TRL corrects in float32


def test_each_reward_is_normalized_before_they_are_summed() -> None:
    """Two rewards of different size have the same say."""
    rewards = {"small": [0.0, 0.1, 0.0, 0.1], "large": [0.0, 0.0, 100.0, 100.0]}
    found = gdpo_advantages(rewards, {"small": 1.0, "large": 1.0}, 4)
    assert found[1] == pytest.approx(found[2], abs=1e-2)
    assert 0.0 == pytest.approx(found.sum())


def test_the_others_of_a_group_are_the_baseline() -> None:
    """1 less the mean of 2 and 6, and so on; what has no reward is no baseline."""
    assert [-3.0, -1.5, 4.5, 0.0] == leave_one_out_advantages([1, 2, 6, None], 4).tolist()


def test_leave_one_out_advantages_are_normalized_over_those_that_there_are() -> None:
    """A completion without a reward, or alone in its group, has no part in mean and spread."""
    rewards = [1.0, 0.0, None, 4.0, None, None]
    plain = np.array([1.0, -1.0])
    expected = (plain - plain.mean()) / (plain.std(ddof=1) + 1e-4)
    found = leave_one_out_advantages([*rewards], 3, normalize=True)
    assert [*expected, 0.0, 0.0, 0.0, 0.0] == pytest.approx(found.tolist())


def test_a_weighted_sum_leaves_out_what_is_missing() -> None:
    """As TRL's nansum; without any reward there is none."""
    found = weighted_rewards({"a": [1, None, None], "b": [2, 3, NAN]}, {"a": 0.5, "b": 2.0})
    assert [4.5, 6.0] == found[:2].tolist()
    assert math.isnan(found[2])


def test_groups_without_a_gradient_are_told() -> None:
    """All equal, or fewer than two rewards."""
    assert [True, False, True] == zero_variance([1, 1, 1, 2, None, 3], 2).tolist()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: group_advantages([1, 2, 3], 2), "3 rewards make no whole groups of num_generations=2"),
        (lambda: group_advantages([1, 2], 0), "num_generations=0"),
        (lambda: group_advantages([1, 2], 2, scale="std"), "scale='std': expected 'group', 'batch' or 'none'"),
        (lambda: gdpo_advantages([[1, 2]], [1, 2], 2), "do not match"),
        (lambda: weighted_rewards({"a": [1]}, {"b": 1}), "do not match"),
    ],
    ids=["no whole groups", "no group", "scale", "weights", "names"],
)
def test_what_makes_no_sense_is_refused(call: Any, words: str) -> None:
    """By what was given."""
    with pytest.raises(RewardDefinitionError, match=words):
        call()
