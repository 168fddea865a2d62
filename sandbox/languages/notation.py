"""What a language's values mean where one of its types stands for several: they are read by the expected value.

A type of the expected value is all that is used of it, but for the keys of mappings: a value that differs in more is
another value. Expected values stay outside of the jails.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

_NUMBER = re.compile(r"[+-]?(?:\d{1,400}(?:\.\d{0,400})?|\.\d{1,400})(?:[eE][+-]?\d{1,3})?", re.ASCII)
_INTEGER = re.compile(r"[+-]?\d{1,400}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Notation:
    """How a language writes values that others tell apart by their types.

    Attributes:
        letters: A letter is its number, as in C and Go.
        numeric_truth: A number is true where it is not 0, as in C.
        scalars: Texts, numbers and truth are one type, as in Perl: ``""``, ``0`` and undefined are false.
        first_index: The key of a list's first item where lists and mappings are one type; ``None`` where they are two.
    """

    letters: bool = False
    numeric_truth: bool = False
    scalars: bool = False
    first_index: int | None = None

    def check(self, expected: Any) -> None:
        """Raise NotPlainError where no function of the language can return an expected value."""

    def meant(self, value: Any, expected: Any) -> Any:
        """Return a value that a function returned as one of the expected value's type, wherever it can be read so."""
        if type(value) is tuple:
            value = self._result(value, expected)
        is_list_of_one = self.scalars and type(expected) in (list, tuple) and len(expected) == 1
        if is_list_of_one and value is not None and type(value) is not list:
            value = [value]  # one result of a function that returns a list of them
        return self._meant(value, expected)

    def _meant(self, value: Any, expected: Any) -> Any:
        kind, wanted = type(value), type(expected)
        if wanted in (list, tuple):
            return self._meant_list(value, expected) if kind is list else value
        if wanted is dict:
            table = dict(enumerate(value, self.first_index)) if kind is list and self.first_index is not None else value
            return self._meant_mapping(table, expected) if type(table) is dict else value
        if wanted is bool:
            return self._meant_truth(value)
        return _meant_scalar(value, wanted) if self.scalars and kind in (bool, int, float, str) else value

    def _result(self, results: tuple[Any, ...], expected: Any) -> Any:
        """Return several results of a call, or none, as one value."""
        if type(expected) in (list, tuple):
            return list(results)
        return list(results) if self.scalars and results else next(iter(results), None)

    def _meant_list(self, value: list[Any], expected: Any) -> Any:
        missing = expected[len(value) :]
        if self.first_index == 1 and all(item is None for item in missing):  # a table does not keep them
            value = [*value, *missing]
        same_size = len(value) == len(expected)
        return [self._meant(*pair) for pair in zip(value, expected, strict=True)] if same_size else value

    def _meant_mapping(self, value: dict[Any, Any], expected: dict[Any, Any]) -> dict[Any, Any]:
        """Return a mapping with the expected one's keys where both are written alike."""
        keys = {str(key): key for key in expected} if self.scalars or self.first_index is not None else {}
        table = {}
        for key, item in value.items():
            key = keys.get(str(key), key) if type(key) in (int, float, str) else key
            table[key] = self._meant(item, expected[key]) if key in expected else item
        return table if len(table) == len(value) else value

    def _meant_truth(self, value: Any) -> Any:
        if self.scalars and (value is None or value in ("", "0", 0)):
            return False
        if self.scalars and value in (1, "1"):
            return True
        return value != 0 if self.numeric_truth and type(value) is int else value


PLAIN = Notation()
"""The notation of languages whose values have types of their own."""


def _meant_scalar(value: Any, wanted: type) -> Any:
    """Return a text as the number that it writes, or a number as the text that it is printed as."""
    if wanted is str and type(value) is not str:
        return f"{value:.15g}" if type(value) is float else str(int(value))
    if wanted in (int, float):
        return number_of(value) if type(value) is str else int(value) if type(value) is bool else value
    return value


def number_of(text: str) -> Any:
    """Return the number that a text writes, or the text."""
    if not _NUMBER.fullmatch(text):
        return text
    return int(text) if _INTEGER.fullmatch(text) else float(text)
