"""How prompts and completions in conversational form become plain text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rewardkit.types import Message, Text

ROLES = ("system", "developer", "user", "assistant", "tool", "function")
"""Who may speak in a conversation."""
_THOUGHT_TYPES = (  # of Anthropic, Mistral, OpenAI's Responses, LangChain, OpenRouter and the AI SDK
    *("thinking", "redacted_thinking", "thought", "reasoning", "reasoning_text", "reasoning_content"),
    *("reasoning.text", "reasoning.summary", "reasoning.encrypted", "redacted-reasoning"),
)


def is_thought(part: object) -> bool:
    """Return whether a message or a block of its content is a thought.

    It is by its type, by Gemini's mark, by gpt-oss's channel, or as a block of Bedrock's with reasoning alone.
    """
    if not isinstance(part, Mapping):
        return False
    is_marked = part.get("thought") is True or part.get("channel") == "analysis"
    return is_marked or part.get("type") in _THOUGHT_TYPES or [*part] == ["reasoningContent"]


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
            text = content_text(message.get("content"))
            if text:
                return text
    return ""


def content_text(content: str | Iterable[object] | None) -> str:
    """Return the text of one message's content, without thoughts: a string, ``None``, or a list of content blocks."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    visible = (block for block in content if not is_thought(block))
    blocks = (block.get("text", "") if isinstance(block, Mapping) else block for block in visible)
    return "".join(block for block in blocks if isinstance(block, str))
