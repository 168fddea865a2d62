"""Processes that are killed while they write, several that write one run, and one that reads meanwhile."""

from __future__ import annotations

import contextlib
import json
import random
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from recorded import batch

from rewardkit.record.reader import RunReader
from rewardkit.record.recorder import Recorder

HELPERS = Path(__file__).parents[2] / "helpers"
SIZE = 40
KILLED = f"""
import sys
sys.path.insert(0, {str(HELPERS)!r})
from recorded import batch
from rewardkit.record.recorder import Recorder
one = Recorder(sys.argv[1], append=True)
turn = sys.argv[2]
for step in range(100000):
    one.record(batch({SIZE}, mark=f"{{turn}}-{{step}}"), step=step)
    if step % 5 == 4 and one.flush():
        print(step, flush=True)
"""
RANK = f"""
import sys
sys.path.insert(0, {str(HELPERS)!r})
from recorded import batch
from rewardkit.record.recorder import Recorder
rank = int(sys.argv[2])
one = Recorder(sys.argv[1], rank=rank)
for step in range(30):
    one.record(batch({SIZE}, mark=f"{{rank}}-{{step}}"), step=step)
assert one.close()
"""


@pytest.mark.soak
def test_what_was_acknowledged_survives_kills(tmp_path: Path, full: bool) -> None:
    """After SIGKILL at random moments the file is sound, holds all that was acknowledged, and batches are whole."""
    chance = random.Random(14)
    acknowledged: dict[int, int] = {}
    for turn in range(50 if full else 8):
        child = subprocess.Popen([sys.executable, "-c", KILLED, tmp_path, str(turn)], stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        with child:
            first = child.stdout.readline()  # it writes by now
            time.sleep(chance.uniform(0.0, 0.5))
            child.kill()
            told = [first, *child.stdout.read().split("\n")]
        acknowledged[turn] = max(int(line) for line in told if line.strip())
        with contextlib.closing(sqlite3.connect(tmp_path / "record.db")) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            sizes = connection.execute("SELECT DISTINCT count(*) FROM completion GROUP BY batch").fetchall()
            assert sizes == [(SIZE,)]
            assert connection.execute("SELECT count(*) FROM batch").fetchone()[0] == (
                connection.execute("SELECT count(*) FROM summary").fetchone()[0] // 2
            )
    with RunReader(tmp_path) as run:
        steps: dict[int, list[int]] = {}
        for one in run.completions():
            turn, step = map(int, str(one.completion).partition(":")[0].split("-"))
            steps.setdefault(turn, []).append(step)
    for turn, last in acknowledged.items():
        there = sorted(set(steps[turn]))
        assert there == list(range(len(there)))
        assert there[-1] >= last
        assert len(steps[turn]) == SIZE * len(there)


@pytest.mark.slow
def test_ranks_write_one_run_and_lose_no_row(tmp_path: Path, full: bool) -> None:
    """Rows of all processes are in the file, numbered once, each with its rank, and equal texts are stored once."""
    ranks = 4 if full else 2
    children = [subprocess.Popen([sys.executable, "-c", RANK, tmp_path, str(rank)]) for rank in reversed(range(ranks))]
    assert [child.wait(120) for child in children] == [0] * ranks
    with RunReader(tmp_path) as run:
        found = list(run.completions())
        assert len(found) == len({one.id for one in found}) == ranks * 30 * SIZE
        for one in found:
            assert str(one.completion).startswith(f"{one.rank}-{one.step}:")
        assert {one.prompt_index for one in found} == {0}
        assert [summary.scored for summary in run.summaries("exact")] == [ranks * SIZE] * 30
        assert sorted(session["rank"] for session in run.sessions) == list(range(ranks))
    with contextlib.closing(sqlite3.connect(tmp_path / "record.db")) as connection:
        (texts,) = connection.execute("SELECT count(*) FROM text").fetchone()
        assert texts == len(found) + 2  # and the prompt, and its columns


def test_equal_texts_of_several_sessions_are_stored_once(tmp_path: Path) -> None:
    """A text that an earlier process, another rank or this one has stored is not stored again."""
    with Recorder(tmp_path) as one, Recorder(tmp_path, rank=1) as other:
        for writer in (one, other, one, other):
            writer.record(batch(mark="same"), step=0)
            assert writer.flush()
    with Recorder(tmp_path, append=True) as again:
        again.record(batch(mark="same"), step=1)
    with contextlib.closing(sqlite3.connect(tmp_path / "record.db")) as connection:
        assert connection.execute("SELECT count(*) FROM completion").fetchone() == (40,)
        assert connection.execute("SELECT count(*) FROM text").fetchone() == (8 + 2,)
    with RunReader(tmp_path) as run:
        assert len({one.completion for one in run.completions()}) == 8


def test_a_reader_sees_whole_batches_while_they_are_written(tmp_path: Path) -> None:
    """What a reader finds is always a number of whole batches, and only grows."""
    script = RANK.replace("range(30)", "range(60)")
    with subprocess.Popen([sys.executable, "-c", script, tmp_path, "0"]) as child:
        seen = [0]
        while child.poll() is None:
            with contextlib.suppress(FileNotFoundError):
                if (tmp_path / "record.db").stat().st_size == 0:
                    continue
                with RunReader(tmp_path) as run:
                    seen.append(run.count())
                    if seen[-1]:
                        assert len(list(run.completions(reward="exact", min_score=0.5, limit=50))) >= SIZE
            time.sleep(0.01)
        assert child.returncode == 0
    assert all(count % SIZE == 0 for count in seen)
    assert seen == sorted(seen)
    with RunReader(tmp_path) as run:
        assert run.count() == 60 * SIZE


def test_what_cannot_be_encoded_is_recorded_all_the_same(tmp_path: Path) -> None:
    """Halves of surrogate pairs, NUL and columns that are no JSON reach the record, and cost no row."""
    odd = batch(2, mark="odd")
    reason = odd.outcomes["exact"][0]._replace(reason="half \ud800 and \x00", logs="\udfff", error="\ud800")
    rollouts = list(odd.rollouts)
    rollouts[0] = type(rollouts[0])("p\ud800", "c\ud800\x00d", {"key": {("a", 1): {2}}})
    made = type(odd)(rollouts, {**odd.outcomes, "exact": [reason, odd.outcomes["exact"][1]]}, odd.weights)
    with Recorder(tmp_path) as one:
        one.record(made, step=0)
        assert one.flush()
    with RunReader(tmp_path) as run:
        first, _ = run.completions()
        assert (first.prompt, first.completion) == ("p\ud800", "c\ud800\x00d")
        assert first.outcomes["exact"].reason == "half ? and \x00"
        assert first.outcomes["exact"].logs == "\udfff"
        assert json.dumps(dict(first.columns))
