"""Text and real containers to list, tuple, set, frozenset and dict, each element coerced in turn.

A text must be a bracketed one: ``"abc"`` is no ``["abc"]``. A set is not taken for a list, since its order, and so
a reward that reads it, would differ from process to process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from itertools import repeat
from typing import Any

from rewardkit.coercion.literals import TextError, parse_container
from rewardkit.coercion.rule import ColumnValueError, Convert, Rule


def held_in(value: object, expected: str) -> object:
    """Return the container that a text, an array or a tensor holds; other values as they are."""
    if isinstance(value, str):
        try:
            return parse_container(value)
        except TextError as error:
            raise ColumnValueError.of(expected, value, str(error)) from None
    if not isinstance(value, list | dict) and callable(getattr(type(value), "tolist", None)):
        held: object = value.tolist()  # type: ignore[attr-defined]
        return held
    return value


def wrong_kind(expected: str, value: object, held: object) -> ColumnValueError:
    """Return the error for a value that could be read, and holds something else than expected."""
    detail = f"it holds a value of type {type(held).__name__}" if isinstance(value, str) else None
    return ColumnValueError.of(expected, value, detail)


def items_in(value: object, expected: str, unordered: bool = False) -> Iterable[object]:
    """Return the elements of a sequence, or, if order does not matter, of a set too."""
    held = held_in(value, expected)
    if isinstance(held, list | tuple) or (unordered and isinstance(held, Set)):
        return held
    if isinstance(held, Sequence) and not isinstance(held, str | bytes | bytearray | memoryview):
        return held
    raise wrong_kind(expected, value, held)


def mapping_in(value: object, expected: str) -> Mapping[Any, object]:
    """Return the mapping that a value is or holds."""
    held = held_in(value, expected)
    if isinstance(held, Mapping):
        return held
    raise wrong_kind(expected, value, held)


def convert_items(items: Iterable[object], converts: Iterable[Convert], expected: str, value: object) -> list[object]:
    """Return each element converted in its own way; an error names the element's place, from 0."""
    converted: list[object] = []
    try:
        for element, convert in zip(items, converts, strict=False):
            converted.append(convert(element))
    except ColumnValueError as error:
        raise error.inside(f"item {len(converted)}", expected, value) from None
    return converted


def items_convert(
    make: Callable[[Iterable[object]], object], element: Rule, expected: str, unordered: bool = False
) -> Convert:
    """Return the reader of a list, set, frozenset or tuple of any length; ``unordered`` takes a real set too."""

    def convert(value: object) -> object:
        items = items_in(value, expected, unordered)
        if not element.passthrough:
            items = convert_items(items, repeat(element.convert), expected, value)
        try:
            return items if type(items) is make and items is not value else make(items)
        except TypeError as error:
            raise ColumnValueError.of(expected, value, str(error)) from error

    return convert


def tuple_convert(elements: Sequence[Rule], expected: str) -> Convert:
    """Return the reader of a tuple of a fixed length, each place with its own rule."""
    converts = [rule.convert for rule in elements]

    def convert(value: object) -> object:
        items = list(items_in(value, expected))
        if len(items) != len(elements):
            raise ColumnValueError.of(expected, value, f"{len(elements)} items needed, {len(items)} found")
        return tuple(convert_items(items, converts, expected, value))

    return convert


def dict_convert(key: Rule, element: Rule, expected: str) -> Convert:
    """Return the reader of a dict. Where two keys become one, the last counts."""
    if key.passthrough and element.passthrough:
        return lambda value: dict(mapping_in(value, expected))

    def convert(value: object) -> object:
        converted: dict[object, object] = {}
        for name, held in mapping_in(value, expected).items():
            try:
                converted[key.convert(name)] = element.convert(held)
            except ColumnValueError as error:
                raise error.inside(f"key {name!r:.40}", expected, value) from None
            except TypeError as error:
                raise ColumnValueError.of(expected, value, str(error)) from error
        return converted

    return convert
