"""JSON as data holds it: each key once, each number finite.

Python's reader keeps the last of two equal keys, makes infinity of ``1e999`` and takes ``NaN``, so a row would not
hold what its author wrote. Rollouts, data sets and tables of cases are read here.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from typing import Any, NoReturn


class _StrictError(ValueError):
    """A number is not JSON or too large, or an object has a key twice."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [name for name, _ in pairs]
        double = next(name for name in names if names.count(name) > 1)
        raise _StrictError(f"key {double!r} stands there twice; keep one of the two")
    return values


def _no_constant(name: str) -> NoReturn:
    raise _StrictError(f"{name} is not a JSON number; write null")


class WrittenNumber(float):
    """A number that data writes otherwise than Python does, such as 4.10 or 1e3; ``str`` of it is what stands there."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> WrittenNumber:
        """Return the number of a text."""
        number = super().__new__(cls, text)
        number.text = text
        return number

    def __str__(self) -> str:
        return self.text

    def __reduce__(self) -> tuple[type[WrittenNumber], tuple[str]]:
        return WrittenNumber, (self.text,)


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _StrictError(f"{text[:40]} is too large for a number; write it as text")
    return number


def number_of(text: str) -> float:
    """Return the number of a text, with the text where Python would write another."""
    number = float(text)
    return number if repr(number) == text else WrittenNumber(text)


def _as_written(text: str) -> float:
    _finite(text)
    return number_of(text)


DECODER = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite, object_pairs_hook=_unique)
"""Reads a part of a text too."""
_WRITTEN = json.JSONDecoder(parse_constant=_no_constant, parse_float=_as_written, object_pairs_hook=_unique)


def decode_row(text: str) -> Any:
    """Return the value in a text of a data set as :func:`decode` does, each number as it is written there."""
    return decode(text, _WRITTEN)


def encode(value: object, dump: Callable[[object], str] = json.dumps) -> str:
    """Return a value's JSON as ``dump`` writes it, with numbers as their data has them; raise what ``dump`` raises."""
    if isinstance(value, WrittenNumber):
        return value.text
    if not _has_written(value):
        return dump(value)
    if isinstance(value, dict):
        return f"{{{', '.join(f'{dump(str(key))}: {encode(item, dump)}' for key, item in value.items())}}}"
    return f"[{', '.join(encode(item, dump) for item in value)}]" if isinstance(value, list) else dump(value)


def _has_written(value: object) -> bool:
    if isinstance(value, dict | list):
        return any(map(_has_written, value.values() if isinstance(value, dict) else value))
    return isinstance(value, WrittenNumber)


def decode(text: str, decoder: json.JSONDecoder = DECODER) -> Any:
    """Return the value in a text.

    Raises:
        json.JSONDecodeError: It is not JSON.
        ValueError: A key stands twice, or a number is not finite or too long; names it.
        RecursionError: It is nested too deep.
    """
    try:
        return decoder.decode(text)
    except (json.JSONDecodeError, _StrictError):
        raise
    except ValueError:
        max_digits = sys.get_int_max_str_digits()
        raise ValueError(f"an integer of more than {max_digits:,} digits is too long; write it as text") from None


def reason_of(error: ValueError) -> str:
    """Return the words for what :func:`decode` raised: only what is not JSON is called "not JSON"."""
    return f"not JSON: {error.msg} at column {error.colno}" if isinstance(error, json.JSONDecodeError) else str(error)
