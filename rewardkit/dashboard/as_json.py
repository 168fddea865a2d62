"""A prompt or completion as the page shows it: plain text, or a conversation in parts, cut where it is too long."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rewardkit.blocks.block import Block, BlockKind
from rewardkit.blocks.calls import THOUGHT_FIELDS, is_thought, message_answers, message_calls, read_block
from rewardkit.blocks.content import answer_parts
from rewardkit.messages import message_text
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
    return "\n\n".join(message_text(message) if isinstance(message, Mapping) else str(message) for message in text)


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
    for key in THOUGHT_FIELDS:
        if isinstance(message.get(key), str):
            yield _part("thinking", message[key])
    if message.get("role") in ("tool", "function"):
        for answer in message_answers(message):
            yield from _answer(answer)
    else:
        content = message.get("content") or message.get("refusal")
        for block in content if isinstance(content, list | tuple) else [content]:
            yield from () if block is None else _block(block)
        yield from (_call(call) for call in message_calls(message) if call.position < 0)
        yield from (part for answer in message_answers(message) if answer.position < 0 for part in _answer(answer))


def _block(block: object) -> Iterator[Part]:
    """Yield what a block of a message's content is; one that is no text, call or answer as JSON."""
    if isinstance(block, Mapping) and is_thought(block):
        text = next((block[key] for key in (*THOUGHT_FIELDS, "text") if isinstance(block.get(key), str)), None)
        yield _part("thinking", _as_text(block) if text is None else text)
        return
    for part in read_block(block):
        if part.kind is BlockKind.CALL:
            yield _call(part)
        elif part.kind is BlockKind.ANSWER:
            yield from _answer(part)
        else:
            yield _content_part(part, "text")


def _answer(answer: Block) -> Iterator[Part]:
    """Yield what a tool gave back: its text, and pictures."""
    for part in answer_parts(answer.value):
        yield _content_part(part, "result")


def _content_part(block: Block, kind: str) -> Part:
    if block.kind is BlockKind.TEXT:
        return _part(kind, block.text)
    picture = _picture(block.source) if isinstance(block.source, Mapping) else None
    return picture or _part("other", _as_text(block.source))


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


def _call(call: Block) -> Part:
    value = call.value if call.is_read and (call.name or call.value is not None) else call.source
    return _part("call", "" if value is None else _as_text(value), call.name)


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
