"""A trainer's keyword lists become rollouts with copies of everything, and a digest that tells calls apart."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from rewardkit import DataError, Rollout
from trainer_adapter.columns import FrozenBatch


def frozen(**changes: Any) -> FrozenBatch:
    """Return a batch of two completions of each of two prompts, with some of the call changed."""
    call: dict[str, Any] = {
        "prompts": ["2+2=", "2+2=", "3+3=", "3+3="],
        "completions": ["4", "5", "6", "6"],
        "completion_ids": [[4], [5], [6], [6, 0]],
        "answer": ["4", "4", "6", "6"],
        "trainer_state": SimpleNamespace(global_step=3, epoch=0.5),
        **changes,
    }
    return FrozenBatch(call.pop("prompts"), call.pop("completions"), call.pop("completion_ids"), call)


def test_each_completion_becomes_a_rollout_with_its_own_prompt_row_and_token_ids() -> None:
    """Rollouts are in the trainer's order, and columns are split by row."""
    expected = [
        Rollout("2+2=", "4", {"answer": "4"}, [4]),
        Rollout("2+2=", "5", {"answer": "4"}, [5]),
        Rollout("3+3=", "6", {"answer": "6"}, [6]),
        Rollout("3+3=", "6", {"answer": "6"}, [6, 0]),
    ]
    assert expected == frozen().rollouts()


def test_the_trainers_own_keywords_are_no_columns() -> None:
    """State, logging functions and environments stay out of the example."""
    batch = frozen(log_extra=print, log_metric=print, environments=[object()])
    assert [{"answer": answer} for answer in "4466"] == [rollout.example for rollout in batch.rollouts()]


def test_a_column_may_have_any_name_and_type() -> None:
    """Columns called self, name and prompt, and values that are no strings, pass through unchanged."""
    columns = {"self": [1, 2, 3, 4], "name": [None, 1.5, {"a": [1]}, b"x"], "step": ["a", "b", "c", "d"]}
    rollouts = frozen(**columns).rollouts()
    assert columns == {name: [rollout.example[name] for rollout in rollouts] for name in columns}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"answer": ["4", "4", "6"]}, "column 'answer': expected 4 values, one a completion, got 3"),
        ({"answer": "4466"}, "column 'answer': expected a list of 4 values, one a completion, got str"),
        ({"answer": 4}, "column 'answer': expected a list of 4 values, one a completion, got int"),
        ({"answer": {0: "4"}}, "column 'answer': expected a list of 4 values, one a completion, got dict"),
        ({"completions": ["4"]}, "completions: expected 4 values, one a completion, got 1"),
        ({"completion_ids": [[4]]}, "completion_ids: expected 4 values, one a completion, got 1"),
    ],
    ids=["short column", "string column", "scalar column", "mapping column", "completions", "completion_ids"],
)
def test_a_list_of_the_wrong_length_is_named(changes: dict[str, Any], words: str) -> None:
    """A list that does not fit the prompts is a DataError that says which."""
    with pytest.raises(DataError) as wrong:
        frozen(**changes)
    assert words == str(wrong.value)


def test_what_the_trainer_changes_later_is_not_seen() -> None:
    """Rollouts hold the messages and columns as they were at the call."""
    prompts = [[{"role": "user", "content": "2+2="}]]
    completions = [[{"role": "assistant", "content": "4"}]]
    tags = [["sum"]]
    batch = FrozenBatch(prompts, completions, [[4]], {"tags": tags})
    prompts[0][0]["content"] = completions[0][0]["content"] = "changed"
    tags[0].append("changed")
    expected = [
        Rollout([{"role": "user", "content": "2+2="}], [{"role": "assistant", "content": "4"}], {"tags": ["sum"]}, [4])
    ]
    assert expected == batch.rollouts()


def test_rows_of_equal_prompt_and_columns_share_one_object() -> None:
    """Sharing follows content, not the trainer's objects, so groups are found however the rows were decoded."""
    text = "".join(["two and ", "two"])
    first = [{"role": "user", "content": text}, {"role": "user", "content": text}]
    second = [{"role": "user", "content": "two and two"}, {"role": "user", "content": "".join(["two and", " two"])}]
    rollouts = FrozenBatch([first, second, first], ["a", "b", "c"], None, {"answer": ["4", "4", "5"]}).rollouts()
    assert rollouts[0].prompt is rollouts[1].prompt
    assert rollouts[0].example is rollouts[1].example
    assert rollouts[0].example is not rollouts[2].example


def test_equal_calls_have_one_digest_whatever_their_objects() -> None:
    """A call of the same content is the same call."""
    assert frozen().digest == frozen(completions=["".join(["", c]) for c in "4566"]).digest


@pytest.mark.parametrize(
    "changes",
    [
        {"prompts": ["2+2=", "2+2=", "3+3=", "3+3 ="]},
        {"completions": ["4", "5", "6", "7"]},
        {"completions": ["5", "4", "6", "6"]},
        {"completion_ids": [[4], [5], [6], [6]]},
        {"completion_ids": None},
        {"answer": ["4", "4", "6", 6]},
        {"other": ["4", "4", "6", "6"]},
        {"trainer_state": SimpleNamespace(global_step=4, epoch=0.5)},
        {"trainer_state": SimpleNamespace(global_step=3, epoch=0.6)},
        {"trainer_state": None},
    ],
    ids=["prompt", "completion", "order", "ids", "no ids", "type", "column", "step", "epoch", "no state"],
)
def test_a_call_that_differs_in_anything_has_another_digest(changes: dict[str, Any]) -> None:
    """So that no score is ever taken for another completion's."""
    assert frozen().digest != frozen(**changes).digest


def test_moving_text_from_one_value_to_the_next_changes_the_digest() -> None:
    """Values are told apart, not only their sum."""
    one = FrozenBatch(["p"], ["ab"], None, {"a": ["x"], "b": ["yz"]})
    other = FrozenBatch(["p"], ["ab"], None, {"a": ["xy"], "b": ["z"]})
    assert one.digest != other.digest


def test_a_value_that_cannot_be_copied_passes_through_as_it_is() -> None:
    """A lock in a column that no reward reads is no reason to stop."""
    locks = [threading.Lock(), threading.Lock()]
    batch = FrozenBatch(["p", "p"], ["a", "b"], None, {"lock": locks})
    assert locks == [rollout.example["lock"] for rollout in batch.rollouts()]
    assert batch.digest == FrozenBatch(["p", "p"], ["a", "b"], None, {"lock": locks}).digest
    assert batch.digest != FrozenBatch(["p", "p"], ["a", "b"], None, {"lock": locks[::-1]}).digest


def test_a_value_that_holds_itself_is_copied() -> None:
    """Cycles cost the canonical form, not the copy."""
    cycle: list[Any] = [1]
    cycle.append(cycle)
    copied = FrozenBatch(["p"], ["a"], None, {"cycle": [cycle]}).rollouts()[0].example["cycle"]
    assert copied is not cycle
    assert copied[1] is copied


def test_without_a_trainer_state_step_and_epoch_are_unknown() -> None:
    """Trainers that hand over no state are served."""
    batch = FrozenBatch(["p"], ["a"], None, {})
    assert (None, None) == (batch.step, batch.epoch)


def test_an_empty_batch_has_no_rollouts() -> None:
    """No completions, no rows."""
    assert [] == FrozenBatch([], [], [], {"answer": []}).rollouts()
