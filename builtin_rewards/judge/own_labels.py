"""How far a judge agrees with one's own labels; a figure that the input does not define is ``None``, never ``nan``."""

from __future__ import annotations

import bisect
import itertools
import math
import random
import statistics
import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from builtin_rewards.judge.members import accepts
from rewardkit import DataError, Reward, Rollout, Runtime, Status
from rewardkit.extending import ColumnValueError, build_coercer, costs_told, per_1000
from rewardkit.statistics import Z_95, Interval, wilson
from rewardkit.testing import rollouts_from_rows

_MAX_THRESHOLDS = 100  # the most thresholds that are tried
_FOLDS = 10
_truth = build_coercer(bool)

LabelledRows: TypeAlias = str | Path | Iterable[Mapping[str, Any] | Rollout]


class LabelledScore(NamedTuple):
    score: float
    good: bool


@dataclass(frozen=True, slots=True)
class LabelAgreement:
    """How a judge's scores compare with labels."""

    rows: int  # Labelled rows. Only `scored` ones count below; rows that neither scored nor failed were skipped.
    scored: int
    failed: int
    errors: tuple[str, ...]  # Why the first few failed
    threshold: float  # The least score that counts as good
    agreement: Interval  # The share of verdicts that equal their label; `kappa` is the agreement beyond chance
    kappa: Interval
    best_threshold: float  # The threshold with the best kappa
    best_kappa: Interval  # That kappa, with each row judged by the threshold that is best for nine tenths of the others
    auc: float | None  # The chance that a good completion scores above a bad one
    more_labels: int | None  # How many more labels would halve the interval of kappa; `None` if all scores are equal
    per_1000: Mapping[str, float]  # What 1,000 rows take: `requests`, tokens, and `cost_usd` if the model has a price

    def __str__(self) -> str:
        skipped = self.rows - self.scored - self.failed
        labels = f"{self.more_labels} more labels would halve the interval"
        lines = (
            f"{self.scored} of {self.rows} rows scored, {self.failed} failed, {skipped} skipped",
            f"accepted from {self.threshold:g}: agreement {_describe(self.agreement)}, kappa {_describe(self.kappa)}",
            f"best threshold {self.best_threshold:g}: kappa {_describe(self.best_kappa)}",
            f"AUC {'unknown' if self.auc is None else format(self.auc, '.2f')}",
            "all scores are the same, so no labels help" if self.more_labels is None else labels,
            f"1,000 rows take {costs_told(self.per_1000)}",
        )
        return "\n".join(textwrap.fill(line, 80, subsequent_indent="  ") for line in lines)


def calibrate(
    judge: Reward[..., Any], rows: LabelledRows, *, label: str = "label", threshold: float = 0.5, lane: str = "worker"
) -> LabelAgreement:
    """Ask a judge about labelled rows; see :meth:`~builtin_rewards.judge.fallback.JudgeReward.calibrate`."""
    rollouts = labelled_rollouts(rows)
    if not rollouts:
        raise DataError("there are no rows to calibrate with")
    labels = [truth(rollout.example, label, f"row {index}") for index, rollout in enumerate(rollouts)]
    if len(set(labels)) < 2:
        raise DataError(f"{len(labels)} labels, and all of one kind: agreement takes good and bad completions")
    with Runtime([judge], workers=1, lane=lane, max_infrastructure_rate=1.0) as runtime:
        outcomes = runtime.score(rollouts)[judge.name]
    failed = [outcome.error or "" for outcome in outcomes if outcome.status is Status.FAILED]
    pairs = [
        LabelledScore(float(outcome.score or 0.0), good)
        for outcome, good in zip(outcomes, labels, strict=True)
        if outcome.status is Status.SCORED
    ]
    if not pairs:
        first = f"; the first: {failed[0]}" if failed else ""
        raise DataError(f"none of {len(rollouts)} rows was scored{first}")
    scores, labels = [pair.score for pair in pairs], [pair.good for pair in pairs]
    table = ConfusionTable.of([accepts(score, threshold) for score in scores], labels)
    limits = _held_out_thresholds(pairs)
    cross = ConfusionTable.of([score >= limit for score, limit in zip(scores, limits, strict=True)], labels)
    return LabelAgreement(
        rows=len(rollouts),
        scored=len(pairs),
        failed=len(failed),
        errors=tuple(failed[:3]),
        threshold=threshold,
        agreement=table.agreement,
        kappa=table.kappa,
        best_threshold=_best_threshold(pairs),
        best_kappa=cross.kappa,
        auc=auc(scores, labels),
        # An interval is as wide as one over the root of the number.
        more_labels=3 * len(pairs) if len(set(scores)) > 1 else None,
        per_1000=per_1000([outcome for outcome in outcomes if outcome.status is not Status.FAILED]),
    )


def truth(columns: Mapping[str, Any], name: str, where: str) -> bool:
    """Return a row's label, a bool, 1 or 0, yes or no: whether the completion is good; else DataError says where."""
    if name not in columns:
        has = ", ".join(map(repr, columns)) or "none"
        raise DataError(f"{where}: no label in column {name!r}; columns are {has}: name one of them, as label=...")
    try:
        return bool(_truth(columns[name]))
    except ColumnValueError:
        problem = f"expected true or false, 1 or 0, yes or no; got {repr(columns[name])[:40]}"
        raise DataError(f"{where}: label in column {name!r}: {problem}") from None


def labelled_rollouts(rows: LabelledRows) -> list[Rollout]:
    """Return rollouts of labelled rows, or of a file of them."""
    if isinstance(rows, str | Path):
        return rollouts_from_rows(rows)
    lists = [[row] if isinstance(row, Rollout) else rollouts_from_rows([row]) for row in rows]
    return [rollout for rollouts in lists for rollout in rollouts]


def _best_threshold(pairs: Sequence[LabelledScore]) -> float:
    """Return the threshold with the best kappa, of at most a hundred half way between scores; the middle of several."""
    good, bad = (sorted(pair.score for pair in pairs if pair.good is label) for label in (True, False))
    scores = sorted({*good, *bad})
    halves = [statistics.fmean(pair) for pair in itertools.pairwise(scores)] or scores
    count = min(len(halves), _MAX_THRESHOLDS)
    kappas: dict[float, float] = {}
    for threshold in (halves[index * len(halves) // count] for index in range(count)):
        false_no, right_no = bisect.bisect_left(good, threshold), bisect.bisect_left(bad, threshold)
        table = ConfusionTable(len(good) - false_no, len(bad) - right_no, false_no, right_no)
        kappas[threshold] = table.kappa.rate or 0.0
    best = [threshold for threshold, kappa in kappas.items() if kappa == max(kappas.values())]
    return best[len(best) // 2]


def _held_out_thresholds(pairs: Sequence[LabelledScore]) -> list[float]:
    """Return for each row the best threshold of the other nine folds; which fold a row is in is drawn at random."""
    folds = [index % _FOLDS for index in range(len(pairs))]
    random.Random(0).shuffle(folds)  # noqa: S311 - a sample, no secret
    best_thresholds = []
    for held_out in range(_FOLDS):
        rest = [pair for pair, fold in zip(pairs, folds, strict=True) if fold != held_out]
        best_thresholds.append(_best_threshold(rest or pairs))
    return [best_thresholds[fold] for fold in folds]


def _describe(interval: Interval) -> str:
    return "unknown" if interval.rate is None else f"{interval.rate:.2f} ({interval.low:.2f} to {interval.high:.2f})"


def mean_move(moves: Sequence[float]) -> Interval:
    """Return the mean of scores' moves, -1 to 1; moves of -1 and 1 are added (Agresti and Coull 1998) for few moves."""
    points = [*moves, -1.0, 1.0]
    middle, half = statistics.fmean(points), Z_95 * statistics.stdev(points) / math.sqrt(len(points))
    rate = statistics.fmean(moves) if moves else None
    return Interval(rate, max(-1.0, middle - half), min(1.0, middle + half), len(moves))


class ConfusionTable(NamedTuple):
    """Verdicts against labels: good and bad answers that were accepted, and those that were refused."""

    right_yes: int
    wrong_yes: int
    wrong_no: int
    right_no: int

    @classmethod
    def of(cls, verdicts: Sequence[bool], labels: Sequence[bool]) -> ConfusionTable:
        """Count verdicts beside their labels."""
        counts = Counter(zip(verdicts, labels, strict=True))
        return cls(counts[True, True], counts[True, False], counts[False, True], counts[False, False])

    @property
    def agreement(self) -> Interval:
        """The share of verdicts that equal their label."""
        return wilson(self.right_yes + self.right_no, sum(self))

    @property
    def kappa(self) -> Interval:
        """Cohen's kappa (p_o - p_e) / (1 - p_e), agreement beyond chance (Educ. and Psychol. Measurement 20, 1960).

        p_o is the share that agrees, and p_e the sum over classes of both sides' shares multiplied. The ends are those
        of p_o's Wilson interval, p_e taken as it is. The rate is ``None`` without rows, and where both sides name one
        class only.
        """
        rows, yes, good = sum(self), self.right_yes + self.wrong_yes, self.right_yes + self.wrong_no
        # Whole numbers, so that kappas compare equal in _best_threshold where they are.
        agreed = (self.right_yes + self.right_no) * rows  # p_o * rows**2
        expected = yes * good + (rows - yes) * (rows - good)  # p_e * rows**2
        if expected == rows**2:
            return Interval(None, -1.0, 1.0, rows)
        share = self.agreement
        low, high = ((end * rows**2 - expected) / (rows**2 - expected) for end in (share.low, share.high))
        return Interval((agreed - expected) / (rows**2 - expected), max(-1.0, low), high, rows)


def auc(scores: Sequence[float], labels: Sequence[bool]) -> float | None:
    """Return the area under the ROC curve (Hanley and McNeil, Radiology 143, 1982); ``None`` for one class."""
    pairs = list(zip(scores, labels, strict=True))
    good, bad = [score for score, label in pairs if label], sorted(score for score, label in pairs if not label)
    if not good or not bad:
        return None
    above = sum(bisect.bisect_left(bad, score) + bisect.bisect_right(bad, score) for score in good) / 2
    return above / (len(good) * len(bad))
