"""``@reward`` and ``@group_reward``: they mark and describe a function, and do not hide it."""

from __future__ import annotations

import contextlib
import difflib
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Generic, ParamSpec, TypeVar, Unpack, overload

from rewardkit.coercion.rule import Coercer, ColumnValueError
from rewardkit.declare.bounds import finite
from rewardkit.declare.callables import set_by_partials, why_no_reward, without_partials
from rewardkit.declare.compose import Composable
from rewardkit.declare.options import NamedOptions, RewardOptions
from rewardkit.declare.spec import ColumnMisfit, Kind, RewardSpec, build_spec, coerce_column
from rewardkit.errors import RewardDefinitionError
from rewardkit.function import described
from rewardkit.run_code import Package, Sources
from rewardkit.transport import find, locate
from rewardkit.types import Outcome

P = ParamSpec("P")
R = TypeVar("R")

_NOT_GIVEN = object()
_OF_TRAINERS = {"prompts", "completions"}  # The keywords with which TRL calls a reward function; no reward has both


class Reward(Composable, Generic[P, R]):
    """A reward function with its options.

    Call it as the plain function it is, by keyword. ``0.8 * a + 0.2 * b`` composes rewards.

    Attributes:
        spec: The function, its options and its parameter plan.
        make: The factory that makes the same reward with other settings; ``None`` where there is no such factory.
        changed_settings: The settings, by name, that a caller gave to such a factory for this reward.
    """

    spec: RewardSpec
    make: Callable[..., Reward[..., Any]] | None = None
    changed_settings: Mapping[str, Any] = MappingProxyType({})
    __name__: str

    def __init__(
        self,
        function: Callable[P, R],
        kind: Kind,
        options: RewardOptions,
        hints: Mapping[str, Any] | None = None,
        version: str | None = None,
    ) -> None:
        self.spec = build_spec(function, kind, options, hints, version)
        functools.update_wrapper(self, function)
        self.__doc__ = without_partials(function).__doc__
        self.__name__ = options.name

    @property
    def name(self) -> str:
        """What tables, logs and metrics call it."""
        return self.spec.options.name

    def uses(self, sign: int = 1) -> Iterator[tuple[Reward[..., Any], int]]:
        yield self, sign

    @property
    def leaves(self) -> tuple[Reward[P, R]]:
        return (self,)

    def map_leaves(self, change: Callable[[Reward[..., Any]], Reward[..., Any]]) -> Reward[..., Any]:
        return change(self)

    def combine(self, outcomes: Mapping[Reward[..., Any], Outcome], step: int | None = None) -> Outcome:
        return outcomes[self]

    @property
    def score_range(self) -> tuple[float, float] | None:
        """Lowest and highest score that its author declares; ``None`` where every finite number is allowed."""
        return self.options.score_range

    @property
    def parts_without_range(self) -> tuple[str, ...]:
        return (self.name,) if finite(self.score_range) is None else ()

    @property
    def options(self) -> RewardOptions:
        """What the author asked of the runtime."""
        return self.spec.options

    @property
    def function(self) -> Callable[P, R]:
        """The function as the author wrote it: no coercion, exact types."""
        return self.spec.function

    @property
    def inner(self) -> tuple[Reward[..., Any], ...]:
        """The rewards that its function calls itself, at any depth; what defines them travels to workers with it."""
        return described(self.spec.function).inner

    @property
    def on_one_host(self) -> bool:
        """Whether all calls of it, or of a reward that it calls, must be made on one host."""
        every: tuple[Reward[..., Any], ...] = (self, *self.inner)
        return any(described(reward.function).on_one_host for reward in every)

    def set_up(self) -> None:
        """Check that what the function needs is there; a runtime calls this once, in its own process.

        Raises:
            RewardDefinitionError: Something is missing; the message says what helps.
        """
        described(self.spec.function).set_up()

    def misfits(self, examples: Sequence[Mapping[str, Any]]) -> list[ColumnMisfit]:
        """Return the values that do not fit the columns of this reward, or of one inside it, in the rows' order."""
        coercers = self._coercers()
        misfits: dict[ColumnMisfit, None] = {}  # rewards inside another may read the same column
        for row, example in enumerate(examples):
            for column, coercer in coercers:
                try:
                    if column in example:
                        coercer(example[column])
                except ColumnValueError as error:
                    misfits[ColumnMisfit(row, column, error.describe(column, None))] = None
        return list(misfits)

    def doubts(self, examples: Sequence[Mapping[str, Any]]) -> list[ColumnMisfit]:
        """Return what of values that fit a person should look at, in the rows' order; see :class:`Coercer`."""
        doubts: dict[ColumnMisfit, None] = {}
        coercers = [(column, coercer, coercer.doubt) for column, coercer in self._coercers() if coercer.doubt]
        for row, example in enumerate(examples):
            for column, coercer, doubt in coercers:
                with contextlib.suppress(ColumnValueError):
                    if column in example and (text := doubt(coercer(example[column]))):
                        doubts[ColumnMisfit(row, column, text)] = None
        return list(doubts)

    def _coercers(self) -> list[tuple[str, Coercer]]:
        every: tuple[Reward[..., Any], ...] = (self, *self.inner)
        parameters = [p for reward in every for p in reward.spec.parameters]
        return [(p.name, p.coercer) for p in parameters if p.coercer is not None]

    def with_client(self, client: Any) -> Reward[P, R]:
        """Return the same judge that asks this client in place of its server, such as a ``FakeJudge`` in a test.

        Raises:
            RewardDefinitionError: The reward is not a judge.
        """
        fix = "call with_client on a judge, or on a chain, jury or step reward of judges"
        raise RewardDefinitionError(f"reward {self.name!r} has no client: it is not a judge; {fix}")

    @property
    def version(self) -> str:
        """Fingerprint of the code and all of one's own that it uses, settings and options: 12 hexadecimal digits."""
        return self.spec.version

    @property
    def server(self) -> str | None:
        """The address of the servers that score it, without a token; ``None`` for a reward that workers here run."""
        return None

    def version_at(self, sources: Sources) -> str:
        return self.spec.fingerprint.at_start(sources).digits

    def at_start(self, sources: Sources, packages: Sequence[Package] = ()) -> Reward[..., Any]:
        """Return the reward at the start of a run, whose files are what ``sources`` has: itself if nothing changed.

        ``packages`` are what its workers have besides; local files among them count in its version.
        """
        fingerprint = self.spec.fingerprint.at_start(sources, tuple(p.digest for p in packages if p.digest))
        if fingerprint is self.spec.fingerprint:
            return self
        reward = self._having(self.options)
        reward.spec = replace(reward.spec, fingerprint=fingerprint)
        return reward

    def __call__(self, *arguments: object, **columns: object) -> R:
        """Call the function, coercing columns as a run would.

        Conversational prompts and completions become text where the function asks for ``str``.

        Raises:
            CoercionError: A column's value is not what the annotation says.
            TypeError: An argument is missing or unknown, as with any function, a partial has set it, or a trainer
                calls with its whole batch.
        """
        values = self._arguments(arguments, columns)
        supplied = self.spec.supplies(values)
        coerced = {name: self._as_in_a_run(name, value) for name, value in values.items()}
        result: R = self.spec.function(**supplied, **coerced)
        return result

    def _arguments(self, arguments: tuple[Any, ...], columns: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call by name; raise TypeError where they do not fit the parameters."""
        if columns.keys() >= _OF_TRAINERS:
            raise TypeError(
                f"reward {self.name!r} was called with a whole batch, as a trainer calls its reward functions; hand "
                f"the trainer those of an adapter: reward_funcs=RewardAdapter([{self.name}]).reward_funcs, from "
                "trainer_adapter"
            )
        parameters = self.spec.parameters
        if len(arguments) > len(parameters):
            raise TypeError(f"{self.name}() takes {len(parameters)} arguments but {len(arguments)} were given")
        values = {parameter.name: value for parameter, value in zip(parameters, arguments, strict=False)}
        for name in columns:
            if name in values:
                raise TypeError(f"{self.name}() got multiple values for argument {name!r}")
            if name in set_by_partials(self.spec.function):
                raise TypeError(
                    f"{self.name}() got a value for {name!r}, which functools.partial has set, and a run keeps what is "
                    "set; leave it out of the call, or out of the partial"
                )
        values |= columns
        missing = [p.name for p in parameters if p.required and not p.supplied and p.name not in values]
        if missing:
            takes = ", ".join(parameter.name for parameter in parameters)
            names = {parameter.name for parameter in parameters}
            similar = {name: difflib.get_close_matches(name, missing, n=1) for name in columns if name not in names}
            hint = "".join(f"; {name!r} was given: did you mean {near[0]!r}?" for name, near in similar.items() if near)
            raise TypeError(f"{self.name}() lacks {', '.join(map(repr, missing))}; it takes {takes}{hint}")
        return values

    def _as_in_a_run(self, name: str, value: object) -> Any:
        """Return an argument as a run hands it over: a column coerced, a text in the form that the function takes."""
        parameter = next((candidate for candidate in self.spec.parameters if candidate.name == name), None)
        if parameter is None:
            rest = None if name in self.spec.bound else self.spec.rest
            return value if rest is None else coerce_column(rest, name, value, None)
        if parameter.coercer is not None:
            return coerce_column(parameter.coercer, name, value, None)
        if parameter.taken is None:
            return value
        if name == "completions" and isinstance(value, list | tuple):
            return [parameter.taken.form_value(element) for element in value]
        return parameter.taken.form_value(value)

    def with_options(self, **changes: object) -> Reward[P, R]:
        """Return the same reward with some options changed, such as ``timeout_s=30``."""
        values = {field: getattr(self.options, field) for field in RewardOptions.__dataclass_fields__}
        return self._having(make_options(values.pop("name"), {**values, **changes}, declares=False))

    def _having(self, options: RewardOptions) -> Reward[P, R]:
        return Reward(self.spec.function, self.spec.kind, options, self.spec.hints)

    def __repr__(self) -> str:
        if "spec" not in vars(self):  # half made, as in the traceback of an error of its settings
            return f"<{type(self).__name__}>"
        return f"<{_marker(self.spec.kind)} {self.name} version {self.version}>"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by reference where a fresh process finds this very object again, else by value."""
        location = locate(self, self.spec.function)
        if location is not None:
            return find, location
        location = locate(self.spec.function, self.spec.function, _function_of)
        if location is not None:
            return _rebuild_found, (*location, self.spec.kind, self.spec.options)
        version = self.spec.fingerprint.source
        return Reward, (self.spec.function, self.spec.kind, self.spec.options, dict(self.spec.hints), version)


def _rebuild_found(module: str, qualname: str, kind: Kind, options: RewardOptions) -> Reward[..., Any]:
    return Reward(_function_of(find(module, qualname)), kind, options)


def _function_of(value: Any) -> Any:
    """Return the function of the reward that stands in its place in a module."""
    return value.spec.function if isinstance(value, Reward) else value


def _marker(kind: Kind) -> str:
    return "group_reward" if kind is Kind.GROUP else "reward"


def make_options(
    name: str, changes: Mapping[str, Any], settings: Iterable[str] = (), *, declares: bool = True
) -> RewardOptions:
    """Return a reward's options; raise :class:`RewardDefinitionError` where there is no such option.

    ``name`` stands where the changes give none; ``settings`` are what else its author may set, which the error names
    too. Where the reward is declared by them it warns of a failure that pays.
    """
    try:
        values = {option: value for option, value in changes.items() if option != "name" or value is not None}
        options = RewardOptions(**{"name": name, **values})
    except TypeError:
        names = sorted({*RewardOptions.__dataclass_fields__, *settings})
        unknown = min(set(changes) - set(names))
        suggestions = difflib.get_close_matches(unknown, names, n=1)
        hint = f"did you mean {suggestions[0]!r}? The" if suggestions else "the"
        if unknown in ("weight", "weights"):
            hint = f"a weight is written where rewards are added: 0.8 * {name} + 0.2 * other. The"
        raise RewardDefinitionError(
            f"reward {name!r}: unknown option {unknown!r}; {hint} options are {', '.join(names)}"
        ) from None
    if declares:
        options.warn()
    return options


def check_can_be_reward(function: object, marker: str, name: str | None) -> None:
    """Raise :class:`RewardDefinitionError` where something is not a function, or one that can be no reward."""
    if not callable(function):
        raise RewardDefinitionError(f"@{marker} marks functions, not {function!r}")
    why = why_no_reward(function, "a list of scores" if marker == "group_reward" else "a score")
    if why is not None:
        raise RewardDefinitionError(f"@{marker} {name or name_of(function)!r}: {why}")


def name_of(function: Callable[..., Any]) -> str:
    """Return a callable's own name, or that of its class."""
    inner = without_partials(function)
    return getattr(inner, "__name__", None) or type(inner).__name__


@overload
def reward(function: Callable[P, R], /) -> Reward[P, R]: ...
@overload
def reward(**options: Unpack[NamedOptions]) -> Callable[[Callable[P, R]], Reward[P, R]]: ...
def reward(function: object = _NOT_GIVEN, /, **options: Any) -> Any:
    """Mark a function as a reward that scores one completion; with options or without.

    Its parameters are filled by name: ``prompt``, ``completion``, ``messages``, ``completion_ids``, ``example``,
    ``step`` and ``epoch``; every other name is a dataset column, coerced to its annotation. The function returns a
    finite number, a :class:`~rewardkit.types.Score`, or ``None`` where the row has nothing to score by. The options are
    those of :class:`~rewardkit.declare.options.RewardOptions`.

    >>> @reward(score_range=(0, 1))
    ... def exact(completion: str, answer: int) -> float:
    ...     return float(completion.strip() == str(answer))
    >>> exact(completion=" 4", answer="4")
    1.0

    Raises:
        RewardDefinitionError: The signature or an option makes no sense.
    """
    return _mark(Kind.SINGLE, function, options)


@overload
def group_reward(function: Callable[P, R], /) -> Reward[P, R]: ...
@overload
def group_reward(**options: Unpack[NamedOptions]) -> Callable[[Callable[P, R]], Reward[P, R]]: ...
def group_reward(function: object = _NOT_GIVEN, /, **options: Any) -> Any:
    """Mark a function as a reward that scores all completions of one prompt together.

    It takes ``completions``, a list, and returns a list of as many scores. ``prompt``, ``step``, ``epoch``, ``example``
    and the columns are those of the group, whose rollouts share prompt and row. An exception in a score's place says
    that this one completion could not be scored; raising one fails the whole group.

    >>> @group_reward
    ... def shortest(completions: list[str]) -> list[float]:
    ...     return [float(len(c) == min(map(len, completions))) for c in completions]
    >>> shortest(completions=["a", "bcd"])
    [1.0, 0.0]

    Raises:
        RewardDefinitionError: The signature or an option makes no sense.
    """
    return _mark(Kind.GROUP, function, options)


def _mark(kind: Kind, function: Any, options: dict[str, Any]) -> Any:
    """Return the reward of a function, or where no function is passed what marks one."""

    def mark(marked: Callable[P, R]) -> Reward[P, R]:
        if isinstance(marked, Reward):
            raise RewardDefinitionError(f"reward {marked.name!r} is marked already; use .with_options(...)")
        inner = without_partials(marked)
        if isinstance(inner, Reward):
            raise RewardDefinitionError(
                f"reward {inner.name!r} is marked already; set arguments of its function instead: "
                f"functools.partial({inner.name}.function, ...)"
            )
        check_can_be_reward(marked, _marker(kind), options.get("name"))
        return Reward(marked, kind, make_options(name_of(marked), options))

    return mark if function is _NOT_GIVEN else mark(function)
