"""What the steps of a completion are: turns, tool calls or labelled spans, with what stands before each.

Steps are those of the completion alone, never of the prompt:

- a *turn* is a message of the assistant; a completion that is text is one turn;
- a *tool call* stands in a message's ``tool_calls`` or ``function_call``, or is a block; :mod:`rewardkit.blocks` has
  the shapes, and :mod:`rewardkit.steps.pairing` the rules by which it gets its answer;
- a *span* is what stands between ``<label>`` and the next ``</label>`` in a turn's text, or goes to the end of the turn
  where that is missing. Tags inside a span are text.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

from rewardkit.blocks.block import Block, BlockKind, to_json
from rewardkit.blocks.calls import CALL_FIELDS, message_answers, message_calls, read_block
from rewardkit.blocks.content import answer_text
from rewardkit.errors import CoercionError
from rewardkit.forms import why_no_text
from rewardkit.messages import ROLES, conversation, message_text, why_unknown_role
from rewardkit.rows.strict_json import decode
from rewardkit.shown.text import counted
from rewardkit.steps.pairing import Marked, pair
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
        "tool_call": functools.partial(_tool_calls, first=first),
        "span": functools.partial(_spans, labels=labels),
    }
    read_turn = readers[each]
    turns = [turn for turn in range(first, len(messages)) if messages[turn]["role"] == "assistant"]
    entries = list(itertools.islice((entry for turn in turns for entry in read_turn(messages, turn)), MOST_STEPS + 1))
    if len(entries) > MOST_STEPS:
        raise ValueError(f"the completion has more than {MOST_STEPS:,} {STEP_KINDS[each]}; no more are scored")
    ordinals = {turn: ordinal for ordinal, turn in enumerate(turns)}
    for index, (step, turn, chars) in enumerate(entries):
        text = message_text(messages[turn])[:chars] if chars else ""
        begun = [{"role": "assistant", "content": text}] if text.strip() else []
        before = (*messages[:turn], *begun)
        yield replace(step, index=index, count=len(entries), before=before, turn=ordinals[turn])


def count_turns(completion: Text) -> int:
    """Return how many turns of the assistant a completion has; a text is one."""
    return 1 if isinstance(completion, str) else sum(message["role"] == "assistant" for message in completion)


def why_no_calls(completion: Text) -> str:
    """Return words on a completion without tool calls: answers without a call, or where calls may stand; ``""``."""
    count = _count_answers(completion)
    if count:
        return f", and {counted(count, 'answer')} of tools without a call"
    return " in its messages; each='span' reads those that are written in the text, by their tags"


def count_surplus(steps: Sequence[Step], completion: Text) -> int:
    """Return how many answers of tools belong to no call, where each of these calls has its own; else 0."""
    if len(steps) == MOST_STEPS or any(step.no_result for step in steps):
        return 0
    return max(0, _count_answers(completion) - sum(step.result is not None for step in steps))


def _count_answers(completion: Text) -> int:
    messages = () if isinstance(completion, str) else completion
    return sum(1 for message in messages for _ in message_answers(message))


def _refuse_unknown_roles(of: str, text: Text) -> None:
    """Raise CoercionError for an unknown role: a turn whose role is misspelt would be passed over."""
    for index, message in enumerate(() if isinstance(text, str) else text):
        if message["role"] not in ROLES:
            raise CoercionError(f"{of}, message {index}: {why_unknown_role(message['role'])}")


def _turn(whole: Sequence[Message], turn: int) -> Iterator[_Located]:
    message = whole[turn]
    yield _Located(Step(message_text(message), "turn", messages=(message,)), turn)


def _spans(whole: Sequence[Message], turn: int, labels: Sequence[str]) -> Iterator[_Located]:
    text = message_text(whole[turn])
    names = "|".join(map(re.escape, labels))
    for span in re.finditer(rf"<({names})(?:\s[^<>]*)?>(.*?)(?:</\1\s*>|\Z)", text, re.DOTALL):
        inner = span[2].strip()
        own = {"role": "assistant", "content": inner}
        yield _Located(Step(inner, "span", label=span[1], messages=(own,)), turn, span.start())


def _tool_calls(messages: Sequence[Message], turn: int, first: int) -> Iterator[_Located]:
    """Yield the tool calls of a round, at its first turn: of the assistant's turns in a row.

    ``first`` is where the completion begins.
    """
    if turn > first and messages[turn - 1]["role"] == "assistant":
        return
    turns = list(itertools.takewhile(lambda index: messages[index]["role"] == "assistant", range(turn, len(messages))))
    following = range(turns[-1] + 1, len(messages))
    behind = itertools.takewhile(lambda index: messages[index]["role"] != "assistant", following)
    answers = [answer for index in (*turns, *behind) for answer in _answers(messages, index)]
    calls = list(itertools.islice((call for index in turns for call in _calls(messages, index)), MOST_STEPS + 1))
    for call, match in zip(
        calls, pair([call.mark for call in calls], [answer.mark for answer in answers]), strict=True
    ):
        step = replace(_step_of(call), no_result=match.problem)
        if match.answer is not None:
            answer = answers[match.answer]
            is_inside = answer.block.source is call.block.source
            step = replace(step, result=answer.text, messages=(call.message, *([] if is_inside else [answer.message])))
        yield _Located(step, call.mark.position[0])


class _Entry(NamedTuple):
    """A call, or an answer: what it is known by, its block, its message without the others, and an answer's text."""

    mark: Marked
    block: Block
    message: Message
    text: str = ""


def _calls(messages: Sequence[Message], turn: int) -> Iterator[_Entry]:
    """Yield each tool call of a turn, with the turn's message without the other calls and without answers."""
    message = messages[turn]
    content = message.get("content")
    blocks = content if isinstance(content, list | tuple) else ()
    others = [index for index, block in enumerate(blocks) if not _is_of_tools(block)]
    bare = {key: value for key, value in message.items() if key not in CALL_FIELDS}
    bare |= {"content": [blocks[index] for index in others]} if blocks else {}
    for call in message_calls(message):
        if call.position >= 0:
            own = {**bare, "content": [blocks[index] for index in sorted([*others, call.position])]}
        else:
            own = {**bare, **_field_with(message, call.source)}
        yield _Entry(Marked((turn, 2 * call.position), call.id, call.name, call.value), call, own)


def _field_with(message: Message, call: object) -> Message:
    """Return the field of a message that has a call, with this call alone."""
    for field in CALL_FIELDS:
        calls = message.get(field)
        if isinstance(calls, list | tuple) and any(entry is call for entry in calls):
            return {field: [call]}
        if calls is call:
            return {field: call}
    return {}


def _is_of_tools(block: object) -> bool:
    return any(part.kind in (BlockKind.CALL, BlockKind.ANSWER) for part in read_block(block))


def _answers(messages: Sequence[Message], index: int) -> Iterator[_Entry]:
    """Yield each answer of a tool in a message, as a message of its own."""
    message = messages[index]
    for answer in message_answers(message):
        text = answer_text(answer.value)
        own: Message = message if answer.position < 0 else {**message, "content": [answer.source]}
        if message["role"] == "assistant":  # of a tool that the provider ran
            own = {"role": "tool", "content": text}
            own |= {key: value for key, value in (("tool_call_id", answer.id), ("name", answer.name)) if value}
        yield _Entry(Marked((index, 2 * answer.position + 1), answer.id, answer.name, text), answer, own, text)


def _step_of(call: _Entry) -> Step:
    """Return a call as a step, without its answer: its text is the arguments as they are written."""
    block = call.block
    if not block.is_read:
        return Step(to_json(block.source), "tool_call", messages=(call.message,))
    text = to_json({} if block.value is None else block.value)
    return Step(text, "tool_call", name=block.name, arguments=_object(text or "{}"), messages=(call.message,))


def _object(text: str) -> dict[str, Any] | None:
    """Return the JSON object in a text; ``None`` for other text."""
    try:
        value = decode(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
