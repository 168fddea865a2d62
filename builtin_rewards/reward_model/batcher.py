"""One thread of a process that scores what others submit, in batches, whichever model it is for."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Generic, TypeVar

from rewardkit import InfrastructureError

MOST_AT_ONCE = 512  # Entries of a batch at most: what comes later waits no longer than these take
_IDLE_S = 60.0  # A thread without work ends after so many seconds

A = TypeVar("A")
B = TypeVar("B")


class Batcher(Generic[A, B]):
    """A thread that hands what is submitted to ``work`` in batches; one begins after a while without a new entry."""

    def __init__(self, work: Callable[[Sequence[A]], Sequence[B | Exception]]) -> None:
        self._work = work
        self._queue: queue.SimpleQueue[tuple[A, float, Future[B]]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._runs = False

    @property
    def is_used(self) -> bool:
        """Whether the thread runs, or another thread is about to start it."""
        return self._runs or self._lock.locked()

    def submit(self, entry: A, wait_s: float) -> Future[B]:
        """Queue an entry and return the future of its result; start the thread where none runs.

        Its batch begins after ``wait_s`` without a further entry, or the longest wait of those in it.
        """
        future: Future[B] = Future()
        with self._lock:
            self._queue.put((entry, wait_s, future))
            if not self._runs:
                self._runs = True
                threading.Thread(target=self._run, name="reward-model", daemon=True).start()
        return future

    def _run(self) -> None:
        """Hand out batches until no entry has come for a while."""
        while True:
            batch = self._collect()
            if batch:
                self._answer(batch)
                continue
            with self._lock:  # an entry that comes now finds the thread running, or starts another
                if self._queue.empty():
                    self._runs = False
                    return

    def _collect(self) -> list[tuple[A, Future[B]]]:
        """Return the entries that came before a pause; an empty list if none comes for a while."""
        batch: list[tuple[A, Future[B]]] = []
        try:
            entry, wait_s, future = self._queue.get(timeout=_IDLE_S)
            batch.append((entry, future))
            start = time.monotonic()
            while len(batch) < MOST_AT_ONCE and time.monotonic() < start + 20 * wait_s:
                entry, next_wait_s, future = self._queue.get(timeout=wait_s)
                batch.append((entry, future))
                wait_s = max(wait_s, next_wait_s)
        except queue.Empty:
            pass
        return [(entry, future) for entry, future in batch if future.set_running_or_notify_cancel()]

    def _answer(self, batch: list[tuple[A, Future[B]]]) -> None:
        """Set each entry's result; where the work raises, the error is the result of all."""
        try:
            results = self._work([entry for entry, _ in batch])
        except Exception as error:
            results = [error] * len(batch)
        except BaseException as error:  # the thread goes on: the callers that wait must be told
            results = [InfrastructureError(f"the model's thread was ended by {type(error).__name__}")] * len(batch)
        for (_, future), result in zip(batch, results, strict=True):
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)
