"""What there is to see of a prompt and a completion: turns with their tool calls, images, and what cannot be shown.

Owns the reading of messages, whoever wrote them: OpenAI's form, TRL's, and Anthropic's blocks. How turns stand in a
prompt is ``prompt``'s, which of them a template shows ``prompted``'s.

A message is a part of its text, one of its thinking, and one of each tool call and result, each with a head that says
who speaks: ``user``, ``assistant thinks``, ``assistant calls search (c1)``, ``tool search (c1)``. In a completion, what
the assistant says and does has ``, to grade`` in its head. Names stand in a head in safe characters; a name that has
others stands in the text below. An image is ``[image DIGITS]`` in the text and is passed on beside it under that name.
"""

from __future__ import annotations

import base64
import hashlib
import io
import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from rewardkit import CoercionError
from rewardkit.forms import why_no_text

_ROLES = ("system", "developer", "user", "assistant", "tool", "function")
_TOOLS = ("tool", "function")
_NAME_CHARS = 64
_NOT_IN_A_HEAD = re.compile(r"[^\w.:/-]")
_TEXTS = ("text", "refusal")
"""Where a block of content has its text."""
_THOUGHTS = ("thinking", "redacted_thinking")
"""Types of blocks of thinking."""
_REASONING = ("reasoning_content", "reasoning")
"""Where a message has its thinking."""
_ARGUMENTS = ("arguments", "input", "parameters")
"""Where a tool call has its arguments."""


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
        said: Its own text, without thinking and tool results.
        images: The images in it.
        uses_tools: Whether it calls a tool, or is what a tool gave back.
        unseen: The types of its parts that no judge can be shown, such as ``input_audio``.
        graded: Whether it is the assistant's in a completion.
    """

    role: str
    parts: tuple[tuple[str, str], ...]
    said: str = ""
    images: tuple[Image, ...] = ()
    uses_tools: bool = False
    unseen: tuple[str, ...] = ()
    graded: bool = False

    @property
    def is_text(self) -> bool:
        """Whether its text, and perhaps thinking, is all there is."""
        return not (self.uses_tools or self.images or self.unseen)

    @property
    def is_plain(self) -> bool:
        """Whether what it says is all that there is to show."""
        return not self.uses_tools and [text for _, text in self.parts] == [self.said]


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
    found = [_turn(message, f"{of}, message {number}") for number, message in enumerate(messages)]
    return tuple(replace(turn, graded=of == "completion" and turn.role == "assistant") for turn in found)


def last_said(turns: Turns, role: str) -> str:
    """Gives the last text of somebody; empty where there is none."""
    return next((turn.said for turn in reversed(turns) if turn.role == role and turn.said), "")


def tools_turn(value: object) -> Turn | None:
    """Gives the turn, a conversation's first, that tells which tools there were to call; ``None`` where none were.

    Each tool is a part, ``tools search``, of its description and its parameters as JSON.

    Args:
        value: What a row has in its column ``tools``: a list of OpenAI's or Anthropic's definitions of functions, or
            one of them; these, or the whole list, may be JSON. What is neither stands there as it is, as JSON.
    """
    tools = [_from_json(one) for one in _listed(_from_json(value))]
    parts = tuple(_defined(tool) for tool in tools if _holds(tool))
    return Turn("tools", parts, uses_tools=True) if parts else None


def to_grade(turns: Turns) -> Turns:
    """Gives the turns of a completion with a mark on the assistant's."""

    def marked(turn: Turn) -> Turn:
        if not turn.graded:
            return turn
        other = (f"{turn.role} thinks", *(head for head, _ in turn.parts if head.startswith("tool")))
        return replace(
            turn, parts=tuple((head if head in other else f"{head}, to grade", text) for head, text in turn.parts)
        )

    return tuple(map(marked, turns))


class _Block(NamedTuple):
    """What a block of content comes to: under whose head, and its text, image, or type that cannot be shown."""

    head: str
    text: str = ""
    image: Image | None = None
    unseen: str = ""
    begins: bool = False


def _turn(message: Mapping[str, Any], where: str) -> Turn:
    role = message["role"]
    if role not in _ROLES:
        raise CoercionError(f"{where}: nobody knows who {role!r} is; the roles are {', '.join(_ROLES)}")
    name = message.get("name") or ""
    head = f"{role}{name and f' {_safe(name)}'}{_id(message.get('tool_call_id'))}"
    blocks = [*_thoughts(message, role), *_blocks(_content(message), head, role)]
    said = "\n".join(block.text for block in blocks if block.head == head and block.text)
    calls = tuple(_calls(message))
    named = [_Block(head, raw)] if (raw := _raw(name)) else []
    own = tuple(part for part in _parts([*named, *blocks]) if part[1] or part[0].startswith("tool"))
    shown = own + tuple((f"{role} calls {called}", arguments) for called, arguments in calls)
    return Turn(
        role,
        shown or ((head, ""),),
        said,
        tuple(block.image for block in blocks if block.image is not None),
        bool(calls) or role in _TOOLS or any(whose.startswith("tool") for whose, _ in own),
        tuple(block.unseen for block in blocks if block.unseen),
    )


def _parts(blocks: Sequence[_Block]) -> Iterator[tuple[str, str]]:
    """Gives head and text of what stands under one head in a row; each tool result stands by itself."""
    begun = itertools.accumulate(block.begins for block in blocks)
    for (head, _), group in itertools.groupby(zip(blocks, begun, strict=True), key=lambda one: (one[0].head, one[1])):
        yield head, "\n".join(block.text for block, _ in group if block.text)


def _content(message: Mapping[str, Any]) -> list[Any]:
    content = message.get("content") or message.get("refusal") or ""
    return [*_listed(content), *([{"type": "audio", "audio": message["audio"]}] if message.get("audio") else [])]


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else [value]


def _thoughts(message: Mapping[str, Any], role: str) -> Iterator[_Block]:
    texts = (message.get(key) for key in _REASONING)
    if thought := next((text for text in texts if isinstance(text, str) and text), ""):
        yield _Block(f"{role} thinks", thought)


def _blocks(content: Sequence[Any], head: str, role: str) -> Iterator[_Block]:
    """Gives what the blocks of content come to, but the calls.

    A block of text without anything in it comes to nothing: data sets fill up what a row lacks. One that holds what
    cannot be read is unseen.
    """
    for block in content:
        if not isinstance(block, Mapping):
            yield _Block(head, block) if isinstance(block, str) else _Block(head, unseen=type(block).__name__)
            continue
        kind = _safe(block.get("type") or "text")
        if kind == "tool_result":
            of = f"tool{_id(block.get('tool_use_id'))}"
            yield _Block(of, begins=True)
            inner = block.get("content")
            yield from _blocks([] if inner is None else _listed(inner), of, role)
        elif text := next((block[key] for key in _TEXTS if isinstance(block.get(key), str) and block[key]), ""):
            yield _Block(head, text)
        elif kind in _THOUGHTS:
            thought = block.get("thinking")
            yield _Block(f"{role} thinks", thought if isinstance(thought, str) and thought else "[not shown]")
        elif (url := _image_url(block)) is not None:
            image = Image(hashlib.sha256(url.encode()).hexdigest()[:6], url)
            yield _Block(head, f"[image {image.name}]", image)
        elif kind != "tool_use" and (kind not in _TEXTS or any(_holds(block[key]) for key in block if key != "type")):
            yield _Block(head, unseen=kind)


def _holds(value: object) -> bool:
    """Whether there is anything in a value: more than nothing, or empty text or lists."""
    return value is not None and value is not False and not (hasattr(value, "__len__") and not len(value))


def _image_url(block: Mapping[str, Any]) -> str | None:
    """Gives the address of a block's image, whichever library made the block; ``None`` where it holds none."""
    held: Any = block.get("image_url") or block.get("image") or block.get("url") or block.get("source")
    if "image" not in str(block.get("type") or [*block]):
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
        found = (outer.get(key) for key in ("function", "custom"))
        inner = next((one for one in found if isinstance(one, Mapping)), outer)
        arguments = next((inner[key] for key in _ARGUMENTS if inner.get(key) is not None), call)
        text = arguments if isinstance(arguments, str) else _to_json(arguments)
        name = inner.get("name") or "unnamed"
        yield f"{_safe(name)}{_id(outer.get('id'))}", "\n".join([raw, text] if (raw := _raw(name)) else [text])


def _defined(tool: Any) -> tuple[str, str]:
    """Gives head and text of a tool's definition."""
    inner = tool.get("function", tool) if isinstance(tool, Mapping) else tool
    name = inner.get("name") if isinstance(inner, Mapping) else None
    if not isinstance(name, str) or not name:
        return "tools", tool if isinstance(tool, str) else _to_json(tool)
    described = inner.get("description") or ""
    takes = inner.get("parameters") or inner.get("input_schema") or {}
    words = (_raw(name), str(described), f"parameters: {_to_json(_without_none(takes))}")
    return f"tools {_safe(name)}", "\n".join(line for line in words if line)


def _without_none(value: Any) -> Any:
    """Gives a schema without the keys of other rows, which data sets fill up with nothing."""
    if isinstance(value, Mapping):
        return {key: _without_none(one) for key, one in value.items() if one is not None}
    return value


def _from_json(value: Any) -> Any:
    """Gives what a text says where it is a JSON object or list, an array as a list, and other values as they are."""
    if isinstance(value, str) and value.strip()[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    if isinstance(value, str):
        return value.strip()
    return value.tolist() if callable(getattr(type(value), "tolist", None)) else value


def _to_json(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=str, skipkeys=True)
    except (ValueError, RecursionError):  # it holds itself, or is too deep
        return f"[{type(value).__name__}: no JSON]"


def _id(value: object) -> str:
    return f" ({_safe(value)})" if value else ""


def _safe(value: object) -> str:
    """Gives a name as it stands in a head, where none may pass for the head's own words."""
    return _NOT_IN_A_HEAD.sub("_", str(value))[:_NAME_CHARS]


def _raw(name: object) -> str:
    """Gives the line of a text that tells a name which a head cannot hold; empty for others."""
    return "" if _safe(name) == str(name) else f"name: {name}"
