"""Calls that break what their worker stands on, each among innocents of the same batch, in every lane of workers."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import faulthandler
import gc
import inspect
import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Container, Mapping
from typing import Any, NoReturn

import psutil
import pytest
from patience import LONG_S, alive, in_time, kept_time

from rewardkit import Cause, InfrastructureError, Outcome, Reward, Rollout, Runtime, Score, ScoreBatch, Status, reward
from rewardkit.errors import RewardTextError
from sandbox.workers.page import Page

ROWS = 60
BAD = (7, 8, 31)
SOON_S = 1.5
"""Time of a call whose fault is found only when it is over."""
Acts = Mapping[str, Callable[[], Any]]


def _plain(acts: Acts) -> Callable[..., Any]:
    def hostile(completion: str, row: int, act: str = "bad") -> Any:
        if completion == "bad":
            return acts[act]()
        import colorsys  # which not every worker has loaded

        return row + colorsys.rgb_to_hls(0, 0, 0)[0]

    return hostile


def _on_a_loop(acts: Acts) -> Callable[..., Any]:
    async def hostile(completion: str, row: int, act: str = "bad") -> Any:
        await asyncio.sleep(0.01)
        if completion == "bad":
            value = acts[act]()
            await asyncio.sleep(0.01)
            return value
        await asyncio.create_task(asyncio.sleep(0.05))
        return float(row)

    return hostile


LANES: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "serial": (_plain, {}),
    "threads": (_plain, {"concurrency": 8}),
    "asyncio": (_on_a_loop, {"concurrency": 64}),
}


def _rewards(act: Callable[[], Any], lane: str, timeout_s: float) -> list[Reward[..., Any]]:
    return [_reward({"bad": act}, lane, timeout_s)]


def _reward(acts: Acts, lane: str, timeout_s: float, name: str = "hostile") -> Reward[..., Any]:
    wrap, options = LANES[lane]
    return reward(name=name, timeout_s=timeout_s, default=-1.0, **options)(wrap(acts))


def _score(act: Callable[[], Any], lane: str, timeout_s: float = LONG_S) -> list[Outcome]:
    """Score a batch in which some rows act; expect the others right and nothing left; return those rows' outcomes."""
    return _score_batch({"bad": act}, lane, timeout_s, _rollouts(BAD))["bad"]


def _score_all(acts: Acts, lane: str, timeout_s: float = LONG_S) -> dict[str, list[Outcome]]:
    """Score a batch in which two rows commit each act; return these rows' outcomes by act, the rest as above."""
    rollouts = _rollouts(())
    for number, name in enumerate(acts):
        for row in (4 + 7 * number, 5 + 7 * number):
            rollouts[row] = Rollout("p", "bad", {"row": str(row), "act": name})
    return _score_batch(acts, lane, timeout_s, rollouts)


def _score_batch(acts: Acts, lane: str, timeout_s: float, rollouts: list[Rollout]) -> dict[str, list[Outcome]]:
    outcomes = in_time(
        lambda some_s: _scored(acts, lane, some_s, rollouts), lambda found: kept_time(rollouts, found), timeout_s
    )
    bad: dict[str, list[Outcome]] = {name: [] for name in acts}
    for row, (rollout, outcome) in enumerate(zip(rollouts, outcomes, strict=True)):
        if rollout.completion == "bad":
            bad[str(rollout.example.get("act", "bad"))].append(outcome)
        else:
            assert (Status.SCORED, float(row)) == (outcome.status, outcome.score), outcome
    return bad


def _rollouts(bad: Container[int]) -> list[Rollout]:
    return [Rollout("p", "bad" if row in bad else "fine", {"row": str(row)}) for row in range(ROWS)]


def _scored(acts: Acts, lane: str, timeout_s: float, rollouts: list[Rollout]) -> list[Outcome]:
    descriptors, others = len(os.listdir("/proc/self/fd")), psutil.Process().children(recursive=True)
    with Runtime([_reward(acts, lane, timeout_s)], workers=2) as runtime:
        outcomes = _within(2 * timeout_s + LONG_S, runtime, rollouts)
        workers = set(psutil.Process().children(recursive=True)) - set(others)
    assert [] == alive(workers)
    gc.collect()
    assert descriptors >= len(os.listdir("/proc/self/fd"))
    return outcomes


def _within(seconds: float, runtime: Runtime, rollouts: list[Rollout]) -> list[Outcome]:
    return list(_batch_within(seconds, runtime, rollouts)["hostile"])


def _batch_within(seconds: float, runtime: Runtime, rollouts: list[Rollout]) -> ScoreBatch:
    """Score, and fail where that does not end."""
    found: list[ScoreBatch] = []
    thread = threading.Thread(target=lambda: found.append(runtime.score(rollouts)), daemon=True)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive(), "the batch hangs"
    return found[0]


def _writes_low() -> float:
    for descriptor in range(3, 32):
        with contextlib.suppress(OSError):
            os.write(descriptor, b"a line of a log\n" * 100)
    return 0.5


def _everywhere(act: Callable[[int], Any]) -> float:
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            with contextlib.suppress(OSError):
                act(int(name))
    return 0.5


def _writes_zeros() -> float:
    return _everywhere(lambda descriptor: os.write(descriptor, bytes(4096)))


def _writes_ones() -> float:
    return _everywhere(lambda descriptor: os.write(descriptor, b"\xff" * 4096))


def _writes_at_the_start() -> float:
    return _everywhere(lambda descriptor: os.pwrite(descriptor, bytes(1 << 16), 0))


def _cuts_short() -> float:
    return _everywhere(lambda descriptor: os.ftruncate(descriptor, 0))


def _forks_and_returns() -> float:
    return 1.5 if os.fork() else 9.0


def _forks_and_raises() -> float:
    if not os.fork():
        raise ValueError("the child's")
    return 1.5


def _forks_and_exits() -> float:
    if not os.fork():
        sys.exit(3)
    return 1.5


def _forks_in_c() -> float:
    return 1.5 if ctypes.CDLL(None).fork() else 9.0


def _clears_modules() -> float:
    sys.modules.clear()
    return 0.5


def _freezes_time() -> float:
    """As freezegun does it: every module's own name for the function is replaced."""
    real = time.monotonic
    for module in list(sys.modules.values()):
        for name, value in list(vars(module).items()) if hasattr(module, "__dict__") else ():
            if value is real:
                setattr(module, name, lambda: 1.0)
    return 0.5


def _patches_what_writes() -> float:
    def none(*_: object, **__: object) -> None:
        """Do nothing."""

    for module, name in ((json, "dumps"), (os, "getpid"), (os, "_exit"), (time, "monotonic"), (socket, "socket")):
        setattr(module, name, none)
    return 0.5


def _sets_an_alarm() -> float:
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    return 0.5


def _plans_a_crash() -> float:
    faulthandler.dump_traceback_later(0.2, exit=True)
    return 0.5


HARMLESS: dict[str, tuple[Callable[[], Any], float]] = {
    "a log's number": (_writes_low, 0.5),
    "a fork whose child returns": (_forks_and_returns, 1.5),
    "a fork whose child raises": (_forks_and_raises, 1.5),
    "a fork whose child exits": (_forks_and_exits, 1.5),
    "a fork that Python does not see": (_forks_in_c, 1.5),
    "no modules": (_clears_modules, 0.5),
    "a frozen clock": (_freezes_time, 0.5),
    "patched functions": (_patches_what_writes, 0.5),
}
PLANS = (_sets_an_alarm, _plans_a_crash)


@pytest.mark.parametrize("lane", ["serial", "threads"])
def test_what_a_call_plans_for_later_hits_no_other_call(lane: str) -> None:
    """An alarm, or an end by faulthandler, is called off when the call is over."""

    def plans(completion: str, row: int) -> float:
        if completion == "bad":
            return float(PLANS[row % 2]())
        time.sleep(0.02)
        return float(row)

    rollouts = _rollouts(BAD)
    with Runtime([reward(timeout_s=LONG_S, **LANES[lane][1])(plans)], workers=1) as runtime:
        scores = [outcome.score for outcome in runtime.score(rollouts)["plans"]]
    assert [0.5 if row in BAD else float(row) for row in range(ROWS)] == scores


@pytest.mark.cases(1)
@pytest.mark.parametrize("lane", LANES)
def test_what_a_call_breaks_for_others_is_put_right_and_its_score_counts(lane: str) -> None:
    """Each call keeps the score that it returned, whatever others broke, and the innocents keep theirs."""
    outcomes = _score_all({name: act for name, (act, _) in HARMLESS.items()}, lane)
    for name, (_, score) in HARMLESS.items():
        assert [(Status.SCORED, score)] * 2 == [(one.status, one.score) for one in outcomes[name]], name


EVERYWHERE = (_writes_zeros, _writes_ones, _writes_at_the_start, _cuts_short)


@pytest.mark.cases(1)
@pytest.mark.parametrize("lane", LANES)
def test_a_call_that_writes_to_every_descriptor_costs_itself_alone(lane: str) -> None:
    """It has its own score or is told as a crash; no innocent has another's score or none."""
    for name, outcomes in _score_all({act.__name__: act for act in EVERYWHERE}, lane).items():
        for outcome in outcomes:
            scored = (Status.SCORED, 0.5) == (outcome.status, outcome.score)
            assert scored or outcome.cause is Cause.CRASHED, (name, outcome)


def _page() -> Page:
    """The worker's page, as a call finds it that looks for it."""
    return next(one for one in gc.get_objects() if isinstance(one, Page))


def _wipes_page() -> float:
    page = _page()
    page._map[:] = bytes(len(page._map))
    return 0.5


def _floods_page() -> float:
    page = _page()
    page._map[:] = b"\xff" * len(page._map)
    return 0.5


@pytest.mark.cases(1)
@pytest.mark.parametrize("lane", LANES)
def test_a_call_that_overwrites_the_shared_page_costs_itself_alone(lane: str) -> None:
    """Whatever the page says, each call is answered for, by its own answer or by what became of it alone."""
    acts = {"wipes": lambda: (gc.unfreeze(), _wipes_page())[1], "floods": lambda: (gc.unfreeze(), _floods_page())[1]}
    for name, outcomes in _score_all(acts, lane, SOON_S).items():
        for outcome in outcomes:
            failed = outcome.cause in (Cause.CRASHED, Cause.TIMEOUT, Cause.INFRASTRUCTURE)
            assert failed or (Status.SCORED, 0.5) == (outcome.status, outcome.score), (name, outcome)


def _stops_the_loop() -> float:
    asyncio.get_running_loop().stop()
    return 0.5


def _cancels_all() -> float:
    for task in asyncio.all_tasks():
        if task is not asyncio.current_task():
            task.cancel()
    return 0.5


def _exits_in_a_task() -> float:
    async def leave() -> None:
        sys.exit(0)

    _tasks.append(asyncio.ensure_future(leave()))
    return 0.5


_tasks: list[Any] = []


def _patches_the_loop() -> float:
    loop: Any = asyncio.get_running_loop()
    for name in ("call_at", "call_later", "call_soon", "time", "stop", "create_task"):
        with contextlib.suppress(AttributeError):
            setattr(loop, name, lambda *_, **__: None)
    loop.set_task_factory(lambda *_: None)
    return 0.5


def _takes_the_loop_away() -> float:
    asyncio._set_running_loop(None)
    return 0.5


LOOP = (_stops_the_loop, _cancels_all, _exits_in_a_task, _patches_the_loop, _clears_modules, _freezes_time)


@pytest.mark.parametrize("bad", [1, 300])
def test_no_call_ends_another_on_its_event_loop(bad: int) -> None:
    """Of 300 calls one, or every one, does what would stop or cancel the others: each has its own score.

    Each act has a reward and so an event loop of its own.
    """
    rollouts = [Rollout("p", "bad" if row % 300 < bad else "fine", {"row": str(row)}) for row in range(300)]
    rewards = [_reward({"bad": act}, "asyncio", 10.0, act.__name__) for act in LOOP]
    with Runtime(rewards) as runtime:
        columns = _batch_within(LONG_S, runtime, rollouts)
    wanted = [0.5 if rollout.completion == "bad" else float(row) for row, rollout in enumerate(rollouts)]
    for act in LOOP:
        assert wanted == [outcome.score for outcome in columns[act.__name__]], act


def _cancels_itself() -> float:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    return 0.5


def test_a_call_that_cancels_itself_failed_by_that() -> None:
    """Nobody else is to blame, which shows when it has run alone."""
    assert [Cause.EXCEPTION] * 3 == [one.cause for one in _score(_cancels_itself, "asyncio")]
    rollouts = [Rollout("p", "bad", {"row": "0"})]
    with Runtime(_rewards(_cancels_itself, "asyncio", LONG_S), lane="inline") as runtime:
        assert [Cause.EXCEPTION] == [one.cause for one in runtime.score(rollouts)["hostile"]]


def _forgets_all_it_has_to_do() -> float:
    loop: Any = asyncio.get_running_loop()
    loop._ready.clear()
    loop._scheduled.clear()
    return 0.5


@pytest.mark.cases(1)
@pytest.mark.parametrize("act", [_forgets_all_it_has_to_do, _takes_the_loop_away])
def test_calls_that_a_loop_has_lost_run_again(act: Callable[[], Any]) -> None:
    """A loop that forgot its calls answers none: the innocents run elsewhere."""
    assert len(BAD) == len(_score(act, "asyncio", SOON_S))


def test_inline_a_child_that_a_call_forks_ends_with_the_call() -> None:
    """The caller's process goes on once, with the score that the call returned to it."""
    rollouts = [Rollout("p", "bad", {"row": "0"})]
    process = os.getpid()
    before = set(psutil.Process().children())
    with Runtime(_rewards(_forks_and_returns, "serial", LONG_S), lane="inline") as runtime:
        outcomes = runtime.score(rollouts)["hostile"]
    if os.getpid() != process:
        os._exit(1)
    assert [1.5] == [outcome.score for outcome in outcomes]
    assert [0] == [os.waitpid(child.pid, 0)[1] for child in psutil.Process().children() if child not in before]


def test_threads_that_a_call_leaves_stuck_are_no_other_calls() -> None:
    """The default threads of an event loop would be all calls': after a few stuck ones, nobody's ``to_thread`` ran."""

    async def waits(completion: str, row: int) -> float:
        stuck = completion == "bad"
        await asyncio.to_thread(time.sleep, 600 if stuck else 0.0)
        return float(row)

    stuck = range(0, ROWS, 3)
    rollouts = _rollouts(stuck)

    def twice(timeout_s: float) -> list[list[Outcome]]:
        with Runtime([reward(timeout_s=timeout_s, default=-1.0, concurrency=64)(waits)]) as runtime:
            return [list(runtime.score(rollouts)["waits"]) for _ in range(2)]

    for outcomes in in_time(twice, lambda found: all(kept_time(rollouts, one) for one in found), SOON_S):
        assert [-1.0 if row in stuck else float(row) for row in range(ROWS)] == [one.score for one in outcomes]


def test_a_call_that_waits_for_its_turn_alone_is_not_held_up_by_other_batches() -> None:
    """While other threads keep the event loop busy without a pause, it runs all the same."""
    over = threading.Event()
    with Runtime(_rewards(_cancels_itself, "asyncio", LONG_S)) as runtime:

        def go_on() -> None:
            while not over.is_set():
                runtime.score([Rollout("p", "fine", {"row": str(row)}) for row in range(40)])

        flow = [threading.Thread(target=go_on) for _ in range(2)]
        for thread in flow:
            thread.start()
        try:
            (outcome,) = _within(LONG_S / 2, runtime, [Rollout("p", "bad", {"row": "0"})])
        finally:
            over.set()
            for thread in flow:
                thread.join()
    assert Cause.EXCEPTION is outcome.cause


def test_a_coroutine_can_be_looked_at_as_any_other() -> None:
    """Libraries ask for a task's state, and for the loop's own C functions by way of a script's names."""

    async def looks(completion: str) -> float:
        coroutine = asyncio.current_task().get_coro()  # type: ignore[union-attr]
        async with asyncio.timeout(LONG_S):
            await asyncio.sleep(0)
        return float(inspect.getcoroutinestate(coroutine) == inspect.CORO_RUNNING)  # type: ignore[arg-type]

    with Runtime([reward(looks)]) as runtime:
        assert [1.0] == [one.score for one in runtime.score([Rollout("p", "c")])["looks"]]


class _Untellable(InfrastructureError):
    def __str__(self) -> str:
        raise KeyboardInterrupt


class _Odd:
    ndim = 0

    def item(self) -> float:
        raise SystemExit


class _Liar(Exception):
    retry = False

    @property
    def __class__(self) -> Any:
        return type(self).kind

    kind: type[BaseException] = InfrastructureError


class _Interrupts(_Liar):
    kind = KeyboardInterrupt


def _hidden() -> type[Exception]:
    class Nameless(type):
        def __getattribute__(cls, name: str) -> Any:
            raise RuntimeError(name)

    class Hidden(Exception, metaclass=Nameless):
        def __getattribute__(self, name: str) -> Any:
            raise SystemExit(name)

    return Hidden


class _Unasked(InfrastructureError):
    @property
    def retry(self) -> bool:  # type: ignore[override]
        raise RuntimeError


class _Text(str):
    def __len__(self) -> int:
        return 0

    def encode(self, *_: object) -> Any:
        return self

    def __eq__(self, other: object) -> bool:
        raise SystemExit

    __hash__ = str.__hash__


def _raise(error: BaseException) -> NoReturn:
    raise error


ODD: dict[str, tuple[Callable[[], Any], Cause | float]] = {
    "no words": (lambda: _raise(_Untellable()), Cause.INFRASTRUCTURE),
    "a class that lies": (lambda: _raise(_Liar()), Cause.EXCEPTION),
    "an interrupt that is none": (lambda: _raise(_Interrupts()), Cause.EXCEPTION),
    "attributes that raise": (lambda: _raise(_hidden()()), Cause.EXCEPTION),
    "a property that raises": (lambda: _raise(_Unasked()), Cause.EXCEPTION),
    "a cause that is none": (lambda: _raise(RewardTextError("x", "none")), Cause.EXCEPTION),
    "a value that ends the process": (_Odd, Cause.BAD_RETURN),
    "a value without a name": (lambda: _hidden(), Cause.BAD_RETURN),
    "texts with methods": (lambda: Score(0.5, _Text("r"), {_Text("m"): 1.0}), 0.5),
}
"""Errors and values that no ordinary code can read, and what becomes of the call."""


@pytest.mark.parametrize("lane", [*LANES, "inline"])
def test_what_cannot_be_told_or_read_is_still_an_outcome(lane: str) -> None:
    """An error whose class lies or whose attributes raise, or a value whose methods do, costs its call alone."""
    made = _reward({name: act for name, (act, _) in ODD.items()}, "serial" if lane == "inline" else lane, LONG_S)
    rollouts = []
    for act in ODD:
        rollouts += [Rollout("p", "bad", {"row": "0", "act": act}), Rollout("p", "fine", {"row": "4"})]
    with Runtime([made], lane="inline" if lane == "inline" else "worker", max_infrastructure_rate=1) as runtime:
        outcomes = _within(LONG_S, runtime, rollouts)
    assert [4.0] * len(ODD) == [outcome.score for outcome in outcomes[1::2]]
    results = {act: outcome.cause or outcome.score for act, outcome in zip(ODD, outcomes[::2], strict=True)}
    assert {act: result for act, (_, result) in ODD.items()} == results


def test_inline_a_task_that_ends_the_loop_costs_its_call_alone() -> None:
    """Nothing but Ctrl-C leaves the batch, also where the caller has a loop that runs."""
    acts = {"exits": _exits_in_a_task, "fine": lambda: 4.0}
    made = _reward(acts, "asyncio", LONG_S)
    rollouts = [Rollout("p", "bad", {"row": "0", "act": act}) for act in acts]

    async def score() -> list[Outcome]:
        return list(runtime.score(rollouts)["hostile"])

    with Runtime([made], lane="inline") as runtime:
        for outcomes in (runtime.score(rollouts)["hostile"], asyncio.run(score())):
            assert [Cause.EXCEPTION, 4.0] == [outcome.cause or outcome.score for outcome in outcomes]


@pytest.mark.cases(1)
@pytest.mark.parametrize("lane", LANES)
def test_a_worker_that_leaks_is_replaced_before_innocents_lack_memory(lane: str) -> None:
    """What calls leave behind is given back with the worker, in every lane, whether it was touched or not."""
    hoard: list[Any] = []

    def leaks() -> float:
        hoard.append(b"x" * (40 << 20))
        return 0.5

    bad = tuple(range(0, ROWS, 4))
    wrap, options = LANES[lane]
    rollouts = [Rollout("p", "bad" if row in bad else "fine", {"row": str(row)}) for row in range(ROWS)]
    narrow = dict.fromkeys(options, 4)
    made = reward(timeout_s=LONG_S, default=-1.0, **narrow)(wrap({"bad": leaks}))
    with Runtime([made], workers=1, memory_bytes=1 << 29) as runtime:
        for _ in range(2):
            outcomes = _within(LONG_S, runtime, rollouts)
            assert [0.5 if row in bad else float(row) for row in range(ROWS)] == [one.score for one in outcomes]
