"""Calls of many callers become batches: what arrives while a batch is scored is the next one.

This module owns who waits, how many rows may be inside, and which caller gets which result. How a batch is scored is
the runtime's; rows that wait for the rest of their group are :mod:`~rewardkit.serving.gathering`'s.
"""

from __future__ import annotations

import asyncio
import copy
import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from rewardkit.errors import DataError, FullError, InfrastructureError, RewardDefinitionError, RewardError
from rewardkit.runtime.plan import CallerRows
from rewardkit.score_batch import ScoreBatch
from rewardkit.scorer import Scorer
from rewardkit.types import Rollout

MOST_ROWS = 16_384  # Rows that may be inside at once, waiting or being scored
BATCH_ROWS = 2_048  # Rows at which a batch is full; one caller's rows are never split
MOST_BATCHES = 8  # Batches that may be scored at once
PACE_S = 0.02
"""Seconds after which the next batch begins though the one before is not done, so that a slow row delays no other."""


class PartsScorer(Scorer, Protocol):
    """A scorer that can score several callers' rows in one batch."""

    async def ascore_parts(
        self, parts: Sequence[CallerRows], *, step: int | None = None, epoch: float | None = None
    ) -> list[ScoreBatch | RewardError]:
        """Return each caller's own scores, or its own error, in the callers' order."""


@dataclass(slots=True, eq=False)
class _Caller:
    """A call that waits, and the batch that it is scored in; ``None`` before that begins."""

    part: CallerRows
    context: tuple[int | None, float | None]  # Step and epoch
    answer: asyncio.Future[ScoreBatch]
    batch: _Batch | None = None


@dataclass(slots=True, eq=False)
class _Batch:
    """Calls that are scored together, and how many of their callers still want the result."""

    callers: list[_Caller]
    waiters: int
    task: asyncio.Task[None] | None = field(default=None)


class Joining:
    """Scores what many callers on one event loop ask for, in batches.

    A call is scored with those that arrive at the same time. While a batch is being scored the next gathers; it begins
    when the batch is done or has ``batch_rows`` rows, or :data:`PACE_S` after the batch began. Calls of different steps
    are never in one batch. Beyond ``most_rows`` rows inside, a call is refused with FullError. ``on_batch`` is told of
    the callers and rows of each batch as it begins.

    An error reaches the callers that it concerns: wrong rows cost their own caller, lost calls those who asked for
    them, and only what ends the runtime ends every call.
    """

    def __init__(
        self,
        runtime: PartsScorer,
        *,
        most_rows: int = MOST_ROWS,
        batch_rows: int = BATCH_ROWS,
        on_batch: Callable[[int, int], None] = lambda callers, rows: None,
    ) -> None:
        for name, value in (("most_rows", most_rows), ("batch_rows", batch_rows)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise RewardDefinitionError(f"{name}={value!r}: expected a whole number, 1 or more")
        self.runtime, self._most_rows, self._batch_rows, self._on_batch = runtime, most_rows, batch_rows, on_batch
        self._inside = 0  # Rows
        self._waiting: deque[_Caller] = deque()
        self._running: set[_Batch] = set()
        self._start_s = -math.inf  # When the last batch began, on the loop's clock
        self._handle: asyncio.Handle | None = None  # Of the next call of `_next`
        self._end_reason: str | None = None
        self._empty = asyncio.Event()

    @property
    def rows(self) -> int:
        return self._inside

    def admit(self, rows: int) -> None:
        """Count rows as inside, until :meth:`release`; raise FullError where there is no room, or no more are taken."""
        if self._end_reason is not None:
            raise FullError(self._end_reason)
        if rows and self._inside + rows > self._most_rows:
            raise FullError(
                f"{self._inside:,} rows wait to be scored, and at most {self._most_rows:,} may; try again later"
            )
        self._inside += rows
        if rows:
            self._empty.clear()

    def release(self, rows: int) -> None:
        """Count rows as gone."""
        self._inside -= rows
        if not self._inside:
            self._empty.set()

    async def wait_empty(self) -> None:
        """Return when no row is inside."""
        while self._inside:
            await self._empty.wait()

    def end(self, reason: str = "no more rows are taken: the end is near") -> None:
        """Take no more calls; those that are inside go on."""
        self._end_reason = reason

    async def score(
        self,
        rollouts: Sequence[Rollout],
        *,
        step: int | None = None,
        epoch: float | None = None,
        within_s: float | None = None,
    ) -> ScoreBatch:
        """Score one caller's rollouts together with those of others; groups are made among the caller's alone.

        Raises as :meth:`rewardkit.Runtime.score`, FullError where there is no room or no more are taken, and
        InfrastructureError where too many calls were lost or ``within_s`` seconds are over.
        """
        rollouts = list(rollouts)
        self.runtime.check(rollouts)
        self.admit(len(rollouts))
        try:
            return await self.score_admitted(CallerRows(rollouts), step, epoch, within_s)
        finally:
            self.release(len(rollouts))

    async def score_admitted(
        self,
        part: CallerRows,
        step: int | None = None,
        epoch: float | None = None,
        within_s: float | None = None,
    ) -> ScoreBatch:
        """Score rows that the caller has checked and :meth:`admit` has counted."""
        loop = asyncio.get_running_loop()
        caller = _Caller(part, (step, epoch), loop.create_future())
        self._waiting.append(caller)
        if self._handle is None:
            self._handle = loop.call_soon(self._next)  # callers of this moment come along
        # asyncio.timeout takes several times as long, and this is once a call
        timer = None if within_s is None else loop.call_later(within_s, self._expire, caller, within_s)
        try:
            return await caller.answer
        except asyncio.CancelledError:
            self._let_go(caller)
            raise
        finally:
            if timer is not None:
                timer.cancel()

    def _expire(self, caller: _Caller, within_s: float) -> None:
        """End the wait of a caller whose time is over."""
        if not caller.answer.done():
            rows = len(caller.part.rollouts)
            caller.answer.set_exception(InfrastructureError(f"{rows:,} rows were not scored within {within_s:g} s"))
            self._let_go(caller)

    def _let_go(self, caller: _Caller) -> None:
        """Forget a caller that no longer waits; cancel its batch where nobody else waits for it."""
        if caller.batch is None:
            self._waiting.remove(caller)
            return
        caller.batch.waiters -= 1
        if not caller.batch.waiters and caller.batch.task is not None:
            caller.batch.task.cancel()

    def _next(self) -> None:
        """Begin the batches that are due; have this called again when the next one is."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        loop = asyncio.get_running_loop()
        while self._waiting and len(self._running) < MOST_BATCHES:
            due = self._start_s + PACE_S
            if self._running and loop.time() < due:
                self._handle = loop.call_at(due, self._next)
                return
            self._begin(self._next_callers())

    def _next_callers(self) -> list[_Caller]:
        """Take the callers of the next batch: those of the first one's step, until it is full."""
        context, rows = self._waiting[0].context, 0
        callers: list[_Caller] = []
        later: deque[_Caller] = deque()
        while self._waiting and (not callers or rows < self._batch_rows):
            caller = self._waiting.popleft()
            size = len(caller.part.rollouts)
            if caller.context == context and (not callers or rows + size <= self._batch_rows):
                callers.append(caller)
                rows += size
            else:
                later.append(caller)
        self._waiting.extendleft(reversed(later))
        return callers

    def _begin(self, callers: list[_Caller]) -> None:
        """Begin a batch of these callers."""
        self._start_s = asyncio.get_running_loop().time()
        batch = _Batch(callers, len(callers))
        for caller in callers:
            caller.batch = batch
        self._running.add(batch)
        self._on_batch(len(callers), sum(len(caller.part.rollouts) for caller in callers))
        batch.task = asyncio.create_task(self._run(batch))

    async def _run(self, batch: _Batch) -> None:
        """Score a batch, begin those that are due, and give each caller its scores or its error."""
        callers = batch.callers
        try:
            answers = await self._answers(callers)
        finally:
            self._running.discard(batch)
            batch.callers, batch.task = [], None  # each has the batch in turn: circles, which only the collector ends
            self._next()
        for caller, answer in zip(callers, answers, strict=True):
            if caller.answer.done():
                continue  # it no longer waits
            if isinstance(answer, ScoreBatch):
                caller.answer.set_result(answer)
            else:
                caller.answer.set_exception(answer)

    async def _answers(self, callers: Sequence[_Caller]) -> Sequence[ScoreBatch | Exception]:
        """Return each caller's scores or error; score the callers one by one where the rows of one are wrong."""
        step, epoch = callers[0].context
        try:
            return await self.runtime.ascore_parts([caller.part for caller in callers], step=step, epoch=epoch)
        except DataError as error:
            if len(callers) == 1:
                return [error]
            answers = await asyncio.gather(*(self._answers([caller]) for caller in callers))  # to find whose rows
            return [answer for (answer,) in answers]
        except Exception as error:
            return [_copy(error) for _ in callers]  # each is raised in its caller, with frames of its own


def _copy(error: Exception) -> Exception:
    """Return a copy of an error, or the error itself where its class cannot be made of its arguments."""
    try:
        return copy.copy(error)
    except Exception:
        return error
