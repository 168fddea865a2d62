"""A reward for tool calls: are they the ones that the row expects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from builtin_rewards.adjustable import adjustable, require
from builtin_rewards.reading.json_values import expected_json, same, spoken
from builtin_rewards.reading.tool_calls import BROKEN, ToolCall, call_of, calls_in, calls_of
from rewardkit import Message, Reward, Score, reward

_MAX_EXTRA = 10
"""More calls than this many times the expected ones, and this many more, score 0.0 without a comparison."""
_SHOWN_CHARS = 80


@adjustable
def tool_call(*, weights: tuple[float, float, float] = (0.2, 0.3, 0.5)) -> Reward[..., Score]:
    """Settings of ``tool_call``.

    Args:
        weights: What the name, the arguments' names and the arguments' values of a call are worth, 0 or more each;
            they sum to 1. ``(0, 0, 1)`` pays for values alone; ``tool_call`` never pays for a call with another name.
    """
    fit = len(weights) == 3 and min(weights) >= 0 and abs(sum(weights) - 1.0) <= 1e-9
    require(fit, "three numbers from 0 up that sum to 1", weights=weights)

    @reward(score_range=(0, 1))
    def tool_call(completion: str | list[Message], answer: Any) -> Score:
        """How well the completion's tool calls are the expected ones, 0 to 1.

        Formula: the sum over matched pairs of 0.2 + 0.3 * names + 0.5 * values, divided by max(calls expected, calls
        made). names is |both| / |either| over the arguments' names, values the same with equal values alone in |both|;
        both are 1 where neither call has arguments. Calls of the same name are matched, each once and in any order, the
        best pairs first. So a missing call, an extra one and a repeated one all cost. Values are equal as JSON: 1 is
        1.0, and neither ``true`` nor ``"1"``; text counts to the letter.

        In a conversation whose assistant messages have ``tool_calls`` (OpenAI's, ``arguments`` as JSON text or object),
        ``function_call`` or blocks of the type ``tool_use``, these are read, otherwise the calls in the text. A call
        begins behind ``<tool_call>`` (Hermes, Qwen, GLM), ``<function=name>`` (Llama 3.1, Qwen3-Coder, Seed) or
        ``<invoke name="name">`` (MiniMax, Step, DeepSeek V3.2) and ends with their ends, or behind ``[TOOL_CALLS]``
        (Mistral), ``<|python_tag|>`` (Llama), ``<|channel|>commentary to=functions.`` (gpt-oss), ``<function_calls>``
        (OLMo), a block ``tool_code`` (Gemma), and the tokens of DeepSeek, Kimi, LFM, Granite, Phi, Jamba, Hunyuan,
        Nemotron, InternLM and Command. It is JSON (``{"name": ..., "arguments": {...}}`` or a list of such;
        ``parameters`` is read as ``arguments``), a name with its arguments (as JSON, ``<parameter=k>v</parameter>`` or
        ``<arg_key>k</arg_key><arg_value>v</arg_value>``), or Python's ``name(k="v")``. Without a mark, the whole answer
        may be JSON that is a call, a list of calls or an object with ``tool_calls``, or ``[name(k="v"), ...]`` (Llama).

        A mark counts wherever it stands, as servers take it, but not in a thought or right behind a backtick; with
        ``<answer>`` tags, only in them. A broken call costs like an extra one. At most 100 calls are read. Tags carry
        no types: a value in them equals its own text, and any other value whose JSON it is (``5`` is 5 and ``"5"``;
        ``True``, ``False`` and ``None`` are read too).

        Column ``answer``: ``{"name": ..., "arguments": {...}}`` or a list of such, as JSON text or as objects. An empty
        list expects no call: then 1.0 for a completion without one, even an empty one, and 0.0 otherwise. ``None``
        where the row has no such ``answer``, and where the completion makes a call in a form that is not read: with
        another mark (``<tool_use>``, ``<function name=...>``, ``Action:`` with ``Action Input:``), as JSON in other
        text or with other keys, or as a bare ``name(k="v")`` or ``name {...}``. Beside calls that are read, such a mark
        counts as an extra call.
        """
        try:
            expected = calls_of(expected_json(answer))
        except ValueError as fault:
            return Score(None, reason=str(fault))
        if any(not call.name or call.arguments is None for call in expected):
            return Score(
                None,
                reason="the row's answer is neither a call ({'name': ..., 'arguments': {...}}) nor a list of calls",
            )
        made = _calls(completion)
        if made is None:
            return Score(None, reason="a call in a form that is not read")
        metrics = {"expected": float(len(expected)), "made": float(len(made))}
        reason = f"{len(made)} calls made, {len(expected)} expected"
        if not expected or not made or len(made) > _MAX_EXTRA * (len(expected) + 1):
            return Score(float(not expected and not made), reason=reason, metrics=metrics)
        pairs = _paired(expected, made, weights)
        exact = sum(equal for equal, _ in pairs)
        missed = [call.name for call, (equal, _) in zip(expected, pairs, strict=True) if not equal]
        reason = f"{exact} of {len(expected)} expected calls made exactly, {len(made)} calls made"
        reason += "".join(f"; differs: {name[:_SHOWN_CHARS]!r}" for name in missed[:1])
        most = max(len(expected), len(made))
        score = min(sum(worth for _, worth in pairs) / most, 1.0)
        return Score(1.0 if exact == most else score, reason=reason, metrics=metrics)

    return tool_call


def _calls(completion: str | Sequence[Message]) -> list[ToolCall] | None:
    """Return the calls in a completion; ``None`` where some are in a form that is not read."""
    messages: Sequence[Any] = [{"content": completion}] if isinstance(completion, str) else completion
    own = [one for one in messages if isinstance(one, Mapping) and one.get("role", "assistant") == "assistant"]
    if given := [call for message in own for call in _given(message)]:
        return given
    said = [[block.get("text") for block in _blocks(message)] for message in own]
    found = [calls_in(spoken("".join(text for text in texts if isinstance(text, str)))) for texts in said]
    made = [call for calls in found for call in calls or ()]
    return None if None in found and not made else made + [BROKEN] * found.count(None)


def _given(message: Message) -> list[ToolCall]:
    """Return the calls beside a message's text: ``tool_calls``, ``function_call``, blocks ``tool_use``."""
    calls = message.get("tool_calls") or []
    given = [*(calls if isinstance(calls, list | tuple) else [None]), *filter(None, [message.get("function_call")])]
    used = [block for block in _blocks(message) if block.get("type") == "tool_use"]
    given += ({"name": block.get("name"), "arguments": block.get("input")} for block in used)
    return [call_of(one) for one in given]


def _blocks(message: Message) -> list[Mapping[str, Any]]:
    content = message.get("content")
    blocks = content if isinstance(content, list | tuple) else [content]
    return [block if isinstance(block, Mapping) else {"text": block} for block in blocks]


def _paired(
    expected: Sequence[ToolCall], made: Sequence[ToolCall], weights: Sequence[float]
) -> list[tuple[bool, float]]:
    """Return for each expected call the :func:`_worth` of the call that it is paired with, the best pairs first."""
    pairs = [
        (_worth(wanted, given, weights), -place, -other)
        for place, wanted in enumerate(expected)
        for other, given in enumerate(made)
        if wanted.name == given.name
    ]
    found: dict[int, tuple[bool, float]] = {}
    taken: set[int] = set()
    for worth, place, other in sorted(pairs, reverse=True):
        if -place not in found and other not in taken:
            found[-place] = worth
            taken.add(other)
    return [found.get(place, (False, 0.0)) for place in range(len(expected))]


def _worth(wanted: ToolCall, given: ToolCall, weights: Sequence[float]) -> tuple[bool, float]:
    """Return whether two calls of one name are the same, and the worth of the one made."""
    if given.arguments is None or wanted.arguments is None:
        return False, weights[0]
    either = wanted.arguments.keys() | given.arguments.keys()
    both = wanted.arguments.keys() & given.arguments.keys()
    if not either:
        return True, sum(weights)
    equal = sum(same(wanted.arguments[name], given.arguments[name]) for name in both)
    worth = weights[0] + weights[1] * len(both) / len(either) + weights[2] * equal / len(either)
    return equal == len(either), worth
