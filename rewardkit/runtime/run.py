"""One batch on its way through a runtime: checked, planned, submitted, and made into a batch of scores.

The path goes one way: a runtime begins a :class:`Run`, a run asks its :class:`Scoring` for calls and hands them to the
pool, and the pool hands results to the scoring. What a batch is scored with comes as a value, :class:`Means`.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rewardkit.coercion.rule import shorten
from rewardkit.compose import Composable
from rewardkit.decorator import Reward
from rewardkit.errors import DataError, InfrastructureError, RewardError, RewardLoadError, RuntimeClosedError
from rewardkit.runtime.alarms import Alarms
from rewardkit.runtime.batch import ScoreBatch
from rewardkit.runtime.cache import OutcomeCache
from rewardkit.runtime.inline import run_inline
from rewardkit.runtime.plan import check_rollouts, segments_of
from rewardkit.runtime.scoring import Listener, Scoring, lost_share
from rewardkit.spec import CallContext
from rewardkit.types import Outcome, Rollout
from sandbox.errors import PoolClosedError, WorkerStartError
from sandbox.workers import CollectorPaused, Job

if TYPE_CHECKING:
    from sandbox.workers import WorkerPool

PIECE_ROWS = 4096
"""Rows of a batch that are prepared at once; the workers score them while the next are being prepared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What a runtime scores every batch with.

    Attributes:
        rewards: The rewards and compositions by name.
        leaves: The plain rewards among and inside them, each once.
        weights: Each reward's weight in the totals, by name.
        pool: The workers; ``None`` inline.
        cache: Outcomes of earlier calls.
        alarms: Says once what is wrong with many outcomes.
        raise_failures: Whether the first failure ends a batch.
        max_infrastructure_rate: Share of a reward's calls that may be lost.
    """

    rewards: Mapping[str, Composable]
    leaves: Sequence[Reward[..., Any]]
    weights: Mapping[str, float]
    pool: WorkerPool | None
    cache: OutcomeCache
    alarms: Alarms
    raise_failures: bool
    max_infrastructure_rate: float


class Run:
    """One batch being scored.

    Attributes:
        future: Done when every outcome is known, or with the error that ended the batch.
    """

    def __init__(
        self, means: Means, rollouts: Iterable[Rollout], context: CallContext, listener: Listener | None
    ) -> None:
        self._means = means
        self._rollouts = _listed(rollouts)
        self._context = context
        leaves = means.leaves
        check_rollouts(leaves, self._rollouts)
        self.future: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._job: Job | None = None
        self._scoring = Scoring(
            leaves,
            self._rollouts,
            context,
            means.cache,
            raise_failures=means.raise_failures,
            listener=listener,
        )
        if means.pool is None:
            calls = self._scoring.plan(range(len(self._rollouts)))
            run_inline(self._scoring, calls, leaves, segments_of(leaves, self._rollouts), context)
            self.future.set_result(None)
        else:
            self._submit(means.pool, leaves)

    def _submit(self, pool: WorkerPool, leaves: Sequence[Reward[..., Any]]) -> None:
        """Hand the calls to the pool piece by piece: the first are scored while the rest is being prepared."""
        rows = len(self._rollouts)
        self._job = job = Job(rows, self._context, self._scoring, self._finished)
        written = 0
        try:
            for start in range(0, max(1, rows), PIECE_ROWS):
                stop = min(start + PIECE_ROWS, rows)
                with CollectorPaused():
                    calls = self._scoring.plan(range(start, stop))
                    if calls:
                        job.file.append(segments_of(leaves, self._rollouts[written:stop], written))
                        written = stop
                if job.ended.is_set():
                    return
                pool.submit(job, calls, complete=stop == rows)
        except PoolClosedError as closed:
            job.end()
            raise RuntimeClosedError(str(closed)) from closed
        except BaseException as error:
            pool.cancel(job, error)
            raise

    def _finished(self) -> None:
        assert self._job is not None
        error = self._job.error
        with contextlib.suppress(concurrent.futures.InvalidStateError):  # who waited has cancelled it
            if error is None:
                self.future.set_result(None)
            else:
                self.future.set_exception(_translated(error))

    def cancel(self) -> None:
        """Stop what has not been run; nothing where all is done."""
        if self._job is not None and not self._job.ended.is_set() and self._means.pool is not None:
            self._means.pool.cancel(self._job, RuntimeClosedError("the batch was cancelled"))

    def batch(self) -> ScoreBatch:
        """Return the scores, once the future is done."""
        means, columns = self._means, self._scoring.columns()
        means.alarms.look_at(columns)
        for leaf, outcomes in columns.items():
            _check_infrastructure(leaf.name, outcomes, means.max_infrastructure_rate)
        combined = {name: self._combined(reward, columns) for name, reward in means.rewards.items()}
        return ScoreBatch(self._rollouts, combined, means.weights)

    def _combined(self, reward: Composable, columns: Mapping[Reward[..., Any], Sequence[Outcome]]) -> Sequence[Outcome]:
        """Return a reward's or a composition's outcomes from those of its leaves."""
        parts = reward.leaves
        if parts == (reward,):
            return columns[parts[0]]
        rows, step = range(len(self._rollouts)), self._context.step
        return [reward.combine({leaf: columns[leaf][row] for leaf in parts}, step) for row in rows]


def _check_infrastructure(name: str, outcomes: Sequence[Outcome], most: float) -> None:
    share = lost_share(outcomes)
    if share > most:
        example = next(outcome for outcome in outcomes if outcome.cause == "infrastructure")
        raise InfrastructureError(
            f"reward {name!r}: {share:.0%} of {len(outcomes)} calls were lost through no fault of the completions "
            f"(more than max_infrastructure_rate={most:g}); the first: {example.error}"
        )


def _listed(rollouts: Iterable[Rollout]) -> list[Rollout]:
    if isinstance(rollouts, Rollout):
        raise DataError("expected a list of rollouts, got one Rollout; score([rollout])")
    if not isinstance(rollouts, Iterable):
        raise DataError(f"expected a list of rollouts, got {shorten(rollouts)}")
    return list(rollouts)


def _translated(error: BaseException) -> BaseException:
    """The border: the sandbox's errors become ours."""
    if isinstance(error, WorkerStartError):
        translated: RewardError = RewardLoadError(str(error))
    elif isinstance(error, PoolClosedError):
        translated = RuntimeClosedError(str(error))
    else:
        return error
    translated.__cause__ = error
    return translated
