"""Equality that is strict by type, for judging plain values: see :func:`same`."""

from __future__ import annotations

import cmath
import math
from typing import Any

from sandbox import plain

_MAX_DEPTH = 3 * plain.MAX_DEPTH
_SCALARS = (type(None), bool, int, str, bytes, bytearray)
_NUMBERS = (int, float, complex)


def same(value: Any, expected: Any, rel_tol: float = 0.0, abs_tol: float = 0.0) -> bool:
    """Whether a plain value is the expected one, strictly by type.

    ``True`` is not ``1``, ``1`` is not ``1.0``, a tuple is not a list, ``bytes`` are not ``bytearray``. With a
    tolerance, numbers of any kind (``int``, ``float``, ``complex``, never ``bool``) are the same if they are close,
    as :func:`math.isclose` means it; members of sets and keys of dicts are always compared exactly. The order of
    dicts and sets does not matter. ``nan`` is the same as ``nan``, on purpose: a function that must give it can
    only so be checked. ``0.0`` is the same as ``-0.0``.

    Only plain values can be the same as anything; no method of another type is called.
    """
    return _same(value, expected, float(rel_tol), float(abs_tol), 0)


def _same(value: Any, expected: Any, rel_tol: float, abs_tol: float, depth: int) -> bool:
    kind = type(value)
    if depth > _MAX_DEPTH:
        return False
    if (rel_tol or abs_tol) and kind in _NUMBERS and type(expected) in _NUMBERS:
        return _close(value, expected, rel_tol, abs_tol)
    if kind is not type(expected):
        return False
    if kind is list or kind is tuple:
        return len(value) == len(expected) and all(
            _same(one, other, rel_tol, abs_tol, depth + 1) for one, other in zip(value, expected, strict=True)
        )
    if kind is dict:
        ours = {_key(key): item for key, item in expected.items()}
        return len(value) == len(expected) and all(
            (key := _key(name)) in ours and _same(item, ours[key], rel_tol, abs_tol, depth + 1)
            for name, item in value.items()
        )
    if kind is set or kind is frozenset or kind is float or kind is complex:
        return bool(_key(value) == _key(expected))
    return kind in _SCALARS and bool(value == expected)


def _close(value: Any, expected: Any, rel_tol: float, abs_tol: float) -> bool:
    if _key(value)[1] == _key(expected)[1]:
        return True
    close = cmath.isclose if complex in (type(value), type(expected)) else math.isclose
    try:
        return close(value, expected, rel_tol=rel_tol, abs_tol=abs_tol)
    except OverflowError:  # integers beyond the floats: they have no closeness but equality
        return False


def _key(value: Any) -> Any:
    """Gives what a plain value that can be hashed, or a set, is known by: equal for two if they are the same."""
    kind = type(value)
    if kind is tuple:
        return kind, tuple(map(_key, value))
    if kind is set or kind is frozenset:
        return kind, len(value), frozenset(map(_key, value))
    if kind is float:
        return kind, "nan" if math.isnan(value) else value
    if kind is complex:
        return kind, (_key(value.real), _key(value.imag)) if cmath.isnan(value) else value
    return kind, value
