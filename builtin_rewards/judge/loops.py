"""What each event loop has one of: lines, connections, limits. It is dropped with its loop, or soon after."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def per_loop(make: Callable[[], T]) -> Callable[[], T]:
    """Gives what gives the running event loop's own value, made at first use.

    What it has waited for refers to its loop, so those of closed loops are dropped when another loop comes.
    """
    kept: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, T] = weakref.WeakKeyDictionary()
    lock = threading.Lock()

    def of_this_loop() -> T:
        loop = asyncio.get_running_loop()
        if loop not in kept:  # no other thread adds this one
            with lock:
                for ended in [other for other in kept if other.is_closed()]:
                    del kept[ended]
                kept[loop] = make()
        return kept[loop]

    return of_this_loop
