"""What all functions that move in share: their own names and source, and how what they return becomes a score."""

from __future__ import annotations

import inspect
import itertools
import keyword
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rewardkit.declare.callables import is_async, set_by_partials, without_partials
from rewardkit.declare.decorator import Reward, check_can_be_reward, make_options, name_of
from rewardkit.declare.spec import GROUP_RESERVED, RESERVED, Kind
from rewardkit.errors import BadReturnError, RewardDefinitionError
from rewardkit.function import RewardFunction, Versioned
from rewardkit.shown.text import shortened
from rewardkit.types import Score
from rewardkit.versions.fingerprint import Fingerprint

NOT_GIVEN: Any = object()  # What stands for the function where a move is a decorator with options
_BY_KEYWORD = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class AuthorCall(NamedTuple):
    """A call of the author's function, as its tool makes it."""

    arguments: dict[str, Any]  # all by keyword
    read: Callable[[Any], Any]  # what makes the score, or a group's scores, of its result


@dataclass(frozen=True, eq=False)
class MovedFunction(RewardFunction, Versioned):
    """A function that another tool calls, as rewardkit calls it. It bears the author's names and shows his source."""

    moved: Callable[..., Any]  # the author's function
    settings: tuple[Any, ...]  # what decides how it is called

    def __post_init__(self) -> None:
        names = ("__module__", "__name__", "__qualname__", "__doc__")
        beneath = without_partials(self.moved)
        vars(self).update({name: getattr(beneath, name) for name in names if hasattr(beneath, name)})
        vars(self)["__wrapped__"] = self.moved

    def author_call(self, columns: Mapping[str, Any]) -> AuthorCall:
        """Return the call of the author's function that its tool would make for these columns."""
        raise NotImplementedError

    def __call__(self, /, **columns: object) -> Any:
        """Call the author's function as its tool does, and return the score, or those of a group."""
        call = self.author_call(columns)
        return call.read(self.moved(**call.arguments))

    @property
    def version(self) -> str:
        return Fingerprint(self.moved, (type(self).__name__.removeprefix("Async"), *self.settings)).digits

    @property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """The author's parameters that are passed by keyword and not set by a partial."""
        return parameters_of(self.moved)

    @property
    def unannotated(self) -> frozenset[str]:
        return frozenset(n for n, parameter in self.parameters.items() if parameter.annotation is parameter.empty)

    @property
    def takes_all(self) -> bool:
        """Whether the author's function takes any keyword."""
        return takes_all(self.moved)


class AsyncMovedFunction(MovedFunction):
    """The same for an ``async def``; a class that inherits it names it before the tool's own."""

    async def __call__(self, /, **columns: object) -> Any:
        call = self.author_call(columns)
        return call.read(await self.moved(**call.arguments))


def parameters_of(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the parameters that are passed by keyword and that no partial has set, by name."""
    fixed = set_by_partials(function)
    items = inspect.signature(function).parameters.items()
    return {name: parameter for name, parameter in items if parameter.kind in _BY_KEYWORD and name not in fixed}


def takes_all(function: Callable[..., Any]) -> bool:
    """Return whether a function takes any keyword."""
    return any(parameter.kind is parameter.VAR_KEYWORD for parameter in inspect.signature(function).parameters.values())


def required_of(function: Callable[..., Any]) -> set[str]:
    """Return the names of the parameters without a default."""
    return {name for name, parameter in parameters_of(function).items() if parameter.default is parameter.empty}


def signature_of(optional: Sequence[str], required: Sequence[str], *, rest: bool = False) -> inspect.Signature:
    """Return a signature of keyword parameters; with ``rest`` it takes further columns."""
    parameters = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in required]
    parameters += [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in optional]
    if rest:
        parameters.append(inspect.Parameter("columns", inspect.Parameter.VAR_KEYWORD))
    return inspect.Signature(parameters)


def names_column(name: str) -> bool:
    """Return whether a parameter of this name can be, and is filled with the column; others are read from the row."""
    is_name = name.isidentifier() and not keyword.iskeyword(name)
    return is_name and name not in RESERVED | GROUP_RESERVED | {"prompts"}


def check_function(function: Callable[..., Any], move: str) -> None:
    """Raise :class:`RewardDefinitionError` for anything but a function that can be called by keyword."""
    if isinstance(function, Reward):
        raise RewardDefinitionError(f"{move}: {function.name!r} is a reward already; use it as it is")
    check_can_be_reward(function, move, None)
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError) as reason:
        raise RewardDefinitionError(f"{move}: the signature of {function!r} cannot be read: {reason}") from reason
    for parameter in parameters:
        if parameter.kind is parameter.POSITIONAL_ONLY and parameter.default is parameter.empty:
            raise RewardDefinitionError(f"{move}: {name_of(function)}() takes {parameter.name!r} by position alone")


def reward_of(
    kinds: tuple[type[MovedFunction], type[MovedFunction]],
    function: Callable[..., Any],
    settings: tuple[Any, ...],
    kind: Kind,
    options: Mapping[str, Any],
) -> Reward[..., Any]:
    """Return the reward of a function that moved in; the second of its kinds is that of an ``async def``."""
    moved = kinds[is_async(function)](function, settings)
    return Reward(moved, kind, make_options(name_of(function), options))


def score_from(value: Any) -> Any:
    """Return a score as rewardkit takes it: truth as 1.0 or 0.0, a number of numpy or torch as Python's."""
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        value = value.item()
    return float(value) if isinstance(value, bool) else value


def scores_from(value: object, count: int, tool: str) -> list[Any]:
    """Return a list of scores; raise BadReturnError where the value is no list as long as that of the completions."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Iterator):
        value = list(itertools.islice(value, count + 1))
    if not isinstance(value, list | tuple):
        text = shortened(repr(value), 80)
        raise BadReturnError(f"returned {text}; {tool} expects a list with a score for each completion, {count} here")
    if len(value) != count:
        raise BadReturnError(
            f"returned a list of {len(value)} for {count} completion{'s' * (count != 1)}; {tool} expects one score each"
        )
    return [score_from(score) for score in value]


def metrics_and_reason(numbers: Mapping[str, Any]) -> tuple[dict[str, float], str | None]:
    """Return the finite numbers as metrics, and all other values as one text, ``None`` where there are no others."""
    metrics: dict[str, float] = {}
    notes = []
    for name, value in numbers.items():
        plain = score_from(value)
        if isinstance(plain, int | float) and math.isfinite(plain):
            metrics[str(name)] = float(plain)
        elif plain is not None:
            notes.append(f"{name}: {shortened(plain if isinstance(plain, str) else repr(plain), 200)}")
    return metrics, "; ".join(notes) or None


def scored(value: Any, metrics: Mapping[str, float], reason: str | None = None) -> Any:
    """Return a score with what was said beside it, where anything was."""
    return Score(value, reason, dict(metrics)) if metrics or reason else value
