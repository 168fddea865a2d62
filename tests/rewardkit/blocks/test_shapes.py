"""The table of shapes: step rewards, tool rewards, judges and pages read the calls and answers of every provider."""

from __future__ import annotations

import json
from typing import Any

import message_shapes
import pytest
from message_shapes import ANSWER, ARGUMENTS

from builtin_rewards.judge import LLMJudge
from builtin_rewards.tools import tool_call
from rewardkit import Rollout, Runtime, Status, reward
from rewardkit.blocks.content import answer_text
from rewardkit.dashboard.as_json import text_json
from rewardkit.messages import completion_text, message_text
from rewardkit.serving.translate import read_gym
from rewardkit.steps.reading import steps_of
from rewardkit.testing import Asked, FakeJudge

GO = [{"role": "user", "content": "How high is K2?"}]


def _judged(completion: list[dict[str, Any]]) -> str:
    made = LLMJudge("m", criteria=["good"], client=FakeJudge.verdict(good=5))
    return Asked(made.render(Rollout(GO, completion))).text


def _page_parts(completion: list[dict[str, Any]]) -> list[tuple[str, str | None, str]]:
    conversation = text_json(completion)
    assert conversation is not None
    return [
        (part["kind"], part["name"], part["text"]) for message in conversation["messages"] for part in message["parts"]
    ]


@pytest.mark.parametrize("form", message_shapes.CALLS)
def test_a_call_and_its_answer_are_read_in_every_form(form: str) -> None:
    """As a step, by the reward for tool calls, by a judge and on the page; the answer is in the step's own messages."""
    completion = message_shapes.CALLS[form]
    step = next(iter(steps_of(GO, completion, "tool_call")))
    assert ("search", ARGUMENTS, None) == (step.name, step.arguments, step.no_result)
    assert ANSWER == (step.result or "").replace("\n", " ")
    made = tool_call(completion=completion[:1], answer=[{"name": "search", "arguments": ARGUMENTS}])
    assert 1.0 == made.value
    text = _judged(completion).replace("8611\nm", ANSWER)
    assert "assistant calls search" in text
    assert json.dumps(ARGUMENTS) in text
    assert ANSWER in text
    parts = _page_parts(completion)
    assert ("call", "search") in {(kind, name) for kind, name, _ in parts}
    assert any(kind == "result" for kind, _, _ in parts)
    (own,) = steps_of(GO, [*step.messages], "tool_call")
    assert (step.name, step.arguments, step.result) == (own.name, own.arguments, own.result)


@pytest.mark.parametrize("form", message_shapes.ANSWERS)
def test_an_answer_of_any_shape_has_a_text(form: str) -> None:
    """A list or an object is its JSON, blocks are their texts, and what is neither is told; in all readers."""
    value, expected = message_shapes.ANSWERS[form]
    message = {"role": "tool", "tool_call_id": "c1", "content": value}
    completion = [message_shapes.CALLS["OpenAI"][0], message]
    (step,) = steps_of(GO, completion, "tool_call")
    assert (expected, expected, expected) == (step.result, answer_text(value), message_text(message))
    blocks = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": value}]}
    (step,) = steps_of(GO, [message_shapes.CALLS["Anthropic"][0], blocks], "tool_call")
    assert expected == step.result
    text = _judged([*completion, {"role": "assistant", "content": "So."}])
    assert "[" in expected or all(line in text for line in expected.splitlines())


@pytest.mark.parametrize("form", message_shapes.BEDROCK_ANSWERS)
def test_blocks_of_bedrock_are_known_by_their_only_key(form: str) -> None:
    """In a ``toolResult``; elsewhere such a list is data."""
    value, expected = message_shapes.BEDROCK_ANSWERS[form]
    call = message_shapes.CALLS["Bedrock"][0]
    result = {"role": "user", "content": [{"toolResult": {"toolUseId": "c1", "content": value}}]}
    (step,) = steps_of(GO, [call, result], "tool_call")
    assert expected == step.result


@pytest.mark.parametrize("block", message_shapes.UNREAD_CALLS)
def test_a_call_in_a_form_that_is_not_read_is_a_call(block: dict[str, Any]) -> None:
    """It is a step without a name, a broken call, and told to the judge."""
    completion = [{"role": "assistant", "content": [{"type": "text", "text": "So."}, block]}]
    (step,) = steps_of(GO, completion, "tool_call")
    assert (None, None, json.dumps(block)) == (step.name, step.arguments, step.text)
    made = tool_call(completion=completion, answer=[{"name": "search", "arguments": ARGUMENTS}])
    assert (0.0, 1.0) == (made.value, made.metrics["made"])
    assert "a form that is not read" in str(made.reason)
    assert "not_read" in _judged(completion)


def test_a_large_answer_is_read_whole() -> None:
    """Ten million characters, as text or in a list; one that is nested without end is told."""
    long = "x" * 10_000_000
    assert long == answer_text(long)
    assert len(long) + 4 == len(answer_text([long]))
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert "[list, nested too deep: a form that is not read]" == answer_text(deep)
    while deep:  # freeing it at once would nest as deep
        deep = deep[0]


@pytest.mark.parametrize("form", ["Responses, items as blocks", "Responses, MCP", "Responses, a call of its own"])
def test_items_of_nemo_gym_are_read_by_the_same_table(form: str) -> None:
    """Calls of every kind with their answers, and a refusal as text; none is left out."""
    items = [block for message in message_shapes.CALLS[form] for block in message["content"]]
    refusal = {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}
    body = {"responses_create_params": {"input": "?"}, "response": {"output": [{"type": "reasoning"}, *items, refusal]}}
    completion = read_gym(body, {}, 10).rollouts[0].completion
    (step,) = steps_of(GO, completion, "tool_call")
    assert ("search", ARGUMENTS, ANSWER) == (step.name, step.arguments, step.result)
    assert "No." == completion_text(completion)


# The text of a completion

REFUSAL = {"role": "assistant", "content": None, "refusal": "I cannot."}
ODD: dict[str, tuple[list[dict[str, Any]], str, str | None]] = {
    "text": ([{"role": "assistant", "content": "4"}], "4", None),
    "nothing": ([{"role": "assistant", "content": ""}], "", None),
    "a refusal": ([REFUSAL], "I cannot.", "the completion is a refusal"),
    "a block of a refusal": (
        [{"role": "assistant", "content": [{"type": "refusal", "refusal": "I cannot."}]}],
        "I cannot.",
        "the completion is a refusal",
    ),
    "reasoning in a field": (
        [{"role": "assistant", "content": None, "reasoning_content": "Hm."}],
        "",
        "the completion has no text: reasoning alone",
    ),
    "reasoning in a block": (
        [{"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm."}]}],
        "",
        "the completion has no text: reasoning alone",
    ),
    "Gemini's thought": (
        [{"role": "assistant", "content": [{"text": "Hm.", "thought": True}]}],
        "",
        "the completion has no text: reasoning alone",
    ),
    "calls alone": (
        [message_shapes.CALLS["OpenAI"][0]] * 2,
        "",
        "the completion has no text: 2 x a tool call",
    ),
    "sound": (
        [{"role": "assistant", "content": [{"type": "output_audio", "id": 1}]}],
        "",
        "the completion has no text: 'output_audio', a form that is not read",
    ),
}


@reward
def length(completion: str) -> float:
    return float(len(completion))


@pytest.mark.parametrize("lane", ["inline", "worker"])
def test_the_reason_says_what_is_odd_in_a_text(lane: str) -> None:
    """A refusal is the text and is called so; where no text is, the reason says what there is in its place."""
    with Runtime([length], workers=1, lane=lane) as runtime:
        outcomes = runtime.score([Rollout(GO, completion) for completion, _, _ in ODD.values()])["length"]
    expected = [(Status.SCORED, float(len(text)), note) for _, text, note in ODD.values()]
    assert expected == [(outcome.status, outcome.score, outcome.reason) for outcome in outcomes]


UNREAD: dict[str, tuple[list[dict[str, Any]], str]] = {
    "ShareGPT": ([{"from": "gpt", "value": "4"}], "ShareGPT's form"),
    "Gemini's role": ([{"role": "model", "content": "4"}], "unknown role 'model'; write 'assistant'"),
    "a role in capitals": ([{"role": "Assistant", "content": "4"}], "unknown role 'Assistant'; write 'assistant'"),
    "an unknown role": ([{"role": "narrator", "content": "4"}], "unknown role 'narrator'; the roles are system"),
    "parts": ([{"role": "assistant", "parts": [{"type": "text", "text": "4"}]}], "write them as a list of blocks in"),
    "bytes": ([{"role": "assistant", "content": b"4"}], "got b'4'; write its text, as content.decode() has it"),
}


@pytest.mark.parametrize("form", UNREAD)
def test_what_is_not_read_is_told_in_one_line_with_the_fix(form: str) -> None:
    """By a step reward and by a reward that reads text."""
    completion, words = UNREAD[form]
    for each in (length, lambda completion: list(steps_of("", completion, "turn"))):
        with pytest.raises(Exception, match=r"^completion") as raised:
            each(completion=completion)
        assert words in str(raised.value)
        assert 1 == len(str(raised.value).splitlines())
