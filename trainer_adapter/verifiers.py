"""Rewards as verifiers calls them: a function of a ``Rubric``, one rollout or a group a call.

``Rubric(funcs=[verifiers_reward("rewards.py")])``; ``@vf.reward`` methods of version 1 await it with keywords.
This module does not import verifiers.

======== =======================================================================
scored   the total
skipped  0.0
failed   the total with the default in it
unknown  an error: version 1 leaves the trace out. A ``Rubric`` of the versions
         before logs the error and takes 0.0
======== =======================================================================
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias, Unpack

from rewardkit.extending import ENVIRONMENT_COLUMN
from trainer_adapter.environment_values import Trace, trace_value
from trainer_adapter.grpo import RuntimeOptions
from trainer_adapter.trainer_rewards import Text, TrainerAsks, TrainerOptions, TrainerRewards, check_lists

__all__ = ["GroupRubricFunction", "RubricFunction", "verifiers_group_reward", "verifiers_reward"]

_ASKS = TrainerAsks(
    trainer="verifiers",
    setting="Rubric(funcs=...)",
    columns=frozenset({"answer", "task"}),
    more="verifiers sends answer, task and the fields of the dataset's info: put it there",
    size="rollouts_per_example, or take verifiers_group_reward",
)
RubricFunction: TypeAlias = Callable[..., Awaitable[float]]
"""What a rubric calls for one rollout."""
GroupRubricFunction: TypeAlias = Callable[..., Awaitable[list[float]]]
"""What a rubric calls for a group."""


def verifiers_reward(rewards: object = None, **options: Unpack[TrainerOptions]) -> RubricFunction:
    """Return a rubric's function of some rewards.

    Args:
        rewards: As :class:`TrainerRewards` takes them.
        options: ``weights``, ``group_wait_s`` and ``group_size``, which is ``rollouts_per_example`` where a reward
            scores groups; and the other options of :class:`rewardkit.Runtime`.

    Raises:
        RewardError: As :class:`TrainerRewards`.
    """
    core = TrainerRewards(rewards, asks=_ASKS, **options)

    async def rewardkit_reward(
        prompt: Text,
        completion: Text,
        answer: object = "",
        task: object = "",
        info: object = None,
        trace: Trace | None = None,
    ) -> float:
        columns = _columns(answer, task, info)
        if trace is not None:
            columns[ENVIRONMENT_COLUMN] = trace_value(trace)
        return core.number(await core.ascore_one(prompt, completion, columns))

    return rewardkit_reward


def verifiers_group_reward(
    rewards: object = None,
    *,
    weights: Sequence[float] | Mapping[str, float] | None = None,
    **options: Unpack[RuntimeOptions],
) -> GroupRubricFunction:
    """Return a rubric's function for groups: its parameters have the plural names by which a rubric knows one."""
    core = TrainerRewards(rewards, asks=_ASKS, weights=weights, whole_groups=True, **options)

    async def rewardkit_group_reward(
        prompts: Sequence[Any],
        completions: Sequence[Any],
        answers: Sequence[Any] | None = None,
        tasks: Sequence[Any] | None = None,
        infos: Sequence[Any] | None = None,
    ) -> list[float]:
        """Return a number for each completion of a group."""
        rows = len(completions)
        lists = {"answers": answers or [""] * rows, "tasks": tasks or [""] * rows, "infos": infos or [None] * rows}
        check_lists("verifiers", rows, "completions", prompts=prompts, **lists)
        columns = [_columns(*values) for values in zip(*lists.values(), strict=True)]
        rollouts = [core.rollout(*parts) for parts in zip(prompts, completions, columns, strict=True)]
        return [core.number(row) for row in await core.ascore(rollouts)]

    return rewardkit_group_reward


def _columns(answer: object, task: object, info: object) -> dict[str, Any]:
    columns = {name: value for name, value in (("answer", answer), ("task", task)) if value not in ("", None)}
    return {**_fields(info), **columns}  # answer and task themselves win


def _fields(info: object) -> Mapping[str, Any]:
    """Return the fields of a row's ``info``, an object or its JSON; anything else counts as an empty object."""
    if isinstance(info, str):
        try:
            info = json.loads(info)
        except (ValueError, RecursionError):
            return {}
    return info if isinstance(info, Mapping) else {}
