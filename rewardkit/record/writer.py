"""The thread that writes a record: a bounded queue between a training process and its disk.

Whoever records waits for the disk no longer than :data:`WAIT_S`. When the queue is full for so long, the texts of a
batch are left out and counted; scores never are. A batch is one transaction.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import queue
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from rewardkit.errors import RecordError

QUEUE = 64
"""Batches that may wait for the disk."""
WAIT_S = 2.0
"""Seconds that one who records waits for room in the queue."""
TEXTS_FROM = 48
"""Batches waiting from which on texts are left out, so that scores keep their room."""
PATIENCE_S = 60.0
"""Seconds that a transaction is tried again where the disk is full, or the file locked or gone."""
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
    """Texts of one transaction, each distinct one once; compressed beside the inserts, for zlib frees the interpreter."""

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
            marks = ",".join("?" * len(some))
            found.update(self._connection.execute(f"SELECT digest, id FROM text WHERE digest IN ({marks})", some))  # noqa: S608 - marks only
        return found


class Writer:
    """A thread with a connection of its own, to which jobs are handed; each is one transaction.

    Where the disk is full or the file is locked or gone, a job is tried again for :data:`PATIENCE_S`. After that the
    writer gives up: it says so once, and later jobs are counted and dropped, for training goes on.

    Args:
        connect: Opens the file, in the thread.
        name: The file, for what is logged.
    """

    def __init__(self, connect: Callable[[], sqlite3.Connection], name: str) -> None:
        self._connect = connect
        self._name = name
        self._jobs: queue.Queue[Job | threading.Event | None] = queue.Queue(QUEUE)
        self._ended = threading.Event()
        self.dropped = 0
        """Jobs that were not written."""
        self.broken: str | None = None
        """Why the writer has given up; ``None`` while it writes."""
        self._thread = threading.Thread(target=self._run, name="rewardkit-record", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Jobs that wait for the disk, about."""
        return self._jobs.qsize()

    def put(self, job: Job) -> bool:
        """Hand over a job; ``False`` where the queue had no room for :data:`WAIT_S`, or the writer has given up."""
        if self.broken is None:
            try:
                self._jobs.put(job, timeout=WAIT_S)
                return True
            except queue.Full:
                _log.warning("%s: the disk is slower than the run; a batch is not recorded", self._name)
        self.dropped += 1
        return False

    def flush(self, timeout_s: float) -> bool:
        """Wait until all that was handed over is written; ``False`` where it is not within so many seconds."""
        done = threading.Event()
        try:
            self._jobs.put(done, timeout=timeout_s)
        except queue.Full:
            return False
        return done.wait(timeout_s) and self.broken is None

    def close(self, timeout_s: float = 60.0) -> bool:
        """Write what was handed over and end the thread; ``False`` where that took longer than so many seconds."""
        with contextlib.suppress(queue.Full):
            self._jobs.put(None, timeout=timeout_s)
        self._thread.join(timeout_s)
        return self._ended.is_set() and self.broken is None

    def _run(self) -> None:
        connection: sqlite3.Connection | None = None
        try:
            while (job := self._jobs.get()) is not None:
                if isinstance(job, threading.Event):
                    job.set()
                elif self.broken is not None:
                    self.dropped += 1
                else:
                    connection = self._written(job, connection)
        finally:
            if connection is not None:
                connection.close()
            self._ended.set()

    def _written(self, job: Job, connection: sqlite3.Connection | None) -> sqlite3.Connection | None:
        """Write one job, again while that may help; return the connection to go on with."""
        end = time.monotonic() + PATIENCE_S
        wait_s = 0.05
        while True:
            try:
                connection = connection or self._connect()
                connection.execute("BEGIN IMMEDIATE")
                job(connection)
                connection.execute("COMMIT")
                return connection
            except Exception as reason:
                with contextlib.suppress(sqlite3.Error):
                    if connection is not None:
                        connection.close()
                connection = None
                if time.monotonic() > end or not isinstance(reason, sqlite3.OperationalError | RecordError):
                    self.broken = str(reason)
                    self.dropped += 1
                    _log.error("%s: %s; the run goes on without a record from here", self._name, reason)
                    return None
                time.sleep(wait_s)
                wait_s = min(2 * wait_s, 2.0)
