"""The turns of a completion that a trainer hands over as one text: tool calls, tools' answers, and what came after.

Trainers decode the tokens of a whole conversation, with the tokens of the chat template or without them. A call is one
of :mod:`builtin_rewards.reading.tool_calls`' marked forms. Where the template's tokens are left out, an answer begins
behind a call with a line that is the name of a role, and ends with the assistant's: a model can write both itself, so
what tells the turns apart for certain is a trainer's messages, or its mask of the model's tokens.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from builtin_rewards.reading.chat_tokens import split_chat_tokens
from builtin_rewards.reading.thoughts import answer_start, strip_frame
from builtin_rewards.reading.tool_calls import BROKEN, ToolCall, marked_calls
from rewardkit.extending import message_calls

__all__ = ["read_parts", "read_tokens", "read_turns", "with_calls"]

_TOOL_ROLES = ("tool", "tools", "user", "observation", "ipython", "environment", "function", "tool_response")
_HEADER = re.compile(  # what opens a turn in ChatML, Llama, Gemma, GLM and Phi, gpt-oss
    r"(?:(?:<\|im_end\|>|<\|e[om][tm]_id\|>|<end_of_turn>|<\|end\|>|<\|call\|>)\s*)?"
    r"(?:<\|im_start\|>(?P<chatml>[\w.-]+)[^\n]{0,80}\n|<\|start_header_id\|>(?P<llama>\w+)<\|end_header_id\|>\s*"
    r"|<start_of_turn>(?P<gemma>\w+)\n|<\|(?P<glm>observation|assistant|user|system|tool)\|>\n?"
    r"|<\|start\|>(?P<oss>(?:assistant|user|system|developer)(?! to=)|[\w.-]+(?= to=assistant))(?: to=assistant)?)"
)
_END = re.compile(r"<\|im_end\|>|<\|e[om][tm]_id\|>|<end_of_turn>")
_LINE = re.compile(r"(?<=[>\]})`])\s*(?P<role>" + "|".join(_TOOL_ROLES) + r")\n")  # a role's name behind a call
_NEXT_TURN = re.compile(r"(?:assistant|model)\n")
_MOST_LINES = 100  # Lines that are the name of a role which are looked at
_WIDE = "<[|\uff5c]tool\u2581{}\u2581{}[|\uff5c]>"  # a token of DeepSeek's
_OUTPUTS, _OUTPUT = ([_WIDE.format(name, side) for side in ("begin", "end")] for name in ("outputs", "output"))
_BARE_ANSWERS, _ANSWERS = (  # the marks of answers that no header opens, and of one among several of a turn
    tuple((re.compile(begin), re.compile(end)) for begin, end in marks)
    for marks in (
        (_OUTPUTS, (r"\[TOOL_RESULTS\]", r"\[/TOOL_RESULTS\]")),
        (_OUTPUT, ("<tool_response>", "</tool_response>")),
    )
)
_CHANNEL = re.compile(r"<\|channel\|>[^<>]{0,80}<\|message\|>")


class _Turn(NamedTuple):
    """A part of the text: who speaks, and what."""

    role: str
    text: str


def read_turns(text: str) -> list[dict[str, Any]] | None:
    """Return the messages that a text holds; ``None`` where it is one turn of the assistant without a marked call.

    >>> call = '<tool_call>{"name": "add", "arguments": {"a": 2}}</tool_call>'
    >>> [(turn["role"], turn["content"]) for turn in read_turns(f"{call}user\\n4\\nassistant\\nIt is 4")]
    [('assistant', ''), ('tool', '4'), ('assistant', 'It is 4')]
    """
    messages: list[dict[str, Any]] = []
    for turn in _turns(text):
        if turn.role != "assistant":
            messages += _answers(turn, _ends_in_call(messages))
        elif turn.text.strip() or not messages:
            messages.append(with_calls({"role": "assistant", "content": turn.text}))
    return messages if len(messages) > 1 or "tool_calls" in messages[0] else None


def read_tokens(
    ids: Sequence[int], decode: Callable[[list[int]], str], special_ids: Collection[int]
) -> list[dict[str, Any]] | None:
    """Return what :func:`read_turns` does of a completion's tokens, where the special ones part the turns.

    A model that spells a token of the template has written text, and a turn that it opens without the token that ends
    its own, behind which it is not asked on, is text too.

    Args:
        ids: The completion's tokens.
        decode: What makes text of some of them, special ones included.
        special_ids: The special tokens of the model.
    """
    runs = groupby(ids, key=special_ids.__contains__)
    parts = [decode([*run]) if is_special else split_chat_tokens(decode([*run])) for is_special, run in runs]
    return read_turns(_HEADER.sub(_without_own_header, "".join(parts)))


def _without_own_header(header: re.Match[str]) -> str:
    """Return a header as it is, or broken by a blank where no token before it ended the model's turn."""
    is_own = header.lastgroup in ("chatml", "llama", "gemma") and header.start() and not _END.match(header[0])
    return f"{header[0][0]} {header[0][1:]}" if is_own else header[0]


def read_parts(parts: Iterable[tuple[bool, str]]) -> list[dict[str, Any]]:
    """Return the messages of a completion whose parts say which of them the model wrote: pairs of that and a text."""
    messages: list[dict[str, Any]] = []
    for is_of_model, text in parts:
        if is_of_model:
            messages.append(with_calls({"role": "assistant", "content": text}))
            continue
        headers = list(_HEADER.finditer(text))
        starts = [header.end() for header in headers] or [0]
        ends = [*(header.start() for header in headers[1:]), len(text)]
        roles = [_role_of(next(filter(None, header.groups()))) for header in headers] or ["tool"]
        for role, start, end in zip(roles, starts, ends, strict=True):
            if role != "assistant":  # where it opens the model's next turn
                messages += _answers(_Turn(role, text[start:end]), _ends_in_call(messages))
    return messages


def with_calls(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return an assistant's message with the marked calls of its text as ``tool_calls``, and the text without them.

    A message that has calls of its own, another role or content that is no text is returned as it is. Calls in a
    thought do not count. A call that cannot be read has no name.
    """
    content = message.get("content")
    if message.get("role") != "assistant" or not isinstance(content, str) or any(message_calls(message)):
        return dict(message)
    text = strip_frame(content)
    start = answer_start(text)
    marked = marked_calls(text[start:])
    if not marked.calls:
        return {**message, "content": text}
    calls = [_call(call, index) for index, call in enumerate(marked.calls)]
    return {**message, "content": (text[:start] + marked.rest).strip(), "tool_calls": calls}


def _call(call: ToolCall, index: int) -> dict[str, Any]:
    if call == BROKEN:
        return {"type": "function", "function": {"name": "", "arguments": "a call that cannot be read"}}
    arguments = "" if call.arguments is None else call.arguments
    return {"type": "function", "function": {"name": call.name, "arguments": arguments}}


def _turns(text: str) -> Iterator[_Turn]:
    """Yield the turns of a text: by the template's tokens, else by the lines that are left of them."""
    if _HEADER.search(text) is None:
        yield from _line_turns(text)
        return
    role, start = "assistant", 0
    for header in _HEADER.finditer(text):
        yield from _with_bare_answers(_Turn(role, text[start : header.start()]))
        role, start = _role_of(next(filter(None, header.groups()))), header.end()
    yield from _with_bare_answers(_Turn(role, text[start:]))


def _ends_in_call(messages: Sequence[Mapping[str, Any]]) -> bool:
    return bool(messages) and "tool_calls" in messages[-1]


def _role_of(name: str) -> str:
    return "assistant" if name in ("assistant", "model") else name


def _line_turns(text: str) -> Iterator[_Turn]:
    """Yield the turns of a text without the template's tokens, each of whose answers follows a call."""
    start = position = 0
    for _ in range(_MOST_LINES):
        line = _LINE.search(text, position)
        if line is None:
            break
        position = line.end()
        speech = text[start : line.start()]
        if not marked_calls(speech[answer_start(speech) :]).calls:
            continue  # prose that has such a line
        following = _NEXT_TURN.search(text, position)
        end, start = (len(text), len(text)) if following is None else following.span()
        yield from _with_bare_answers(_Turn("assistant", speech))
        yield _Turn(line["role"], text[position:end])
        position = start = len(text) - len(text[start:].lstrip())
    yield from _with_bare_answers(_Turn("assistant", text[start:]))


def _with_bare_answers(turn: _Turn) -> Iterator[_Turn]:
    """Yield an assistant's turn in parts where answers stand in it that no header opens."""
    start = 0
    for marks in _BARE_ANSWERS if turn.role == "assistant" else ():
        for answer in _between(turn.text, *marks):
            yield _Turn("assistant", turn.text[start : answer.start])
            yield _Turn("tool", answer.text)
            start = answer.end
    yield turn._replace(text=turn.text[start:])


class _Span(NamedTuple):
    """A text between two marks, and where these begin and end."""

    start: int
    text: str
    end: int


def _between(text: str, opening: re.Pattern[str], closing: re.Pattern[str]) -> Iterator[_Span]:
    """Yield what stands between pairs of marks, in time that grows with the text alone."""
    position = 0
    while (begin := opening.search(text, position)) and (end := closing.search(text, begin.end())):
        yield _Span(begin.start(), text[begin.end() : end.start()], end.end())
        position = end.end()


def _answers(turn: _Turn, follows_call: bool) -> Iterator[dict[str, Any]]:
    """Yield the messages of a turn that is not the assistant's: a tool's answers, or what a user says."""
    text = strip_frame(_CHANNEL.sub("", turn.text)).strip()
    wrapped = [answer.text.strip() for marks in _ANSWERS for answer in _between(text, *marks)]
    if turn.role in ("user", "system", "developer") and not (follows_call or wrapped):
        yield {"role": turn.role, "content": text}
        return
    tool = turn.role.removeprefix("functions.")
    name = {} if tool in _TOOL_ROLES else {"name": tool}
    for answer in wrapped or [text]:
        yield {"role": "tool", "content": answer, **name}
