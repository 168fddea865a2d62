"""The SQLite file of a record: made, opened, checked, and brought up to this version."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from rewardkit.errors import RecordError
from rewardkit.record.schema import APPLICATION_ID, MIGRATIONS, TABLES, VERSION

FILE = "record.db"
"""The file's name in a run's folder."""
BUSY_S = 30.0
"""Seconds that one writer waits for another; 16 writers of one file waited for at most 3."""


def file_of(run: str | os.PathLike[str]) -> Path:
    """Return the file of a run that is named by its folder, or by the file itself."""
    path = Path(run)
    return path if path.suffix == ".db" else path / FILE


def writing(path: Path, *, threads: bool = False) -> sqlite3.Connection:
    """Return a connection for writing to a record, which is made where there is none and brought up to this version.

    Args:
        path: The file.
        threads: Whether several threads use the connection, one at a time.

    Raises:
        RecordError: The file is no record, is of a newer version, or cannot be made or written.
    """
    with _named(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.closing(_connected(path, "rwc")) as connection:
            _make(connection)
        connection = _checked(_connected(path, "rw", threads=threads), path)
        try:
            _migrate(connection)
            connection.execute(f"PRAGMA journal_mode = {'WAL' if wal_works(path.parent) else 'DELETE'}")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA cache_size = -65536")
        except BaseException:
            connection.close()
            raise
        return connection


def reading(path: Path) -> sqlite3.Connection:
    """Return a connection that can only read.

    Raises:
        RecordError: The file is missing, empty, no record, of a newer version, or of another user.
    """
    with _named(path):
        if not path.exists():
            raise RecordError(f"{path}: there is no record; `rewardkit runs` lists those that there are")
        if path.stat().st_size == 0:
            raise RecordError(f"{path}: the file is empty, and no record")
        if not os.access(path, os.R_OK):
            raise RecordError(f"{path}: another user's; this one may not read it")
        try:
            connection = _checked(_connected(path, "ro"), path)
        except sqlite3.OperationalError:
            if _log_of(path).exists():
                raise
            # A folder in which nothing can be made: SQLite wants files beside a record unless it cannot change.
            connection = _checked(_connected(path, "ro&immutable=1"), path)
        if connection.execute("PRAGMA user_version").fetchone()[0] < VERSION:
            connection.close()
            writing(path).close()
            connection = _connected(path, "ro")
        return connection


def move_aside(run: str | os.PathLike[str]) -> Path | None:
    """Give a run's record another name beside it, such as ``record-20261124-093000.db``; return it.

    Returns:
        The new place; ``None`` where there is no record.

    Raises:
        RecordError: It cannot be moved.
    """
    path = file_of(run)
    with _named(path):
        if not path.exists():
            return None
        stamp = time.strftime("%Y%m%d-%H%M%S")
        names = (f"{path.stem}-{stamp}{again}.db" for again in ("", *(f"-{number}" for number in range(2, 1000))))
        place = next(place for name in names if not (place := path.with_name(name)).exists())
        for ending in ("-wal", "-shm", "-journal", ""):  # what is not yet in the file itself lies beside it
            with contextlib.suppress(FileNotFoundError):
                path.with_name(path.name + ending).rename(place.with_name(place.name + ending))
        return place


def wal_works(folder: Path) -> bool:
    """Return whether SQLite's write-ahead log works in a folder: on a network file system its first write fails."""
    with tempfile.TemporaryDirectory(prefix=".rewardkit-probe-", dir=folder) as probe:
        try:
            with contextlib.closing(sqlite3.connect(Path(probe) / "probe.db", timeout=1.0)) as connection:
                (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
                connection.execute("CREATE TABLE probe (x)")
                connection.commit()
                return bool(mode == "wal")
        except sqlite3.Error:
            return False


def _connected(path: Path, mode: str, *, threads: bool = False) -> sqlite3.Connection:
    address = f"{path.absolute().as_uri()}?mode={mode}"
    connection = sqlite3.connect(address, uri=True, timeout=BUSY_S, isolation_level=None, check_same_thread=not threads)
    connection.row_factory = sqlite3.Row
    return connection


def _make(connection: sqlite3.Connection) -> None:
    """Make the tables of a file that has none; of two processes that try, one does."""
    if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        return
    connection.execute("BEGIN IMMEDIATE")
    if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        for statement in TABLES.split(";"):
            if statement.strip():
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")


def _checked(connection: sqlite3.Connection, path: Path) -> sqlite3.Connection:
    try:
        found = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if found != APPLICATION_ID:
            raise RecordError(f"{path}: a SQLite file, but no record of rewardkit's")
        if version > VERSION:
            raise RecordError(
                f"{path}: a record of version {version}, written by a newer release; this one reads up to {VERSION}"
            )
    except BaseException:
        connection.close()
        raise
    return connection


def _migrate(connection: sqlite3.Connection) -> None:
    while (found := connection.execute("PRAGMA user_version").fetchone()[0]) < VERSION:
        connection.executescript(f"BEGIN IMMEDIATE; {MIGRATIONS[found]}; PRAGMA user_version = {found + 1}; COMMIT")


def _log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
    """Name the file in what SQLite and the file system raise."""
    try:
        yield
    except (sqlite3.Error, OSError) as reason:
        words = {"file is not a database": "not a record: the file is no SQLite file"}.get(str(reason), str(reason))
        raise RecordError(f"{path}: {words}") from reason
