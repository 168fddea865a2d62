"""Every fault in the worker lane, each in a batch of innocents whose scores must all be right."""

from __future__ import annotations

import asyncio
import functools
import itertools
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest
from patience import LONG_S, in_time, kept_time, wait_for

from rewardkit import Cause, Outcome, Reward, Rollout, Runtime, Score, Status, group_reward, reward
from sandbox.workers import slot as slot_module
from sandbox.workers.slot import Slot

INNOCENTS = 24
DEADLINE_S = 1.0
"""Of rewards whose fault is to run it out; others have a longer one, which no innocent misses."""
DEFAULT = -1.0


def _rollouts(bad: int = 1) -> list[Rollout]:
    """Return innocents of different lengths, with bad completions spread among them."""
    return _with_acts(["bad"] * bad, 9)


def _with_acts(acts: Iterable[str], apart: int) -> list[Rollout]:
    """Return innocents with a bad completion among them for each act, so many places apart."""
    rollouts = [Rollout("p", "x" * (place + 1), {"act": ""}) for place in range(INNOCENTS)]
    for number, act in enumerate(acts):
        rollouts.insert(5 + apart * number, Rollout("p", "bad", {"act": act}))
    return rollouts


def _expect_innocents_right(rollouts: list[Rollout], outcomes: Any) -> None:
    for rollout, outcome in zip(rollouts, outcomes, strict=True):
        if rollout.completion != "bad":
            assert (Status.SCORED, float(len(rollout.completion))) == (outcome.status, outcome.score), outcome


def _score_with(act: Callable[[], Any], **options: Any) -> Outcome:
    """Score a batch with a reward that commits ``act`` on one bad completion; return that one's outcome."""
    return _score_all({"act": act}, **options)["act"]


def _score_all(acts: Mapping[str, Callable[[], Any]], **options: Any) -> dict[str, Outcome]:
    """Score one batch in which a bad completion commits each act; return the bad ones' outcomes by act."""

    def faulty(completion: str, act: str) -> Any:
        return acts[act]() if act else len(completion)

    settings: dict[str, Any] = {"timeout_s": LONG_S, "default": DEFAULT, **options}
    bad = _bad_ones(faulty, _with_acts(acts, 3), settings, workers=2, memory_bytes=1 << 29)
    return dict(zip(acts, bad, strict=True))


def _bad_ones(
    function: Callable[..., Any], rollouts: list[Rollout], settings: dict[str, Any], **options: Any
) -> list[Outcome]:
    """Score; expect the innocents right, with more time where some were late; return the bad ones' outcomes."""

    def score(timeout_s: float) -> list[Outcome]:
        made = reward(**{**settings, "timeout_s": timeout_s, "name": "made"})(function)
        with Runtime([made], **options) as runtime:
            return list(runtime.score(rollouts)["made"])

    outcomes = in_time(score, lambda found: kept_time(rollouts, found), settings["timeout_s"])
    _expect_innocents_right(rollouts, outcomes)
    return [outcome for rollout, outcome in zip(rollouts, outcomes, strict=True) if rollout.completion == "bad"]


def _raises() -> None:
    raise ValueError("no sum in it")


def _raises_with_a_broken_message() -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    raise Odd


def _exits_politely() -> None:
    raise SystemExit(0)


def _loops() -> None:
    while True:
        pass


def _sleeps_and_ignores_sigterm() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(60)


def _segfaults() -> None:
    import ctypes

    ctypes.string_at(0)


def _grows() -> None:
    hoard = []
    while True:
        hoard.append(bytearray(1 << 24))


def _recurses() -> int:
    return _recurses() + 1


def _prints_a_flood() -> float:
    for _ in range(100):
        print("y" * 1_000_000)
    return 3.0


def _computes_a_tower() -> int:
    return len(str(9**9**9**9))


def _closes_its_pipes() -> float:
    os.closerange(3, 1 << 16)
    return 3.0


def _kills_itself_with_sigabrt() -> None:
    os.abort()


BAD_RETURNS = {
    "str": (lambda: "1.0", "str '1.0'"),
    "nan": (lambda: float("nan"), "nan"),
    "inf": (lambda: float("inf"), "inf"),
    "list": (lambda: [1.0], "list [1.0]"),
    "dict": (lambda: {"score": 1.0}, "dict"),
    "huge int": (lambda: 10**400, "int too large for a float"),
    "lambda": (lambda: lambda: 1.0, "function"),
    "open file": (lambda: open(os.devnull), "TextIOWrapper"),
    "a score with a nan metric": (lambda: Score(1.0, metrics={"m": float("nan")}), "metric 'm'"),
    "a coroutine": (lambda: _coroutine(), "async def"),
}


async def _coroutine() -> float:
    return 1.0


def test_a_value_that_is_no_score_is_a_bad_return() -> None:
    """What is not a finite number, a Score or None becomes bad_return, with the default standing in."""
    outcomes = _score_all({name: act for name, (act, _) in BAD_RETURNS.items()})
    for name, (_, words) in BAD_RETURNS.items():
        outcome = outcomes[name]
        assert (Status.FAILED, Cause.BAD_RETURN, DEFAULT) == (outcome.status, outcome.cause, outcome.score), name
        assert words in (outcome.error or "")


FAULTS: dict[str, tuple[Callable[[], Any], Cause, str]] = {
    "raises": (_raises, Cause.EXCEPTION, "ValueError: no sum in it"),
    "raises without words": (_raises_with_a_broken_message, Cause.EXCEPTION, "Odd"),
    "sys.exit": (_exits_politely, Cause.EXCEPTION, "SystemExit: 0"),
    "loops": (_loops, Cause.TIMEOUT, "no answer within 1"),
    "sleeps, SIGTERM ignored": (_sleeps_and_ignores_sigterm, Cause.TIMEOUT, "no answer within 1"),
    "os._exit(0)": (lambda: os._exit(0), Cause.CRASHED, "exited with code 0"),
    "os._exit(3)": (lambda: os._exit(3), Cause.CRASHED, "exited with code 3"),
    "segfault": (_segfaults, Cause.CRASHED, "SIGSEGV"),
    "abort": (_kills_itself_with_sigabrt, Cause.CRASHED, "SIGABRT"),
    "memory bomb": (lambda: bytearray(10**12), Cause.EXCEPTION, "MemoryError"),
    "recursion": (_recurses, Cause.EXCEPTION, "RecursionError"),
    "tower of powers": (_computes_a_tower, Cause.TIMEOUT, "no answer within 1"),
    "closes its pipes": (_closes_its_pipes, Cause.CRASHED, "descriptors"),
}


@pytest.mark.parametrize("timeout_s", [DEADLINE_S, LONG_S], ids=["late", "at once"])
def test_a_fault_costs_its_own_call_alone(timeout_s: float) -> None:
    """Each guilty call fails with its cause and its default; every innocent keeps its own score."""
    faults = {name: fault for name, fault in FAULTS.items() if (fault[1] is Cause.TIMEOUT) == (timeout_s == DEADLINE_S)}
    outcomes = _score_all({name: act for name, (act, _, _) in faults.items()}, timeout_s=timeout_s)
    for name, (_, cause, words) in faults.items():
        outcome = outcomes[name]
        assert (Status.FAILED, cause, DEFAULT) == (outcome.status, outcome.cause, outcome.score), (name, outcome)
        assert words in (outcome.error or ""), (name, outcome)


def test_a_call_is_blamed_for_the_end_that_it_made_however_late_that_is_heard() -> None:
    """Where the process that reaps workers stood still, an exit is told as such and not as closed descriptors."""

    def exits(completion: str) -> float:
        if completion == "bad":
            os.kill(os.getppid(), signal.SIGSTOP)
            os._exit(3)
        return len(completion)

    over = threading.Event()

    def wake(warden: psutil.Process) -> None:
        while not over.wait(0.5):
            warden.resume()

    rollouts = _rollouts()
    with Runtime([reward(timeout_s=LONG_S)(exits)], workers=1) as runtime:
        runtime.score(rollouts[:1])
        waker = threading.Thread(target=wake, args=[psutil.Process(psutil.Process(runtime.processes[0]).ppid())])
        waker.start()
        try:
            outcomes = runtime.score(rollouts)["exits"]
        finally:
            over.set()
            waker.join()
    _expect_innocents_right(rollouts, outcomes)
    assert (Cause.CRASHED, "the worker process exited with code 3") == (outcomes[5].cause, outcomes[5].error)


def test_growing_without_end_runs_into_the_memory_limit() -> None:
    """A worker's memory is limited: what grows gets a MemoryError, and the machine keeps its memory."""
    outcome = _score_with(_grows)
    assert (Status.FAILED, Cause.EXCEPTION) == (outcome.status, outcome.cause)
    assert "MemoryError (a worker may hold 0.5 GiB; see Runtime(memory_bytes=...))" == outcome.error


def test_none_is_a_skip_and_not_a_failure() -> None:
    """A reward that says None is skipped: no score, no default, no cause."""
    outcome = _score_with(lambda: None)
    assert (Status.SKIPPED, None, None) == (outcome.status, outcome.score, outcome.cause)


def test_a_flood_of_output_is_capped_and_counted() -> None:
    """100 MB of print neither reach the parent nor cost the score; the log says how much was dropped."""
    outcome = _score_with(_prints_a_flood)
    assert (Status.SCORED, 3.0) == (outcome.status, outcome.score)
    assert len(outcome.logs) < 20_000
    assert "99,983,716 more characters dropped" in outcome.logs


def test_output_belongs_to_the_call_that_made_it() -> None:
    """Prints, stderr and logging of each call are in its own outcome and in no other."""

    def talks(completion: str) -> float:
        import logging
        import sys

        print("out", completion)
        sys.stderr.write(f"err {completion}\n")
        logging.getLogger("mine").info("log %s", completion)
        return 1.0

    rollouts = [Rollout("p", str(number)) for number in range(50)]
    with Runtime([talks], workers=2) as runtime:
        outcomes = runtime.score(rollouts)["talks"]
    expected = [f"out {n}\nerr {n}\nINFO mine: log {n}\n" for n in range(50)]
    assert expected == [outcome.logs for outcome in outcomes]


def _prints_and(act: str) -> None:
    """Print, and then hang or die."""
    print("about to", act)
    if act == "hang":
        time.sleep(600)
    elif act == "die":
        os._exit(3)
    elif act == "overflow":
        print("x" * 100_000)
        time.sleep(600)


@pytest.mark.cases(1)
@pytest.mark.parametrize("lane", ["serial", "threads", "asyncio"])
def test_what_a_call_printed_before_its_end_is_kept(lane: str) -> None:
    """A call that hangs or dies has the lines that it printed by then, capped as ever, and nobody has another's."""

    def plain(completion: str, act: str) -> float:
        _prints_and(act)
        return len(completion)

    async def awaiting(completion: str, act: str) -> float:
        _prints_and(act)
        await asyncio.sleep(0.001)
        return len(completion)

    function: Callable[..., Any] = awaiting if lane == "asyncio" else plain
    options: dict[str, Any] = {} if lane == "serial" else {"concurrency": 4}
    one = reward(name="talks", timeout_s=DEADLINE_S, default=DEFAULT, **options)(function)
    acts = ["", "die", "overflow" if lane == "serial" else "hang", ""]
    with Runtime([one], workers=2) as runtime:
        outcomes = runtime.score([Rollout("p", "x", {"act": act}) for act in acts])["talks"]
    assert [None, Cause.CRASHED, Cause.TIMEOUT, None] == [outcome.cause for outcome in outcomes]
    first, died, hung, last = (outcome.logs for outcome in outcomes)
    assert ["about to \n", "about to die\n", "about to \n"] == [first, died, last]
    assert hung.startswith(f"about to {acts[2]}\n")
    assert hung.endswith("[... 83,635 more characters dropped]") == (lane == "serial")


def test_a_worker_killed_from_outside_is_infrastructure_and_tried_again(tmp_path: Path) -> None:
    """SIGKILL from outside blames nobody: the call runs again elsewhere and is scored."""
    note = tmp_path / "pid"

    def waits_once(completion: str) -> float:
        if completion == "bad" and not note.exists():
            note.write_text(str(os.getpid()))
            time.sleep(600)
        return len(completion)

    def kill() -> None:
        wait_for(lambda: note.exists() and note.read_text())
        os.kill(int(note.read_text()), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    rollouts = _rollouts()
    with Runtime([reward(timeout_s=2 * LONG_S)(waits_once)], workers=2) as runtime:
        outcomes = runtime.score(rollouts)["waits_once"]
    killer.join()
    _expect_innocents_right(rollouts, outcomes)
    assert (Status.SCORED, 3.0) == (outcomes[5].status, outcomes[5].score)


@pytest.mark.parametrize(("choice", "score"), [("skip", None), ("default", DEFAULT)])
def test_a_call_whose_worker_is_killed_every_time_is_lost(choice: str, score: float | None) -> None:
    """After three kills the call is given up as infrastructure, and what stands in is the author's choice."""
    outcome = _score_with(lambda: os.kill(os.getpid(), signal.SIGKILL), on_infrastructure=choice)
    assert (Status.FAILED, Cause.INFRASTRUCTURE, score) == (outcome.status, outcome.cause, outcome.score)
    assert "3 times" in (outcome.error or "")


def test_children_that_a_call_leaves_behind_are_ended() -> None:
    """Forked children, also in sessions of their own, are gone when the runtime is closed."""

    def forks(completion: str) -> float:
        if completion == "bad":
            for _ in range(5):
                if os.fork() == 0:
                    os.setsid()
                    time.sleep(600)
            os._exit(1)
        if completion == "x" and os.fork() == 0:
            os.setsid()
            time.sleep(600)
        return len(completion)

    before = _processes()
    rollouts = _rollouts()
    with Runtime([reward(timeout_s=LONG_S, default=DEFAULT)(forks)], workers=2) as runtime:
        outcomes = runtime.score(rollouts)["forks"]
    _expect_innocents_right(rollouts, outcomes)
    assert Cause.CRASHED == outcomes[5].cause
    assert before >= _processes()


def test_a_thread_left_running_neither_writes_nor_is_blamed_elsewhere() -> None:
    """A thread that outlives its call prints into nothing and costs no innocent its score."""

    def leaves_a_thread(completion: str) -> float:
        import threading
        import time

        def chatter() -> None:
            while True:
                print("still here")
                time.sleep(0.001)

        if completion == "bad":
            threading.Thread(target=chatter, daemon=True).start()
        return len(completion)

    rollouts = _rollouts(2)
    with Runtime([leaves_a_thread], workers=1) as runtime:
        outcomes = runtime.score(rollouts)["leaves_a_thread"]
    _expect_innocents_right(rollouts, outcomes)
    assert [""] == sorted({o.logs for r, o in zip(rollouts, outcomes, strict=True) if r.completion != "bad"})


def test_a_thread_that_crashes_later_is_not_blamed_on_the_next_call() -> None:
    """A call that runs when an earlier call's thread brings the worker down runs again alone, and is scored."""

    def leaves_a_bomb(completion: str) -> float:
        import os
        import threading
        import time

        if completion == "bad":
            threading.Timer(0.1, lambda: os._exit(9)).start()
        else:
            time.sleep(0.02)
        return len(completion)

    rollouts = _rollouts()
    with Runtime([leaves_a_bomb], workers=1) as runtime:
        outcomes = runtime.score(rollouts)["leaves_a_bomb"]
    _expect_innocents_right(rollouts, outcomes)


def test_a_reward_that_changes_its_inputs_changes_nobody_elses() -> None:
    """Two rewards that wreck messages and columns still see what was given, in every lane."""

    def wrecks(prompt: list[Any], completion: list[Any], tags: list[str], example: dict[str, Any]) -> float:
        score = len(prompt) + len(completion) + len(tags) + len(example)
        prompt.clear()
        completion.clear()
        tags.clear()
        example.clear()
        return score

    messages = [{"role": "user", "content": "hi"}]
    rollouts = [Rollout(messages, [{"role": "assistant", "content": "x"}], {"tags": ["a", "b"]}) for _ in range(8)]
    rewards = [reward(name="one")(wrecks), reward(name="two")(wrecks)]
    for lane in ("worker", "inline"):
        with Runtime(rewards, workers=1, lane=lane) as runtime:
            batch = runtime.score(rollouts)
        assert {"one": [5.0] * 8, "two": [5.0] * 8} == batch.scores
    assert [{"role": "user", "content": "hi"}] == messages


def test_every_innocent_of_a_group_reward_is_right() -> None:
    """A group reward that dies on one group scores the others."""

    def spread(completions: list[str]) -> list[float]:
        if "bad" in completions:
            os._exit(0)
        return [float(len(completion)) for completion in completions]

    rollouts = [Rollout(f"p{n // 4}", "bad" if n == 9 else "x" * (n + 1)) for n in range(24)]
    with Runtime([group_reward(default=DEFAULT)(spread)], workers=2) as runtime:
        outcomes = runtime.score(rollouts)["spread"]
    expected = [DEFAULT if n // 4 == 2 else float(n + 1) for n in range(24)]
    assert expected == [outcome.score for outcome in outcomes]
    assert {Cause.CRASHED} == {outcomes[n].cause for n in range(8, 12)}


ASYNC_FAULTS = {
    "raises": Cause.EXCEPTION,
    "blocks the loop": Cause.TIMEOUT,
    "loops": Cause.TIMEOUT,
    "waits too long": Cause.TIMEOUT,
    "swallows its cancellation": Cause.TIMEOUT,
    "exits": Cause.CRASHED,
    "blocks in a task of its own": Cause.TIMEOUT,
    "cancels itself": Cause.EXCEPTION,
}


def _expect_blamed(function: Callable[..., Any], faults: Mapping[str, Cause], **options: Any) -> None:
    """Score with a reward for each fault, each in a process of its own; expect the guilty and nobody else blamed."""
    rollouts = _rollouts(2)

    def score(deadline_s: float) -> dict[str, list[Outcome]]:
        rewards = []
        for fault, cause in faults.items():
            timeout_s = deadline_s if cause is Cause.TIMEOUT else LONG_S
            act = functools.partial(function, fault=fault)
            rewards.append(reward(name=fault, timeout_s=timeout_s, default=DEFAULT, **options)(act))
        with Runtime(rewards) as runtime:
            return {name: list(column) for name, column in runtime.score(rollouts).items()}

    columns = in_time(score, lambda found: all(kept_time(rollouts, one) for one in found.values()), DEADLINE_S)
    for fault, outcomes in columns.items():
        _expect_innocents_right(rollouts, outcomes)
        bad = [outcome for rollout, outcome in zip(rollouts, outcomes, strict=True) if rollout.completion == "bad"]
        assert [(faults[fault], DEFAULT)] * 2 == [(outcome.cause, outcome.score) for outcome in bad], fault


def test_an_async_fault_costs_its_own_call_alone() -> None:
    """On one event loop, with all calls in flight at once, the guilty one and no other is blamed."""

    async def waits(completion: str, fault: str) -> float:
        import asyncio
        import os
        import time

        async def block() -> None:
            time.sleep(600)

        await asyncio.sleep(0.05)
        if completion == "bad":
            match fault:
                case "raises":
                    raise ValueError(fault)
                case "blocks the loop":
                    time.sleep(600)
                case "loops":
                    while True:
                        pass
                case "waits too long":
                    await asyncio.sleep(600)
                case "swallows its cancellation":
                    while True:
                        try:
                            await asyncio.sleep(600)
                        except asyncio.CancelledError:
                            continue
                case "exits":
                    os._exit(0)
                case "blocks in a task of its own":
                    await asyncio.gather(block(), asyncio.sleep(0))
                case "cancels itself":
                    raise asyncio.CancelledError
        await asyncio.sleep(0.05)
        return len(completion)

    _expect_blamed(waits, ASYNC_FAULTS)


THREAD_FAULTS = {
    "raises": Cause.EXCEPTION,
    "waits too long": Cause.TIMEOUT,
    "loops": Cause.TIMEOUT,
    "holds the interpreter": Cause.TIMEOUT,
    "exits": Cause.CRASHED,
}


def test_a_fault_among_threads_costs_its_own_call_alone() -> None:
    """With many blocking calls in one process, the guilty one and no other is blamed."""

    def blocks(completion: str, fault: str) -> float:
        import os
        import time

        time.sleep(0.02)
        if completion == "bad":
            match fault:
                case "raises":
                    raise ValueError(fault)
                case "waits too long":
                    time.sleep(600)
                case "loops":
                    while True:
                        pass
                case "holds the interpreter":
                    9**9**9
                case "exits":
                    os._exit(0)
        return len(completion)

    _expect_blamed(blocks, THREAD_FAULTS, concurrency=8)


def test_what_a_call_left_among_threads_is_not_held_against_the_first(tmp_path: Path) -> None:
    """A thread that an answered call left ends the worker: the first call of that worker, still running, goes again."""

    @reward(concurrency=2, timeout_s=LONG_S)
    def leaves(completion: str, left: str) -> float:
        def ends() -> None:
            time.sleep(0.3)  # by then the call has been answered
            Path(left).touch()
            os._exit(0)

        while completion == "waits" and not Path(left).exists():
            time.sleep(0.01)
        if completion == "leaves" and not Path(left).exists():
            threading.Thread(target=ends).start()
        return 1.0

    rollouts = [Rollout("", text, {"left": str(tmp_path / "left")}) for text in ("waits", "leaves")]
    with Runtime([leaves]) as runtime:
        assert runtime.score(rollouts).scores["leaves"] == [1.0, 1.0]


def test_the_runtime_survives_the_loss_of_its_warden() -> None:
    """When the process that forks workers is killed, a new one takes its place and the batch is scored."""

    def slow(completion: str) -> float:
        time.sleep(0.05)
        return len(completion)

    rollouts = _rollouts(0)
    others = set(psutil.Process().children())
    with Runtime([slow], workers=2) as runtime:
        runtime.score(rollouts[:2])
        (warden,) = [p for p in set(psutil.Process().children()) - others if p.pid not in runtime.processes]
        outcomes = {}
        for finished in runtime.stream(rollouts):
            if not outcomes:
                warden.kill()
            outcomes[finished.row] = finished.outcome
    _expect_innocents_right(rollouts, [outcomes[row] for row in range(len(rollouts))])


def _processes() -> set[int]:
    """Every process that this one started, found by its environment or its parent."""
    return {child.pid for child in psutil.Process().children(recursive=True)}


def test_retries_cure_what_they_can(tmp_path: Path) -> None:
    """A call that fails twice and then works is scored at the third attempt; bad returns are not tried again."""

    def flaky(completion: str) -> float | str:
        tries = tmp_path / completion
        tries.write_text(str(int(tries.read_text()) + 1 if tries.exists() else 1))
        if completion == "odd":
            return "no score"
        if int(tries.read_text()) < 3:
            raise ConnectionError("not yet")
        return 1.0

    marked: Reward[..., Any] = reward(retries=2)(flaky)
    for lane in ("worker", "inline"):
        for note in tmp_path.iterdir():
            note.unlink()
        with Runtime([marked], workers=1, lane=lane) as runtime:
            good, odd = runtime.score([Rollout("p", "fine"), Rollout("p", "odd")])["flaky"]
        assert (Status.SCORED, 3) == (good.status, good.attempts)
        assert (Cause.BAD_RETURN, 1) == (odd.cause, odd.attempts)


@pytest.mark.parametrize("kind", ["serial", "async"])
def test_a_worker_stopped_from_outside_does_not_hang_the_batch(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that is stopped while it runs nothing is replaced, and every call is scored."""
    monkeypatch.setattr(slot_module, "STALLED_S", 1.5)
    waits = reward(timeout_s=LONG_S, default=DEFAULT)(_length_async if kind == "async" else _length)
    rollouts = _rollouts(0)
    with Runtime([waits], workers=1) as runtime:
        runtime.score(rollouts)
        (stopped,) = runtime.processes
        os.kill(stopped, signal.SIGSTOP)
        outcomes = runtime.score(rollouts)[waits.name]
        _expect_innocents_right(rollouts, outcomes)
        assert stopped not in runtime.processes


def test_a_step_that_was_late_at_one_look_only_costs_no_worker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A second look decides: the worker with its other calls in flight is not given up for nothing."""
    looks = itertools.count()
    looked = tmp_path / "looked"

    def overdue(slot: Slot, now: float) -> dict[int, bool]:
        look = next(looks)
        slot.check_at = now + 0.01
        if look > 4:
            looked.touch()
        return {10**9: False} if look in (0, 2) else {}

    @reward(timeout_s=LONG_S)
    async def waits(completion: str) -> float:
        while completion == "xyz" and not looked.exists():  # noqa: ASYNC110 - it comes from another process
            await asyncio.sleep(0.01)
        return float(len(completion))

    with Runtime([waits], workers=1) as runtime:
        runtime.score([Rollout("p", "x")])
        before = runtime.processes
        monkeypatch.setattr(Slot, "_overdue_step", overdue)
        assert [3.0] * 8 == runtime.score([Rollout("p", "xyz")] * 8).scores["waits"]
        assert before == runtime.processes


def _length(completion: str) -> float:
    return float(len(completion))


async def _length_async(completion: str) -> float:
    return float(len(completion))


def test_many_blocking_calls_lose_no_answer() -> None:
    """Hundreds of calls that end at the same instant on many threads all come back, time and again."""

    @reward(concurrency=32)
    def blocks(completion: str) -> float:
        time.sleep(0.002)
        return float(len(completion))

    rollouts = [Rollout("p", "x" * n) for n in range(256)]
    with Runtime([blocks]) as runtime:
        for _ in range(10):
            assert [float(n) for n in range(256)] == runtime.score(rollouts).scores["blocks"]
