"""A dataset's columns are strings, a reward's parameters have annotations: coercion turns the one into the other.

This module reads an annotation, once, and puts together what :mod:`rewardkit.coercion` has for its parts.
What it does not do: find the annotations of a signature and resolve those that are strings (the reward's work), or
decide what a failure means (the runtime's).

The rules, for text first:

- ``str`` gets the text itself. A real int or float becomes text too, since a dataset with typed columns has whole
  numbers where a reward compares strings; any other value is an error.
- ``int`` takes ``"4"``, ``" +4 "``, ``"4.0"`` and ``"1e3"``, not ``"4.5"``, ``"1,000"``, ``"1_000"`` or a bool;
  ``float``, ``Decimal`` and ``complex`` take finite numbers only; ``Fraction`` takes ``"1/3"`` too.
- ``bool`` takes true, 1, yes, on, y, t and false, 0, no, off, n, f in any case; no other text, the empty one included.
- ``None`` in a union takes the empty text, ``None``, ``none``, ``null``, ``Null`` and ``NULL``, even in ``str | None``.
- ``Literal`` and ``Enum`` take a choice's text: ``"1"`` is 1 in ``Literal["a", 1]``. An Enum goes by value, then name.
- Containers, dataclasses, NamedTuples, TypedDicts and pydantic models are read from JSON, else from a Python literal,
  and their elements by these same rules (in a pydantic model, by pydantic's). Text without brackets is an error.
- Dates, times and UUIDs are read from ISO text, ``Path`` and ``bytes`` from any. Numpy arrays are read from lists.
- In another union the narrower member comes first and ``str`` last: see :mod:`rewardkit.coercion.unions`.
- In ``Annotated`` pydantic's constraints hold for the coerced value; its Before, Plain and Wrap validators see the
  raw one.

Real values that fit go through with their content unchanged.
"""

from __future__ import annotations

import collections.abc
import inspect
import types
import typing
from collections.abc import Callable, Sequence
from dataclasses import is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path, PurePath
from typing import Any, NoReturn
from uuid import UUID

from rewardkit.coercion import foreign, records
from rewardkit.coercion.containers import dict_convert, items_convert, tuple_convert
from rewardkit.coercion.rule import ColumnValueError, Convert, Rule, TextOrder
from rewardkit.coercion.scalars import (
    enum_convert,
    literal_convert,
    to_bool,
    to_bytes,
    to_complex,
    to_decimal,
    to_float,
    to_fraction,
    to_int,
    to_none,
    to_path,
    to_str,
)
from rewardkit.coercion.unions import optional_convert, union_convert
from rewardkit.errors import RewardDefinitionError
from rewardkit.types import Step

_ANYTHING = Rule("Any", lambda value: value, TextOrder.OTHER, passthrough=True)
_NONE = Rule("None", to_none, TextOrder.CHOICE)

_SCALARS: dict[object, Rule] = {
    str: Rule("str", to_str, TextOrder.STR),
    int: Rule("int", to_int, TextOrder.INT),
    float: Rule("float", to_float, TextOrder.FLOAT),
    bool: Rule("bool", to_bool, TextOrder.BOOL),
    Decimal: Rule("Decimal", to_decimal, TextOrder.NUMBER),
    Fraction: Rule("Fraction", to_fraction, TextOrder.NUMBER),
    complex: Rule("complex", to_complex, TextOrder.NUMBER),
    bytes: Rule("bytes", to_bytes, TextOrder.ANY_TEXT),
    Path: Rule("Path", to_path, TextOrder.ANY_TEXT),
    PurePath: Rule("PurePath", to_path, TextOrder.ANY_TEXT),
    type(None): _NONE,
}
_SIMPLE = (date, datetime, time, timedelta, UUID)

_LISTS = (
    list,
    collections.abc.Sequence,
    collections.abc.MutableSequence,
    collections.abc.Collection,
    collections.abc.Iterable,
    collections.abc.Reversible,
)
_SETS = (set, collections.abc.Set, collections.abc.MutableSet)
_DICTS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
_NEVER_IN_A_COLUMN = (
    type,
    collections.abc.Callable,
    collections.abc.Iterator,
    collections.abc.Generator,
    collections.abc.Awaitable,
    collections.abc.Coroutine,
)


class Coercer:
    """Turns a column's value into what one annotation asks for. Built once, called for each row.

    Attributes:
        annotation: The annotation it was built from.
        expected: Readable name of the annotation: ``list[str]``, ``int | None``, ``Literal['a', 'b']``.
        passthrough: True if every value is handed on as it is: ``Any``, ``object``, no annotation.
    """

    __slots__ = ("_convert", "annotation", "expected", "passthrough")

    def __init__(self, annotation: Any, rule: Rule) -> None:
        self.annotation = annotation
        self.expected = rule.expected
        self.passthrough = rule.passthrough
        self._convert = rule.convert

    def __call__(self, value: object) -> object:
        """The value as the annotation asks for it.

        Raises:
            ColumnValueError: The value is not what the annotation says.
        """
        try:
            return self._convert(value)
        except RecursionError:
            raise ColumnValueError.of(self.expected, value, "nested too deep") from None

    def __repr__(self) -> str:
        return f"Coercer({self.expected})"


def build_coercer(annotation: Any) -> Coercer:
    """The coercer of an annotation. Slow beside the calls of what it gives: build it at decoration.

    Args:
        annotation: A type, as ``typing.get_type_hints(..., include_extras=True)`` gives it, or
            ``inspect.Parameter.empty``.

    Raises:
        RewardDefinitionError: No column's text can become such a value. The message names the annotation.

    Example:
        >>> build_coercer(list[int])("[1, '2']")
        [1, 2]
    """
    try:
        return Coercer(annotation, _Builder().build(annotation))
    except RecursionError:
        _refuse(annotation, "it refers to itself without end")


def _refuse(annotation: object, why: str) -> NoReturn:
    raise RewardDefinitionError(f"annotation {_name(annotation)}: {why}")


def _name(annotation: object) -> str:
    """Readable name of an annotation that has no rule of its own."""
    if isinstance(annotation, type) and not isinstance(annotation, types.GenericAlias):
        return annotation.__name__
    return repr(annotation).replace("typing.", "").replace("collections.abc.", "")


def _alias_value(alias: Any, args: tuple[Any, ...]) -> Any:
    """What ``alias[args]`` stands for, the parameters put in by name."""
    given = dict(zip(alias.__type_params__, args, strict=False))
    parameters = getattr(alias.__value__, "__parameters__", ())
    if not (given and parameters):
        return alias.__value__
    return alias.__value__[tuple(given.get(parameter, parameter) for parameter in parameters)]


class _Later:
    """Stands for a rule that is still being built, where an annotation refers to itself."""

    target: Convert

    def __call__(self, value: object) -> object:
        return self.target(value)


class _Builder:
    """Builds the rule of one annotation, part by part.

    Attributes:
        _begun: The classes and aliases met so far, by which one that refers to itself finds itself.
    """

    def __init__(self) -> None:
        self._begun: dict[object, Rule] = {}

    def build(self, annotation: Any) -> Rule:
        """The rule of an annotation. Raises RewardDefinitionError."""
        if annotation is Any or annotation is object or annotation is inspect.Parameter.empty:
            return _ANYTHING
        if annotation is None:
            return _NONE
        if annotation is typing.LiteralString:
            return _SCALARS[str]
        if isinstance(annotation, str | typing.ForwardRef | typing.TypeVar):
            _refuse(annotation, "not resolved to a type")
        if isinstance(annotation, typing.NewType):
            return self.build(annotation.__supertype__)
        origin = typing.get_origin(annotation)
        if origin is None and hasattr(annotation, "__value__"):
            return self._once(annotation, lambda: self.build(annotation.__value__))
        if origin is None:
            return self._class(annotation)
        return self._generic(annotation, origin, typing.get_args(annotation))

    def _once(self, annotation: object, build: Callable[[], Rule]) -> Rule:
        """The rule of something that may refer to itself."""
        if annotation in self._begun:
            return self._begun[annotation]
        later = _Later()
        self._begun[annotation] = Rule(_name(annotation), later, TextOrder.STRUCTURED)
        rule = self._begun[annotation] = build()
        later.target = rule.convert
        return rule

    def _class(self, annotation: Any) -> Rule:
        if not isinstance(annotation, type) or annotation in _NEVER_IN_A_COLUMN:
            _refuse(annotation, "no column's value can become one")
        if annotation is Step:
            _refuse(annotation, "only @step_reward hands steps to its function; mark it so")
        if annotation in _SCALARS:
            return _SCALARS[annotation]
        if annotation in _SIMPLE:
            return Rule(_name(annotation), foreign.simple_convert(annotation, _name(annotation)), TextOrder.OTHER)
        if issubclass(annotation, Enum):
            if not annotation.__members__:
                _refuse(annotation, "an Enum without members")
            return Rule(_name(annotation), enum_convert(annotation), TextOrder.CHOICE)
        if foreign.is_array(annotation):
            return self._array(())
        if hasattr(annotation, "__pydantic_validator__"):
            return self._pydantic(annotation)
        if is_dataclass(annotation) or records.is_named_tuple(annotation) or records.is_typed_dict(annotation):
            return self._once(annotation, lambda: self._record(annotation))
        return self._container(annotation, None) or self._pydantic(annotation)

    def _generic(self, annotation: Any, origin: Any, args: tuple[Any, ...]) -> Rule:
        if origin is typing.Union or origin is types.UnionType:
            return self._union(args)
        if origin is typing.Literal:
            name = f"Literal[{', '.join(map(repr, args))}]"
            return Rule(name, literal_convert(args, name), TextOrder.CHOICE)
        if origin is typing.Annotated:
            return self._annotated(annotation)
        if foreign.is_array(origin):
            return self._array(args)
        if hasattr(origin, "__value__"):
            return self._once(annotation, lambda: self.build(_alias_value(origin, args)))
        if origin in _NEVER_IN_A_COLUMN:
            _refuse(annotation, "no column's value can become one")
        # typing.List, typing.Tuple: an origin and nothing inside, as list; tuple[()] is the empty tuple.
        bare = not args and not isinstance(annotation, types.GenericAlias)
        return self._container(origin, None if bare else args) or self._pydantic(annotation)

    def _container(self, origin: Any, args: tuple[Any, ...] | None) -> Rule | None:
        """The rule of a list, tuple, set or dict; None if it is none. ``args`` is None if it is not subscripted."""
        name, order = _name(origin), TextOrder.STRUCTURED
        if origin is tuple and args is not None and args[1:] != (...,):
            elements = [self.build(arg) for arg in args]
            expected = f"tuple[{', '.join(rule.expected for rule in elements) or '()'}]"
            return Rule(expected, tuple_convert(elements, expected), order)
        if origin in _DICTS:
            key, element = (self.build(arg) for arg in args or (Any, Any))
            expected = name if args is None else f"{name}[{key.expected}, {element.expected}]"
            return Rule(expected, dict_convert(key, element, expected), order)
        make = list if origin in _LISTS else set if origin in _SETS else origin
        if make not in (list, set, frozenset, tuple):
            return None
        element = self.build(args[0]) if args else _ANYTHING
        rest = ", ..." if make is tuple else ""
        expected = name if args is None else f"{name}[{element.expected}{rest}]"
        return Rule(expected, items_convert(make, element, expected, unordered=make in (set, frozenset)), order)

    def _record(self, annotation: type) -> Rule:
        expected = _name(annotation)
        try:
            fields = records.record_fields(annotation, self.build)
        except (NameError, TypeError) as error:
            raise RewardDefinitionError(f"annotation {expected}: {error}") from error
        if records.is_typed_dict(annotation):
            convert = records.typed_dict_convert(fields, expected)
        elif records.is_named_tuple(annotation):
            convert = records.named_tuple_convert(annotation, fields, expected)
        else:
            convert = records.dataclass_convert(annotation, fields, expected)
        return Rule(expected, convert, TextOrder.STRUCTURED)

    def _union(self, args: Sequence[Any]) -> Rule:
        members = [self.build(arg) for arg in args if arg is not type(None)]
        if any(member.passthrough for member in members):
            return _ANYTHING
        expected = " | ".join(member.expected for member in members)
        rule = members[0]
        if len(members) > 1:
            rule = Rule(expected, union_convert(members, expected), TextOrder.OTHER)
        if len(members) == len(args):
            return rule
        expected += " | None"
        return Rule(expected, optional_convert(rule, expected), TextOrder.OTHER)

    def _annotated(self, annotation: Any) -> Rule:
        bare = annotation.__origin__
        own = next((entry for entry in annotation.__metadata__ if isinstance(entry, Rule)), None)
        if own is not None:
            return own
        if foreign.reads_raw_value(annotation.__metadata__):
            return self._pydantic(annotation)
        rule = self.build(bare)
        try:
            convert = foreign.constrained_convert(annotation, rule.convert, rule.expected)
        except Exception as error:  # pydantic has many words for an annotation that it cannot read
            raise RewardDefinitionError(f"annotation {_name(annotation)}: {error}") from error
        return Rule(rule.expected, convert, rule.order)

    def _array(self, args: tuple[Any, ...]) -> Rule:
        expected = foreign.array_name(args)
        return Rule(expected, foreign.array_convert(args, expected), TextOrder.STRUCTURED)

    def _pydantic(self, annotation: Any) -> Rule:
        expected = _name(annotation.__origin__ if typing.get_origin(annotation) is typing.Annotated else annotation)
        try:
            convert = foreign.pydantic_convert(annotation, expected)
        except Exception as error:  # pydantic has many words for an annotation that it cannot read
            raise RewardDefinitionError(f"annotation {expected}: no column's text can become one") from error
        is_model = hasattr(annotation, "__pydantic_validator__")
        by_brackets = is_model and not getattr(annotation, "__pydantic_root_model__", False)
        return Rule(expected, convert, TextOrder.STRUCTURED if by_brackets else TextOrder.OTHER)
