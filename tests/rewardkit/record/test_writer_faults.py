"""Whatever becomes of the file, the run goes on: what can be saved is saved, and what is lost is counted."""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from recorded import batch

from rewardkit.errors import RecordError
from rewardkit.record import file_target, recorder, sqlite_file, writer
from rewardkit.record.reader import RunReader
from rewardkit.record.recorder import Recorder


def marks(run: Any) -> list[str]:
    """Return the marks of the completions in a record, each once, in order; a file is checked first."""
    if isinstance(run, Path):
        with contextlib.closing(sqlite3.connect(run / "record.db")) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    with RunReader(run) as found:
        return list(dict.fromkeys(str(one.completion).partition(":")[0] for one in found.completions()))


def until(fact: Callable[[], object]) -> None:
    """Wait until something is so, at most 20 seconds."""
    end = time.monotonic() + 20
    while not fact():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.01)


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """Mount a file system of two megabytes, where this process may."""
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", folder], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("this process may mount no file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def fill(disk: Path) -> None:
    """Leave no room on a small disk."""
    with (disk / "filler").open("wb", buffering=0) as filler, contextlib.suppress(OSError):
        while filler.write(b"full" * 256):
            pass


@pytest.fixture
def loud(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """Return what gives the errors that were logged."""
    caplog.set_level(logging.INFO, "rewardkit")
    return lambda: [one.getMessage() for one in caplog.records if one.levelno >= logging.ERROR]


@pytest.mark.parametrize("whole_folder", [False, True], ids=["file", "folder"])
def test_a_deleted_record_is_put_back(tmp_path: Path, loud: Callable[[], list[str]], whole_folder: bool) -> None:
    """What was acknowledged before the file was deleted is in the file that stands in its place."""
    run = tmp_path / "one"
    with Recorder(run) as one:
        one.record(batch(mark="before"), step=0)
        assert one.flush()
        shutil.rmtree(run) if whole_folder else (run / "record.db").unlink()
        one.record(batch(mark="after"), step=1)
        assert one.flush()
        assert marks(run) == ["before", "after"]
        (run / "record.db").unlink()
        assert one.flush()
        assert marks(run) == ["before", "after"]
        (run / "record.db").unlink()
    assert marks(run) == ["before", "after"]
    assert sum("put back" in words for words in loud()) == 3
    assert not [name for name in os.listdir(run) if name.startswith(".")]


def test_two_writers_of_a_deleted_record_meet_in_one_file(tmp_path: Path) -> None:
    """Rows of both ranks are in the file that is put back, those from before as well as those from after."""
    first, second = Recorder(tmp_path), Recorder(tmp_path, rank=1)
    for step in range(6):
        for rank, one in enumerate((first, second)):
            one.record(batch(mark=f"{step}-{rank}"), step=step)
            assert one.flush()
        if step % 2:
            (tmp_path / "record.db").unlink()
            assert second.flush()
    assert first.close()
    assert second.close()
    assert sorted(marks(tmp_path)) == [f"{step}-{rank}" for step in range(6) for rank in range(2)]


def test_a_record_that_was_renamed_is_left_as_it_is(tmp_path: Path, loud: Callable[[], list[str]]) -> None:
    """A file that has another name in its folder was set aside on purpose: the run goes on in a new one."""
    with Recorder(tmp_path / "one") as one:
        one.record(batch(mark="before"), step=0)
        assert one.flush()
        for name in sorted(os.listdir(tmp_path / "one"), reverse=True):
            (tmp_path / "one" / name).rename(tmp_path / "one" / name.replace("record", "aside"))
        one.record(batch(mark="after"), step=1)
    assert marks(tmp_path / "one") == ["after"]
    with RunReader(tmp_path / "one" / "aside.db") as aside:
        assert aside.count() == 8
    assert "was moved to aside.db" in loud()[0]


def test_a_full_disk_delays_the_record_and_loses_nothing(tmp_path: Path, loud: Callable[[], list[str]]) -> None:
    """While the disk is full a run goes on; what it recorded meanwhile is written once there is room."""
    with small_disk(tmp_path / "disk") as disk, Recorder(disk / "one") as one:
        one.record(batch(mark="before"), step=0)
        assert one.flush()
        fill(disk)
        for step in range(1, 6):
            one.record(batch(400, mark=f"full{step}"), step=step)
        until(lambda: one.trouble)
        assert not one.flush(0.5)
        assert marks(disk / "one")[0] == "before"
        (disk / "filler").unlink()
        assert one.flush()
        assert one.trouble is None
        assert marks(disk / "one") == ["before", *(f"full{step}" for step in range(1, 6))]
        assert one.lost == one.left_out == 0
        assert len([words for words in loud() if "cannot be written" in words]) == 1


def test_a_disk_that_stays_full_ends_the_record_in_bounded_time(tmp_path: Path) -> None:
    """A recorder that cannot write ends when it was told to, says so, and counts the completions that are lost."""
    with small_disk(tmp_path / "disk") as disk:
        one = Recorder(disk / "one")
        fill(disk)
        for step in range(3):
            one.record(batch(400, mark=f"full{step}"), step=step)
        assert not one.close(timeout_s=0.5)
        assert one.lost == 1200
        (disk / "filler").unlink()
        assert marks(disk / "one") == []


def test_a_file_system_that_is_read_only_is_waited_for(tmp_path: Path, loud: Callable[[], list[str]]) -> None:
    """Rows wait in memory while the file system takes no writes."""
    with small_disk(tmp_path / "disk") as disk:
        with Recorder(disk / "one") as first:
            first.record(batch(mark="before"), step=0)
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        with Recorder(disk / "one", rank=1) as one:
            one.record(batch(mark="meanwhile"), step=1)
            until(lambda: one.trouble)
            with RunReader(disk / "one") as run:
                assert run.count() == 8
            subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
            assert one.flush()
        assert marks(disk / "one") == ["before", "meanwhile"]
        assert len(loud()) == 1


def test_a_folder_of_another_user_is_named(tmp_path: Path) -> None:
    """Who may not write a run's folder, or not read its record, is told so in one line."""
    Recorder(tmp_path / "one").close()
    (tmp_path / "one" / "record.db").chmod(0o600)
    with as_nobody():
        for act in (lambda: RunReader(tmp_path / "one"), lambda: Recorder(tmp_path / "two")):
            with pytest.raises(RecordError, match=r"record\.db: another user's") as refused:
                act()
            assert "\n" not in str(refused.value)


@contextlib.contextmanager
def as_nobody() -> Iterator[None]:
    """Be a user without rights, where this process may become one."""
    if os.geteuid():
        pytest.skip("only root can become another user")
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_locked_file_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loud: Callable[[], list[str]]
) -> None:
    """A lock that another process holds for long is told once, and what waits is written when it is gone."""
    monkeypatch.setattr(sqlite_file, "BUSY_S", 0.1)
    monkeypatch.setattr(file_target, "LOCKED_S", 0.02)
    with Recorder(tmp_path) as one:
        assert one.flush()
        with contextlib.closing(sqlite3.connect(tmp_path / "record.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            for step in range(3):
                one.record(batch(mark=f"locked{step}"), step=step)
            until(lambda: one.trouble)
            other.execute("ROLLBACK")
        assert one.flush()
    assert marks(tmp_path) == ["locked0", "locked1", "locked2"]
    assert len(loud()) == 1
    assert "locked" in loud()[0]


def test_a_file_that_stays_locked_ends_the_record_in_bounded_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closing gives up on a lock that does not go away, and says that something is not written."""
    monkeypatch.setattr(file_target, "LOCKED_S", 0.02)
    one = Recorder(tmp_path)
    assert one.flush()
    with contextlib.closing(sqlite3.connect(tmp_path / "record.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        one.record(batch(mark="lost"), step=0)
        assert not one.close(timeout_s=0.2)
        until(lambda: one.lost == 8)
    assert marks(tmp_path) == []


def test_garbage_in_the_files_place_is_told_and_what_was_there_comes_back(
    tmp_path: Path, loud: Callable[[], list[str]]
) -> None:
    """Another file under the record's name is not written to; once it is gone the record is put back whole."""
    file = tmp_path / "record.db"
    with Recorder(tmp_path) as one:
        one.record(batch(mark="before"), step=0)
        assert one.flush()
        (tmp_path / "new").write_bytes(b"no record at all" * 500)
        os.replace(tmp_path / "new", file)
        one.record(batch(mark="meanwhile"), step=1)
        until(lambda: one.trouble)
        assert not one.flush(0.2)
        assert file.read_bytes().startswith(b"no record at all")
        file.unlink()
        assert one.flush()
    assert marks(tmp_path) == ["before", "meanwhile"]
    assert "overwritten" in loud()[0]


def test_a_file_that_is_overwritten_begins_anew_once_it_is_taken_away(tmp_path: Path) -> None:
    """Bytes written over a record cannot be undone; the run goes on, and its record does once the file is gone."""
    file = tmp_path / "record.db"
    with Recorder(tmp_path) as one:
        one.record(batch(mark="before"), step=0)
        assert one.flush()
        file.write_bytes(b"no record at all" * 500)
        for other in (tmp_path / "record.db-wal", tmp_path / "record.db-shm"):
            other.unlink(missing_ok=True)
        one.record(batch(mark="meanwhile"), step=1)
        one.flush(0.5)
        file.unlink()
        one.record(batch(mark="after"), step=2)
        one.flush(5)
    assert marks(tmp_path)[-1] == "after"


def test_no_batch_makes_a_recorder_raise(place: Any, loud: Callable[[], list[str]]) -> None:
    """A batch that cannot be recorded is counted and logged, and the next one is recorded."""
    with Recorder(place) as one:
        one.record(batch(mark="odd"), step=0, handed={"exact": []})
        one.metrics(0, {"huge": 10**400, "fine": 1.5, "word": "no", "flag": True, "none": float("nan")})
        one.event("odd", {"key": {1, 2}, "deep": {(1, 2): 3}})
        one.record(batch(mark="fine"), step=1)
        assert not one.flush()
        assert one.lost == 8
    assert marks(place) == ["fine"]
    assert loud()
    with RunReader(place) as run:
        assert run.metrics("fine") == [(0, 1.5)]
        assert run.metric_names() == ["fine", "none"]
        assert [one["kind"] for one in run.events] == ["odd", "lost"]


def test_nothing_that_a_recorder_is_given_makes_it_raise(place: Any, loud: Callable[[], list[str]]) -> None:
    """A step that is none, or a body that is no mapping: it is logged, and no completion is counted as lost."""
    wrong: Any = "seven"  # no number, and no mapping
    with Recorder(place) as one:
        one.metrics(wrong, {"fine": 1.5})
        one.event("odd", wrong)
        one.event("odd", {}, wrong)
        one.add_about(wrong)
        one.rewind(wrong)
        one.advantages(0, "train", None)  # type: ignore[arg-type]
        assert not one.flush()
        assert (0, None) == (one.lost, one.trouble)
    assert loud()


def test_a_job_that_fails_takes_no_other_with_it(place: Any) -> None:
    """A job with an error of its own is dropped whole, and those around it are written."""

    def broken(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO event (time, kind, body) VALUES (0, 'half', '{}')")
        raise KeyError("broken")

    with Recorder(place) as one:
        one.record(batch(mark="first"), step=0)
        one._writer.put(broken)
        one.record(batch(mark="second"), step=1)
        assert not one.flush()
    assert marks(place) == ["first", "second"]
    with RunReader(place) as run:
        assert [event["kind"] for event in run.events] == []


def test_texts_are_left_out_before_anything_else(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is too slow costs completions their text, which is counted; no score is missing."""
    monkeypatch.setattr(writer, "TEXTS_BYTES", 10_000)
    monkeypatch.setattr(writer, "WAIT_S", 0.05)
    free = threading.Event()

    def wait(connection: sqlite3.Connection) -> None:
        free.wait(20)

    with Recorder(place) as one:
        one._writer.put(wait)
        for step in range(10):
            one.record(batch(mark=f"slow{step}"), step=step)
        free.set()
        assert one.flush()
        left_out = one.left_out
        assert 0 < left_out < 80
    with RunReader(place) as run:
        found = list(run.completions())
        assert len(found) == 80
        assert sum(one.completion is None for one in found) == left_out
        assert all(one.scores["exact"] == 1.0 for one in found)


def test_what_no_memory_is_left_for_is_counted(
    place: Any, monkeypatch: pytest.MonkeyPatch, loud: Callable[[], list[str]]
) -> None:
    """Where nothing can be written for very long, the newest rows are dropped, counted, and told once."""
    monkeypatch.setattr(writer, "NUMBERS_BYTES", 20_000)
    free = threading.Event()

    def wait(connection: sqlite3.Connection) -> None:
        free.wait(20)

    one = Recorder(place)
    one._writer.put(wait)
    for step in range(10):
        one.record(batch(mark=f"step{step}"), step=step)
    free.set()
    assert not one.flush()
    assert not one.close()
    with RunReader(place) as run:
        assert 0 < run.count() == 80 - one.lost < 80
        assert [event["body"] for event in run.events] == [{"completions": one.lost}]
    assert len(loud()) == 1


def test_garbage_that_stays_ends_the_record_in_bounded_time(tmp_path: Path) -> None:
    """A recorder whose file is no record any more ends, says so, and leaves that file as it is."""
    one = Recorder(tmp_path)
    assert one.flush()
    (tmp_path / "new").write_bytes(b"no record at all" * 500)
    os.replace(tmp_path / "new", tmp_path / "record.db")
    one.record(batch(), step=0)
    assert not one.close(timeout_s=0.3)
    assert one.lost == 8
    assert (tmp_path / "record.db").read_bytes() == b"no record at all" * 500


def test_a_rank_leaves_the_making_of_the_file_to_rank_0(tmp_path: Path, loud: Callable[[], list[str]]) -> None:
    """A second rank that is quicker than the first makes no file, and its rows wait for it."""
    second = Recorder(tmp_path, rank=1)
    second.record(batch(mark="second"), step=0)
    assert not second.flush(0.3)
    assert not (tmp_path / "record.db").exists()
    first = Recorder(tmp_path)
    first.record(batch(mark="first"), step=0)
    assert first.close()
    assert second.close()
    assert sorted(marks(tmp_path)) == ["first", "second"]
    assert loud() == []


def test_a_rank_does_not_wait_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where rank 0 makes no file, another rank does in the end: its rows are worth more."""
    monkeypatch.setattr(recorder, "RANK_S", 0.2)
    with Recorder(tmp_path, rank=1) as one:
        one.record(batch(mark="alone"), step=0)
    assert marks(tmp_path) == ["alone"]


def test_numbers_are_not_given_twice(place: Any) -> None:
    """After a rewind, new completions have numbers that no other ever had: who follows a run misses none."""
    with Recorder(place) as one:
        for step in range(3):
            one.record(batch(mark=f"a{step}"), step=step)
        one.rewind(1)
        one.record(batch(mark="b1"), step=1)
    with RunReader(place) as run:
        assert [found.id for found in run.completions()] == [*range(1, 9), *range(25, 33)]
        assert len(list(run.completions(after=24))) == 8


def test_a_fork_leaves_the_record_alone(place: Any) -> None:
    """A forked child's recorder writes nothing and never hangs; its parent's goes on."""
    script = (
        "import os, sys; sys.path.insert(0, sys.argv[2]); from recorded import batch\n"
        "from rewardkit.record.recorder import Recorder\n"
        "one = Recorder(sys.argv[1]); one.record(batch(mark='parent'), step=0); assert one.flush()\n"
        "pid = os.fork()\n"
        "if not pid:\n"
        "    one.record(batch(mark='child'), step=1)\n"
        "    sys.exit(0 if not one.flush() and not one.close() and one.lost == 8 else 3)\n"
        "assert os.waitpid(pid, 0)[1] == 0\n"
        "one.record(batch(mark='again'), step=1); assert one.close()\n"
    )
    subprocess.run(
        [sys.executable, "-c", script, place, Path(__file__).parents[2] / "helpers"], check=True, timeout=300
    )
    assert marks(place) == ["parent", "again"]


def test_an_interpreter_that_ends_writes_what_it_was_given(tmp_path: Path) -> None:
    """A script that never closes its recorder has all of its batches in the file."""
    script = (
        "import sys; sys.path.insert(0, sys.argv[2]); from recorded import batch\n"
        "from rewardkit.record.recorder import Recorder\n"
        "one = Recorder(sys.argv[1])\n"
        "for step in range(50): one.record(batch(100, mark=str(step)), step=step)\n"
    )
    subprocess.run(
        [sys.executable, "-c", script, tmp_path, Path(__file__).parents[2] / "helpers"], check=True, timeout=300
    )
    assert marks(tmp_path) == [str(step) for step in range(50)]
    with RunReader(tmp_path) as run:
        assert run.count() == 5000


def test_a_folder_that_cannot_hold_a_log_is_written_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a file system without shared memory for the write-ahead log a record is written the other way."""
    monkeypatch.setattr(sqlite_file, "wal_works", lambda folder: False)
    with Recorder(tmp_path) as one:
        one.record(batch(mark="plain"), step=0)
        assert one.flush()
        with contextlib.closing(sqlite3.connect(tmp_path / "record.db")) as connection:
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        (tmp_path / "record.db").unlink()
        one.record(batch(mark="after"), step=1)
    assert marks(tmp_path) == ["plain", "after"]
