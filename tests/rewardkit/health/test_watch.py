"""A watch over a run: when it looks, what it tells, and where it begins anew."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from synthetic_runs import PLANTED, Drawn, new_version, run_of

from rewardkit.errors import RewardDefinitionError
from rewardkit.health.detectors import DETECTORS
from rewardkit.health.flag import Flag
from rewardkit.health.watch import Watch


def test_a_flag_is_told_once_while_it_stays() -> None:
    """``on_flag`` is called as it comes up; its steps run on, and the metric stays up."""
    told: list[Flag] = []
    watch = run_of(PLANTED["timeouts"][0], seed=1, steps=40, words=5).watched(on_flag=told.append)
    assert ["timeouts"] == [flag.detector for flag in told]
    assert "0-9" == told[0].steps
    assert ["0-39"] == [flag.steps for flag in watch.flags]
    assert 1.0 == watch.metrics()["health/timeouts"]
    assert {f"health/{name}" for name in DETECTORS} == set(watch.metrics())


def test_a_flag_that_comes_back_is_one_flag_with_its_steps() -> None:
    """It is told once; its steps are those of each time, and its number is that of the last."""

    def plant(drawn: Drawn) -> None:
        if not 10 <= drawn.step < 20:
            PLANTED["timeouts"][0](drawn)
        else:
            drawn.scores["judge"] = drawn.rng.random(len(drawn.groups))
            drawn.weights["judge"] = 1.0

    told: list[str] = []
    watch = run_of(plant, seed=1, steps=30, words=5).watched(
        on_flag=lambda flag: told.append(f"{flag.detector} {flag.steps}")
    )
    assert ["timeouts 0-9"] == told
    (flag,) = watch.flags
    assert ("0-9, 20-29", ((0, 9), (20, 29)), 0, 29) == (flag.steps, flag.spans, flag.first_step, flag.last_step)


def test_a_flag_of_many_times_names_the_first_and_the_last() -> None:
    """And how many there were."""
    flags = [Flag("timeouts", "judge", at, at + 9, 0.5, 0.02, None, "", "") for at in range(0, 100, 20)]
    assert "0-9 to 80-89, 5 times" == functools.reduce(Flag.again, flags).steps


def test_a_window_is_looked_at_when_the_next_step_begins() -> None:
    """Several processes hand over one step; all of it is in the window."""
    run = run_of(seed=1, steps=12, words=5)
    watch = Watch(texts=run.texts, every=4)
    for table in run.tables:
        half = np.arange(len(table)) < len(table) // 2
        watch.observe(table.where(half))
        watch.observe(table.where(~half))
    assert 2 == watch.looks
    watch.finish()
    assert 3 == watch.looks
    watch.finish()
    assert 3 == watch.looks


def test_a_baseline_begins_anew_with_a_version() -> None:
    """A reward that pays twice as much from step 37 is a jump, unless it is a new version."""

    def same_version(drawn: Drawn) -> None:
        new_version(drawn)
        drawn.versions.clear()

    assert ["reward_jump"] == [flag.detector for flag in run_of(same_version, seed=1, words=5).watched().flags]
    assert [] == run_of(new_version, seed=1, words=5).watched().flags


def test_a_window_never_mixes_versions() -> None:
    """The steps before the change are looked at on their own; a short window is filled up with steps before it."""
    run = run_of(new_version, seed=1, steps=40, words=5)
    spans: list[tuple[int, int]] = []

    def metrics(first: int, last: int) -> dict[str, list[float]]:
        spans.append((first, last))
        return {}

    run.watched(metrics=metrics)
    assert [(0, 9), (10, 19), (20, 29), (27, 36), (37, 39)] == spans


def test_steps_that_come_again_after_a_checkpoint_count_once() -> None:
    """What was there of them and had not been looked at is dropped."""
    run = run_of(seed=1, steps=10, words=5)
    watch = Watch(every=10)
    for step in (0, 1, 2, 3, 1, 2, 3):
        watch.observe(run.tables[step])
    counted: list[int] = []
    watch._again = lambda table: counted.append(len(table)) or {}  # type: ignore[func-returns-value]
    watch.finish()
    assert [4 * len(run.tables[0])] == counted


def test_what_cannot_be_looked_at_has_a_reason() -> None:
    """Without texts, held-out rewards and a second scoring some detectors stay silent, and say why."""
    run = run_of(seed=1, steps=30, words=5)
    watch = Watch()
    for table in run.tables:
        watch.observe(table)
    watch.finish()
    why = watch.not_looked_at
    assert "no texts are recorded" == why["tampering"]
    assert "no reward of weight 0" == why["held_out_falls"]
    assert "rewardkit rescore" in why["noise"]
    assert "reward_jump" not in why


def test_a_short_run_has_no_baseline() -> None:
    """Detectors that compare with earlier steps say so."""
    watch = run_of(seed=1, steps=8, words=5).watched()
    assert "no earlier steps to compare with" == watch.not_looked_at["reward_jump"]
    assert "constant" not in watch.not_looked_at


def test_a_second_scoring_tells_noise() -> None:
    """Scores that differ as much from themselves as from each other are noise."""
    run = run_of(seed=1, steps=20, words=5)
    rng = np.random.default_rng(0)
    watch = run.watched(again=lambda table: {"correct": rng.permutation(table.scores["correct"])})
    flags = [flag for flag in watch.flags if flag.detector == "noise"]
    assert ["correct"] == [flag.reward for flag in flags]
    assert flags[0].value > 0.8


def test_a_watch_looks_after_one_step_or_more() -> None:
    """Other numbers are refused by name."""
    with pytest.raises(RewardDefinitionError, match="every=0"):
        Watch(every=0)
