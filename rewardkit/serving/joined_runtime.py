"""A runtime that joins calls from any thread and any event loop, for trainers that ask for one completion at a time.

This module owns the thread in which :mod:`~rewardkit.serving.joining` and :mod:`~rewardkit.serving.gathering` live,
and how calls get there and back.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rewardkit.declare.compose import Composable
from rewardkit.runtime.settings import check_open
from rewardkit.runtime.settle import Finished
from rewardkit.score_batch import ScoreBatch
from rewardkit.serving.gathering import GROUP_WAIT_S, Gathering
from rewardkit.serving.joining import BATCH_ROWS, MOST_ROWS, Joining, PartsScorer
from rewardkit.types import Rollout

if TYPE_CHECKING:
    from rewardkit.runtime.runtime import Runtime

CLOSE_S = 10.0  # Seconds that `close` gives the calls that are inside
END_S = 10.0  # Seconds that callers have, once the runtime is closed, to hear of it, and the thread to end


class JoinedRuntime:
    """One runtime for callers in many threads and event loops, whose calls become batches.

    It has one thread of its own. Use it in a ``with`` statement, or call :meth:`close`.

    >>> from rewardkit import Rollout, Runtime, reward
    >>> from rewardkit.serving import JoinedRuntime
    >>> @reward
    ... def exact(completion: str, answer: str) -> float:
    ...     return float(completion == answer)
    >>> with JoinedRuntime(Runtime([exact], workers=1)) as joined:
    ...     joined.score([Rollout("2+2=", "4", {"answer": "4"})]).totals
    [1.0]

    Args:
        runtime: A :class:`rewardkit.Runtime` or :class:`RemoteRuntime`, which :meth:`close` closes.
        group_size: Completions of a prompt that make a group, at least 1; ``None`` where each call has whole groups.
        group_wait_s: Seconds, above 0, from a group's first row until it is scored as it is.
        most_rows: Rows that may wait or be scored at once, at least 1.
        batch_rows: Rows at which a batch is full, at least 1.

    Attributes:
        weights: Each reward's weight in the totals, by name.

    Raises:
        RewardDefinitionError: A value makes no sense.
    """

    def __init__(
        self,
        runtime: PartsScorer,
        *,
        group_size: int | None = None,
        group_wait_s: float = GROUP_WAIT_S,
        most_rows: int = MOST_ROWS,
        batch_rows: int = BATCH_ROWS,
    ) -> None:
        self._runtime = runtime
        self._joining = Joining(runtime, most_rows=most_rows, batch_rows=batch_rows)
        self._gathering = None if group_size is None else Gathering(self._joining, group_size, group_wait_s)
        self._lock = threading.Lock()  # protects what follows: the first calls of two threads may come at once
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closed = False
        self._owner = os.getpid()

    @property
    def names(self) -> list[str]:
        """The rewards' names, in their order."""
        return self._runtime.names

    @property
    def rewards(self) -> Mapping[str, Composable]:
        """The rewards and compositions by name."""
        return self._runtime.rewards

    @property
    def weights(self) -> dict[str, float]:
        """Each reward's weight in the totals, by name."""
        return self._runtime.weights

    @property
    def changeable(self) -> Runtime | None:
        """The runtime whose rewards can be changed from here; ``None`` where servers score."""
        return self._runtime.changeable

    def start(self) -> JoinedRuntime:
        """Start the workers without waiting for them, and return the runtime."""
        check_open(self._owner, closed=self._closed)
        self._runtime.start()
        return self

    def wait_loaded(self) -> None:
        """Start the workers and wait until each has loaded the rewards."""
        check_open(self._owner, closed=self._closed)
        self._runtime.wait_loaded()

    def check(self, rollouts: Sequence[Rollout]) -> None:
        """Raise :class:`~rewardkit.errors.DataError` where rollouts are wrong or lack a column; run nothing."""
        self._runtime.check(rollouts)

    def score(
        self,
        rollouts: Iterable[Rollout],
        *,
        samples: Sequence[str | None] | None = None,
        step: int | None = None,
        epoch: float | None = None,
        within_s: float | None = None,
    ) -> ScoreBatch:
        """Score rollouts from any thread, together with what others ask for.

        Args:
            rollouts: The rollouts to score, one or many.
            samples: An id for each row, so that one sent again is not taken for another with the same content; used
                with ``group_size`` alone.
            step: Optimizer steps done.
            epoch: Passes over the data done.
            within_s: Seconds for all of it; ``None`` for as long as the rewards' own timeouts allow.

        Raises:
            DataError: The rollouts are wrong.
            FullError: There is no room for them.
            InfrastructureError: Too many of the calls were lost, or the seconds are over.
            RuntimeClosedError: It is closed, or belongs to another process.
        """
        future = self._submit(rollouts, samples, step, epoch, within_s)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    async def ascore(
        self,
        rollouts: Iterable[Rollout],
        *,
        samples: Sequence[str | None] | None = None,
        step: int | None = None,
        epoch: float | None = None,
        within_s: float | None = None,
    ) -> ScoreBatch:
        """Score as :meth:`score` does, from code on any event loop."""
        return await asyncio.wrap_future(self._submit(rollouts, samples, step, epoch, within_s))

    def stream(
        self, rollouts: Iterable[Rollout], *, step: int | None = None, epoch: float | None = None
    ) -> Iterator[Finished]:
        """Yield (row, reward, outcome) once all are known, because others' rows are in the same batches."""
        for name, column in self.score(rollouts, step=step, epoch=epoch).items():
            yield from (Finished(row, name, outcome) for row, outcome in enumerate(column))

    def close(self) -> None:
        """Wait briefly for the calls inside, and end the workers and the thread. A second call does nothing."""
        with self._lock:
            loop, thread = self._loop, self._thread
            was_closed, self._closed = self._closed, True
        if was_closed or os.getpid() != self._owner:
            return
        if loop is None or thread is None:
            self._runtime.close()
            return
        with contextlib.suppress(concurrent.futures.TimeoutError, TimeoutError):
            asyncio.run_coroutine_threadsafe(self._drain(), loop).result(CLOSE_S)
        self._runtime.close()
        asyncio.run_coroutine_threadsafe(_end_tasks(), loop).result(END_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(END_S)
        loop.close()

    def __enter__(self) -> JoinedRuntime:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.close()

    def _submit(
        self,
        rollouts: Iterable[Rollout],
        samples: Sequence[str | None] | None,
        step: int | None,
        epoch: float | None,
        within_s: float | None,
    ) -> concurrent.futures.Future[ScoreBatch]:
        """Begin to score in the thread, which the first call starts."""
        rows = list(rollouts)
        with self._lock:
            check_open(self._owner, closed=self._closed)
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="rewardkit-joined", daemon=True)
                self._thread.start()
            if self._gathering is None:
                scoring = self._joining.score(rows, step=step, epoch=epoch, within_s=within_s)
            else:
                scoring = self._gathering.score(rows, samples=samples, step=step, epoch=epoch, within_s=within_s)
            return asyncio.run_coroutine_threadsafe(scoring, self._loop)

    async def _drain(self) -> None:
        self._joining.end("this runtime is being closed")
        if self._gathering is not None:
            self._gathering.flush("the group is not whole, and the runtime is being closed")
        await self._joining.wait_empty()


async def _end_tasks() -> None:
    """Wait for the tasks left on this loop, which fail as the runtime is closed; cancel those that do not end."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    if tasks:
        await asyncio.wait(tasks, timeout=END_S / 2)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
