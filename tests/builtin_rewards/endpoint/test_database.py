"""The shared SQLite file: how it is made, refused, and left alone over a fork."""

from __future__ import annotations

import gc
import os
import pickle
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from builtin_rewards.endpoint import database as databases
from builtin_rewards.endpoint.database import Database
from builtin_rewards.endpoint.errors import JudgeSetupError


class Numbers(Database):
    """A file of numbers."""

    setting = "Numbers(path=...)"
    application_id = 0x6E756D62
    version = 3
    schema = ("CREATE TABLE numbers (value INTEGER)",)
    busy_s = 60.0


class ReadableNumbers(Numbers):
    """One that is of use where it can only be read."""

    readable = True


def _made(path: Path) -> Numbers:
    database = Numbers(path)
    database.set_up()
    return database


def test_the_file_is_made_when_it_is_needed_for_its_owner_alone(tmp_path: Path) -> None:
    """With its folder, and not by the settings; nobody else can read it, nor the files beside it."""
    path = tmp_path / "deep" / "er" / "n.db"
    database = Numbers(path)
    assert not path.parent.exists()
    database.rows("INSERT INTO numbers VALUES (1)")
    assert {0o600} == {file.stat().st_mode & 0o777 for file in path.parent.iterdir()}


@pytest.mark.parametrize(("networks", "journal"), [(("nfs",), "wal"), (("",), "delete")], ids=["local", "shared"])
def test_it_logs_ahead_but_where_other_hosts_may_open_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, networks: tuple[str, ...], journal: str
) -> None:
    """Readers then do not wait for writers; hosts share no memory, so there it works as well, and slower."""
    monkeypatch.setattr(databases, "_NETWORK", networks)
    database = _made(tmp_path / "n.db")
    database.rows("INSERT INTO numbers VALUES (7)")
    assert [(journal,), (7,)] == [*database.rows("PRAGMA journal_mode"), *database.rows("SELECT value FROM numbers")]


def test_a_file_that_can_only_be_read_is_read_where_that_is_of_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cache is; a ledger is not, and says so."""
    database = _made(tmp_path / "n.db")
    database.rows("INSERT INTO numbers VALUES (7)")
    database.close()
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    with pytest.raises(JudgeSetupError, match=r"it can only be read.*name a file in a writable place"):
        _made(tmp_path / "n.db")
    readable = ReadableNumbers(tmp_path / "n.db")
    assert [(7,)] == readable.rows("SELECT value FROM numbers")
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        readable.rows("INSERT INTO numbers VALUES (8)")


def test_several_that_make_it_at_once_find_the_same(tmp_path: Path) -> None:
    """One fills it; an empty file there is taken for none, and nothing is left beside it."""
    (tmp_path / "n.db").touch()

    def write() -> None:
        _made(tmp_path / "n.db").rows("INSERT INTO numbers VALUES (1)")

    threads = [threading.Thread(target=write) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [(8,)] == _made(tmp_path / "n.db").rows("SELECT count(*) FROM numbers")
    assert {"n.db"} == {file.name.removesuffix("-wal").removesuffix("-shm") for file in tmp_path.iterdir()}


def _other_database(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE theirs (x)")
    connection.close()


def _other_version(path: Path) -> None:
    database = _made(path)
    database.rows("PRAGMA user_version=2")
    database.close()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        pytest.param(Path.mkdir, "unable to open database file.*name a file", id="folder"),
        pytest.param(lambda path: path.write_bytes(b"not SQLite " * 100), "file is not a database", id="other file"),
        pytest.param(_other_database, "is a database of another kind", id="other database"),
        pytest.param(_other_version, "has format 2, .* writes format 3; .* keep this one", id="other version"),
    ],
)
def test_what_is_no_such_file_is_refused_and_left_as_it_is(
    tmp_path: Path, make: Callable[[Path], Any], words: str
) -> None:
    """The message names the setting, the file and what helps."""
    path = tmp_path / "n.db"
    make(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(JudgeSetupError, match=rf"Numbers\(path=\.\.\.\): .*{words}") as caught:
        _made(path)
    assert str(path) in str(caught.value)
    assert before == (path.read_bytes() if path.is_file() else None)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        *(
            (place, "name a file in a writable place")
            for place in ("/proc/nowhere/n.db", "/dev/null/n.db", "/tmp/a\0b")
        ),
        *((path, "expected a path") for path in (5, b"x")),
    ],
    ids=repr,
)
def test_a_place_that_is_none_or_cannot_be_written_is_refused(path: Any, words: str) -> None:
    """The message says what to name."""
    with pytest.raises(JudgeSetupError, match=words):
        _made(path)


def test_a_file_that_vanished_is_not_begun_anew(tmp_path: Path) -> None:
    """Its content would be lost without a word; neither by a copy that another process was given."""
    database = _made(tmp_path / "n.db")
    database.rows("INSERT INTO numbers VALUES (4)")
    copy = pickle.loads(pickle.dumps(database))
    assert [(4,)] == copy.rows("SELECT value FROM numbers")
    for one in (database, copy):
        one.close()
    (tmp_path / "n.db").unlink()
    for one in (database, copy):
        with pytest.raises(sqlite3.OperationalError):
            one.rows("SELECT value FROM numbers")


def test_a_transaction_that_fails_writes_nothing(tmp_path: Path) -> None:
    """And the next one works."""
    database = _made(tmp_path / "n.db")

    def half() -> None:
        with database.transaction() as connection:
            connection.execute("INSERT INTO numbers VALUES (1)")
            raise KeyError

    with pytest.raises(KeyError):
        half()
    with database.transaction() as connection:
        connection.execute("INSERT INTO numbers VALUES (2)")
    assert [(2,)] == database.rows("SELECT value FROM numbers")


def test_a_connection_that_was_closed_is_let_go(tmp_path: Path) -> None:
    """A process that forks often opens one again each time, and keeps none of those before."""
    database = _made(tmp_path / "n.db")
    connections = []
    for _ in range(5):
        database.rows("SELECT 1")
        connections.append(database._connection)
        database.close()
    for one in connections:
        assert isinstance(one, sqlite3.Connection)
        assert [] == [held for held in gc.get_referrers(one) if held is not connections and isinstance(held, dict)]


def test_threads_take_turns(tmp_path: Path) -> None:
    """Each reads what it then writes, with nothing between."""
    database = _made(tmp_path / "n.db")

    def count() -> None:
        for _ in range(20):
            with database.transaction() as connection:
                ((number,),) = connection.execute("SELECT count(*) FROM numbers")
                connection.execute("INSERT INTO numbers VALUES (?)", (number,))

    threads = [threading.Thread(target=count) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [(number,) for number in range(160)] == database.rows("SELECT value FROM numbers ORDER BY value")


_OPENS = """
import os, sys, threading
from builtin_rewards.endpoint.database import Database

class Numbers(Database):
    setting, application_id, version, busy_s = "Numbers(path=...)", 0x6E756D62, 3, 60.0
    schema = ("CREATE TABLE numbers (value INTEGER)",)

database = Numbers(sys.argv[1])
"""
_FORKS = """
database.set_up()
stop = threading.Event()
def write():
    while not stop.wait(0.001):
        database.rows("INSERT INTO numbers VALUES (0)")
thread = threading.Thread(target=write)
thread.start()
children = []
for child in range(1, 6):
    pid = os.fork()
    if pid == 0:
        for _ in range(20):
            database.rows("INSERT INTO numbers VALUES (?)", (child,))
        os._exit(0)
    children.append(pid)
stop.set()
thread.join()
database.close()
for pid in children:
    assert os.waitpid(pid, 0)[1] == 0
print(database.rows("SELECT value, count(*) FROM numbers WHERE value > 0 GROUP BY value"))
"""
_FORKS_ONCE = """
database.rows("INSERT INTO numbers VALUES (1)")
wrote, closed = os.pipe(), os.pipe()
pid = os.fork()
if pid == 0:
    database.rows("INSERT INTO numbers VALUES (2)")
    os.write(wrote[1], b"x")
    os.read(closed[0], 1)
    database.rows("INSERT INTO numbers VALUES (3)")
    os._exit(0)
os.read(wrote[0], 1)
database.close()
os.write(closed[1], b"x")
os.waitpid(pid, 0)
print(database.rows("SELECT value FROM numbers"))
"""


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        pytest.param(_FORKS_ONCE, [(1,), (2,), (3,)], id="the parent closes first"),
        pytest.param(_FORKS, [(child, 20) for child in range(1, 6)], id="a thread writes meanwhile"),
    ],
)
def test_nothing_is_lost_where_a_process_forks(tmp_path: Path, program: str, expected: list[Any]) -> None:
    """What a child has committed is there when it and its parent have closed."""
    done = subprocess.run(
        [sys.executable, "-c", _OPENS + program, str(tmp_path / "n.db")],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=Path(__file__).parents[3],
        env={**os.environ, "PYTHONWARNINGS": "ignore::DeprecationWarning"},
        check=False,
    )
    assert (f"{expected}\n", "") == (done.stdout, done.stderr)
