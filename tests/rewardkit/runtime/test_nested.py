"""Values that are nested deeper than pickle goes reach the workers, and cost no other completion."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nested_rollouts import DEPTHS as TABLE_DEPTHS
from nested_rollouts import between_innocents, harmed, nested, nested_rollouts

from rewardkit import Rollout, Run, Runtime, Score, Step, group_reward, reward, step_reward
from rewardkit.blocks.nested import _Nested, copied, dumps
from rewardkit.errors import DataError

DEPTHS = [100, 600, 3_000]


def depth_of(value: object) -> int:
    depth = 0
    while isinstance(value, dict | list):
        value = value["inner"] if isinstance(value, dict) else value[0]
        depth += 1
    return depth


def messages(depth: int) -> list[dict[str, Any]]:
    call = {"type": "function", "function": {"name": "look", "arguments": nested(depth)}}
    return [{"role": "assistant", "content": "I look.", "tool_calls": [call]}]


@pytest.mark.parametrize("depth", [0, *DEPTHS, 100_000])
def test_a_value_arrives_as_deep_as_it_was(depth: int) -> None:
    """Also with other types beside it."""
    value, number = pickle.loads(dumps((nested(depth), 2**70)))
    assert (depth, 2**70) == (depth_of(value), number)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.binary(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.lists(inner, max_size=3).map(tuple)
            | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3)
        ),
        max_leaves=12,
    )
)
def test_parts_make_the_value_again(value: object) -> None:
    """Empty containers, tuples and keys of numbers too."""
    again = pickle.loads(pickle.dumps(_Nested(value)))
    assert repr(value) == repr(again)


def test_what_holds_itself_ends() -> None:
    """It is told, and does not fill the memory."""
    value: list[object] = []
    value.append(value)
    with pytest.raises(DataError, match="more than 1,000,000 nested parts, or holds itself"):
        pickle.dumps(_Nested(value))


@reward
def depth_of_call(messages: list[dict[str, Any]]) -> float:
    """How deep the arguments of a call are nested; 0 without a call."""
    calls = messages[-1].get("tool_calls") or [{"function": {"arguments": ""}}]
    return float(depth_of(calls[0]["function"]["arguments"]))


@reward(cache=True)
def characters(completion: str) -> float:
    """The length of the answer."""
    return float(len(completion))


@group_reward
def of_a_group(completions: list[str]) -> list[float]:
    """Ones."""
    return [1.0] * len(completions)


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_completion_nested_however_deep_costs_no_other_one(depth: int, tmp_path: Path) -> None:
    """A model may write such arguments of a tool; each reward sees them, and the record has what can be read."""
    rows = [Rollout("Look.", completion) for completion in ("fine", messages(depth), "good")]
    with Runtime([depth_of_call, characters, of_a_group], workers=1, record=tmp_path / "run") as runtime:
        outcomes = runtime.score(rows, step=0)
    assert [0.0, float(depth), 0.0] == [outcome.score for outcome in outcomes["depth_of_call"]]
    assert [4.0, 7.0, 4.0] == [outcome.score for outcome in outcomes["characters"]]
    assert [1.0] * 3 == [outcome.score for outcome in outcomes["of_a_group"]]
    with Run.open(tmp_path / "run") as run:
        first, deep, last = (row.completion for row in run.completions(step=0))
    assert ("fine", "good") == (first, last)
    assert isinstance(deep, list)
    assert ["assistant"] == [message["role"] for message in deep]
    assert "I look." in json.dumps(deep)


def test_a_copy_is_as_deep_and_shares_nothing() -> None:
    """Nor what its leaves hold."""
    leaf = bytearray(b"leaf")
    value = [leaf]
    for _ in range(10_000):
        value = [value]
    twin = copied(value)
    for _ in range(10_001):
        assert twin is not value
        twin, value = twin[0], value[0]
    assert twin == value == leaf
    assert twin is not leaf


@reward
def any_value(completion: Any, data: Any = None) -> float:
    """Takes whatever there is."""
    return 1.0


@reward
def of_an_object(completion: str, data: dict[str, Any] | None = None) -> float:
    """Takes an object."""
    return 1.0


@reward
def of_a_list(completion: str, data: list[Any] | None = None) -> float:
    """Takes a list."""
    return 1.0


@reward
def of_text(completion: str, data: str = "", **columns: Any) -> float:
    """Takes text, and all other columns."""
    return 1.0


@reward(cache=True)
def of_the_talk(messages: list[dict[str, Any]], example: dict[str, Any]) -> float:
    """Takes all messages and the raw row."""
    return 1.0


@group_reward
def of_values(completions: list[Any], data: Any = None) -> list[float]:
    """Takes whatever a group has."""
    return [1.0] * len(completions)


@step_reward(each="tool_call")
def each_call(part: Step) -> Score:
    """Each call with its answer."""
    return Score(1.0, str(part.result)[:20])


@step_reward(each="turn")
def each_turn(part: Step) -> float:
    """Each turn."""
    return float(len(part.text) >= 0)


@step_reward(each="span", label="a")
def each_span(part: Step) -> float:
    """Each span."""
    return float(len(part.text) >= 0)


TAKERS = [
    any_value,
    of_an_object,
    of_a_list,
    of_text,
    of_the_talk,
    of_values,
    of_a_group,
    each_call,
    each_turn,
    each_span,
]


@pytest.mark.cases(3)
@pytest.mark.parametrize(
    ("lane", "depth"),
    [*[("inline", depth) for depth in TABLE_DEPTHS], (None, 1_000), pytest.param(None, 10_000, marks=pytest.mark.full)],
)
def test_what_is_nested_anywhere_costs_no_other_row(lane: str | None, depth: int, tmp_path: Path) -> None:
    """In a completion, its calls, their answers, the prompt or a column: it is scored or fails alone, and recorded."""
    rows = nested_rollouts(depth)
    options: dict[str, Any] = {} if lane is None else {"lane": lane}
    with Runtime(TAKERS, workers=1, max_infrastructure_rate=1.0, record=tmp_path / "run", **options) as runtime:
        outcomes = runtime.score(between_innocents(rows), step=0).outcomes
    assert {} == harmed(outcomes)
    taken = dict(zip(rows, outcomes["any_value"][1::2], strict=True))
    assert dict.fromkeys(rows, 1.0) == {name: outcome.score for name, outcome in taken.items()}
    with Run.open(tmp_path / "run") as run:
        assert 2 * len(rows) + 1 == len(list(run.completions(step=0)))
