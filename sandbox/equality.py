"""Equality that is strict by type, for judging plain values: see :func:`same`."""

from __future__ import annotations

import cmath
import hashlib
import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from sandbox import plain

_MAX_DEPTH = 3 * plain.MAX_DEPTH
_SCALARS = frozenset({type(None), bool, int, str, bytes, bytearray})
_NUMBERS = (int, float, complex)
_MAX_NAME = 80
_SHORT = 1 << 63


class _ForeignError(Exception):
    """A value is of a type that is not plain."""


class _Margins(NamedTuple):
    """How far numbers may be off: relative to the larger one, in any case, and two floats in either way."""

    rel_tol: float
    abs_tol: float
    float_tol: float


def same(
    value: object, expected: object, rel_tol: float = 0.0, abs_tol: float = 0.0, *, float_tol: float = 0.0
) -> bool:
    """Return whether a plain value is the expected one, strictly by type.

    ``True`` is not ``1``, ``1`` is not ``1.0``, a tuple is not a list, ``bytes`` are not ``bytearray``. With a
    tolerance, numbers of any kind (``int``, ``float``, ``complex``, never ``bool``) are the same if they are close,
    as :func:`math.isclose` means it; with a ``float_tol`` a float and a float alone, which is for errors of rounding.
    Members of sets and keys of dicts are always compared exactly. The order of dicts and sets does not matter.
    ``nan`` is the same as ``nan``, on purpose: otherwise no check could expect it.
    A set or dict that holds it more than once must hold it as often, with the same items, which are then compared
    exactly too. ``0.0`` is the same as ``-0.0``.

    Only plain values can be the same as anything; no method of another type is called. The work is in proportion to
    the size of the smaller value, whatever the hashes in it: no set or dict looks up what another holds.
    """
    try:
        return _same(value, expected, _Margins(float(rel_tol), float(abs_tol), float(float_tol)), 0)
    except (_ForeignError, RecursionError):
        return False


def _same(value: Any, expected: Any, margins: _Margins, depth: int) -> bool:
    """Return what :func:`same` does, of values so deep in others; raise _ForeignError for one that is not plain."""
    kind = type(value)
    if depth > _MAX_DEPTH:
        return False
    if (margins.rel_tol or margins.abs_tol) and kind in _NUMBERS and type(expected) in _NUMBERS:
        return _close(value, expected, margins.rel_tol, margins.abs_tol)
    if kind is not type(expected):
        return False
    if kind is type:
        return value is expected and plain.is_known_type(value)
    if kind in _SCALARS:
        return bool(value == expected)
    if kind is list or kind is tuple:
        return len(value) == len(expected) and all(
            _same(ours, theirs, margins, depth + 1) for ours, theirs in zip(value, expected, strict=True)
        )
    if kind is dict:
        return len(value) == len(expected) and _same_items(value, expected, margins, depth + 1)
    if kind is set or kind is frozenset:
        return len(value) == len(expected) and sorted(map(_name, value)) == sorted(map(_name, expected))
    if kind is float and margins.float_tol:
        return _close(value, expected, margins.float_tol, margins.float_tol)
    return (kind is float or kind is complex) and _name(value) == _name(expected)


def _same_items(value: dict[Any, Any], expected: dict[Any, Any], margins: _Margins, depth: int) -> bool:
    """Return whether two dictionaries of one size hold the same values by the same keys."""
    items_by_name, expected_by_name = _by_name(value), _by_name(expected)
    for name, items in items_by_name.items():
        wanted = expected_by_name.get(name)
        if wanted is None or len(items) != len(wanted):
            return False
        if len(items) == 1:
            if not _same(items[0], wanted[0], margins, depth):
                return False
        elif sorted(map(_name, items)) != sorted(map(_name, wanted)):  # keys with nan in them, each equal to no other
            return False
    return len(items_by_name) == len(expected_by_name)


def _by_name(table: dict[Any, Any]) -> dict[str, list[Any]]:
    """Return the values by their keys' names; several keys with ``nan`` may share a name."""
    items: dict[str, list[Any]] = defaultdict(list)
    for key, item in table.items():
        items[_name(key)].append(item)
    return items


def _close(value: complex, expected: complex, rel_tol: float, abs_tol: float) -> bool:
    """Return whether two numbers are within a tolerance of each other, equal, or both ``nan``."""
    are_nan = value != value and expected != expected
    if value == expected or (are_nan and _name(value)[1:] == _name(expected)[1:]):  # names but for the kind's letter
        return True
    close: Callable[..., bool] = cmath.isclose if complex in (type(value), type(expected)) else math.isclose
    try:
        return close(value, expected, rel_tol=rel_tol, abs_tol=abs_tol)
    except OverflowError:  # integers beyond the floats: they have no closeness but equality
        return False


def _name(value: Any) -> str:
    """Return a text that two plain values share if they are the same, whatever their hashes; raise for other values."""
    kind = type(value)
    if kind is int:
        return f"i{value:x}" if -_SHORT < value < _SHORT else _shorten(f"i{value:x}")
    if kind is str:
        return _shorten(f"s{value}")
    if kind is float:
        return f"f{value + 0.0!r}"  # for -0.0 + 0.0 is 0.0
    if kind is tuple or kind is list:
        return _join("t" if kind is tuple else "l", map(_name, value))
    if kind is set or kind is frozenset:
        return _join("u" if kind is set else "v", sorted(map(_name, value)))
    if kind is dict:
        return _join("d", sorted(_join("", (_name(key), _name(item))) for key, item in value.items()))
    if kind is complex:
        return f"c{value.real + 0.0!r} {value.imag + 0.0!r}"
    if kind is bytes or kind is bytearray:
        return _shorten(f"{'b' if kind is bytes else 'y'}{value.hex()}")
    if value is None or kind is bool:
        return repr(value)
    if plain.is_known_type(value):
        return f"T{value.__name__}"
    raise _ForeignError


def _join(mark: str, names: Iterable[str]) -> str:
    return _shorten(mark + "".join([f"{len(name)}:{name}" for name in names]))


def _shorten(name: str) -> str:
    """Return a long name as a digest, so that the names of nested values do not grow with each level."""
    if len(name) <= _MAX_NAME:
        return name
    return "h" + hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=32).hexdigest()
