"""What there is to see of a prompt and a completion: turns with their tool calls, images, and what cannot be shown.

Owns the reading of messages, whoever wrote them: OpenAI's form, TRL's, and Anthropic's blocks. How turns stand in a
prompt is ``prompt``'s, which of them a template shows ``prompted``'s.

A message is a part of its text and one of each tool call, each with a head that says who speaks: ``user``,
``assistant calls search (c1)``, ``tool search (c1)``. In a completion, what the assistant says and does has
``, to grade`` in its head. An image is ``[image DIGITS]`` in the text and is passed on beside it under that name.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rewardkit import CoercionError
from rewardkit.forms import why_no_text

_ROLES = ("system", "developer", "user", "assistant", "tool", "function")
_TOOLS = ("tool", "function")
_SHOWN_CHARS = 80
_TEXTS = ("text", "refusal", "thinking")
"""Where a block of content has its text."""


class Image(NamedTuple):
    """An image: its name in the text, and its address or its bytes as a ``data:`` address."""

    name: str
    url: str


@dataclass(frozen=True, slots=True)
class Turn:
    """One message.

    Attributes:
        role: Who speaks.
        parts: Head and text of each part.
        said: Its own text.
        images: The images in it.
        uses_tools: Whether it calls a tool, or is what a tool gave back.
        unseen: The types of its parts that no judge can be shown, such as ``input_audio``.
    """

    role: str
    parts: tuple[tuple[str, str], ...]
    said: str = ""
    images: tuple[Image, ...] = ()
    uses_tools: bool = False
    unseen: tuple[str, ...] = ()

    @property
    def is_text(self) -> bool:
        """Whether its text is all there is."""
        return not (self.uses_tools or self.images or self.unseen)


Turns = tuple[Turn, ...]


def turns_of(text: str | Sequence[Mapping[str, Any]], of: str) -> Turns:
    """Gives the turns of a prompt or a completion.

    Args:
        text: A string, or a list of chat messages.
        of: ``"prompt"`` or ``"completion"``.

    Raises:
        CoercionError: It is neither, or a message has a role that is not known; names it.
    """
    if (wrong := why_no_text(text)) is not None:
        raise CoercionError(f"{of}: {wrong}")
    role = "user" if of == "prompt" else "assistant"
    messages = [{"role": role, "content": text}] if isinstance(text, str) else text
    return tuple(_turn(message, f"{of}, message {number}") for number, message in enumerate(messages))


def last_said(turns: Turns, role: str) -> str:
    """Gives the last text of somebody; empty where there is none."""
    return next((turn.said for turn in reversed(turns) if turn.role == role and turn.said), "")


def to_grade(turns: Turns) -> Turns:
    """Gives the turns of a completion with a mark on the assistant's."""

    def marked(turn: Turn) -> Turn:
        parts = tuple((f"{head}, to grade", text) for head, text in turn.parts)
        return Turn(turn.role, parts) if turn.role == "assistant" else turn

    return tuple(map(marked, turns))


def _turn(message: Mapping[str, Any], where: str) -> Turn:
    role = message["role"]
    if role not in _ROLES:
        raise CoercionError(f"{where}: nobody knows who {role!r} is; the roles are {', '.join(_ROLES)}")
    blocks = list(_blocks(message))
    said = "".join(text for text, _, _ in blocks)
    calls = tuple(_calls(message))
    name = _short(message.get("name") or "")
    head = f"{role}{name and f' {name}'}{_id(message.get('tool_call_id'))}"
    own = () if calls and not said else ((head, said),)
    return Turn(
        role,
        own + tuple((f"{role} calls {called}", arguments) for called, arguments in calls),
        said,
        tuple(image for _, image, _ in blocks if image is not None),
        bool(calls) or role in _TOOLS or any(kind == "tool_result" for _, _, kind in blocks),
        tuple(kind for text, image, kind in blocks if not text and image is None and kind),
    )


def _blocks(message: Mapping[str, Any]) -> Iterator[tuple[str, Image | None, str]]:
    """Gives the text, the image and the type of each block of content but the calls; of an unseen one the type alone.

    A block without anything in it has no type either: data sets fill up what a row lacks.
    """
    content = message.get("content") or message.get("refusal") or ""
    if message.get("audio"):
        yield "", None, "audio"
    for block in [content] if isinstance(content, str) else content:
        if not isinstance(block, Mapping):
            yield (block, None, "") if isinstance(block, str) else ("", None, type(block).__name__)
            continue
        kind = str(block.get("type") or "text")
        if kind == "tool_use":
            continue
        if kind == "tool_result":
            inner = list(_blocks({"content": block.get("content")}))
            yield f"[result{_id(block.get('tool_use_id'))}] ", None, kind
            yield from inner
        elif text := next((block[key] for key in _TEXTS if isinstance(block.get(key), str) and block[key]), ""):
            yield text, None, kind
        elif (url := _image_url(block)) is not None:
            image = Image(hashlib.sha256(url.encode()).hexdigest()[:6], url)
            yield f"[image {image.name}]", image, kind
        else:
            yield "", None, "" if kind in _TEXTS else kind


def _image_url(block: Mapping[str, Any]) -> str | None:
    """Gives the address of a block's image, whichever library made the block; ``None`` where it holds none."""
    held: Any = block.get("image_url") or block.get("image") or block.get("url") or block.get("source")
    if "image" not in str(block.get("type")):
        return None
    if isinstance(held, Mapping):
        data = held.get("data")
        held = held.get("url") or (data and f"data:{held.get('media_type', 'image/png')};base64,{data}")
    if hasattr(held, "save"):  # Pillow's
        kept = io.BytesIO()
        held.save(kept, format="PNG")
        held = kept.getvalue()
    if isinstance(held, bytes):
        held = f"data:image/png;base64,{base64.b64encode(held).decode()}"
    return held if isinstance(held, str) and held else None


def _calls(message: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Gives the name and the arguments of each tool call: ``tool_calls``, ``function_call`` and ``tool_use``."""
    content, calls = message.get("content"), message.get("tool_calls") or ()
    listed = [*calls] if isinstance(calls, list | tuple) else [calls]
    listed += [message["function_call"]] if message.get("function_call") else []
    blocks = content if isinstance(content, list | tuple) else ()
    for call in [*listed, *(one for one in blocks if isinstance(one, Mapping) and one.get("type") == "tool_use")]:
        outer = call if isinstance(call, Mapping) else {"arguments": call}
        function = outer.get("function")
        inner = function if isinstance(function, Mapping) else outer
        arguments = inner.get("arguments", inner.get("input"))
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False, default=str)
        yield f"{_short(inner.get('name') or '?')}{_id(outer.get('id'))}", text


def _id(value: object) -> str:
    return f" ({_short(value)})" if value else ""


def _short(value: object) -> str:
    return " ".join(str(value).split())[:_SHOWN_CHARS]
