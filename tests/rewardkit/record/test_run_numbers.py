"""The numbers of a run are those of its rows: while it grows, after a resume, and in records of an older release."""

from __future__ import annotations

import contextlib
import math
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recorded import batch

from rewardkit.errors import RecordError
from rewardkit.record.places import place_of_record
from rewardkit.record.reader import RunReader
from rewardkit.record.recorder import Recorder
from rewardkit.record.run_numbers import RunNumbers
from rewardkit.record.sqlite_file import FILE
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Cause, Outcome, Rollout, Status

OUTCOMES = (
    Outcome(Status.SCORED, 0.1, version="1" * 12, duration_s=0.5),
    Outcome(Status.FAILED, 0.0, cause=Cause.TIMEOUT, error="took 5 s", version="1" * 12),
    Outcome(Status.SKIPPED, None, version="1" * 12),
    Outcome(Status.FAILED, None, version="1" * 12),
    Outcome(Status.SCORED, -3.5, version="1" * 12, cached=True),
)


def mixed(step: int) -> ScoreBatch:
    """A batch with all that a call can become, and a conversation."""
    talk = [{"role": "assistant", "content": "seven"}]
    texts = ["one", "", "three", talk, "five \N{SNOWMAN}"]
    rollouts = [Rollout(f"{step}", text, {"n": step}, [0] * place) for place, text in enumerate(texts)]
    scores = [Outcome(Status.SCORED, place / 3 + step, version="2" * 12) for place in range(5)]
    return ScoreBatch(rollouts, {"judge": list(OUTCOMES), "sum": scores}, {"judge": 10.0, "sum": 0.05})


def expected(run: RunReader) -> dict[str, list[float]]:
    """The same numbers, from the completions one by one."""
    rows = list(run.completions())

    def own(row: Any, name: str) -> float:
        outcome = row.outcomes.get(name)
        return outcome.score if outcome is not None and outcome.status is Status.SCORED else math.nan

    columns: dict[str, list[float | None]] = {
        "id": [row.id for row in rows], "step": [row.step for row in rows],
        "prompt": [row.prompt_index for row in rows],
        "tokens": [row.tokens for row in rows], "total": [row.total for row in rows],
        "plain_sum": [row.plain_sum for row in rows], "advantage": [row.advantage for row in rows],
        **{f"score {name}": [own(row, name) for row in rows] for name in run.rewards},
        **{f"version {name}": [row.versions.get(name) for row in rows] for name in run.rewards},
        **{f"seconds {name}": [row.outcomes[name].duration_s if name in row.outcomes else None for row in rows]
           for name in run.rewards},
    }  # fmt: skip
    return {name: [math.nan if value is None else value for value in column] for name, column in columns.items()}


def check(numbers: RunNumbers, run: RunReader) -> None:
    """Assert that numbers are those of the rows."""
    assert not numbers.update(run).unfinished
    for name, values in expected(run).items():
        column, _, reward = name.partition(" ")
        if column == "score":
            own = numbers.own_scores(reward)
        elif column == "seconds":
            own = numbers.seconds(run, reward)
        else:
            own = numbers.column(column, reward or None)
        np.testing.assert_array_equal(np.array(values, np.float64), own, name)


@pytest.fixture
def writing(place: Any) -> Iterator[Recorder]:
    """A recorder of the run, closed afterwards."""
    with contextlib.closing(Recorder(place / "one")) as recorder:
        yield recorder


def test_numbers_are_those_of_the_rows_while_a_run_grows(writing: Recorder) -> None:
    """Batches of other rewards, and advantages that the trainer tells later, among them."""
    numbers = RunNumbers()
    for step, scored in enumerate((mixed(0), batch(3), mixed(2), mixed(3))):
        writing.record(scored, step=step)
        assert writing.flush()
        with RunReader(writing.path) as run:
            check(numbers, run)
        if step != 1:
            writing.advantages(step, "train", [step / 7] * len(scored.rollouts))
        assert writing.flush()
        with RunReader(writing.path) as run:
            check(numbers, run)
    assert [3, 0, 5, 5, 6] == numbers.column("characters")[:5].tolist()


def test_batches_that_a_resume_takes_away_are_gone(writing: Recorder) -> None:
    """And those that come in their place are there."""
    numbers = RunNumbers()
    for step in range(3):
        writing.record(mixed(step), step=step)
    assert writing.flush()
    with RunReader(writing.path) as run:
        check(numbers, run)
        writing.rewind(1)
        writing.record(mixed(7), step=1)
        assert writing.flush()
        check(numbers, run)
        assert [0.0] * 5 + [1.0] * 5 == numbers.column("step").tolist()


def test_a_limited_reading_says_how_far_it_came(writing: Recorder) -> None:
    """And goes on from there."""
    for step in range(200):
        writing.record(batch(1), step=step)
    assert writing.flush()
    numbers = RunNumbers()
    with RunReader(writing.path) as run:
        first = numbers.update(run, 0.0)
        assert first.unfinished
        assert 0 < first.done < first.of
        check(numbers, run)


@pytest.mark.parametrize(
    "statement",
    ["DROP TABLE numbers", "DELETE FROM numbers WHERE batch = 2", "DELETE FROM completion WHERE id = 7"],
)
def test_a_record_without_blocks_is_read_from_its_rows(tmp_path: Path, statement: str) -> None:
    """One of an older release, one that an older release went on with, and one from which rows were taken."""
    with contextlib.closing(Recorder(tmp_path / "one")) as recorder:
        for step in range(3):
            recorder.record(mixed(step), step=step)
    with contextlib.closing(sqlite3.connect(tmp_path / "one" / FILE, isolation_level=None)) as file:
        file.execute(statement)
    with RunReader(tmp_path / "one") as run:
        check(RunNumbers(), run)
        assert run.unsound() is None


def test_a_record_of_an_older_release_gets_the_table_when_it_is_written(tmp_path: Path) -> None:
    """What it had before is still read from its rows."""
    with contextlib.closing(Recorder(tmp_path / "one")) as recorder:
        recorder.record(mixed(0), step=0)
    with contextlib.closing(sqlite3.connect(tmp_path / "one" / FILE, isolation_level=None)) as file:
        file.execute("DROP TABLE numbers")
    with contextlib.closing(Recorder(tmp_path / "one", append=True)) as recorder:
        recorder.record(mixed(1), step=1)
    with RunReader(tmp_path / "one") as run:
        check(RunNumbers(), run)
    with contextlib.closing(place_of_record(tmp_path / "one").connect_to_read()) as connection:
        assert [(2,)] == connection.tuples("SELECT batch FROM numbers")


@pytest.mark.parametrize("body", [b"", b"\xff" * 40, b"\x05\x00\x00\x00\x0b\x00\x00\x00" + b"d\x00\x00\x00\x00" * 11])
def test_a_damaged_block_is_told_in_a_line(tmp_path: Path, body: bytes) -> None:
    """With the file."""
    with contextlib.closing(Recorder(tmp_path / "one")) as recorder:
        recorder.record(mixed(0), step=0)
    with contextlib.closing(sqlite3.connect(tmp_path / "one" / FILE, isolation_level=None)) as file:
        file.execute("UPDATE numbers SET body = ?", (body,))
    with RunReader(tmp_path / "one") as run, pytest.raises(RecordError, match=f"{FILE}: damaged") as refusal:
        check(RunNumbers(), run)
    assert "\n" not in str(refusal.value)
