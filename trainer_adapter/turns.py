"""Prompts, completions and their turns as trainers hold them, made into what rewards read: text or messages.

Trainers hold messages as mappings, as objects of pydantic's, or as numpy's arrays of these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

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
