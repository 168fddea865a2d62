"""An SQLite file for several processes with several threads: how it is made, refused, opened, and closed for a fork."""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

from builtin_rewards.endpoint.errors import JudgeSetupError
from sandbox import folders, local_ranks

_FOLDERS = "rewardkit-database-"
_SET_UP_S = 60.0  # to wait for another process that makes the same file
_HEADER = "SELECT * FROM pragma_application_id, pragma_user_version"
# What the names of file systems begin with whose files other hosts may have open. WAL needs memory that all its users
# share (https://www.sqlite.org/wal.html, "all processes using a database must be on the same host").
_NETWORK = ("nfs", "cifs", "smb", "9p", "afs", "ceph", "lustre", "gpfs", "beegfs", "gfs2", "ocfs2", "fuse")


class Database:
    """One SQLite file, made at its first use, when it is pickled, or by :meth:`set_up`. Threads take turns.

    A subclass says what the file holds. A database that has seen its file never makes it anew, nor do its pickled
    copies, so that the loss of a file is noticed. Without a path it is in a private folder, which processes of one
    training on a host share for a ``purpose`` (see :func:`_shared_file`) and which goes when its maker exits. Raises
    JudgeSetupError where ``path`` is no path or the first use fails; later uses raise sqlite3.Error.
    """

    setting: ClassVar[str]  # The setting that names its path, for messages: `"JudgeCache(path=...)"`
    application_id: ClassVar[int]  # Tells its files from all others; kept in the file's header
    version: ClassVar[int]  # The format's number, in the header too. A file of another is refused, never changed.
    schema: ClassVar[tuple[str, ...]]  # The statements that make its tables
    busy_s: ClassVar[float]  # Seconds to wait for another process's transaction
    readable: ClassVar[bool] = False  # Whether a file that can only be read is of use

    def __init__(self, path: str | os.PathLike[str] | None, purpose: str = "") -> None:
        self._made = False
        self._purpose = purpose
        self._connection: sqlite3.Connection | None = None
        self._end: Callable[[], object] | None = None
        try:
            self.is_private = path is None
            self._path = None if path is None else Path(path).expanduser().absolute()
        except (TypeError, RuntimeError) as error:
            raise JudgeSetupError(f"{self.setting}: expected a path, got {path!r}") from error
        with _lock:
            if path is None:
                number = _private[purpose] = _private.get(purpose, 0) + 1
                self._purpose = f"{purpose}-{number}"
            _all.add(self)

    def __getstate__(self) -> dict[str, Any]:
        self.set_up()
        return {**vars(self), "_connection": None, "_end": None}

    @property
    def path(self) -> Path:
        """The file's absolute path, the same in every process."""
        with _lock:
            if self._path is None:
                self._path = _private_file() if local_ranks() == 1 else _shared_file(self._purpose)
            return self._path

    @property
    def is_read_only(self) -> bool:
        return not (os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK))

    def set_up(self) -> None:
        """Make the file once, readable by its owner alone, or raise JudgeSetupError for a wrong one."""
        with _lock:
            if self._made:
                return
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                with suppress(FileExistsError):
                    os.mknod(self.path, 0o600)  # to open and close it would end SQLite's locks on it
                if self.is_read_only and not self.readable:
                    raise PermissionError("it can only be read")
                with closing(self._connect(_SET_UP_S)) as connection:
                    self._fill(connection)
            except (OSError, ValueError, sqlite3.Error) as error:
                problem = f"{self.path} can neither be made nor used ({error}); name a file in a writable place"
                raise JudgeSetupError(f"{self.setting}: {problem}") from error
            self._made = True

    def _fill(self, connection: sqlite3.Connection) -> None:
        """Fill an empty file, refuse one of another kind or version, and turn on write-ahead logging if that works."""
        if not self.path.stat().st_size:
            with connection:
                connection.execute("BEGIN IMMEDIATE")
                if connection.execute(_HEADER).fetchone() == (0, 0):  # of several processes the first fills it
                    for statement in self.schema:
                        connection.execute(statement)
                    connection.execute(f"PRAGMA application_id={self.application_id}")
                    connection.execute(f"PRAGMA user_version={self.version}")
        kind, version = connection.execute(_HEADER).fetchone()
        if (kind, version) != (self.application_id, self.version):
            problem = f"has format {version}" if kind == self.application_id else "is a database of another kind"
            raise JudgeSetupError(
                f"{self.setting}: {self.path} {problem}, this release reads and writes format {self.version}; name "
                "another file, and keep this one for its release"
            )
        if not self.is_read_only and not _on_network(self.path.parent):
            with suppress(sqlite3.OperationalError):  # in use: it works without, and the next one tries again
                connection.execute("PRAGMA journal_mode=WAL")

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Hold the write lock over a block, which is written as a whole or not at all."""
        with _lock, self._connected() as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        with _lock:
            return self._connected().execute(statement, values).fetchall()

    def close(self) -> None:
        """Close this process's connection; the next use opens another."""
        with _lock:
            if self._end is not None:
                self._end()
            self._connection = self._end = None

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            self.set_up()
            self._connection = self._connect(self.busy_s)
            self._end = weakref.finalize(self, self._connection.close)
            _all.add(self)
        return self._connection

    def _connect(self, busy_s: float) -> sqlite3.Connection:
        # "rw" makes no file. One that cannot be written has no log, and none can be made beside it.
        mode = "ro&immutable=1" if self.is_read_only else "rw"
        address = f"file:{quote(str(self.path))}?mode={mode}"
        connection = sqlite3.connect(address, timeout=busy_s, isolation_level=None, check_same_thread=False, uri=True)
        try:  # a crash of the process loses nothing; one of the machine may lose the last transactions of WAL
            connection.execute("PRAGMA synchronous=NORMAL")
        except sqlite3.Error:
            connection.close()
            raise
        return connection


def _on_network(folder: Path) -> bool:
    """Return whether other hosts may open files of this folder."""
    device = folder.stat().st_dev
    number = f" {os.major(device)}:{os.minor(device)} "
    mounts = Path("/proc/self/mountinfo").read_text(errors="surrogateescape").splitlines()
    return any(number in mount and mount.partition(" - ")[2].startswith(_NETWORK) for mount in mounts)


def _private_file() -> Path:
    """Return a file in a new folder, which this process removes when it exits."""
    folders.sweep(_FOLDERS)
    folder, maker = folders.make(_FOLDERS), os.getpid()

    @atexit.register
    def remove() -> None:
        if os.getpid() == maker:  # and not a forked child, which inherits this
            shutil.rmtree(folder, ignore_errors=True)

    return Path(folder, "private.db")


def _shared_file(purpose: str) -> Path:
    """Return the file that a training's processes on this host share, one for each purpose.

    Their launcher, such as torchrun, is the parent of all; what it restarts goes on with the file. No process knows
    whether it is the last, so the next that makes such a folder once the launcher has ended removes it.
    """
    launcher = os.getppid()
    begun = Path(f"/proc/{launcher}/stat").read_text().rpartition(")")[2].split()[19]  # field 22, see proc_pid_stat(5)
    run = os.environ.get("TORCHELASTIC_RUN_ID") or os.environ.get("MASTER_PORT", "")
    folders.sweep(_FOLDERS)
    name = hashlib.blake2b(f"{begun} {run} {purpose}".encode(), digest_size=8).hexdigest()
    return Path(folders.shared(_FOLDERS, launcher, name), "private.db")


_private: dict[str, int] = {}  # private files so far, by purpose: all processes of a training ask for the same
_all: weakref.WeakSet[Database] = weakref.WeakSet()
_lock = threading.RLock()  # held by whoever uses a connection or the set, or forks


def _before_fork() -> None:
    """Close all connections and choose private files' paths, which the child shares; SQLite's locks are by process."""
    _lock.acquire()
    for database in list(_all):
        database.close()  # else the child has the parent's locks, and the parent's last close deletes the child's log
        _ = database.path


os.register_at_fork(before=_before_fork, after_in_parent=_lock.release, after_in_child=_lock.release)
