"""What values mean: nested tuples of plain values that are alike in every process, for fingerprints to be made of.

Functions, classes and modules have source, which :mod:`rewardkit.versions.sources` reads later; here they are
only listed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import functools
import inspect
import os
import re
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from rewardkit.function import Versioned
from rewardkit.transport import FILE_MODULES

PLAIN = (str, int, float, complex, bool, bytes, type(None), type(Ellipsis), range)
"""Types of the values that stand for themselves."""
_BY_REPR = frozenset({"datetime", "decimal", "fractions", "uuid"})
"""Modules whose values say by their ``repr`` what they are."""
_DEPTH = 6  # Settings nested deeper count by their type alone; it also ends circles
_MOST = 10_000  # Containers of more entries count by their type and size alone
_MOST_SOURCES = 1_000  # Functions, classes and modules listed for one fingerprint

_Inner: TypeAlias = Callable[[Any], object]  # the meaning of a value that another one holds

Sourced: TypeAlias = types.FunctionType | type | types.ModuleType | Versioned
"""What has source, or states its version itself."""


class Normaliser:
    """Values turned into nested tuples of plain ones, and what of them has source, in the order in which it was met."""

    def __init__(self) -> None:
        self.sourced: list[Sourced] = []

    def copy(self) -> Normaliser:
        """Return the same list, to be added to."""
        normaliser = Normaliser()
        normaliser.sourced = list(self.sourced)
        return normaliser

    def meaning(self, value: object, depth: int = _DEPTH) -> object:
        """Return nested tuples of plain values that stand for what a value means, alike in every process."""
        if isinstance(value, enum.Enum):
            return _kind(value), value.name
        if isinstance(value, PLAIN):
            return value
        if depth == 0:
            return _kind(value)
        inner = functools.partial(self.meaning, depth=depth - 1)
        if isinstance(value, types.CodeType):
            return code_meaning(value, inner)
        if isinstance(value, types.FunctionType):
            return self._function(value, inner)
        if isinstance(value, types.MethodType):
            return inner(value.__func__), inner(value.__self__)
        if isinstance(value, type | types.ModuleType):
            return self._source(value)
        if isinstance(value, types.BuiltinFunctionType):
            return reference(value)
        return self._object(value, inner)

    def _function(self, function: types.FunctionType, inner: _Inner) -> object:
        """Return the meaning of a function: its place in :attr:`sourced`, its defaults and what it closes over."""
        is_repeat = any(sourced is function for sourced in self.sourced)  # it closes over itself, or two hold it
        number = self._source(function)
        if is_repeat:
            return number
        return number, inner(function.__defaults__), inner(function.__kwdefaults__), _closure(function, inner)

    def _source(self, value: Sourced) -> object:
        """Return where in :attr:`sourced` a function, class or module is, added if new; its type if too many are."""
        for number, sourced in enumerate(self.sourced):
            if sourced is value and not isinstance(value, Versioned):
                return "source", number
        if len(self.sourced) >= _MOST_SOURCES:
            return _kind(value)
        self.sourced.append(value)
        return "source", len(self.sourced) - 1

    def _object(self, value: object, inner: functools.partial[object]) -> object:
        """Return the meaning of a value that holds others."""
        if type(value).__module__ in _BY_REPR:
            return _kind(value), repr(value)
        if isinstance(value, re.Pattern):
            return "pattern", value.pattern, value.flags
        if isinstance(value, Mapping | set | frozenset | list | tuple) and len(value) > _MOST:
            return _kind(value), len(value)
        if isinstance(value, Mapping):
            entries = sorted(value.items(), key=lambda entry: _order(entry[0], inner))
            return _kind(value), *((inner(key), inner(part)) for key, part in entries)
        if isinstance(value, set | frozenset):
            return _kind(value), *map(inner, sorted(value, key=lambda part: _order(part, inner)))
        if isinstance(value, list | tuple):
            return _kind(value), *map(inner, value)
        if isinstance(value, functools.partial):
            return "partial", inner(value.func), inner(value.args), inner(value.keywords)
        if isinstance(value, Versioned):
            return _kind(value), self._source(value)
        return _kind(value), self._source(type(value)), inner(_wrapped(value)), *_settings(value, inner)


def file_of(value: object) -> Path | None:
    """Return the Python file in which a function, class or module is; ``None`` where it is in none."""
    if isinstance(value, types.FunctionType):
        name = value.__code__.co_filename
    else:
        module = sys.modules.get(value.__module__) if isinstance(value, type) else value
        name = getattr(module, "__file__", None) or ""
    return Path(name) if name.endswith(".py") and os.path.isfile(name) else None


def innermost(function: object) -> object:
    """Return the function that decides where a reward is at home."""
    while isinstance(function, functools.partial):
        function = function.func
    if not callable(function):
        return type(function)
    function = inspect.unwrap(function)
    function = getattr(function, "__func__", function)
    return function if isinstance(function, types.FunctionType | type) else type(function)


def _wrapped(value: object) -> object:
    """Return what an object wraps, as ``functools.cache`` does, without asking its ``__getattr__``."""
    attributes = getattr(value, "__dict__", None) if hasattr(type(value), "__dict__") else None
    if isinstance(attributes, dict) and "__wrapped__" in attributes:
        return attributes["__wrapped__"]
    return getattr(value, "__wrapped__", None) if hasattr(type(value), "__wrapped__") else None


def _settings(value: object, inner: _Inner) -> Iterable[object]:
    """Return the meaning of an object's settings: a dataclass's fields, else a user's object's attributes."""
    if dataclasses.is_dataclass(value):
        return [(field.name, inner(getattr(value, field.name, None))) for field in dataclasses.fields(value)]
    file = file_of(type(value))
    is_own = type(value).__module__ == "__main__" if file is None else _is_own(file)
    attributes = getattr(value, "__dict__", None) if is_own else None
    if not isinstance(attributes, dict) or len(attributes) > _MOST:
        return []
    return [(name, inner(attribute)) for name, attribute in sorted(attributes.items())]


def _closure(function: types.FunctionType, inner: _Inner) -> object:
    """Return the names that a function closes over, with the meanings of their values."""
    values: dict[str, Any] = dict.fromkeys(function.__code__.co_freevars)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        with contextlib.suppress(ValueError):  # not bound yet
            values[name] = cell.cell_contents
    return tuple((name, inner(value)) for name, value in sorted(values.items()))


def code_meaning(code: types.CodeType, inner: _Inner) -> object:
    """Return a code object's meaning, without its line numbers."""
    return code.co_code, code.co_names, tuple(map(inner, code.co_consts))


def reference(value: object) -> object:
    """Return the name of what is not the user's own, or has no source."""
    name = getattr(value, "__qualname__", getattr(value, "__name__", ""))
    return _anywhere(str(getattr(value, "__module__", "") or "")), name


def _order(value: object, inner: functools.partial[object]) -> str:
    """Return what values of a set are sorted by: alike in every process, unlike their hashes.

    They may hold the set, and are looked into as deep as ``inner`` does.
    """
    return repr((reference(value), Normaliser().meaning(value, **inner.keywords)))


def _kind(value: object) -> str:
    """Return the name of a value's type."""
    return f"{_anywhere(type(value).__module__)}.{type(value).__qualname__}"


def _anywhere(module: str) -> str:
    """Return a module's name without what depends on where it lies and on how it was started."""
    return "" if module == "__main__" or module.startswith(FILE_MODULES) else module


def _is_own(file: Path) -> bool:
    from rewardkit.versions.own_modules import is_own  # it brings the parser along, and few rewards hold objects

    return is_own(file)
