"""The pool: it hears the workers, watches deadlines, and has the dead replaced.

One thread owns every slot and job, so nothing here is locked; other threads hand it commands. A call
that goes well costs no message of its own: calls go out in chunks, the worker notes what it runs on a
shared page and its results in a shared file, and gives a chunk's rest back after 20 ms.

Four rooms: :mod:`~sandbox.workers.dispatch` chooses which call goes where, :mod:`~sandbox.workers.link` holds the
warden, :mod:`~sandbox.workers.blame` decides what becomes of a call that was not answered, and here is the loop that
hears, asks the others, and does what they say.
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
from typing import Any

from sandbox.errors import PoolClosedError, SandboxError, WorkerStartError
from sandbox.limits import DEFAULT_MEMORY_BYTES, LOAD_TIMEOUT_S
from sandbox.workers import blame, link
from sandbox.workers.blame import End, Fate
from sandbox.workers.collector import CollectorPaused
from sandbox.workers.desk import BROKEN, CHANNEL_LOST
from sandbox.workers.dispatch import Dispatch
from sandbox.workers.job import Again, Call, CallResult, CallStatus, Job
from sandbox.workers.link import WardenLink
from sandbox.workers.slot import (
    AWAY_S,
    CUT_OFF_S,
    GRACE_S,
    Lane,
    Slot,
    State,
    out_of_memory_kills,
    sleeps,
)
from sandbox.workers.steady import INSIDE
from sandbox.workers.wire import AGAIN, MalformedError, decoded

MAX_FAILED_STARTS = 3
"""Workers in a row that may die before they are ready."""
NURSERY_FROM_S = 0.25
"""Seconds of loading from which on a replacement comes from a nursery, see :mod:`sandbox.workers.nursery`."""
FORKED_START_S = 10.0
"""Seconds that a worker from a nursery has to become ready; it has loaded everything already."""
MAX_WARDENS = 5
"""Wardens that may be lost within :data:`WARDENS_S` while no call runs: a call that runs is given up itself, soon."""
WARDENS_S = 600.0
"""Seconds for which the loss of a warden counts."""
WARDEN_DOUBT_S = 2.0
"""Seconds in which a warden starts a worker or reports the end of one; after that it is asked whether it is there."""
RETIRE_SHARE = 0.5
"""A worker that holds more than this share of its memory limit between calls is replaced: it leaks."""
LOADED_POLL_S = 0.02
"""Seconds between two looks of one who waits for the workers to load."""
_SHOWN_CHARS = 200


@dataclass(frozen=True, slots=True)
class Target:
    """What calls run."""

    name: str  # for messages
    payload: bytes  # pickled callable ``(common, segments, places) -> JSON text``; ``async`` for the event loop
    lane: Lane = Lane.SERIAL  # how its calls run
    width: int = 1  # calls in flight at once; 1 in the serial lane


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
        self._memory_bytes = memory_bytes
        self._load_timeout_s = load_timeout_s
        self._slots = _slots(targets, workers)
        self._owner = os.getpid()
        self._jobs: dict[int, Job] = {}
        self._dispatch = Dispatch(self._slots, self._retire)
        self._delayed: list[tuple[float, int, Job, Call]] = []
        self._order = itertools.count()
        self._commands: deque[Callable[[], None]] = deque()
        self._wake_read, self._wake_write = socket.socketpair()
        self._wake_write.setblocking(False)
        self._wake_read.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._wake_read, selectors.EVENT_READ, None)
        self._warden = WardenLink(
            self._selector,
            path=sys.path if path is None else path,
            env=env or {},
            preload=preload,
            memory_bytes=memory_bytes,
            load_timeout_s=load_timeout_s,
        )
        self._lost_wardens: deque[float] = deque(maxlen=MAX_WARDENS)  # when, of those lost while no call ran
        self._oom_kills = out_of_memory_kills()
        self._broken: BaseException | None = None
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="rewardkit-pool", daemon=True)
        self._started = False
        # Protects _started and _closing against two callers at once, and so that no job comes when no thread serves it.
        self._start_lock = threading.Lock()
        atexit.register(self.close)

    def start(self) -> None:
        """Start the workers, without waiting for them."""
        self._check_usable()
        with self._start_lock:
            if not self._started:
                self._started = True
                self._thread.start()

    def wait_loaded(self, timeout_s: float) -> bool:
        """Start the workers and wait until each has loaded its targets; ``False`` where one has not in that time.

        Raises:
            PoolClosedError: The pool was closed.
            WorkerStartError: A worker cannot be started or cannot load a target.
        """
        self.start()
        end = time.monotonic() + timeout_s
        while not all(slot.loaded for slot in self._slots):
            if self._broken is not None:
                raise self._broken
            if time.monotonic() > end:
                return False
            time.sleep(LOADED_POLL_S)
        return True

    def submit(self, job: Job, calls: Sequence[Call], *, complete: bool = True) -> None:
        """Run calls of a job, whose segments are in its file; ``complete`` says that no more calls will come."""
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
        """End the jobs that came while the last was being done: they would wait forever for a thread that is gone."""
        with self._start_lock:
            self._closing = True
        self._broken = self._broken or PoolClosedError("the pool was closed")
        while self._commands:
            with contextlib.suppress(_Stop):
                self._commands.popleft()()
        self._fail_all(self._broken)

    def _serve_refusals(self) -> None:
        """After a fault of our own: answer every further job with it, until closed."""
        self._warden.stop()
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
        due = min(due, self._warden.due)
        if self._delayed:
            due = min(due, self._delayed[0][0])
        ready = self._selector.select(None if due == math.inf else max(0.0, due - now))
        control = self._warden.control
        for key, _ in ready:
            if self._warden.control is not control:
                break  # the warden was lost: what else was ready has been closed
            if key.fileobj is self._wake_read:
                with contextlib.suppress(OSError):
                    self._wake_read.recv(4096)
            elif self._warden.is_end_of(key.fileobj):
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
            self._dispatch.put(job, call)
        for slot in self._slots:
            if slot.look_at <= now:
                self._check(slot, now)
        if self._warden.due <= now - AWAY_S:
            self._warden.excuse(now)  # we stood still ourselves, perhaps all of us
        elif self._warden.due <= now:
            self._lost_warden(stopped=True)
        self._dispatch.feed()

    def _admit(self, job: Job, calls: Sequence[Call], complete: bool) -> None:
        if self._broken is not None:
            job.end(self._broken)
        if job.ended.is_set():
            return
        self._jobs[job.number] = job
        job.complete = complete
        for target in job.add(calls):
            self._dispatch.enlist(job, target)
        self._end_if_done(job)

    def _end_if_done(self, job: Job) -> None:
        if job.complete and job.remaining == 0:
            self._end_job(job, None)

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
        """Do what a worker's message asks for; return whether a worker's own code sends it at this time."""
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
                self._dispatch.put(*given_back, first=True)
        answers, finished, slot.tainted = slot.unread_answers(), slot.finish_chunk(), tainted
        grown = slot.reader is not None and slot.reader.large
        # A call that is to run alone is not sent before it is known whether these answers can be read.
        alone = self._dispatch.has_alone(slot)
        if slot.state is State.READY and not leaks and not grown and not alone:
            self._dispatch.feed_serial(slot)
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
            # inf - inf and nan - nan are nan
            if entry is None or not (number - number == 0.0 <= duration_s < math.inf):
                if entry is not None:
                    sent[ticket] = entry
                self._distrust(slot, "wrote to the memory that the worker shares")
                break
            job, call = entry
            taken.append((call, number, duration_s))
        if taken:
            took = [duration_s for _, _, duration_s in taken]
            self._dispatch.note(call.target, sum(took), max(took), len(took))
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
            self._dispatch.note(call.target, duration_s, duration_s)
            if answer is None:
                result = CallResult(call, CallStatus.TIMEOUT, None, duration_s, logs, blame.late_words(call))
            elif answer == AGAIN:
                call.terms, status, words = blame.unanswered(call, CallStatus.CANCELLED, "CancelledError")
                if status is None:
                    self._dispatch.put(job, call)
                    continue
                result = CallResult(call, status, None, duration_s, logs, words)
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
        self._dispatch.forget(job)
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
                words = "the worker waits for calls, and its answer is lost"
                self._lose(slot, list(slot.sent), CallStatus.CRASHED, words)
            else:
                self._count_lost(slot, slot.sent, "the worker stood still")
            self._retire(slot)
        elif slot.expired(now):
            self._collect(slot)
            self._lose(slot, slot.expired(now), CallStatus.TIMEOUT)
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
                self._count_lost(slot, slot.sent, "a call that was given up held the event loop")
            for ticket, tainted in late.items():
                slot.fates[ticket] = blame.overdue(slot.sent[ticket][1], tainted=tainted)
            self._retire(slot)

    def _threads_overdue(self, slot: Slot, overdue: Iterable[int], now: float) -> None:
        """Give late calls up and leave their threads; or, where one call holds the interpreter, find out which."""
        if not slot.breathes(now) and len(slot.sent) > 1:
            for _, call in slot.sent.values():
                call.terms = call.terms._replace(alone=True)
            self._retire(slot)
            return
        overdue = list(overdue)
        slot.given_up += len(overdue)
        self._answer_for(slot, {ticket: blame.overdue(slot.sent[ticket][1], tainted=False) for ticket in overdue})
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
        """Kill a worker; of the calls it runs only those with a fate in :attr:`Slot.fates` pay for it."""
        if slot.state in (State.READY, State.CUT_OFF):
            slot.retiring = True
            self._kill(slot)

    def _kill(self, slot: Slot) -> None:
        if slot.state in (State.STARTING, State.READY, State.CUT_OFF):
            slot.state, slot.check_at = State.DYING, time.monotonic() + WARDEN_DOUBT_S
            slot.doubted = False  # its end was not yet asked for; a slow beginning may have been
            self._warden.tell(("kill", slot.index))

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
        """Count a worker that never became ready; return whether no other is started."""
        if self._closing:
            return False
        slot.failed_starts += 1
        slot.counted = True
        slot.nursery_failed = slot.nursery_failed or slot.from_nursery
        if last or slot.failed_starts >= MAX_FAILED_STARTS:
            self._break(WorkerStartError(words))
            return True
        return False

    def _ended(self, slot: Slot, process: int, code: int) -> None:
        """Handle the end of a worker: count what it finished, blame what it ran, send the others again."""
        if process != slot.process:
            return
        ours, was_starting = slot.state is State.DYING, slot.state is State.STARTING
        suspects = {} if was_starting else slot.suspects()
        self._collect(slot)
        words = slot.last_words()
        if was_starting and not slot.counted:
            message = f"{blame.describe_end(code)} while loading {self._names(slot)}\n{words}"
            if self._failed_start(slot, message):
                return
            if slot.loaded and slot.failed_starts == MAX_FAILED_STARTS - 1:
                self._lost_warden(stopped=True)  # perhaps it is ill and not the worker: a call may lower its limits
                return
        self._answer_for(slot, slot.fates)
        if not slot.retiring:
            unfinished = {ticket: tainted for ticket, tainted in suspects.items() if ticket in slot.sent}
            cut_off = (ours and code == -signal.SIGKILL) or code in (BROKEN, CHANNEL_LOST) or bool(slot.malformed)
            killed = not cut_off and blame.killed_from_outside(code)
            end = End(code, words, cut_off, slot.malformed, killed and self._ran_out_of_memory())
            sent = {ticket: call for ticket, (_, call) in slot.sent.items()}
            self._answer_for(slot, blame.ended(end, unfinished, sent, slot.first_alone))
        self._send_again(slot, list(slot.sent))
        self._spawn(slot)

    def _answer_for(self, slot: Slot, fates: Mapping[int, Fate]) -> None:
        """Hand over the calls that ended; the others stay among those sent, under their new terms, to go out again."""
        for ticket, (terms, status, message) in fates.items():
            if ticket not in slot.sent:
                continue
            job, call = slot.sent[ticket]
            call.terms = terms
            if status is not None:
                del slot.sent[ticket]
                ran_s = call.timeout_s if status is CallStatus.TIMEOUT else 0.0
                result = CallResult(call, status, None, ran_s, slot.printed(ticket), message)
                self._deliver_results(job, [result])

    def _send_again(self, slot: Slot, tickets: Sequence[int]) -> None:
        """Queue what a worker will not finish, in its old order."""
        for ticket in reversed(tickets):
            sent = slot.sent.pop(ticket, None)
            if sent is not None:
                self._dispatch.put(*sent, first=True)

    def _lose(self, slot: Slot, tickets: Iterable[int], status: CallStatus, words: str = "") -> None:
        """Answer for calls whose answers never came; without words they did not come in time."""
        calls = {ticket: slot.sent[ticket][1] for ticket in tickets}
        fates = {t: blame.unanswered(call, status, words or blame.late_words(call)) for t, call in calls.items()}
        self._answer_for(slot, fates)

    def _count_lost(self, slot: Slot, tickets: Iterable[int], words: str, *, with_all: bool = False) -> None:
        """Note that these calls' worker was lost once more."""
        lost = {ticket: blame.lost(slot.sent[ticket][1], words, with_all=with_all) for ticket in tickets}
        self._answer_for(slot, lost)

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
        loads_slowly = slot.load_s > NURSERY_FROM_S and not slot.nursery_failed
        order = ("spawn", slot.index, slot.generation, slot.lane.value, slot.width, loads_slowly)
        self._warden.tell(order, descriptors)
        os.close(descriptors[0])

    def _deafen(self, slot: Slot) -> None:
        """Stop listening to a slot's worker."""
        if slot.channel is not None:
            with contextlib.suppress(KeyError):
                self._selector.unregister(slot.channel)

    # The warden.

    def _start_warden(self) -> None:
        self._warden.start({slot.index: _payload(self._targets, slot.targets) for slot in self._slots})
        for slot in self._slots:
            self._spawn(slot)

    def _hear_warden(self) -> None:
        frames = self._warden.hear()
        if frames is None:
            self._lost_warden()
            return
        for frame in frames:
            match frame:
                case ["here"]:
                    pass
                case ["waits", int(index), int(generation)] if self._is_slot(index):
                    if generation == self._slots[index].generation:
                        self._slots[index].waits_until = time.monotonic() + self._load_timeout_s + link.ANSWER_S
                case ["started", int(index), int(generation), int(process), bool(from_nursery)] if self._is_slot(index):
                    self._begun(self._slots[index], generation, process, from_nursery)
                case ["ended", int(index), int(process), int(code)] if self._is_slot(index):
                    self._ended(self._slots[index], process, code)
                case _:  # no warden says that
                    self._lost_warden(stopped=True)
                    return

    def _is_slot(self, index: int) -> bool:
        return 0 <= index < len(self._slots)

    def _begun(self, slot: Slot, generation: int, process: int, from_nursery: bool) -> None:
        """A worker was forked: from a nursery with its targets, or it loads them from now on."""
        if generation == slot.generation:
            slot.process, slot.from_nursery, slot.began = process, from_nursery, time.monotonic()
            if slot.state is State.STARTING:
                slot.check_at = slot.began + (
                    min(FORKED_START_S, self._load_timeout_s) if from_nursery else self._load_timeout_s
                )

    def _doubt_warden(self, slot: Slot, now: float) -> None:
        """A worker's beginning or end is late: ask the warden whether it is there, and wake it if it was stopped.

        One that answers and still reports no end has a worker that cannot die, because the kernel or a tracer holds it.
        It runs nothing any more, and its place is given to another. A beginning takes longer where a nursery loads the
        targets first; meanwhile the warden is only asked whether it is there.
        """
        slot.check_at = now + WARDEN_DOUBT_S
        if self._warden.due == math.inf:
            if slot.state is State.STARTING and now < slot.waits_until:
                slot.doubted = False
            if slot.doubted and slot.state is State.DYING:
                self._ended(slot, slot.process, -signal.SIGKILL)
                return
            if slot.doubted:
                self._lost_warden(stopped=True)
                return
            slot.doubted = True
            self._warden.ask(now)
        self._warden.wake()

    def _lost_warden(self, *, stopped: bool = False) -> None:
        """The warden is gone or does nothing: start another, and find out during which call wardens are lost."""
        self._warden.stop(at_once=stopped)
        processes = [slot.process for slot in self._slots if slot.process]
        for process in processes:  # the kernel has ended those that have not asked it otherwise
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process, signal.SIGKILL)
        self._warden.end_left_behind()
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
        self._answer_for(slot, slot.fates)
        alive = [ticket for ticket in suspects if ticket in slot.sent]
        if slot.retiring:
            return 0
        self._count_lost(slot, alive, "the process that starts workers was killed or stopped", with_all=True)
        return len(alive)

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
        self._warden.stop()
        for slot in self._slots:
            slot.close()
        self._selector.close()
        self._wake_read.close()
        self._wake_write.close()


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
