"""Concurrent calls brought together: one thread that collects texts, while a batch is under way, for the next."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Generic, TypeVar

from rewardkit import InfrastructureError

MOST_AT_ONCE = 512  # texts that are scored together at most: what comes later waits no longer than these take
_IDLE_S = 60.0  # a thread without work ends after so many seconds

A = TypeVar("A")
B = TypeVar("B")


class Batcher(Generic[A, B]):
    """A thread that hands what is submitted to ``work`` in batches; one begins after ``wait_s`` without a new text."""

    def __init__(self, work: Callable[[Sequence[A]], Sequence[B | Exception]], wait_s: float) -> None:
        self._work = work
        self._wait_s = wait_s
        self._queue: queue.SimpleQueue[tuple[A, Future[B]]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._runs = False

    def submit(self, text: A) -> Future[B]:
        """Return the future of one; starts the thread where none runs."""
        future: Future[B] = Future()
        with self._lock:
            self._queue.put((text, future))
            if not self._runs:
                self._runs = True
                threading.Thread(target=self._run, name="reward-model", daemon=True).start()
        return future

    def _run(self) -> None:
        while True:
            batch = self._collect()
            if batch:
                self._answer(batch)
                continue
            with self._lock:
                if self._queue.empty():
                    self._runs = False
                    return

    def _collect(self) -> list[tuple[A, Future[B]]]:
        """Return what came until nothing did for ``wait_s``; nothing after a while without any."""
        batch: list[tuple[A, Future[B]]] = []
        try:
            batch.append(self._queue.get(timeout=_IDLE_S))
            deadline = time.monotonic() + 20 * self._wait_s
            while len(batch) < MOST_AT_ONCE and time.monotonic() < deadline:
                batch.append(self._queue.get(timeout=self._wait_s))
        except queue.Empty:
            pass
        return [entry for entry in batch if entry[1].set_running_or_notify_cancel()]

    def _answer(self, batch: list[tuple[A, Future[B]]]) -> None:
        try:
            results = self._work([text for text, _ in batch])
        except Exception as error:
            results = [error] * len(batch)
        except BaseException as error:  # the thread goes on: the callers that wait must be told
            results = [InfrastructureError(f"the model's thread was ended by {type(error).__name__}")] * len(batch)
        for (_, future), result in zip(batch, results, strict=True):
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)
