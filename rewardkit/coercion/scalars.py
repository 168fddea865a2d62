"""One value to one scalar: text, numbers, bool, bytes, paths, and the choices of a Literal or an Enum.

Each ``to_*`` takes text or a real value and raises :class:`ColumnValueError`. Numpy scalars, and arrays and tensors
without a dimension, count as the Python number they hold; none of those libraries is imported for it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from itertools import chain
from pathlib import Path

from rewardkit.coercion.moments import is_moment, iso_text
from rewardkit.coercion.rule import ColumnValueError, Convert, foreign_reason

MAX_DIGITS = 4300
"""The most digits of a number in text, and the largest power of ten: Python's own default limit for ints."""

NONE_WORDS = frozenset({"", "None", "none", "null", "NULL", "Null"})
"""Texts, stripped, that stand for None where None is allowed."""

TRUE_WORDS = frozenset({"true", "1", "yes", "on", "y", "t"})
FALSE_WORDS = frozenset({"false", "0", "no", "off", "n", "f"})
"""Texts, stripped and in lower case, that stand for a bool."""

_MAX_NUMBER_CHARS = 2 * MAX_DIGITS
_DECIMAL = re.compile(r"[+-]?(?:[0-9]++(?>\.[0-9]*+)?+|\.[0-9]++)(?>[eE][+-]?[0-9]++)?+")
_INTEGER = re.compile(r"[+-]?[0-9]++")
_FRACTION = re.compile(r"([+-]?[0-9]++)/([0-9]++)")
_GROUPED = re.compile(r"(?=.*[,$€£¥%])[-+]?[$€£¥]?[-+]?[0-9]+(?:,[0-9]+)*(?:\.[0-9]+)?[%€]?")  # as people write numbers
_NOT_FINITE = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)


def python_scalar(value: object) -> object:
    """Return the Python scalar that a numpy scalar or an array without a dimension holds; other values as they are."""
    if getattr(type(value), "item", None) is not None and getattr(value, "shape", None) == ():
        return value.item()  # type: ignore[attr-defined]
    return value


def is_none_text(value: object) -> bool:
    """Whether the value is a text that stands for None."""
    return isinstance(value, str) and value.strip() in NONE_WORDS


def is_missing(value: object) -> bool:
    """Whether the value stands for None: itself, a text, or what numpy and pandas have in its place: nan, NaT, NA."""
    if value is None or isinstance(value, str):
        return value is None or is_none_text(value)
    if isinstance(value, float):
        return value != value
    kind = type(value)
    if kind.__module__.partition(".")[0] not in ("numpy", "pandas") or getattr(value, "shape", ()) != ():
        return False
    return kind.__name__ in ("NAType", "NaTType") or bool(value != value)


def to_none(value: object) -> None:
    """Return None, from None or a value that stands for it."""
    if not is_missing(value):
        raise ColumnValueError.of("None", value)


def to_str(value: object) -> str:
    """Return text as it is; a real int or float (not a bool) as Python writes it, and a Decimal with all its digits.

    A real date or time is its text in ISO 8601, midnight without a zone its date: ``datasets`` reads dates in JSON so.
    """
    if type(value) is str:
        return value
    if is_moment(value) and not is_missing(value):
        try:
            return str(iso_text(value))
        except ValueError as error:
            raise ColumnValueError.of("str", value, str(error)) from error
    value = python_scalar(value)
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise ColumnValueError.of("str", value)
    if isinstance(value, float | Decimal) and not _is_finite(value):
        raise ColumnValueError.of("str", value, "not finite")
    if isinstance(value, Decimal) and abs(value.adjusted()) > MAX_DIGITS:
        raise ColumnValueError.of("str", value, "too many digits")
    try:
        return f"{value:f}" if isinstance(value, Decimal) else str(value)
    except ValueError as error:
        raise ColumnValueError.of("str", value, "too many digits") from error


def to_int(value: object) -> int:
    """Return a whole number; ``"4.0"``, ``"1e3"`` and a real 4.0 count, a real bool does not."""
    if type(value) is int:
        return value
    if isinstance(value, str):
        return _int_of_text(value)
    value = python_scalar(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float | Decimal | Fraction):
        return _whole_number(value)
    raise ColumnValueError.of("int", value)


def to_plain_int(value: object) -> int:
    """Return the whole number of a text that has digits and perhaps a sign, and nothing else."""
    if not isinstance(value, str) or not _INTEGER.fullmatch(value.strip()):
        raise ColumnValueError.of("int", value)
    return to_int(value)


def _whole_number(value: float | Decimal | Fraction) -> int:
    """Return a finite number without a fraction as an int."""
    if not _is_finite(value):
        raise ColumnValueError.of("int", value, "not finite")
    if isinstance(value, Decimal) and value.adjusted() > MAX_DIGITS:
        raise ColumnValueError.of("int", value, "too large")
    number = int(value)
    if number != value:
        raise ColumnValueError.of("int", value, "not a whole number")
    return number


def _is_finite(value: float | Decimal | Fraction) -> bool:
    if isinstance(value, Decimal):
        return value.is_finite()  # math.isfinite takes a number beyond a float's range for infinite
    return isinstance(value, Fraction) or math.isfinite(value)  # for such a fraction it raises


def _int_of_text(value: str) -> int:
    """Return the whole number of a text, ``"1e3"`` and ``"4.0"`` among them, exactly."""
    if len(value) < 19 and value.isdigit() and value.isascii():  # by far the most frequent, and no regex
        return int(value)
    text = _number_text(value, "int")
    if _INTEGER.fullmatch(text):
        try:
            return int(text)
        except ValueError as error:
            raise ColumnValueError.of("int", value, "too many digits") from error
    number = _decimal_of(text, value, "int")
    if number != number.to_integral_value():
        raise ColumnValueError.of("int", value, "not a whole number")
    return int(number)


def _number_text(value: str, expected: str) -> str:
    """Return the stripped text; ColumnValueError where it is too long for a number."""
    text = value.strip()
    if len(text) > _MAX_NUMBER_CHARS:
        is_text = any(sign.isalpha() for sign in text[:_MAX_NUMBER_CHARS])
        raise ColumnValueError.of(expected, value, _why_no_number(text) if is_text else "too many digits")
    return text


def _why_no_number(text: str) -> str | None:
    """Return what to do about text that is a number for people and none for Python; ``None`` where nothing is known."""
    if "####" in text:
        return "a solution whose answer follows '####': take the column as str, or the answer alone into it"
    if _GROUPED.fullmatch(text):
        return "take the column as str to read signs and commas in numbers"
    return "not finite" if _NOT_FINITE.fullmatch(text) else None


def _decimal_of(text: str, value: object, expected: str) -> Decimal:
    """Return the exact number of a text; ColumnValueError where it has none, or its exponent would fill the memory."""
    if not _DECIMAL.fullmatch(text):
        raise ColumnValueError.of(expected, value, _why_no_number(text))
    try:
        number = Decimal(text)
    except ArithmeticError as error:
        raise ColumnValueError.of(expected, value, "exponent out of range") from error
    if number and abs(number.adjusted()) > MAX_DIGITS:
        raise ColumnValueError.of(expected, value, "exponent out of range")
    return number if number else Decimal(0).copy_sign(number)


def to_float(value: object) -> float:
    """Return a finite float; nan and inf are refused, since no comparison with a nan is ever true."""
    number = value if type(value) is float else _float_of(value)
    if not math.isfinite(number):
        raise ColumnValueError.of("float", value, "not finite")
    return number


def _float_of(value: object) -> float:
    """Return a number as a float, which may be infinite for a text such as ``"1e999"``."""
    if isinstance(value, str):
        text = _number_text(value, "float")
        if not _DECIMAL.fullmatch(text):
            raise ColumnValueError.of("float", value, _why_no_number(text))
        return float(text)
    value = python_scalar(value)
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | Fraction):
        raise ColumnValueError.of("float", value)
    try:
        return float(value)
    except (OverflowError, ValueError) as error:
        raise ColumnValueError.of("float", value, "too large") from error


def to_bool(value: object) -> bool:
    """Return a bool, from the words of TRUE_WORDS and FALSE_WORDS or a real 0 or 1. Any other text is refused."""
    if type(value) is bool:
        return value
    value = python_scalar(value)
    if isinstance(value, str):
        word = value.strip().lower()
        if word in TRUE_WORDS:
            return True
        if word in FALSE_WORDS:
            return False
    elif isinstance(value, int) and value in (0, 1):
        return bool(value)
    raise ColumnValueError.of("bool", value)


def to_bool_word(value: object) -> bool:
    """Return a bool from the text true or false, in any case, and nothing else."""
    word = value.strip().lower() if isinstance(value, str) else None
    if word not in ("true", "false"):
        raise ColumnValueError.of("bool", value)
    return word == "true"


def to_decimal(value: object) -> Decimal:
    """Return a finite Decimal; a real float as Python writes it, so 0.1 is 0.1."""
    value = python_scalar(value)
    if isinstance(value, str):
        return _decimal_of(_number_text(value, "Decimal"), value, "Decimal")
    if isinstance(value, float):
        value = Decimal(repr(value))
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise ColumnValueError.of("Decimal", value)
    number = Decimal(value)
    if not number.is_finite():
        raise ColumnValueError.of("Decimal", value, "not finite")
    return number


def to_fraction(value: object) -> Fraction:
    """Return the exact fraction of ``"1/3"``, a decimal number or a real one; a real float as Python writes it."""
    value = python_scalar(value)
    if isinstance(value, Fraction):
        return value
    if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
        raise ColumnValueError.of("Fraction", value)
    if isinstance(value, int):
        return Fraction(value)
    text = _number_text(value if isinstance(value, str) else str(value), "Fraction")
    parts = _FRACTION.fullmatch(text)
    if parts is None:
        return Fraction(_decimal_of(text, value, "Fraction"))
    try:
        return Fraction(int(parts[1]), int(parts[2]))
    except (ZeroDivisionError, ValueError) as error:
        reason = "division by zero" if isinstance(error, ZeroDivisionError) else "too many digits"
        raise ColumnValueError.of("Fraction", value, reason) from error


def to_complex(value: object) -> complex:
    """Return a finite complex number, in text as Python writes it: ``"1+2j"``."""
    value = python_scalar(value)
    if isinstance(value, bool) or not isinstance(value, str | int | float | complex):
        raise ColumnValueError.of("complex", value)
    text = _number_text(value, "complex") if isinstance(value, str) else ""
    if "_" in text or not text.isascii():
        raise ColumnValueError.of("complex", value)
    try:
        number = complex(text or value)
    except (ValueError, OverflowError) as error:
        raise ColumnValueError.of("complex", value) from error
    if not (math.isfinite(number.real) and math.isfinite(number.imag)):
        raise ColumnValueError.of("complex", value, "not finite")
    return number


def to_bytes(value: object) -> bytes:
    """Return bytes; of a text its UTF-8."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if not isinstance(value, str):
        raise ColumnValueError.of("bytes", value)
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise ColumnValueError.of("bytes", value, "not text that UTF-8 can hold") from error


def to_path(value: object) -> Path:
    """Return a path; the empty text is refused, as it would silently name the current folder."""
    if isinstance(value, Path):
        return value
    if not isinstance(value, str):
        raise ColumnValueError.of("Path", value)
    if not value:
        raise ColumnValueError.of("Path", value, "empty")
    return Path(value)


# Order matters: a text is read as the narrowest kind first.
_READERS: dict[type, Convert] = {
    type(None): to_none,
    bool: to_bool_word,
    int: to_int,
    float: to_float,
    bytes: to_bytes,
    str: to_str,
}


def _readers(values: Collection[object]) -> list[Convert]:
    """Return the ways to read a value that must become one of these."""
    kinds = {type(value) for value in values}
    readers = [reader for kind, reader in _READERS.items() if kind in kinds]
    readers += [enum_convert(kind) for kind in kinds if issubclass(kind, Enum)]
    return [*readers, to_bool] if bool in kinds else readers


def _readings(value: object, readers: list[Convert]) -> Iterator[object]:
    """Yield the result of each reader that accepts the value."""
    for reader in readers:
        try:
            yield reader(value)
        except ColumnValueError:
            continue


def literal_convert(choices: tuple[object, ...], expected: str) -> Convert:
    """Return the reader of a Literal's values: it takes the value itself, or a text of it, so that ``"1"`` finds 1."""
    choices_by_value = {(type(choice), choice): choice for choice in choices}
    kinds = {type(choice) for choice in choices}
    readers = _readers(choices)

    def convert(value: object) -> object:
        scalar = python_scalar(value)
        for reading in chain((scalar,), _readings(scalar, readers)):
            if type(reading) in kinds and (type(reading), reading) in choices_by_value:
                return choices_by_value[type(reading), reading]
        raise ColumnValueError.of(expected, value)

    return convert


def enum_convert(enum: type[Enum]) -> Convert:
    """Return the reader of an Enum: by value, then by name, then by a text of the value, so that ``"1"`` finds 1."""
    values: list[object] = [member.value for member in enum]
    kinds = {type(value) for value in values}
    readers = _readers(values)
    names = ", ".join(map(repr, values[:8])) + (", ..." if len(values) > 8 else "")

    def with_value(reading: object, value: object) -> Enum | None:
        """Return the member with a value that was read from ``value``; ``None`` if no member has it."""
        try:
            return enum(reading) if type(reading) in kinds else None
        except ValueError:
            return None
        except Exception as error:  # the user's own _missing_
            raise ColumnValueError.of(enum.__name__, value, foreign_reason(error)) from error

    def convert(value: object) -> object:
        if isinstance(value, enum):
            return value
        scalar = python_scalar(value)
        member = with_value(scalar, value)
        if member is None and isinstance(scalar, str):
            member = enum.__members__.get(scalar)
        if member is None:
            members = (with_value(reading, value) for reading in _readings(scalar, readers))
            member = next((candidate for candidate in members if candidate is not None), None)
        if member is None:
            raise ColumnValueError.of(enum.__name__, value, f"one of {names}")
        return member

    return convert
