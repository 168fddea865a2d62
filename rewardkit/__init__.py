"""rewardkit: typed reward functions for RL fine-tuning, scored in isolated worker processes."""

from rewardkit.compose import Composable, Composite, clip, gate, maximum, minimum, product, scheduled
from rewardkit.config import RewardFunctionsConfig, RewardFunctionsRuntimeConfig
from rewardkit.decorator import Reward, group_reward, reward
from rewardkit.errors import (
    BadReturnError,
    CoercionError,
    ConfigError,
    DataError,
    InfrastructureError,
    MissingColumnError,
    PackageInstallError,
    RewardDefinitionError,
    RewardError,
    RewardFailedError,
    RewardLoadError,
    RewardTextError,
    RewardTransportError,
    RuntimeClosedError,
)
from rewardkit.options import OnInfrastructure, RewardOptions
from rewardkit.runtime.batch import ScoreBatch
from rewardkit.runtime.runtime import Runtime
from rewardkit.runtime.settle import Finished
from rewardkit.source import reward_from_source
from rewardkit.spec import Kind
from rewardkit.steps import step_reward
from rewardkit.types import Cause, Message, Outcome, Rollout, Score, Status, Step, Unanswered

__all__ = [
    "BadReturnError",
    "Cause",
    "CoercionError",
    "Composable",
    "Composite",
    "ConfigError",
    "DataError",
    "Finished",
    "InfrastructureError",
    "Kind",
    "Message",
    "MissingColumnError",
    "OnInfrastructure",
    "Outcome",
    "PackageInstallError",
    "Reward",
    "RewardDefinitionError",
    "RewardError",
    "RewardFailedError",
    "RewardFunctionsConfig",
    "RewardFunctionsRuntimeConfig",
    "RewardLoadError",
    "RewardOptions",
    "RewardTextError",
    "RewardTransportError",
    "Rollout",
    "Runtime",
    "RuntimeClosedError",
    "Score",
    "ScoreBatch",
    "Status",
    "Step",
    "Unanswered",
    "clip",
    "gate",
    "group_reward",
    "maximum",
    "minimum",
    "product",
    "reward",
    "reward_from_source",
    "scheduled",
    "step_reward",
]

__version__ = "0.1.0"
