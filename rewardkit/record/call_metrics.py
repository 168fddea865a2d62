"""The metrics that rewards gave with their scores, as numbers by completion, for conditions, orders and exports."""

from __future__ import annotations

import time
from array import array
from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from rewardkit.record.reader import RunReader
from rewardkit.record.table import Floats
from rewardkit.record.values import Progress

STRETCH = 10_000  # Completions whose metrics are read at once


class CallMetrics:
    """The metrics of the rewards that were asked for; :meth:`update` reads on."""

    def __init__(self) -> None:
        self._by_reward: dict[str, _MetricsOfReward] = {}

    def update(self, run: RunReader, rewards: Iterable[str], budget_s: float | None = None) -> Progress | None:
        """Read the metrics of some rewards that were not read yet, for a limited time.

        Returns how far a reading came that has not ended; ``None`` when all is read.
        """
        until = None if budget_s is None else time.monotonic() + budget_s
        for reward in rewards:
            progress = self._by_reward.setdefault(reward, _MetricsOfReward(reward)).update(run, until)
            if progress.unfinished:
                return progress
        return None

    def names(self, reward: str) -> list[str]:
        """Return the metrics that were read of a reward, in the order in which they came."""
        return list(self._by_reward[reward].numbers) if reward in self._by_reward else []

    @property
    def all_names(self) -> list[str]:
        """All metrics that were read, as conditions name them."""
        return [f"{reward}.{metric}" for reward in self._by_reward for metric in self.names(reward)]

    def values(self, reward: str, metric: str, ids: Floats) -> Floats:
        """Return a metric by the numbers of completions; ``nan`` where a call has none."""
        return self._by_reward[reward].values(metric, ids)


class _MetricsOfReward:
    """The metrics of one reward, each with the numbers of the completions that have it, ascending."""

    def __init__(self, reward: str) -> None:
        self._reward = reward
        self._forget()

    def _forget(self) -> None:
        self._last = 0
        self.ids: dict[str, array[int]] = defaultdict(lambda: array("q"))
        self.numbers: dict[str, array[float]] = defaultdict(lambda: array("d"))

    def update(self, run: RunReader, until: float | None) -> Progress:
        """Read on, at least a stretch of what there is, until a time."""
        last = run.last_id
        if last < self._last:  # a run that goes on from a checkpoint took away what it does again
            self._forget()
        while self._last < last:
            stretch = min(self._last + STRETCH, last)
            for completion, metrics in sorted(
                run.metrics_of(self._reward, self._last, stretch), key=lambda row: row[0]
            ):
                for metric, number in metrics.items():
                    self.ids[metric].append(completion)
                    self.numbers[metric].append(number)
            self._last = stretch
            if until is not None and time.monotonic() > until:
                break
        return Progress("completions", self._last, last)

    def values(self, metric: str, ids: Floats) -> Floats:
        if metric not in self.numbers:
            return np.full(len(ids), np.nan)
        own, numbers = np.array(self.ids[metric], np.int64), np.array(self.numbers[metric], np.float64)
        wanted = ids.astype(np.int64)
        indices = np.minimum(np.searchsorted(own, wanted), len(own) - 1)
        return np.where(own[indices] == wanted, numbers[indices], np.nan)
