"""What a reader finds in files that are no records, damaged, older or newer, and how it pages."""

from __future__ import annotations

import contextlib
import functools
import os
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from recorded import batch

from rewardkit.errors import RecordError
from rewardkit.record import sqlite_file
from rewardkit.record.overview import overviews
from rewardkit.record.reader import RunReader
from rewardkit.record.recorder import Recorder
from rewardkit.replay.recorded_run import Run
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Cause, Outcome, Rollout, Status


def recorded(run: Any, steps: int = 3, count: int = 8) -> Path:
    """Make a record and return its file."""
    with Recorder(run) as one:
        for step in range(steps):
            one.record(batch(count, mark=f"step{step}", score=float(step)), step=step)
    return Path(run, "record.db")


def refusal(act: Callable[[], object]) -> str:
    """Return the one line with which something is refused."""
    with pytest.raises(RecordError) as refused:
        act()
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_what_is_no_record_is_refused_in_a_line(tmp_path: Path) -> None:
    """Missing, empty, of another kind, of another program, newer: each is said in words."""
    file = tmp_path / "record.db"
    assert "there is no record" in refusal(lambda: RunReader(tmp_path))
    file.touch()
    assert "empty" in refusal(lambda: RunReader(tmp_path))
    file.write_text("no database " * 1000)
    assert "not an SQLite file" in refusal(lambda: RunReader(tmp_path))
    assert "not an SQLite file" in refusal(lambda: Recorder(tmp_path, append=True))
    assert file.read_text() == "no database " * 1000
    file.unlink()
    with contextlib.closing(sqlite3.connect(file)) as other:
        other.execute("CREATE TABLE theirs (x)")
    assert "not a record of rewardkit" in refusal(lambda: RunReader(tmp_path))
    assert "not a record of rewardkit" in refusal(lambda: Recorder(tmp_path, append=True))
    file.unlink()
    file.mkdir()
    assert str(file) in refusal(lambda: RunReader(tmp_path))
    file.rmdir()
    recorded(tmp_path)
    with contextlib.closing(sqlite3.connect(file)) as newer:
        newer.execute(f"PRAGMA user_version = {sqlite_file.VERSION + 1}")
    assert "newer release" in refusal(lambda: RunReader(tmp_path))
    assert "newer release" in refusal(lambda: Recorder(tmp_path, append=True))


@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.95])
def test_a_file_that_was_cut_short_is_refused_in_a_line(tmp_path: Path, share: float) -> None:
    """A copy that stopped half-way gives one line and no traceback, wherever it was cut."""
    file = recorded(tmp_path, steps=30, count=100)
    os.truncate(file, int(share * file.stat().st_size))

    def read() -> None:
        with RunReader(tmp_path) as run:
            repr(run)
            list(run.completions())
            list(run.logs())
            run.summaries()
            raise RecordError("nothing that was read lay in the part that is gone")

    assert refusal(read)


def test_bytes_that_changed_are_refused_in_a_line(tmp_path: Path) -> None:
    """A schema or a text that something else has written over is damaged, and its bytes are not shown."""
    file = recorded(tmp_path)
    whole = file.read_bytes()
    for old, new in ((b"CREATE TABLE said", b"CREATE TAB\xffE said"), (b"CREATE TABLE said", b"CREATE TABLO said")):
        file.write_bytes(whole.replace(old, new))
        assert refusal(lambda: RunReader(tmp_path)).endswith(
            "damaged: the file is cut short, or something else has written to it"
        )
    file.write_bytes(whole.replace(b"train", b"tr\n\xffn"))
    with RunReader(tmp_path) as run:
        assert "damaged" in refusal(lambda: run.summaries(split=None))


def test_a_place_that_is_none_is_refused(tmp_path: Path) -> None:
    """An empty name would make a record in the folder that the program runs in; a file is no folder."""
    for name in ("", "a\x00b"):
        assert "expected a run's folder, such as 'runs/one'" in refusal(functools.partial(RunReader, name))
        assert "expected a run's folder, such as 'runs/one'" in refusal(functools.partial(Recorder, name))
    (tmp_path / "file").touch()
    for place in (tmp_path / "file", tmp_path / "file/run"):
        assert "a folder of its path is a file" in refusal(functools.partial(Recorder, place))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everybody's files")
def test_a_record_that_cannot_be_written_is_refused_in_a_line(tmp_path: Path) -> None:
    """It can be read; who appends to it is told why that does not go."""
    file = recorded(tmp_path)
    file.chmod(0o444)
    assert "can be read and not written" in refusal(lambda: Recorder(tmp_path, append=True))
    with RunReader(tmp_path) as run:
        assert run.count() == 24


def test_what_the_first_write_meets_is_said_in_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that opens and then refuses its first row, as a read-only one does, raises no error of SQLite's."""
    recorded(tmp_path)

    def read_only(path: Path, *, threads: bool = False) -> sqlite_file.Connection:
        return sqlite_file.connect_to_read(path)

    monkeypatch.setattr(sqlite_file, "connect_to_write", read_only)
    assert "can be read and not written" in refusal(lambda: Recorder(tmp_path, append=True))


def test_a_search_for_what_cannot_be_says_so(place: Any) -> None:
    """A split that there is none of, or less than no completions, is no empty answer."""
    recorded(place)
    with RunReader(place) as run:
        assert "split='test': expected 'train' or 'eval'" in refusal(lambda: list(run.completions(split="test")))
        assert "split='test': expected 'train' or 'eval'" in refusal(lambda: list(run.logs(split="test")))
        assert "limit=-1: expected 0 or more" in refusal(lambda: list(run.completions(limit=-1)))


def test_a_damaged_text_is_told_with_its_file(tmp_path: Path) -> None:
    """The error names the record, also where a part of it that is no page of SQLite's is damaged."""
    recorded(tmp_path)
    with contextlib.closing(sqlite3.connect(tmp_path / "record.db")) as connection:
        connection.execute("UPDATE text SET body = x'00'")
        connection.commit()
    with Run.open(tmp_path) as run:
        assert f"{tmp_path / 'record.db'}: damaged" in refusal(lambda: list(run.completions()))
        assert f"{tmp_path / 'record.db'}: damaged" in refusal(lambda: run.texts([1]))


def test_a_reader_says_whose_it_is(tmp_path: Path) -> None:
    """Used in another thread or after it was closed, a reader says so, and its repr raises nothing."""
    recorded(tmp_path)
    run = Run.open(tmp_path)
    words: list[str] = []
    thread = threading.Thread(target=lambda: words.extend([refusal(run.count), repr(run), refusal(run.close)]))
    thread.start()
    thread.join()
    assert "opened in another thread; open the run again in the one that reads" in words[0]
    assert "cannot be read here" in words[1]
    assert "another thread" in words[2]
    assert repr(run) == f"<Run {tmp_path.name!r}: 24 completions, 3 steps>"
    run.close()
    run.close()
    assert "closed" in refusal(run.count)
    assert "cannot be read here" in repr(run)


def test_the_extremes_of_a_step_count_what_the_trainer_was_not_told(place: Any) -> None:
    """A batch of which the trainer was told nothing has its lowest and highest score all the same, and no mean."""
    with Recorder(place) as one:
        one.record(batch(4, score=2.0), step=0)
        one.record(batch(4, score=7.0), step=0, handed={"exact": [None] * 4, "other": [0.0, 1.0] * 2})
        one.record(batch(4, score=9.0), step=1, handed={"exact": [None] * 4, "other": [0.0, 1.0] * 2})
    with RunReader(place) as run:
        first, second = run.summaries("exact")
        (whole,) = overviews([first, second])
    assert (4, 2.0, 2.0, 7.0) == (first.counted, first.mean, first.low, first.high)
    assert (0, None, 9.0, 9.0) == (second.counted, second.mean, second.low, second.high)
    assert (2.0, 9.0) == (whole.low, whole.high)


def test_splits_and_ranks_of_a_step_are_summed_apart_and_together(place: Any) -> None:
    """A step has one sum of each split over all ranks, in whichever order they were written."""
    with Recorder(place) as recorder:
        for split in ("eval", "train", "eval"):
            recorder.record(batch(4, score=1.0), step=10, split=split)
    with RunReader(place) as run:
        sums = run.summaries("exact", split=None)
    assert [("eval", 8), ("train", 4)] == [(summary.split, summary.scored) for summary in sums]


@pytest.mark.parametrize("default", [0.0, None])
def test_numbers_of_a_step_without_a_score_are_not_known(place: Any, default: float | None) -> None:
    """A default that stands in for every call is no score: neither a mean, nor a spread, nor an extreme."""
    failed = Outcome(Status.FAILED, default, cause=Cause.EXCEPTION, error="it failed", version="a" * 12)
    scored = Outcome(Status.SCORED, 1.0, version="a" * 12)
    rollouts = [Rollout("2+2=", "4", {}) for _ in range(4)]
    with Recorder(place / "one") as one:
        one.record(ScoreBatch(rollouts, {"exact": [failed] * 4}, {"exact": 1.0}), step=0)
        one.record(ScoreBatch(rollouts, {"exact": [failed] * 4}, {"exact": 1.0}), step=1)  # of one rank
        one.record(ScoreBatch(rollouts, {"exact": [scored] * 4}, {"exact": 1.0}), step=1)  # of another
    with RunReader(place / "one") as run:
        none, some = run.summaries()
        (seen,) = overviews([none, some])
    assert (None, None, None, None) == (none.mean, none.std, none.low, none.high)
    assert (4, 0, 0) == (none.failed["exception"], none.scored, none.counted)
    assert (1.0, 4) == (some.mean, some.counted), "what stands in for a part is no score either"
    assert (None, some.mean) == (seen.means[0], seen.first)


def test_pages_go_on_after_the_last_one(place: Any) -> None:
    """Pages of any search, one after the other, are the whole search."""
    recorded(place, steps=5, count=20)
    searches = (
        {}, {"step": 3}, {"prompt": 0}, {"reward": "other", "min_score": 0.5}, {"min_score": 3.5}, {"max_score": 1.0},
        {"prompt": 0, "step": 2, "reward": "exact", "status": "scored"}, {"reward": "exact", "min_score": 4.0},
    )  # fmt: skip
    with RunReader(place) as run:
        everything = list(run.completions())
        for search in searches:
            whole = [one.id for one in run.completions(**search)]  # type: ignore[arg-type]
            paged: list[int] = []
            while page := list(run.completions(**search, after=paged[-1] if paged else 0, limit=7)):  # type: ignore
                paged += [one.id for one in page]
            assert paged == whole
        assert [one.id for one in run.completions(min_score=3.5)] == [
            one.id for one in everything if one.total is not None and one.total >= 3.5
        ]
        assert [one.id for one in run.completions(reward="exact", min_score=4.0)] == list(range(81, 101))
        assert list(run.completions(after=100)) == []
        assert list(run.completions(limit=0)) == []


def test_an_older_record_is_brought_up_to_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of an older version takes each step to this one, for a reader too; a step that fails changes nothing."""
    file = recorded(tmp_path)
    steps = {1: "CREATE TABLE added (x TEXT DEFAULT 'a;b'); INSERT INTO added DEFAULT VALUES;", 2: "DROP TABLE absent"}
    monkeypatch.setattr(sqlite_file, "MIGRATIONS", steps)
    monkeypatch.setattr(sqlite_file, "VERSION", 3)
    assert "no such table: absent" in refusal(lambda: RunReader(tmp_path))
    with contextlib.closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)
        assert connection.execute("SELECT x FROM added").fetchall() == [("a;b",)]
    steps[2] = "INSERT INTO added VALUES ('third')"
    with RunReader(tmp_path) as run:
        assert run.count() == 24
    with Recorder(tmp_path, append=True) as one:
        one.record(batch(mark="later"), step=9)
    with contextlib.closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (3,)
        assert connection.execute("SELECT x FROM added").fetchall() == [("a;b",), ("third",)]


def test_writers_that_migrate_at_once_do_it_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several that open an older file, one brings it up to date."""
    file = recorded(tmp_path)
    monkeypatch.setattr(sqlite_file, "MIGRATIONS", {1: "CREATE TABLE added (x)"})
    monkeypatch.setattr(sqlite_file, "VERSION", 2)
    found: list[str] = []

    def act() -> None:
        try:
            sqlite_file.connect_to_write(file).close()
        except RecordError as reason:
            found.append(str(reason))

    threads = [threading.Thread(target=act) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == []


@pytest.mark.parametrize(
    ("search", "ids"),
    [
        ({"reward": "judge", "max_score": 0.5}, [3]),
        ({"reward": "judge", "min_score": 0.0}, [1, 3]),
        ({"reward": "judge", "status": "failed", "max_score": 0.5}, [2]),
        ({"reward": "judge", "status": "failed"}, [2, 4]),
        ({"reward": "judge"}, [1, 2, 3, 4, 5]),
        ({"max_score": 0.5}, [2, 3]),
    ],
    ids=["low", "any score", "low defaults", "failed", "all", "total"],
)
@pytest.mark.parametrize("prompt", [None, 0])
def test_a_search_by_a_score_finds_no_default(
    place: Any, search: dict[str, Any], ids: list[int], prompt: int | None
) -> None:
    """A default that stands in for a failed call is no score, unless failed calls are searched."""
    outcomes = [
        Outcome(Status.SCORED, 1.0), Outcome(Status.FAILED, 0.0, cause=Cause.TIMEOUT), Outcome(Status.SCORED, 0.25),
        Outcome(Status.FAILED, None, cause=Cause.TIMEOUT), Outcome(Status.SKIPPED, None),
    ]  # fmt: skip
    rollouts = [Rollout("p", str(place), {}) for place in range(5)]
    with Recorder(place) as recorder:
        recorder.record(ScoreBatch(rollouts, {"judge": outcomes}, {"judge": 1.0}), step=0)
    with RunReader(place) as run:
        assert ids == [row.id for row in run.completions(**search, prompt=prompt)]
