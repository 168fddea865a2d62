"""Reward models trained from preferences, rankings, outcomes and steps, and from what a run recorded.

Importing this package loads neither torch nor trl; they load when a model is trained.
"""

from trainer_adapter.reward_training.figures import HeldOutFigure
from trainer_adapter.reward_training.reward_model_config import RewardModelConfig, RunPairs
from trainer_adapter.reward_training.run_pairs import pairs_from_run
from trainer_adapter.reward_training.train import RewardModelResult, train_reward_model

__all__ = [
    "HeldOutFigure",
    "RewardModelConfig",
    "RewardModelResult",
    "RunPairs",
    "pairs_from_run",
    "train_reward_model",
]
