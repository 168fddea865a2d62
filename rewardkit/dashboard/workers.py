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
MOST_WAITING = 64
"""Requests that wait for a thread."""


class BusyError(InfrastructureError):
    """An answer takes too long, or too many are asked for at once."""


class Workers:
    """Some threads, each with runs of its own, which it closes when it ends.

    They are daemons: a question that takes long does not hold up the end of the process.

    Args:
        count: How many.
        readers: Makes the readers of a thread.
        name: The threads' name.
    """

    def __init__(self, count: int, readers: Callable[[], Readers], name: str) -> None:
        self._readers = readers
        self._queue: queue.SimpleQueue[tuple[Future[Any], Task] | None] = queue.SimpleQueue()
        self._threads = [threading.Thread(target=self._work, name=name, daemon=True) for _ in range(count)]
        for one in self._threads:
            one.start()

    async def ask(self, task: Task, wait_s: float) -> Any:
        """Return what a task returns in one of the threads.

        Args:
            task: Gets the thread's readers.
            wait_s: How long to wait for it.

        Raises:
            BusyError: It is not done in that time, or too many others wait.
        """
        if self._queue.qsize() >= MOST_WAITING:
            raise BusyError("too much is asked for at once; try again in a moment")
        future: Future[Any] = Future()
        self._queue.put((future, task))
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), wait_s)
        except TimeoutError:
            raise BusyError(f"the answer took longer than {wait_s:g} s; ask for less, or again") from None

    def close(self, wait_s: float = 0.5) -> None:
        """End the threads that have nothing to do; one that works on ends with the process."""
        for _ in self._threads:
            self._queue.put(None)
        until = time.monotonic() + wait_s
        for one in self._threads:
            one.join(max(0.0, until - time.monotonic()))

    def _work(self) -> None:
        readers = self._readers()
        try:
            while (asked := self._queue.get()) is not None:
                future, task = asked
                if future.set_running_or_notify_cancel():
                    _settle(future, task, readers)
        finally:
            readers.close()


def _settle(future: Future[Any], task: Task, readers: Readers) -> None:
    try:
        found = task(readers)
    except BaseException as fault:
        future.set_exception(fault)
    else:
        future.set_result(found)
