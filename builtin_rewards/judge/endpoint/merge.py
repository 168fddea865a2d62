"""Merger: identical requests in flight are one.

It knows a request by its key alone and keeps nothing once the answer is there: that is the cache's work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Merger(Generic[K, V]):
    """Runs the work of equal keys once at a time and gives what came of it to all who asked.

    The work runs in a task of its own, with the context variables of the caller who came first. It is cancelled when
    the last one who waits for it is gone. It belongs to one event loop.
    """

    def __init__(self) -> None:
        self._running: dict[K, _Work[V]] = {}
        self.merged = 0
        """Calls that were given the answer to another's request."""

    def __len__(self) -> int:
        return len(self._running)

    async def once(self, key: K, make: Callable[[], Coroutine[Any, Any, V]]) -> V:
        """Return what ``make`` gives, called now or already under way for an equal key.

        A deadline belongs around this call, not inside ``make``: there the first caller's would be everyone's.

        Args:
            key: Equal for requests to which any one's answer is right for all. Samples of one question differ in it.
            make: Starts the work.

        Raises:
            Exception: What ``make`` raises; all who wait get the same error.
        """
        work = self._running.get(key)
        if work is None:
            work = self._running[key] = _Work(asyncio.create_task(make()))
            work.task.add_done_callback(lambda _: self._forget(key, work))
        else:
            self.merged += 1
        work.waiters += 1
        try:
            # Not awaited itself: that would cancel the work with whoever waits for it.
            await asyncio.wait({work.task})
        finally:
            work.waiters -= 1
            if not work.waiters:
                self._forget(key, work)
                await _end(work.task)
        return work.task.result()

    def _forget(self, key: K, work: _Work[V]) -> None:
        """Let the next call with the key begin anew, unless it has already."""
        if self._running.get(key) is work:
            del self._running[key]


class _Work(Generic[V]):
    """One task and how many wait for it."""

    __slots__ = ("task", "waiters")

    def __init__(self, task: asyncio.Task[V]) -> None:
        self.task = task
        self.waiters = 0
        task.add_done_callback(_look_at)


async def _end(task: asyncio.Task[Any]) -> None:
    """Cancel a task, unless it is done, and wait until it is."""
    if not task.done():
        task.cancel()
        await asyncio.wait({task})


def _look_at(task: asyncio.Task[Any]) -> None:
    """Take note of an error that nobody is left to hear, or asyncio reports it as never retrieved."""
    if not task.cancelled():
        task.exception()
