"""Faults that reach the process which starts and reaps workers, each in a batch of innocents."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import psutil
import pytest
from patience import LONG_S, alive, in_time, kept_time, wait_for

from rewardkit import Cause, Outcome, RewardLoadError, Rollout, Runtime, Status, reward
from sandbox.workers import link, replacement
from sandbox.workers.slot import Slot

INNOCENTS = 24
DEFAULT = -1.0
LANES: dict[str, dict[str, Any]] = {"serial": {}, "threads": {"concurrency": 8}, "asyncio": {}}
linux = pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="needs Linux")


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    """Every process that a test's workers started is gone when the runtime is closed."""
    before = {process.pid for process in psutil.process_iter()}
    yield
    mark = f"REWARDKIT_POOL={os.getpid()}-"
    left = [one for one in psutil.process_iter() if one.pid not in before and mark in _environment(one)]
    assert [] == alive(left)


def _environment(process: psutil.Process) -> str:
    try:
        return "\0".join(f"{name}={value}" for name, value in process.environ().items())
    except (psutil.Error, OSError):
        return ""


def _score(act: Callable[[], Any], lane: str = "serial", *, timeout_s: float = LONG_S) -> Outcome:
    """Score innocents with one call that commits ``act`` among them; return the bad one's outcome."""
    return _score_all({"act": act}, lane, timeout_s=timeout_s)["act"]


def _score_all(
    acts: Mapping[str, Callable[[], Any]], lane: str = "serial", *, timeout_s: float = LONG_S
) -> dict[str, Outcome]:
    """Score innocents with a call that commits each act among them; return the bad ones' outcomes by act."""

    def faulty(completion: str, act: str) -> Any:
        time.sleep(0.005)
        return acts[act]() if act else len(completion)

    async def waits(completion: str, act: str) -> Any:
        import asyncio

        await asyncio.sleep(0.005)
        return acts[act]() if act else len(completion)

    rollouts = [Rollout("p", "x" * (place + 1), {"act": ""}) for place in range(INNOCENTS)]
    for number, act in enumerate(acts):
        rollouts.insert(5 + 4 * number, Rollout("p", "bad", {"act": act}))
    rows = [*rollouts, *rollouts[:4]]

    def score(timeout_s: float) -> list[Outcome]:
        settings: dict[str, Any] = {"default": DEFAULT, "name": "faulty", **LANES[lane]}
        marked = reward(timeout_s=timeout_s, **settings)(waits if lane == "asyncio" else faulty)
        with Runtime([marked], workers=2, max_infrastructure_rate=1) as runtime:
            return [*runtime.score(rollouts)["faulty"], *runtime.score(rollouts[:4])["faulty"]]

    outcomes = in_time(score, lambda found: kept_time(rows, found), timeout_s)
    for row, outcome in zip(rows, outcomes, strict=True):
        if row.completion != "bad":
            assert (Status.SCORED, float(len(row.completion))) == (outcome.status, outcome.score), outcome
    return {str(row.example["act"]): outcome for row, outcome in zip(rows, outcomes, strict=True) if row.example["act"]}


def _traced() -> None:
    """Have the calling thread traced by the process that forked this one, if it is not already."""
    ctypes.CDLL(None).ptrace(0, 0, 0, 0)


def _traced_and_goes_on() -> float:
    _traced()
    for _ in range(20):
        os.kill(os.getpid(), signal.SIGCHLD)
    return 3.0


def _traced_again_and_again() -> float:
    for _ in range(50):
        _traced()
        os.kill(os.getpid(), signal.SIGCHLD)
    return 3.0


def _traced_in_a_thread() -> float:
    thread = threading.Thread(target=_traced_and_goes_on)
    thread.start()
    thread.join()
    return 3.0


def _traced_and_returns() -> float:
    _traced()
    return 3.0


def _traced_and_stops() -> None:
    _traced()
    os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(LONG_S)


def _traced_and_traps() -> None:
    _traced()
    os.kill(os.getpid(), signal.SIGTRAP)
    time.sleep(LONG_S)


def _traced_and_becomes_another() -> None:
    _traced()
    os.execv("/bin/true", ["true"])


TRACED: dict[str, tuple[Callable[[], Any], Cause | None]] = {
    "and goes on": (_traced_and_goes_on, None),
    "again and again": (_traced_again_and_again, None),
    "in a thread": (_traced_in_a_thread, None),
    "and returns": (_traced_and_returns, None),
    "and stops": (_traced_and_stops, Cause.INFRASTRUCTURE),
    "and traps": (_traced_and_traps, Cause.CRASHED),
    "and becomes another program": (_traced_and_becomes_another, Cause.CRASHED),
}


@pytest.mark.cases(2)
@linux
@pytest.mark.parametrize("timeout_s", [1.0, LONG_S], ids=["late", "at once"])
@pytest.mark.parametrize("lane", LANES)
def test_a_call_that_has_itself_traced_costs_itself_alone(lane: str, timeout_s: float) -> None:
    """A stop is no end: the worker is let go, and what the signal does is the call's own affair."""
    traced = {name: one for name, one in TRACED.items() if (one[1] is Cause.INFRASTRUCTURE) == (timeout_s < LONG_S)}
    outcomes = _score_all({name: act for name, (act, _) in traced.items()}, lane, timeout_s=timeout_s)
    for name, (_, cause) in traced.items():
        score = {None: 3.0, Cause.INFRASTRUCTURE: None}.get(cause, DEFAULT)
        assert (cause, score) == (outcomes[name].cause, outcomes[name].score), name


def _kills_the_warden() -> None:
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(LONG_S)


def _kills_the_warden_and_leaves_a_daemon() -> None:
    if os.fork() == 0:
        os.setsid()
        while True:
            time.sleep(LONG_S)
    _kills_the_warden()


def _stops_the_warden_for_ever() -> None:
    if os.fork() == 0:
        os.setsid()
        warden = os.getppid()
        warden = int(_status(warden)["PPid"])
        while True:
            os.kill(warden, signal.SIGSTOP)
            time.sleep(0.001)
    time.sleep(LONG_S)


def _traces_the_warden() -> None:
    libc = ctypes.CDLL(None)
    libc.prctl(1, 0, 0, 0, 0)  # and does not end with it
    libc.ptrace(16, os.getppid(), 0, 0)
    time.sleep(LONG_S)


def _status(process: int) -> dict[str, str]:
    with open(f"/proc/{process}/status") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)


ENDS_THE_WARDEN: dict[str, Callable[[], Any]] = {
    "kills it": _kills_the_warden,
    "kills it and leaves a daemon": _kills_the_warden_and_leaves_a_daemon,
}


@pytest.mark.cases(1)
@linux
@pytest.mark.parametrize("lane", LANES)
def test_a_call_that_ends_the_warden_is_given_up_and_the_runtime_goes_on(lane: str) -> None:
    """Two such calls lose more wardens than may be lost idle; they are infrastructure, and innocents right."""
    assert replacement.MAX_WARDENS < 3 * len(ENDS_THE_WARDEN)
    for name, outcome in _score_all(ENDS_THE_WARDEN, lane).items():
        assert Cause.INFRASTRUCTURE is outcome.cause, (name, outcome)
        assert "3 times" in (outcome.error or ""), (name, outcome)


def _stops_the_warden_and_exits() -> None:
    os.kill(os.getppid(), signal.SIGSTOP)
    os._exit(3)


@linux
def test_a_warden_that_was_stopped_is_woken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that stops the warden and exits is told by its exit code, as if nothing had been stopped."""
    monkeypatch.setattr(link, "WARDEN_DOUBT_S", 0.5)
    outcome = _score(_stops_the_warden_and_exits)
    assert (Cause.CRASHED, "the worker process exited with code 3") == (outcome.cause, outcome.error)


@linux
def test_a_worker_that_began_slowly_ends_with_its_own_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """That its beginning was asked for says nothing about how late its end is."""
    opened = Slot.open

    def opens(slot: Slot) -> list[int]:
        descriptors = opened(slot)
        slot.doubted = True
        return descriptors

    monkeypatch.setattr(Slot, "open", opens)
    monkeypatch.setattr(link, "WARDEN_DOUBT_S", 0.5)
    outcome = _score(_stops_the_warden_and_exits)
    assert (Cause.CRASHED, "the worker process exited with code 3") == (outcome.cause, outcome.error)


HOLDS_THE_WARDEN: dict[str, Callable[[], Any]] = {
    "stops it again and again": _stops_the_warden_for_ever,
    "traces it": _traces_the_warden,
}


@linux
@pytest.mark.parametrize("name", HOLDS_THE_WARDEN)
def test_a_warden_that_is_held_is_replaced(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Where the warden neither starts nor ends anything for long, another takes its place; nothing hangs."""
    monkeypatch.setattr(link, "WARDEN_DOUBT_S", 0.5)
    monkeypatch.setattr(link, "ANSWER_S", 2.0)
    outcome = _score(HOLDS_THE_WARDEN[name], timeout_s=1.0)
    assert outcome.cause in (Cause.TIMEOUT, Cause.INFRASTRUCTURE), outcome


def _signals_the_warden() -> float:
    for number in sorted(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}):
        os.kill(os.getppid(), number)
    return 3.0


def _starves_the_warden(limit: int) -> Callable[[], None]:
    def starves() -> None:
        resource.prlimit(os.getppid(), limit, (4, 4))
        os._exit(3)

    return starves


@linux
def test_signals_that_can_be_ignored_leave_the_warden_alone() -> None:
    """Nothing is lost by a call that sends the warden every signal but SIGKILL and SIGSTOP."""
    outcome = _score(_signals_the_warden)
    assert (Status.SCORED, 3.0) == (outcome.status, outcome.score)


@linux
def test_a_warden_whose_limits_a_call_took_away_is_replaced() -> None:
    """A call that lowers the warden's limits and exits is blamed, and new workers have limits as before."""
    limits = (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_AS, resource.RLIMIT_CPU)
    for limit, outcome in _score_all({str(limit): _starves_the_warden(limit) for limit in limits}).items():
        assert Cause.CRASHED is outcome.cause, (limit, outcome)


def test_wardens_lost_long_ago_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five lost within ten minutes while no call runs end the runtime; over a longer time any number may be lost."""

    def length(completion: str) -> float:
        return float(len(completion))

    def lose_warden(runtime: Runtime) -> None:
        assert [1.0] == runtime.score([Rollout("p", "x")]).totals
        (worker,) = runtime.processes
        psutil.Process(psutil.Process(worker).ppid()).kill()
        wait_for(lambda: worker not in runtime.processes)

    monkeypatch.setattr(replacement, "WARDENS_S", 0.0)
    with Runtime([length], workers=1) as runtime:
        for _ in range(replacement.MAX_WARDENS + 1):
            lose_warden(runtime)
        monkeypatch.setattr(replacement, "WARDENS_S", 600.0)
        lose_warden(runtime)
        with pytest.raises(RewardLoadError, match="died 5 times"):
            runtime.score([Rollout("p", "x")])
