"""The threads that read runs: a record belongs to the thread that opened it, and reading is not to stop the server."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeAlias

from rewardkit.dashboard.readers import Readers
from rewardkit.errors import InfrastructureError

Task: TypeAlias = Callable[[Readers], Any]
MOST_WAITING = 64  # Requests that wait for a thread
MOST_LATE = 4  # Threads that work on, though nobody waits for their answer any longer, and have another in their place


class BusyError(InfrastructureError):
    """An answer takes too long, or too many are asked for at once."""


class Workers:
    """Some daemon threads, each with ``readers`` of its own, which it closes when it ends."""

    def __init__(self, count: int, readers: Callable[[], Readers], name: str) -> None:
        self._readers, self._name = readers, name
        self._queue: queue.SimpleQueue[tuple[Future[Any], Task] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._at_work: set[Future[Any]] = set()
        self._late: set[Future[Any]] = set()
        for _ in range(count):
            self._start()

    async def ask(self, task: Task, wait_s: float) -> Any:
        """Return what a task returns in a thread. Raises BusyError if it is late or too many others wait."""
        if self._queue.qsize() >= MOST_WAITING:
            raise BusyError("too much is asked for at once; try again in a moment")
        future: Future[Any] = Future()
        self._queue.put((future, task))
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), wait_s)
        except TimeoutError:
            self._give_up(future)
            raise BusyError(f"the answer took longer than {wait_s:g} s; ask for less, or again") from None

    def close(self, wait_s: float = 0.5) -> None:
        """End the threads that have nothing to do; one that works on ends with the process."""
        for _ in self._threads:
            self._queue.put(None)
        until = time.monotonic() + wait_s
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _start(self) -> None:
        thread = threading.Thread(target=self._work, name=self._name, daemon=True)  # a hung read must not stop the exit
        self._threads = [*(existing for existing in self._threads if existing.is_alive()), thread]
        thread.start()

    def _give_up(self, future: Future[Any]) -> None:
        """Start another thread for one whose task is late, up to :data:`MOST_LATE`; that one ends with its task."""
        with self._lock:
            if future in self._at_work and len(self._late) < MOST_LATE:  # one that only waits has no thread to replace
                self._late.add(future)
                self._start()

    def _work(self) -> None:
        """Do tasks until the end, which is what a thread does, or until another thread takes its place."""
        readers = self._readers()
        try:
            while (request := self._queue.get()) is not None:
                if self._answer(*request, readers):
                    return
        finally:
            readers.close()

    def _answer(self, future: Future[Any], task: Task, readers: Readers) -> bool:
        """Work on a task; return whether another thread took this one's place meanwhile."""
        with self._lock:
            if not future.set_running_or_notify_cancel():
                return False
            self._at_work.add(future)
        _settle(future, task, readers)
        with self._lock:
            self._at_work.discard(future)
            was_late = future in self._late
            self._late.discard(future)
            return was_late


def _settle(future: Future[Any], task: Task, readers: Readers) -> None:
    """Run a task, and settle its future with the result or with whatever it raised."""
    try:
        result = task(readers)
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)
