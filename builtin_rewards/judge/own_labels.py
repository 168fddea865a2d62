"""How far a judge agrees with one's own labels: :func:`calibrate`, which is ``judge.calibrate(rows)``."""

from __future__ import annotations

import bisect
import itertools
import random
import statistics
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from builtin_rewards.judge.members import accepts
from builtin_rewards.judge.statistics import ConfusionTable, auc
from rewardkit import DataError, Reward, Rollout, Runtime, Status
from rewardkit.extending import ColumnValueError, build_coercer, costs_told, per_1000
from rewardkit.statistics import Interval
from rewardkit.testing import rollouts_from_rows

_MAX_THRESHOLDS = 100  # the most thresholds that are tried
_FOLDS = 10
_truth = build_coercer(bool)

LabelledRows: TypeAlias = str | Path | Iterable[Mapping[str, Any] | Rollout]


@dataclass(frozen=True, slots=True)
class LabelAgreement:
    """How a judge's scores compare with labels.

    Attributes:
        rows: Labelled rows. Only ``scored`` ones count below; rows that neither scored nor failed were skipped.
        errors: Why the first few failed.
        threshold: The least score that counts as good.
        agreement: The share of verdicts that equal their label; ``kappa`` is the agreement beyond chance.
        best_threshold: The threshold with the best kappa.
        best_kappa: That kappa, with each row judged by the threshold that is best for nine tenths of the others.
        auc: The chance that a good completion scores above a bad one.
        more_labels: How many more labels would halve the interval of kappa; ``None`` if all scores are equal.
        per_1000: What 1,000 rows take: ``requests``, tokens, and ``cost_usd`` if the model has a price.
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
    more_labels: int | None
    per_1000: Mapping[str, float]

    def __str__(self) -> str:
        """Return a summary of a few lines."""
        skipped = self.rows - self.scored - self.failed
        more = f"{self.more_labels} more labels would halve the interval"
        lines = (
            f"{self.scored} of {self.rows} rows scored, {self.failed} failed, {skipped} skipped",
            f"accepted from {self.threshold:g}: agreement {_describe(self.agreement)}, kappa {_describe(self.kappa)}",
            f"best threshold {self.best_threshold:g}: kappa {_describe(self.best_kappa)}",
            f"AUC {'unknown' if self.auc is None else format(self.auc, '.2f')}",
            "all scores are the same, so no labels help" if self.more_labels is None else more,
            f"1,000 rows take {costs_told(self.per_1000)}",
        )
        return "\n".join(textwrap.fill(line, 80, subsequent_indent="  ") for line in lines)


def calibrate(
    judge: Reward[..., Any], rows: LabelledRows, *, label: str = "label", threshold: float = 0.5, lane: str = "worker"
) -> LabelAgreement:
    """Ask a judge about labelled rows; see :meth:`~builtin_rewards.judge.fallback.JudgeReward.calibrate`."""
    rollouts = _rollouts(rows)
    if not rollouts:
        raise DataError("there are no rows to calibrate with")
    labels = [truth(rollout.example, label, f"row {place}") for place, rollout in enumerate(rollouts)]
    if len(set(labels)) < 2:
        raise DataError(f"{len(labels)} labels, and all of one kind: agreement takes good and bad completions")
    with Runtime([judge], workers=1, lane=lane, max_infrastructure_rate=1.0) as runtime:
        outcomes = runtime.score(rollouts)[judge.name]
    failed = [outcome.error or "" for outcome in outcomes if outcome.status is Status.FAILED]
    judged = [one for one in zip(outcomes, labels, strict=True) if one[0].status is Status.SCORED]
    if not judged:
        first = f"; the first: {failed[0]}" if failed else ""
        raise DataError(f"none of {len(rollouts)} rows was scored{first}")
    known = [(float(outcome.score or 0.0), good) for outcome, good in judged]
    scores, true = [score for score, _ in known], [good for _, good in known]
    table = ConfusionTable.of([accepts(score, threshold) for score in scores], true)
    cross = ConfusionTable.of(
        [score >= at for score, at in zip(scores, _held_out_thresholds(known), strict=True)], true
    )
    return LabelAgreement(
        rows=len(rollouts),
        scored=len(known),
        failed=len(failed),
        errors=tuple(failed[:3]),
        threshold=threshold,
        agreement=table.agreement,
        kappa=table.kappa,
        best_threshold=_best_threshold(known),
        best_kappa=cross.kappa,
        auc=auc(scores, true),
        # An interval is as wide as one over the root of the number.
        more_labels=3 * len(known) if len(set(scores)) > 1 else None,
        per_1000=per_1000([outcome for outcome in outcomes if outcome.status is not Status.FAILED]),
    )


def truth(columns: Mapping[str, Any], name: str, where: str) -> bool:
    """Return a row's label, a bool, 1 or 0, yes or no: whether the completion is good.

    Raises:
        DataError: There is no label, or it is another value; says where.
    """
    if name not in columns:
        has = ", ".join(map(repr, columns)) or "none"
        raise DataError(f"{where}: no label in column {name!r}; columns are {has}: name one of them, as label=...")
    try:
        return bool(_truth(columns[name]))
    except ColumnValueError:
        said = f"expected true or false, 1 or 0, yes or no; got {repr(columns[name])[:40]}"
        raise DataError(f"{where}: label in column {name!r}: {said}") from None


def _rollouts(rows: LabelledRows) -> Sequence[Rollout]:
    if isinstance(rows, str | Path):
        return rollouts_from_rows(rows)
    each = [[row] if isinstance(row, Rollout) else rollouts_from_rows([row]) for row in rows]
    return [rollout for rollouts in each for rollout in rollouts]


def _best_threshold(known: Sequence[tuple[float, bool]]) -> float:
    """Return the threshold with the best kappa, of at most a hundred half way between scores; the middle of several."""
    good, bad = (sorted(score for score, is_good in known if is_good is wanted) for wanted in (True, False))
    scores = sorted({*good, *bad})
    halves = [statistics.fmean(pair) for pair in itertools.pairwise(scores)] or scores
    tried = (
        halves
        if len(halves) <= _MAX_THRESHOLDS
        else [halves[at * len(halves) // _MAX_THRESHOLDS] for at in range(_MAX_THRESHOLDS)]
    )
    below = [(bisect.bisect_left(good, at), bisect.bisect_left(bad, at)) for at in tried]
    worth = [ConfusionTable(len(good) - lost, len(bad) - kept, lost, kept).kappa.rate or 0.0 for lost, kept in below]
    best = [at for at, value in zip(tried, worth, strict=True) if value == max(worth)]
    return best[len(best) // 2]


def _held_out_thresholds(known: Sequence[tuple[float, bool]]) -> list[float]:
    """Return for each row the threshold that is best for the rows outside of its tenth, drawn at random."""
    fold_of = [place % _FOLDS for place in range(len(known))]
    random.Random(0).shuffle(fold_of)  # noqa: S311 - a sample, no secret
    rest = [[one for one, own in zip(known, fold_of, strict=True) if own != fold] for fold in range(_FOLDS)]
    best = [_best_threshold(others or known) for others in rest]
    return [best[own] for own in fold_of]


def _describe(interval: Interval) -> str:
    return "unknown" if interval.rate is None else f"{interval.rate:.2f} ({interval.low:.2f} to {interval.high:.2f})"
