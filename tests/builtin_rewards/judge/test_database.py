"""The shared SQLite file: how it is made, refused, and left alone over a fork."""

from __future__ import annotations

import os
import pickle
import sqlite3
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builtin_rewards.judge import database as databases
from builtin_rewards.judge.database import Database, Layout, absolute, file_system
from builtin_rewards.judge.errors import JudgeSetupError

_LAYOUT = Layout("number store", "Numbers(path=...)", 0x6E756D62, 3, ("CREATE TABLE numbers (value INTEGER)",))
_MOUNTS = """\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 22 0:27 / /mnt/a\\040b rw - nfs4 host:/x rw
31 30 0:28 / /mnt/a\\040b/local rw - tmpfs tmpfs rw
32 22 0:29 / /mnt rw - autofs none rw
33 22 0:30 / /mnt rw - xfs /dev/vdb rw
"""


def _made(path: Path) -> Database:
    database = Database(path, _LAYOUT, busy_s=1.0)
    database.found()
    return database


def _journal(database: Database) -> str:
    return str(database.rows("PRAGMA journal_mode")[0][0])


def test_the_file_is_made_with_its_folder_for_its_owner_alone(tmp_path: Path) -> None:
    """Nobody else can read it, nor the files beside it."""
    path = tmp_path / "deep" / "er" / "n.db"
    _made(path).rows("INSERT INTO numbers VALUES (1)")
    assert {0o600} == {file.stat().st_mode & 0o777 for file in path.parent.iterdir()}


def test_it_uses_wal_where_that_works(tmp_path: Path) -> None:
    """So that readers do not wait for writers."""
    if file_system(tmp_path) not in ("ext4", "xfs", "tmpfs", "overlay", "btrfs"):
        pytest.skip("no local file system is known here")
    assert "wal" == _journal(_made(tmp_path / "n.db"))


def test_it_goes_without_wal_on_a_network_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hosts share no memory; it works as well, and slower."""
    monkeypatch.setattr(databases, "file_system", lambda path: "nfs4")
    database = _made(tmp_path / "n.db")
    database.rows("INSERT INTO numbers VALUES (7)")
    assert ("delete", [(7,)]) == (_journal(database), database.rows("SELECT value FROM numbers"))


def test_a_file_that_can_only_be_read_is_read_where_that_is_of_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cache is; a ledger is not, and says so."""
    database = _made(tmp_path / "n.db")
    database.rows("INSERT INTO numbers VALUES (7)")
    database.close()
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    with pytest.raises(JudgeSetupError, match=r"it can only be read.*name a writable place"):
        _made(tmp_path / "n.db")
    readable = Database(tmp_path / "n.db", replace(_LAYOUT, readable=True), busy_s=1.0)
    readable.found()
    assert [(7,)] == readable.rows("SELECT value FROM numbers")
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        readable.rows("INSERT INTO numbers VALUES (8)")


def test_several_that_make_it_at_once_find_the_same(tmp_path: Path) -> None:
    """One is made whole and put in its place; an empty file there is taken for none."""
    (tmp_path / "n.db").touch()
    made: list[Database] = []
    threads = [threading.Thread(target=lambda: made.append(_made(tmp_path / "n.db"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 8 == len(made)
    assert {"n.db"} == {file.name.removesuffix("-wal").removesuffix("-shm") for file in tmp_path.iterdir()}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param("/home/n.db", "ext4", id="root"),
        pytest.param("/mnt/a b/n.db", "nfs4", id="network, with a space in its name"),
        pytest.param("/mnt/a b/local/n.db", "tmpfs", id="the innermost mount"),
        pytest.param("/mnt/a bc/n.db", "xfs", id="the last of two on one point"),
    ],
)
def test_the_file_system_of_a_path_is_that_of_its_innermost_mount(path: str, expected: str) -> None:
    """As /proc/self/mountinfo tells it."""
    assert expected == file_system(Path(path), _MOUNTS)


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
        pytest.param(Path.mkdir, "is a folder; name a file in it", id="folder"),
        pytest.param(lambda path: path.write_bytes(b"not SQLite " * 100), "file is not a database", id="other file"),
        pytest.param(_other_database, "is no number store", id="other database"),
        pytest.param(_other_version, "format 2, .* writes format 3; .* keep this one", id="other version"),
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


@pytest.mark.parametrize("place", ["/proc/nowhere/n.db", "/dev/null/n.db", "/tmp/a\0b"], ids=repr)
def test_a_place_that_cannot_be_written_is_refused(place: str) -> None:
    """The message says to name a writable place."""
    with pytest.raises(JudgeSetupError, match="name a writable place"):
        _made(Path(place))


@pytest.mark.parametrize("path", [5, None, b"x"], ids=repr)
def test_what_is_no_path_is_refused(path: Any) -> None:
    """The message shows the value."""
    with pytest.raises(JudgeSetupError, match="expected a path"):
        absolute(path, "Numbers(path=...)")


def test_a_file_that_vanished_is_not_begun_anew(tmp_path: Path) -> None:
    """Its content would be lost without a word."""
    database = _made(tmp_path / "n.db")
    database.close()
    (tmp_path / "n.db").unlink()
    with pytest.raises(sqlite3.OperationalError):
        database.rows("SELECT value FROM numbers")


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


def test_a_fork_bears_others_that_make_databases_and_fork_meanwhile(tmp_path: Path) -> None:
    """What is done before and after a fork meets other threads that do the same, and ones that make databases."""
    failed: list[BaseException] = []
    over, path = threading.Event(), tmp_path / "n.db"

    def do(act: Callable[[], object]) -> None:
        try:
            while not over.is_set():
                act()
        except BaseException as error:
            failed.append(error)

    def fork() -> None:
        databases._before_fork()
        databases._after_fork()

    made: deque[Database] = deque(maxlen=300)
    acts = [fork, fork, *[lambda: made.append(Database(path, _LAYOUT, busy_s=1.0))] * 2]
    threads = [threading.Thread(target=do, args=(act,), daemon=True) for act in acts]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    for thread in threads:
        thread.start()
    over.wait(1.0)
    over.set()
    for thread in threads:
        thread.join(60)
    sys.setswitchinterval(before)
    assert [] == [thread for thread in threads if thread.is_alive()]
    assert [] == failed
    assert [] == databases._held


def test_it_pickles_as_its_settings(tmp_path: Path) -> None:
    """The copy opens the same file by itself."""
    database = _made(tmp_path / "n.db")
    database.rows("INSERT INTO numbers VALUES (4)")
    assert [(4,)] == pickle.loads(pickle.dumps(database)).rows("SELECT value FROM numbers")


_FORKS = """
import os, sys, threading, pathlib
from builtin_rewards.judge import database
from builtin_rewards.judge.database import Database, Layout
layout = Layout("number store", "Numbers(path=...)", 0x6e756d62, 3, ("CREATE TABLE numbers (value INTEGER)",))
database = Database(pathlib.Path(sys.argv[1]), layout, busy_s=60.0)
database.found()
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
import os, sys, pathlib
from builtin_rewards.judge import database
from builtin_rewards.judge.database import Database, Layout
layout = Layout("number store", "Numbers(path=...)", 0x6e756d62, 3, ("CREATE TABLE numbers (value INTEGER)",))
database = Database(pathlib.Path(sys.argv[1]), layout, busy_s=60.0)
database.found()
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
        [sys.executable, "-c", program, str(tmp_path / "n.db")],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=Path(__file__).parents[3],
        env={**os.environ, "PYTHONWARNINGS": "ignore::DeprecationWarning"},
        check=False,
    )
    assert (f"{expected}\n", "") == (done.stdout, done.stderr)
