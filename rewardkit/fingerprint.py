"""Fingerprints of functions: 12 hexadecimal digits that change when what a reward does may have changed.

Owns what counts: the function's code, its defaults, what it closes over, and the settings of an object that is called.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import inspect
import re
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any

_PLAIN = (str, int, float, complex, bool, bytes, type(None), type(Ellipsis), range)
_DEPTH = 6
"""Settings nested deeper count by their type alone; it also ends circles."""
_MOST = 10_000
"""Containers of more entries count by their type and size alone."""


def fingerprint(function: Callable[..., Any], *beside: object) -> str:
    """Gives the fingerprint of a function, or of an object that is called like one.

    It covers the function's own code, not other functions that it names; of what it closes over and holds as
    defaults or settings, plain values, containers, dataclasses, patterns, functions and rewards count by what they
    are, anything else by its type. Equal code and settings give equal digits in every process.

    Args:
        function: The function.
        beside: Further values that belong to it, such as its options.
    """
    target = inspect.unwrap(function)
    text = getattr(target, "source_text", None)
    own = (target.__name__, text) if isinstance(text, str) else meaning(target)  # given as text: its code is the text
    words = repr((own, *map(meaning, beside)))
    return hashlib.sha256(words.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def meaning(value: Any, depth: int = _DEPTH) -> object:
    """Gives nested tuples of plain values that stand for what a value means, alike in every process."""
    if isinstance(value, enum.Enum):
        return (_kind(value), value.name)
    if isinstance(value, _PLAIN):
        return value
    if depth == 0:
        return _kind(value)
    inner = functools.partial(meaning, depth=depth - 1)
    if isinstance(value, types.CodeType):
        return _code(value, inner)
    if isinstance(value, types.FunctionType):
        defaults = inner(value.__defaults__), inner(value.__kwdefaults__)
        return _code(value.__code__, inner), *defaults, _closure(value, inner)
    if isinstance(value, types.MethodType):
        return inner(value.__func__), inner(value.__self__)
    if isinstance(value, type | types.ModuleType | types.BuiltinFunctionType):
        return getattr(value, "__module__", ""), getattr(value, "__qualname__", getattr(value, "__name__", ""))
    return _held(value, inner)


def _held(value: Any, inner: Callable[[Any], object]) -> object:
    """Gives the meaning of a value that holds others."""
    if isinstance(value, re.Pattern):
        return "pattern", value.pattern, value.flags
    if isinstance(value, Mapping | set | frozenset | list | tuple) and len(value) > _MOST:
        return _kind(value), len(value)
    if isinstance(value, Mapping):
        return _kind(value), *_sorted((inner(key), inner(held)) for key, held in value.items())
    if isinstance(value, set | frozenset):
        return _kind(value), *_sorted(map(inner, value))
    if isinstance(value, list | tuple):
        return _kind(value), *map(inner, value)
    if isinstance(value, functools.partial):
        return "partial", inner(value.func), inner(value.args), inner(value.keywords)
    if isinstance(getattr(type(value), "version", None), property):  # a reward, or what fingerprints itself
        return _kind(value), value.version
    if dataclasses.is_dataclass(value):
        fields = [(field.name, inner(getattr(value, field.name, None))) for field in dataclasses.fields(value)]
        return _kind(value), _called(value, inner), *fields
    return _kind(value), _called(value, inner)


def _called(value: Any, inner: Callable[[Any], object]) -> object:
    """Gives the meaning of the code that runs when an object is called."""
    call = getattr(type(value), "__call__", None)  # noqa: B004 - its code is wanted, not whether there is any
    return inner(call) if isinstance(call, types.FunctionType) else None


def _closure(function: types.FunctionType, inner: Callable[[Any], object]) -> object:
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=False)
    return tuple((name, inner(_content(cell))) for name, cell in sorted(cells, key=lambda pair: pair[0]))


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not bound yet
        return None


def _code(code: types.CodeType, inner: Callable[[Any], object]) -> object:
    """Gives a code object's meaning, without its line numbers."""
    return code.co_code, code.co_names, tuple(map(inner, code.co_consts))


def _sorted(meanings: Iterable[object]) -> list[object]:
    return sorted(meanings, key=repr)


def _kind(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"
