"""Which answer belongs to which call: a table of rules, and rounds as TRL makes them, drawn from seeds."""

from __future__ import annotations

import random
from typing import Any

import pytest

from rewardkit import Step, step_reward
from rewardkit.steps.reading import steps_of

ALONE = "no answer"


def _call(name: str | None, id: Any = None, arguments: Any = None) -> dict[str, Any]:
    call = {"type": "function", "function": {"name": name, "arguments": arguments or {}}}
    return call if id is None else {"id": id, **call}


def _answer(content: Any, name: str | None = None, id: Any = None) -> dict[str, Any]:
    message = {"role": "tool", "content": content}
    return message | ({} if name is None else {"name": name}) | ({} if id is None else {"tool_call_id": id})


def _round(calls: list[dict[str, Any]], *answers: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"role": "assistant", "content": "", "tool_calls": calls}, *answers]


A, B = _call("a", "1"), _call("b", "2")
RULES: dict[str, tuple[list[dict[str, Any]], list[tuple[str | None, str | None]]]] = {
    "by id, in another order": (_round([A, B], _answer("B", id="2"), _answer("A", id="1")), [("A", None), ("B", None)]),
    "ids before names": (_round([A, B], _answer("B", "a", "2"), _answer("A", "b", "1")), [("A", None), ("B", None)]),
    "ids of another type": (_round([_call("a", 1), B], _answer("B", id=2), _answer("A", id="1")),
                            [("A", None), ("B", None)]),
    "equal ids of two types, by name": (
        _round([_call("a", 1), _call("b", "1")], _answer("B", "b", "1"), _answer("A", "a", 1)),
        [("A", None), ("B", None)]),
    "empty ids, by name": (_round([_call("a", ""), _call("b", "")], _answer("B", "b", ""), _answer("A", "a", "")),
                           [("A", None), ("B", None)]),
    "ids that are no ids": (_round([_call("a", {}), _call("b", 1.5)], _answer("A", id=[]), _answer("B", id=True)),
                            [("A", None), ("B", None)]),
    "equal ids, by place": (_round([_call("a", "1"), _call("b", "1")], _answer("A", id="1"), _answer("B", id="1")),
                            [("A", None), ("B", None)]),
    "equal ids, an answer missing": (
        _round([_call("a", "1"), _call("b", "1")], _answer("A", id="1")),
        [(None, "2 calls and 1 answer with the id '1' cannot be paired; give each call an id of its own")] * 2),
    "two answers of one id": (
        _round([A], _answer("A", id="1"), _answer("B", id="1")),
        [(None, "1 call and 2 answers with the id '1' cannot be paired; give each call an id of its own")]),
    "no ids, by name": (_round([_call("a"), _call("b")], _answer("B", "b"), _answer("A", "a")),
                        [("A", None), ("B", None)]),
    "no ids, one name, by order": (
        _round([_call("a"), _call("b"), _call("a")], _answer("B", "b"), _answer("A", "a"), _answer("C", "a")),
        [("A", None), ("B", None), ("C", None)]),
    "no ids, one name, an answer missing": (
        _round([_call("a"), _call("b"), _call("a")], _answer("A", "a"), _answer("B", "b")),
        [(None, "2 calls and 1 answer of 'a' cannot be paired; give each call an id of its own"), ("B", None),
         (None, "2 calls and 1 answer of 'a' cannot be paired; give each call an id of its own")]),
    "no ids and no names, by place": (_round([_call("a"), _call("b")], _answer("A"), _answer("B")),
                                      [("A", None), ("B", None)]),
    "no ids and no names, an answer missing": (
        _round([_call("a"), _call("b")], _answer("A")),
        [(None, "2 calls and 1 answer cannot be paired; give each call an id of its own")] * 2),
    "an answer of another name": (_round([_call("a")], _answer("B", "b")), [(None, ALONE)]),
    "an answer of another id": (_round([A], _answer("B", "a", "2")), [(None, ALONE)]),
    "an id here, none there": (_round([A, B], _answer("A", id="1"), _answer("B")), [("A", None), ("B", None)]),
    "a call without a name": (_round([_call(None), _call("b")], _answer("B", "b"), _answer("A", "a")),
                              [("A", None), ("B", None)]),
    "a missing answer, by id": (_round([A, B], _answer("B", id="2")), [(None, ALONE), ("B", None)]),
    "no answers": (_round([A, B]), [(None, ALONE), (None, ALONE)]),
    "an answer before its call": ([_answer("early", id="1"), *_round([A], _answer("A", id="1"))], [("A", None)]),
    "an answer before its call alone": ([_answer("early", id="1"), *_round([A])], [(None, ALONE)]),
    "an answer after the next turn": (
        [*_round([A]), {"role": "user", "content": "?"}, {"role": "assistant", "content": "So."}, _answer("A", id="1")],
        [(None, ALONE)]),
    "an id used again": ([*_round([A], _answer("A", id="1")), *_round([_call("b", "1")], _answer("B", id="1"))],
                         [("A", None), ("B", None)]),
    "turns in a row": (
        [{"role": "assistant", "tool_calls": [B]}, *_round([A], _answer("A", id="1"), _answer("B", id="2"))],
        [("B", None), ("A", None)]),
    "a result before its call in one message": (
        [{"role": "assistant", "content": [
            {"type": "tool_result", "tool_use_id": "1", "content": "early"},
            {"type": "tool_use", "id": "1", "name": "a", "input": {}}]}],
        [(None, "its answer stands before it")]),
}  # fmt: skip


@pytest.mark.parametrize("rule", RULES)
def test_an_answer_is_its_calls_own_or_nobodys(rule: str) -> None:
    """What the rules do not pair is not guessed, and the step says why."""
    completion, expected = RULES[rule]
    assert expected == [(step.result, step.no_result) for step in steps_of("?", completion, "tool_call")]


def test_a_prompt_that_ends_with_the_assistant_begins_no_round() -> None:
    """The first turn of the completion is read, whatever stands before it."""
    prompt = [{"role": "assistant", "content": "Let me see."}]
    (step,) = steps_of(prompt, _round([A], _answer("A", id="1")), "tool_call")
    assert "A" == step.result


@step_reward(each="tool_call")
def answered(part: Step) -> float:
    """Whether a call has an answer."""
    return float(part.result is not None)


@pytest.mark.parametrize(
    ("extra", "last_line"),
    [
        ([], "step/0 a: 1"),
        ([_answer("B", "b", "2")], "1 answer of tools without a call"),
        ([_answer("B", "a"), _answer("C", "a")], "2 answers of tools without a call"),
    ],
)
def test_answers_that_are_no_calls_own_are_told(extra: list[dict[str, Any]], last_line: str) -> None:
    """Also where each call has its own."""
    score = answered(completion=_round([A], _answer("A", "a", "1"), *extra))
    assert (1.0, last_line) == (score.value, (score.reason or "").splitlines()[-1])


# As TRL makes them


def _as_trl(calls: list[tuple[str, dict[str, Any]]], tools: dict[str, bool], fits: Any) -> list[dict[str, Any]]:
    """Return TRL's messages of a turn: answers of async tools behind all others; errors of a call at once."""
    at_once, awaited = [], []
    for name, arguments in calls:
        result = f"{name} {arguments}"
        if name not in tools:
            at_once.append((name, str({"error": f"Tool {name} not found."})))
        elif not fits(arguments):
            error = f"{name}() got an unexpected keyword argument 'x'" if "x" in arguments else (
                f"{name}() missing 1 required positional argument: 'q'"
            )  # fmt: skip
            at_once.append((name, str({"error": error})))
        else:
            (awaited if tools[name] else at_once).append((name, result))
    made = [{"type": "function", "function": {"name": name, "arguments": arguments}} for name, arguments in calls]
    return _round(made, *(_answer(text, name) for name, text in [*at_once, *awaited]))


@pytest.mark.parametrize("seed", range(300))
def test_a_round_of_trls_gives_each_call_its_own_answer_or_none(seed: int) -> None:
    """Sync and async tools side by side, called again, with arguments that do not fit: never another call's answer."""
    draw = random.Random(seed)
    tools = {name: draw.random() < 0.5 for name in "abc"}
    calls: list[tuple[str, dict[str, Any]]] = []
    for number in range(draw.randint(1, 6)):
        arguments = draw.choice([{"q": number}, {"q": number}, {"q": number}, {"q": number, "x": 1}, {"y": number}])
        calls.append((draw.choice("abcd"), arguments))
    completion = _as_trl(calls, tools, lambda arguments: [*arguments] == ["q"])
    steps = list(steps_of("?", completion, "tool_call"))
    assert [name for name, _ in calls] == [step.name for step in steps]
    for step, (name, arguments) in zip(steps, calls, strict=True):
        if step.result is None:
            assert "cannot be paired" in (step.no_result or "")
        elif name not in tools:
            assert "not found" in step.result
        elif [*arguments] == ["q"]:
            assert f"{name} {arguments}" == step.result
        else:
            assert ("unexpected" if "x" in arguments else "missing") in step.result


def test_only_errors_that_fit_several_calls_leave_a_call_without_answer() -> None:
    """One wrong call among right ones of its name is told from them by what the error says."""
    tools = {"a": True}
    calls = [("a", {"q": 1}), ("a", {"q": 2, "x": 1}), ("a", {"q": 3})]
    steps = list(steps_of("?", _as_trl(calls, tools, lambda arguments: "x" not in arguments), "tool_call"))
    assert ["a {'q': 1}", "a {'q': 3}"] == [steps[0].result, steps[2].result]
    assert "unexpected keyword argument" in (steps[1].result or "")


def test_many_calls_without_answers_are_read_in_bounded_time() -> None:
    """A thousand calls and as many answers that fit none of them, or all of them."""
    calls = [_call(f"t{place}", f"c{place}") for place in range(1_000)]
    steps = list(steps_of("?", _round(calls, *(_answer("x", id=f"d{place}") for place in range(1_000))), "tool_call"))
    assert {ALONE} == {step.no_result for step in steps}
    steps = list(steps_of("?", _round(calls, *(_answer("x") for _ in range(999))), "tool_call"))
    assert {"1000 calls and 999 answers cannot be paired; give each call an id of its own"} == {
        (step.no_result or "").replace(",", "") for step in steps
    }
