"""Sums of a run by step and by batch: what curves are made of, without any completion being opened."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from rewardkit.record import questions
from rewardkit.record.call_costs import Cost, sum_costs
from rewardkit.record.old_sums import OWN_SCORES, own_sums
from rewardkit.record.opened_record import PAGE, OpenedRecord
from rewardkit.record.outcomes import weights_in
from rewardkit.record.step_sums import step_summary
from rewardkit.record.table import Whole
from rewardkit.record.values import (
    NO_CALLS,
    BatchSums,
    FailedKind,
    FileMeans,
    MeasuredCall,
    PromptEpoch,
    RewardCalls,
    StepSummary,
    Version,
    gap_reason,
)
from rewardkit.types import Unanswered

Point = TypeVar("Point")
_PAGE_CALLS = 50_000  # Completions whose calls are read at once


class RecordedSums(OpenedRecord):
    """The part of a reader that tells of steps, batches and metrics."""

    def count(self) -> int:
        """Return how many completions there are."""
        return int(self._rows("SELECT count(*) FROM completion")[0][0])

    def steps(self, split: str = "train") -> list[int]:
        """Return the steps at which something was scored, in order."""
        rows = self._rows("SELECT DISTINCT step FROM batch WHERE split = ? AND step IS NOT NULL ORDER BY step", split)
        return [step for (step,) in rows]

    def duration_s(self, steps: tuple[int, int], split: str = "train") -> float:
        """Return the seconds from the first to the last scoring of a batch from one step to another."""
        query = "SELECT max(scored) - min(scored) FROM batch WHERE split = ? AND step BETWEEN ? AND ?"
        ((seconds,),) = self._rows(query, split, *steps)
        return float(seconds or 0.0)

    def summaries(
        self, reward: str | None = None, split: str | None = "train", *, since: int | None = None
    ) -> list[StepSummary]:
        """Return each step's sums over all ranks, oldest first, of one reward or of all.

        Args:
            reward: The reward; all unless given.
            split: ``"train"``, ``"eval"``, or ``None`` for both.
            since: From this step on; all unless given.
        """
        return self._summaries(self._summary_rows(reward, split, since))

    def series(self, reward: str, split: str = "train", most: int | None = None) -> list[tuple[int, float]]:
        """Return a reward's mean by step, of those steps at which it scored: the quick way to a curve.

        The means are those of :meth:`summaries`.

        Args:
            reward: The reward.
            split: ``"train"`` or ``"eval"``.
            most: At most so many steps, 2 or more, evenly chosen with the first and the last; all unless given.
        """
        points = thin(self._tuples(questions.SERIES, split, reward), most)
        old = self._old_sessions()
        if not old or not self._tuples(questions.DEFAULTS.format(",".join("?" * len(old))), split, reward, *old):
            return points
        chosen = {step for step, _ in points}
        rows = [row for row in self._summary_rows(reward, split) if row["step"] in chosen]
        steps = itertools.groupby(self._summaries(rows), lambda summary: summary.step)
        means = ((step, mean_of((part.counted, part.mean) for part in parts)) for step, parts in steps)
        return [(step, mean) for step, mean in means if step is not None and mean is not None]

    def total_series(self, split: str = "train", steps: Sequence[int] | None = None) -> list[tuple[int, float]]:
        """Return the mean total by step, of those steps at which it is known, see :func:`gap_reason`.

        Args:
            split: ``"train"`` or ``"eval"``.
            steps: Of these steps alone; all unless given.
        """
        numbers = self.steps(split) if steps is None else [int(step) for step in steps]
        series: list[tuple[int, float]] = []
        for start in range(0, len(numbers), PAGE):
            chunk = numbers[start : start + PAGE]
            gaps = self._steps_without_total(split, chunk)
            query = questions.TOTAL_SERIES.format(",".join("?" * len(chunk)))
            series += [point for point in self._tuples(query, split, *chunk) if point[0] not in gaps]
        return series

    def file_means(self, split: str = "train") -> FileMeans | None:
        """Return the means of what was scored at no step, as a file of completions is; ``None`` without any.

        The mean total is not known where failures leave none that could be compared, see :func:`gap_reason`.

        Args:
            split: ``"train"`` or ``"eval"``.
        """
        sums = [summary for summary in self.summaries(split=split) if summary.step is None]
        if not sums:
            return None
        calls = self._calls_of_steps(self._tuples(questions.FILE_CALLS, split))
        has_total = not gap_reason(calls.get(None, {}))
        ((total,),) = self._tuples(questions.FILE_TOTAL, split) if has_total else [(None,)]
        of_rewards: dict[str, list[StepSummary]] = {}
        for summary in sums:
            of_rewards.setdefault(summary.reward, []).append(summary)
        parts = {name: [(part.counted, part.mean) for part in own] for name, own in of_rewards.items()}
        return FileMeans(total, {name: mean_of(pairs) for name, pairs in parts.items()})

    def _steps_without_total(self, split: str, steps: Sequence[int]) -> set[int]:
        """Return those of some steps at which failures leave no total that could be compared."""
        failing = {step for (step,) in self._tuples(questions.FAILING_STEPS, split, min(steps), max(steps))}
        chosen = sorted(failing.intersection(steps))
        query = questions.CALLS.format(",".join("?" * len(chosen)))
        calls = self._calls_of_steps(self._tuples(query, split, *chosen) if chosen else [])
        return {step for step, of_step in calls.items() if step is not None and gap_reason(of_step)}

    def _calls_of_steps(self, rows: Sequence[tuple[Any, ...]]) -> dict[int | None, dict[str, RewardCalls]]:
        """Return what became of the calls of each reward that counts, by step and reward."""
        calls: dict[int | None, dict[str, RewardCalls]] = {}
        with self._decoding():
            for step, reward, versions, weights, version, scored, skipped, _, causes in rows:
                of_step = calls.setdefault(step, {})
                if version in _weighed(versions, weights):
                    own = RewardCalls(scored, skipped, json.loads(causes))
                    of_step[reward] = of_step.get(reward, NO_CALLS) + own
        return calls

    def _summary_rows(self, reward: str | None, split: str | None, since: int | None = None) -> list[Any]:
        """Return the rows of sums of :meth:`summaries`, as the record has them."""
        return self._rows(
            "SELECT batch.step, batch.split, batch.session, version.reward, version.number, summary.* FROM summary"
            " JOIN batch ON batch.id = summary.batch JOIN version ON version.id = summary.version"
            " WHERE (:reward IS NULL OR version.reward = :reward) AND (:split IS NULL OR batch.split = :split)"
            " AND (:since IS NULL OR batch.step >= :since)"
            " ORDER BY batch.step NULLS FIRST, version.id, batch.split, batch.id",
            reward=reward,
            split=split,
            since=since,
        )

    def _summaries(self, rows: list[Any]) -> list[StepSummary]:
        """Return each step's sums over all ranks, from rows in their order."""
        with self._decoding():
            rows = self._with_own_sums(rows)
            keyed = itertools.groupby(rows, lambda row: (row["step"], row["split"], row["reward"], row["number"]))
            return [step_summary(key, list(parts)) for key, parts in keyed]

    def _with_own_sums(self, rows: list[Any]) -> list[Any]:
        """Return rows of sums without defaults of failed calls, also those of records in which they have them."""
        old = set(self._old_sessions())
        wrong = [row for row in rows if row["session"] in old and row["failed"] and row["counted"]]
        if not wrong:
            return rows
        own = {(row["batch"], row["version"]): row for row in own_sums(self._tuples, json.loads, wrong)}
        return [own.get((row["batch"], row["version"]), row) for row in rows]

    def _old_sessions(self) -> list[int]:
        """Return the sessions whose sums have the defaults of failed calls in them."""
        return [number for (number,) in self._tuples(questions.OLD_SESSIONS, mark=OWN_SCORES)]

    def calls(self, split: str = "train") -> tuple[int, int]:
        """Return the count of failed calls of all rewards, and that of all their calls."""
        query = (
            "SELECT coalesce(sum(failed), 0), coalesce(sum(summary.scored + skipped + failed), 0) FROM summary"
            " JOIN batch ON batch.id = summary.batch WHERE batch.split = ?"
        )
        failed, calls = self._tuples(query, split)[0]
        return failed, calls

    def batches(self, split: str = "train", after: int = 0) -> tuple[int, list[tuple[int, int | None]]]:
        """Return how many batches a split has, and the numbers and steps of those with a greater number."""
        count = int(self._rows("SELECT count(*) FROM batch WHERE split = ?", split)[0][0])
        return count, self._tuples("SELECT id, step FROM batch WHERE id > ? AND split = ? ORDER BY id", after, split)

    def batch_sums(self, first: int, last: int, split: str = "train") -> list[BatchSums]:
        """Return the sums over the completions of each batch, for the batches numbered ``first`` to ``last``."""
        names = dict(self._tuples("SELECT id, reward FROM version"))
        weighed: dict[int, frozenset[str]] = {}
        for number, versions, weights in self._tuples(questions.BATCH_WEIGHTS, first, last, split):
            with self._decoding():
                weighed[number] = frozenset(names[version] for version in _weighed(versions, weights))
        rows = self._tuples(questions.BATCH_SUMS, first=first, last=last, split=split)
        return [BatchSums._make((*row, weighed.get(row[0], frozenset()))) for row in rows]

    def session_steps(self) -> dict[int, int]:
        """Return the first training step that each session recorded, by the session's number."""
        query = "SELECT session, min(step) FROM batch WHERE split = 'train' AND step IS NOT NULL GROUP BY session"
        return dict(self._tuples(query))

    def step_times(self, split: str = "train") -> list[tuple[int, float]]:
        """Return the steps and when the last batch of each was scored, in seconds since 1970."""
        query = "SELECT step, max(scored) FROM batch WHERE split = ? AND step IS NOT NULL GROUP BY step ORDER BY step"
        return [(int(step), float(scored)) for step, scored in self._tuples(query, split)]

    def metrics(self, name: str, split: str = "train", steps: tuple[int, int] | None = None) -> list[tuple[int, float]]:
        """Return the steps and values of one of the trainer's metrics, under the trainer's name and step.

        Args:
            name: The metric.
            split: ``"train"`` or ``"eval"``.
            steps: From this step of the trainer's to that one, both included; all unless given.
        """
        query = "SELECT step, value FROM metric WHERE split = ? AND name = ?"
        between = "" if steps is None else " AND step BETWEEN ? AND ?"
        rows = self._rows(f"{query}{between} ORDER BY step", split, name, *(steps or ()))
        return [(step, math.nan if value is None else value) for step, value in rows]

    def metric_names(self, split: str = "train") -> list[str]:
        """Return the names of the trainer's metrics."""
        return [name for (name,) in self._rows("SELECT DISTINCT name FROM metric WHERE split = ? ORDER BY name", split)]

    def failed_calls(self, split: str = "train") -> list[FailedKind]:
        """Return the kinds of failed calls, the most frequent first."""
        return [FailedKind(*row) for row in self._tuples(questions.FAILED, split)]

    def call_metrics(self, version: Version, number: int = 0) -> list[tuple[int, str]]:
        """Return the completion and the metrics, as JSON, of the calls of a version in a pass; 0 for the run's own."""
        return self._tuples(questions.CALL_METRICS, version.id, number)

    def cached_calls(self, version: Version) -> list[int]:
        """Return the completions whose outcome of a version came from the cache."""
        return self._cached_calls(version.id)

    def _cached_calls(self, version: int) -> list[int]:
        rows = self._tuples(questions.CACHED)
        with self._decoding():
            return [
                number for number, status, versions in rows
                if version in (ids := json.loads(versions)) and status[ids.index(version)].isupper()
            ]  # fmt: skip

    def call_costs(self, split: str = "train") -> dict[str, dict[str, Cost]]:
        """Return what the calls of each reward took of a server in all steps, by metric.

        Calls that failed count as far as they say what they took; those that the cache answered took nothing. A
        reward whose calls took nothing, as those of a function, is not in it.
        """
        by_reward = self.billed_calls(split)
        return {reward: costs for reward, metrics in by_reward.items() if (costs := sum_costs(metrics))}

    def billed_calls(self, split: str = "train") -> dict[str, list[Mapping[str, float]]]:
        """Return the metrics of the calls of each reward, without those that the cache answered."""
        by_reward = self.measured_calls(split)
        return {reward: [call.metrics for call in calls if not call.cached] for reward, calls in by_reward.items()}

    def measured_calls(
        self, split: str = "train", *, since: int = 1, until: int | None = None
    ) -> dict[str, list[MeasuredCall]]:
        """Return the calls of each reward that have metrics, of the completions with the numbers since to until."""
        rewards: dict[int, str] = dict(self._tuples("SELECT id, reward FROM version ORDER BY id"))
        calls: dict[int, list[tuple[int, Any, tuple[Unanswered, ...]]]] = {}
        last = self._tuples("SELECT coalesce(max(id), 0) FROM completion")[0][0] if until is None else until
        for start in range(since - 1, last, _PAGE_CALLS):
            rows = self._tuples(questions.MEASURED_CALLS, split, start, min(start + _PAGE_CALLS, last))
            with self._decoding():
                for version, completion, metrics, records in rows:
                    unanswered = tuple(Unanswered(**record) for record in json.loads(records)) if records else ()
                    calls.setdefault(version, []).append((completion, json.loads(metrics), unanswered))
        by_reward: dict[str, list[MeasuredCall]] = {}
        for version, own in sorted(calls.items()):
            cached = set(self._cached_calls(version))
            measured = (MeasuredCall(*call, cached=call[0] in cached) for call in own)
            by_reward.setdefault(rewards[version], []).extend(measured)
        return by_reward

    def metrics_of(self, reward: str, after: int, until: int) -> list[tuple[int, dict[str, float]]]:
        """Return the metrics of a reward's calls by completion, behind the number ``after`` and up to ``until``."""
        rows = self._tuples(questions.METRICS_OF_REWARD, reward, after, until)
        with self._decoding():
            return [(completion, json.loads(metrics)) for completion, metrics in rows]

    def prompt_epochs(self, split: str = "train") -> list[PromptEpoch]:
        """Return each prompt's completions in each epoch, by prompt and then by epoch; those without one come first."""
        return [PromptEpoch(*row) for row in self._tuples(questions.PROMPT_EPOCHS, split)]

    def batches_until(self, last: int) -> tuple[int, int]:
        """Return the count of batches up to a completion's batch, and that batch's number; 0 and 0 without one."""
        rows = self._tuples("SELECT batch FROM completion WHERE id <= ? ORDER BY id DESC LIMIT 1", last)
        greatest = rows[0][0] if rows else 0
        ((count,),) = self._tuples("SELECT count(*) FROM batch WHERE id <= ?", greatest)
        return count, greatest

    @property
    def last_batch(self) -> int:
        """The greatest number of a batch; 0 without any."""
        return int(self._rows("SELECT coalesce(max(id), 0) FROM batch")[0][0])

    def batch_starts(self) -> Whole:
        """Return the first completion's number of each batch, in order; those of a batch follow one another."""
        return np.array([first for _, first in self._rows(questions.STARTS)], np.int64)


def thin(series: Sequence[Point], most: int | None) -> list[Point]:
    """Return at most so many points or steps of a series, evenly chosen with the first and the last; all for None."""
    if most is None or len(series) <= most:
        return list(series)
    last = len(series) - 1
    return [series[round(number * last / (most - 1))] for number in range(most)]


def mean_of(parts: Iterable[tuple[int, float | None]]) -> float | None:
    """Return the mean of all values, from the size and mean of each part; ``None`` without a value."""
    pairs = [(size, value) for size, value in parts if size and value is not None]
    return sum(size * value for size, value in pairs) / sum(size for size, _ in pairs) if pairs else None


def _weighed(versions: str, weights: str) -> list[int]:
    """Return the versions of a batch that weigh anything."""
    ids = json.loads(versions)
    return [version for version, weight in zip(ids, weights_in(weights, len(ids)), strict=True) if weight]
