"""What a reward is: its function, its options, and the plan that fills its parameters by name.

The signature is read once, at decoration. At call time :meth:`RewardSpec.bind` walks the plan.
"""

from __future__ import annotations

import inspect
import json
import sys
import types
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, get_args, get_origin, get_type_hints

from rewardkit.blocks.nested import copied
from rewardkit.coercion.coerce import build_coercer
from rewardkit.coercion.plain_json import json_default
from rewardkit.coercion.rule import LISTS, Coercer, ColumnValueError
from rewardkit.declare.callables import is_async, set_by_partials, written
from rewardkit.declare.foreign_forms import why_foreign, why_paired
from rewardkit.declare.options import DEFAULT_ASYNC_CONCURRENCY, RewardDefinitionWarning, RewardOptions, author_depth
from rewardkit.errors import CoercionError, RewardDefinitionError
from rewardkit.forms import Form, TextParameter
from rewardkit.function import described
from rewardkit.jailed.workspace import Workspace
from rewardkit.messages import conversation
from rewardkit.own_columns import ENVIRONMENT_COLUMN, ENVIRONMENTS_COLUMN, LiveObject, OwnFault, OwnText, is_own
from rewardkit.types import Arrived, Rollout
from rewardkit.versions.fingerprint import Fingerprint, recorded
from sandbox.workers import stopped

if TYPE_CHECKING:
    from rewardkit.jailed.jail import RewardSandbox


class Kind(StrEnum):
    """What one call of a reward scores."""

    SINGLE = "single"
    """One rollout."""
    GROUP = "group"
    """All rollouts of one prompt together."""


class CallContext(NamedTuple):
    """Where in a training run a batch is scored.

    Attributes:
        step: Optimizer steps done; ``None`` outside training.
        epoch: Passes over the data done, fractional; ``None`` outside training.
    """

    step: int | None = None
    epoch: float | None = None


class ColumnMisfit(NamedTuple):
    """A column's value that is not what the annotation says."""

    row: int  # the number of the row, from 0
    column: str
    error: str  # what is wrong


RESERVED = frozenset({"prompt", "completion", "messages", "completion_ids", "example", "step", "epoch"})
"""Parameter names with a meaning of their own; every other name is a dataset column."""
GROUP_RESERVED = frozenset({"prompt", "completions", "messages", "completion_ids", "example", "step", "epoch"})
"""The same for group rewards."""

# Returns a parameter's value from a call's rollouts, its context and the rollouts' places, in lambdas r, c and p.
Filler = Callable[[Sequence[Rollout | Arrived], CallContext, Sequence[int]], Any]


@dataclass(frozen=True, slots=True)
class Parameter:
    """How one parameter of a reward is filled.

    Attributes:
        coercer: What turns a column's value into the annotated type; ``None`` for anything but a column.
        taken: In which form it takes a prompt, a completion or a group's completions; ``None`` for others.
    """

    name: str  # Its name, and for a column the column's name
    required: bool  # Whether it has no default of its own
    fill: Filler  # Returns the value from the call's rollouts, its context and the rollouts' places in the batch
    coercer: Coercer | None = None
    taken: TextParameter | None = None
    supplied: bool = False  # Whether it is filled even where the reward is called as a plain function

    @property
    def column(self) -> bool:
        """Whether it is a dataset column."""
        return self.coercer is not None


@dataclass(frozen=True, slots=True)
class RewardSpec:
    """A reward's function, options and parameter plan.

    Attributes:
        bound: Names of parameters that are set already, by a partial or as ``self``; no column fills them.
    """

    function: Callable[..., Any]  # What the author wrote
    kind: Kind  # Whether one call scores one rollout or a group
    options: RewardOptions  # What the author asked of the runtime
    parameters: tuple[Parameter, ...]  # The plan, in the order of the signature
    rest: Coercer | None  # What coerces `**columns`; `None` where the function has no such parameter
    fingerprint: Fingerprint  # The fingerprint of source, settings and options
    is_async: bool  # Whether the function is an `async def`
    hints: Mapping[str, Any]  # The parameters' annotations, resolved
    bound: frozenset[str] = frozenset()
    always: tuple[tuple[str, Filler], ...] = ()  # Names and fillers of the parameters that every call fills
    any_finite_score: bool = False  # Whether every finite number is a score of one rollout
    reads_text: bool = False  # Whether it takes completions as text, of messages the last that count
    required_columns: tuple[str, ...] = ()  # Dataset columns without which it cannot be called
    wanted_columns: frozenset[str] | None = None  # Dataset columns that it reads; `None` for all of them

    def __post_init__(self) -> None:
        """Derive what each call would otherwise compute again."""
        always = tuple((p.name, p.fill) for p in self.parameters if not p.column or p.required)
        object.__setattr__(self, "always", always)
        simple = self.kind is Kind.SINGLE and self.options.score_range is None
        object.__setattr__(self, "any_finite_score", simple)
        takes = [p.taken for p in self.parameters if p.taken is not None and p.name != "prompt"]
        object.__setattr__(self, "reads_text", any(taken.form is Form.TEXT for taken in takes))
        required = tuple(p.name for p in self.parameters if p.column and p.required)
        object.__setattr__(self, "required_columns", required)
        takes_all = self.rest is not None or any(p.name == "example" for p in self.parameters)
        object.__setattr__(self, "wanted_columns", None if takes_all else frozenset(self.named_columns))

    @property
    def name(self) -> str:
        """The reward's name."""
        return self.options.name

    @property
    def version(self) -> str:
        """The fingerprint, 12 hexadecimal digits; see :class:`~rewardkit.versions.fingerprint.Fingerprint`."""
        return self.fingerprint.digits

    @property
    def concurrency(self) -> int:
        """Calls in flight at once."""
        return _concurrency(self.options, self.is_async)

    @property
    def named_columns(self) -> tuple[str, ...]:
        """Dataset columns that parameters name."""
        return tuple(p.name for p in self.parameters if p.column)

    @property
    def bare_columns(self) -> tuple[str, ...]:
        """Those of them without an annotation of the author's, whose values are passed on as the data has them."""
        bare = described(self.function).unannotated
        return tuple(name for name in self.named_columns if name not in self.hints or name in bare)

    @property
    def wants_environments(self) -> bool:
        """Whether the reward takes a trainer's live environments, which no other process has."""
        return any(p.name == ENVIRONMENTS_COLUMN for p in self.parameters)

    @property
    def wants_completion_ids(self) -> bool:
        """Whether the reward reads token ids."""
        return any(p.name == "completion_ids" for p in self.parameters)

    @property
    def workspaces(self) -> Mapping[str, Coercer]:
        """The columns that hold paths of workspaces, with what makes a :class:`Workspace` of such a value."""
        return {p.name: p.coercer for p in self.parameters if p.coercer is not None and self._is_workspace(p.name)}

    def _is_workspace(self, name: str) -> bool:
        return _names_workspace(self.hints.get(name))

    @property
    def jailed(self) -> bool:
        """Whether its calls use a jail: it takes a Sandbox or a workspace, or is given as text."""
        supplied = any(p.supplied for p in self.parameters)
        return supplied or bool(self.workspaces) or described(self.function).source_text is not None

    def supplies(self, call: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments that a call as a plain function need not give, and has not given."""
        return {p.name: p.fill((), CallContext(), ()) for p in self.parameters if p.supplied and p.name not in call}

    def bind(
        self, rollouts: Sequence[Rollout | Arrived], context: CallContext, places: Sequence[int]
    ) -> dict[str, Any]:
        """Return the keyword arguments of one call.

        Raises CoercionError where a column's value is not what the annotation says. ``rollouts`` are the one rollout or
        the group's, ``places`` their places in the batch, for error messages.
        """
        arguments = {name: fill(rollouts, context, places) for name, fill in self.always}
        if len(arguments) < len(self.parameters):
            for parameter in self.parameters:
                if parameter.name not in arguments and parameter.name in rollouts[0].example:
                    arguments[parameter.name] = parameter.fill(rollouts, context, places)
        if self.rest is not None:
            example = rollouts[0].example
            reserved = GROUP_RESERVED if self.kind is Kind.GROUP else RESERVED
            names = {p.name for p in self.parameters} | reserved | self.bound
            for column, value in example.items():
                if column not in names and _is_passed_on(self.kind, column, value):
                    arguments[column] = coerce_column(self.rest, column, _fresh(value), places[0])
        return arguments


def coerce_column(coercer: Coercer, column: str, value: object, index: int | None) -> Any:
    """Return the column's value as the annotated type, or raise :class:`CoercionError` naming column and row."""
    try:
        return coercer(_without_fault(column, value, index))
    except ColumnValueError as wrong:
        raise CoercionError(wrong.describe(column, index)) from None


def _without_fault(column: str, value: object, index: int | None) -> object:
    """Return a column's value; raise CoercionError where it could not be had of the completion's environment."""
    if isinstance(value, OwnFault):
        raise CoercionError(f"column {column!r}{'' if index is None else f' of example {index}'}: {value}")
    return value


def build_spec(
    function: Callable[..., Any],
    kind: Kind,
    options: RewardOptions,
    hints: Mapping[str, Any] | None = None,
    version: str | None = None,
) -> RewardSpec:
    """Read a function's signature and make the plan that fills its parameters.

    A function that travelled to a worker by value has lost its source and the names in its annotations: for it the
    resolved ``hints`` and the ``version`` are passed.

    Raises:
        RewardDefinitionError: The signature cannot be filled by name, or an annotation makes no sense.
    """
    name = options.name
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError) as reason:
        raise RewardDefinitionError(f"reward {name!r}: its signature cannot be read: {reason}") from reason
    bound = set_by_partials(function)
    is_new = hints is None and described(function).hints is None
    hints = described(function).hints if hints is None else hints
    hints = hints_of(function, name) if hints is None else hints
    if is_new:
        _check_form(function, kind, name, {n: p for n, p in signature.parameters.items() if n not in bound}, hints)
    awaited = is_async(function)
    parameters: list[Parameter] = []
    rest: Coercer | None = None
    for parameter in signature.parameters.values():
        annotation = hints.get(parameter.name, Any)
        if parameter.name in bound:
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            rest = _coercer(annotation, name, parameter.name)
        elif parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
            raise RewardDefinitionError(
                f"reward {name!r}: parameter '{parameter}' takes its value by position; rewards are filled by name"
            )
        elif _is_sandbox(annotation):
            fill = _sandbox_filler(_concurrency(options, awaited))
            parameters.append(Parameter(parameter.name, True, fill, supplied=True))
        else:
            parameters.append(_parameter(kind, parameter, annotation, name))
    if options.cache and any(p.name == ENVIRONMENTS_COLUMN for p in parameters):
        raise RewardDefinitionError(
            f"reward {name!r}: cache=True keeps a score for later, and an environment is another one after each reset"
        )
    if options.cache and any(_names_workspace(hints.get(p.name)) for p in parameters):
        raise RewardDefinitionError(
            f"reward {name!r}: cache=True keeps a score for a path, and what lies in a workspace changes"
        )
    bound |= _own_names(function) - {parameter.name for parameter in parameters}
    deciding = replace(options, cache=False, concurrency=None)  # these two change what a score costs, not the score
    fingerprint = Fingerprint(function, deciding) if version is None else recorded(version)
    return RewardSpec(function, kind, options, tuple(parameters), rest, fingerprint, awaited, hints, bound)


def _check_form(
    function: Callable[..., Any],
    kind: Kind,
    name: str,
    parameters: Mapping[str, inspect.Parameter],
    hints: Mapping[str, Any],
) -> None:
    """Refuse a function in another trainer's form, or with the other kind's words; warn of one that may be such."""
    is_group = kind is Kind.GROUP
    called = f"{'group ' * is_group}reward {name!r}"
    if why := why_foreign(function, parameters, is_group):
        raise RewardDefinitionError(f"{called}: {why}")
    if is_group and (why := why_paired(function, hints)):
        warnings.warn(f"{called}: {why}", RewardDefinitionWarning, stacklevel=author_depth())


def _own_names(function: Callable[..., Any]) -> frozenset[str]:
    """Return the parameters' names of the function that the author wrote, with those that partials have set."""
    try:
        parameters = inspect.signature(written(function)).parameters.values()
    except (TypeError, ValueError):
        return frozenset()
    return frozenset(p.name for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL))


def _concurrency(options: RewardOptions, is_async: bool) -> int:
    if options.concurrency is not None:
        return options.concurrency
    return DEFAULT_ASYNC_CONCURRENCY if is_async else 1


def _is_sandbox(annotation: object) -> bool:
    """Whether an annotation is ``Sandbox`` or ``Sandbox | None``; that class is not loaded to find out."""
    client = sys.modules.get("sandbox.client")
    return client is not None and client.Sandbox in (annotation, *get_args(annotation))


def _sandbox_filler(width: int) -> Filler:
    return lambda r, c, p: sandbox_of_process(width)


def sandbox_of_process(width: int) -> RewardSandbox:
    """Start this process's sandbox and return it; the call's timeout does not count that time."""
    with stopped():
        from rewardkit.jailed.jail import shared_sandbox  # slow to import, and few rewards need it

        return shared_sandbox(width)


def _parameter(kind: Kind, parameter: inspect.Parameter, annotation: object, reward: str) -> Parameter:
    """Return how a parameter is filled; raise RewardDefinitionError where its annotation makes no sense."""
    name = parameter.name
    required = parameter.default is inspect.Parameter.empty
    if name in ("prompt", "completions" if kind is Kind.GROUP else "completion"):
        text_parameter = TextParameter.of(name, annotation, reward)
        return Parameter(name, required, _text_filler(text_parameter), taken=text_parameter)
    fillers = _fillers(kind, annotation)
    if name in fillers:
        return Parameter(name, required, fillers[name])
    if name == ENVIRONMENTS_COLUMN:
        return Parameter(name, required, _environments_filler(kind), build_coercer(Any))
    is_list = kind is Kind.GROUP and get_origin(annotation) in LISTS
    if is_list and (name == ENVIRONMENT_COLUMN or _names_workspace(annotation)):  # a value for each completion
        return _own_parameter(name, required, _coercer(get_args(annotation)[0], reward, name))
    if kind is Kind.GROUP and name == ENVIRONMENT_COLUMN:
        raise RewardDefinitionError(
            f"group reward {reward!r}: {name!r} is one a completion; annotate it: list[float | None]"
        )
    coercer = _coercer(annotation, reward, name)
    if kind is Kind.GROUP:
        return Parameter(name, required, lambda r, c, p: _of_prompt(coercer, name, r[0].example[name], p[0]), coercer)
    if coercer.passthrough:
        return Parameter(
            name, required, lambda r, c, p: _fresh(_without_fault(name, r[0].example[name], p[0])), coercer
        )
    return Parameter(name, required, lambda r, c, p: coerce_column(coercer, name, r[0].example[name], p[0]), coercer)


def _names_workspace(annotation: object) -> bool:
    """Whether an annotation is ``Workspace``, a list of them, or one of these that may be ``None``."""
    return annotation is Workspace or any(map(_names_workspace, get_args(annotation)))


def _of_prompt(coercer: Coercer, name: str, value: object, index: int) -> Any:
    """Return a group's column, which is its prompt's; raise CoercionError where it has a value for each completion."""
    if isinstance(value, OwnText):
        raise CoercionError(f"column {name!r} has a value for each completion; annotate it as such: list[Workspace]")
    return coerce_column(coercer, name, _fresh(value) if coercer.passthrough else value, index)


def _own_parameter(name: str, required: bool, coercer: Coercer) -> Parameter:
    """Return a group's parameter that is filled with a list, the value of each completion."""

    def fill(rollouts: Sequence[Rollout | Arrived], context: CallContext, places: Sequence[int]) -> list[Any]:
        pairs = zip(rollouts, places, strict=True)
        return [coerce_column(coercer, name, _fresh(rollout.example[name]), index) for rollout, index in pairs]

    return Parameter(name, required, fill, coercer)


def _text_filler(taken: TextParameter) -> Filler:
    """Return what fills in a prompt, a completion or a group's completions in the form that is taken."""
    if taken.name == "completions":
        return lambda r, c, p: [
            taken.form_value(rollout.completion, index) for rollout, index in zip(r, p, strict=True)
        ]
    text = taken.form is not Form.MESSAGES  # a string is handed on at once, which is the usual case
    if taken.name == "prompt":
        return lambda r, c, p: r[0].prompt if text and type(r[0].prompt) is str else taken.form_value(r[0].prompt, p[0])
    return lambda r, c, p: (
        r[0].completion if text and type(r[0].completion) is str else taken.form_value(r[0].completion, p[0])
    )


def _environments_filler(kind: Kind) -> Filler:
    """Return what fills in the live objects: here the tickets of a trainer's environments are redeemed."""

    def of(rollout: Rollout | Arrived) -> Any:
        value = rollout.example[ENVIRONMENTS_COLUMN]
        return value.value if isinstance(value, LiveObject) else value

    return _of_each(of) if kind is Kind.GROUP else _of_one(of)


_OF_ROLLOUT: dict[str, Callable[[Rollout | Arrived], Any]] = {
    "messages": lambda rollout: conversation(rollout.prompt, rollout.completion),
    "completion_ids": lambda rollout: None if rollout.completion_ids is None else list(rollout.completion_ids),
}


def _of_one(of: Callable[[Rollout | Arrived], Any]) -> Filler:
    return lambda r, c, p: of(r[0])


def _of_each(of: Callable[[Rollout | Arrived], Any]) -> Filler:
    return lambda r, c, p: [of(rollout) for rollout in r]


def _fillers(kind: Kind, annotation: object) -> dict[str, Filler]:
    """Return the fillers of the reserved names other than prompt and completion, for one rollout or a group."""
    values = get_args(annotation)
    in_mapping = get_origin(annotation) in (dict, Mapping) and len(values) == 2 and values[1] is Any
    is_raw = annotation is dict or in_mapping
    fill = _of_each if kind is Kind.GROUP else _of_one

    def example(rollout: Rollout | Arrived) -> dict[Any, Any]:
        row = _row(kind, rollout)
        if is_raw:
            return {column: _fresh(value) for column, value in row}
        return {str(column): column_text(value) for column, value in row}

    return {name: fill(of) for name, of in _OF_ROLLOUT.items()} | {
        "example": _of_one(example),
        "step": lambda r, c, p: c.step,
        "epoch": lambda r, c, p: c.epoch,
    }


def _row(kind: Kind, rollout: Rollout | Arrived) -> Iterator[tuple[Any, Any]]:
    """Yield the columns that a call gets with all others, as its ``example``."""
    return (item for item in rollout.example.items() if _is_passed_on(kind, *item))


def _is_passed_on(kind: Kind, column: object, value: object) -> bool:
    """Whether a call gets a column with all others: not live environments, nor what a group's rows do not share."""
    return column != ENVIRONMENTS_COLUMN and not (kind is Kind.GROUP and is_own(column, value))


def column_text(value: object) -> str:
    """Return a column's value as the text that a dataset of strings would hold."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, default=json_default)
    except (TypeError, ValueError):
        return str(value)


def _fresh(value: object) -> Any:
    """Return a value that a reward may change without anyone else seeing it."""
    return value if isinstance(value, str | int | float | bool | None) else copied(value)


def hints_of(function: Callable[..., Any], reward: str) -> dict[str, Any]:
    """Return the parameters' annotations, also those that ``from __future__ import annotations`` left as text.

    Raises RewardDefinitionError where one names what is not defined where the function is.
    """
    target = written(function)
    if not isinstance(target, types.FunctionType | types.MethodType):
        target = type(target).__call__
    try:
        closure = dict(inspect.getclosurevars(target).nonlocals) if isinstance(target, types.FunctionType) else {}
        hints = get_type_hints(target, include_extras=True, localns=closure)
        hints.pop("return", None)
        return hints
    except NameError as unknown:
        raise RewardDefinitionError(
            f"reward {reward!r}: annotation refers to {unknown.name!r}, which is not defined where the reward is; "
            "import it at run time, not under TYPE_CHECKING only"
        ) from unknown
    except TypeError as reason:
        raise RewardDefinitionError(f"reward {reward!r}: its annotations cannot be read: {reason}") from reason


def _coercer(annotation: object, reward: str, parameter: str) -> Coercer:
    try:
        return build_coercer(annotation)
    except RewardDefinitionError as reason:
        raise RewardDefinitionError(f"reward {reward!r}, parameter {parameter!r}: {reason}") from reason
