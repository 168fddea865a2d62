"""How trainers call rewards: the adapter to TRL, and a whole GRPO run as one configuration.

Importing this package loads neither torch nor trl; they load when a model or a trainer is made.
"""

import builtin_rewards  # noqa: F401 - it refuses a foreign package named rewardkit
from trainer_adapter.config import GRPOConfig, SamplingParams
from trainer_adapter.grpo import BatchTiming, RewardAdapter
from trainer_adapter.train import TrainResult, train
from trainer_adapter.trainer_rewards import TrainerAsks, TrainerRewards
from trainer_adapter.trainer_versions import TrainerVersions

__all__ = [
    "BatchTiming",
    "GRPOConfig",
    "RewardAdapter",
    "SamplingParams",
    "TrainResult",
    "TrainerAsks",
    "TrainerRewards",
    "TrainerVersions",
    "train",
]
