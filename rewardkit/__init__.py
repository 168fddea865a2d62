"""rewardkit: typed reward functions for RL fine-tuning, scored in isolated worker processes."""

from typing import TYPE_CHECKING, Any

import rewardkit.loading.same_name as _same_name
import sandbox as _sandbox  # first, because it says in one line where no reward can run  # noqa: F401
from rewardkit.declare.compose import Composable, Composite, clip, gate, maximum, minimum, product, scheduled
from rewardkit.declare.decorator import Reward, group_reward, reward
from rewardkit.declare.options import OnInfrastructure, RewardDefinitionWarning, RewardOptions
from rewardkit.declare.spec import Kind
from rewardkit.declare.text_reward import reward_from_source
from rewardkit.errors import (
    BadReturnError,
    ClusterError,
    CoercionError,
    ConfigError,
    DataError,
    FullError,
    InfrastructureError,
    MissingColumnError,
    ObjectiveError,
    PackageInstallError,
    RecordError,
    RewardDefinitionError,
    RewardError,
    RewardFailedError,
    RewardLoadError,
    RewardTextError,
    RewardTransportError,
    RuntimeClosedError,
    SuiteError,
    UpdateRefusedError,
    WorkspaceError,
)
from rewardkit.jailed.workspace import Workspace
from rewardkit.loading.config import RewardFunctionsConfig, RewardFunctionsRuntimeConfig
from rewardkit.runtime.runtime import Runtime
from rewardkit.runtime.settle import Finished
from rewardkit.score_batch import ScoreBatch
from rewardkit.scorer import Scorer
from rewardkit.types import Cause, Message, Outcome, Rollout, Score, Status, Step, Unanswered

if TYPE_CHECKING:
    from rewardkit.harbor.harbor_verdict import HarborVerdict
    from rewardkit.harbor.task import HarborTask, from_harbor
    from rewardkit.jailed.sealed import SealedWorkspace
    from rewardkit.record.recorder import Recorder
    from rewardkit.replay.recorded_run import Run
    from rewardkit.runtime.overlap import overlap
    from rewardkit.steps.step_reward import StepReward, step_reward
    from rewardkit.suites.grading import check_suite
    from rewardkit.suites.suite_verdict import SuiteVerdict

__all__ = [
    "BadReturnError",
    "Cause",
    "ClusterError",
    "CoercionError",
    "Composable",
    "Composite",
    "ConfigError",
    "DataError",
    "Finished",
    "FullError",
    "HarborTask",
    "HarborVerdict",
    "InfrastructureError",
    "Kind",
    "Message",
    "MissingColumnError",
    "ObjectiveError",
    "OnInfrastructure",
    "Outcome",
    "PackageInstallError",
    "RecordError",
    "Recorder",
    "Reward",
    "RewardDefinitionError",
    "RewardDefinitionWarning",
    "RewardError",
    "RewardFailedError",
    "RewardFunctionsConfig",
    "RewardFunctionsRuntimeConfig",
    "RewardLoadError",
    "RewardOptions",
    "RewardTextError",
    "RewardTransportError",
    "Rollout",
    "Run",
    "Runtime",
    "RuntimeClosedError",
    "Score",
    "ScoreBatch",
    "Scorer",
    "SealedWorkspace",
    "Status",
    "Step",
    "StepReward",
    "SuiteError",
    "SuiteVerdict",
    "Unanswered",
    "UpdateRefusedError",
    "Workspace",
    "WorkspaceError",
    "check_suite",
    "clip",
    "from_harbor",
    "gate",
    "group_reward",
    "maximum",
    "minimum",
    "overlap",
    "product",
    "reward",
    "reward_from_source",
    "scheduled",
    "step_reward",
]

__version__ = "0.1.0"

_same_name.warn_of_harbor()


_LATE = {
    "HarborTask": "rewardkit.harbor.task",
    "HarborVerdict": "rewardkit.harbor.harbor_verdict",
    "Recorder": "rewardkit.record.recorder",
    "Run": "rewardkit.replay.recorded_run",
    "SealedWorkspace": "rewardkit.jailed.sealed",
    "StepReward": "rewardkit.steps.step_reward",
    "SuiteVerdict": "rewardkit.suites.suite_verdict",
    "check_suite": "rewardkit.suites.grading",
    "from_harbor": "rewardkit.harbor.task",
    "overlap": "rewardkit.runtime.overlap",
    "step_reward": "rewardkit.steps.step_reward",
}
"""What few programs use and takes long to import, with its module."""


_ELSEWHERE = {
    "LLMJudge": "builtin_rewards.judge",
    "RewardAdapter": "trainer_adapter",
    "RewardModelReward": "builtin_rewards.reward_model",
    "Sandbox": "sandbox",
    "assert_laws": "rewardkit.testing",
    "cases": "rewardkit.testing",
    "code_tests": "builtin_rewards.code",
    "exact_match": "builtin_rewards.matching",
    "format_tags": "builtin_rewards.formats",
    "from_trl": "rewardkit.moving",
    "from_verifiers": "rewardkit.moving",
    "from_verl": "rewardkit.moving",
    "json_schema": "builtin_rewards.structured",
    "math_answer": "builtin_rewards.math",
}
"""Names that are looked for here and have another home, where alone they can be imported."""


def __getattr__(name: str) -> Any:
    """Import a name that is loaded late at its first use.

    Raises:
        AttributeError: There is no such name.
        ImportError: It is public in another module, which the error names.
    """
    if name in _ELSEWHERE:
        raise ImportError(f"{name!r} is not in rewardkit: from {_ELSEWHERE[name]} import {name}", name=__name__)
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_LATE[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
