"""rewardkit: typed reward functions for RL fine-tuning, scored in isolated worker processes."""

from typing import TYPE_CHECKING, Any

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
from rewardkit.runtime.runtime import Runtime
from rewardkit.runtime.settle import Finished
from rewardkit.score_batch import ScoreBatch
from rewardkit.source import reward_from_source
from rewardkit.spec import Kind
from rewardkit.types import Cause, Message, Outcome, Rollout, Score, Status, Step, Unanswered

if TYPE_CHECKING:
    from rewardkit.steps import StepReward, step_reward

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
    "StepReward",
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


def __getattr__(name: str) -> Any:
    """Load step rewards when they are first asked for: few programs use them, and importing them takes 9 ms."""
    if name not in ("StepReward", "step_reward"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from rewardkit import steps

    return getattr(steps, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
