"""A prompt, a completion and a value of the data as one text each, as searches, conditions and orders take them."""

from __future__ import annotations

import json
from collections.abc import Mapping

from rewardkit.coercion.plain_json import legible
from rewardkit.types import Text


def value_text(value: object) -> str:
    """Return a value of the data as text: itself, or as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=legible)


def whole_text(text: Text) -> str:
    """Return a text, or the contents and calls of all messages, each on a line."""
    if isinstance(text, str):
        return text
    messages = (message if isinstance(message, Mapping) else {"content": message} for message in text)
    parts = (message.get(key) for message in messages for key in ("content", "tool_calls"))
    return "\n".join(value_text(part) for part in parts if part)
