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

MOST_STEPS = 1_000
"""A completion of more steps fails, or it would cost a judge's fee for each."""
_Reader: TypeAlias = Callable[[Sequence[Message], int], Iterator["_Found"]]


class _Found(NamedTuple):
    """A step: which message it is of, and how many characters of its turn stand before it."""

    step: Step
    place: int
    chars: int = 0


def steps_of(prompt: Text, completion: Text, each: str, labels: Sequence[str] = ()) -> Iterator[Step]:
    """Return the steps of a completion in order, each made when it is asked for, as ``before`` may be long.

    Args:
        prompt: The prompt, whose turns are before all steps.
        completion: Text, or chat messages.
        each: One of :data:`~rewardkit.types.STEP_KINDS`.
        labels: The labels of spans.

    Raises:
        CoercionError: Prompt or completion is neither text nor a list of chat messages, or a role is not known.
        ValueError: There are more than :data:`MOST_STEPS`.
    """
    for of, given in (("prompt", prompt), ("completion", completion)):
        if (wrong := why_no_text(given)) is not None:
            raise CoercionError(f"{of}: {wrong}")
        _refuse_unknown_roles(of, given)
    whole = conversation(prompt, completion)
    first = 1 if isinstance(prompt, str) else len(prompt)
    readers: dict[str, _Reader] = {
        "turn": _turn,
        "tool_call": _tool_calls,
        "span": functools.partial(_spans, labels=labels),
    }
    read = readers[each]
    turns = [place for place in range(first, len(whole)) if whole[place]["role"] == "assistant"]
    every = (one for place in turns for one in read(whole, place))
    found = list(itertools.islice(every, MOST_STEPS + 1))
    if len(found) > MOST_STEPS:
        raise ValueError(f"the completion has more than {MOST_STEPS:,} {STEP_KINDS[each]}; no more are scored")
    for index, (step, place, chars) in enumerate(found):
        said = content_text(whole[place].get("content"))[:chars] if chars else ""
        begun = [{"role": "assistant", "content": said}] if said.strip() else []
        yield replace(step, index=index, count=len(found), before=(*whole[:place], *begun))


def _refuse_unknown_roles(of: str, given: Text) -> None:
    """Raise where a role is not known: a turn whose role is misspelt would be passed over."""
    for place, message in enumerate(() if isinstance(given, str) else given):
        if message["role"] not in ROLES:
            raise CoercionError(
                f"{of}, message {place}: unknown role {message['role']!r}; the roles are {', '.join(ROLES)}"
            )


def _turn(whole: Sequence[Message], place: int) -> Iterator[_Found]:
    message = whole[place]
    yield _Found(Step(content_text(message.get("content")), "turn", messages=(message,)), place)


def _spans(whole: Sequence[Message], place: int, labels: Sequence[str]) -> Iterator[_Found]:
    text = content_text(whole[place].get("content"))
    names = "|".join(map(re.escape, labels))
    for span in re.finditer(rf"<({names})(?:\s[^<>]*)?>(.*?)(?:</\1\s*>|\Z)", text, re.DOTALL):
        inner = span[2].strip()
        own = {"role": "assistant", "content": inner}
        yield _Found(Step(inner, "span", label=span[1], messages=(own,)), place, span.start())


def _tool_calls(whole: Sequence[Message], place: int) -> Iterator[_Found]:
    answers = list(_answers(whole[place + 1 :]))
    for number, (call, own) in enumerate(_calls(whole[place])):
        named = (one for one in answers if one.id is not None and one.id == call.get("id"))
        placed = (one for one in answers[number : number + 1] if one.id is None or call.get("id") is None)
        answer = next(itertools.chain(named, placed), None)
        name, text = _name_and_arguments(call)
        step = Step(text, "tool_call", name=name, arguments=_object(text or "{}"), messages=(own,))
        if answer is not None:
            step = replace(step, result=answer.text, messages=(own, answer.message))
        yield _Found(step, place)


def _name_and_arguments(call: Mapping[str, Any]) -> tuple[str | None, str]:
    """Return the name of the tool that is called, and the arguments as they are written; objects as JSON."""
    inner = next((call[key] for key in ("function", "custom") if isinstance(call.get(key), Mapping)), call)
    arguments = (inner[key] for key in ("arguments", "input", "parameters") if inner.get(key) is not None)
    given: Any = next(arguments, {})
    name = inner.get("name")
    text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False, default=str)
    return name if isinstance(name, str) else None, text


def _calls(message: Message) -> Iterator[tuple[Mapping[str, Any], Message]]:
    """Return each tool call of a message, and the message without the others."""
    calls, called, content = message.get("tool_calls") or (), message.get("function_call"), message.get("content")
    blocks = content if isinstance(content, list | tuple) else ()
    others = [one for one in blocks if not _is_block("tool_use", one)]
    bare = {key: value for key, value in message.items() if key not in ("tool_calls", "function_call")}
    bare |= {"content": others} if blocks else {}
    for call in calls if isinstance(calls, list | tuple) else (calls,):
        yield _as_call(call), {**bare, "tool_calls": [call]}
    if called:
        yield _as_call(called), {**bare, "function_call": called}
    before = 0
    for block in blocks:
        if _is_block("tool_use", block):
            yield block, {**bare, "content": [*others[:before], block, *others[before:]]}
        else:
            before += 1


def _as_call(call: Any) -> Mapping[str, Any]:
    return call if isinstance(call, Mapping) else {"arguments": call}


class _Answer(NamedTuple):
    """What a tool gave back: the id of the call, where there is one, its text and its message."""

    id: Any
    text: str
    message: Message


def _answers(following: Sequence[Message]) -> Iterator[_Answer]:
    """Return each tool's answer before the next turn of the assistant."""
    for message in itertools.takewhile(lambda one: one["role"] != "assistant", following):
        content = message.get("content")
        if message["role"] in ("tool", "function"):
            yield _Answer(message.get("tool_call_id"), content_text(content), message)
            continue
        for block in content if isinstance(content, list | tuple) else ():
            if _is_block("tool_result", block):
                inner = block.get("content")
                text = content_text(inner if isinstance(inner, str | list | tuple | None) else str(inner))
                yield _Answer(block.get("tool_use_id"), text, {**message, "content": [block]})


def _is_block(kind: str, block: Any) -> bool:
    return isinstance(block, Mapping) and block.get("type") == kind


def _object(text: str) -> dict[str, Any] | None:
    """Return the JSON object in a text; ``None`` for other text."""
    try:
        value = decode(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
