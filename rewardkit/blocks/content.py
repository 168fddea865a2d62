"""Blocks of text, images and other media, and what a tool gave back, in parts and as text.

The blocks are those of OpenAI, Anthropic, Bedrock, MCP and the AI SDK of Vercel.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from rewardkit.blocks.block import UNREAD, Block, BlockKind, first_text, first_value, to_json

_MEDIA = re.compile(r"(?:\b|_)(?:audio|video|file|media|document|image|inlineData|fileData)", re.IGNORECASE)
_RESULT_FIELDS = frozenset(["content", "isError", "is_error", "structuredContent", "_meta"])  # of MCP's CallToolResult
_OUTPUT_TYPES = ("text", "content", "error-text")  # of the AI SDK, whose value is what a tool gave back
_JSON_TYPES = ("json", "error-json")  # of the AI SDK, whose value is data


def answer_text(value: object) -> str:
    """Return what a tool gave back as text.

    Text is itself, blocks are their texts, one a line, and all else is JSON; nothing (``None``) is ``""``. A block that
    is not text is a mark in brackets, such as ``[image]`` or ``[audio: a form that is not read]``.
    """
    return "\n".join(part.text for part in answer_parts(value))


def answer_parts(value: object) -> list[Block]:
    """Return what a tool gave back in parts: texts, images, and what is neither.

    A list is one of blocks where at least one has a known shape and the others have a type or are text. Another list,
    and an object, is data: one text, its JSON.
    """
    while isinstance(value, Mapping) and (key := _key_of_result(value)) is not None:
        value = value[key]  # a loop, for results may stand in each other without end
    if value is None:
        return []
    if isinstance(value, Mapping):
        is_data = value.get("type") in _JSON_TYPES and "value" in value
        return [_typed_block(value) or _text(to_json(value["value"] if is_data else value), value)]
    if isinstance(value, list | tuple):
        blocks = [_typed_block(entry) for entry in value]
        if any(blocks) and all(block or _is_typed(entry) for block, entry in zip(blocks, value, strict=True)):
            return [block or _unread(entry) for block, entry in zip(blocks, value, strict=True)]
    return [_text(to_json(value), value)]


def _key_of_result(value: Mapping[str, object]) -> str | None:
    """Return the key of an object that says what it holds, and holds it there; ``None`` for all else."""
    if value.get("type") in _OUTPUT_TYPES and "value" in value:
        return "value"
    return "content" if "content" in value and value.keys() <= _RESULT_FIELDS else None


def _typed_block(entry: object) -> Block | None:
    """Return a block of a known type; ``None`` for data."""
    kind = entry.get("type") if isinstance(entry, Mapping) else None
    return content_block(entry, kind) if isinstance(entry, Mapping) and isinstance(kind, str) else None


def _is_typed(entry: object) -> bool:
    return isinstance(entry, str) or (isinstance(entry, Mapping) and isinstance(entry.get("type"), str))


def _unread(entry: object) -> Block:
    return other_block(entry, str(entry["type"])) if isinstance(entry, Mapping) else _text(to_json(entry), entry)


def _text(text: str, source: object) -> Block:
    return Block(BlockKind.TEXT, "text", source, text)


def other_block(block: object, type_name: str) -> Block:
    """Return a block that is not text, with a mark that says so."""
    return Block(BlockKind.OTHER, type_name, block, f"[{type_name[:40] or 'a block without type'}: {UNREAD}]")


def content_block(block: Mapping[str, object], type_name: str) -> Block | None:
    """Return a block of text, an image or another medium; ``None`` for one whose shape is not known."""
    if (text := _block_text(block, type_name)) is not None:
        return _text(text, block)
    if "image" in type_name:
        return Block(BlockKind.IMAGE, type_name, block, "[image]")
    is_medium = _MEDIA.search(type_name) or type_name in ("resource", "resource_link")
    return other_block(block, type_name) if is_medium else None


def _block_text(block: Mapping[str, object], type_name: str) -> str | None:
    """Return the text of a block that has one, in words or as JSON; ``None`` for others."""
    match type_name:
        case "text" | "input_text" | "output_text" | "refusal":
            value = first_value(block, ("text", "refusal"))
            return value if isinstance(value, str) else "" if value is None else None
        case "json":
            return to_json(first_value(block, ("json", "value", "data")))
        case "resource_link":
            return to_json({key: value for key, value in block.items() if key != "type"})
        case "resource":
            return first_text(_mapping(block.get("resource")), ("text",))
        case "search_result" | "searchResult":
            inner = _mapping(block.get("searchResult")) or block
            lines = (inner.get("title"), inner.get("source"), answer_text(inner.get("content")))
            return "\n".join(line for line in lines if isinstance(line, str) and line)
        case "document":
            return _document_text(block)
    return None


def _document_text(block: Mapping[str, object]) -> str | None:
    """Return a document's title and text; ``None`` where it is bytes or an address."""
    source = _mapping(block.get("source")) or _mapping(block.get("document")) or block
    value = source.get("content")
    if value is None and source.get("type") not in ("base64", "url", "file"):
        value = first_value(source, ("data", "text"))
    if value is None or isinstance(value, bytes):
        return None
    title = block.get("title")
    return "\n".join(filter(None, (title if isinstance(title, str) else "", answer_text(value))))


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}
