"""The visible content of a prompt and a completion: turns with tool calls and images, and what is not shown.

Reads messages of OpenAI, TRL and Anthropic; docs/reference/judge.md, Templates, has the heads of a message's parts.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from builtin_rewards.reading.thoughts import Shows, field_thought, thought_text, without_thoughts
from rewardkit import CoercionError
from rewardkit.extending import (
    ROLES,
    UNREAD,
    Block,
    BlockKind,
    answer_parts,
    is_thought,
    message_answers,
    message_calls,
    read_block,
    to_json,
    why_no_text,
    why_unknown_role,
)

_NOT_IN_A_HEAD = re.compile(r"[^\w.:/-]")


class Image(NamedTuple):
    """An image: its name in the text, and its address, or its bytes as one."""

    name: str
    url: str


@dataclass(frozen=True, slots=True)
class Turn:
    """One message; ``graded`` if it is the assistant's in a completion."""

    role: str  # Who speaks
    parts: tuple[tuple[str, str], ...]  # Head and text of each part
    said: str = ""  # Its own text, without thinking and tool results
    images: tuple[Image, ...] = ()  # The images in it
    uses_tools: bool = False  # Whether it defines a tool, calls one, or is a tool's result
    unseen: tuple[str, ...] = ()  # The types of its parts that no judge can see, such as `input_audio`
    graded: bool = False  # these names are in the repr that draws a ListwiseJudge's order, so in its cache keys
    thoughts: int = field(default=0, compare=False, repr=False)  # Characters of its thoughts that are left out

    @property
    def is_text(self) -> bool:
        """Whether it has nothing but text and thinking."""
        return not (self.uses_tools or self.images or self.unseen)

    @property
    def is_thought(self) -> bool:
        """Whether it has nothing but thoughts, which are left out."""
        return self.is_text and bool(self.thoughts) and not self.said.strip()

    @property
    def is_plain(self) -> bool:
        """Whether it has nothing but its own text."""
        return not self.uses_tools and [text for _, text in self.parts] == [self.said]


Turns = tuple[Turn, ...]


def turns_of(text: str | Sequence[Mapping[str, Any]], of: str, shows: Shows = "all", *, inside: bool = False) -> Turns:
    """Return the turns of a ``"prompt"`` or ``"completion"``: text or chat messages. Raises CoercionError.

    ``shows="answer"`` leaves out the thoughts of the assistant's turns, and turns of nothing else, but never the last
    turn to grade. ``inside`` says that the text begins within a thought; see :func:`without_thoughts`.
    """
    if (problem := why_no_text(text)) is not None:
        raise CoercionError(f"{of}: {problem}")
    role = "user" if of == "prompt" else "assistant"
    messages = [{"role": role, "content": text}] if isinstance(text, str) else text
    turns = [
        _turn(message, of, f"{of}, message {number}", shows, inside and not number)
        for number, message in enumerate(messages)
    ]
    last = max((number for number, turn in enumerate(turns) if turn.graded), default=-1)
    hidden = [number for number, turn in enumerate(turns) if number != last and turn.is_thought]
    visible = [turn for number, turn in enumerate(turns) if number not in hidden]
    if visible and hidden:
        chars = visible[-1].thoughts + sum(turns[number].thoughts for number in hidden)
        visible[-1] = replace(visible[-1], thoughts=chars)
    return tuple(visible)


def last_text(turns: Turns, role: str) -> str:
    """Return a role's last text; empty if the role says nothing."""
    return next((turn.said for turn in reversed(turns) if turn.role == role and turn.said), "")


def tools_turn(value: object) -> Turn | None:
    """Return a first turn that lists the tools, each a part such as ``tools search``; ``None`` without tools."""
    tools = [from_json(tool) for tool in _to_list(from_json(value))]
    parts = tuple(_tool_definition(tool) for tool in tools if _has_content(tool) and tool == tool)  # no NaN
    return Turn("tools", parts, uses_tools=True) if parts else None


@dataclass(slots=True)
class _Message:
    role: str
    head: str
    parts: list[tuple[str, str]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    images: list[Image] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)

    def add_thought(self, text: str) -> None:
        """Add a thought under a head of its own, so that it is no part of what is said."""
        self.add_text(text, f"{self.role} thinks")

    def add_text(self, text: str, head: str) -> None:
        """Add a text; texts in a row under one head become one part."""
        if text and self.parts and self.parts[-1][0] == head:
            self.parts[-1] = (head, "\n".join(filter(None, (self.parts[-1][1], text))))
        elif text:
            self.parts.append((head, text))
        self.texts += [text] if text and head == self.head else []

    def add_block(self, block: Any, head: str) -> None:
        """Add a block, but not a tool call or an empty text, which some data sets fill rows with."""
        if is_thought(block):
            return self.add_thought(thought_text(block) or "[not shown]")
        for part in read_block(block) if isinstance(block, str | Mapping) else ():
            if part.kind is BlockKind.ANSWER:
                self.add_answer(part, f"tool{_id_suffix(part.id)}")
            elif part.kind is not BlockKind.CALL:
                self.add_part(part, head)
        return None if isinstance(block, str | Mapping) else self.unseen.append(type(block).__name__)

    def add_answer(self, answer: Block, head: str) -> None:
        """Add what a tool gave back under a head of its own."""
        self.parts.append((head, ""))
        for part in answer_parts(answer.value):
            self.add_part(part, head)

    def add_part(self, part: Block, head: str) -> None:
        """Add a text or an image; another part is unseen, unless it is empty."""
        block = part.source
        if isinstance(block, Mapping) and (url := _image_url(block)) is not None:
            image = Image(hashlib.sha256(url.encode()).hexdigest()[:6], url)
            self.images.append(image)
            self.add_text(f"[image {image.name}]", head)
        elif part.kind is BlockKind.TEXT:
            self.add_text(part.text, head)
        elif part.type not in ("", "text", "refusal") or _holds_more(block):
            self.unseen.append(_safe_name(part.type or "text"))


def _turn(message: Mapping[str, Any], of: str, where: str, shows: Shows, inside: bool) -> Turn:
    """Return a message of a prompt or a completion as a turn; CoercionError says where a role is unknown."""
    role, name = message["role"], message.get("name") or ""
    if role not in ROLES:
        raise CoercionError(f"{where}: {why_unknown_role(role)}")
    graded = of == "completion" and role == "assistant"
    mark = ", to grade" if graded else ""
    head = f"{role}{name and f' {_safe_name(name)}'}{_id_suffix(message.get('tool_call_id'))}{mark}"
    content = _Message(role, head, [(head, line)] if (line := _name_line(name)) else [])
    thoughts = 0
    if shows == "answer" and role == "assistant":
        message, thoughts = without_thoughts(message, inside=inside)
    content.add_thought(field_thought(message))
    if is_thought(message):
        content.add_thought(thought_text(message))
        message = {**message, "content": None}
    if role in ("tool", "function"):
        answers = [*message_answers(message)]
        for answer in answers:
            content.add_answer(answer, head if len(answers) == 1 else f"tool{_id_suffix(answer.id)}")
    else:
        for block in _to_list(message.get("content") or message.get("refusal") or []):
            content.add_block(block, head)
        for answer in (answer for answer in message_answers(message) if answer.position < 0):
            content.add_answer(answer, f"tool{_id_suffix(answer.id)}")
    if message.get("audio"):
        content.unseen.append("audio")
    calls = [(f"{role} calls {call}{mark}", arguments) for call, arguments in _tool_calls(message)]
    return Turn(
        role,
        (*content.parts, *calls) or ((head, ""),),
        "\n".join(content.texts),
        tuple(content.images),
        bool(calls) or role in ("tool", "function") or any(part.startswith("tool") for part, _ in content.parts),
        tuple(content.unseen),
        graded,
        thoughts,
    )


def _first_text(mapping: Mapping[str, Any], *keys: str) -> str:
    return next((mapping[key] for key in keys if isinstance(mapping.get(key), str) and mapping[key]), "")


def _to_list(value: object) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else [value]


def _has_content(value: object) -> bool:
    """Return whether a value is more than ``None``, false, or an empty text or list."""
    return value is not None and value is not False and not (hasattr(value, "__len__") and not len(value))


def _image_url(block: Mapping[str, Any]) -> str | None:
    """Return the address of a block's image, whichever library made it; ``None`` if it has no address."""
    type_or_keys = str(block.get("type") or [*block])  # `image`, `image_url`, `input_image`; or a key with that word
    if "image" not in type_or_keys:
        return None
    image: Any = block.get("image_url") or block.get("image") or block.get("url") or block.get("source")
    if isinstance(image, Mapping):
        data = image.get("data")
        image = image.get("url") or (data and f"data:{image.get('media_type', 'image/png')};base64,{data}")
    if hasattr(image, "save"):  # Pillow's
        buffer = io.BytesIO()
        image.save(buffer, format="PNG")
        image = buffer.getvalue()
    if isinstance(image, bytes):
        image = f"data:image/png;base64,{base64.b64encode(image).decode()}"
    return image if isinstance(image, str) and image else None


def _tool_calls(message: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield name and arguments of each tool call; of a call without arguments, or in a form not read, the whole."""
    for call in message_calls(message):
        name = call.name or ("unnamed" if call.is_read else f"{call.type}, {UNREAD}")
        text = to_json(call.source if call.value is None else call.value)
        yield (
            f"{_safe_name(name)}{_id_suffix(call.id)}",
            "\n".join([raw, text] if (raw := _name_line(name)) else [text]),
        )


def _holds_more(block: object) -> bool:
    """Return whether a block has content beside its type."""
    return not isinstance(block, Mapping) or any(_has_content(block[key]) for key in block if key != "type")


def _tool_definition(tool: object) -> tuple[str, str]:
    inner = tool.get("function", tool) if isinstance(tool, Mapping) else tool
    if not isinstance(inner, Mapping) or not (name := _first_text(inner, "name")):
        return "tools", to_json(tool)
    parameters = to_json(_without_none(inner.get("parameters") or inner.get("input_schema") or {}))
    lines = (_name_line(name), _first_text(inner, "description"), f"parameters: {parameters}")
    return f"tools {_safe_name(name)}", "\n".join(filter(None, lines))


def _without_none(schema: object) -> object:
    """Return a schema without the keys of other rows, which data sets fill with ``None``."""
    if not isinstance(schema, Mapping):
        return schema
    return {key: _without_none(value) for key, value in schema.items() if value is not None}


def from_json(value: Any) -> Any:
    """Return the value of a JSON object, list or null, and any other text stripped; an array of numbers as a list."""
    if not isinstance(value, str):
        return value.tolist() if callable(getattr(type(value), "tolist", None)) else value
    try:
        content = json.loads(value)
    except (ValueError, RecursionError):
        return value.strip()
    return content if content is None or isinstance(content, list | dict) else value.strip()


def _id_suffix(value: object) -> str:
    return f" ({_safe_name(value)})" if value else ""


def _safe_name(value: object) -> str:
    """Return a name as it stands in a head, where it cannot pass for the head's own words."""
    return _NOT_IN_A_HEAD.sub("_", str(value))[:64]


def _name_line(name: object) -> str:
    """Return a line with the name, if a head cannot hold it; else an empty text."""
    return "" if _safe_name(name) == str(name) else f"name: {name}"
