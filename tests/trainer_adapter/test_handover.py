"""What a trainer was handed is checked before its first step: functions with their weights, and both data sets."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import tiny_grpo

from rewardkit import ConfigError, DataError, MissingColumnError, Reward, RewardError, reward
from trainer_adapter import RewardAdapter
from trainer_adapter.handover import check_function_weights, check_handover

OURS = {"one": 0.5, "ten": 2.0, "hundred": 0.25}
ROWS = SimpleNamespace(column_names=["prompt", "answer"])


@reward
def matches(completion: str, answer: str) -> float:
    return float(completion == answer)


@reward
def count_columns(completion: str, **columns: object) -> float:
    return float(len(columns))


@reward
def short(completion: str) -> float:
    return float(len(completion) < 5)


def trainer_with(functions: Mapping[str, float] | Sequence[tuple[str, float]] = (), **attributes: Any) -> Any:
    """Return what is read of a trainer with functions of these names and weights."""
    pairs = list(functions.items() if isinstance(functions, Mapping) else functions)
    names, weights = [name for name, _ in pairs], [weight for _, weight in pairs]
    options = {"train_dataset": ROWS, "args": SimpleNamespace(), **attributes}
    return SimpleNamespace(reward_func_names=names, reward_weights=weights, **options)


@pytest.mark.parametrize("others", [{}, {"foreign": 7.0}], ids=["alone", "beside a foreign function"])
def test_weights_belong_to_functions_and_not_to_places(others: Mapping[str, float]) -> None:
    """Every order of the functions is right with their own weights, and refused with any others."""
    for names in itertools.permutations({**OURS, **others}):
        own = [{**OURS, **others}[name] for name in names]
        for weights in itertools.permutations(own):
            trainer = trainer_with(list(zip(names, weights, strict=True)))
            if list(weights) == own:
                check_function_weights(trainer, OURS)
            else:
                with pytest.raises(ConfigError, match=r"reward_weights=adapter\.weights"):
                    check_function_weights(trainer, OURS)


def test_functions_that_are_left_out_are_not_missed() -> None:
    """A foreign function in the place of ours has a weight of its own."""
    check_function_weights(trainer_with({"foreign": 7.0, "ten": 2.0, "one": 0.5}), OURS)
    check_function_weights(trainer_with({"ten": 2.0}), OURS)


def test_a_function_that_would_count_twice_is_refused() -> None:
    with pytest.raises(ConfigError, match="two reward functions 'one'"):
        check_function_weights(trainer_with([("one", 0.5), ("ten", 2.0), ("one", 0.5)]), OURS)


def test_weights_of_float32_are_those_that_were_given() -> None:
    torch = pytest.importorskip("torch")
    trainer = trainer_with({"a": 0.1})
    trainer.reward_weights = torch.tensor([0.1], dtype=torch.float32)
    check_function_weights(trainer, {"a": 0.1})


def rows_of(*columns: str) -> Any:
    return SimpleNamespace(column_names=list(columns))


class OfTrl:
    """A trainer whose methods are TRL's."""

    def _calculate_rewards(self) -> None: ...

    _calculate_rewards.__module__ = "trl.trainer.grpo_trainer"


class OfUsers(OfTrl):
    def _calculate_rewards(self) -> None: ...


class _Transformed(list[Any]):
    """A data set with a transform: its rows have other columns than it says."""

    def __init__(self, rows: list[Any]) -> None:
        super().__init__(rows)
        self.column_names, self.format = ["prompt"], {"type": "custom"}


TRANSFORMED = _Transformed([{"prompt": "2+2", "answer": "4"}])

REFUSED: dict[str, tuple[Reward[..., Any], dict[str, Any], type[RewardError], str]] = {
    "no prompt": (short, {"train_dataset": rows_of("question")}, DataError, "dataset: column 'prompt' is missing"),
    "no prompt to evaluate on": (short, {"eval_dataset": rows_of("answer")}, DataError, "evaluation set: column"),
    "no column": (matches, {"train_dataset": rows_of("prompt")}, MissingColumnError, "which the dataset lacks"),
    "no column to evaluate on": (
        matches, {"eval_dataset": rows_of("prompt", "Answer")}, MissingColumnError, "set lacks; the data has",
    ),
    "one of several to evaluate on": (
        matches, {"eval_dataset": {"a": ROWS, "b": rows_of("prompt")}}, MissingColumnError, "evaluation set 'b' lacks",
    ),
    "rows in a list": (matches, {"eval_dataset": [{"prompt": "2+2"}]}, MissingColumnError, "evaluation set lacks"),
    "a column that is dropped": (
        matches, {"args": SimpleNamespace(remove_unused_columns=True)}, ConfigError, "pass remove_unused_columns=False",
    ),
    "all columns are dropped": (
        count_columns, {"args": SimpleNamespace(remove_unused_columns=True)}, ConfigError, "'count_columns' reads",
    ),
}  # fmt: skip
TAKEN: dict[str, tuple[Reward[..., Any], dict[str, Any]]] = {
    "all is there": (matches, {"eval_dataset": ROWS}),
    "several to evaluate on": (matches, {"eval_dataset": {"a": ROWS, "b": ROWS}}),
    "a stream that says nothing": (matches, {"train_dataset": SimpleNamespace(column_names=None)}),
    "no rows": (matches, {"train_dataset": None}),
    "a transform adds the column": (matches, {"train_dataset": TRANSFORMED}),
    "a rollout function adds it": (matches, {"train_dataset": rows_of("prompt"), "rollout_func": print}),
    "nothing of use is dropped": (short, {"args": SimpleNamespace(remove_unused_columns=True)}),
    "kept columns": (
        matches,
        {"args": SimpleNamespace(remove_unused_columns=True), "_signature_columns": ["prompt", "answer"]},
    ),
}


@pytest.mark.parametrize(("scorer", "attributes", "kind", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_data_sets_without_what_rewards_read_are_refused(
    scorer: Reward[..., Any], attributes: dict[str, Any], kind: type[RewardError], message: str
) -> None:
    with pytest.raises(kind, match=message):
        check_handover(trainer_with(**attributes), {scorer.name: scorer}, {})


@pytest.mark.parametrize(("scorer", "attributes"), TAKEN.values(), ids=TAKEN.keys())
def test_data_sets_that_may_have_all_are_taken(scorer: Reward[..., Any], attributes: dict[str, Any]) -> None:
    check_handover(trainer_with(**attributes), {scorer.name: scorer}, {})


def test_a_subclass_may_hand_over_columns_of_its_own() -> None:
    """Its data set lacks them, and only its own code knows that."""
    for kind, refused in ((OfTrl, True), (OfUsers, False)):
        trainer: Any = kind()
        trainer.train_dataset, trainer.args = rows_of("prompt"), SimpleNamespace()
        if refused:
            with pytest.raises(MissingColumnError):
                check_handover(trainer, {"matches": matches}, {})
        else:
            check_handover(trainer, {"matches": matches}, {})


@pytest.mark.parametrize("attached", [False, True], ids=["callback", "attach"])
def test_trl_hears_of_its_evaluation_set_before_the_first_step(tiny: Path, attached: bool) -> None:
    """Although its evaluation comes later, and the callback is all that it was given."""
    rows = [{"prompt": f"{number}+1=", "answer": "1"} for number in range(8)]
    with (
        RewardAdapter([matches, short], weights=[0.5, 2.0], lane="inline") as adapter,
        pytest.raises(MissingColumnError, match="'answer', which the evaluation set lacks"),
    ):
        tiny_grpo.train(tiny, adapter, rows, steps=1, eval_rows=[{"prompt": "2+2="}] * 8, attach=attached)
