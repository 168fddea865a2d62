"""A tool agent trained by TRL: its environment's reward, and ours over the live environment and over tool calls."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
import tool_agent
from tiny_grpo import third_party_warnings

from rewardkit import Run, Status, reward, step_reward
from rewardkit.types import Step
from trainer_adapter import RewardAdapter
from trainer_adapter.environments import environment_reward

pytestmark = [
    third_party_warnings,
    pytest.mark.filterwarnings("ignore:.*activation_checkpointing.*:FutureWarning"),
    pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing.*:FutureWarning"),
    pytest.mark.filterwarnings("ignore:You are using 'environment_factory':UserWarning"),
]
WEIGHTS = {"environment": 1.0, "guessed_once": 0.5, "digit": 0.25}


@reward
def guessed_once(environments: tool_agent.GuessingGame) -> float:
    """Whether the tool was called exactly once."""
    return float(len(environments.guesses) == 1)


@step_reward(each="tool_call")
def digit(step: Step) -> float:
    """Whether a call's number has one digit."""
    return float(0 <= int((step.arguments or {}).get("number", -1)) <= 9)


def _trained(folder: Path, rewards: list[Any], *, attach: bool, steps: int) -> tuple[Any, Path]:
    run = folder / "run"
    weights = {one.name: WEIGHTS[one.name] for one in rewards}
    with RewardAdapter(rewards, weights=weights, lane="inline", record=run) as adapter:
        trainer = tool_agent.train(folder, adapter, steps=steps, attach=attach)
    return trainer, run


def test_ten_steps_with_tools_score_beside_the_environments_own(tmp_path: Path) -> None:
    """Calls reach the environment, each is asked once a batch, TRL sums what is recorded, and the audit has it."""
    trainer, run = _trained(tmp_path, [environment_reward, guessed_once, digit], attach=True, steps=10)
    assert ["environment", "guessed_once", "digit"] == trainer.reward_func_names
    logged = [entry for entry in trainer.state.log_history if "reward" in entry]
    assert 10 == len(logged)
    assert 0.5 < sum(entry["tools/call_frequency"] for entry in logged) / 10
    assert 80 == sum(one.asked for pool in trainer._environment_pool.values() for one in pool)
    with Run.open(run) as recorded:
        completions = list(recorded.completions())
        assert list(WEIGHTS) == list(recorded.rewards)
    assert 80 == len(completions)
    for entry, step in zip(logged, range(10), strict=True):
        batch = [one for one in completions if one.step == step]
        known = [one.outcomes["environment"].score for one in batch if one.outcomes["environment"].score is not None]
        assert entry["rewards/environment/mean"] == pytest.approx(sum(known) / len(known), abs=1e-6)
        assert entry["reward"] == pytest.approx(sum(one.reward for one in batch) / 8, abs=1e-6)
    called = [one for one in completions if one.completion[0].get("tool_calls")]
    assert all(Status.SCORED is one.outcomes["environment"].status for one in called)
    assert {(1.0, 1.0)} <= {(one.outcomes["guessed_once"].score, one.outcomes["digit"].score) for one in called}
    assert all(one.advantage is not None for one in completions)


def test_unattached_the_environments_reward_counts_once_too(tmp_path: Path) -> None:
    """TRL's own function stays in its lists and answers with nothing."""
    trainer, run = _trained(tmp_path, [environment_reward, guessed_once], attach=False, steps=2)
    assert ["environment", "guessed_once", "GuessingGame"] == trainer.reward_func_names
    logged = [entry["reward"] for entry in trainer.state.log_history if "reward" in entry]
    with Run.open(run) as recorded:
        completions = list(recorded.completions())
    for step, reward_mean in enumerate(logged):
        batch = [one.reward for one in completions if one.step == step]
        assert reward_mean == pytest.approx(sum(batch) / 8, abs=1e-6)


def test_an_environments_reward_that_is_none_of_ours_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It counts in TRL with weight 1, and no record has it."""
    with caplog.at_level(logging.WARNING, "trainer_adapter"):
        trainer, _ = _trained(tmp_path, [guessed_once], attach=True, steps=1)
    assert ["guessed_once", "GuessingGame"] == trainer.reward_func_names
    assert "the reward of the environment GuessingGame counts in this training and is in no record" in caplog.text
