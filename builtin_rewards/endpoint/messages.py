"""Requests to a model and its replies, without any library's classes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

_FENCE = re.compile(r"<(/?)([\w-]{1,80}-[0-9a-f]{12})>")  # as Template.fill writes it around data


@dataclass(frozen=True, slots=True)
class Request:
    model: str
    messages: tuple[Mapping[str, Any], ...]
    options: Mapping[str, Any] = field(default_factory=dict)  # as ``chat.completions.create`` takes them
    index: int = 0  # which of several samples of the same question it is


def append_text(message: Mapping[str, Any], text: str) -> Mapping[str, Any]:
    content = message["content"]
    if isinstance(content, str):
        return {**message, "content": f"{content}\n\n{text}"}
    return {**message, "content": [*content, {"type": "text", "text": text}]}


def texts_of(message: Mapping[str, Any]) -> tuple[list[str], int]:
    """Return the texts of a message and the number of its images."""
    content = message["content"]
    if isinstance(content, str):
        return [message["role"], content], 0
    texts = [part["text"] for part in content if part["type"] == "text"]
    return [message["role"], *texts], len(content) - len(texts)


def bare_text(messages: Iterable[Mapping[str, Any]]) -> str:
    """Return the text of messages, in which a quotation is looked for.

    Of a filled template it is the data between its marked lines, which no data can hold; its own words are no data.
    """
    text = "\n".join(text for message in messages for text in texts_of(message)[0])
    fences = [(match[2], not match[1], match) for match in _FENCE.finditer(text)]
    ends = {code: match.start() for code, is_opening, match in fences if not is_opening}
    data, stop = list[str](), 0
    for code, is_opening, match in fences:
        if is_opening and match.start() >= stop and ends.get(code, 0) > match.end():
            stop = ends[code]
            data.append(text[match.end() : stop])
    return "\n".join(data or [text])


class Usage(NamedTuple):
    """Tokens of a request as the server counts them; the cached ones are part of the prompt's."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0


class Token(NamedTuple):
    """One token of a reply, its natural log-probability, and those of the likeliest tokens in its place."""

    text: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Reply:
    text: str  # may be empty
    model: str  # as the server names it
    finish_reason: str | None = "stop"  # ``"length"``, ``"content_filter"``, or what the server says
    refusal: str | None = None  # the model's words, where it refused
    usage: Usage | None = None  # ``None`` where the server does not say
    tokens: tuple[Token, ...] | None = None  # ``None`` where the server gives no log-probabilities
    requests: int = 1  # HTTP requests that were sent for it, tries that failed included
    unmetered: int = 0  # of these, failed tries that may be billed; usage is that of the last try alone
    waited_s: float = 0.0  # how long it waited for slots, which the deadline does not count
    reasoned: bool = False  # whether reasoning came beside the text
    question: str = ""  # the :func:`bare_text` that it answers, of which no quotation is a verdict
    free: ClassVar[bool] = False
