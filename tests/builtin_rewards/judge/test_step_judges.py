"""Judges as step rewards: each step is asked about as a completion of its own, with all before it as the prompt."""

from __future__ import annotations

import asyncio
import functools
import json
from typing import Any

import pytest
from virtual_time import virtual

from builtin_rewards.judge import Fallback, Jury, LLMJudge, Load, RetryPolicy
from builtin_rewards.judge.conversation import turns_of
from rewardkit import Outcome, Reward, Rollout, Runtime, Score, Status, step_reward
from rewardkit.steps.reading import steps_of
from rewardkit.testing import FakeJudge

PROMPT = [
    {"role": "system", "content": "The capital is SECRET."},
    {"role": "user", "content": "Look it up, then tell me."},
]
CALL = {"id": "c1", "type": "function", "function": {"name": "lookup", "arguments": '{"of": "capital"}'}}
COMPLETION = [
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "It is FOUND."},
    {"role": "assistant", "content": "<step>I looked.</step><step>It is FOUND.</step>"},
]


def _judge(script: Any, **settings: Any) -> LLMJudge:
    client = FakeJudge(script) if not isinstance(script, FakeJudge) else script
    return LLMJudge("m", ["useful"], client=client, retry=RetryPolicy(attempts=1), prices={}, **settings)


def _score(scored: Reward[..., Any], rows: int = 1, lane: str = "inline", completion: Any = COMPLETION) -> Outcome:
    with Runtime({"it": scored}, workers=1, lane=lane, max_infrastructure_rate=1.0) as runtime:
        outcomes = runtime.score([Rollout(PROMPT, completion)] * rows)["it"]
    assert [outcomes[0].status] * rows == [outcome.status for outcome in outcomes]
    return outcomes[0]


def _grade(value: int) -> str:
    return json.dumps({"useful": {"reason": f"worth {value}", "score": value}})


CALLS: dict[str, tuple[dict[str, Any], int]] = {
    "OpenAI's": ({"content": "", "tool_calls": [CALL, {**CALL, "id": "c2"}]}, 2),
    "TRL's": ({"tool_calls": [{"type": "function", "function": {"name": "a", "arguments": {"k": "\xe9"}}}]}, 1),
    "custom, flat and none": ({"tool_calls": [{"custom": {"name": "sh", "input": "ls"}}, {"name": "b"}, "x", None]}, 4),
    "one that is no list": ({"tool_calls": {"name": "a", "parameters": {"k": [1]}}}, 1),
    "old": ({"content": None, "function_call": {"name": "f", "arguments": "[1"}}, 1),
    "old, as text": ({"content": None, "function_call": "f(1)"}, 1),
    "old and empty, as data sets fill up rows": ({"content": "No.", "function_call": {}, "tool_calls": None}, 0),
    "in every way": ({"function_call": {"name": "f"}, "tool_calls": [CALL], "content": [{"type": "tool_use"}, "a"]}, 3),
    "Anthropic's": ({"content": ["Two.", *({"type": "tool_use", "id": i, "name": "a", "input": {}} for i in "12")]}, 2),
}


@pytest.mark.parametrize(("message", "count"), CALLS.values(), ids=CALLS)
def test_steps_and_judges_see_the_same_tool_calls(message: dict[str, Any], count: int) -> None:
    """In the same order, by the same names and with the same arguments, whoever wrote the message."""
    completion = [{"role": "assistant", **message}]
    (turn,) = turns_of(completion, "completion")
    shown = [(head.split()[2].rstrip(","), text) for head, text in turn.parts if " calls " in head]
    steps = list(steps_of("", completion, "tool_call"))
    assert count == len(steps)
    assert [name for name, _ in shown] == [step.name or "unnamed" for step in steps]
    given = [(text, step.text) for (_, text), step in zip(shown, steps, strict=True) if step.text != "{}"]
    assert [text for text, _ in given] == [text for _, text in given]
    for step in steps:  # as a completion of its own
        (alone,) = turns_of(step.messages, "completion")
        assert 1 == sum(" calls " in head for head, _ in alone.parts)


@pytest.mark.parametrize(
    ("each", "seen", "unseen"),
    [
        ("turn", [["SECRET", "lookup"], ["SECRET", "lookup", "FOUND", "I looked"]], [["FOUND"], []]),
        ("tool_call", [["SECRET", "lookup", "FOUND"]], [["I looked"]]),
        ("span", [["SECRET", "I looked"], ["FOUND.", "I looked"]], [["<step>It is"], []]),
    ],
)
def test_a_judge_sees_a_step_and_all_before_it(each: str, seen: list[list[str]], unseen: list[list[str]]) -> None:
    """The system prompt, tool calls and results among it, and nothing that comes after."""
    client = FakeJudge.verdict(useful=4)
    outcome = _score(step_reward(_judge(client), each=each, label="step" if each == "span" else None))
    assert (Status.SCORED, 0.75, len(seen)) == (outcome.status, outcome.score, outcome.metrics["steps"])
    for asked, parts, others in zip(client.asked, seen, unseen, strict=True):
        assert [True] * len(parts) == [part in asked.text for part in parts]
        assert [False] * len(others) == [other in asked.text for other in others]


@pytest.mark.parametrize("lane", ["inline", "worker"])
def test_each_steps_verdict_is_shown_and_what_they_took_is_summed(lane: str) -> None:
    """The lowest grade decides."""
    script = {"I looked.": _grade(2), "lookup": _grade(5)}
    outcome = _score(step_reward(_judge(script), each="turn", reduce="min"), lane=lane)
    assert [
        "min over 2 of 2 turns",
        "step/0: 1, useful 5 of 5: worth 5",
        "step/1: 0.25, useful 2 of 5: worth 2",
    ] == (outcome.reason or "").splitlines()
    assert (0.25, 2.0, 3.5) == (outcome.score, outcome.metrics["requests"], outcome.metrics["grade/useful"])


def test_a_step_that_cannot_be_judged_leaves_the_completion_out() -> None:
    """No score is made of the others."""
    outcome = _score(step_reward(_judge({"I looked.": ConnectionError("gone"), "lookup": _grade(5)}), each="turn"))
    assert (Status.FAILED, None) == (outcome.status, outcome.score)
    assert (outcome.error or "").endswith("(in step/1, one of 2)")


def test_many_steps_wait_for_their_turn_and_none_is_lost() -> None:
    """Thirty completions of twelve steps each, at a server that takes two questions at once, a second each."""
    judge = _judge(FakeJudge(_grade(3), latency_s=1.0), load=Load(concurrency=2), deadline_s=10)
    scored = step_reward(judge)
    completion = [{"role": "assistant", "content": f"Step {place}."} for place in range(12)]

    async def all_of_them() -> list[Score]:
        return await asyncio.gather(*(scored(prompt=PROMPT, completion=completion) for _ in range(30)))

    assert [(0.5, 12.0)] * 30 == [(one.value, one.metrics["requests"]) for one in virtual(all_of_them())]


def test_it_stands_wherever_a_judge_does() -> None:
    """In a jury, in a chain, on another client, and called as a function within a loop and without one."""
    steps = step_reward(_judge(_grade(5)), reduce="last", name="steps")
    plain = _judge(_grade(1))
    assert 0.5 == _score(Jury([plain, steps], reduce="mean")).score
    assert 1.0 == _score(Fallback([_judge(ConnectionError("gone")), steps])).score
    call = functools.partial(steps.with_client(FakeJudge.verdict(useful=3)), prompt=PROMPT, completion=COMPLETION)

    async def awaited() -> Any:
        return await call()

    assert [0.5, 0.5] == [call().value, asyncio.run(awaited()).value]


def test_setting_up_reaches_the_judge() -> None:
    """A runtime sees that the judge's server is there before anything is scored."""

    class Counted(LLMJudge):
        set_ups = 0

        def set_up(self) -> None:
            Counted.set_ups += 1

    judge = Counted("m", ["useful"], client=FakeJudge.verdict(useful=1))
    with Runtime([step_reward(judge)], lane="inline"):
        assert 1 == Counted.set_ups
