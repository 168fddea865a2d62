"""A prompt or completion as the page shows it: plain text, or a conversation in parts, cut where it is too long."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rewardkit.messages import content_text
from rewardkit.record.pictures.sources import key_in, picture_references
from rewardkit.types import Outcome, Text

FIRST_CHARS = 200_000  # Characters of a text that are sent at once; the rest on request

_SURROGATES = re.compile("[\ud800-\udfff]")
_OF_CALL = ("status", "score", "cause", "attempts", "cached")

_PICTURE_TYPES = ("image", "image_url", "input_image")
_PICTURE_NAMES = ("image", "image_url", "url", "path", "bytes", "source", "data", "inline_data")
_MOST_DEPTH = 4

Part = dict[str, Any]


def text_json(text: Text | None, *, full: bool = False) -> dict[str, Any] | None:
    """Return a prompt or completion ready for JSON, ``full`` or shortened; ``None`` for one that was left out.

    The result has ``text``, or for a conversation ``messages``, each with a ``role``, perhaps a ``name``, and ``parts``
    of the kinds ``text``, ``thinking``, ``call``, ``result``, ``picture`` and ``other``; and ``chars`` of all of it,
    and ``whole``. A part of the kind ``picture`` has the key of its picture, or ``None`` and in ``text`` what it names.
    """
    if text is None:
        return None
    if isinstance(text, str):
        preview = text if full else text[:FIRST_CHARS]
        return {"text": preview, "chars": len(text), "whole": len(preview) == len(text)}
    messages = [_message(message) for message in text]
    chars = sum(len(part["text"]) for message in messages for part in message["parts"])
    if chars <= FIRST_CHARS or full:
        return {"messages": messages, "chars": chars, "whole": True}
    return {"messages": _cut(messages, FIRST_CHARS), "chars": chars, "whole": False}


def plain(text: Text) -> str:
    """Return all text of a prompt or completion, the messages of a conversation one after the other."""
    if isinstance(text, str):
        return text
    return "\n\n".join(
        content_text(message.get("content")) if isinstance(message, Mapping) else str(message) for message in text
    )


def _cut(messages: Sequence[dict[str, Any]], room: int) -> list[dict[str, Any]]:
    """Return the first messages, with at most this many characters in all."""
    fitting = []
    for message in messages:
        parts = []
        for part in message["parts"]:
            parts.append(part | {"text": part["text"][:room]})
            room -= len(parts[-1]["text"])
            if room <= 0:
                break
        fitting.append(message | {"parts": parts})
        if room <= 0:
            break
    return fitting


def _message(message: object) -> dict[str, Any]:
    """Return a message as the page shows it; anything but a mapping becomes text of a nameless role."""
    if not isinstance(message, Mapping):
        return {"role": "", "name": None, "parts": [_part("other", _as_text(message))]}
    role, name = message.get("role"), message.get("name")
    parts = [part for part in _parts(message) if part["text"] or part["kind"] in ("call", "picture")]
    return {"role": role if isinstance(role, str) else "", "name": None if name is None else str(name), "parts": parts}


def _parts(message: Mapping[str, Any]) -> Iterator[Part]:
    """Yield the parts of a message: its thoughts, its content block by block, its tool calls."""
    for key in ("reasoning_content", "thinking", "reasoning"):
        if isinstance(message.get(key), str):
            yield _part("thinking", message[key])
    kind = "result" if message.get("role") in ("tool", "function") else "text"
    content = message.get("content")
    for block in content if isinstance(content, list | tuple) else [content]:
        if block is not None:
            yield _block(block, kind)
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list | tuple) else []:
        yield _call(call)
    if message.get("function_call"):
        yield _call(message["function_call"])


def _block(block: object, kind: str) -> Part:
    """Return a block of a message's content, as OpenAI and Anthropic write them; an unknown one as JSON."""
    if not isinstance(block, Mapping):
        return _part(kind, _as_text(block))
    match block.get("type"):
        case "thinking" | "reasoning":
            return _part("thinking", _as_text(block.get("thinking", block.get("text", ""))))
        case "tool_use":
            return _part("call", _as_text(block.get("input")), block.get("name"))
        case "tool_result":
            content = block.get("content")
            return _part("result", content_text(content) if isinstance(content, str | list) else _as_text(content))
    if isinstance(block.get("text"), str):
        return _part(kind, block["text"])
    return _picture(block) or _part("other", _as_text(block))


def _picture(block: Mapping[str, Any]) -> Part | None:
    """Return a block that is a picture; ``None`` for any other.

    What it names beside a picture of the record, such as an address, stays text: nothing is asked of it.
    """
    if block.get("type") not in _PICTURE_TYPES and not isinstance(block.get("inline_data"), Mapping):
        return None
    named = list(_named(block))
    key = next((key for text in named if (key := key_in(text)) is not None), None)
    path = next((reference.key for reference in picture_references(block) if reference.is_path), None)
    text = next((text for text in named if key_in(text) is None), "")
    return _part("picture", text) | {"picture": key or path}


def _named(value: object, depth: int = 0) -> Iterator[str]:
    """Yield the texts that a block names as its picture."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping) and depth < _MOST_DEPTH:
        for name, part in value.items():
            if name in _PICTURE_NAMES:
                yield from _named(part, depth + 1)


def _call(call: object) -> Part:
    function = call.get("function", call) if isinstance(call, Mapping) else call
    if not isinstance(function, Mapping):
        return _part("call", _as_text(function))
    return _part("call", _as_text(function.get("arguments", "")), function.get("name"))


def _part(kind: str, text: str, name: object = None) -> Part:
    return {"kind": kind, "text": text, "name": None if name is None else str(name)}


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)


def call_fields(outcome: Outcome) -> dict[str, Any]:
    """Return how a call went, ready for JSON."""
    return attributes(outcome, *_OF_CALL) | {"seconds": outcome.duration_s}


def output_fields(outcome: Outcome) -> dict[str, Any]:
    """Return what a call wrote and measured, ready for JSON."""
    return {
        name: value for name, value in outcome.as_json().items() if name not in (*_OF_CALL, "duration_s", "version")
    }


def attributes(value: object, *names: str) -> dict[str, Any]:
    return {name: getattr(value, name) for name in names}


def json_bytes(value: object) -> bytes:
    """Return a value as JSON: numbers that are not finite are ``null``, halves of surrogate pairs become U+FFFD."""
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False, default=_plain)
    except ValueError:
        finite = json.loads(json.dumps(value, default=_plain), parse_constant=lambda _: None)
        text = json.dumps(finite, ensure_ascii=False)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _SURROGATES.sub("\ufffd", text).encode()


def _plain(value: object) -> object:
    """Return a numpy value, a mapping, a set or a path as JSON can hold it; raise TypeError for another value."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset):
        return sorted(value)
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} is not JSON")
