"""Advantages: TRL's numbers, and what becomes of groups without a spread or without rewards."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from rewardkit import ObjectiveError
from rewardkit.advantages import (
    gdpo_advantages,
    group_advantages,
    group_statistics,
    leave_one_out_advantages,
    undecided_advantages,
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


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_tensors_give_tensors_of_their_shape_and_dtype(dtype: str) -> None:
    """The same numbers as of arrays, whatever is missing; whole numbers become floats."""
    torch = pytest.importorskip("torch", reason="tensors are torch's")
    drawn = np.random.default_rng(5)
    table = drawn.integers(0, 3, size=(2, 4, 4)).astype(float)
    table[drawn.random(table.shape) < 0.2] = NAN
    table[0, 0] = 2.0
    tensor = torch.tensor(table).to(getattr(torch, dtype))
    near = {"float32": 1e-5, "float64": 1e-12, "bfloat16": 1e-2}[dtype]
    for compute in (
        *(lambda one, scale=scale: group_advantages(one[0], 4, scale=scale) for scale in ("group", "batch", "none")),
        lambda one: leave_one_out_advantages(one[0], 4, normalize=True),
        lambda one: gdpo_advantages(list(one), [1.0, 0.5], 4),
        lambda one: weighted_rewards(list(one), [1, 2]),
    ):
        found = compute(tensor)
        assert (tensor.dtype, (4, 4)) == (found.dtype, tuple(found.shape))
        assert compute(table) == pytest.approx(found.double().numpy(), abs=near, nan_ok=True)
    assert zero_variance(table[0], 4).tolist() == zero_variance(tensor[0], 4).tolist()
    assert [0.5, -0.5] == pytest.approx(group_advantages(torch.tensor([2, 1]), 2, scale="none").tolist())


def test_statistics_of_groups() -> None:
    """Of one reward there is no spread, and of none no mean."""
    found = group_statistics([1, 3, 2, 2, 5, None, None, None], 2)
    assert [2.0, 2.0, 5.0, NAN] == pytest.approx(found.mean.tolist(), nan_ok=True)
    assert [2**0.5, 0.0, NAN, NAN] == pytest.approx(found.std.tolist(), nan_ok=True)
    assert 0.75 == found.zero_variance_share


def test_each_reward_is_normalized_before_they_are_summed() -> None:
    """Two rewards of different size have the same say."""
    rewards = {"small": [0.0, 0.1, 0.0, 0.1], "large": [0.0, 0.0, 100.0, 100.0]}
    found = gdpo_advantages(rewards, {"small": 1.0, "large": 1.0}, 4)
    assert found[1] == pytest.approx(found[2], abs=1e-2)
    assert 0.0 == pytest.approx(found.sum())


def test_a_groups_only_reward_counts_as_0_in_mean_and_spread() -> None:
    """As in TRL: what leaves them is a completion without any reward, not one whose group has no spread."""
    assert [0.0, 0.0, -0.99986, 0.99986] == pytest.approx(gdpo_advantages([[1, NAN, 0, 2]], [1.0], 2), abs=1e-5)


@pytest.mark.parametrize("size", [1, 2, 4])
def test_gaps_are_those_of_trl(size: int) -> None:
    """TRL's own lines for ``normalize_then_sum``, on rewards half of which are missing."""
    torch = pytest.importorskip("torch", reason="TRL's formulas are torch's")
    from trl.trainer.utils import nanstd

    drawn = np.random.default_rng(size)
    table = drawn.normal(size=(32, 2))
    table[drawn.random(table.shape) < 0.5] = NAN
    tensor, weights = torch.tensor(table), torch.tensor([1.0, 0.5], dtype=torch.float64)
    grouped = tensor.view(-1, size, 2)
    mean = torch.nanmean(grouped, dim=1, keepdim=True)
    spread = nanstd(grouped, dim=1, keepdim=True) if size > 1 else torch.zeros_like(mean)
    total = (((grouped - mean) / (spread + 1e-4)).view(-1, 2) * weights).nansum(dim=1)
    total[torch.isnan(tensor).all(dim=1)] = NAN
    expected = torch.nan_to_num((total - torch.nanmean(total)) / (nanstd(total) + 1e-4), nan=0.0)
    assert expected.numpy() == pytest.approx(gdpo_advantages(list(table.T), [1.0, 0.5], size), abs=1e-5)


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
        (lambda: weighted_rewards([[1], [1, 2]], [1, 1]), "unlike numbers of completions"),
        (lambda: group_statistics([], 2), "no rewards"),
        (lambda: group_advantages([1, 2], 2.0), "num_generations=2.0"),  # type: ignore[arg-type]
        (lambda: group_advantages([1, math.inf], 2), "completion 1 has an infinite reward"),
        (lambda: group_advantages([1, "a"], 2), "expected numbers, nan or None: could not convert string"),
        (lambda: leave_one_out_advantages([1, 2], 2, eps=-1), "eps=-1: expected a number of 0 or more"),
        (lambda: group_statistics([1, 2], 2, ddof=-1), "ddof=-1: expected 1, as TRL has it, or 0"),
    ],
    ids=[
        *("no whole groups", "no group", "scale", "weights", "names", "lengths", "nothing"),
        *("no whole number", "infinite", "words", "eps", "ddof"),
    ],
)
def test_what_makes_no_sense_is_refused(call: Any, words: str) -> None:
    """By what was given."""
    with pytest.raises(ObjectiveError, match=words):
        call()


@pytest.mark.parametrize(
    ("scores", "final", "margin", "ranks", "expected"),
    [
        ([0.0, 0.5, 1.0], [], 0.1, False, [1]),
        ([0.0, 0.4, 0.6, 1.0], [], 0.1, False, [1, 2]),
        ([0.0, 0.0, 1.0, 1.0], [], 0.4, False, []),
        ([0.0, 0.0, 1.0, 1.0], [], 0.5, False, [0, 1, 2, 3]),
        ([0.3, 0.3, 0.3], [], 0.0, False, [0, 1, 2]),
        ([0.0, 1.0], [], 0.0, False, []),
        ([0.7], [], 0.0, False, [0]),
        ([0.0, None, 1.0], [], 0.1, False, [1]),
        ([0.0, math.nan, 1.0], [1], 0.1, False, []),
        ([None, None], [0, 1], 0.1, False, []),
        ([None, None], [], 0.1, False, [0, 1]),
        ([0.0, 0.05, 0.9, 1.0], [], 0.1, False, []),
        ([0.0, 0.05, 0.9, 1.0], [], 0.1, True, [0, 1, 2, 3]),
        ([0.0, 0.05, 0.5, 1.0], [], 0.1, True, [0, 1]),
        ([0.0, 0.1, 0.52, 0.95, 1.0], [2], 0.1, False, [1, 3]),
        ([0.0, 0.0, 0.7, 1.0, 1.0], [2], 0.1, False, []),
        ([0.0, 0.5, 1.0], [0, 1, 2], 0.5, True, []),
        ([], [], 0.1, False, []),
        ([0.1 + 0.2, 0.5, 0.7], [], 0.2, False, [0, 1, 2]),
    ],
)
def test_undecided_are_those_whose_final_score_can_change_a_sign(
    scores: list[float | None], final: list[int], margin: float, ranks: bool, expected: list[int]
) -> None:
    """Near the mean, without a score, with ranks near another; or as many as a final score near the mean needs."""
    flags = [index in final for index in range(len(scores))]
    assert expected == undecided_advantages(scores, flags, margin, ranks=ranks).tolist()


def test_nobody_is_undecided_whose_error_cannot_reach_the_mean() -> None:
    """Of drawn groups: where each final distance is within the margin of the estimated one, all signs are kept."""
    draw = np.random.default_rng(4)
    for _ in range(300):
        estimates = draw.random(8)
        errors = draw.uniform(-0.1, 0.1, size=8)
        finals = estimates + errors - errors.mean()  # so that no distance moves by more than 0.2
        undecided = undecided_advantages(estimates.tolist(), [False] * 8, 0.2)
        safe = np.setdiff1d(np.arange(8), undecided)
        before, after = (np.sign(scores - scores.mean())[safe].tolist() for scores in (estimates, finals))
        assert before == after


@pytest.mark.parametrize(
    ("scores", "final", "margin", "words"),
    [
        ([0.0, 1.0], [False], 0.1, "2 scores, 1 of final, margin=0.1"),
        ([0.0, 1.0], [False] * 2, -0.1, "margin=-0.1: give as many, and 0 or more"),
        ([0.0, 1.0], [False] * 2, math.nan, "margin=nan"),
        ([0.0, math.inf], [False] * 2, 0.1, "completion 1 has an infinite reward"),
    ],
)
def test_what_makes_no_group_is_refused(scores: list[float], final: list[bool], margin: float, words: str) -> None:
    """With what was given."""
    with pytest.raises(ObjectiveError, match=words):
        undecided_advantages(scores, final, margin)


@pytest.mark.parametrize("size", [1e155, 1e300])
def test_scores_whose_squares_are_no_floats_have_advantages(size: float) -> None:
    """Those of smaller scores in the same proportion, with deviations and flat groups, and no warning."""
    small = np.array([0.0, 1.0, 0.25, 1.0, 0.5, 0.5, 0.5, 0.5]) * 1e100
    large = small * (size / 1e100)
    for scale in ("group", "batch"):
        expected = group_advantages(small, 4, scale=scale)
        np.testing.assert_allclose(group_advantages(large, 4, scale=scale), expected, rtol=1e-12)
    np.testing.assert_allclose(
        leave_one_out_advantages(large, 4, normalize=True),
        leave_one_out_advantages(small, 4, normalize=True),
        atol=1e-12,
    )
    statistics = group_statistics(large, 4)
    np.testing.assert_allclose(statistics.std, group_statistics(small, 4).std * (size / 1e100))
    assert 0.5 == statistics.zero_variance_share


def test_a_weighted_sum_that_is_no_float_is_infinite() -> None:
    """It is refused where advantages are asked, and not by a warning before."""
    total = weighted_rewards({"a": [1e300, 1.0]}, {"a": 1e10})
    assert [math.inf, 1e10] == total.tolist()
    with pytest.raises(ObjectiveError, match="infinite"):
        group_advantages(total, 2)
