"""The runtime: rewards in, scores out."""

from __future__ import annotations

import dataclasses
import functools
import math
import operator
import os
import pickle
import queue
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from rewardkit.declare.compose import Composable, Composite
from rewardkit.declare.decorator import Reward
from rewardkit.declare.spec import CallContext
from rewardkit.errors import RewardDefinitionError, RewardError, RewardLoadError
from rewardkit.loading.registry import resolve_set
from rewardkit.run_code import RunCode, RunReward, Sources, imported_from
from rewardkit.runtime.alarms import Alarms
from rewardkit.runtime.batch import Columns, check_lost, combine, slices, waits_for_group, with_worst_of_groups
from rewardkit.runtime.cache import CACHE_ENTRIES, OutcomeCache
from rewardkit.runtime.lanes import RunningBatch, awaited_batch, run_in_workers, run_inline
from rewardkit.runtime.open_batch import OpenBatch
from rewardkit.runtime.plan import BatchPortion, CallerRows, Plan, check_rollouts
from rewardkit.runtime.settings import (
    OnFailure,
    RuntimeLane,
    after_jails,
    check_isolated,
    check_open,
    choice,
    leaves_of,
    require,
    signs_of,
    weights_of,
)  # fmt: skip
from rewardkit.runtime.settle import Finished, Listener, Settler, check_failures
from rewardkit.runtime.target import (
    inline_code,
    load,
    pool_targets,
    preload,
    run_reward,
    time_to_load_s,
    worker_path,
)  # fmt: skip
from rewardkit.score_batch import ScoreBatch
from rewardkit.transport import dumps
from rewardkit.types import Rollout
from sandbox import DEFAULT_MEMORY_BYTES, LOAD_TIMEOUT_S, default_workers
from sandbox.errors import PoolClosedError, SandboxError, WorkerStartError

if TYPE_CHECKING:
    from rewardkit.record.recorder import Recorder
    from sandbox.workers import CallPool


MAX_LOADS = 3  # Times that a worker's loading is tried, each of which may take `load_timeout_s`
SHORT_ROWS = 256  # Rows that are prepared on the event loop: handing them to a thread and back takes longer


class Runtime:
    """A set of rewards, ready to score rollouts; each call is isolated from every other.

    Reusable and thread-safe. Use it in a ``with`` statement, or call :meth:`close`. It pickles as its settings.

    >>> from rewardkit import Rollout, Runtime, reward
    >>> @reward
    ... def exact(completion: str, answer: str) -> float:
    ...     return float(completion == answer)
    >>> with Runtime([exact], workers=1) as runtime:
    ...     batch = runtime.score([Rollout("2+2=", "4", {"answer": "4"})])
    >>> batch.totals
    [1.0]

    Args:
        rewards: Rewards, plain functions, compositions, references such as ``"my_rewards.py:correct"``,
            a mapping of names to these, or a :class:`~rewardkit.loading.config.RewardFunctionsConfig`.
        weights: Each reward's weight in the totals. By default 1, and 0 for a reward that is part of a
            composition in the same set: it counts through that one.
        workers: Worker processes shared by the plain rewards, on each node; by default the cores, of more than 4 the
            half, 4 to 16.
        lane: ``"worker"``; ``"inline"`` for the caller's own process; ``"ray"`` for the nodes of a Ray cluster too.
        ray_address: With ``lane="ray"``: ``"auto"`` for the cluster of this machine, or its head's ``"HOST:PORT"``;
            not needed where this process has called ``ray.init``.
        memory_bytes: Memory of one worker; ``None`` for no limit.
        load_timeout_s: Seconds, above 0, that a worker may take to load the rewards before it is given up; a reward
            with weights of its own may take longer.
        cache_entries: Calls of rewards with ``cache=True`` whose outcomes are kept.
        max_infrastructure_rate: Share of one reward's calls in a batch, 0 to 1, that may be lost through
            no fault of the completions before :class:`InfrastructureError` is raised.
        on_failure: ``"default"``, or ``"raise"`` to stop at the first failed call.
        record: A run's folder, such as ``"runs/one"``, or a :class:`Recorder`: every scored batch is recorded in it.

    Attributes:
        weights: Each reward's weight in the totals, by name.
        spared: Names of rewards whose failures end no batch, such as shadows.
        workers: Worker processes that the plain rewards share; 1 where calls run inline, one after another.

    Raises:
        RewardDefinitionError: Two rewards of one name, weights that do not match, or a reward lacks what it needs.
        RewardLoadError: A reference leads nowhere.
        RewardTransportError: A reward cannot travel to a worker process.
        ClusterError: There is no cluster for ``lane="ray"``, or it cannot be used.
        RecordError: ``record`` names a run that has a record, or a place that cannot be written.
    """

    def __init__(
        self,
        rewards: object,
        *,
        weights: Sequence[float] | Mapping[str, float] | None = None,
        workers: int | None = None,
        lane: str | RuntimeLane = RuntimeLane.WORKER,
        memory_bytes: int | None = DEFAULT_MEMORY_BYTES,
        load_timeout_s: float = LOAD_TIMEOUT_S,
        cache_entries: int = CACHE_ENTRIES,
        max_infrastructure_rate: float = 0.5,
        on_failure: str | OnFailure = OnFailure.DEFAULT,
        record: str | os.PathLike[str] | Recorder | None = None,
        ray_address: str | None = None,
    ) -> None:
        self._closed = False
        self._pool: CallPool | None = None
        self._recorder: Recorder | None = None
        self._code = RunCode()
        self._running: Mapping[Composable, RunReward] = {}
        self._sources = Sources()
        self._reward_set = reward_set = resolve_set(rewards).at_start(self._sources)
        self._options: dict[str, Any] = {
            "workers": workers,
            "lane": lane,
            "memory_bytes": memory_bytes,
            "load_timeout_s": load_timeout_s,
            "cache_entries": cache_entries,
            "max_infrastructure_rate": max_infrastructure_rate,
            "on_failure": on_failure,
            "ray_address": ray_address,
        }
        self._rewards = reward_set.rewards
        self.weights = weights_of(self._rewards, reward_set.weights if weights is None else weights)
        self.spared: Collection[str] = frozenset()
        self._leaves = leaves_of(self._rewards.values())
        self._signs = signs_of(self._rewards, self.weights)
        for leaf in self._leaves:
            leaf.set_up()  # before workers start, so that what is missing is told here
        self._most_lost: float = require(
            "max_infrastructure_rate", max_infrastructure_rate, lambda rate: 0 <= rate <= 1, "a share from 0 to 1"
        )
        self._raise = choice("on_failure", on_failure, OnFailure) is OnFailure.RAISE
        require("cache_entries", cache_entries, lambda count: count >= 0, "a whole number, 0 or more", int)
        self._cache = OutcomeCache(cache_entries)
        self._alarms = Alarms()
        self._owner = os.getpid()
        count = default_workers() if workers is None else workers
        self.workers: int = require("workers", count, lambda count: count >= 1, "a whole number, 1 or more", int)
        require("load_timeout_s", load_timeout_s, lambda time_s: 0 < time_s < math.inf, "a number of seconds above 0")
        self._load_timeout_s = max(float(load_timeout_s), *map(time_to_load_s, self._leaves), 0.0)
        self._place_calls(choice("lane", lane, RuntimeLane), ray_address)
        if record is not None:
            self._recorder = _recorder(record, reward_set.env)

    def _place_calls(self, lane: StrEnum, ray_address: str | None) -> None:
        """Load the rewards here for the inline lane, or make the pool of another one."""
        if ray_address is not None and lane is not RuntimeLane.RAY:
            raise RewardDefinitionError(f"ray_address={ray_address!r}: only lane='ray' has a cluster")
        if lane is RuntimeLane.INLINE:
            self.workers = 1
            self._code = inline_code(self._leaves, self._sources)
            for leaf in self._leaves:
                load(leaf)
            return
        check_isolated(self._leaves)
        running = self._reward_set.running
        self._running = {leaf: running.get(leaf) or run_reward(leaf, self._sources) for leaf in self._leaves}
        self._pool = self._own_pool()
        if lane is RuntimeLane.RAY:
            self._pool = self._spread(self._pool, ray_address)
        self._finalizer = weakref.finalize(self, _end, self._pool, after_jails(self._leaves))

    def _own_pool(self) -> CallPool:
        """Return the pool of this machine's workers, not started."""
        from sandbox.workers import WorkerPool  # slow to import; needed only here

        targets = pool_targets(self._leaves, self._running)
        path = [*self._reward_set.overlay, *worker_path()]
        try:
            return WorkerPool(targets, workers=self.workers, path=path, **self._pool_options())
        except SandboxError as error:
            raise RewardLoadError(str(error)) from error

    def _spread(self, home: CallPool, address: str | None) -> CallPool:
        """Return a pool over this machine's and the nodes of a cluster."""
        from rewardkit.runtime.nodes.build import node_pool  # what few runtimes need
        from rewardkit.runtime.nodes.ray_cluster import connect

        return node_pool(
            home,
            self.workers,
            self._leaves,
            self._running,
            connect(address),
            workers=self._options["workers"],
            packages=self._reward_set.packages,
            path=worker_path(),
            options=self._pool_options(),
        )

    def _pool_options(self) -> dict[str, Any]:
        return {
            "env": self._reward_set.env,
            "preload": preload(),
            "memory_bytes": self._options["memory_bytes"],
            "load_timeout_s": self._load_timeout_s,
        }

    @property
    def names(self) -> list[str]:
        """The rewards' names, in their order."""
        return list(self._rewards)

    @property
    def rewards(self) -> Mapping[str, Composable]:
        """The rewards and compositions by name."""
        return self._rewards

    @property
    def processes(self) -> list[int]:
        """Process ids of this machine's workers that are alive now."""
        return [] if self._pool is None else self._pool.processes

    @property
    def nodes(self) -> list[str]:
        """Ids of the cluster's other nodes that take calls now; empty unless the lane is ``"ray"``."""
        return list(getattr(self._pool, "nodes", ()))

    @property
    def recorder(self) -> Recorder | None:
        """What records the scored batches; ``None`` without ``record``."""
        return self._recorder

    @property
    def changeable(self) -> Runtime:
        """The runtime itself, whose rewards can be changed from here."""
        return self

    def start(self) -> Runtime:
        """Start the workers without waiting for them, so that the first batch need not; return the runtime."""
        check_open(self._owner, closed=self._closed)
        if self._pool is not None:
            self._pool.start()
        return self

    def wait_loaded(self) -> None:
        """Start the workers and wait until each has loaded the rewards, at most as long as loading may take.

        Raises:
            RewardLoadError: A worker cannot load a reward, or took too long.
        """
        self.start()
        if self._pool is None:
            return
        limit_s = MAX_LOADS * self._load_timeout_s
        try:
            if not self._pool.wait_loaded(limit_s):
                raise RewardLoadError(f"the workers did not load the rewards in {limit_s:g} s; raise load_timeout_s")
        except (WorkerStartError, PoolClosedError) as error:
            raise RewardLoadError(str(error)) from error

    def with_rewards(self, rewards: Mapping[str, Composable], weights: Mapping[str, float]) -> Runtime:
        """Return a runtime of other rewards, with this one's options and its workers' packages and variables.

        A reward that this runtime has, too, keeps its code, whatever was edited meanwhile. The other runtime has
        workers of its own and records nothing until :meth:`take_over`.

        Args:
            rewards: The rewards by name.
            weights: Their weights by name.
        """
        reward_set = dataclasses.replace(self._reward_set, rewards=resolve_set(rewards).rewards, running=self._running)
        return Runtime(reward_set, weights=weights, **self._options)

    def take_over(self, other: Runtime) -> None:
        """Record from now on where another runtime recorded, which no longer does."""
        self._recorder, other._recorder = other._recorder, None

    def score(self, rollouts: Iterable[Rollout], *, step: int | None = None, epoch: float | None = None) -> ScoreBatch:
        """Score rollouts with every reward and wait for the last of them.

        Args:
            rollouts: What to score.
            step: Optimizer steps done, for rewards that ask and for schedules.
            epoch: Passes over the data done, for rewards that ask.

        Raises:
            DataError: The rollouts are wrong; nothing was run.
            InfrastructureError: Too many calls were lost through no fault of the completions.
            RewardFailedError: A call failed, and the runtime was made with ``on_failure="raise"``.
            RewardLoadError: A worker cannot load a reward.
            RuntimeClosedError: The runtime is closed.
        """
        run = self._begin(rollouts, CallContext(step, epoch))
        try:
            run.done.result()
        except BaseException:
            run.cancel()
            raise
        return self._batch(run)

    async def ascore(
        self, rollouts: Iterable[Rollout], *, step: int | None = None, epoch: float | None = None
    ) -> ScoreBatch:
        """Score as :meth:`score` does, from code that runs on an event loop."""
        return self._batch(await awaited_batch(lambda: self._begin(rollouts, CallContext(step, epoch))))

    def open_batch(self, *, step: int | None = None, epoch: float | None = None) -> OpenBatch:
        """Return a batch that is scored while its completions are being made.

        Args:
            step: Optimizer steps done, as for :meth:`score`.
            epoch: Passes over the data done, as for :meth:`score`.
        """
        context = CallContext(step, epoch)

        def begin(rollouts: Sequence[Rollout], portion: BatchPortion) -> RunningBatch:
            return self._begin(rollouts, context, portion=portion)

        def finish(rollouts: Sequence[Rollout], columns: Columns) -> ScoreBatch:
            spared = self._spared_leaves()
            counting = {leaf: column for leaf, column in columns.items() if leaf not in spared}
            check_failures(counting, rollouts, step, every=self._raise)
            return self._finish(rollouts, columns, context, spared)

        return OpenBatch(self._leaves, context, begin, finish)

    def check(self, rollouts: Sequence[Rollout]) -> None:
        """Raise :class:`~rewardkit.errors.DataError` where rollouts are wrong or lack a column; run nothing."""
        check_rollouts(self._leaves, rollouts)

    async def ascore_parts(
        self, parts: Sequence[CallerRows], *, step: int | None = None, epoch: float | None = None
    ) -> list[ScoreBatch | RewardError]:
        """Score several callers' rollouts in one batch, and return each caller's own scores, or its own error.

        Groups are made among a caller's rows alone. The outcomes say which calls were lost. How many may be lost is the
        caller's decision: ``max_infrastructure_rate`` does not apply, as a caller may have a single row.

        Raises:
            DataError: Some caller's row is wrong; nothing was run.
            RewardLoadError: A worker cannot load a reward.
            RuntimeClosedError: The runtime is closed.
        """
        rollouts = [rollout for part in parts for rollout in part.rollouts]
        is_short = self._pool is not None and len(rollouts) <= SHORT_ROWS
        run = await awaited_batch(
            lambda: self._begin(rollouts, CallContext(step, epoch), parts=parts), at_once=is_short
        )
        columns = run.settler.columns()
        context = run.settler.plan.context
        self._alarms.look_at({leaf.name: column for leaf, column in columns.items()}, rollouts, context.step)
        if self._recorder is None and not any(outcome.cause for column in columns.values() for outcome in column):
            outcomes = combine(self._rewards, columns, len(rollouts), context.step)
            return list(slices([part.rollouts for part in parts], outcomes, self.weights))
        batches: list[ScoreBatch | RewardError] = []
        first = 0
        for part in parts:
            last = first + len(part.rollouts)
            own = {reward: column[first:last] for reward, column in columns.items()}
            try:
                batches.append(self._part(part.rollouts, own, context))
            except RewardError as error:
                batches.append(error)
            first = last
        return batches

    def stream(
        self, rollouts: Iterable[Rollout], *, step: int | None = None, epoch: float | None = None
    ) -> Iterator[Finished]:
        """Yield (row, reward, outcome) as each becomes known, in no order.

        Last come compositions, and failures whose score is the worst of their group.

        Leaving the loop early cancels what has not been run.
        """
        results: queue.SimpleQueue[Finished | None] = queue.SimpleQueue()
        run = self._begin(rollouts, CallContext(step, epoch), results.put)
        run.done.add_done_callback(lambda _: results.put(None))
        own = {reward.name: (name, reward) for name, reward in self._rewards.items() if isinstance(reward, Reward)}
        waiting: list[Finished] = []
        try:
            while (finished := results.get()) is not None:
                if finished.reward not in own:
                    continue
                name, leaf = own[finished.reward]
                finished = finished._replace(reward=name)
                if waits_for_group(leaf, finished.outcome, self._signs.get(leaf, 1)):
                    waiting.append(finished)
                else:
                    yield finished
            run.done.result()
            batch = self._batch(run)
            yield from (finished._replace(outcome=batch[finished.reward][finished.row]) for finished in waiting)
            for name, reward in self._rewards.items():
                if isinstance(reward, Composite):
                    yield from (Finished(row, name, outcome) for row, outcome in enumerate(batch[name]))
        finally:
            run.cancel()

    def close(self) -> None:
        """End the workers. A second call does nothing; a batch on its way fails."""
        self._close(None)

    def _close(self, error: BaseException | None) -> None:
        """End the workers, and the record by the error that ends its ``with`` statement."""
        self._closed = True
        if self._pool is not None:
            self._finalizer()
            self._pool.close()  # the finalizer acts once; a second caller waits all the same
        if self._recorder is not None:
            self._recorder.release(error)

    def __reduce__(self) -> tuple[Callable[[bytes, RunCode], Runtime], tuple[bytes, RunCode]]:
        """Pickle as the settings; what is made of them in another process has workers of its own and no record."""
        reward_set = dataclasses.replace(self._reward_set, rewards=dict(self._rewards), running=self._running)
        code = functools.reduce(operator.or_, (run.code for run in self._running.values()), self._code)
        return _rebuilt, (dumps((reward_set, dict(self.weights), self._options), *self._leaves), code)

    def __enter__(self) -> Runtime:
        return self.start()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._close(error)

    def _begin(
        self,
        rollouts: Iterable[Rollout],
        context: CallContext,
        listener: Listener | None = None,
        parts: Sequence[CallerRows] | None = None,
        portion: BatchPortion | None = None,
    ) -> RunningBatch:
        check_open(self._owner, closed=self._closed)
        plan = Plan(self._leaves, rollouts, context, self._cache, parts, self._signs, portion)
        settler = Settler(
            plan,
            self._cache,
            raise_failures=self._raise,
            listener=listener,
            shared=parts is not None or portion is not None,
            spared=self._spared_leaves(),
        )
        return run_inline(settler, self._code) if self._pool is None else run_in_workers(self._pool, settler)

    def _batch(self, run: RunningBatch) -> ScoreBatch:
        """Return the scores of a batch that is done; raise InfrastructureError where too many calls were lost."""
        plan = run.settler.plan
        return self._finish(plan.rollouts, run.settler.columns(), plan.context, run.settler.spared)

    def _finish(
        self,
        rollouts: Sequence[Rollout],
        columns: Columns,
        context: CallContext,
        spared: Collection[Reward[..., Any]],
    ) -> ScoreBatch:
        """Return the scores that the leaves' outcomes make, unless too many of one that is not spared were lost."""
        self._alarms.look_at({leaf.name: column for leaf, column in columns.items()}, rollouts, context.step)
        for leaf, column in columns.items():
            if leaf not in spared:
                check_lost(leaf.name, column, self._most_lost)
        return self._score_batch(rollouts, columns, context)

    def _spared_leaves(self) -> set[Reward[..., Any]]:
        """Return the leaves of the rewards that are spared, and of no other."""
        if not self.spared:
            return set()
        counting = leaves_of(reward for name, reward in self._rewards.items() if name not in self.spared)
        return set(self._leaves) - set(counting)

    def _part(self, rollouts: Sequence[Rollout], columns: Columns, context: CallContext) -> ScoreBatch:
        """Return one caller's scores out of a shared batch; raise the error that would end a batch of its own."""
        check_failures(columns, rollouts, context.step, every=self._raise)
        return self._score_batch(rollouts, columns, context)

    def _score_batch(self, rollouts: Sequence[Rollout], columns: Columns, context: CallContext) -> ScoreBatch:
        """Return the batch that the leaves' outcomes make, after recording it where there is a recorder."""
        columns = with_worst_of_groups(columns, rollouts, self._signs)
        outcomes = combine(self._rewards, columns, len(rollouts), context.step)
        batch = ScoreBatch(rollouts, outcomes, self.weights)
        if self._recorder is not None:
            self._recorder.record(batch, step=context.step, epoch=context.epoch, rewards=self._rewards)
        return batch


def _rebuilt(settings: bytes, code: RunCode) -> Runtime:
    with imported_from(code):
        reward_set, weights, options = pickle.loads(settings)  # noqa: S301 - this process unpickles what held these bytes
    reward_set = reward_set.at_start(Sources(texts=code.texts), every=True)
    return Runtime(reward_set, weights=weights, **options)


def _recorder(record: str | os.PathLike[str] | Recorder, env: Mapping[str, str]) -> Recorder:
    if not isinstance(record, str | os.PathLike):
        return record
    from rewardkit.record.recorder import Recorder  # it brings numpy and sqlite3 along

    return Recorder(record, env=env)


def _end(pool: CallPool, clean: Callable[[], None] | None) -> None:
    pool.close()
    if clean is not None:
        clean()
