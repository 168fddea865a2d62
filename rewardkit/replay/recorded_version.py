"""A version's recorded outcomes as columns: what a comparison needs of many completions, without their texts."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from rewardkit.record.reader import RunReader
from rewardkit.record.table import Floats, Whole
from rewardkit.record.values import Version
from rewardkit.replay.compare import Column
from rewardkit.replay.single_scorer import UnitCost
from rewardkit.replay.stored import Stored
from rewardkit.score_batch import shared_costs
from rewardkit.types import Outcome

TRAINING, NOWHERE = 0, -1  # Where an outcome was recorded, beside the numbers of passes


class RecordedVersion(NamedTuple):
    """What a version of a reward said of stored completions; one entry for each of them."""

    version: Version
    column: Column  # Its scores and status
    seconds: Floats  # How long its calls took
    sources: Whole  # `TRAINING`, the number of the newest pass that has it, or `NOWHERE`

    @property
    def is_there(self) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Where it has an outcome."""
        return np.asarray(self.sources != NOWHERE)

    def outcomes(self, run: RunReader, stored: Stored, ids: Sequence[int]) -> dict[int, Outcome]:
        """Return the whole outcomes of some of the completions, by their numbers."""
        sources = dict(zip(ids, self.sources[np.searchsorted(stored.table.ids, ids)].tolist(), strict=True))
        outcomes: dict[int, Outcome] = {}
        for source in set(sources.values()) - {NOWHERE}:
            chosen = [number for number in ids if sources[number] == source]
            if source == TRAINING:
                rows = run.by_id(chosen, [self.version.reward])
                outcomes |= {row.id: row.outcomes[self.version.reward] for row in rows}
            else:
                outcomes |= run.rescored(source, chosen)
        return outcomes

    def cost(self, run: RunReader, stored: Stored, chosen: Whole) -> UnitCost:
        """Return what 1,000 of these take, the completions at some places of the stored ones; a group shares a call."""
        shares = np.ones(len(chosen))
        if self.version.settings.get("kind") == "group":
            keys = np.stack([stored.batches, stored.table.prompts])[:, chosen]
            _, inverse, sizes = np.unique(keys, axis=1, return_inverse=True, return_counts=True)
            shares = sizes[inverse.reshape(-1)].astype(np.float64)
        cached = set(run.cached_calls(self.version)) if (self.sources[chosen] == TRAINING).any() else set()
        ids = stored.table.ids[chosen]
        timed = ~((self.sources[chosen] == TRAINING) & np.isin(ids, np.array(sorted(cached), np.int64)))
        seconds = (self.seconds[chosen] / shares)[timed]
        of_calls = [
            json.loads(metrics)
            for source in np.unique(self.sources[chosen]).tolist()
            for metrics in self._metrics(run, stored, chosen, source)
        ]
        metrics = shared_costs(of_calls, len(chosen))
        return UnitCost(1000 * float(seconds.sum()) / len(seconds) if len(seconds) else None, metrics)

    def _metrics(self, run: RunReader, stored: Stored, chosen: Whole, source: int) -> Collection[str]:
        ids = set(stored.table.ids[chosen][self.sources[chosen] == source].tolist())
        return [metrics for number, metrics in run.call_metrics(self.version, source) if number in ids]


def recorded_version(run: RunReader, version: Version, stored: Stored) -> RecordedVersion:
    """Return a version's outcomes of the training, and where it has none there those of the newest pass that has."""
    table, count = stored.table, len(stored)
    scores, seconds = np.full(count, np.nan), np.full(count, np.nan)
    status, sources = np.full(count, "", "<U1"), np.full(count, NOWHERE, np.int64)
    if version.reward in table.versions:
        own = table.versions[version.reward] == version.number
        scores[own], status[own] = table.scores[version.reward][own], table.status[version.reward][own]
        seconds[own], sources[own] = table.seconds[version.reward][own], TRAINING
    for scoring in reversed(run.passes):
        if (scoring.reward, scoring.version) != (version.reward, version.number):
            continue
        columns = run.pass_columns(scoring.id)
        positions = np.searchsorted(table.ids, columns.ids)
        inside = positions < count
        inside[inside] = table.ids[positions[inside]] == columns.ids[inside]
        inside[inside] = sources[positions[inside]] == NOWHERE
        places = positions[inside]
        scores[places], status[places] = columns.scores[inside], columns.status[inside]
        seconds[places], sources[places] = columns.seconds[inside], scoring.id
    return RecordedVersion(version, Column(scores, status), seconds, sources)
