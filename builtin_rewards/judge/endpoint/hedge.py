"""hedged and HedgeDelay: the slowest requests are asked a second time, and the first answer counts.

After Dean and Barroso, "The tail at scale" (Communications of the ACM 56(2), 2013): a second request once the first
has taken longer than 95 % of them do cuts the tail for a few per cent more requests.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from builtin_rewards.judge.errors import JudgeSetupError

T = TypeVar("T")


async def hedged(
    make: Callable[[], Coroutine[Any, Any, T]],
    after_s: float | None,
    *,
    may_hedge: Callable[[], bool] = lambda: True,
) -> T:
    """Return the first answer of up to two equal requests; the other is cancelled, and over when this returns.

    A hedged request costs double: the server does the work twice, and bills what it did of the one that is cancelled.

    Args:
        make: Starts a request.
        after_s: Seconds without an answer after which a second request is started; ``None``: never.
        may_hedge: Asked just before it is started; ``False``: it is not.

    Raises:
        Exception: What the first request raises, at once if there is no second, else when both have failed.
    """
    if after_s is None:
        return await make()
    tasks = [_start(make)]
    try:
        await asyncio.wait(tasks, timeout=after_s)
        if not tasks[0].done() and may_hedge():
            tasks.append(_start(make))
        return await _first_success(tasks)
    finally:
        await _end(tasks)


class HedgeDelay:
    """After how long to ask again: the 95th percentile of the last 200 latencies, once 20 were seen.

    At most ``share`` of all requests are hedged, so that an endpoint in trouble is not asked twice for everything:
    each request earns a share of a hedge, and up to ``share`` of a window may be saved up. Hedged requests cost double.

        delay.began()
        reply = await hedged(post, delay.after_s, may_hedge=delay.may_hedge)
        delay.observe(seconds since it began)

    Args:
        quantile: Share of requests that answer sooner than the delay.
        window: Latencies that are remembered.
        at_least: Latencies before which nothing is hedged.
        share: Most hedges by request.

    Raises:
        JudgeSetupError: A setting makes no sense.
    """

    def __init__(self, *, quantile: float = 0.95, window: int = 200, at_least: int = 20, share: float = 0.05) -> None:
        _expect(0 < quantile < 1, "quantile", quantile, "a share above 0 and below 1")
        _expect(
            1 <= at_least <= window, "at_least", at_least, f"a number of latencies from 1 to the window of {window}"
        )
        _expect(0 < share <= 1, "share", share, "a share of requests above 0 and up to 1")
        self._quantile = quantile
        self._at_least = at_least
        self._share = share
        self._latencies: deque[float] = deque(maxlen=window)
        self._earned = 0.0
        self._most_earned = max(share * window, 1.0)
        self._delay: float | None = None
        self.requests = 0
        """Requests that began, hedges not counted."""
        self.hedges = 0
        """Second requests that were allowed."""

    @property
    def after_s(self) -> float | None:
        """Seconds without an answer after which to ask again; ``None``: not known yet, so not at all."""
        if len(self._latencies) < self._at_least:
            return None
        if self._delay is None:
            rank = math.ceil(self._quantile * len(self._latencies))
            self._delay = sorted(self._latencies)[rank - 1]
        return self._delay

    def began(self) -> None:
        """Count a request."""
        self.requests += 1
        self._earned = min(self._earned + self._share, self._most_earned)

    def may_hedge(self) -> bool:
        """Say whether one more may be hedged, and count it if so."""
        if self._earned < 1:
            return False
        self._earned -= 1
        self.hedges += 1
        return True

    def observe(self, latency_s: float) -> None:
        """Remember how long a request took until its first answer, hedged or not. Not one that failed."""
        self._latencies.append(latency_s)
        self._delay = None


def _start(make: Callable[[], Coroutine[Any, Any, T]]) -> asyncio.Task[T]:
    task = asyncio.create_task(make())
    task.add_done_callback(_look_at)
    return task


async def _first_success(tasks: list[asyncio.Task[T]]) -> T:
    """Return the first answer, of two at once that of the first request; raise the first's error if all failed."""
    pending = set(tasks)
    while pending:
        _, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            if task.done() and not task.cancelled() and task.exception() is None:
                return task.result()
    return tasks[0].result()


async def _end(tasks: list[asyncio.Task[Any]]) -> None:
    """Cancel what is not done and wait until it is."""
    pending = [task for task in tasks if not task.done()]
    for task in pending:
        task.cancel()
    if pending:
        await asyncio.wait(pending)


def _look_at(task: asyncio.Task[Any]) -> None:
    """Take note of an error that nobody is left to hear, or asyncio reports it as never retrieved."""
    if not task.cancelled():
        task.exception()


def _expect(holds: bool, name: str, value: float, fix: str) -> None:
    if not holds:
        raise JudgeSetupError(f"hedging, {name}: expected {fix}, got {value}")
