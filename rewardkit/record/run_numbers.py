"""The numbers of all completions of a run by column, read batch by batch and kept up to date while the run grows."""

from __future__ import annotations

import itertools
import struct
import time
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from rewardkit.errors import RecordError
from rewardkit.record.batch_numbers import BatchNumbers
from rewardkit.record.number_blocks import SCORED
from rewardkit.record.place import Stamp
from rewardkit.record.reader import RunReader
from rewardkit.record.table import Floats, Whole
from rewardkit.record.values import Progress

MOST_COLUMNS = 12  # Columns that stay unpacked, the latest ones: each is 8 bytes a completion
_ROW_BATCHES = 64  # Batches whose rows are read at once
_RECENT_BATCHES = 32  # Batches that are read again when the record has changed
_FIRST_BATCHES, _MOST_BATCHES = 64, 4096  # Batches that are read in one query, at first and at most


Key: TypeAlias = tuple[str, str | None]  # The name of a column, and the reward whose it is


class RunNumbers:
    """The numbers of a run, as far as they were read; :meth:`update` reads on."""

    def __init__(self) -> None:
        self._path = ""
        self._stamp: Stamp = ()
        self._changes = 0
        self._is_whole = False
        self._forget()

    def _forget(self) -> None:
        self._batches: list[BatchNumbers] = []
        self._columns: dict[Key, tuple[int, Floats]] = {}
        self._until = (0, 0)
        self._changes += 1
        self._last = 0
        self.count = 0
        """How many completions were read."""
        self.last_id = 0
        """The greatest of their numbers in the record."""
        self.splits: set[str] = set()
        """The splits that have completions."""
        self.rewards: dict[str, list[int]] = {}
        """The rewards by name, in the order in which they were first recorded, with the numbers of their versions."""

    @property
    def state(self) -> int:
        """A number that grows with each change of what was read."""
        return self._changes

    def update(self, run: RunReader, budget_s: float | None = None) -> Progress:
        """Read what was recorded since the last call, for a limited time; start over if batches were removed."""
        self._path = str(run.path)
        stamp = run.stamp  # before what it stands for is read
        if self._is_whole and stamp == self._stamp:
            return Progress("completions", self.count, self.count)
        if self._until != run.batches_until(self.last_id):
            self._forget()
        elif self._is_whole and stamp != self._stamp:
            self._retract(_RECENT_BATCHES)
        self._stamp = stamp
        until = None if budget_s is None else time.monotonic() + budget_s
        limit = _FIRST_BATCHES
        while batches := run.batch_numbers(self._last, limit):
            for batch in batches:
                self._add(batch)
            if len(batches) < limit and self._last >= run.last_batch:
                break
            if until is not None and time.monotonic() > until:
                break
            limit = min(2 * limit, _MOST_BATCHES)
        self._until = run.batches_until(self.last_id)
        self._is_whole = self._last >= run.last_batch
        total = run.count()
        return Progress("completions", total if self._is_whole else self.count, total)

    def _retract(self, count: int) -> None:
        """Forget the last batches: trainers tell their advantages a moment after a batch is there."""
        self._changes += 1
        stays = max(0, len(self._batches) - count)
        del self._batches[stays:]
        self.count = sum(len(batch.ids) for batch in self._batches)
        self.last_id = int(self._batches[-1].ids[-1]) if self._batches else 0
        self._last = self._batches[-1].id if self._batches else 0
        self._columns = {
            key: (stays, column[: self.count]) if done > stays else (done, column)
            for key, (done, column) in self._columns.items()
        }

    def _add(self, batch: BatchNumbers) -> None:
        self._last = batch.id
        self._changes += 1
        for name, (_, version) in batch.versions.items():
            versions = self.rewards.setdefault(name, [])
            if version not in versions:
                versions.append(version)
        if len(batch.ids):
            self._batches.append(batch)
            self.splits.add(batch.split)
            self.count += len(batch.ids)
            self.last_id = int(batch.ids[-1])

    @property
    def batches(self) -> Sequence[BatchNumbers]:
        """The batches with completions that were read, in order."""
        return self._batches

    def column(self, name: str, reward: str | None = None) -> Floats:
        """Return a column of all completions that were read, see :meth:`BatchNumbers.column`.

        Raises:
            RecordError: A stored block does not hold it.
        """
        return self._joined((name, reward), lambda batches: [batch.column(name, reward) for batch in batches])

    def seconds(self, run: RunReader, reward: str) -> Floats:
        """Return how long a reward's last attempts took, which are read from the rows; ``nan`` without a call."""

        def read(batches: Sequence[BatchNumbers]) -> list[Floats]:
            parts = []
            for start in range(0, len(batches), _ROW_BATCHES):
                chunk = batches[start : start + _ROW_BATCHES]
                packed = iter(run.packed_seconds(chunk[0].id, chunk[-1].id))
                for batch in chunk:
                    rows = b"".join(itertools.islice(packed, len(batch.ids)))
                    part = np.frombuffer(rows, "<f4").reshape(len(batch.ids), -1).astype(np.float64)
                    has_reward = reward in batch.versions
                    parts.append(part[:, batch.versions[reward][0]] if has_reward else np.full(len(part), np.nan))
            return parts

        return self._joined(("seconds", reward), read)

    def _joined(self, key: Key, read: Callable[[Sequence[BatchNumbers]], Sequence[Floats]]) -> Floats:
        """Return a column that is kept, after what is new was read."""
        done, column = self._columns.pop(key, (0, np.zeros(0)))
        if done < len(self._batches):
            try:
                column = np.concatenate([column, *read(self._batches[done:])])
            except (ValueError, IndexError, struct.error) as error:
                raise RecordError(f"{self._path}: damaged: numbers that no recorder writes: {error}") from error
            column.setflags(write=False)
        self._columns[key] = (len(self._batches), column)
        while len(self._columns) > MOST_COLUMNS:
            del self._columns[next(iter(self._columns))]
        return column

    def own_scores(self, reward: str, version: int | None = None) -> Floats:
        """Return the scores that a reward gave, in one of its versions or in all; ``nan`` where it gave none.

        What stands in for a failed call is no score.
        """
        scored = self.column("state", reward) == SCORED
        if version is not None:
            scored = scored & (self.column("version", reward) == version)
        return np.where(scored, self.column("score", reward), np.nan)

    @property
    def ids(self) -> Whole:
        """The numbers of the completions in the record, in order."""
        return self.column("id").astype(np.int64)
