"""Plain values as JSON that keeps Python's literals apart: what may enter and leave a jail.

``None``, ``bool``, ``int``, finite ``float``, ``str`` and ``list`` are JSON's own; everything else is an
object with one key that names its type: ``{"tuple": [1, 2]}``, ``{"float": "nan"}``, ``{"dict": [[key, value]]}``.
A value whose type is derived from one of these travels as the plain value beneath, so that no method of
the sender's ever runs at the receiver's.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

from sandbox.errors import NotPlainError

MAX_DEPTH = 100
"""Containers inside each other."""
MAX_ALIKE = 200
"""Members of a set, or keys of a dict, with the same hash; all are compared with each other, which takes its time."""
_WHOLE = 1 << 63  # beyond it numbers are hexadecimal, for Python limits the digits of decimal ones


def dumps(value: Any) -> str:
    """Gives a plain value as JSON text.

    Raises:
        NotPlainError: It, or something in it, is not plain, or is nested deeper than :data:`MAX_DEPTH`.
    """
    return json.dumps(encode(value), separators=(",", ":"))


def loads(text: str | bytes) -> Any:
    """Gives the value that JSON text of :func:`dumps` stands for.

    Raises:
        NotPlainError: The text is none of ours.
    """
    try:
        return decode(json.loads(text))
    except (ValueError, RecursionError) as fault:
        raise NotPlainError(f"not a plain value: {fault}") from None


def encode(value: Any, depth: int = 0) -> Any:
    """Gives the tree that JSON can hold; see :func:`dumps`."""
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
    for base, write in _WRITERS:
        if issubclass(kind, base):
            return write(value, depth + 1)
    item = getattr(value, "tolist", None)
    if item is not None and kind.__module__ == "numpy":  # arrays and scalars as what they hold
        return encode(item(), depth + 1)
    raise NotPlainError(f"a value of type {kind.__name__} is not plain")


def _text(value: str) -> Any:
    """Gives text as it is, unless it holds surrogates, of which JSON would make one letter of two."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return {"str": value.encode("utf-8", "surrogatepass").hex()}
    return value


def _integer(value: Any, depth: int) -> Any:
    number = int.__add__(value, 0)
    return number if -_WHOLE < number < _WHOLE else {"int": hex(number)}


def _float(value: Any, depth: int) -> Any:
    number = float.__add__(value, 0.0) if float.__ne__(value, 0.0) else float.__pos__(value)
    return number if math.isfinite(number) else {"float": float.__repr__(number)}


def _list(value: Any, depth: int) -> Any:
    return [encode(item, depth) for item in list.__iter__(value)]


def _tuple(value: Any, depth: int) -> Any:
    return {"tuple": [encode(item, depth) for item in tuple.__iter__(value)]}


def _set(value: Any, depth: int) -> Any:
    return {"set": [encode(item, depth) for item in set.__iter__(value)]}


def _frozenset(value: Any, depth: int) -> Any:
    return {"frozenset": [encode(item, depth) for item in frozenset.__iter__(value)]}


def _dict(value: Any, depth: int) -> Any:
    return {"dict": [[encode(key, depth), encode(item, depth)] for key, item in dict.items(value)]}


_WRITERS: tuple[tuple[type, Callable[[Any, int], Any]], ...] = (
    (int, _integer),
    (float, _float),
    (str, lambda value, depth: _text(str.__add__("", value))),
    (list, _list),
    (tuple, _tuple),
    (dict, _dict),
    (set, _set),
    (frozenset, _frozenset),
    (bytes, lambda value, depth: {"bytes": bytes.hex(value)}),
    (bytearray, lambda value, depth: {"bytearray": bytearray.hex(value)}),
    (complex, lambda value, depth: {"complex": [_float(value.real, depth), _float(value.imag, depth)]}),
)


def decode(tree: Any, depth: int = 0) -> Any:
    """Gives the value that a tree stands for; see :func:`loads`."""
    if depth > 2 * MAX_DEPTH:
        raise NotPlainError(f"nested more than {MAX_DEPTH} deep")
    if isinstance(tree, list):
        return [decode(item, depth + 1) for item in tree]
    if not isinstance(tree, dict):
        return tree
    if len(tree) != 1:
        raise NotPlainError("an object without a type")
    ((name, held),) = tree.items()
    read = _READERS.get(name)
    if read is None:
        raise NotPlainError(f"a value of unknown type {name[:40]!r}")
    try:
        return read(held, depth + 1)
    except NotPlainError:
        raise
    except (TypeError, ValueError, AttributeError, OverflowError) as fault:
        raise NotPlainError(f"no {name}: {fault}") from None


def _number(text: Any) -> float:
    if text not in ("nan", "inf", "-inf"):
        raise NotPlainError("no special float")
    return float(text)


def _pairs(held: Any, depth: int) -> dict[Any, Any]:
    pairs = [(decode(key, depth), decode(item, depth)) for key, item in held]
    _check_hashes([key for key, _ in pairs])
    return dict(pairs)


def _members(held: Any, depth: int) -> list[Any]:
    members = _items(held, depth)
    _check_hashes(members)
    return members


def _check_hashes(members: list[Any]) -> None:
    """Refuse members chosen to have the same hash, as whole numbers and tuples can be."""
    if len(members) <= MAX_ALIKE:
        return
    alike: dict[int, int] = {}
    for member in members:
        number = hash(member)
        alike[number] = alike.get(number, 0) + 1
        if alike[number] > MAX_ALIKE:
            raise NotPlainError(f"more than {MAX_ALIKE} members with the same hash")


def _items(held: Any, depth: int) -> list[Any]:
    if not isinstance(held, list):
        raise NotPlainError("no items")
    return [decode(item, depth) for item in held]


def _complex(held: Any, depth: int) -> complex:
    real, imaginary = _items(held, depth)
    return complex(float(real), float(imaginary))


_READERS: dict[str, Callable[[Any, int], Any]] = {
    "int": lambda held, depth: int(held, 16),
    "float": lambda held, depth: _number(held),
    "tuple": lambda held, depth: tuple(_items(held, depth)),
    "set": lambda held, depth: set(_members(held, depth)),
    "frozenset": lambda held, depth: frozenset(_members(held, depth)),
    "dict": _pairs,
    "str": lambda held, depth: bytes.fromhex(held).decode("utf-8", "surrogatepass"),
    "bytes": lambda held, depth: bytes.fromhex(held),
    "bytearray": lambda held, depth: bytearray.fromhex(held),
    "complex": _complex,
}
