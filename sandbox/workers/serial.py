"""The lane that runs one call at a time, in the main thread: calls come in chunks, each with a time box."""

from __future__ import annotations

from sandbox.workers import capture, clock, surroundings
from sandbox.workers.desk import QUOTED_DISTURBED, Desk, SmallBatch, held_bytes
from sandbox.workers.job import is_failure
from sandbox.workers.steady import Steady

BOX_S = 0.02  # seconds after which a worker gives the rest of its chunk back: slow calls do not hold up quick ones


class SerialLane:
    """Runs one call at a time, in the main thread."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._data_bytes = held_bytes().data

    def run(self) -> int:
        """Serve until the parent is gone; then raise EOFError."""
        while True:
            for frame in self._desk.channel.receive():
                self._desk.obey(frame, self._run_chunk)

    def _run_chunk(
        self, ticket: int, half: int, batch: int | SmallBatch, target: int, calls: list[tuple[int, ...]]
    ) -> None:
        """Run calls, ticketed from the first one's on, until the chunk or its time box ends; report how many ran."""
        desk, monotonic, keeper = self._desk, Steady.monotonic, self._desk.keeper
        threads = capture.threads  # between calls, those that calls left
        page, run = desk.page, desk.targets[target]
        is_same = keeper.is_same
        if not is_same():  # a thread that is left may have patched names since the last chunk
            keeper.check()
            keeper.move_back()
        box = monotonic() + BOX_S
        done = numbers = 0
        common, segment = desk.data_of(batch)
        writer = page.prints.writer(0)
        log, timer = capture.begin_call(writer, ticket), self._new_clock()
        for places in calls:
            began = monotonic()
            log.ticket = ticket + done
            tainted = bool(threads)
            page.begin(0, ticket + done, began, tainted)
            answer = run(common, [segment(index) for index in places], places)
            same = is_same()
            if (not same and keeper.check() and tainted) or (
                type(answer) is str and is_failure(answer) and capture.others_threw(log)
            ):
                answer = QUOTED_DISTURBED  # a thread that an earlier call left may have patched a name, or raised this
            ended = monotonic()
            if timer.touched or capture.threads_started:
                timer.end()
                began += timer.stopped_s()
                timer = self._new_clock()
            if surroundings.earlier_states:
                desk.put_back()
            if not same and keeper.has_moved:
                keeper.move_back()
            if log.pristine and not capture.threads_started:
                if type(answer) is float:
                    page.answer(half, numbers, ended - began, answer, ticket + done)
                    numbers += 1
                else:
                    desk.record(ticket + done, ended - began, "", answer)
            else:
                desk.record(ticket + done, ended - began, log.finish(), answer)
                log = capture.begin_call(writer, ticket + done)
            done += 1
            if ended > box:
                break
        timer.end()
        page.end(0)
        touched, data = held_bytes()
        desk.tell("done", ticket, done, bool(threads), max(touched, data - self._data_bytes))

    def _new_clock(self) -> clock.Clock:
        timer = clock.CellClock(self._desk.page, 0)
        clock.use(timer)
        return timer
