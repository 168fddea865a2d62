"""One runtime for threads and event loops: real workers, real threads, and an end."""

from __future__ import annotations

import asyncio
import multiprocessing
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from parts_runtime import NumberedRuntime

from rewardkit import (
    Cause,
    DataError,
    InfrastructureError,
    MissingColumnError,
    Rollout,
    Runtime,
    RuntimeClosedError,
    Status,
    group_reward,
    reward,
)
from rewardkit.serving import JoinedRuntime

CALLS = 200


@reward
def right(completion: str, answer: str) -> float:
    return float(completion == answer)


@group_reward
def shortest(completions: list[str]) -> list[float]:
    return [float(len(one) == min(map(len, completions))) for one in completions]


@group_reward(name="counted", on_infrastructure="default", default=-1.0)
def counted(completions: list[str]) -> list[float]:
    return [float(len(completions))] * len(completions)


@group_reward(name="strict", on_infrastructure="raise")
def strict(completions: list[str]) -> list[float]:
    return [0.0] * len(completions)


@reward(name="unreachable")
def unreachable(completion: str) -> float:
    raise InfrastructureError(completion)


def _row(completion: str, answer: str = "4", prompt: str = "2+2=") -> Rollout:
    return Rollout(prompt, completion, {"answer": answer})


def test_calls_of_threads_and_loops_are_scored_as_the_runtime_scores_them() -> None:
    """Each of many callers has the totals that a batch of its own would have."""
    rows = [_row(str(number % 7)) for number in range(CALLS)]
    with Runtime([right], workers=1) as runtime:
        alone = runtime.score(rows).totals

        async def on_a_loop(joined: JoinedRuntime) -> list[float | None]:
            batches = await asyncio.gather(*(joined.ascore([one]) for one in rows))
            return [batch.totals[0] for batch in batches]

        with JoinedRuntime(runtime) as joined, ThreadPoolExecutor(8) as threads:
            in_threads = [batch.totals[0] for batch in threads.map(lambda one: joined.score([one]), rows)]
            assert alone == in_threads
            assert alone == asyncio.run(on_a_loop(joined))
            assert (["right"], {"right": 1.0}, ["right"]) == (joined.names, joined.weights, list(joined.rewards))


def test_two_groups_of_one_prompt_stay_two() -> None:
    """Callers with whole groups of one prompt are joined into one batch, and their groups are not."""
    with JoinedRuntime(Runtime([counted], workers=1)) as joined, ThreadPoolExecutor(4) as threads:
        groups = [[_row("a")] * size for size in (1, 2, 3, 4)]
        assert [[float(size)] * size for size in (1, 2, 3, 4)] == [
            batch.totals for batch in threads.map(joined.score, groups)
        ]


def test_a_late_group_fails_by_each_rewards_own_rule() -> None:
    """Single rewards are scored; group rewards are lost, with the default, nothing, or an error to those concerned."""
    with JoinedRuntime(Runtime([right, shortest, counted], workers=1), group_size=3, group_wait_s=0.05) as joined:
        batch = joined.score([_row("4"), _row("44")])
        assert [1.0, 0.0] == batch.scores["right"]
        assert {Cause.INFRASTRUCTURE} == {one.cause for name in ("shortest", "counted") for one in batch[name]}
        assert ([None, None], [-1.0, -1.0]) == (batch.scores["shortest"], batch.scores["counted"])
        assert [None, None] == batch.totals
        assert "2 of the 3 completions" in str(batch["shortest"][0].error)
    with (
        JoinedRuntime(Runtime([strict], workers=1), group_size=2, group_wait_s=0.2) as joined,
        ThreadPoolExecutor(3) as threads,
    ):
        late = threads.submit(joined.score, [_row("1")])
        whole = [threads.submit(joined.score, [_row("1", prompt="q")]) for _ in range(2)]
        assert [[0.0], [0.0]] == [one.result().totals for one in whole]
        with pytest.raises(InfrastructureError, match=r"reward 'strict' failed on row 0 \(infrastructure\)"):
            late.result()


def test_a_call_that_is_lost_is_an_outcome_and_no_error() -> None:
    """A single row is lost whole or not at all, so that no share of lost calls is held against it."""
    with JoinedRuntime(Runtime([unreachable], workers=1)) as joined:
        (outcome,) = joined.score([_row("down")])["unreachable"]
    assert (Status.FAILED, Cause.INFRASTRUCTURE, None) == (outcome.status, outcome.cause, outcome.score)


def test_a_wrong_row_costs_its_own_caller() -> None:
    """A row without a column, and one that cannot travel, are refused; those of the same moment are scored."""
    stuck = Rollout("p", "4", {"answer": threading.Lock()})
    with JoinedRuntime(Runtime([right], workers=1)) as joined, ThreadPoolExecutor(4) as threads:
        asked = [threads.submit(joined.score, [one]) for one in (_row("4"), Rollout("p", "4"), stuck, _row("5"))]
        assert ([1.0], [0.0]) == (asked[0].result().totals, asked[3].result().totals)
        with pytest.raises(MissingColumnError):
            asked[1].result()
        with pytest.raises(DataError, match="cannot travel"):
            asked[2].result()


def test_it_ends_with_its_thread_and_its_runtime() -> None:
    """Closed, it takes no calls and has no thread; closing it twice, or unused, does nothing more."""
    runtime = NumberedRuntime()
    joined = JoinedRuntime(runtime).start()
    assert [3.0] == joined.score([Rollout("p", "3")]).totals
    joined.close()
    joined.close()
    with pytest.raises(RuntimeClosedError, match="closed"):
        joined.score([Rollout("p", "3")])
    JoinedRuntime(runtime).close()
    assert (1, 2) == (runtime.started, runtime.closed)
    assert [] == [thread for thread in threading.enumerate() if thread.name == "rewardkit-joined"]


def test_it_ends_where_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """Adapters close it as the process exits, when Python 3.12 starts no thread any more."""

    class Threaded(NumberedRuntime):
        async def ascore_parts(self, *parts: Any, **context: Any) -> Any:
            return await asyncio.to_thread(asyncio.run, super().ascore_parts(*parts, **context))

    joined = JoinedRuntime(Threaded())
    assert [3.0] == joined.score([Rollout("p", "3")]).totals
    with monkeypatch.context() as patch:
        patch.delattr(threading.Thread, "start")
        joined.close()
    assert [] == [thread for thread in threading.enumerate() if thread.name == "rewardkit-joined"]


def _refused(joined: JoinedRuntime) -> None:
    with pytest.raises(RuntimeClosedError, match="fork"):
        joined.score([Rollout("p", "3")])
    joined.close()


@pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")
def test_a_fork_is_refused() -> None:
    """A process that was forked of it has no thread to ask, and is told so."""
    with JoinedRuntime(NumberedRuntime()) as joined:
        joined.score([Rollout("p", "3")])
        child = multiprocessing.get_context("fork").Process(target=_refused, args=(joined,))
        child.start()
        child.join(60)
        assert 0 == child.exitcode
