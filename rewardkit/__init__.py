"""rewardkit: typed reward functions for RL fine-tuning, scored in isolated worker processes."""

from typing import TYPE_CHECKING, Any

import rewardkit.loading.same_name as _same_name
import sandbox as _sandbox  # first, because it says in one line where no reward can run  # noqa: F401

if TYPE_CHECKING:
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
    from rewardkit.harbor.harbor_verdict import HarborVerdict
    from rewardkit.harbor.task import HarborTask, from_harbor
    from rewardkit.jailed.sealed import SealedWorkspace
    from rewardkit.jailed.workspace import Workspace
    from rewardkit.loading.config import RewardFunctionsConfig, RewardFunctionsRuntimeConfig
    from rewardkit.record.recorder import Recorder
    from rewardkit.replay.recorded_run import Run
    from rewardkit.runtime.overlap import overlap
    from rewardkit.runtime.runtime import Runtime
    from rewardkit.runtime.settle import Finished
    from rewardkit.score_batch import ScoreBatch
    from rewardkit.scorer import Scorer
    from rewardkit.steps.step_reward import StepReward, step_reward
    from rewardkit.suites.grading import check_suite
    from rewardkit.suites.suite_verdict import SuiteVerdict
    from rewardkit.types import Cause, Message, Outcome, Rollout, Score, Status, Step, Unanswered

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


_HOMES = {
    "rewardkit.declare.compose": (
        "Composable",
        "Composite",
        "clip",
        "gate",
        "maximum",
        "minimum",
        "product",
        "scheduled",
    ),
    "rewardkit.declare.decorator": ("Reward", "group_reward", "reward"),
    "rewardkit.declare.options": ("OnInfrastructure", "RewardDefinitionWarning", "RewardOptions"),
    "rewardkit.declare.spec": ("Kind",),
    "rewardkit.declare.text_reward": ("reward_from_source",),
    "rewardkit.harbor.harbor_verdict": ("HarborVerdict",),
    "rewardkit.harbor.task": ("HarborTask", "from_harbor"),
    "rewardkit.jailed.sealed": ("SealedWorkspace",),
    "rewardkit.jailed.workspace": ("Workspace",),
    "rewardkit.loading.config": ("RewardFunctionsConfig", "RewardFunctionsRuntimeConfig"),
    "rewardkit.record.recorder": ("Recorder",),
    "rewardkit.replay.recorded_run": ("Run",),
    "rewardkit.runtime.overlap": ("overlap",),
    "rewardkit.runtime.runtime": ("Runtime",),
    "rewardkit.runtime.settle": ("Finished",),
    "rewardkit.score_batch": ("ScoreBatch",),
    "rewardkit.scorer": ("Scorer",),
    "rewardkit.steps.step_reward": ("StepReward", "step_reward"),
    "rewardkit.suites.grading": ("check_suite",),
    "rewardkit.suites.suite_verdict": ("SuiteVerdict",),
    "rewardkit.types": ("Cause", "Message", "Outcome", "Rollout", "Score", "Status", "Step", "Unanswered"),
}
"""The public names by module, but for the errors. Each is imported at its first use: a worker needs few of them."""

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
    """Import a public name, or a module of this package, at its first use.

    Raises:
        AttributeError: There is no such name.
        ImportError: It is public in another module, which the error names.
    """
    import importlib.util

    if name in _ELSEWHERE:
        raise ImportError(f"{name!r} is not in rewardkit: from {_ELSEWHERE[name]} import {name}", name=__name__)
    if name in __all__:
        home = next((home for home, names in _HOMES.items() if name in names), "rewardkit.errors")
        value = globals()[name] = getattr(importlib.import_module(home), name)
        return value
    if name.startswith("_") or importlib.util.find_spec(f"{__name__}.{name}") is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
