"""What a gated text gets from modules whose own names evaluate, take any attribute, or hand out too much.

The client sends this module into the jail as compiled code, after :mod:`sandbox.inside.guards` and only for a text that
imports one of these modules; so it imports the standard library and those two.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Generator
from types import FunctionType
from typing import Any

from sandbox.inside.guards import safe_getattr, safe_write
from sandbox.inside.text_rules import TEXT_MODULE, public_names


def _functools() -> dict[str, object]:
    return {
        "cache": lambda function: functools.cache(_plain(function)),
        "cached_property": _CachedProperty,
        "lru_cache": _lru_cache,
        "total_ordering": _total_ordering,
        "update_wrapper": _update_wrapper,
        "wraps": _wraps,
    }


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a callable as a function: of a class, wrappers would take all that it has."""
    return function if type(function) is FunctionType else lambda *values, **fields: function(*values, **fields)


def _lru_cache(maxsize: Any = 128, typed: bool = False) -> Any:
    """Stand in for ``functools.lru_cache``, with and without arguments."""
    if callable(maxsize):
        return functools.lru_cache(_plain(maxsize))
    return lambda function: functools.lru_cache(maxsize, typed)(_plain(function))


def _update_wrapper(wrapper: object, wrapped: object) -> object:
    """Stand in for ``functools.update_wrapper``; write names and docstring, only to the text's objects.

    It writes no ``__module__``, by which another class could pass for one of the text's.
    """
    if type(wrapper) is not functools.partial:
        safe_write(wrapper)
    for name in ("__name__", "__qualname__", "__doc__"):
        value = getattr(wrapped, name, None)
        if type(value) is str:
            setattr(wrapper, name, value)
    return wrapper


def _wraps(wrapped: object) -> Callable[[object], object]:
    """Stand in for ``functools.wraps``, as :func:`_update_wrapper` does."""
    return lambda wrapper: _update_wrapper(wrapper, wrapped)


def _total_ordering(of: object) -> Any:
    """Stand in for ``functools.total_ordering``, which writes methods to any class."""
    return functools.total_ordering(safe_write(of))


class _CachedProperty:
    """Stand in for ``functools.cached_property``: the name it writes is that of the class's body, and no other."""

    def __init__(self, function: Callable[[Any], object]) -> None:
        self._function = function
        self._name = ""

    def __init_subclass__(cls) -> None:
        raise TypeError("cached_property is no base class here")

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type | None = None) -> object:
        if instance is None:
            return self
        value = vars(safe_write(instance))[self._name] = self._function(instance)
        return value


def _operator() -> dict[str, object]:
    def attrgetter(*paths: str) -> Callable[[object], object]:
        def read(of: object, path: str) -> object:
            return functools.reduce(safe_getattr, path.split("."), of)

        return lambda of: read(of, paths[0]) if len(paths) == 1 else tuple(read(of, path) for path in paths)

    def methodcaller(name: str, /, *values: object, **fields: object) -> Callable[[object], object]:
        return lambda of: safe_getattr(of, name)(*values, **fields)

    return {"attrgetter": attrgetter, "methodcaller": methodcaller}


def _contextlib() -> dict[str, object]:
    class Generated:
        """What a generator function makes: ``contextlib``'s own hands tracebacks to whatever it was given."""

        def __init__(self, generator: Generator[object, None, object]) -> None:
            self._generator = generator

        def __enter__(self) -> object:
            return next(self._generator)

        def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
            try:
                if error is None:
                    next(self._generator)
                else:
                    self._generator.throw(error)
            except StopIteration as stop:
                return stop is not error
            except BaseException as other:
                if other is not error:
                    raise
                return False
            raise RuntimeError("the generator of a context manager has not stopped")

    def contextmanager(function: Callable[..., Any]) -> object:
        return functools.wraps(_plain(function))(lambda *values, **fields: Generated(function(*values, **fields)))

    return {"contextmanager": contextmanager}


def _dataclasses() -> dict[str, object]:
    import dataclasses

    def dataclass(of: Any = None, /, **options: Any) -> Any:
        if of is None:
            return functools.partial(dataclass, **options)
        if not isinstance(of, type) or of.__module__ != TEXT_MODULE:
            raise TypeError("only a class of the text itself becomes a dataclass")
        for name in vars(of).get(
            "__annotations__", ()
        ):  # names of fields become code, and one of its kind chooses its own
            value = getattr(of, name, None)
            is_odd = isinstance(value, dataclasses.Field) and type(value) is not dataclasses.Field
            is_odd = is_odd or value is not safe_getattr(of, name, None)  # a method of a base, which would be unbound
            if is_odd or any(isinstance(vars(base).get(name), classmethod) for base in of.__mro__):
                raise TypeError(f"the default of field {name!r} is not a plain value or field()")
        of.__doc__ = of.__doc__ or of.__name__  # else its signature is read, which evaluates texts
        return dataclasses.dataclass(of, **options)

    return {"dataclass": dataclass}


def _enum() -> dict[str, object]:
    import enum

    class Closed(enum.EnumType):
        """Makes members by a class's body alone: ``Enum("A", names)`` takes every name, those of methods too."""

        def __call__(cls, value: object, *names: object, **options: object) -> Any:
            if names or options:
                raise TypeError("write an enumeration as a class: class Color(Enum): RED = 1")
            return super().__call__(value)

    kinds: list[Any] = [enum.Enum, enum.IntEnum, enum.StrEnum, enum.Flag, enum.IntFlag]
    return {kind.__name__: Closed(kind.__name__, (kind,), Closed.__prepare__(kind.__name__, (kind,))) for kind in kinds}


class _Hint:
    """Stand for what only annotations use; as a base class it vanishes."""

    def __getitem__(self, parts: object) -> _Hint:
        return self

    __call__ = __or__ = __ror__ = lambda self, *values, **fields: self

    def __mro_entries__(self, bases: object) -> tuple[()]:
        return ()


def _typing() -> dict[str, object]:
    import collections
    import typing

    same = {name: getattr(collections, name) for name in ("Counter", "OrderedDict")}
    kinds = {"DefaultDict": collections.defaultdict, "Deque": deque, "Dict": dict, "FrozenSet": frozenset, "List": list,
             "Set": set, "Text": str, "Tuple": tuple, "TypedDict": dict}  # fmt: skip
    functions: dict[str, object] = {"NewType": lambda name, kind: kind, "cast": lambda kind, value: value}
    functions |= dict.fromkeys(("final", "overload", "override", "runtime_checkable"), lambda function: function)
    names: dict[str, object] = {**same, **kinds, **functions, "NamedTuple": typing.NamedTuple, "TYPE_CHECKING": False}
    for name in public_names("typing") - names.keys():
        names[name] = getattr(collections.abc, name, None) or _Hint()
    return names


STAND_INS: dict[str, Callable[[], dict[str, object]]] = {
    "contextlib": _contextlib, "dataclasses": _dataclasses, "enum": _enum, "functools": _functools,
    "operator": _operator, "typing": _typing,
}  # fmt: skip
"""What makes the names of ours, by module."""
