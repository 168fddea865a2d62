"""JSON as data holds it: each key once, each number finite.

Python's reader keeps the last of two equal keys, makes infinity of ``1e999`` and takes ``NaN``, so a row would not
hold what its author wrote. Rollouts, data sets and tables of cases are read here.
"""

from __future__ import annotations

import contextlib
import json
import math
import sys
from collections.abc import Callable
from typing import Any, NoReturn


class _NumberError(ValueError):
    """A number is not JSON, or is too large."""


class _TwiceError(ValueError):
    """An object has a key twice."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise _TwiceError(f"key {next(name for name in names if names.count(name) > 1)!r} stands there twice")
    return found


def _no_constant(name: str) -> NoReturn:
    raise _NumberError(f"{name} is not a JSON number; write null")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _NumberError(f"{text[:40]} is too large for a number; write it as text")
    return number


DECODER = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite, object_pairs_hook=_unique)
"""Reads a part of a text too; its errors do not name the key of a wrong number."""


def decode(text: str) -> Any:
    """Return the value in a text.

    Raises:
        json.JSONDecodeError: It is not JSON.
        ValueError: A key stands twice, or a number is not finite or too long; names the key.
        RecursionError: It is nested too deep.
    """
    try:
        return DECODER.decode(text)
    except (json.JSONDecodeError, _TwiceError):
        raise
    except ValueError as wrong:
        digits = f"an integer of more than {sys.get_int_max_str_digits():,} digits is too long; write it as text"
        said = str(wrong) if isinstance(wrong, _NumberError) else digits
        key = _key_of_odd_number(text)
        raise ValueError(f"{said}{'' if key is None else f' (key {key!r})'}") from None


def told(wrong: ValueError) -> str:
    """Return the words for what :func:`decode` raised: only what is no JSON is called that."""
    return f"not JSON: {wrong.msg} at column {wrong.colno}" if isinstance(wrong, json.JSONDecodeError) else str(wrong)


def _key_of_odd_number(text: str) -> str | None:
    """Return the key of the first number that cannot be read; ``None`` where it has none."""
    odd, keys = object(), list[str]()

    def holds_odd(value: object) -> bool:
        return value is odd or (isinstance(value, list) and any(map(holds_odd, value)))

    def search(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys.extend(key for key, value in pairs if holds_odd(value))
        return dict(pairs)

    def tried(read: Callable[[str], object]) -> Callable[[str], Any]:
        def number(digits: str) -> object:
            try:
                return read(digits)
            except ValueError:
                return odd

        return number

    with contextlib.suppress(ValueError):
        json.JSONDecoder(
            parse_constant=tried(_no_constant),
            parse_float=tried(_finite),
            parse_int=tried(int),
            object_pairs_hook=search,
        ).decode(text)
    return keys[0] if keys else None
