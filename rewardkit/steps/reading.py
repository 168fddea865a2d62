"""What the steps of a completion are: turns, tool calls or labelled spans, with what stands before each.

Steps are those of the completion alone, never of the prompt:

- a *turn* is a message of the assistant; a completion that is text is one turn;
- a *tool call* stands in a message's ``tool_calls`` or ``function_call``, or is a block ``tool_use``. Its answer is the
  one with its id before the next turn of the assistant; where call or answer has no id, the one in the same place;
- a *span* is what stands between ``<label>`` and the next ``</label>`` in a turn's text, or goes to the end of the turn
  where that is missing. Tags inside a span are text.
"""

from __future__ import annotations

import functools
import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

from rewardkit.errors import CoercionError
from rewardkit.forms import why_no_text
from rewardkit.messages import ROLES, content_text, conversation
from rewardkit.rows.strict_json import decode
from rewardkit.types import STEP_KINDS, Message, Step, Text

MOST_STEPS = 1_000  # A completion of more steps fails, or it would cost a judge's fee for each
_Reader: TypeAlias = Callable[[Sequence[Message], int], Iterator["_Located"]]


class _Located(NamedTuple):
    """A step: which message it is of, and how many characters of its turn stand before it."""

    step: Step
    turn: int
    chars: int = 0


def steps_of(prompt: Text, completion: Text, each: str, labels: Sequence[str] = ()) -> Iterator[Step]:
    """Return the steps of a completion in order, each made when it is asked for, as ``before`` may be long.

    All turns of the prompt are before the first step. Raises CoercionError where prompt or completion is neither text
    nor messages or a role is unknown, and ValueError for more than :data:`MOST_STEPS`.
    """
    for of, text in (("prompt", prompt), ("completion", completion)):
        if (flaw := why_no_text(text)) is not None:
            raise CoercionError(f"{of}: {flaw}")
        _refuse_unknown_roles(of, text)
    messages = conversation(prompt, completion)
    first = 1 if isinstance(prompt, str) else len(prompt)
    readers: dict[str, _Reader] = {
        "turn": _turn,
        "tool_call": _tool_calls,
        "span": functools.partial(_spans, labels=labels),
    }
    read_turn = readers[each]
    turns = [turn for turn in range(first, len(messages)) if messages[turn]["role"] == "assistant"]
    entries = list(itertools.islice((entry for turn in turns for entry in read_turn(messages, turn)), MOST_STEPS + 1))
    if len(entries) > MOST_STEPS:
        raise ValueError(f"the completion has more than {MOST_STEPS:,} {STEP_KINDS[each]}; no more are scored")
    for index, (step, turn, chars) in enumerate(entries):
        text = content_text(messages[turn].get("content"))[:chars] if chars else ""
        begun = [{"role": "assistant", "content": text}] if text.strip() else []
        yield replace(step, index=index, count=len(entries), before=(*messages[:turn], *begun))


def _refuse_unknown_roles(of: str, text: Text) -> None:
    """Raise CoercionError for an unknown role: a turn whose role is misspelt would be passed over."""
    for index, message in enumerate(() if isinstance(text, str) else text):
        if message["role"] not in ROLES:
            raise CoercionError(
                f"{of}, message {index}: unknown role {message['role']!r}; the roles are {', '.join(ROLES)}"
            )


def _turn(whole: Sequence[Message], turn: int) -> Iterator[_Located]:
    message = whole[turn]
    yield _Located(Step(content_text(message.get("content")), "turn", messages=(message,)), turn)


def _spans(whole: Sequence[Message], turn: int, labels: Sequence[str]) -> Iterator[_Located]:
    text = content_text(whole[turn].get("content"))
    names = "|".join(map(re.escape, labels))
    for span in re.finditer(rf"<({names})(?:\s[^<>]*)?>(.*?)(?:</\1\s*>|\Z)", text, re.DOTALL):
        inner = span[2].strip()
        own = {"role": "assistant", "content": inner}
        yield _Located(Step(inner, "span", label=span[1], messages=(own,)), turn, span.start())


def _tool_calls(whole: Sequence[Message], turn: int) -> Iterator[_Located]:
    """Yield a turn's tool calls, each with the answer of its id; where one of the two has none, by their order."""
    answers = list(_answers(whole[turn + 1 :]))
    for number, (call, own) in enumerate(_calls(whole[turn])):
        matches = (answer for answer in answers if answer.id is not None and answer.id == call.get("id"))
        placed = (answer for answer in answers[number : number + 1] if answer.id is None or call.get("id") is None)
        answer = next(itertools.chain(matches, placed), None)
        name, text = _name_and_arguments(call)
        step = Step(text, "tool_call", name=name, arguments=_object(text or "{}"), messages=(own,))
        if answer is not None:
            step = replace(step, result=answer.text, messages=(own, answer.message))
        yield _Located(step, turn)


def _name_and_arguments(call: Mapping[str, Any]) -> tuple[str | None, str]:
    """Return the name of the tool that is called, and the arguments as they are written; objects as JSON."""
    inner = next((call[key] for key in ("function", "custom") if isinstance(call.get(key), Mapping)), call)
    candidates = (inner[key] for key in ("arguments", "input", "parameters") if inner.get(key) is not None)
    arguments: Any = next(candidates, {})
    name = inner.get("name")
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False, default=str)
    return name if isinstance(name, str) else None, text


def _calls(message: Message) -> Iterator[tuple[Mapping[str, Any], Message]]:
    """Yield each tool call of a message, and the message without the others."""
    calls, function_call = message.get("tool_calls") or (), message.get("function_call")
    content = message.get("content")
    blocks = content if isinstance(content, list | tuple) else ()
    other_blocks = [block for block in blocks if not _is_block("tool_use", block)]
    bare = {key: value for key, value in message.items() if key not in ("tool_calls", "function_call")}
    bare |= {"content": other_blocks} if blocks else {}
    for call in calls if isinstance(calls, list | tuple) else (calls,):
        yield _as_call(call), {**bare, "tool_calls": [call]}
    if function_call:
        yield _as_call(function_call), {**bare, "function_call": function_call}
    before = 0  # blocks that stay
    for block in blocks:
        if _is_block("tool_use", block):
            yield block, {**bare, "content": [*other_blocks[:before], block, *other_blocks[before:]]}
        else:
            before += 1


def _as_call(call: object) -> Mapping[str, Any]:
    return call if isinstance(call, Mapping) else {"arguments": call}


class _Answer(NamedTuple):
    """What a tool gave back: the id of the call, where there is one, its text and its message."""

    id: Any
    text: str
    message: Message


def _answers(following: Sequence[Message]) -> Iterator[_Answer]:
    """Yield each tool's answer before the next turn of the assistant."""
    for message in itertools.takewhile(lambda message: message["role"] != "assistant", following):
        content = message.get("content")
        if message["role"] in ("tool", "function"):
            yield _Answer(message.get("tool_call_id"), content_text(content), message)
            continue
        for block in content if isinstance(content, list | tuple) else ():
            if _is_block("tool_result", block):
                inner = block.get("content")
                text = content_text(inner if isinstance(inner, str | list | tuple | None) else str(inner))
                yield _Answer(block.get("tool_use_id"), text, {**message, "content": [block]})


def _is_block(kind: str, block: object) -> bool:
    return isinstance(block, Mapping) and block.get("type") == kind


def _object(text: str) -> dict[str, Any] | None:
    """Return the JSON object in a text; ``None`` for other text."""
    try:
        value = decode(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
