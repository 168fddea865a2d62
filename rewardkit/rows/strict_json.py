"""JSON as data holds it: each key once, each number finite.

Python's reader keeps the last of two equal keys, makes infinity of ``1e999`` and takes ``NaN``, so a row would not
hold what its author wrote. Rollouts, data sets and tables of cases are read here.
"""

from __future__ import annotations

import json
import math
import sys
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


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _StrictError(f"{text[:40]} is too large for a number; write it as text")
    return number


DECODER = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite, object_pairs_hook=_unique)
"""Reads a part of a text too."""


def decode(text: str) -> Any:
    """Return the value in a text.

    Raises:
        json.JSONDecodeError: It is not JSON.
        ValueError: A key stands twice, or a number is not finite or too long; names it.
        RecursionError: It is nested too deep.
    """
    try:
        return DECODER.decode(text)
    except (json.JSONDecodeError, _StrictError):
        raise
    except ValueError:
        max_digits = sys.get_int_max_str_digits()
        raise ValueError(f"an integer of more than {max_digits:,} digits is too long; write it as text") from None


def reason_of(error: ValueError) -> str:
    """Return the words for what :func:`decode` raised: only what is not JSON is called "not JSON"."""
    return f"not JSON: {error.msg} at column {error.colno}" if isinstance(error, json.JSONDecodeError) else str(error)
