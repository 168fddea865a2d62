"""slime's shape, as recorded: settings and a sample, or a group of them, and rewards made relative to a group."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fated_rewards import FATES, KEYS
from held_rewards import counted_batches

from rewardkit import ConfigError, MissingColumnError
from trainer_adapter import slime
from trainer_adapter.trainer_rewards import close_all

BOTH = "fated_rewards:right,fated_rewards:brave"


@pytest.fixture(autouse=True, scope="module")
def _ended() -> Iterator[None]:
    yield
    close_all()


@dataclass
class Sample:
    """slime's ``Sample``, as far as a reward sees it."""

    response: str
    prompt: str = "2+2="
    label: str | None = "4"
    metadata: dict[str, Any] | None = field(default_factory=dict)
    reward: Any = None
    group_index: int | None = None
    remove_sample: bool = False

    def get_reward_value(self, args: Any) -> float:
        return float(self.reward if not args.reward_key else self.reward[args.reward_key])


def _args(**settings: Any) -> SimpleNamespace:
    told = {"reward_key": None, "n_samples_per_prompt": 4, "advantage_estimator": "grpo"}
    return SimpleNamespace(**{**told, "rewards_normalization": True, "grpo_std_normalization": True, **settings})


@pytest.mark.parametrize("completion", FATES)
def test_each_fate_is_told_as_the_table_says(completion: str) -> None:
    """The reward is a float; a sample without a total is not trained on, and says why in its metadata."""
    number, flags = FATES[completion]
    sample = Sample(completion)
    reward = asyncio.run(slime.slime_rm(BOTH)(_args(), sample))
    assert (float, number) == (type(reward), reward)
    assert (completion in ("skip", "unknown")) == sample.remove_sample
    assert sample.metadata is not None
    assert (KEYS, flags) == (
        sample.metadata["rewardkit"].keys(),
        {name: sample.metadata["rewardkit"][name] for name in flags},
    )


def test_a_reward_key_gets_an_object() -> None:
    """With ``--reward-key`` the reward is what is known, and the number under the key."""
    reward = asyncio.run(slime.slime_rm(BOTH)(_args(reward_key="score"), Sample("fail")))
    assert {*KEYS, "score"} == reward.keys()
    assert (-1.0, 1.0) == (reward["score"], reward["failed"])


def test_single_calls_with_faults_are_few_batches() -> None:
    """512 samples at once, a fifth of them faulty: all have floats, in a few batches."""
    texts = ["4", "5", "4", "5", "unknown"]
    rm, samples = slime.slime_rm(BOTH), [Sample(texts[n % 5]) for n in range(512)]

    async def all_at_once() -> list[float]:
        return await asyncio.gather(*(rm(_args(), sample) for sample in samples))

    with counted_batches() as batches:
        rewards = asyncio.run(all_at_once())
    assert [{"4": 2.0, "5": 1.0, "unknown": 0.0}[texts[n % 5]] for n in range(512)] == rewards
    assert (512, True) == (sum(batches), len(batches) <= 128)


def test_group_rewards_see_the_group_that_slime_sends() -> None:
    """``--group-rm`` hands over whole groups; a reward of single completions works the same way."""
    group = [Sample("aaa"), Sample("a"), Sample("aa")]
    assert [2.0, 0.0, 1.0] == asyncio.run(slime.slime_group_rm("fated_rewards:rank")(_args(), group))
    assert [2.0, 0.0] == asyncio.run(slime.slime_group_rm(BOTH)(_args(), [Sample("4"), Sample("unknown")]))


def test_single_samples_are_gathered_into_groups() -> None:
    """Without ``--group-rm`` a group size gathers them, by slime's group index."""
    rm = slime.slime_rm("fated_rewards:rank", group_size=2)
    samples = [Sample("aa", group_index=0), Sample("bb", group_index=1), Sample("a", group_index=0)]
    samples.append(Sample("bbb", group_index=1))

    async def all_at_once() -> list[float]:
        return await asyncio.gather(*(rm(_args(n_samples_per_prompt=2), one) for one in samples))

    assert [1.0, 0.0, 0.0, 1.0] == asyncio.run(all_at_once())


def test_bad_input_names_slimes_settings() -> None:
    """No group size, another one than slime's, no ``--group-rm``, and a column that is in no metadata."""
    with pytest.raises(ConfigError, match="--n-samples-per-prompt, or take slime_group_rm"):
        slime.slime_rm("fated_rewards:rank")
    with pytest.raises(ConfigError, match="group_size=2, but --n-samples-per-prompt is 4"):
        asyncio.run(slime.slime_rm("fated_rewards:rank", group_size=2)(_args(), Sample("a")))
    with pytest.raises(ConfigError, match="add --group-rm"):
        asyncio.run(slime.slime_group_rm("fated_rewards:rank")(_args(), Sample("a")))
    with pytest.raises(MissingColumnError, match=r"slime: .*--metadata-key"):
        asyncio.run(slime.slime_rm("fated_rewards:hard")(_args(), Sample("a")))


def test_the_variable_names_the_rewards_of_the_modules_own_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    """``--custom-rm-path trainer_adapter.slime.custom_rm`` needs no file of one's own."""
    monkeypatch.setenv("REWARDKIT_REWARDS", BOTH)
    assert 2.0 == asyncio.run(slime.custom_rm(_args(), Sample("4")))
    assert [2.0, 1.0] == asyncio.run(slime.group_rm(_args(), [Sample("4"), Sample("5")]))


def _scored(texts: list[str], args: Any) -> list[Sample]:
    samples = [Sample(text) for text in texts]
    for sample in samples:
        sample.reward = asyncio.run(slime.slime_rm(BOTH)(args, sample))
    return samples


def test_normalisation_is_slimes_where_all_is_known() -> None:
    """Each group's mean is taken off, and it is divided by the deviation of a sample + 1e-6, as torch computes it."""
    args = _args()
    raw, rewards = slime.post_process(args, _scored(["4", "5", "4", "fail"] * 2, args))
    table = np.array(raw).reshape(-1, 4)
    expected = (table - table.mean(-1, keepdims=True)) / (table.std(-1, keepdims=True, ddof=1) + 1e-6)
    assert pytest.approx(expected.flatten().tolist()) == rewards


@pytest.mark.parametrize("key", [None, "score"])
def test_what_is_unknown_counts_in_no_mean(key: str | None) -> None:
    """The others of a group are as they would be without it, and it gets 0; so does one alone, and none at all."""
    args = _args(reward_key=key)
    raw, rewards = slime.post_process(args, _scored(["4", "unknown", "5", "skip"], args))
    assert [2.0, 0.0, 1.0, 0.0] == raw
    assert pytest.approx([0.5**0.5, 0.0, -(0.5**0.5), 0.0], abs=1e-5) == rewards
    assert [0.0] * 4 == slime.post_process(args, _scored(["4", "unknown", "unknown", "skip"], args))[1]
    assert [0.0] * 4 == slime.post_process(args, _scored(["unknown"] * 4, args))[1]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"grpo_std_normalization": False}, [0.5, 0.0, -0.5, 0.0]),
        ({"advantage_estimator": "reinforce_plus_plus_baseline"}, [0.5, 0.0, -0.5, 0.0]),
        ({"rewards_normalization": False}, [2.0, 0.0, 1.0, 0.0]),
        ({"advantage_estimator": "ppo"}, [2.0, 0.0, 1.0, 0.0]),
    ],
    ids=["no deviation", "baseline", "none", "ppo"],
)
def test_normalisation_follows_slimes_settings(settings: dict[str, Any], expected: list[float]) -> None:
    """Each estimator and switch does what it does in slime."""
    args = _args(**settings)
    assert expected == slime.post_process(args, _scored(["4", "unknown", "5", "skip"], args))[1]
