"""The pool: it feeds workers with calls, watches deadlines, puts blame where it belongs, and restarts the dead.

One thread owns every slot and job, so nothing here is locked; other threads hand it commands. A call
that goes well costs no message of its own: calls go out in chunks, the worker notes what it runs on a
shared page and its results in a shared file, and gives a chunk's rest back after 20 ms. When a worker
dies or must be killed, the call it was running is blamed, its finished ones count, the others go out again.

Where several calls may be to blame (threads of one process, or threads that an earlier call left
running), each is run again alone in a clean worker, and only what it does there is held against it.
"""

from __future__ import annotations

import atexit
import contextlib
import heapq
import itertools
import math
import os
import selectors
import signal
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.errors import PoolClosedError, SandboxError, WorkerStartError
from sandbox.limits import DEFAULT_MEMORY_BYTES, LOAD_TIMEOUT_S
from sandbox.workers import orphans
from sandbox.workers.collector import CollectorPaused
from sandbox.workers.job import Again, Call, CallResult, CallStatus, Job
from sandbox.workers.page import MAX_CHUNK
from sandbox.workers.slot import (
    AWAY_S,
    CUT_OFF_S,
    GRACE_S,
    LOOP_CHECK_S,
    PEEK_S,
    Lane,
    Slot,
    State,
    describe_end,
    killed_from_outside,
    out_of_memory_kills,
    sleeps,
)
from sandbox.workers.steady import INSIDE
from sandbox.workers.warden import process_descriptor
from sandbox.workers.wire import AGAIN, Channel, MalformedError, channel_pair, decoded
from sandbox.workers.worker import BROKEN, CHANNEL_LOST

MAX_LOST = 3
"""Times a call's worker may be killed from outside before the call is given up as infrastructure."""
MAX_FAILED_STARTS = 3
"""Workers in a row that may die before they are ready."""
NURSERY_FROM_S = 0.25
"""Seconds of loading from which on a replacement comes from a nursery, see :mod:`sandbox.workers.nursery`."""
NEWBORN_S = 10.0
"""Seconds that a worker from a nursery has to become ready; it has loaded everything already."""
WARDEN_START_S = 60.0
"""Seconds, at least, that a warden has to start and to import what it imports for all workers."""
WARDEN_END_S = 5.0
"""Seconds that a warden has to end its workers and itself."""
MAX_WARDENS = 5
"""Wardens that may be lost within :data:`WARDENS_S` while no call runs: a call that runs is given up itself, soon."""
WARDENS_S = 600.0
"""Seconds for which the loss of a warden counts."""
WARDEN_DOUBT_S = 2.0
"""Seconds in which a warden starts a worker or reports the end of one; after that it is asked whether it is there."""
WARDEN_ANSWER_S = 8.0
"""Seconds that a warden has to say so; after that it is taken to have been stopped, and killed."""
RETIRE_SHARE = 0.5
"""A worker that holds more than this share of its memory limit between calls is replaced: it leaks."""
_SHOWN_CHARS = 200
_CLOSED = "closed the worker's own descriptors"
_CONTROL = 3  # the warden's end of its socket
_BOOT = "import sys; sys.path.insert(0, {root!r}); from sandbox.workers.warden import main; main({fd}, {pid})"
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True, slots=True)
class Target:
    """What calls run.

    Attributes:
        name: For messages.
        payload: Pickled callable ``(common, segments, places) -> JSON text``; for the event loop an
            ``async`` one.
        lane: How its calls run.
        width: Calls in flight at once; 1 in the serial lane.
    """

    name: str
    payload: bytes
    lane: Lane = Lane.SERIAL
    width: int = 1


class WorkerPool:
    """Runs calls of targets in isolated worker processes.

    Serial targets share ``workers`` processes; each other target has a process of its own.

    Args:
        targets: What can be called.
        workers: Processes for the serial targets, at least 1.
        path: ``sys.path`` of the workers; the caller's if ``None``.
        env: Environment variables added for the workers.
        preload: Modules imported once, before workers are forked.
        memory_bytes: Memory of one worker; ``None`` for no limit.
        load_timeout_s: Seconds that loading the targets may take.

    Raises:
        SandboxError: It is made inside a worker of another pool.
        WorkerStartError: From jobs, where workers cannot be started or cannot load a target.
    """

    def __init__(
        self,
        targets: Sequence[Target],
        *,
        workers: int = 2,
        path: Sequence[str] | None = None,
        env: Mapping[str, str] | None = None,
        preload: Sequence[str] = (),
        memory_bytes: int | None = DEFAULT_MEMORY_BYTES,
        load_timeout_s: float = LOAD_TIMEOUT_S,
    ) -> None:
        if os.environ.get(INSIDE):
            raise SandboxError(
                "a worker cannot start workers of its own; where a file of rewards scores something at its top "
                "level, put that under: if __name__ == '__main__':"
            )
        self._targets = list(targets)
        self._setup = (list(sys.path if path is None else path), list(preload), memory_bytes, load_timeout_s)
        self._memory_bytes = memory_bytes
        self._load_timeout_s = load_timeout_s
        self._mark = orphans.new_mark()
        self._env = {**dict.fromkeys(_ONE_THREAD, "1"), **os.environ, **(env or {}), orphans.MARK: self._mark}
        self._slots = _slots(targets, workers)
        self._owner = os.getpid()
        self._jobs: dict[int, Job] = {}
        self._ring: deque[tuple[Job, int]] = deque()
        self._delayed: list[tuple[float, int, Job, Call]] = []
        self._order = itertools.count()
        self._commands: deque[Callable[[], None]] = deque()
        self._wake_read, self._wake_write = socket.socketpair()
        self._wake_write.setblocking(False)
        self._wake_read.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._wake_read, selectors.EVENT_READ, None)
        self._warden = 0
        self._watch: int | None = None
        self._control: Channel | None = None
        self._warden_due = math.inf  # when the warden must have said that it is there
        self._lost_wardens: deque[float] = deque(maxlen=MAX_WARDENS)  # when, of those lost while no call ran
        self._apart: deque[tuple[Job, Call]] = deque()  # calls to run with nothing else in flight; the first may run
        self._apart_runs = False
        self._oom_kills = out_of_memory_kills()
        self._broken: BaseException | None = None
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="rewardkit-pool", daemon=True)
        self._started = False
        # Protects _started and _closing against two callers at once, and so that no job comes when nobody serves it.
        self._start_lock = threading.Lock()
        atexit.register(self.close)

    def start(self) -> None:
        """Start the workers, without waiting for them."""
        self._check_usable()
        with self._start_lock:
            if not self._started:
                self._started = True
                self._thread.start()

    def submit(self, job: Job, calls: Sequence[Call], *, complete: bool = True) -> None:
        """Take calls of a job in hand; their segments are in its file.

        Args:
            job: The job.
            calls: Calls to make.
            complete: Whether they are the job's last.
        """
        self.start()
        with self._start_lock:
            self._check_usable()
            self._command(lambda: self._admit(job, calls, complete))

    def cancel(self, job: Job, error: BaseException) -> None:
        """End a job; calls that run already run on, and their results are dropped."""
        self._command(lambda: self._end_job(job, error))

    def close(self) -> None:
        """End every worker and wait for it. Jobs on the way fail with :class:`PoolClosedError`."""
        if os.getpid() != self._owner:
            return
        with self._start_lock:
            first, self._closing = not self._closing, True
            started = self._started
        if first and started:
            self._command(_stop)
        if started and threading.current_thread() is not self._thread:
            self._thread.join()
        if first and not started:
            self._release()
        atexit.unregister(self.close)

    @property
    def processes(self) -> list[int]:
        """Process ids of the workers that are alive now."""
        return [slot.process for slot in self._slots if slot.process]

    def _check_usable(self) -> None:
        if os.getpid() != self._owner:
            raise PoolClosedError("this pool belongs to the process that made it, not to a fork of it")
        if self._closing:
            raise PoolClosedError("this pool is closed")

    def _command(self, command: Callable[[], None]) -> None:
        self._commands.append(command)
        with contextlib.suppress(OSError):  # a full pipe wakes as well
            self._wake_write.send(b"x")

    # The pool's thread from here on.

    def _run(self) -> None:
        try:
            self._start_warden()
            while True:
                self._turn()
        except _Stop:
            self._fail_all(PoolClosedError("the pool was closed"))
        except BaseException as fault:
            self._break(fault)
            self._serve_refusals()
        finally:
            self._refuse_the_rest()
            self._release()

    def _refuse_the_rest(self) -> None:
        """End the jobs that came while the last was being done: nobody waits for a thread that is gone."""
        with self._start_lock:
            self._closing = True
        self._broken = self._broken or PoolClosedError("the pool was closed")
        while self._commands:
            with contextlib.suppress(_Stop):
                self._commands.popleft()()
        self._fail_all(self._broken)

    def _serve_refusals(self) -> None:
        """After a fault of our own: answer every further job with it, until closed."""
        self._stop_warden()
        with contextlib.suppress(_Stop):
            while True:
                self._selector.select()
                with contextlib.suppress(OSError):
                    self._wake_read.recv(4096)
                while self._commands:
                    self._commands.popleft()()

    def _turn(self) -> None:
        now = time.monotonic()
        due = min((slot.look_at for slot in self._slots), default=math.inf)
        due = min(due, self._warden_due)
        if self._delayed:
            due = min(due, self._delayed[0][0])
        ready = self._selector.select(None if due == math.inf else max(0.0, due - now))
        control = self._control
        for key, _ in ready:
            if self._control is not control:
                break  # the warden was lost: what else was ready has been closed
            if key.fileobj is self._wake_read:
                with contextlib.suppress(OSError):
                    self._wake_read.recv(4096)
            elif key.fileobj == self._watch:
                self._lost_warden()
            elif key.data is None:
                self._hear_warden()
            elif key.fileobj is key.data.channel:  # not of a worker whose place was given to another just now
                self._hear_worker(key.data)
        while self._commands:
            self._commands.popleft()()
        now = time.monotonic()
        while self._delayed and self._delayed[0][0] <= now:
            _, _, job, call = heapq.heappop(self._delayed)
            self._queue(job, call)
        for slot in self._slots:
            if slot.look_at <= now:
                self._check(slot, now)
        if self._warden_due <= now - AWAY_S:
            self._warden_due = now + WARDEN_ANSWER_S  # we stood still ourselves, perhaps all of us
        elif self._warden_due <= now:
            self._lost_warden(stopped=True)
        self._feed()

    def _admit(self, job: Job, calls: Sequence[Call], complete: bool) -> None:
        if self._broken is not None:
            job.end(self._broken)
        if job.ended.is_set():
            return
        self._jobs[job.number] = job
        job.complete = complete
        for target in job.add(calls):
            self._enlist(job, target)
        self._end_if_done(job)

    def _enlist(self, job: Job, target: int) -> None:
        if (job, target) not in self._ring:
            self._ring.append((job, target))

    def _end_if_done(self, job: Job) -> None:
        if job.complete and job.remaining == 0:
            self._end_job(job, None)

    def _queue(self, job: Job, call: Call, *, first: bool = False) -> None:
        """Put a call back into its job's queue."""
        if job.ended.is_set():
            return
        if call.apart:
            self._apart.append((job, call))
            return
        job.put(call, first=first)
        self._enlist(job, call.target)

    # Feeding.

    def _feed(self) -> None:
        if self._apart:
            self._feed_apart()
            return
        for slot in self._slots:
            if slot.state is State.READY and not slot.emptying:
                if slot.lane is Lane.SERIAL:
                    if not slot.chunk:
                        self._feed_serial(slot)
                elif not slot.leaks and not slot.reader.large:  # type: ignore[union-attr]  # open as long as the worker lives
                    self._feed_wide(slot)

    def _feed_apart(self) -> None:
        """Run the calls during which wardens were lost one by one, with nothing else in flight: who did it then?"""
        if any(slot.sent for slot in self._slots):
            return
        if self._apart_runs:
            self._apart.popleft()
            self._apart_runs = False
        while self._apart and self._apart[0][0].ended.is_set():
            self._apart.popleft()
        if not self._apart:
            self._feed()
            return
        job, call = self._apart[0]
        for slot in self._slots:
            if slot.state is State.READY and not slot.emptying and call.target in slot.targets:
                if slot.tainted or slot.given_up:
                    self._retire(slot)
                else:
                    self._send(slot, job, call)
                    self._apart_runs = True
                return

    def _send(self, slot: Slot, job: Job, call: Call) -> None:
        """Send one call to a worker that runs nothing."""
        if slot.lane is Lane.SERIAL:
            self._send_chunk(slot, job, call.target, [call])
        else:
            self._send_orders(slot, [self._order_for(slot, job, call)])

    def _feed_serial(self, slot: Slot) -> None:
        if self._apart:
            return
        for _ in range(len(self._ring)):
            job, target = self._ring[0]
            self._ring.rotate(-1)
            if target not in slot.targets:
                continue
            if job.alone.get(target):
                if slot.tainted or (job.alone[target][0].fresh and slot.used):
                    self._retire(slot)
                    return
                self._send_chunk(slot, job, target, [job.alone[target].popleft()])
                return
            pending = job.pending.get(target)
            if pending:
                share = len(pending) // (2 * sum(one.lane is Lane.SERIAL for one in self._slots))
                count = max(1, min(MAX_CHUNK, share))
                self._send_chunk(slot, job, target, [pending.popleft() for _ in range(count)])
                return
            self._ring.remove((job, target))

    def _send_chunk(self, slot: Slot, job: Job, target: int, calls: list[Call]) -> None:
        self._open_batch(slot, job)
        ticket = slot.tickets(job, calls)
        slot.chunk = range(ticket, ticket + len(calls))
        slot.idle_since, slot.check_at = math.inf, time.monotonic() + min(calls[0].timeout_s, PEEK_S)
        slot.half, slot.numbers_read = 1 - slot.half, 0
        slot.tell(("run", ticket, slot.half, job.number, target, [call.places for call in calls]))

    def _feed_wide(self, slot: Slot) -> None:
        orders = []
        ring = [(job, target) for job, target in self._ring if target in slot.targets]
        # Calls that have nothing but their turn alone to wait for get it: other jobs' calls stand back until then.
        alone = [(job, target) for job, target in ring if job.alone.get(target) and not job.pending.get(target)]
        for job, target in alone or ring:
            if any(call.alone for _, call in slot.sent.values()):
                break
            while len(slot.sent) < slot.width and job.pending.get(target):
                orders.append(self._order_for(slot, job, job.pending[target].popleft()))
            if job.alone.get(target) and not slot.sent:
                if slot.given_up or (job.alone[target][0].fresh and slot.used):
                    self._retire(slot)
                    return
                orders.append(self._order_for(slot, job, job.alone[target].popleft()))
            if not job.pending.get(target) and not job.alone.get(target):
                self._ring.remove((job, target))
        if orders:
            self._send_orders(slot, orders)

    def _send_orders(self, slot: Slot, orders: list[tuple[Any, ...]]) -> None:
        slot.idle_since = math.inf
        slot.tell(("start", orders))
        soon = LOOP_CHECK_S if slot.lane is Lane.ASYNCIO else min(order[4] for order in orders)
        slot.check_at = min(slot.check_at, time.monotonic() + soon)

    def _order_for(self, slot: Slot, job: Job, call: Call) -> tuple[Any, ...]:
        self._open_batch(slot, job)
        return (slot.tickets(job, [call]), job.number, call.target, call.places, call.timeout_s)

    def _open_batch(self, slot: Slot, job: Job) -> None:
        if job.number not in slot.batches:
            slot.batches.add(job.number)
            slot.tell(("batch", job.number, job.common), [job.file.for_workers])

    # Hearing.

    def _hear_worker(self, slot: Slot) -> None:
        assert slot.channel is not None
        frames, end = [], None
        try:
            for frame in slot.channel.receive():
                frames.append(decoded(frame))
        except (EOFError, OSError, MalformedError) as reason:
            end = reason
        for frame in frames:
            if not self._obey(slot, frame):
                end = MalformedError(f"the message {str(frame)[:_SHOWN_CHARS]}")
                break  # what follows would have the worker run others before it is dealt with
        if isinstance(end, MalformedError):
            self._distrust(slot, f"wrote to the worker's own descriptors: {end}")
        elif end is not None:
            self._lost_channel(slot)

    def _obey(self, slot: Slot, frame: Any) -> bool:
        """Do what a worker's message asks for; gives whether it is one that its own code sends at this time."""
        assert slot.reader is not None  # open as long as the channel is, and so is the page
        assert slot.page is not None
        match frame:
            case ["ready"] if slot.state is State.STARTING:
                slot.state, slot.failed_starts, slot.check_at, slot.loaded = State.READY, 0, math.inf, True
                slot.load_s = max(slot.load_s, time.monotonic() - slot.began)
            case ["load_error", str(words)] if slot.state is State.STARTING:
                self._failed_start(slot, words, last=not slot.loaded)
            case ["done", int(first), int(done), bool(tainted), int(held_bytes)] if slot.is_at(first, done):
                self._chunk_done(slot, done, tainted, self._leaks(held_bytes))
            case ["wake", int(held_bytes)]:
                slot.page.woken, slot.leaks = False, self._leaks(held_bytes)
                self._collect(slot)
                self._settle(slot)
            case ["emptied"] if slot.emptying:
                slot.emptying, slot.check_at = False, math.inf
                slot.reader.restart()
            case _:
                return slot.state is State.DYING  # what it wrote before it was killed is of no use any more
        return True

    def _leaks(self, held_bytes: int) -> bool:
        return self._memory_bytes is not None and held_bytes > RETIRE_SHARE * self._memory_bytes

    def _lost_channel(self, slot: Slot) -> None:
        """The worker's end of the socket is closed: it is dying, or a call closed its descriptors."""
        self._deafen(slot)
        if slot.state is State.READY:
            slot.state, slot.check_at = State.CUT_OFF, time.monotonic() + CUT_OFF_S

    def _distrust(self, slot: Slot, words: str) -> None:
        """Kill a worker whose messages or memory hold what its own code does not write there: some call did."""
        slot.malformed = slot.malformed or words
        if slot.state in (State.READY, State.CUT_OFF):
            self._deafen(slot)
            self._kill(slot)

    def _chunk_done(self, slot: Slot, done: int, tainted: bool, leaks: bool) -> None:
        """Queue again what the worker gave back, send it the next chunk, and only then read its results."""
        for ticket in reversed(slot.chunk[done:]):
            given_back = slot.sent.pop(ticket, None)
            if given_back is not None:
                self._queue(*given_back, first=True)
        answers, finished, slot.tainted = slot.unread_answers(), slot.finish_chunk(), tainted
        grown = slot.reader is not None and slot.reader.large
        # A call that is to run alone is not sent before it is known whether these answers can be read.
        alone = any(job.alone.get(target) for job, target in self._ring if target in slot.targets)
        if slot.state is State.READY and not leaks and not grown and not alone:
            self._feed_serial(slot)
        with CollectorPaused():
            self._take_answers(slot, finished, answers)
            self._take_records(slot)
        unanswered = [ticket for ticket in finished[:done] if ticket in slot.sent]
        self._lose(slot, unanswered, CallStatus.CRASHED, "the call returned and its answer was overwritten")
        self._send_again(slot, unanswered)
        if leaks:
            self._retire(slot)
        else:
            self._tidy(slot)

    def _collect(self, slot: Slot) -> None:
        """Take the finished calls' answers and hand them to their jobs."""
        with CollectorPaused():
            if slot.chunk and (slot.state is not State.READY or slot.settled(time.monotonic())):
                slot.numbers_read += self._take_answers(slot, slot.chunk, slot.unread_answers())
            self._take_records(slot)

    def _take_answers(self, slot: Slot, chunk: range, answers: Iterable[tuple[float, float, int]]) -> int:
        """Hand a chunk's numbers to its job, and say how many there were."""
        taken: list[tuple[Call, float, float]] = []
        sent = slot.sent
        for duration_s, number, ticket in answers:
            if ticket not in chunk:
                break
            entry = sent.pop(ticket, None)
            if entry is None or not (
                number - number == 0.0 <= duration_s < math.inf
            ):  # inf - inf and nan - nan are nan
                if entry is not None:
                    sent[ticket] = entry
                self._distrust(slot, "wrote to the memory that the worker shares")
                break
            job, call = entry
            taken.append((call, number, duration_s))
        if taken:
            self._deliver(job, lambda: job.handler.take_numbers(taken), len(taken))
        return len(taken)

    def _take_records(self, slot: Slot) -> None:
        assert slot.reader is not None
        try:
            records = slot.reader.read()
        except MalformedError as reason:
            self._distrust(slot, f"wrote to the memory that the worker shares: {reason}")
            return
        by_job: dict[Job, list[CallResult]] = {}
        last: Job | None = None
        results: list[CallResult] = []
        make = tuple.__new__  # a named tuple's own is several times slower, and this is once a call
        sent = slot.sent
        for ticket, duration_s, logs, answer in records:
            entry = sent.pop(ticket, None)
            if entry is None:
                slot.given_up = max(0, slot.given_up - 1)  # a stuck thread came free after all
                continue
            job, call = entry
            if answer is None:
                result = CallResult(call, CallStatus.TIMEOUT, None, duration_s, logs, _late(call))
            elif answer == AGAIN:
                if not call.alone:
                    call.alone = True
                    self._queue(job, call)
                    continue
                result = CallResult(call, CallStatus.CANCELLED, None, duration_s, logs, "CancelledError")
            else:
                result = make(CallResult, (call, CallStatus.ANSWERED, answer, duration_s, logs, ""))
            if job is not last:
                last, results = job, by_job.setdefault(job, [])
            results.append(result)
        for job, results in by_job.items():
            self._deliver_results(job, results)

    def _deliver_results(self, job: Job, results: list[CallResult]) -> None:
        self._deliver(job, lambda: job.handler.take(results), len(results))

    def _deliver(self, job: Job, hand_over: Callable[[], Again], count: int) -> None:
        """Hand a job its results, of so many calls, and note which of them it wants to be made again."""
        if job.ended.is_set():
            return
        try:
            again = hand_over()
        except BaseException as fault:
            self._end_job(job, fault)
            return
        now = time.monotonic()
        for delay_s, call in again:
            heapq.heappush(self._delayed, (now + delay_s, next(self._order), job, call))
        job.remaining -= count - len(again)
        self._end_if_done(job)

    def _end_job(self, job: Job, error: BaseException | None) -> None:
        self._jobs.pop(job.number, None)
        self._ring = deque(entry for entry in self._ring if entry[0] is not job)
        for slot in self._slots:
            if job.number in slot.batches:
                slot.batches.discard(job.number)
                slot.tell(("drop", job.number))
        job.end(error)

    # Watching.

    def _check(self, slot: Slot, now: float) -> None:
        if slot.state is State.STARTING and slot.process:
            if slot.check_at <= now - AWAY_S:
                slot.check_at = now + self._load_timeout_s  # we stood still ourselves, perhaps all of us
            else:
                self._loads_too_long(slot)
            return
        if slot.state in (State.STARTING, State.DYING):
            self._doubt_warden(slot, now)
            return
        if slot.state is State.CUT_OFF:
            self._kill(slot)  # it lives on without its descriptors: whatever it runs closed them
            return
        if slot.state is not State.READY:
            slot.check_at = math.inf
            return
        if slot.emptying:
            self._retire(slot)
            return
        overdue = slot.overdue(now)
        if not overdue:
            self._collect(slot)
            if slot.lane is not Lane.SERIAL:
                self._settle(slot)
        if slot.stalled(now):
            self._collect(slot)
            if sleeps(slot.process):
                self._lose(
                    slot, list(slot.sent), CallStatus.CRASHED, "the worker waits for calls, and its answer is lost"
                )
            else:
                self._count_lost(slot, list(slot.sent), "the worker stood still")
            self._retire(slot)
        elif slot.expired(now):
            self._collect(slot)
            self._lose(slot, slot.expired(now), CallStatus.TIMEOUT, "")
            self._retire(slot)
        if not overdue or slot.state is not State.READY:
            return
        self._collect(slot)
        sure = slot.overdue(now)  # read again: a ticket may have been seen beside its predecessor's start
        overdue = {ticket: tainted for ticket, tainted in overdue.items() if ticket in sure}
        late = {ticket: tainted for ticket, tainted in overdue.items() if ticket in slot.sent}
        if slot.lane is Lane.THREADS:
            self._threads_overdue(slot, late, now)
        elif late or (overdue and slot.lane is Lane.ASYNCIO):  # it may be held by a call that was given up already
            if not late:
                self._count_lost(slot, list(slot.sent), "a call that was given up held the event loop")
            for ticket, tainted in late.items():
                _, call = slot.sent[ticket]
                if tainted and not call.alone:
                    call.alone = True  # others' threads may have slowed it: once more, in a clean worker
                else:
                    slot.guilty[ticket] = _late(call)
            self._retire(slot)

    def _threads_overdue(self, slot: Slot, overdue: Iterable[int], now: float) -> None:
        """Give late calls up and leave their threads; or, where one call holds the interpreter, find out which."""
        if not slot.breathes(now) and len(slot.sent) > 1:
            for _, call in slot.sent.values():
                call.alone = True
            self._retire(slot)
            return
        for ticket in overdue:
            job, call = slot.sent.pop(ticket)
            slot.given_up += 1
            self._deliver_results(job, [CallResult(call, CallStatus.TIMEOUT, None, call.timeout_s, "", _late(call))])
        self._settle(slot)

    def _settle(self, slot: Slot) -> None:
        """Replace a worker whose stuck threads are many, or that has nothing else to do, or that leaks."""
        if (slot.given_up and (not slot.sent or slot.given_up >= slot.width)) or (slot.leaks and not slot.sent):
            self._retire(slot)
        elif not slot.sent:
            slot.check_at = math.inf
            self._tidy(slot)

    def _tidy(self, slot: Slot) -> None:
        """Have an idle worker empty its results file once that has grown large."""
        if slot.state is State.READY and not slot.sent and slot.reader is not None and slot.reader.large:
            slot.emptying, slot.check_at = True, time.monotonic() + GRACE_S
            slot.tell(("empty",))

    # Ends and beginnings.

    def _retire(self, slot: Slot) -> None:
        """Kill a worker; of the calls it runs only those noted as guilty are to blame."""
        if slot.state in (State.READY, State.CUT_OFF):
            slot.retiring = True
            self._kill(slot)

    def _kill(self, slot: Slot) -> None:
        if slot.state in (State.STARTING, State.READY, State.CUT_OFF):
            slot.state, slot.check_at = State.DYING, time.monotonic() + WARDEN_DOUBT_S
            slot.doubted = False  # its end was not yet asked for; a slow beginning may have been
            self._tell_warden(("kill", slot.index))

    def _loads_too_long(self, slot: Slot) -> None:
        """Give a worker up that loads for too long; where it could be loaded before, another one may do better."""
        words = (
            f"loading took longer than {self._load_timeout_s:g} s: {self._names(slot)}; give it longer with "
            "load_timeout_s=..., on the command line with --load-timeout"
        )
        if not self._failed_start(slot, words, last=not slot.loaded):
            slot.retiring = True
            self._kill(slot)

    def _failed_start(self, slot: Slot, words: str, *, last: bool = False) -> bool:
        """Count a worker that never became ready; gives whether it was the last that is started."""
        if self._closing:
            return False
        slot.failed_starts += 1
        slot.counted = True
        slot.stillborn = slot.stillborn or slot.borne
        if last or slot.failed_starts >= MAX_FAILED_STARTS:
            self._break(WorkerStartError(words))
            return True
        return False

    def _ended(self, slot: Slot, process: int, code: int) -> None:
        """A worker is dead: count what it finished, blame whom it was running, send the others out again."""
        if process != slot.process:
            return
        ours, was_starting = slot.state is State.DYING, slot.state is State.STARTING
        suspects = {} if was_starting else slot.suspects()
        self._collect(slot)
        words = slot.last_words()
        if was_starting and not slot.counted:
            message = f"{describe_end(code)} while loading {self._names(slot)}\n{words}"
            if self._failed_start(slot, message):
                return
            if slot.loaded and slot.failed_starts == MAX_FAILED_STARTS - 1:
                self._lost_warden(stopped=True)  # perhaps it is ill and not the worker: a call may lower its limits
                return
        self._settle_guilty(slot)
        if not slot.retiring:
            unfinished = {ticket: tainted for ticket, tainted in suspects.items() if ticket in slot.sent}
            cut_off = (ours and code == -signal.SIGKILL) or code in (BROKEN, CHANNEL_LOST) or bool(slot.malformed)
            self._blame(slot, unfinished, code, words, cut_off=cut_off)
        self._send_again(slot, list(slot.sent))
        self._spawn(slot)

    def _settle_guilty(self, slot: Slot) -> None:
        """Answer for the calls whose time was up."""
        for ticket, message in slot.guilty.items():
            sent = slot.sent.pop(ticket, None)
            if sent is not None:
                job, call = sent
                self._deliver_results(job, [CallResult(call, CallStatus.TIMEOUT, None, call.timeout_s, "", message)])

    def _send_again(self, slot: Slot, tickets: Sequence[int]) -> None:
        """Queue what a worker will not finish, in its old order."""
        for ticket in reversed(tickets):
            sent = slot.sent.pop(ticket, None)
            if sent is not None:
                self._queue(*sent, first=True)

    def _lose(self, slot: Slot, tickets: Iterable[int], status: CallStatus, message: str) -> None:
        """Answer for calls whose answers never came: each is made again alone, and what is lost there as well ends.

        Args:
            slot: Where they were sent.
            tickets: The calls.
            status: What becomes of a call that was alone.
            message: Its words; ``""`` says that it did not answer in time.
        """
        for ticket in tickets:
            job, call = slot.sent[ticket]
            if not call.alone:
                call.alone = True
                continue
            del slot.sent[ticket]
            result = CallResult(call, status, None, call.timeout_s, "", message or _late(call))
            self._deliver_results(job, [result])

    def _blame(self, slot: Slot, suspects: dict[int, bool], code: int, words: str, *, cut_off: bool) -> None:
        """Answer for the calls that brought a worker down; those that stay in ``slot.sent`` are innocent.

        Args:
            slot: The dead worker's place.
            suspects: The calls that ran when it died, and whether each had left-over threads beside it.
            code: Its exit code, negative for a signal.
            words: What the interpreter wrote as it crashed.
            cut_off: Whether its descriptors were closed or what it shares was written to.
        """
        if cut_off:
            message = describe_end(code) if code == BROKEN else f"the call {slot.malformed or _CLOSED}"
            suspects = suspects or dict.fromkeys(slot.sent, False)
        elif not killed_from_outside(code):
            message = describe_end(code)
        elif self._ran_out_of_memory():
            message = "the machine ran out of memory and the kernel killed the worker"
        else:
            self._count_lost(slot, suspects, f"{describe_end(code)} from outside")
            return
        first = list(suspects) == [slot.first]  # otherwise an earlier call may have planned this end
        for ticket, tainted in suspects.items():
            job, call = slot.sent[ticket]
            if (cut_off or tainted or not first) and not call.alone:
                call.alone = True
                continue
            if not first and not call.fresh:
                call.fresh = True
                continue
            del slot.sent[ticket]
            report = f"{message}\n{words}" if words else message
            self._deliver_results(job, [CallResult(call, CallStatus.CRASHED, None, 0.0, "", report)])

    def _count_lost(self, slot: Slot, tickets: Iterable[int], words: str) -> None:
        """Note that these calls were lost once more: the second time they go alone, and after the last they end."""
        for ticket in tickets:
            job, call = slot.sent[ticket]
            call.lost += 1
            call.alone = call.alone or call.lost > 1
            if call.lost >= MAX_LOST:
                del slot.sent[ticket]
                message = f"{words}, {call.lost} times while this call ran"
                self._deliver_results(job, [CallResult(call, CallStatus.INFRASTRUCTURE, None, 0.0, "", message)])

    def _ran_out_of_memory(self) -> bool:
        before, self._oom_kills = self._oom_kills, out_of_memory_kills()
        return self._oom_kills > before

    def _spawn(self, slot: Slot) -> None:
        if self._broken is not None or self._closing:
            return
        self._deafen(slot)
        descriptors = slot.open()
        assert slot.channel is not None
        self._selector.register(slot.channel, selectors.EVENT_READ, slot)
        slot.check_at = time.monotonic() + WARDEN_DOUBT_S
        loads_slowly = slot.load_s > NURSERY_FROM_S and not slot.stillborn
        order = ("spawn", slot.index, slot.generation, slot.lane.value, slot.width, loads_slowly)
        self._tell_warden(order, descriptors)
        os.close(descriptors[0])

    def _deafen(self, slot: Slot) -> None:
        """Stop listening to a slot's worker."""
        if slot.channel is not None:
            with contextlib.suppress(KeyError):
                self._selector.unregister(slot.channel)

    # The warden.

    def _start_warden(self) -> None:
        self._control, theirs = channel_pair(int(WARDEN_ANSWER_S))  # one that was stopped reads nothing
        root = str(Path(__file__).parents[2])
        boot = _BOOT.format(root=root, fd=_CONTROL, pid=os.getpid())
        # Not subprocess.Popen: it waits for the end of a pipe that a fork in another thread (a data
        # loader's, say) may hold open for ever.
        try:
            self._warden = os.posix_spawn(
                sys.executable,
                [sys.executable, "-c", boot],
                self._env,
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                    (os.POSIX_SPAWN_DUP2, theirs.fileno(), _CONTROL),
                ],
            )
        except OSError as reason:
            raise WorkerStartError(f"cannot start {sys.executable}: {reason}") from reason
        finally:
            theirs.close()
        self._selector.register(self._control, selectors.EVENT_READ, None)
        self._watch = process_descriptor(self._warden)
        if self._watch is not None:
            self._selector.register(self._watch, selectors.EVENT_READ, None)
        payloads = {slot.index: _payload(self._targets, slot.targets) for slot in self._slots}
        self._tell_warden(("setup", *self._setup, payloads))
        self._warden_due = time.monotonic() + max(WARDEN_START_S, self._load_timeout_s)
        for slot in self._slots:
            self._spawn(slot)

    def _tell_warden(self, message: tuple[Any, ...], descriptors: Sequence[int] = ()) -> None:
        if self._control is not None:
            with contextlib.suppress(OSError):  # its end is noticed when it is next heard
                self._control.send_pickle(message, descriptors)

    def _hear_warden(self) -> None:
        assert self._control is not None
        try:
            frames = [decoded(frame) for frame in self._control.receive()]
        except (EOFError, OSError, MalformedError):
            self._lost_warden()
            return
        self._warden_due = math.inf
        for frame in frames:
            match frame:
                case ["here"]:
                    pass
                case ["waits", int(index), int(generation)] if self._is_slot(index):
                    if generation == self._slots[index].generation:
                        self._slots[index].waits_until = time.monotonic() + self._load_timeout_s + WARDEN_ANSWER_S
                case ["started", int(index), int(generation), int(process), bool(borne)] if self._is_slot(index):
                    self._begun(self._slots[index], generation, process, borne)
                case ["ended", int(index), int(process), int(code)] if self._is_slot(index):
                    self._ended(self._slots[index], process, code)
                case _:  # no warden says that
                    self._lost_warden(stopped=True)
                    return

    def _is_slot(self, index: int) -> bool:
        return 0 <= index < len(self._slots)

    def _begun(self, slot: Slot, generation: int, process: int, borne: bool) -> None:
        """A worker was forked: from a nursery with its targets, or it loads them from now on."""
        if generation == slot.generation:
            slot.process, slot.borne, slot.began = process, borne, time.monotonic()
            if slot.state is State.STARTING:
                slot.check_at = slot.began + (min(NEWBORN_S, self._load_timeout_s) if borne else self._load_timeout_s)

    def _doubt_warden(self, slot: Slot, now: float) -> None:
        """A worker's beginning or end is late: ask the warden whether it is there, and wake it if it was stopped.

        One that answers and still reports no end has a worker that cannot die, for the kernel or a tracer holds it.
        It runs nothing any more, and its place is given to another. A beginning takes longer where a nursery loads the
        targets first; meanwhile the warden is only asked whether it is there.
        """
        slot.check_at = now + WARDEN_DOUBT_S
        if self._warden_due == math.inf:
            if slot.state is State.STARTING and now < slot.waits_until:
                slot.doubted = False
            if slot.doubted and slot.state is State.DYING:
                self._ended(slot, slot.process, -signal.SIGKILL)
                return
            if slot.doubted:
                self._lost_warden(stopped=True)
                return
            slot.doubted, self._warden_due = True, now + WARDEN_ANSWER_S
            self._tell_warden(("ping",))
        self._wake_warden()

    def _wake_warden(self) -> None:
        if self._warden:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._warden, signal.SIGCONT)

    def _lost_warden(self, *, stopped: bool = False) -> None:
        """The warden is gone or does nothing: start another, and find out during which call wardens are lost."""
        self._stop_warden(0.0 if stopped else WARDEN_END_S)
        processes = [slot.process for slot in self._slots if slot.process]
        for process in processes:  # the kernel has ended those that have not asked it otherwise
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process, signal.SIGKILL)
        orphans.end_marked(self._mark)
        suspected = sum(self._count_with_warden(slot) for slot in self._slots)
        for slot in self._slots:
            self._send_again(slot, list(slot.sent))
            self._deafen(slot)
            slot.close()
        if not suspected:
            self._lost_wardens.append(time.monotonic())
        lost = self._lost_wardens
        if len(lost) == MAX_WARDENS and lost[-1] - lost[0] < WARDENS_S:
            self._break(WorkerStartError(f"the process that starts workers died {MAX_WARDENS} times"))
            return
        self._start_warden()

    def _count_with_warden(self, slot: Slot) -> int:
        """Count against the calls that a worker ran that the warden was lost, and say how many they are.

        One that it happens to twice runs apart from all others from then on.
        """
        if slot.page is None or slot.state is State.STARTING:
            return 0
        suspects = slot.suspects()
        self._collect(slot)
        self._settle_guilty(slot)
        alive = [ticket for ticket in suspects if ticket in slot.sent]
        if slot.retiring:
            return 0
        for ticket in alive:
            _, call = slot.sent[ticket]
            call.apart = call.lost > 0
        self._count_lost(slot, alive, "the process that starts workers was killed or stopped")
        return len(alive)

    def _stop_warden(self, end_s: float = WARDEN_END_S) -> None:
        """End the warden, and wait for so many seconds for it to go by itself."""
        self._warden_due = math.inf
        if self._control is not None:
            self._tell_warden(("close",))
            self._wake_warden()
            with contextlib.suppress(KeyError):
                self._selector.unregister(self._control)
            self._control.close()
            self._control = None
        if self._watch is not None:
            self._selector.unregister(self._watch)
            os.close(self._watch)
            self._watch = None
        if self._warden:
            if not _wait_for_end(self._warden, end_s):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self._warden, signal.SIGKILL)
                orphans.end_marked(self._mark)  # also a worker that traces the warden, which nobody can reap until then
                _wait_for_end(self._warden, WARDEN_END_S)
            self._warden = 0

    # The end.

    def _names(self, slot: Slot) -> str:
        return ", ".join(repr(self._targets[target].name) for target in sorted(slot.targets))

    def _break(self, fault: BaseException) -> None:
        """Nothing more can be run: say so to every job, now and later."""
        self._broken = fault
        self._fail_all(fault)
        for slot in self._slots:
            slot.check_at = math.inf

    def _fail_all(self, fault: BaseException) -> None:
        for job in list(self._jobs.values()):
            self._end_job(job, fault)

    def _release(self) -> None:
        self._stop_warden()
        for slot in self._slots:
            slot.close()
        self._selector.close()
        self._wake_read.close()
        self._wake_write.close()


def _wait_for_end(process: int, timeout_s: float) -> bool:
    """Reap a child; gives whether it ended in time."""
    deadline = time.monotonic() + timeout_s
    try:
        while os.waitpid(process, os.WNOHANG)[0] == 0:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.002)
    except ChildProcessError:  # somebody else in this process reaps every child
        pass
    return True


class _Stop(BaseException):
    """Ends the pool's thread."""


def _stop() -> None:
    raise _Stop


def _slots(targets: Sequence[Target], workers: int) -> list[Slot]:
    serial = frozenset(i for i, target in enumerate(targets) if target.lane is Lane.SERIAL)
    plans = [(Lane.SERIAL, 1, serial)] * workers if serial else []
    plans += [(t.lane, t.width, frozenset({i})) for i, t in enumerate(targets) if t.lane is not Lane.SERIAL]
    return [Slot(index, *plan) for index, plan in enumerate(plans)]


def _payload(targets: Sequence[Target], wanted: frozenset[int]) -> dict[int, tuple[str, bytes]]:
    return {index: (targets[index].name, targets[index].payload) for index in sorted(wanted)}


def _late(call: Call) -> str:
    return f"no answer within {call.timeout_s:g} s"
