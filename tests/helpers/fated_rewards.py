"""Rewards whose completions say what becomes of them, for the adapters of trainers that are not installed."""

from __future__ import annotations

import os

from rewardkit import InfrastructureError, group_reward, reward


@reward(name="right", default=None)
def right(completion: str, answer: str) -> float | None:
    """Score 1 for the answer; ``skip`` is skipped, and ``unknown``, ``crash`` and ``lost`` have no score."""
    if "crash" in completion:
        os._exit(3)
    if "lost" in completion:
        raise InfrastructureError("no server")
    if "unknown" in completion:
        raise ValueError("nobody knows")
    return None if "skip" in completion else float(completion == answer)


@reward(name="brave", default=-1.0)
def brave(completion: str) -> float | None:
    """Score 1; ``skip`` is skipped, and ``fail`` fails with a default of -1."""
    if "fail" in completion:
        raise ValueError("no luck")
    return None if "skip" in completion else 1.0


@reward(name="asked")
def asked(prompt: str) -> float:
    """Score the length of the prompt."""
    return float(len(prompt))


@reward(name="hard")
def hard(completion: str, hardness: int) -> float:
    """Score by a column that no trainer sends of its own accord."""
    return float(hardness)


@group_reward(name="rank")
def rank(completions: list[str]) -> list[float]:
    """Score each completion by its place among those of its group, the shortest first."""
    order = sorted(completions, key=len)
    return [float(order.index(one)) for one in completions]


@group_reward(name="rank_by_all")
def rank_by_all(completions: list[str], **columns: object) -> list[float]:
    """Score as :func:`rank` does, and take every column."""
    order = sorted(completions, key=len)
    return [float(order.index(one)) for one in completions]


FATES = {
    "4": (2.0, {"unknown": 0.0, "skipped": 0.0, "failed": 0.0}),
    "skip": (0.0, {"unknown": 0.0, "skipped": 1.0, "failed": 0.0}),
    "fail": (-1.0, {"unknown": 0.0, "skipped": 0.0, "failed": 1.0}),
    "unknown": (0.0, {"unknown": 1.0, "skipped": 0.0, "failed": 0.0}),
}
"""Number and flags of each completion, where the answer is 4: the table that all adapters share."""
KEYS = {"unknown", "skipped", "failed", "reward/right", "reward/brave", "failed/right", "failed/brave"}
"""What an adapter says of every completion."""
