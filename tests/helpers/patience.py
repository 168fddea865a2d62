"""Waiting on a machine that may stand still for seconds: for what must come, and with enough time for innocents."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import psutil

from rewardkit import Cause, Outcome, Rollout

Result = TypeVar("Result")

LONG_S = 60.0
"""Seconds that only a test which fails waits for."""
STANDSTILL_S = 0.5
"""Seconds between two looks, a tenth of a second apart, that only a process which stood still takes."""
TIMES = (1, 10, 60)
"""How many times its first deadline an innocent gets, one after the other."""


def wait_for(condition: Callable[[], object], most_s: float = LONG_S) -> bool:
    """Wait until a condition holds; gives whether it does."""
    deadline = time.monotonic() + most_s
    while not condition():
        if time.monotonic() > deadline:
            return bool(condition())
        time.sleep(0.02)
    return True


def unshared_bytes() -> int:
    """Return the memory that this process holds alone; what is mapped from files comes and goes as the kernel likes."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return 1024 * sum(int(status[name].split()[0]) for name in ("RssAnon", "VmSwap"))


def alive(processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    """Wait for the end of processes; gives those that go on. What has ended and nobody has reaped does not."""
    found = list(processes)
    wait_for(lambda: not any(map(_runs, found)))
    return [process for process in found if _runs(process)]


def _runs(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    return False


def kept_time(rollouts: Iterable[Rollout], outcomes: Iterable[Outcome]) -> bool:
    """Whether no innocent ran out of time; a machine that stands still can make one late. The guilty say "bad"."""
    pairs = zip(rollouts, outcomes, strict=True)
    return all(rollout.completion == "bad" or outcome.cause is not Cause.TIMEOUT for rollout, outcome in pairs)


def in_time(act: Callable[[float], Result], innocent_was: Callable[[Result], object], deadline_s: float) -> Result:
    """Do what has a deadline that one part keeps and another does not; with a later one where neither kept it."""
    for times in TIMES:
        result = act(times * deadline_s)
        if innocent_was(result):
            break
    return result


class Watch:
    """Sees in a ``with`` block whether this process stood still, perhaps with the whole machine."""

    def __init__(self) -> None:
        self.stood_still = False
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def _look(self) -> None:
        looked = time.monotonic()
        while not self._over.wait(0.1):
            before, looked = looked, time.monotonic()
            self.stood_still |= looked - before > STANDSTILL_S

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
