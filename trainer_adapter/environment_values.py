"""What rewards read of a trainer's environments: TRL's objects, their rewards and workspaces, and verifiers' traces."""

from __future__ import annotations

import asyncio
import inspect
import logging
import numbers
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, SupportsFloat, TypeGuard

from rewardkit import DataError, InfrastructureError, Reward, RewardError, Score
from rewardkit.extending import (
    ENVIRONMENT_COLUMN,
    ENVIRONMENTS_COLUMN,
    WORKSPACE_COLUMN,
    ColumnValueError,
    LiveObject,
    OwnFault,
    OwnText,
    run_on,
    shorten,
    shortened,
)
from trainer_adapter.splitting import TrlTrainer

_LISTS = ("reward_funcs", "reward_func_names", "reward_processing_classes")
_log = logging.getLogger("trainer_adapter")


class RaisedInEnvironment:
    """Stands for the reward of an environment that could not give one; its message says why.

    ``is_loss`` tells a fault of the machine, as of a jail that ended, which no completion answers for.
    """

    def __init__(self, message: str, *, is_loss: bool = False) -> None:
        self.message = message
        self.is_loss = is_loss


class ScoreOfEnvironment(float):
    """The number of a :class:`~rewardkit.Score` that an environment gave, with its reason and metrics."""

    __slots__ = ("score",)
    score: Score

    def __new__(cls, score: Score) -> ScoreOfEnvironment:
        number = super().__new__(cls, score.value)  # type: ignore[arg-type]  # None is no number, and raises
        number.score = score
        return number

    def __reduce__(self) -> tuple[type[ScoreOfEnvironment], tuple[Score]]:
        return ScoreOfEnvironment, (self.score,)


class EnvironmentFault(RewardError):
    """An environment could not give its reward."""


class LostInEnvironment(InfrastructureError):
    """An environment could not give its reward through no fault of its completion; it is not asked again."""

    retry = False


class LeafRewards(Protocol):
    """What is read of a reward: the single rewards that it is made of."""

    @property
    def leaves(self) -> Sequence[Reward[..., Any]]: ...


class EnvironmentColumns:
    """The columns that TRL's environments give rewards which read them.

    An environment is asked once a batch, however often the trainer asks for scores of that batch. The
    list of completions tells batches apart; that of environments does not, as TRL 1.6 keeps one for the whole training.
    """

    def __init__(self) -> None:
        self._environments: Sequence[Any] | None = None
        self._completions: Sequence[Any] | None = None
        self._values: dict[str, list[Any]] = {}  # What those environments gave for those completions, by column

    def with_environments(
        self,
        keywords: Mapping[str, Any],
        completions: Sequence[Any],
        rewards: Iterable[LeafRewards],
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> Mapping[str, Any]:
        """Return TRL's keywords of a batch, with what its environments give to rewards that read it.

        ``keywords`` are all but prompts, completions and token ids; ``environments`` has one object a completion, and
        ``loop`` is the event loop of another thread on which TRL runs their async tools.
        """
        if ENVIRONMENTS_COLUMN not in keywords:
            return keywords
        environments = keywords[ENVIRONMENTS_COLUMN]
        columns = {name: values for name, values in keywords.items() if name != ENVIRONMENTS_COLUMN}
        if environments is None:
            return columns
        specs = [leaf.spec for reward in rewards for leaf in getattr(reward, "leaves", ())]
        parameters = {parameter.name for spec in specs for parameter in spec.parameters}
        if any(spec.wants_environments for spec in specs):  # never pickled
            columns[ENVIRONMENTS_COLUMN] = [LiveObject.of(environment, loop) for environment in environments]
        if self._environments is not environments or self._completions is not completions:
            self._values, self._environments, self._completions = {}, environments, completions
        readers: dict[str, Callable[[object], object]] = {
            ENVIRONMENT_COLUMN: lambda environment: environment_value(environment, loop),
            WORKSPACE_COLUMN: workspace_of,
        }
        for column, read in readers.items():
            if column in parameters and column not in columns:
                if column not in self._values:
                    self._values[column] = [read(environment) for environment in environments]
                columns[column] = self._values[column]
        return columns


def environment_value(environment: object, loop: asyncio.AbstractEventLoop | None = None) -> object:
    """Return what an environment gives as its reward; ``None`` where it gives no reward.

    That is what its method ``get_reward`` returns, awaited on ``loop`` where it is async, or else its attribute
    ``reward``. It is a :class:`RaisedInEnvironment` where the environment raises or gives what is no number.
    """
    return _read(environment, "reward", "a number", lambda: _number_of(environment, loop))


def _number_of(environment: object, loop: asyncio.AbstractEventLoop | None) -> _Reading:
    get_reward = getattr(environment, "get_reward", None)
    if not callable(get_reward):
        value = getattr(environment, "reward", None)
        value = None if callable(value) else value
        return _Reading("reward", value, _as_number(value))
    value = get_reward()
    if inspect.isawaitable(value):
        value = run_on(loop, _awaited(value))
    if isinstance(value, Score) and value.value is None:
        value = None  # not applicable
    return _Reading("get_reward()", value, _as_number(value))


def _as_number(value: object) -> float | None:
    if isinstance(value, Score):
        return ScoreOfEnvironment(value) if _is_number(value.value) else None
    return float(value) if _is_number(value) else None


async def _awaited(value: Awaitable[object]) -> object:
    return await value


class _Reading(NamedTuple):
    """What was read of an environment: where, the value, and what it means; ``None`` where it means nothing."""

    source: str
    value: object
    meaning: object


def _read(environment: object, what: str, expected: str, read: Callable[[], _Reading]) -> object:
    """Return what is read of an environment, ``None`` for ``None``; a :class:`RaisedInEnvironment` for a fault."""
    name, raised = type(environment).__name__, None
    try:
        source, value, meaning = read()
        if value is None or meaning is not None:
            return meaning
        problem = f"{name}.{source} is {shorten(value)}: expected {expected} or None"
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # sys.exit too: it is one environment's, and ends no training
        raised, problem = error, f"asked for its {what}, {name} raised {_error_text(error)}"
    _log.error("%s; its completion has no %s", problem, what, exc_info=raised)
    return RaisedInEnvironment(problem, is_loss=isinstance(raised, InfrastructureError))


def _error_text(error: BaseException) -> str:
    """Return an error in words, also one whose own message cannot be read."""
    try:
        message = shortened(str(error), 300)
    except Exception as own_error:
        message = f"(its message cannot be read: {type(own_error).__name__})"
    return f"{type(error).__name__}{message and f': {message}'}"


def _is_number(value: object) -> TypeGuard[SupportsFloat]:
    return isinstance(value, numbers.Real) or hasattr(value, "__float__")  # a tensor of one number too


def workspace_of(environment: object) -> OwnText:
    """Return an environment's ``workspace``, empty for ``None``; an ``OwnFault`` where it raises or is no path."""
    value = _read(environment, "workspace", "a path", lambda: _path_of(environment))
    if isinstance(value, RaisedInEnvironment):
        return OwnFault(value.message)
    return OwnText("" if value is None else value)  # None would count as a value of the row, and split the group


def _path_of(environment: object) -> _Reading:
    value = getattr(environment, "workspace", None)
    is_path = isinstance(value, str) or hasattr(value, "__fspath__")
    path: object = os.fspath(value) if is_path else None  # type: ignore[arg-type]
    return _Reading("workspace", value, path if isinstance(path, str) else None)


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
