"""Thoughts, tool calls and tools' answers in a message, whichever provider wrote it.

It knows the shapes of OpenAI (Chat and Responses), TRL, Anthropic with its server and MCP tools, Bedrock, Gemini,
LangChain and the AI SDK of Vercel. What has none of them is told as "a form that is not read".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from rewardkit.blocks.block import Block, BlockKind, first_text, first_value, only_key, to_json
from rewardkit.blocks.content import content_block, other_block
from rewardkit.types import Message

CALL_FIELDS = ("tool_calls", "toolInvocations", "function_call")
"""Fields of messages that hold tool calls."""
THOUGHT_FIELDS = ("reasoning_content", "reasoning", "thinking", "reasoning_details", "thinking_blocks")
"""Fields of messages that hold thoughts, by server."""
_THOUGHT_TYPES = (  # of Anthropic, Mistral, OpenAI's Responses, LangChain, OpenRouter and the AI SDK
    *("thinking", "redacted_thinking", "thought", "reasoning", "reasoning_text", "reasoning_content"),
    *("reasoning.text", "reasoning.summary", "reasoning.encrypted", "redacted-reasoning"),
)
_CALL_TYPES = (  # Anthropic; LangChain; OpenAI's Responses, whose other calls end in `_call`; the AI SDK
    *("tool_use", "server_tool_use", "mcp_tool_use", "tool_call", "server_tool_call"),
    *("function", "function_call", "tool-call", "dynamic-tool", "tool-invocation"),
)
_ANSWER_TYPES = ("tool-result", "tool-error", "server_tool_result")
_ANSWER_ENDINGS = ("tool_result", "_call_output")  # Anthropic's, such as `web_search_tool_result`; Responses'
_BARE_CALLS = ("toolUse", "functionCall", "function_call", "executableCode")  # of Bedrock and Gemini: the only key
_BARE_ANSWERS = ("toolResult", "functionResponse", "function_response", "codeExecutionResult")
_INNER_KEYS = ("function", "custom", "toolInvocation", *_BARE_CALLS, *_BARE_ANSWERS)
_OF_CALL_KEYS = ("tool_call_id", "tool_use_id", "toolCallId", "toolUseId", "call_id")
_NAME_KEYS = ("name", "tool_name", "toolName")
_ARGUMENT_KEYS = ("arguments", "input", "parameters", "args")
_ANSWER_KEYS = ("output", "result", "content", "response", "error", "errorText")
_LOOKS_LIKE_CALL = re.compile(r"(?:\b|_)(?:tool|function|call)", re.IGNORECASE)


def is_thought(part: object) -> bool:
    """Return whether a message or a block of its content is a thought.

    It is by its type, by Gemini's mark, by gpt-oss's channel, or as a block of Bedrock's with reasoning alone.
    """
    if not isinstance(part, Mapping):
        return False
    is_marked = part.get("thought") is True or part.get("channel") == "analysis"
    return is_marked or part.get("type") in _THOUGHT_TYPES or [*part] == ["reasoningContent"]


def message_calls(message: Message) -> Iterator[Block]:
    """Yield the tool calls of a message: ``tool_calls``, ``function_call``, and those among the blocks."""
    for field in CALL_FIELDS:
        for call in _listed(message.get(field)):
            yield _call(call) if isinstance(call, Mapping) else _call({"arguments": call})._replace(source=call)
    yield from _parts(message, BlockKind.CALL)


def message_answers(message: Message) -> Iterator[Block]:
    """Yield the answers of tools in a message: those among its blocks, or the whole message of a tool."""
    parts = list(_parts(message, BlockKind.ANSWER))
    parts += [answer for call in _listed(message.get("toolInvocations")) for answer in _own_answer(call)]
    if message.get("role") not in ("tool", "function"):
        yield from parts
        return
    id, name = _id(message, _OF_CALL_KEYS), first_text(message, _NAME_KEYS)
    for part in parts or (Block(BlockKind.ANSWER, "", message, value=message.get("content")),):
        yield part._replace(id=part.id or id, name=part.name or name)


def read_block(block: object) -> tuple[Block, ...]:
    """Return what a block is; two parts where it is a call with its own answer; nothing for a thought."""
    if not isinstance(block, Mapping):
        text = block if isinstance(block, str) else to_json(block)
        return (Block(BlockKind.TEXT, "text", block, text),)
    if is_thought(block):
        return ()
    type_name = _type_of(block)
    if type_name in _BARE_ANSWERS or type_name in _ANSWER_TYPES or type_name.endswith(_ANSWER_ENDINGS):
        return (_answer(block, type_name),)
    if type_name in (*_CALL_TYPES, *_BARE_CALLS) or type_name.endswith("_call") or type_name.startswith("tool-"):
        return (_call(block), *_own_answer(block))
    content = content_block(block, type_name)
    if content is None and _LOOKS_LIKE_CALL.search(type_name):
        return (Block(BlockKind.CALL, type_name, block, is_read=False),)
    return (content or other_block(block, type_name),)


def _parts(message: Message, kind: BlockKind) -> Iterator[Block]:
    """Yield the parts of one kind among a message's blocks."""
    content = message.get("content")
    for index, block in enumerate(content if isinstance(content, list | tuple) else ()):
        yield from (part._replace(position=index) for part in read_block(block) if part.kind is kind)


def _listed(value: object) -> Sequence[object]:
    return () if not value else value if isinstance(value, list | tuple) else (value,)


def _type_of(block: Mapping[str, object]) -> str:
    """Return a block's type; of a block without one that has a single key, as Bedrock and Gemini write it, the key."""
    kind = block.get("type")
    if isinstance(kind, str) and kind:
        return kind
    bare = next((key for key in (*_BARE_CALLS, *_BARE_ANSWERS) if isinstance(block.get(key), Mapping)), None)
    return bare or only_key(block)


def _call(call: Mapping[str, object]) -> Block:
    """Return a tool call, of a message's ``tool_calls`` or among its blocks."""
    type_name = _type_of(call)
    inner = _inner(call)
    name = first_text(inner, _NAME_KEYS) or first_text(call, _NAME_KEYS) or _name_in_type(type_name)
    id = _id(call, (*_OF_CALL_KEYS, "id")) or _id(inner, (*_OF_CALL_KEYS, "id"))
    keys = ("input", *_ARGUMENT_KEYS) if type_name.endswith("tool_use") else _ARGUMENT_KEYS
    arguments = first_value(inner, keys)
    if arguments is None and type_name == "executableCode":
        arguments = dict(inner)
    elif arguments is None and type_name.endswith("_call"):
        arguments = first_value(call, ("action", "code", "queries", "operation"))
    return Block(BlockKind.CALL, type_name, call, id=id, name=name, value=arguments)


def _name_in_type(type_name: str) -> str | None:
    """Return the tool's name in a type such as ``web_search_call`` of Responses, or ``tool-weather`` of the AI SDK."""
    if type_name in (*_CALL_TYPES, *_BARE_CALLS, "mcp_call", "custom_tool_call"):
        return None
    if type_name.startswith("tool-"):
        return type_name.removeprefix("tool-")
    return type_name.removesuffix("_call") if type_name.endswith("_call") else None


def _answer(block: Mapping[str, object], type_name: str) -> Block:
    inner = _inner(block)
    keys = (*_OF_CALL_KEYS, "id") if type_name in _BARE_ANSWERS else _OF_CALL_KEYS
    value = first_value(inner, _ANSWER_KEYS)
    if type_name == "toolResult" and isinstance(value, list | tuple):
        value = [_with_type(entry) for entry in value]
    name = first_text(inner, _NAME_KEYS)
    return Block(BlockKind.ANSWER, type_name, block, id=_id(inner, keys), name=name, value=value)


def _with_type(block: object) -> object:
    """Return a block of Bedrock's with its only key as its type."""
    is_bare = isinstance(block, Mapping) and "type" not in block
    return {"type": only_key(block), **block} if is_bare and only_key(block) else block  # type: ignore[arg-type, dict-item]


def _own_answer(call: object) -> tuple[Block, ...]:
    """Return the answer that a call has in itself, as Responses' calls of MCP and the AI SDK's parts have."""
    if not isinstance(call, Mapping):
        return ()
    value = first_value(_inner(call), ("output", "outputs", "result", "results", "error", "errorText"))
    own = _call(call)
    return () if value is None else (Block(BlockKind.ANSWER, own.type, call, id=own.id, name=own.name, value=value),)


def _inner(block: Mapping[str, object]) -> Mapping[str, object]:
    """Return where name, arguments and answer stand: in the block, or in a mapping inside it."""
    for key in _INNER_KEYS:
        value = block.get(key)
        if isinstance(value, Mapping):
            return value
    return block


def _id(mapping: Mapping[str, object], keys: Sequence[str]) -> str | None:
    """Return an id as text, so that 1 is ``"1"``; ``None`` for one that is empty or neither text nor a whole number."""
    for key in keys:
        value = mapping.get(key)
        if (isinstance(value, str) and value.strip()) or (isinstance(value, int) and not isinstance(value, bool)):
            return str(value).strip()
    return None
