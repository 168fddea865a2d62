"""A node's side: a real worker pool, which takes calls as bytes and hands back plain values.

It runs no reward itself: what imports or calls one is a worker. It knows no Ray; whatever reaches it calls its
methods, several at once and in any order.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rewardkit.loading.carried import unpack
from rewardkit.runtime.nodes.orders import CallOrder, HostOrder, HostReady, NodeAnswers, NodeFacts, facts
from sandbox import default_workers
from sandbox.errors import SandboxError, WorkerStartError
from sandbox.workers import Call, CallResult, CallStatus, Job, Target, WorkerPool

GATHER_S = 0.03  # Seconds for which answers gather while every worker has calls to run
DESCRIBE_S = 120.0  # Seconds that a worker may take to say what the rewards are, a jail's start included
MAX_LOADS = 3


@dataclass(frozen=True, slots=True)
class Forward:
    """Hands a job's results on; the driver's own handler says which calls are made again."""

    hand_on: Callable[[bool, list[Any]], object]  # whether they are bare numbers, and the results

    def take(self, results: list[CallResult]) -> list[tuple[float, Call]]:
        self.hand_on(False, results)
        return []

    def take_numbers(self, answers: list[tuple[Call, float, float]]) -> list[tuple[float, Call]]:
        self.hand_on(True, answers)
        return []


class NodeHost:
    """One node's pool of workers.

    Args:
        path: The driver's ``sys.path``, of which this process adds to its own what it lacks and has on its disk.
    """

    def __init__(self, path: Sequence[str] = ()) -> None:
        sys.path += [entry for entry in path if entry not in sys.path and os.path.exists(entry)]
        self._pool: WorkerPool | None = None
        self._workers = 1
        self._numbers: dict[int, int] = {}  # the pool's number of each of the driver's targets
        self._news = threading.Condition()  # protects what follows
        self._answers: list[NodeAnswers] = []
        self._jobs: dict[Job, int] = {}  # the pool's jobs, and the driver's number of each
        self._pending = 0  # calls without an answer
        self._fault: BaseException | None = None

    def hello(self) -> NodeFacts:
        """Return what this node is."""
        return facts()

    def prepare(self, order: HostOrder) -> HostReady:
        """Make the workers and wait until they have loaded.

        Raises:
            WorkerStartError: They cannot load a reward, or not in time.
            PackageInstallError: A package cannot be installed here.
        """
        options, limit_s = _pool_options(order), MAX_LOADS * order.load_timeout_s
        self._workers = default_workers() if order.workers is None else order.workers
        self._numbers = {number: index for index, number in enumerate(order.targets)}
        targets = [Target(name, payload) for name, payload in order.targets.values()]
        self._pool = WorkerPool(targets, workers=self._workers, **options)
        self._pool.start()
        try:
            versions, level = describe(order.description, options)
        except WorkerStartError:
            self._pool.wait_loaded(limit_s)  # where a reward cannot be loaded, this names it
            raise
        if not self._pool.wait_loaded(limit_s):
            raise WorkerStartError(f"the workers did not load the rewards in {limit_s:g} s; raise load_timeout_s")
        return HostReady(self._workers, versions, level)

    def take(self, number: int, common: bytes, segments: Sequence[bytes], calls: Sequence[CallOrder]) -> None:
        """Run calls of a driver's job; their answers come with :meth:`answers`."""
        assert self._pool is not None
        tickets = {Call(self._numbers[c.target], c.places, c.timeout_s): c.ticket for c in calls}
        job = Job(len(segments), None, Forward(functools.partial(self._note, number, tickets)), lambda: self._end(job))
        job.common = common
        job.file.append(segments)
        with self._news:
            self._jobs[job] = number
            self._pending += len(calls)
        self._pool.submit(job, list(tickets))

    def answers(self, wait_s: float) -> list[NodeAnswers]:
        """Return the answers since the last call, after at most ``wait_s`` for the first; ``[]`` shows life, too.

        Raises:
            SandboxError: The workers can run nothing more.
        """
        with self._news:
            self._news.wait_for(lambda: self._answers or self._fault, wait_s)
            # A message costs as much with many answers as with one.
            self._news.wait_for(lambda: self._pending < self._workers or self._fault, GATHER_S)
            if self._fault is not None:
                raise self._fault
            answers, self._answers = self._answers, []
            return answers

    def drop(self, number: int) -> None:
        """Cancel the calls of a job that have not run yet."""
        with self._news:
            jobs = [job for job, driver_number in self._jobs.items() if driver_number == number]
        for job in jobs:
            assert self._pool is not None
            self._pool.cancel(job, _DroppedError())

    def trials(self) -> list[tuple[str, bool, str]]:
        """Return each level of jail, whether this machine reaches it, and why not."""
        from sandbox import trials  # brings the jail along, and only a diagnosis asks

        return [(str(trial.level), trial.reached, trial.why) for trial in trials()]

    def close(self) -> None:
        """End the workers."""
        if self._pool is not None:
            self._pool.close()

    def _end(self, job: Job) -> None:
        with self._news:
            self._pending -= job.remaining
            self._jobs.pop(job, None)
            if not isinstance(job.error, _DroppedError):
                self._fault = self._fault or job.error
            self._news.notify_all()

    def _note(self, number: int, tickets: Mapping[Call, int], is_number: bool, results: list[Any]) -> None:
        """Keep a job's results, as plain values, until they are asked for."""
        if is_number:
            answers = [(tickets[call], *numbers) for call, *numbers in results]
        else:
            answers = [(tickets[call], status.value, *rest) for call, status, *rest in results]
        with self._news:
            self._answers.append((number, is_number, answers))
            self._pending -= len(answers)
            self._news.notify_all()


def describe(payload: bytes, options: dict[str, Any]) -> tuple[dict[str, str], str | None]:
    """Return the rewards' versions and their jails' level, asked of one worker of a pool with these options.

    Raises:
        WorkerStartError: The worker cannot import a reward, or does not say it in time.
    """
    results: list[CallResult] = []
    done = threading.Event()
    pool = WorkerPool([Target("the rewards' versions", payload)], workers=1, **options)
    try:
        job = Job(1, None, Forward(lambda _, answers: results.extend(answers)), done.set)  # it answers JSON, no number
        job.file.append([b""])
        pool.submit(job, [Call(0, (0,), DESCRIBE_S)])
        limit_s = DESCRIBE_S + MAX_LOADS * options["load_timeout_s"]
        if not done.wait(limit_s):
            raise WorkerStartError(f"a worker did not say the rewards' versions in {limit_s:g} s; raise load_timeout_s")
        if job.error is not None:
            raise job.error
        if results[0].status is not CallStatus.ANSWERED:
            raise WorkerStartError(f"a worker could not say the rewards' versions: {results[0].message}")
        versions, level = results[0].answer
        return versions, level
    finally:
        pool.close()


def _pool_options(order: HostOrder) -> dict[str, Any]:
    """Install the packages and unpack the carried files of an order; return the options of this node's pools."""
    from rewardkit.loading.packages import cache_folder, overlay_for  # brings subprocess and tempfile along

    overlays = [str(overlay_for(order.packages))] if order.packages else []
    if order.carried:
        overlays.append(str(unpack(order.carried, cache_folder() / "carried")))
    return {
        "path": list(dict.fromkeys([*overlays, *order.path, *sys.path])),
        "env": order.env,
        "preload": order.preload,
        "memory_bytes": order.memory_bytes,
        "load_timeout_s": order.load_timeout_s,
    }


class _DroppedError(SandboxError):
    """The driver dropped the job."""
