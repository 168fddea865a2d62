"""The runner over a run: completions go in step by step, and flags come out every few steps.

A baseline is the first steps since the versions of the rewards last changed, so a new reward is never held against an
old one. A flag that comes and goes is one flag with its steps, and is told once; nothing stops a training.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from rewardkit.errors import RewardDefinitionError
from rewardkit.health.coverage import CallCounts, Coverage, Unflagged, calls_of
from rewardkit.health.detectors import DETECTORS, flags_of, missing_need
from rewardkit.health.evidence import (
    ErrorsOf,
    Evidence,
    PromptsOf,
    Ranges,
    Sampled,
    TextsOf,
    Undeclared,
    by_step,
    join_tables,
    no_errors,
    nothing,
)
from rewardkit.health.evidence import lengths as lengths_of
from rewardkit.health.flag import Flag, OnFlag
from rewardkit.health.gradient import unflagged_share
from rewardkit.record.audit_notes import AuditNote
from rewardkit.record.table import CompletionTable, Floats

WINDOW_STEPS = 10  # Steps of a window, and from one look to the next
BASELINE_STEPS = 20  # Steps of a baseline; half of them are enough to begin with
HISTORY_STEPS = 10_000  # Steps whose means trends look at, at most
_MOST_PROMPTS = 100_000  # Prompts that are remembered to see whether one comes again


class Watch:
    """Watches a run's completions as they are scored.

    Args:
        texts: Where the completions' texts come from.
        prompts: Where prompts and columns come from.
        on_flag: Called with each flag as it first comes up; not again where it stays, or comes back.
        every: Steps of a window, and from one look to the next.
        metrics: Returns the trainer's metrics between two steps, by the trainer's names.
        again: Returns, by reward, the scores of a second scoring of a table's completions.
        audits: By reward, what an audit of the run's completions found.
        errors: Where the messages of failed calls come from.
        ranges: By reward, its ``score_range``; without those that declare none.
        undeclared: By reward without one, which rewards in it declare none.

    Raises:
        RewardDefinitionError: ``every`` is below 1.
    """

    def __init__(
        self,
        *,
        texts: TextsOf = nothing,
        prompts: PromptsOf = nothing,
        on_flag: OnFlag | None = None,
        every: int = WINDOW_STEPS,
        metrics: Callable[[int, int], Mapping[str, list[float]]] | None = None,
        again: Callable[[CompletionTable], Mapping[str, Floats]] | None = None,
        audits: Mapping[str, AuditNote] | None = None,
        errors: ErrorsOf = no_errors,
        ranges: Ranges | None = None,
        undeclared: Undeclared | None = None,
    ) -> None:
        if every < 1:
            raise RewardDefinitionError(f"Watch: every={every!r}: expected a number of steps, 1 or more")
        self._empty = Evidence(
            _no_completions(),
            texts,
            prompts,
            audits=audits or {},
            errors=errors,
            ranges=ranges or {},
            undeclared=undeclared or {},
        )
        self._on_flag, self._every, self._metrics_of, self._again = on_flag, every, metrics, again
        self._recent: dict[int, list[CompletionTable]] = {}
        self._previous: dict[int, list[CompletionTable]] = {}  # steps of the last look, to fill up a short window
        self._first_tables: list[CompletionTable] = []
        self._baseline: Evidence | None = None
        self._series: dict[str, list[float]] = {}
        self._lengths = np.empty(0)
        self._versions: tuple[tuple[str, int], ...] | None = None
        self._last: int | None = None
        self._raised: dict[tuple[str, str | None], Flag] = {}
        self._active: set[tuple[str, str | None]] = set()
        self._reasons: dict[str, str | None] = {}
        self._seen = _Seen()

    @property
    def flags(self) -> list[Flag]:
        """What came up, oldest first: one flag for each detector and reward, with the number of its last window."""
        return list(self._raised.values())

    @property
    def looks(self) -> int:
        """Windows that were looked at."""
        return self._seen.coverage.windows

    @property
    def looked(self) -> list[str]:
        """The detectors that looked at a window or more."""
        return [name for name in DETECTORS if name not in self.not_looked_at]

    @property
    def coverage(self) -> Coverage:
        """How much was looked at."""
        return self._seen.coverage

    @property
    def not_looked_at(self) -> dict[str, str]:
        """The detectors that could look at no window, and why not."""
        return {name: reason for name, reason in self._reasons.items() if reason is not None}

    def metrics(self) -> dict[str, float]:
        """Return ``health/<detector>`` for each detector: on how many rewards its flag is up."""
        up = [name for name, _ in self._active]
        return {f"health/{name}": float(up.count(name)) for name in DETECTORS}

    def observe(self, table: CompletionTable) -> list[Flag]:
        """Add completions of one step or more, in the order of the steps; return the new flags.

        Several tables of one step are of several processes. A step that was there before, such as after going back to
        a checkpoint, begins anew with all steps after it.
        """
        flags = []
        for step in np.unique(table.steps).tolist():
            flags += self._take(int(step), table.where(table.steps == step))
        return flags

    def finish(self) -> list[Flag]:
        """Look at the steps that no window had yet, with steps before them where they are few; return what comes up."""
        return self._look() if self._recent else []

    def pass_over(self, means: Mapping[str, Sequence[float]]) -> None:
        """Skip steps of which only the means are known, and forget the flags; the steps before stay the baseline.

        Args:
            means: By reward, the mean of each step that is left out; ``nan`` for a step without scores.
        """
        self.finish()
        self._raised, self._active, self._previous, self._seen = {}, set(), {}, _Seen()
        self._lengths = np.r_[self._lengths, np.nan]
        for name, series in self._series.items():
            series.extend(means.get(name, ()))

    def _take(self, step: int, table: CompletionTable) -> list[Flag]:
        """Add one step's completions; look where a window is full or a version changed, and return new flags."""
        flags: list[Flag] = []
        if self._last is not None and step < self._last:
            self._recent = {at: tables for at, tables in self._recent.items() if at < step}
        elif step != self._last:
            versions = _versions(table)
            if self._versions is not None and versions != self._versions:
                flags += self._look() if self._recent else []
                self._restart(versions)  # scores of two versions cannot be compared
            elif len(self._recent) >= self._every:
                flags += self._look()
            self._versions = versions
        self._last = step
        self._recent.setdefault(step, []).append(table)
        return flags

    def _restart(self, versions: tuple[tuple[str, int], ...]) -> None:
        """Begin a new baseline, because a reward has a new version; keep the means of the other rewards."""
        same = {name for name, _ in set(versions) & set(self._versions or ())}
        self._series = {name: means for name, means in self._series.items() if name in same}
        self._first_tables, self._baseline, self._previous, self._lengths = [], None, {}, np.empty(0)

    def _look(self) -> list[Flag]:
        """Run the detectors on the steps since the last look, which become history; return the new flags."""
        new = join_tables([table for tables in self._recent.values() for table in tables])
        self._add_to_series(new)
        lacking_steps = self._every - len(self._recent)
        filled = list(self._previous.values())[-lacking_steps:] if lacking_steps > 0 else []
        table = join_tables([*(part for tables in filled for part in tables), new])
        window = replace(
            self._empty,
            table=table,
            before=self._steps_before(table),
            series={name: np.array(means) for name, means in self._series.items()},
            metrics=self._metrics_of(int(table.steps.min()), int(table.steps.max())) if self._metrics_of else {},
            again=self._again(table) if self._again else {},
            _cache={},
        )
        self._lengths = np.r_[self._lengths, by_step(lengths_of(window), table)[-len(self._recent) :]][-HISTORY_STEPS:]
        window = replace(window, lengths_by_step=self._lengths)
        baseline = self._baseline if self._steps_of_baseline() >= BASELINE_STEPS // 2 else None
        flags = flags_of(window, baseline)
        for name, detector in DETECTORS.items():
            if self._reasons.get(name, "") is not None:  # it has looked at no window yet
                self._reasons[name] = missing_need(detector, window, baseline)
        if self._steps_of_baseline() < BASELINE_STEPS:
            self._first_tables.append(new)
            self._baseline = replace(self._empty, table=join_tables(self._first_tables), _cache={})
        self._previous, self._recent = self._recent, {}
        reason = unflagged_share(window, baseline)
        span = (int(table.steps.min()), int(table.steps.max()))
        self._seen.add(new, window.sampled(), Unflagged(span, reason) if reason else None)
        return self._update(flags)

    def _steps_before(self, table: CompletionTable) -> Evidence | None:
        """Return the steps of the last look that are not in a window's table; ``None`` without any."""
        first = int(table.steps.min())
        parts = [part for step, tables in self._previous.items() if step < first for part in tables]
        return replace(self._empty, table=join_tables(parts), _cache={}) if parts else None

    def _add_to_series(self, table: CompletionTable) -> None:
        for name, scores in table.scores.items():
            series = self._series.setdefault(name, [])
            series.extend(by_step(scores, table).tolist())
            del series[:-HISTORY_STEPS]  # a run of any length takes the same memory

    def _steps_of_baseline(self) -> int:
        return sum(len(np.unique(table.steps)) for table in self._first_tables)

    def _update(self, flags: list[Flag]) -> list[Flag]:
        """Update the flags that came up; return those that never did before, after handing them to ``on_flag``."""
        new = []
        for flag in flags:
            key = flag.detector, flag.reward
            if key in self._raised:
                self._raised[key] = self._raised[key].again(flag)
            else:
                self._raised[key] = flag
                new.append(flag)
        self._active = {(flag.detector, flag.reward) for flag in flags}
        if self._on_flag is not None:
            for flag in new:
                self._on_flag(flag)
        return new


class _Seen:
    """Counts what the windows of a watch cover."""

    def __init__(self) -> None:
        self.coverage = Coverage()
        self._prompts: set[int] = set()

    def add(self, table: CompletionTable, sample: Sampled, unflagged: Unflagged | None) -> None:
        """Add a window's new completions, and the sample whose texts were read, which may have older ones too."""
        before, steps = self.coverage, np.unique(table.steps)
        texts, drawn = (int(np.isin(part.steps, steps).sum()) for part in (sample.table, sample.drawn))
        _, firsts = np.unique(table.groups, return_index=True)
        prompts = table.prompts[firsts].tolist()
        repeats = before.repeats or len(set(prompts)) < len(prompts) or not self._prompts.isdisjoint(prompts)
        if len(self._prompts) < _MOST_PROMPTS:
            self._prompts.update(prompts)
        first = int(steps.min()) if before.steps is None else min(before.steps[0], int(steps.min()))
        self.coverage = replace(
            before,
            completions=before.completions + len(table),
            steps=(first, int(steps.max())),
            step_count=before.step_count + len(steps),
            windows=before.windows + 1,
            texts=before.texts + texts,
            texts_missing=before.texts_missing + drawn - texts,
            repeats=repeats,
            unflagged=unflagged or before.unflagged,
            calls=dict(before.calls)
            | {name: before.calls.get(name, CallCounts()) + counts for name, counts in calls_of(table).items()},
        )


def _versions(table: CompletionTable) -> tuple[tuple[str, int], ...]:
    """Return each reward's version in a table of one step, without rewards that were not asked."""
    newest = ((name, int(column.max(initial=0))) for name, column in table.versions.items())
    return tuple(sorted((name, version) for name, version in newest if version))


def _no_completions() -> CompletionTable:
    ids, floats = np.empty(0, np.int64), np.empty(0)
    return CompletionTable(ids, ids, ids, ids, floats, floats, floats, floats, floats, {}, {}, {}, {}, {}, {})
