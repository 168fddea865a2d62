"""The file that a writer writes to: found again where it was moved or replaced, put back where it was deleted."""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from rewardkit.errors import RecordError
from rewardkit.record.sqlite_file import BESIDE, Connection, code_of, explain, is_lock, is_record, sound

RESCUES = 5  # How often a deleted file is copied, where other processes go on writing to it meanwhile
LOCKED_S = 1.0  # Seconds that SQLite itself waits for another writer, before the thread looks whether it is to end
_OF_THE_JOB = frozenset(
    (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH,
     sqlite3.SQLITE_MISUSE, sqlite3.SQLITE_RANGE)
)  # fmt: skip
_OF_THE_COPY = frozenset(
    (sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM)
)
_log = logging.getLogger("rewardkit")


class FileTarget:
    """The record's file as its writer sees it; ``connect`` opens it in the writing thread, anew where it is gone."""

    def __init__(self, connect: Callable[[], Connection], path: Path) -> None:
        self._connect = connect
        self._path = path
        self._connection: Connection | None = None
        self._deleted: Connection | None = None
        self._identity: tuple[int, int] | None = None
        self._size = 0
        self._spoiled: tuple[int, int] | None = None  # The identity of a file that something else was written over

    def was_committed(self) -> bool:
        """Return ``False``: with a file the outcome of a transaction is always known."""
        return False

    def begin(self) -> Connection | None:
        """Begin a transaction; ``None`` where the file was deleted or replaced before this process had its lock."""
        connection = self._ready()
        connection.begin()
        if self.in_place():
            return connection
        connection.rollback()
        return None

    def commit(self) -> None:
        if self._connection is not None:
            self._connection.commit()

    def in_place(self) -> bool:
        """Return whether the open file is the one at the path; one that shrinks is looked at, and may be spoiled."""
        if self._connection is None:
            return True
        file = _state_of(self._path)
        if file.identity == self._identity and file.size < self._size and not sound(self._connection):
            self._spoiled = file.identity
        self._size = file.size
        return file.identity == self._identity != self._spoiled

    def _ready(self) -> Connection:
        """Return a connection to the file: open, put back or make it; RecordError where another was written over it."""
        if self._connection is not None and (self._connection.in_transaction or self.in_place()):
            return self._connection
        if self._connection is not None:
            self._deleted, self._connection = self._connection, None
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._deleted))  # never closed: see put_back
        if self._deleted is not None and not self._path.exists():
            self._put_back(self._deleted)
        elif self._deleted is not None and (
            not is_record(self._path) or _state_of(self._path).identity == self._spoiled
        ):
            raise RecordError(
                "the file was overwritten or cut short; take it away, and the record goes on in a new one"
            )
        connection = self._connect()
        connection.wait_at_most(LOCKED_S)
        self._connection, self._deleted, self._spoiled = connection, None, None
        self._identity, self._size = _state_of(self._path)
        return connection

    def _put_back(self, deleted: Connection) -> None:
        """Put a deleted file back in its place, unless it was only moved; log what became of it."""
        moved = _moved_to(self._path, self._identity)
        if moved is not None:
            _log.error("%s: was moved to %s; the record goes on in a new file", self._path, moved.name)
            return
        try:
            if put_back(deleted, self._path):
                _log.error("%s: was deleted while the run writes to it, and is put back", self._path)
        except sqlite3.Error as error:
            if code_of(error) in _OF_THE_COPY:
                raise
            _log.error("%s: was deleted, and cannot be put back: %s; it begins anew", self._path, error)

    def undo(self, error: Exception) -> None:
        """Roll back a failed transaction; close the connection unless a full disk or a lock was the cause."""
        connection = self._connection
        if connection is None:
            return
        connection.cache.clear()
        try:
            if connection.in_transaction:
                connection.rollback()
            is_usable = code_of(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_FULL)
        except sqlite3.Error:
            is_usable = False
        if not is_usable and self.in_place():  # of a deleted file it is all that is left
            self._connection = None
            with contextlib.suppress(sqlite3.Error):
                connection.close()

    def may_pass(self, error: Exception) -> bool:
        if isinstance(error, sqlite3.DatabaseError):
            return code_of(error) not in _OF_THE_JOB and not isinstance(error, sqlite3.ProgrammingError)
        return isinstance(error, RecordError | OSError)

    def is_lock(self, error: Exception) -> bool:
        return is_lock(error)

    def explain(self, error: Exception) -> str:
        return explain(error).removeprefix(f"{self._path}: ")

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()


def put_back(deleted: sqlite3.Connection, path: Path) -> bool:
    """Put a deleted record back in its place, from a connection that has its file open; return whether this did it.

    Whatever any process had written comes back. It is not done where another process has made the file meanwhile. The
    connection is not to be used afterwards, and is never closed: as the last one it would delete the new file's log,
    which has the name of its own. Raises sqlite3.Error and OSError where it cannot be read or written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".rewardkit-back-", dir=path.parent) as folder:
        for _ in range(RESCUES):
            (before,) = deleted.execute("PRAGMA data_version").fetchone()
            copy = Path(folder, path.name)
            with contextlib.closing(sqlite3.connect(copy)) as target:
                deleted.backup(target)
                if not sound(target):
                    raise sqlite3.DatabaseError("the deleted file is damaged")
            deleted.execute("BEGIN IMMEDIATE")
            try:
                (after,) = deleted.execute("PRAGMA data_version").fetchone()
                if after != before:
                    continue  # another process wrote to the deleted file while it was copied
                return _link(copy, path)
            finally:
                deleted.execute("ROLLBACK")
    return False


def _link(copy: Path, path: Path) -> bool:
    """Link a copy to a path, after deleting the old file's logs there; return ``False`` where the path is taken."""
    if path.exists():
        return False
    for suffix in BESIDE:
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    try:
        os.link(copy, path)  # unlike a rename it fails where another process was first
    except FileExistsError:
        return False
    return True


class _FileState(NamedTuple):
    identity: tuple[int, int] | None  # Device and inode; `None` where there is no file
    size: int


def _state_of(path: Path) -> _FileState:
    try:
        about = os.stat(path)
    except OSError:
        return _FileState(None, 0)
    return _FileState((about.st_dev, about.st_ino), about.st_size)


def _moved_to(path: Path, identity: tuple[int, int] | None) -> Path | None:
    """Return the path that a file has in the same folder now; ``None`` where the folder has it no more."""
    try:
        names = list(path.parent.iterdir())
    except OSError:
        return None
    return next((name for name in names if identity is not None and _state_of(name).identity == identity), None)
