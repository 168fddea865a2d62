"""Rewards that part: opposed ones, one that is given up, and a judge that drifts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from synthetic_runs import PLANTED, Drawn, Plant, opposed, run_of

from rewardkit.health.detectors import DETECTORS, flags_of
from rewardkit.health.evidence import Evidence
from rewardkit.health.flag import Flag


def _flags(plant: Plant, detector: str, seed: int = 1, steps: int = 80) -> list[Flag]:
    flags = run_of(plant, seed=seed, words=3, steps=steps).watched().flags
    return [flag for flag in flags if flag.detector == detector]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", ["reward_falls", "judge_drift", "conflict"])
def test_what_parts_is_named_once(name: str, seed: int) -> None:
    """A reward that is given up, a judge that grows soft, and two that come to fight."""
    (flag,) = _flags(PLANTED[name][0], name, seed)
    assert {"reward_falls": "safe", "judge_drift": "judge", "conflict": "correct"}[name] == flag.reward
    assert 1 == len(flag.spans)


@pytest.mark.parametrize("seed", range(5))
def test_opposed_rewards_are_flagged_at_once(seed: int) -> None:
    """In the first window, and on rows without steps, with both of their names."""
    (flag,) = _flags(opposed, "conflict", seed, steps=10)
    assert ("brevity", 0, 9) == (flag.reward, flag.first_step, flag.last_step)
    assert flag.value < flag.threshold == -0.5
    assert "brevity and depth oppose each other" in flag.words
    table = replace(run_of(opposed, seed=seed, words=3, steps=1).tables[0], steps=np.full(128, -1))
    (static,) = flags_of(Evidence(table), detectors=[DETECTORS["conflict"]])
    assert ("brevity", None) == (static.reward, static.first_step)


def test_opposition_is_one_of_what_is_paid() -> None:
    """Under a weight below 0 scores that go together are opposed, and those that are opposed go together."""

    def turned(drawn: Drawn) -> None:
        opposed(drawn)
        drawn.weights["depth"] = -1.0

    def together(drawn: Drawn) -> None:
        turned(drawn)
        drawn.scores["depth"] = 1 - drawn.scores["depth"]

    assert [] == _flags(turned, "conflict", steps=10)
    assert ["brevity"] == [flag.reward for flag in _flags(together, "conflict", steps=10)]


def _judged(*, rise: float, learns: float, agrees: float) -> Plant:
    """Return a plant of a judge that rises by itself, and agrees with a check that rises."""

    def plant(drawn: Drawn) -> None:
        count, done = len(drawn.groups), drawn.step / 80
        drawn.scores["correct"] = (drawn.rng.random(count) < 0.3 + learns * done).astype(float)
        liked = 0.3 + agrees * drawn.scores["correct"] + rise * done
        drawn.scores["judge"] = np.clip(liked + drawn.rng.normal(0, 0.15, count), 0, 1)
        drawn.scores["format"] = (drawn.rng.random(count) < 0.85).astype(float)
        drawn.weights["judge"] = 1.0

    return plant


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "plant",
    [
        _judged(rise=0.0, learns=0.5, agrees=0.4),
        _judged(rise=0.0, learns=0.0, agrees=0.4),
        _judged(rise=0.1, learns=0.0, agrees=0.0),
    ],
    ids=["answers get better", "nothing moves", "a style is learned"],
)
def test_a_judge_that_rises_by_right_is_not_flagged(plant: Plant, seed: int) -> None:
    """It rises with the answers, or by less than its noise."""
    assert [] == _flags(plant, "judge_drift", seed)
