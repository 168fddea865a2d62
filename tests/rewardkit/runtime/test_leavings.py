"""What a call leaves to those after it, and a worker that is stopped, in every lane of workers: no innocent pays."""

from __future__ import annotations

import _thread
import asyncio
import contextvars
import ctypes
import functools
import gc
import os
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from patience import LONG_S, in_time, kept_time, wait_for

from rewardkit import Cause, Outcome, Reward, Rollout, Runtime, Status, reward
from sandbox.workers import slot

LANES: dict[str, dict[str, Any]] = {"serial": {}, "threads": {"concurrency": 4}, "asyncio": {"concurrency": 8}}
ROWS = 12
SOON_S = 0.6


def _reward(function: Callable[[str], Any], lane: str, timeout_s: float) -> Reward[..., Any]:
    def plain(completion: str) -> Any:
        return function(completion)

    async def awaits(completion: str) -> Any:
        await asyncio.sleep(0.002)
        return function(completion)

    options = {"name": "made", "timeout_s": timeout_s, "default": -1.0, **LANES[lane]}
    return reward(**options)(awaits if lane == "asyncio" else plain)


def _rollouts(*bad: str) -> list[Rollout]:
    """Return innocents with the bad ones among them."""
    rows = [str(row) for row in range(ROWS)]
    for number, act in enumerate(bad):
        rows.insert(2 + 3 * number, act)
    return [Rollout("p", text) for text in rows]


def _expect_innocents_right(rollouts: list[Rollout], outcomes: Sequence[Outcome]) -> None:
    for rollout, outcome in zip(rollouts, outcomes, strict=True):
        if rollout.completion.isdigit():
            assert (Status.SCORED, float(rollout.completion)) == (outcome.status, outcome.score), (rollout, outcome)


def _expect_scored(
    function: Callable[[str], Any], lane: str, timeout_s: float, rollouts: list[Rollout], **options: Any
) -> list[Outcome]:
    """Return the outcomes in a lane, of which those of innocents are right."""
    with Runtime([_reward(function, lane, timeout_s)], **options) as runtime:
        outcomes = list(runtime.score(rollouts)["made"])
    _expect_innocents_right(rollouts, outcomes)
    return outcomes


class _Blocking:
    def __init__(self) -> None:
        self.me = self

    def __del__(self) -> None:
        time.sleep(LONG_S)


class _Raising(_Blocking):
    def __del__(self) -> None:
        raise ValueError


def _block(*_: object) -> None:
    time.sleep(LONG_S)


def _blocks_unraisable() -> None:
    sys.unraisablehook = _block
    _Raising()


def _leaves_reference() -> None:
    class Empty:
        pass

    target = Empty()
    target.me, target.watch = target, weakref.ref(target)  # type: ignore[attr-defined]
    _references.append(weakref.ref(target, _block))


_references: list[Any] = []
GARBAGE: dict[str, Callable[[], object]] = {
    "a finaliser": _Blocking,
    "a collector's callback": lambda: gc.callbacks.insert(0, _block),
    "a reference's callback": _leaves_reference,
    "a hook": _blocks_unraisable,
}


def _collects(completion: str) -> float:
    if completion in GARBAGE:
        gc.disable()
        GARBAGE[completion]()
        gc.enable()
        return -0.5
    gc.collect()
    return float(completion)


@pytest.mark.cases(1)
@pytest.mark.parametrize("lane", LANES)
def test_garbage_that_a_call_left_costs_no_other_call_its_time(lane: str) -> None:
    """What the collector runs in an innocent and blocks it: the innocent runs once more, and is scored."""
    _expect_scored(_collects, lane, SOON_S, _rollouts(*GARBAGE), workers=2)


def _collects_its_own(completion: str) -> float:
    if completion == "bad":
        _Blocking()
        gc.collect()
    return float(completion)


@pytest.mark.cases(1)
@pytest.mark.parametrize("lane", LANES)
def test_a_call_that_its_own_garbage_blocks_times_out(lane: str) -> None:
    """It has run alone, first in a new worker, by then."""
    outcomes = _expect_scored(_collects_its_own, lane, SOON_S, _rollouts("bad"), workers=2)
    assert [Cause.TIMEOUT] == [outcome.cause for outcome in outcomes if outcome.status is Status.FAILED]


class _Noting(_Blocking):
    def __init__(self, notes: list[tuple[int, dict[Any, Any]]]) -> None:
        super().__init__()
        self.notes = notes

    def __del__(self) -> None:
        self.notes.append((threading.get_ident(), _variables()))


def _variables() -> dict[Any, Any]:
    return dict(contextvars.copy_context().items())


def _collects_a_note(completion: str) -> float:
    for _ in range(1000):  # a process has one collector: a call beside this may have it, or collect this one's note
        notes: list[tuple[int, dict[Any, Any]]] = []
        _Noting(notes)
        gc.collect()
        for thread, variables in notes:
            if thread == threading.get_ident():
                return float(completion) if variables == _variables() else -0.5
        time.sleep(0.001)
    return -0.25


@pytest.mark.parametrize("lane", LANES)
def test_the_collector_works_without_a_change_of_a_calls_context(lane: str) -> None:
    """It may work inside the copy of a context, or a change, which would go on with what a second change has freed."""
    _expect_scored(_collects_a_note, lane, LONG_S, _rollouts(), workers=1)


class _Printing(_Blocking):
    def __del__(self) -> None:
        print("left")
        threading.Thread(target=print, args=["left by a thread"]).start()


def _prints(completion: str) -> float:
    if completion == "bad":
        gc.disable()
        _Printing()
        return -0.5
    gc.collect()
    print(completion)
    return float(completion)


@pytest.mark.parametrize("lane", LANES)
def test_what_a_finaliser_prints_is_nobodys(lane: str) -> None:
    """Neither that of the call in which the collector runs it, nor what a thread prints that it starts."""
    rollouts = _rollouts("bad")
    with Runtime([_reward(_prints, lane, LONG_S)], workers=1) as runtime:
        outcomes = runtime.score(rollouts)["made"]
    _expect_innocents_right(rollouts, outcomes)
    assert [f"{row}\n" for row in range(ROWS)] == [outcome.logs for outcome in outcomes if outcome.score != -0.5]


def _throw_later() -> None:
    time.sleep(0.05)
    for thread in threading.enumerate():
        if thread is not threading.current_thread():
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(ValueError))


THREADS: dict[str, Callable[[], object]] = {
    "threading": lambda: threading.Thread(target=_throw_later, daemon=True).start(),
    "_thread": lambda: _thread.start_new_thread(_throw_later, ()),
    "interrupt": lambda: threading.Timer(0.05, _thread.interrupt_main).start(),
}


def _is_thrown_into(completion: str) -> float:
    if completion in THREADS:
        THREADS[completion]()
        return -0.5
    for _ in range(100):
        time.sleep(0.001)
    return float(completion)


@pytest.mark.cases(1)
@pytest.mark.parametrize("lane", LANES)
def test_what_a_left_thread_raises_in_the_next_call_is_not_that_calls(lane: str) -> None:
    """The innocent runs once more, alone."""
    _expect_scored(_is_thrown_into, lane, LONG_S, _rollouts(*THREADS), workers=1)


def _sleeps(completion: str) -> float:
    if completion == "bad":
        os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(0.1)
    return float(completion)


@pytest.mark.cases(1)
@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize("timeout_s", [SOON_S, LONG_S], ids=["late", "at once"])
def test_a_worker_stopped_during_a_call_is_lost(lane: str, timeout_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody was late: innocents run elsewhere, and a call that is stopped each time is infrastructure."""
    monkeypatch.setattr(slot, "STALLED_S", 0.5)
    outcomes = _expect_scored(_sleeps, lane, timeout_s, _rollouts("bad"), workers=1, max_infrastructure_rate=1)
    (lost,) = [outcome for outcome in outcomes if outcome.status is Status.FAILED]
    assert (Cause.INFRASTRUCTURE, True) == (lost.cause, "stopped from outside, 3 times" in (lost.error or ""))


def _signals(process: int, *, on: bool) -> None:
    os.kill(process, signal.SIGSTOP if on else signal.SIGCONT)


def _freezes(group: Path, state: str, process: int, *, on: bool) -> None:
    if on:
        (group / "cgroup.procs").write_text(str(process))
    frozen, thawed = ("1", "0") if state == "cgroup.freeze" else ("FROZEN", "THAWED")
    (group / state).write_text(frozen if on else thawed)


@pytest.fixture(params=["signal", "freezer", "freezer of version 2"])
def halt(request: pytest.FixtureRequest) -> Iterator[Callable[..., None]]:
    """What stops a process, and lets it go on; a freezer where this process may make groups."""
    if request.param == "signal":
        yield _signals
        return
    state = "freezer.state" if request.param == "freezer" else "cgroup.freeze"
    parents = ["freezer"] if request.param == "freezer" else ["unified", ""]
    root = next((path for parent in parents if (path := Path("/sys/fs/cgroup", parent, "cgroup.procs")).exists()), None)
    if root is None or not os.access(root, os.W_OK):
        pytest.skip(f"no group with a {state} can be made here")
    group = root.with_name(f"halted-{os.getpid()}")
    group.mkdir()
    yield functools.partial(_freezes, group, state)
    _freezes(group, state, 0, on=False)
    assert wait_for(lambda: not (group / "cgroup.procs").read_text())
    group.rmdir()


@pytest.mark.cases(3)
@pytest.mark.parametrize("lane", LANES)
def test_a_worker_that_goes_on_after_a_stop_blames_nobody(lane: str, halt: Callable[..., None]) -> None:
    """The time for which it was stopped is no call's."""
    rollouts = _rollouts()

    def stop(runtime: Runtime) -> None:
        wait_for(lambda: runtime.processes)
        process = runtime.processes[0]
        time.sleep(0.05)
        halt(process, on=True)
        time.sleep(2 * SOON_S)
        if process in runtime.processes:
            halt(process, on=False)

    with Runtime([_reward(_sleeps, lane, SOON_S)], workers=1) as runtime:
        runtime.score(rollouts[:1])
        stopper = threading.Thread(target=stop, args=[runtime])
        stopper.start()
        outcomes = list(runtime.score(rollouts)["made"])
        stopper.join()
    _expect_innocents_right(rollouts, outcomes)


@pytest.mark.cases(1)
@pytest.mark.parametrize("step_s", [0.004, 0.015, 0.03])
def test_steps_of_others_are_no_calls_time(step_s: float) -> None:
    """A hundred calls that compute between their awaits are all scored, by one process."""

    async def computes(completion: str) -> float:
        await asyncio.sleep(0.002)
        end = time.monotonic() + step_s
        while time.monotonic() < end:
            pass
        await asyncio.sleep(0.002)
        return float(completion)

    calls = int(3 * SOON_S / step_s)
    rollouts = [Rollout("p", str(row)) for row in range(calls)]
    processes: list[list[int]] = []

    def score(timeout_s: float) -> list[Outcome]:
        with Runtime([reward(timeout_s=timeout_s / 2, concurrency=calls)(computes)]) as runtime:
            runtime.score(rollouts[:1])
            processes.append(runtime.processes)
            outcomes = list(runtime.score(rollouts)["computes"])
            processes.append(runtime.processes)
        return outcomes

    outcomes = in_time(score, lambda outcomes: kept_time(rollouts, outcomes), SOON_S)
    _expect_innocents_right(rollouts, outcomes)
    assert processes[-2] == processes[-1]
