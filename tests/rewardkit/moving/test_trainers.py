"""``from_openrlhf``, ``from_slime``, ``from_easyr1`` and ``from_areal``: what is passed, read, and refused."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rewardkit import Outcome, Reward, RewardDefinitionError, Rollout, Runtime, Status, reward
from rewardkit.moving import from_areal, from_easyr1, from_openrlhf, from_slime

PROMPT = [{"role": "user", "content": "2+2="}]
TURN = [{"role": "assistant", "content": "4"}]


def outcomes(moved: Reward[..., Any], completions: list[Any], **row: Any) -> list[Outcome]:
    """Return the outcomes of completions of one row."""
    with Runtime([moved], lane="inline") as runtime:
        rollouts = [Rollout(PROMPT, completion, row, completion_ids=[7, 8]) for completion in completions]
        return list(runtime.score(rollouts)[moved.name])


def openrlhf(queries: Any, prompts: Any, labels: Any, **kwargs: Any) -> dict[str, Any]:
    assert [f"{prompts[0]}4"] == queries or queries == ["2+2=5"]
    right = float(queries[0].removeprefix(prompts[0]) == labels[0])
    return {"rewards": np.array([right]), "scores": [right], "extra_logs": {"length": np.array([1.0]), "note": "so"}}


async def slime(args: Any, sample: Any, **kwargs: Any) -> float:
    assert (args.reward_key, sample.response_length, sample.metadata["level"]) == (None, 2, 3)
    return float(sample.response == sample.label and sample.prompt == PROMPT)


def easyr1(reward_inputs: list[dict[str, Any]]) -> list[dict[str, float]]:
    (entry,) = reward_inputs
    right = float(entry["response"] == entry["ground_truth"])
    return [{"overall": right, "accuracy": right, "length": entry["response_length"] + entry["level"] - 3}]


def easyr1_single(reward_input: dict[str, Any]) -> dict[str, float]:
    return {"overall": float(reward_input["response"] == reward_input["ground_truth"])}


def areal(prompt: str, completions: str, prompt_ids: Any, completion_ids: Any, answer: str, **data: Any) -> float:
    assert (prompt, prompt_ids, completion_ids, data["level"]) == ("2+2=", None, [7, 8], 3)
    return float(completions == answer)


MOVED = {
    "openrlhf": from_openrlhf(openrlhf),
    "slime": from_slime(slime),
    "easyr1": from_easyr1(easyr1),
    "easyr1 single": from_easyr1(easyr1_single),
    "areal": from_areal(areal),
}


@pytest.mark.parametrize("name", MOVED)
def test_a_function_is_called_as_its_trainer_calls_it(name: str) -> None:
    """Text and messages alike: a right answer, a wrong one, and what it says besides as metrics."""
    batch = outcomes(MOVED[name], ["4", TURN, "5"], answer="4", level=3)
    assert [1.0, 1.0, 0.0] == [outcome.score for outcome in batch]
    metrics = {"openrlhf": {"length": 1.0}, "easyr1": {"accuracy": 1.0, "length": 2.0}}.get(name, {})
    assert metrics == dict(batch[0].metrics)


@pytest.mark.parametrize("name", MOVED)
def test_a_moved_function_travels_to_workers(name: str) -> None:
    """It pickles as its author's function, and its calls run there."""
    moved = pickle.loads(pickle.dumps(MOVED[name]))
    with Runtime([moved], workers=1) as runtime:
        rollouts = [Rollout(PROMPT, "4", {"answer": "4", "level": 3}, completion_ids=[7, 8])]
        assert [1.0] == runtime.score(rollouts).totals


def test_a_fault_costs_one_completion() -> None:
    """Each call has lists of one, so the others keep their scores."""

    def halves(queries: Any, prompts: Any, labels: Any) -> Any:
        return [1 / int(query.removeprefix(prompts[0])) for query in queries]

    batch = outcomes(from_openrlhf(halves, default=None), ["2", "zero", "4"], label="x")
    assert [0.5, None, 0.25] == [outcome.score for outcome in batch]


def test_slimes_groups_keys_and_removed_samples() -> None:
    """A group is called at once; an object has its key; a sample that is taken out of the training is skipped."""

    async def longest(args: Any, samples: Any) -> list[dict[str, float]]:
        assert args.n_samples_per_prompt == 3
        samples[2].remove_sample = True
        return [{"total": float(len(sample.response)), "n": 1.0} for sample in samples]

    batch = outcomes(from_slime(longest, in_groups=True, args={"reward_key": "total"}), ["a", "aa", "aaa"], label="x")
    assert [1.0, 2.0, None] == [outcome.score for outcome in batch]
    assert [Status.SCORED, Status.SCORED, Status.SKIPPED] == [outcome.status for outcome in batch]
    assert {"n": 1.0} == dict(batch[0].metrics)


def test_miles_reward_spec_has_the_truth() -> None:
    """An object or its JSON; the sample has it too."""

    def custom_rm(args: Any, sample: Any) -> float:
        return float(sample.response == sample.label == sample.reward_spec["ground_truth"])

    for spec in ({"ground_truth": "4"}, '{"ground_truth": "4"}'):
        assert [1.0, 0.0] == [out.score for out in outcomes(from_slime(custom_rm), ["4", "5"], reward_spec=spec)]


@pytest.mark.parametrize(
    ("moved", "words"),
    [
        (from_openrlhf(openrlhf, label="solution"), "'solution'"),
        (from_easyr1(easyr1, ground_truth="solution"), "'solution'"),
        (from_areal(areal), "'answer'"),
    ],
)
def test_a_row_without_the_named_column_is_refused_before_anything_runs(moved: Reward[..., Any], words: str) -> None:
    """The error names the column."""
    with pytest.raises(Exception, match=f"needs column {words}"):
        outcomes(moved, ["4"], level=3)


@pytest.mark.parametrize(
    ("moved", "words"),
    [
        (from_openrlhf(lambda queries, prompts, labels: {"scores": [1.0]}, name="f"), "under 'rewards'"),
        (from_slime(lambda args, sample: {"reward": 1.0}, name="f"), "without 'score'"),
        (from_easyr1(lambda reward_inputs: [0.5], name="f"), "under 'overall'"),
        (from_easyr1(lambda reward_inputs: [], name="f"), "a list of 0 for 1 completion"),
    ],
)
def test_a_result_of_another_form_is_a_failure(moved: Reward[..., Any], words: str) -> None:
    """No score is made of it."""
    (outcome,) = outcomes(moved, ["4"], answer="4")
    assert (Status.FAILED, True) == (outcome.status, words in (outcome.error or ""))


@pytest.mark.parametrize(
    ("move", "function", "words"),
    [
        (from_openrlhf, lambda completions: 0.0, "takes no 'queries'"),
        (from_openrlhf, lambda queries, prompts, labels, tokenizer: 0.0, "nothing fills 'tokenizer'"),
        (from_openrlhf, reward(name="x")(lambda completion: 0.0), "is a reward already"),
        (from_slime, lambda sample: 0.0, "must take two parameters"),
        (from_easyr1, lambda predicts, truths: 0.0, "takes no 'reward_inputs'"),
        (from_areal, lambda prompt, answer: 0.0, "takes no 'completions'"),
        (from_easyr1, "file.py:f", "marks functions, not 'file.py:f'"),
    ],
)
def test_what_cannot_move_in_is_refused_at_once(move: Callable[..., Any], function: Any, words: str) -> None:
    """The message names the function, the parameter and the fix."""
    with pytest.raises(RewardDefinitionError) as refused:
        move(function)
    assert words in str(refused.value)
