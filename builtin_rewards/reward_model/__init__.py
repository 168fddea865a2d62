"""Rewards that are learned, and what is done with any reward's scores: the best of several, and calibration.

``best_of`` picks the best of n completions by any reward, ``calibration`` makes probabilities of scores and
``calibrated`` a reward of the two, and ``generative`` asks a language model for a verdict's probability.
``encoding`` makes the tokens that a trained model reads, and ``description`` is the file beside its weights.
"""

from builtin_rewards.reading.thoughts import Shows
from builtin_rewards.reward_model.best_of import BestChoice, BestOfN, BestOfNCurve, best_of_n, best_of_n_curve
from builtin_rewards.reward_model.calibrated import Calibrated
from builtin_rewards.reward_model.calibration import Calibration
from builtin_rewards.reward_model.description import (
    DESCRIPTION_FILE,
    Aggregation,
    ModelKind,
    RewardModelDescription,
    ScoreReference,
    read_description,
    write_description,
)
from builtin_rewards.reward_model.encoding import EncodedText, encode_text
from builtin_rewards.reward_model.generative import GenerativeRewardModel
from builtin_rewards.reward_model.learned import RewardModelReward
from builtin_rewards.reward_model.loading import checkpoints_of
from builtin_rewards.reward_model.preferences import PreferenceRow, preferences_of, read_preferences
from builtin_rewards.reward_model.remote_model import RemoteRewardModel

__all__ = [
    "DESCRIPTION_FILE",
    "Aggregation",
    "BestChoice",
    "BestOfN",
    "BestOfNCurve",
    "Calibrated",
    "Calibration",
    "EncodedText",
    "GenerativeRewardModel",
    "ModelKind",
    "PreferenceRow",
    "RemoteRewardModel",
    "RewardModelDescription",
    "RewardModelReward",
    "ScoreReference",
    "Shows",
    "best_of_n",
    "best_of_n_curve",
    "checkpoints_of",
    "encode_text",
    "preferences_of",
    "read_description",
    "read_preferences",
    "write_description",
]
