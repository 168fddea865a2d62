"""Rewards that fail in every way, for trainers' real code; a completion says which way. It is a reward file."""

from __future__ import annotations

import os
import time

from rewardkit import group_reward, reward


@reward(timeout_s=1, default=None)
def right(completion: str, answer: str) -> float | None:
    """Score 1 for the answer; a reward without a stand-in, that raises, is too slow, ends its worker or has no number.

    Any other completion but ``skip`` is wrong.
    """
    if completion == "raise":
        raise ValueError("nobody knows")
    if completion == "slow":
        time.sleep(600)
    if completion == "crash":
        os._exit(3)
    if completion == "nan":
        return float("nan")
    return None if completion == "skip" else float(completion == answer)


@reward(default=-1.0)
def brave(completion: str) -> float | None:
    """Score 1; ``fail`` fails, and -1 stands in."""
    if completion == "fail":
        raise ValueError("no luck")
    return None if completion == "skip" else 1.0


@reward
def asked(prompt: list[dict[str, str]] | str) -> float:
    """Score the length of the question."""
    return float(len(prompt if isinstance(prompt, str) else prompt[-1]["content"]))


@reward
def hard(completion: str, hardness: int) -> float:
    """Score by a column that the data may lack."""
    return float(hardness)


@group_reward
def rank(completions: list[str]) -> list[float]:
    """Score each completion by its place among those of its prompt, the shortest first."""
    order = sorted(completions, key=len)
    return [float(order.index(one)) for one in completions]
