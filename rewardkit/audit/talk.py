"""Completions as chat messages: their text, and tool calls as the usual forms write them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rewardkit.forms import why_no_text
from rewardkit.messages import completion_text, content_text
from rewardkit.types import Message

_MAX_OBJECTS = 12


def messages_in(value: Any) -> tuple[Message, ...] | None:
    """Return the chat messages that a column holds; ``None`` where it holds something else."""
    if not isinstance(value, list | tuple) or not value or why_no_text(value) is not None:
        return None
    return tuple(value)


def talk_text(said: Sequence[Message]) -> str:
    """Return the text of a completion in messages; of one that ends in tool calls these, as JSON."""
    if said[-1].get("tool_calls") and not content_text(said[-1].get("content")):
        calls = [one.get("function", one) for one in said[-1]["tool_calls"] if isinstance(one, Mapping)]
        return json.dumps(calls, ensure_ascii=False)
    return completion_text(said)


def is_call(value: Any) -> bool:
    """Whether a value is a tool call: an object with a name and arguments."""
    named = isinstance(value, dict) and isinstance(value.get("name"), str)
    return named and ("arguments" in value or "parameters" in value)


def in_tags(calls: Sequence[Any]) -> str:
    """Return calls as text, each in tags (Hermes, Qwen)."""
    return "\n".join(f"<tool_call>\n{json.dumps(one, ensure_ascii=False)}\n</tool_call>" for one in calls)


def message_of(calls: Sequence[Any]) -> dict[str, Any]:
    """Return calls as one assistant message, as servers give them."""
    found = []
    for place, one in enumerate(calls):
        arguments = json.dumps(one.get("arguments", one.get("parameters")), ensure_ascii=False)
        function = {"name": one.get("name"), "arguments": arguments}
        found.append({"id": f"call_{place}", "type": "function", "function": function})
    return {"role": "assistant", "content": "", "tool_calls": found}


def objects_in(text: str) -> Iterator[tuple[int, int, Any]]:
    """Return where JSON objects and lists stand in a text, the first few, with their values."""
    decoder, at = json.JSONDecoder(), 0
    for _ in range(_MAX_OBJECTS):
        found = re.compile(r"[{\[]").search(text, at)
        if found is None:
            return
        try:
            value, at = decoder.raw_decode(text, found.start())
        except (ValueError, RecursionError):
            at = found.end()
            continue
        if value:
            yield found.start(), at, value
