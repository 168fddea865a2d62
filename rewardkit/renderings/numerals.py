"""Rational numbers as text: in plain characters, in LaTeX, as decimals; and read from these."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TypeVar

Rational = TypeVar("Rational", int, Fraction)

_NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d{1,12})?|\d{1,15}(?:\.\d{1,12})?|\.\d{1,12}"
_RATIONAL = re.compile(
    rf"(?P<sign>[-+\u2212]?)\s*(?:(?P<number>{_NUMBER})"
    r"|\\[dt]?frac\s*\{\s*(?P<n1>-?\d{1,9})\s*\}\s*\{\s*(?P<d1>\d{1,9})\s*\}|\\[dt]?frac\s*(?P<n2>\d)\s*(?P<d2>\d)"
    r"|(?P<n3>\d{1,9})\s?/\s?(?P<d3>\d{1,9}))"
)
_DIGITS = 12  # places that a decimal may have


def read_rational(text: str) -> Fraction | None:
    """Return the number that a text is, ``None`` for any other text."""
    match = _RATIONAL.fullmatch(text.strip())
    if match is None:
        return None
    top = match["number"] or match["n1"] or match["n2"] or match["n3"]
    bottom = match["d1"] or match["d2"] or match["d3"] or "1"
    if not int(bottom):
        return None
    return signed(match["sign"], Fraction(top.replace(",", "")) / int(bottom))


def signed(sign: str, value: Rational) -> Rational:
    """Return a number behind a sign, which may be a minus sign of typesetters, a plus or nothing."""
    return -value if sign in ("-", "\u2212") else value


def decimal(value: Fraction) -> str | None:
    """Return a number as a decimal, ``None`` where it has no end within 12 places."""
    scaled = value * 10**_DIGITS
    if scaled.denominator != 1:
        return None
    whole, places = divmod(abs(scaled.numerator), 10**_DIGITS)
    tail = f"{places:0{_DIGITS}d}".rstrip("0")
    return f"{'-' * (value < 0)}{whole}{'.' * bool(tail)}{tail}"


def rounded(value: Fraction, places: int) -> str:
    """Return a number rounded to so many places, half of the last one upwards."""
    steps = int(abs(value) * 10**places + Fraction(1, 2))
    digits = f"{steps:0{places + 1}d}"
    return f"{'-' * (value < 0)}{digits[:-places]}.{digits[-places:]}" if places else f"{'-' * (value < 0)}{digits}"


def plain(value: Fraction) -> str:
    """Return a number in plain characters: ``-3``, ``3/4``."""
    return str(value)


def latex(value: Fraction | int, command: str = "frac") -> str:
    r"""Return a number in LaTeX: ``-3``, ``-\frac{3}{4}``."""
    if value.denominator == 1:
        return str(value)
    return f"{'-' * (value < 0)}\\{command}{{{abs(value.numerator)}}}{{{value.denominator}}}"


def coefficient(value: Fraction | int) -> str:
    """Return a factor in LaTeX as it stands before a letter, a root or a function: nothing for 1, a minus for -1."""
    return "-" * (value < 0) if abs(value) == 1 else latex(value)


def read_coefficient(text: str) -> int:
    """Return the whole number that a factor before a letter is, the inverse of :func:`coefficient`."""
    bare = text.replace(" ", "")
    return int(f"{bare}1" if bare in ("", "-", "+") else bare)


_ONES_TEXT = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
_TENS_TEXT = "twenty thirty forty fifty sixty seventy eighty ninety"
_ONES, _TENS = f"{_ONES_TEXT} seventeen eighteen nineteen".split(), _TENS_TEXT.split()


def in_english(number: int) -> str:
    """Return a whole number from 0 to 99 in words."""
    if number < len(_ONES):
        return _ONES[number]
    tens, ones = divmod(number, 10)
    return _TENS[tens - 2] + (f"-{_ONES[ones]}" if ones else "")
