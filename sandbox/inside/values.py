"""Values of the standard library between the code under test and its tester, which is more than plain values.

Dates, decimals, fractions, deques and their like travel by what they hold, and the receiver makes its own of it, so no
method of the sender's runs there. Functions and classes of modules travel by name, towards the code under test alone.
Numpy's arrays travel as such where the tests have imported it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from sandbox import plain

_MAX_ITEMS = 1 << 20  # of an array

_sends_arrays = False


def send_arrays() -> None:
    """Let arrays travel as arrays from now on, because the tests have imported numpy; otherwise they are lists."""
    global _sends_arrays
    _sends_arrays = True


def sends_arrays() -> bool:
    """Return whether arrays travel as arrays."""
    return _sends_arrays


def write(value: Any, depth: int) -> Any:
    """Return the tree of a value of the standard library, of exactly such a type; ``None`` for all others."""
    kind = type(value)
    writer = _WRITERS.get((package_of(kind), kind.__qualname__))
    if writer is None or kind is not _find(kind.__module__, kind.__qualname__):
        return None
    name, content = writer[0], writer[1](value)
    return None if content is None else {"std": [name, plain.encode(content, depth + 1)]}


def package_of(kind: type) -> str:
    """Return the package of a class; a path's is ``pathlib``, also in Python 3.13, where it is ``pathlib._local``'s."""
    module = kind.__module__
    return module.partition(".")[0] if type(module) is str else ""  # a class of the code may have anything there


def read(content: Any) -> Any:
    """Return the value of the standard library that a tree stands for; raise ``ValueError`` where there is no such."""
    name, tree = content
    parts = plain.decode(tree)
    try:
        return _MAKERS[name](*parts)
    except Exception as error:  # whatever these raise of content that the other side made up
        raise ValueError(f"no {name}: {error}") from None


def write_reference(value: Any) -> Any:
    """Return the tree of a function or class that a module has by its name; ``None`` for others."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    holder = getattr(value, "__objclass__", None)
    if isinstance(holder, type) and module is None:  # a method of a type, such as str.upper
        module = holder.__module__
    if type(module) is not str or type(name) is not str or module.partition(".")[0] not in sys.stdlib_module_names:
        return None
    return {"reference": [module, name]} if _find(module, name) is value else None


def read_reference(content: Any) -> Any:
    """Return the function or class that a tree names."""
    module, name = content
    __import__(module)
    return _find(module, name)


def _find(module: str, name: str) -> Any:
    value: Any = sys.modules.get(module)
    for part in name.split("."):
        value = getattr(value, part, None)
    return value


def _datetime() -> Any:
    import datetime

    return datetime


def _collections() -> Any:
    import collections

    return collections


def _write_factory(value: Any) -> Any:
    factory = value.default_factory
    return (factory if plain.is_known_type(factory) else None, list(dict.items(value)))


def _write_array(value: Any) -> Any:
    """Return an array's type, shape and items; ``None``, by which it travels as a list or not at all, for some.

    These are arrays of tests that have not imported numpy, arrays of objects, and those of more than 2**20 items.
    """
    if not _sends_arrays or value.size > _MAX_ITEMS or value.dtype.hasobject:
        return None
    items = value.astype(str) if value.dtype.kind in "mM" else value  # dates and durations travel as text
    return (value.dtype.str, list(value.shape), items.ravel().tolist())


def _make_array(dtype: str, shape: list[int], items: list[Any]) -> Any:
    import numpy

    return numpy.array(items, dtype=dtype).reshape(shape)


_Writer = tuple[str, Callable[[Any], Any]]
_WRITERS: dict[tuple[str, str], _Writer] = {
    ("datetime", "date"): ("date", lambda value: (value.isoformat(),)),
    ("datetime", "datetime"): ("datetime", lambda value: (value.isoformat(), value.fold)),
    ("datetime", "time"): ("time", lambda value: (value.isoformat(),)),
    ("datetime", "timedelta"): ("timedelta", lambda value: (value.days, value.seconds, value.microseconds)),
    ("datetime", "timezone"): ("timezone", lambda value: (value.utcoffset(None),)),
    ("decimal", "Decimal"): ("Decimal", lambda value: (str(value),)),
    ("fractions", "Fraction"): ("Fraction", lambda value: (value.numerator, value.denominator)),
    ("collections", "Counter"): ("Counter", lambda value: (dict(value),)),
    ("collections", "OrderedDict"): ("OrderedDict", lambda value: (list(value.items()),)),
    ("collections", "defaultdict"): ("defaultdict", _write_factory),
    ("collections", "deque"): ("deque", lambda value: (list(value), value.maxlen)),
    ("uuid", "UUID"): ("UUID", lambda value: (value.int,)),
    ("pathlib", "PosixPath"): ("Path", lambda value: (str(value),)),
    ("pathlib", "PurePosixPath"): ("PurePath", lambda value: (str(value),)),
    ("builtins", "range"): ("range", lambda value: (value.start, value.stop, value.step)),
    ("builtins", "slice"): ("slice", lambda value: (value.start, value.stop, value.step)),
    ("builtins", "ellipsis"): ("ellipsis", lambda value: ()),
    ("builtins", "NotImplementedType"): ("NotImplemented", lambda value: ()),
    ("numpy", "ndarray"): ("ndarray", _write_array),
}
_MAKERS: dict[str, Callable[..., Any]] = {
    "date": lambda text: _datetime().date.fromisoformat(text),
    "datetime": lambda text, fold: _datetime().datetime.fromisoformat(text).replace(fold=fold),
    "time": lambda text: _datetime().time.fromisoformat(text),
    "timedelta": lambda *parts: _datetime().timedelta(*parts),
    "timezone": lambda offset: _datetime().timezone(offset),
    "Decimal": lambda text: __import__("decimal").Decimal(text),
    "Fraction": lambda *parts: __import__("fractions").Fraction(*parts),
    "Counter": lambda counts: _collections().Counter(counts),
    "OrderedDict": lambda items: _collections().OrderedDict(items),
    "defaultdict": lambda factory, items: _collections().defaultdict(factory, items),
    "deque": lambda items, most: _collections().deque(items, most),
    "UUID": lambda number: __import__("uuid").UUID(int=number),
    "Path": lambda text: __import__("pathlib").Path(text),
    "PurePath": lambda text: __import__("pathlib").PurePosixPath(text),
    "range": range,
    "slice": slice,
    "ellipsis": lambda: ...,
    "NotImplemented": lambda: NotImplemented,
    "ndarray": _make_array,
}
