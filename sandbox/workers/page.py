"""The page of memory that a worker and its parent share: what the worker is doing right now.

The worker writes, the parent reads; no message is sent for a call that goes well. A ticket is the
number under which the parent sent a call; 0 means none. All times are ``time.monotonic()``, which
on Linux and macOS is one clock for all processes.
"""

from __future__ import annotations

import mmap
import os
import struct
import threading
from collections.abc import Iterator
from typing import NamedTuple

from sandbox.workers.prints import REGION_BYTES, Prints

_BEAT, _TICKET, _BEGAN, _DEADLINE = range(4)  # heartbeat, and of the loop's step the ticket and the two times
_CELL = struct.Struct("@dQQ")  # started, whether other threads were alive then, ticket
_COLLECTING, _COLLECTED = 4, 5  # tickets of the calls in which the collector works now, and has worked for long
_TICKET_AT = 16
_WAKE_AT = 48
_CELLS_AT = 64
_WORD = 8
_NUMBER = struct.Struct("@ddQ")  # duration, value, ticket, which is written last
_VALUES = struct.Struct("@dd")  # duration and value alone
IN_ORDER = os.uname().machine in ("x86_64", "amd64", "i686", "i386")
"""Whether all processors see one's writes in the order in which it made them; others, as arm64, need a fence."""

MAX_CHUNK = 1024  # calls sent to a serial worker at once


class Running(NamedTuple):
    """A call in progress."""

    ticket: int  # the call's number
    started: float  # when it began, plus the time for which its clock stood still; if it stands still now, since when
    tainted: bool  # whether threads left by earlier calls were alive when it began
    stopped: bool = False  # whether its clock stands still


class LoopStep(NamedTuple):
    """The coroutine that an event loop is running at this moment."""

    ticket: int  # the call it belongs to; 0 where the loop waits
    began: float  # when this step began
    deadline: float  # when that call's time is up; where its clock stands still, since when
    stopped: bool = False  # whether its clock stands still


class Fence:
    """Calling it keeps all reads and writes before it before those after it; one thread calls it.

    Giving a lock back lets no earlier access pass, and taking it no later one.
    """

    def __init__(self) -> None:
        lock = threading.Lock()
        lock.acquire()
        self._take, self._give_back = lock.acquire, lock.release

    def __call__(self) -> None:
        self._give_back()
        self._take()


class Page:
    """One worker's shared page: a heartbeat, an event loop's step, answers, and a cell and prints for each call.

    It holds answers that are one number without output, of a serial worker's last two chunks: one read, one written.
    """

    def __init__(self, memory: mmap.mmap, cells: int) -> None:
        self.cells = cells  # how many calls may be in flight
        self._map = memory
        self._numbers_at = _CELLS_AT + cells * _CELL.size
        self._fence = None if IN_ORDER else Fence()
        # These write a word at once; struct clears the word first, and a reader may see that.
        self._floats, self._integers = memoryview(self._map).cast("d"), memoryview(self._map).cast("Q")
        self.prints = Prints(self._map, self._integers, _prints_at(cells), cells)

    def answer(self, half: int, index: int, duration_s: float, value: float, ticket: int) -> None:
        """Write an answer that is a number, by its index in one half."""
        at = self._numbers_at + (half * MAX_CHUNK + index) * _NUMBER.size
        if self._fence is None:
            _NUMBER.pack_into(self._map, at, duration_s, value, ticket)
            return
        _VALUES.pack_into(self._map, at, duration_s, value)
        self._fence()
        self._integers[(at + _VALUES.size) // _WORD] = ticket

    def answers(self, half: int, first: int, count: int) -> Iterator[tuple[float, float, int]]:
        """Return durations, numbers and tickets; a ticket of another chunk marks the end of what was written."""
        at = self._numbers_at + (half * MAX_CHUNK + first) * _NUMBER.size
        data = self._map[at : at + count * _NUMBER.size]
        if self._fence is None:
            return _NUMBER.iter_unpack(data)
        tickets = [ticket for _, _, ticket in _NUMBER.iter_unpack(data)]
        self._fence()  # what is read of a ticket's values from here on is not older than the ticket
        values = _NUMBER.iter_unpack(self._map[at : at + count * _NUMBER.size])
        return ((duration_s, value, ticket) for (duration_s, value, _), ticket in zip(values, tickets, strict=True))

    def beat(self, now: float) -> None:
        """Say that the worker's main thread is running Python code."""
        self._floats[_BEAT] = now

    def heartbeat(self) -> float:
        return self._floats[_BEAT]

    def collect(self, ticket: int) -> None:
        """Say that the collector of garbage works in a call, 0 for no longer: it runs what other calls left."""
        self._integers[_COLLECTING] = ticket

    def collected(self, ticket: int) -> None:
        """Say that it has taken long."""
        self._integers[_COLLECTED] = ticket

    def beset(self, ticket: int) -> bool:
        """Return whether the collector works in a call, or has for long."""
        return ticket in (self._integers[_COLLECTING], self._integers[_COLLECTED])

    @property
    def woken(self) -> bool:
        """Whether the worker has told the parent of results that the parent has not looked for yet."""
        return self._map[_WAKE_AT] != 0

    @woken.setter
    def woken(self, flag: bool) -> None:
        self._map[_WAKE_AT] = flag

    def step(self, ticket: int, began: float, deadline: float) -> None:
        """Say which call's coroutine the loop runs. The ticket is written last: with it, the times are its own."""
        self._floats[_BEGAN], self._floats[_DEADLINE] = began, deadline
        self._integers[_TICKET] = ticket

    def step_over(self) -> None:
        """Say that the loop runs no call's coroutine."""
        self._integers[_TICKET] = 0

    def stepping(self) -> LoopStep:
        ticket, began, deadline = self._integers[_TICKET], self._floats[_BEGAN], self._floats[_DEADLINE]
        return LoopStep(ticket, began, abs(deadline), deadline < 0)

    def halt_step(self, now: float) -> None:
        """Say that the clock of the step's call stands still from now on: a time below zero says since when."""
        self._floats[_DEADLINE] = -now

    def resume_step(self, deadline: float) -> None:
        """Say that it goes on, and when the call's time is up now."""
        self._floats[_DEADLINE] = deadline

    def begin(self, cell: int, ticket: int, now: float, tainted: bool) -> None:
        """Say that a call begins; its ticket is written last.

        A machine's memory may show the writes in another order, so a reader that is about to act looks twice.
        """
        _CELL.pack_into(self._map, _CELLS_AT + cell * _CELL.size, now, tainted, ticket)

    def end(self, cell: int) -> None:
        self._integers[self._ticket_of(cell)] = 0

    def started(self, cell: int) -> float:
        return self._floats[self._started_of(cell)]

    def halt(self, cell: int, now: float) -> None:
        """Say that the clock of the cell's call stands still from now on: a time below zero says since when."""
        self._floats[self._started_of(cell)] = -now

    def resume(self, cell: int, started: float) -> None:
        """Say that it goes on, and when the call is to be taken to have begun."""
        self._floats[self._started_of(cell)] = started

    def running(self) -> list[Running]:
        cells = (self._cell(cell) for cell in range(self.cells))
        return [cell for cell in cells if cell.ticket]

    def _cell(self, cell: int) -> Running:
        at = _CELLS_AT + cell * _CELL.size
        while True:
            started, tainted, ticket = _CELL.unpack_from(self._map, at)
            if self._integers[self._ticket_of(cell)] == ticket:
                return Running(ticket, abs(started), bool(tainted), started < 0)

    @staticmethod
    def _ticket_of(cell: int) -> int:
        return (_CELLS_AT + cell * _CELL.size + _TICKET_AT) // _WORD

    @staticmethod
    def _started_of(cell: int) -> int:
        return (_CELLS_AT + cell * _CELL.size) // _WORD

    def close(self) -> None:
        self._floats.release()
        self._integers.release()
        self._map.close()


def page_bytes(cells: int) -> int:
    """Return the size of a page for so many calls in flight."""
    return _prints_at(cells) + cells * REGION_BYTES


def _prints_at(cells: int) -> int:
    """Return where the calls' output begins: on a page of memory of its own."""
    needed = _CELLS_AT + cells * _CELL.size + 2 * MAX_CHUNK * _NUMBER.size
    return -(-needed // mmap.PAGESIZE) * mmap.PAGESIZE
