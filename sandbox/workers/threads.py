"""The lane of threads: blocking calls (HTTP, a database), many at once in one process.

A thread cannot be killed. The parent gives a call up that is over its deadline and leaves its thread behind; it starts
a new process when too many threads are stuck or nothing else is in flight.
"""

from __future__ import annotations

import queue
import select
from typing import Any

from pebble import ThreadPool

from sandbox.workers import capture, clock, surroundings
from sandbox.workers.desk import BROKEN, QUOTED_DISTURBED, Desk, Order, cells_of
from sandbox.workers.job import is_failure
from sandbox.workers.steady import Steady

BEAT_S = 0.05  # seconds between two signs of life of the main thread; none means that some call holds the interpreter


class ThreadLane:
    """Runs calls on a pool of daemon threads (pebble's: one stuck thread must not keep the process alive)."""

    def __init__(self, desk: Desk, width: int) -> None:
        self._desk = desk
        self._cells: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._all_cells = cells_of("threads", width)
        for cell in range(self._all_cells):
            self._cells.put(cell)
        self._pool = ThreadPool(max_workers=self._all_cells)
        assert self._pool.active  # its threads run from here on

    def run(self) -> int:
        """Serve, with a sign of life in between, until the parent is gone; then raise EOFError."""
        poll = select.poll()
        poll.register(self._desk.channel.fileno(), select.POLLIN)
        while True:
            self._desk.page.beat(Steady.monotonic())
            if poll.poll(BEAT_S * 1000):
                for frame in self._desk.channel.receive():
                    self._desk.obey(frame, self._start)

    def _start(self, orders: list[tuple[Any, ...]]) -> None:
        for order in orders:
            self._pool.schedule(self._run_call, args=(Order(*order),))

    def _run_call(self, order: Order) -> None:
        """Run a call in a thread of the pool, and report its result; end this process where that fails."""
        desk, cell = self._desk, self._cells.get()
        try:
            log = capture.begin_call(desk.page.prints.writer(cell), order.ticket)
            timer = clock.CellClock(desk.page, cell)
            clock.use(timer)
            began = Steady.monotonic()
            self._check()
            desk.page.begin(cell, order.ticket, began, capture.threads_are_left())
            answer = desk.targets[order.target](*desk.arguments(order))
            self._check()
            if is_failure(answer) and capture.others_threw(log):
                answer = QUOTED_DISTURBED
            if surroundings.earlier_states:
                desk.put_back(log)
            if desk.keeper.has_moved and (desk.keeper.is_silent or self._cells.qsize() == self._all_cells - 1):
                desk.keeper.move_back()  # other calls may have redirected a stream for the time that they run
            timer.end()
            desk.record(order.ticket, Steady.monotonic() - began - timer.stopped_s(), log.finish(), answer)
            desk.page.end(cell)
            self._cells.put(cell)
            desk.wake()
        except BaseException:
            Steady.end(BROKEN)  # the pool of threads would swallow it, and the call would never be answered

    def _check(self) -> None:
        """Put back what is missing or patched; end this process where other calls may have met that."""
        if self._desk.keeper.check() and self._cells.qsize() < self._all_cells - 1:
            Steady.end(BROKEN)  # each of them runs again alone
