"""Rewards that read the calls and columns of a completion, and a function as verifiers' tasks have them."""

from __future__ import annotations

from typing import Any

from rewardkit import Score, Step, reward, step_reward


@step_reward(each="tool_call", reduce="mean")
def called_add(part: Step) -> Score:
    """Score 1 for a call of ``add``; the reason has what came back."""
    return Score(float(part.name == "add"), f"{part.name} {part.arguments} {part.result}")


@step_reward(credit="turns")
def acted(part: Step) -> float:
    """Score a turn 1 for a call, and 0.25 for none."""
    return 1.0 if part.messages[0].get("tool_calls") else 0.25


@reward
def judged_by_level(prompt: str, completion: str, level: float) -> float:
    """Score by a column, the prompt and the last text: 3 for level 3, the question ``2+2=`` and an answer with a 4."""
    return level * (prompt == "2+2=") * ("4" in completion)


async def shown(task: Any, trace: Any) -> float:
    """Score what verifiers' stand-ins must show as verifiers does."""
    calls = [call.name for message in trace.assistant_messages for call in message.tool_calls or []]
    answers = [message.content for message in trace.tool_messages]
    parts = [trace.last_reply.endswith(task.answer), task.prompt == task.prompt_text, trace.num_turns, len(calls)]
    return sum(map(float, [*parts, len(answers), len(trace.transcript), len(trace.messages), task.level]))
