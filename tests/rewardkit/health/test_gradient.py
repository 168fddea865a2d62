"""A prompt whose scale drowns the others is named; penalties, sparse rewards and hard prompts are no scale."""

from __future__ import annotations

import numpy as np
import pytest
from synthetic_runs import PLANTED, Drawn, Plant, penalty, run_of, sparse

from rewardkit.health.flag import Flag


def _flags(plant: Plant, seed: int) -> list[Flag]:
    flags = run_of(plant, seed=seed, steps=40, words=2).watched().flags
    return [flag for flag in flags if flag.detector == "prompt_scale"]


@pytest.mark.parametrize("seed", range(5))
def test_prompts_whose_scale_drowns_the_others_are_named(seed: int) -> None:
    """With completions of theirs, once."""
    run = run_of(PLANTED["prompt_scale"][0], seed=seed, steps=40, words=2)
    (flag,) = [flag for flag in run.watched().flags if flag.detector == "prompt_scale"]
    large = {number for table in run.tables for number in table.ids[table.prompts % 7 == 0].tolist()}
    assert set(flag.rows) <= large
    assert 100 <= flag.value <= 400


@pytest.mark.parametrize("seed", range(5))
def test_a_single_prompt_is_enough(seed: int) -> None:
    """One of 16 in each step, and only in its second half."""

    def single(drawn: Drawn) -> None:
        drawn.prompts = np.where(drawn.groups == 3, 10_000, drawn.prompts)
        drawn.scores["correct"] = drawn.scores["correct"] * np.where((drawn.groups == 3) & (drawn.step > 19), 1e6, 1)

    assert [(20, 39)] == [(flag.first_step, flag.last_step) for flag in _flags(single, seed)]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "plant", [penalty(0.02, 100.0), penalty(0.1, 50.0), sparse], ids=["rare penalty", "penalty", "sparse"]
)
def test_what_hits_single_completions_is_no_scale(plant: Plant, seed: int) -> None:
    """A large penalty comes to all prompts, and a prompt that is seldom solved is only hard."""
    assert [] == _flags(plant, seed)


@pytest.mark.parametrize("seed", range(5))
def test_prompts_that_are_solved_and_differ_in_a_small_reward_are_no_scale(seed: int) -> None:
    """Of most groups all are right, and only a price on tokens tells them apart."""

    def priced(drawn: Drawn) -> None:
        count = len(drawn.groups)
        drawn.scores = {
            "correct": np.where(drawn.groups % 3 == 0, (drawn.rng.random(count) < 0.5).astype(float), 1.0),
            "tokens": -drawn.tokens / 10_000,
        }
        drawn.weights = {"correct": 1.0, "tokens": 1.0}

    assert [] == _flags(priced, seed)
