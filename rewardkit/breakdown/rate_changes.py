"""Which prompts got better or worse: their pass rates over their first groups and over their last ones."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from rewardkit.record.table import Floats, Whole
from rewardkit.statistics import Interval, rate_change, wilson


def shares(parts: Floats | Whole, wholes: Whole) -> Floats:
    """Return parts divided by wholes, ``nan`` where a whole is 0."""
    quotients: Floats = np.divide(parts, wholes, out=np.full(len(wholes), np.nan), where=wholes > 0)
    return quotients


class RateChanges(NamedTuple):
    """Pass rates before and after, of groups that do not overlap; one entry a prompt.

    A prompt of one group has no change: none of its completions counts.
    """

    groups: Whole  # How many groups count at either end
    counted_before: Whole  # The completions of the first groups that are right or wrong
    passed_before: Whole  # Those of them that are right
    counted_after: Whole  # The same of the last groups
    passed_after: Whole
    means_before: Floats  # The mean of the rewards, or scores, of the first groups; `nan` where none counts
    means_after: Floats

    def interval(self, index: int) -> Interval:
        """Return by how much the rate of the prompt at an index changed, see :func:`rate_change`."""
        before = wilson(int(self.passed_before[index]), int(self.counted_before[index]))
        return rate_change(before, wilson(int(self.passed_after[index]), int(self.counted_after[index])))

    @property
    def values(self) -> Floats:
        """By how much each rate changed, -1 to 1; ``nan`` where one of the two is not known."""
        before = shares(self.passed_before, self.counted_before)
        return shares(self.passed_after, self.counted_after) - before

    def row(self, index: int) -> dict[str, int | float | None]:
        """Return the change of the prompt at an index, ready for JSON."""
        change, means = self.interval(index), (float(self.means_before[index]), float(self.means_after[index]))
        before, after = (None if math.isnan(mean) else mean for mean in means)
        return {
            "change": change.rate,
            "change_low": None if change.rate is None else change.low,
            "change_high": None if change.rate is None else change.high,
            "change_groups": int(self.groups[index]),
            "mean_before": before,
            "mean_after": after,
        }
