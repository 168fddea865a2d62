"""Waiting on a machine that may stand still for seconds: for what must come, and with enough time for innocents."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import psutil

Result = TypeVar("Result")

LONG_S = 60.0
"""Seconds that only a test which fails waits for."""
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
    """Gives the memory that this process holds alone; what is mapped from files comes and goes as the kernel likes."""
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


def in_time(act: Callable[[float], Result], innocent_was: Callable[[Result], object], deadline_s: float) -> Result:
    """Do what has a deadline that one part keeps and another does not; with a later one where neither kept it."""
    for times in TIMES:
        result = act(times * deadline_s)
        if innocent_was(result):
            break
    return result
