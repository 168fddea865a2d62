"""Rewards given as text: gated, and run in a jail for each call.

Their signature is read from the syntax tree, so nothing of a text ever runs outside a jail, not even a default.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Optional, TypedDict, Union, Unpack

from rewardkit.decorator import Reward, make_options
from rewardkit.errors import CoercionError, InfrastructureError, RewardDefinitionError, RewardTextError
from rewardkit.options import OnInfrastructure, RewardOptions
from rewardkit.spec import Kind, sandbox_of_process
from rewardkit.types import Cause, Score
from sandbox import parse_expression
from sandbox.errors import NotPlainError, RestrictedSourceError

if TYPE_CHECKING:
    from sandbox import CheckedSource, ExecutionResult

_MAX_WORDS, _MAX_FRAMES = 2_000, 8  # as many as the jail sends; a text that holds it may send more
KEPT_BACK_SHARE, KEPT_BACK_S = 0.1, 0.25
"""Share of ``timeout_s``, and the most seconds of it, that the jail does not get: it is to end before the worker."""

_SIMPLE: dict[str, Any] = {
    "str": str, "int": int, "float": float, "bool": bool, "None": None, "Any": Any, "object": object,
    "list": list, "List": list, "dict": dict, "Dict": dict, "tuple": tuple, "Tuple": tuple, "set": set, "Set": set,
}  # fmt: skip
_WITH_PARTS = {"list": 1, "List": 1, "set": 1, "Set": 1, "dict": 2, "Dict": 2}
_ALLOWED = "str, int, float, bool, list, dict, tuple, set, None, Any, Optional, Union, Literal and |"


class Options(TypedDict, total=False):
    """The options of :class:`~rewardkit.options.RewardOptions`, without the name."""

    timeout_s: float
    retries: int
    default: float | None
    score_range: tuple[float, float] | None
    cache: bool
    on_infrastructure: str | OnInfrastructure
    concurrency: int | None


def reward_from_source(text: str, name: str | None = None, **options: Unpack[Options]) -> Reward[..., Any]:
    """Return a reward whose function is text: Python of which only plain computation is allowed, run in a jail.

    It behaves as any other reward. The parameters are those of the text's function, and columns are coerced
    to its annotations. What it prints is in the outcome's logs, and ``Score`` is there without an import.

    >>> correct = reward_from_source('''
    ... def correct(completion: str, answer: int) -> float:
    ...     return float(completion.strip() == str(answer))
    ... ''', timeout_s=2)
    >>> correct(completion=" 4", answer="4")
    1.0

    Args:
        text: The text, at most 100,000 characters.
        name: The reward's name, by default that of the text's only public function. Of several public
            functions it names the one that is the reward.
        options: As for :func:`~rewardkit.reward`. ``concurrency`` gives the reward as many jails, up to the cores.

    Raises:
        RewardDefinitionError: The gate refuses the text (the message has line and column, the cause is a
            :class:`~sandbox.errors.RestrictedSourceError`), there is no such function, or its signature or an
            option makes no sense.
    """
    if not isinstance(text, str):
        raise RewardDefinitionError(f"a reward's source is text, not {text!r}")
    function = _JailedFunction(text, name)
    return TextReward(function, make_options(name or function.__name__, dict(options)))


class TextReward(Reward[..., Any]):
    """A reward given as text. It pickles as the text, which is gated again on arrival."""

    def __init__(self, function: _JailedFunction, options: RewardOptions) -> None:
        function = function.within(options)
        super().__init__(function, Kind.SINGLE, options, function.hints)

    def _having(self, options: RewardOptions) -> Reward[..., Any]:
        return TextReward(_of(self), options)

    def __reduce__(self) -> tuple[Any, ...]:
        function = _of(self)
        return _rebuild, (function.source_text, function.__name__, self.options)


def _of(reward: TextReward) -> _JailedFunction:
    function = reward.function
    assert isinstance(function, _JailedFunction)
    return function


def _rebuild(text: str, function: str, options: RewardOptions) -> TextReward:
    return TextReward(_JailedFunction(text, function), options)


class _JailedFunction:
    """Calls a function of a text in this process's jail.

    Attributes:
        source_text: The text.
        hints: The function's annotations, resolved.
    """

    __signature__: inspect.Signature

    def __init__(self, text: str, name: str | None) -> None:
        from sandbox import check_source  # it brings RestrictedPython along

        try:
            checked = check_source(text)
        except RestrictedSourceError as refused:
            raise RewardDefinitionError(f"reward given as text{_named(name)}: {refused}") from refused
        tree = _chosen(checked, name)
        self.source_text = text
        self.__name__ = tree.name
        self.__doc__ = ast.get_docstring(tree)
        self.__signature__, self.hints = _signature(tree)
        self._checked = checked
        self._timeout_s = RewardOptions(tree.name).timeout_s
        self._width = 1

    def within(self, options: RewardOptions) -> _JailedFunction:
        """Return the same function with the time and the jails that a reward's options give it."""
        made = object.__new__(_JailedFunction)
        made.__dict__.update(self.__dict__)
        made._timeout_s = options.timeout_s
        made._width = options.concurrency or 1
        return made

    def __call__(self, **arguments: Any) -> Any:
        from sandbox import Limits, module_code

        time_s = self._timeout_s - min(KEPT_BACK_SHARE * self._timeout_s, KEPT_BACK_S)
        sandbox = sandbox_of_process(self._width)
        call = self._checked.call(self.__name__, module_code("rewardkit.inside"), arguments)
        try:
            result = sandbox.call(*call, limits=Limits(timeout_s=time_s))
        except NotPlainError:
            raise _unfit(arguments) from None
        return self._read(result)

    def _read(self, result: ExecutionResult) -> Any:
        """Return what the function returned, and prints what it printed.

        Raises:
            RewardTextError: It raised, returned what is no score, or was ended.
        """
        value = result.value[0] if result.value else None
        told = value.value if value is not None and value.ok and isinstance(value.value, dict) else {}
        dropped = told.get("dropped")
        sys.stdout.write(result.stdout)
        if isinstance(dropped, int) and 0 < dropped < 1 << 63:
            sys.stdout.write(f"\n[... {dropped:,} more characters dropped]")
        match told:
            case {"value": returned}:
                return returned
            case {"score": [returned, reason, dict(metrics)]}:
                return Score(returned, reason, metrics)
            case {"odd": str(words)}:
                raise RewardTextError(
                    f"returned {words[:_MAX_WORDS]}; expected a finite number, a Score or None", Cause.BAD_RETURN
                )
            case {"raised": {"type": kind, "message": message, "frames": frames}}:
                raise self._raised(kind, message, frames)
        cause = _CAUSES.get(str(result.status), Cause.EXCEPTION)
        words = result.error or (value.error if value is not None else "") or "the jail ended without an answer"
        raise RewardTextError(f"no answer within {self._timeout_s:g} s" if cause is Cause.TIMEOUT else words, cause)

    def _raised(self, kind: Any, message: Any, frames: Any) -> RewardTextError:
        lines = self.source_text.splitlines()
        kind, message = (one[:_MAX_WORDS] if isinstance(one, str) else "" for one in (kind, message))
        words = f"{kind}: {message}" if message else kind
        trace, last = "", 0
        for frame in frames[-_MAX_FRAMES:] if isinstance(frames, list) else ():
            match frame:
                case [int(line), str(function)]:
                    shown = f"    {lines[line - 1].strip()[:_MAX_WORDS]}\n" if 0 < line <= len(lines) else ""
                    trace += f'  File "<text of {self.__name__}>", line {line}, in {function[:_MAX_WORDS]}\n{shown}'
                    last = line
        return RewardTextError(f"{words} (line {last})" if last else words, Cause.EXCEPTION, trace or None)


_CAUSES = {"timeout": Cause.TIMEOUT, "memory": Cause.CRASHED, "killed": Cause.CRASHED}
"""Causes by how the jail ended. Others are ``exception``; the sandbox's own failure has been raised before."""


def _named(name: str | None) -> str:
    return "" if name is None else f" {name!r}"


def _unfit(arguments: Mapping[str, Any]) -> CoercionError | InfrastructureError:
    """Return the error for arguments of which one cannot enter a jail."""
    from sandbox import plain

    for name, value in arguments.items():
        try:
            plain.encode(value)
        except NotPlainError as odd:
            return CoercionError(f"argument {name!r}: {odd}, and cannot enter a jail")
    return InfrastructureError("arguments that are plain one by one and not together")


def _chosen(checked: CheckedSource, name: str | None) -> ast.FunctionDef:
    """Return the function that is the reward: the one of that name, or the only public one."""
    if name is not None and name in checked.functions:
        return checked.functions[name]
    public = [one for one in checked.functions if not one.startswith("_")]
    if len(public) == 1:
        return checked.functions[public[0]]
    if not public:
        raise RewardDefinitionError(f"reward given as text{_named(name)}: there is no public function in it")
    raise RewardDefinitionError(
        f"reward given as text{_named(name)}: it has the functions {', '.join(public)}; name one of them"
    )


def _signature(tree: ast.FunctionDef) -> tuple[inspect.Signature, dict[str, Any]]:
    """Return a function's signature and its annotations, without running any of it."""
    _refuse_generator(tree)
    arguments, hints, parameters = tree.args, {}, []
    kinds = inspect.Parameter
    defaults = [None] * (len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults))
    positional = zip([*arguments.posonlyargs, *arguments.args], [*defaults, *arguments.defaults], strict=True)
    entries: list[tuple[ast.arg, ast.expr | None, Any]] = [
        (one, default, kinds.POSITIONAL_ONLY if one in arguments.posonlyargs else kinds.POSITIONAL_OR_KEYWORD)
        for one, default in positional
    ]
    entries += [(one, None, kinds.VAR_POSITIONAL) for one in [arguments.vararg] if one is not None]
    entries += [
        (one, default, kinds.KEYWORD_ONLY)
        for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    ]
    entries += [(one, None, kinds.VAR_KEYWORD) for one in [arguments.kwarg] if one is not None]
    for one, default, kind in entries:
        if one.arg in ("completions", "prompts"):
            _refuse(tree, one, f"parameter {one.arg!r}: a reward given as text scores one completion, not a group")
        if one.annotation is not None:
            hints[one.arg] = _annotation(tree, one.annotation)
        given = kinds.empty if default is None else _default(tree, one, default)
        parameters.append(inspect.Parameter(one.arg, kind, default=given, annotation=hints.get(one.arg, kinds.empty)))
    return inspect.Signature(parameters), hints


def _refuse_generator(tree: ast.FunctionDef) -> None:
    """Refuse a function with ``yield`` of its own, not that of a function inside it."""
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom):
            _refuse(tree, node, "'yield' makes it a generator function, and a generator is not a score; use 'return'")
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            waiting.extend(ast.iter_child_nodes(node))


def _refuse(tree: ast.FunctionDef, node: ast.expr | ast.arg, words: str) -> NoReturn:
    place = f"line {node.lineno}, column {node.col_offset + 1}"
    raise RewardDefinitionError(f"reward given as text {tree.name!r}: {place}: {words}")


def _default(tree: ast.FunctionDef, parameter: ast.arg, default: ast.expr) -> Any:
    try:
        return ast.literal_eval(default)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        _refuse(tree, default, f"the default of parameter {parameter.arg!r} is no literal: {_written(default)}")


def _annotation(tree: ast.FunctionDef, node: ast.expr) -> Any:
    """Return the type that an annotation names."""
    try:
        return _type(node)
    except (_NotAllowed, TypeError, RecursionError):
        _refuse(tree, node, f"annotation {_written(node)}: expected {_ALLOWED}")


def _written(node: ast.expr) -> str:
    try:
        text = ast.unparse(node)
    except RecursionError:
        return "nested too deep"
    return text if len(text) <= 80 else text[:80] + "..."


class _NotAllowed(Exception):
    """An annotation is none of those that a text may have."""


def _type(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=None):
            return None
        case ast.Constant(value=str(text)):
            try:
                return _type(parse_expression(text))
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                raise _NotAllowed from None
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return Union[_type(left), _type(right)]  # noqa: UP007 - None | None is no type
        case ast.Subscript(value=of, slice=ast.Tuple(elts=parts)):
            return _generic(_word(of), parts)
        case ast.Subscript(value=of, slice=part):
            return _generic(_word(of), [part])
    word = _word(node)
    if word not in _SIMPLE:
        raise _NotAllowed
    return _SIMPLE[word]


def _word(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(value=ast.Name(id="typing"), attr=name):
            return name
    raise _NotAllowed


def _generic(name: str, parts: list[ast.expr]) -> Any:
    if name == "Literal":
        return _subscripted(Literal, tuple(map(_choice, parts)))
    if name == "Optional" and len(parts) == 1:
        return Optional[_type(parts[0])]  # noqa: UP045 - None | None is no type
    if name == "Union":
        return _subscripted(Union, tuple(map(_type, parts)))
    if name in ("tuple", "Tuple"):
        if len(parts) == 2 and _is_dots(parts[1]):
            return _subscripted(tuple, (_type(parts[0]), ...))
        return _subscripted(tuple, tuple(map(_type, parts)))
    if len(parts) != _WITH_PARTS.get(name):
        raise _NotAllowed
    return _subscripted(_SIMPLE[name], tuple(map(_type, parts)))


def _subscripted(of: Any, parts: tuple[Any, ...]) -> Any:
    return of[parts]


def _is_dots(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


def _choice(node: ast.expr) -> Any:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError):
        raise _NotAllowed from None
    if not isinstance(value, str | int | bool | None):
        raise _NotAllowed
    return value
