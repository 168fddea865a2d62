"""Whose turn it is: lines in which calls and questions wait before their deadlines begin.

Owns :func:`turns`. What waits within a deadline for want of room among one's own requests is lost though nobody is at
fault, so deadlines begin with a turn. Who waits in which line, and for how long, is the judges' to say.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable

from builtin_rewards.judge.loops import per_loop


@per_loop
def _lines() -> dict[Hashable, asyncio.Semaphore]:
    return {}


def turns(of: Hashable, most: int) -> asyncio.Semaphore:
    """Gives the line for something on this event loop, which lets through so many at once; it is made with the first.

    async with turns(judge, 160):
        ...
    """
    kept = _lines()
    if of not in kept:
        kept[of] = asyncio.Semaphore(most)
    return kept[of]
