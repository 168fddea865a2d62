"""What trainers' environments are, have scored and have left: read from TRL's objects and from verifiers' traces."""

from __future__ import annotations

import asyncio
import inspect
import logging
import numbers
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from rewardkit import DataError
from rewardkit.extending import (
    ENVIRONMENT_COLUMN,
    ENVIRONMENTS_COLUMN,
    ColumnValueError,
    LiveObject,
    OwnText,
    shortened,
)
from trainer_adapter.environment_fault import RaisedInEnvironment

WORKSPACE_COLUMN = "workspace"
_log = logging.getLogger("trainer_adapter")


class EnvironmentColumns:
    """The columns that TRL's environments give rewards which read them.

    An environment is asked for its reward once a batch, however often the trainer asks for scores of that batch. The
    list of completions tells batches apart; that of environments does not, as TRL 1.6 keeps one for the whole training.
    """

    def __init__(self) -> None:
        self._asked: tuple[Sequence[Any], Sequence[Any]] | None = None
        self._values: list[object] = []

    def added(
        self, keywords: Mapping[str, Any], completions: Sequence[Any], rewards: Iterable[Any]
    ) -> Mapping[str, Any]:
        """Return TRL's keywords of a batch, with what its environments give to rewards that read it.

        Args:
            keywords: All but prompts, completions and token ids; ``environments`` has one object a completion.
            completions: TRL's list of the batch's completions.
            rewards: A runtime's rewards.

        Raises:
            DataError: An environment's ``reward`` is not a number, or its ``workspace`` is not a path.
        """
        if ENVIRONMENTS_COLUMN not in keywords:
            return keywords
        environments = keywords[ENVIRONMENTS_COLUMN]
        columns = {name: values for name, values in keywords.items() if name != ENVIRONMENTS_COLUMN}
        if environments is None:
            return columns
        leaves = [leaf.spec for one in rewards for leaf in getattr(one, "leaves", ())]
        wanted = {parameter.name for spec in leaves for parameter in spec.parameters}
        if any(spec.wants_environments for spec in leaves):
            columns[ENVIRONMENTS_COLUMN] = [LiveObject.of(one) for one in environments]
        if ENVIRONMENT_COLUMN in wanted and ENVIRONMENT_COLUMN not in columns:
            columns[ENVIRONMENT_COLUMN] = self._scored(environments, completions)
        if WORKSPACE_COLUMN in wanted and WORKSPACE_COLUMN not in columns:
            columns[WORKSPACE_COLUMN] = [workspace_of(one) for one in environments]
        return columns

    def _scored(self, environments: Sequence[Any], completions: Sequence[Any]) -> list[object]:
        if self._asked is None or self._asked[0] is not environments or self._asked[1] is not completions:
            self._values = [environment_value(one) for one in environments]
            self._asked = environments, completions
        return self._values


def environment_value(environment: Any) -> object:
    """Return what an environment gives as its reward; ``None`` where it gives no reward.

    That is what its method ``get_reward`` returns, or a
    :class:`~trainer_adapter.environment_fault.RaisedInEnvironment` where it raises; else the number in its attribute
    ``reward``.

    Raises:
        DataError: The attribute is not a number.
    """
    if callable(getattr(environment, "get_reward", None)):
        return _given_by(environment)
    value = getattr(environment, "reward", None)
    if value is None or callable(value):
        return None
    if not isinstance(value, numbers.Real) and not hasattr(value, "__float__"):
        raise DataError(
            f"the environment {type(environment).__name__} has reward={value!r:.80}: expected a number or None"
        )
    return float(value)


def _given_by(environment: Any) -> object:
    called = f"{type(environment).__name__}.get_reward()"
    try:
        value = environment.get_reward()
        if inspect.iscoroutine(value):
            with ThreadPoolExecutor(1) as own:  # a loop may run in this thread already
                value = own.submit(asyncio.run, value).result()
        if value is None or isinstance(value, numbers.Real) or hasattr(value, "__float__"):
            return None if value is None else float(value)
    except Exception as error:
        _log.exception("%s raised; its completion has no score of the environment", called)
        return RaisedInEnvironment(f"{called} raised {type(error).__name__}: {shortened(str(error), 300)}")
    return RaisedInEnvironment(f"{called} returned {value!r:.80}: expected a number or None")


def workspace_of(environment: Any) -> OwnText:
    """Return the path of the folder that an environment works in, its attribute ``workspace``; empty for none.

    Raises:
        DataError: It is not a path.
    """
    value = getattr(environment, "workspace", None)
    if value is None:
        return OwnText()  # no None, which would be of the row and part the group
    if not isinstance(value, str) and not hasattr(value, "__fspath__"):
        raise DataError(
            f"the environment {type(environment).__name__} has workspace={value!r:.80}: expected a path or None"
        )
    return OwnText(value)


def check_workspaces(rewards: Iterable[Any], rows: Any, what: str) -> None:
    """Refuse a dataset whose workspaces are missing or lie elsewhere, before training begins.

    Args:
        rewards: A runtime's rewards.
        rows: A ``datasets.Dataset``; of anything without columns nothing is known.
        what: What errors call it.

    Raises:
        DataError: A path is not a folder in which workspaces may lie; names reward, row and path.
    """
    names = getattr(rows, "column_names", None) or ()
    for leaf in (leaf for one in rewards for leaf in one.leaves):
        for column, coercer in leaf.spec.workspaces.items():
            if column not in names or not hasattr(rows, "__len__"):
                continue
            seen: set[str] = set()
            for place, value in enumerate(rows[column]):
                if repr(value) in seen:
                    continue
                seen.add(repr(value))
                try:
                    coercer(value)
                except ColumnValueError as wrong:
                    raise DataError(f"reward {leaf.name!r}: {what}, {wrong.describe(column, place)}") from None


def trace_value(trace: Any) -> float | None:
    """Return the sum of what a trace of verifiers' has as rewards so far, weighted; ``None`` without any."""
    found = [one for one in trace.rewards.values() if one is not None]
    return sum(float(one.score) * float(one.weight) for one in found) if found else None
