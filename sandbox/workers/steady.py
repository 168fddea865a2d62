"""Steady copies of what a worker needs and a call may break: the clock, the process's identity, the loaded modules.

A test library that freezes time replaces ``time.monotonic`` in every module that has it as a global. Here it is an
attribute of a class, where such a library does not look.
"""

from __future__ import annotations

import mmap
import os
import sys
import time

INSIDE = "REWARDKIT_INSIDE_WORKER"  # Set in the environment of workers and of what they start


class Steady:
    """The clock, the question for this process's id and the immediate exit, as they were when the worker was loaded."""

    monotonic = staticmethod(time.monotonic)
    process = staticmethod(os.getpid)
    end = staticmethod(os._exit)


class Here:
    """Tells the process that made it from that process's forks."""

    def __init__(self) -> None:
        self._process = Steady.process()
        self._mark = _mark()

    def forked(self) -> bool:
        """Return whether this is a fork of it."""
        return not self._mark[0] and Steady.process() != self._process


class Keeper(Here):
    """Looks, after each call, whether this is still the worker, with what it had loaded."""

    def __init__(self) -> None:
        super().__init__()
        self._live = sys.modules
        self._modules = dict(sys.modules)
        self._loaded = len(self._modules)

    def check(self) -> bool:
        """End a forked copy of this process; put back missing modules and return whether there were any."""
        if not self._mark[0] and self.forked():
            Steady.end(0)
        if len(self._live) >= self._loaded:
            return False
        for name, module in self._modules.items():
            self._live.setdefault(name, module)
        return True


def _mark() -> mmap.mmap | bytes:
    """Return a byte that is 1 here and 0 in forks: asking the kernel is slower. It is always 0 before Linux 4.14."""
    page = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    try:
        page.madvise(18)  # MADV_WIPEONFORK
    except (AttributeError, OSError):
        return bytes(1)
    page[0] = 1
    return page
