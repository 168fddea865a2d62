"""What is asked of a model and what it replies, apart from any library's classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple


@dataclass(frozen=True, slots=True)
class Request:
    """One request for a chat completion.

    Attributes:
        model: The model's name, as the server knows it.
        messages: The chat messages, each with ``role`` and ``content``.
        options: Sampling parameters and the like, as ``chat.completions.create`` takes them: ``temperature``,
            ``max_tokens``, ``seed``, ``logprobs``, ``top_logprobs``, ``response_format``.
        index: Which of several samples of the same question it is, from 0.
    """

    model: str
    messages: tuple[Mapping[str, Any], ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    index: int = 0


def with_words(message: Mapping[str, Any], words: str) -> Mapping[str, Any]:
    """Gives a message with words at its end."""
    content = message["content"]
    if isinstance(content, str):
        return {**message, "content": f"{content}\n\n{words}"}
    return {**message, "content": [*content, {"type": "text", "text": words}]}


def texts_of(message: Mapping[str, Any]) -> tuple[list[str], int]:
    """Gives the texts of a message, and how many images it has."""
    content = message["content"]
    if isinstance(content, str):
        return [message["role"], content], 0
    texts = [part["text"] for part in content if part["type"] == "text"]
    return [message["role"], *texts], len(content) - len(texts)


class Usage(NamedTuple):
    """Tokens that the server says a reply took.

    Attributes:
        prompt_tokens: Read.
        completion_tokens: Written.
        cached_tokens: Those of the read that the server had cached.
    """

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0


class Token(NamedTuple):
    """One token of a reply with its likelihood.

    Attributes:
        text: The token.
        logprob: Its natural log-probability.
        top: The likeliest tokens in its place with their log-probabilities, itself included if among them.
    """

    text: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model replied.

    Attributes:
        text: The message's content; empty where there is none.
        model: The model that answered, as the server names it.
        finish_reason: ``"stop"``, ``"length"``, ``"content_filter"``, or what the server says.
        refusal: The model's words of refusal; ``None`` where it did not refuse.
        usage: Tokens; ``None`` where the server does not say.
        tokens: The reply's tokens with log-probabilities; ``None`` where the server gives none.
        requests: HTTP requests that were sent for it, tries that failed included.
        reasoned: Whether reasoning came beside the text.
    """

    text: str
    model: str
    finish_reason: str | None = "stop"
    refusal: str | None = None
    usage: Usage | None = None
    tokens: tuple[Token, ...] | None = None
    requests: int = 1
    reasoned: bool = False
