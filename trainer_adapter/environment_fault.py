"""What stands for the reward of an environment that could not give one, on its way to a worker."""

from __future__ import annotations

from rewardkit import RewardError


class RaisedInEnvironment:
    """Stands for the reward of an environment that could not give one; its message says why."""

    def __init__(self, message: str) -> None:
        self.message = message


class EnvironmentFault(RewardError):
    """An environment could not give its reward."""
