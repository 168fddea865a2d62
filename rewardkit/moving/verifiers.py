"""``from_verifiers``: a function of a rubric of verifiers', for one rollout or, by plural names, a group, as it is.

Functions of version 1, ``f(task, trace)``, are :mod:`rewardkit.moving.verifiers_task`'s.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Collection, Mapping
from functools import cached_property, partial
from typing import Any, Unpack, overload

from rewardkit.declare.decorator import Reward, name_of
from rewardkit.declare.options import NamedOptions
from rewardkit.declare.spec import Kind
from rewardkit.errors import DataError, RewardDefinitionError
from rewardkit.moving.function import (
    NOT_GIVEN,
    AsyncMovedFunction,
    AuthorCall,
    MovedFunction,
    check_function,
    parameters_of,
    required_of,
    reward_of,
    score_from,
    scores_from,
    signature_of,
    takes_all,
)
from rewardkit.moving.verifiers_task import TASK_NAMES, AsyncTaskFunction, TaskFunction
from rewardkit.shown.text import shortened

_SINGULAR = {"prompts": "prompt", "completions": "completion", "answers": "answer", "tasks": "task", "infos": "info",
             "states": "state"}  # fmt: skip
_KNOWN = frozenset(_SINGULAR.values())


class VerifiersFunction(MovedFunction):
    """A rubric's function, called for one rollout, or for the rollouts of one prompt."""

    @property
    def in_groups(self) -> bool:
        """Whether the function takes lists."""
        return _in_groups(self.moved)

    @cached_property
    def __signature__(self) -> inspect.Signature:
        """The columns that a call takes of ours: what the author's function needs, and the row for the rest."""
        required, optional = ["completions" if self.in_groups else "completion"], ["example"]
        if {"answer", "answers"} & required_of(self.moved):
            required.append("answer")
        if self.takes_all or {"prompt", "prompts", "state", "states"} & self.parameters.keys():
            optional.insert(0, "prompt")
        return signature_of(optional, required)

    @property
    def hints(self) -> Mapping[str, Any]:
        example = {"answer": object, "example": Mapping[str, Any]}
        return {"prompt": object, "completion": object, "completions": list[object], **example}

    def author_call(self, columns: Mapping[str, Any]) -> AuthorCall:
        own = ("prompt", "completion", "completions", "example")
        row = {**(columns.get("example") or {}), **{name: value for name, value in columns.items() if name not in own}}
        completions = list(columns["completions"]) if self.in_groups else [columns["completion"]]
        shared = {
            "prompt": columns.get("prompt"),
            "answer": row.get("answer", ""),
            "task": row.get("task", "default"),
            "info": _info(row.get("info")),
        }
        rollouts = [{**row, **shared, "completion": completion} for completion in completions]
        keywords: dict[str, Any] = {**shared, "completion": completions[0], "state": dict(rollouts[0])}
        read: Callable[[Any], Any] = score_from
        if self.in_groups:
            names = [(plural, single) for plural, single in _SINGULAR.items() if single != "state"]
            keywords = {plural: [rollout[single] for rollout in rollouts] for plural, single in names}
            keywords["states"] = [dict(rollout) for rollout in rollouts]
            read = partial(scores_from, count=len(completions), tool="verifiers")
        keywords |= dict(self.settings)
        wanted = {name: value for name, value in keywords.items() if self.takes_all or name in self.parameters}
        return AuthorCall(wanted, read)


class AsyncVerifiersFunction(AsyncMovedFunction, VerifiersFunction):
    """The same for an ``async def``."""


@overload
def from_verifiers(
    function: Callable[..., Any], /, *, objects: Mapping[str, Any] | None = ..., **options: Unpack[NamedOptions]
) -> Reward[..., Any]: ...
@overload
def from_verifiers(
    *, objects: Mapping[str, Any] | None = ..., **options: Unpack[NamedOptions]
) -> Callable[[Callable[..., Any]], Reward[..., Any]]: ...
def from_verifiers(function: Any = NOT_GIVEN, /, *, objects: Mapping[str, Any] | None = None, **options: object) -> Any:
    """Return a reward of a function that was written for verifiers, which stays as it is; also a decorator.

    A function, or a method, that takes ``trace`` is one of a task of version 1, 0.4 with it: ``task`` has the row's
    columns and the prompt, ``trace`` the messages, ``last_reply`` and what else can be known of a completion. Of keyed
    scores the sum is the score, and each is a metric.

    A function of a ``Rubric`` gets what it names: ``prompt`` and ``completion`` as the rollout holds them, ``answer``,
    ``task``, ``info`` (JSON becomes an object) and ``state``, which holds the row and these. One with plural names,
    such as ``completions``, gets the rollouts of one prompt at once.

    >>> from rewardkit.moving import from_verifiers
    >>> async def correct(completion, answer, **kwargs):
    ...     return 1.0 if completion[-1]["content"] == answer else 0.0
    >>> import asyncio
    >>> asyncio.run(from_verifiers(correct)(completion=[{"role": "assistant", "content": "4"}], answer="4"))
    1.0

    Args:
        function: The function, plain or ``async``.
        objects: What a rubric hands to its functions beside these, such as ``{"parser": parser}``; it travels to
            the workers, so it must be picklable.
        options: As for :func:`rewardkit.reward`.

    Raises:
        RewardDefinitionError: It is no such function, or nothing fills one of its parameters.
    """

    def move(moved: Callable[..., Any]) -> Reward[..., Any]:
        check_function(moved, "from_verifiers")
        settings = tuple((objects or {}).items())
        if "trace" in parameters_of(moved):
            _check_filled(moved, TASK_NAMES | (objects or {}).keys())
            return reward_of((TaskFunction, AsyncTaskFunction), moved, settings, Kind.SINGLE, options)
        _check(moved, objects or {})
        kinds, kind = (VerifiersFunction, AsyncVerifiersFunction), Kind.GROUP if _in_groups(moved) else Kind.SINGLE
        return reward_of(kinds, moved, settings, kind, options)

    return move if function is NOT_GIVEN else move(function)


def _in_groups(function: Callable[..., Any]) -> bool:
    """Return whether a function takes the rollouts of one prompt at once, by plural names."""
    return bool(parameters_of(function).keys() & _SINGULAR.keys())


def _info(value: object) -> Any:
    """Return a row's ``info``, decoded where it is JSON, and an empty object where it is nothing.

    Raises DataError where it is a text that is not JSON.
    """
    if not isinstance(value, str) or not value.strip():
        return value or {}
    try:
        return json.loads(value) or {}
    except (ValueError, RecursionError) as reason:
        raise DataError(f"the row's 'info' is a text that is not JSON: {shortened(value, 80)!r}: {reason}") from None


def _check(function: Callable[..., Any], objects: Mapping[str, Any]) -> None:
    """Raise :class:`RewardDefinitionError` for a function that a rubric could not call."""
    names = _SINGULAR.keys() if _in_groups(function) else _KNOWN
    _check_filled(function, names | objects.keys())
    if not parameters_of(function) and not takes_all(function):
        raise RewardDefinitionError(
            f"from_verifiers: {name_of(function)}() takes no parameters; it must take 'completion', or 'trace'"
        )


def _check_filled(function: Callable[..., Any], names: Collection[str]) -> None:
    """Raise :class:`RewardDefinitionError` for a required parameter that is not among these names."""
    unfilled = sorted(required_of(function) - set(names))
    if not unfilled:
        return
    if unfilled[0] == "runtime":
        fix = "it is the machine of an agent's run, which no recorded completion has"
    else:
        fix = f"a rubric's own objects are given by objects={{{unfilled[0]!r}: ...}}"
    raise RewardDefinitionError(f"from_verifiers: nothing fills {unfilled[0]!r} of {name_of(function)}(); {fix}")
