"""Puts garbage collection off for the milliseconds in which thousands of small objects are made at once.

The collector would go through them, and through the trainer's own objects, again and again, for nothing: all of them
are still needed.
"""

from __future__ import annotations

import gc
import threading


class CollectorPaused:
    """A context in which the collector does not run by itself; contexts of several threads may overlap."""

    _lock = threading.Lock()  # protects the two below
    _depth = 0
    _was_enabled = False

    def __enter__(self) -> None:
        with CollectorPaused._lock:
            if CollectorPaused._depth == 0:
                CollectorPaused._was_enabled = gc.isenabled()
                gc.disable()
            CollectorPaused._depth += 1

    def __exit__(self, *error: object) -> None:
        with CollectorPaused._lock:
            CollectorPaused._depth -= 1
            if CollectorPaused._depth == 0 and CollectorPaused._was_enabled:
                gc.enable()
