"""Figures over the rows of a preference set: accuracy, ties, calibration, by subset, each with its interval.

Rows without all their scores count in no figure: failed and skipped rows are counted apart.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rewardkit import ConfigError
from rewardkit.statistics import Interval, wilson
from trainer_adapter.objectives import brier, expected_calibration_error, pair_probabilities
from trainer_adapter.reward_evaluation.scored_row import RowKind, ScoredRow, ties_score

SCALES = ("logit", "probability")
BINS = 10
_DRAWS = 200  # Draws of the bootstrap
_EDGE = 1e-9  # Probabilities are held this far from 0 and 1, so that their log-odds are finite
_WORST = 5


@dataclass(frozen=True, slots=True)
class SubsetReport:
    """The figures of one subset.

    Attributes:
        name: The subset; ``None`` of rows without one.
        kind: How its rows are counted: ``pairs``, ``best of several``, ``ties``, or ``mixed``.
        rows: Its rows, of which ``scored`` have all their scores, ``failed`` a failed call, and ``skipped`` a skip.
        accuracy: The mean worth of the scored rows.
        tie_rate: The share of the scored rows in which the best right and the best wrong completion have one score.
        score: What counts in the mean of subsets: the accuracy, or of RewardBench 2's ties its own formula, of
            at most 1.01: no share.
    """

    name: str | None
    kind: str
    rows: int
    scored: int
    failed: int
    skipped: int
    accuracy: Interval
    tie_rate: Interval
    score: float | None


@dataclass(frozen=True, slots=True)
class PreferenceReport:
    """How a reward does on a preference set.

    Attributes:
        reward: The reward's name.
        version: Its version.
        overall: The figures over all rows.
        subsets: Those of each subset, in the order in which they first appear; empty without subsets.
        mean_of_subsets: The mean of the subsets' scores, each counted once, as RewardBench 2 does.
        margin: Mean and deviation of how far the chosen completion of a pair is ahead, in the reward's own unit.
        scale: How scores became the probability of a preference, see :func:`evaluate_preferences`.
        ece: Expected calibration error of these, with the 95 % interval of a bootstrap over pairs.
        brier: Brier score of these.
        bins: Bins of the calibration error.
        first_error: Why the first row failed.
        worst: The pairs that are lost by most: where they stand, and by how much.
    """

    reward: str
    version: str
    overall: SubsetReport
    subsets: tuple[SubsetReport, ...]
    mean_of_subsets: float | None
    margin: tuple[float, float] | None
    scale: str
    ece: Interval
    brier: float | None
    bins: int
    first_error: str | None
    worst: tuple[tuple[str, float], ...] = field(repr=False)

    def as_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {name: _plain(value) for name, value in asdict(self, dict_factory=dict).items()}


def evaluate_preferences(
    rows: Sequence[ScoredRow], reward: str, version: str = "", *, scale: str = "logit", bins: int = BINS, seed: int = 0
) -> PreferenceReport:
    """Return the figures over scored rows.

    The probability that the chosen completion of a pair is preferred is 1 / (1 + exp(-(chosen - rejected))) on the
    scale ``"logit"``, that of a Bradley-Terry model. On ``"probability"``, where a score says how likely a completion
    is good, it is the same of the scores' log-odds. Pairs are put in random order first, because where the chosen one
    is always first a reward that is always sure would be calibrated.

    Args:
        rows: Rows with their scores.
        reward: The reward's name.
        version: Its version.
        scale: ``"logit"`` or ``"probability"``.
        bins: Bins of the calibration error, 1 or more.
        seed: Of the order of pairs, and of the bootstrap.

    Raises:
        ConfigError: There is no such scale, ``bins`` is below 1, or a score on the scale of probabilities is not a
            probability.
    """
    if scale not in SCALES:
        raise ConfigError(f"scale={scale!r}: expected one of {', '.join(SCALES)}")
    if bins < 1:
        raise ConfigError(f"bins={bins}: expected 1 or more")
    names = list(dict.fromkeys(row.subset for row in rows))
    subsets = [_figures(name, [row for row in rows if row.subset == name]) for name in names]
    named = tuple(subsets) if names != [None] else ()
    scores = [subset.score for subset in named if subset.score is not None]  # one without scored rows has none
    pairs = [row for row in rows if row.kind is RowKind.PAIR and row.is_scored]
    margins = [row.margin for row in pairs]
    lost = sorted((row for row in pairs if row.margin < 0), key=lambda row: row.margin)[:_WORST]  # a tie is not lost
    ece, squares = _calibration(pairs, scale, bins, seed)
    return PreferenceReport(
        reward=reward,
        version=version,
        overall=_figures(None, rows),
        subsets=named,
        mean_of_subsets=statistics.fmean(scores) if scores else None,
        margin=(statistics.fmean(margins), statistics.pstdev(margins)) if margins else None,
        scale=scale,
        ece=ece,
        brier=squares,
        bins=bins,
        first_error=next((row.error for row in rows if row.failed), None),
        worst=tuple((row.where, -row.margin) for row in lost),
    )


def _figures(name: str | None, rows: Sequence[ScoredRow]) -> SubsetReport:
    """Return the figures of the rows of a subset, or with ``None`` of all rows or of those without a subset."""
    scored = [row for row in rows if row.is_scored]
    kinds = {str(row.kind) for row in rows}
    failed = sum(row.failed for row in rows)
    accuracy = wilson(math.fsum(row.credit for row in scored), len(scored))
    formula = ties_score(rows) if kinds == {str(RowKind.TIES)} else None
    return SubsetReport(
        name=name,
        kind=kinds.pop() if len(kinds) == 1 else "mixed",
        rows=len(rows),
        scored=len(scored),
        failed=failed,
        skipped=sum(not row.is_scored and not row.failed for row in rows),
        accuracy=accuracy,
        tie_rate=wilson(sum(row.is_tie for row in scored), len(scored)),
        score=accuracy.rate if formula is None else formula,
    )


def _calibration(pairs: Sequence[ScoredRow], scale: str, bins: int, seed: int) -> tuple[Interval, float | None]:
    """Return the calibration error of pairs, and their Brier score."""
    if not pairs:
        return Interval(None, 0.0, 1.0, 0), None
    chosen, rejected = np.array([(row.chosen[0], row.rejected[0]) for row in pairs], dtype=float).T
    if scale == "probability":
        chosen, rejected = _log_odds(chosen, pairs), _log_odds(rejected, pairs)
    probabilities, labels = pair_probabilities(chosen, rejected, seed=seed)
    error = float(expected_calibration_error(probabilities, labels, bins))
    generator = np.random.default_rng(seed)
    draws = []
    for _ in range(_DRAWS):
        index = generator.integers(0, len(labels), len(labels))
        draws.append(float(expected_calibration_error(probabilities[index], labels[index], bins)))
    low, high = np.quantile(draws, [0.025, 0.975]).tolist()
    return Interval(error, min(low, error), max(high, error), len(labels)), float(brier(probabilities, labels))


def _log_odds(scores: NDArray[np.float64], pairs: Sequence[ScoredRow]) -> NDArray[np.float64]:
    """Return the log-odds of probabilities; raise ``ConfigError``, with its row, for a score outside 0 to 1."""
    outside = np.flatnonzero((scores < 0) | (scores > 1))
    if len(outside):
        row = int(outside[0])
        raise ConfigError(
            f"{pairs[row].where}: score {scores[row]:g}: not a probability, as --scale probability expects; "
            "use --scale logit"
        )
    inner = np.clip(scores, _EDGE, 1 - _EDGE)
    log_odds: NDArray[np.float64] = np.log(inner) - np.log1p(-inner)
    return log_odds


def _plain(value: object) -> object:
    if isinstance(value, Interval):
        return value._asdict()
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
