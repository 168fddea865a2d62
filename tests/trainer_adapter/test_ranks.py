"""What ranks tell each other: threads that stand for processes, and two real ones that train under TRL."""

from __future__ import annotations

import json
import os
import pickle
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import fault_server
import numpy as np
import pytest
import tiny_grpo

from rewardkit import (
    ConfigError,
    DataError,
    InfrastructureError,
    Outcome,
    RewardError,
    RewardTextError,
    Rollout,
    ScoreBatch,
    Status,
    group_reward,
    reward,
)
from sandbox import core_count
from trainer_adapter import RewardAdapter, ranks
from trainer_adapter.columns import FrozenBatch
from trainer_adapter.ranks import RankCall, RankFault, Ranks, owners, score_together
from trainer_adapter.splitting import check_groups
from trainer_adapter.trainer_versions import check_trl_version

_T = TypeVar("_T")
WAIT_S = 60.0
"""Seconds that a process or thread of a test may take to meet the others."""


@pytest.fixture
def as_ranks(monkeypatch: pytest.MonkeyPatch) -> Callable[[Sequence[Callable[[Ranks], Any]]], list[Any]]:
    """Return what runs functions as ranks, in a thread each, and gives what each returned or raised."""

    def run(functions: Sequence[Callable[[Ranks], Any]]) -> list[Any]:
        count, own = len(functions), threading.local()
        meet = threading.Barrier(count)
        sent: list[bytes] = [b""] * count
        ended: list[Any] = [None] * count

        def exchanged(mine: bytes, of: int) -> list[memoryview]:
            assert of == count
            sent[own.rank] = mine
            meet.wait(WAIT_S)
            every = [memoryview(one) for one in sent]
            meet.wait(WAIT_S)
            return every

        def one(rank: int) -> None:
            own.rank = rank
            try:
                ended[rank] = functions[rank](Ranks(rank, count))
            except Exception as error:
                ended[rank] = error

        monkeypatch.setattr(ranks, "_exchange", exchanged)
        threads = [threading.Thread(target=one, args=(rank,)) for rank in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(3 * WAIT_S)  # a rank that waits in vain says so before
        assert not any(thread.is_alive() for thread in threads)
        return ended

    return run


def raising(error: Exception) -> Callable[[Ranks], Any]:
    """Return a rank that raises when it is to share something."""

    def make() -> int:
        raise error

    return lambda mine: mine.share(make)


def test_each_rank_gets_what_every_rank_made(as_ranks: Any) -> None:
    """In the order of the ranks, its own included."""
    assert [["a", "b", "c"]] * 3 == as_ranks([lambda mine: mine.share(lambda: "abc"[mine.rank])] * 3)


def test_one_rank_alone_exchanges_nothing() -> None:
    """What it makes, and what it raises, is its own."""
    assert [7] == Ranks().share(lambda: 7)
    with pytest.raises(KeyError, match="mine"):
        raising(KeyError("mine"))(Ranks())


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (DataError("column 'answer': expected 4"), DataError, "rank 1: column 'answer': expected 4"),
        (ZeroDivisionError("division by zero"), ZeroDivisionError, "rank 1: division by zero"),
        (RewardTextError("broke", "timeout"), RewardTextError, "rank 1: broke"),
        (UnicodeDecodeError("ascii", b"x", 0, 1, "no"), RewardError, "rank 1: UnicodeDecodeError: 'ascii'"),
        (subprocess.TimeoutExpired("x", 1), RewardError, "rank 1: TimeoutExpired: Command 'x' timed out"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_an_error_of_one_rank_is_raised_on_every_rank(
    as_ranks: Any, error: Exception, kind: type[Exception], words: str
) -> None:
    """The same class and message, which names the rank; a class that others may lack becomes a RewardError."""
    ended = as_ranks([lambda mine: mine.share(lambda: 0), raising(error), lambda mine: mine.share(lambda: 0)])
    assert {kind} == set(map(type, ended))
    assert 1 == len({str(one) for one in ended})
    assert str(ended[0]).startswith(words)
    assert ended[1].__cause__ is error


def test_the_first_of_several_errors_is_raised() -> None:
    """An error travels as words, so nothing of it has to be picklable."""
    fault = RankFault.of(RewardError("closed", threading.Lock()), 3)
    assert isinstance(pickle.loads(pickle.dumps(fault)).error(), RewardError)


def test_ranks_that_cannot_exchange_any_more_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a process is gone torch raises in words about sockets."""

    def gone(mine: bytes, count: int) -> list[memoryview]:
        raise RuntimeError("Connection closed by peer [127.0.0.1]:1234")

    monkeypatch.setattr(ranks, "_exchange", gone)
    with pytest.raises(InfrastructureError, match=r"rank 1: .*Connection closed by peer.*ddp_timeout"):
        Ranks(1, 2).share(lambda: 0)


@pytest.mark.parametrize(
    ("counts", "generations", "expected"),
    [
        ([4, 4], 4, [[0] * 4, [1] * 4]),
        ([4, 4], 8, [[0] * 4, [0] * 4]),
        ([6, 6], 4, [[0] * 6, [0, 0, 1, 1, 1, 1]]),
        ([3, 3, 3, 3], 6, [[0] * 3, [0] * 3, [2] * 3, [2] * 3]),
        ([1, 1, 1], 3, [[0], [0], [0]]),
        ([4, 2], 4, [[0] * 4, [1] * 2]),
    ],
)
def test_who_has_a_groups_first_row_scores_it(counts: list[int], generations: int, expected: list[list[int]]) -> None:
    """Whole groups stay; of a split one the first part's rank scores the rest too."""
    assert expected == owners(counts, generations)


def batch_of(prompts: Sequence[str], completions: Sequence[str], **columns: Sequence[Any]) -> FrozenBatch:
    """Return a rank's batch."""
    return FrozenBatch(prompts, completions, None, columns)


@group_reward
def whole(completions: list[str], tag: str) -> list[float]:
    """The size of the group, and each one's length."""
    return [100.0 * len(completions) + len(completion) for completion in completions]


def scored_by(rank: int, seen: dict[int, list[str]]) -> Callable[[list[Rollout]], ScoreBatch]:
    """Return what scores rollouts by the size of their group, and notes which rank did."""

    def score(rollouts: list[Rollout]) -> ScoreBatch:
        seen[rank] = [str(rollout.completion) for rollout in rollouts]
        sizes = [sum(other.prompt == one.prompt for other in rollouts) for one in rollouts]
        outcomes = [Outcome(Status.SCORED, float(size), reason=f"by {rank}") for size in sizes]
        return ScoreBatch(rollouts, {"size": outcomes}, {"size": 1.0})

    return score


def test_a_split_group_is_scored_whole_and_each_rank_gets_its_own_rows(as_ranks: Any) -> None:
    """6 rows on each of 2 ranks, groups of 4: the second rank's first two rows go to the first, and come back."""
    prompts = ["p"] * 4 + ["q"] * 4 + ["r"] * 4
    texts, seen = [f"{number}" for number in range(12)], dict[int, list[str]]()

    def rank(mine: Ranks) -> ScoreBatch:
        own = slice(6 * mine.rank, 6 * mine.rank + 6)
        batch = batch_of(prompts[own], texts[own])
        return score_together(mine, batch, owners([6, 6], 4), scored_by(mine.rank, seen))

    first, second = as_ranks([rank, rank])
    assert {0: texts[:8], 1: texts[8:]} == seen
    assert ([4.0] * 6, [4.0] * 6) == (first.scores["size"], second.scores["size"])
    assert ["by 0"] * 2 + ["by 1"] * 4 == [outcome.reason for outcome in second["size"]]
    assert texts[6:] == [rollout.completion for rollout in second.rollouts]


def test_a_rank_whose_rows_all_go_elsewhere_scores_nothing(as_ranks: Any) -> None:
    """Groups of 8 on 4 rows a rank: real rewards, and a runtime that is given no rows."""

    def rank(mine: Ranks) -> list[float | None]:
        with RewardAdapter([whole], lane="inline") as adapter:
            batch = batch_of(["p"] * 4, ["x" * (4 * mine.rank + place) for place in range(4)], tag=["t"] * 4)
            return score_together(mine, batch, owners([4, 4], 8), adapter.runtime.score).scores["whole"]

    assert [[800.0, 801.0, 802.0, 803.0], [804.0, 805.0, 806.0, 807.0]] == as_ranks([rank, rank])


def test_a_value_that_cannot_be_pickled_stays_and_nobody_reads_it(as_ranks: Any) -> None:
    """A lock in a column that no reward reads does not keep rows from travelling."""
    read = list[Any]()

    def rank(mine: Ranks) -> int:
        def score(rollouts: list[Rollout]) -> ScoreBatch:
            read.extend(rollout.example["lock"] for rollout in rollouts[2:])
            return scored_by(mine.rank, {})(rollouts)

        batch = batch_of(["p"] * 2, ["a", "b"], lock=[threading.Lock() for _ in range(2)])
        return len(score_together(mine, batch, owners([2, 2], 4), score)["size"])

    assert [2, 2] == as_ranks([rank, rank])
    with pytest.raises(TypeError, match="stayed in the process"):
        pickle.dumps(read[0])


# Calls of an adapter on several ranks --------------------------------------------------------------------------------


def test_what_one_rank_has_to_score_anew_all_score_anew(as_ranks: Any) -> None:
    """Where a function from elsewhere changed completions in one process alone, nobody waits for the others."""

    def rank(mine: Ranks) -> list[Any]:
        with RewardAdapter([by_length, doubled], lane="inline") as adapter:
            adapter._ranks = mine
            first, second = adapter.reward_funcs
            changed = ["ccc", "dddd"] if mine.rank == 1 else ["a", "bb"]
            return [first(**call(["a", "bb"])), second(**call(changed)), first(**call(changed)), len(adapter.timings)]

    assert [[[1, 2], [2, 4], [1, 2], 2], [[1, 2], [6, 8], [3, 4], 2]] == as_ranks([rank, rank])


def test_what_is_wrong_with_one_ranks_rows_is_raised_on_all(as_ranks: Any) -> None:
    """Before anything is scored; then all go on."""

    def rank(mine: Ranks) -> list[Any]:
        with RewardAdapter([by_length], lane="inline") as adapter:
            adapter._ranks = mine
            (function,) = adapter.reward_funcs
            with pytest.raises(DataError, match=r"^rank 1: column 'answer': expected 2 values"):
                function(**call(["a", "bb"], answer=["4"] * (2 - mine.rank)))
            return function(**call(["a", "bb"]))

    assert [[1, 2]] * 2 == as_ranks([rank, rank])


def test_ranks_that_ask_for_different_rewards_say_so(as_ranks: Any) -> None:
    """Rather than give one reward's scores for another's."""

    def rank(mine: Ranks) -> Any:
        with RewardAdapter([by_length, doubled], lane="inline") as adapter:
            adapter._ranks = mine
            return adapter.reward_funcs[mine.rank](**call(["a"]))

    ended = as_ranks([rank, rank])
    assert {RewardError} == set(map(type, ended))
    assert all("rank 0 for 'by_length'" in str(one) and "rank 1 for 'doubled'" in str(one) for one in ended)


def test_a_call_that_is_not_the_trainers_is_answered_by_its_rank_alone() -> None:
    """A process that asks by itself, without the trainer's state, waits for nobody."""
    with RewardAdapter([by_length], lane="inline") as adapter:
        adapter._ranks = Ranks(0, 2)
        assert [1.0] == adapter.reward_funcs[0](prompts=["p"], completions=["a"])


def call(completions: Sequence[str], **columns: Sequence[Any]) -> dict[str, Any]:
    """Return a call as a trainer makes it at its first step."""
    state = SimpleNamespace(global_step=0, epoch=0.0)
    return {"prompts": ["p"] * len(completions), "completions": completions, "trainer_state": state, **columns}


def test_processes_that_are_not_torchs_exchange_nothing() -> None:
    """A trainer with several processes and no process group of torch's keeps each to its own rows."""
    assert Ranks() == Ranks.of(1)
    assert Ranks.of(4) is None


# Two processes under TRL ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained(tiny: Path, tmp_path_factory: pytest.TempPathFactory, full: bool) -> Any:
    """Two processes that trained, with what each left behind, their exit codes, output and the judge's requests."""
    import reward_ranks

    folder = tmp_path_factory.mktemp("ranks")
    helpers = Path(tiny_grpo.__file__).parent
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    shared = {
        **os.environ, "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
        "PYTHONPATH": os.pathsep.join([str(helpers), str(helpers.parents[1])]), "CUDA_VISIBLE_DEVICES": "",
        "OPENAI_API_KEY": "none",
    }  # fmt: skip
    processes: list[subprocess.Popen[bytes]] = []
    logs = [folder / f"{rank}.txt" for rank in (0, 1)]
    cases = tuple(reward_ranks.CASES) if full else reward_ranks.SHORT
    with fault_server.FaultServer(reward_ranks.script) as server:
        command = [sys.executable, str(helpers / "reward_ranks.py"), str(tiny), str(folder), server.url, *cases]
        try:
            for rank, log in enumerate(logs):
                env = {**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)}
                with log.open("w") as file:
                    processes.append(subprocess.Popen(command, env=env, stdout=file, stderr=subprocess.STDOUT))
            codes = [process.wait(500) for process in processes]
        finally:
            for process in processes:
                process.kill()
                process.wait()
        said = [log.read_text() for log in logs]
        left = [folder / f"left-{rank}.json" for rank in (0, 1)]
        assert all(one.is_file() for one in left), "\n".join(text[-3000:] for text in said)
        yield Trained(folder, cases, codes, said, [json.loads(one.read_text()) for one in left], server)


class Trained:
    """What two processes left."""

    def __init__(
        self, folder: Path, cases: Sequence[str], codes: list[int], said: list[str], left: list[Any], server: Any
    ) -> None:
        self.folder, self.cases, self.codes = folder, cases, codes
        self.said, self.left, self.server = said, left, server
        self.asked = len(server.seen)


@tiny_grpo.third_party_warnings
@pytest.mark.trainers
def test_two_processes_give_the_scores_and_advantages_of_one(trained: Trained) -> None:
    """Split groups and whole ones, GRPO and RLOO, training and evaluation; a judge and a group reward among them."""
    import reward_ranks
    from trl_rows import read

    from trainer_adapter.capture import AdvantageRule

    for number, name in enumerate(trained.cases):
        options = reward_ranks.CASES[name]
        batches = trained.left[0]["batches"][name]
        assert json.dumps(batches) == json.dumps(trained.left[1]["batches"][name])
        assert {"train", "eval"} == {one["split"] for one in batches}
        generations, method = options.get("num_generations", tiny_grpo.G), options.get("method", "GRPO").lower()
        left = {
            (split, rank): [row.completion for row in read(trained.folder / str(number), split) if row.rank == rank]
            for split in ("train", "eval")
            for rank in (0, 1)
        }
        with RewardAdapter(reward_ranks.rewards(trained.server.url), lane="inline") as alone:
            for batch in batches:
                call = {"prompts": batch["prompts"], "completions": batch["completions"]}
                told = {function.__name__: function(**call) for function in alone.reward_funcs}
                for one, scores in told.items():
                    np.testing.assert_array_equal(_float32(batch["rewards"][one]), _float32(scores))
                assert {generations} == {int(score // 100) for score in told["standing"] if score is not None}
                rule = AdvantageRule(method, generations)
                expected = rule.advantages(told, dict.fromkeys(told, 1.0), 0)
                np.testing.assert_allclose(batch["advantages"], expected, atol=2e-3)
                recorded = [left[batch["split"], rank] for rank in (0, 1)]
                own = len(batch["completions"]) // 2
                assert batch["completions"] == recorded[0][:own] + recorded[1][:own]
                del recorded[0][:own], recorded[1][:own]
        assert {0} == {len(rows) for rows in left.values()}


def _float32(scores: Sequence[float | None]) -> Any:
    return np.asarray([np.nan if score is None else score for score in scores], np.float32)


@tiny_grpo.third_party_warnings
@pytest.mark.trainers
def test_a_cap_holds_once_over_the_processes_of_a_host(trained: Trained) -> None:
    """Ten requests over both, and the chain's next link scores the rest; each has its share of the cores."""
    import reward_ranks

    from sandbox import cores, worker_count

    judged = [score for batch in trained.left[0]["batches"]["cap"] for score in batch["rewards"]["judge"]]
    assert reward_ranks.CAP == sum(score != reward_ranks.PLAIN for score in judged if score is not None)
    assert worker_count(cores(), 2) == trained.left[0]["workers"] == trained.left[1]["workers"]


@tiny_grpo.third_party_warnings
@pytest.mark.trainers
def test_an_error_in_one_process_ends_the_training_in_both(trained: Trained) -> None:
    """With the same class and message, which names the process; and both can go on afterwards."""
    assert trained.left[0]["raised"] == trained.left[1]["raised"]
    assert trained.left[0]["raised"].startswith("RewardFailedError: rank 1: ")
    assert "not on this one" in trained.left[0]["raised"]


@tiny_grpo.third_party_warnings
@pytest.mark.trainers
def test_a_process_that_is_gone_ends_the_other(trained: Trained) -> None:
    """It ends by itself, long before a collective's time is up."""
    assert 9 == trained.codes[1]
    assert trained.codes[0] not in (0, -9)


def test_a_budget_that_one_host_counts_keeps_all_rows_on_the_first_rank(tmp_path: Path) -> None:
    """Where there are several hosts; a ledger that was named, or one host, leaves the rows where they are."""
    from builtin_rewards.judge import Budget, Criterion, LLMJudge
    from rewardkit.testing import FakeJudge

    def owned(budget: Budget, *hosts: str) -> list[list[int]]:
        judge = LLMJudge("m", [Criterion("correct", "Is it right?")], client=FakeJudge(lambda *_: "4"), budget=budget)
        with RewardAdapter([judge.fallback(by_length)], lane="inline") as adapter:
            return adapter._owners([RankCall(None, ("judge",), 2, True, host) for host in hosts])

    private, named = Budget(requests=5), Budget(requests=5, ledger=tmp_path / "spent.db")
    assert [[0, 0], [0, 0]] == owned(private, "one", "other")
    assert [[0, 0], [1, 1]] == owned(private, "one", "one")
    assert [[0, 0], [1, 1]] == owned(named, "one", "other")


def test_another_version_of_trl_is_told_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """With the range that is tested; one within it is not worth a word."""
    for version in ("1.16.3", "1.17.0", "1.17.0", "2.0.0.dev1"):
        monkeypatch.setitem(sys.modules, "trl", SimpleNamespace(__version__=version))
        check_trl_version()
    said = [message for message in caplog.messages if "outside the versions" in message]
    assert ["trl 1.17.0", "trl 2.0.0.dev1"] == [message.partition(" is ")[0] for message in said]
    assert all(">=0.22,<1.17" in message for message in said)


def test_workers_are_a_processs_share_of_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of those at hand, divided by the processes on this host; a number that is given stays."""
    monkeypatch.setattr(core_count, "cores", lambda: 12)
    for said, expected in (("", 6), ("4", 3), ("8", 1), ("64", 1), ("two", 6)):
        monkeypatch.setenv("LOCAL_WORLD_SIZE", said)
        with RewardAdapter([by_length]) as adapter:
            assert expected == adapter.runtime.workers
    with RewardAdapter([by_length], workers=5) as adapter:
        assert 5 == adapter.runtime.workers


@reward
def by_length(completion: str) -> float:
    """Number of characters."""
    return float(len(completion))


@reward
def doubled(completion: str) -> float:
    """Twice the number of characters."""
    return 2.0 * len(completion)


def test_settings_name_the_trainers_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A group reward on several processes needs the size of a group, or processes that can exchange rows."""
    with pytest.raises(ConfigError, match="set num_generations, or train with one process in place of 2"):
        check_groups(["whole"], SimpleNamespace(world_size=2))
    check_groups([], SimpleNamespace(world_size=2))
    split = SimpleNamespace(
        world_size=2, num_generations=4, steps_per_generation=1, per_device_train_batch_size=6, eval_strategy="no"
    )
    with pytest.raises(ConfigError, match=r"not a multiple of num_generations=4.*cannot exchange rows"):
        check_groups(["whole"], split)
    monkeypatch.setattr(Ranks, "of", classmethod(lambda cls, processes: Ranks(0, processes)))
    check_groups(["whole"], split)
