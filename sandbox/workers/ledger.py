"""The ledger: which jobs are on the way, and the result of each of their calls.

Owns the jobs and the calls to be made again later. It takes the answers that workers have written, hands the results
to the jobs, and carries out what :mod:`~sandbox.workers.blame` decides for calls without one. It leaves to
:mod:`~sandbox.workers.dispatch` where a call goes, and to its callers when a worker's answers are taken.
"""

from __future__ import annotations

import heapq
import itertools
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sandbox.workers import blame
from sandbox.workers.blame import Fate
from sandbox.workers.collector import CollectorPaused
from sandbox.workers.dispatch import Dispatch
from sandbox.workers.job import Again, Call, CallResult, CallStatus, Job
from sandbox.workers.slot import Slot, State
from sandbox.workers.wire import BESET, CANCELLED, MalformedError


class _Delayed(NamedTuple):
    """A call to be made again; in the heap the first due comes first, of several the first that was put in."""

    due: float
    order: int
    job: Job
    call: Call


class Ledger:
    """Answers for each call of each job once; ``broken`` is why nothing can be run any more, ``None`` while calls run.

    ``distrust`` kills a worker whose memory holds what its own code does not write there.
    """

    def __init__(self, slots: Sequence[Slot], dispatch: Dispatch, distrust: Callable[[Slot, str], None]) -> None:
        self.broken: BaseException | None = None
        self._slots = slots
        self._dispatch = dispatch
        self._distrust = distrust
        self._jobs: dict[int, Job] = {}
        self._delayed: list[_Delayed] = []  # a heap
        self._order = itertools.count()

    @property
    def due(self) -> float:
        """When the next call is to be made again, on the monotonic clock; infinite for none."""
        return self._delayed[0].due if self._delayed else math.inf

    def put_due(self, now: float) -> None:
        """Queue the calls whose time to be made again has come."""
        while self._delayed and self._delayed[0].due <= now:
            delayed = heapq.heappop(self._delayed)
            self._dispatch.put(delayed.job, delayed.call)

    def admit(self, job: Job, calls: Sequence[Call], complete: bool) -> None:
        """Take calls of a job; ``complete`` says that no more will come."""
        if self.broken is not None:
            job.end(self.broken)
        if job.ended.is_set():
            return
        self._jobs[job.number] = job
        job.complete = complete
        for target in job.add(calls):
            self._dispatch.enlist(job, target)
        self._end_if_done(job)

    def _end_if_done(self, job: Job) -> None:
        if job.complete and job.remaining == 0:
            self.end_job(job, None)

    def _take_answers(self, slot: Slot, chunk: range, answers: Iterable[tuple[float, float, int]]) -> int:
        """Hand a chunk's numbers to its job, and return how many there were."""
        numbers: list[tuple[Call, float, float]] = []
        sent = slot.sent
        for duration_s, number, ticket in answers:
            if ticket not in chunk:
                break
            entry = sent.pop(ticket, None)
            # inf - inf and nan - nan are nan, so that only a finite number passes
            if entry is None or not (number - number == 0.0 <= duration_s < math.inf):
                if entry is not None:
                    sent[ticket] = entry
                self._distrust(slot, "wrote to the memory that the worker shares")
                break
            job, call = entry
            numbers.append((call, number, duration_s))
        if numbers:
            durations_s = [duration_s for _, _, duration_s in numbers]
            self._dispatch.note(call.target, sum(durations_s), max(durations_s), len(durations_s))
            self._deliver(job, job.handler.take_numbers, numbers)
        return len(numbers)

    def _take_records(self, slot: Slot) -> None:
        """Hand a worker's results to their jobs, or follow blame where it says why one is missing."""
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
            if answer is None or type(answer) is str:
                call.terms, status, message = _fate_of(slot, ticket, call, answer)
                if status is None:
                    self._dispatch.put(job, call)
                    continue
                result = CallResult(call, status, None, duration_s, logs, message)
            else:
                result = make(CallResult, (call, CallStatus.ANSWERED, answer, duration_s, logs, ""))
            if job is not last:
                last, results = job, by_job.setdefault(job, [])
            results.append(result)
        for job, results in by_job.items():
            self._deliver(job, job.handler.take, results)

    def take_chunk(self, slot: Slot, finished: range, done: int, answers: Iterable[tuple[float, float, int]]) -> None:
        """Take the answers of a chunk of which so many calls are done, and queue again those whose answers are lost."""
        with CollectorPaused():
            self._take_answers(slot, finished, answers)
            self._take_records(slot)
        unanswered = [ticket for ticket in finished[:done] if ticket in slot.sent]
        self.lose(slot, unanswered, CallStatus.CRASHED, "the call returned and its answer was overwritten")
        self.send_again(slot, unanswered)

    def collect(self, slot: Slot) -> None:
        """Take the finished calls' answers and hand them to their jobs."""
        with CollectorPaused():
            if slot.chunk and (slot.state is not State.READY or slot.settled(time.monotonic())):
                slot.numbers_read += self._take_answers(slot, slot.chunk, slot.unread_answers())
            self._take_records(slot)

    def _deliver(self, job: Job, take: Callable[[list[Any]], Again], results: list[Any]) -> None:
        """Hand a job its results by a method of its handler, and note which calls are to be made again."""
        if job.ended.is_set():
            return
        try:
            again = take(results)
        except BaseException as fault:
            self.end_job(job, fault)
            return
        now = time.monotonic()
        for delay_s, call in again:
            heapq.heappush(self._delayed, _Delayed(now + delay_s, next(self._order), job, call))
        job.remaining -= len(results) - len(again)
        self._end_if_done(job)

    def end_job(self, job: Job, error: BaseException | None) -> None:
        """End a job, whose calls are dropped where they still run."""
        self._jobs.pop(job.number, None)
        self._dispatch.forget(job)
        for slot in self._slots:
            if job.number in slot.batches:
                slot.batches.discard(job.number)
                slot.tell(("drop", job.number))
        job.end(error)

    def answer_for(self, slot: Slot, fates: Mapping[int, Fate]) -> None:
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
                self._deliver(job, job.handler.take, [result])

    def send_again(self, slot: Slot, tickets: Sequence[int]) -> None:
        """Queue what a worker will not finish, in its old order."""
        for ticket in reversed(tickets):
            sent = slot.sent.pop(ticket, None)
            if sent is not None:
                self._dispatch.put(*sent, first=True)

    def lose(self, slot: Slot, tickets: Iterable[int], status: CallStatus, message: str = "") -> None:
        """Answer for calls whose answers never came; without a message they did not come in time."""
        fates = {}
        for ticket in tickets:
            call = slot.sent_call(ticket)
            fates[ticket] = blame.unanswered(call, status, message or blame.timeout_message(call))
        self.answer_for(slot, fates)

    def count_lost(self, slot: Slot, tickets: Iterable[int], reason: str, *, with_all: bool = False) -> None:
        """Note that these calls' worker was lost once more."""
        self.answer_for(slot, {t: blame.lost(slot.sent_call(t), reason, with_all=with_all) for t in tickets})

    def refuse(self, fault: BaseException) -> None:
        """End every job with a fault, now and later: nothing more can be run."""
        self.broken = fault
        for job in list(self._jobs.values()):
            self.end_job(job, fault)
        for slot in self._slots:
            slot.check_at = math.inf


def _fate_of(slot: Slot, ticket: int, call: Call, answer: str | None) -> Fate:
    """Return the fate of a call whose worker did not let it answer; ``None`` says that its time was up."""
    if answer == CANCELLED:
        return blame.unanswered(call, CallStatus.CANCELLED, "CancelledError")
    if answer is None and slot.was_halted(-math.inf, [ticket]):
        return blame.lost(call, blame.HALTED)
    if answer is None or answer == BESET:
        return blame.overdue(call, tainted=answer == BESET, is_first=ticket == slot.first_alone)
    slot.tainted = True  # the next one to run alone needs another worker
    return blame.disturbed(call)
