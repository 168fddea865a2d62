"""What a worker needs and a call may break: the clock, the process's identity, the loaded modules.

A test library that freezes time replaces ``time.monotonic`` in every module that holds it under a name of its own.
So it is held here in a class, where such a library does not look.
"""

from __future__ import annotations

import os
import sys
import time


class Steady:
    """Functions as they were when the worker was loaded.

    Attributes:
        monotonic: Seconds on the monotonic clock; on Linux and macOS it is one for all processes.
        process: The id of the process that asks.
        end: Ends the process at once.
    """

    monotonic = staticmethod(time.monotonic)
    process = staticmethod(os.getpid)
    end = staticmethod(os._exit)


class Keeper:
    """Looks, after each call, whether this is still the worker, with what it had loaded."""

    def __init__(self) -> None:
        self._process = Steady.process()
        self._live = sys.modules
        self._modules = dict(sys.modules)

    def check(self) -> None:
        """End a process that a call forked: the call goes on in the worker, and its copy ends where the call does.

        Put back modules that a call took out of ``sys.modules``: the next call's ``import`` would make second copies.
        """
        if Steady.process() != self._process:
            Steady.end(0)
        if len(self._live) < len(self._modules):
            for name, module in self._modules.items():
                self._live.setdefault(name, module)
