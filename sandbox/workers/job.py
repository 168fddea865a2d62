"""Jobs: batches of calls that the pool gets together, and the results of the calls."""

from __future__ import annotations

import itertools
import operator
import pickle
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from sandbox.workers.wire import BatchFile

Answer = str | float  # What a target returns: JSON text, or a number, which travels faster
_FAILURE = '{"cause"'  # how the text begins where the target failed


def is_failure(answer: Answer) -> bool:
    """Return whether a target's answer says that it failed, as an exception that another call's thread raises in it."""
    return type(answer) is str and answer[: len(_FAILURE)] == _FAILURE


class CallStatus(StrEnum):
    """How a call ended."""

    ANSWERED = "answered"  # the target returned
    TIMEOUT = "timeout"  # it did not return in time
    CRASHED = "crashed"  # the worker died while running this very call
    CANCELLED = "cancelled"  # it was cancelled while it was the only one that could have done that
    INFRASTRUCTURE = "infrastructure"  # the worker was killed from outside, again and again


class CallResult(NamedTuple):
    """The result of one call."""

    call: Call  # the call
    status: CallStatus  # how it ended
    answer: Any  # what the target returned: a number, or JSON decoded; ``None`` unless answered
    duration_s: float  # seconds it ran
    logs: str = ""  # what it printed and logged
    message: str = ""  # why it did not answer; ``""`` if it did


class Terms(NamedTuple):
    """How a call is to run, after what happened when it ran before; see :mod:`sandbox.workers.blame`."""

    lost: int = 0  # how often its worker was killed from outside while it ran
    alone: bool = False  # whether its worker must have no other call in flight and no threads left over
    fresh: bool = False  # whether its worker must have run no other call: it was alone as one died, but not the first
    apart: bool = False  # whether no other call may be in flight in any worker: all may have been brought down by it


USUAL = Terms()  # the terms of a call against which nothing is held


@dataclass(slots=True, eq=False)
class Call:
    """One call to make."""

    target: int  # which target
    places: tuple[int, ...]  # which segments of the job's batch it gets
    timeout_s: float  # seconds it may run
    terms: Terms = USUAL  # how it is to run


Again = list[tuple[float, Call]]  # calls to make again, each after so many seconds


class Handler(Protocol):
    """Takes results as they come, in the pool's thread, and returns the calls to make again."""

    def take(self, results: list[CallResult]) -> Again:
        """Take results of every kind."""

    def take_numbers(self, answers: list[tuple[Call, float, float]]) -> Again:
        """Take answers that are one number, as most are, with no output: call, number and the seconds it ran."""


class CallPool(Protocol):
    """A pool that runs calls: :class:`~sandbox.workers.WorkerPool` on this machine, or one on several machines.

    Each method may be called from any thread. ``start``, ``wait_loaded`` and ``submit`` raise ``PoolClosedError`` if
    the pool is closed or belongs to another process.
    """

    def start(self) -> None:
        """Start the workers, without waiting for them. A second call does nothing."""

    def wait_loaded(self, timeout_s: float) -> bool:
        """Start the workers and wait until this machine's have loaded; ``False`` if one has not in that time.

        Raises:
            WorkerStartError: A worker cannot be started or cannot load a target.
        """

    def submit(self, job: Job, calls: Sequence[Call], *, complete: bool = True) -> None:
        """Run calls of a job, whose segments are in its file; ``complete`` says that no more calls will come.

        Each call is answered for once, in one thread, and then the job ends.
        """

    def cancel(self, job: Job, error: BaseException) -> None:
        """End a job; calls that run already may run on, and their results are dropped."""

    def close(self) -> None:
        """End every worker and wait for it. Jobs on the way fail with :class:`PoolClosedError`."""

    @property
    def processes(self) -> list[int]:
        """Process ids of this machine's workers that are alive now."""


_numbers = itertools.count(1)
_target_of = operator.attrgetter("target")


class Job:
    """A batch of calls on the way.

    Args:
        segments: How many segments its data has; they are appended to :attr:`file`.
        common: An object that every call gets besides.
        handler: Takes the results.
        finished: Called once in the pool's thread, when every call is answered for or the job failed.

    Attributes:
        file: The batch's data; calls refer to its segments by index.
        complete: Whether no more calls will come.
    """

    def __init__(self, segments: int, common: object, handler: Handler, finished: Callable[[], None]) -> None:
        self.number = next(_numbers)
        self.common = pickle.dumps(common, protocol=5)
        self.file = BatchFile(segments)
        self.handler = handler
        self.remaining = 0
        self.complete = False
        self.error: BaseException | None = None
        self.ended = threading.Event()
        self.pending: dict[int, deque[Call]] = {}
        self.alone: dict[int, deque[Call]] = {}
        self._finished = finished

    def beside(self, handler: Handler, finished: Callable[[], None]) -> Job:
        """Return a job of its own on the same data, for another pool that runs some of the calls."""
        other = Job(0, None, handler, finished)
        other.file.close()
        other.common, other.file = self.common, self.file.share()
        return other

    def add(self, calls: Sequence[Call]) -> Iterable[int]:
        """Queue new calls and return their targets."""
        self.remaining += len(calls)
        targets = []
        for target, group in itertools.groupby(calls, key=_target_of):
            self.pending.setdefault(target, deque()).extend(group)
            targets.append(target)
        return targets

    def put(self, call: Call, *, first: bool = False) -> None:
        queue = (self.alone if call.terms.alone else self.pending).setdefault(call.target, deque())
        if first:
            queue.appendleft(call)
        else:
            queue.append(call)

    def end(self, error: BaseException | None = None) -> None:
        """Close the job; with an error, drop what is pending."""
        if self.ended.is_set():
            return
        self.error = error
        self.pending.clear()
        self.alone.clear()
        self.file.close()
        self.ended.set()
        finished, self._finished = self._finished, _nothing  # which has this job in turn: a circle of a whole batch
        finished()


def _nothing() -> None:
    """Do nothing."""
