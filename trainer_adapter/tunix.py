"""Rewards as Tunix, and MaxText by it, call them: ``reward_fn(prompts, completions, **columns)``, a list of numbers.

======== ===================================================================
scored   the total
skipped  ``nan``, which Tunix leaves out of its sum: 0.0 if all are
failed   the total with the default in it
unknown  an error, which ends the step; or with ``on_unknown="zero"`` 0.0
======== ===================================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, Unpack

from trainer_adapter.list_calls import list_rollouts
from trainer_adapter.trainer_rewards import OnUnknown, TrainerAsks, TrainerOptions, TrainerRewards
from trainer_adapter.trainer_versions import TrainerVersions

__all__ = ["TunixReward", "tunix_reward"]

_ASKS = TrainerAsks(
    trainer="Tunix",
    setting="reward_fns",
    more="Tunix sends the columns of the training data: put it there",
    size="num_generations",
    tested=TrainerVersions("google-tunix", "0.1", "0.2"),
    one_number="TurnCreditTrainer, for TRL, takes one a turn",
)
TunixReward: TypeAlias = Callable[..., list[float]]
"""What Tunix calls."""


def tunix_reward(
    rewards: object = None, *, on_unknown: OnUnknown = "raise", **options: Unpack[TrainerOptions]
) -> TunixReward:
    """Return a function of some rewards for ``reward_fns`` of Tunix' learners, and of MaxText's.

    Args:
        rewards: As :class:`TrainerRewards` takes them.
        on_unknown: ``"raise"`` or ``"zero"``.
        options: ``weights``, ``group_wait_s`` and ``group_size``, which is ``num_generations`` where a reward scores
            groups; and the other options of :class:`rewardkit.Runtime`.

    Raises:
        RewardError: As :class:`TrainerRewards`.
    """
    core = TrainerRewards(rewards, asks=_ASKS, on_unknown=on_unknown, **options)

    def reward_fn(prompts: Sequence[Any], completions: Sequence[Any], **columns: object) -> list[float]:
        """Return a number for each completion."""
        rows = core.score(list_rollouts(core, completions, columns, list(prompts)))
        return [math.nan if row.flags["skipped"] else core.number(row) for row in rows]

    reward_fn.__name__ = "_".join(core.names)  # by which Tunix logs it
    return reward_fn
