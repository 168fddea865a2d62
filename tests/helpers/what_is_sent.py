"""Rewards that count what a trainer sends: turns, calls with their answers, images, and completions of a prompt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rewardkit import Message, Step, group_reward, reward, step_reward


@reward
def turns(messages: list[Message]) -> float:
    """Count the model's turns and its tools' answers."""
    return float(sum(message["role"] in ("assistant", "tool") for message in messages))


@step_reward(each="tool_call", reduce="mean")
def calls(part: Step) -> float:
    """Score 1 for ``add`` with its arguments, and 2 where its answer is known too; skipped without calls."""
    return float(part.name == "add" and part.arguments == {"a": 2}) * (1.0 + (part.result == "4"))


@reward
def prompt_images(prompt: object = None, images: object = None) -> float:
    """Count the images of the prompt, or of a column."""
    messages = prompt if isinstance(prompt, list) else []
    blocks = [block for message in messages for block in _blocks(message)]
    shown = sum(str(block.get("type", "")).startswith("image") for block in blocks)
    return float(shown or (len(images) if isinstance(images, list) else 0))


@reward
def column_images(images: object = None) -> float:
    """Count the images of a column."""
    return float(len(images) if isinstance(images, list) else 0)


@reward
def whole_text(completion: str) -> float:
    """Score 1 for a text with its call and its last words."""
    return float("<tool_call>" in completion and "It is 4" in completion)


def _blocks(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    content = message.get("content")
    return [block for block in content if isinstance(block, Mapping)] if isinstance(content, list) else []


@group_reward
def together(completions: list[Any]) -> list[float]:
    """Count the completions that come together."""
    return [float(len(completions)) for _ in completions]
