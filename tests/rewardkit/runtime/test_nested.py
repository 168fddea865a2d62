"""Values that are nested deeper than pickle goes reach the workers, and cost no other completion."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit import Rollout, Run, Runtime, group_reward, reward
from rewardkit.errors import DataError
from rewardkit.runtime.nested import _Nested, dumps

DEPTHS = [100, 600, 3_000]


def nested(depth: int) -> object:
    value: object = "leaf"
    for level in range(depth):
        value = [value] if level % 2 else {"inner": value}
    return value


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
