"""A page that watches tells a target of the flags of runs that are being written, each once, over restarts."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from databases import STORES, place_on
from patience import wait_for

from rewardkit.dashboard import alerting
from rewardkit.dashboard.app import Dashboard
from rewardkit.dashboard.diagnosing import diagnosis_of
from rewardkit.dashboard.views import health
from rewardkit.health.alerts import ALERT, Alert, noted_flags
from rewardkit.record.place import RecordPlace
from rewardkit.record.places import place_of_runs
from rewardkit.record.reader import RunReader
from rewardkit.record.recorder import Recorder
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Cause, Outcome, Rollout, Status

CODE = "import pathlib, sys; file = pathlib.Path(sys.argv[1]); file.open('a').write(sys.stdin.read() + chr(10))"

WAIT_S = 120.0  # Several looks of all detectors, on a machine that does much else


@pytest.fixture(params=STORES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """The place of a run: a folder, or a schema of a database."""
    return place_on(request.param, request, tmp_path)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the detectors look as soon as something was written, and in this process."""
    monkeypatch.setattr(health, "_diagnose", diagnose)
    for module, name, value in ((health, "AGAIN_S", 0.05), (health, "SHARE", 0.05), (alerting, "PAUSE_S", 0.3)):
        monkeypatch.setattr(module, name, value)


def diagnose(path: RecordPlace) -> dict[str, Any]:
    """Return what the process of the detectors would answer."""
    answer: dict[str, Any] = json.loads(json.dumps(diagnosis_of(path.locator), default=lambda value: value.tolist()))
    return answer


def record(recorder: Recorder, steps: range, hang: float) -> None:
    """Record steps, in which a share of the calls times out."""
    rng = np.random.default_rng(steps.start)
    timeout = Outcome(Status.FAILED, None, cause=Cause.TIMEOUT, version="a" * 12)
    for step in steps:
        texts = [" ".join(f"w{n}" for n in rng.integers(0, 500, 20)) for _ in range(32)]
        rollouts = [Rollout(f"{place // 4}+1=", text) for place, text in enumerate(texts)]
        scores = [Outcome(Status.SCORED, float(rng.random() < 0.5), version="a" * 12) for _ in texts]
        outcomes = [timeout if rng.random() < hang else score for score in scores]
        recorder.record(ScoreBatch(rollouts, {"correct": outcomes}, {"correct": 1.0}), step=step)
    assert recorder.flush()


@contextmanager
def watching(place: Any, alert: Alert) -> Iterator[Dashboard]:
    """The dashboard over the runs beside a place, with alerts."""
    dashboard = Dashboard(place_of_runs(str(place)), alert=alert)
    try:
        yield dashboard
    finally:
        dashboard.close()


def lines(file: Path) -> list[dict[str, Any]]:
    """Return what the target was told."""
    return [json.loads(line) for line in file.read_text().splitlines() if line] if file.exists() else []


def test_a_flag_of_a_run_that_is_written_is_told_once_over_restarts(place: Any, tmp_path: Path) -> None:
    """Nobody has opened the page; the flag that comes up last is told after the end of the run."""
    told = tmp_path / "told.jsonl"
    alert = Alert([sys.executable, "-c", CODE, str(told)])
    with Recorder(place / "live") as recorder:
        record(recorder, range(20), 0.0)
        with watching(place / "live", alert):
            record(recorder, range(20, 40), 0.5)
            assert wait_for(
                lambda: ("timeouts", "correct") in {(row["flag"], row["reward"]) for row in lines(told)}, WAIT_S
            )
        record(recorder, range(40, 44), 0.5)
        with watching(place / "live", alert) as dashboard:
            assert dashboard.alerting is not None
            assert wait_for(lambda: bool(dashboard.alerting._looks))  # type: ignore[union-attr]
            recorder.close()
            assert wait_for(lambda: not dashboard.alerting._looks, WAIT_S)  # type: ignore[union-attr]
    flags = [(row["flag"], row["reward"]) for row in lines(told)]
    assert len(flags) == len(set(flags))
    with RunReader(place / "live") as run:
        assert set(flags) == noted_flags(run, ALERT)


def test_a_run_that_ended_before_is_not_told(place: Any, tmp_path: Path) -> None:
    """An old folder of runs is no news."""
    told = tmp_path / "told.jsonl"
    with Recorder(place / "old") as recorder:
        record(recorder, range(20), 0.0)
        record(recorder, range(20, 40), 0.5)
    with watching(place / "old", Alert([sys.executable, "-c", CODE, str(told)])) as dashboard:
        assert dashboard.alerting is not None
        assert wait_for(lambda: bool(dashboard.alerting._stamps))  # type: ignore[union-attr]
    assert [] == lines(told)


def test_a_target_that_fails_is_logged_once_and_given_up(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """After three looks in a row; the runs are shown on."""
    with Recorder(tmp_path / "live") as recorder, caplog.at_level(logging.WARNING, "rewardkit.dashboard"):
        record(recorder, range(20), 0.0)
        record(recorder, range(20, 40), 0.5)
        with watching(tmp_path, Alert([sys.executable, "-c", "raise SystemExit(3)"])) as dashboard:
            assert dashboard.alerting is not None
            assert wait_for(lambda: not dashboard.alerting._thread.is_alive(), WAIT_S)  # type: ignore[union-attr]
    (message,) = [record.getMessage() for record in caplog.records]
    assert message.endswith("exit status 3; after 3 failures in a row none is sent")
    with RunReader(tmp_path / "live") as run:
        assert set() == noted_flags(run, ALERT)
