"""Text and real containers to list, tuple, set, frozenset and dict, each element coerced in turn.

A text must be a bracketed one: ``"abc"`` is no ``["abc"]``. A set is not taken for a list, since its order, and so
a reward that reads it, would differ from process to process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any

from rewardkit.coercion.literals import TextError, parse_container
from rewardkit.coercion.rule import ColumnValueError, Convert, Rule


def held_in(value: object, expected: str) -> object:
    """The container that a text, an array or a tensor holds; other values as they are.

    Raises:
        ColumnValueError: The text is no container.
    """
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
    """The error where ``value`` could be read, and holds something else than expected."""
    detail = f"it holds a value of type {type(held).__name__}" if isinstance(value, str) else None
    return ColumnValueError.of(expected, value, detail)


def items_in(value: object, expected: str, unordered: bool = False) -> Iterable[object]:
    """The elements of a sequence, or, if order does not matter, of a set too."""
    held = held_in(value, expected)
    if isinstance(held, list | tuple):
        return held
    if isinstance(held, Set) and unordered:
        return held
    if isinstance(held, Sequence) and not isinstance(held, str | bytes | bytearray | memoryview):
        return held
    raise wrong_kind(expected, value, held)


def mapping_in(value: object, expected: str) -> Mapping[Any, object]:
    """The mapping that a value is or holds."""
    held = held_in(value, expected)
    if isinstance(held, Mapping):
        return held
    raise wrong_kind(expected, value, held)


def convert_items(items: Iterable[object], convert: Convert, expected: str, value: object) -> list[object]:
    """Each element converted; an error names the element's place, from 0."""
    converted: list[object] = []
    try:
        for element in items:
            converted.append(convert(element))
    except ColumnValueError as error:
        raise error.inside(f"item {len(converted)}", expected, value) from None
    return converted


def items_convert(
    make: Callable[[Iterable[object]], object], element: Rule, expected: str, unordered: bool = False
) -> Convert:
    """To a list, set, frozenset or tuple of any length.

    Args:
        make: The container's type.
        element: What each element must be.
        expected: Readable name of the whole.
        unordered: Whether a real set is taken too.
    """

    def convert(value: object) -> object:
        items = items_in(value, expected, unordered)
        if not element.passthrough:
            items = convert_items(items, element.convert, expected, value)
        try:
            return items if type(items) is make and items is not value else make(items)
        except TypeError as error:
            raise ColumnValueError.of(expected, value, str(error)) from error

    return convert


def tuple_convert(elements: Sequence[Rule], expected: str) -> Convert:
    """To a tuple of a fixed length, each place with its own rule."""

    def convert(value: object) -> object:
        items = list(items_in(value, expected))
        if len(items) != len(elements):
            raise ColumnValueError.of(expected, value, f"{len(elements)} items needed, {len(items)} found")
        converted: list[object] = []
        try:
            for rule, item in zip(elements, items, strict=True):
                converted.append(rule.convert(item))
        except ColumnValueError as error:
            raise error.inside(f"item {len(converted)}", expected, value) from None
        return tuple(converted)

    return convert


def dict_convert(key: Rule, element: Rule, expected: str) -> Convert:
    """To a dict. Where two keys become one, the last counts."""
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
