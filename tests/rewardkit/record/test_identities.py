"""Which completions of two records are of one question, one row or the same, and what a scored file's means are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rewardkit.record.reader import RunReader
from rewardkit.record.recorder import Recorder
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Cause, Outcome, Rollout, Status

ROWS = [("p", "a", 0), ("p", "b", 1), ("q", "a", 0), ("p", "a", 1)]  # Prompt, completion, sample


def record(path: Any, rows: list[tuple[str, str, int]] = ROWS, *, step: int | None = None) -> None:
    """Record rows whose second one failed with a default, and paid for it."""
    rollouts = [Rollout(prompt, text, {"sample": sample}) for prompt, text, sample in rows]
    column = [Outcome(Status.SCORED, float(index), version="0" * 12) for index in range(len(rows))]
    column[1] = Outcome(Status.FAILED, 9.0, cause=Cause.TIMEOUT, version="0" * 12, metrics={"requests": 1.0})
    with Recorder(path) as recorder:
        recorder.record(ScoreBatch(rollouts, {"right": column}, {"right": -2.0}), step=step)


def test_equal_texts_have_equal_identities_in_every_record(place: Any, tmp_path: Path) -> None:
    """Questions, rows and completions, in whatever order, and of a record of another kind."""
    record(place)
    record(tmp_path / "beside", [*ROWS[::-1], ("r", "c", 0)])
    with RunReader(place) as run, RunReader(tmp_path / "beside") as other:
        own, theirs = run.identities(run.table()), other.identities(other.table())
        for name, distinct in (("questions", 2), ("rows", 3), ("completions", 2)):
            assert getattr(own, name).tolist() == getattr(theirs, name)[:4][::-1].tolist()
            assert distinct == len(set(getattr(own, name).tolist()))
        assert [0, 0, 2] == run.questions.tolist()


def test_a_question_has_the_completions_of_all_its_rows(place: Any) -> None:
    """From each of its rows; a prompt has its own alone."""
    record(place)
    with RunReader(place) as run:
        assert [[1, 2, 4], [1, 2, 4], [3]] == [run.table(question=prompt).ids.tolist() for prompt in range(3)]
        assert [[1], [2, 4], [3]] == [run.table(prompt=prompt).ids.tolist() for prompt in range(3)]
        assert [1, 2, 4] == [number for number, _, _ in run.moments(1, whole_question=True)]


def test_the_means_of_a_file_leave_out_defaults_and_steps_have_none(place: Any) -> None:
    """The total is the trainer's sum, in which a default stands in; a reward's mean is of its own scores."""
    record(place)
    with RunReader(place) as run:
        means = run.file_means()
        assert means is not None
        assert (pytest.approx(-2 * (0 + 9 + 2 + 3) / 4), {"right": pytest.approx(5 / 3)}) == means
        assert None is run.file_means("eval")
        assert [] == run.left_out_ids()
        (version,) = run.versions
        assert ([(2, '{"requests":1.0}')], []) == (run.call_metrics(version), run.cached_calls(version))
    record(place / "steps", step=3)
    with RunReader(place / "steps") as run:
        assert None is run.file_means()
