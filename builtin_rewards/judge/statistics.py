"""Agreement with its uncertainty: kappa, the area under the curve, the mean of moves.

Owns the arithmetic only. No result is ever ``nan``; a result that the input does not define is ``None``.
"""

from __future__ import annotations

import bisect
import math
import statistics
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from rewardkit.statistics import Z_95, Interval, wilson


def mean_move(moves: Sequence[float]) -> Interval:
    """Return the mean of moves of scores, each from -1 to 1, with a normal interval that holds for few moves too.

    The interval counts two more moves, -1 and 1, so that a few equal moves do not look certain. Agresti and Coull,
    American Statistician 52 (1998), do so for shares.
    """
    counted = [*moves, -1.0, 1.0]
    middle, half = statistics.fmean(counted), Z_95 * statistics.stdev(counted) / math.sqrt(len(counted))
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
        """Cohen's kappa, agreement beyond chance: 1 for perfect, 0 for what chance gives.

        Formula: (p_o - p_e) / (1 - p_e) with p_o the share that agrees and p_e the sum over classes of both sides'
        shares multiplied; the ends are those of p_o's Wilson interval, p_e taken as it is. Source: Cohen, Educational
        and Psychological Measurement 20 (1960), 37-46. ``None`` of nothing, and where both sides name one class only.
        """
        rows, yes, good = sum(self), self.right_yes + self.wrong_yes, self.right_yes + self.wrong_no
        chance = yes * good + (rows - yes) * (rows - good)
        if chance == rows**2:
            return Interval(None, -1.0, 1.0, rows)
        # In whole numbers, so that equal ones come out equal.
        rate = ((self.right_yes + self.right_no) * rows - chance) / (rows**2 - chance)
        low, high = ((end * rows**2 - chance) / (rows**2 - chance) for end in self.agreement[1:3])
        return Interval(rate, max(-1.0, low), high, rows)


def auc(scores: Sequence[float], labels: Sequence[bool]) -> float | None:
    """Return the chance that a good rollout scores above a bad one, ties half: the area under the ROC curve.

    ``None`` where all labels are the same. Source: Hanley and McNeil, Radiology 143 (1982), 29-36.
    """
    judged = list(zip(scores, labels, strict=True))
    good, bad = [score for score, label in judged if label], sorted(score for score, label in judged if not label)
    if not good or not bad:
        return None
    above = sum(bisect.bisect_left(bad, score) + bisect.bisect_right(bad, score) for score in good) / 2
    return above / (len(good) * len(bad))
