"""Functions that were written for another trainer are refused with the way that takes them as they are."""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from rewardkit import RewardDefinitionError, RewardDefinitionWarning, Rollout, Runtime, group_reward, reward
from rewardkit.moving import from_trl, from_verl

SOURCE = "def scored({}):\n    return [1.0]\n"


def function_of(parameters: str, *, is_async: bool = False) -> Any:
    """Return a function with these parameters."""
    names: dict[str, Any] = {}
    exec(("async " if is_async else "") + SOURCE.format(parameters), names)
    return names["scored"]


LISTS = ("completions", "prompts, completions")
REST = ("answer", "**kwargs", "answer, **kwargs", "answer, completion_ids=None, **kwargs", "answer, trainer_state=None")
TRL = [", ".join(pair) for pair in itertools.product(LISTS, REST)] + ["prompts, completions"]


@pytest.mark.parametrize("is_async", [False, True], ids=["plain", "async"])
@pytest.mark.parametrize("parameters", TRL)
def test_trls_form_is_led_to_from_trl_alone(parameters: str, is_async: bool) -> None:
    """Neither ``@group_reward`` nor another name: both would pair completions with letters. What is named works."""
    function = function_of(parameters, is_async=is_async)
    for declare in (reward, lambda function: Runtime([function], lane="inline")):
        with pytest.raises(RewardDefinitionError, match=r"hand over from_trl\(scored\), of rewardkit\.moving") as error:
            declare(function)
        assert "group_reward" not in str(error.value)
    from_trl(function)


@pytest.mark.parametrize(
    "parameters", ["completions, answer: str", "completions, prompt: str, level: int, answer: float"]
)
def test_columns_of_one_value_lead_to_a_group_reward(parameters: str) -> None:
    """TRL hands over lists; whoever annotates a column as one value scores a group, and can as it says."""
    function = function_of(parameters)
    with pytest.raises(RewardDefinitionError, match=r"one value; declare the reward with @group_reward") as error:
        reward(function)
    assert "from_trl" not in str(error.value)
    group_reward(function)


@pytest.mark.parametrize("parameters", ["prompts, completions", "prompts, completions, answer, **kwargs"])
def test_a_group_is_led_to_from_trl_too(parameters: str) -> None:
    with pytest.raises(RewardDefinitionError, match=r"from_trl\(scored, in_groups=True\)"):
        group_reward(function_of(parameters))


@pytest.mark.parametrize(
    "parameters",
    [
        "data_source, solution_str, ground_truth, extra_info=None",
        "solution_str, ground_truth, **kwargs",
        "data_sources, solution_strs, ground_truths, extra_infos",
    ],
)
@pytest.mark.parametrize("mark", [reward, group_reward])
def test_verls_form_is_led_to_from_verl(mark: Callable[[Any], Any], parameters: str) -> None:
    function = function_of(parameters)
    with pytest.raises(RewardDefinitionError, match=r"hand over from_verl\(scored\), of rewardkit\.moving"):
        mark(function)
    from_verl(function)


def test_a_column_with_verls_name_beside_a_completion_is_a_column() -> None:
    with Runtime([reward(function_of("completion, solution_str"))], lane="inline") as runtime:
        assert "bad_return" == runtime.score([Rollout("p", "c", {"solution_str": "x"})])["scored"][0].cause


class MyORM:
    """A reward of ms-swift's."""

    def __call__(self, completions, solution, **kwargs):  # type: ignore[no-untyped-def]
        return [float(text == truth) for text, truth in zip(completions, solution, strict=True)]


@pytest.mark.parametrize("orm", [MyORM, MyORM()], ids=["class", "object"])
@pytest.mark.parametrize(
    "mark", [reward, lambda function: Runtime([function], lane="inline")], ids=["reward", "runtime"]
)
def test_a_class_of_swifts_is_led_to_an_object(mark: Callable[[Any], Any], orm: Any) -> None:
    with pytest.raises(RewardDefinitionError, match=r"hand over from_trl\(MyORM\(\)\), of rewardkit\.moving"):
        mark(orm)


def test_a_class_is_led_to_an_object_by_from_trl_itself() -> None:
    with pytest.raises(RewardDefinitionError, match=r"from_trl\(MyORM\(\)\)"):
        from_trl(MyORM)
    with Runtime([from_trl(MyORM())], lane="inline") as runtime:
        rollouts = [Rollout("p", text, {"solution": "36"}) for text in ("36", "3")]
        assert [1.0, 0.0] == runtime.score(rollouts).scores["MyORM"]


def by_zip(completions, answer):  # type: ignore[no-untyped-def]
    return [float(text == truth) for text, truth in zip(completions, answer)]  # noqa: B905


def by_map(completions, answer, **kwargs):  # type: ignore[no-untyped-def]
    return list(map(lambda text, truth: float(text == truth), completions, answer))


def by_index(completions, answer: str):  # type: ignore[no-untyped-def]
    return [float(text == answer[number]) for number, text in enumerate(completions)]


def by_range(completions, answer):  # type: ignore[no-untyped-def]
    scores = []
    for number in range(len(completions)):
        scores.append(float(completions[number] == answer[number]))
    return scores


def by_keyword(completions, **kwargs):  # type: ignore[no-untyped-def]
    return [float(text == truth) for text, truth in zip(completions, kwargs["answer"])]  # noqa: B905


def by_get(completions, **kwargs):  # type: ignore[no-untyped-def]
    return [float(text == truth) for text, truth in zip(completions, kwargs.get("answer"))]  # noqa: B905


@pytest.mark.parametrize("function", [by_zip, by_map, by_index, by_range, by_keyword, by_get, MyORM()])
def test_a_group_that_pairs_completions_with_a_columns_letters_is_warned_of(function: Any) -> None:
    with pytest.warns(RewardDefinitionWarning, match=r"parts of '(answer|solution)'.*in_groups=True"):
        group_reward(function)


def listed(completions, answer: list[str]):  # type: ignore[no-untyped-def]
    return [float(text == truth) for text, truth in zip(completions, answer, strict=True)]


def once(completions, answer, info: dict[str, int]):  # type: ignore[no-untyped-def]
    ranks = [len(text) for text in completions]
    return [float(text == answer) * info["x"] for text, _ in zip(completions, ranks, strict=True)]


def of_each(completions, completion_ids):  # type: ignore[no-untyped-def]
    return [float(len(ids)) for _, ids in zip(completions, completion_ids, strict=True)]


@pytest.mark.parametrize("function", [listed, once, of_each])
def test_a_group_that_pairs_what_has_a_value_for_each_is_not_warned_of(function: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        group_reward(function)


def right(completion: str, answer: str) -> float:
    return float(completion == answer)


def timed(function: Callable[..., float]) -> Callable[..., float]:
    def inner(*arguments: Any, **keywords: Any) -> float:
        return function(*arguments, **keywords)

    return inner


def by_name(function: Callable[..., float]) -> Callable[..., float]:
    def inner(**keywords: Any) -> float:
        return function(**keywords)

    return inner


@pytest.mark.parametrize("decorate", [timed, by_name])
def test_a_wrapper_that_hides_the_names_of_parameters_is_told_of_wraps(decorate: Callable[..., Any]) -> None:
    """With it, the same decorator works."""
    with pytest.raises(RewardDefinitionError, match=r"a decorator made it of 'right', write @functools\.wraps"):
        reward(decorate(right))
    with Runtime([functools.wraps(right)(decorate(right))], lane="inline") as runtime:
        assert [1.0] == runtime.score([Rollout("p", "4", {"answer": "4"})]).scores["right"]


def count(columns: dict[str, Any]) -> float:
    return float(len(columns))


def counter(score: Callable[[dict[str, Any]], float]) -> Any:
    return reward(name="counts")(lambda **columns: score(columns))


def test_a_reward_that_takes_every_column_and_nothing_else_is_no_wrapper() -> None:
    with Runtime([counter(count)], lane="inline") as runtime:
        assert [1.0] == runtime.score([Rollout("p", "c", {"answer": "4"})]).scores["counts"]
