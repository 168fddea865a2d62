"""A node's side: a real worker pool, which takes calls as bytes and hands back plain values.

It runs no reward itself: what imports or calls one is a worker. It knows no Ray; whatever reaches it calls its
methods, several at once and in any order.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from rewardkit.loading.carried import unpack
from rewardkit.runtime.nodes.orders import CallOrder, HostOrder, HostReady, NodeAnswers, NodeFacts, facts
from sandbox import cores
from sandbox.errors import SandboxError, WorkerStartError
from sandbox.workers import Call, CallResult, CallStatus, Job, Target, WorkerPool

GATHER_S = 0.03
"""Seconds for which answers gather while every worker has calls to run."""
DESCRIBE_S = 120.0
"""Seconds that a worker may take to say what the rewards are, a jail's start included."""
MAX_LOADS = 3


class NodeHost:
    """One node's pool of workers.

    Args:
        path: The driver's ``sys.path``, of which this process adds to its own what it lacks and has on its disk.
    """

    def __init__(self, path: Sequence[str] = ()) -> None:
        sys.path += [entry for entry in path if entry not in sys.path and os.path.exists(entry)]
        self._pool: WorkerPool | None = None
        self._news = threading.Condition()  # protects what follows
        self._answers: list[NodeAnswers] = []
        self._jobs: dict[int, list[Job]] = {}
        self._out = 0
        self._workers = 1
        self._numbers: dict[int, int] = {}
        self._fault: BaseException | None = None

    def hello(self) -> NodeFacts:
        """Return what this node is."""
        return facts()

    def prepare(self, order: HostOrder) -> HostReady:
        """Make the workers and wait until they have loaded.

        Raises:
            RewardLoadError: They cannot load a reward.
            PackageInstallError: A package cannot be installed here.
        """
        options = _pool_options(order)
        self._workers = min(4, cores()) if order.workers is None else order.workers
        self._numbers = {number: place for place, number in enumerate(order.targets)}
        targets = [Target(name, payload) for name, payload in order.targets.values()]
        self._pool = WorkerPool(targets, workers=self._workers, **options)
        self._pool.start()
        try:
            versions, level = described(order.described, options)
        except WorkerStartError:
            self._pool.wait_loaded(MAX_LOADS * order.load_timeout_s)  # where a reward cannot be loaded, this names it
            raise
        if not self._pool.wait_loaded(MAX_LOADS * order.load_timeout_s):
            raise WorkerStartError("the workers did not load the rewards in time")
        return HostReady(self._workers, versions, level)

    def take(self, job: int, common: bytes, segments: Sequence[bytes], calls: Sequence[CallOrder]) -> None:
        """Run calls of a driver's job; their answers come with :meth:`answers`."""
        assert self._pool is not None
        collector = _Collector(self.note, job, len(calls))
        own = Job(len(segments), None, collector, lambda: self._ended(job, own, collector.left))
        own.common = common
        own.file.append(segments)
        with self._news:
            self._jobs.setdefault(job, []).append(own)
            self._out += len(calls)
        self._pool.submit(own, [_TicketedCall(self._numbers[c.target], c.places, c.timeout_s, c.ticket) for c in calls])

    def answers(self, wait_s: float) -> list[NodeAnswers]:
        """Return the answers since the last call, waiting so long for the first; it is how a node shows its life.

        Raises:
            SandboxError: The workers can run nothing more.
        """
        end = time.monotonic() + wait_s
        with self._news:
            while not self._answers and self._fault is None and (left_s := end - time.monotonic()) > 0:
                self._news.wait(left_s)
            if self._out >= self._workers and self._fault is None:
                self._news.wait_for(lambda: self._out < self._workers or self._fault is not None, GATHER_S)
            if self._fault is not None:
                raise self._fault
            taken, self._answers = self._answers, []
            return taken

    def drop(self, job: int) -> None:
        """Stop what has not been run of a job."""
        with self._news:
            dropped = self._jobs.pop(job, [])
        for own in dropped:
            assert self._pool is not None
            self._pool.cancel(own, _DroppedError())

    def trials(self) -> list[tuple[str, bool, str]]:
        """Return each level of jail, whether this machine reaches it, and why not."""
        from sandbox import trials  # brings the jail along, and only a diagnosis asks

        return [(str(one.level), one.reached, one.why) for one in trials()]

    def close(self) -> None:
        """End the workers."""
        if self._pool is not None:
            self._pool.close()

    def _ended(self, number: int, own: Job, left: int) -> None:
        with self._news:
            self._out -= left
            if not isinstance(own.error, _DroppedError):
                self._fault = self._fault or own.error
            some = self._jobs.get(number, [])
            if own in some:
                some.remove(own)
            if not some:
                self._jobs.pop(number, None)
            self._news.notify_all()

    def note(self, answers: NodeAnswers) -> None:
        """Keep answers until they are asked for."""
        with self._news:
            self._answers.append(answers)
            self._out -= len(answers[2])
            self._news.notify_all()


def described(payload: bytes, options: dict[str, Any]) -> tuple[dict[str, str], str | None]:
    """Return the rewards' versions and their jails' level, as one worker of a pool with these options says.

    Raises:
        WorkerStartError: The worker cannot import a reward, or does not say it in time.
    """
    heard: list[CallResult] = []
    done = threading.Event()
    pool = WorkerPool([Target("the rewards' versions", payload)], workers=1, **options)
    try:
        job = Job(1, None, _Heard(heard), done.set)
        job.file.append([b""])
        pool.submit(job, [Call(0, (0,), DESCRIBE_S)])
        if not done.wait(DESCRIBE_S + MAX_LOADS * options["load_timeout_s"]):
            raise WorkerStartError("a worker did not say the rewards' versions in time")
        if job.error is not None:
            raise job.error
        if heard[0].status is not CallStatus.ANSWERED:
            raise WorkerStartError(f"a worker could not say the rewards' versions: {heard[0].message}")
        versions, level = heard[0].answer
        return versions, level
    finally:
        pool.close()


def _pool_options(order: HostOrder) -> dict[str, Any]:
    """Return the options of this node's pools; the files that travelled and the packages are there afterwards."""
    from rewardkit.loading.packages import cache_folder, overlay_for  # brings subprocess and tempfile along

    first = [str(overlay_for(order.packages))] if order.packages else []
    if order.carried:
        first.append(str(unpack(order.carried, cache_folder() / "carried")))
    here = [entry for entry in sys.path if entry not in order.path]
    return {
        "path": [*first, *order.path, *here],
        "env": order.env,
        "preload": order.preload,
        "memory_bytes": order.memory_bytes,
        "load_timeout_s": order.load_timeout_s,
    }


class _DroppedError(SandboxError):
    """The driver dropped the job."""


class _TicketedCall(Call):
    """A call under the driver's ticket."""

    __slots__ = ("ticket",)

    def __init__(self, target: int, places: tuple[int, ...], timeout_s: float, ticket: int) -> None:
        super().__init__(target, places, timeout_s)
        self.ticket = ticket


class _Collector:
    """Hands a job's results on as plain values; the driver says what is tried again."""

    def __init__(self, note: Callable[[NodeAnswers], None], job: int, left: int) -> None:
        self._note = note
        self._job = job
        self.left = left

    def take(self, results: list[CallResult]) -> list[tuple[float, Call]]:
        return self._hand_on(
            False, [(_ticket(r.call), r.status.value, r.answer, r.duration_s, r.logs, r.message) for r in results]
        )

    def take_numbers(self, answers: list[tuple[Call, float, float]]) -> list[tuple[float, Call]]:
        return self._hand_on(True, [(_ticket(call), number, duration_s) for call, number, duration_s in answers])

    def _hand_on(self, numbers: bool, answers: list[tuple[Any, ...]]) -> list[tuple[float, Call]]:
        self.left -= len(answers)
        self._note((self._job, numbers, answers))
        return []


def _ticket(call: Call) -> int:
    assert isinstance(call, _TicketedCall)
    return call.ticket


class _Heard:
    def __init__(self, heard: list[CallResult]) -> None:
        self._heard = heard

    def take(self, results: list[CallResult]) -> list[tuple[float, Call]]:
        self._heard += results
        return []

    def take_numbers(self, answers: list[tuple[Call, float, float]]) -> list[tuple[float, Call]]:
        self._heard += [CallResult(call, CallStatus.ANSWERED, number, ran_s) for call, number, ran_s in answers]
        return []
