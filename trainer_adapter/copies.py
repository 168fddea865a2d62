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
MOST_COPIES = 8  # Adapters from other processes that are kept ready, with their workers


class Copies(Generic[_T]):
    """What was made of settings in this process, and what was pickled in it, by the settings' digest."""

    def __init__(self) -> None:
        self._here: weakref.WeakValueDictionary[tuple[int, bytes], _T] = weakref.WeakValueDictionary()
        self._newest: OrderedDict[tuple[int, bytes], _T] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, settings: bytes, thing: _T) -> None:
        """Note that these settings stand for something that is here; it is kept by its owner alone."""
        with self._lock:
            self._here[_key(settings)] = thing

    def get(self, settings: bytes, make: Callable[[], _T]) -> _T:
        """Return what the settings stand for; make it where it is not here yet."""
        key = _key(settings)
        with self._lock:
            copy = self._here.get(key)
            if copy is None:
                copy = self._here[key] = self._newest[key] = make()
            if key in self._newest:
                self._newest.move_to_end(key)
            while len(self._newest) > MOST_COPIES:
                self._newest.popitem(last=False)
            return copy


def _key(settings: bytes) -> tuple[int, bytes]:
    """Return a key that a fork of this process does not share, because it can use nothing of its parent's."""
    return os.getpid(), hashlib.blake2b(settings, digest_size=16).digest()
