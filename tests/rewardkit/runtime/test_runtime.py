"""The runtime: order, concurrency, caching, streaming, ends, and how rewards reach the workers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pickle
import selectors
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from patience import LONG_S, alive, wait_for

from rewardkit import (
    Cause,
    DataError,
    InfrastructureError,
    MissingColumnError,
    RewardDefinitionError,
    RewardFailedError,
    RewardLoadError,
    RewardTransportError,
    Rollout,
    Runtime,
    RuntimeClosedError,
    Score,
    Status,
    clip,
    gate,
    group_reward,
    minimum,
    product,
    reward,
    scheduled,
)
from rewardkit.runtime.plan import PIECE_ROWS, Plan
from sandbox.workers.dispatch import Dispatch
from sandbox.workers.pool import WorkerPool


def length(completion: str) -> float:
    return float(len(completion))


def answer_is(completion: str, answer: int) -> float:
    return float(completion == str(answer))


def _rollouts(count: int) -> list[Rollout]:
    return [Rollout("p", "x" * (n % 50), {"answer": str(n)}) for n in range(count)]


@pytest.mark.parametrize("lane", ["worker", "inline"])
def test_outcomes_come_in_the_order_given(lane: str) -> None:
    """A thousand rollouts keep their places, whatever the lane and however they were chunked."""
    rollouts = _rollouts(1000)
    with Runtime([length], workers=2, lane=lane) as runtime:
        batch = runtime.score(rollouts)
    assert [float(n % 50) for n in range(1000)] == batch.scores["length"]
    assert rollouts == list(batch.rollouts)


def test_an_empty_batch_has_no_scores() -> None:
    """Nothing in, nothing out."""
    with Runtime([length], lane="inline") as runtime:
        batch = runtime.score([])
    assert ({"length": []}, []) == (batch.scores, batch.totals)


def test_one_runtime_serves_many_threads() -> None:
    """Batches scored at once from several threads keep to themselves."""
    wrong: list[Any] = []
    with Runtime([length], workers=2) as runtime:

        def score(size: int) -> None:
            for _ in range(5):
                scores = runtime.score([Rollout("p", "y" * size)] * 40).scores["length"]
                if scores != [float(size)] * 40:
                    wrong.append((size, scores))

        threads = [threading.Thread(target=score, args=(n,)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [] == wrong


def test_ascore_is_score_for_event_loops() -> None:
    """Two batches awaited together give what score gives."""

    async def both(runtime: Runtime) -> list[Any]:
        batches = await asyncio.gather(runtime.ascore(_rollouts(10)), runtime.ascore(_rollouts(20)))
        return [batch.scores["length"] for batch in batches]

    with Runtime([length], workers=1) as runtime:
        assert [[float(n) for n in range(10)], [float(n) for n in range(20)]] == asyncio.run(both(runtime))


def test_an_ascore_cancelled_before_its_batch_has_begun_makes_no_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that prepares the batch goes on, and the batch is cancelled as soon as it is prepared."""
    planning, may_plan, ends = threading.Event(), threading.Event(), []
    pieces, cancel = Plan.pieces, WorkerPool.cancel

    def slowly(plan: Plan) -> Any:
        planning.set()
        may_plan.wait(LONG_S)
        return pieces(plan)

    def noted(pool: WorkerPool, job: Any, error: BaseException) -> None:
        ends.append(str(error))
        cancel(pool, job, error)

    async def cancelled(runtime: Runtime) -> None:
        task = asyncio.create_task(runtime.ascore([Rollout("p", "slow")]))
        await asyncio.to_thread(planning.wait, LONG_S)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        may_plan.set()

    @reward(timeout_s=LONG_S)
    def sleeps(completion: str) -> float:
        time.sleep(600 if completion == "slow" else 0)
        return 1.0

    monkeypatch.setattr(Plan, "pieces", slowly)
    monkeypatch.setattr(WorkerPool, "cancel", noted)
    with Runtime([sleeps], workers=1) as runtime:
        asyncio.run(cancelled(runtime))
        assert wait_for(lambda: ends == ["the batch was cancelled"])
        assert [1.0] == runtime.score([Rollout("p", "quick")]).totals


def test_stream_gives_each_outcome_once_and_early(tmp_path: Path) -> None:
    """Every outcome comes exactly once, those of quick rewards while a slow call runs, compositions at the end."""
    may_end = tmp_path / "may end"

    def slow(completion: str) -> float:
        while completion == "" and not may_end.exists():
            time.sleep(0.01)
        return 1.0

    first, second = reward(timeout_s=60.0)(slow), reward(length)
    total = (first + second).named("total")
    seen = []
    with Runtime([first, second, total], workers=2) as runtime:
        for one in runtime.stream(_rollouts(20)):
            seen.append(one)
            if sum(found.reward == "length" for found in seen) == 20:
                may_end.touch()  # until all of these are here, the slow call does not end
    assert sorted((n, name) for n in range(20) for name in ("slow", "length", "total")) == sorted(
        (one.row, one.reward) for one in seen
    )
    assert {"total"} == {one.reward for one in seen[-20:]}


def test_leaving_a_stream_early_frees_the_runtime() -> None:
    """After a stream is dropped the next batch is scored as ever."""

    def slow(completion: str) -> float:
        time.sleep(0.05)
        return float(len(completion))

    with Runtime([slow], workers=1) as runtime:
        for _ in runtime.stream(_rollouts(200)):
            break
        assert [3.0] == runtime.score([Rollout("p", "abc")]).scores["slow"]


def test_an_error_in_a_group_rewards_list_fails_its_own_completion() -> None:
    """An exception in a score's place is that completion's failure, of the cause that raising it has."""

    @group_reward(default=-1.0)
    def ranked(completions: list[str]) -> list[Any]:
        def one(text: str) -> Any:
            try:
                return {"lost": InfrastructureError("no answer"), "none": None}.get(text) or 1 / (text != "odd")
            except ZeroDivisionError as odd:
                return odd

        return [one(text) for text in completions]

    texts = ["good", "odd", "lost"]
    for lane in ("worker", "inline"):
        with Runtime([ranked], lane=lane, workers=1, max_infrastructure_rate=1) as runtime:
            good, odd, lost = runtime.score([Rollout("p", text) for text in texts])["ranked"]
        assert (Status.SCORED, 1.0) == (good.status, good.score)
        assert (Cause.EXCEPTION, -1.0, "ZeroDivisionError: division by zero") == (odd.cause, odd.score, odd.error)
        assert "in one" in (odd.traceback or "")
        assert (Cause.INFRASTRUCTURE, None, "no answer") == (lost.cause, lost.score, lost.error)


def test_a_group_reward_sees_all_completions_of_its_prompt() -> None:
    """Rollouts are grouped by prompt and row, wherever they stand in the batch."""

    @group_reward
    def rank(completions: list[str], answer: int) -> list[float | None]:
        order = sorted(completions, key=len)
        return [None if c == "" else float(order.index(c) + answer) for c in completions]

    rollouts = [Rollout(f"p{n % 3}", "x" * n, {"answer": str(100 * (n % 3))}) for n in range(9)]
    with Runtime([rank], lane="inline") as runtime:
        outcomes = runtime.score(rollouts)["rank"]
    assert [None, 100.0, 200.0, 1.0, 101.0, 201.0, 2.0, 102.0, 202.0] == [o.score for o in outcomes]
    assert Status.SKIPPED == outcomes[0].status


def test_equal_calls_of_a_cached_reward_run_once(tmp_path: Path) -> None:
    """With cache=True equal inputs run once in a batch and never again in a later one; failures run again."""
    note = tmp_path / "calls"

    @reward(cache=True)
    def counted(completion: str, answer: int) -> float:
        with note.open("a") as file:
            file.write(completion)
        if completion == "f":
            raise ValueError("no")
        return float(answer)

    rollouts = [Rollout(f"prompt {n}", c, {"answer": "7", "other": str(n)}) for n, c in enumerate("aabbaf")]
    with Runtime([counted], workers=1) as runtime:
        first = runtime.score(rollouts)["counted"]
        second = runtime.score(rollouts)["counted"]
    assert [7.0] * 5 + [0.0] == [o.score for o in first] == [o.score for o in second]
    assert [False, True, False, True, True, False] == [o.cached for o in first]
    assert [True] * 5 + [False] == [o.cached for o in second]
    assert "abff" == "".join(sorted(note.read_text()))


def test_conversations_reach_a_reward_as_text() -> None:
    """Text is the last assistant message with content; the whole conversation is there for who asks."""

    def reads(prompt: str, completion: str, messages: list[Any]) -> Score:
        return Score(len(messages), reason=f"{prompt}|{completion}")

    prompt = [{"role": "system", "content": "s"}, {"role": "user", "content": [{"type": "text", "text": "2+2"}]}]
    completion = [
        {"role": "assistant", "content": "", "tool_calls": [{"name": "add"}]},
        {"role": "tool", "content": "4"},
        {"role": "assistant", "content": "It is 4"},
    ]
    with Runtime([reads], lane="inline") as runtime:
        (outcome,) = runtime.score([Rollout(prompt, completion)])["reads"]
    assert (5.0, "2+2|It is 4") == (outcome.score, outcome.reason)


def test_the_signature_of_predibase_users_works_unchanged() -> None:
    """prompt, completion and a fresh dict[str, str], with imports inside, undecorated."""

    def theirs(prompt: str, completion: str, example: dict[str, str]) -> float:
        import re

        example["scratch"] = "mine"
        found = re.search(r"\d+", completion)
        return 1.0 if found and found.group() == example["target"] and isinstance(example["n"], str) else 0.0

    rollouts = [Rollout("p", "it is 42", {"target": "42", "n": 3})] * 3
    with Runtime([theirs], workers=1) as runtime:
        assert [1.0] * 3 == runtime.score(rollouts).scores["theirs"]


def test_step_and_epoch_reach_who_asks() -> None:
    """step, epoch and token ids are filled by name."""

    def where(completion_ids: list[int], step: int, epoch: float) -> float:
        return step + epoch + sum(completion_ids)

    with Runtime([where], workers=1) as runtime:
        batch = runtime.score([Rollout("p", "c", {}, [1, 2])], step=10, epoch=0.5)
    assert [13.5] == batch.scores["where"]


def test_a_column_that_does_not_coerce_is_named() -> None:
    """The outcome says column, row, what was expected and what was there."""
    with Runtime([answer_is], lane="inline") as runtime:
        good, bad = runtime.score([Rollout("p", "4", {"answer": "4.0"}), Rollout("p", "4", {"answer": "four"})])[
            "answer_is"
        ]
    assert (Status.SCORED, 1.0) == (good.status, good.score)
    assert (Cause.COERCION, 0.0) == (bad.cause, bad.score)
    assert "column 'answer' of example 1: expected int, got 'four'" in (bad.error or "")


def test_a_missing_column_is_an_error_before_anything_runs() -> None:
    """The message names reward, column, row and a near name."""
    with Runtime([answer_is], lane="inline") as runtime:
        rollouts = [Rollout("p", "c", {"answer": "1"}), Rollout("p", "c", {"anser": "1"})]
        with pytest.raises(
            MissingColumnError, match=r"'answer_is' needs column 'answer', which example 1 lacks.*'anser'"
        ):
            runtime.score(rollouts)


def test_what_is_no_rollout_is_refused() -> None:
    """A dictionary in place of a Rollout is named with its row."""
    with (
        Runtime([length], lane="inline") as runtime,
        pytest.raises(DataError, match="row 1: expected a Rollout, got dict"),
    ):
        runtime.score([Rollout("p", "c"), {"prompt": "p"}])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("given", "words"),
    [(Rollout("p", "c"), r"got one Rollout; score\(\[rollout\]\)"), (None, "got None"), (4, "got 4")],
    ids=["one", "none", "a number"],
)
def test_what_is_no_list_of_rollouts_is_refused(given: Any, words: str) -> None:
    """A rollout by itself, or nothing, is told by what is expected in its place."""
    with Runtime([length], lane="inline") as runtime, pytest.raises(DataError, match=f"a list of rollouts, {words}"):
        runtime.score(given)


def test_a_row_that_cannot_travel_is_named() -> None:
    """A lock in a row is refused with the row's number."""
    with Runtime([reward(_raw)], lane="inline") as runtime, pytest.raises(DataError, match="row 0 cannot travel"):
        runtime.score([Rollout("p", "c", {"thing": threading.Lock()})])


def _raw(thing: Any) -> float:
    return 1.0


def test_totals_leave_skips_out_and_do_not_guess_at_failures() -> None:
    """A skip leaves the sum; a default counts; a failure with nothing to stand in makes the total unknown."""

    @reward(default=None)
    def maybe(completion: str) -> float | None:
        if completion == "raise":
            raise ValueError
        return None if completion == "skip" else 2.0

    with Runtime([maybe, length], weights=[0.5, 1.0], lane="inline") as runtime:
        batch = runtime.score([Rollout("p", c) for c in ("ok", "skip", "raise")])
        alone = Runtime([maybe], weights={"maybe": 0.0}, lane="inline").score([Rollout("p", "raise")])
    assert [3.0, 4.0, None] == batch.totals
    assert [None] == alone.totals


def test_compositions_are_scored_from_their_parts() -> None:
    """Sums, gates, clips, minima, products and schedules; each leaf runs once."""
    one, chars = reward(name="one")(lambda completion: 1.0), reward(name="chars")(length)
    rewards = {
        "sum": 0.8 * one + 0.2 * chars - one,
        "gate": gate(chars, one, threshold=3, otherwise=-1),
        "clip": clip(chars, 0, 2),
        "min": minimum(one, chars),
        "product": product(chars, chars + one),
        "late": scheduled(chars, lambda step: step / 10),
    }
    with Runtime(rewards, lane="inline") as runtime:
        scores = runtime.score([Rollout("p", "abcd"), Rollout("p", "")], step=5).scores
    expected = {
        "sum": [0.6, -0.2],
        "gate": [1.0, -1.0],
        "clip": [2.0, 0.0],
        "min": [1.0, 0.0],
        "product": [20.0, 0.0],
        "late": [2.0, 0.0],
    }
    assert expected == {name: pytest.approx(column) for name, column in scores.items()}


def test_a_composition_says_when_a_part_failed() -> None:
    """With a default the sum stands and says it failed; without one there is no score."""

    def broken(completion: str) -> float:
        raise ValueError("no")

    with_default = reward(name="a", default=0.5)(broken) + reward(name="n")(length)
    without = reward(name="b", default=None)(broken) + reward(name="n2")(length)
    with Runtime({"with": with_default, "without": without}, lane="inline") as runtime:
        batch = runtime.score([Rollout("p", "xx")])
    assert (Status.FAILED, 2.5, Cause.EXCEPTION) == (
        batch["with"][0].status,
        batch["with"][0].score,
        batch["with"][0].cause,
    )
    assert (Status.FAILED, None) == (batch["without"][0].status, batch["without"][0].score)
    with pytest.raises(KeyError, match="no reward 'b' in this batch; it has 'with', 'without'"):
        batch["b"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([length, length], {}), "two rewards are named 'length'"),
        (([], {}), "no rewards"),
        (([length], {"weights": [1.0, 2.0]}), "2 weights for 1 rewards"),
        (([length], {"weights": {"lenght": 1.0}}), "weights name 'lenght'"),
        (([length], {"weights": [float("nan")]}), "finite"),
        (([length], {"workers": 0}), "workers=0"),
        (([length], {"cache_entries": -1}), "cache_entries=-1"),
        (([length], {"lane": "outline"}), "lane='outline'"),
        (([length], {"on_failure": "ignore"}), "on_failure='ignore'"),
        (([length], {"max_infrastructure_rate": 2}), "max_infrastructure_rate=2"),
        ((7, {}), "expected a list of rewards"),
    ],
)
def test_a_runtime_that_makes_no_sense_is_refused(arguments: tuple[Any, dict[str, Any]], words: str) -> None:
    """Each mistake is named with its value."""
    rewards, options = arguments
    with pytest.raises(RewardDefinitionError, match=words):
        Runtime(rewards, **options)


def test_raise_policy_names_reward_step_and_row() -> None:
    """With on_failure='raise' the first failure stops the batch with our error; the runtime stays usable."""

    @reward
    def picky(completion: str) -> float:
        if completion == "bad":
            raise KeyError("sum")
        return 1.0

    for lane in ("worker", "inline"):
        with Runtime([picky], workers=1, lane=lane, on_failure="raise") as runtime:
            with pytest.raises(RewardFailedError, match=r"'picky' failed at step 12 on row 1 \(exception\): KeyError"):
                runtime.score([Rollout("p", "ok"), Rollout("p", "bad")], step=12)
            assert [1.0] == runtime.score([Rollout("p", "ok")]).totals


def test_too_much_lost_infrastructure_raises() -> None:
    """When more than half of a reward's calls are lost through nobody's fault there is an error, not noise."""

    @reward
    def killed(completion: str) -> float:
        os.kill(os.getpid(), signal.SIGKILL)
        return 1.0

    with Runtime([killed], workers=1) as runtime, pytest.raises(InfrastructureError, match="'killed': 100% of 2 calls"):
        runtime.score(_rollouts(2))


def test_a_closed_runtime_says_so() -> None:
    """Scoring after close is our error, and closing twice is no error."""
    runtime = Runtime([length], workers=1)
    runtime.score(_rollouts(1))
    runtime.close()
    runtime.close()
    with pytest.raises(RuntimeClosedError, match="closed"):
        runtime.score(_rollouts(1))


def test_a_runtime_closed_while_a_batch_is_prepared_says_so() -> None:
    """Also where equal calls of a cached reward wait for one that is never made."""
    with Runtime([reward(cache=True)(length)], workers=1) as runtime:
        assert runtime._pool is not None
        runtime._pool.close()
        with pytest.raises(RuntimeClosedError, match="closed"):
            runtime.score([Rollout("p", "x")] * 3)


def test_a_fault_of_the_pool_ends_every_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told to this batch and those after it, and the pool sleeps until one comes: dead workers do not wake it."""
    with Runtime([length], workers=2) as runtime:
        runtime.wait_loaded()
        monkeypatch.setattr(Dispatch, "feed", lambda dispatch: 1 / 0)
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                runtime.score(_rollouts(1))
        pool = runtime._pool
        assert isinstance(pool, WorkerPool)
        assert [pool._wake_read] == [key.fileobj for key in pool._selector.get_map().values()]


@pytest.mark.parametrize("mode", ["r", "rb", "a", "r+"])
def test_an_open_file_does_not_travel(tmp_path: Path, mode: str) -> None:
    """A worker gets no copy of a file that is open here: text to read is refused as are bytes and what is written."""
    path = tmp_path / "words.txt"
    path.write_text("4\n5\n")
    with path.open(mode) as file:

        def reads(completion: str) -> float:
            return float(completion in file.read())

        with pytest.raises(RewardTransportError, match=r"'reads' cannot travel to a worker process: cannot pickle"):
            Runtime([reads])


def test_what_cannot_travel_is_named_with_its_remedy() -> None:
    """A closure over a lock is refused when the runtime is made; a plain closure and a lambda travel."""
    lock, offset = threading.Lock(), 5

    def holds_a_lock(completion: str) -> float:
        with lock:
            return 1.0

    with pytest.raises(RewardTransportError, match=r"'holds_a_lock' cannot travel.*lane='inline'"):
        Runtime([holds_a_lock])
    assert [1.0] == Runtime([holds_a_lock], lane="inline").score([Rollout("p", "c")]).totals
    with Runtime([reward(name="closure")(lambda completion: len(completion) + offset)], workers=1) as runtime:
        assert [6.0] == runtime.score([Rollout("p", "c")]).totals


@pytest.mark.parametrize("pause_s", [0.0, 0.3], ids=["at once", "with the worker's end"])
def test_a_reward_that_loads_here_but_not_there_is_named(
    tmp_path: Path, pause_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that fails to import in a worker gives its own traceback, not a hang, whichever message is seen first."""
    select = selectors.DefaultSelector.select

    def select_late(selector: selectors.DefaultSelector, timeout: float | None = None) -> list[Any]:
        time.sleep(pause_s)
        return sorted(select(selector, timeout), key=lambda event: event[0].data is not None)  # the warden's first

    monkeypatch.setattr(selectors.DefaultSelector, "select", select_late)
    file = tmp_path / "mine.py"
    file.write_text(
        "import os\nfrom rewardkit import reward\n"
        f"if os.getpid() != {os.getpid()}:\n    raise ImportError('only at home')\n"
        "@reward\ndef homely(completion: str) -> float:\n    return 1.0\n"
    )
    with Runtime([f"{file}:homely"], workers=1) as runtime, pytest.raises(RewardLoadError, match="only at home"):
        runtime.score(_rollouts(1))


def test_a_module_that_exits_on_import_does_not_hang_the_runtime(tmp_path: Path) -> None:
    """Workers that die while loading are given up after a few."""
    file = tmp_path / "mine.py"
    file.write_text(
        f"import os\nif os.getpid() != {os.getpid()}:\n    os._exit(5)\n"
        "def leaves(completion: str) -> float:\n    return 1.0\n"
    )
    with (
        Runtime([f"{file}:leaves"], workers=1) as runtime,
        pytest.raises(RewardLoadError, match="code 5 while loading"),
    ):
        runtime.score(_rollouts(1))


SCRIPT = """
    from rewardkit import Rollout, Runtime, Score, reward
    from dataclasses import dataclass
    import functools

    print("main runs")
    FACTOR = 3

    @functools.cache
    def factor():
        return FACTOR

    @dataclass
    class Note:
        text: str

    @reward
    def mine(completion: str, note: Note) -> Score:
        return Score(factor() * len(completion), reason=note.text)

    with Runtime([mine], workers=2) as runtime:
        batch = runtime.score([Rollout("p", "abc", {"note": '{"text": "hi"}'})] * 4)
    print(batch.scores["mine"], batch["mine"][0].reason)
"""


def test_a_script_without_a_main_guard_runs_once(tmp_path: Path) -> None:
    """Rewards of a script's own main module work, and no worker runs the script again."""
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(SCRIPT))
    for arguments in ([str(script)], ["-c", script.read_text()]):
        done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=300, cwd=tmp_path)
        assert ("main runs\n[9.0, 9.0, 9.0, 9.0] hi\n", "") == (done.stdout, done.stderr)


def test_a_script_read_from_standard_input_works() -> None:
    """At the prompt and in a notebook there is no file; rewards travel all the same."""
    done = subprocess.run(
        [sys.executable, "-"], input=textwrap.dedent(SCRIPT), capture_output=True, text=True, timeout=300
    )
    assert ("main runs\n[9.0, 9.0, 9.0, 9.0] hi\n", "") == (done.stdout, done.stderr)


WITH_A_LONG_CALL = """
    import sys, time
    from rewardkit import Rollout, Runtime, reward

    @reward(timeout_s=600)
    def long(completion: str) -> float:
        import subprocess
        subprocess.Popen(["sleep", "600"])
        time.sleep(600)
        return 1.0

    runtime = Runtime([long], workers=2)
    runtime.start()
    while len(runtime.processes) < 2:
        time.sleep(0.02)
    print("ready", flush=True)
    runtime.score([Rollout("p", "c")] * 4)
"""


def _names(processes: list[psutil.Process]) -> set[str]:
    """The names that processes have now; some may end meanwhile."""
    names = set()
    for one in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            names.add(psutil.Process(one.pid).name())
    return names


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_process_outlives_a_parent(tmp_path: Path, end: signal.Signals) -> None:
    """However the trainer ends, its workers and what they started are gone within seconds."""
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(WITH_A_LONG_CALL))
    parent = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert parent.stdout is not None
    assert b"ready\n" == parent.stdout.readline()
    trainer = psutil.Process(parent.pid)
    assert wait_for(lambda: "sleep" in _names(trainer.children(recursive=True)))
    family = trainer.children(recursive=True)
    assert len(family) >= 4
    parent.send_signal(end)
    parent.wait(timeout=LONG_S)
    parent.stdout.close()
    assert [] == alive(family)


def test_a_fork_of_the_trainer_neither_uses_nor_breaks_the_runtime() -> None:
    """A forked child is refused, and the parent goes on scoring."""
    with Runtime([length], workers=1) as runtime:
        runtime.score(_rollouts(1))
        child = os.fork()
        if child == 0:
            code = 1
            try:
                runtime.score(_rollouts(1))
            except RuntimeClosedError:
                code = 7
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        assert 7 == os.waitstatus_to_exitcode(status)
        assert [0.0] == runtime.score(_rollouts(1)).totals


def test_workers_see_environment_and_path_of_a_config(tmp_path: Path) -> None:
    """A YAML configuration gives rewards by reference, and variables that only the workers see."""
    (tmp_path / "mine.py").write_text(
        "import os\ndef env(completion: str) -> float:\n    return float(os.environ['BONUS'])\n"
    )
    (tmp_path / "rewards.yaml").write_text('functions:\n  bonus: "mine.py:env"\nruntime:\n  env: {BONUS: "2.5"}\n')
    from rewardkit import RewardFunctionsConfig

    with Runtime(RewardFunctionsConfig.from_yaml(tmp_path / "rewards.yaml"), workers=1) as runtime:
        assert {"bonus": [2.5]} == runtime.score([Rollout("p", "c")]).scores
    assert "BONUS" not in os.environ


def test_rows_of_a_batch_are_json() -> None:
    """to_rows gives what json takes: prompt, completion, example, total and each outcome."""
    with Runtime([answer_is], lane="inline") as runtime:
        (row,) = runtime.score([Rollout("p", "7", {"answer": "7"})]).to_rows()
    again = json.loads(json.dumps(row))
    assert (0, "p", "7", {"answer": "7"}, 1.0) == tuple(
        again[k] for k in ("row", "prompt", "completion", "example", "total")
    )
    assert ("scored", 1.0, 1) == tuple(again["rewards"]["answer_is"][k] for k in ("status", "score", "attempts"))


def test_a_reward_that_always_fails_alike_is_called_broken(caplog: pytest.LogCaptureFixture) -> None:
    """Every call failing with one error is said once, loudly; rewards that mostly fail are warned of once."""

    @reward
    def broken(completion: str) -> float:
        raise NameError("name 'nmupy' is not defined")

    @reward
    def mostly(completion: str) -> float:
        if completion:
            raise ValueError(completion)
        return 1.0

    with Runtime([broken, mostly], lane="inline") as runtime:
        for _ in range(3):
            runtime.score(_rollouts(40))
    levels = [(record.levelname, record.getMessage().split(":")[0]) for record in caplog.records]
    assert [("ERROR", "reward 'broken'"), ("WARNING", "reward 'mostly'")] == levels
    assert "nmupy" in caplog.records[0].getMessage()


def test_what_a_completion_wrote_cannot_steer_a_terminal_from_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """The error of the warnings is one line without control characters, however a completion worded it."""
    hostile = "\x1b[2J\x1b]0;title\x07\nERROR rewardkit: reward 'other' is broken\r\x9b31m\u202ecba" + "x" * 100_000

    @reward
    def repeats(completion: str) -> float:
        raise ValueError(completion)

    @reward
    def mostly(completion: str, row: int) -> float:
        raise ValueError(f"{completion}{row}")

    rollouts = [Rollout("p", hostile, {"row": row}) for row in range(40)]
    with Runtime([repeats, mostly], lane="inline") as runtime:
        runtime.score(rollouts)
    messages = [record.getMessage() for record in caplog.records]
    assert 2 == len(messages)
    for message in messages:
        assert message.isprintable()
        assert "\\x1b[2J\\x1b]0;title\\x07 ERROR" in message
        assert len(message) < 2_000


def test_a_part_of_a_composition_counts_through_it() -> None:
    """Unless weights say otherwise, a reward that stands beside its own composition is not counted twice."""
    chars = reward(name="chars")(length)
    both = (2 * chars).named("both")
    with Runtime([chars, both], lane="inline") as runtime:
        assert {"chars": 0.0, "both": 1.0} == runtime.weights
        assert [6.0] == runtime.score([Rollout("p", "abc")]).totals


def test_a_reward_file_that_scores_at_its_top_level_is_told_the_remedy(tmp_path: Path) -> None:
    """A worker that imports such a file starts no workers of its own; the error says what to do."""
    file = tmp_path / "eager.py"
    file.write_text(
        "import os\nfrom rewardkit import Rollout, Runtime, reward\n"
        "@reward\ndef one(completion: str) -> float:\n    return 1.0\n"
        f"if os.getpid() != {os.getpid()}:\n    Runtime([one]).score([Rollout('p', 'c')])\n"
    )
    with Runtime([f"{file}:one"], workers=1) as runtime, pytest.raises(RewardLoadError, match="__name__ == '__main__'"):
        runtime.score(_rollouts(1))


def test_a_reward_that_cannot_reach_its_server_is_infrastructure(tmp_path: Path) -> None:
    """Raising InfrastructureError inside a reward is tried again, and then holds no default against the completion."""
    note = tmp_path / "tries"

    @reward(default=-1.0)
    def judged(completion: str) -> float:
        with note.open("a") as file:
            file.write(completion)
        if completion == "a" and len(note.read_text()) >= 3:
            return 1.0
        raise InfrastructureError("the judge does not answer")

    for lane in ("worker", "inline"):
        note.write_text("")
        with Runtime([judged], lane=lane, workers=1, max_infrastructure_rate=1) as runtime:
            first = runtime.score([Rollout("p", "a")])["judged"][0]
            second = runtime.score([Rollout("p", "b")])["judged"][0]
        assert (Status.SCORED, 3) == (first.status, first.attempts)
        assert (Cause.INFRASTRUCTURE, None, 3) == (second.cause, second.score, second.attempts)
        assert "the judge does not answer" == second.error


def test_a_reward_that_has_tried_itself_is_not_tried_again() -> None:
    """An InfrastructureError that says ``retry = False`` is settled at its first attempt, in a group too."""

    class Unreachable(InfrastructureError):
        retry = False

    @reward(retries=3)
    def judged(completion: str) -> float:
        raise Unreachable("asked four times")

    @group_reward
    async def ranked(completions: list[str]) -> list[float]:
        raise Unreachable("asked four times")

    for lane in ("worker", "inline"):
        with Runtime([judged, ranked], lane=lane, workers=1, max_infrastructure_rate=1) as runtime:
            batch = runtime.score([Rollout("p", "a")])
        for outcome in (batch["judged"][0], batch["ranked"][0]):
            assert (Cause.INFRASTRUCTURE, 1, "asked four times") == (outcome.cause, outcome.attempts, outcome.error)


def test_equal_rows_are_one_group_whatever_their_objects() -> None:
    """Grouping goes by what rows hold, not by which strings are the same object."""

    @group_reward
    def size(completions: list[str]) -> list[float]:
        return [float(len(completions))] * len(completions)

    text, same = "two and two", "".join(["two and", " two"])
    rollouts = [Rollout("p", "a", {"x": text, "y": text}), Rollout("p", "b", {"x": text, "y": same})]
    with Runtime([size], lane="inline") as runtime:
        assert [2.0, 2.0] == runtime.score(rollouts).totals
        with pytest.raises(DataError, match="row 0 cannot be grouped"):
            runtime.score([Rollout("p", "a", {"x": threading.Lock()})])


def test_a_total_is_made_of_weighted_scores_only() -> None:
    """Where every weighted reward was skipped there is no total, whatever others of weight 0 scored."""

    @reward
    def skips(completion: str) -> None:
        return None

    with Runtime([skips, length], weights=[1, 0], lane="inline") as runtime:
        assert [None] == runtime.score([Rollout("p", "abc")]).totals


def test_a_slow_call_holds_back_no_finished_one(tmp_path: Path) -> None:
    """What a worker finished before a slow call in the same chunk is known while that call still runs."""
    may_end = tmp_path / "may end"

    @reward(timeout_s=LONG_S)
    def slow(completion: str) -> float:
        while completion == "slow" and not may_end.exists():
            time.sleep(0.01)
        return 1.0

    rollouts = [Rollout("p", "slow" if n == 9 else "quick") for n in range(40)]
    with Runtime([slow], workers=1) as runtime:
        runtime.score(rollouts[:1])
        seen = {}
        for finished in runtime.stream(rollouts):
            seen[finished.row] = finished.outcome.status
            if set(range(9)) <= set(seen):
                may_end.touch()
    assert dict.fromkeys(range(40), Status.SCORED) == seen


def test_a_batch_of_many_pieces_is_scored_as_one() -> None:
    """Rows are prepared piece by piece while the first are scored; order, groups and the cache know no pieces."""
    rows = 3 * PIECE_ROWS + 7

    @reward
    def length(completion: str) -> float:
        return float(len(completion))

    @reward(name="kept", cache=True)
    def kept(completion: str) -> float:
        return float(len(completion))

    @group_reward
    def members(completions: list[str]) -> list[float]:
        return [float(len(completions))] * len(completions)

    rollouts = [Rollout(f"p{row % 5}", "x" * (row % 11)) for row in range(rows)]
    with Runtime([length, kept, members], workers=2) as runtime:
        batch = runtime.score(rollouts)
    assert batch.scores["length"] == batch.scores["kept"] == [float(row % 11) for row in range(rows)]
    assert sum(not outcome.cached for outcome in batch["kept"]) == 11
    assert batch.scores["members"] == [float(len(range(row % 5, rows, 5))) for row in range(rows)]


def test_a_late_row_that_cannot_travel_ends_the_batch_and_not_the_runtime() -> None:
    @reward
    def length(completion: str, lock: Any = None) -> float:
        return float(len(completion))

    rollouts = [Rollout("p", "four") for _ in range(2 * PIECE_ROWS)]
    rollouts[-1] = Rollout("p", "four", {"lock": threading.Lock()})
    with Runtime([length], workers=1) as runtime:
        with pytest.raises(DataError, match=f"row {2 * PIECE_ROWS - 1} cannot travel"):
            runtime.score(rollouts)
        assert runtime.score(rollouts[:3]).scores["length"] == [4.0] * 3


def test_records_larger_than_their_file_arrive() -> None:
    @reward
    def talks(completion: str) -> Score:
        print("y" * 10_000)
        return Score(float(completion), reason="z" * 9_000)

    with Runtime([talks], workers=1) as runtime:
        outcomes = runtime.score([Rollout("p", str(row)) for row in range(400)])["talks"]
    assert [outcome.score for outcome in outcomes] == [float(row) for row in range(400)]
    assert {(len(outcome.reason or ""), len(outcome.logs)) for outcome in outcomes} == {(9_000, 10_001)}


def test_a_runtime_pickles_as_its_settings() -> None:
    """With its weights as they are now, its options and packages; what arrives has workers of its own."""
    bonus = 3.0

    @reward
    def more(completion: str) -> float:
        return len(completion) + bonus

    rewards = {"more": more, "both": 2 * more + reward(length)}
    with Runtime(rewards, weights=[1, 0.5], workers=2, on_failure="raise") as runtime:
        runtime.weights = {"more": 4.0, "both": 0.5}
        sent = pickle.dumps(runtime)
        with pickle.loads(sent) as other:
            assert (["more", "both"], 2, runtime.weights) == (other.names, other.workers, other.weights)
            assert {name: one.version for name, one in runtime.rewards.items()} == {
                name: one.version for name, one in other.rewards.items()
            }
            assert runtime.score(_rollouts(5)).scores == other.score(_rollouts(5)).scores
            assert not set(runtime.processes) & set(other.processes)


@pytest.mark.parametrize("delay_s", [0.0, 0.03, 0.06, 0.1, 0.2])
def test_ctrl_c_while_workers_start_prints_nothing_of_theirs(tmp_path: Path, delay_s: float) -> None:
    """Ctrl-C reaches every process of a terminal, and the warden as it begins: it is the caller's alone."""
    script = tmp_path / "program.py"
    script.write_text(
        "import time\nfrom rewardkit import Runtime, reward\n\n@reward\ndef one(completion: str) -> float:\n"
        "    return 1.0\n\ntry:\n    runtime = Runtime([one], workers=1).start()\n    print('started', flush=True)\n"
        "    while True:\n        time.sleep(0.01)\nexcept KeyboardInterrupt:\n    print('ended')\n"
    )
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    program = subprocess.Popen([sys.executable, str(script)], text=True, start_new_session=True, **pipes)  # type: ignore[call-overload]
    assert "started\n" == program.stdout.readline()
    time.sleep(delay_s)
    os.killpg(program.pid, signal.SIGINT)
    assert ("ended\n", "") == program.communicate(timeout=LONG_S)
