"""A reward for tool calls: are they the ones that the row expects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from builtin_rewards.adjustable import adjustable, require
from builtin_rewards.reading.json_values import answer_part, counted_names, expected_json, same_json
from builtin_rewards.reading.tool_calls import BROKEN, ToolCall, call_of, calls_in, calls_of
from rewardkit import Message, Reward, Score, reward
from rewardkit.extending import Block, message_calls, shorten

_BROKEN_NOTE = "; a call is broken, or in a form that is not read"
_MAX_EXTRA = 10  # more calls than this many times the expected ones, and this many more, score 0.0 without a comparison


@adjustable
def tool_call(*, weights: tuple[float, float, float] = (0.2, 0.3, 0.5)) -> Reward[..., Score]:
    """Return ``tool_call`` with these settings.

    Args:
        weights: What the name, the arguments' names and the arguments' values of a call are worth, 0 or more each;
            they sum to 1. ``(0, 0, 1)`` pays for values alone; ``tool_call`` never pays for a call with another name.
    """
    is_valid = len(weights) == 3 and min(weights) >= 0 and abs(sum(weights) - 1.0) <= 1e-9
    require(is_valid, "three numbers from 0 up that sum to 1", weights=weights)

    @reward(score_range=(0, 1))
    def tool_call(completion: str | list[Message], answer: Any) -> Score:
        """How well the completion's tool calls are the expected ones, 0 to 1.

        Formula: the sum over matched pairs of 0.2 + 0.3 * names + 0.5 * values, divided by max(calls expected, calls
        made). names is |both| / |either| over the arguments' names, values the same with equal values alone in |both|;
        both are 1 where neither call has arguments. Calls of the same name are matched, each once and in any order, the
        best pairs first. So a missing call, an extra one and a repeated one all cost. Values are equal as JSON: 1 is
        1.0, and neither ``true`` nor ``"1"``; text counts to the letter.

        In a conversation whose assistant messages have ``tool_calls`` (OpenAI's, ``arguments`` as JSON text or object),
        ``function_call`` or blocks that are calls, those are read, otherwise the calls in the text. A call in the text
        begins behind ``<tool_call>`` (Hermes, Qwen, GLM), ``<function=name>`` (Llama 3.1, Qwen3-Coder, Seed) or
        ``<invoke name="name">`` (MiniMax, Step, DeepSeek V3.2) and ends with their ends, or behind ``[TOOL_CALLS]``
        (Mistral), ``<|python_tag|>`` (Llama), ``<|channel|>commentary to=functions.`` (gpt-oss), ``<function_calls>``
        (OLMo), a block ``tool_code`` (Gemma), and the tokens of DeepSeek, Kimi, LFM, Granite, Phi, Jamba, Hunyuan,
        Nemotron, InternLM and Command. It is JSON (``{"name": ..., "arguments": {...}}`` or a list of such;
        ``parameters``, ``args`` and ``input`` are read as ``arguments``), a name with its arguments (as JSON,
        ``<parameter=k>v</parameter>`` or ``<arg_key>k</arg_key><arg_value>v</arg_value>``), or Python's
        ``name(k="v")``. Without a mark, the whole answer may be JSON that is a call, a list of calls or an object with
        ``tool_calls``, ``[name(k="v"), ...]`` (Llama), or such calls in a block ``python``.

        A mark counts wherever it stands, as servers take it, but not in a thought or right behind a backtick; with
        ``<answer>`` tags, only in them. A broken call costs like an extra one. At most 100 calls are read. Tags carry
        no types: a value in them equals its own text, and any other value whose JSON it is (``5`` is 5 and ``"5"``;
        ``True``, ``False`` and ``None`` are read too).

        Column ``answer``: ``{"name": ..., "arguments": {...}}`` or a list of such, as JSON text or as objects; nulls
        and dates in objects are read as in ``json_fields``. An empty
        list expects no call: then 1.0 for a completion without one, even an empty one, and 0.0 otherwise. A call in a
        form that is not read counts as a broken one, and the reason says so: with another mark (``<tool_use>``,
        ``<function name=...>``, ``Action:`` with ``Action Input:``), as JSON in other text or with other keys, or as a
        bare ``name(k="v")`` or ``name {...}``. ``None`` where the row has no such ``answer``.
        """
        try:
            expected = calls_of(expected_json(answer))
        except ValueError as error:
            return Score(None, reason=str(error))
        if any(not call.name or call.arguments is None for call in expected):
            forms = "neither a call ({'name': ..., 'arguments': {...}}) nor a list of calls"
            return Score(None, reason=f"the row's answer is {forms}")
        return _score(expected, _calls(completion), weights)

    return tool_call


def _score(expected: Sequence[ToolCall], calls: Sequence[ToolCall], weights: Sequence[float]) -> Score:
    metrics = {"expected": float(len(expected)), "made": float(len(calls))}
    reason = f"{len(calls)} calls made, {len(expected)} expected" + _BROKEN_NOTE * (BROKEN in calls)
    if not expected or not calls or len(calls) > _MAX_EXTRA * (len(expected) + 1):
        return Score(float(not expected and not calls), reason=reason, metrics=metrics)
    matches = _pair_calls(expected, calls, weights)
    exact = sum(is_equal for is_equal, _ in matches)
    misses = [call.name for call, (is_equal, _) in zip(expected, matches, strict=True) if not is_equal]
    reason = f"{exact} of {len(expected)} expected calls made exactly, {len(calls)} calls made"
    reason += "".join(f"; differs: {shorten(name)}" for name in misses[:1]) + _BROKEN_NOTE * (BROKEN in calls)
    total = max(len(expected), len(calls))
    score = min(sum(worth for _, worth in matches) / total, 1.0)
    return Score(1.0 if exact == total else score, reason=reason, metrics=metrics)  # floats may sum to less


def _calls(completion: str | Sequence[Message]) -> list[ToolCall]:
    """Return the calls in a completion."""
    messages: Sequence[Any] = [{"content": completion}] if isinstance(completion, str) else completion
    turns = [turn for turn in messages if isinstance(turn, Mapping) and turn.get("role", "assistant") == "assistant"]
    if calls := [call for turn in turns for call in _native_calls(turn)]:
        return calls
    blocks = [[block.get("text") for block in _blocks(turn)] for turn in turns]
    answers = [answer_part("".join(text for text in texts if isinstance(text, str))) for texts in blocks]
    return [call for answer in answers for call in calls_in(answer)]


def _native_calls(message: Message) -> list[ToolCall]:
    """Return the calls beside a message's text, in the forms of all providers; a call in another form is broken."""
    return [_native_call(call) for call in message_calls(message)]


def _native_call(call: Block) -> ToolCall:
    arguments = {} if call.value is None or call.value == "" else call.value
    return call_of({"name": call.name, "arguments": arguments}) if call.is_read else BROKEN


def _blocks(message: Message) -> list[Mapping[str, Any]]:
    content = message.get("content")
    blocks = content if isinstance(content, list | tuple) else [content]
    return [block if isinstance(block, Mapping) else {"text": block} for block in blocks]


def _pair_calls(
    expected: Sequence[ToolCall], calls: Sequence[ToolCall], weights: Sequence[float]
) -> list[tuple[bool, float]]:
    """Return for each expected call the :func:`_worth` of the call that it is paired with, the best pairs first."""
    pairs = [
        (_worth(expected_call, call, weights), -index, -position)
        for index, expected_call in enumerate(expected)
        for position, call in enumerate(calls)
        if expected_call.name == call.name
    ]
    worths: dict[int, tuple[bool, float]] = {}
    used_positions: set[int] = set()
    for worth, index, position in sorted(pairs, reverse=True):
        if -index not in worths and position not in used_positions:
            worths[-index] = worth
            used_positions.add(position)
    return [worths.get(index, (False, 0.0)) for index in range(len(expected))]


def _worth(expected: ToolCall, call: ToolCall, weights: Sequence[float]) -> tuple[bool, float]:
    """Return whether two calls of one name are the same, and the worth of the one made."""
    if call.arguments is None or expected.arguments is None:
        return False, weights[0]
    call_names = counted_names(expected.arguments, call.arguments)
    all_names = expected.arguments.keys() | call_names
    common_names = expected.arguments.keys() & call_names
    if not all_names:
        return True, sum(weights)
    equal_count = sum(same_json(expected.arguments[name], call.arguments[name]) for name in common_names)
    worth = weights[0] + weights[1] * len(common_names) / len(all_names) + weights[2] * equal_count / len(all_names)
    return equal_count == len(all_names), worth
