"""Plain values as JSON that keeps Python's literals apart: what may enter and leave a jail.

``None``, ``bool``, ``int``, finite ``float``, ``str`` and ``list`` are JSON's own; everything else is an
object with one key that names its type: ``{"tuple": [1, 2]}``, ``{"float": "nan"}``, ``{"dict": [[key, value]]}``.
A value whose type is derived from one of these travels as the plain value beneath, so that no method of
the sender's ever runs at the receiver's. The types of plain values, and Python's own exceptions,
are plain too and travel by name.
"""

from __future__ import annotations

import builtins
import json
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sandbox.effort import Effort, pay_for_alike
from sandbox.errors import NotPlainError

__all__ = [
    "MAX_DEPTH",
    "TYPES",
    "decode",
    "dumps",
    "encode",
    "encode_base",
    "extend",
    "is_known_type",
    "loads",
]

MAX_DEPTH = 100
"""Containers inside each other."""
_WHOLE = 1 << 63  # beyond it numbers are hexadecimal, because Python limits the digits of decimal ones


def dumps(value: object) -> str:
    """Return a plain value as JSON text.

    Raises:
        NotPlainError: It, or something in it, is not plain, or is nested deeper than :data:`MAX_DEPTH`.
    """
    return json.dumps(encode(value), separators=(",", ":"))


def loads(text: str | bytes) -> Any:
    """Return the value that JSON text of :func:`dumps` stands for.

    Raises:
        NotPlainError: :func:`dumps` does not write such text, or reading it takes too much work.
    """
    effort = Effort()
    try:
        effort.spend_on_json(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
        return decode(json.loads(text), effort)
    except (ValueError, RecursionError) as fault:
        raise NotPlainError(f"not a plain value: {fault}") from None


def encode(value: Any, depth: int = 0) -> Any:
    """Return the tree that JSON can hold; raise as :func:`dumps` does."""
    kind = type(value)
    if value is None or kind is bool:
        return value
    if kind is str:
        return value if value.isascii() else _text(value)
    if kind is int and -_WHOLE < value < _WHOLE:
        return value
    if kind is float and math.isfinite(value):
        return value
    if depth > MAX_DEPTH:
        raise NotPlainError(f"nested more than {MAX_DEPTH} deep")
    if kind is list:
        return [encode(item, depth + 1) for item in value]
    if _foreign_writers and kind not in _EXACT:
        tree = _foreign_writers[-1](value, depth)
        if tree is not None:
            return tree
    tree = encode_base(value, depth)
    if tree is not None:
        return tree
    if is_known_type(value):
        return {"type": value.__name__}
    item = getattr(value, "tolist", None)
    if item is not None and kind.__module__ == "numpy":  # arrays and scalars as what they hold
        return encode(item(), depth + 1)
    raise NotPlainError(f"a value of type {kind.__name__} is not plain")


def encode_base(value: Any, depth: int = 0) -> Any:
    """Return the tree of the plain value beneath a value of a derived type; ``None`` where there is no such."""
    for base, write in _WRITERS:
        if issubclass(type(value), base):
            return write(value, depth + 1)
    return None


def extend(write: Callable[[Any, int], Any], readers: Mapping[str, Callable[[Any], Any]]) -> None:
    """Let this process, a child of a zygote, write and read more than plain values.

    Args:
        write: Is asked for the tree of each value that is no exact plain one; ``None`` leaves it to the rules here.
        readers: By the name of a type that such trees name: what makes a value of the content.
    """
    _foreign_writers.append(write)
    for name, read in readers.items():
        _READERS[name] = lambda content, effort, depth, read=read: read(content)  # type: ignore[misc]


def is_known_type(value: object) -> bool:
    """Return whether a value is one of :data:`TYPES`, without calling anything of its own."""
    return type(value) is type and value in _KNOWN


def _text(value: str) -> Any:
    """Return text as it is, unless it holds surrogates, because JSON would join two of them into one letter."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return {"str": value.encode("utf-8", "surrogatepass").hex()}
    return value


def _integer(value: int, depth: int) -> Any:
    number = int.__add__(value, 0)
    return number if -_WHOLE < number < _WHOLE else {"int": hex(number)}


def _float(value: float, depth: int) -> Any:
    number = float.__add__(value, 0.0) if float.__ne__(value, 0.0) else float.__pos__(value)
    return number if math.isfinite(number) else {"float": float.__repr__(number)}


def _each(items: Iterable[Any], depth: int) -> list[Any]:
    return [encode(item, depth) for item in items]


_WRITERS: tuple[tuple[type, Callable[[Any, int], Any]], ...] = (
    (int, _integer),
    (float, _float),
    (str, lambda value, depth: _text(str.__add__("", value))),
    (list, lambda value, depth: _each(list.__iter__(value), depth)),
    (tuple, lambda value, depth: {"tuple": _each(tuple.__iter__(value), depth)}),
    (dict, lambda value, depth: {"dict": [_each(pair, depth) for pair in dict.items(value)]}),
    (set, lambda value, depth: {"set": _each(set.__iter__(value), depth)}),
    (frozenset, lambda value, depth: {"frozenset": _each(frozenset.__iter__(value), depth)}),
    (bytes, lambda value, depth: {"bytes": bytes.hex(value)}),
    (bytearray, lambda value, depth: {"bytearray": bytearray.hex(value)}),
    (complex, lambda value, depth: {"complex": [_float(value.real, depth), _float(value.imag, depth)]}),
)


def decode(tree: object, effort: Effort | None = None, depth: int = 0) -> Any:
    """Return the value that a tree stands for; raise as :func:`loads` does.

    Args:
        tree: What JSON text held.
        effort: How much work may still be done; ``None`` for no bound, for trees of our own.
        depth: Containers that it is in.
    """
    if effort is None:
        effort = Effort(math.inf, math.inf)
    if depth > 2 * MAX_DEPTH:
        raise NotPlainError(f"nested more than {MAX_DEPTH} deep")
    if type(tree) is list:
        return _items(tree, effort, depth)
    if type(tree) is not dict:
        return tree
    if len(tree) != 1:
        raise NotPlainError("an object without a type")
    ((name, content),) = tree.items()
    read = _READERS.get(name)
    if read is None:
        raise NotPlainError(f"a value of unknown type {name[:40]!r}")
    try:
        return read(content, effort, depth + 1)
    except NotPlainError:
        raise
    except (TypeError, ValueError, AttributeError, OverflowError) as fault:
        raise NotPlainError(f"no {name}: {fault}") from None


# Readers take what ought to be there; where it is of another type, they raise, and decode says so.


def _items(items: object, effort: Effort, depth: int) -> list[Any]:
    if type(items) is not list:
        raise NotPlainError("no items")
    effort.spend(1 + len(items))
    return [item if type(item) in _AS_IT_IS else decode(item, effort, depth + 1) for item in items]


def _number(text: str) -> float:
    if text not in ("nan", "inf", "-inf"):
        raise NotPlainError("no special float")
    return float(text)


def _pairs(items: list[list[Any]], effort: Effort, depth: int) -> dict[Any, Any]:
    effort.spend(_STEPS_A_TABLE + 2 * len(items))
    pairs = [(decode(key, effort, depth), decode(item, effort, depth)) for key, item in items]
    pay_for_alike([key for key, _ in pairs], effort)
    table: dict[Any, Any] = {}
    effort.fill(table, pairs)
    return table


def _members(items: object, effort: Effort, depth: int) -> set[Any]:
    effort.spend(_STEPS_A_TABLE)
    members = _items(items, effort, depth)
    pay_for_alike(members, effort)
    table: set[Any] = set()
    effort.fill(table, members)
    return table


def _complex(parts: object, effort: Effort, depth: int) -> complex:
    real, imaginary = _items(parts, effort, depth)
    return complex(float(real), float(imaginary))


def _type(name: object, effort: Effort, depth: int) -> type:
    if type(name) is not str or name not in TYPES:
        raise NotPlainError("no type of Python's own")
    return TYPES[name]


TYPES = {kind.__name__: kind for kind in (type(None), bool, *(base for base, _ in _WRITERS))} | {
    name: kind for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, Exception)
}
"""The types of plain values, and Python's own exceptions, by name: as values they stand for themselves everywhere."""
_KNOWN = frozenset(TYPES.values())
_EXACT = frozenset({dict, tuple, set, frozenset, bytes, bytearray, complex, int, float, str})
_foreign_writers: list[Callable[[Any, int], Any]] = []
_AS_IT_IS = frozenset({str, int, float, bool, type(None)})
_STEPS_A_TABLE = 6
_READERS: dict[str, Callable[[Any, Effort, int], Any]] = {
    "int": lambda digits, effort, depth: int(digits, 16),
    "float": lambda text, effort, depth: _number(text),
    "tuple": lambda items, effort, depth: tuple(_items(items, effort, depth)),
    "set": _members,
    "frozenset": lambda items, effort, depth: frozenset(_members(items, effort, depth)),
    "dict": _pairs,
    "str": lambda digits, effort, depth: bytes.fromhex(digits).decode("utf-8", "surrogatepass"),
    "bytes": lambda digits, effort, depth: bytes.fromhex(digits),
    "bytearray": lambda digits, effort, depth: bytearray.fromhex(digits),
    "complex": _complex,
    "type": _type,
}
