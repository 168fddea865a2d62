"""Steady copies of what a worker needs and a call may break: the clock, the process's identity, the loaded modules.

A test library that freezes time replaces ``time.monotonic`` in every module that has it as a global. Here it is an
attribute of a class, where such a library does not look.
"""

from __future__ import annotations

import mmap
import os
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


def _mark() -> mmap.mmap | bytes:
    """Return a byte that is 1 here and 0 in forks: asking the kernel is slower. It is always 0 before Linux 4.14."""
    page = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    try:
        page.madvise(18)  # MADV_WIPEONFORK
    except (AttributeError, OSError):
        return bytes(1)
    page[0] = 1
    return page
