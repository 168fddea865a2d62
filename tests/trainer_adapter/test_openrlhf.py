"""OpenRLHF's shape, as recorded of 0.11: a file's ``reward_func``, lists of one, a thread for each completion."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fated_rewards import FATES, KEYS
from held_rewards import counted_batches

from rewardkit import ConfigError, DataError
from trainer_adapter import openrlhf
from trainer_adapter.trainer_rewards import close_all

BOTH = "fated_rewards:right,fated_rewards:brave"
PROMPT = "2+2="


@pytest.fixture(autouse=True, scope="module")
def _ended() -> Iterator[None]:
    yield
    close_all()


async def _executor(reward_func: Any, completion: str) -> dict[str, Any]:
    """What OpenRLHF's executor makes of one reply, in a thread; an error is logged there and leaves None."""
    reply = await asyncio.to_thread(reward_func, [PROMPT + completion], [PROMPT], ["4"])
    score = reply.get("scores") or reply.get("rewards")
    return {"reward": reply.get("rewards"), "scores": score, "extra_logs": reply.get("extra_logs") or {}}


@pytest.mark.parametrize("completion", FATES)
def test_each_fate_is_told_as_the_table_says(completion: str) -> None:
    """Rewards are floats, never null; ``extra_logs`` has always the same keys."""
    number, flags = FATES[completion]
    output = asyncio.run(_executor(openrlhf.openrlhf_reward(BOTH), completion))
    logs = output["extra_logs"]
    assert number == output["reward"]
    assert KEYS == logs.keys()
    assert {float} == {type(value) for value in [output["reward"], output["scores"], *logs.values()]}
    assert flags == {name: logs[name] for name in flags}


def test_threads_with_faults_are_few_batches_and_no_null() -> None:
    """256 threads, a fifth of them faulty: every one has a number, under one set of keys."""
    texts = ["4", "5", "4", "5", "unknown"]
    reward_func = openrlhf.openrlhf_reward(BOTH)

    async def all_at_once() -> list[dict[str, Any]]:
        return await asyncio.gather(*(_executor(reward_func, texts[n % 5]) for n in range(256)))

    with counted_batches() as batches:
        outputs = asyncio.run(all_at_once())
    assert [{"4": 2.0, "5": 1.0, "unknown": 0.0}[texts[n % 5]] for n in range(256)] == [
        one["reward"] for one in outputs
    ]
    assert 1 == len({tuple(one["extra_logs"]) for one in outputs})
    assert 256 == sum(batches)
    assert len(batches) < 256


def test_lists_of_other_lengths_are_lists() -> None:
    """More than one row, and none, are answered in lists."""
    reward_func = openrlhf.openrlhf_reward(BOTH)
    reply = reward_func(["2+2=4", "2+2=fail"], [PROMPT, PROMPT], ["4", "4"])
    assert ([2.0, -1.0], [1.0, 0.0], [0.0, 1.0]) == (reply["rewards"], reply["scores"], reply["extra_logs"]["failed"])
    assert {"rewards": [], "scores": [], "extra_logs": {}} == reward_func([], [], [])


def test_groups_are_gathered_by_prompt_and_label() -> None:
    """With a group size threads wait for the rest of their group."""
    reward_func = openrlhf.openrlhf_reward("fated_rewards:rank", group_size=3)

    async def all_at_once() -> list[dict[str, Any]]:
        return await asyncio.gather(*(_executor(reward_func, text) for text in ("aaa", "a", "aa")))

    assert [2.0, 0.0, 1.0] == [one["reward"] for one in asyncio.run(all_at_once())]


def test_bad_input_names_openrlhfs_settings(tmp_path: Path) -> None:
    """A column beside the label, group rewards without a size, and a broken file are told at the start."""
    with pytest.raises(ConfigError, match=r"OpenRLHF: .*'hardness'.*sends only answer and label"):
        openrlhf.openrlhf_reward("fated_rewards:hard")
    with pytest.raises(ConfigError, match="--n_samples_per_prompt"):
        openrlhf.openrlhf_reward("fated_rewards:rank")
    with pytest.raises(Exception, match=r"OpenRLHF: .*--remote_rm_url"):
        openrlhf.openrlhf_reward(str(tmp_path / "nowhere.py"))


@pytest.mark.parametrize(
    ("lists", "words"),
    [
        ((["2+2=4"] * 2, [PROMPT], ["4"] * 2), "prompts: 1 for 2 queries"),
        ((["2+2=4"], [PROMPT], []), "labels: 0 for 1 queries"),
        ((["2+2=4", None], [PROMPT] * 2, ["4"] * 2), r"queries\[1\]: expected a string, got NoneType"),
        (("2+2=4", [PROMPT], ["4"]), "queries: expected a list, got str"),
    ],
)
def test_lists_that_do_not_belong_together_are_named(lists: Any, words: str) -> None:
    """Before anything is scored."""
    with pytest.raises(DataError, match=f"OpenRLHF: {words}"):
        openrlhf.openrlhf_reward(BOTH)(*lists)


def test_its_own_file_is_a_reward_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """``--remote_rm_url`` may name the module's file, which OpenRLHF runs by its path, with the variable set."""
    spec = importlib.util.spec_from_file_location("reward_func", openrlhf.__file__)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.delenv("REWARDKIT_REWARDS", raising=False)
    with pytest.raises(ConfigError, match=r"OpenRLHF: no rewards are named.*REWARDKIT_REWARDS"):
        spec.loader.exec_module(module)
    monkeypatch.setenv("REWARDKIT_REWARDS", BOTH)
    spec.loader.exec_module(module)
    assert 2.0 == module.reward_func(["2+2=4"], [PROMPT], ["4"])["rewards"]
