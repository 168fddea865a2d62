"""Outcomes of deterministic rewards, kept in memory: least recently used go first."""

from __future__ import annotations

import threading
from collections import OrderedDict

from rewardkit.types import Outcome, Status

CACHE_ENTRIES = 100_000
"""Calls whose outcomes a runtime keeps."""

Key = tuple[int, str, bytes]


class OutcomeCache:
    """Maps a call's key to its outcomes, one a rollout. Failures are never kept."""

    def __init__(self, entries: int = CACHE_ENTRIES) -> None:
        self._entries = entries
        self._kept: OrderedDict[Key, tuple[Outcome, ...]] = OrderedDict()
        self._lock = threading.Lock()  # protects _kept: scoring threads look up, the pool's thread stores

    def get(self, key: Key) -> tuple[Outcome, ...] | None:
        """Return the outcomes, marked as cached, or ``None``."""
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
        return None if found is None else as_cached(found)

    def put(self, key: Key, outcomes: tuple[Outcome, ...]) -> None:
        """Keep the outcomes of a call that did not fail."""
        if any(outcome.status is Status.FAILED for outcome in outcomes):
            return
        with self._lock:
            self._kept[key] = outcomes
            self._kept.move_to_end(key)
            while len(self._kept) > self._entries:
                self._kept.popitem(last=False)


def as_cached(outcomes: tuple[Outcome, ...]) -> tuple[Outcome, ...]:
    """Return the outcomes marked as taken from another call."""
    return tuple(outcome._replace(cached=True) for outcome in outcomes)
