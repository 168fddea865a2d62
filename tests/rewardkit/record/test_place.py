"""What every kind of place of a record, and of runs, promises: the same tests for a file and for a database."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest
from databases import DatabasePlace
from recorded import batch

from rewardkit.errors import RecordError
from rewardkit.record import database_place
from rewardkit.record.place import RecordPlace, RunsPlace
from rewardkit.record.places import has_record, place_of_record, place_of_runs, run_path
from rewardkit.record.reader import RunReader
from rewardkit.record.recorder import Recorder
from rewardkit.record.store import RecordConnection


@pytest.fixture
def record(place: Any) -> RecordPlace:
    """The place of a run called ``one``, of which nothing is there."""
    return place_of_record(place / "one")


@pytest.fixture
def runs(place: Any, record: RecordPlace) -> RunsPlace:
    """Where that run lies, with others of the same server."""
    return place_of_runs(str(place).partition("&run=")[0] if isinstance(place, DatabasePlace) else place)


def written(record: RecordPlace, step: int = 0) -> RecordPlace:
    """Record a batch, and return the place."""
    with Recorder(record, append=step > 0) as recorder:
        recorder.record(batch(8, mark=f"step {step}"), step=step)
    return record


def lock(connection: RecordConnection) -> None:
    """Keep others from writing until the transaction ends."""
    connection.begin()
    connection.alone()


def test_a_place_is_chosen_once(record: RecordPlace) -> None:
    """What names a run leads to its place by every way in, and a place is itself."""
    assert place_of_record(record) is record
    assert place_of_record(record.locator) == run_path(record.locator) == record.resolve() == record


def test_a_record_is_there_once_something_records(record: RecordPlace) -> None:
    """Before that, reading says that there is none, and nothing was made by asking."""
    assert (record.exists(), has_record(record), record.size()) == (False, False, 0)
    with pytest.raises(RecordError, match="there is no record"):
        record.connect_to_read()
    assert record.move_aside() is None
    assert not record.exists()
    written(record)
    assert (record.exists(), has_record(record)) == (True, True)
    assert record.size() > 0
    assert abs(record.last_write() - time.time()) < 60


def test_what_a_place_is_called_leads_to_it(record: RecordPlace) -> None:
    """Its name is the run's; its label is what a command takes, and its locator what another process takes."""
    written(record)
    for text in (record.label, record.locator):
        with RunReader(text) as run:
            assert (run.path, run.name, run.count()) == (record, record.name, 8)
    assert str(record).startswith(record.label)
    assert all(file.is_file() for file in record.files)
    assert record.home.name == record.name


def test_no_secret_of_a_place_is_shown(record: RecordPlace) -> None:
    """Whatever is printed of a place has no password in it."""
    assert not any(secret in f"{record}{record!r}{record.label}" for secret in record.secrets.values())


def test_a_stamp_changes_when_something_is_written_and_not_else(record: RecordPlace) -> None:
    """It is the same for each who reads; the one of the list of runs changes as well."""
    written(record)
    with RunReader(record) as first, RunReader(record) as second:
        time.sleep(0.1)  # a file that was written a moment ago may change within a step of its clock
        before = first.stamp
        assert before == second.stamp == first.stamp
        written(record, 1)
        assert before != first.stamp


def test_a_record_that_is_moved_aside_is_whole_and_leaves_its_place(record: RecordPlace) -> None:
    """The old one has another name beside it; a new one begins in its place."""
    aside = written(record).move_aside()
    assert aside is not None
    assert not record.exists()
    written(record)
    with RunReader(aside) as old, RunReader(record) as new:
        assert (old.count(), new.count()) == (8, 8)
    assert aside.remove() in (True, False)
    assert not aside.exists()


def test_a_record_that_is_removed_is_gone(record: RecordPlace) -> None:
    """Nothing of it is left, and a second removal of a run of a database does nothing."""
    assert written(record).remove()
    assert not record.exists()
    assert not record.home.exists()


def test_a_writer_that_waits_for_another_knows_it(record: RecordPlace) -> None:
    """The error of a lock that lasts is told apart from others."""
    with contextlib.closing(written(record).connect_to_write()) as first:
        lock(first)
        with contextlib.closing(record.connect_to_write()) as second:
            second.wait_at_most(0.05)
            with pytest.raises(
                (sqlite3.OperationalError, RecordError), match=r"locked|writes to it for long"
            ) as locked:
                lock(second)
            assert record.is_lock(locked.value)
        first.rollback()
    assert not record.is_lock(ValueError("another"))


def test_runs_are_listed_and_led_to(runs: RunsPlace, record: RecordPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run is in the list once it is recorded; the list knows its size, and when it changes."""
    monkeypatch.setattr(database_place, "LISTED_S", 0.0)  # a database's list is remembered for so long
    name = record.name
    assert not runs.has(name)
    assert runs.identity(name) == ()
    written(record)
    assert runs.exists
    assert runs.is_complete
    assert name in runs.names()
    assert name in runs.all_names()
    assert runs.run(name) == record
    assert runs.has(name)
    assert runs.size(name) > 0
    before = runs.identity(name), runs.stamp(name)
    written(record, 1)
    assert runs.identity(name) == before[0]
    assert runs.stamp(name) != before[1]
    assert runs.label.startswith(str(runs))
    runs.check()


@pytest.mark.parametrize("name", ["", ".hidden", "../one", "a\\b" * 100])
def test_a_name_that_no_run_can_have_is_refused(runs: RunsPlace, name: str) -> None:
    """Whoever asks for a run by its name may be a stranger."""
    with pytest.raises(RecordError, match="not a run's name"):
        runs.run(name)


def test_a_folder_whose_place_a_file_has_is_refused(tmp_path: Path) -> None:
    """It is no record that is still to come."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(RecordError, match="a folder of its path is a file"):
        has_record(tmp_path / "file")
