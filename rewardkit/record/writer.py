"""The thread that writes a record: it stands between a training process and its disk.

Whoever records waits for the disk at most :data:`WAIT_S`, and only where more than :data:`TEXTS_BYTES` of texts wait to
be written; then the batch's texts are left out, and counted. Numbers are never left out while there is memory for them.
A batch is one transaction: it is in the file whole or not at all.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import sqlite3
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from rewardkit.errors import RecordError

TEXTS_BYTES = 256 << 20
"""Bytes of texts that may wait for the disk."""
WAIT_S = 2.0
"""Seconds that one who records waits for room for a batch's texts."""
NUMBERS_BYTES = 1 << 30
"""Bytes of numbers that may wait for the disk. Where even these do not fit, the disk has failed for days."""
AGAIN_S = (0.05, 2.0)
"""Seconds until a failed transaction is tried again: at first, and at most."""
_log = logging.getLogger("rewardkit")

Job = Callable[[sqlite3.Connection], None]


def digest_of(text: str) -> int:
    """Return a text's digest, a signed integer of 64 bits."""
    found = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(found, "little", signed=True)


def packed(text: str) -> bytes:
    """Return a text as it is stored."""
    return zlib.compress(text.encode("utf-8", "surrogatepass"), 1)


def unpacked(body: bytes) -> str:
    """Return a stored text."""
    return zlib.decompress(body).decode("utf-8", "surrogatepass")


class Texts:
    """The texts of one transaction, each distinct one once. A pool compresses them, for zlib frees the interpreter."""

    def __init__(self, connection: sqlite3.Connection, pool: ThreadPoolExecutor) -> None:
        self._connection = connection
        self._pool = pool

    def ids(self, texts: Sequence[str]) -> list[int]:
        """Return the ids of texts, which are stored where they are new."""
        digests = [digest_of(text) for text in texts]
        wanted = dict(zip(digests, texts, strict=True))
        known = self._known(list(wanted))
        new = [digest for digest in wanted if digest not in known]
        bodies = self._pool.map(packed, [wanted[digest] for digest in new])
        self._connection.executemany("INSERT INTO text (digest, body) VALUES (?, ?)", zip(new, bodies, strict=True))
        if new:
            known |= self._known(new)
        return [known[digest] for digest in digests]

    def _known(self, digests: Sequence[int]) -> dict[int, int]:
        found: dict[int, int] = {}
        for start in range(0, len(digests), 500):
            some = digests[start : start + 500]
            query = f"SELECT digest, id FROM text WHERE digest IN ({','.join('?' * len(some))})"  # noqa: S608 - marks
            found.update(self._connection.execute(query, some))
        return found


class _Waiting(NamedTuple):
    """A job that waits: ``job`` is ``None`` where somebody only waits for those before it."""

    job: Job | None
    text_bytes: int = 0
    number_bytes: int = 0
    done: threading.Event | None = None


class Writer:
    """A thread with a connection of its own, to which jobs are handed in order; each is one transaction.

    Where the disk is full, or the file locked, gone or not writable, a job is tried again until it is written or the
    writer is closed; that is logged when it begins and when it is over. A job that fails for another reason is dropped,
    counted and logged.

    Args:
        connect: Opens the file, in the thread; makes it anew where it is gone.
        path: The file.
    """

    def __init__(self, connect: Callable[[], sqlite3.Connection], path: Path) -> None:
        self._connect = connect
        self._path = path
        self._waiting: deque[_Waiting] = deque()
        self._changed = threading.Condition()
        self._text_bytes = self._number_bytes = 0
        self._lean = False
        self._end: float | None = None
        self._identity: tuple[int, int] | None = None
        self.dropped = 0
        """Jobs that were not written."""
        self.trouble: str | None = None
        """Why nothing can be written at the moment; ``None`` while the file takes what it is given."""
        self._thread = threading.Thread(target=self._run, name="rewardkit-record", daemon=True)
        self._thread.start()

    def room_for(self, text_bytes: int) -> bool:
        """Return whether there is room for so many bytes of texts; wait for it at most :data:`WAIT_S`.

        After a wait in vain there is no further one until half of the room is free.
        """
        with self._changed:
            if self._lean:
                self._lean = self._text_bytes > TEXTS_BYTES // 2
            elif not self._changed.wait_for(lambda: self._fits(text_bytes), WAIT_S):
                self._lean = True
                _log.warning("%s: the disk is slower than the run; completions are recorded without text", self._path)
            return not self._lean

    def _fits(self, text_bytes: int) -> bool:
        return self._text_bytes == 0 or self._text_bytes + text_bytes <= TEXTS_BYTES

    def put(self, job: Job, text_bytes: int = 0, number_bytes: int = 256) -> None:
        """Hand over a job. Never waits. Where there is no memory for it, or the writer is closed, it is dropped."""
        with self._changed:
            if self._end is not None or self._number_bytes + number_bytes > NUMBERS_BYTES:
                self.dropped += 1
                return
            self._text_bytes += text_bytes
            self._number_bytes += number_bytes
            self._waiting.append(_Waiting(job, text_bytes, number_bytes))
            self._changed.notify_all()

    def flush(self, timeout_s: float) -> bool:
        """Wait until all that was handed over is in the file; ``False`` where something is not."""
        done = threading.Event()
        dropped = self.dropped
        with self._changed:
            if self._end is not None:
                return False
            self._waiting.append(_Waiting(None, done=done))
            self._changed.notify_all()
        return done.wait(timeout_s) and self.dropped == dropped

    def close(self, timeout_s: float = 60.0) -> bool:
        """Write what was handed over and end the thread; ``False`` where something was not written in that time."""
        with self._changed:
            self._end = self._end or time.monotonic() + timeout_s
            self._changed.notify_all()
        self._thread.join(timeout_s + 5)
        return not self._thread.is_alive() and not self._waiting and not self.dropped

    def _run(self) -> None:
        connection: sqlite3.Connection | None = None
        try:
            while (one := self._next()) is not None:
                if one.job is not None:
                    connection = self._written(one.job, connection)
                with self._changed:
                    self._waiting.popleft()
                    self._text_bytes -= one.text_bytes
                    self._number_bytes -= one.number_bytes
                    self._changed.notify_all()
                if one.done is not None:
                    one.done.set()
        finally:
            with self._changed:
                self.dropped += len(self._waiting)
            if connection is not None:
                connection.close()

    def _next(self) -> _Waiting | None:
        """Return the job to write; ``None`` where the writer is closed and all is written, or its time is over."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._end is not None)
            late = self._end is not None and self.trouble is not None and time.monotonic() > self._end
            return self._waiting[0] if self._waiting and not late else None

    def _written(self, job: Job, connection: sqlite3.Connection | None) -> sqlite3.Connection | None:
        """Write one job, again while that may help; return the connection to go on with."""
        wait_s, most_s = AGAIN_S
        while True:
            try:
                connection = self._still(connection) or self._opened()
                connection.execute("BEGIN IMMEDIATE")
                job(connection)
                connection.execute("COMMIT")
                self._tell(None)
                return connection
            except Exception as reason:
                if connection is not None:
                    with contextlib.suppress(sqlite3.Error):
                        connection.close()
                connection = None
                if not _may_pass(reason):
                    self.dropped += 1
                    _log.exception("%s: something could not be recorded", self._path)
                    return None
                self._tell(str(reason))
                if self._end is not None and time.monotonic() > self._end:
                    self.dropped += 1
                    return None
            time.sleep(wait_s if self._end is None else min(wait_s, 0.1))
            wait_s = min(2 * wait_s, most_s)

    def _still(self, connection: sqlite3.Connection | None) -> sqlite3.Connection | None:
        """Return a connection whose file is still the one in the folder; a deleted file would take what is written."""
        if connection is None or self._identity == _identity(self._path):
            return connection
        connection.close()
        return None

    def _opened(self) -> sqlite3.Connection:
        connection = self._connect()
        self._identity = _identity(self._path)
        return connection

    def _tell(self, trouble: str | None) -> None:
        """Log when writing begins to fail, and when it works again."""
        if trouble is not None and self.trouble is None:
            _log.error("%s: cannot be written: %s; the run goes on, and this is tried again", self._path, trouble)
        elif trouble is None and self.trouble is not None:
            _log.warning("%s: is written again", self._path)
        self.trouble = trouble


def _identity(path: Path) -> tuple[int, int] | None:
    """Return what tells a file from another of the same name; ``None`` where there is no file."""
    try:
        about = os.stat(path)
    except OSError:
        return None
    return about.st_dev, about.st_ino


def _may_pass(reason: Exception) -> bool:
    """Whether a fault lies with the file or the disk, and so may pass."""
    if isinstance(reason, sqlite3.DatabaseError):
        return not isinstance(reason, sqlite3.IntegrityError | sqlite3.ProgrammingError | sqlite3.DataError)
    return isinstance(reason, RecordError | OSError)
