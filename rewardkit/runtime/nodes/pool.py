"""The driver's side: a pool like :class:`~sandbox.workers.WorkerPool`, whose calls run here and on a cluster's nodes.

One thread owns all jobs, so nothing here is locked but the way in. It decides nothing: which call goes where is
:mod:`~rewardkit.runtime.nodes.schedule`'s to say, which node takes part :mod:`~rewardkit.runtime.nodes.recruiting`'s.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import logging
import os
import queue
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from rewardkit.runtime.nodes.cluster import NodeCluster, Outbox
from rewardkit.runtime.nodes.host import Forward
from rewardkit.runtime.nodes.orders import CallOrder, HostOrder, NodeAnswers, NodeExpectation, check_answers
from rewardkit.runtime.nodes.recruiting import Recruiting
from rewardkit.runtime.nodes.schedule import GIVE_UP_S, HOME, MAX_LOST, Schedule, Send
from sandbox.errors import PoolClosedError
from sandbox.workers import Call, CallPool, CallResult, CallStatus, CollectorPaused, Job

TICK_S = 1.0  # Seconds between two looks at the nodes' health
CLOSE_S = 5.0  # Seconds that the end waits for a cluster to hear of it

_log = logging.getLogger("rewardkit")


class _Retry(NamedTuple):
    """A call that is made again; in the heap the first due comes first, of several the first that was put in."""

    due: float
    order: int
    job: int
    call: Call


class NodePool:
    """Runs calls on this machine's pool and on the nodes of a cluster.

    Args:
        home: The driver's own pool, with all targets; it is node 0, and its faults are this pool's.
        home_workers: Its processes for serial targets.
        home_only: Targets whose calls stay on node 0.
        cluster: Where the other nodes are; they join when they are ready, and nothing waits for them.
        order: The order that each node gets.
        expectation: The versions and the level of jail that a node must have.
    """

    def __init__(
        self,
        home: CallPool,
        home_workers: int,
        home_only: Iterable[int],
        cluster: NodeCluster,
        order: HostOrder,
        expectation: NodeExpectation,
    ) -> None:
        self._home = home
        self._owner = os.getpid()
        self._schedule = Schedule(home_workers, home_only)
        self._outbox = Outbox("rewardkit-outbox")
        self._commands: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._recruiting = Recruiting(cluster, order, expectation, self._outbox, self._commands.put, self)
        self._jobs: dict[int, Job] = {}
        self._home_jobs: dict[int, Job] = {}  # by number, what the home pool runs of each job
        self._retries: list[_Retry] = []  # a heap
        self._order = itertools.count()
        self._alone = False  # whether a warning said that node 0 goes on alone
        self._thread = threading.Thread(target=self._run, name="rewardkit-nodes", daemon=True)
        self._closing = False
        self._lock = threading.Lock()  # so that the thread starts once, and no job comes when it no longer serves any

    def start(self) -> None:
        """Start the workers of node 0 and ask the nodes, without waiting for either."""
        self._check_usable()
        self._home.start()
        with self._lock:
            if self._thread.ident is None:
                self._outbox.start()
                self._thread.start()

    def wait_loaded(self, timeout_s: float) -> bool:
        """Start and wait until node 0's workers have loaded; the others join later. As :class:`CallPool` says."""
        self.start()
        return self._home.wait_loaded(timeout_s)

    def submit(self, job: Job, calls: Sequence[Call], *, complete: bool = True) -> None:
        """Run calls of a job, whose segments are in its file; ``complete`` says that no more calls will come."""
        self.start()
        with self._lock:
            self._check_usable()
            self._commands.put(lambda: self._admit(job, calls, complete))

    def cancel(self, job: Job, error: BaseException) -> None:
        """End a job; calls that run already may run on, and their results are dropped."""
        with self._lock:
            is_served = self._thread.ident is not None and not self._closing
            if is_served:
                self._commands.put(lambda: self._end_job(job, error))
        if not is_served:
            job.end(error)

    def close(self) -> None:
        """End every worker, here and on the nodes. Jobs on the way fail with :class:`PoolClosedError`."""
        if os.getpid() != self._owner:
            return
        with self._lock:
            first, self._closing = not self._closing, True
        if self._thread.ident is not None and threading.current_thread() is not self._thread:
            self._commands.put(lambda: None)  # wakes the thread
            self._thread.join()
        self._home.close()
        if first:
            self._outbox.stop(CLOSE_S)

    @property
    def processes(self) -> list[int]:
        """Process ids of node 0's workers that are alive now; those of other machines mean nothing here."""
        return self._home.processes

    @property
    def nodes(self) -> list[str]:
        """Ids of the nodes beside node 0 that take calls now."""
        return self._schedule.nodes

    def _check_usable(self) -> None:
        if os.getpid() != self._owner:
            raise PoolClosedError("this pool belongs to the process that made it, not to a fork of it")
        if self._closing:
            raise PoolClosedError("this pool is closed")

    # Everything from here on runs in the pool's thread: first what Recruiting calls.

    def on_join(self, node: str, workers: int) -> None:
        """Use a node from now on."""
        self._schedule.join(node, workers, time.monotonic())
        self._alone = False

    def on_answers(self, node: str, answers: Sequence[NodeAnswers]) -> None:
        """Take a node's answers; raise :class:`ValueError`, and use none of them, where one is malformed."""
        check_answers(answers)
        self._schedule.mark_alive(node, time.monotonic())
        for number, is_number, rows in answers:
            self._take(node, number, is_number, rows)

    def on_loss(self, node: str, reason: str, *, blameless: bool) -> None:
        """Send a lost node's calls again, and give those up that lost theirs too often."""
        message = f"{reason}, as were {MAX_LOST - 1} nodes before with this call"
        for number, call in self._schedule.lose(node, blameless=blameless):
            self._deliver(number, False, [CallResult(call, CallStatus.INFRASTRUCTURE, None, 0.0, "", message)])
        if not self._schedule.nodes and not self._alone:
            self._alone = True
            _log.warning("no node of the cluster is left; scoring goes on with this machine's workers alone")

    def _run(self) -> None:
        """Take turns until the pool is closed or a turn raises; then end all jobs with that error."""
        fault: BaseException = PoolClosedError("the pool was closed")
        try:
            while not self._closing:
                self._turn()
        except BaseException as error:
            fault = error
        finally:
            with self._lock:
                self._closing = True  # from here on no job comes
            while not self._commands.empty():
                with contextlib.suppress(PoolClosedError):
                    self._commands.get()()
            for job in list(self._jobs.values()):
                self._end_job(job, fault)
            self._recruiting.close()

    def _turn(self) -> None:
        """Run the commands that wait, due retries, the look at the nodes, and the calls to send."""
        now = time.monotonic()
        due = min(self._recruiting.due, now + TICK_S, *(retry.due for retry in self._retries[:1]))
        with contextlib.suppress(queue.Empty):
            self._commands.get(timeout=max(0.0, due - now))()
            while True:
                self._commands.get_nowait()()
        now = time.monotonic()
        while self._retries and self._retries[0].due <= now:
            retry = heapq.heappop(self._retries)
            if retry.job in self._jobs:
                self._schedule.add(retry.job, [retry.call])
        for node in self._schedule.silent_nodes(now):
            self._recruiting.give_up(node, f"it has said nothing for {GIVE_UP_S:g} s")
        self._recruiting.look(now)
        for send in self._schedule.sends(self._bytes_of):
            self._send(send)

    def _bytes_of(self, number: int, call: Call) -> int:
        return sum(map(self._jobs[number].file.size_of, call.places))

    def _admit(self, job: Job, calls: Sequence[Call], complete: bool) -> None:
        if job.ended.is_set():
            return
        self._jobs[job.number] = job
        job.complete = complete
        job.remaining += len(calls)
        self._schedule.add(job.number, calls)
        self._end_if_done(job)

    def _send(self, send: Send) -> None:
        """Send calls of a job to the pool at home, or to a node with the rows that they read."""
        job = self._jobs.get(send.job)
        if job is None:  # what was sent before has ended it
            return
        if send.node == HOME:
            try:
                self._home.submit(self._home_job(job), send.calls, complete=False)
            except PoolClosedError as error:
                self._end_job(job, error)
            return
        rows = sorted({row for call in send.calls for row in call.places})
        segments = {row: segment for segment, row in enumerate(rows)}
        calls = [
            CallOrder(ticket, call.target, tuple(segments[row] for row in call.places), call.timeout_s)
            for ticket, call in enumerate(send.calls, send.first)
        ]
        self._recruiting.ask(send.node, "take", job.number, job.common, job.file.read(rows), calls)

    def _home_job(self, job: Job) -> Job:
        """Return the home pool's part of a job, on the same data; make it where it is missing."""
        own = self._home_jobs.get(job.number)
        if own is None:
            own = job.beside(
                Forward(lambda *results: self._commands.put(lambda: self._take(HOME, job.number, *results))),
                lambda: self._commands.put(lambda: self._on_home_end(job)),
            )
            self._home_jobs[job.number] = own
        return own

    def _on_home_end(self, job: Job) -> None:
        """End a job whose part in the home pool has ended with an error."""
        own = self._home_jobs.get(job.number)
        if own is not None and own.error is not None:
            self._end_job(job, own.error)

    def _take(self, node: str, number: int, is_number: bool, answers: Sequence[tuple[Any, ...]]) -> None:
        """Hand a node's answers to their job, except those that come late."""
        with CollectorPaused():
            time_at = 2 if is_number else 3  # see NodeAnswers
            times = [(row[0], row[time_at]) for row in answers]
            calls = self._schedule.take_answers(node, number, times, time.monotonic())
            results: list[Any] = [(call, *row[1:]) for call, row in zip(calls, answers, strict=True) if call]
            if not is_number:
                results = [CallResult(call, CallStatus(status), *rest) for call, status, *rest in results]
            if results:
                self._deliver(number, is_number, results)

    def _deliver(self, number: int, is_number: bool, results: list[Any]) -> None:
        """Hand a job its results and note which of its calls it wants to be made again."""
        job = self._jobs.get(number)
        if job is None or job.ended.is_set():
            return
        try:
            again = job.handler.take_numbers(results) if is_number else job.handler.take(results)
        except BaseException as error:
            self._end_job(job, error)
            return
        now = time.monotonic()
        for delay_s, call in again:
            heapq.heappush(self._retries, _Retry(now + delay_s, next(self._order), number, call))
        job.remaining -= len(results) - len(again)
        self._end_if_done(job)

    def _end_if_done(self, job: Job) -> None:
        if job.complete and job.remaining == 0:
            self._end_job(job, None)

    def _end_job(self, job: Job, error: BaseException | None) -> None:
        """End a job everywhere, with an error or none; a second call does nothing."""
        self._jobs.pop(job.number, None)
        own = self._home_jobs.pop(job.number, None)
        for node in self._schedule.forget(job.number):
            if node != HOME:
                self._recruiting.ask(node, "drop", job.number)
        if own is not None:
            self._home.cancel(own, PoolClosedError("the job has ended"))
        job.end(error)
