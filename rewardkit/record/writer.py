"""The thread that writes a record: it stands between a training process and its disk.

Whoever records waits for the disk at most :data:`WAIT_S`, and only where more than :data:`TEXTS_BYTES` of texts wait to
be written; then the batch's texts are left out, and counted. Numbers are never left out while there is memory for them.
A batch is one transaction: it is in the file whole or not at all.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Protocol

from rewardkit.errors import RecordError
from rewardkit.record import sqlite_file
from rewardkit.record.file_target import LOCKED_S
from rewardkit.record.store import RecordConnection

TEXTS_BYTES = 256 << 20  # Bytes of texts that may wait for the disk
WAIT_S = 2.0  # Seconds that one who records waits for room for a batch's texts
NUMBERS_BYTES = 1 << 30
"""Bytes of numbers that may wait for the disk. Where even these do not fit, the disk has failed for days."""
AGAIN_S = (0.05, 2.0)  # Seconds until a failed transaction is tried again: at first, and at most
SIGN_S = 300.0  # Seconds with nothing to write after which a recorder gives a sign that it is there
_log = logging.getLogger("rewardkit")

Job = Callable[[RecordConnection], object]


class AwaitedError(RecordError):
    """The file is not there yet, because another process has still to make it. Nothing is wrong."""


class WriteTarget(Protocol):
    """What a writer writes to, in its thread: a connection that is opened again where it was lost."""

    def was_committed(self) -> bool:
        """Return whether the last transaction took effect, whose end was not confirmed."""

    def begin(self) -> RecordConnection | None:
        """Begin a transaction; ``None`` where that is to be tried again."""

    def commit(self) -> None:
        """Keep what was written since."""

    def undo(self, error: Exception) -> None:
        """Take back what a transaction did that failed."""

    def in_place(self) -> bool:
        """Return whether what was written is still where it belongs."""

    def may_pass(self, error: Exception) -> bool:
        """Return whether a fault lies with the file, the disk or the server, and so may pass."""

    def is_lock(self, error: Exception) -> bool:
        """Return whether another writer was waited for: a fault only where it lasts."""

    def explain(self, error: Exception) -> str:
        """Return what an error says, without the record's name."""

    def close(self) -> None:
        """Close the connection."""


class _Waiting(NamedTuple):
    """A job that waits: ``job`` is ``None`` where a caller only waits for those before it."""

    job: Job | None
    text_bytes: int = 0
    number_bytes: int = 0
    completions: int = 0
    done: threading.Event | None = None


class Writer:
    """A thread with a connection of its own, to which jobs are handed in order; each is one transaction.

    Where the disk is full, or the file locked, gone or not writable, a job is tried again until it is written or the
    writer is closed; that is logged when it begins and when it is over. A file that was deleted is put back. A job that
    fails for another error is dropped, counted and logged. A writer belongs to the process that made it: in a fork it
    drops and counts what it is given. The target is used in the thread alone; the path is for what is logged.
    """

    def __init__(self, target: WriteTarget, path: object, sign: Job | None = None) -> None:
        """Start the thread; ``sign`` is a job for each :data:`SIGN_S` seconds in which nothing is to be written."""
        self._target = target
        self._sign = sign
        self._path = path
        self._owner = os.getpid()
        self._waiting: deque[_Waiting] = deque()
        self._changed = threading.Condition()
        self._text_bytes = self._number_bytes = 0
        self._lean = False
        self._end: float | None = None
        self.dropped = 0
        """Jobs that were not written."""
        self.lost = 0
        """Completions of these jobs."""
        self.trouble: str | None = None
        """Why nothing can be written at the moment; ``None`` while the file takes what it is given."""
        self._failing_since: float | None = None
        self._thread = threading.Thread(target=self._run, name="rewardkit-record", daemon=True)
        self._thread.start()

    @property
    def runs_here(self) -> bool:
        """Whether the caller is its own thread, which cannot wait for its end."""
        return threading.current_thread() is self._thread

    def room_for(self, text_bytes: int) -> bool:
        """Return whether there is room for ``text_bytes`` of texts; wait for it at most :data:`WAIT_S`.

        After a wait that brought no room there is no further one until half of the room is free.
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
        """Count a job that is not written and its completions; log the first such job."""
        if not self.dropped:
            _log.error("%s: something is not recorded, because %s", self._path, why)
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
        """Write the jobs handed over and end the thread; return ``False`` where one was not written in that time."""
        if os.getpid() != self._owner:
            return False
        with self._changed:
            self._end = self._end or time.monotonic() + timeout_s
            self._changed.notify_all()
        self._thread.join(max(0.0, self._end - time.monotonic()) + 2 * LOCKED_S)  # SQLite may be in such a wait
        if self._thread.is_alive():  # a disk or a server holds it
            self._drop_rest()
        return not self._thread.is_alive() and not self._waiting and not self.dropped

    def _run(self) -> None:
        """Write the jobs in their order until the end; then drop the rest and close the target."""
        try:
            while (entry := self._next()) is not None:
                if entry.job is not None:
                    self._write(entry.job, entry.completions)
                elif not self._target.in_place():
                    self._write(_nothing)
                with self._changed:
                    if not self._waiting:  # what got no room after a wait is counted already
                        return
                    self._waiting.popleft()
                    self._text_bytes -= entry.text_bytes
                    self._number_bytes -= entry.number_bytes
                    self._changed.notify_all()
                if entry.done is not None:
                    entry.done.set()
                del entry  # it holds the batch, and perhaps as the last one the recorder
            if not self._target.in_place():
                self._write(_nothing)
        finally:
            self._drop_rest()
            self._target.close()

    def _drop_rest(self) -> None:
        """Drop the jobs that wait, and count them and their completions."""
        with self._changed:
            self._end = self._end or time.monotonic()
            for entry in self._waiting:
                if entry.job is not None:
                    self.drop(self.trouble or "what it is written to was too slow", entry.completions)
            self._waiting.clear()

    def _next(self) -> _Waiting | None:
        """Return the job to write; ``None`` where the writer is closed and all is written, or its time is over."""
        with self._changed:
            while not self._changed.wait_for(lambda: self._waiting or self._end is not None, SIGN_S):
                if self._sign is not None:
                    self._waiting.append(_Waiting(self._sign))
            return self._waiting[0] if self._waiting and not self._is_late() else None

    def _is_late(self) -> bool:
        return self._end is not None and time.monotonic() > self._end

    def _write(self, job: Job, completions: int = 0) -> None:
        """Write one job; repeat it while that may help and the writer has time, else count it as dropped."""
        wait_s, most_s = AGAIN_S
        is_repeat = False
        while True:
            try:
                if (is_repeat and self._target.was_committed()) or self._try(job):
                    self._log_state(None)
                    return
            except Exception as error:
                is_repeat = True
                self._target.undo(error)
                if not self._target.may_pass(error):
                    _log.exception("%s: something could not be recorded", self._path)
                    self._give_up(self._target.explain(error), completions)
                    return
                self._log_state(error)
            if self._is_late():
                self._give_up(self.trouble or "the file is not there", completions)
                return
            time.sleep(wait_s if self._end is None else min(wait_s, 0.1))
            wait_s = min(2 * wait_s, most_s)

    def _give_up(self, why: str, completions: int) -> None:
        with self._changed:
            if self._waiting:  # else it is counted already
                self.drop(why, completions)

    def _try(self, job: Job) -> bool:
        """Write one job in a transaction; return ``False`` where that is to be tried again."""
        connection = self._target.begin()
        if connection is None:
            return False
        job(connection)
        self._target.commit()
        return True

    def _log_state(self, error: Exception | None) -> None:
        """Log when writing begins to fail and when it works again; set :attr:`trouble`. A short lock is no failure."""
        if error is None:
            if self.trouble is not None:
                _log.warning("%s: is written again", self._path)
            self.trouble = self._failing_since = None
            return
        now = time.monotonic()
        self._failing_since = self._failing_since or now
        is_brief = isinstance(error, AwaitedError) or self._target.is_lock(error)
        if self.trouble is None and (not is_brief or now - self._failing_since > sqlite_file.BUSY_S):
            self.trouble = self._target.explain(error)
            _log.error("%s: cannot be written: %s; the run goes on, and this is tried again", self._path, self.trouble)


def _nothing(connection: RecordConnection) -> None:
    """Write nothing: what is there is put back where it was deleted."""
