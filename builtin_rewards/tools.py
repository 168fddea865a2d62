"""A reward for tool calls: are they the ones that the row expects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from builtin_rewards.adjustable import adjustable, require
from builtin_rewards.reading.calls import BROKEN, Call, call_of, calls_in, calls_of
from builtin_rewards.reading.values import expected_json, same, spoken
from rewardkit import Message, Reward, Score, reward

WEIGHTS = (0.2, 0.3, 0.5)
"""What the name, the arguments' names and the arguments' values of a call are worth."""

_MAX_EXTRA = 10
"""So many times the calls expected, and as many more, are compared; with more of them the score is 0."""
_SHOWN_CHARS = 80


@adjustable
def tool_call(*, weights: tuple[float, float, float] = WEIGHTS) -> Reward[..., Score]:
    """Settings of ``tool_call``.

    Args:
        weights: What the name, the arguments' names and the arguments' values of a call are worth, 0 or more each;
            they sum to 1. ``(0, 0, 1)`` pays for values alone; ``tool_call`` never pays for a call with another name.
    """
    fit = len(weights) == 3 and min(weights) >= 0 and abs(sum(weights) - 1.0) <= 1e-9
    require(fit, "three numbers from 0 up that sum to 1", weights=weights)
    shares = tuple(weights)

    @reward(score_range=(0, 1))
    def tool_call(completion: str | list[Message], answer: Any) -> Score:
        """How well the completion's tool calls are the expected ones, 0 to 1.

        Formula: the sum over matched pairs of 0.2 + 0.3 * names + 0.5 * values, divided by max(calls expected, calls
        made). names is |both| / |either| over the arguments' names, values the same with equal values alone in
        |both|; both are 1 where neither call has arguments. Only calls of the same name are matched, each once and
        in any order, the best pairs first. So a missing call, an extra one and a repeated one all cost. Values are
        equal as JSON: 1 is 1.0, and neither ``true`` nor ``"1"``; text counts to the letter.

        What is read of a conversation whose assistant messages have ``tool_calls`` (as OpenAI has them, ``arguments``
        as JSON text or as an object), ``function_call`` or blocks of the type ``tool_use``: all of these. Otherwise
        all calls in the text, in these forms:

        - ``<tool_call>{"name": ..., "arguments": {...}}</tool_call>`` (Hermes, Qwen);
        - ``<tool_call>name<arg_key>k</arg_key><arg_value>v</arg_value></tool_call>`` (GLM);
        - ``<function=name>{...}</function>`` (Llama 3.1) and ``<function=name><parameter=k>v</parameter></function>``
          (Qwen3-Coder, Seed), in ``<tool_call>`` or not;
        - ``<invoke name="name"><parameter name="k">v</parameter></invoke>`` (MiniMax, Step, DeepSeek V3.2);
        - ``[TOOL_CALLS][{...}]`` and ``[TOOL_CALLS]name[ARGS]{...}`` (Mistral), ``<|python_tag|>{...}; {...}`` (Llama);
        - ``<|tool_call|>[...]`` and ``<function_call>{...}`` (Granite, Phi), ``functools[...]`` (Phi),
          ``<tool_calls>[...]`` (Jamba, Hunyuan), ``<TOOLCALL>[...]`` (Nemotron), ``<|action_start|><|plugin|>{...}``
          (InternLM), ``<|START_ACTION|>[...]`` (Command);
        - the tokens of DeepSeek R1, V3 and V3.1, and ``<|tool_call_begin|>functions.name:0...`` of Kimi;
        - ``<|channel|>commentary to=functions.name <|constrain|>json<|message|>{...}`` (gpt-oss);
        - ``name(k="v")`` as Python writes it, between ``<|python_start|>`` (Llama 4), ``<|tool_call_start|>`` (LFM) or
          ``<function_calls>`` (OLMo) and their ends, or in a block ``tool_code`` (Gemma);
        - where there is none of these, the whole answer, as ``json_valid`` finds it: JSON that is a call, a list of
          calls or an object with ``tool_calls``, or ``[name(k="v"), ...]`` (Llama).

        A mark counts wherever it stands, as servers take it, but not in a thought or right behind a backtick; where
        the answer stands in ``<answer>`` tags, only there. What stands in the place of a call and is none, or is cut
        off, counts as an extra call. ``parameters`` is read as ``arguments``. At most 100 calls are read.

        Forms of tags carry no types: there a value is equal to text that it is, and to any other value whose JSON it
        is (``5`` to 5 and to ``"5"``; Python's ``True``, ``False`` and ``None`` are JSON's there).

        Column ``answer``: ``{"name": ..., "arguments": {...}}`` or a list of such, as JSON text or as objects. An
        empty list expects no call: then 1.0 for a completion without one, even an empty one, and 0.0 otherwise.
        ``None`` where the row has no such ``answer``, and where the completion makes an unread form of call: what looks
        like the mark of one (``<tool_use>``, ``Action:`` with ``Action Input:``), or a call as JSON in other text.
        Beside calls that are read, such a mark counts as an extra call.
        """
        expected = _expected(answer)
        if isinstance(expected, str):
            return Score(None, reason=expected)
        made = _calls(completion)
        if made is None:
            return Score(None, reason="an unread form of call")
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
    try:
        calls = calls_of(expected_json(answer))
    except ValueError as fault:
        return str(fault)
    if any(not call.name or call.arguments is None for call in calls):
        return "the row's answer is no tool call: expected {'name': ..., 'arguments': {...}} or a list of such"
    return calls


def _calls(completion: str | Sequence[Message]) -> list[Call] | None:
    """Gives the calls that a completion makes; ``None`` where it makes some in a form that is not read."""
    if isinstance(completion, str):
        return calls_in(spoken(completion))
    messages = [message for message in completion if isinstance(message, Mapping)]
    own = [message for message in messages if message.get("role", "assistant") == "assistant"]
    given = [call for message in own for call in _given(message)]
    if given:
        return given
    found = [calls_in(spoken(_content(message.get("content")))) for message in own]
    made = [call for calls in found for call in calls or ()]
    return None if None in found and not made else made + [BROKEN] * found.count(None)


def _given(message: Message) -> list[Call]:
    """Gives the calls that a message has beside its text: ``tool_calls``, ``function_call``, blocks ``tool_use``."""
    calls = message.get("tool_calls") or []
    listed = [call_of(call) for call in calls] if isinstance(calls, list | tuple) else [BROKEN]
    if message.get("function_call"):
        listed.append(call_of(message["function_call"]))
    content = message.get("content")
    blocks = content if isinstance(content, list | tuple) else ()
    used = [block for block in blocks if isinstance(block, Mapping) and block.get("type") == "tool_use"]
    return listed + [call_of({"name": block.get("name"), "arguments": block.get("input")}) for block in used]


def _content(content: Any) -> str:
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list | tuple) else ()
    texts = (block.get("text") if isinstance(block, Mapping) else block for block in blocks)
    return "".join(text for text in texts if isinstance(text, str))


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
    equal = sum(same(wanted.arguments[name], given.arguments[name]) for name in both)
    worth = weights[0] + weights[1] * len(both) / len(either) + weights[2] * equal / len(either)
    return equal == len(either), worth
