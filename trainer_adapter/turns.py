"""Prompts, completions and their turns as trainers hold them, made into what rewards read: text or messages.

Trainers hold messages as mappings, as objects of pydantic's, or as numpy's arrays of these; or they hold a conversation
as one text, whose turns and calls :mod:`builtin_rewards.reading.transcript` reads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from builtin_rewards.reading.transcript import read_turns, with_calls
from rewardkit import Reward
from rewardkit.serving import RemoteReward

VERL_MESSAGES = "rewardkit_messages"
"""The field of verl's ``extra_info`` in which our manager hands over the messages of a conversation or completion."""
Text: TypeAlias = str | Sequence[Mapping[str, Any]]  # A prompt or a completion: text, or chat messages


def plain_text(text: Any) -> Any:  # what is no text, the check of rollouts names
    """Return text or messages with every message as a mapping; what is neither comes back as it is."""
    if hasattr(text, "tolist"):  # numpy's array of messages
        text = text.tolist()
    if not isinstance(text, list | tuple) or all(type(message) is dict for message in text):
        return text
    return [plain_message(message) for message in text]


def plain_message(message: Any) -> Any:
    """Return a message as a mapping: of pydantic's objects the fields that are set."""
    dump = getattr(message, "model_dump", None)
    return dump(exclude_none=True) if callable(dump) and not isinstance(message, type) else message


def reads_turns(reward: Reward[..., Any]) -> bool:
    """Return whether a reward reads the turns of a completion, or its tool calls, so that text must become messages.

    One that takes text or messages, as judges do, reads both itself; of a server's it is not known whether it is one.
    """
    plan = getattr(reward.spec.function, "plan", None)  # of a step reward
    if plan is not None:
        return bool(plan.each in ("turn", "tool_call"))
    forms = {"messages", "as it is"} if isinstance(reward, RemoteReward) else {"messages"}
    taken = [parameter.taken for parameter in reward.spec.parameters if parameter.name != "prompt"]
    names = {parameter.name for parameter in reward.spec.parameters}
    return "messages" in names or any(text is not None and text.form in forms for text in taken)


def named_parameters(reward: Reward[..., Any]) -> set[str]:
    """Return what a reward names as parameters; of a step reward ``prompt`` only where its function takes it.

    Every step reward is handed the prompt, for what stands before a step.
    """
    names, function = {parameter.name for parameter in reward.spec.parameters}, reward.spec.function
    is_of_function = getattr(function, "plan", None) is not None and not function.inner  # type: ignore[attr-defined]
    return names - {"prompt"} | (function.texts.keys() & names) if is_of_function else names  # type: ignore[attr-defined]


def as_turns(completion: Any) -> Any:
    """Return a completion with its turns as messages, and the calls that stand in a turn's text as its calls."""
    if isinstance(completion, str):
        return read_turns(completion) or completion
    if not isinstance(completion, list | tuple) or not all(isinstance(message, Mapping) for message in completion):
        return completion
    return [with_calls(message) for message in completion]


def behind_prompt(messages: Sequence[Mapping[str, Any]], prompt: object, turns: int | None = None) -> list[Any]:
    """Return the messages of a conversation that the model and its tools wrote.

    Args:
        messages: The whole conversation, or the completion alone.
        prompt: The prompt; where it is messages with which the conversation begins, the rest is the completion.
        turns: How many turns the model took; ``None`` where that is not known.
    """
    heads = [prompt] if not isinstance(prompt, list | tuple) else [*prompt]
    is_head = bool(heads) and len(messages) > len(heads) and all(map(_is_same, messages, heads))
    if turns is None and is_head:
        return [*messages[len(heads) :]]
    indices = [index for index, message in enumerate(messages) if message.get("role") == "assistant"]
    if not indices:
        return []
    first = indices[0] if turns is None else indices[max(0, len(indices) - turns)]
    return [*messages[first:]]


def _is_same(message: Mapping[str, Any], head: object) -> bool:
    if isinstance(head, str):
        return message.get("role") == "user" and message.get("content") == head
    return isinstance(head, Mapping) and all(message.get(name) == head.get(name) for name in ("role", "content"))
