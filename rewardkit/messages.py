"""How prompts and completions in conversational form become plain text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rewardkit.blocks.block import UNREAD, BlockKind
from rewardkit.blocks.calls import THOUGHT_FIELDS, is_thought, message_answers, message_calls, read_block
from rewardkit.blocks.content import answer_text
from rewardkit.shown.text import shorten
from rewardkit.types import Message, Text

ROLES = ("system", "developer", "user", "assistant", "tool", "function")
"""Who may speak in a conversation."""
_OTHER_NAMES = {
    "user": ("human", "person", "prompter"),
    "assistant": ("gpt", "chatgpt", "model", "ai", "bot", "chatbot", "function_call", "tool_call"),
    "tool": ("ipython", "observation", "environment", "tool_response", "tool_result", "tool_output"),
    "function": ("function_response",),
}
_ROLE_OF = {other: role for role, others in _OTHER_NAMES.items() for other in others}


def role_meant(role: str) -> str | None:
    """Return the role that a name of another library stands for, such as ``"user"`` for ``human``."""
    name = role.strip().lower()
    return name if name in ROLES else _ROLE_OF.get(name)


def why_unknown_role(role: str) -> str:
    """Return words on a role that is not among :data:`ROLES`, with what to write for one that other libraries use."""
    meant = role_meant(role)
    fix = "" if meant is None else f"; write {meant!r}"
    return f"unknown role {shorten(role)}{fix}; the roles are {', '.join(ROLES)}"


def completion_text(completion: Text) -> str:
    """Return the text of a completion: itself, or the last assistant message that has content.

    With tools the first assistant message is often empty and others follow. Without assistant content it is ``""``.
    """
    if isinstance(completion, str):
        return completion
    return _last_content(completion, "assistant")


def prompt_text(prompt: Text) -> str:
    """Return the text of a prompt: itself, or the last user message that has content."""
    if isinstance(prompt, str):
        return prompt
    return _last_content(prompt, "user")


def conversation(prompt: Text, completion: Text) -> list[Message]:
    """Return prompt and completion as one list of chat messages, making messages of plain strings."""
    head: Sequence[Message] = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    tail: Sequence[Message] = (
        [{"role": "assistant", "content": completion}] if isinstance(completion, str) else completion
    )
    return [*head, *tail]


def _last_content(messages: Sequence[Message], role: str) -> str:
    """Return a role's last text that is not empty; a message without a role is taken for one of this role."""
    for message in reversed(messages):
        if message.get("role", role) == role and not is_thought(message):
            text = content_text(message.get("content")) or _refusal(message)
            if text:
                return text
    return ""


def _refusal(message: Message) -> str:
    """Return the text of OpenAI's field for a refusal, which stands in place of content; empty without."""
    refusal = message.get("refusal")
    return refusal if isinstance(refusal, str) else ""


def message_text(message: Message) -> str:
    """Return the text of one message: what is said, and what tools gave back."""
    if message.get("role") in ("tool", "function"):
        return "\n".join(answer_text(answer.value) for answer in message_answers(message))
    return content_text(message.get("content")) or _refusal(message)


def why_odd_text(completion: Text) -> str | None:
    """Return what is odd in the text of a completion in messages, for its reason; ``None`` where nothing is.

    It is a refusal; or it is empty, as there are thoughts alone, tool calls alone, or blocks that are not text.
    """
    if isinstance(completion, str):
        return None
    turns = [message for message in completion if message.get("role", "assistant") == "assistant"]
    if completion_text(completion):
        last = next(turn for turn in reversed(turns) if not is_thought(turn) and message_text(turn))
        return "the completion is a refusal" if _is_refusal(last) else None
    parts = [part for turn in turns for part in _what_is_there(turn)]
    if not parts:
        return None
    listed = ", ".join(
        part if parts.count(part) == 1 else f"{parts.count(part)} x {part}" for part in dict.fromkeys(parts)
    )
    return f"the completion has no text: {'reasoning alone' if parts == ['reasoning'] else listed}"


def _is_refusal(message: Message) -> bool:
    content = message.get("content")
    blocks = content if isinstance(content, list | tuple) else ()
    is_block = any(isinstance(block, Mapping) and block.get("type") == "refusal" for block in blocks)
    return is_block or not content_text(content)


def _what_is_there(turn: Message) -> Iterator[str]:
    """Yield what an assistant's turn without text has, in words."""
    content = turn.get("content")
    blocks = content if isinstance(content, list | tuple) else ()
    if is_thought(turn) or any(turn.get(field) for field in THOUGHT_FIELDS) or any(map(is_thought, blocks)):
        yield "reasoning"
    for call in message_calls(turn):
        yield "a tool call" if call.is_read else f"{call.type[:40]!r}, {UNREAD}"
    for part in (part for block in blocks for part in read_block(block)):
        if part.kind is BlockKind.IMAGE:
            yield "an image"
        elif part.kind is BlockKind.OTHER:
            yield f"{part.type[:40] or 'a block without type'!r}, {UNREAD}"


def content_text(content: str | Iterable[object] | None) -> str:
    """Return the text of one message's content, without thoughts: a string, ``None``, or a list of content blocks."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    visible = (block for block in content if not is_thought(block))
    texts = (block.get("text", block.get("refusal")) if isinstance(block, Mapping) else block for block in visible)
    return "".join(text for text in texts if isinstance(text, str))
