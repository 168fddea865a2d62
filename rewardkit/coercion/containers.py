"""Text and real containers to lists, tuples, sets, dicts and records, each element or field coerced in turn.

A text must be a bracketed one: ``"abc"`` is no ``["abc"]``. A set is not taken for a list, since its order, and so
a reward that reads it, would differ from process to process. Records are dataclasses, NamedTuples and TypedDicts; a
field that the record does not have is left out, as pydantic does, and a TypedDict keeps it.

Arrow gives all structs of a column the same fields, and pads those that one lacks with null. So null counts as absent
where the annotation takes no None and the field may be absent; a real dict loses such keys.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, get_args, get_origin, get_type_hints

from rewardkit.coercion.literals import TextError, parse_container
from rewardkit.coercion.rule import Coercer, ColumnValueError, Convert, foreign_reason


def container_of(value: object, expected: str) -> object:
    """Return the container of a text, array or tensor, other values as they are; ColumnValueError for a bad text."""
    if isinstance(value, str):
        try:
            return parse_container(value)
        except TextError as error:
            raise ColumnValueError.of(expected, value, str(error)) from None
    if not isinstance(value, list | dict) and callable(getattr(type(value), "tolist", None)):
        items: object = value.tolist()  # type: ignore[attr-defined]
        return items
    return value


def wrong_kind(expected: str, value: object, item: object) -> ColumnValueError:
    """Return the error for a value that could be read, and holds something else than expected."""
    detail = f"it holds a value of type {type(item).__name__}" if isinstance(value, str) else None
    return ColumnValueError.of(expected, value, detail)


def items_in(value: object, expected: str, unordered: bool = False) -> Iterable[object]:
    """Return the elements of a sequence, or if ``unordered`` of a set, too; ColumnValueError for another kind."""
    items = container_of(value, expected)
    if isinstance(items, list | tuple) or (unordered and isinstance(items, Set)):
        return items
    if isinstance(items, Sequence) and not isinstance(items, str | bytes | bytearray | memoryview):
        return items
    raise wrong_kind(expected, value, items)


def mapping_in(value: object, expected: str) -> Mapping[Any, object]:
    """Return the mapping that a value is or has; ColumnValueError for another kind."""
    items = container_of(value, expected)
    if isinstance(items, Mapping):
        return items
    raise wrong_kind(expected, value, items)


def collect(converted: Iterable[object], expected: str, value: object) -> list[object]:
    """Return elements that are converted as they are taken; an error names the element's place, from 0."""
    collected: list[object] = []
    try:
        for element in converted:
            collected.append(element)
    except ColumnValueError as error:
        raise error.inside(f"item {len(collected)}", expected, value) from None
    return collected


def items_convert(
    make: Callable[[Iterable[object]], object], element: Coercer, expected: str, unordered: bool = False
) -> Convert:
    """Return the reader of a list, set, frozenset or tuple of any length; ``unordered`` takes a real set too."""

    def convert(value: object) -> object:
        items = items_in(value, expected, unordered)
        if not element.passthrough:
            items = collect(map(element.convert, items), expected, value)
        try:
            return items if type(items) is make and items is not value else make(items)  # never the row's own
        except TypeError as error:
            raise ColumnValueError.of(expected, value, str(error)) from error

    return convert


def tuple_convert(elements: Sequence[Coercer], expected: str) -> Convert:
    """Return the reader of a tuple of a fixed length, each place with its own coercer."""
    converts = [coercer.convert for coercer in elements]

    def convert(value: object) -> object:
        items = list(items_in(value, expected))
        if len(items) != len(elements):
            raise ColumnValueError.of(expected, value, f"{len(elements)} items needed, {len(items)} found")
        return tuple(collect(map(operator.call, converts, items), expected, value))

    return convert


def dict_convert(key: Coercer, element: Coercer, expected: str) -> Convert:
    """Return the reader of a dict. Where two keys become one, the last counts."""
    if key.passthrough and element.passthrough:
        return lambda value: dict(mapping_in(value, expected))

    def convert(value: object) -> object:
        converted: dict[object, object] = {}
        may_be_padded = isinstance(value, Mapping)  # data sets give all rows the keys of all, with None; texts do not
        for name, element_value in mapping_in(value, expected).items():
            if may_be_padded and element_value is None and not element.takes_none:
                continue
            try:
                converted[key.convert(name)] = element.convert(element_value)
            except ColumnValueError as error:
                raise error.inside(f"key {name!r:.40}", expected, value) from None
            except TypeError as error:
                raise ColumnValueError.of(expected, value, str(error)) from error
        return converted

    return convert


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of a record."""

    coercers: Mapping[str, Coercer]  # what each field must be, by name, in order
    required: frozenset[str]  # the names that have no default

    def read(self, mapping: Mapping[Any, object], expected: str, value: object) -> dict[str, object]:
        """Return the fields of ``mapping``, converted; ColumnValueError where one is missing or wrong."""
        for name in self.coercers:
            if name in self.required and name not in mapping:
                raise ColumnValueError.of(expected, value, f"field {name!r} is missing")
        converted: dict[str, object] = {}
        for name, coercer in self.coercers.items():
            if name in mapping and not self.is_padding(name, mapping[name]):
                try:
                    converted[name] = coercer.convert(mapping[name])
                except ColumnValueError as error:
                    raise error.inside(f"field {name!r}", expected, value) from None
        return converted

    def is_padding(self, name: object, value: object) -> bool:
        """Whether a field is null that takes no None and may be absent."""
        coercer = self.coercers.get(name) if isinstance(name, str) else None
        return value is None and coercer is not None and name not in self.required and not coercer.takes_none


def is_typed_dict(annotation: type) -> bool:
    """Whether it is a TypedDict, of ``typing`` or of ``typing_extensions``."""
    return issubclass(annotation, dict) and hasattr(annotation, "__total__")


def is_named_tuple(annotation: type) -> bool:
    """Whether it is a NamedTuple or a ``collections.namedtuple``."""
    return issubclass(annotation, tuple) and hasattr(annotation, "_fields")


def record_fields(annotation: type, build: Callable[[object], Coercer]) -> Fields:
    """Return the fields of a dataclass, NamedTuple or TypedDict; ``build`` returns the coercer of one's annotation.

    Raises NameError where a field's annotation names what cannot be found from the class's module.
    """
    hints: dict[str, Any] = get_type_hints(annotation, include_extras=True)
    required: set[str]
    if is_typed_dict(annotation):
        hints, required = _typed_dict_hints(annotation, hints)
    elif is_named_tuple(annotation):
        names: tuple[str, ...] = annotation._fields  # type: ignore[attr-defined]
        required = set(names) - set(annotation._field_defaults)  # type: ignore[attr-defined]
        hints = {name: hints.get(name, Any) for name in names}
    else:
        fields = [field for field in dataclasses.fields(annotation) if field.init]
        missing = dataclasses.MISSING
        required = {field.name for field in fields if field.default is missing and field.default_factory is missing}
        hints = {field.name: hints[field.name] for field in fields}
    return Fields({name: build(hint) for name, hint in hints.items()}, frozenset(required))


def _typed_dict_hints(annotation: type, hints: dict[str, Any]) -> tuple[dict[str, Any], set[str]]:
    """Return the hints without Required, NotRequired and ReadOnly, and the required names.

    ``__required_keys__`` alone does not do: where annotations are strings, it does not know NotRequired.
    """
    required = set(annotation.__required_keys__)  # type: ignore[attr-defined]
    bare: dict[str, Any] = {}
    for name, hint in hints.items():
        while (mark := getattr(get_origin(hint), "_name", None)) in ("Required", "NotRequired", "ReadOnly"):
            if mark == "Required":
                required.add(name)
            elif mark == "NotRequired":
                required.discard(name)
            hint = get_args(hint)[0]
        bare[name] = hint
    return bare, required


def _make(kind: type, fields: Mapping[str, object], expected: str, value: object) -> object:
    """Return a record made of its fields; ColumnValueError where its constructor raises."""
    try:
        return kind(**fields)
    except Exception as error:  # the user's own constructor
        raise ColumnValueError.of(expected, value, foreign_reason(error)) from error


def dataclass_convert(kind: type, fields: Fields, expected: str) -> Convert:
    """Return the reader of a dataclass."""

    def convert(value: object) -> object:
        if isinstance(value, kind):
            return value
        return _make(kind, fields.read(mapping_in(value, expected), expected, value), expected, value)

    return convert


def named_tuple_convert(kind: type, fields: Fields, expected: str) -> Convert:
    """Return the reader of a NamedTuple, from a dict by name or from a list by place."""
    names = list(fields.coercers)

    def convert(value: object) -> object:
        if isinstance(value, kind):
            return value
        items = container_of(value, expected)
        if isinstance(items, list | tuple) and len(items) <= len(names):
            items = dict(zip(names, items, strict=False))
        if not isinstance(items, Mapping):
            raise wrong_kind(expected, value, items)
        return _make(kind, fields.read(items, expected, value), expected, value)

    return convert


def typed_dict_convert(fields: Fields, expected: str) -> Convert:
    """Return the reader of a dict with the fields of a TypedDict."""

    def convert(value: object) -> object:
        mapping = mapping_in(value, expected)
        rest = {name: part for name, part in mapping.items() if not fields.is_padding(name, part)}
        return {**rest, **fields.read(mapping, expected, value)}

    return convert
