"""A run's rewards in a few numbers each, from the sums of its steps."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rewardkit.record.values import StepSummary


@dataclass(frozen=True, slots=True)
class RewardOverview:
    """One reward over the steps of a run.

    Attributes:
        reward: Its name.
        means: Its mean score at each step; ``None`` for a step without a score.
        first: The first of them that is known.
        last: The last.
        std: The standard deviation of the scores at that last step.
        low: The lowest score of all.
        high: The highest.
        scored: Calls with a score.
        skipped: Calls that did not apply.
        failed: Failed calls, by cause, the most frequent first.
        p50_s: Median seconds of a call: the median of the steps' medians.
        p95_s: 95th percentile: the median of the steps'.
        flat_share: The share of groups whose scores are all the same, among those with two scores or more.
    """

    reward: str
    means: Sequence[float | None] = field(repr=False)
    first: float | None
    last: float | None
    std: float | None
    low: float | None
    high: float | None
    scored: int
    skipped: int
    failed: Mapping[str, int]
    p50_s: float | None
    p95_s: float | None
    flat_share: float | None


def overviews(summaries: Sequence[StepSummary]) -> list[RewardOverview]:
    """Return each reward's numbers, in the order in which the rewards first appear.

    Args:
        summaries: Of one split, as :meth:`~rewardkit.record.reader.RunReader.summaries` gives them.
    """
    rewards = dict.fromkeys(one.reward for one in summaries)
    return [_overview(name, [one for one in summaries if one.reward == name]) for name in rewards]


def _overview(reward: str, steps: Sequence[StepSummary]) -> RewardOverview:
    known = [one for one in steps if one.mean is not None]
    groups = sum(one.groups for one in steps)
    causes: dict[str, int] = {}
    for cause, number in itertools.chain.from_iterable(one.failed.items() for one in steps):
        causes[cause] = causes.get(cause, 0) + number
    return RewardOverview(
        reward=reward,
        means=[one.mean for one in steps],
        first=known[0].mean if known else None,
        last=known[-1].mean if known else None,
        std=known[-1].std if known else None,
        low=min((one.low for one in steps if one.low is not None), default=None),
        high=max((one.high for one in steps if one.high is not None), default=None),
        scored=sum(one.scored for one in steps),
        skipped=sum(one.skipped for one in steps),
        failed=dict(sorted(causes.items(), key=lambda pair: -pair[1])),
        p50_s=_median([one.p50_s for one in steps]),
        p95_s=_median([one.p95_s for one in steps]),
        flat_share=sum(one.flat_groups for one in steps) / groups if groups else None,
    )


def _median(values: Sequence[Any]) -> float | None:
    known = [one for one in values if one is not None]
    return statistics.median(known) if known else None
