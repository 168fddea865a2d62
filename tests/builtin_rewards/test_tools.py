"""The reward for tool calls."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

from builtin_rewards.tools import tool_call
from rewardkit import Rollout, Runtime

WEATHER = {"name": "weather", "arguments": {"city": "Oslo", "days": 3}}
TIME = {"name": "time", "arguments": {}}


def tagged(*calls: Any) -> str:
    return "\n".join(f"<tool_call>\n{json.dumps(call)}\n</tool_call>" for call in calls)


def spoken(*calls: Any, text: bool = True) -> list[dict[str, Any]]:
    made = []
    for call in calls:
        arguments = json.dumps(call["arguments"]) if text else call["arguments"]
        made.append({"id": "x", "type": "function", "function": {"name": call["name"], "arguments": arguments}})
    return [{"role": "assistant", "content": None, "tool_calls": made}]


def call(name: str = "weather", **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


@pytest.mark.parametrize(
    "completion",
    [
        tagged(WEATHER),
        "<think>call <tool_call>{}</tool_call>?</think>\n" + tagged(WEATHER),
        "I look it up.\n" + tagged(WEATHER),
        json.dumps(WEATHER),
        json.dumps([WEATHER]),
        "<think>hm</think><answer>" + json.dumps(WEATHER) + "</answer>",
        "<think>hm</think><answer>" + tagged(WEATHER) + "</answer>",
        json.dumps(WEATHER) + "<|im_end|>",
        "<|python_tag|>" + json.dumps(WEATHER) + "<|eom_id|>",
        "[TOOL_CALLS]" + json.dumps([WEATHER]) + "</s>",
        f"```json\n{json.dumps(WEATHER)}\n```",
        json.dumps({"name": "weather", "parameters": WEATHER["arguments"]}),
        json.dumps({"name": "weather", "arguments": json.dumps(WEATHER["arguments"])}),
        json.dumps({"role": "assistant", "tool_calls": spoken(WEATHER)[0]["tool_calls"]}),
        spoken(WEATHER),
        spoken(WEATHER, text=False),
        [*spoken(WEATHER), {"role": "tool", "content": "snow"}, {"role": "assistant", "content": "It snows."}],
        [{"role": "assistant", "content": tagged(WEATHER)}],
        [{"role": "assistant", "content": [{"type": "text", "text": tagged(WEATHER)}]}],
        tagged({"name": "weather", "arguments": {"days": 3.0, "city": "Oslo"}}),
        '[TOOL_CALLS]weather[ARGS]{"city": "Oslo", "days": 3}</s>',
        "<function=weather>\n<parameter=city>\nOslo\n</parameter><parameter=days>3</parameter></function>",
        "[weather(city='Oslo', days=3)]<|eom_id|>",
        "```python\nweather(city='Oslo', days=3)\n```",
        tagged({"name": "weather", "args": WEATHER["arguments"]}),
        tagged({"name": "weather", "input": WEATHER["arguments"]}),
    ],
)
def test_every_way_of_writing_the_call(completion: Any) -> None:
    """The right call scores 1.0 in each of them, and 0.0 where another tool is expected."""
    for answer in (WEATHER, [WEATHER], json.dumps(WEATHER), json.dumps([WEATHER])):
        assert 1.0 == tool_call(completion=completion, answer=answer).value
    assert 0.0 == tool_call(completion=completion, answer=call("other", city="Oslo", days=3)).value


@pytest.mark.parametrize(
    ("completion", "answer", "score"),
    [
        (tagged(call(city="Oslo", days=4)), WEATHER, 0.2 + 0.3 + 0.25),
        (tagged(call(city="Oslo")), WEATHER, 0.2 + 0.15 + 0.25),
        (tagged(call(city="Oslo", days=3, unit="C")), WEATHER, 0.2 + (0.3 + 0.5) * 2 / 3),
        (tagged(call()), WEATHER, 0.2),
        (tagged(call(x=1)), WEATHER, 0.2),
        (tagged(call("Weather", city="Oslo", days=3)), WEATHER, 0.0),
        (tagged(call("we\u0430ther", city="Oslo", days=3)), WEATHER, 0.0),
        (tagged(call(city="Oslo", days="3")), WEATHER, 0.75),
        (tagged(call(city="oslo", days=3)), WEATHER, 0.75),
        (tagged(call(flag=1)), call(flag=True), 0.5),
        (tagged(call(flag=[{"a": 0}])), call(flag=[{"a": False}]), 0.5),
        (tagged(call(flag=[{"a": 0}])), call(flag=[{"a": 0.0}]), 1.0),
        (tagged(TIME), TIME, 1.0),
        (tagged({"name": "time"}), TIME, 1.0),
        (tagged(WEATHER, TIME), [TIME, WEATHER], 1.0),
        (tagged(WEATHER), [TIME, WEATHER], 0.5),
        (tagged(WEATHER, WEATHER), WEATHER, 0.5),
        (tagged(WEATHER, WEATHER), [WEATHER, WEATHER], 1.0),
        (tagged(WEATHER), [WEATHER, WEATHER], 0.5),
        (tagged(call(city="Rome", days=3), WEATHER), [WEATHER, call(city="Rome", days=3)], 1.0),
        (tagged(*[call(city=city, days=3) for city in ("A", "B", "C", "Oslo")]), WEATHER, 0.25),
        (tagged(*[call(city=str(city), days=3) for city in range(1_000)], WEATHER), WEATHER, 0.0),
        (tagged(WEATHER) + "<tool_call>nonsense</tool_call>", WEATHER, 0.5),
        (tagged(WEATHER) + "<tool_call>" + json.dumps(WEATHER), WEATHER, 0.5),
        ("<tool_call>" + json.dumps(WEATHER), WEATHER, 0.0),
        (tagged(WEATHER) + "<TOOL_CALL>" + json.dumps(WEATHER) + "</TOOL_CALL>", WEATHER, 0.5),
        ('<tool_call>{"name": "weather", "arguments": "Oslo"}</tool_call>', WEATHER, 0.2),
        ('<tool_call>{"name": "weather", "arguments": {"city": "a", "city": "Oslo"}}</tool_call>', WEATHER, 0.0),
        ('<tool_call>{"name": ["weather"]}</tool_call>', WEATHER, 0.0),
        ("<think>" + tagged(WEATHER) + "</think> No.", WEATHER, 0.0),
        ("I would call weather with Oslo and 3.", WEATHER, 0.0),
        ("", WEATHER, 0.0),
        ([], WEATHER, 0.0),
        ([{"role": "user", "content": tagged(WEATHER)}], WEATHER, 0.0),
        ([{"role": "assistant", "content": "", "tool_calls": "weather"}], WEATHER, 0.0),
        ([{"role": "assistant", "tool_calls": [None, 3, {"function": None}]}], WEATHER, 0.0),
    ],
)
def test_partial_credit(completion: Any, answer: Any, score: float) -> None:
    """Name, argument names and values count their shares; missing, extra and broken calls cost."""
    assert score == pytest.approx(tool_call(completion=completion, answer=answer).value)


@pytest.mark.parametrize(
    ("completion", "score"),
    [
        ("No tool is needed.", 1.0),
        ("", 1.0),
        ("<think>" + tagged(TIME) + "</think>No tool is needed.", 1.0),
        ('{"a": 1}', 1.0),
        ('{"name": "Bob", "age": 3}', 1.0),
        ("I would call `time`, or `<tool_call>time</tool_call>`.", 1.0),
        ([{"role": "assistant", "content": "No."}], 1.0),
        (tagged(TIME), 0.0),
        ("<tool_call>", 0.0),
        (json.dumps(TIME), 0.0),
        ('{"name": "time", "argum', 0.0),
        ("The time(s) vary, f(x) = 3, and call me at 5 (five).", 1.0),
        ("\uff5ctool", 1.0),
        ("<\uff5ctool\u2581calls\u2581begin\uff5c>", 0.0),
        ("<tool_call>time()</tool_call>", 0.0),
        ("[TOOL_CALLS]time[ARGS]{}", 0.0),
        ("[time()]", 0.0),
        ("<function=time></function>", 0.0),
        ("```tool_code\ntime()\n```", 0.0),
        (spoken(TIME), 0.0),
        ([{"role": "assistant", "content": "", "tool_calls": "time"}], 0.0),
        ([{"role": "assistant", "content": None, "function_call": {"name": "time", "arguments": "{}"}}], 0.0),
        ([{"role": "assistant", "content": [{"type": "tool_use", "name": "time", "input": {}}]}], 0.0),
        # A call in a form that is not read is neither a call nor none.
        ("<TOOL_CALL>time</TOOL_CALL>", 0.0),
        ("<start_function_call>call:time{}<end_function_call>", 0.0),
        ("<tool_use>time</tool_use>", 0.0),
        ("Thought: now\nAction: time\nAction Input: {}", 0.0),
        ("So: " + json.dumps(TIME), 0.0),
        ("time()", 0.0),
        ('time(zone="UTC")', 0.0),
        ('>>>time\n{"zone": "UTC"}', 0.0),
        ('<function name="time">{}</function>', 0.0),
        ('{"action": "time", "action_input": {}}', 0.0),
        ([{"role": "assistant", "content": "<tool_use>time</tool_use>"}], 0.0),
        ([{"role": "assistant", "content": "<tool_use>"}, {"role": "assistant", "content": tagged(TIME)}], 0.0),
    ],
)
def test_rows_that_expect_no_call(completion: Any, score: float) -> None:
    """An empty list is an answer: then a call is wrong, in whatever form."""
    for answer in ("[]", []):
        assert score == tool_call(completion=completion, answer=answer).value


@pytest.mark.parametrize("completion", ["<tool_use>time</tool_use>", 'time(zone="UTC")', "<tool_call>{</tool_call>"])
def test_the_reason_names_a_form_that_is_not_read(completion: str) -> None:
    """A policy earns nothing by it, and whoever reads the run sees why."""
    scored = tool_call(completion=completion, answer=WEATHER)
    assert (0.0, True) == (scored.value, "in a form that is not read" in str(scored.reason))


@pytest.mark.parametrize(
    ("completion", "score"),
    [
        # One guess in each form is as many guesses.
        (tagged(call(city="Rome", days=3)) + "[TOOL_CALLS]weather[ARGS]" + json.dumps(WEATHER["arguments"]), 0.5),
        ("<function=weather>" + json.dumps(WEATHER["arguments"]) + "</function>" + tagged(TIME, TIME), 1 / 3),
        # JSON beside a mark is content: one guess counts, and it is the marked one.
        (json.dumps(WEATHER) + tagged(call(city="Rome", days=3)), 0.2 + 0.3 + 0.25),
        (json.dumps(WEATHER) + "\n" + json.dumps(WEATHER), 0.5),
        (f"```json\n{json.dumps(WEATHER)}\n```\n```json\n{json.dumps(TIME)}\n```", 0.0),
        # No types: text for text, and JSON for what is none.
        ("<function=weather><parameter=city>Oslo</parameter><parameter=days>3</parameter></function>", 1.0),
        ("<function=weather><parameter=city>Oslo</parameter><parameter=days>'3'</parameter></function>", 0.75),
        ("<tool_call>weather<arg_key>city</arg_key><arg_value>Oslo</arg_value></tool_call>", 0.2 + 0.15 + 0.25),
        # The channel of thoughts does not count, and what is said behind it does.
        (
            "<|channel|>analysis<|message|>[TOOL_CALLS]time[ARGS]{}<|end|><|start|>assistant to=functions.weather"
            '<|channel|>commentary json<|message|>{"city": "Oslo", "days": 3}<|call|>',
            1.0,
        ),
        ("<|channel|>analysis<|message|>I call " + tagged(WEATHER) + "<|end|>", 0.0),
        ("[THINK]" + tagged(WEATHER) + "[/THINK]No.", 0.0),
        ("<think>" + tagged(WEATHER), 0.0),
        # A call in another's argument is text.
        (tagged(call("say", text=tagged(WEATHER))), 0.0),
        (f"<think>{tagged(TIME)}</think><answer>[weather(city='Oslo', days=3)]</answer>", 1.0),
        (f"<answer>{tagged(TIME)}</answer>[weather(city='Oslo', days=3)]", 0.0),
        (f"It would be `{tagged(WEATHER)}`.", 0.0),
        (f"{json.dumps(TIME)} or so</think>{json.dumps(WEATHER)}", 1.0),
        (
            [
                {
                    "role": "assistant",
                    "content": [{"type": "tool_use", "id": "x", **call(), "input": WEATHER["arguments"]}],
                }
            ],
            1.0,
        ),
        ([{"role": "assistant", "content": None, "function_call": WEATHER}], 1.0),
        ([{"role": "assistant", "content": f"<think>{tagged(TIME)}</think>{tagged(WEATHER)}"}], 1.0),
    ],
)
def test_guesses_and_forms(completion: Any, score: float | None) -> None:
    """No form is a way to guess more than once."""
    assert tool_call(completion=completion, answer=WEATHER).value == (score if score is None else pytest.approx(score))


@pytest.mark.parametrize(
    "answer",
    [None, "", "null", "weather", "3", 3, {"arguments": {}}, [WEATHER, 1], {"name": "a", "arguments": [1]}, "{", {1}],
    ids=repr,
)
def test_rows_without_a_usable_answer_are_skipped(answer: Any) -> None:
    """It is not the completion's fault."""
    score = tool_call(completion=tagged(WEATHER), answer=answer)
    assert score.value is None
    assert "the row" in (score.reason or "")


def test_answers_nested_too_deep_are_skipped() -> None:
    """Comparing cannot recurse too deep."""
    deep = '{"name": "a", "arguments": {"x": ' + "[" * 200 + "]" * 200 + "}}"
    assert tool_call(completion=deep, answer=deep).value is None


@pytest.mark.parametrize(
    "completion",
    [
        " \n",
        "\0" * 1_000,
        "\ud800",
        "[" * 100_000,
        "<tool_call>" * 20_000,
        "<tool_call></tool_call>" * 20_000,
        "<tool_call>" + "[" * 10_000 + "]" * 10_000 + "</tool_call>",
        '{"name": "weather", "arguments": ' + "[" * 10_000 + "]" * 10_000 + "}",
        "word " * 200_000,
    ],
    ids=["white", "nul", "surrogate", "open", "tags", "empty tags", "deep", "deep arguments", "long"],
)
def test_hostile_completions(completion: str) -> None:
    """They score 0.0 and crash nothing."""
    assert 0.0 == tool_call(completion=completion, answer=WEATHER).value


def test_in_the_runtime_conversations_keep_their_tool_calls() -> None:
    """A completion of messages is read as such, a string as text."""
    rollouts = [Rollout([{"role": "user", "content": "?"}], spoken(WEATHER), {"answer": json.dumps(WEATHER)})]
    rollouts += [Rollout("?", tagged(TIME), {"answer": json.dumps(WEATHER)}), Rollout("?", "", {"answer": None})]
    with Runtime([tool_call], workers=1) as runtime:
        assert [1.0, 0.0, None] == runtime.score(rollouts).scores["tool_call"]


def test_weights() -> None:
    """They may be set, and must sum to 1."""
    assert 0.0 == tool_call(weights=(0, 0, 1))(completion=tagged(call()), answer=WEATHER).value
    assert 0.5 == tool_call(weights=(0.5, 0.25, 0.25))(completion=tagged(call()), answer=WEATHER).value
    for bad in ((1, 1, 1), (-1, 1, 1), (1, 0)):
        with pytest.raises(ValueError, match="weights="):
            tool_call(weights=bad)


@pytest.mark.parametrize("made", [tool_call, tool_call(weights=(0, 0, 1))])
def test_rewards_travel(made: Any) -> None:
    """They pickle, and score the same afterwards."""
    again = pickle.loads(pickle.dumps(made))
    assert made.name == again.name
    assert made(completion=tagged(WEATHER), answer=WEATHER) == again(completion=tagged(WEATHER), answer=WEATHER)
