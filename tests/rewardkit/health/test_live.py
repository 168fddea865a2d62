"""Health while a run runs: flags come up in the record, and nothing reaches the run."""

from __future__ import annotations

import logging
import zlib
from pathlib import Path

import pytest

from rewardkit import Recorder, RewardDefinitionError, Rollout, Run, Runtime, reward
from rewardkit.health.examine import diagnose_run
from rewardkit.health.flag import Flag
from rewardkit.health.live import LiveHealth
from rewardkit.record.reader import RunReader


@reward
def always(completion: str) -> float:
    """Pay for everything alike."""
    return 1.0


@reward
def coin(completion: str) -> float:
    """Pay by chance, as far as the detectors know."""
    return zlib.crc32(completion.encode()) % 2


def run_steps(runtime: Runtime, health: LiveHealth, steps: int) -> None:
    """Score four groups of four completions a step."""
    for step in range(steps):
        health.begins(step)
        runtime.score([Rollout(f"{row // 4}", f"{row} {step}") for row in range(16)], step=step)


def test_a_flag_is_an_event_of_the_record_and_a_metric(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Groups that give no gradient are flagged once, although several windows show them."""
    told: list[Flag] = []
    recorder = Recorder(tmp_path)
    health = LiveHealth(recorder, every=5, on_flag=told.append)
    with Runtime([always], lane="inline", record=recorder) as runtime, caplog.at_level(logging.WARNING, "rewardkit"):
        run_steps(runtime, health, 20)
        health.close()
    assert [flag.detector for flag in told].count("zero_variance") == 1
    assert health.metrics["health/zero_variance"] == 1.0
    assert "health/zero_variance" in caplog.text
    with Run.open(tmp_path) as run:
        flags = [event["body"] for event in run.events if event["kind"] == "flag"]
    assert [(one["detector"], one["reward"]) for one in flags] == [(flag.detector, flag.reward) for flag in told]


@pytest.mark.parametrize("texts", [True, False])
def test_the_log_says_what_was_looked_at_and_what_cannot_be_seen(
    texts: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As the page and ``rewardkit diagnose`` say it: steps, completions, detectors, windows and texts."""
    recorder = Recorder(tmp_path)
    health = LiveHealth(recorder, every=10)
    with Runtime([coin], lane="inline", record=recorder) as runtime, caplog.at_level(logging.INFO, "rewardkit"):
        if not texts:
            recorder._writer.room_for = lambda text_bytes: False  # type: ignore[method-assign]
        run_steps(runtime, health, 20)
        health.close()
    lines = [record.getMessage() for record in caplog.records if "health checks" in record.getMessage()]
    with RunReader(tmp_path) as run:
        diagnosis = diagnose_run(run)
    assert [f"health checks: {diagnosis.summary}"] == lines[:1]
    assert lines[0].startswith("health checks: No flag in steps 0 to 19 (20 steps in ")
    assert [f"health checks cannot see: {line}" for line in diagnosis.blind_spots] == lines[1:]
    assert texts != any("no texts are recorded: " in line for line in lines)


def test_a_fault_of_the_checks_does_not_reach_the_run(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Where the callback fails, that is logged, and the run and its record go on."""

    def fail(flag: Flag) -> None:
        raise ValueError("mine")

    recorder = Recorder(tmp_path)
    health = LiveHealth(recorder, every=2, on_flag=fail)
    with Runtime([always], lane="inline", record=recorder) as runtime:
        run_steps(runtime, health, 8)
        health.close()
    assert "the run goes on without them" in caplog.text
    with Run.open(tmp_path) as run:
        assert run.count() == 8 * 16


def test_a_wrong_interval_is_refused(tmp_path: Path) -> None:
    """The steps between two looks are 1 or more."""
    with Recorder(tmp_path) as recorder, pytest.raises(RewardDefinitionError, match="every=0"):
        LiveHealth(recorder, every=0)
