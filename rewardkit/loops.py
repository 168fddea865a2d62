"""What each event loop has one of: lines, connections, limits. It is dropped with its loop, or soon after."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
import weakref
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, TypeVar

T = TypeVar("T")
_LOOK_AGAIN_S = 1.0  # Seconds after which a loop of another thread is looked at, whether it still runs

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


def run_on(loop: asyncio.AbstractEventLoop | None, coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end on a loop that runs in another thread, or on one of its own where that is not so.

    What it raises is raised here, also what would end the other thread's loop, as SystemExit does.

    Raises:
        RuntimeError: The loop ended before the coroutine did.
    """
    results: list[T] = []
    errors: list[BaseException] = []

    async def run() -> None:
        try:
            results.append(await coroutine)
        except BaseException as error:
            errors.append(error)

    if loop is None or not loop.is_running() or loop is _running_loop():
        thread = threading.Thread(target=asyncio.run, args=[run()])  # a loop may run in this thread already
        thread.start()
        thread.join()
    else:
        future = asyncio.run_coroutine_threadsafe(run(), loop)
        while not concurrent.futures.wait([future], _LOOK_AGAIN_S).done:
            if not loop.is_running():
                future.cancel()
                raise RuntimeError("the event loop on which it was to run has ended")
    if errors:
        raise errors[0]
    return results[0]


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
