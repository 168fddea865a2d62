"""A dataset's columns are strings, a reward's parameters have annotations: coercion turns the one into the other.

This module reads an annotation, once, and puts together what :mod:`rewardkit.coercion` has for its parts.
docs/reference/api.md has the rules under "Coercion"; real values that fit go through with their content unchanged.
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

from rewardkit.coercion import containers, foreign
from rewardkit.coercion.plain_json import to_text
from rewardkit.coercion.rule import LISTS, Coercer, ColumnValueError, Convert, TextOrder, annotation_text
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
from rewardkit.errors import RewardDefinitionError, WorkspaceError
from rewardkit.jailed.workspace import Workspace
from rewardkit.types import Step

_ANYTHING = Coercer("Any", lambda value: value, TextOrder.OTHER, passthrough=True)
_NONE = Coercer("None", to_none, TextOrder.CHOICE)

_SCALARS: dict[object, Coercer] = {
    str: Coercer("str", to_str, TextOrder.STR),
    int: Coercer("int", to_int, TextOrder.INT),
    float: Coercer("float", to_float, TextOrder.FLOAT),
    bool: Coercer("bool", to_bool, TextOrder.BOOL),
    Decimal: Coercer("Decimal", to_decimal, TextOrder.NUMBER),
    Fraction: Coercer("Fraction", to_fraction, TextOrder.NUMBER),
    complex: Coercer("complex", to_complex, TextOrder.NUMBER),
    bytes: Coercer("bytes", to_bytes, TextOrder.ANY_TEXT),
    Path: Coercer("Path", to_path, TextOrder.ANY_TEXT),
    PurePath: Coercer("PurePath", to_path, TextOrder.ANY_TEXT),
    type(None): _NONE,
}
_WHOLE_TEXT = Coercer("str", to_text, TextOrder.STR)
_SIMPLE = (date, datetime, time, timedelta, UUID)

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


def build_coercer(annotation: object) -> Coercer:
    """Return the coercer of an annotation. Building takes longer than calling: build it at decoration.

    Args:
        annotation: A type, as ``typing.get_type_hints(..., include_extras=True)`` returns it, or
            ``inspect.Parameter.empty``.

    Raises:
        RewardDefinitionError: No column's text can become such a value. The message names the annotation.

    Example:
        >>> build_coercer(list[int])("[1, '2']")
        [1, 2]
    """
    try:
        return _Builder().parameter(annotation)
    except RecursionError:
        _refuse(annotation, "it refers to itself without end")


def _refuse(annotation: object, why: str) -> NoReturn:
    raise RewardDefinitionError(f"annotation {annotation_text(annotation)}: {why}")


def _to_workspace(value: object) -> Workspace:
    """Return the folder that a path names."""
    if isinstance(value, Workspace):
        return value
    try:
        return Workspace(to_str(value) if isinstance(value, str) else to_path(value))
    except WorkspaceError as wrong:
        raise ColumnValueError.of("Workspace", value, str(wrong)) from None


def _alias_value(alias: Any, args: tuple[Any, ...]) -> Any:
    """Return what ``alias[args]`` stands for, the parameters put in by name."""
    arguments = dict(zip(alias.__type_params__, args, strict=False))
    parameters = getattr(alias.__value__, "__parameters__", ())
    if not (arguments and parameters):
        return alias.__value__
    return alias.__value__[tuple(arguments.get(parameter, parameter) for parameter in parameters)]


class _Later:
    """Stands for a coercer that is still being built, where an annotation refers to itself."""

    target: Convert

    def __call__(self, value: object) -> object:
        return self.target(value)


class _Builder:
    """Builds the coercer of one annotation, part by part."""

    def __init__(self) -> None:
        self._begun: dict[object, Coercer] = {}  # classes and aliases met so far: one may refer to itself
        self._is_whole = False

    def parameter(self, annotation: object) -> Coercer:
        """Return the coercer of a whole column's value, where text may also be the JSON of an object or a list."""
        self._is_whole = True
        return self.build(annotation)

    def part(self, annotation: object) -> Coercer:
        """Return the coercer of an element or a field, which is a part of a column and not the whole."""
        was_whole, self._is_whole = self._is_whole, False
        try:
            return self.build(annotation)
        finally:
            self._is_whole = was_whole

    def build(self, annotation: object) -> Coercer:
        """Return the coercer of an annotation; raise RewardDefinitionError where no coercer fits."""
        if annotation is Any or annotation is object or annotation is inspect.Parameter.empty:
            return _ANYTHING
        if annotation is None:
            return _NONE
        if annotation is typing.LiteralString:
            return self.build(str)
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

    def _once(self, annotation: object, build: Callable[[], Coercer]) -> Coercer:
        """Return the coercer of something that may refer to itself."""
        key = annotation, self._is_whole
        if key in self._begun:
            return self._begun[key]
        later = _Later()
        self._begun[key] = Coercer(annotation_text(annotation), later, TextOrder.STRUCTURED)
        coercer = self._begun[key] = build()
        later.target = coercer.convert
        return coercer

    def _class(self, annotation: object) -> Coercer:
        """Return the coercer of a class; a class that nothing here knows is left to pydantic."""
        if not isinstance(annotation, type) or annotation in _NEVER_IN_A_COLUMN:
            _refuse(annotation, "no column's value can become one")
        if annotation is Step:
            _refuse(annotation, "only @step_reward hands steps to its function; mark it so")
        if annotation is Workspace:
            return Coercer("Workspace", _to_workspace, TextOrder.ANY_TEXT)
        if annotation is str and self._is_whole:
            return _WHOLE_TEXT
        if annotation in _SCALARS:
            return _SCALARS[annotation]
        if annotation in _SIMPLE:
            return Coercer(
                annotation_text(annotation),
                foreign.simple_convert(annotation, annotation_text(annotation)),
                TextOrder.OTHER,
            )
        if issubclass(annotation, Enum):
            if not annotation.__members__:
                _refuse(annotation, "an Enum without members")
            return Coercer(annotation_text(annotation), enum_convert(annotation), TextOrder.CHOICE)
        if foreign.is_array(annotation):
            return self._array(())
        if foreign.is_decoded(annotation):
            name = annotation_text(annotation)
            return Coercer(name, foreign.instance_convert(annotation, name), TextOrder.OTHER)
        if hasattr(annotation, "__pydantic_validator__"):
            return self._pydantic(annotation)
        if is_dataclass(annotation) or containers.is_named_tuple(annotation) or containers.is_typed_dict(annotation):
            return self._once(annotation, lambda: self._record(annotation))
        return self._container(annotation, None) or self._pydantic(annotation)

    def _generic(self, annotation: object, origin: object, args: tuple[Any, ...]) -> Coercer:
        """Return the coercer of an annotation with an origin: ``int | None``, ``Literal["a"]``, ``list[int]``."""
        if origin is typing.Union or origin is types.UnionType:
            return self._union(args)
        if origin is typing.Literal:
            name = f"Literal[{', '.join(map(repr, args))}]"
            return Coercer(name, literal_convert(args, name), TextOrder.CHOICE)
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

    def _container(self, origin: object, args: tuple[Any, ...] | None) -> Coercer | None:
        """Return the coercer of a list, tuple, set or dict, else None; ``args`` is None without brackets."""
        name, order = annotation_text(origin), TextOrder.STRUCTURED
        if origin is tuple and args is not None and args[1:] != (...,):
            elements = [self.part(arg) for arg in args]
            expected = f"tuple[{', '.join(coercer.expected for coercer in elements) or '()'}]"
            return Coercer(expected, containers.tuple_convert(elements, expected), order)
        if origin in _DICTS:
            key, element = (self.part(arg) for arg in args or (Any, Any))
            expected = name if args is None else f"{name}[{key.expected}, {element.expected}]"
            return Coercer(expected, containers.dict_convert(key, element, expected), order)
        make = list if origin in LISTS else set if origin in _SETS else origin
        if make not in (list, set, frozenset, tuple):
            return None
        element = self.part(args[0]) if args else _ANYTHING
        rest = ", ..." if make is tuple else ""
        expected = name if args is None else f"{name}[{element.expected}{rest}]"
        return Coercer(
            expected, containers.items_convert(make, element, expected, unordered=make in (set, frozenset)), order
        )

    def _record(self, annotation: type) -> Coercer:
        """Return the coercer of a dataclass, a NamedTuple or a TypedDict."""
        expected = annotation_text(annotation)
        try:
            fields = containers.record_fields(annotation, self.part)
        except (NameError, TypeError) as error:
            raise RewardDefinitionError(f"annotation {expected}: {error}") from error
        if containers.is_typed_dict(annotation):
            convert = containers.typed_dict_convert(fields, expected)
        elif containers.is_named_tuple(annotation):
            convert = containers.named_tuple_convert(annotation, fields, expected)
        else:
            convert = containers.dataclass_convert(annotation, fields, expected)
        return Coercer(expected, convert, TextOrder.STRUCTURED)

    def _union(self, args: Sequence[Any]) -> Coercer:
        """Return the coercer of a union; with a member that takes every value it takes every value, too."""
        members = [self.build(arg) for arg in args if arg is not type(None)]
        if any(member.passthrough for member in members):
            return _ANYTHING
        expected = " | ".join(member.expected for member in members)
        coercer = members[0]
        if len(members) > 1:
            coercer = Coercer(expected, union_convert(members, expected), TextOrder.OTHER)
        if len(members) == len(args):
            return coercer
        expected += " | None"
        return Coercer(expected, optional_convert(coercer, expected), TextOrder.OTHER)

    def _annotated(self, annotation: Any) -> Coercer:
        """Return the coercer of an ``Annotated``: its own, else the bare type's with pydantic's constraints."""
        bare = annotation.__origin__
        own = next((entry for entry in annotation.__metadata__ if isinstance(entry, Coercer)), None)
        if own is not None:
            return own
        if foreign.reads_raw_value(annotation.__metadata__):
            return self._pydantic(annotation)
        coercer = self.build(bare)
        try:
            convert = foreign.constrained_convert(annotation, coercer.convert, coercer.expected)
        except Exception as error:  # pydantic has many words for an annotation that it cannot read
            raise RewardDefinitionError(f"annotation {annotation_text(annotation)}: {error}") from error
        return Coercer(coercer.expected, convert, coercer.order)

    def _array(self, args: tuple[Any, ...]) -> Coercer:
        expected = foreign.array_name(args)
        return Coercer(expected, foreign.array_convert(args, expected), TextOrder.STRUCTURED)

    def _pydantic(self, annotation: Any) -> Coercer:
        """Return the coercer of what only pydantic knows; in a union a model takes texts in brackets alone."""
        expected = annotation_text(
            annotation.__origin__ if typing.get_origin(annotation) is typing.Annotated else annotation
        )
        try:
            convert = foreign.pydantic_convert(annotation, expected)
        except Exception as error:  # pydantic has many words for an annotation that it cannot read
            raise RewardDefinitionError(f"annotation {expected}: no column's text can become one") from error
        is_model = hasattr(annotation, "__pydantic_validator__")
        is_bracketed = is_model and not getattr(annotation, "__pydantic_root_model__", False)
        return Coercer(expected, convert, TextOrder.STRUCTURED if is_bracketed else TextOrder.OTHER)
