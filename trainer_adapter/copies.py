"""The adapters that pickles stand for in this process: each pickle's settings make one adapter, and no second one.

A trainer may send its reward functions anew with every batch. What arrives must find the workers that the last ones
started, so the newest adapters are kept.
"""

from __future__ import annotations

import hashlib
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

_T = TypeVar("_T")
MOST_COPIES = 8
"""Adapters from other processes that are kept ready, with their workers."""


class Copies(Generic[_T]):
    """What was made of settings in this process, and what was pickled in it, by the settings' digest."""

    def __init__(self) -> None:
        self._here: weakref.WeakValueDictionary[tuple[int, bytes], _T] = weakref.WeakValueDictionary()
        self._kept: OrderedDict[tuple[int, bytes], _T] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, settings: bytes, thing: _T) -> None:
        """Note that these settings stand for something that is here; it is kept by its owner alone."""
        with self._lock:
            self._here[_place(settings)] = thing

    def get(self, settings: bytes, make: Callable[[], _T]) -> _T:
        """Return what the settings stand for; made, and kept, where it is not here yet."""
        place = _place(settings)
        with self._lock:
            found = self._here.get(place)
            if found is None:
                found = self._here[place] = self._kept[place] = make()
            if place in self._kept:
                self._kept.move_to_end(place)
            while len(self._kept) > MOST_COPIES:
                self._kept.popitem(last=False)
            return found


def _place(settings: bytes) -> tuple[int, bytes]:
    """Return a key that a fork of this process does not share, because it can use nothing of its parent's."""
    return os.getpid(), hashlib.blake2b(settings, digest_size=16).digest()
