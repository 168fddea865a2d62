"""Values of data sets as JSON has them: what ``datasets``, Arrow, numpy and pandas made of JSON is JSON again.

These libraries read dates in JSON text as real ones, and write numbers and lists as types of their own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any

from rewardkit.coercion.moments import is_moment, is_numpy, iso_text
from rewardkit.coercion.rule import ColumnValueError
from rewardkit.coercion.scalars import is_missing, python_scalar, to_str

_MAX_WHOLE_DIGITS = 300  # a longer whole number is beyond a double's range


def _duration_text(value: timedelta) -> str:
    """Return a duration in ISO 8601, such as ``P1DT2H0M3.5S``."""
    length = abs(value)
    minutes, seconds = divmod(length.seconds, 60)
    fraction = f".{length.microseconds:06}".rstrip("0") if length.microseconds else ""
    text = f"P{length.days}DT{minutes // 60}H{minutes % 60}M{seconds}{fraction}S"
    return f"-{text}" if value < timedelta() else text


def _number_of(value: Decimal) -> int | float:
    is_whole = value.is_finite() and value.adjusted() < _MAX_WHOLE_DIGITS and value == value.to_integral_value()
    return int(value) if is_whole else float(value)


def json_default(value: object) -> Any:
    """Return a value that ``json.dumps`` does not know as one that it knows; its argument ``default``.

    Raises TypeError for what has no form in JSON, and ValueError for bytes that are not UTF-8.
    """
    if is_missing(value):
        return None
    if is_moment(value):
        return iso_text(value)
    if is_numpy(value, "timedelta64"):
        value = value.astype("timedelta64[us]").item()  # type: ignore[attr-defined]
    if isinstance(value, timedelta):
        return _duration_text(value)
    if isinstance(value, Decimal):
        return _number_of(value)
    if isinstance(value, bytes | bytearray):
        return value.decode()
    if isinstance(value, Mapping):
        return dict(value)
    scalar = python_scalar(value)
    if scalar is not value and isinstance(scalar, str | bytes | bool | int | float | None):
        return scalar
    if callable(getattr(type(value), "tolist", None)) and getattr(value, "shape", None):
        return list(value)  # type: ignore[call-overload]
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def legible(value: object) -> Any:
    """Return a value that ``json.dumps`` does not know for people to read: what JSON lacks is its ``str``."""
    try:
        return json_default(value)
    except (TypeError, ValueError):
        return str(value)


def plain_json(value: object) -> Any:
    """Return a value of a data set as JSON has it, its dates as :class:`IsoText`.

    ``nan``, ``NaT`` and ``NA`` are null, arrays and tuples lists, decimals numbers, bytes text, and durations text in
    ISO 8601. Raises TypeError for what has no form in JSON, and ValueError for bytes that are not UTF-8, and where two
    keys have one text.
    """
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return None if value != value else value
    if isinstance(value, dict):
        plain = {_key(key): plain_json(part) for key, part in value.items()}
        if len(plain) < len(value):
            raise ValueError("two keys of an object have one text")
        return plain
    if isinstance(value, list | tuple):
        return [plain_json(part) for part in value]
    plain_value = json_default(value)
    return plain_value if isinstance(plain_value, str) else plain_json(plain_value)


def _key(key: object) -> str:
    if isinstance(key, str):
        return key
    if key is None or isinstance(key, bool):
        return {None: "null", True: "true", False: "false"}[key]
    if isinstance(key, int | float):
        return str(key)
    raise TypeError(f"keys must be text, not {type(key).__name__}")


def to_text(value: object) -> str:
    """Return a whole column as text: an object or a list as JSON, anything else as :func:`to_str` has it."""
    if not isinstance(value, dict | list):
        return to_str(value)
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=json_default)
    except (TypeError, ValueError) as error:
        raise ColumnValueError.of("str", value, "not JSON") from error
