"""Dispatch: which call goes to which worker next.

Owns the queue: the jobs that have calls to send, in turn, and the calls that must run with nothing else in flight.
What becomes of the calls is the ledger's.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence

from sandbox.workers.desk import Order
from sandbox.workers.job import Call, Job
from sandbox.workers.page import MAX_CHUNK
from sandbox.workers.slot import LOOP_CHECK_S, PEEK_S, Lane, Slot, State

SLOW_S = 0.01  # a call that takes longer is slow: those behind it in its chunk wait for it
KNOWN_CALLS = 1_000  # so many calls without a slow one show that a target is quick
QUICK_CHUNK, QUICK_CHUNK_S = 16, 1e-3
"""Calls of a quick target that are sent together at least, if they take no longer than so many seconds together:
a chunk costs as much as several of them."""
CHUNK_COST_S = 1.5e-4  # processor time of a chunk in the parent, which all workers share: it is worth as much in calls


class _Pace:
    def __init__(self) -> None:
        self._calls = 0  # since the last slow one
        self._mean_s = 0.0

    def note(self, total_s: float, longest_s: float, calls: int) -> None:
        """Take the durations of some calls into account, the more of the later ones."""
        self._calls = self._calls + calls if longest_s < SLOW_S else 0
        self._mean_s += (total_s / calls - self._mean_s) / 8

    @property
    def min_chunk(self) -> int:
        """The fewest calls, at least 1, for which a chunk is worth its cost."""
        if self._calls < KNOWN_CALLS:
            return 1
        mean_s = max(self._mean_s, 1e-9)
        return max(1, min(QUICK_CHUNK, int(QUICK_CHUNK_S / mean_s)), min(MAX_CHUNK, int(CHUNK_COST_S / mean_s)))


class Dispatch:
    """Sends calls to free workers, in chunks that get smaller towards a job's end, so that all end together."""

    def __init__(self, slots: Sequence[Slot], retire: Callable[[Slot], None]) -> None:
        self._slots = slots
        self._serial = sum(slot.lane is Lane.SERIAL for slot in slots)
        self._retire = retire
        self._ring: deque[tuple[Job, int]] = deque()
        self._apart: deque[tuple[Job, Call]] = deque()  # calls to run with nothing else in flight; the first may run
        self._apart_runs = False
        self._paces: defaultdict[int, _Pace] = defaultdict(_Pace)

    def note(self, target: int, total_s: float, longest_s: float, calls: int = 1) -> None:
        """Note how long some calls of a target took together, and the longest of them."""
        self._paces[target].note(total_s, longest_s, calls)

    def enlist(self, job: Job, target: int) -> None:
        """Note that a job has calls of a target to send."""
        if (job, target) not in self._ring:
            self._ring.append((job, target))

    def put(self, job: Job, call: Call, *, first: bool = False) -> None:
        """Take a call back into its job's queue, where its job still goes on."""
        if job.ended.is_set():
            return
        if call.terms.apart:
            self._apart.append((job, call))
            return
        job.put(call, first=first)
        self.enlist(job, call.target)

    def forget(self, job: Job) -> None:
        """Send no more of a job's calls."""
        self._ring = deque((other, target) for other, target in self._ring if other is not job)

    def has_alone(self, slot: Slot) -> bool:
        """Return whether a call that a worker could run waits to run alone."""
        return any(job.alone.get(target) for job, target in self._ring if target in slot.targets)

    def feed(self) -> None:
        """Send calls to every worker that can take some."""
        if self._apart:
            self._feed_apart()
            return
        for slot in self._slots:
            if slot.state is State.READY and not slot.emptying:
                if slot.lane is Lane.SERIAL:
                    if not slot.chunk:
                        self.feed_serial(slot)
                elif not slot.leaks and not slot.reader.large:  # type: ignore[union-attr]  # open as long as the worker lives
                    self._feed_wide(slot)

    def _feed_apart(self) -> None:
        """Run the calls during which wardens were lost one by one, with nothing else in flight, to find the cause."""
        if any(slot.sent for slot in self._slots):
            return
        if self._apart_runs:  # the first has ended, because nothing is in flight
            self._apart.popleft()
            self._apart_runs = False
        self._apart = deque((job, call) for job, call in self._apart if not job.ended.is_set())
        if not self._apart:
            self.feed()
            return
        job, call = self._apart[0]
        for slot in self._slots:
            if slot.state is State.READY and not slot.emptying and call.target in slot.targets:
                if not slot.is_clean_for(call):
                    self._retire(slot)
                    return
                if slot.lane is Lane.SERIAL:
                    _send_chunk(slot, job, call.target, [call])
                else:
                    _send_orders(slot, [_order_for(slot, job, call)])
                self._apart_runs = True
                return

    def feed_serial(self, slot: Slot) -> None:
        """Send a worker of the serial lane its next chunk, if there is one."""
        if self._apart:
            return
        for _ in range(len(self._ring)):
            job, target = self._ring[0]
            self._ring.rotate(-1)
            if target not in slot.targets:
                continue
            if job.alone.get(target):
                if not slot.is_clean_for(job.alone[target][0]):
                    self._retire(slot)
                    return
                _send_chunk(slot, job, target, [job.alone[target].popleft()])
                return
            pending = job.pending.get(target)
            if pending:
                count = max(self._paces[target].min_chunk, len(pending) // (2 * self._serial))
                count = min(len(pending), MAX_CHUNK, count)
                _send_chunk(slot, job, target, [pending.popleft() for _ in range(count)])
                return
            self._ring.remove((job, target))

    def _feed_wide(self, slot: Slot) -> None:
        """Send a worker as many calls as it has room for; one that is to run alone waits until nothing else is sent."""
        orders = []
        ring = [(job, target) for job, target in self._ring if target in slot.targets]
        # Calls that wait only for their turn alone get it: other jobs' calls stand back until then.
        alone = [(job, target) for job, target in ring if job.alone.get(target) and not job.pending.get(target)]
        for job, target in alone or ring:
            if any(call.terms.alone for _, call in slot.sent.values()):
                break
            while len(slot.sent) < slot.width and job.pending.get(target):
                orders.append(_order_for(slot, job, job.pending[target].popleft()))
            if job.alone.get(target) and not slot.sent:
                if not slot.is_clean_for(job.alone[target][0]):
                    self._retire(slot)
                    return
                orders.append(_order_for(slot, job, job.alone[target].popleft()))
            if not job.pending.get(target) and not job.alone.get(target):
                self._ring.remove((job, target))
        if orders:
            _send_orders(slot, orders)


def _send_chunk(slot: Slot, job: Job, target: int, calls: list[Call]) -> None:
    small = None if job.number in slot.batches else job.file.to_send({row for call in calls for row in call.places})
    if small is None:
        _open_batch(slot, job)
    ticket = slot.tickets(job, calls)
    slot.chunk = range(ticket, ticket + len(calls))
    slot.idle_since, slot.check_at = math.inf, time.monotonic() + min(calls[0].timeout_s, PEEK_S)
    slot.half, slot.numbers_read = 1 - slot.half, 0
    places = [call.places for call in calls]
    batch = job.number if small is None else (job.common, small)
    slot.tell(("run", ticket, slot.half, batch, target, places))


def _send_orders(slot: Slot, orders: list[Order]) -> None:
    slot.idle_since = math.inf
    slot.tell(("start", [tuple(order) for order in orders]))
    soon = LOOP_CHECK_S if slot.lane is Lane.ASYNCIO else min(order.timeout_s for order in orders)
    slot.check_at = min(slot.check_at, time.monotonic() + soon)


def _order_for(slot: Slot, job: Job, call: Call) -> Order:
    """Note a call as sent, with its batch opened where the worker has not had it yet, and return its order."""
    _open_batch(slot, job)
    return Order(slot.tickets(job, [call]), job.number, call.target, call.places, call.timeout_s)


def _open_batch(slot: Slot, job: Job) -> None:
    if job.number not in slot.batches:
        slot.batches.add(job.number)
        slot.tell(("batch", job.number, job.common), [job.file.for_workers()])
