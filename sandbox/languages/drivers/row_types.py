"""The types of a row's arguments, for functions whose own types are open: templates and overloads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sandbox.errors import NotPlainError

_SMALL = 1 << 31
_NUMBERS = ("int", "long", "float")  # each takes the values of those before it


@dataclass(frozen=True, slots=True)
class RowType:
    """A type of values: ``bool``, ``int``, ``long``, ``float``, ``str``, or ``list``, ``set``, ``dict``, ``optional``.

    ``none`` is the type of ``None`` alone, and ``any`` that of the items of an empty container.
    """

    name: str
    parts: tuple[RowType, ...] = ()

    def text(self, texts: Mapping[str, str]) -> str:
        """Return it as a language writes it; ``texts`` has each name's form, with ``{0}`` and ``{1}`` for its parts."""
        return texts[self.name].format(*(part.text(texts) for part in self.parts))


_ANY, _NONE = RowType("any"), RowType("none")


class _NoTypeError(Exception):
    """Two values have no type in common."""


def signatures_of(calls: Sequence[Sequence[Any]]) -> list[tuple[RowType, ...]]:
    """Return the types of the arguments of calls: one signature where they have one in common, else several.

    Raises:
        NotPlainError: A list holds values of several types, which no list of a typed language does.
    """
    signatures: list[tuple[RowType, ...]] = []
    for number, call in enumerate(calls):
        try:
            types = tuple(map(_type_of, call))
        except _NoTypeError as error:
            raise NotPlainError(f"call {number}: {error}") from None
        for index, signature in enumerate(signatures):
            try:
                signatures[index] = _merged_all(signature, types)
                break
            except _NoTypeError:
                continue
        else:
            signatures.append(types)
    return signatures


def _type_of(value: Any) -> RowType:
    if value is None:
        return _NONE
    kind = type(value)
    if kind is int:
        return RowType("int" if -_SMALL <= value < _SMALL else "long")
    if kind in (bool, float, str):
        return RowType(kind.__name__)
    if kind in (list, tuple):
        return RowType("list", (_common(value),))
    if kind in (set, frozenset):
        return RowType("set", (_common(value),))
    if kind is dict:
        return RowType("dict", (_common(value), _common(value.values())))
    raise _NoTypeError(f"a value of type {kind.__name__} has no type in another language")


def _common(values: Any) -> RowType:
    kind = _ANY
    for value in values:
        kind = _merged(kind, _type_of(value))
    return kind


def _merged(left: RowType, right: RowType) -> RowType:
    """Return the narrowest type of the values of both."""
    if left == right or right == _ANY:
        return left
    if left == _ANY:
        return right
    if left.name in _NUMBERS and right.name in _NUMBERS:
        return max(left, right, key=lambda kind: _NUMBERS.index(kind.name))
    if "none" in (left.name, right.name) or "optional" in (left.name, right.name):
        inner = [kind.parts[0] if kind.name == "optional" else kind for kind in (left, right) if kind != _NONE]
        return RowType("optional", (_merged(inner[0], inner[-1]),))
    if left.name == right.name and len(left.parts) == len(right.parts):
        return RowType(left.name, _merged_all(left.parts, right.parts))
    raise _NoTypeError(f"values of the types {left.name} and {right.name} have no type in common")


def _merged_all(some: tuple[RowType, ...], others: tuple[RowType, ...]) -> tuple[RowType, ...]:
    if len(some) != len(others):
        raise _NoTypeError("another number of arguments")
    return tuple(_merged(*pair) for pair in zip(some, others, strict=True))
