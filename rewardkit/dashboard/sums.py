"""The sums of a run's steps; while the run goes on, only new steps are read."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from rewardkit.dashboard.readers import OpenRun
from rewardkit.record.place import Stamp
from rewardkit.record.values import StepSummary
from rewardkit.replay.recorded_run import Run


def summaries(opened: OpenRun, split: str = "train") -> Sequence[StepSummary]:
    """Return each step's sums of a split, as :meth:`~rewardkit.record.reader.RunReader.summaries` gives them."""
    sums = opened.cache.get(("sums", split), 0, lambda: StepSums(split))
    return sums.newest(opened.run, opened.version)


class StepSums:
    """The sums of one split, for all threads; only going on from a checkpoint takes batches away."""

    def __init__(self, split: str) -> None:
        self._split = split
        self._lock = threading.Lock()
        self._version: Stamp | None = None
        self._batches: tuple[int, int] = (0, 0)
        self._rows: tuple[StepSummary, ...] = ()

    def newest(self, run: Run, version: Stamp) -> Sequence[StepSummary]:
        """Return all sums; only the steps to which batches came are read again."""
        with self._lock:
            if version != self._version:
                self._rows = self._read(run)
                self._version = version
            return self._rows

    def _read(self, run: Run) -> tuple[StepSummary, ...]:
        count, last = self._batches
        total, new = run.batches(self._split, after=last)
        self._batches = (total, new[-1][0] if new else last)
        steps = [step for _, step in new if step is not None]
        if count + len(new) != total or len(steps) < len(new):
            return tuple(run.summaries(split=self._split))
        if not steps:
            return self._rows
        first = min(steps)
        before = (row for row in self._rows if row.step is None or row.step < first)
        return (*before, *run.summaries(split=self._split, since=first))
