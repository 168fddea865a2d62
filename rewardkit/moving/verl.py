"""``from_verl``: a ``compute_score`` of verl's, as it is, for one completion or in verl's form for batches."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Unpack, overload

from rewardkit.declare.decorator import Reward, name_of
from rewardkit.declare.options import NamedOptions
from rewardkit.declare.spec import Kind
from rewardkit.errors import BadReturnError, RewardDefinitionError
from rewardkit.moving.function import (
    NOT_GIVEN,
    AsyncMovedFunction,
    AuthorCall,
    MovedFunction,
    check_function,
    metrics_and_reason,
    names_column,
    parameters_of,
    required_of,
    reward_of,
    score_from,
    scored,
    scores_from,
    signature_of,
    takes_all,
)
from rewardkit.shown.text import shortened

_ONE = ("data_source", "solution_str", "ground_truth", "extra_info")
_MANY = {"data_sources": "data_source", "solution_strs": "solution_str", "ground_truths": "ground_truth",
         "extra_infos": "extra_info"}  # fmt: skip
_TRUTHS = ("reward_model.ground_truth", "ground_truth", "answer")
"""Where a row's ground truth is looked for: in verl's own column first."""


class VerlFunction(MovedFunction):
    """A ``compute_score`` of verl's, called for one completion."""

    @property
    def truth_path(self) -> str | None:
        """The column of the ground truth, or a field of it as ``column.field``; ``None`` where none was named."""
        path: str | None = self.settings[0]
        return path

    @cached_property
    def __signature__(self) -> inspect.Signature:
        """The columns that a call takes of ours: what the author's function needs, and the row for the rest."""
        required, optional = ["completion"], ["example"]
        column = (self.truth_path or "").partition(".")[0]
        if names_column(column):
            required.append(column)
        reads_info = self.takes_all or {"extra_info", "extra_infos"} & self.parameters.keys()
        if reads_info and column != "extra_info":
            optional.append("extra_info")
        return signature_of(optional, required)

    @property
    def hints(self) -> Mapping[str, Any]:
        return {**dict.fromkeys(self.__signature__.parameters, object), "completion": str, "example": Mapping[str, Any]}

    def author_call(self, columns: Mapping[str, Any]) -> AuthorCall:
        own = {name: value for name, value in columns.items() if name not in ("completion", "example")}
        completion, example = columns["completion"], {**(columns.get("example") or {}), **own}
        info = _object(example.get("extra_info"))
        row = {
            "data_source": example.get("data_source", ""),
            "solution_str": completion,
            **self._truth(example),
            "extra_info": dict(example) if info is None else info,
        }
        keywords = {many: [row[name]] for many, name in _MANY.items() if name in row} if self.in_batches else row
        wanted = {name: value for name, value in keywords.items() if self.takes_all or name in self.parameters}
        return AuthorCall(wanted, self._read)

    @property
    def in_batches(self) -> bool:
        """Whether the function is in verl's form for batches."""
        return "solution_strs" in self.parameters

    def _truth(self, example: Mapping[str, Any]) -> dict[str, Any]:
        """Return a row's ``ground_truth``; without one ``{}``, or LookupError where the function needs it."""
        paths = _TRUTHS if self.truth_path is None else (self.truth_path,)
        for path in paths:
            column, _, key = path.partition(".")
            if column not in example:
                continue
            if not key:
                return {"ground_truth": example[column]}
            inside = _object(example[column])
            if inside is not None and key in inside:
                return {"ground_truth": inside[key]}
        if self.truth_path is None and not {"ground_truth", "ground_truths"} & required_of(self.moved):
            return {}
        raise LookupError(
            f"the row has no {' and no '.join(map(repr, paths))}; name the column of the ground truth with "
            "from_verl(ground_truth='...')"
        )

    def _read(self, value: object) -> Any:
        """Return the score, with the other numbers of a dictionary as metrics."""
        if self.in_batches:
            (value,) = scores_from(value, 1, "verl")
        if not isinstance(value, Mapping):
            return score_from(value[0] if isinstance(value, tuple) and value else value)
        if "score" not in value:
            raise BadReturnError(f"returned {shortened(repr(value), 80)}; verl expects a number under 'score'")
        metrics, reason = metrics_and_reason({name: part for name, part in value.items() if name != "score"})
        return scored(score_from(value["score"]), metrics, reason)


class AsyncVerlFunction(AsyncMovedFunction, VerlFunction):
    """The same for an ``async def``."""


@overload
def from_verl(
    function: Callable[..., Any], /, *, ground_truth: str | None = ..., **options: Unpack[NamedOptions]
) -> Reward[..., Any]: ...
@overload
def from_verl(
    *, ground_truth: str | None = ..., **options: Unpack[NamedOptions]
) -> Callable[[Callable[..., Any]], Reward[..., Any]]: ...
def from_verl(function: Any = NOT_GIVEN, /, *, ground_truth: str | None = None, **options: object) -> Any:
    """Return a reward of a ``compute_score`` that was written for verl, which stays as it is; also a decorator.

    It gets ``solution_str``, the completion as text; ``data_source`` and ``extra_info`` from the columns of those names
    (``extra_info`` is the whole row where there is no such column); and ``ground_truth``. It returns a number, or a
    dictionary with ``score``, whose other numbers become metrics and whose texts the reason. A function in verl's form
    for batches, with ``solution_strs``, is called with lists of one.

    >>> from rewardkit.moving import from_verl
    >>> def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    ...     return {"score": float(solution_str.endswith(ground_truth)), "length": len(solution_str)}
    >>> from_verl(compute_score)(completion="it is 4", example={"ground_truth": "4"})
    Score(value=1.0, reason=None, metrics={'length': 7.0})

    Args:
        function: The function, plain or ``async``. Arguments of verl's ``reward_kwargs`` are set by
            ``functools.partial``.
        ground_truth: The column of the ground truth, or a field of it, as ``"reward_model.ground_truth"``; unless
            given, that one, ``"ground_truth"`` or ``"answer"``, whichever the row has.
        options: As for :func:`rewardkit.reward`.

    Raises:
        RewardDefinitionError: It is no such function, or takes what only verl's own processes have.
    """
    if ground_truth is not None and not (isinstance(ground_truth, str) and ground_truth.partition(".")[0]):
        raise RewardDefinitionError(f"from_verl: ground_truth={ground_truth!r}: expected a column's name")

    def move(moved: Callable[..., Any]) -> Reward[..., Any]:
        _check(moved)
        return reward_of((VerlFunction, AsyncVerlFunction), moved, (ground_truth,), Kind.SINGLE, options)

    return move if function is NOT_GIVEN else move(function)


def _check(function: Callable[..., Any]) -> None:
    """Raise :class:`RewardDefinitionError` for a function that verl could not call."""
    check_function(function, "from_verl")
    name, parameters = name_of(function), parameters_of(function)
    if not takes_all(function) and not {"solution_str", "solution_strs"} & parameters.keys():
        raise RewardDefinitionError(f"from_verl: {name}() takes no 'solution_str', which verl passes by that name")
    unfilled = sorted(required_of(function) - {*_ONE, *_MANY})
    if unfilled:
        raise RewardDefinitionError(
            f"from_verl: nothing fills {unfilled[0]!r} of {name}(); set it with "
            f"functools.partial({name}, {unfilled[0]}=...)"
        )


def _object(value: object) -> Mapping[str, Any] | None:
    """Return a column that holds an object, also as JSON; ``None`` where it holds something else."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, Mapping) else None
