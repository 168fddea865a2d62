"""What one annotation means to a column's value: the coercer, the error it raises, and its place in a union."""

from __future__ import annotations

import collections.abc
import types
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypeAlias

from rewardkit.shown.text import shorten, shortened

Convert: TypeAlias = Callable[[object], object]
"""Turns a column's value into what an annotation asks for; raises :class:`ColumnValueError`."""

LISTS = (
    list,
    collections.abc.Sequence,
    collections.abc.MutableSequence,
    collections.abc.Collection,
    collections.abc.Iterable,
    collections.abc.Reversible,
)
"""The annotations that ask for a list."""

SHOWN_CHARS = 80  # the most characters of a value that a message shows


def annotation_text(annotation: object) -> str:
    """Return an annotation as its author would write it."""
    if isinstance(annotation, type) and not isinstance(annotation, types.GenericAlias):
        return annotation.__name__
    return repr(annotation).replace("typing.", "").replace("collections.abc.", "")


class ColumnValueError(ValueError):
    """A value is not what an annotation says. Internal: a runtime turns it into an outcome of cause ``coercion``.

    Attributes:
        expected: The annotation as errors name it, such as ``list[str]``.
        preview: The value's repr, at most about 80 characters of it.
        detail: Why, in a few words; ``None`` if the first two are enough.
        inner: Whether ``detail`` is about a value inside that value.
    """

    def __init__(self, expected: str, preview: str, detail: str | None = None, inner: bool = False) -> None:
        super().__init__(expected, preview, detail, inner)
        self.expected = expected
        self.preview = preview
        self.detail = detail
        self.inner = inner

    @classmethod
    def of(cls, expected: str, value: object, detail: str | None = None) -> ColumnValueError:
        """Return the error for this very value."""
        return cls(expected, shorten(value), detail)

    def inside(self, location: str, expected: str, value: object) -> ColumnValueError:
        """Return the same error as seen from the container ``value`` that has it at ``location``, as ``item 2``."""
        reason = self.detail if self.inner else str(self)
        return ColumnValueError(expected, shorten(value), f"{location}: {reason}", True)

    def seen_as(self, expected: str, value: object) -> ColumnValueError:
        """Return the same error for the wider annotation that was asked for, or the text that was read first."""
        return ColumnValueError(expected, shorten(value), self.detail, self.inner)

    def describe(self, column: str, example_index: int | None) -> str:
        """Return the whole sentence for a user; ``example_index`` counts from 0, and is ``None`` if not known."""
        where = "" if example_index is None else f" of example {example_index}"
        return f"column {column!r}{where}: {self}"

    def __str__(self) -> str:
        why = f" ({self.detail})" if self.detail else ""
        return f"expected {self.expected}, got {self.preview}{why}"


def foreign_reason(error: Exception) -> str:
    """Return what a user's constructor or validator raised, in a line."""
    return shortened(f"{type(error).__name__}: {error}", 2 * SHOWN_CHARS)


class TextOrder(IntEnum):
    """In which order a text is offered to the members of a union: the narrower first."""

    CHOICE = 0
    """Literal and Enum: only the texts they name."""
    BOOL = 1
    """At first only the words true and false; the other words as the very last resort."""
    INT = 2
    """At first only plain digits; ``4.0`` and ``1e3`` as the very last resort."""
    FLOAT = 3
    NUMBER = 4
    """Decimal, Fraction, complex."""
    OTHER = 5
    """Dates, UUID, a union within the union, and what only pydantic knows."""
    STRUCTURED = 6
    """Containers, records and models: only texts that start with a bracket."""
    STR = 7
    ANY_TEXT = 8
    """bytes and Path take every text, and would never leave one to ``str``."""


@dataclass(frozen=True, slots=True)
class Coercer:
    """Turns a column's value into what one annotation asks for. Built once, called for each row.

    Attributes:
        expected: Readable name of the annotation: ``list[str]``, ``int | None``, ``Literal['a', 'b']``.
        convert: The function that converts; unlike a call of the coercer it does not guard against deep nesting.
        order: Its turn in a union.
        passthrough: Whether every value is handed on as it is: ``Any``, ``object``, no annotation.
        doubt: Returns what of a converted value a person should look at, for ``rewardkit check``; ``None`` for nothing.
    """

    expected: str
    convert: Convert
    order: TextOrder
    passthrough: bool = False
    doubt: Callable[[Any], str | None] | None = None

    @property
    def takes_none(self) -> bool:
        """Whether the annotation has a None of its own."""
        try:
            return self.passthrough or self.convert(None) is None
        except ColumnValueError:
            return False

    def __call__(self, value: object) -> object:
        """Return the value converted to the annotation's type; raise ColumnValueError where it does not fit."""
        try:
            return self.convert(value)
        except RecursionError:
            raise ColumnValueError.of(self.expected, value, "nested too deep") from None
