"""How far a judge's verdicts agree with labels.

Owns the measures: of verdicts (Cohen's kappa), of scores as an order (area under the curve, Spearman's
correlation) and of scores as probabilities (calibration errors, Brier score). A measure that its input does not
define is ``None``: of nothing, or of one class only.
"""

from __future__ import annotations

import bisect
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from builtin_rewards.judge.statistics import Interval, mean_ranks


class Table(NamedTuple):
    """How verdicts stand to labels.

    Attributes:
        right_yes: Good ones that were accepted.
        wrong_yes: Bad ones that were accepted.
        wrong_no: Good ones that were refused.
        right_no: Bad ones that were refused.
    """

    right_yes: int
    wrong_yes: int
    wrong_no: int
    right_no: int

    @classmethod
    def of(cls, verdicts: Sequence[bool], labels: Sequence[bool]) -> Table:
        """Counts verdicts beside their labels."""
        _same_length(verdicts, labels)
        found = Counter(zip(map(bool, verdicts), map(bool, labels), strict=True))
        return cls(found[True, True], found[True, False], found[False, True], found[False, False])

    @property
    def agreeing(self) -> int:
        """How many verdicts equal their label."""
        return self.right_yes + self.right_no


def kappa(table: Table, *, draws: int = 4000, seed: int = 0) -> Interval:
    """Gives the agreement of verdicts with labels beyond chance: 1 for perfect, 0 for what chance gives.

    Formula: (p_o - p_e) / (1 - p_e) with p_o the share that agrees and p_e the sum over classes of both sides' shares
    multiplied. Source: Cohen, Educational and Psychological Measurement 20 (1960), 37-46. The interval is the 95 %
    percentile interval of a bootstrap, for which the four counts are drawn together, which is to draw the rows.

    Args:
        table: The counts.
        draws: Resamples; 0 for the rate alone.
        seed: The same seed gives the same interval on one version of numpy.

    Returns:
        A rate of ``None`` of nothing, and where both sides name one and the same class throughout.
    """
    rate = _kappa(*map(float, table))
    if rate is None or not draws:
        return Interval(rate, -1.0, 1.0)
    import numpy as np

    rows = sum(table)
    drawn = np.random.default_rng(seed).multinomial(rows, [count / rows for count in table], size=draws)
    seen = [value for counts in drawn.tolist() if (value := _kappa(*counts)) is not None]
    low, high = np.quantile(seen, [0.025, 0.975])
    return Interval(rate, min(rate, float(low)), max(rate, float(high)))


def _kappa(right_yes: float, wrong_yes: float, wrong_no: float, right_no: float) -> float | None:
    rows = right_yes + wrong_yes + wrong_no + right_no
    yes, good = right_yes + wrong_yes, right_yes + wrong_no
    chance = yes * good + (rows - yes) * (rows - good)
    # In whole numbers, so that the case without a value is told exactly.
    return None if chance == rows**2 else ((right_yes + right_no) * rows - chance) / (rows**2 - chance)


def auc(scores: Sequence[float], labels: Sequence[bool]) -> float | None:
    """Gives the chance that a good rollout scores above a bad one, ties half: the area under the ROC curve.

    Formula: (R - g(g + 1)/2) / (g b) with R the sum of the mean ranks of the g good among g + b. Source: Hanley and
    McNeil, Radiology 143 (1982), 29-36.

    Returns:
        ``None`` where all labels are the same.

    Raises:
        ValueError: There are not as many scores as labels, or one is not finite.
    """
    _same_length(scores, labels)
    _finite(scores)
    good = sum(map(bool, labels))
    bad = len(labels) - good
    if not good or not bad:
        return None
    ranks = math.fsum(rank for rank, label in zip(mean_ranks(scores), labels, strict=True) if label)
    return (ranks - good * (good + 1) / 2) / (good * bad)


def spearman(scores: Sequence[float], labels: Sequence[float]) -> float | None:
    """Gives the rank correlation of scores with graded labels, -1 to 1.

    Formula: Pearson's correlation of the mean ranks, which is right with ties. Source: Spearman, American Journal of
    Psychology 15 (1904), 72-101.

    Returns:
        ``None`` where all scores or all labels are equal, so also with fewer than two.

    Raises:
        ValueError: There are not as many scores as labels, or one is not finite.
    """
    _same_length(scores, labels)
    _finite(scores)
    _finite(labels)
    if len(set(scores)) < 2 or len(set(labels)) < 2:
        return None
    return max(-1.0, min(1.0, statistics.correlation(mean_ranks(scores), mean_ranks(labels))))


def brier(probabilities: Sequence[float], labels: Sequence[bool]) -> float | None:
    """Gives the mean squared distance of probabilities from what was true, 0 (best) to 1; ``None`` of nothing.

    Source: Brier, Monthly Weather Review 78 (1950), 1-3, in the form for two classes, half of its original.

    Raises:
        ValueError: There are not as many probabilities as labels, or one is outside [0, 1].
    """
    _probabilities(probabilities, labels)
    if not labels:
        return None
    return statistics.fmean((chance - bool(label)) ** 2 for chance, label in zip(probabilities, labels, strict=True))


def expected_calibration_error(probabilities: Sequence[float], labels: Sequence[bool], bins: int = 10) -> float | None:
    """Gives how far probabilities are from the shares that came true, in bins of equal width.

    Formula: Σ_b (n_b / n) |mean probability - share of true labels| over the bins ((b - 1)/bins, b/bins]; 0 is in
    the first. Source: Guo et al., On Calibration of Modern Neural Networks (arXiv 1706.04599), equation 3, with the
    probability of "good" in place of the confidence in the chosen class.

    Args:
        probabilities: The judge's scores taken as the chance that the rollout is good.
        labels: Whether it is.
        bins: How many bins there are.

    Returns:
        ``None`` of nothing.

    Raises:
        ValueError: There are not as many probabilities as labels, one is outside [0, 1], or ``bins`` is below 1.
    """
    _probabilities(probabilities, labels)
    _at_least_one(bins)
    if not labels:
        return None
    edges = [edge / bins for edge in range(1, bins)]
    gaps: dict[int, list[float]] = {}
    for chance, label in zip(probabilities, labels, strict=True):
        gaps.setdefault(bisect.bisect_left(edges, chance), []).append(chance - bool(label))
    return math.fsum(abs(math.fsum(gap)) for gap in gaps.values()) / len(labels)


def _same_length(given: Sequence[object], labels: Sequence[object]) -> None:
    if len(given) != len(labels):
        raise ValueError(f"expected one label for each verdict, got {len(given)} verdicts and {len(labels)} labels")


def _finite(values: Iterable[float]) -> None:
    for value in values:
        if not math.isfinite(value):
            raise ValueError(f"expected finite numbers, got {value}; leave out what was not scored")


def _probabilities(probabilities: Sequence[float], labels: Sequence[bool]) -> None:
    _same_length(probabilities, labels)
    for chance in probabilities:
        if not 0 <= chance <= 1:
            raise ValueError(f"expected probabilities from 0 to 1, got {chance}")


def _at_least_one(bins: int) -> None:
    if bins < 1:
        raise ValueError(f"bins: expected at least 1, got {bins}")
