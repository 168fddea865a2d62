"""Rewards as verifiers calls them: by ``(task, trace)`` in version 1, which 0.4 is, and in a ``Rubric`` before it.

A task's ``rewards`` plug ``sums = verifiers_reward("sums.py")`` by its path, ``my_vf:sums``; ``Rubric(funcs=[...])``
takes the same function. This module does not import verifiers.

======== ===================================== =================================
.        version 1                             a ``Rubric``
======== ===================================== =================================
scored   each reward's part of the total, by   the total
         its name
skipped  no entry for the reward               0.0
failed   its part with the default in it       the total with the default in it
unknown  an error: the task records no reward  an error, which it logs; it
         of this trace, and the trace is no    takes 0.0
         data for training
======== ===================================== =================================
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import itertools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, Unpack

from rewardkit import ConfigError, RewardFailedError, Rollout, Status
from rewardkit.extending import ENVIRONMENT_COLUMN
from rewardkit.serving import ToldRow
from trainer_adapter.environment_values import trace_value
from trainer_adapter.handover import RuntimeOptions
from trainer_adapter.trainer_rewards import TrainerAsks, TrainerOptions, TrainerRewards, check_lists
from trainer_adapter.trainer_versions import TrainerVersions
from trainer_adapter.turns import Text
from trainer_adapter.verifiers_trace import AgentTrace, info_fields, trace_rollout

__all__ = ["GroupRubricFunction", "RubricFunction", "verifiers_group_reward", "verifiers_reward"]

_ASKS = TrainerAsks(
    trainer="verifiers",
    setting="the task's rewards or Rubric(funcs=...)",
    columns=frozenset({"answer", "task"}),
    more="verifiers sends the fields of the task's data; before 0.4 answer, task and the fields of the dataset's info: "
    "put it there",
    size="the rollouts of a task, or take verifiers_group_reward, in finalize() or a Rubric",
    tested=TrainerVersions("verifiers", "0.3", "0.5"),
)
_API = ("v1/task.py", "legacy/rubrics/rubric.py", "rubrics/rubric.py")  # Files of verifiers' that call rewards
RubricFunction: TypeAlias = Callable[..., Awaitable[Any]]
"""What verifiers calls for one rollout: it returns a mapping of parts for ``(task, trace)``, else the total."""
GroupRubricFunction: TypeAlias = Callable[..., Awaitable[list[float | None]]]
"""What verifiers calls for a group: the totals, in order; ``None`` for a trace without one."""


def verifiers_reward(rewards: object = None, **options: Unpack[TrainerOptions]) -> RubricFunction:
    """Return a function of some rewards for verifiers' tasks, and for a ``Rubric`` of the versions before.

    Its ``__name__`` are the rewards' names, so that a task may have several.

    Args:
        rewards: As :class:`TrainerRewards` takes them.
        options: ``weights``, ``group_wait_s`` and ``group_size``, which is the number of a task's rollouts where a
            reward scores groups; and the other options of :class:`rewardkit.Runtime`.

    Raises:
        RewardError: As :class:`TrainerRewards`; ConfigError where the installed verifiers has neither of the two.
    """
    _check_version()
    core = TrainerRewards(rewards, asks=_ASKS, **options)

    async def rewardkit_reward(
        prompt: Text = "",
        completion: Text | None = None,
        answer: object = "",
        task: object = "",
        info: object = None,
        trace: AgentTrace | None = None,
    ) -> float | dict[str, float]:
        if completion is None:
            return await _score_trace(core, task, _called_with(trace, "a trace"))
        columns = _columns(answer, task, info)
        if trace is not None:
            columns[ENVIRONMENT_COLUMN] = trace_value(trace)
        return core.number(await core.ascore_one(prompt, completion, columns))

    rewardkit_reward.__name__ = "_".join(core.names)
    return rewardkit_reward


def verifiers_group_reward(
    rewards: object = None,
    *,
    weights: Sequence[float] | Mapping[str, float] | None = None,
    **options: Unpack[RuntimeOptions],
) -> GroupRubricFunction:
    """Return a function for groups: of a ``Rubric`` by its plural names, and of traces in an environment's finalize.

    ``await ranked(task=task, traces=episode.traces)`` records each reward's part in the traces and returns the totals.
    Traces that ended with an error are no part of the group, and their total is ``None``.
    """
    _check_version()
    core = TrainerRewards(rewards, asks=_ASKS, weights=weights, whole_groups=True, **options)

    async def rewardkit_group_reward(
        prompts: Sequence[Any] = (),
        completions: Sequence[Any] | None = None,
        answers: Sequence[Any] | None = None,
        tasks: Sequence[Any] | None = None,
        infos: Sequence[Any] | None = None,
        task: object = None,
        traces: Sequence[AgentTrace] | None = None,
    ) -> list[float | None]:
        """Return a number for each completion of a group."""
        if completions is None:
            return await _score_traces(core, task, _called_with(traces, "traces"))
        rows = len(completions)
        lists = {"answers": answers or [""] * rows, "tasks": tasks or [""] * rows, "infos": infos or [None] * rows}
        check_lists("verifiers", rows, "completions", prompts=prompts, **lists)
        columns = [_columns(*values) for values in zip(*lists.values(), strict=True)]
        rollouts = [core.rollout(*parts) for parts in zip(prompts, completions, columns, strict=True)]
        return [core.number(row) for row in await core.ascore(rollouts)]

    rewardkit_group_reward.__name__ = "_".join(core.names)
    return rewardkit_group_reward


def _called_with(value: Any, what: str) -> Any:
    """Return what verifiers has passed; raise ConfigError, with its version, where it passes nothing that fits."""
    if value is None:
        raise ConfigError(
            f"verifiers {_version() or '(not installed)'} passes neither a completion nor {what}: rewardkit answers a "
            "Rubric, as 0.3.1 and earlier have, and (task, trace) of verifiers.v1, as 0.4"
        )
    return value


def _version() -> str:
    try:
        return importlib.metadata.version("verifiers")
    except importlib.metadata.PackageNotFoundError:
        return ""


def _check_version() -> None:
    """Raise ConfigError where the installed verifiers has neither a Rubric nor tasks with traces."""
    version, spec = _version(), importlib.util.find_spec("verifiers")
    folders = [Path(folder) for folder in spec.submodule_search_locations or ()] if spec else []
    if version and folders and not any((folder / file).exists() for folder in folders for file in _API):
        raise ConfigError(
            f"verifiers {version} has neither a Rubric, as 0.3.1 and earlier have, nor the tasks and traces of "
            "verifiers.v1, as 0.4; pip install 'verifiers>=0.3,<0.5'"
        )


async def _score_trace(core: TrainerRewards, task: object, trace: AgentTrace) -> dict[str, float]:
    """Return each reward's part of a trace's total, by name; an error where the total is unknown."""
    prompt, completion, columns = trace_rollout(task, trace)
    rollout = core.rollout(prompt, completion, {**columns, ENVIRONMENT_COLUMN: trace_value(trace)})
    (row,) = await core.ascore([rollout])
    _record_metrics(trace, row)
    _check_known(core, row)
    _record_turns(core, trace, row, rollout)
    return _parts(core, row)


async def _score_traces(core: TrainerRewards, task: object, traces: Sequence[AgentTrace]) -> list[float | None]:
    """Record the rewards of a group's traces in them, and return the totals; an error where one is unknown."""
    whole = [trace for trace in traces if trace.ok or not trace.errors]
    rollouts = [core.rollout(*trace_rollout(task, trace)) for trace in whole]
    rows = await core.ascore(rollouts) if rollouts else []
    for trace, row in zip(whole, rows, strict=True):
        _record_metrics(trace, row)
    for row in rows:
        _check_known(core, row)
    for trace, row, rollout in zip(whole, rows, rollouts, strict=True):
        _record_turns(core, trace, row, rollout)
    for trace, row in zip(whole, rows, strict=True):
        for name, part in _parts(core, row).items():
            trace.record_reward(name, part)
    totals = {id(trace): row.total for trace, row in zip(whole, rows, strict=True)}
    return [totals.get(id(trace)) for trace in traces]


def _parts(core: TrainerRewards, row: ToldRow) -> dict[str, float]:
    """Return each reward's score times its weight, which add up to the total; nothing for one that was skipped."""
    weights = core.joined.weights
    return {name: weights[name] * out.score for name, out in row.outcomes.items() if out.score is not None}


def _record_metrics(trace: AgentTrace, row: ToldRow) -> None:
    """Record in a trace each reward's score, and whether it failed or was skipped, also where the total is unknown."""
    scores = {f"reward/{name}": out.score for name, out in row.outcomes.items() if out.score is not None}
    failed = {f"failed/{name}": float(out.status is Status.FAILED) for name, out in row.outcomes.items()}
    skipped = {f"skipped/{name}": float(out.status is Status.SKIPPED) for name, out in row.outcomes.items()}
    trace.record_metrics({**scores, **failed, **skipped})


def _record_turns(core: TrainerRewards, trace: AgentTrace, row: ToldRow, rollout: Rollout) -> None:
    """Record what each turn earned in a trace's ``info``, where a reward gives credit.

    ``turn_numbers`` are the numbers, ``None`` where one is not known; ``turn_rewards`` what they add up to after each
    turn, that is how good the state then is, of which prime-rl's turn credit takes the differences.
    """
    if core.gives_credit:
        numbers = core.credit(row, rollout).turns
        sums = itertools.accumulate(number or 0.0 for number in numbers)
        levels = [None if number is None else level for number, level in zip(numbers, sums, strict=True)]
        trace.info |= {"turn_numbers": [*numbers], "turn_rewards": levels}


def _check_known(core: TrainerRewards, row: ToldRow) -> None:
    """Raise RewardFailedError for an unknown total, and say what becomes of the trace's other rewards."""
    try:
        core.check_known(row)
    except RewardFailedError as error:
        raise RewardFailedError(
            f"{error}; verifiers records no reward of the trace, not those that were scored either, and leaves it out"
        ) from error


def _columns(answer: object, task: object, info: object) -> dict[str, Any]:
    columns = {name: value for name, value in (("answer", answer), ("task", task)) if value not in ("", None)}
    return {**info_fields(info), **columns}  # answer and task themselves win
