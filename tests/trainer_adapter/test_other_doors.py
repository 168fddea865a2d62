"""OpenEnv's and Atropos' own code call our rewards; Tunix by the shape of its calls."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fated_rewards import FATES as FATED
from fault_mix import FATES, UNKNOWN
from trainer_environment import HERE, seen_by

from rewardkit import ConfigError, DataError, MissingColumnError, RewardFailedError
from trainer_adapter import atropos, openenv
from trainer_adapter.trainer_rewards import close_all
from trainer_adapter.tunix import tunix_reward

BOTH = "fated_rewards:right,fated_rewards:brave"
NUMBERS = [number for _, number in FATES.values()]


@pytest.fixture(autouse=True, scope="module")
def _ended() -> Iterator[None]:
    yield
    close_all()


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return seen_by("real_doors", HERE / "other_doors.txt", folder=str(tmp_path_factory.mktemp("doors")))


@pytest.mark.trainers
def test_openenvs_environments_get_totals_and_each_rewards_score(seen: dict[str, Any]) -> None:
    """Sync and async, and inside OpenEnv's own sum; an unknown total is an error of the step unless it is to be 0.0."""
    doors = seen["openenv"]
    assert NUMBERS == doors["zero"] == doors["async"]
    for (fate, number), reward in zip(FATES.values(), doors["strict"], strict=True):
        assert (isinstance(reward, str) and "OpenEnv: the reward" in reward) if fate == UNKNOWN else number == reward
    assert 0.5 * 2.0 + 0.5 * 4.0 == doors["mixed"]
    parts = dict(zip(FATES, doors["parts"], strict=True))
    assert {"right": 1.0, "brave": 1.0} == parts["4"]
    assert {"right": None, "brave": None} == parts["skip"]
    assert {"right": None, "brave": 1.0} == parts["raise"]


@pytest.mark.trainers
def test_atropos_gets_numbers_and_no_zeros_for_an_error(seen: dict[str, Any]) -> None:
    """Its base class would give 0.0 to the whole list; here the error stays, or costs the completion that caused it."""
    doors = seen["atropos"]
    assert NUMBERS == doors["zero"] == doors["messages"] == doors["combined"]
    assert doors["strict"].startswith("RewardFailedError: Atropos: the reward of a completion is unknown")
    assert ([1.0, 1.0], [2.0], "right_brave") == (doors["weighted"], doors["choice"], doors["name"])
    assert [1.0 + 3.0, 0.0 + 3.0] == doors["ranked"]


@pytest.mark.parametrize("completion", FATED)
def test_tunix_gets_a_number_for_each_completion(completion: str) -> None:
    """Lists and numpy's arrays; a skipped row is nan, which Tunix leaves out of its sum."""
    reward_fn = tunix_reward(BOTH, on_unknown="zero")
    assert "right_brave" == reward_fn.__name__
    config = SimpleNamespace(num_generations=2)
    numbers = reward_fn(
        prompts=["2+2="] * 2, completions=["4", completion], answer=np.array(["4", "4"]), tmvp_config=config
    )
    expected = math.nan if completion == "skip" else FATED[completion][0]
    assert 2.0 == numbers[0]
    assert numbers[1] == expected or (math.isnan(numbers[1]) and math.isnan(expected))
    assert {float} == set(map(type, numbers))


def test_tunix_is_told_of_an_unknown_reward_and_of_a_missing_column() -> None:
    """By errors that name it; lists that do not belong together are refused."""
    assert ["prompts", "completions", "columns"] == list(inspect.signature(tunix_reward(BOTH)).parameters)
    with pytest.raises(RewardFailedError, match="Tunix: the reward"):
        tunix_reward(BOTH)(["2+2="], ["unknown"], answer=["4"])
    with pytest.raises(MissingColumnError, match=r"Tunix: .*training data"):
        tunix_reward("fated_rewards:hard")(["2+2="], ["4"])
    with pytest.raises(ConfigError, match="num_generations"):
        tunix_reward("fated_rewards:rank")
    with pytest.raises(DataError, match="prompts: 1 for 2 completions"):
        tunix_reward(BOTH)(["2+2="], ["4", "5"], answer=["4", "4"])
    assert [1.0, 0.0] == tunix_reward("fated_rewards:rank", group_size=2)(["p", "p"], ["aa", "b"])


@pytest.mark.parametrize(
    ("make", "words"),
    [(openenv.openenv_rubric, "pip install openenv"), (openenv.openenv_async_rubric, "pip install openenv"),
     (atropos.atropos_reward, "pip install atroposlib")],
)  # fmt: skip
def test_without_the_library_the_error_names_it(make: Any, words: str) -> None:
    """They are in no extra of ours."""
    with pytest.raises(ConfigError, match=words):
        make(BOTH)
