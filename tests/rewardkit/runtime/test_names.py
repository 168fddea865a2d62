"""Columns that are missing because another library has other names."""

from __future__ import annotations

from typing import Any

import pytest

from rewardkit import MissingColumnError, Rollout, Runtime, group_reward, reward

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


def test_a_group_is_told_of_its_completions() -> None:
    """A group reward takes a list."""
    said = _missing(group_reward(_takes("solution_str", "completions")), answer="4")
    assert "here that is 'completions', the texts of what the model wrote" in said


def test_a_slip_of_the_pen_is_told_as_one() -> None:
    """A column that is almost alike comes first; one that is alike by chance does not hide the meaning."""
    assert _missing(_takes("ground_truth", "completion"), ground_truths="4").endswith("did you mean 'ground_truths'?")
    assert "call your parser" in _missing(_takes("parser", "completion"), answer="4")


def test_a_column_of_that_name_is_a_column() -> None:
    """Where the data has it, nothing is missing."""
    with Runtime([reward(_takes("solution_str", "completion"))], lane="inline") as runtime:
        assert [1.0] == runtime.score([Rollout("p", "c", {"solution_str": "x"})]).scores["takes"]
