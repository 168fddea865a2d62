"""A part of a message, whichever provider wrote it, and a value as the text that stands for it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

UNREAD = "a form that is not read"
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


class BlockKind(StrEnum):
    """What a block is."""

    TEXT = "text"
    CALL = "call"  # A tool is called
    ANSWER = "answer"  # What a tool gave back
    IMAGE = "image"
    OTHER = "other"  # Sound, a file, or a form that is not read


class Block(NamedTuple):
    """A part of a message, whichever provider wrote it."""

    kind: BlockKind
    type: str  # its type, as it is written
    source: object  # the block as it stands in the message
    text: str = ""  # of a text itself; of an image and of another block a mark in brackets, such as ``[image]``
    id: str | None = None  # the id of a call, or of the call that is answered; ``None`` without
    name: str | None = None  # the name of the tool; ``None`` without
    value: object = None  # a call's arguments, or what a tool gave back
    is_read: bool = True  # whether a call has a form that is read
    position: int = -1  # its place among the blocks of its message; -1 beside them


def to_json(value: object) -> str:
    """Return a text as it is, and any other value as JSON text.

    Numbers that JSON lacks are ``NaN`` and ``Infinity``, as Python's reader takes them; bytes are their text in UTF-8,
    or their number; arrays are lists, and other objects what ``str`` makes of them, without addresses in memory.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bytes | bytearray):
        return _bytes_text(value)
    try:
        return json.dumps(value, ensure_ascii=False, default=_plain, skipkeys=True)
    except (RecursionError, ValueError):
        return f"[{type(value).__name__}, nested too deep: {UNREAD}]"


def _plain(value: object) -> object:
    """Return an object that JSON lacks as one that it has."""
    if isinstance(value, bytes | bytearray):
        return _bytes_text(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset):
        return sorted(value, key=repr)
    try:
        as_list = getattr(value, "tolist", None)
        return as_list() if callable(as_list) else _ADDRESS.sub("", str(value))
    except Exception as error:  # an object whose own methods raise
        return f"[{type(value).__name__}: {UNREAD}: {type(error).__name__}]"


def _bytes_text(value: bytes | bytearray) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return f"[{len(value):,} bytes: {UNREAD}]"


def first_value(mapping: Mapping[str, object], keys: Sequence[str]) -> object:
    """Return the value of the first key that has one; ``None`` without."""
    return next((mapping[key] for key in keys if mapping.get(key) is not None), None)


def first_text(mapping: Mapping[str, object], keys: Sequence[str]) -> str | None:
    """Return the first of the keys' values that is a text, and not empty; ``None`` without."""
    return next((value for key in keys if isinstance(value := mapping.get(key), str) and value), None)


def only_key(block: Mapping[str, object]) -> str:
    """Return the key of a block that has no other; ``""`` for other blocks."""
    keys = [key for key, value in block.items() if value is not None]
    return str(keys[0]) if len(keys) == 1 else ""
