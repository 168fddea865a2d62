"""``from_trl``: a reward function of TRL's, ``f(prompts, completions, **columns) -> list[float]``, as it is."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from types import SimpleNamespace
from typing import Any, Unpack, overload

from rewardkit.declare.decorator import Reward, name_of
from rewardkit.declare.options import NamedOptions
from rewardkit.declare.spec import Kind
from rewardkit.errors import RewardDefinitionError
from rewardkit.moving.function import (
    NOT_GIVEN,
    AsyncMovedFunction,
    AuthorCall,
    MovedFunction,
    check_function,
    names_column,
    parameters_of,
    reward_of,
    scored,
    scores_from,
    signature_of,
    takes_all,
)
from rewardkit.own_columns import ENVIRONMENTS_COLUMN

_LISTS = ("prompts", "completions", "completion_ids")
_TRL_HELPERS = ("trainer_state", "log_extra", "log_metric")  # What TRL 1.16 passes beside lists
_KIT_NAMES = ("messages", "example", "step", "epoch")
"""Columns of these names are TRL's as any other, while to a reward of ours they mean something else."""


@dataclass
class _Log:
    """What a call has told by ``log_metric`` and ``log_extra``."""

    metrics: dict[str, float] = field(default_factory=dict)

    def metric(self, name: str, value: float) -> None:
        """Note a number; one that is not finite is printed, because it is no metric and costs no score."""
        number = float(value)
        if math.isfinite(number):
            self.metrics[str(name)] = number
        else:
            print(f"{name}: {number}")

    def extra(self, column: str, values: object) -> None:
        """Print a column of the trainer's table of completions; what a call prints is kept with its outcome."""
        for item in values if isinstance(values, list | tuple) else [values]:
            print(f"{column}: {item}")


class TrlFunction(MovedFunction):
    """A reward function of TRL's, called with lists of one completion, or of the completions of one prompt."""

    @property
    def in_groups(self) -> bool:
        """Whether a call has all completions of a prompt."""
        return bool(self.settings[0])

    @cached_property
    def __signature__(self) -> inspect.Signature:
        """The signature by which the kit calls the function.

        It has the columns that the author's function names, and the kit's own columns, of which TRL's other arguments
        are made.
        """
        columns = {
            name: parameter
            for name, parameter in self.parameters.items()
            if names_column(name) and name not in _TRL_HELPERS
        }
        required = [name for name, parameter in columns.items() if parameter.default is parameter.empty]
        trl_names = {"prompt": "prompts", "completion_ids": "completion_ids"}
        from_kit = [kit_name for kit_name, trl_name in trl_names.items() if self._wants(trl_name)]
        if any(map(self._wants, _KIT_NAMES)):
            from_kit.append("example")  # they are read from the row
        completion = "completions" if self.in_groups else "completion"
        optional = [*from_kit, "step", "epoch", *(name for name in columns if name not in required)]
        return signature_of(optional, [completion, *required], rest=self.takes_all)

    @property
    def hints(self) -> Mapping[str, Any]:
        texts = {"prompt": object, "completion": object, "completions": list[object]}
        return {**dict.fromkeys(self.parameters, object), **texts, "example": Mapping[str, Any]}

    def _wants(self, name: str) -> bool:
        """Return whether the author's function takes a parameter of this name."""
        return self.takes_all or name in self.parameters

    def author_call(self, columns: Mapping[str, Any]) -> AuthorCall:
        columns, log = dict(columns), _Log()
        prompt, step, epoch = (columns.pop(name, None) for name in ("prompt", "step", "epoch"))
        ids, row = columns.pop("completion_ids", None), columns.pop("example", None) or {}
        columns |= {name: row[name] for name in _KIT_NAMES if name in row}
        completions = list(columns.pop("completions")) if self.in_groups else [columns.pop("completion")]
        count = len(completions)

        keywords: dict[str, Any] = {
            "prompts": [prompt] * count,
            "completions": completions,
            "completion_ids": (ids if self.in_groups else [ids]) if ids is not None else [None] * count,
            "trainer_state": SimpleNamespace(global_step=step or 0, epoch=epoch or 0.0),
            "log_extra": log.extra,
            "log_metric": log.metric,
            **{name: [value] * count for name, value in columns.items()},
        }
        if ENVIRONMENTS_COLUMN in columns and self.in_groups:
            keywords[ENVIRONMENTS_COLUMN] = list(columns[ENVIRONMENTS_COLUMN])
        wanted = {name: value for name, value in keywords.items() if self._wants(name)}
        return AuthorCall(wanted, partial(self._read, count, log))

    def _read(self, count: int, log: _Log, value: object) -> Any:
        """Return the score of a result, or those of a group, with what the call logged as metrics."""
        scores = [scored(score, log.metrics) for score in scores_from(value, count, "TRL")]
        return scores if self.in_groups else scores[0]


class AsyncTrlFunction(AsyncMovedFunction, TrlFunction):
    """The same for an ``async def``."""


@overload
def from_trl(
    function: Callable[..., Any], /, *, in_groups: bool = ..., **options: Unpack[NamedOptions]
) -> Reward[..., Any]: ...
@overload
def from_trl(
    *, in_groups: bool = ..., **options: Unpack[NamedOptions]
) -> Callable[[Callable[..., Any]], Reward[..., Any]]: ...
def from_trl(function: Any = NOT_GIVEN, /, *, in_groups: bool = False, **options: object) -> Any:
    """Return a reward of a function that was written for TRL's GRPOTrainer, which stays as it is; also a decorator.

    The function is called for one completion at a time, with lists of one, so a fault costs one completion and names
    it. It gets what TRL passes: ``prompts``, ``completions``, ``completion_ids``, every column as a list,
    ``trainer_state`` with ``global_step`` and ``epoch``, ``log_metric``, whose numbers become metrics, and
    ``log_extra``, whose values are in the outcome's logs. ``None`` skips a completion; ``nan``, which TRL leaves out
    without a word, is a failure.

    >>> from rewardkit.moving import from_trl
    >>> def short(completions, **kwargs):
    ...     return [1.0 if len(one) < 5 else 0.0 for one in completions]
    >>> from_trl(short, timeout_s=2)(completion="four")
    1.0

    Args:
        function: The function, plain or ``async``.
        in_groups: Call it with all completions of a prompt at once, where it compares them. A fault then costs the
            group.
        options: As for :func:`rewardkit.reward`.

    Raises:
        RewardDefinitionError: It is no such function.
    """

    def move(moved: Callable[..., Any]) -> Reward[..., Any]:
        _check(moved)
        kind = Kind.GROUP if in_groups else Kind.SINGLE
        return reward_of((TrlFunction, AsyncTrlFunction), moved, (bool(in_groups),), kind, options)

    return move if function is NOT_GIVEN else move(function)


def _check(function: Callable[..., Any]) -> None:
    """Raise :class:`RewardDefinitionError` for a function that TRL could not call."""
    check_function(function, "from_trl")
    name, parameters = name_of(function), parameters_of(function)
    if "completion" in parameters and "completions" not in parameters:
        raise RewardDefinitionError(
            f"from_trl: {name}() takes one 'completion', and TRL passes lists, 'completions'; mark it with @reward"
        )
    if "completions" not in parameters and not takes_all(function):
        raise RewardDefinitionError(f"from_trl: {name}() takes no 'completions', which TRL passes by that name")
