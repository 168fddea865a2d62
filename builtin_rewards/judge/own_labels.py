"""How far a judge agrees with labels of one's own: :func:`calibrate`, which is ``judge.calibrate(rows)``.

Owns the asking of labelled rows and the choice of a threshold. The measures are ``calibration``'s and ``statistics``'.
"""

from __future__ import annotations

import asyncio
import bisect
import contextlib
import itertools
import operator
import statistics
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from builtin_rewards.judge.calibration import Table, auc, kappa
from builtin_rewards.judge.members import Said, accepts, ask
from builtin_rewards.judge.statistics import Interval, wilson
from builtin_rewards.judge.turns import turns
from rewardkit import DataError, Reward, Rollout
from rewardkit.coerce import ColumnValueError, build_coercer
from rewardkit.testing import rollouts_from_rows

_COSTS = ("requests", "prompt_tokens", "completion_tokens", "cost_usd")
_TRIED = 100
"""Thresholds that are tried at most."""
_truth = build_coercer(bool)

T = TypeVar("T")
Rows: TypeAlias = str | Path | Iterable[Mapping[str, Any] | Rollout]


@dataclass(frozen=True, slots=True)
class Calibrated:
    """What a judge's scores are worth beside labels.

    Attributes:
        rows: Labelled rows.
        scored: Those that got a score; only they count below.
        failed: Those for which no score could be had. The others were skipped.
        errors: Why the first few failed.
        threshold: The score from which on a completion was taken as good.
        agreement: The share of verdicts that equal their label.
        kappa: Cohen's kappa: agreement beyond chance.
        best_threshold: The one with the best kappa.
        best_kappa: What it comes to, each row judged by the threshold that is best for the others.
        auc: The chance that a good completion scores above a bad one.
        more_labels: How many more labels would halve the interval of kappa.
        per_1000: What 1,000 rows take: ``requests``, tokens, and ``cost_usd`` where the model has a price.
    """

    rows: int
    scored: int
    failed: int
    errors: tuple[str, ...]
    threshold: float
    agreement: Interval
    kappa: Interval
    best_threshold: float
    best_kappa: Interval
    auc: float | None
    more_labels: int
    per_1000: Mapping[str, float]

    def __str__(self) -> str:
        """The whole in a few lines."""
        took = ", ".join(f"{value:,.4g} {name}" for name, value in self.per_1000.items())
        skipped = self.rows - self.scored - self.failed
        return (
            f"{self.scored} of {self.rows} rows scored, {self.failed} failed, {skipped} skipped\n"
            f"accepted from {self.threshold:g}: agreement {_told(self.agreement)}, kappa {_told(self.kappa)}\n"
            f"best from {self.best_threshold:g}: kappa {_told(self.best_kappa)}\n"
            f"{self.more_labels} more labels would halve the interval\n"
            f"1,000 rows take {took}"
        )


def calibrate(judge: Reward[..., Any], rows: Rows, *, label: str = "label", threshold: float = 0.5) -> Calibrated:
    """Asks a judge about labelled rows, and gives how far it agrees with the labels.

    Args:
        judge: A judge of single completions.
        rows: Rollouts; rows with ``prompt``, ``completion``, the judge's columns and the label; or a file of such.
        label: The column with the label: whether the completion is good, as a bool, 1 or 0, yes or no.
        threshold: The score from which on a completion counts as good.

    Raises:
        DataError: A row has no label or one that is neither, all labels are the same, or nothing was scored; the first
            two before anything is asked.
        JudgeSetupError: The server refuses the key, has no such model, or ``base_url`` lacks its ``/v1``.
    """
    rollouts = _rollouts(rows)
    labels = [_label(place, rollout, label) for place, rollout in enumerate(rollouts)]
    if len(set(labels)) < 2:
        raise DataError(f"{len(labels)} labels, and all of one kind: agreement takes good and bad completions")
    judge.set_up()
    said = _in_own_thread(_ask(judge, rollouts))
    values = [None if one.score is None else one.score.value for one in said]
    known = [(value, good) for value, good in zip(values, labels, strict=True) if value is not None]
    errors = tuple(one.words for one in said if one.score is None)
    if not known:
        first = f"; the first: {errors[0]}" if errors else ""
        raise DataError(f"none of {len(rollouts)} rows was scored{first}")
    scores, true = [score for score, _ in known], [good for _, good in known]
    table = Table.of([accepts(score, threshold) for score in scores], true)
    tables = _tables(known)
    others = _bests_of_others(known, tables)
    cross = Table.of([accepts(score, at) for score, at in zip(scores, others, strict=True)], true)
    return Calibrated(
        len(rollouts),
        len(known),
        len(errors),
        errors[:3],
        threshold,
        wilson(table.agreeing, len(known)),
        kappa(table),
        _best_threshold(tables),
        kappa(cross),
        auc(scores, true),
        3 * len(known),  # an interval is as wide as one over the root of the number
        _per_1000(said),
    )


def _rollouts(rows: Rows) -> Sequence[Rollout]:
    if isinstance(rows, str | Path):
        return rollouts_from_rows(rows)
    each = [[row] if isinstance(row, Rollout) else rollouts_from_rows([row]) for row in rows]
    return [rollout for rollouts in each for rollout in rollouts]


def _label(place: int, rollout: Rollout, column: str) -> bool:
    if column not in rollout.example:
        raise DataError(f"row {place}: no label in column {column!r}; name the column, as label='good'")
    try:
        return bool(_truth(rollout.example[column]))
    except ColumnValueError as wrong:
        raise DataError(f"row {place}: label in column {column!r}: {wrong}") from None


def _in_own_thread(asking: Coroutine[Any, Any, T]) -> T:
    """Gives what a coroutine does, for the caller may be in an event loop, as a notebook is.

    Where the caller is interrupted, the coroutine is cancelled, so that no further questions are asked.
    """
    begun: Future[Callable[[], object]] = Future()

    async def cancellable() -> T:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None
        begun.set_result(lambda: loop.call_soon_threadsafe(task.cancel))
        return await asking

    with ThreadPoolExecutor(1) as own_thread:
        running = own_thread.submit(asyncio.run, cancellable())
        try:
            return running.result()
        except KeyboardInterrupt:
            with contextlib.suppress(RuntimeError):  # the loop ended in the meantime
                begun.result()()
            raise


async def _ask(judge: Reward[..., Any], rollouts: Sequence[Rollout]) -> list[Said]:
    line = turns(judge, judge.spec.concurrency)

    async def one(rollout: Rollout) -> Said:
        given = {"prompt": rollout.prompt, "completion": rollout.completion, "example": rollout.example}
        async with line:
            return await ask(judge, {**rollout.example, **given})

    return await asyncio.gather(*map(one, rollouts))


def _tables(known: Sequence[tuple[float, bool]]) -> dict[float, Table]:
    """Gives what each threshold that is tried accepts: half way between two scores, at most so many of them."""
    scores = sorted({score for score, _ in known})
    halves = [statistics.fmean(pair) for pair in itertools.pairwise(scores)] or scores
    tried = halves if len(halves) <= _TRIED else [halves[at * len(halves) // _TRIED] for at in range(_TRIED)]
    true = [good for _, good in known]
    return {at: Table.of([score >= at for score, _ in known], true) for at in tried}


def _best_threshold(tables: Mapping[float, Table]) -> float:
    """Gives the threshold with the best kappa; of several the middle one."""
    worth = {at: kappa(table, draws=0).rate or 0.0 for at, table in tables.items()}
    best = [at for at, value in worth.items() if value == max(worth.values())]
    return best[len(best) // 2]


def _bests_of_others(known: Sequence[tuple[float, bool]], tables: Mapping[float, Table]) -> list[float]:
    """Gives for each row the threshold that is best for the others.

    Rows with one label that the same thresholds accept have the same, so it is found once for them.
    """
    tried, found = list(tables), dict[tuple[int, bool], float]()
    places = [(bisect.bisect_right(tried, score), good) for score, good in known]
    for accepting, good in set(places):
        at_each = enumerate(tables.items())
        found[accepting, good] = _best_threshold(
            {at: _without(table, n < accepting, good) for n, (at, table) in at_each}
        )
    return [found[place] for place in places]


def _without(table: Table, accepted: bool, good: bool) -> Table:
    return Table(*map(operator.sub, table, Table.of([accepted], [good])))


def _per_1000(said: Sequence[Said]) -> dict[str, float]:
    """Gives what so many rows take; of what only some rows tell, nothing."""
    metrics = [one.score.metrics for one in said if one.score is not None]
    asked = [one for one in metrics if one.get("requests")]
    told = [name for name in _COSTS if asked and all(name in one for one in asked)]
    return {name: 1000 * sum(one[name] for one in asked) / len(metrics) for name in told}


def _told(interval: Interval) -> str:
    return "unknown" if interval.rate is None else f"{interval.rate:.2f} ({interval.low:.2f} to {interval.high:.2f})"
