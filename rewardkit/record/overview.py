"""A run's rewards in a few numbers each, from the sums of its steps."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rewardkit.record.values import StepSummary


@dataclass(frozen=True, slots=True)
class RewardOverview:
    """One reward over the steps of a run."""

    reward: str  # Its name
    means: Sequence[float | None] = field(repr=False)  # Its mean score at each step; `None` for a step without a score
    first: float | None  # The first of them that is known
    last: float | None  # The last
    std: float | None  # The standard deviation of the scores at that last step
    low: float | None  # The lowest score of all
    high: float | None  # The highest
    scored: int  # Calls with a score
    skipped: int  # Calls that did not apply
    failed: Mapping[str, int]  # Failed calls, by cause, the most frequent first
    p50_s: float | None  # Median seconds of a call: the median of the steps' medians
    p95_s: float | None  # 95th percentile: the median of the steps'
    flat_share: float | None  # The share of groups whose scores are all the same, among those with two scores or more


def overviews(summaries: Sequence[StepSummary]) -> list[RewardOverview]:
    """Return each reward's numbers over the steps of one split, in the order in which the rewards first appear."""
    rewards = dict.fromkeys(step.reward for step in summaries)
    return [_overview(name, [step for step in summaries if step.reward == name]) for name in rewards]


def _overview(reward: str, steps: Sequence[StepSummary]) -> RewardOverview:
    """Return one reward's numbers, from its steps in their order."""
    with_mean = [step for step in steps if step.mean is not None]
    groups = sum(step.groups for step in steps)
    causes = sum((Counter(step.failed) for step in steps), Counter[str]())
    return RewardOverview(
        reward=reward,
        means=[step.mean for step in steps],
        first=with_mean[0].mean if with_mean else None,
        last=with_mean[-1].mean if with_mean else None,
        std=with_mean[-1].std if with_mean else None,
        low=min((step.low for step in steps if step.low is not None), default=None),
        high=max((step.high for step in steps if step.high is not None), default=None),
        scored=sum(step.scored for step in steps),
        skipped=sum(step.skipped for step in steps),
        failed=dict(causes.most_common()),
        p50_s=_median([step.p50_s for step in steps]),
        p95_s=_median([step.p95_s for step in steps]),
        flat_share=sum(step.flat_groups for step in steps) / groups if groups else None,
    )


def _median(values: Sequence[Any]) -> float | None:
    numbers = [value for value in values if value is not None]
    return statistics.median(numbers) if numbers else None
