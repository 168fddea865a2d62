"""The sums of a run's steps: those that are read bit by bit are those that are read at once."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from recorded import batch

from rewardkit.dashboard.readers import OpenRun, RunCache, StepSums, summaries
from rewardkit.record.recorder import Recorder
from rewardkit.replay.recorded_run import Run


def _agree(sums: StepSums, run: Run, version: int) -> None:
    assert tuple(run.summaries()) == tuple(sums.newest(run, (version,)))


@pytest.mark.parametrize("seed", range(8))
def test_sums_read_bit_by_bit_are_the_same(tmp_path: Path, seed: int) -> None:
    """Whatever is added between two looks: new steps, more of an old one, of none, evaluations, a new version."""
    chance = random.Random(seed)
    sums, step = StepSums("train"), 0
    with contextlib.closing(Recorder(tmp_path / "one")) as recorder:
        assert recorder.flush()
        with Run.open(tmp_path / "one") as run:
            for version in range(12):
                for _ in range(chance.randrange(3)):
                    step += chance.choice((0, 1, 1))
                    at = chance.choice((step, step, step, max(0, step - 2), None))
                    split = chance.choice(("train", "train", "eval"))
                    recorder.record(batch(4, f"{version}", chance.random()), step=at, split=split)
                assert recorder.flush()
                _agree(sums, run, version)


def test_a_training_that_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    """Steps that were taken away and scored again are those of the second time."""
    sums = StepSums("train")
    with contextlib.closing(Recorder(tmp_path / "one")) as recorder:
        for step in range(6):
            recorder.record(batch(4, "first", 0.25), step=step)
        assert recorder.flush()
        with Run.open(tmp_path / "one") as run:
            _agree(sums, run, 0)
            recorder.rewind(3)
            for step in range(3, 5):
                recorder.record(batch(4, "second", 0.75), step=step)
            assert recorder.flush()
            _agree(sums, run, 1)
            exact = [one.mean for one in sums.newest(run, (1,)) if one.reward == "exact"]
            assert [0.25, 0.25, 0.25, 0.75, 0.75] == exact


def test_only_new_steps_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long run is read once, and not at each of its steps."""
    since: list[Any] = []
    read = Run.summaries

    def watched(run: Run, *given: Any, **named: Any) -> Sequence[Any]:
        since.append(named.get("since"))
        return read(run, *given, **named)

    monkeypatch.setattr(Run, "summaries", watched)
    with contextlib.closing(Recorder(tmp_path / "one")) as recorder:
        recorder.record(batch(4), step=0)
        assert recorder.flush()
        with Run.open(tmp_path / "one") as run:
            opened = OpenRun(run, RunCache())
            for step in range(1, 4):
                summaries(opened)
                recorder.record(batch(4), step=step)
                assert recorder.flush()
            assert 8 == len(summaries(opened)) == len(summaries(opened))
    assert [0, 1, 2, 3] == since
