"""The lanes that a batch runs in: worker processes, or inline in the caller's own process.

Inline is for unit tests and debuggers. The same code runs on the same bytes as in a worker, so a reward cannot change
what others see, and its output is captured. There is no isolation: a crash is the caller's crash, and no deadline is
kept. But a process that a reward forks ends where its call ends, and does not become a second caller.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import contextvars
import json
import os
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from rewardkit.errors import RewardError, RewardLoadError, RuntimeClosedError
from rewardkit.own_columns import ENVIRONMENTS_COLUMN, LiveObject
from rewardkit.run_code import RunCode, imported_from
from rewardkit.runtime.attempt import attempt, attempt_async, failure_of
from rewardkit.runtime.finding import encode
from rewardkit.runtime.plan import Plan, RewardCall
from rewardkit.runtime.settle import Settler
from rewardkit.runtime.target import rollout_of
from rewardkit.types import Arrived, Rollout
from sandbox.errors import PoolClosedError, WorkerStartError
from sandbox.workers import CallResult, CallStatus, Job, inline_capture

if TYPE_CHECKING:
    import asyncio

    from sandbox.workers import CallPool


class RunningBatch(NamedTuple):
    """A batch in a lane.

    Attributes:
        done: Done when every call has been answered for, or with the error that ended the batch.
    """

    settler: Settler  # Has its outcomes
    done: concurrent.futures.Future[None]
    cancel: Callable[[], None]  # Stops what has not been run; does nothing where all is done


def run_in_workers(pool: CallPool, settler: Settler) -> RunningBatch:
    """Hand the calls to the pool piece by piece: the first are scored while the rest is being prepared."""
    plan = settler.plan
    done: concurrent.futures.Future[None] = concurrent.futures.Future()

    def finish() -> None:
        with contextlib.suppress(concurrent.futures.InvalidStateError):  # who waited has cancelled it
            if job.error is None:
                settler.finish()
                done.set_result(None)
            else:
                done.set_exception(_translate(job.error))

    def cancel() -> None:
        if not job.ended.is_set():
            pool.cancel(job, RuntimeClosedError("the batch was cancelled"))

    job = Job(len(plan.rollouts), plan.context, settler, finish)
    try:
        for piece in plan.pieces():
            settler.take_cached(piece.cached)
            job.file.append(piece.segments)
            if job.ended.is_set():
                break
            pool.submit(job, piece.calls, complete=piece.complete)
    except PoolClosedError as error:
        job.end(error)
        raise RuntimeClosedError(str(error)) from error
    except BaseException as error:
        pool.cancel(job, error)
        raise
    return RunningBatch(settler, done, cancel)


async def awaited_batch(begin: Callable[[], RunningBatch], *, at_once: bool = False) -> RunningBatch:
    """Begin a batch in a thread, because preparing it takes time, and return it when done; or begin it at once."""
    import asyncio  # who awaits has it loaded already

    if at_once:
        run = begin()
        try:
            await asyncio.wrap_future(run.done)
        except BaseException:
            run.cancel()
            raise
        return run
    running: concurrent.futures.Future[RunningBatch] = concurrent.futures.Future()

    def start() -> RunningBatch:
        running.set_result(begin())
        return running.result()

    try:
        run = await asyncio.to_thread(start)
        await asyncio.wrap_future(run.done)
    except BaseException:
        running.add_done_callback(lambda future: future.result().cancel())  # the thread may still prepare the batch
        raise
    return run


def _translate(error: BaseException) -> BaseException:
    """Return the error of rewardkit that stands for one of the sandbox."""
    if isinstance(error, WorkerStartError):
        own_error: RewardError = RewardLoadError(str(error))
    elif isinstance(error, PoolClosedError):
        own_error = RuntimeClosedError(str(error))
    else:
        return error
    own_error.__cause__ = error
    return own_error


def run_inline(settler: Settler, code: RunCode) -> RunningBatch:
    """Run every call here, one after another, with its retries; what calls import first is the run's ``code``."""
    plan = settler.plan
    segments: list[bytes] = []
    for piece in plan.pieces():
        settler.take_cached(piece.cached)
        segments += piece.segments
        for call in piece.calls:
            while retries := settler.take([_run(plan, call, segments, code)]):
                ((delay_s, _),) = retries
                time.sleep(delay_s)
    settler.finish()
    done: concurrent.futures.Future[None] = concurrent.futures.Future()
    done.set_result(None)
    return RunningBatch(settler, done, lambda: None)


def _run(plan: Plan, call: RewardCall, segments: Sequence[bytes], code: RunCode) -> CallResult:
    """Run a call in this process, and return its result as a worker's would arrive."""
    spec = plan.rewards[call.target].spec
    rollouts = [rollout_of(segments[index]) for index in call.places]
    process = os.getpid()
    with inline_capture() as log, imported_from(code):
        start_s = time.monotonic()
        try:
            if spec.is_async:
                finding = _wait_for(attempt_async(spec, rollouts, plan.context, call.places), _loop_of(rollouts))
            else:
                finding = attempt(spec, rollouts, plan.context, call.places)
        except _Cancelled:
            finding = None
        if os.getpid() != process:  # what the call forked
            os._exit(0)
        duration_s = time.monotonic() - start_s
    if finding is None:
        return CallResult(call, CallStatus.CANCELLED, None, duration_s, log.finish(), "CancelledError")
    encoded = encode(finding)
    answer = json.loads(encoded) if isinstance(encoded, str) else encoded
    return CallResult(call, CallStatus.ANSWERED, answer, duration_s, log.finish())


class _Cancelled(Exception):
    """The call cancelled itself."""


def _loop_of(rollouts: Sequence[Rollout | Arrived]) -> asyncio.AbstractEventLoop | None:
    """Return the event loop on which a trainer runs the live environments of rollouts; ``None`` without one."""
    environments = (rollout.example.get(ENVIRONMENTS_COLUMN) for rollout in rollouts)
    return next((value.loop for value in environments if isinstance(value, LiveObject)), None)


def _wait_for(coroutine: Coroutine[Any, Any, Any], loop: asyncio.AbstractEventLoop | None) -> Any:
    """Run a coroutine to its end on this loop, or on one of its own, also where this thread has one running already.

    Raises _Cancelled where the coroutine was cancelled, which only the coroutine itself can have done.
    """
    import asyncio  # slow to import, and only async rewards need it

    from rewardkit.loops import run_on

    async def result() -> Any:
        return (await asyncio.gather(asyncio.ensure_future(coroutine), return_exceptions=True))[0]

    answers: list[Any] = []

    def run() -> None:
        try:
            answers.append(asyncio.run(result()) if loop is None else run_on(loop, result()))
        except BaseException as error:  # of a task that the call started, which ends the loop
            if issubclass(type(error), KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
                raise
            answers.append(failure_of(error))

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        run()
    else:
        thread = threading.Thread(target=contextvars.copy_context().run, args=[run])
        thread.start()
        thread.join()
    if isinstance(answers[0], asyncio.CancelledError):
        raise _Cancelled
    return answers[0]
