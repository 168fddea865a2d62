"""An expected value as a language other than Python writes it, so that equal values of different types are equal.

Rows hold expected values as JSON or Python writes them, and functions return them by their own types: a double is
``2.0`` where a row says ``2``, JavaScript writes ``2.0`` as ``2``, no other language has Python's tuples, keys of
JSON's objects are texts, and JSON has no sets. A boolean is never a number.
"""

from __future__ import annotations

import math
from typing import Any

_MOST_DEPTH = 300


def as_returned(expected: Any, value: Any, *, letters: bool = False, depth: int = 0) -> Any:
    """Return an expected value with the types of a returned one, wherever both say the same; else as it is.

    The work is in proportion to the size of the expected value.

    Args:
        expected: The value that a row has.
        value: The value that a function returned.
        letters: Whether the language writes a letter as its number, as Go does with bytes and runes.
        depth: How many containers are around both.
    """
    if depth > _MOST_DEPTH:
        return expected
    kind, wanted = type(value), type(expected)
    if letters and kind is int and wanted is str and len(expected) == 1:
        return ord(expected)
    if letters and kind is list and wanted is str and len(value) == len(expected.encode()):
        return list(expected.encode())
    if {kind, wanted} == {int, float}:
        return _as_number(expected, kind)
    if kind is list and wanted in (list, tuple):
        items = zip(expected, value, strict=False)
        return (
            [as_returned(*pair, letters=letters, depth=depth + 1) for pair in items]
            if len(expected) == len(value)
            else list(expected)
        )
    if kind is set and wanted in (list, tuple, frozenset):
        return _as_set(expected)
    if kind is dict and wanted is dict:
        return _as_mapping(expected, value, letters, depth)
    return expected


def _as_number(expected: float, kind: type) -> Any:
    """Return a whole number as another kind of number, if that changes nothing."""
    if kind is int:
        return int(expected) if math.isfinite(expected) and expected == int(expected) else expected
    try:
        return float(expected) if float(expected) == expected else expected
    except OverflowError:
        return expected


def _as_set(expected: Any) -> Any:
    """Return members as a set, if each is there once and can be in one."""
    try:
        members = {_as_member(member) for member in expected}
    except TypeError:
        return expected
    return members if len(members) == len(expected) else expected


def _as_member(member: Any) -> Any:
    return tuple(map(_as_member, member)) if isinstance(member, list | tuple) else member


def _as_mapping(expected: dict[Any, Any], value: dict[Any, Any], letters: bool, depth: int) -> dict[Any, Any]:
    """Return a mapping whose keys are numbers where texts stand for them, and whose items are as those returned."""
    if len(expected) != len(value):
        return expected
    kinds = {type(key) for key in value}
    number = kinds.pop() if len(kinds) == 1 else None
    table = {}
    for key, item in expected.items():
        if number in (int, float) and isinstance(key, str):
            key = ord(key) if letters and len(key) == 1 and not key.isdecimal() else _as_key(key, number)
        elif {type(key), number} == {int, float}:
            key = _as_number(key, number)  # type: ignore[arg-type]
        elif number is tuple and isinstance(key, list | tuple):
            key = _as_member(key)
        table[key] = as_returned(item, value[key], letters=letters, depth=depth + 1) if key in value else item
    return table if len(table) == len(expected) else expected


def _as_key(key: str, number: Any) -> Any:
    try:
        return number(key)
    except ValueError:
        return key
