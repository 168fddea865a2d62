"""Completions as chat messages: their text, and tool calls as the usual forms write them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rewardkit.coercion.plain_json import legible
from rewardkit.forms import why_no_text
from rewardkit.messages import completion_text, content_text
from rewardkit.types import Message

_MAX_OBJECTS = 12


def messages_in(value: Any) -> tuple[Message, ...] | None:
    """Return the chat messages that a column holds; ``None`` where it holds something else."""
    if not isinstance(value, list | tuple) or not value or why_no_text(value) is not None:
        return None
    return tuple(value)


def talk_text(messages: Sequence[Message]) -> str:
    """Return the text of a completion in messages, or as JSON the tool calls that it ends in."""
    if messages[-1].get("tool_calls") and not content_text(messages[-1].get("content")):
        calls = [call.get("function", call) for call in messages[-1]["tool_calls"] if isinstance(call, Mapping)]
        return json.dumps(calls, ensure_ascii=False, default=legible)
    return completion_text(messages)


def with_last(messages: Sequence[Message], text: str) -> list[Message]:
    """Return messages with another text in the last."""
    return [*messages[:-1], {**messages[-1], "content": text}]


def is_call(value: Any) -> bool:
    """Return whether a value is a tool call: an object with a name and arguments."""
    is_named = isinstance(value, dict) and isinstance(value.get("name"), str)
    return is_named and ("arguments" in value or "parameters" in value)


def calls_in(value: object) -> list[Any]:
    """Return the tool calls that a value is, a call or a list of calls; an empty list for any other value."""
    calls = value if isinstance(value, list) else [value]
    return calls if all(map(is_call, calls)) else []


def in_tags(calls: Sequence[Any]) -> str:
    """Return calls as text, each in tags (Hermes, Qwen)."""
    return "\n".join(
        f"<tool_call>\n{json.dumps(call, ensure_ascii=False, default=legible)}\n</tool_call>" for call in calls
    )


def message_of(calls: Sequence[Any]) -> dict[str, Any]:
    """Return calls as one assistant message, as servers give them."""
    tool_calls = []
    for index, call in enumerate(calls):
        arguments = json.dumps(call.get("arguments", call.get("parameters")), ensure_ascii=False, default=legible)
        function = {"name": call.get("name"), "arguments": arguments}
        tool_calls.append({"id": f"call_{index}", "type": "function", "function": function})
    return {"role": "assistant", "content": "", "tool_calls": tool_calls}


def objects_in(text: str) -> Iterator[tuple[int, int, Any]]:
    """Yield where JSON objects and lists stand in a text, the first few, with their values."""
    decoder, at = json.JSONDecoder(), 0
    for _ in range(_MAX_OBJECTS):
        match = re.compile(r"[{\[]").search(text, at)
        if match is None:
            return
        try:
            value, at = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            at = match.end()
            continue
        if value:
            yield match.start(), at, value
