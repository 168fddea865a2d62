"""The reward that a trainer's environment gives, as one of ours: with a weight, recorded beside the others.

An environment of TRL's keeps it in its attribute ``reward``. In verifiers a task or an environment records it in the
trace. Other trainers may send it as the column ``environment_reward``. :mod:`trainer_adapter.environment_values` reads
it.
"""

from __future__ import annotations

from rewardkit import reward

__all__ = ["environment_reward"]


@reward(name="environment", default=None)
def environment_reward(environment_reward: float | None = None) -> float | None:
    """Score as the environment has scored the completion; skipped where it has not.

    Args:
        environment_reward: What the environment gave; ``None`` for nothing.
    """
    return environment_reward
