"""How noisy a reward is, against numbers that are known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rewardkit.errors import RewardDefinitionError
from rewardkit.health.noise import generations_needed, noise_of, scorings_needed, sign_right


@pytest.mark.parametrize("worth", [1.0, 2.0, 0.5])
def test_the_share_of_noise_is_what_was_put_in(worth: float) -> None:
    """Noise of variance 1 beside worth of a known variance; the prompts' ease changes nothing."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(2000), 8)
    true = rng.normal(0, worth, 16_000) + np.repeat(rng.normal(0, 5, 2000), 8)
    first, second = true + rng.normal(0, 1, 16_000), true + rng.normal(0, 1, 16_000)
    told = noise_of(first, second, groups)
    assert told.share == pytest.approx(1 / (1 + worth**2), abs=0.02)
    assert (16_000, 2000) == (told.completions, told.groups)


@pytest.mark.parametrize(("worth", "generations"), [(1.0, 4), (2.0, 8), (1.5, 16)])
def test_signs_are_as_often_right_as_is_said(worth: float, generations: int) -> None:
    """The formula against advantages whose true sign is known: the worth above the policy's mean."""
    rng = np.random.default_rng(1)
    true = rng.normal(0, worth, (4000, generations))
    scored = true + rng.normal(0, 1, true.shape)
    advantages = scored - scored.mean(axis=1, keepdims=True)
    reliability = worth**2 / (1 + worth**2)
    assert sign_right(reliability, generations) == pytest.approx(
        (np.sign(advantages) == np.sign(true)).mean(), abs=0.01
    )


def test_a_reward_without_noise_needs_two_generations() -> None:
    """R (1 - 1/G) = 1/2 at R = 1 and G = 2; below a reliability of 1/2 no group is large enough."""
    assert [2, 3, 6, None, None] == [generations_needed(one) for one in (1.0, 0.8, 0.6, 0.5, math.nan)]
    assert sign_right(0.6, 6) == pytest.approx(0.75)


def test_scoring_several_times_makes_up_for_noise() -> None:
    """As many scorings as make the mean's reliability enough for groups of that size."""
    needed = scorings_needed(0.25, 8)
    assert needed is not None
    better = needed * 0.25 / (1 + (needed - 1) * 0.25)
    worse = (needed - 1) * 0.25 / (1 + (needed - 2) * 0.25)
    assert better * (1 - 1 / 8) >= 0.5 > worse * (1 - 1 / 8)
    assert 1 == scorings_needed(1.0, 8)
    assert scorings_needed(0.0, 8) is None
    assert scorings_needed(0.9, 2) is None


def test_a_shift_of_a_whole_group_is_no_noise() -> None:
    """A judge that is milder the second time moves no advantage."""
    groups = np.repeat(np.arange(10), 4)
    first = np.tile([0.0, 1.0, 2.0, 3.0], 10)
    told = noise_of(first, first + np.repeat(np.arange(10), 4), groups)
    assert (0.0, 1.0, 2) == (told.share, told.agreeing, told.generations)


def test_completions_without_both_scores_are_left_out() -> None:
    """And groups of which one completion is left; with nothing left nothing is known."""
    told = noise_of([0, 1, math.nan, 3, 5], [0, 1, 2, math.nan, 5], [0, 0, 0, 1, 1])
    assert (2, 1, 0.0) == (told.completions, told.groups, told.share)
    nothing = noise_of([], [], [])
    assert (0, True, None) == (nothing.completions, math.isnan(nothing.share), nothing.generations)
    flat = noise_of([1, 1], [1, 1], [0, 0])
    assert math.isnan(flat.share)


def test_scorings_of_different_lengths_are_refused() -> None:
    """By their lengths."""
    with pytest.raises(RewardDefinitionError, match="two scorings of 2 and 3 completions"):
        noise_of([1, 2], [1, 2, 3], [0, 0])
