"""A run's curves by step, kept while the run is watched: only steps that are new or have changed are read."""

from __future__ import annotations

import bisect
import functools
import itertools
import math
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from rewardkit.record.reader import RunReader
from rewardkit.record.sums import mean_of
from rewardkit.record.values import NO_CALLS, BatchSums, RewardCalls, StepSummary, gap_reason, without_noise
from rewardkit.replay.glance import metric_points
from rewardkit.types import Cause

Number: TypeAlias = float | None
Place: TypeAlias = tuple[str, str, str]
"""A graph, a line of it, and which of the line's numbers: ``values``, ``low`` or ``high``."""
VALUES, LOW, HIGH = "values", "low", "high"
TOTAL: Place = ("total_reward", "total", VALUES)
PLAIN: Place = ("total_reward", "plain sum", VALUES)
AT_ONCE = 50_000  # Completions whose totals are read for one answer
AT_FIRST = 10_000  # The same for the first answer, which reads all else as well
_BATCHES = 16
_DIGITS = 6
_LAST = 2**62


class Part(NamedTuple):
    """The curves from a step on.

    Attributes:
        columns: The numbers of each step, by graph and line; ``plain sum`` only where it is not the total, which is the
            weighted sum that the trainer uses.
        notes: By graph, words about steps: why there is no mean, or which calls failed and are not in it.
    """

    first: int  # The place of the first step in all of them
    steps: Sequence[int]  # The steps
    columns: Mapping[Place, Sequence[Number]]
    unscored: Sequence[int]  # Those of the steps at which nothing was scored: only the trainer logged something
    notes: Mapping[str, Sequence[tuple[int, str]]]
    metrics: Mapping[str, Sequence[Number]]  # The trainer's metrics, by name
    mark: int  # Asked with it, the next answer has only what changed since
    unread: int  # Batches whose totals were not read yet


class _Change(NamedTuple):
    mark: int
    first_step: int  # The first step at which a curve changed


class Curves:
    """The curves of one split of a run, ``"train"`` or ``"eval"``. Threads may share it."""

    def __init__(self, split: str) -> None:
        self._split = split
        self._lock = threading.Lock()
        self._mark = int(time.time() * 1000)
        self._seen: object = None
        self._forget()

    def part(self, run: RunReader, seen: object, metrics: Sequence[str], after: int | None) -> Part:
        """Return the curves from the first change after a mark on, or all; ``seen`` differs once the run grew."""
        with self._lock:
            if seen != self._seen or self._waiting or any(name not in self._metrics for name in metrics):
                self._update(run, metrics)
                self._seen = seen
            first = self._first_changed(after)
            steps = self._steps[first:]
            since = steps[0] if steps else math.inf
            return Part(
                first,
                steps,
                {key: column[first:] for key, column in self._columns.items() if key != PLAIN or self._are_weighted},
                [step for step in steps if step not in self._summaries],
                {name: [note for note in notes.items() if note[0] >= since] for name, notes in self._notes.items()},
                {name: [self._metrics[name].get(step) for step in steps] for name in metrics},
                self._mark,
                len(self._waiting),
            )

    def _forget(self) -> None:
        """Forget all curves, because the run was taken back to an earlier step."""
        self._base = self._mark = self._mark + 1
        self._changes: list[_Change] = []
        self._count = self._last_batch = 0
        self._step_of: dict[int, int] = {}
        self._waiting: list[int] = []
        self._steps: list[int] = []
        self._columns: dict[Place, list[Number]] = {}
        self._summaries: dict[int, list[StepSummary]] = {}
        self._sums: dict[int, list[BatchSums]] = defaultdict(list)
        self._are_weighted = False  # Whether the plain sums are others than the totals, and so are told
        self._notes: dict[str, dict[int, str]] = defaultdict(dict)
        self._metrics: dict[str, dict[int, Number]] = {}

    def _first_changed(self, after: int | None) -> int:
        """Return the index of the first step that has changed since a mark; 0 for an unknown mark."""
        if after is None or not self._base <= after <= self._mark:
            return 0
        new = itertools.takewhile(lambda change: change.mark > after, reversed(self._changes))
        first = min((change.first_step for change in new), default=None)
        return len(self._steps) if first is None else bisect.bisect_left(self._steps, first)

    def _update(self, run: RunReader, metrics: Sequence[str]) -> None:
        """Read what is new in the run, from the beginning where batches were taken away, and note the changes."""
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
            are_weighted = self._columns.get(PLAIN) != self._columns.get(TOTAL)
            is_same_set = are_weighted == self._are_weighted  # else a curve came or went, at all steps
            self._changes.append(_Change(self._mark, min(changed) if is_same_set else self._steps[0]))
            self._are_weighted = are_weighted

    def _read_summaries(self, run: RunReader, steps: Iterable[int]) -> Iterator[int]:
        """Read the summaries from the first new step on; yield the steps that were read."""
        since = min(steps, default=None)
        if since is None:
            return
        summaries = (summary for summary in run.summaries(split=self._split, since=since) if summary.step is not None)
        for step, parts in itertools.groupby(summaries, lambda summary: summary.step):
            if step is not None:
                self._summaries[step] = list(parts)
                yield step

    def _read_sums(self, run: RunReader) -> Iterator[int]:
        """Read the totals of waiting batches, as many as one answer may take; yield their steps."""
        read, most = 0, AT_ONCE if self._sums else AT_FIRST
        while self._waiting and read < most:
            batches, self._waiting = self._waiting[:_BATCHES], self._waiting[_BATCHES:]
            for sums in run.batch_sums(batches[0], batches[-1], self._split):
                if sums.batch in self._step_of:
                    self._sums[self._step_of[sums.batch]].append(sums)
                    read += sums.completions
                    yield self._step_of[sums.batch]

    def _read_metrics(self, run: RunReader, names: Sequence[str]) -> Iterator[int]:
        """Read new values of the trainer's metrics, or all of a new name; yield the steps whose values changed.

        The trainer logs a training step after it, under the number of steps done by then: one more than the record's.
        """
        late = 1 if self._split == "train" else 0
        for name in dict.fromkeys([*self._metrics, *names]):
            before = self._metrics.get(name, {})
            since = max(before, default=0) + late if before else 0
            new = metric_points(run, name, self._split, (since, _LAST))
            values = {step - late: _rounded(value) for step, value in new}
            yield from (step for step, value in values.items() if step not in before or before[step] != value)
            self._metrics[name] = before | values

    def _fill(self, since: int) -> None:
        """Compute the columns and notes again from a step on."""
        steps = sorted({*self._summaries, *itertools.chain.from_iterable(self._metrics.values())})
        first = bisect.bisect_left(steps, since)
        self._steps = steps
        for column in self._columns.values():
            del column[first:]
        for notes in self._notes.values():
            for step in [step_after for step_after in notes if step_after >= since]:
                del notes[step]
        for index in range(first, len(steps)):
            for key, value in self._cells(steps[index]):
                column = self._columns.setdefault(key, [])
                column += [None] * (index - len(column))
                column.append(_rounded(value))
        for column in self._columns.values():
            column += [None] * (len(steps) - len(column))

    def _cells(self, step: int) -> Iterator[tuple[Place, Number]]:
        """Yield the curves' values at a step, and set the notes on those that are missing or have defaults."""
        if step in self._sums:
            calls = self._calls_of(step)
            gap = gap_reason(calls)
            cells = dict(_total_cells(self._sums[step], has_total=not gap))
            yield from cells.items()
            failures = "; ".join(f"{name}: {own.failures}" for name, own in calls.items() if own.failed)
            note = gap or failures
            if cells[TOTAL] is None and not note:
                has_scores = any(own.scored for own in calls.values())
                note = "no completion has a total" if has_scores else "no reward that counts gave a score"
            if note:
                self._notes["total_reward"][step] = note
        parts = sorted(self._summaries.get(step, ()), key=lambda summary: summary.reward)
        for name, summaries in itertools.groupby(parts, lambda summary: summary.reward):
            of_reward = list(summaries)
            yield from _reward_cells(name, of_reward)
            has_mean = any(part.mean is not None for part in of_reward)
            calls_of_reward = functools.reduce(RewardCalls.__add__, (part.calls for part in of_reward), NO_CALLS)
            if note := calls_of_reward.failures if has_mean else _missing_note(calls_of_reward):
                self._notes[f"reward/{name}"][step] = note

    def _calls_of(self, step: int) -> dict[str, RewardCalls]:
        """Return what became of a step's calls, by each reward that counts in the total."""
        weighed = frozenset[str]().union(*(sums.weighed for sums in self._sums[step]))
        calls: dict[str, RewardCalls] = {}
        for part in self._summaries.get(step, ()):
            if part.reward in weighed:
                calls[part.reward] = calls.get(part.reward, NO_CALLS) + part.calls
        return calls


def _total_cells(batches: Sequence[BatchSums], *, has_total: bool) -> Iterator[tuple[Place, Number]]:
    """Yield the values of the totals, the lengths and the truncation at a step, from its batches."""
    scored = batches if has_total else ()  # defaults alone are no total
    total = mean_of((batch.totals, batch.total) for batch in scored)
    std = _std(scored, total)
    yield TOTAL, total
    lowest = min((batch.low for batch in scored if batch.low is not None), default=None)
    highest = max((batch.high for batch in scored if batch.high is not None), default=None)
    yield from _band(("total_reward", "total"), total, std, lowest, highest)
    yield PLAIN, mean_of((batch.plain_sums, batch.plain_sum) for batch in scored)
    yield ("total_reward_std", "total", VALUES), std
    length = mean_of((batch.lengths, batch.tokens) for batch in batches)
    if length is not None:
        yield ("length", "mean", VALUES), length
        yield ("length", "mean", LOW), min(batch.shortest for batch in batches if batch.shortest is not None)
        yield ("length", "mean", HIGH), max(batch.longest for batch in batches if batch.longest is not None)
    cut = mean_of((batch.endings, batch.truncated) for batch in batches)
    if cut is not None:
        yield ("truncated", "share", VALUES), cut


def _reward_cells(name: str, parts: Sequence[StepSummary]) -> Iterator[tuple[Place, Number]]:
    """Yield a reward's values at a step, from the summaries of its versions there."""
    mean = mean_of((part.counted, part.mean) for part in parts)
    std = parts[0].std if len(parts) == 1 else None  # over two versions it is unknown
    lowest = min((part.low for part in parts if part.low is not None), default=None)
    highest = max((part.high for part in parts if part.high is not None), default=None)
    yield (f"reward/{name}", "mean", VALUES), mean
    yield from _band((f"reward/{name}", "mean"), mean, std, lowest, highest)
    yield (f"reward/{name}", "lowest", VALUES), lowest
    yield (f"reward/{name}", "highest", VALUES), highest
    failed = sum(sum(part.failed.values()) for part in parts)
    skipped = sum(part.skipped for part in parts)
    calls = failed + skipped + sum(part.scored for part in parts)
    if calls:
        yield ("failed", name, VALUES), failed / calls
        yield ("timeouts", name, VALUES), sum(part.failed.get(Cause.TIMEOUT, 0) for part in parts) / calls
        yield ("skipped", name, VALUES), skipped / calls
    yield ("time_p50", name, VALUES), max((part.p50_s for part in parts if part.p50_s is not None), default=None)
    yield ("time_p95", name, VALUES), max((part.p95_s for part in parts if part.p95_s is not None), default=None)
    groups = sum(part.groups for part in parts)
    if groups:
        yield ("flat_groups", name, VALUES), sum(part.flat_groups for part in parts) / groups


def _band(
    line: tuple[str, str], mean: Number, std: Number, lowest: Number, highest: Number
) -> Iterator[tuple[Place, Number]]:
    """Yield the ends of a band, a standard deviation to either side of a mean, no further than there are scores."""
    if mean is None or std is None or lowest is None or highest is None:
        yield from (((*line, LOW), None), ((*line, HIGH), None))
    else:
        yield from (((*line, LOW), max(mean - std, lowest)), ((*line, HIGH), min(mean + std, highest)))


def _missing_note(calls: RewardCalls) -> str:
    """Return why a reward has no mean at a step."""
    counts = {
        "scored, which the trainer left out": calls.scored,
        **{f"failed ({cause})": number for cause, number in sorted(calls.failed.items())},
        "skipped": calls.skipped,
    }
    phrases = [(number, what) for what, number in counts.items() if number]
    if len(phrases) == 1:
        return f"all {phrases[0][0]:,} {phrases[0][1]}"
    return ", ".join(f"{number:,} {what}" for number, what in phrases) or "no call"


def _std(batches: Sequence[BatchSums], mean: Number) -> Number:
    """Return the standard deviation (``ddof=1``) of the totals of several batches; ``None`` where squares overflow."""
    size = sum(batch.totals for batch in batches)
    if mean is None or size < 2:
        return None
    squares = 0.0
    for batch in batches:
        if batch.total is not None and batch.squares is not None and batch.above is not None:
            if not math.isfinite(batch.squares):
                return None
            away = batch.total - mean
            squares += max(0.0, batch.squares - batch.totals * batch.above**2) + batch.totals * away * away
    return without_noise(math.sqrt(squares / (size - 1)), mean)


def _rounded(value: float | None) -> Number:
    """Return a number with the digits that a graph can show; ``None`` for anything but a finite number."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.{_DIGITS}g}")
