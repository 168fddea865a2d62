"""What each event loop has one of: lines, connections, limits. It is dropped with its loop, or soon after."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, TypeVar

T = TypeVar("T")

_values_of: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Hashable, Any]] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def of_this_loop(key: Hashable, make: Callable[[], T]) -> T:
    """Return the running event loop's value of a key, made at first use; values of closed loops are dropped."""
    loop = asyncio.get_running_loop()
    if loop not in _values_of:  # no other thread adds this one
        with _lock:
            for closed_loop in [loop_key for loop_key in _values_of if loop_key.is_closed()]:
                del _values_of[closed_loop]
            _values_of[loop] = {}
    own: dict[Hashable, T] = _values_of[loop]
    if key not in own:
        own[key] = make()
    return own[key]


def turns(of: Hashable, most: int) -> asyncio.Semaphore:
    """Return the semaphore of ``of`` on this event loop, which lets ``most`` callers in at once.

    Begin a deadline inside it: a request that waited for room would be lost though nobody is at fault.
    """
    return of_this_loop(("turns", of), lambda: asyncio.Semaphore(most))


def finished(awaited: Coroutine[Any, Any, T]) -> T | Coroutine[Any, Any, T]:
    """Run a coroutine and return its result where no event loop runs; else return it, for the caller to await."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(awaited)
    return awaited
