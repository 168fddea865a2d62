"""Where the time of a scored batch went, told from the outcomes' durations."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from rewardkit import Composable, Reward, ScoreBatch


@dataclasses.dataclass(frozen=True, slots=True)
class BatchTiming:
    """Where the time of one scored batch went.

    Attributes:
        step: Optimizer steps done; ``None`` where the trainer does not say.
        rows: Completions in the batch.
        wall_s: Seconds that the trainer waited, from the first reward's call to the last one's answer.
        busy_s: Of these, seconds that the rewards themselves needed, estimated from their durations as
            the larger of the longest single call and a lane's work divided by its workers. It is a lower
            bound: retries, and work that could not be divided evenly, are not in it.
        overhead_s: The rest: copying, sending, waiting, starting workers. An upper bound, as ``busy_s`` is a lower.
    """

    step: int | None
    rows: int
    wall_s: float
    busy_s: float
    overhead_s: float


def busy_s(batch: ScoreBatch, rewards: Mapping[str, Composable], workers: int) -> float:
    """Return the least seconds in which the rewards' own work could be done, see :class:`BatchTiming`.

    Args:
        batch: The scored batch.
        rewards: The runtime's rewards by name.
        workers: Processes that the plain rewards share.
    """
    shared_s, lanes_s = 0.0, [0.0]
    counted: set[Reward[..., Any]] = set()
    for name, reward in rewards.items():
        seconds = _durations(batch, name, reward)
        lanes_s.append(max(seconds, default=0.0))
        leaves = reward.leaves
        if counted.intersection(leaves):
            continue
        counted.update(leaves)
        if len(leaves) == 1 and has_own_lane(leaves[0]):
            lanes_s.append(sum(seconds) / leaves[0].spec.concurrency)
        else:
            shared_s += sum(seconds)
    return max(*lanes_s, shared_s / workers)


def has_own_lane(reward: Reward[..., Any]) -> bool:
    """Tells whether a reward has a worker process of its own, for several calls in flight."""
    return reward.spec.is_async or reward.spec.concurrency > 1


def _durations(batch: ScoreBatch, name: str, reward: Composable) -> list[float]:
    """Return the seconds of each call that was made: one a rollout, or one a group."""
    grouped = any(leaf.spec.kind == "group" for leaf in reward.leaves)
    calls: dict[object, float] = {}
    for row, (rollout, outcome) in enumerate(zip(batch.rollouts, batch[name], strict=True)):
        if not outcome.cached:
            calls[id(rollout.example) if grouped else row] = outcome.duration_s
    return list(calls.values())


def p95(seconds: Sequence[float]) -> float:
    """Return the 95th percentile by nearest rank; 0 where nothing was run."""
    return sorted(seconds)[math.ceil(0.95 * len(seconds)) - 1] if seconds else 0.0
