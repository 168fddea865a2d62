"""Rewards of each outcome in a file that imports no trainer, so that workers load it at once."""

from __future__ import annotations

from typing import Any

from rewardkit import group_reward, reward


@reward
def spread(completion: str, answer: str) -> float | None:
    """A score, a skip or a failure, by the completion's length."""
    if len(completion) % 5 == 0:
        raise ValueError(f"no score for {answer}")
    return None if len(completion) % 5 == 1 else float(len(completion))


@group_reward
def standing(completions: list[str]) -> list[float]:
    """Each one's place in its group, and the group's size."""
    return [sorted(completions).index(text) + 100.0 * len(completions) for text in completions]


@reward
def messages_of(messages: list[Any]) -> float:
    """How many characters the last message has."""
    return float(len(messages[-1]["content"]))
