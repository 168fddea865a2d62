"""From the outcomes of a batch's calls to those of its rewards: too many lost calls are refused, compositions made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rewardkit.declare.compose import Composable
from rewardkit.declare.decorator import Reward
from rewardkit.errors import InfrastructureError
from rewardkit.types import Outcome


def check_lost(name: str, outcomes: Sequence[Outcome], most: float) -> None:
    """Refuse a batch in which more than a share, 0 to 1, of a reward's calls was lost to infrastructure.

    The InfrastructureError names the reward and the first error.
    """
    lost = [outcome for outcome in outcomes if outcome.is_lost]
    if lost and len(lost) / len(outcomes) > most:
        raise InfrastructureError(
            f"reward {name!r}: {len(lost) / len(outcomes):.0%} of {len(outcomes)} calls were lost through no fault of "
            f"the completions (more than max_infrastructure_rate={most:g}); the first: {lost[0].error}"
        )


def combine(
    rewards: Mapping[str, Composable],
    columns: Mapping[Reward[..., Any], Sequence[Outcome]],
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
            each = ({leaf: columns[leaf][row] for leaf in parts} for row in range(rows))
            combined[name] = [reward.combine(outcomes, step) for outcomes in each]
    return combined
