"""What a trainer gets of a scored batch: the scores, their weighted sums, the metrics for its logs.

Pure functions of a :class:`rewardkit.ScoreBatch`.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from statistics import fmean
from typing import Literal, TypeAlias

from rewardkit import Cause, RewardError, ScoreBatch, Status
from rewardkit.extending import weighted_total

MAX_SCORE = 1e16
"""The largest score or weighted sum handed to TRL. It computes in float32 (at most 3.4e38) and squares scores for a
group's spread. A larger score would silently void the group, or destroy the model's weights."""
_MOST_WAITING = 10_000  # Numbers that wait, where no callback of a trainer asks for them
Scores: TypeAlias = list[float | None]
Partial: TypeAlias = Literal["leave_out", "sum"]
"""What becomes of a rollout that has scores from some rewards and none from another.

``"leave_out"``: A rollout is left out if a reward with weight failed and has no default, or if no reward with weight
scored it. A reward that skipped it adds nothing. ``"sum"``: A missing score adds nothing, whatever the reason. This is
TRL's own rule.
"""


def for_trainer(batch: ScoreBatch, partial: Partial) -> dict[str, Scores]:
    """Return the scores for TRL, by reward; unless ``partial="sum"``, ``None`` in rows that lack a part or all."""
    scores = batch.scores
    if partial == "sum":
        return scores
    counting = [column for name, column in batch.items() if batch.weights[name] != 0]
    for row in range(len(batch.rollouts)):
        parts = [column[row] for column in counting]
        failed = any(part.status is Status.FAILED and part.score is None for part in parts)
        if failed or (parts and all(part.score is None for part in parts)):
            for column in scores.values():
                column[row] = None
    return scores


def totals(scores: Mapping[str, Scores], weights: Mapping[str, float]) -> Scores:
    """Return the sums that TRL makes of its scores: ``None`` where a row has no score at all."""
    in_order = [weights[name] for name in scores]
    return [weighted_total(row, in_order) for row in zip(*scores.values(), strict=True)]


def metrics(batch: ScoreBatch) -> Iterator[tuple[str, float]]:
    """Yield the metrics for TRL's logs, each a name and a finite number."""
    for name, outcomes in batch.items():
        if not outcomes:
            continue
        causes = [outcome.cause for outcome in outcomes if outcome.status is Status.FAILED]
        timeouts = causes.count(Cause.TIMEOUT)
        skipped = sum(outcome.status is Status.SKIPPED for outcome in outcomes)
        seconds = sorted(outcome.duration_s for outcome in outcomes if not outcome.cached) or [0.0]
        yield f"reward_time/{name}/p95", seconds[math.ceil(0.95 * len(seconds)) - 1]  # by nearest rank
        yield f"reward_errors/{name}", (len(causes) - timeouts) / len(outcomes)
        yield f"reward_timeouts/{name}", timeouts / len(outcomes)
        yield f"reward_skipped/{name}", skipped / len(outcomes)
        yield f"reward_infrastructure/{name}", sum(outcome.is_lost for outcome in outcomes) / len(outcomes)
        own: defaultdict[str, list[float]] = defaultdict(list)
        for outcome in outcomes:
            for metric, value in outcome.metrics.items():
                own[metric].append(value)
        yield from ((f"reward_metrics/{name}/{metric}", fmean(values)) for metric, values in own.items())


class WaitingMetrics:
    """Metrics of scored batches for a trainer's next log, for a trainer that takes no metrics from reward functions."""

    def __init__(self) -> None:
        self._new: deque[tuple[str, float]] = deque(maxlen=_MOST_WAITING)
        self._of_split: dict[str, defaultdict[str, list[float]]] = {}

    def add(self, metrics: Iterable[tuple[str, float]]) -> None:
        """Keep the metrics of a batch, which may be one of training or of an evaluation."""
        self._new += metrics

    def belong_to(self, split: str) -> None:
        """Assign the metrics added since the last call to a split: ``"train"`` or ``"eval"``."""
        values = self._of_split.setdefault(split, defaultdict(list))
        for name, value in self._new:
            values[name].append(value)
        self._new.clear()

    def take(self, split: str) -> dict[str, float]:
        """Return the mean of each metric of a split, once, under the name that TRL gives it."""
        prefix = "eval_" if split == "eval" else ""
        return {f"{prefix}{name}": fmean(values) for name, values in self._of_split.pop(split, {}).items()}


def check_size(batch: ScoreBatch, step: int | None, shadows: Collection[str] = ()) -> None:
    """Raise :class:`rewardkit.RewardError` for a score, or a weighted sum, that is too large for TRL's arithmetic."""
    where = "" if step is None else f" at step {step}"
    for row in range(len(batch.rollouts)):
        total = 0.0
        for name, column in batch.items():
            if name in shadows:
                continue
            score = column[row].score or 0.0
            if abs(score) > MAX_SCORE:
                raise RewardError(
                    f"reward {name!r} gave {score:g}{where} on row {row}; the trainer computes in float32 and can take "
                    f"at most {MAX_SCORE:g}: scale it down, or bound it by clip({name}, lowest, highest)"
                )
            total += abs(batch.weights[name] * score)
        if total > MAX_SCORE:
            raise RewardError(
                f"the weighted rewards{where} on row {row} add up to {total:g}; the trainer computes in float32 and "
                f"can take at most {MAX_SCORE:g}: give smaller weights"
            )
