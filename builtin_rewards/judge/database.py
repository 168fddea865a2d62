"""An SQLite file that several processes, and several threads of each, read and write.

Owns how such a file is made, refused, opened, locked and left alone over a fork. What lies in it is told by a
:class:`Layout`; what becomes of an error while it is in use is left to the cache and the ledger.
"""

from __future__ import annotations

import logging
import os
import random
import re
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from builtin_rewards.judge.errors import JudgeSetupError

_log = logging.getLogger("rewardkit")

_NETWORK = re.compile(r"nfs\d?|cifs|smb\d?|9p|afs|ceph|lustre|gpfs|beegfs|gfs2|ocfs2|fuse(?!\.fuse-overlayfs)(\..+)?")
"""File systems whose files other hosts may have open: WAL needs memory that all its users share
(https://www.sqlite.org/wal.html, "all processes using a database must be on the same host")."""
_SETUP_S = 5.0
"""A process that makes the file waits at least so long for others that make the same one."""
_AGAIN_S = (0.0002, 0.001)
"""Bounds of the wait, drawn at random, before a file that another process has locked is tried again."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What a file holds.

    Attributes:
        name: What it is called in messages: ``"judge cache"``.
        setting: The setting that names its path, for messages: ``"JudgeCache(path=...)"``.
        application_id: Tells its files from all others; kept in the file's header.
        version: The format's number. A file of another version is refused, never changed.
        schema: The statements that make its tables.
    """

    name: str
    setting: str
    application_id: int
    version: int
    schema: tuple[str, ...]


class Database:
    """One SQLite file. Pickles as its settings; each process opens a connection of its own, when it first needs it.

    One connection a process, held by a lock, so that threads take turns at it. It is closed before the process
    forks: SQLite keeps one record of locks per file and process, so a child in which a connection was open would
    take its own locks for granted, and the parent's last close would delete the log that the child writes to.

    Args:
        path: The file, absolute.
        layout: What it holds.
        busy_s: Seconds to wait for another process's transaction.
    """

    def __init__(self, path: Path, layout: Layout, *, busy_s: float) -> None:
        self.path = path
        self.layout = layout
        self.busy_s = self._wait_s = busy_s
        self._lock = threading.RLock()
        self._close: weakref.finalize[Any, Any] | None = None
        self._connection: sqlite3.Connection | None = None
        with _forking:
            _open_ones.add(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return _database, (self.path, self.layout, self.busy_s)

    def found(self) -> None:
        """Make the file if there is none, readable by its owner alone; else see that it is one of this layout.

        Raises:
            JudgeSetupError: It can neither be made nor used; the message says what helps.
        """
        layout = self.layout
        self._wait_s = max(self.busy_s, _SETUP_S)
        try:
            if self.path.is_dir():
                raise JudgeSetupError(f"{layout.setting}: {self.path} is a folder; name a file in it")
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Only where there is none: closing a second descriptor drops the locks of an open connection.
            with suppress(FileExistsError):
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
            self._recognised()
            self._set_journal()
            self._lay_out()
        except (OSError, ValueError) as error:
            raise JudgeSetupError(
                f"{layout.setting}: no {layout.name} can be made at {self.path} ({error}); name a writable place"
            ) from error
        except sqlite3.Error as error:
            raise JudgeSetupError(
                f"{layout.setting}: {self.path} cannot be used as a {layout.name} ({error}); "
                "delete it if it is one, or name another file in a writable place"
            ) from error
        finally:
            self._wait_s = self.busy_s

    def _set_journal(self) -> None:
        """Turn on WAL, in which readers and a writer do not wait for each other; keep to DELETE where it cannot be."""
        system = file_system(self.path)
        why = f"it lies on a network file system, {system}" if _NETWORK.fullmatch(system) else self._try_wal()
        if why:
            self._go_without_wal()
            _log.warning(
                "the %s %s works without SQLite's WAL (%s): slower where many processes share it; a local disk helps",
                self.layout.name,
                self.path,
                why,
            )

    def _try_wal(self) -> str:
        """Turn on WAL and say why it does not work; empty if it does."""
        try:
            mode = self.rows("PRAGMA journal_mode=WAL")[0][0]
            with self.transaction():  # what WAL lacks shows when it writes
                return "" if mode == "wal" else f"SQLite keeps to {mode}"
        except sqlite3.OperationalError as error:
            return str(error)

    def _go_without_wal(self) -> None:
        # Only a connection that never shared memory can unmark a file that is marked for WAL where WAL does not work.
        self.close()
        with closing(self._connected()) as connection:
            self._run(connection, "PRAGMA locking_mode=EXCLUSIVE")
            self._run(connection, "PRAGMA journal_mode=DELETE")

    def _recognised(self) -> bool:
        """Whether it is laid out; a file of another kind or version is refused before anything in it is changed."""
        layout = self.layout
        if not self.rows("SELECT count(*) FROM sqlite_master")[0][0]:
            return False
        if self.rows("PRAGMA application_id")[0][0] != layout.application_id:
            raise JudgeSetupError(
                f"{layout.setting}: {self.path} is no {layout.name} but another database; name another file"
            )
        version = self.rows("PRAGMA user_version")[0][0]
        if version != layout.version:
            raise JudgeSetupError(
                f"{layout.setting}: {self.path} is a {layout.name} of format {version}, this release writes "
                f"format {layout.version}; delete it or name another file"
            )
        return True

    def _lay_out(self) -> None:
        with self.transaction() as connection:
            if not self._recognised():
                for statement in self.layout.schema:
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id={self.layout.application_id}")
            # Written also where nothing is to be made, so that a file that cannot be written is found out here.
            connection.execute(f"PRAGMA user_version={self.layout.version}")

    @property
    def journal(self) -> str:
        """How it is kept whole: ``"wal"`` or ``"delete"``."""
        return str(self.rows("PRAGMA journal_mode")[0][0])

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Hold the write lock: what is read here stays true until it is left, then all is written, or nothing.

        Raises:
            sqlite3.Error: It cannot be read or written; the connection is closed, the next use opens another.
        """
        with self._held() as connection:
            self._run(connection, "BEGIN IMMEDIATE")
            try:
                yield connection
                self._run(connection, "COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """Run one statement by itself and give its rows.

        Raises:
            sqlite3.Error: As :meth:`transaction`.
        """
        with self._held() as connection:
            return self._run(connection, statement, values)

    def _run(self, connection: sqlite3.Connection, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """Run a statement, again and again while another process is in its way.

        SQLite's own waiting backs off to 100 ms and starves the one that waits longest: with four processes that do
        nothing but write, the longest wait was 1.3 s, and is 0.07 s so.
        """
        give_up = time.monotonic() + self._wait_s
        while True:
            try:
                return connection.execute(statement, values).fetchall()
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > give_up:
                    raise
                time.sleep(random.uniform(*_AGAIN_S))  # noqa: S311

    @contextmanager
    def _held(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                yield self._connection or self._open()
            except sqlite3.Error:
                self.close()
                raise

    def _connected(self) -> sqlite3.Connection:
        # "rw" makes no file: one that vanished is not silently begun anew.
        return sqlite3.connect(
            f"file:{quote(str(self.path))}?mode=rw",
            uri=True,
            timeout=0,
            isolation_level=None,
            check_same_thread=False,
        )

    def _open(self) -> sqlite3.Connection:
        self._connection = connection = self._connected()
        self._close = weakref.finalize(self, connection.close)
        # A crash of the process loses nothing; a crash of the machine may lose the last transactions of WAL.
        self._run(connection, "PRAGMA synchronous=NORMAL")
        return connection

    def close(self) -> None:
        """Close this process's connection; the next use opens another."""
        with self._lock:
            if self._close is not None:
                self._close()
            self._connection = self._close = None


def _database(path: Path, layout: Layout, busy_s: float) -> Database:
    return Database(path, layout, busy_s=busy_s)


def file_system(path: Path, mounts: str | None = None) -> str:
    """The type of the file system that a file lies on, as ``/proc/self/mountinfo`` names it; empty if unknown.

    Args:
        path: The file; it need not exist.
        mounts: The text of ``/proc/self/mountinfo``; read if ``None``.
    """
    if mounts is None:
        try:
            mounts = Path("/proc/self/mountinfo").read_text(errors="surrogateescape")
        except OSError:
            return ""
    real, best, found = os.path.realpath(path), -1, ""
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        point = re.sub(r"\\(\d{3})", lambda octal: chr(int(octal[1], 8)), left.split(" ")[4])
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= best:  # the last of several mounts on one point hides the others
            best, found = len(point), right.split(" ")[0]
    return found


def absolute(path: str | os.PathLike[str], setting: str) -> Path:
    """The path from the root, so that it means the same in every process.

    Raises:
        JudgeSetupError: It is no path.
    """
    try:
        return Path(path).expanduser().absolute()
    except (TypeError, RuntimeError) as error:
        raise JudgeSetupError(f"{setting}: expected a path, got {path!r}") from error


_open_ones: weakref.WeakSet[Database] = weakref.WeakSet()
_held: list[Database] = []
_forking = threading.Lock()
"""Protects both: other threads make databases, and fork too."""


def _before_fork() -> None:
    _forking.acquire()
    for database in list(_open_ones):
        database._lock.acquire()
        _held.append(database)
        database.close()


def _after_fork() -> None:
    while _held:
        _held.pop()._lock.release()
    _forking.release()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
