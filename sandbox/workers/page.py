"""The page of memory that a worker and its parent share: what the worker is doing right now.

The worker writes, the parent reads; no message is sent for a call that goes well. A ticket is the
number under which the parent sent a call; 0 means none. All times are ``time.monotonic()``, which
on Linux and macOS is one clock for all processes.
"""

from __future__ import annotations

import mmap
import struct
from typing import NamedTuple

_HEAD = struct.Struct("<dQdd")  # heartbeat, stepping ticket, step began, stepping call's deadline
_STEP = struct.Struct("<Qdd")
_STEP_AT = 8
_CELL = struct.Struct("<dQQ")  # started, whether other threads were alive then, ticket
_TICKET = struct.Struct("<Q")
_TICKET_AT = 16
_BEAT = struct.Struct("<d")
_CELLS_AT = 64


class Running(NamedTuple):
    """A call in progress.

    Attributes:
        ticket: The call's number.
        started: When it began.
        tainted: Whether threads left by earlier calls were alive when it began.
    """

    ticket: int
    started: float
    tainted: bool


class Step(NamedTuple):
    """The coroutine that an event loop is running at this moment.

    Attributes:
        ticket: The call it belongs to; 0 where the loop waits.
        began: When this step began.
        deadline: When that call's time is up.
    """

    ticket: int
    began: float
    deadline: float


class Page:
    """One worker's shared page: a heartbeat, the step of an event loop, and a cell per call in flight."""

    def __init__(self, descriptor: int, cells: int) -> None:
        self.cells = cells
        self._map = mmap.mmap(descriptor, page_bytes(cells))

    def beat(self, now: float) -> None:
        """Say that the worker's main thread is running Python code."""
        _BEAT.pack_into(self._map, 0, now)

    def heartbeat(self) -> float:
        """Gives when the worker last said so."""
        value: float = _BEAT.unpack_from(self._map, 0)[0]
        return value

    def step(self, ticket: int, began: float, deadline: float) -> None:
        """Say which call's coroutine the loop runs; ticket 0 for none."""
        _STEP.pack_into(self._map, _STEP_AT, ticket, began, deadline)

    def stepping(self) -> Step:
        """Gives what the loop runs now."""
        return Step(*_STEP.unpack_from(self._map, _STEP_AT))

    def begin(self, cell: int, ticket: int, now: float, tainted: bool) -> None:
        """Say that a call begins.

        The ticket is written last. Where a machine's memory shows the writes in another order all the
        same, a reader that is about to act looks a second time.
        """
        _CELL.pack_into(self._map, _CELLS_AT + cell * _CELL.size, now, tainted, ticket)

    def end(self, cell: int) -> None:
        """Say that the cell's call is over."""
        _TICKET.pack_into(self._map, _CELLS_AT + cell * _CELL.size + _TICKET_AT, 0)

    def running(self) -> list[Running]:
        """Gives the calls in progress."""
        cells = (self._cell(cell) for cell in range(self.cells))
        return [cell for cell in cells if cell.ticket]

    def _cell(self, cell: int) -> Running:
        at = _CELLS_AT + cell * _CELL.size
        while True:
            started, tainted, ticket = _CELL.unpack_from(self._map, at)
            if _TICKET.unpack_from(self._map, at + _TICKET_AT)[0] == ticket:
                return Running(ticket, started, bool(tainted))

    def close(self) -> None:
        """Let go of the memory."""
        self._map.close()


def page_bytes(cells: int) -> int:
    """Gives the size of a page for so many calls in flight."""
    needed = _CELLS_AT + cells * _CELL.size
    return -(-needed // mmap.PAGESIZE) * mmap.PAGESIZE
