"""An SQLite file that several processes, and several threads of each, read and write.

Owns how such a file is made, refused, opened and left alone over a fork. What lies in it is told by a :class:`Layout`;
what becomes of an error while it is in use is left to the cache and the ledger.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from builtin_rewards.judge.errors import JudgeSetupError

_NETWORK = ("nfs", "cifs", "smb", "9p", "afs", "ceph", "lustre", "gpfs", "beegfs", "gfs2", "ocfs2", "fuse")
"""What the names of file systems begin with whose files other hosts may have open: WAL needs memory that all its users
share (https://www.sqlite.org/wal.html, "all processes using a database must be on the same host")."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What a file holds.

    Attributes:
        name: What it is called in messages: ``"judge cache"``.
        setting: The setting that names its path, for messages: ``"JudgeCache(path=...)"``.
        application_id: Tells its files from all others; kept in the file's header.
        version: The format's number. A file of another version is refused, never changed.
        schema: The statements that make its tables.
        readable: Whether one that can only be read is of use.
    """

    name: str
    setting: str
    application_id: int
    version: int
    schema: tuple[str, ...]
    readable: bool = False


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
        self.busy_s = busy_s
        self._lock = threading.RLock()
        self._close: weakref.finalize[Any, Any] | None = None
        self._connection: sqlite3.Connection | None = None
        with _forking:
            _open_ones.add(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return _database, (self.path, self.layout, self.busy_s)

    @property
    def is_read_only(self) -> bool:
        """Whether it can be read and not written."""
        return not (os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK))

    def found(self) -> None:
        """Make the file if there is none, readable by its owner alone; else see that it is one of this layout.

        Raises:
            JudgeSetupError: It can neither be made nor used; the message says what helps.
        """
        setting, name = self.layout.setting, self.layout.name
        try:
            if self.path.is_dir():
                raise JudgeSetupError(f"{setting}: {self.path} is a folder; name a file in it")
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if not self.path.exists() or not self.path.stat().st_size:
                self._make()
            self._check()
        except (OSError, ValueError) as error:
            words = f"no {name} can be made at {self.path} ({error})"
            raise JudgeSetupError(f"{setting}: {words}; name a writable place") from error
        except sqlite3.Error as error:
            words = f"{self.path} cannot be used as a {name} ({error})"
            raise JudgeSetupError(
                f"{setting}: {words}; name another file in a writable place, and keep this"
            ) from error

    def _make(self) -> None:
        """Make it beside its place and put it there whole, so that of several that make it all find the same one."""
        beside = self.path.with_name(f"{self.path.name}.{os.getpid()}-{threading.get_ident()}")
        try:
            os.close(os.open(beside, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
            with closing(sqlite3.connect(beside, isolation_level=None)) as connection:
                for statement in (
                    *self.layout.schema,
                    f"PRAGMA application_id={self.layout.application_id}",
                    f"PRAGMA user_version={self.layout.version}",
                ):
                    connection.execute(statement)
                if not file_system(self.path).startswith(_NETWORK):
                    connection.execute("PRAGMA journal_mode=WAL")  # kept in the file, where it works
            if self.path.exists() and not self.path.stat().st_size:
                os.replace(beside, self.path)
            else:
                with suppress(FileExistsError):
                    os.link(beside, self.path)
        finally:
            for end in ("", "-wal", "-shm"):
                Path(f"{beside}{end}").unlink(missing_ok=True)

    def _check(self) -> None:
        """Refuse a file of another kind or version, or one that cannot be written where it must be."""
        layout = self.layout
        if self.is_read_only and not layout.readable:
            raise PermissionError("it can only be read")
        if self.rows("PRAGMA application_id")[0][0] != layout.application_id:
            raise JudgeSetupError(
                f"{layout.setting}: {self.path} is no {layout.name} but another database; name another file"
            )
        version = self.rows("PRAGMA user_version")[0][0]
        if version != layout.version:
            raise JudgeSetupError(
                f"{layout.setting}: {self.path} is a {layout.name} of format {version}, this release reads and writes "
                f"format {layout.version}; name another file, and keep this one for its release"
            )

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Hold the write lock: what is read here stays true until it is left, then all is written, or nothing.

        Raises:
            sqlite3.Error: It cannot be read or written; the connection is closed, the next use opens another.
        """
        with self._held() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
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
            return connection.execute(statement, values).fetchall()

    @contextmanager
    def _held(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                yield self._connection or self._open()
            except sqlite3.Error:
                self.close()
                raise

    def _open(self) -> sqlite3.Connection:
        # "rw" makes no file: one that vanished is not silently begun anew. One that cannot be written has no log.
        mode = "mode=ro&immutable=1" if self.is_read_only and self.layout.readable else "mode=rw"
        self._connection = connection = sqlite3.connect(
            f"file:{quote(str(self.path))}?{mode}",
            uri=True,
            timeout=self.busy_s,
            isolation_level=None,
            check_same_thread=False,
        )
        self._close = weakref.finalize(self, connection.close)
        # A crash of the process loses nothing; a crash of the machine may lose the last transactions of WAL.
        connection.execute("PRAGMA synchronous=NORMAL")
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
    parents = {str(parent): depth for depth, parent in enumerate(reversed(Path(os.path.realpath(path)).parents))}
    best, found = -1, ""
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        depth = parents.get(left.split(" ")[4].replace("\\040", " "), -1)
        if depth >= max(best, 0):  # the last of several mounts on one point hides the others
            best, found = depth, right.split(" ")[0]
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
