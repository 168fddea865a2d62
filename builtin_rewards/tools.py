"""A reward for tool calls: are they the ones that the row expects."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from builtin_rewards.adjustable import adjustable
from builtin_rewards.reading.answer import Rule, final_answer
from builtin_rewards.structured import json_text, read_json
from rewardkit import Message, Reward, Score, reward

WEIGHTS = (0.2, 0.3, 0.5)
"""What the name, the arguments' names and the arguments' values of a call are worth."""

_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_MARKS = ("<|python_tag|>", "[TOOL_CALLS]")
"""What Llama and Mistral begin their calls with."""
_NO_CALL = ("", "[]", "null", "none")
_MAX_DEPTH = 100
"""Nesting of expected arguments, so that comparing them cannot recurse too deep."""
_MAX_EXTRA = 10
"""So many times the calls expected, and as many more, are compared; with more of them the score is 0."""
_SHOWN_CHARS = 80


class Call(NamedTuple):
    """One tool call.

    Attributes:
        name: The tool's name; empty where what was written is no call.
        arguments: By name; ``None`` where what was written is no JSON object.
    """

    name: str
    arguments: dict[str, Any] | None


@adjustable
def tool_call(*, weights: tuple[float, float, float] = WEIGHTS) -> Reward[..., Score]:
    """Settings of ``tool_call``.

    Args:
        weights: What the name, the arguments' names and the arguments' values of a call are worth; they sum to 1.
            ``(0, 0, 1)`` pays for values alone; ``tool_call`` never pays for a call with another name.

    Raises:
        ValueError: A weight is below 0, or they do not sum to 1.
    """
    if len(weights) != 3 or min(weights) < 0 or abs(sum(weights) - 1.0) > 1e-9:
        raise ValueError(f"tool_call: weights={weights!r} must be three numbers from 0 up that sum to 1")
    shares = tuple(weights)

    @reward(score_range=(0, 1))
    def tool_call(completion: str | list[Message], answer: Any) -> Score:
        """How well the completion's tool calls are the expected ones, 0 to 1.

        Formula: the sum over matched pairs of 0.2 + 0.3 * names + 0.5 * values, divided by max(calls expected, calls
        made). names is |both| / |either| over the arguments' names, values the same with equal values alone in
        |both|; both are 1 where neither call has arguments. Only calls of the same name are matched, each once and
        in any order, the best pairs first. So a missing call, an extra one and a repeated one all cost. Values are
        equal as JSON: 1 is 1.0, and neither ``true`` nor ``"1"``; text counts to the letter.

        What is read, the first of these that there is:

        - a conversation whose assistant messages have ``tool_calls`` (as OpenAI has them, ``arguments`` as JSON text
          or as an object): all of them;
        - ``<tool_call>{"name": ..., "arguments": {...}}</tool_call>`` (Hermes, Qwen): all of them;
        - JSON, as ``json_valid`` reads it: a call, a list of calls, or an object with ``tool_calls``; before it may
          stand ``<|python_tag|>`` (Llama) or ``[TOOL_CALLS]`` (Mistral), with nothing before that.

        In text only what follows the thoughts counts, and only what stands in the last ``<answer>`` tags where there
        are any and they do not differ. Stop tokens at the end are no content. A ``<tool_call>`` that is not closed is
        cut off, and JSON behind other prose is no call: no server would make it. What stands in the place of a call and
        is none counts as an extra call. ``parameters`` is read as ``arguments``.

        Column ``answer``: ``{"name": ..., "arguments": {...}}`` or a list of such, as JSON text or as objects. An
        empty list expects no call: then 1.0 for a completion without one, even an empty one, and 0.0 otherwise.
        ``None`` where the row has no such ``answer``.
        """
        expected = _expected(answer)
        if isinstance(expected, str):
            return Score(None, reason=expected)
        made = _calls(completion)
        metrics = {"expected": float(len(expected)), "made": float(len(made))}
        if not expected or not made:
            reason = f"{len(made)} calls made, {len(expected)} expected"
            return Score(float(not expected and not made), reason=reason, metrics=metrics)
        if len(made) > _MAX_EXTRA * (len(expected) + 1):
            return Score(0.0, reason=f"{len(made)} calls made, {len(expected)} expected", metrics=metrics)
        total, exact, fault = _matched(expected, made, shares)
        reason = f"{exact} of {len(expected)} expected calls made exactly, {len(made)} calls made{fault}"
        score = total / max(len(expected), len(made))
        return Score(1.0 if exact == len(expected) == len(made) else min(score, 1.0), reason=reason, metrics=metrics)

    return tool_call


def _expected(answer: Any) -> list[Call] | str:
    """Gives the calls that a row expects, or why they cannot be read."""
    if answer is None or (isinstance(answer, str) and answer.strip() in ("", "null", "None")):
        return "the row has no answer"
    try:
        return _expected_in(answer if isinstance(answer, str) else json.dumps(answer))
    except (TypeError, ValueError, RecursionError) as fault:
        return f"the row's answer is no JSON: {fault}"


@functools.lru_cache(maxsize=256)
def _expected_in(text: str) -> list[Call] | str:
    """Gives the calls that JSON text describes; a group's completions ask for the same ones. Not to be changed."""
    calls = _read(read_json(text))
    if any(not call.name or call.arguments is None for call in calls):
        return "the row's answer is no tool call: expected {'name': ..., 'arguments': {...}} or a list of such"
    if any(_depth(call.arguments) > _MAX_DEPTH for call in calls):
        return f"the row's answer is nested more than {_MAX_DEPTH} deep"
    return calls


def _calls(completion: str | Sequence[Message]) -> list[Call]:
    """Gives the calls that a completion makes."""
    if isinstance(completion, str):
        return _calls_in_text(completion)
    messages = [message for message in completion if isinstance(message, Mapping)]
    spoken = [message for message in messages if message.get("role", "assistant") == "assistant"]
    given = [message.get("tool_calls") for message in spoken]
    listed = [call for calls in given if isinstance(calls, list | tuple) for call in calls]
    if listed:
        return [_call(call) for call in listed]
    return [call for message in spoken for call in _calls_in_text(_content(message.get("content")))]


def _content(content: Any) -> str:
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list | tuple) else ()
    texts = (block.get("text") if isinstance(block, Mapping) else block for block in blocks)
    return "".join(text for text in texts if isinstance(text, str))


def _calls_in_text(text: str) -> list[Call]:
    text = final_answer(text, (Rule.TAG,))
    for mark in _MARKS:
        text = text.lstrip().removeprefix(mark)
    if _OPEN in text:
        return [call for part in text.split(_OPEN)[1:] for call in _tagged(part)]
    written = json_text(text)
    if written is None or written.lstrip()[:1] not in ("{", "["):
        return []
    try:
        value = read_json(written)
    except ValueError:
        return [Call("", None)] if '"name"' in written else []
    if isinstance(value, dict) and not value.keys() & {"name", "function", "tool_calls"}:
        return []
    return _read(value)


def _tagged(part: str) -> list[Call]:
    """Gives the call that stands between an opening tag and its closing tag."""
    inside, closed, _ = part.partition(_CLOSE)
    try:
        return _read(read_json(inside)) or [Call("", None)] if closed else [Call("", None)]
    except ValueError:
        return [Call("", None)]


def _read(value: Any) -> list[Call]:
    """Gives the calls that a JSON value stands for."""
    if isinstance(value, dict) and "name" not in value and isinstance(value.get("tool_calls"), list):
        value = value["tool_calls"]
    return [_call(one) for one in (value if isinstance(value, list) else [value])]


def _call(value: Any) -> Call:
    """Gives one call, in OpenAI's form with ``function`` or plain."""
    if isinstance(value, Mapping) and isinstance(value.get("function"), Mapping):
        value = value["function"]
    name = value.get("name") if isinstance(value, Mapping) else None
    if not isinstance(name, str):
        return Call("", None)
    arguments = value.get("arguments", value.get("parameters"))
    if isinstance(arguments, str):
        try:
            arguments = read_json(arguments) if arguments.strip() else {}
        except ValueError:
            return Call(name, None)
    if arguments is None:
        arguments = {}
    return Call(name, dict(arguments) if isinstance(arguments, Mapping) else None)


def _matched(expected: Sequence[Call], made: Sequence[Call], weights: Sequence[float]) -> tuple[float, int, str]:
    """Gives the worth of all pairs, how many are exact, and what is wrong with the first that is not."""
    pairs = [
        (_worth(wanted, given, weights), -place, -other)
        for place, wanted in enumerate(expected)
        for other, given in enumerate(made)
        if wanted.name == given.name
    ]
    pairs.sort(reverse=True)
    taken: set[int] = set()
    answered: dict[int, tuple[bool, float]] = {}
    for (exact, worth), place, other in pairs:
        if -place not in answered and -other not in taken:
            answered[-place] = (exact, worth)
            taken.add(-other)
    missed = (call.name for place, call in enumerate(expected) if not answered.get(place, (False, 0.0))[0])
    fault = next((f"; not so: {name[:_SHOWN_CHARS]!r}" for name in missed), "")
    exact_pairs = sum(exact for exact, _ in answered.values())
    return sum(worth for _, worth in answered.values()), exact_pairs, fault


def _worth(wanted: Call, given: Call, weights: Sequence[float]) -> tuple[bool, float]:
    """Gives whether two calls of the same name are the same, and what the one made is worth."""
    if given.arguments is None or wanted.arguments is None:
        return False, weights[0]
    either = wanted.arguments.keys() | given.arguments.keys()
    both = wanted.arguments.keys() & given.arguments.keys()
    if not either:
        return True, sum(weights)
    equal = sum(_same(wanted.arguments[name], given.arguments[name]) for name in both)
    worth = weights[0] + weights[1] * len(both) / len(either) + weights[2] * equal / len(either)
    return equal == len(either), worth


def _same(wanted: Any, given: Any) -> bool:
    """Whether two JSON values are equal; unlike ``==`` it tells ``true`` from 1."""
    if isinstance(wanted, bool) or isinstance(given, bool):
        return wanted is given
    if isinstance(wanted, Mapping):
        alike = isinstance(given, Mapping) and wanted.keys() == given.keys()
        return alike and all(_same(value, given[name]) for name, value in wanted.items())
    if isinstance(wanted, list):
        alike = isinstance(given, list | tuple) and len(wanted) == len(given)
        return alike and all(map(_same, wanted, given))
    if isinstance(wanted, int | float):
        return isinstance(given, int | float) and wanted == given
    return type(wanted) is type(given) and bool(wanted == given)


def _depth(value: Any) -> int:
    """Gives how deep a JSON value is nested, counted no further than is of interest."""
    row, depth = [value], 0
    while row and depth <= _MAX_DEPTH:
        row = [
            inner
            for outer in row
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        depth += 1
    return depth
