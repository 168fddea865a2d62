"""What a worker process is given to run: a reward, called with the bytes of its rollouts."""

from __future__ import annotations

import importlib.util
import os
import pickle
import sys
from collections.abc import Mapping, Sequence
from pickle import loads
from typing import TYPE_CHECKING, Any

from rewardkit.declare.compose import Composable
from rewardkit.declare.decorator import Reward
from rewardkit.declare.spec import CallContext
from rewardkit.errors import RewardError
from rewardkit.function import described
from rewardkit.run_code import Installation, RunCode, RunReward, Sources, joined
from rewardkit.runtime.attempt import attempt, attempt_async
from rewardkit.runtime.finding import encode
from rewardkit.transport import dumps, modules_behind
from rewardkit.types import Arrived
from sandbox.errors import WorkerStartError
from sandbox.workers import Answer

if TYPE_CHECKING:
    from sandbox.workers import Target


def rollout_of(segment: bytes | memoryview) -> Arrived:
    """Return a rollout made of the bytes that travelled; a reward may change it as it likes."""
    return Arrived._make(loads(segment))  # noqa: S301 - the parent wrote it


class RewardTarget:
    """A plain reward as a worker runs it. It travels as the reward alone, whose spec is made anew on arrival.

    There what it needs is loaded, before its first call.
    """

    def __init__(self, reward: Reward[..., Any]) -> None:
        self._reward = reward
        self._spec = reward.spec

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self._reward)

    def __call__(self, common: CallContext, segments: list[memoryview], places: tuple[int, ...]) -> Answer:
        return encode(attempt(self._spec, [rollout_of(segment) for segment in segments], common, places))


def load(reward: Reward[..., Any]) -> None:
    """Load what a reward needs, and what those need that it calls itself."""
    for loaded in (reward, *reward.inner):
        described(loaded.spec.function).load()


def time_to_load_s(reward: Reward[..., Any]) -> float:
    """Return the seconds that :func:`load` may take; 0 where nothing is loaded."""
    return sum(described(loaded.spec.function).load_timeout_s for loaded in (reward, *reward.inner))


def _rebuild(kind: type[RewardTarget], reward: Reward[..., Any]) -> RewardTarget:
    """Return the target on arrival in a worker, with its reward loaded."""
    try:
        load(reward)
    except RewardError as error:
        raise WorkerStartError(str(error)) from error
    return kind(reward)


def run_reward(reward: Reward[..., Any], sources: Sources) -> RunReward:
    """Return a reward as workers load it, with what it imports as ``sources`` has it.

    Raises RewardTransportError where the reward cannot travel to a worker process.
    """
    from rewardkit.loading.own_code import code_of  # a worker does not need it

    modules: set[str] = set()
    payload = dumps(
        AsyncRewardTarget(reward) if reward.spec.is_async else RewardTarget(reward), reward, modules=modules
    )
    return RunReward(payload, code_of(modules, sources))


def inline_code(rewards: Sequence[Reward[..., Any]], sources: Sources) -> RunCode:
    """Return what rewards import that are called in this process."""
    from rewardkit.loading.own_code import code_of

    functions = [part.spec.function for reward in rewards for part in (reward, *reward.inner)]
    return code_of({name for function in functions for name in modules_behind(function)}, sources)


def pool_targets(rewards: Sequence[Reward[..., Any]], running: Mapping[Composable, RunReward]) -> list[Target]:
    """Return rewards as a pool takes them; those whose code differs share no worker."""
    from sandbox.workers import Lane as PoolLane  # slow to import, and a worker needs neither
    from sandbox.workers import Target

    codes = joined(running[reward].code for reward in rewards)
    setups = {id(code): pickle.dumps(Installation(code)) if code else b"" for code in codes}
    targets = []
    for reward, code in zip(rewards, codes, strict=True):
        width = reward.spec.concurrency
        lane = PoolLane.ASYNCIO if reward.spec.is_async else PoolLane.THREADS if width > 1 else PoolLane.SERIAL
        targets.append(Target(reward.name, running[reward].payload, lane, width, setups[id(code)]))
    return targets


class AsyncRewardTarget(RewardTarget):
    """An ``async def`` reward as a worker runs it."""

    async def __call__(  # type: ignore[override]  # the event loop's lane awaits it
        self, common: CallContext, segments: list[memoryview], places: tuple[int, ...]
    ) -> Answer:
        return encode(await attempt_async(self._spec, [rollout_of(segment) for segment in segments], common, places))


def worker_path() -> list[str]:
    """Return the folders that workers import from: this process's."""
    return [entry or os.getcwd() for entry in sys.path]


def preload() -> list[str]:
    """Return the modules to import once before forking: those that every worker needs or the caller has loaded."""
    heavy = [name for name in ("numpy", "pydantic") if name in sys.modules and importlib.util.find_spec(name)]
    return ["rewardkit.runtime.target", *heavy]
