"""The parent's view of one worker: its process, what it was sent, and what it is seen doing."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple

from sandbox.workers.desk import cells_of, threads_of
from sandbox.workers.page import Page, Running, page_bytes
from sandbox.workers.process_state import RunQueue, is_halted
from sandbox.workers.wire import RECORDS_BYTES, Channel, RecordReader, anonymous_file, channel_pair, map_shared

if TYPE_CHECKING:
    from sandbox.workers.blame import Fate
    from sandbox.workers.job import Call, Job

CONSOLE_CHARS = 4000  # characters kept of what the interpreter wrote as it crashed
CONSOLE_BYTES = 1 << 16  # size of the file that it writes to
CUT_OFF_S = 0.1  # seconds that a cut-off worker has to die by itself, with its own exit code, before it is killed
LOOP_CHECK_S = 0.05  # seconds between two looks at an event loop's current step
STALLED_S = 5.0  # seconds without a sign of life after which a worker that runs no call counts as stopped
GRACE_S = 5.0  # seconds after its deadline by which a call has been answered, or else is lost
STOPPED_S = 120.0  # seconds that a call's clock may stand still, as while a jail starts; then its worker counts as idle
AWAY_S = 1.0  # seconds between two looks from which on the parent itself counts as having stood still
PEEK_S = 0.1  # seconds between two looks at what a running chunk has finished: a slow call holds back no answer
WATCH_S = 1.0  # seconds between two looks at a worker that has calls to answer, at most
SETTLED_S = 0.001  # seconds after which one processor surely sees what another wrote
HEARTBEAT_LOST_S = 0.5  # seconds without a sign of life after which some call is taken to hold the interpreter


class Lane(StrEnum):
    """How a worker runs its calls."""

    SERIAL = "serial"  # one at a time, in the main thread
    THREADS = "threads"  # many at once, on threads
    ASYNCIO = "asyncio"  # many at once, on an event loop


class State(StrEnum):
    """Where a slot's worker is in its life."""

    DOWN = "down"
    STARTING = "starting"
    READY = "ready"
    CUT_OFF = "cut off"  # its end of the socket is closed: it is dying, or a call closed its descriptors
    DYING = "dying"


class _Sending(NamedTuple):
    """When calls were sent, the longest of their times, and what :attr:`Slot.excused_s` was then."""

    sent_at: float
    timeout_s: float
    excused_s: float


@dataclass(slots=True)
class Lag:
    """How long the running call of a serial worker has waited for a processor since it began, as far as seen."""

    queue: RunQueue
    looked_at: float = -math.inf
    waited_s: float = 0.0  # the queue's seconds then
    ticket: int = 0  # the call that ran then
    lag_s: float = 0.0  # what it had lost until then

    def look(self, now: float, running: Running | None = None) -> float:
        """Return by how many seconds the running call's lag has grown since the last look.

        Of a call that was not seen before, the wait counts that cannot have been before it began.
        """
        gap_s, waited_s = now - self.looked_at, self.queue.waited_s()
        grown_s, self.looked_at, self.waited_s = waited_s - self.waited_s, now, waited_s
        if running is None:
            return 0.0
        if running.ticket != self.ticket:
            self.ticket, self.lag_s = running.ticket, 0.0
            grown_s = max(0.0, grown_s - max(0.0, gap_s - (now - running.started)))
        self.lag_s += grown_s
        return grown_s


@dataclass(slots=True)
class Slot:
    """A slot for a worker; when its worker dies, the next one takes the slot."""

    index: int  # its number
    lane: Lane  # how its workers run calls
    width: int  # calls in flight at once
    targets: frozenset[int]  # which targets it can run
    names: str = ""  # what these are called, for messages
    state: State = State.DOWN  # where the present worker is in its life
    process: int = 0  # the present worker's process id; 0 for none
    generation: int = 0  # counts the workers of this slot
    sent: dict[int, tuple[Job, Call]] = field(default_factory=dict)  # unanswered calls by ticket
    chunk: range = range(0)  # tickets of the chunk that a serial worker is running; empty while it has no chunk
    half: int = 0  # which half of the page takes that chunk's answers
    numbers_read: int = 0  # answers read there so far
    threads: int = 0  # how many the present worker had when it was ready
    given_up: int = 0  # calls that ran out of time and whose threads are still stuck
    batches: set[int] = field(default_factory=set)  # jobs whose batch the worker has open
    check_at: float = math.inf  # when to look at the page next, on the monotonic clock
    fates: dict[int, Fate] = field(default_factory=dict)  # of calls that it is killed for and that do not answer first
    retiring: bool = False  # whether we killed the worker, and nobody but :attr:`fates` says is to blame for its end
    emptying: bool = False  # whether the worker is emptying its results file, and nothing may be sent
    tainted: bool = False  # whether calls left threads running in it
    loaded: bool = False  # whether a worker of this slot was ever ready
    load_s: float = 0.0  # seconds that the slowest of its workers took from its fork until it was ready
    began: float = math.inf  # when the present worker was forked, on the monotonic clock
    from_nursery: bool = False  # whether the present worker came from a nursery
    is_of_many: bool = False  # whether its workers come from a nursery from the beginning, to share what they load
    nursery_failed: bool = False  # whether one that did was never ready, so that no others shall
    failed_starts: int = 0  # workers in a row that were never ready
    counted: bool = False  # whether the present worker is one of these already
    doubted: bool = False  # whether the warden was asked about the present worker's beginning or end
    waits_until: float = -math.inf  # until when its beginning may wait for a nursery that loads its targets
    first: int = 1  # its present worker's first ticket
    leaks: bool = False  # whether it holds so much memory that it is to be replaced when it has answered
    malformed: str = ""  # what the worker wrote that its own code does not write; ``""`` for nothing
    excused_s: float = 0.0  # seconds, over the slot's life, for which no call could be expected to answer
    halted_at: float = -math.inf  # when the present worker was last seen stopped by a signal or a freezer
    halted_since: float = math.inf  # since when it is; infinite for not at all
    idle_since: float = math.inf  # since when it has calls to answer and runs none; infinite for not at all
    looked_at: float = -math.inf  # when the page was last looked at for what runs
    channel: Channel | None = None
    page: Page | None = None
    reader: RecordReader | None = None
    lag: Lag | None = None  # of a serial worker that was sent calls
    _descriptors: list[int] = field(default_factory=list)
    _next_ticket: int = 1
    _sendings: dict[int, _Sending] = field(default_factory=dict)  # by first ticket

    def open(self) -> list[int]:
        """Make the files for a new worker and return the descriptors that it needs; the caller closes the first."""
        self.close()
        self.channel, theirs = channel_pair()
        cells = cells_of(self.lane, self.width)
        sizes = {"page": page_bytes(cells), "results": RECORDS_BYTES, "console": CONSOLE_BYTES}
        self._descriptors = [anonymous_file(name, size) for name, size in sizes.items()]
        page_file, results_file, _ = self._descriptors
        self.page = Page(map_shared(page_file, sizes["page"], writable=True), cells)
        self.reader = RecordReader(results_file)
        self.state, self.generation = State.STARTING, self.generation + 1
        self.given_up, self.tainted, self.retiring, self.emptying = 0, False, False, False
        self.idle_since, self.chunk, self.malformed = math.inf, range(0), ""
        self.halted_at, self.halted_since = -math.inf, math.inf
        self.counted, self.doubted, self.from_nursery, self.began = False, False, False, math.inf
        self.waits_until = -math.inf
        self._sendings.clear()
        self.first, self.leaks = self._next_ticket, False
        self.batches.clear()
        self.fates.clear()
        return [theirs.detach(), *self._descriptors]

    def close(self) -> None:
        """Close the files of the present worker, which the slot is without from then on."""
        if self.channel is not None:
            self.channel.close()
        if self.page is not None:
            self.page.close()
        for descriptor in self._descriptors:
            os.close(descriptor)
        if self.lag is not None:
            self.lag.queue.close()
        self.lag = None
        self.channel, self.page, self.reader, self._descriptors = None, None, None, []
        self.state, self.process, self.check_at = State.DOWN, 0, math.inf

    def tickets(self, job: Job, calls: Sequence[Call]) -> int:
        """Note calls as sent, under consecutive tickets, and return the first ticket."""
        first = self._next_ticket
        self._next_ticket += len(calls)
        now = time.monotonic()
        if not self.sent:
            self.looked_at = now  # it was not looked at for a while, because there was nothing to see
        longest_s = max([call.timeout_s for call in calls]) if len(calls) > 1 else calls[0].timeout_s
        self._sendings[first] = _Sending(now, longest_s, self.excused_s)
        if self.lane is Lane.SERIAL:
            self.lag = self.lag or Lag(RunQueue(self.process))
            self.lag.look(now)
        self.sent.update(zip(range(first, self._next_ticket), zip(repeat(job), calls, strict=False), strict=True))
        return first

    def sent_call(self, ticket: int) -> Call:
        """Return the unanswered call of a ticket."""
        _, call = self.sent[ticket]
        return call

    def unread_answers(self) -> Iterable[tuple[float, float, int]]:
        """Return the numbers that a serial worker has answered with since they were last read; see the page."""
        if not self.chunk or self.page is None:
            return ()
        return self.page.answers(self.half, self.numbers_read, len(self.chunk) - self.numbers_read)

    @property
    def used(self) -> bool:
        """Whether the present worker has been sent a call."""
        return self._next_ticket > self.first

    @property
    def first_alone(self) -> int:
        """The first call that the present worker was sent, where no other can have run beside it; 0 where one can."""
        return self.first if self.lane is Lane.SERIAL or self._next_ticket == self.first + 1 else 0

    @property
    def look_at(self) -> float:
        """When to look at the page next. A worker with calls to answer is never left unwatched."""
        if self.sent and self.state is State.READY:
            return min(self.check_at, self.looked_at + WATCH_S)
        return self.check_at

    def is_at(self, first: int, done: int) -> bool:
        """Return whether the worker can have finished that many calls of the chunk that begins with this ticket."""
        return bool(self.chunk) and first == self.chunk.start and 0 < done <= len(self.chunk)

    def finish_chunk(self) -> range:
        """Note that the worker has finished its chunk, and return the chunk."""
        finished, self.chunk, self.check_at = self.chunk, range(0), math.inf
        self._sendings.clear()
        return finished

    def expired(self, now: float) -> list[int]:
        """Return the calls that should have been answered for long ago, whatever the page, socket or loop says.

        A call expires :data:`GRACE_S` after its time is up, counted from when it was sent, and a bounded time later
        where no answer could be expected: clocks stood still, one coroutine held the loop, or the parent stood still.
        A chunk's calls begin within moments of each other, because the first that takes longer ends the chunk.
        """
        sendings = self._sendings
        most_s = STOPPED_S + (self.width - 1) * max((sending.timeout_s for sending in sendings.values()), default=0.0)
        late = [
            first
            for first, sending in sendings.items()
            if now > sending.sent_at + sending.timeout_s + GRACE_S + min(self.excused_s - sending.excused_s, most_s)
        ]
        if self.lane is Lane.SERIAL:
            return list(self.sent) if late else []
        for first in [first for first in sendings if first not in self.sent]:
            del sendings[first]
        return [first for first in late if first in self.sent]

    def settled(self, now: float) -> bool:
        """Return whether the worker has been at one call for so long that all its earlier writes are in memory."""
        assert self.page is not None
        return all(now - running.started > SETTLED_S for running in self.page.running())

    def tell(self, message: tuple[Any, ...], descriptors: Sequence[int] = ()) -> None:
        """Send the worker a message; if it is dead, its end is reported elsewhere."""
        if self.channel is not None:
            with contextlib.suppress(OSError):
                self.channel.send_pickle(message, descriptors)

    def overdue(self, now: float) -> dict[int, bool]:
        """Return the calls whose time is up, and whether what others left ran too; set :attr:`check_at`."""
        assert self.page is not None
        halted = bool(self.sent) and is_halted(self.process)
        self.halted_at = now if halted else self.halted_at
        self.halted_since = min(self.halted_since, now) if halted else math.inf
        if self.lane is Lane.ASYNCIO:
            return self._overdue_step(now)
        overdue: dict[int, bool] = {}
        next_check = math.inf
        runs = self.page.running()
        lost = all(running.stopped and not now - running.started <= STOPPED_S for running in runs)
        stopped = not lost and any(running.stopped for running in runs)
        self._note_look(now, idle=bool(self.sent) and lost, excused=stopped)
        for running in runs:
            if running.ticket not in self.sent or running.stopped:
                continue
            due = running.started + self.sent_call(running.ticket).timeout_s + self._lag_of(now, running)
            if now >= due:
                overdue[running.ticket] = running.tainted or self.page.beset(running.ticket)
            else:
                next_check = min(next_check, due)
        waiting = min((call.timeout_s for _, call in self.sent.values()), default=math.inf)
        self.check_at = min(next_check, now + waiting, now + PEEK_S)
        return overdue

    def _lag_of(self, now: float, running: Running) -> float:
        """Return the seconds that a running call could not use, at most :data:`STOPPED_S`; 0 among other calls."""
        if self.lag is None:
            return 0.0
        self.excused_s += self.lag.look(now, running)
        return min(self.lag.lag_s, STOPPED_S)

    def _note_look(self, now: float, *, idle: bool, excused: bool) -> None:
        """Note since when the worker does nothing, as far as seen, and for how long no call could answer.

        Where the looks had stopped, as in a paused container, the worker has its time anew.
        """
        gap = now - self.looked_at if self.looked_at > -math.inf else 0.0
        away = gap > AWAY_S
        if self.sent and (away or excused):
            self.excused_s += gap
        self.looked_at = now
        self.idle_since = (now if away else min(self.idle_since, now)) if idle else math.inf

    def _overdue_step(self, now: float) -> dict[int, bool]:
        """Look whether one coroutine holds the loop past its call's deadline."""
        assert self.page is not None
        step = self.page.stepping()
        self.check_at = now + LOOP_CHECK_S if self.sent else math.inf
        lost = not step.ticket or (step.stopped and not now - step.deadline <= STOPPED_S)
        silent = self.sent and lost and not self.breathes(now)
        self._note_look(now, idle=bool(silent), excused=not lost)
        if step.ticket and not step.stopped and not now <= step.deadline and now - step.began > LOOP_CHECK_S / 2:
            return {step.ticket: self.page.beset(step.ticket)}
        return {}

    def was_halted(self, now: float, tickets: Iterable[int] = ()) -> bool:
        """Return whether the worker has been stopped from outside for long, or while one of these calls ran."""
        sendings = (self._sendings.get(self.chunk.start or ticket) for ticket in tickets)
        during = any(sending is not None and self.halted_at >= sending.sent_at for sending in sendings)
        return during or now - self.halted_since >= STALLED_S

    def stalled(self, now: float) -> bool:
        """Return whether the worker has calls to answer and does nothing: it was stopped from outside, or lost them."""
        return now - self.idle_since >= STALLED_S

    def suspects(self) -> dict[int, bool]:
        """Return the calls that were running when the worker died, and whether each had left-over threads beside it."""
        assert self.page is not None
        if self.lane is Lane.ASYNCIO:
            step = self.page.stepping()
            return {step.ticket: False} if step.ticket in self.sent else dict.fromkeys(self.sent, False)
        return {running.ticket: running.tainted for running in self.page.running() if running.ticket in self.sent}

    def breathes(self, now: float) -> bool:
        """Return whether a worker still runs Python code; not while one call holds the interpreter."""
        assert self.page is not None
        return now - self.page.heartbeat() < HEARTBEAT_LOST_S

    def is_clean_for(self, call: Call) -> bool:
        """Return whether a call that is to run alone can run in the present worker, beside what others left there."""
        return not (self.tainted or self.given_up or (self.used and (call.terms.fresh or self.has_more_threads())))

    def has_more_threads(self) -> bool:
        """Return whether the worker has more threads than when it was ready; ``False`` where that is unknown."""
        return threads_of(self.process) > self.threads > 0

    def printed(self, ticket: int) -> str:
        """Return what a call that has not answered has printed so far."""
        return "" if self.page is None else self.page.prints.of(ticket)

    def console(self) -> str:
        """Return what the interpreter wrote as it crashed."""
        _, _, console_file = self._descriptors
        with contextlib.suppress(OSError):
            text = os.pread(console_file, CONSOLE_CHARS, 0).decode("utf-8", "replace")
            return text.replace("\0", "").strip()
        return ""
