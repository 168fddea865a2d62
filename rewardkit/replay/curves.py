"""A run's curves by step, kept while the run is watched: only steps that are new or have changed are read."""

from __future__ import annotations

import bisect
import itertools
import math
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from rewardkit.record.reader import RunReader
from rewardkit.record.values import BatchSums, StepSummary, without_noise
from rewardkit.replay.glance import metric_shown
from rewardkit.types import Cause

Number: TypeAlias = float | None
Place: TypeAlias = tuple[str, str, str]
"""A graph, a line of it, and which of the line's numbers: ``values``, ``low`` or ``high``."""
VALUES, LOW, HIGH = "values", "low", "high"
TOTAL: Place = ("total_reward", "total", VALUES)
WEIGHTED: Place = ("total_reward", "weighted", VALUES)
AT_ONCE = 50_000
"""Completions whose totals are read for one answer."""
AT_FIRST = 10_000
"""The same for the first answer, which reads all else as well."""
_BATCHES = 16
_DIGITS = 6
_LAST = 2**62


class Part(NamedTuple):
    """The curves from a step on.

    Attributes:
        first: The place of the first step in all of them.
        steps: The steps.
        columns: The numbers of each step, by graph and line; ``weighted`` only where it is not the total.
        unscored: Those of the steps at which nothing was scored: only the trainer logged something.
        notes: By graph, words about steps: why there is no mean, or how many of its numbers stand in for failed calls.
        metrics: The trainer's metrics, by name.
        mark: Asked with it, the next answer has only what changed since.
        unread: Batches whose totals were not read yet.
    """

    first: int
    steps: Sequence[int]
    columns: Mapping[Place, Sequence[Number]]
    unscored: Sequence[int]
    notes: Mapping[str, Sequence[tuple[int, str]]]
    metrics: Mapping[str, Sequence[Number]]
    mark: int
    unread: int


class Curves:
    """The curves of one split of a run. Threads may share it.

    Args:
        split: ``"train"`` or ``"eval"``.
    """

    def __init__(self, split: str) -> None:
        self._split = split
        self._lock = threading.Lock()
        self._mark = int(time.time() * 1000)
        self._seen: object = None
        self._forget()

    def part(self, run: RunReader, seen: object, metrics: Sequence[str], after: int | None) -> Part:
        """Return what has changed since an answer's mark; everything where ``after`` is of no answer of these curves.

        Args:
            run: The run, open in this thread.
            seen: A value that changes when something is written to the run.
            metrics: The trainer's metrics that are wanted.
            after: The mark of an answer.
        """
        with self._lock:
            if seen != self._seen or self._waiting or any(name not in self._metrics for name in metrics):
                self._update(run, metrics)
                self._seen = seen
            first = self._changed_since(after)
            steps = self._steps[first:]
            since = steps[0] if steps else math.inf
            return Part(
                first,
                steps,
                {place: column[first:] for place, column in self._columns.items() if place != WEIGHTED or self._weighs},
                [step for step in steps if step not in self._summaries],
                {name: [one for one in notes.items() if one[0] >= since] for name, notes in self._notes.items()},
                {name: [self._metrics[name].get(step) for step in steps] for name in metrics},
                self._mark,
                len(self._waiting),
            )

    def _forget(self) -> None:
        """Begin anew: the run was taken back to an earlier step."""
        self._base = self._mark = self._mark + 1
        self._changes: list[tuple[int, int]] = []
        self._count = self._last_batch = 0
        self._step_of: dict[int, int] = {}
        self._waiting: list[int] = []
        self._steps: list[int] = []
        self._columns: dict[Place, list[Number]] = {}
        self._summaries: dict[int, list[StepSummary]] = {}
        self._sums: dict[int, list[BatchSums]] = defaultdict(list)
        self._weighs = False
        self._notes: dict[str, dict[int, str]] = defaultdict(dict)
        self._metrics: dict[str, dict[int, Number]] = {}

    def _changed_since(self, after: int | None) -> int:
        """Return the place of the first step that has changed since a mark."""
        if after is None or not self._base <= after <= self._mark:
            return 0
        new = itertools.takewhile(lambda change: change[0] > after, reversed(self._changes))
        first = min((step for _, step in new), default=None)
        return len(self._steps) if first is None else bisect.bisect_left(self._steps, first)

    def _update(self, run: RunReader, metrics: Sequence[str]) -> None:
        count, new = run.batches(self._split, self._last_batch)
        if count != self._count + len(new):  # some were taken away
            self._forget()
            count, new = run.batches(self._split)
        self._count = count
        stepped = {batch: step for batch, step in new if step is not None}
        changed = [*self._read_summaries(run, stepped.values())]
        self._step_of |= stepped
        self._waiting += stepped
        self._last_batch = max((batch for batch, _ in new), default=self._last_batch)
        changed += self._read_sums(run)
        changed += self._read_metrics(run, metrics)
        if changed:
            self._mark += 1
            self._fill(min(changed))
            weighs = self._columns.get(WEIGHTED) != self._columns.get(TOTAL)
            self._changes.append((self._mark, min(changed) if weighs == self._weighs else self._steps[0]))
            self._weighs = weighs

    def _read_summaries(self, run: RunReader, steps: Iterable[int]) -> Iterator[int]:
        since = min(steps, default=None)
        if since is None:
            return
        found = (one for one in run.summaries(split=self._split, since=since) if one.step is not None)
        for step, parts in itertools.groupby(found, lambda one: one.step):
            if step is not None:
                self._summaries[step] = list(parts)
                yield step

    def _read_sums(self, run: RunReader) -> Iterator[int]:
        """Read the totals of batches that wait for it, as many as one answer may take."""
        read, most = 0, AT_ONCE if self._sums else AT_FIRST
        while self._waiting and read < most:
            some, self._waiting = self._waiting[:_BATCHES], self._waiting[_BATCHES:]
            for one in run.batch_sums(some[0], some[-1], self._split):
                if one.batch in self._step_of:
                    self._sums[self._step_of[one.batch]].append(one)
                    read += one.completions
                    yield self._step_of[one.batch]

    def _read_metrics(self, run: RunReader, names: Sequence[str]) -> Iterator[int]:
        """Read the new values of the trainer's metrics, and all values of those that are wanted for the first time.

        The trainer logs a training step after it, under the number of steps done by then: one more than the record's.
        """
        late = 1 if self._split == "train" else 0
        for name in dict.fromkeys([*self._metrics, *names]):
            kept = self._metrics.get(name, {})
            since = max(kept, default=0) + late if kept else 0
            new = metric_shown(run, name, self._split, (since, _LAST))
            values = {step - late: _rounded(value) for step, value in new}
            yield from (step for step, value in values.items() if step not in kept or kept[step] != value)
            self._metrics[name] = kept | values

    def _fill(self, since: int) -> None:
        """Fill the columns anew from a step on."""
        known = sorted({*self._summaries, *itertools.chain.from_iterable(self._metrics.values())})
        first = bisect.bisect_left(known, since)
        self._steps = known
        for column in self._columns.values():
            del column[first:]
        for notes in self._notes.values():
            for step in [one for one in notes if one >= since]:
                del notes[step]
        for place in range(first, len(known)):
            for key, value in self._cells(known[place]):
                column = self._columns.setdefault(key, [])
                column += [None] * (place - len(column))
                column.append(_rounded(value))
        for column in self._columns.values():
            column += [None] * (len(known) - len(column))

    def _cells(self, step: int) -> Iterator[tuple[Place, Number]]:
        """Yield what is known of a step."""
        if step in self._sums:
            cells = dict(_total_cells(self._sums[step]))
            yield from cells.items()
            if cells[TOTAL] is None:
                some = any(one.scored for one in self._sums[step])
                words = "no completion has a total" if some else "no reward that counts gave a score"
                self._notes["total_reward"][step] = words
        parts = sorted(self._summaries.get(step, ()), key=lambda one: one.reward)
        for name, those in itertools.groupby(parts, lambda one: one.reward):
            of_reward = list(those)
            yield from _reward_cells(name, of_reward)
            if words := _note(of_reward):
                self._notes[f"reward/{name}"][step] = words


def _total_cells(batches: Sequence[BatchSums]) -> Iterator[tuple[Place, Number]]:
    scored = batches if any(one.scored for one in batches) else ()  # defaults alone are no total
    total = _mean((one.totals, one.total) for one in scored)
    std = _std(scored, total)
    yield TOTAL, total
    lowest = min((one.low for one in scored if one.low is not None), default=None)
    highest = max((one.high for one in scored if one.high is not None), default=None)
    yield from _band(("total_reward", "total"), total, std, lowest, highest)
    yield WEIGHTED, _mean((one.rewards, one.reward) for one in scored)
    yield ("total_reward_std", "total", VALUES), std
    length = _mean((one.lengths, one.tokens) for one in batches)
    if length is not None:
        yield ("length", "mean", VALUES), length
        yield ("length", "mean", LOW), min(one.shortest for one in batches if one.shortest is not None)
        yield ("length", "mean", HIGH), max(one.longest for one in batches if one.longest is not None)
    cut = _mean((one.endings, one.truncated) for one in batches)
    if cut is not None:
        yield ("truncated", "share", VALUES), cut


def _reward_cells(name: str, parts: Sequence[StepSummary]) -> Iterator[tuple[Place, Number]]:
    mean = _mean((one.counted, one.mean) for one in parts)
    std = parts[0].std if len(parts) == 1 else None  # over two versions it is unknown
    lowest = min((one.low for one in parts if one.low is not None), default=None)
    highest = max((one.high for one in parts if one.high is not None), default=None)
    yield (f"reward/{name}", "mean", VALUES), mean
    yield from _band((f"reward/{name}", "mean"), mean, std, lowest, highest)
    yield (f"reward/{name}", "lowest", VALUES), lowest
    yield (f"reward/{name}", "highest", VALUES), highest
    failed = sum(sum(one.failed.values()) for one in parts)
    skipped = sum(one.skipped for one in parts)
    calls = failed + skipped + sum(one.scored for one in parts)
    if calls:
        yield ("failed", name, VALUES), failed / calls
        yield ("timeouts", name, VALUES), sum(one.failed.get(Cause.TIMEOUT, 0) for one in parts) / calls
        yield ("skipped", name, VALUES), skipped / calls
    yield ("time_p50", name, VALUES), max((one.p50_s for one in parts if one.p50_s is not None), default=None)
    yield ("time_p95", name, VALUES), max((one.p95_s for one in parts if one.p95_s is not None), default=None)
    groups = sum(one.groups for one in parts)
    if groups:
        yield ("flat_groups", name, VALUES), sum(one.flat_groups for one in parts) / groups


def _band(
    line: tuple[str, str], mean: Number, std: Number, lowest: Number, highest: Number
) -> Iterator[tuple[Place, Number]]:
    """Yield one standard deviation to either side of a mean, no further than there are scores."""
    if mean is None or std is None or lowest is None or highest is None:
        yield from (((*line, LOW), None), ((*line, HIGH), None))
    else:
        yield from (((*line, LOW), max(mean - std, lowest)), ((*line, HIGH), min(mean + std, highest)))


def _note(parts: Sequence[StepSummary]) -> str:
    """Return why a reward has no mean at a step, or what of its mean no call gave; nothing where all is as usual."""
    told = sum(one.counted for one in parts if one.mean is not None)
    if told:
        instead = sum(one.stand_ins for one in parts if one.mean is not None)
        return f"{instead:,} of {told:,} stand in for failed calls" if instead else ""
    causes: dict[str, int] = defaultdict(int)
    for cause, number in itertools.chain.from_iterable(one.failed.items() for one in parts):
        causes[cause] += number
    counts = {
        "scored, which the trainer left out": sum(one.scored for one in parts),
        **{f"failed ({cause})": number for cause, number in sorted(causes.items())},
        "skipped": sum(one.skipped for one in parts),
    }
    words = [(number, what) for what, number in counts.items() if number]
    if len(words) == 1:
        return f"all {words[0][0]:,} {words[0][1]}"
    return ", ".join(f"{number:,} {what}" for number, what in words) or "no call"


def _mean(parts: Iterable[tuple[int, Number]]) -> Number:
    known = [(size, value) for size, value in parts if size and value is not None]
    return sum(size * value for size, value in known) / sum(size for size, _ in known) if known else None


def _std(batches: Sequence[BatchSums], mean: Number) -> Number:
    """Return the standard deviation (``ddof=1``) of the totals of several batches."""
    size = sum(one.totals for one in batches)
    if mean is None or size < 2:
        return None
    squares = 0.0
    for one in batches:
        if one.total is not None and one.squares is not None and one.above is not None:
            squares += max(0.0, one.squares - one.totals * one.above**2) + one.totals * (one.total - mean) ** 2
    return without_noise(math.sqrt(squares / (size - 1)), mean)


def _rounded(value: Any) -> Number:
    """Return a number with the digits that a graph can show; ``None`` for anything but a finite number."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.{_DIGITS}g}")
