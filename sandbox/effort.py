"""A budget of work for reading the output of one evaluation: its lines, its values and their comparison.

A completion may make its output as slow to read as possible. So the reader pays for each step, and stops when the
budget is spent, which is the completion's failure. Steps are counted, so the same output always has the same result.
Only hash tables are timed too: chosen members can make every insertion pass by all the others.
"""

from __future__ import annotations

import re
import time
from typing import Any

from sandbox.errors import NotPlainError

MAX_STEPS = 1_000_000
"""Steps of one evaluation: one or two for each part of a value (a container, a thing in one), more for sets and dicts.

A part's steps pay for its comparison too. Values that honest code gives back within the default limits take fewer."""
STEPS_A_CALL = 12  # steps that each requested call adds
MAX_TABLES_S = 0.1  # seconds of processor time for making all hash tables; those of honest code take a tenth
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
