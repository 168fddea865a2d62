"""The SQLite file of a record: made, opened, checked, brought up to this version, and put back where it was deleted."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rewardkit.errors import RecordError
from rewardkit.record.dialect import later_tables, statements
from rewardkit.record.schema import APPLICATION_ID, MIGRATIONS, TABLES, VERSION
from rewardkit.record.soundness import unsound
from rewardkit.record.store import Values

FILE = "record.db"  # The file's name in a run's folder
BESIDE = ("-wal", "-shm", "-journal")  # What SQLite adds to a record's name for its own files
BUSY_S = 30.0  # Seconds that one writer waits for another; 16 writers of one file waited for at most 3
CHECKPOINT_PAGES = 4000  # Pages of the write-ahead log after which it is copied into the file: 16 MB
LARGEST_VALUE = 2**29  # Bytes of one value of a file, at most
_DAMAGED = "damaged: the file is cut short, or something else has written to it"
_EXPLANATIONS = {
    "interrupted": "the answer takes too long; the file is damaged, or there is too much in it for this question",
    "file is not a database": "not a record: the file is not an SQLite file",
    "database disk image is malformed": _DAMAGED,
    "attempt to write a readonly database": "can be read and not written: another user's, or a read-only disk",
    "unable to open database file": "the file cannot be opened; it may be another user's, or its folder not writable",
}
_STEPS = 100_000  # Steps of SQLite's machine between two looks at the clock


class Connection(sqlite3.Connection):
    """A connection to a file, with what :class:`~rewardkit.record.store.RecordConnection` asks for."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.cache: dict[str, Any] = {}

    @property
    def is_alone(self) -> bool:
        """Whether a transaction is open: SQLite lets one write at a time, from its beginning."""
        return self.in_transaction

    @property
    def stamp(self) -> int:
        return int(self.execute("PRAGMA data_version").fetchone()[0])

    def tuples(self, query: str, values: Values = (), /) -> list[tuple[Any, ...]]:
        cursor = self.cursor()
        cursor.row_factory = None
        return cursor.execute(query, values).fetchall()

    def begin(self) -> None:
        self.execute("BEGIN IMMEDIATE")

    def alone(self) -> None:
        """Do nothing: a transaction is alone from its beginning."""

    def make(self, script: str) -> None:
        _run(self, script)

    def has_table(self, name: str) -> bool:
        query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
        return self.execute(query, (name,)).fetchone() is not None

    def reserve(self, table: str, count: int) -> range:
        if table == "completion":  # the numbers of completions that were taken away are not given again
            last = self.execute("SELECT seq FROM sqlite_sequence WHERE name = 'completion'").fetchone()
        else:
            last = self.execute(f"SELECT max(id) FROM {table}").fetchone()  # noqa: S608 - a table of ours
        first = 1 if last is None or last[0] is None else int(last[0]) + 1
        return range(first, first + count)

    def insert(self, table: str, row: Mapping[str, Any]) -> int:
        marks = ", ".join("?" * len(row))
        statement = f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})"  # noqa: S608 - names of ours
        return self.execute(statement, tuple(row.values())).lastrowid or 0

    def insert_all(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        if rows:
            self.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)  # noqa: S608 - ours

    def insert_batch(self, row: Mapping[str, Any], count: int) -> tuple[int, Sequence[int]]:
        return self.insert("batch", row), self.reserve("completion", count)

    def change_all(self, statement: str, rows: Sequence[Sequence[Any]], /) -> None:
        self.executemany(statement, rows)

    def wait_at_most(self, seconds: float) -> None:
        self.execute(f"PRAGMA busy_timeout = {round(1000 * seconds)}")

    def end_questions(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        self.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)

    def remember(self, size: int) -> None:
        self.execute(f"PRAGMA cache_size = -{int(size) // 1024}")

    def unsound(self) -> str | None:
        return unsound(self)


def file_of(run: str | os.PathLike[str]) -> Path:
    """Return the file of a run, named by its folder or the file; RecordError where the name is empty or has a NUL."""
    path = Path(run)
    if not os.fspath(run) or "\x00" in str(path):
        raise RecordError(f"run {str(run)[:60]!r}: expected a run's folder, such as 'runs/one'")
    return path if path.suffix == ".db" else path / FILE


def explain(error: Exception) -> str:
    """Return the message of an error of SQLite or the file system, in words that a user can act on."""
    if isinstance(error, PermissionError):
        return "another user's; this one may not read it, or write there"
    if isinstance(error, FileExistsError | NotADirectoryError):
        return "a folder of its path is a file; give another place"
    if isinstance(error, OSError):
        return f"{error.strerror or error}"
    message = str(error)
    if isinstance(error, UnicodeDecodeError) or message.startswith(("malformed database schema", "Could not decode")):
        return _DAMAGED  # SQLite's message shows the bytes of a text that it cannot decode, line breaks included
    return _EXPLANATIONS.get(message, message)


@contextlib.contextmanager
def errors_of(path: Path) -> Iterator[None]:
    """Raise errors of SQLite and of the file system as RecordErrors that name the file."""
    try:
        yield
    except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
        raise RecordError(f"{path}: {explain(error)}") from error


def connect_to_write(path: Path, *, threads: bool = False) -> Connection:
    """Return a connection for writing to a record, which is made if it is missing and brought up to this version.

    With ``threads`` several threads may use it, one at a time. Raises RecordError where the file is not a record, is of
    a newer version, or cannot be made or written.
    """
    with errors_of(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.closing(_open_file(path, "rwc")) as connection:
            _make(connection)
        connection = _verify(_open_file(path, "rw", threads=threads), path)
        try:
            _migrate(connection)
            _add_later_tables(connection)
            _enable_log(connection, path.parent)
            connection.execute("PRAGMA synchronous = NORMAL")  # a lost machine costs the last steps at most
            connection.execute("PRAGMA cache_size = -65536")
            connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        except BaseException:
            connection.close()
            raise
        return connection


def connect_to_read(path: Path) -> Connection:
    """Return a connection that can only read; RecordError where this user or release can read no record there.

    A record of an older release is first brought up to this version, for which it must be writable.
    """
    with errors_of(path):
        _check_readable(path)
        try:
            connection = _verify(_open_file(path, "ro"), path)
        except sqlite3.OperationalError:
            if log_of(path).exists():
                raise
            # A folder in which nothing can be made: SQLite wants files beside a record unless it cannot change.
            connection = _verify(_open_file(path, "ro&immutable=1"), path)
        try:
            if connection.execute("PRAGMA user_version").fetchone()[0] < VERSION:
                connection.close()
                connect_to_write(path).close()
                connection = _open_file(path, "ro")
            connection.execute("PRAGMA cache_size = -32768")
        except BaseException:
            connection.close()
            raise
        return connection


def _check_readable(path: Path) -> None:
    if not path.exists():
        raise RecordError(f"{path}: there is no record; `rewardkit runs` lists those that there are")
    if path.stat().st_size == 0:
        raise RecordError(f"{path}: not a record: the file is empty")
    if not os.access(path, os.R_OK, effective_ids=os.access in os.supports_effective_ids):
        raise RecordError(f"{path}: another user's; this one may not read it; ask its owner for read permission")


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


def sound(connection: sqlite3.Connection) -> bool:
    """Return whether the pages of a file are consistent."""
    try:
        return bool(connection.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok")
    except sqlite3.DatabaseError:
        return False


def code_of(error: BaseException) -> int:
    """Return SQLite's code of an error, without its details; -1 for an error without a code."""
    code = getattr(error, "sqlite_errorcode", None)
    return -1 if code is None else int(code) & 0xFF


def is_lock(error: BaseException) -> bool:
    """Return whether another writer kept the file locked beyond the time to wait."""
    return code_of(error) == sqlite3.SQLITE_BUSY


def is_record(path: Path) -> bool:
    """Return whether a file begins as a record does; into another SQLite would mix the log of the one before it."""
    try:
        with path.open("rb") as file:
            head = file.read(72)
    except OSError:
        return False
    return head.startswith(b"SQLite format 3\x00") and int.from_bytes(head[68:], "big") == APPLICATION_ID


_COMPUTED = (
    "SELECT 1 FROM sqlite_master LEFT JOIN pragma_table_xinfo(sqlite_master.name) AS part"
    " ON sqlite_master.type = 'table'"
    " WHERE sqlite_master.type IN ('view', 'trigger') OR rootpage = 0 OR part.hidden <> 0 LIMIT 1"
)
"""What would make reading a file somebody else's program: a view that never ends, a virtual table, a trigger."""


def _open_file(path: Path, mode: str, *, threads: bool = False) -> Connection:
    address = f"{path.absolute().as_uri()}?mode={mode}"
    connection = sqlite3.connect(
        address, uri=True, timeout=BUSY_S, isolation_level=None, factory=Connection, check_same_thread=not threads
    )
    connection.row_factory = sqlite3.Row
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST_VALUE)  # a crafted file may claim a huge value
    connection.execute("PRAGMA trusted_schema = OFF")  # a stranger's file may name functions in its schema
    return connection


def _make(connection: sqlite3.Connection) -> None:
    """Make the tables of an empty file; a lock lets one of two processes do it."""
    if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        return
    connection.execute("BEGIN IMMEDIATE")
    if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        _run(connection, TABLES)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")


def _run(connection: sqlite3.Connection, script: str) -> None:
    """Run statements in the transaction that is open, which ``executescript`` would end."""
    for statement in statements(script):
        connection.execute(statement)


def _verify(connection: Connection, path: Path) -> Connection:
    """Return a connection to what this release can read as a record; else close it and raise RecordError."""
    try:
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if application != APPLICATION_ID:
            raise RecordError(f"{path}: an SQLite file, but not a record of rewardkit")
        if version > VERSION:
            raise RecordError(
                f"{path}: a record of version {version}, written by a newer release; this one reads up to {VERSION}"
            )
        if version != VERSION and version not in MIGRATIONS:
            raise RecordError(f"{path}: damaged: a record of version {version}, which no release has written")
        if connection.execute(_COMPUTED).fetchone() is not None:
            raise RecordError(f"{path}: damaged: it has views, triggers or computed columns, which no record has")
    except BaseException:
        connection.close()
        raise
    return connection


def _migrate(connection: sqlite3.Connection) -> None:
    """Bring a file up to this version, a version in each transaction; a lock lets one of two processes do it."""
    while connection.execute("PRAGMA user_version").fetchone()[0] < VERSION:
        connection.execute("BEGIN IMMEDIATE")
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version < VERSION:
            _run(connection, MIGRATIONS[version])
            connection.execute(f"PRAGMA user_version = {version + 1}")
        connection.execute("COMMIT")


def _add_later_tables(connection: Connection) -> None:
    """Add the tables that a file of this version may lack; a lock lets one of two processes do it."""
    missing = [table for table in later_tables() if not connection.has_table(table)]
    if missing:
        connection.begin()
        for table in missing:
            if not connection.has_table(table):
                connection.execute(later_tables()[table])
        connection.commit()


def _enable_log(connection: sqlite3.Connection, folder: Path) -> None:
    """Turn on the write-ahead log where it works; do not probe a file that has it: a full disk fails the probe."""
    (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    if mode != "wal" and wal_works(folder):
        with contextlib.suppress(sqlite3.OperationalError):  # another process is writing: next time
            connection.execute("PRAGMA journal_mode = WAL")


def log_of(path: Path) -> Path:
    """Return the write-ahead log of a file."""
    return path.with_name(f"{path.name}-wal")
