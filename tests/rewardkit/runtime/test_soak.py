"""Many evaluations with faults among them: every outcome present, in order, right; nothing leaks."""

from __future__ import annotations

import gc
import os
from typing import Any

import psutil
import pytest
from patience import unshared_bytes, wait_for

from rewardkit import Cause, Rollout, Runtime, Status, reward

BATCH = 5_000
QUICK = ("raise", "nan", "exit", "segfault", "none", "print")
ACTS = (*QUICK, *QUICK, *QUICK, "hang")
CAUSES = {
    "raise": Cause.EXCEPTION,
    "nan": Cause.BAD_RETURN,
    "exit": Cause.CRASHED,
    "segfault": Cause.CRASHED,
    "hang": Cause.TIMEOUT,
}


@reward(timeout_s=1.0, default=-1.0)
def faulty(completion: str, row: int) -> float | None:
    """Score the row's number, or commit the act that the completion names."""
    match completion:
        case "raise":
            raise ValueError(row)
        case "nan":
            return float("nan")
        case "exit":
            os._exit(0)
        case "segfault":
            import ctypes

            ctypes.string_at(0)
        case "hang":
            while True:
                pass
        case "none":
            return None
        case "print":
            print("x" * 100_000)
    return float(row)


def _batch(start: int) -> list[Rollout]:
    """One row in a hundred misbehaves, each in turn in another way."""
    rows = range(start, start + BATCH)
    return [Rollout("p", ACTS[(n // 100) % len(ACTS)] if n % 100 == 37 else "fine", {"row": str(n)}) for n in rows]


def _check(rollouts: list[Rollout], outcomes: Any) -> None:
    assert len(rollouts) == len(outcomes)
    for rollout, outcome in zip(rollouts, outcomes, strict=True):
        act, row = rollout.completion, float(rollout.example["row"])
        if act in CAUSES:
            assert (Status.FAILED, CAUSES[act], -1.0) == (outcome.status, outcome.cause, outcome.score), outcome
        elif act == "none":
            assert (Status.SKIPPED, None) == (outcome.status, outcome.score)
        else:
            assert (Status.SCORED, row) == (outcome.status, outcome.score), outcome


@pytest.mark.slow
def test_a_hundred_thousand_evaluations_leak_nothing(full: bool) -> None:
    """1% of faults among 100,000 evaluations (15,000 in short form): all right, and nothing is lost."""
    batches = 20 if full else 3
    me = psutil.Process()
    before = {child.pid for child in me.children(recursive=True)}
    with Runtime([faulty], workers=2, memory_bytes=1 << 30) as runtime:
        for number in range(3):
            rollouts = _batch(number * BATCH)
            _check(rollouts, runtime.score(rollouts)["faulty"])
        gc.collect()
        # a warden and two workers, the last fault's successor among them
        assert wait_for(lambda: 3 == len({child.pid for child in me.children(recursive=True)} - before))
        descriptors, memory = me.num_fds(), unshared_bytes()
        for number in range(batches):
            rollouts = _batch(number * BATCH)
            _check(rollouts, runtime.score(rollouts)["faulty"])
        del rollouts
        gc.collect()
        assert wait_for(lambda: 3 == len({child.pid for child in me.children(recursive=True)} - before))
        assert wait_for(lambda: descriptors == me.num_fds())
        assert unshared_bytes() < memory + 0.05 * me.memory_info().rss
    assert before == {child.pid for child in me.children(recursive=True)}
