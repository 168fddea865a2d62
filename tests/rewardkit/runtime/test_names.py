"""Columns that are missing because another library has other names."""

from __future__ import annotations

from typing import Any

import pytest

from rewardkit import MissingColumnError, Rollout, Runtime, group_reward, reward
from rewardkit.runtime.names import missing_columns, unread_columns

NAMES = {
    "solution_str": "here that is 'completion'",
    "ground_truth": "here a right answer is a column of your data",
    "data_source": "here that is a column of your data",
    "extra_info": "here that is 'example', the row as a dictionary",
    "state": "here that is 'messages'",
    "parser": "here a reward reads the completion itself",
    "task": "here that is a column of your data",
    "info": "here that is 'example'",
    "trainer_state": "here that is 'step'",
    "log_metric": "here numbers to log are returned",
    "response": "here that is 'completion'",
    "question": "here that is 'prompt'",
    "self": "mark a bound method instead",
}


def _takes(name: str, completion: str) -> Any:
    namespace: dict[str, Any] = {}
    exec(f"def takes({completion}, {name}): return 1.0", namespace)
    return namespace["takes"]


def _missing(made: Any, **example: Any) -> str:
    with Runtime([made], lane="inline") as runtime, pytest.raises(MissingColumnError) as missing:
        runtime.score([Rollout("p", "c", example)])
    return str(missing.value)


@pytest.mark.parametrize(("name", "words"), NAMES.items(), ids=NAMES)
def test_a_name_of_another_library_is_told_with_what_it_is_called_here(name: str, words: str) -> None:
    """The message has the reward, the name, what to write, and the columns that there are."""
    said = _missing(_takes(name, "completion"), answer="4")
    assert said.startswith(f"reward 'takes' needs column {name!r}, which example 0 lacks; {words}")
    assert said.endswith("; it has 'answer'")


def test_a_column_of_another_name_has_the_way_on() -> None:
    """Where no name is near and none is meant."""
    assert _missing(_takes("answer", "completion"), gold=4).endswith("it has 'gold'; use one name in data and reward")


def test_a_group_is_told_of_its_completions() -> None:
    """A group reward takes a list."""
    said = _missing(group_reward(_takes("solution_str", "completions")), answer="4")
    assert "here that is 'completions', the texts of what the model wrote" in said


def test_a_slip_of_the_pen_is_told_as_one() -> None:
    """A column that is almost alike comes first; one that is alike by chance does not hide the meaning."""
    message = _missing(_takes("ground_truth", "completion"), ground_truths="4")
    assert "the data has the near name 'ground_truths'" in message
    assert "call your parser" in _missing(_takes("parser", "completion"), answer="4")


def test_a_column_of_that_name_is_a_column() -> None:
    """Where the data has it, nothing is missing."""
    with Runtime([reward(_takes("solution_str", "completion"))], lane="inline") as runtime:
        assert [1.0] == runtime.score([Rollout("p", "c", {"solution_str": "x"})]).scores["takes"]


def _misspelt(name: str) -> str:
    return name[:-2] + name[-1] + name[-2]


def _renamed(data: str, parameter: str) -> tuple[Any, dict[str, Any]]:
    """Return a reward and a row in which each side's names are as asked."""
    source = f"def graded(completion, {parameter}): return 1.0"
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    return reward(namespace["graded"]), {data: "4"}


@pytest.mark.parametrize("name", ["answer", "ground_truth", "tests", "reference_answer"])
@pytest.mark.parametrize("side", ["data", "reward"])
@pytest.mark.parametrize("default", ["", "=None"], ids=["required", "with a default"])
def test_a_near_name_is_said_to_be_on_its_own_side(name: str, side: str, default: str) -> None:
    """Whichever side is misspelt: no sentence asks whether the name that is right was meant by the other."""
    wrong = _misspelt(name)
    data, parameter = (wrong, name) if side == "data" else (name, wrong)
    graded, row = _renamed(data, parameter + default)
    missing = [misfit.error for misfit in missing_columns(graded, [row])]
    unread = unread_columns([graded], list(row), [])
    if default:
        assert [] == missing
        sentence = f"the reward 'graded' has a parameter of the near name {parameter!r}, which keeps its default"
    else:
        hint = f"the data has the near name {data!r}: use one name in data and reward"
        assert [f"column {parameter!r} is missing; {hint}"] == missing
        assert _missing(graded, **row).endswith(f"needs column {parameter!r}, which example 0 lacks; {hint}")
        sentence = f"the reward 'graded' needs the near name {parameter!r}"
    assert {data: f"{sentence}: use one name in data and reward"} == unread


def test_a_column_that_the_data_has_is_near_nothing() -> None:
    """Two columns with like names are both there; one is read by no reward."""
    graded, _ = _renamed("answer", "answer")
    assert {"answers": None} == unread_columns([graded], ["answer", "answers", "id"], ["id"])
