"""Where the time of a scored batch went, computed from the outcomes' durations."""

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
        step: Optimizer steps done; ``None`` if the trainer does not say.
        rows: Completions in the batch.
        wall_s: Seconds that the trainer waited for the batch's rewards.
        busy_s: Of these, the least seconds in which the rewards' work could be done: the longest single call, or a
            lane's work divided by its workers, whichever is more. Retries and uneven work are not in it.
        overhead_s: The rest: copying, sending, waiting, starting workers. An upper bound.
    """

    step: int | None
    rows: int
    wall_s: float
    busy_s: float
    overhead_s: float


def busy_s(batch: ScoreBatch, rewards: Mapping[str, Composable], workers: int) -> float:
    """Return :attr:`BatchTiming.busy_s` of a batch.

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
        if len(leaves) == 1 and (leaves[0].spec.is_async or leaves[0].spec.concurrency > 1):  # it has its own process
            lanes_s.append(sum(seconds) / leaves[0].spec.concurrency)
        else:
            shared_s += sum(seconds)
    return max(*lanes_s, shared_s / workers)


def _durations(batch: ScoreBatch, name: str, reward: Composable) -> list[float]:
    """Return the seconds of each call: a group reward has one call for each group, others one for each rollout."""
    grouped = any(leaf.spec.kind == "group" for leaf in reward.leaves)
    calls: dict[object, float] = {}
    for row, (rollout, outcome) in enumerate(zip(batch.rollouts, batch[name], strict=True)):
        if not outcome.cached:
            calls[id(rollout.example) if grouped else row] = outcome.duration_s
    return list(calls.values())


def p95(seconds: Sequence[float]) -> float:
    """Return the 95th percentile by nearest rank; 0 for no calls."""
    return sorted(seconds)[math.ceil(0.95 * len(seconds)) - 1] if seconds else 0.0
