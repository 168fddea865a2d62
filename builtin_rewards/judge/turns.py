"""What an event loop keeps: lines in which calls and questions wait before their deadlines begin, and what models keep.

What waits within a deadline for want of room among one's own requests is lost though nobody is at fault, so deadlines
begin with a turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from builtin_rewards.judge.loops import per_loop

T = TypeVar("T")


@per_loop
def _kept() -> dict[Hashable, Any]:
    return {}


def of_this_loop(key: Hashable, make: Callable[[], T]) -> T:
    """Gives what this event loop keeps under a key; it is made at first use."""
    kept: dict[Hashable, T] = _kept()
    if key not in kept:
        kept[key] = make()
    return kept[key]


def turns(of: Hashable, most: int) -> asyncio.Semaphore:
    """Gives the line for something on this event loop, which lets through so many at once; ``async with`` takes one."""
    return of_this_loop(("turns", of), lambda: asyncio.Semaphore(most))
