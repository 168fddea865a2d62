"""The environment's own reward: a score with a weight beside others, a gap where there is none, and no split groups."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fated_rewards
import pytest

from rewardkit import DataError, Rollout, Run, Runtime
from trainer_adapter import RewardAdapter, verifiers
from trainer_adapter.environment_values import environment_value
from trainer_adapter.environments import environment_reward
from trainer_adapter.trainer_rewards import close_held


@pytest.fixture(autouse=True, scope="module")
def _ended() -> Iterator[None]:
    yield
    close_held()


class Game:
    """An environment of TRL's: what it has scored is an attribute, for public methods would be the model's tools."""

    def __init__(self, reward: object = None) -> None:
        self.reward = reward

    def reset(self, **row: object) -> None:
        self.reward = None


def _batch(environments: list[Any], **columns: Any) -> dict[str, Any]:
    """What TRL passes where it has an ``environment_factory``."""
    completions = ["a" * (len(environments) - row) for row in range(len(environments))]
    rows = {"prompts": ["play"] * len(environments), "completions": completions, "environments": environments}
    state = SimpleNamespace(global_step=1, epoch=0.5, log_history=[])
    return {**rows, "completion_ids": [[1]] * len(environments), "trainer_state": state, **columns}


def test_trls_environments_score_beside_our_rewards(tmp_path: Path) -> None:
    """Each completion has its environment's number or none, the group stays whole, and the record keeps one prompt."""
    rewards = [environment_reward, fated_rewards.rank]
    run = tmp_path / "run"
    with RewardAdapter(rewards, weights=[2.0, 1.0], workers=1, record=run) as adapter:
        own, rank = adapter.reward_funcs
        call = _batch([Game(0.5), Game(), Game(True), object()])
        assert [2.0, 1.0] == adapter.weights
        assert [0.5, None, 1.0, None] == own(**call)
        assert [3.0, 2.0, 1.0, 0.0] == rank(**call)
    with Run.open(run) as recorded:
        assert ["environment", "rank"] == list(recorded.rewards)
        assert 1 == len(list(recorded.prompts()))


def test_a_dataset_without_environments_is_skipped() -> None:
    """There is no number, and nothing failed."""
    with Runtime([environment_reward], workers=1) as runtime:
        batch = runtime.score([Rollout("play", "a", {}), Rollout("play", "a", {"environment_reward": 3})])
    assert [None, 3.0] == batch.totals


def test_environments_are_not_asked_where_no_reward_reads_them() -> None:
    """What they keep as their reward may then be anything."""
    with RewardAdapter([fated_rewards.rank], workers=1) as adapter:
        assert [1.0, 0.0] == adapter.reward_funcs[0](**_batch([Game("won"), Game()]))


@pytest.mark.parametrize(("kept", "value"), [(None, None), (1, 1.0), (False, 0.0), (len, None)])
def test_the_number_is_the_attributes(kept: object, value: float | None) -> None:
    """A method of that name is no number."""
    assert value == environment_value(Game(kept))


def test_a_reward_that_is_no_number_is_refused() -> None:
    """The error names the environment's class and the value."""
    with pytest.raises(DataError, match=r"Game has reward='won': expected a number or None"):
        environment_value(Game("won"))


@pytest.mark.parametrize(("recorded", "total"), [({}, 2.0), ({"game": (1.0, 0.5), "judge": None}, 2.5)])
def test_verifiers_traces_score_beside_our_rewards(recorded: dict[str, Any], total: float) -> None:
    """What a task or an environment has recorded in the trace is one of the rewards; nothing where it has not."""
    function = verifiers.verifiers_reward(
        "fated_rewards:right,fated_rewards:brave,trainer_adapter.environments:environment_reward", workers=1
    )
    rewards = {name: one and SimpleNamespace(score=one[0], weight=one[1]) for name, one in recorded.items()}
    trace = SimpleNamespace(rewards=rewards)
    assert total == asyncio.run(function(prompt="2+2=", completion="4", answer="4", trace=trace))  # type: ignore
