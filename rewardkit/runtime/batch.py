"""From the outcomes of a batch's calls to those of its rewards: too many lost calls are refused, compositions made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from rewardkit.declare.compose import Composable
from rewardkit.declare.decorator import Reward
from rewardkit.declare.options import WORST
from rewardkit.errors import DataError, InfrastructureError
from rewardkit.groups import group_places
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Outcome, Rollout, Status

Columns: TypeAlias = Mapping[Reward[..., Any], Sequence[Outcome]]


def check_lost(name: str, outcomes: Sequence[Outcome], most: float) -> None:
    """Raise InfrastructureError where more than a share, 0 to 1, of a reward's calls was lost to infrastructure.

    It names the reward and the first error.
    """
    lost = [outcome for outcome in outcomes if outcome.is_lost]
    if lost and len(lost) / len(outcomes) > most:
        limit = f"max_infrastructure_rate={most:g}, in rewardkit score --max-lost"
        raise InfrastructureError(
            f"reward {name!r}: {len(lost) / len(outcomes):.0%} of {len(outcomes)} calls were lost through no fault of "
            f"the completions (more than {limit}); the first: {lost[0].error}"
        )


def waits_for_group(reward: Reward[..., Any], outcome: Outcome, sign: int) -> bool:
    """Return whether a failure's score depends on its group: the reward has no worst score that is known before."""
    if outcome.status is not Status.FAILED or outcome.score is None:
        return False
    return reward.options.default == WORST and reward.options.worst(sign) is None


def with_worst_of_groups(
    columns: Columns, rollouts: Sequence[Rollout], signs: Mapping[Reward[..., Any], int]
) -> Columns:
    """Return the leaves' outcomes; a failure that waits for its group has the group's worst score, if 0.0 is better."""
    groups: list[tuple[int, ...]] = []
    filled = dict(columns)
    for reward, column in columns.items():
        sign = signs.get(reward, 1)
        failed = [row for row, outcome in enumerate(column) if outcome.cause is not None]
        waiting = {row for row in failed if waits_for_group(reward, column[row], sign)}
        if not waiting:
            continue
        groups = groups or _groups(rollouts)
        changed = filled[reward] = list(column)
        for group in groups:
            earned = [column[row].score or 0.0 for row in group if column[row].status is Status.SCORED]
            worst = min([0.0, *(sign * score for score in earned)])
            for row in waiting.intersection(group):
                changed[row] = column[row]._replace(score=sign * worst or 0.0)  # no -0.0
    return filled


def _groups(rollouts: Sequence[Rollout]) -> list[tuple[int, ...]]:
    """Return the groups' rows; all rows as one group where a row cannot be compared with the others."""
    try:
        return group_places(rollouts)
    except DataError:
        return [tuple(range(len(rollouts)))]


def combine(
    rewards: Mapping[str, Composable],
    columns: Columns,
    rows: int,
    step: int | None,
) -> dict[str, Sequence[Outcome]]:
    """Return the outcomes of rewards and compositions by name, from those of their leaves; schedules read ``step``."""
    combined: dict[str, Sequence[Outcome]] = {}
    for name, reward in rewards.items():
        parts = reward.leaves
        if parts == (reward,):
            combined[name] = columns[parts[0]]
        else:
            outcomes_by_row = ({leaf: columns[leaf][row] for leaf in parts} for row in range(rows))
            combined[name] = [reward.combine(outcomes, step) for outcomes in outcomes_by_row]
    return combined


def slices(
    parts: Iterable[Sequence[Rollout]], outcomes: Mapping[str, Sequence[Outcome]], weights: Mapping[str, float]
) -> Iterator[ScoreBatch]:
    """Yield each part's own scores out of a shared batch, the parts in their order."""
    first = 0
    for rollouts in parts:
        last = first + len(rollouts)
        own = {name: column[first:last] for name, column in outcomes.items()}
        yield ScoreBatch(rollouts, own, weights)
        first = last
