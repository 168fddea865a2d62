"""``@step_reward``: which steps a completion has, how their scores become one, and what is told of each."""

from __future__ import annotations

import asyncio
import functools
import json
import pickle
import re
import tracemalloc
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from typer.testing import CliRunner

from builtin_rewards.judge.conversation import turns_of
from rewardkit import (
    BadReturnError,
    Cause,
    CoercionError,
    InfrastructureError,
    Outcome,
    Reward,
    RewardDefinitionError,
    RewardFunctionsConfig,
    RewardLoadError,
    Rollout,
    Runtime,
    Score,
    Status,
    Step,
    StepReward,
    group_reward,
    reward,
    reward_from_source,
    step_reward,
)
from rewardkit.cli.listing import describe
from rewardkit.cli.program import app
from rewardkit.loading.registry import resolve
from rewardkit.steps.reading import MOST_STEPS, steps_of
from rewardkit.steps.scores import MOST_SHOWN
from rewardkit.testing import cases

SYSTEM = {"role": "system", "content": "Use tools."}
ASKED = {"role": "user", "content": "What is 2 * x?"}


def _openai(*calls: tuple[str, Any, str | None]) -> dict[str, Any]:
    made = [{"id": id, "type": "function", "function": {"name": name, "arguments": a}} for name, a, id in calls]
    return {"role": "assistant", "content": "Let me see.", "tool_calls": made}


def _answer(text: str, id: str | None = None) -> dict[str, Any]:
    return {"role": "tool", "content": text, **({} if id is None else {"tool_call_id": id})}


TOOLS = [
    _openai(("search", '{"q": "x"}', "c1"), ("clock", "{}", "c2")),
    _answer("noon", "c2"),
    _answer("x is 4", "c1"),
    _openai(("calc", '{"e": "2 * 4"}', "c1")),
    _answer("8", "c1"),
    {"role": "assistant", "content": "It is 8."},
]
"""Two calls answered in another order, and one under an id that was used before."""


@step_reward(each="tool_call")
def right_tool(part: Step, expected: list[str]) -> Score:
    """Is the tool an expected one."""
    return Score(float(part.name in expected), f"got {part.result}", {"chars": len(part.text)})


@step_reward(each="turn", reduce="last")
def whole_number(part: Step) -> float | None:
    return float(part.text) if part.text else None


@step_reward(each="turn", reduce="min", concurrency=4)
async def awaited(part: Step) -> float | None:
    await asyncio.sleep(0.02 - 0.005 * part.index)  # the last is done first
    return whole_number.function(part)


@reward(score_range=(0, 9))
async def as_long(prompt: str, completion: str, add: int = 0) -> Score:
    return Score(len(completion) + add, prompt, {"requests": 1, "share": len(completion)})


class _Frozen(Exception):
    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(name)


class _OfItsOwnNotes(Exception):
    __notes__ = 5  # type: ignore[assignment]


def _turns(*texts: str) -> list[dict[str, Any]]:
    return [{"role": "assistant", "content": text} for text in texts]


def _score(
    scored: Reward[..., Any], completion: Any, lane: str = "inline", prompt: Any = "?", **columns: Any
) -> Outcome:
    with Runtime({"it": scored}, workers=1, lane=lane, max_infrastructure_rate=1.0) as runtime:
        return runtime.score([Rollout(prompt, completion, columns)])["it"][0]


# What the steps are

MANY = "the completion has more than 1,000 {}; no more are scored"
CALLS: list[tuple[str, list[dict[str, Any]], list[tuple[Any, ...]]]] = [
    ("openai", TOOLS, [("search", {"q": "x"}, "x is 4"), ("clock", {}, "noon"), ("calc", {"e": "2 * 4"}, "8")]),
    (
        "trl, by place",
        [
            {
                "role": "assistant",
                "tool_calls": [
                    {"type": "function", "function": {"name": "a", "arguments": {"k": 1}}},
                    {"type": "function", "function": {"name": "b", "arguments": {}}},
                ],
            },
            {"role": "tool", "name": "a", "content": "one"},
            {"role": "tool", "name": "b", "content": [{"type": "text", "text": "two"}]},
        ],
        [("a", {"k": 1}, "one"), ("b", {}, "two")],
    ),
    (
        "anthropic",
        [
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "Two."},
                    {"type": "tool_use", "id": "t1", "name": "a", "input": {"k": 1}},
                    {"type": "tool_use", "id": "t2", "name": "b", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "t2", "content": "two"},
                    {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "one"}]},
                ],
            },
        ],
        [("a", {"k": 1}, "one"), ("b", {}, "two")],
    ),
    (
        "an old call, a custom one, and what is none",
        [
            {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "[1]"}},
            {"role": "function", "name": "f", "content": "done"},
            {
                "role": "assistant",
                "tool_calls": [
                    {"id": "x", "custom": {"name": "sh", "input": "ls"}},
                    "broken",
                    {"function": {"name": 3, "arguments": '{"k": NaN}'}},
                ],
            },
            _answer("late", "other"),
        ],
        [("f", None, "done"), ("sh", None, None), (None, None, None), (None, None, None)],
    ),
]


@pytest.mark.parametrize(("completion", "expected"), [case[1:] for case in CALLS], ids=[case[0] for case in CALLS])
def test_tool_calls_are_read_in_every_form_with_their_answers(
    completion: list[dict[str, Any]], expected: list[tuple[Any, ...]]
) -> None:
    """An answer belongs to the call with its id before the next turn, or by place where one of them has no id."""
    steps = list(steps_of([ASKED], completion, "tool_call"))
    assert expected == [(step.name, step.arguments, step.result) for step in steps]
    assert [(place, len(expected)) for place in range(len(expected))] == [(step.index, step.count) for step in steps]


def test_a_tool_call_has_its_own_messages_and_what_is_before_its_turn() -> None:
    """The other calls of its turn are in neither; its text is the arguments as they are written."""
    second = list(steps_of([SYSTEM, ASKED], TOOLS, "tool_call"))[2]
    assert ('{"e": "2 * 4"}', (SYSTEM, ASKED, *TOOLS[:3]), (TOOLS[3], TOOLS[4])) == (
        second.text,
        second.before,
        second.messages,
    )
    clock = list(steps_of("q", TOOLS, "tool_call"))[1]
    assert ({**TOOLS[0], "tool_calls": [TOOLS[0]["tool_calls"][1]]}, TOOLS[1]) == clock.messages


def test_turns_are_the_assistants_messages_of_the_completion() -> None:
    """Those of the prompt are before them; a completion that is text is one turn."""
    prompt = [ASKED, *_turns("Not a step.")]
    steps = list(steps_of(prompt, TOOLS, "turn"))
    assert ["Let me see.", "Let me see.", "It is 8."] == [step.text for step in steps]
    assert (*prompt, *TOOLS[:3]) == steps[1].before
    (only,) = steps_of("q", "a", "turn")
    assert ("a", ({"role": "user", "content": "q"},), tuple(_turns("a"))) == (only.text, only.before, only.messages)


SPANS: list[tuple[str, tuple[str, ...], list[tuple[str, str]]]] = [
    ("<step>one</step> and <step>two\n</step>", ("step",), [("step", "one"), ("step", "two")]),
    ("<step>one<step>inner</step>rest</step>", ("step",), [("step", "one<step>inner")]),
    ("<step>one</step><step>cut off", ("step",), [("step", "one"), ("step", "cut off")]),
    ("<think><step>a</step></think><step>b</step>", ("think", "step"), [("think", "<step>a</step>"), ("step", "b")]),
    ("<think><step>a</step></think><step>b</step>", ("step",), [("step", "a"), ("step", "b")]),
    ('<step n="1">one</step ><steps>no</steps><STEP>no</STEP>', ("step",), [("step", "one")]),
    ("<step></step>", ("step",), [("step", "")]),
    ("step", ("step",), []),
]


@pytest.mark.parametrize(("text", "labels", "expected"), SPANS, ids=[case[0][:40] for case in SPANS])
def test_a_span_goes_to_its_next_end_tag(text: str, labels: tuple[str, ...], expected: list[tuple[str, str]]) -> None:
    """Or to the end of the turn; tags inside it are text."""
    assert expected == [(step.label, step.text) for step in steps_of("", text, "span", labels)]


def test_what_a_turn_says_before_a_span_is_before_it() -> None:
    """As a message of the assistant's, after the turns before."""
    first, second = steps_of([ASKED], _turns("<step>one</step>", "So <step>two</step>"), "span", ["step"])
    assert (ASKED,) == first.before
    assert (ASKED, *_turns("<step>one</step>", "So ")) == second.before


def test_hostile_text_is_read_in_bounded_time_and_costs_no_thousand_questions() -> None:
    """Tags that never close are one span; more steps than are scored fail before any is."""
    (only,) = steps_of("", "<step " * 20_000 + ">" + "<step>" * 20_000, "span", ["step"])
    assert 6 * 20_000 == len(only.text)
    flood = _score(step_reward(as_long, each="span", label="step"), "<step></step>" * (MOST_STEPS + 1))
    assert (Status.FAILED, f"ValueError: {MANY.format('spans')}") == (flood.status, flood.error)


def test_no_more_calls_are_read_than_are_scored() -> None:
    """A turn of many calls costs as much as one of the most."""

    class Counted(dict[str, Any]):
        read = 0

        def get(self, key: str, default: Any = None) -> Any:
            Counted.read += key == "arguments"
            return super().get(key, default)

    calls = [{"id": str(place), "function": Counted(name="f", arguments="{}")} for place in range(10 * MOST_STEPS)]
    with pytest.raises(ValueError, match=MANY.format("tool calls")):
        list(steps_of("", [{"role": "assistant", "tool_calls": calls}], "tool_call"))
    assert Counted.read == MOST_STEPS + 1


def test_what_is_before_a_step_is_kept_no_longer_than_the_step() -> None:
    """A thousand spans of a long turn, each with all before it, would be as many copies of the turn."""

    @step_reward(each="span", label="step")
    def length(part: Step) -> float:
        return float(len(part.text))

    text = f"<step>{'long ' * 200}</step>" * MOST_STEPS
    tracemalloc.start()
    length(completion=text)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < 20 * len(text)


# One score of the steps'

REDUCED = [
    ("mean", None, [1, 0, 0.5], 0.5),
    ("mean", None, [0.7] * 3, 0.7),
    ("mean", None, [1.7e308] * 3, 1.7e308),
    ("min", None, [1, 0.25, 0.5], 0.25),
    ("last", None, [1, 0.25, 0.5], 0.5),
    ("discounted", 0.5, [1, 0, 1], (1 + 0.25) / 1.75),
    ("discounted", None, [1, 0], 1 / 1.9),
    ("discounted", 1, [1, 0, 0.5], 0.5),
    ("discounted", 1e-300, [0.3, 1, 1], 0.3),
]


@pytest.mark.parametrize(("reduce", "discount", "scores", "expected"), REDUCED)
def test_the_scores_of_steps_become_one_in_their_range(
    reduce: str, discount: float | None, scores: list[float], expected: float
) -> None:
    """Those of steps that are left out do not count."""

    @step_reward(reduce=reduce, discount=discount)
    def given(part: Step) -> float | None:
        return scores[int(part.text)] if part.text else None

    score = given(completion=_turns("", *map(str, range(len(scores))), ""))
    assert expected == pytest.approx(score.value)
    assert min(scores) <= score.value <= max(scores)


def test_each_step_is_shown() -> None:
    """In the metrics and the reason; metrics of the steps' own are their mean."""
    outcome = _score(right_tool, TOOLS, expected="['search', 'clock']")
    assert 2 / 3 == pytest.approx(outcome.score)
    assert [
        "mean over 3 of 3 tool calls",
        "step/0 search: 1, got x is 4",
        "step/1 clock: 1, got noon",
        "step/2 calc: 0, got 8",
    ] == (outcome.reason or "").splitlines()
    assert {"chars": 26 / 3, "steps": 3, "step/0": 1, "step/1": 1, "step/2": 0} == pytest.approx(dict(outcome.metrics))


def test_what_is_shown_is_bounded() -> None:
    """Many steps with long reasons and strange names count all, and are told as far as there is room."""

    @step_reward(each="tool_call")
    def long(part: Step) -> Score:
        return Score(part.index, "words\n" * 1_000)

    calls = [(f"to\nol\x1b[0m{'x' * 90}", "{}", None)] * (MOST_SHOWN + 2)
    outcome = _score(long, [_openai(*calls)])
    lines = (outcome.reason or "").splitlines()
    assert (MOST_SHOWN + 1) / 2 == outcome.score
    assert (1 + MOST_SHOWN + 1, "and 2 more", MOST_SHOWN + 2) == (len(lines), lines[-1], outcome.metrics["steps"])
    assert "\x1b" not in lines[1]
    assert 10_000 > len(outcome.reason or "")
    assert [f"step/{place}" for place in range(MOST_SHOWN)] == list(outcome.metrics)[1:]


SKIPPED = [
    (right_tool, "2 * 4 = 8", "the completion has no tool calls in its messages; each='span' reads those"),
    (whole_number, [ASKED], "the completion has no turns"),
    (whole_number, _turns("", ""), "last over 0 of 2 turns\nstep/0: left out\nstep/1: left out"),
    (awaited, [], "the completion has no turns"),
]


@pytest.mark.parametrize(("scored", "completion", "why"), SKIPPED)
def test_without_a_scored_step_the_completion_is_skipped(scored: Any, completion: Any, why: str) -> None:
    """With the reason."""
    outcome = _score(scored, completion, expected="[]")
    assert (Status.SKIPPED, None) == (outcome.status, outcome.score)
    assert (outcome.reason or "").startswith(why)


def _raises(error: BaseException) -> Callable[[Step], Any]:
    def act(part: Step) -> Any:
        if part.index == 1:
            raise error
        return 0.5

    return act


def _returns(value: Any) -> Callable[[Step], Any]:
    def act(part: Step) -> Any:
        return value if part.index == 1 else 0.5

    return act


FAILURES = [
    (_raises(ValueError("no")), Cause.EXCEPTION, "ValueError: no (in step/1, one of 3)"),
    (_raises(KeyError()), Cause.EXCEPTION, "KeyError (in step/1, one of 3)"),
    (_raises(SystemExit(3)), Cause.EXCEPTION, "SystemExit: 3 (in step/1, one of 3)"),
    (_raises(InfrastructureError("down")), Cause.INFRASTRUCTURE, "down (in step/1, one of 3)"),
    (_returns(float("nan")), Cause.BAD_RETURN, "returned nan; expected a finite number, a Score or None (in step/1,"),
    (_returns("good"), Cause.BAD_RETURN, "returned str 'good'; expected a finite number, a Score or None (text is no"),
    (
        _returns(Score(1, None, {"m": float("inf")})),
        Cause.BAD_RETURN,
        "returned metric 'm'=float inf; expected a finite",
    ),
    (_returns(2), Cause.BAD_RETURN, "returned 2.0, outside score_range=(0.0, 1.0) (in step/1, one of 3)"),
    (_returns(Decimal("sNaN")), Cause.BAD_RETURN, "returned Decimal Decimal('sNaN'); expected a finite"),
]


def _failing(place: int, awaits: bool) -> StepReward:
    act = FAILURES[place][0]

    def plain(part: Step) -> Any:
        return act(part)

    async def later(part: Step) -> Any:
        return act(part)

    return step_reward(later if awaits else plain, score_range=(0, 1), default=-1.0, name=f"{place} {awaits}")


@pytest.fixture(scope="module")
def failed() -> Callable[[int, bool], Outcome]:
    """The outcome of each failing reward: errors are scored inline, the others by the workers of one runtime."""
    cases = [(place, awaits) for place in range(len(FAILURES)) for awaits in (False, True)]
    batch: dict[str, Sequence[Outcome]] = {}
    for lane in ("inline", "worker"):
        chosen = [case for case in cases if (FAILURES[case[0]][1] is Cause.EXCEPTION) == (lane == "inline")]
        rewards = [_failing(*case) for case in chosen]
        with Runtime(rewards, workers=1, lane=lane, max_infrastructure_rate=1.0) as runtime:
            batch |= runtime.score([Rollout("Q", _turns("a", "b", "c"))])
    return lambda place, awaits: batch[f"{place} {awaits}"][0]


@pytest.mark.parametrize("awaits", [False, True], ids=["plain", "async"])
@pytest.mark.parametrize("place", range(len(FAILURES)), ids=[case[2][:30] for case in FAILURES])
def test_a_step_that_fails_makes_the_call_fail_and_is_named(
    place: int, awaits: bool, failed: Callable[[int, bool], Outcome]
) -> None:
    """With the cause that a single reward would have; nothing is made of the other steps' scores."""
    _, cause, words = FAILURES[place]
    outcome = failed(place, awaits)
    assert (Status.FAILED, cause) == (outcome.status, outcome.cause)
    assert (outcome.error or "").startswith(words)
    assert outcome.score == (None if cause is Cause.INFRASTRUCTURE else -1.0)


def test_an_error_that_is_raised_again_names_the_step_of_now() -> None:
    """Also where a reward raises one and the same error each time."""
    error = ValueError("no")
    error.add_note("its own")

    @step_reward
    def fails(part: Step) -> float:
        if part.text == "bad":
            raise error
        return 1.0

    trace = _score(fails, _turns("bad"), "worker").traceback or ""
    assert (1, True) == (trace.count("  File "), __file__ in trace)
    for texts, place in ((["bad"], "step/0, one of 1"), (["", "bad"], "step/1, one of 2")):
        assert f"ValueError: no (its own) (in {place})" == _score(fails, _turns(*texts)).error


@pytest.mark.parametrize("awaits", [False, True], ids=["plain", "async"])
@pytest.mark.parametrize("raised", [_Frozen("no"), _OfItsOwnNotes("no")], ids=["frozen", "notes of its own"])
def test_an_error_in_which_no_step_can_be_noted_is_told_as_it_is(raised: Exception, awaits: bool) -> None:
    """It is the function's fault that is told, and not that of the note."""

    def plain(part: Step) -> float:
        raise raised

    async def later(part: Step) -> float:
        raise raised

    outcome = _score(step_reward(later if awaits else plain, name="failing"), "a")
    assert (Cause.EXCEPTION, f"{type(raised).__name__}: no") == (outcome.cause, outcome.error)


def test_the_first_step_that_fails_ends_the_others() -> None:
    """Of awaited steps none is waited for in vain."""
    ended = []

    @step_reward
    async def waits(part: Step) -> float:
        try:
            await asyncio.sleep(0 if part.index else 3_600)
        except asyncio.CancelledError:
            ended.append(part.index)
            raise
        raise ValueError(part.text)

    outcome = _score(waits, _turns("a", "b"))
    assert ("ValueError: b (in step/1, one of 2)", [0]) == (outcome.error, ended)


@pytest.mark.parametrize(
    ("completion", "words"),
    [([{"content": "a"}], "expected a 'role'"), (5, "expected a string or a list of messages, got int")],
)
def test_what_is_no_completion_is_refused(completion: Any, words: str) -> None:
    """As a failed coercion is where it is called as a function."""
    with pytest.raises(Exception, match=words):
        whole_number(completion=completion)


@pytest.mark.parametrize("of", ["prompt", "completion"])
def test_a_role_that_nobody_has_is_a_failed_coercion(of: str) -> None:
    """A turn whose role is misspelt is not passed over; a judge says the same of it."""
    misspelt = {**TOOLS[0], "role": "asistant"}
    given = {"prompt": "Hi.", "completion": [ASKED, *TOOLS]} | {of: [ASKED, misspelt]}
    words = f"{of}, message 1: unknown role 'asistant'; the roles are system, developer, user, assistant, tool,"
    with pytest.raises(CoercionError, match=words) as ours:
        right_tool(**given, expected="[]")
    with pytest.raises(CoercionError, match=words) as theirs:
        turns_of(given[of], of)
    assert str(theirs.value) == str(ours.value)


def test_a_step_of_an_unknown_kind_is_refused() -> None:
    """A test that makes a step by hand tries no kind that never comes."""
    with pytest.raises(RewardDefinitionError, match="Step: kind='toolcall': expected 'turn', 'tool_call' or 'span'"):
        Step("{}", "toolcall")


# Where it stands: runs, compositions, pickles, versions

LANES = [("inline", {}), ("worker", {}), ("worker", {"concurrency": 4})]


@pytest.mark.parametrize(("lane", "options"), LANES, ids=["inline", "serial", "threads"])
def test_plain_step_rewards_run_in_every_lane(lane: str, options: dict[str, Any]) -> None:
    """Also one with other options, which is another reward."""
    outcome = _score(right_tool.with_options(name="other", **options), TOOLS, lane, expected=["calc"])
    assert (Status.SCORED, 1 / 3) == (outcome.status, pytest.approx(outcome.score))


@pytest.mark.parametrize("lane", ["inline", "worker"])
def test_async_step_rewards_run_in_every_lane(lane: str) -> None:
    """The steps keep their order, whichever is done first."""
    outcome = _score(awaited, _turns("3", "", "1"), lane)
    assert "min over 2 of 3 turns\nstep/0: 3\nstep/1: left out\nstep/2: 1" == outcome.reason


def test_concurrency_bounds_the_steps_in_flight() -> None:
    """Those of all calls together."""
    most, now = 0, 0

    @step_reward(concurrency=3)
    async def counted(part: Step) -> float:
        nonlocal most, now
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.001)
        now -= 1
        return 1.0

    with Runtime([counted], lane="inline") as runtime:
        runtime.score([Rollout("?", _turns(*"abcdef"))] * 4)
    assert 3 == most


def test_step_rewards_compose() -> None:
    """As other rewards do."""
    outcome = _score((0.5 * right_tool + whole_number).named("both"), TOOLS[:5] + _turns("8"), expected=["calc"])
    assert (Status.FAILED, Cause.EXCEPTION) == (outcome.status, outcome.cause)  # "Let me see." is no number
    outcome = _score(0.5 * right_tool + 1, TOOLS, expected=["search", "clock", "calc"])
    assert 1.5 == outcome.score


def test_what_else_a_function_takes_is_the_whole_completions() -> None:
    """Columns, prompt and completion in the form asked for, the row, and the training step."""
    seen: list[Any] = []

    @step_reward(each="tool_call")
    def curious(
        step: Step, prompt: str, completion: list[dict[str, Any]], epoch: float | None, **columns: int
    ) -> float:
        seen.append((step.name, prompt, len(completion), epoch, columns))
        return 1.0

    _score(curious, TOOLS, prompt=[SYSTEM, ASKED], n="4", step="5")
    assert ("search", ASKED["content"], len(TOOLS), None, {"n": 4}) == seen[0]
    part = functools.partial(right_tool.function, expected=["calc"])
    assert () == step_reward(part, each="tool_call").spec.required_columns
    assert 1 / 3 == pytest.approx(step_reward(part, each="tool_call")(completion=TOOLS).value)


test_a_table_of_cases_takes_a_step_reward = cases(
    right_tool,
    [
        {"completion": TOOLS, "expected": "['search', 'clock', 'calc']", "expect": 1.0},
        {"completion": "text", "expected": "[]", "expect": None},
    ],
)


SOURCE = """\
from rewardkit import Step, step_reward

@step_reward(each="tool_call")
def right_tool(part: Step, expected: list[str]) -> float:
    return float(part.name in expected)
"""


def test_the_command_line_scores_and_checks_steps(tmp_path: Path) -> None:
    """Each step is in the record; a column that the function cannot take is told before training."""
    file, rows, out = (tmp_path / name for name in ("rewards.py", "rows.jsonl", "out.jsonl"))
    file.write_text(SOURCE)
    rows.write_text(json.dumps({"prompt": [ASKED], "completion": TOOLS, "expected": ["calc"]}) + "\n")
    done = CliRunner().invoke(app, ["score", str(file), str(rows), "--out", str(out), "--inline"])
    (record,) = map(json.loads, out.read_text().splitlines())
    told = record["rewards"]["right_tool"]
    assert (0, {"steps": 3, "step/0": 0, "step/1": 0, "step/2": 1}) == (done.exit_code, told["metrics"])
    assert "step/2 calc: 1" == told["reason"].splitlines()[3]
    rows.write_text(json.dumps({"prompt": [ASKED], "expected": "calc"}) + "\n")
    done = CliRunner().invoke(app, ["check", str(file), "--data", str(rows)])
    assert (1, True) == (done.exit_code, "column 'expected': expected list[str], got 'calc'" in done.output)


def test_the_row_that_the_documentation_shows_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's reward, data and table go together, but for times."""
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[3] / "docs/how-to/reward-steps.md").read_text(encoding="utf-8")
    code, row, shown = (
        re.search(rf"```{info}\n(.*?)```", page, re.DOTALL)[1]  # type: ignore[index]
        for info in ("python", "json", "console")
    )
    Path("tool_rewards.py").write_text(code)
    Path("rollouts.jsonl").write_text(row)
    command, _, table = shown.partition("\n")
    done = CliRunner().invoke(app, command.split()[2:])
    assert table.splitlines()[2].split()[:7] == done.stdout.splitlines()[2].split()[:7]


WITHIN = """\
from rewardkit import reward, step_reward

@reward
def brief(completion: str) -> float:
    return float(len(completion) < 3)

twice = step_reward(brief, name="twice")
lowest = step_reward(twice, reduce="min", name="lowest")
"""
COMPOSED = WITHIN + "both = (0.5 * brief + 0.5 * lowest).named('both')\n"


@pytest.mark.parametrize(
    ("source", "names"),
    [(WITHIN, ["lowest"]), (COMPOSED, ["brief", "lowest", "both"])],
    ids=["alone", "composed"],
)
def test_a_file_does_not_count_a_reward_that_another_asks(tmp_path: Path, source: str, names: list[str]) -> None:
    """At any depth it counts through that one, unless a composition has it as a part."""
    file, rows = tmp_path / "within.py", tmp_path / "rows.jsonl"
    file.write_text(source)
    rows.write_text(json.dumps({"prompt": "p", "completion": "ab"}) + "\n")
    with Runtime([str(file)], lane="inline") as runtime:
        batch = runtime.score([Rollout("p", "ab")])
    assert (names, [1.0]) == (list(batch.scores), batch.totals)
    for command in ("score", "list", "check"):
        data = {"score": [str(rows), "--inline"], "list": [], "check": [str(rows)]}[command]
        told = json.loads(CliRunner().invoke(app, [command, str(file), *data, "--json"]).stdout)["rewards"]
        found = list(told) if command == "score" else [one.get("name", one.get("reward")) for one in told]
        assert [name for name in names if command != "check" or name != "both"] == found, command
    for name in ("brief", "twice"):
        assert name == resolve(f"{file}:{name}").name
    with pytest.raises(RewardLoadError, match="did you mean 'brief'"):
        resolve(f"{file}:breif")


def test_a_file_of_one_reward_and_those_that_it_asks_needs_no_name(tmp_path: Path) -> None:
    """A configuration and a table of cases may name such a file as a whole; it says what becomes of the steps."""
    (tmp_path / "within.py").write_text(WITHIN)
    (tmp_path / "rewards.yaml").write_text("functions: {mine: within.py}")
    with Runtime(RewardFunctionsConfig.from_yaml(tmp_path / "rewards.yaml"), lane="inline") as runtime:
        assert {"mine": [1.0]} == runtime.score([Rollout("p", "ab")]).scores
    told = describe(resolve(f"{tmp_path}/within.py"))
    assert ("lowest", "min over turns of twice") == (told["name"], told["doc"])


def test_a_step_reward_keeps_its_function_and_pickles(tmp_path: Path) -> None:
    """A file's own is found again under its name, one with other options goes by value; a function scores one step."""
    (tmp_path / "rewards.py").write_text(SOURCE)
    found = resolve(f"{tmp_path}/rewards.py:right_tool")
    assert found is pickle.loads(pickle.dumps(found))
    assert isinstance(found, Reward)
    other = found.with_options(name="other")
    again = cloudpickle.loads(cloudpickle.dumps(other))
    assert ("other", other.version, 1.0) == (
        again.name,
        again.version,
        again(completion=TOOLS[3:], expected="['calc']").value,
    )
    assert 1.0 == right_tool.function(Step("{}", "tool_call", name="calc"), ["calc"]).value
    assert ("right_tool", "Is the tool an expected one.") == (right_tool.__name__, right_tool.__doc__)
    step = Step("a", before=(ASKED,))
    assert step == pickle.loads(pickle.dumps(step))


def test_the_version_covers_the_function_and_how_its_scores_become_one() -> None:
    """Another function, label, reduction, discount or judge is another version; the name is not looked at."""

    def one(part: Step) -> float:
        return 1.0

    def two(part: Step) -> float:
        return 2.0

    made = [
        step_reward(one, name="x"),
        step_reward(two, name="x"),
        step_reward(one, name="x", each="tool_call"),
        step_reward(one, name="x", each="span", label="a"),
        step_reward(one, name="x", each="span", label=("a", "b")),
        step_reward(one, name="x", reduce="discounted"),
        step_reward(one, name="x", reduce="discounted", discount=0.5),
        step_reward(as_long, name="x"),
        step_reward(as_long.with_options(score_range=(0, 99)), name="x"),
    ]
    assert len(made) == len({scored.version for scored in made})
    assert step_reward(one, name="x").version == made[0].version


# Rewards as step rewards


def test_a_reward_scores_each_step_as_a_completion_of_its_own() -> None:
    """With all before it as the prompt; what its calls took is summed, and other metrics are a mean."""
    completion = [*_turns("four", "a"), ASKED, *_turns("to")]
    outcome = _score(step_reward(as_long, reduce="min", name="steps"), completion, add=1)
    assert (2.0, {"requests": 3.0, "share": 7 / 3, "steps": 3, "step/0": 5, "step/1": 2, "step/2": 3}) == (
        outcome.score,
        pytest.approx(dict(outcome.metrics)),
    )
    assert ["step/0: 5, ?", "step/1: 2, ?", f"step/2: 3, {ASKED['content']}"] == (outcome.reason or "").splitlines()[1:]


def test_a_reward_of_text_gets_a_calls_arguments_and_one_of_messages_its_messages() -> None:
    """So that either has what there is to score."""
    seen: list[Any] = []

    @reward
    def text(completion: str) -> float:
        seen.append(completion)
        return 1.0

    @reward
    def listed(completion: list[dict[str, Any]], messages: list[dict[str, Any]]) -> float:
        seen.append((completion, len(messages)))
        return 1.0

    for scored in (text, listed):
        _score(step_reward(scored, each="tool_call"), TOOLS[3:5])
    assert ['{"e": "2 * 4"}', (TOOLS[3:5], 3)] == seen


def test_a_rewards_options_hold_for_its_steps() -> None:
    """With sixteen times its deadline, unless others are given; called outside a loop it gives the score."""
    scored = step_reward(as_long, name="steps", retries=2)
    assert (160.0, (0.0, 9.0), 2, "steps") == (
        scored.options.timeout_s,
        scored.options.score_range,
        scored.options.retries,
        scored.name,
    )
    assert ("as_long", 160.0) == (step_reward(as_long).name, step_reward(as_long).options.timeout_s)
    assert 3.0 == step_reward(as_long, timeout_s=3).options.timeout_s
    assert ((as_long,), ()) == (scored.inner, right_tool.inner)
    assert 2.5 == scored(completion=_turns("a", "to"), add="1").value
    too_long = _score(scored, _turns("a" * 10))
    assert "returned 10.0, outside score_range=(0.0, 9.0) (in step/0, one of 1)" == too_long.error


def test_a_reward_given_as_text_scores_steps() -> None:
    """In its jail, a call each."""
    text = reward_from_source("def short(completion: str, most: int): return float(len(completion) <= most)")
    outcome = _score(step_reward(text), _turns("a", "long"), "worker", most="2")
    assert (Status.SCORED, 0.5) == (outcome.status, outcome.score)


def test_steps_of_steps() -> None:
    """A step reward is a reward too, and an error names both steps."""

    @step_reward(each="span", label="s")
    def brevity(part: Step) -> float:
        return 1 / len(part.text)

    assert 0.75 == _score(step_reward(brevity), _turns("<s>a</s>", "<s>ab</s>")).score
    outcome = _score(step_reward(brevity), _turns("<s>a</s>", "<s>ab</s><s></s>"))
    assert "ZeroDivisionError: division by zero (in step/1 s, one of 2) (in step/1, one of 2)" == outcome.error


# What is refused


@group_reward
def grouped(completions: list[str]) -> list[float]:
    return [0.0 for _ in completions]


@reward
def of_ids(completion_ids: list[int]) -> float:
    return 0.0


def _fit(part: Step) -> float:
    return 1.0


def _none(completion: str) -> float:
    return 1.0


def _both(a: Step, b: Step) -> float:
    return 1.0


def _by_place(part: Step, column: str, /) -> float:
    return 1.0


def _yields(part: Step) -> Any:
    yield 1.0


REFUSED: list[tuple[Any, dict[str, Any], str]] = [
    (_fit, {"each": "sentence"}, r"'_fit': each='sentence': expected 'turn', 'tool_call' or 'span'"),
    (_fit, {"reduce": "max"}, r"reduce='max': expected 'mean', 'min', 'last' or 'discounted'"),
    (_fit, {"each": "span"}, r"each='span', label=None: name the spans; label='step' is <step>"),
    (_fit, {"each": "span", "label": ""}, r"label='': name the spans"),
    (_fit, {"each": "span", "label": "<step>"}, r"label='<step>': expected a tag's name without brackets"),
    (_fit, {"each": "span", "label": ("a", 3)}, r"label=\('a', 3\): expected a tag's name"),
    (_fit, {"each": "span", "label": 3}, r"label=3: expected a tag's name"),
    (_fit, {"label": "step"}, r"label='step': only spans have labels; leave it out, or each='span'"),
    (_fit, {"reduce": "discounted", "discount": 0}, r"discount=0: expected a number above 0 and at most 1"),
    (_fit, {"reduce": "discounted", "discount": 1.1}, r"discount=1.1: expected a number"),
    (_fit, {"reduce": "discounted", "discount": True}, r"discount=True: expected a number"),
    (_fit, {"reduce": "discounted", "discount": float("nan")}, r"discount=nan: expected a number"),
    (_fit, {"discount": 0.5}, r"discount=0.5: leave it out, or reduce='discounted' instead of 'mean'"),
    (_fit, {"timeout_s": 0}, r"option timeout_s=0"),
    (_fit, {"name": ""}, r"option name=''"),
    (_fit, {"steps": 3}, r"unknown option 'steps'; the options are cache, .*discount, each, label, .*reduce, "),
    (_fit, {"reduse": "min"}, r"unknown option 'reduse'; did you mean 'reduce'\? The options are cache, "),
    (_fit, {"each": "span", "lable": "step"}, r"unknown option 'lable'; did you mean 'label'\?"),
    (_none, {}, r"'_none': one parameter takes the step, and is annotated Step: none is; write def _none\(part: Step"),
    (_both, {}, r"a and b are"),
    (_by_place, {}, r"takes its value by position"),
    (_yields, {}, r"@step_reward '_yields': it is a generator function"),
    (5, {}, r"@step_reward marks functions, not 5"),
    (Step, {}, r"Step is a class"),
    (0.5 * right_tool, {}, r"it is a composition; make a step reward of each part"),
    (grouped, {}, r"'grouped': it scores groups"),
    (of_ids, {}, r"'of_ids': it takes completion_ids"),
]


@pytest.mark.parametrize(("scored", "settings", "words"), REFUSED, ids=[case[2][:40] for case in REFUSED])
def test_what_makes_no_step_reward_is_refused_when_it_is_made(scored: Any, settings: Any, words: str) -> None:
    """The value is named, and what helps."""
    with pytest.raises(RewardDefinitionError, match=words):
        step_reward(scored, **settings)


def test_only_a_step_reward_takes_steps() -> None:
    """A reward whose parameter is annotated so is told which mark to use; one without a judge has no client."""
    with pytest.raises(RewardDefinitionError, match="only @step_reward hands steps to its function; mark it so"):
        reward(_fit)
    with pytest.raises(RewardDefinitionError, match="reward 'right_tool' has no client: it is not a judge"):
        right_tool.with_client(None)
    with pytest.raises(BadReturnError, match="returned nan"):
        step_reward(_returns(float("nan")), name="nan")(completion=_turns("a", "b"))
