"""The runtime: rewards in, scores out."""

from __future__ import annotations

import importlib.util
import math
import os
import queue
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from rewardkit.compose import Composable, Composite
from rewardkit.decorator import Reward
from rewardkit.errors import (
    RewardDefinitionError,
    RewardLoadError,
    RuntimeClosedError,
)
from rewardkit.registry import resolve_set
from rewardkit.runtime.alarms import Alarms
from rewardkit.runtime.batch import ScoreBatch
from rewardkit.runtime.cache import CACHE_ENTRIES, OutcomeCache
from rewardkit.runtime.run import Means, Run
from rewardkit.runtime.scoring import Finished, Listener
from rewardkit.runtime.target import AsyncRewardTarget, RewardTarget
from rewardkit.spec import CallContext
from rewardkit.transport import dumps
from rewardkit.types import Rollout
from sandbox import DEFAULT_MEMORY_BYTES, LOAD_TIMEOUT_S, cores
from sandbox.errors import SandboxError

if TYPE_CHECKING:
    from sandbox.workers import Target, WorkerPool


class Lane(StrEnum):
    """Where rewards run."""

    WORKER = "worker"
    """In isolated worker processes; ``async def`` rewards and those with ``concurrency`` in one of their own."""
    INLINE = "inline"
    """In the caller's process: for unit tests and debuggers. No isolation, no deadlines."""


class OnFailure(StrEnum):
    """What a failed call means for the batch."""

    DEFAULT = "default"
    """The reward's ``default`` stands in, and the outcome says so."""
    RAISE = "raise"
    """The batch stops with :class:`~rewardkit.errors.RewardFailedError`."""


class Runtime:
    """Scores rollouts with a set of rewards, each call isolated from every other.

    Reusable and thread-safe. Use it in a ``with`` statement, or call :meth:`close`.

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
            a mapping of names to these, or a :class:`~rewardkit.config.RewardFunctionsConfig`.
        weights: Each reward's weight in the totals. By default 1, and 0 for a reward that is part of a
            composition in the same set: it counts through that one.
        workers: Worker processes shared by the plain rewards; by default the cores at hand, at most 4.
        lane: ``"worker"``, or ``"inline"`` for the caller's own process.
        memory_bytes: Memory of one worker; ``None`` for no limit.
        load_timeout_s: Seconds, above 0, that a worker may take to load the rewards before it is given up.
        cache_entries: Calls of rewards with ``cache=True`` whose outcomes are kept.
        max_infrastructure_rate: Share of one reward's calls in a batch, 0 to 1, that may be lost through
            no fault of the completions before :class:`InfrastructureError` is raised.
        on_failure: ``"default"``, or ``"raise"`` to stop at the first failed call.

    Attributes:
        weights: Each reward's weight in the totals, by name.
        workers: Worker processes that the plain rewards share; inline 1, for calls run one after another.

    Raises:
        RewardDefinitionError: Two rewards of one name, weights that do not match, or a reward lacks what it needs.
        RewardLoadError: A reference leads nowhere.
        RewardTransportError: A reward cannot travel to a worker process.
    """

    def __init__(
        self,
        rewards: Any,
        *,
        weights: Sequence[float] | Mapping[str, float] | None = None,
        workers: int | None = None,
        lane: str | Lane = Lane.WORKER,
        memory_bytes: int | None = DEFAULT_MEMORY_BYTES,
        load_timeout_s: float = LOAD_TIMEOUT_S,
        cache_entries: int = CACHE_ENTRIES,
        max_infrastructure_rate: float = 0.5,
        on_failure: str | OnFailure = OnFailure.DEFAULT,
    ) -> None:
        self._closed = False
        self._pool: WorkerPool | None = None
        resolved = resolve_set(rewards)
        self._rewards = resolved.rewards
        self.weights = _weights(self._rewards, weights)
        self._leaves = _leaves(self._rewards.values())
        for leaf in self._leaves:
            leaf.set_up()
        most_lost = _share(max_infrastructure_rate)
        raise_failures = _choice(OnFailure, on_failure, "on_failure") is OnFailure.RAISE
        self._owner = os.getpid()
        self.workers = _workers(workers)
        load_timeout_s = _seconds(load_timeout_s, "load_timeout_s")
        if _choice(Lane, lane, "lane") is Lane.INLINE:
            self.workers = 1
        else:
            from sandbox.workers import WorkerPool  # slow to import; needed only here

            try:
                self._pool = WorkerPool(
                    [_target(reward) for reward in self._leaves],
                    workers=self.workers,
                    path=[*resolved.overlay, *(entry or os.getcwd() for entry in sys.path)],
                    env=resolved.env,
                    preload=_preload(),
                    memory_bytes=memory_bytes,
                    load_timeout_s=load_timeout_s,
                )
            except SandboxError as refused:
                raise RewardLoadError(str(refused)) from refused
            self._finalizer = weakref.finalize(self, _end, self._pool, _after_jails(self._leaves))
        self._means = Means(
            rewards=self._rewards,
            leaves=self._leaves,
            weights=self.weights,
            pool=self._pool,
            cache=OutcomeCache(cache_entries),
            alarms=Alarms(),
            raise_failures=raise_failures,
            max_infrastructure_rate=most_lost,
        )

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
        """Process ids of the workers that are alive now."""
        return [] if self._pool is None else self._pool.processes

    def start(self) -> Runtime:
        """Starts the workers without waiting for them, so that the first batch need not. Gives itself."""
        self._check_open()
        if self._pool is not None:
            self._pool.start()
        return self

    def score(self, rollouts: Iterable[Rollout], *, step: int | None = None, epoch: float | None = None) -> ScoreBatch:
        """Scores rollouts with every reward and waits for the last of them.

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
            run.future.result()
        except BaseException:
            run.cancel()
            raise
        return run.batch()

    async def ascore(
        self, rollouts: Iterable[Rollout], *, step: int | None = None, epoch: float | None = None
    ) -> ScoreBatch:
        """The same as :meth:`score`, for code that runs on an event loop."""
        import asyncio  # who awaits has it loaded already

        context = CallContext(step, epoch)
        run = await asyncio.to_thread(self._begin, rollouts, context)
        try:
            await asyncio.wrap_future(run.future)
        except BaseException:
            run.cancel()
            raise
        return run.batch()

    def stream(
        self, rollouts: Iterable[Rollout], *, step: int | None = None, epoch: float | None = None
    ) -> Iterator[Finished]:
        """Return (row, reward, outcome) as each becomes known, in no order; compositions come last.

        Leaving the loop early cancels what has not been run.
        """
        arrived: queue.SimpleQueue[Finished | None] = queue.SimpleQueue()
        run = self._begin(rollouts, CallContext(step, epoch), arrived.put)
        run.future.add_done_callback(lambda _: arrived.put(None))
        shown = {reward for reward in self._rewards.values() if isinstance(reward, Reward)}
        names = {reward.name: name for name, reward in self._rewards.items() if reward in shown}
        try:
            while (finished := arrived.get()) is not None:
                if finished.reward in names:
                    yield finished._replace(reward=names[finished.reward])
            run.future.result()
            batch = run.batch()
            for name, reward in self._rewards.items():
                if isinstance(reward, Composite):
                    yield from (Finished(row, name, outcome) for row, outcome in enumerate(batch[name]))
        finally:
            run.cancel()

    def close(self) -> None:
        """Ends the workers. A second call does nothing; a batch on its way fails."""
        self._closed = True
        if self._pool is not None:
            self._finalizer()
            self._pool.close()  # the finalizer acts once; a second caller waits all the same

    def __enter__(self) -> Runtime:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.close()

    def _begin(self, rollouts: Iterable[Rollout], context: CallContext, listener: Listener | None = None) -> Run:
        self._check_open()
        return Run(self._means, rollouts, context, listener)

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeClosedError("this runtime is closed; make a new one")
        if os.getpid() != self._owner:
            raise RuntimeClosedError("this runtime belongs to the process that made it, not to a fork of it")


def _after_jails(rewards: Iterable[Reward[..., Any]]) -> Callable[[], None] | None:
    """Return what removes the empty directory that a killed worker's jail leaves; ``None`` where there are none."""
    if not any(one.spec.jailed for reward in rewards for one in (reward, *reward.inner)):
        return None
    from sandbox import remove_stale_folders  # not at the end: at exit it can no longer be imported

    return remove_stale_folders


def _end(pool: WorkerPool, clean: Callable[[], None] | None) -> None:
    """End the workers."""
    pool.close()
    if clean is not None:
        clean()


def _target(reward: Reward[..., Any]) -> Target:
    from sandbox.workers import Lane as PoolLane
    from sandbox.workers import Target

    spec = reward.spec
    wrapped = AsyncRewardTarget(reward) if spec.is_async else RewardTarget(reward)
    payload = dumps(wrapped, reward)
    if spec.is_async:
        return Target(reward.name, payload, PoolLane.ASYNCIO, spec.concurrency)
    if spec.concurrency > 1:
        return Target(reward.name, payload, PoolLane.THREADS, spec.concurrency)
    return Target(reward.name, payload)


def _leaves(rewards: Iterable[Composable]) -> list[Reward[..., Any]]:
    """Return the plain rewards in a set, each once."""
    leaves = dict.fromkeys(leaf for reward in rewards for leaf in reward.leaves)
    names = [leaf.name for leaf in leaves]
    for name in names:
        if names.count(name) > 1:
            raise RewardDefinitionError(
                f"two rewards are named {name!r}; give one another name: @reward(name=...), or "
                ".with_options(name=...) where it is not yours"
            )
    return list(leaves)


def _weights(
    rewards: Mapping[str, Composable], weights: Sequence[float] | Mapping[str, float] | None
) -> dict[str, float]:
    names = list(rewards)
    if weights is None:
        parts = {leaf for reward in rewards.values() if isinstance(reward, Composite) for leaf in reward.leaves}
        return {name: 0.0 if reward in parts else 1.0 for name, reward in rewards.items()}
    if isinstance(weights, Mapping):
        unknown = sorted(set(weights) - set(names))
        if unknown:
            raise RewardDefinitionError(f"weights name {unknown[0]!r}, but the rewards are {', '.join(names)}")
        pairs = {name: weights.get(name, 1.0) for name in names}
    else:
        if len(weights) != len(names):
            raise RewardDefinitionError(f"{len(weights)} weights for {len(names)} rewards ({', '.join(names)})")
        pairs = dict(zip(names, weights, strict=True))
    for name, weight in pairs.items():
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not abs(weight) < float("inf"):
            raise RewardDefinitionError(f"weight of {name!r} is {weight!r}: expected a finite number")
    return {name: float(weight) for name, weight in pairs.items()}


def _workers(workers: int | None) -> int:
    if workers is None:
        return min(4, cores())
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise RewardDefinitionError(f"workers={workers!r}: expected a whole number, 1 or more")
    return workers


def _seconds(value: float, option: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise RewardDefinitionError(f"{option}={value!r}: expected a number of seconds above 0")
    return float(value)


def _share(value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise RewardDefinitionError(f"max_infrastructure_rate={value!r}: expected a share from 0 to 1")
    return float(value)


def _choice(choices: type[StrEnum], value: str, option: str) -> StrEnum:
    try:
        return choices(value)
    except ValueError:
        raise RewardDefinitionError(
            f"{option}={value!r}: expected one of {', '.join(repr(str(one)) for one in choices)}"
        ) from None


def _preload() -> list[str]:
    """Modules that every worker needs or that the caller has loaded anyway, imported once before forking."""
    heavy = [name for name in ("numpy", "pydantic") if name in sys.modules and importlib.util.find_spec(name)]
    return ["rewardkit.runtime.target", *heavy]
