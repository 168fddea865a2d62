"""What a worker process is given to run: a reward, called with the bytes of its rollouts."""

from __future__ import annotations

from collections.abc import Mapping
from pickle import loads
from typing import TYPE_CHECKING, Any

from rewardkit.declare.decorator import Reward
from rewardkit.declare.spec import CallContext
from rewardkit.errors import RewardError
from rewardkit.function import described
from rewardkit.runtime.attempt import attempt, attempt_async
from rewardkit.runtime.finding import encode
from rewardkit.transport import dumps
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
    try:
        load(reward)
    except RewardError as error:
        raise WorkerStartError(str(error)) from error
    return kind(reward)


def pool_target(reward: Reward[..., Any], carried: Mapping[str, str] | None = None) -> Target:
    """Return a reward as a pool takes it; ``carried`` is for another machine, see :func:`rewardkit.transport.dumps`.

    Raises RewardTransportError where the reward cannot travel to a worker process.
    """
    from sandbox.workers import Lane as PoolLane  # slow to import, and a worker needs neither
    from sandbox.workers import Target

    spec = reward.spec
    target = AsyncRewardTarget(reward) if spec.is_async else RewardTarget(reward)
    payload = dumps(target, reward, carried=carried)
    if spec.is_async:
        return Target(reward.name, payload, PoolLane.ASYNCIO, spec.concurrency)
    if spec.concurrency > 1:
        return Target(reward.name, payload, PoolLane.THREADS, spec.concurrency)
    return Target(reward.name, payload)


class AsyncRewardTarget(RewardTarget):
    """An ``async def`` reward as a worker runs it."""

    async def __call__(  # type: ignore[override]  # the event loop's lane awaits it
        self, common: CallContext, segments: list[memoryview], places: tuple[int, ...]
    ) -> Answer:
        return encode(await attempt_async(self._spec, [rollout_of(segment) for segment in segments], common, places))
