"""How a server is asked for JSON, what may stand around it in a reply, and what of a request a server takes.

What the JSON means is ``verdict``'s; sending, retries and deadlines are the endpoint's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from typing import Any, TypeAlias

from builtin_rewards.judge.endpoint.foreign import names_format
from builtin_rewards.judge.errors import Fault, JudgeUnavailableError
from builtin_rewards.judge.messages import Reply


class Format(StrEnum):
    """How a reply's form is asked for: what the server holds the model to."""

    JSON_SCHEMA = "json_schema"
    JSON_OBJECT = "json_object"
    """The form stands in the prompt. Only where the user says so."""
    TEXT = "text"
    """The form stands in the prompt, and the verdict ends the text."""


LONGEST_OBJECT = 100_000
"""Characters of a verdict, so that no reply holds up the event loop."""
REFUSABLE: Mapping[str, str | None] = {
    "max_tokens": "max_completion_tokens",
    "max_completion_tokens": "max_tokens",
    **dict.fromkeys(("temperature", "top_p", "seed", "logprobs", "top_logprobs")),
}
"""By a parameter that some servers and models refuse: its other name; ``None`` where it can be left out."""
Changes: TypeAlias = Mapping[str, str | None]
"""By a parameter that a server refuses: the name it goes by there, or ``None`` to leave it out."""

_IGNORED_LIMIT = 3
"""Replies that are not what the server was to enforce, before any that is: it pays no heed to the schema."""
_REJECTING = frozenset({400, 404, 422, 500})
"""What a server says of a format that it does not take, ``llama_cpp.server`` the last."""
_SAID = re.compile(r".*?HTTP \d{3}: ", re.DOTALL)
"""What stands before the server's words in an endpoint's error: address and model, which may be named anything."""
_COMPLAINT = re.compile(
    r"(not|n't|un) ?-?(support|allow|permit|accept|recogni[sz]ed|known|expected)|extra|deprecated|only the default",
    re.IGNORECASE,
)
_PARAMETER = re.compile(rf"(?<!\w)({'|'.join(REFUSABLE)})(?!\w)")
_FENCE_OPENS = re.compile(r"```(?:json)?\Z", re.IGNORECASE)


def response_format(format: Format, schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return ``response_format`` as ``chat.completions.create`` takes it; ``None``: leave it out."""
    if format is Format.JSON_SCHEMA:
        return {"type": "json_schema", "json_schema": {"name": "verdict", "schema": dict(schema), "strict": True}}
    return {"type": "json_object"} if format is Format.JSON_OBJECT else None


def format_instruction(schema: Mapping[str, Any]) -> str:
    """Return the words that ask for an object of this schema, for the end of a prompt; ``json_object`` wants a "JSON".

    The example has place holders, no values: a model that repeats it gives no verdict, and no grade is suggested.
    """
    return (
        "Reply with one JSON object in exactly this form, with these keys in this order:\n\n"
        f"{_example(schema)}\n\n"
        "Replace each <...> with your own value. A text stands in double quotes, a number does not. "
        "The object ends your reply: write nothing after it."
    )


def _example(schema: Mapping[str, Any]) -> str:
    if "properties" in schema:
        parts = [f"{json.dumps(key)}: {_example(part)}" for key, part in schema["properties"].items()]
        return "{" + ", ".join(parts) + "}"
    values = schema.get("enum")
    if not values:
        return '"<one or two sentences>"'
    if all(type(value) is int for value in values):
        return f"<a whole number from {values[0]} to {values[-1]}>"
    return f"<one of {', '.join(json.dumps(value, ensure_ascii=False) for value in values)}>"


def object_text(text: str, format: Format) -> str:
    """Return the part of a reply that must be the JSON object.

    Of ``TEXT`` it is the object that ends the reply, closing fence aside; of the others the whole reply, a code fence
    and reasoning that ends with ``</think>`` aside. So no verdict quoted on the way counts, but at the reply's end.

    Raises:
        ValueError: There is no such part, or it is longer than ``LONGEST_OBJECT``; says why.
    """
    text = text.strip()
    bare = text.removesuffix("```").rstrip()
    start = object_start(bare)
    is_whole = format is not Format.TEXT and (start is None or text.startswith("{"))
    if is_whole and len(text) <= LONGEST_OBJECT:
        return text
    if is_whole or start is None:
        raise ValueError(f"no JSON object of at most {LONGEST_OBJECT:,} characters ends it")
    before = bare[:start].rstrip()
    if before.startswith("<think>") and "</think>" not in before:
        raise ValueError("the object stands in reasoning that has no </think>")
    if len(bare) < len(text):
        opened = _FENCE_OPENS.search(before)
        if opened is None:
            raise ValueError("a closing fence follows the object, and no fence opens before it")
        before = before[: opened.start()].rstrip()
    if format is not Format.TEXT and before and not before.endswith("</think>"):
        raise ValueError("there is more than the JSON object; format='text' lets words stand before it")
    return bare[start:]


def object_start(text: str) -> int | None:
    """Return where the JSON object that ends a text begins; ``None`` where none of up to ``LONGEST_OBJECT`` ends it.

    Read from the end, the text is in no doubt: behind the object's last brace no string is open, and inside a string
    the quotation mark that no backslash precedes is the one that opens it.
    """
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
    """What is known of the formats and parameters that one model on one server takes.

    It begins with the JSON schema. A server that rejects a request with words about formats is asked for text, and so
    is one whose first three replies are not what it was to enforce. One that names a parameter of ``REFUSABLE`` is
    asked with it renamed or left out, which is remembered once a reply came of it. A fixed format is never left.

    Event loops of several threads may use one without a lock: each thing that is learned is one assignment.
    """

    def __init__(self, fixed: Format | None = None) -> None:
        self.format = fixed or Format.JSON_SCHEMA
        self.changes: Changes = {}
        self._settled = self._fixed = fixed is not None
        self._ignored = 0

    async def ask(self, send: Callable[[Format, Changes], Awaitable[Reply]]) -> tuple[Reply, Format]:
        """Return the reply of ``send`` and its format; it is called again with others where those were rejected."""
        format, changes = self.format, {**self.changes}
        while True:
            try:
                reply = await send(format, changes)
            except JudgeUnavailableError as error:
                said = _SAID.sub("", error.words, count=1) if error.fault is Fault.REJECTED else ""
                parameter = _refused(error, said)
                if parameter is not None and parameter not in changes:
                    changes[parameter] = REFUSABLE[parameter]
                elif format is Format.TEXT or self._fixed or error.status not in _REJECTING or not names_format(said):
                    raise
                else:
                    format = Format.TEXT
            else:
                self.changes = {**self.changes, **changes}
                self.format = format if format is Format.TEXT else self.format
                return reply, format

    def note(self, format: Format, fault: Fault | None = None) -> None:
        """Takes note of what became of a reply: the fault of reading it, or ``None`` for a verdict."""
        if format is Format.JSON_SCHEMA:
            self._settled = self._settled or fault is None
            self._ignored += fault in (Fault.UNREADABLE, Fault.WRONG_SCHEMA)
            self.format = self.format if self._settled or self._ignored < _IGNORED_LIMIT else Format.TEXT


def changed(options: Mapping[str, Any], changes: Changes) -> dict[str, Any]:
    """Return a request's options as a server takes them; of two by one name that which only a user sets."""
    users = "max_completion_tokens"
    ordered = sorted(options.items(), key=lambda one: one[0] == users)
    sent = {changes.get(name, name): value for name, value in ordered}
    if users not in options and users in (options.get("extra_body") or {}):
        sent.pop(users, None)
    return {name: value for name, value in sent.items() if name is not None}


def _refused(error: JudgeUnavailableError, said: str) -> str | None:
    """Return the parameter that an error's words say a server does not take; ``None`` where they name none."""
    if error.status not in (400, 422) or not _COMPLAINT.search(said):
        return None
    named = _PARAMETER.search(said)
    return error.parameter if error.parameter in REFUSABLE else named[0] if named else None
