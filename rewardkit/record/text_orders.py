"""The order of a run's texts by how they begin: completions, prompts, and what a reward said of each completion.

A text of 1,000,000 is not kept in memory for its order: of each the first :data:`KEY_BYTES` bytes go to a nameless
temporary file, which the system pages in and out as it has room, and the order is computed over that file. What stays
in memory are three numbers a text. Texts that begin alike for so many bytes are equal, and the last two orders that
were asked for are kept.
"""

from __future__ import annotations

import tempfile
import time
import weakref
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from rewardkit.errors import RecordError
from rewardkit.record.reader import RunReader
from rewardkit.record.recorded_numbers import KEY_BYTES, TextField
from rewardkit.record.table import Floats, Whole
from rewardkit.record.values import Progress

MOST_ORDERS = 2  # Orders that are kept, the latest ones: each is up to 256 MB of temporary file for 1,000,000 texts
STRETCH = 500  # Texts that are read at once
_COMPARED = 1 << 14  # Keys that are compared with their neighbours at once: 4 MB
_OF_READING: Mapping[str, str] = {"prompt_text": "prompts"}


class TextOrders:
    """The orders of the texts that were asked for; :meth:`update` reads on."""

    def __init__(self) -> None:
        self._orders: dict[TextField, _TextOrder] = {}

    def update(self, run: RunReader, fields: Iterable[TextField], budget_s: float | None = None) -> Progress | None:
        """Read how the texts of some fields begin that were not read yet, for a limited time.

        Returns how far a reading came that has not ended; ``None`` when all is read.
        """
        wanted = list(dict.fromkeys(fields))
        for field in wanted:
            order = self._orders.pop(field) if field in self._orders else _TextOrder(field)
            self._orders[field] = order  # the last one
        while len(self._orders) > max(MOST_ORDERS, len(wanted)):
            del self._orders[next(iter(self._orders))]
        until = None if budget_s is None else time.monotonic() + budget_s
        for field in wanted:
            progress = self._orders[field].update(run, until)
            if progress.unfinished:
                return progress
        return None

    def ranks(self, field: TextField, numbers: Floats) -> Floats:
        """Return the place of texts in the order, by the numbers of their completions or prompts; ``nan`` without."""
        return self._orders[field].ranks(numbers)


class _TextOrder:
    """How the texts of one field begin, in the order of their numbers, and which of them comes first."""

    def __init__(self, field: TextField) -> None:
        self._field = field
        self._keys = tempfile.TemporaryFile()  # noqa: SIM115 - closed with this object
        weakref.finalize(self, self._keys.close)
        self._numbers: list[Whole] = []
        self._last = -1
        self._sorted = _Sorted(np.zeros(0, np.int64), np.zeros(0))

    def update(self, run: RunReader, until: float | None) -> Progress:
        """Read on, at least a stretch of what there is, until a time."""
        last = run.prompt_count - 1 if self._field.is_of_prompts else run.last_id
        while self._last < last:
            stretch = min(self._last + STRETCH, last)
            texts = run.text_keys(self._field, self._last, stretch)
            if texts:
                numbers, keys = zip(*texts, strict=True)
                self._append(np.array(numbers, np.int64), np.array(keys, f"S{KEY_BYTES}"))
            self._last = stretch
            if until is not None and time.monotonic() > until:
                break
        return Progress(_OF_READING.get(self._field.kind, "completions"), self._last + 1, last + 1)

    def _append(self, numbers: Whole, keys: np.ndarray) -> None:
        try:
            self._keys.write(keys.tobytes())
            self._keys.flush()
        except OSError as error:
            size = f"{self._last * KEY_BYTES / 1e6:,.0f} MB and more"
            reason = f"a temporary file of {size}: {error.strerror}; TMPDIR names another folder for it"
            raise RecordError(f"sort by {self._field.name}: {reason}") from error
        self._numbers.append(numbers)

    def ranks(self, numbers: Floats) -> Floats:
        """Return the place of some texts among all that were read; equal ones share one."""
        count = sum(map(len, self._numbers))
        if len(self._sorted.numbers) < count:
            self._sorted = self._sort(count)
        own, ranks = self._sorted
        wanted = numbers.astype(np.int64)
        places = np.minimum(np.searchsorted(own, wanted), max(0, count - 1))
        return np.where(own[places] == wanted, ranks[places], np.nan) if count else np.full(len(wanted), np.nan)

    def _sort(self, count: int) -> _Sorted:
        keys = np.memmap(self._keys, f"S{KEY_BYTES}", "r", shape=(count,))
        order = np.argsort(keys, kind="stable")
        ranks = np.zeros(count)
        rank = 0
        for start in range(0, count - 1, _COMPARED):
            near = keys[order[start : start + _COMPARED + 1]]
            places = rank + np.cumsum(near[1:] != near[:-1])
            ranks[order[start + 1 : start + len(near)]] = places
            rank = int(places[-1])
        return _Sorted(np.concatenate(self._numbers), ranks)


class _Sorted(NamedTuple):
    """Where the texts stand in the order."""

    numbers: Whole  # Of their completions or prompts, ascending
    ranks: Floats
