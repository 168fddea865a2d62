"""A budget of work for reading the output of one evaluation: its lines, its values and their comparison.

A completion may make its output as slow to read as possible. So the reader pays for each step, and stops when the
budget is spent, which is the completion's failure. Steps are counted, so the same output always has the same result.
Only hash tables are timed too: chosen members can make every insertion pass by all the others.
"""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Iterable, Iterator
from typing import Any

from sandbox.errors import NotPlainError

MAX_STEPS = 1_000_000
"""Steps of one evaluation: one or two for each part of a value (a container, a thing in one), more for sets and dicts.

A part's steps pay for its comparison too. Values that honest code gives back within the default limits take fewer."""
STEPS_A_CALL = 12  # steps that each requested call adds
MAX_TABLES_S = 0.1  # seconds of processor time for making all hash tables; those of honest code take a tenth
MAX_ALIKE = 200
"""Members of a set, or keys of a dict, with the same hash; all are compared with each other, which takes its time."""
_COMPARED_A_STEP = 16
_SLICE = 256
_SHORT = 1000
_QUOTED = re.compile(rb'"(?>[^"\\]*(?:\\.[^"\\]*)*)"?', re.DOTALL)


class Effort:
    """The work that may still be done for one evaluation."""

    __slots__ = ("_seconds", "_steps")

    def __init__(self, steps: float = MAX_STEPS, seconds: float = MAX_TABLES_S) -> None:
        self._steps = steps
        self._seconds = seconds

    def spend(self, steps: float) -> None:
        """Pay for steps; raise ``NotPlainError`` if they are more than are left: then nothing else may be read."""
        self._steps -= steps
        if self._steps < 0:
            raise NotPlainError("too many parts, or too many that are alike, to be read of one evaluation")

    def spend_on_json(self, text: bytes) -> None:
        """Pay for JSON text before it is parsed: by its parts, and by its size, which costs most in numbers."""
        self.spend(1 + len(text) // 256 + text.count(b'"') // 4)
        bare = text if len(text) < _SHORT else _QUOTED.sub(b"", text)  # what is quoted costs little, commas and all
        self.spend(bare.count(b"[") + bare.count(b"{") + bare.count(b",") // 2 + len(bare) // 16)

    def fill(self, table: set[Any] | dict[Any, Any], members: list[Any]) -> None:
        """Put members into a set, or pairs into a dict; raise ``NotPlainError`` if their hashes make it too slow."""
        if len(members) <= _SLICE:
            table.update(members)
            return
        for start in range(0, len(members), _SLICE):
            began = time.thread_time()
            table.update(members[start : start + _SLICE])
            self._seconds -= time.thread_time() - began
            if self._seconds < 0:
                raise NotPlainError("members that are chosen to be slow to tell apart")


def pay_for_alike(members: list[Any], effort: Effort) -> None:
    """Pay for comparing members with the same hash, which whole numbers and containers can be chosen to have."""
    for alike in _alike(members):
        if len(alike) > MAX_ALIKE:
            raise NotPlainError(f"more than {MAX_ALIKE} members with the same hash")
        effort.spend(_weight_together(alike, effort) // _COMPARED_A_STEP)


def _alike(members: Iterable[Any]) -> Iterator[list[Any]]:
    """Yield the groups of members that share a hash, without making a hash table."""
    hashes = sorted(map(hash, members))
    if not any(map(int.__eq__, hashes, itertools.islice(hashes, 1, None))):
        return
    for _, group in itertools.groupby(sorted(members, key=hash), key=hash):
        alike = list(group)
        if len(alike) > 1:
            yield alike


def _weight_together(alike: list[Any], effort: Effort) -> int:
    """Return how many values are compared if each of some is compared with every other."""
    return len(alike) * sum(_weight(item, effort) for item in alike)


def _weight(value: object, effort: Effort) -> int:
    """Return how many values are compared if a value is compared with one that may be equal."""
    effort.spend(1)
    if type(value) is tuple:
        return 1 + sum(_weight(item, effort) for item in value)
    if type(value) is frozenset:
        items = sum(_weight(item, effort) for item in value)
        return 1 + items + sum(_weight_together(alike, effort) for alike in _alike(value))
    if type(value) is int:
        return 1 + value.bit_length() // 1024
    return 1 + len(value) // 128 if isinstance(value, str | bytes) else 1
