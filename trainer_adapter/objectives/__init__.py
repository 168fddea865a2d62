"""The mathematics of GRPO and of reward models, for numpy arrays and torch tensors alike.

Importing this package does not load torch.
"""

from rewardkit.advantages import (
    GroupStatistics,
    gdpo_advantages,
    group_advantages,
    group_statistics,
    leave_one_out_advantages,
)
from trainer_adapter.objectives.accuracy import pairwise_accuracy, tie_rate, weighted_mean_over_shards, whiten
from trainer_adapter.objectives.baselines import opo_advantages, reinforce_plus_plus_advantages
from trainer_adapter.objectives.best_of_n import best_of_n_expected, best_of_n_kl
from trainer_adapter.objectives.calibration import (
    ReliabilityCurve,
    brier,
    expected_calibration_error,
    pair_probabilities,
    reliability_curve,
)
from trainer_adapter.objectives.corrections import importance_ratio, off_policy_mask, top_entropy_mask
from trainer_adapter.objectives.outcomes import orm_labels, orm_loss
from trainer_adapter.objectives.policy import grpo_loss, kl_estimate
from trainer_adapter.objectives.preferences import (
    all_pairs_loss,
    bradley_terry_loss,
    bradley_terry_probability,
    dpo_implicit_reward,
    plackett_luce_loss,
)
from trainer_adapter.objectives.process import PRM_CLASSES, aggregate, prm_labels, prm_loss
from trainer_adapter.objectives.surrogates import cispo_surrogate, clipped_surrogate, sapo_surrogate, vespo_surrogate

__all__ = [
    "PRM_CLASSES",
    "GroupStatistics",
    "ReliabilityCurve",
    "aggregate",
    "all_pairs_loss",
    "best_of_n_expected",
    "best_of_n_kl",
    "bradley_terry_loss",
    "bradley_terry_probability",
    "brier",
    "cispo_surrogate",
    "clipped_surrogate",
    "dpo_implicit_reward",
    "expected_calibration_error",
    "gdpo_advantages",
    "group_advantages",
    "group_statistics",
    "grpo_loss",
    "importance_ratio",
    "kl_estimate",
    "leave_one_out_advantages",
    "off_policy_mask",
    "opo_advantages",
    "orm_labels",
    "orm_loss",
    "pair_probabilities",
    "pairwise_accuracy",
    "plackett_luce_loss",
    "prm_labels",
    "prm_loss",
    "reinforce_plus_plus_advantages",
    "reliability_curve",
    "sapo_surrogate",
    "tie_rate",
    "top_entropy_mask",
    "vespo_surrogate",
    "weighted_mean_over_shards",
    "whiten",
]
