"""How a server is asked for JSON, what may stand around it in a reply, and which parameters a server takes."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from enum import StrEnum
from typing import Any, TypeAlias

from builtin_rewards.endpoint.errors import Fault, JudgeUnavailableError
from builtin_rewards.endpoint.foreign import names_format
from builtin_rewards.endpoint.messages import Reply
from builtin_rewards.reading.broken_json import object_starts
from builtin_rewards.reading.thoughts import (
    after_thinking,
    answer_start,
    begins_in_thought,
    ends_in_thought,
    strip_frame,
)


class Format(StrEnum):
    """How a reply's form is asked for, and what the server enforces."""

    JSON_SCHEMA = "json_schema"
    JSON_OBJECT = "json_object"  # the form stands in the prompt. Used only if the user asks for it.
    TEXT = "text"  # the form stands in the prompt, and the verdict ends the text


LONGEST_OBJECT = 100_000  # the most characters of a verdict, so that a long reply does not hold up the event loop
REFUSABLE: Mapping[str, str | None] = {  # the other name of what some servers refuse; ``None``: it is left out
    "max_tokens": "max_completion_tokens",
    "max_completion_tokens": "max_tokens",
    **dict.fromkeys(("temperature", "top_p", "seed", "logprobs", "top_logprobs")),
}
Changes: TypeAlias = Mapping[str, str | None]  # a server's name for a parameter, ``None`` to leave it out

_IGNORED_LIMIT = 3  # so many first replies that break the schema show that the server ignores it
_REJECTING = frozenset({400, 404, 422, 500})  # statuses that refuse a format; 500 is ``llama_cpp.server``'s
_ERROR_HEAD = re.compile(r".*?HTTP \d{3}: ", re.DOTALL)  # before the server's words: address and model, any names
_COMPLAINT = re.compile(
    r"(not|n't|un) ?-?(support|allow|permit|accept|recogni[sz]ed|known|expected)|extra|deprecated|only the default",
    re.IGNORECASE,
)
_PARAMETER = re.compile(rf"(?<!\w)({'|'.join(REFUSABLE)})(?!\w)")
_FENCE_OPENS = re.compile(r"```\w*\Z")


def response_format(format: Format, schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return ``response_format`` as ``chat.completions.create`` takes it; ``None``: leave it out."""
    if format is Format.JSON_SCHEMA:
        return {"type": "json_schema", "json_schema": {"name": "verdict", "schema": dict(schema), "strict": True}}
    return {"type": "json_object"} if format is Format.JSON_OBJECT else None


def format_instruction(schema: Mapping[str, Any]) -> str:
    """Return words that ask for an object of this schema; place holders in the example suggest no grade."""
    return (
        "Reply with one JSON object in exactly this form, with these keys in this order:\n\n"
        f"{reply_form(schema)}\n\n"
        "Replace each <...> with your own value. A text stands in double quotes, a number does not. "
        "The object ends your reply: write nothing after it."
    )


def reply_form(schema: Mapping[str, Any]) -> str:
    """Return a schema's object as text, with a place holder for each value."""
    if "properties" in schema:
        parts = [f"{json.dumps(key)}: {reply_form(part)}" for key, part in schema["properties"].items()]
        return "{" + ", ".join(parts) + "}"
    values = schema.get("enum")
    if not values:
        return '"<one or two sentences>"'
    if all(type(value) is int for value in values):
        return f"<a whole number from {values[0]} to {values[-1]}>"
    return f"<one of {', '.join(json.dumps(value, ensure_ascii=False) for value in values)}>"


def object_text(text: str, format: Format, keys: Collection[str] = ()) -> str:
    """Return the part of a reply that must be the JSON object; a ValueError says why it lacks one.

    With ``TEXT`` it is the object that ends the reply, perhaps in a fence; with the others it is the whole reply but
    for a fence and reasoning with an end, such as ``</think>``. So a verdict quoted before the end does not count. With
    ``keys`` it need not be JSON: it is the only object behind the reasoning that begins with one of these keys.
    """
    text = strip_frame(text).strip()
    bare = text.removesuffix("```").rstrip()
    start = _likely_start(bare, keys) if keys else object_start(bare)
    is_whole = not keys and format is not Format.TEXT and (start is None or text.startswith("{"))
    if is_whole and len(text) <= LONGEST_OBJECT:
        return text
    if is_whole or start is None:
        raise ValueError(f"no JSON object of at most {LONGEST_OBJECT:,} characters ends it")
    before = bare[:start].rstrip()
    if begins_in_thought(before) and ends_in_thought(before):
        raise ValueError("the object stands in reasoning that has no end, such as </think>")
    fence = _FENCE_OPENS.search(before)
    if fence is not None:
        before = before[: fence.start()].rstrip()
    elif len(bare) < len(text):
        raise ValueError("a closing fence follows the object, and no fence opens before it")
    if format is not Format.TEXT and after_thinking(before).strip():
        raise ValueError("there is more than the JSON object; format='text' lets words stand before it")
    return bare[start:]


def _likely_start(text: str, keys: Collection[str]) -> int | None:
    """Return where the one object of a text begins that has one of the keys first; ``None`` for several."""
    if len(text) > LONGEST_OBJECT:
        return None
    starts = object_starts(text, keys)
    behind = answer_start(text[: max(starts, default=0)])  # the object's own texts may name a mark
    starts = [start for start in starts if start >= behind]
    return starts[0] if len(starts) == 1 else None


def object_start(text: str) -> int | None:
    """Return where the JSON object that ends a text begins; ``None`` if none of up to ``LONGEST_OBJECT`` ends it."""
    if not text.endswith("}"):
        return None
    depth, in_string = 0, False
    for mark in re.finditer(r'["{}\[\]]', text[: -LONGEST_OBJECT - 1 : -1]):
        at = len(text) - 1 - mark.start()
        if mark[0] == '"':
            in_string = not in_string or text[at - 1 : at] == "\\"
        elif not in_string:
            depth += 1 if mark[0] in "}]" else -1
            if depth == 0:
                return at if mark[0] == "{" else None
    return None


class Negotiator:
    """The formats and parameters that one model on one server takes, as far as they are known.

    It begins with the JSON schema, and asks for text once the server rejects formats or its first three replies break
    the schema. A parameter of ``REFUSABLE`` that a server names is renamed or left out, and remembered once a reply
    came. A fixed format never changes. Threads need no lock, because each thing that is learned is one assignment.
    """

    def __init__(self, fixed: Format | None = None) -> None:
        self.format = fixed or Format.JSON_SCHEMA
        self.changes: Changes = {}
        self._settled = self._fixed = fixed is not None
        self._ignored = 0

    async def ask(self, send: Callable[[Format, Changes], Awaitable[Reply]]) -> tuple[Reply, Format]:
        """Return the reply of ``send`` and its format; call it again with others while they are rejected."""
        format, changes = self.format, {**self.changes}
        while True:
            try:
                reply = await send(format, changes)
            except JudgeUnavailableError as error:
                message = _ERROR_HEAD.sub("", error.message, count=1) if error.fault is Fault.REJECTED else ""
                parameter = _refused_parameter(error, message)
                if parameter is not None and parameter not in changes:
                    changes[parameter] = REFUSABLE[parameter]
                elif format is Format.TEXT or self._fixed:
                    raise
                elif error.status in _REJECTING and names_format(message):
                    format = Format.TEXT
                else:
                    raise
            else:
                self.changes = {**self.changes, **changes}
                self.format = format if format is Format.TEXT else self.format
                return reply, format

    def note(self, format: Format, fault: Fault | None = None) -> None:
        """Note a reply's fault, ``None`` for a verdict; ask for plain text once the schema seems to be ignored."""
        if format is Format.JSON_SCHEMA:
            self._settled = self._settled or fault is None
            self._ignored += fault in (Fault.UNREADABLE, Fault.WRONG_SCHEMA)
            self.format = self.format if self._settled or self._ignored < _IGNORED_LIMIT else Format.TEXT


def apply_changes(options: Mapping[str, Any], changes: Changes) -> dict[str, Any]:
    """Return a request's options as a server takes them; if two get one name, the user's stays."""
    user_limit = "max_completion_tokens"  # only the user sets it; the judge's own is max_tokens
    items = sorted(options.items(), key=lambda option: option[0] == user_limit)  # the last of one name stays
    sent = {changes.get(name, name): value for name, value in items}
    if user_limit not in options and user_limit in (options.get("extra_body") or {}):
        sent.pop(user_limit, None)
    return {name: value for name, value in sent.items() if name is not None}


def _refused_parameter(error: JudgeUnavailableError, message: str) -> str | None:
    """Return the parameter that a server's error says it does not take; ``None`` if it names no parameter."""
    if error.status not in (400, 422) or not _COMPLAINT.search(message):
        return None
    if error.parameter in REFUSABLE:
        return error.parameter
    match = _PARAMETER.search(message)
    return match[0] if match else None
