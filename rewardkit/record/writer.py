"""The thread that writes a record: it stands between a training process and its disk.

Whoever records waits for the disk at most :data:`WAIT_S`, and only where more than :data:`TEXTS_BYTES` of texts wait to
be written; then the batch's texts are left out, and counted. Numbers are never left out while there is memory for them.
A batch is one transaction: it is in the file whole or not at all.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import logging
import os
import sqlite3
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rewardkit.errors import RecordError
from rewardkit.record import database
from rewardkit.record.database import Connection, in_words, is_record, put_back, sound
from rewardkit.record.table import Whole

TEXTS_BYTES = 256 << 20
"""Bytes of texts that may wait for the disk."""
LARGEST_TEXT = 128 << 20
"""Bytes of one text, at most: a file of 2 MB can claim to hold one of 2 GB."""
_MOST_RATIO = 1100
"""How often a text may be longer than it is stored; deflate reaches 1032."""
WAIT_S = 2.0
"""Seconds that one who records waits for room for a batch's texts."""
NUMBERS_BYTES = 1 << 30
"""Bytes of numbers that may wait for the disk. Where even these do not fit, the disk has failed for days."""
AGAIN_S = (0.05, 2.0)
"""Seconds until a failed transaction is tried again: at first, and at most."""
LOCKED_MS = 1000
"""Milliseconds that SQLite itself waits for another writer, before the thread looks whether it is to end."""
_OF_THE_JOB = frozenset(
    (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH,
     sqlite3.SQLITE_MISUSE, sqlite3.SQLITE_RANGE)
)  # fmt: skip
_OF_THE_COPY = frozenset(
    (sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM)
)
_log = logging.getLogger("rewardkit")

Job = Callable[[sqlite3.Connection], None]


class AwaitedError(RecordError):
    """The file is not there yet, and is another process's to make. Nothing is wrong."""


def digest_of(text: str) -> int:
    """Return a text's digest, a signed integer of 64 bits."""
    return _digest(_encoded(text))


def packed(text: str) -> bytes:
    """Return a text as it is stored."""
    return zlib.compress(_encoded(text), 1)


def unpacked(body: bytes) -> str:
    """Return a stored text.

    Raises:
        zlib.error: The bytes are damaged, or unpack to more than any text has.
        UnicodeDecodeError: They are no text.
    """
    raw = zlib.decompress(body) if len(body) * _MOST_RATIO <= LARGEST_TEXT else _bounded(body)
    return raw.decode("utf-8", "surrogatepass")


def _bounded(body: bytes) -> bytes:
    unpacker = zlib.decompressobj()
    raw = unpacker.decompress(body, LARGEST_TEXT)
    if not unpacker.eof:
        raise zlib.error(f"cut short, or a text of more than {LARGEST_TEXT:,} bytes")
    return raw


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _digest(raw: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(raw, digest_size=8).digest(), "little", signed=True)


class Packed(NamedTuple):
    """Texts as they are stored.

    Attributes:
        digests: One a text.
        bodies: The compressed text of each digest.
    """

    digests: Sequence[int]
    bodies: dict[int, bytes]


def packed_all(texts: Sequence[str]) -> Packed:
    """Return texts as they are stored; needs no database, so it may run anywhere. zlib frees the interpreter."""
    digests: list[int] = []
    bodies: dict[int, bytes] = {}
    for text in texts:
        raw = _encoded(text)
        digest = _digest(raw)
        digests.append(digest)
        if digest not in bodies:
            bodies[digest] = zlib.compress(raw, 1)
    return Packed(digests, bodies)


class KnownDigests:
    """The digests of all texts in a file, in memory, 16 bytes each: a few sorted runs, which double in size."""

    def __init__(self) -> None:
        self._runs: list[tuple[Whole, Whole]] = []
        self._last = 0

    def refresh(self, connection: sqlite3.Connection) -> None:
        """Learn what this and other processes have added."""
        rows = connection.execute("SELECT id, pairs FROM digests WHERE id > ? ORDER BY id", (self._last,)).fetchall()
        for number, pairs in rows:
            added = np.frombuffer(pairs, "<i8").reshape(-1, 2)
            self._add(added[:, 0], added[:, 1])
            self._last = number

    def ids(self, digests: Whole) -> Whole:
        """Return the texts' ids; 0 where a text is new."""
        found = np.zeros(len(digests), np.int64)
        for known, ids in self._runs:
            places = np.minimum(np.searchsorted(known, digests), len(known) - 1)
            found = np.where(known[places] == digests, ids[places], found)
        return found

    def _add(self, digests: Whole, ids: Whole) -> None:
        while self._runs and len(self._runs[-1][0]) <= len(digests):
            more, those = self._runs.pop()
            digests, ids = np.concatenate((more, digests)), np.concatenate((those, ids))
        order = np.argsort(digests, kind="stable")
        self._runs.append((digests[order], ids[order]))


class Texts:
    """The texts of a file, each distinct one once, as one transaction adds to them."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        remembered = connection.known if isinstance(connection, Connection) else {}
        self._known: KnownDigests = remembered.setdefault("texts", KnownDigests())

    def ids(self, texts: Sequence[str]) -> list[int]:
        """Return the ids of texts, which are stored where they are new."""
        return self.stored(packed_all(texts)) if texts else []

    def stored(self, texts: Packed) -> list[int]:
        """Return the ids of texts that are compressed already."""
        self._known.refresh(self._connection)
        wanted = np.fromiter(texts.bodies, np.int64, len(texts.bodies))
        ids = self._known.ids(wanted)
        new = np.flatnonzero(ids == 0)
        if len(new):
            (last,) = self._connection.execute("SELECT coalesce(max(id), 0) FROM text").fetchone()
            ids[new] = np.arange(last + 1, last + 1 + len(new))
            rows = zip(ids[new].tolist(), (texts.bodies[one] for one in wanted[new].tolist()), strict=True)
            self._connection.executemany("INSERT INTO text VALUES (?, ?)", rows)
            pairs = np.stack((wanted[new], ids[new]), axis=1).astype("<i8").tobytes()
            self._connection.execute("INSERT INTO digests (pairs) VALUES (?)", (pairs,))
        places = dict(zip(wanted.tolist(), ids.tolist(), strict=True))
        return [places[one] for one in texts.digests]


class _Waiting(NamedTuple):
    """A job that waits: ``job`` is ``None`` where somebody only waits for those before it."""

    job: Job | None
    text_bytes: int = 0
    number_bytes: int = 0
    completions: int = 0
    done: threading.Event | None = None


class Writer:
    """A thread with a connection of its own, to which jobs are handed in order; each is one transaction.

    Where the disk is full, or the file locked, gone or not writable, a job is tried again until it is written or the
    writer is closed; that is logged when it begins and when it is over. A file that was deleted is put back. A job that
    fails for another reason is dropped, counted and logged.

    A writer belongs to the process that made it: in a fork it drops and counts what it is given.

    Args:
        connect: Opens the file, in the thread; makes it anew where it is gone.
        path: The file.
    """

    def __init__(self, connect: Callable[[], Connection], path: Path) -> None:
        self._connect = connect
        self._path = path
        self._owner = os.getpid()
        self._waiting: deque[_Waiting] = deque()
        self._changed = threading.Condition()
        self._text_bytes = self._number_bytes = 0
        self._lean = False
        self._end: float | None = None
        self._connection: Connection | None = None
        self._held: Connection | None = None
        self._identity: tuple[int, int] | None = None
        self._size = 0
        self._spoiled: tuple[int, int] | None = None
        self.dropped = 0
        """Jobs that were not written."""
        self.lost = 0
        """Completions of these jobs."""
        self.trouble: str | None = None
        """Why nothing can be written at the moment; ``None`` while the file takes what it is given."""
        self._failing_since: float | None = None
        self._thread = threading.Thread(target=self._run, name="rewardkit-record", daemon=True)
        self._thread.start()

    def room_for(self, text_bytes: int) -> bool:
        """Return whether there is room for so many bytes of texts; wait for it at most :data:`WAIT_S`.

        After a wait in vain there is no further one until half of the room is free.
        """
        if os.getpid() != self._owner:
            return False
        with self._changed:
            if self._lean:
                self._lean = self._text_bytes > TEXTS_BYTES // 2
            elif not self._changed.wait_for(lambda: self._fits(text_bytes), WAIT_S):
                self._lean = True
                _log.warning("%s: the disk is slower than the run; completions are recorded without text", self._path)
            return not self._lean

    def _fits(self, text_bytes: int) -> bool:
        return self._text_bytes == 0 or self._text_bytes + text_bytes <= TEXTS_BYTES

    def put(self, job: Job, text_bytes: int = 0, number_bytes: int = 256, completions: int = 0) -> None:
        """Hand over a job. Never waits. Where there is no memory for it, or the writer is closed, it is dropped."""
        if os.getpid() != self._owner:
            self.drop("it belongs to the process that made it, and this is a fork of that", completions)
            return
        with self._changed:
            if self._end is not None:
                self.drop("it is closed", completions)
            elif self._number_bytes + number_bytes > NUMBERS_BYTES:
                self.drop(f"nothing could be written for so long that no memory is left: {self.trouble}", completions)
            else:
                self._text_bytes += text_bytes
                self._number_bytes += number_bytes
                self._waiting.append(_Waiting(job, text_bytes, number_bytes, completions))
                self._changed.notify_all()

    def drop(self, why: str, completions: int = 0) -> None:
        """Count a job that is not written; the first one is logged."""
        if not self.dropped:
            _log.error("%s: something is not recorded, for %s", self._path, why)
        self.dropped += 1
        self.lost += completions

    def flush(self, timeout_s: float) -> bool:
        """Wait until all that was handed over is in the file; ``False`` where something is not, or ever was not."""
        if os.getpid() != self._owner:
            return False
        done = threading.Event()
        with self._changed:
            if self._end is not None:
                return False
            self._waiting.append(_Waiting(None, done=done))
            self._changed.notify_all()
        return done.wait(timeout_s) and not self.dropped

    def close(self, timeout_s: float = 60.0) -> bool:
        """Write what was handed over and end the thread; ``False`` where something was not written in that time."""
        if os.getpid() != self._owner:
            return False
        with self._changed:
            self._end = self._end or time.monotonic() + timeout_s
            self._changed.notify_all()
        self._thread.join(max(0.0, self._end - time.monotonic()) + 2 * LOCKED_MS / 1000)
        return not self._thread.is_alive() and not self._waiting and not self.dropped

    def _run(self) -> None:
        try:
            while (one := self._next()) is not None:
                if one.job is not None:
                    self._write(one.job, one.completions)
                elif not self._in_place():
                    self._write(_nothing)
                with self._changed:
                    self._waiting.popleft()
                    self._text_bytes -= one.text_bytes
                    self._number_bytes -= one.number_bytes
                    self._changed.notify_all()
                if one.done is not None:
                    one.done.set()
            if not self._in_place():
                self._write(_nothing)
        finally:
            with self._changed:
                self._end = self._end or time.monotonic()
                for left in self._waiting:
                    if left.job is not None:
                        self.drop(self.trouble or "the disk was too slow", left.completions)
            if self._connection is not None:
                self._connection.close()

    def _next(self) -> _Waiting | None:
        """Return the job to write; ``None`` where the writer is closed and all is written, or its time is over."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._end is not None)
            return self._waiting[0] if self._waiting and not self._late() else None

    def _late(self) -> bool:
        return self._end is not None and time.monotonic() > self._end

    def _write(self, job: Job, completions: int = 0) -> None:
        """Write one job, again while that may help."""
        wait_s, most_s = AGAIN_S
        while True:
            try:
                if self._begun():
                    connection = self._ready()
                    job(connection)
                    connection.execute("COMMIT")
                    self._tell(None)
                    return
            except Exception as reason:
                self._undo(reason)
                if not _may_pass(reason):
                    _log.exception("%s: something could not be recorded", self._path)
                    self.drop(in_words(reason), completions)
                    return
                self._tell(reason)
            if self._late():
                self.drop(self.trouble or "the file is not there", completions)
                return
            time.sleep(wait_s if self._end is None else min(wait_s, 0.1))
            wait_s = min(2 * wait_s, most_s)

    def _begun(self) -> bool:
        """Begin a transaction; ``False`` where the file was deleted or replaced before this process had its lock."""
        self._ready().execute("BEGIN IMMEDIATE")
        if self._in_place():
            return True
        self._ready().execute("ROLLBACK")
        return False

    def _in_place(self) -> bool:
        """Whether the file in the folder is the one that the connection writes to."""
        if self._connection is None:
            return True
        identity, size = _identity(self._path)
        if identity == self._identity and size < self._size and not sound(self._connection):
            self._spoiled = identity
        self._size = size
        return identity == self._identity != self._spoiled

    def _ready(self) -> Connection:
        """Return a connection to the file that is in the folder, which is opened, put back, or made."""
        if self._connection is not None and (self._connection.in_transaction or self._in_place()):
            return self._connection
        if self._connection is not None:
            self._held, self._connection = self._connection, None
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._held))  # never closed: see put_back
        if self._held is not None and not self._path.exists():
            self._put_back(self._held)
        elif self._held is not None and (not is_record(self._path) or _identity(self._path)[0] == self._spoiled):
            raise RecordError(
                "the file was overwritten or cut short; take it away, and the record goes on in a new one"
            )
        connection = self._connect()
        connection.execute(f"PRAGMA busy_timeout = {LOCKED_MS}")
        self._connection, self._held, self._spoiled = connection, None, None
        self._identity, self._size = _identity(self._path)
        return connection

    def _put_back(self, held: Connection) -> None:
        moved = _moved_to(self._path, self._identity)
        if moved is not None:
            _log.error("%s: was moved to %s; the record goes on in a new file", self._path, moved.name)
            return
        try:
            if put_back(held, self._path):
                _log.error("%s: was deleted while the run writes to it, and is put back", self._path)
        except sqlite3.Error as reason:
            if _code(reason) in _OF_THE_COPY:
                raise
            _log.error("%s: was deleted, and cannot be put back: %s; it begins anew", self._path, reason)

    def _undo(self, reason: Exception) -> None:
        """Take back what a failed transaction did; a connection that failed for more than room or a lock is closed."""
        connection = self._connection
        if connection is None:
            return
        connection.known.clear()
        try:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            keep = _code(reason) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_FULL)
        except sqlite3.Error:
            keep = False
        if not keep and self._in_place():  # of a deleted file it is all that is left
            self._connection = None
            with contextlib.suppress(sqlite3.Error):
                connection.close()

    def _tell(self, reason: Exception | None) -> None:
        """Log when writing begins to fail, and when it works again. A lock is a failure once it lasts."""
        if reason is None:
            if self.trouble is not None:
                _log.warning("%s: is written again", self._path)
            self.trouble = self._failing_since = None
            return
        now = time.monotonic()
        self._failing_since = self._failing_since or now
        brief = isinstance(reason, AwaitedError) or _code(reason) == sqlite3.SQLITE_BUSY
        if self.trouble is None and (not brief or now - self._failing_since > database.BUSY_S):
            self.trouble = in_words(reason).removeprefix(f"{self._path}: ")
            _log.error("%s: cannot be written: %s; the run goes on, and this is tried again", self._path, self.trouble)


def _nothing(connection: sqlite3.Connection) -> None:
    """Write nothing: what is there is put back where it was deleted."""


def _identity(path: Path) -> tuple[tuple[int, int] | None, int]:
    """Return what tells a file from another of the same name, and its size; ``None`` where there is no file."""
    try:
        about = os.stat(path)
    except OSError:
        return None, 0
    return (about.st_dev, about.st_ino), about.st_size


def _moved_to(path: Path, identity: tuple[int, int] | None) -> Path | None:
    """Return the name that a file has in the same folder now; ``None`` where it has none there."""
    try:
        names = list(path.parent.iterdir())
    except OSError:
        return None
    return next((name for name in names if identity is not None and _identity(name)[0] == identity), None)


def _code(reason: BaseException) -> int:
    """Return SQLite's code of a fault, without its details; -1 where there is none."""
    code = getattr(reason, "sqlite_errorcode", None)
    return -1 if code is None else int(code) & 0xFF


def _may_pass(reason: Exception) -> bool:
    """Whether a fault lies with the file or the disk, and so may pass."""
    if isinstance(reason, sqlite3.DatabaseError):
        return _code(reason) not in _OF_THE_JOB and not isinstance(reason, sqlite3.ProgrammingError)
    return isinstance(reason, RecordError | OSError)
