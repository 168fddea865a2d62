"""What rewards read of a trainer's environments: TRL's objects, their rewards and workspaces, and verifiers' traces."""

from __future__ import annotations

import asyncio
import inspect
import logging
import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from rewardkit import DataError, Reward, RewardError
from rewardkit.extending import (
    ENVIRONMENT_COLUMN,
    ENVIRONMENTS_COLUMN,
    ColumnValueError,
    LiveObject,
    OwnText,
    shortened,
)
from trainer_adapter.splitting import TrlTrainer

WORKSPACE_COLUMN = "workspace"
_LISTS = ("reward_funcs", "reward_func_names", "reward_processing_classes")
_log = logging.getLogger("trainer_adapter")


class RaisedInEnvironment:
    """Stands for the reward of an environment that could not give one; its message says why."""

    def __init__(self, message: str) -> None:
        self.message = message


class EnvironmentFault(RewardError):
    """An environment could not give its reward."""


class LeafRewards(Protocol):
    """What is read of a reward: the single rewards that it is made of."""

    @property
    def leaves(self) -> Sequence[Reward[..., Any]]: ...


class EnvironmentColumns:
    """The columns that TRL's environments give rewards which read them.

    An environment is asked for its reward once a batch, however often the trainer asks for scores of that batch. The
    list of completions tells batches apart; that of environments does not, as TRL 1.6 keeps one for the whole training.
    """

    def __init__(self) -> None:
        self._environments: Sequence[Any] | None = None
        self._completions: Sequence[Any] | None = None
        self._values: list[object] = []  # What those environments gave as the rewards of those completions

    def with_environments(
        self, keywords: Mapping[str, Any], completions: Sequence[Any], rewards: Iterable[LeafRewards]
    ) -> Mapping[str, Any]:
        """Return TRL's keywords of a batch, with what its environments give to rewards that read it.

        ``keywords`` are all but prompts, completions and token ids; ``environments`` has one object a completion.
        """
        if ENVIRONMENTS_COLUMN not in keywords:
            return keywords
        environments = keywords[ENVIRONMENTS_COLUMN]
        columns = {name: values for name, values in keywords.items() if name != ENVIRONMENTS_COLUMN}
        if environments is None:
            return columns
        specs = [leaf.spec for reward in rewards for leaf in getattr(reward, "leaves", ())]
        parameters = {parameter.name for spec in specs for parameter in spec.parameters}
        if any(spec.wants_environments for spec in specs):
            columns[ENVIRONMENTS_COLUMN] = [LiveObject.of(environment) for environment in environments]  # never pickled
        if ENVIRONMENT_COLUMN in parameters and ENVIRONMENT_COLUMN not in columns:
            columns[ENVIRONMENT_COLUMN] = self._rewards(environments, completions)
        if WORKSPACE_COLUMN in parameters and WORKSPACE_COLUMN not in columns:
            columns[WORKSPACE_COLUMN] = [workspace_of(environment) for environment in environments]
        return columns

    def _rewards(self, environments: Sequence[Any], completions: Sequence[Any]) -> list[object]:
        """Return what each environment gives as its reward, asked only where the last call was of another batch."""
        if self._environments is not environments or self._completions is not completions:
            self._values = [environment_value(environment) for environment in environments]
            self._environments, self._completions = environments, completions
        return self._values


def environment_value(environment: object) -> object:
    """Return what an environment gives as its reward; ``None`` where it gives no reward.

    That is what its method ``get_reward`` returns, or a :class:`RaisedInEnvironment` where it raises; else its
    attribute ``reward``; raise ``DataError`` if that is no number.
    """
    if callable(get_reward := getattr(environment, "get_reward", None)):
        return _call(get_reward, f"{type(environment).__name__}.get_reward()")
    value = getattr(environment, "reward", None)
    if value is None or callable(value):
        return None
    if not _is_number(value):
        raise DataError(
            f"the environment {type(environment).__name__} has reward={value!r:.80}: expected a number or None"
        )
    return float(value)


def _call(get_reward: Callable[[], Any], name: str) -> object:
    """Return the number or ``None`` that an environment gives; a :class:`RaisedInEnvironment` for all else."""
    try:
        value = get_reward()
        if inspect.iscoroutine(value):
            with ThreadPoolExecutor(1) as thread:  # a loop may run in this thread already
                value = thread.submit(asyncio.run, value).result()
        if value is None or _is_number(value):
            return None if value is None else float(value)
    except Exception as error:
        _log.exception("%s raised; its completion has no score of the environment", name)
        return RaisedInEnvironment(f"{name} raised {type(error).__name__}: {shortened(str(error), 300)}")
    return RaisedInEnvironment(f"{name} returned {value!r:.80}: expected a number or None")


def _is_number(value: object) -> bool:
    return isinstance(value, numbers.Real) or hasattr(value, "__float__")  # a tensor of one number too


def workspace_of(environment: object) -> OwnText:
    """Return an environment's ``workspace``, empty for ``None``; raise ``DataError`` if it is not a path."""
    value = getattr(environment, "workspace", None)
    if value is None:
        return OwnText()  # None would count as a value of the row, and split the group
    if not isinstance(value, str) and not hasattr(value, "__fspath__"):
        raise DataError(
            f"the environment {type(environment).__name__} has workspace={value!r:.80}: expected a path or None"
        )
    return OwnText(value)


def check_workspaces(rewards: Iterable[LeafRewards], rows: object, what: str) -> None:
    """Refuse a dataset whose workspaces are missing or lie elsewhere, before training begins.

    Errors name reward, row and path, and call the rows ``what``. Rows without column names are not checked.
    """
    names = getattr(rows, "column_names", None) or ()
    for leaf in (leaf for reward in rewards for leaf in reward.leaves):
        for column, coercer in leaf.spec.workspaces.items():
            if column not in names or not hasattr(rows, "__len__") or not hasattr(rows, "__getitem__"):
                continue
            values: dict[str, tuple[int, Any]] = {}  # the first row of each value
            for row, value in enumerate(rows[column]):
                values.setdefault(repr(value), (row, value))
            for row, value in values.values():
                try:
                    coercer(value)
                except ColumnValueError as error:
                    raise DataError(f"reward {leaf.name!r}: {what}, {error.describe(column, row)}") from None


class TraceReward(Protocol):
    """A reward in a trace of verifiers'."""

    score: Any
    weight: Any


class Trace(Protocol):
    """A trace of verifiers', as far as it is read."""

    rewards: Mapping[str, TraceReward | None]


def trace_value(trace: Trace) -> float | None:
    """Return the weighted sum of the rewards that a trace of verifiers has so far; ``None`` without any."""
    rewards = [reward for reward in trace.rewards.values() if reward is not None]
    return sum(float(reward.score) * float(reward.weight) for reward in rewards) if rewards else None


def take_over(trainer: TrlTrainer, rewards: Iterable[LeafRewards], *, begun: bool, recorded: bool) -> None:
    """Let the reward of a trainer's environments count with our weight alone, where it is one of our rewards.

    TRL adds a function of its own, of weight 1, for each class of environments with a ``get_reward``. Once a trainer
    has ``begun`` to call its functions, that one stays, and answers with nothing. The log says where a record lacks
    the environment's reward because it is not one of ours.
    """
    functions = getattr(trainer, "reward_funcs", [])
    theirs = [index for index, function in enumerate(functions) if _is_of_trl(function)]
    if not theirs:
        return
    parameters = {parameter.name for reward in rewards for leaf in reward.leaves for parameter in leaf.spec.parameters}
    if ENVIRONMENT_COLUMN not in parameters:
        if recorded:
            _log.warning(
                "the reward of the environment %s counts in this training and is in no record: TRL asks for it by "
                "itself; add trainer_adapter.environments:environment_reward to the rewards",
                ", ".join(trainer.reward_func_names[index] for index in theirs),
            )
    elif begun:
        for index in theirs:
            functions[index] = _no_scores  # TRL walks its lists right now, so their length must stay
    else:
        ours = [index for index in range(len(functions)) if index not in theirs]
        for name in _LISTS:
            values = getattr(trainer, name)
            values[:] = [values[index] for index in ours]
        trainer.reward_weights = trainer.reward_weights[ours]


def _is_of_trl(function: object) -> bool:
    """Return whether it is what TRL made of an environment's ``get_reward``."""
    module = str(getattr(function, "__module__", ""))
    return getattr(function, "__name__", "") == "get_reward" and module.startswith("trl.")


def _no_scores(completions: Sequence[object], **_: object) -> list[None]:
    return [None] * len(completions)
