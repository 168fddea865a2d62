"""Virtual time: an event loop that waits for nothing, so that no test of waits and deadlines hangs on a real clock."""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Coroutine
from typing import Any, TypeVar
from unittest import mock

T = TypeVar("T")


class Jump(selectors.DefaultSelector):
    """Waits for nothing: time jumps to the next timer. Where there is none a thread may be at work; else it fails."""

    now_s = 0.0
    ended = False

    def select(self, timeout: float | None = None) -> Any:
        if self.ended:
            return super().select(timeout)
        if timeout is None:
            ready = super().select(60)
            assert ready, "all wait and there is no timer"
            return ready
        self.now_s += timeout
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time."""

    def __init__(self) -> None:
        self.selector = Jump()
        super().__init__(self.selector)

    def time(self) -> float:
        return self.selector.now_s


def virtual(main: Coroutine[Any, Any, T]) -> T:
    """Run to the end in virtual time, which ``time.monotonic`` tells as well; threads have real time to end."""
    loop = VirtualLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner, mock.patch.object(time, "monotonic", loop.time):
        try:
            return runner.run(main)
        finally:
            loop.selector.ended = True


class AheadLoop(asyncio.SelectorEventLoop):
    """An event loop in real time that can be put ahead, so that a deadline passes at the right moment."""

    ahead_s = 0.0

    def time(self) -> float:
        return super().time() + self.ahead_s


def now() -> float:
    """Return the running loop's time."""
    return asyncio.get_running_loop().time()
