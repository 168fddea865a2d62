"""Rewards given as text: a text gate checks them, and each call runs in a jail.

The signature is read from the syntax tree, so nothing of a text ever runs outside a jail, not even a default.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Optional, Union, Unpack

from rewardkit.declare.decorator import Reward, make_options
from rewardkit.declare.options import Options, RewardOptions
from rewardkit.declare.spec import Kind, sandbox_of_process
from rewardkit.errors import CoercionError, InfrastructureError, RewardDefinitionError, RewardTextError
from rewardkit.function import RewardFunction
from rewardkit.shown.text import shortened
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
_SPECIAL: dict[str, Any] = {"Literal": Literal, "Optional": Optional, "Union": Union}
_WITH_PARTS = {"Optional": 1, "list": 1, "List": 1, "set": 1, "Set": 1, "dict": 2, "Dict": 2}
_ALLOWED = "str, int, float, bool, list, dict, tuple, set, None, Any, Optional, Union, Literal and |"


def reward_from_source(text: str, name: str | None = None, **options: Unpack[Options]) -> Reward[..., Any]:
    """Return a reward whose function is text: Python of which only plain computation is allowed, run in a jail.

    It behaves as any other reward. The parameters are those of the text's function, and columns are coerced to its
    annotations. What it prints is in the outcome's logs, and ``Score`` is there without an import.

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
        options: As for :func:`~rewardkit.reward`. ``concurrency`` is also the number of jails, up to the cores.

    Raises:
        RewardDefinitionError: The text gate refuses it (the message has line and column, the cause is a
            :class:`~sandbox.errors.RestrictedSourceError`), there is no such function, or its signature or an
            option makes no sense.
    """
    if not isinstance(text, str):
        raise RewardDefinitionError(f"a reward's source is text, not {text!r}")
    function = _JailedFunction(text, name)
    return TextReward(function, make_options(name or function.__name__, dict(options)))


class TextReward(Reward[..., Any]):
    """A reward given as text. It pickles as the text, which is checked again on arrival."""

    def __init__(self, function: _JailedFunction, options: RewardOptions) -> None:
        self._jailed = function.within(options)
        super().__init__(self._jailed, Kind.SINGLE, options)

    def _having(self, options: RewardOptions) -> Reward[..., Any]:
        return TextReward(self._jailed, options)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self._jailed.source_text, self._jailed.__name__, self.options)


def _rebuild(text: str, function: str, options: RewardOptions) -> TextReward:
    return TextReward(_JailedFunction(text, function), options)


class _JailedFunction(RewardFunction):
    """Calls a function of a text in this process's jail."""

    __signature__: inspect.Signature

    def __init__(self, text: str, name: str | None) -> None:
        from sandbox import check_source  # it brings RestrictedPython along

        try:
            checked = check_source(text)
        except RestrictedSourceError as refused:
            raise RewardDefinitionError(f"reward given as text{_named(name)}: {refused}") from refused
        tree = _chosen(checked, name)
        self._text = text
        self.__name__ = tree.name
        self.__doc__ = ast.get_docstring(tree)
        self.__signature__, self._hints = _Reader(checked, tree).signature()
        self._checked = checked
        self._timeout_s = RewardOptions(tree.name).timeout_s
        self._width = 1

    @property
    def hints(self) -> Mapping[str, Any]:
        return self._hints

    @property
    def source_text(self) -> str:
        return self._text

    def within(self, options: RewardOptions) -> _JailedFunction:
        """Return the same function with the time and the jails that a reward's options give it."""
        function = object.__new__(_JailedFunction)
        function.__dict__.update(self.__dict__)
        function._timeout_s = options.timeout_s
        function._width = options.concurrency or 1
        return function

    def __call__(self, **arguments: object) -> Any:
        from sandbox import Limits, module_code

        time_s = self._timeout_s - min(KEPT_BACK_SHARE * self._timeout_s, KEPT_BACK_S)
        sandbox = sandbox_of_process(self._width)
        added, limits = module_code("rewardkit.jailed.inside"), Limits(timeout_s=time_s)
        try:
            result = sandbox.call(*self._checked.call(self.__name__, added, arguments), limits=limits)
        except NotPlainError:
            result = sandbox.call(*self._checked.call(self.__name__, added, self._fit(arguments)), limits=limits)
        return self._read(result)

    def _fit(self, arguments: Mapping[str, object]) -> dict[str, object]:
        """Return arguments without those of ``**kwargs`` that cannot enter a jail; raise where a parameter's cannot."""
        odd = _odd(arguments)
        takes_rest = any(item.kind is item.VAR_KEYWORD for item in self.__signature__.parameters.values())
        for name, reason in odd.items():
            if name in self.__signature__.parameters or not takes_rest:
                raise CoercionError(f"argument {name!r}: {reason}, and cannot enter a jail")
        if not odd:
            raise InfrastructureError("arguments that are plain one by one and not together")
        return {name: value for name, value in arguments.items() if name not in odd}

    def _read(self, result: ExecutionResult) -> Any:
        """Return what the function returned, and print what it printed; raise RewardTextError where it failed."""
        value = result.value[0] if result.value else None
        answer = value.value if value is not None and value.ok and isinstance(value.value, dict) else {}
        dropped = answer.get("dropped")
        sys.stdout.write(result.stdout)
        if isinstance(dropped, int) and 0 < dropped < 1 << 63:
            sys.stdout.write(f"\n[... {dropped:,} more characters dropped]")
        match answer:
            case {"value": returned}:
                return returned
            case {"score": [returned, reason, dict(metrics)]}:
                return Score(returned, reason, metrics)
            case {"odd": str(text)}:
                raise RewardTextError(
                    f"returned {text[:_MAX_WORDS]}; expected a finite number, a Score or None", Cause.BAD_RETURN
                )
            case {"raised": {"type": kind, "message": message, "frames": frames}}:
                raise self._own_error(kind, message, frames)
        cause, text = jail_failure(result)
        raise RewardTextError(f"no answer within {self._timeout_s:g} s" if cause is Cause.TIMEOUT else text, cause)

    def _own_error(self, kind: object, message: object, frames: object) -> RewardTextError:
        """Return the error for what the function raised; what the jail says of it may be anything."""
        lines = self._checked.lines
        kind, message = (part[:_MAX_WORDS] if isinstance(part, str) else "" for part in (kind, message))
        text = f"{kind}: {message}" if message else kind
        trace, last_line = "", 0
        for frame in frames[-_MAX_FRAMES:] if isinstance(frames, list) else ():
            match frame:
                case [int(line), str(function)]:
                    code = f"    {lines[line - 1].strip()[:_MAX_WORDS]}\n" if 0 < line <= len(lines) else ""
                    trace += f'  File "<text of {self.__name__}>", line {line}, in {function[:_MAX_WORDS]}\n{code}'
                    last_line = line
        return RewardTextError(f"{text} (line {last_line})" if last_line else text, Cause.EXCEPTION, trace or None)


def jail_failure(result: ExecutionResult) -> tuple[Cause, str]:
    """Return why a jail gave no answer, and the words for it; the sandbox's own failure has been raised before."""
    cause = {"timeout": Cause.TIMEOUT, "memory": Cause.CRASHED, "killed": Cause.CRASHED}.get(str(result.status))
    error = result.error or next((value.error for value in result.value or ()), None)
    return cause or Cause.EXCEPTION, error or "the jail ended without an answer"


def _named(name: str | None) -> str:
    return "" if name is None else f" {name!r}"


def _odd(arguments: Mapping[str, object]) -> dict[str, NotPlainError]:
    """Return the arguments that cannot enter a jail by name, each with the reason."""
    from sandbox import plain

    odd = {}
    for name, value in arguments.items():
        try:
            plain.encode(value)
        except NotPlainError as reason:
            odd[name] = reason
    return odd


def _chosen(checked: CheckedSource, name: str | None) -> ast.FunctionDef:
    """Return the function that is the reward: the one of that name, or the only public one."""
    if name is not None and name in checked.functions:
        return checked.functions[name]
    public = [function for function in checked.functions if not function.startswith("_")]
    if len(public) == 1:
        return checked.functions[public[0]]
    if not public:
        raise RewardDefinitionError(f"reward given as text{_named(name)}: there is no public function in it")
    raise RewardDefinitionError(
        f"reward given as text{_named(name)}: it has the functions {', '.join(public)}; name one of them"
    )


class _Reader:
    """Reads a function's signature without running any of it, and gathers what a reward's may not have."""

    def __init__(self, checked: CheckedSource, tree: ast.FunctionDef) -> None:
        self._checked = checked
        self._tree = tree
        self._refusals: list[tuple[tuple[int, int], str]] = []

    def signature(self) -> tuple[inspect.Signature, dict[str, Any]]:
        """Return the signature and the annotations by parameter; raise RewardDefinitionError with all refusals."""
        self._refuse_generator()
        arguments, kinds = self._tree.args, inspect.Parameter
        placed = [*arguments.posonlyargs, *arguments.args]
        defaults = dict(zip(placed[::-1], arguments.defaults[::-1], strict=False))
        keyword_only = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        defaults |= {argument: default for argument, default in keyword_only if default}
        entries = (
            (arguments.posonlyargs, kinds.POSITIONAL_ONLY),
            (arguments.args, kinds.POSITIONAL_OR_KEYWORD),
            ([arguments.vararg], kinds.VAR_POSITIONAL),
            (arguments.kwonlyargs, kinds.KEYWORD_ONLY),
            ([arguments.kwarg], kinds.VAR_KEYWORD),
        )
        hints, parameters = {}, []
        present = [(argument, kind) for part, kind in entries for argument in part if argument is not None]
        for argument, kind in present:
            name = argument.arg
            if name in ("completions", "prompts"):
                self._refuse(argument, f"parameter {name!r}: a reward given as text scores one completion, not a group")
            if argument.annotation is not None:
                hints[name] = self._annotation(argument.annotation)
            default = self._default(name, defaults[argument]) if argument in defaults else kinds.empty
            parameters.append(kinds(name, kind, default=default, annotation=hints.get(name, kinds.empty)))
        if self._refusals:
            lines = [f"line {line}, column {column}: {reason}" for (line, column), reason in sorted(self._refusals)]
            raise RewardDefinitionError(f"reward given as text {self._tree.name!r}: " + "\n".join(lines))
        return inspect.Signature(parameters), hints

    def _refuse_generator(self) -> None:
        """Refuse a function with ``yield`` of its own, not that of a function inside it."""
        waiting: list[ast.AST] = list(self._tree.body)
        while waiting:
            node = waiting.pop()
            if isinstance(node, ast.Yield | ast.YieldFrom):
                reason = "'yield' makes it a generator function, and a generator is not a score; use 'return'"
                self._refuse(node, reason)
            scopes = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef
            body = node.body if isinstance(node, scopes) else ()
            inner = body if isinstance(body, Sequence) else (body,)  # its defaults and decorators run outside of it
            waiting.extend(child for child in ast.iter_child_nodes(node) if child not in inner)

    def _refuse(self, node: ast.expr | ast.arg, reason: str) -> None:
        self._refusals.append((self._checked.position(node), reason))

    def _default(self, parameter: str, default: ast.expr) -> Any:
        """Return a default's value; ``None`` after refusing one that is not a literal."""
        try:
            return ast.literal_eval(default)
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            self._refuse(default, f"the default of parameter {parameter!r} is not a literal: {_written(default)}")

    def _annotation(self, node: ast.expr) -> Any:
        """Return the type that an annotation names; ``None`` after refusing one that is not allowed."""
        try:
            return _type(node)
        except (_NotAllowed, TypeError, RecursionError):
            self._refuse(node, f"annotation {_written(node)}: expected {_ALLOWED}")


def _written(node: ast.expr) -> str:
    try:
        return shortened(ast.unparse(node), 80)
    except RecursionError:
        return "nested too deep"


class _NotAllowed(Exception):
    """An annotation is one that a text may not have."""


def _type(node: ast.expr) -> Any:
    """Return the type that a syntax tree names; raise _NotAllowed, or what ``typing`` raises, for any other."""
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
        case ast.Subscript(value=of, slice=inside):
            return _generic(_word(of), inside.elts if isinstance(inside, ast.Tuple) else [inside])
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
    """Return a type with what stands in its brackets: ``list[int]``, ``Literal["a", 1]``."""
    match name, parts:
        case "Literal", _:
            arguments: list[Any] = [_choice(part) for part in parts]
        case (("tuple" | "Tuple"), [first, ast.Constant(value=value)]) if value is ...:
            arguments = [_type(first), ...]
        case _:
            arguments = [_type(part) for part in parts]
    if name in ("Literal", "Union", "tuple", "Tuple") or len(arguments) == _WITH_PARTS.get(name):
        return {**_SIMPLE, **_SPECIAL}[name][arguments[0] if len(arguments) == 1 else tuple(arguments)]
    raise _NotAllowed


def _choice(node: ast.expr) -> Any:
    """Return a value of a ``Literal``; _NotAllowed for what is neither text, a whole number, a bool nor ``None``."""
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError):
        raise _NotAllowed from None
    if not isinstance(value, str | int | bool | None):
        raise _NotAllowed
    return value
