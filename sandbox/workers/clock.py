"""The clock of a call: it can be stopped, so that waits which the call does not cause do not count against its time.

The start of a jail is such a wait: whichever call comes first has to wait for it.
"""

from __future__ import annotations

import contextlib
import contextvars
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from sandbox.workers.steady import Steady

if TYPE_CHECKING:
    from sandbox.workers.page import Page

_current: contextvars.ContextVar[Clock | None] = contextvars.ContextVar("clock", default=None)
_lock = threading.Lock()  # protects all clocks, for a moment each: threads of one call, and one that it left, may meet


@contextlib.contextmanager
def stopped() -> Iterator[None]:
    """Stop the clock of the call that runs here, in whichever of its threads; where none runs, do nothing."""
    clock = _current.get()
    if clock is None or clock.process != Steady.process():  # a fork's time is not the call's
        yield
        return
    clock.stop()
    try:
        yield
    finally:
        clock.go()


def use(clock: Clock) -> None:
    """Make this the clock of what runs in this context from now on."""
    _current.set(clock)


class Clock:
    """A process's clock that several threads may stop at once; ``touched`` says whether it has been stopped."""

    touched = False
    _stops = 0
    _since = 0.0  # while it runs
    _stopped_s = 0.0
    _over = False

    def __init__(self) -> None:
        self.process = Steady.process()

    def stop(self) -> None:
        """Stop, until :meth:`go` has been called as often as this."""
        with _lock:
            self._stops += 1
            if self._stops == 1 and not self._over:
                self.touched = True
                self._since = Steady.monotonic()
                self._halt(self._since)

    def go(self) -> None:
        with _lock:
            self._stops -= 1
            if self._stops == 0 and not self._over:
                self._resume(self._count())

    def end(self) -> None:
        """End the call's clock, which nothing that the call left running can stop any more."""
        with _lock:
            self._over = True
            self._count()

    def stopped_s(self) -> float:
        with _lock:
            return self._stopped_s + (Steady.monotonic() - self._since if self._since else 0.0)

    def _count(self) -> float:
        """Add the time for which it has stood still since it was last stopped, and return that time."""
        took = Steady.monotonic() - self._since if self._since else 0.0
        self._since = 0.0
        self._stopped_s += took
        return took

    def _halt(self, now: float) -> None:
        """Say on the page that it stands still."""
        raise NotImplementedError

    def _resume(self, took: float) -> None:
        """Say on the page that it goes on after so many seconds."""
        raise NotImplementedError


class CellClock(Clock):
    """The clock of a call that has a cell of the page."""

    def __init__(self, page: Page, cell: int) -> None:
        super().__init__()
        self._page = page
        self._cell = cell
        self._started = 0.0

    def _halt(self, now: float) -> None:
        self._started = self._page.started(self._cell)
        self._page.halt(self._cell, now)

    def _resume(self, took: float) -> None:
        self._started += took
        self._page.resume(self._cell, self._started)
