"""The reward that a trainer's environment gives, as one of ours: with a weight, recorded beside the others.

An environment of TRL's gives it by its method ``get_reward``, or keeps it in its attribute ``reward``. In verifiers a
task or an environment records it in the trace. Other trainers may send it as the column ``environment_reward``.
:mod:`trainer_adapter.environment_values` reads it.
"""

from __future__ import annotations

from rewardkit import Score, reward
from trainer_adapter.environment_values import (
    EnvironmentFault,
    LostInEnvironment,
    RaisedInEnvironment,
    ScoreOfEnvironment,
)

__all__ = ["environment_reward"]


@reward(name="environment", default=None)
def environment_reward(environment_reward: object = None) -> float | Score | None:
    """Score as the environment has scored the completion; skipped where it has not, failed where it raised.

    An environment that raises :class:`~rewardkit.InfrastructureError`, as ``check_suite`` does where a jail fails, has
    lost the score: its completion answers for nothing, and nothing stands in.

    Args:
        environment_reward: What the environment gave, a number or its text, or a ``Score``; ``None`` for nothing.
    """
    value = environment_reward
    if isinstance(value, RaisedInEnvironment):
        raise (LostInEnvironment if value.is_loss else EnvironmentFault)(value.message)
    if isinstance(value, ScoreOfEnvironment):
        return value.score
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    return float(value)  # type: ignore[arg-type]  # what is not a number is named by the error
