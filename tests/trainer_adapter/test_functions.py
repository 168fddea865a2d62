"""The adapter's functions away from their process: pickled by trainers, in workers of theirs, and in AsyncGRPO."""

from __future__ import annotations

import copy
import inspect
import json
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_grpo

from rewardkit import Reward, RewardTransportError, group_reward, reward
from trainer_adapter import RewardAdapter
from trainer_adapter.functions import MOST_SCORINGS, Scorings


@reward
def length(completion: str) -> float:
    """Number of characters."""
    return float(len(completion))


@reward(default=None)
def exact(completion: str, answer: str) -> float | None:
    """1 for the very answer; fail and skip where told to."""
    if completion == "fail":
        raise ValueError("no score")
    return None if completion == "skip" else float(completion == answer)


@group_reward
def size(completions: list[str]) -> list[float]:
    """How many there are in the group."""
    return [float(len(completions))] * len(completions)


def batch(completions: Sequence[str], prompt: str = "2+2=") -> dict[str, Any]:
    """Return what a trainer calls with that has no state."""
    rows = len(completions)
    return {"prompts": [prompt] * rows, "completions": list(completions), "answer": ["4"] * rows,
            "completion_ids": [[row] for row in range(rows)]}  # fmt: skip


def counted() -> tuple[Reward[..., Any], list[str]]:
    """Return a reward for the inline lane, and the list of completions that it was called with."""
    seen: list[str] = []

    @reward
    def counting(completion: str) -> float:
        seen.append(completion)
        return float(len(completion))

    return counting, seen


# Scorings ------------------------------------------------------------------------------------------------------------


def test_interleaved_groups_are_scored_once_each() -> None:
    """Two groups, two rewards and the total, asked in turns: every completion is scored once."""
    counting, seen = counted()
    one, other = batch(["a", "bb"]), batch(["ccc", "dddd"], "3+1=")
    with RewardAdapter([counting, exact], weights=[2, 1], lane="inline") as adapter:
        first, second, total = *adapter.reward_funcs, adapter.total_func
        assert ([1.0, 2.0], [3.0, 4.0]) == (first(**one), first(**other))
        assert ([0.0, 0.0], [0.0, 0.0]) == (second(**one), second(**other))
        assert ([2.0, 4.0], [6.0, 8.0]) == (total(**one), total(**other))
    assert ["a", "bb", "ccc", "dddd"] == seen


def test_a_bounded_number_of_scorings_is_remembered() -> None:
    """The oldest goes, and what is asked of it then is scored anew."""
    scorings = Scorings()
    for number in range(MOST_SCORINGS + 1):
        scorings.put(b"%d" % number, {"one": [1.0]})
    assert [False, True] == [scorings.has(b"0", "one"), scorings.has(b"1", "one")]
    assert [1.0] == scorings.take(b"1", "one")
    assert not scorings.has(b"1", "one")
    scorings.clear()
    assert not scorings.has(b"2", "one")


def test_the_total_is_what_trl_adds_up() -> None:
    """Weighted, without what is missing; a completion that is left out has none."""
    asked = batch(["4", "skip", "fail", "nothing"])
    with RewardAdapter([length, exact], weights={"length": 0.5, "exact": 2}, lane="inline") as adapter:
        assert [2.5, 2.0, None, 3.5] == adapter.total_func(**asked)
        assert "total" == adapter.total_func.__name__
    with RewardAdapter([length, exact], weights=[0.5, 2], partial="sum", lane="inline") as adapter:
        assert [2.5, 2.0, 2.0, 3.5] == adapter.total_func(**asked)


def test_a_function_says_what_it_takes() -> None:
    """Trainers look for prompts and completions among a reward function's parameters before they take it."""
    with RewardAdapter([length], lane="inline") as adapter:
        for function in (*adapter.reward_funcs, adapter.total_func):
            parameters = inspect.signature(function).parameters
            assert ["prompts", "completions", "completion_ids", "keywords"] == list(parameters)
            assert not inspect.iscoroutinefunction(function.__call__)


# Pickles -------------------------------------------------------------------------------------------------------------


def test_functions_pickled_in_their_own_process_stay_the_adapters() -> None:
    """A trainer that copies what it is given makes no second set of workers, and what it asks is recorded."""
    with RewardAdapter([length], lane="inline") as adapter:
        (function,) = adapter.reward_funcs
        for other in (copy.deepcopy(function), pickle.loads(pickle.dumps(function))):
            assert [1.0] == other(**batch(["4"]))
        assert 2 == len(adapter.timings)
        assert adapter is pickle.loads(pickle.dumps(adapter))


def test_a_reward_that_cannot_travel_says_so_where_it_is_pickled() -> None:
    """Also in the inline lane, which itself sends nothing."""
    held = threading.Lock()

    @reward
    def holding(completion: str) -> float:
        return float(held.locked())

    with RewardAdapter([length, holding], lane="inline") as adapter:
        assert [0.0] == adapter.reward_funcs[1](**batch(["4"]))
        with pytest.raises(RewardTransportError, match="one of the rewards 'length', 'holding' cannot travel"):
            pickle.dumps(adapter.reward_funcs)


SCRIPT = """
import concurrent.futures, json, multiprocessing, os, sys
from rewardkit import group_reward, reward
from trainer_adapter import RewardAdapter

def made(bonus):
    @reward
    def closed(completion: str) -> float:
        return len(completion) + bonus
    return closed

@reward(timeout_s=20)
def mine(completion: str, answer: str) -> float:
    return float(completion == answer)

@group_reward
def size(completions: list[str]) -> list[float]:
    return [float(len(completions))] * len(completions)

def call(functions, batch):
    scores = [function(**batch) for function in functions]
    return scores, functions[0].adapter.runtime.processes, os.getpid(), [one.__name__ for one in functions]

if __name__ == "__main__":
    batch = {"prompts": ["p"] * 3, "completions": ["4", "44", ""], "answer": ["4"] * 3}
    adapter = RewardAdapter([mine, made(10), 2 * size + mine], weights=[1, 2, 3], workers=1)
    functions = [*adapter.reward_funcs, adapter.total_func]
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        told = [pool.submit(call, functions, batch).result(300) for _ in range(2)]
    print(json.dumps([os.getpid(), adapter.runtime.processes, told]))
"""


def test_a_scripts_rewards_score_in_a_trainers_spawned_workers(tmp_path: Path) -> None:
    """Of ``__main__``, closures and compositions; sent anew with every batch, they keep one set of workers."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script)]
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]),
    }
    ended = subprocess.run(command, env=env, capture_output=True, text=True, timeout=400, check=False)
    assert not ended.returncode, ended.stderr
    own, workers, told = json.loads(ended.stdout)
    composed = [7.0, 6.0, 6.0]
    expected = [[1.0, 0.0, 0.0], [11.0, 12.0, 10.0], composed, [44.0, 42.0, 38.0]]
    assert [expected, expected] == [scores for scores, *_ in told]
    assert ["mine", "closed"] == told[0][3][:2]
    assert "total" == told[0][3][3]
    assert [] == workers
    assert told[0][1] == told[1][1] != []
    assert told[0][2] == told[1][2] != own


# AsyncGRPO -----------------------------------------------------------------------------------------------------------


@pytest.mark.cases(1)
@tiny_grpo.third_party_warnings
@pytest.mark.trainers
@pytest.mark.parametrize("which", ["total_func", "reward_funcs"])
def test_asyncgrpo_scores_in_its_own_process(monkeypatch: pytest.MonkeyPatch, which: str) -> None:
    """TRL's controller pickles, its child scores two groups at once, and its samples have our weighted totals.

    With the functions one by one it would lose the weights, and says what to pass instead.
    """
    pytest.importorskip("trl", reason="needs the extra 'train'")
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    from accelerate.state import PartialState

    PartialState()  # as a trainer has made it
    import async_scoring
    from trl.experimental.async_grpo import async_rollout_worker

    monkeypatch.setattr(async_rollout_worker, "is_vllm_available", lambda: True)
    monkeypatch.setattr(async_rollout_worker, "is_aiohttp_available", lambda: True)
    monkeypatch.setattr(async_rollout_worker, "print_prompt_completions_sample", lambda *_, **__: None)
    groups = [
        {"prompt": prompt, "completions": completions, "columns": {"answer": ["4"] * len(completions)}}
        for prompt, completions in (("2+2=", ["4", "5", "fail", "skip"]), ("3+1=", ["4", "444"]))
    ]
    adapter = RewardAdapter([length, exact, size], weights=[0.5, 2, 0.25], workers=1)
    functions = [adapter.total_func] if which == "total_func" else adapter.reward_funcs
    worker = async_scoring.Worker(reward_funcs=functions, groups=groups, child_ready_timeout=300)
    worker.start()
    try:
        child, told = worker.rollout_buffer.get(timeout=300)
    finally:
        worker.stop()
        adapter.close()
    assert child != os.getpid()
    if which == "reward_funcs":
        assert told.startswith("ConfigError: AsyncGRPO adds up rewards without weights")
        assert "reward_funcs=adapter.total_func" in told
        return
    totals = [[3.5, 1.5, np.nan, 3.0], [3.0, 2.0]]
    for group, expected in zip(told, totals, strict=True):
        np.testing.assert_allclose([metrics["reward"] for metrics, _ in group], expected)
        np.testing.assert_allclose([metrics["rewards/total"] for metrics, _ in group], expected)
        kept = np.array(expected)
        advantages = np.nan_to_num((kept - np.nanmean(kept)) / (np.nanstd(kept) + 1e-8))
        np.testing.assert_allclose([advantage for _, advantage in group], advantages, atol=1e-6)
