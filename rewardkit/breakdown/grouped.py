"""Means of the reward, or of one reward's scores, by group: over all completions, and by step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rewardkit.breakdown.data_column import Grouping
from rewardkit.breakdown.run_scores import Measured, Scores
from rewardkit.record.table import Floats, Mask, Whole
from rewardkit.statistics import mean_interval, paired_interval


class GroupMean(NamedTuple):
    """The completions of one group.

    Attributes:
        low: The lower end of the mean's 95 % interval, see :func:`group_means`; ``None`` with one value alone.
    """

    label: str  # What the group is called
    prompts: int  # How many prompts it has
    completions: int  # How many completions of them
    scored: int  # How many of these have a value: the mean is of them
    skipped: int  # How many have none because nothing applied
    failed: int  # How many have none because a call failed: whatever stood in
    mean: float | None
    std: float | None  # The standard deviation of the values (`ddof=1`); `None` with fewer than two
    low: float | None
    high: float | None  # Its upper end


class GroupCurves(NamedTuple):
    """The mean of each group at each step; ``None`` where the group has no value there."""

    steps: Sequence[int]
    means: Sequence[Sequence[float | None]]  # One a group, in the order of the labels


def completions_by_prompt(scores: Scores, measured: Measured, prompts: int) -> Whole:
    """Return how many completions each of so many prompts has of which something was asked."""
    return np.bincount(scores.prompts[measured.has_call], minlength=prompts)


def group_means(scores: Scores, measured: Measured, grouping: Grouping) -> list[GroupMean]:
    """Return the groups with their means, in the order of the grouping.

    The interval is that of a mean over clusters, see :func:`~rewardkit.statistics.paired_interval`, because the
    completions of a prompt are alike: as wide as the prompts differ. A group of one prompt has the interval of that
    prompt's values, see :func:`~rewardkit.statistics.mean_interval`.
    """
    codes = grouping.codes[scores.prompts]
    is_inside = measured.has_call & (codes >= 0)
    has_value = is_inside & ~np.isnan(measured.values)
    size = len(grouping.labels)

    def count(mask: Mask) -> Whole:
        return np.bincount(codes[mask & is_inside], minlength=size)

    prompts = np.bincount(grouping.codes[np.unique(scores.prompts[is_inside])], minlength=size)
    columns = zip(
        grouping.labels, prompts.tolist(), count(is_inside), count(has_value), count(measured.skipped),
        count(measured.failed), strict=True,
    )  # fmt: skip
    order = np.argsort(codes[has_value], kind="stable")
    values, of_prompt = measured.values[has_value][order], scores.prompts[has_value][order]
    starts = np.searchsorted(codes[has_value][order], np.arange(size + 1))
    return [
        GroupMean(
            label, prompt_count, int(completions), int(scored), int(skipped), int(failed),
            *_mean(values[starts[code] : starts[code + 1]], of_prompt[starts[code] : starts[code + 1]]),
        )
        for code, (label, prompt_count, completions, scored, skipped, failed) in enumerate(columns)
    ]  # fmt: skip


def _mean(values: Floats, clusters: Whole) -> tuple[float | None, float | None, float | None, float | None]:
    """Return mean, standard deviation and the ends of the interval of values, of which those of a cluster are alike."""
    if not len(values):
        return None, None, None, None
    if len(values) == 1:
        return float(values[0]), None, None, None
    numbers = values.tolist()
    interval = paired_interval(numbers, clusters.tolist())
    if math.isinf(interval.low):  # of one cluster
        interval = mean_interval(numbers)
    return interval.rate, float(values.std(ddof=1)), interval.low, interval.high


def group_curves(scores: Scores, measured: Measured, grouping: Grouping) -> GroupCurves:
    """Return the mean of each group at each step at which something was asked, without completions of no step."""
    codes = grouping.codes[scores.prompts]
    is_inside = measured.has_call & (codes >= 0) & (scores.steps >= 0)
    steps, places = np.unique(scores.steps[is_inside], return_inverse=True)
    values = measured.values[is_inside]
    cells = places.reshape(-1) + len(steps) * codes[is_inside]
    has_value = ~np.isnan(values)
    size = len(steps) * len(grouping.labels)
    counts = np.bincount(cells[has_value], minlength=size)
    sums = np.bincount(cells[has_value], values[has_value], minlength=size)
    means = np.divide(sums, counts, out=np.full(size, np.nan), where=counts > 0)
    lines = means.reshape(len(grouping.labels), len(steps)).tolist()
    return GroupCurves(steps.tolist(), [[value if math.isfinite(value) else None for value in line] for line in lines])
