"""Whose turn it is: lines in which calls and questions wait before their deadlines begin.

Owns :func:`turns`. What waits within a deadline for want of room among one's own requests is lost though nobody is at
fault, so deadlines begin with a turn. Who waits in which line, and for how long, is the judges' to say.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Hashable

_loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Hashable, asyncio.Semaphore]]
_loops = weakref.WeakKeyDictionary()


def turns(of: Hashable, most: int) -> asyncio.Semaphore:
    """Gives the line for something on this event loop, which lets through so many at once; it is made with the first.

    async with turns(judge, 160):
        ...
    """
    kept = _loops.setdefault(asyncio.get_running_loop(), {})
    if of not in kept:
        kept[of] = asyncio.Semaphore(most)
    return kept[of]
