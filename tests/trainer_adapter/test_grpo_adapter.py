"""RewardAdapter against calls made as TRL makes them, and in real TRL training runs of a tiny random model."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pytest
from node_cluster import ThreadCluster
from patience import LONG_S, wait_for
from tiny_grpo import ROWS, G, third_party_warnings, train

import rewardkit
from rewardkit import (
    Cause,
    ConfigError,
    DataError,
    MissingColumnError,
    Outcome,
    Reward,
    RewardDefinitionError,
    RewardError,
    RewardFailedError,
    Rollout,
    RuntimeClosedError,
    ScoreBatch,
    Status,
    group_reward,
    reward,
    step_reward,
)
from rewardkit.runtime.nodes import ray_cluster
from rewardkit.runtime.nodes.orders import NodeFacts
from trainer_adapter import BatchTiming, RewardAdapter
from trainer_adapter.grpo import Partial
from trainer_adapter.handover import RuntimeOptions

Scores = list[float | None]

HUGE = 1e16
"""The largest score that the adapter hands on."""


# Calls as TRL makes them ---------------------------------------------------------------------------------------------


@reward
def length(completion: str) -> float:
    """Number of characters."""
    return float(len(completion))


@reward
def exact(completion: str, answer: str) -> float:
    """1 for the very answer."""
    return float(completion == answer)


@reward(default=None)
def strict(completion: str) -> float | None:
    """A score, nothing for "skip", a failure with nothing to stand in for "fail"."""
    if completion == "fail":
        raise ValueError("no score")
    return None if completion == "skip" else 1.0


@dataclass
class Step:
    """The arguments of one step's calls, the metrics logged in it, and the scores got."""

    call: dict[str, Any]
    metrics: dict[str, list[float]] = field(default_factory=dict)

    def log_metric(self, name: str, value: float) -> None:
        """Takes a metric, as TRL's function does."""
        self.metrics.setdefault(name, []).append(value)

    def ask(self, function: Any) -> Scores:
        """Calls one reward function as TRL does."""
        scores: Scores = function(**self.call, log_metric=self.log_metric, log_extra=_refuse)
        return scores

    def ask_all(self, adapter: RewardAdapter) -> dict[str, Scores]:
        """Calls every reward function, one after another."""
        return {function.__name__: self.ask(function) for function in adapter.reward_funcs}


@pytest.mark.parametrize("waits", [True, False], ids=["with nodes", "at once"])
def test_rewards_on_the_nodes_of_a_cluster_score_alike(waits: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first call does not wait for the nodes, here held back until it has its scores."""
    cluster, scored = ThreadCluster("a", "b"), threading.Event()

    def held_back(facts: NodeFacts) -> NodeFacts:
        scored.wait(LONG_S)
        return facts

    if not waits:
        cluster.on_host = lambda name, host: host.told.update(hello=held_back)
    monkeypatch.setattr(ray_cluster, "connect", lambda address: cluster)
    adapter = RewardAdapter([length], lane="ray", ray_address="auto", workers=1)
    try:
        if waits:
            adapter.start()
            wait_for(lambda: 2 == len(adapter.runtime.nodes))
        texts = ["x" * (n % 50) for n in range(200)]
        step = Step({"prompts": ["p"] * 200, "completions": texts})
        assert {"length": [float(len(text)) for text in texts]} == step.ask_all(adapter)
        assert waits == any("take" in host.asked for host in cluster.hosts.values())
    finally:
        scored.set()
        adapter.close()


def _refuse(column: str, values: Sequence[object]) -> None:
    raise AssertionError(f"log_extra({column!r}) can kill training and is not to be called")


def step(completions: Sequence[Any], *, number: int = 0, **changes: Any) -> Step:
    """Return the calls of a step on these completions, with a column ``answer``."""
    rows = len(completions)
    call = {
        "prompts": ["2+2="] * rows,
        "completions": list(completions),
        "completion_ids": [[row] for row in range(rows)],
        "answer": ["4"] * rows,
        "trainer_state": SimpleNamespace(global_step=number, epoch=number / 10),
    }
    return Step({**call, **changes})


def counted() -> tuple[Reward[..., Any], list[str]]:
    """Return a reward for the inline lane, and the list of completions that it was called with."""
    seen: list[str] = []

    @reward
    def counting(completion: str) -> float:
        seen.append(completion)
        return float(len(completion))

    return counting, seen


def says(text: str) -> list[dict[str, str]]:
    """Return a conversational completion."""
    return [{"role": "assistant", "content": text}]


def test_each_reward_is_a_function_of_its_name() -> None:
    """TRL's metrics are called by ``__name__``; the weights are in the same order."""
    with RewardAdapter([length, exact], weights={"exact": 2}, lane="inline") as adapter:
        assert ["length", "exact"] == [function.__name__ for function in adapter.reward_funcs] == adapter.names
        assert [1.0, 2.0] == adapter.weights


def test_a_step_reward_scores_the_turns_of_a_conversation() -> None:
    """Its steps are no metrics that stand in the trainer's way; a completion without steps has no score."""

    @step_reward(reduce="min")
    def brief(part: rewardkit.Step, answer: str) -> float:
        return float(len(part.text) <= len(answer))

    with RewardAdapter([brief], lane="inline") as adapter:
        completions = [says("4"), [*says("4"), *says("four")], []]
        assert {"brief": [1.0, 0.0, None]} == step(completions).ask_all(adapter)


def test_trl_may_change_the_list_it_is_given() -> None:
    """TRL keeps and changes its list of functions; the adapter's stays as it was."""
    with RewardAdapter([length, exact], lane="inline") as adapter:
        adapter.reward_funcs.clear()
        assert 2 == len(adapter.reward_funcs)


def test_scores_are_in_the_order_of_the_completions() -> None:
    """Also when the rewards run in several workers at once."""
    completions = ["x" * (number % 17) for number in range(100)]
    with RewardAdapter([length, exact], workers=2) as adapter:
        expected = {"length": [float(len(c)) for c in completions], "exact": [0.0] * 100}
        assert expected == step(completions).ask_all(adapter)


def test_a_step_scores_once_whichever_function_is_called_first() -> None:
    """Two functions, two orders, one scoring each."""
    counting, seen = counted()
    with RewardAdapter([exact, counting], lane="inline") as adapter:
        for number, functions in enumerate((adapter.reward_funcs, adapter.reward_funcs[::-1])):
            asked = step(["4", "55"], number=number)
            assert {"exact": [1.0, 0.0], "counting": [1.0, 2.0]} == {f.__name__: asked.ask(f) for f in functions}
    assert ["4", "55"] * 2 == seen


def test_the_same_completions_at_the_next_step_are_scored_anew() -> None:
    """A result serves one step, even where nothing in the call has changed."""
    counting, seen = counted()
    with RewardAdapter([counting, exact], lane="inline") as adapter:
        for _ in range(3):
            step(["4"]).ask_all(adapter)
    assert ["4"] * 3 == seen


def test_a_function_called_twice_does_not_get_an_old_result() -> None:
    """Where another function has not come for its part, a repeated call still scores anew."""
    counting, seen = counted()
    with RewardAdapter([counting, exact], lane="inline") as adapter:
        asked = step(["4"])
        asked.ask(adapter.reward_funcs[0])
        asked.ask(adapter.reward_funcs[0])
        assert [1.0] == asked.ask(adapter.reward_funcs[1])
    assert ["4", "4"] == seen


@pytest.mark.parametrize("conversational", [False, True], ids=["text", "messages"])
def test_no_score_is_given_to_a_changed_completion(conversational: bool) -> None:
    """Where other code changes the completions between two calls, the second is about what they are then."""
    completions: list[Any] = [says("4"), says("55")] if conversational else ["4", "55"]
    with RewardAdapter([length, exact], lane="inline") as adapter:
        asked = step(completions)
        assert [1.0, 2.0] == asked.ask(adapter.reward_funcs[0])
        if conversational:
            completions[1][0]["content"] = "4"
        else:
            asked.call["completions"][1] = "4"
        assert [1.0, 1.0] == asked.ask(adapter.reward_funcs[1])
        assert [1.0, 1.0] == asked.ask(adapter.reward_funcs[0])


def test_swapped_completions_do_not_swap_scores() -> None:
    """The same completions in another order are another call."""
    with RewardAdapter([length, exact], lane="inline") as adapter:
        step(["4", "55"]).ask(adapter.reward_funcs[0])
        assert [0.0, 1.0] == step(["55", "4"]).ask(adapter.reward_funcs[1])


def test_rewards_cannot_change_what_trl_and_others_see() -> None:
    """A reward that edits messages and columns edits copies of its own."""

    @reward
    def vandal(completion: list[dict[str, str]], tags: list[str]) -> float:
        completion[0]["content"] = "spoilt"
        tags.append("spoilt")
        return float(len(tags))

    with RewardAdapter([vandal, length], lane="inline") as adapter:
        asked = step([says("4"), says("55")], tags=[["a"], ["a"]])
        assert {"vandal": [2.0, 2.0], "length": [1.0, 2.0]} == asked.ask_all(adapter)
        assert ([says("4"), says("55")], [["a"], ["a"]]) == (asked.call["completions"], asked.call["tags"])


def test_conversational_prompts_and_completions_are_text_where_a_reward_asks_for_text() -> None:
    """A ``str`` parameter gets the last message, any other the messages."""

    @reward
    def asks(prompt: str, completion: str) -> float:
        return float((prompt, completion) == ("2+2=", "4"))

    prompt = [{"role": "system", "content": "Add."}, {"role": "user", "content": "2+2="}]
    with RewardAdapter([asks], lane="inline") as adapter:
        assert [1.0, 0.0] == step([says("4"), says("5")], prompts=[prompt, prompt]).ask(adapter.reward_funcs[0])


def test_with_tools_the_final_answer_is_scored() -> None:
    """A completion of several messages whose first is an empty tool call counts by its last assistant message."""
    completion = [
        {
            "role": "assistant",
            "tool_calls": [{"type": "function", "function": {"name": "add", "arguments": {"a": 2, "b": 2}}}],
            "content": "",
        },
        {"role": "tool", "name": "add", "content": "4"},
        {"role": "assistant", "reasoning_content": "hmm", "content": "The answer is 4"},
    ]
    with RewardAdapter([length], lane="inline") as adapter:
        asked = step([completion], prompts=[[{"role": "user", "content": "2+2="}]], environments=[object()])
        assert [15.0] == asked.ask(adapter.reward_funcs[0])


def test_a_column_may_be_called_self_or_name() -> None:
    """Column names do not collide with the callable's own parameters."""

    @reward
    def reads(example: dict[str, Any]) -> float:
        return float(example["self"] + example["name"])

    with RewardAdapter([reads], lane="inline") as adapter:
        assert [3.0] == step(["x"], self=[1], name=[2]).ask(adapter.reward_funcs[0])


def test_rewards_know_step_and_epoch() -> None:
    """They come from TRL's state at the call."""

    @reward
    def when(step: int, epoch: float) -> float:
        return step + epoch

    with RewardAdapter([when], lane="inline") as adapter:
        assert [7.7] == step(["x"], number=7).ask(adapter.reward_funcs[0])


def test_trainers_that_pass_less_are_served() -> None:
    """Without token ids, state and logging functions, as some of TRL's experimental trainers call."""
    with RewardAdapter([exact], lane="inline") as adapter:
        assert [1.0] == adapter.reward_funcs[0](prompts=["2+2="], completions=["4"], answer=["4"])


def test_a_missing_column_stops_before_anything_is_scored() -> None:
    """The error names reward and column."""
    with RewardAdapter([exact], lane="inline") as adapter, pytest.raises(MissingColumnError, match="'answer'"):
        adapter.reward_funcs[0](prompts=["2+2="], completions=["4"])


def test_a_column_of_the_wrong_length_is_an_error() -> None:
    """Nothing is scored against another row's column."""
    with RewardAdapter([exact], lane="inline") as adapter, pytest.raises(DataError, match="column 'answer'"):
        step(["4", "5"], answer=["4"]).ask(adapter.reward_funcs[0])


def test_threads_that_call_at_once_share_one_scoring() -> None:
    """One thread scores, the other waits for its part."""
    counting, seen = counted()
    answers: dict[str, Scores] = {}
    with RewardAdapter([counting, exact], lane="inline") as adapter:
        asked = step(["4"] * 50)
        together = threading.Barrier(2)

        def ask(function: Any) -> None:
            together.wait()
            answers[function.__name__] = asked.ask(function)

        threads = [threading.Thread(target=ask, args=(function,)) for function in adapter.reward_funcs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert {"counting": [1.0] * 50, "exact": [1.0] * 50} == answers
    assert 50 == len(seen)


def test_group_rewards_see_the_whole_group() -> None:
    """Rows of one prompt and one dataset row are a group, and others are not in it."""

    @group_reward
    def group_size(completions: list[str]) -> list[float]:
        return [float(len(completions))] * len(completions)

    with RewardAdapter([group_size, length], lane="inline") as adapter:
        assert ["group_size"] == adapter.group_rewards
        asked = step(["a", "b", "c", "d", "e"], prompts=["p", "p", "p", "q", "q"])
        assert [3.0, 3.0, 3.0, 2.0, 2.0] == asked.ask(adapter.reward_funcs[0])


# Missing scores ------------------------------------------------------------------------------------------------------


def test_leave_out_takes_a_row_out_where_a_reward_failed_with_nothing_to_stand_in() -> None:
    """A skipped reward is left out alone; a failed one takes every score of its row along."""
    with RewardAdapter([strict, length], lane="inline") as adapter:
        scores = step(["good", "skip", "fail"]).ask_all(adapter)
    assert {"strict": [1.0, None, None], "length": [4.0, 4.0, None]} == scores


def test_sum_leaves_missing_scores_to_trl() -> None:
    """Every missing score is missing alone."""
    with RewardAdapter([strict, length], partial="sum", lane="inline") as adapter:
        scores = step(["good", "skip", "fail"]).ask_all(adapter)
    assert {"strict": [1.0, None, None], "length": [4.0, 4.0, 4.0]} == scores


def test_a_failure_of_a_reward_without_weight_takes_nothing_along() -> None:
    """It is not in the sum, so the sum is known without it."""
    with RewardAdapter([strict, length], weights=[0, 1], lane="inline") as adapter:
        assert {"strict": [None], "length": [4.0]} == step(["fail"]).ask_all(adapter)


def test_a_row_to_which_only_rewards_without_weight_apply_is_left_out() -> None:
    """Its sum would be 0, which no reward gave; where no reward has any weight there is no such row."""
    with RewardAdapter([strict, length], weights=[1, 0], lane="inline") as adapter:
        assert {"strict": [1.0, None], "length": [4.0, None]} == step(["good", "skip"]).ask_all(adapter)
    with RewardAdapter([strict, length], weights=[0, 0], lane="inline") as adapter:
        assert {"strict": [1.0, None], "length": [4.0, 4.0]} == step(["good", "skip"]).ask_all(adapter)


def test_what_trl_sums_is_the_runtimes_total() -> None:
    """TRL's weighted nansum of the scores is ``ScoreBatch.totals``, row by row."""
    completions = ["good", "skip", "fail"]
    with RewardAdapter([strict, length], weights=[0.5, 2], lane="inline") as adapter:
        scores = step(completions).ask_all(adapter)
        totals = adapter.runtime.score([Rollout("2+2=", completion) for completion in completions]).totals
        rows = zip(*scores.values(), strict=True)
        sums = [
            None
            if all(score is None for score in row)
            else sum(weight * score for weight, score in zip(adapter.weights, row, strict=True) if score is not None)
            for row in rows
        ]
    assert totals == sums


def test_an_unknown_policy_is_refused() -> None:
    """The message names what there is."""
    with pytest.raises(RewardDefinitionError, match="'leave_out' or 'sum'"):
        RewardAdapter([length], partial="none", lane="inline")


@pytest.mark.parametrize("huge", [2 * HUGE, -2 * HUGE, 1e39, 1e300], ids=str)
def test_a_score_too_large_for_trl_is_an_error(huge: float) -> None:
    """The trainer's float32 arithmetic would overflow; the error names reward, step and row."""

    @reward
    def large(completion: str) -> float:
        return huge if completion == "bad" else 1.0

    with RewardAdapter([large], lane="inline") as adapter:
        with pytest.raises(RewardError, match=r"reward 'large' gave .* at step 5 on row 1"):
            step(["good", "bad"], number=5).ask(adapter.reward_funcs[0])
        assert [1.0] == step(["good"]).ask(adapter.reward_funcs[0])


def test_a_weighted_sum_too_large_for_trl_is_an_error() -> None:
    """Weights can overflow what scores alone do not."""
    with RewardAdapter([length], weights=[HUGE], lane="inline") as adapter:
        assert [1.0] == step(["x"]).ask(adapter.reward_funcs[0])
        with pytest.raises(RewardError, match="on row 0 add up to 2e"):
            step(["xx"]).ask(adapter.reward_funcs[0])
    with pytest.raises(RewardDefinitionError, match="weight of 'length'"):
        RewardAdapter([length], weights=[2 * HUGE], lane="inline")


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan], ids=str)
def test_infinite_scores_and_nan_never_reach_trl(value: float) -> None:
    """They are failures, and the default stands in."""

    @reward(default=-1.0)
    def odd(completion: str) -> float:
        return value

    with RewardAdapter([odd], lane="inline") as adapter:
        assert [-1.0] == step(["x"]).ask(adapter.reward_funcs[0])


def test_as_many_weights_as_rewards() -> None:
    """A missing weight is found when the adapter is made."""
    with pytest.raises(RewardDefinitionError, match="1 weights for 2 rewards"):
        RewardAdapter([length, exact], weights=[1], lane="inline")


def test_raise_stops_at_the_first_failure() -> None:
    """With ``on_failure="raise"`` the error names reward, step and row, and the next step can be scored."""
    with RewardAdapter([length, strict], on_failure="raise", lane="inline") as adapter:
        with pytest.raises(RewardFailedError, match="reward 'strict' failed at step 2 on row 1"):
            step(["good", "fail"], number=2).ask(adapter.reward_funcs[0])
        assert {"length": [4.0], "strict": [1.0]} == step(["good"]).ask_all(adapter)


def test_a_closed_adapter_says_so() -> None:
    """Workers end with the ``with`` block; a later call is an error, a second close is none."""
    with RewardAdapter([length], workers=1) as adapter:
        assert [1.0] == step(["x"]).ask(adapter.reward_funcs[0])
    adapter.close()
    with pytest.raises(RuntimeClosedError):
        step(["x"]).ask(adapter.reward_funcs[0])


# Metrics and timings -------------------------------------------------------------------------------------------------


class FakeRuntime:
    """Stands in for a Runtime: gives outcomes made by hand."""

    def __init__(self, **outcomes: Sequence[Outcome]) -> None:
        self.outcomes = outcomes
        self.weights = dict.fromkeys(outcomes, 1.0)
        self.rewards = dict.fromkeys(outcomes, length)
        self.workers = 2

    def score(self, rollouts: Sequence[Rollout], *, step: int | None, epoch: float | None) -> ScoreBatch:
        """Return the outcomes, whatever is asked."""
        return ScoreBatch(rollouts, self.outcomes, self.weights)


def _outcome(cause: Cause | None = None, duration_s: float = 0.0, **fields: Any) -> Outcome:
    status = Status.SCORED if cause is None else Status.FAILED
    return Outcome(**{"status": status, "score": 0.0, "cause": cause, "duration_s": duration_s, **fields})


def faked(**outcomes: Sequence[Outcome]) -> RewardAdapter:
    """Return an adapter of ``length`` whose runtime gives these outcomes."""
    adapter = RewardAdapter([length], lane="inline")
    adapter.runtime = FakeRuntime(**outcomes)  # type: ignore[assignment]  # a fake
    return adapter


def test_shares_of_failures_and_the_slow_end_of_the_times_are_logged() -> None:
    """Once a step, over all completions: errors and timeouts apart, 95th percentile by nearest rank."""
    outcomes = [_outcome(duration_s=number / 10) for number in range(1, 15)]
    outcomes += [_outcome(Cause.TIMEOUT, 9.0), _outcome(Cause.EXCEPTION), _outcome(Cause.CRASHED)]
    outcomes += [_outcome(Cause.BAD_RETURN), _outcome(Cause.COERCION)]
    outcomes += [_outcome(status=Status.SKIPPED, score=None, duration_s=5.0)]
    asked = step(["x"] * 20)
    asked.ask_all(faked(length=outcomes))
    expected = {
        "reward_time/length/p95": [5.0],
        "reward_errors/length": [4 / 20],
        "reward_timeouts/length": [1 / 20],
        "reward_skipped/length": [1 / 20],
        "reward_infrastructure/length": [0.0],
    }
    assert expected == asked.metrics


def test_metrics_of_scores_are_logged_as_means() -> None:
    """Each over the completions that have it; one that no score came with in a step is not logged in it."""
    outcomes = [_outcome(metrics={"distance": 1.0, "right": 1.0}), _outcome(metrics={"distance": 4.0}), _outcome()]
    asked = step(["x"] * 3)
    asked.ask_all(faked(length=outcomes))
    said = {name: values for name, values in asked.metrics.items() if name.startswith("reward_metrics/")}
    assert {"reward_metrics/length/distance": [2.5], "reward_metrics/length/right": [1.0]} == said


def test_calls_lost_to_infrastructure_are_logged() -> None:
    """They count as errors too; a step without any logs 0, because TRL's mean is over the steps that log a metric."""
    lost = _outcome(Cause.INFRASTRUCTURE, score=None)
    adapter = faked(length=[lost, _outcome()])
    first, second = step(["x", "y"]), step(["x", "y"], number=1)
    assert {"length": [None, 0.0]} == first.ask_all(adapter)
    adapter.runtime.outcomes["length"] = [_outcome(), _outcome()]  # type: ignore[attr-defined]  # the fake's
    second.ask_all(adapter)
    assert ([0.5], [0.5]) == (first.metrics["reward_infrastructure/length"], first.metrics["reward_errors/length"])
    assert [0.0] == second.metrics["reward_infrastructure/length"]


def test_metrics_are_logged_once_a_step_by_whoever_comes_first() -> None:
    """With several rewards each metric is logged once."""
    asked = step(["4", "skip", "fail"])
    with RewardAdapter([length, strict], lane="inline") as adapter:
        asked.ask_all(adapter)
    assert {1} == {len(values) for values in asked.metrics.values()}
    assert ([1 / 3], [1 / 3]) == (asked.metrics["reward_errors/strict"], asked.metrics["reward_skipped/strict"])
    assert all(math.isfinite(value) for values in asked.metrics.values() for value in values)


def test_each_scored_batch_has_a_timing() -> None:
    """It is how long the trainer waited, and a step of two functions is one entry."""

    @reward
    def slow(completion: str) -> float:
        time.sleep(0.05)
        return 0.0

    with RewardAdapter([slow, length], lane="inline") as adapter:
        for number in range(2):
            step(["a", "b", "c", "d"], number=number).ask_all(adapter)
        assert [(0, 4), (1, 4)] == [(timing.step, timing.rows) for timing in adapter.timings]
        assert all(timing.wall_s >= 0.2 for timing in adapter.timings)
        assert adapter.seconds == pytest.approx(sum(timing.wall_s for timing in adapter.timings), abs=0.01)


# The callback --------------------------------------------------------------------------------------------------------


@pytest.fixture
def settings() -> SimpleNamespace:
    """What TRL hands to a callback: 8 completions a process and step, groups of 4."""
    return SimpleNamespace(
        reward_weights=None,
        num_generations=4,
        per_device_train_batch_size=4,
        steps_per_generation=2,
        eval_strategy="no",
        per_device_eval_batch_size=3,
        num_generations_eval=None,
    )


@group_reward
def grouped(completions: list[str]) -> list[float]:
    """0 for all."""
    return [0.0] * len(completions)


def begin(adapter: RewardAdapter, settings: SimpleNamespace) -> None:
    """Begins training, as far as the callback is told."""
    pytest.importorskip("transformers", reason="the callback is transformers'")
    adapter.callback.on_train_begin(settings, None, None)


def test_importing_the_package_loads_no_trainer() -> None:
    """Neither torch nor trl nor transformers, until the callback is asked for."""
    heavy = "('torch', 'trl', 'transformers', 'datasets', 'peft', 'accelerate')"
    code = (
        "import sys, trainer_adapter; from trainer_adapter import *\n"
        "trainer_adapter.RewardAdapter([lambda completion: 0.0], lane='inline').reward_funcs\n"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    assert "[]\n" == subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_training_starts_the_workers(settings: SimpleNamespace) -> None:
    """Before the first batch, so that it need not wait; and the callback is one object."""
    with RewardAdapter([length], workers=1) as adapter:
        begin(adapter, settings)
        deadline = time.monotonic() + 120
        while not adapter.runtime.processes and time.monotonic() < deadline:
            time.sleep(0.01)
        assert adapter.runtime.processes
        assert adapter.callback is adapter.callback


def test_groups_split_between_processes_are_refused(settings: SimpleNamespace) -> None:
    """A group reward would score parts of groups; other rewards do not mind."""
    settings.per_device_train_batch_size, settings.steps_per_generation = 3, 2
    with RewardAdapter([length], lane="inline") as adapter:
        begin(adapter, settings)
    words = r"6 completions in a batch .* not a multiple of num_generations=4"
    adapter = RewardAdapter([exact, 0.5 * grouped + length], lane="inline")
    with pytest.raises(ConfigError, match=words):
        begin(adapter, settings)


def test_whole_groups_are_accepted(settings: SimpleNamespace) -> None:
    """Several steps' batches may make up a group."""
    settings.per_device_train_batch_size, settings.steps_per_generation = 2, 2
    with RewardAdapter([grouped], lane="inline") as adapter:
        begin(adapter, settings)


def test_groups_split_in_evaluation_are_refused(settings: SimpleNamespace) -> None:
    """Where there is an evaluation; TRL has a group size of its own for it."""
    settings.eval_strategy = "steps"
    with RewardAdapter([grouped], lane="inline") as adapter:
        with pytest.raises(ConfigError, match="per_device_eval_batch_size=3"):
            begin(adapter, settings)
        settings.num_generations_eval = 3
        begin(adapter, settings)


@pytest.mark.parametrize("given", [None, [0.5, 0.5]], ids=["none", "others"])
def test_weights_that_trl_was_not_given_are_an_error(settings: SimpleNamespace, given: list[float] | None) -> None:
    """Or TRL would sum with weights of 1."""
    settings.reward_weights = given
    with RewardAdapter([length, exact], weights=[0.8, 0.2], lane="inline") as adapter:
        with pytest.raises(ConfigError, match=r"reward_weights=adapter\.weights"):
            begin(adapter, settings)
        settings.reward_weights = adapter.weights
        begin(adapter, settings)
        settings.reward_weights = [*adapter.weights, 1.0]  # a reward function from elsewhere beside them
        begin(adapter, settings)


# Real training runs --------------------------------------------------------------------------------------------------

KINDS = ["raise", "text", "nan", "loop", "exit", "segfault", "flood"]
"""What a bad completion makes the reward do, beside the innocents of its own group and three others."""


def is_bad(completion: str) -> bool:
    """Tells whether a completion is one that makes the reward fail: about three in four."""
    return zlib.crc32(completion.encode()) % 4 != 0


def innocent_score(completion: str) -> float:
    """Return the score of a completion that does nothing."""
    return zlib.crc32(completion.encode()) % 1000 / 8


def _faults() -> dict[str, Callable[[], Any]]:
    def fail() -> None:
        raise ValueError("no sum in it")

    def loop() -> None:
        while True:
            pass

    def flood() -> float:
        for _ in range(2000):
            print("spam " * 200)
        return 2.0

    return {
        "raise": fail,
        "text": lambda: "0.5 or so",
        "nan": lambda: math.nan,
        "loop": loop,
        "exit": lambda: os._exit(0),
        "segfault": lambda: os.kill(os.getpid(), signal.SIGSEGV),
        "flood": flood,
    }


@reward(timeout_s=1.5, default=-1.0)
def faulty(completion: str, fault: str) -> Any:
    """The innocent score, or on a bad completion the row's fault."""
    return _faults()[fault]() if fault != "none" and is_bad(completion) else innocent_score(completion)


@reward
def steady(completion: str) -> float:
    """The innocent score, whatever its neighbour does."""
    return innocent_score(completion)


def _expected(call: dict[str, Any]) -> Scores:
    """Return what ``faulty`` must have given: innocents their score, the bad ones its default."""
    scores: Scores = []
    for completion, fault in zip(call["completions"], call["fault"], strict=True):
        bad = fault != "none" and is_bad(completion)
        scores.append((2.0 if fault == "flood" else -1.0) if bad else innocent_score(completion))
    return scores


def _bad_kinds(call: dict[str, Any]) -> list[str]:
    """Return the faults that a step's bad completions committed."""
    rows = zip(call["completions"], call["fault"], strict=True)
    return [fault for completion, fault in rows if fault != "none" and is_bad(completion)]


@third_party_warnings
@pytest.mark.parametrize("method", ["GRPO", pytest.param("RLOO", marks=[pytest.mark.trainers, pytest.mark.full])])
def test_training_goes_on_through_every_fault(tiny: Path, method: str) -> None:
    """Each completion has its own score, however its neighbours end, and the logs say how many failed."""
    faults = [*KINDS, *["none"] * 9]
    rows = [
        {"prompt": f"{number}+{number}=", "fault": fault} for number, fault in enumerate(faults[::2] + faults[1::2])
    ]
    with RewardAdapter([faulty, steady], weights=[0.7, 0.3], workers=2) as adapter:
        run = train(tiny, adapter, rows, steps=4, method=method)
        timings = adapter.timings
        share = adapter.callback.reward_share
    assert run.weights_are_finite()
    calls = run.relays["faulty"].calls
    assert [_expected(call) for call, _ in calls] == [scores for _, scores in calls]
    innocents = [[innocent_score(completion) for completion in call["completions"]] for call, _ in calls]
    assert innocents == [scores for _, scores in run.relays["steady"].calls]
    failing = [[kind for kind in _bad_kinds(call) if kind != "flood"] for call, _ in calls]
    assert sum(map(len, failing)) >= 6
    timeouts = [kinds.count("loop") / ROWS for kinds in failing]
    errors = [len(kinds) / ROWS - late for kinds, late in zip(failing, timeouts, strict=True)]
    assert timeouts == pytest.approx(run.logged("reward_timeouts/faulty"))
    assert errors == pytest.approx(run.logged("reward_errors/faulty"))
    assert [0.0] * 4 == run.logged("reward_errors/steady") == run.logged("reward_skipped/faulty")
    assert [4, 4] == [len(run.logged(f"reward_time/{name}/p95")) for name in adapter.names]
    assert [(number, ROWS) for number in range(4)] == [(timing.step, timing.rows) for timing in timings]
    assert share is not None
    assert 0 < share < 1


@third_party_warnings
def test_training_stops_at_a_failure_where_that_was_asked(tiny: Path) -> None:
    """``on_failure="raise"`` ends training with an error that names reward, step and row."""

    @reward
    def brittle(completion: str, step: int, row: int) -> float:
        if (step, row) == (1, 6):
            raise ValueError("at the seventh prompt")
        return 1.0

    rows = [{"prompt": f"{number}=", "row": number} for number in range(8)]
    words = r"reward 'brittle' failed at step 1 on row (8|9|10|11) .*seventh"
    with (
        RewardAdapter([steady, brittle], on_failure="raise", lane="inline") as adapter,
        pytest.raises(RewardFailedError, match=words),
    ):
        train(tiny, adapter, rows, steps=3)


@third_party_warnings
@pytest.mark.parametrize("thing", ["adapter", "composition", "reward"])
def test_what_trl_cannot_call_says_what_to_hand_over(tiny: Path, tmp_path: Path, thing: str) -> None:
    """The adapter itself and a composition are refused as the trainer is made, a reward at its first call."""
    import trl
    from datasets import Dataset

    with RewardAdapter([length], lane="inline") as adapter:
        handed, words = {
            "adapter": (adapter, "a RewardAdapter is not a reward function; .* reward_funcs=adapter.reward_funcs"),
            "composition": (
                length + exact,
                r"'length \+ exact' is not a function; .*RewardAdapter\(\[...\]\).reward_funcs",
            ),
            "reward": (length, r"reward_funcs=RewardAdapter\(\[length\]\).reward_funcs"),
        }[thing]
        config = trl.GRPOConfig(
            output_dir=str(tmp_path), use_cpu=True, bf16=False, report_to="none", disable_tqdm=True, max_steps=1,
            num_generations=2, per_device_train_batch_size=2, max_completion_length=4,
        )  # fmt: skip
        with pytest.raises((AttributeError, TypeError), match=words):
            trl.GRPOTrainer(
                model=str(tiny), reward_funcs=handed, args=config, train_dataset=Dataset.from_list([{"prompt": "a"}])
            ).train()


@pytest.mark.parametrize("rewards", [[length, None], {"length": length, "none": None}], ids=str)
def test_what_is_no_reward_is_named_with_its_place(rewards: Any) -> None:
    """As in a runtime."""
    with pytest.raises(RewardDefinitionError, match=r"^(rewards\[1\]|reward 'none'): None is not a reward; "):
        RewardAdapter(rewards)


@third_party_warnings
def test_rloo_is_served_as_grpo_is(tiny: Path) -> None:
    """RLOOTrainer calls rewards the same way."""
    rows = [{"prompt": f"{number}="} for number in range(8)]
    with RewardAdapter([steady], lane="inline") as adapter:
        run = train(tiny, adapter, rows, steps=2, method="RLOO")
    for call, scores in run.relays["steady"].calls:
        assert [innocent_score(completion) for completion in call["completions"]] == scores
    assert 2 == len(run.logged("rewards/steady/mean")) == len(run.logged("reward_time/steady/p95"))


@third_party_warnings
def test_conversations_evaluation_and_rewards_that_change_their_inputs(tiny: Path) -> None:
    """Messages reach rewards as copies; evaluation is scored like training and its metrics have names of their own."""

    @reward
    def vandal(prompt: list[dict[str, str]], completion: list[dict[str, str]], tags: list[str]) -> float:
        score = innocent_score(completion[0]["content"])
        prompt[0]["content"] = completion[0]["content"] = "spoilt"
        tags.clear()
        return score

    @group_reward
    def rank(completions: list[str], prompt: str, tags: list[str]) -> list[float]:
        order = sorted(map(innocent_score, completions))
        return [float(order.index(innocent_score(completion))) + 100 * len(completions) for completion in completions]

    rows = [{"prompt": [{"role": "user", "content": f"{number}="}], "tags": ["a", str(number)]} for number in range(8)]
    with RewardAdapter([vandal, steady, rank], workers=1) as adapter:
        run = train(tiny, adapter, rows, steps=2, eval_rows=rows[:4])
        assert [ROWS] * 3 == [timing.rows for timing in adapter.timings]
        evaluated = run.trainer.evaluate()  # the workers outlive the training
    for number, (call, scores) in enumerate(run.relays["steady"].calls):
        texts = [completion[-1]["content"] for completion in call["completions"]]
        assert [innocent_score(text) for text in texts] == scores
        assert scores == run.relays["vandal"].calls[number][1]
        for first in range(0, len(texts), G):
            group = [innocent_score(text) for text in texts[first : first + G]]
            ranks = [float(sorted(group).index(score)) + 100 * G for score in group]
            assert ranks == run.relays["rank"].calls[number][1][first : first + G]
        assert {2} == {len(tags) for tags in call["tags"]}
    assert 4 == len(run.relays["steady"].calls)
    assert (2, 2) == (len(run.logged("reward_time/rank/p95")), len(run.logged("eval_reward_time/rank/p95")))
    assert 0.0 == evaluated["eval_reward_errors/vandal"]


@third_party_warnings
def test_a_row_without_a_total_leaves_the_baseline(tiny: Path) -> None:
    """TRL's own mean of a step is the mean of the known totals, and a step of unknown ones does no harm."""

    @reward(default=None)
    def unsure(completion: str, step: int) -> float | None:
        if step == 1 or zlib.crc32(completion.encode()) % 4 == 1:
            raise ValueError("cannot tell")
        return None if zlib.crc32(completion.encode()) % 4 == 2 else innocent_score(completion)

    rows = [{"prompt": f"{number}="} for number in range(8)]
    with RewardAdapter([unsure, steady], weights=[0.5, 2.0], lane="inline") as adapter:
        run = train(tiny, adapter, rows, steps=3)
    assert run.weights_are_finite()
    means: list[float] = []
    for call, _ in run.relays["steady"].calls:
        kinds = [(zlib.crc32(c.encode()) % 4, innocent_score(c)) for c in call["completions"]]
        known = [2.0 * score + (0.0 if kind == 2 else 0.5 * score) for kind, score in kinds if kind != 1]
        means.append(sum(known) / len(known))
    logged = run.logged("reward")
    assert logged[1] is None
    assert [means[0], means[2]] == pytest.approx([logged[0], logged[2]])


@third_party_warnings
def test_the_guides_example_runs(tiny: Path, tmp_path: Path) -> None:
    """The first Python block of the guide, with the tiny model and two steps in place of what it names."""
    guide = (Path(__file__).parents[2] / "docs" / "how-to" / "use-with-trl.md").read_text()
    code = guide.split("```python\n")[1].split("```")[0]
    settings = "max_steps=2, use_cpu=True, bf16=False, activation_checkpointing=False, max_completion_length=4"
    for named, instead in {
        '"Qwen/Qwen3-0.6B"': repr(str(tiny)),
        'output_dir="runs/sums"': f"output_dir={str(tmp_path)!r}, {settings}, save_strategy='no', disable_tqdm=True",
    }.items():
        assert named in code
        code = code.replace(named, instead)
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(code, names)
    assert names["trainer"].state.global_step == 2
    assert [timing.rows for timing in names["adapter"].timings] == [8, 8]


def test_the_guide_names_every_metric_option_and_timing() -> None:
    """What can be asked for or read is in the guide."""
    guide = (Path(__file__).parents[2] / "docs" / "how-to" / "use-with-trl.md").read_text()
    asked = step(["x"])
    asked.ask_all(faked(length=[_outcome(Cause.INFRASTRUCTURE)]))
    metrics = [name.replace("/length", "/<name>") for name in asked.metrics]
    options = ["rewards", "weights", "partial", *RuntimeOptions.__annotations__]
    fields = BatchTiming._fields
    named = [f"`{name}`" for name in (*metrics, *options, *fields)] + [
        f'`partial="{choice}"`' for choice in get_args(Partial)
    ]
    assert [] == [name for name in named if name not in guide]
