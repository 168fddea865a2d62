"""How far a judge's verdicts agree with labels.

Owns the measures: of verdicts (accuracy, Cohen's kappa), of scores as an order (area under the curve, Spearman's
correlation) and of scores as probabilities (calibration errors, Brier score). A measure that its input does not
define is ``None``: of nothing, or of one class only. Intervals are in ``statistics``.
"""

from __future__ import annotations

import bisect
import math
import statistics
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

from builtin_rewards.judge.statistics import mean_ranks


def accuracy(verdicts: Sequence[Hashable], labels: Sequence[Hashable]) -> float | None:
    """Gives the share of verdicts that equal their label; ``None`` of nothing.

    Raises:
        ValueError: There are not as many verdicts as labels.
    """
    _same_length(verdicts, labels)
    if not labels:
        return None
    return sum(verdict == label for verdict, label in zip(verdicts, labels, strict=True)) / len(labels)


def cohen_kappa(verdicts: Sequence[Hashable], labels: Sequence[Hashable]) -> float | None:
    """Gives the agreement of verdicts with labels beyond chance: 1 for perfect, 0 for what chance gives.

    Formula: (p_o - p_e) / (1 - p_e) with p_o the accuracy and p_e the sum over classes of both sides' shares
    multiplied. Source: Cohen, Educational and Psychological Measurement 20 (1960), 37-46.

    Returns:
        ``None`` of nothing, and where both sides name one and the same class throughout.

    Raises:
        ValueError: There are not as many verdicts as labels.
    """
    observed = accuracy(verdicts, labels)
    if observed is None:
        return None
    given, true = Counter(verdicts), Counter(labels)
    # In whole numbers, so that the case without a value is told exactly.
    expected = sum(given[name] * true[name] for name in given)
    if expected == len(labels) ** 2:
        return None
    chance = expected / len(labels) ** 2
    return (observed - chance) / (1 - chance)


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
    edges = [edge / bins for edge in range(1, bins)]
    return _binned_error(probabilities, labels, [bisect.bisect_left(edges, chance) for chance in probabilities])


def adaptive_calibration_error(probabilities: Sequence[float], labels: Sequence[bool], bins: int = 10) -> float | None:
    """Gives how far probabilities are from the shares that came true, in bins of equal numbers.

    As :func:`expected_calibration_error`, but each bin has a like number of rollouts; equal probabilities share a
    bin, so order makes no difference and a judge of few grades fills fewer bins. Source: Nixon et al., Measuring
    Calibration in Deep Learning (arXiv 1904.01685), section 3.2, for one class and weighted by numbers.

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
    places = [int(bins * (rank - 0.5) / len(probabilities)) for rank in mean_ranks(probabilities)]
    return _binned_error(probabilities, labels, places)


def _binned_error(probabilities: Sequence[float], labels: Sequence[bool], places: Sequence[int]) -> float | None:
    if not labels:
        return None
    gaps: dict[int, list[float]] = {}
    for place, chance, label in zip(places, probabilities, labels, strict=True):
        gaps.setdefault(place, []).append(chance - bool(label))
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
