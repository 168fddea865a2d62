"""A day in short: very many calls in every lane with faults among them, all answered right; nothing leaks."""

from __future__ import annotations

import concurrent.futures
import contextlib
import gc
import os
import time
from typing import Any

import psutil
import pytest
from patience import Watch, unshared_bytes, wait_for

from rewardkit import Cause, Outcome, Reward, Rollout, Runtime, ScoreBatch, Status, reward

LANES = ("serial", "threads", "loop")
CALLS, SHORT = 1_000_000, 100_000
BATCH = 5_000
WARM_UP = 2
"""Batches after which memory and descriptors are as they are to stay."""
LAST = 3
"""Batches at the end that tell what is held for good."""
FAULT_EVERY = 200
DEADLINE_S = 2.0
ONCE_MORE = 5
"""Times that a batch is scored at most, where the machine stands still each time for as long as a call may take."""
LATE_S = 600.0
"""Seconds that only a batch which never ends takes."""
MEMORY_BYTES = 1 << 29
QUICK = ("raise", "nan", "none", "print", "exit", "segfault", "memory", "fork", "forked exit", "write", "leave a child")
ACTS = (*QUICK, *QUICK, *QUICK, "hang")
"""What one row in :data:`FAULT_EVERY` does in turn; few take all their time, for a machine has other tests to run."""
CAUSES = {
    "raise": {Cause.EXCEPTION},
    "nan": {Cause.BAD_RETURN},
    "exit": {Cause.CRASHED},
    "segfault": {Cause.CRASHED},
    "memory": {Cause.EXCEPTION},
    "hang": {Cause.TIMEOUT},
}


def _misbehave(act: str) -> Any:
    """Commit an act; give what the reward is to return then, or 0.0 where it returns its row's number."""
    match act:
        case "raise":
            raise ValueError(act)
        case "nan":
            return float("nan")
        case "none":
            return None
        case "print":
            print("x" * 100_000)
        case "exit":
            os._exit(0)
        case "segfault":
            import ctypes

            ctypes.string_at(0)
        case "memory":
            return len(bytearray(1 << 40))
        case "fork":
            os.fork()
        case "forked exit":
            if os.fork() == 0:
                raise SystemExit(1)
        case "leave a child":
            if os.fork() == 0:
                time.sleep(LATE_S)
        case "write":
            for number in range(3, 1024):
                with contextlib.suppress(OSError):
                    os.write(number, b"a line of a log\n")
        case "hang":
            while True:
                pass
    return 0.0


def serial(completion: str, row: int) -> float | None:
    """Score the row's number, or commit the act that the completion names."""
    wrong = _misbehave(completion)
    return wrong if wrong != 0.0 else float(row)


def threads(completion: str, row: int) -> float | None:
    """Do the same on threads."""
    wrong = _misbehave(completion)
    return wrong if wrong != 0.0 else row + 0.25


async def loop(completion: str, row: int) -> float | None:
    """Do the same on an event loop."""
    import asyncio

    wrong = _misbehave(completion)
    await asyncio.sleep(0)
    return wrong if wrong != 0.0 else row + 0.5


def _rewards() -> list[Reward[..., Any]]:
    options: dict[str, Any] = {"timeout_s": DEADLINE_S, "default": -1.0}
    return [reward(**options)(serial), reward(**options, concurrency=4)(threads), reward(**options)(loop)]


def _batch(start: int, size: int) -> list[Rollout]:
    return [Rollout("p", _act(row), {"row": str(row)}) for row in range(start, start + size)]


def _act(row: int) -> str:
    """Give what a row does: one in two hundred misbehaves, each in turn in another way."""
    return ACTS[row // FAULT_EVERY % len(ACTS)] if row % FAULT_EVERY == 37 else "fine"


def _check(rollouts: list[Rollout], lane: str, outcomes: Any) -> None:
    assert len(rollouts) == len(outcomes)
    for rollout, outcome in zip(rollouts, outcomes, strict=True):
        act, right = rollout.completion, int(rollout.example["row"]) + LANES.index(lane) / 4
        assert _is_right(act, right, outcome), (lane, act, right, outcome)


def _is_right(act: str, right: float, outcome: Outcome) -> bool:
    if act in CAUSES:
        return outcome.status is Status.FAILED and outcome.cause in CAUSES[act] and outcome.score == -1.0
    if act == "none":
        return outcome.status is Status.SKIPPED and outcome.score is None
    if act == "write" and outcome.status is Status.FAILED:  # what it wrote to may have been what it lives on
        return outcome.cause in (Cause.CRASHED, Cause.TIMEOUT) and outcome.score == -1.0
    return outcome.status is Status.SCORED and outcome.score == right


def _score(runtime: Runtime, rollouts: list[Rollout]) -> None:
    """Score a batch and check every outcome; once more where the machine stood still and made innocents late."""
    for _ in range(ONCE_MORE):
        with Watch() as watch:
            batch = _scored(runtime, rollouts)
        if not watch.stood_still or not any(_is_late(rollouts, batch[lane]) for lane in LANES):
            break
    for lane in LANES:
        _check(rollouts, lane, batch[lane])


def _scored(runtime: Runtime, rollouts: list[Rollout]) -> ScoreBatch:
    """Score a batch; one that never ends is an error and not a wait for ever."""
    with concurrent.futures.ThreadPoolExecutor(1) as aside:
        scored = aside.submit(runtime.score, rollouts)
        try:
            return scored.result(LATE_S)
        except TimeoutError:
            runtime.close()
            raise


def _is_late(rollouts: list[Rollout], outcomes: Any) -> bool:
    """Whether an innocent ran out of time."""
    pairs = zip(rollouts, outcomes, strict=True)
    return any(outcome.cause is Cause.TIMEOUT and rollout.completion != "hang" for rollout, outcome in pairs)


@pytest.mark.soak
def test_a_day_of_calls_leaks_nothing(full: bool) -> None:
    """A million calls (100,000 in short form) in three lanes, 0.5% of them faults: all right, and nothing is lost."""
    rows = -(-(CALLS if full else SHORT) // len(LANES))
    me = psutil.Process()
    before = {child.pid for child in me.children(recursive=True)}
    descriptors, held = 0, []
    with Runtime(_rewards(), workers=2, memory_bytes=MEMORY_BYTES) as runtime:
        for number, start in enumerate(range(0, rows, BATCH)):
            if number == WARM_UP:
                assert wait_for(lambda: _steady(runtime))
                descriptors = me.num_fds()
            _score(runtime, _batch(start, min(BATCH, rows - start)))
            gc.collect()
            held.append(unshared_bytes())
        assert wait_for(lambda: _steady(runtime))
        assert wait_for(lambda: descriptors == me.num_fds())
    # One look may find a batch's memory not given back yet; what is lost for good is held in every one.
    assert min(held[-LAST:]) < max(held[:WARM_UP]) + 0.05 * me.memory_info().rss, held
    # A child of before, such as a fork server that an earlier test left, may end meanwhile; none may be new.
    assert before >= {child.pid for child in me.children(recursive=True)}


def _steady(runtime: Runtime) -> bool:
    """Whether every worker has its place, the last fault's successor among them."""
    return len(runtime.processes) == 2 + len(LANES) - 1
