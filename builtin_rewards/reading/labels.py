"""Labels: what is written with digits and is neither a number nor arithmetic, each kind with its rule of equality.

Owns numerals in a base (``0x1F``, ``52_8``), times, dates, ratios, and codes such as versions, addresses, ISBNs,
telephone and room numbers. What a gold does not state, such as the half of the day, is not asked of the answer.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, replace
from enum import StrEnum

MAX_CHARS = 60
"""A longer text is no label."""


class Kind(StrEnum):
    """What a label is, in words."""

    NUMERAL = "a numeral in a base"
    TIME = "a time"
    DATE = "a date"
    RATIO = "a ratio or time"
    CODE = "a code"


@dataclass(frozen=True, slots=True)
class Label:
    """A label as it is written.

    Attributes:
        kind: What it is.
        parts: A numeral's base and value; the hour and the rest of a time; the month, day and year of a date, empty
            where they are not given; a ratio's terms; a code's text.
        half: ``a`` or ``p`` of a time, for before noon and after it; empty where nothing is said.
    """

    kind: Kind
    parts: tuple[int | str, ...]
    half: str = ""


_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?"
    r"|Nov(?:ember)?|Dec(?:ember)?)\b\.?"
)
_LAST_DAY = 31
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAY = r"\d{1,2}(?:st|nd|rd|th)?\b"
_YEAR = r"(?:,?\s\d{4}\b)"
_TERM = r"\d{1,20}(?:,\d{3})*(?:\.\d+)?"
_LABEL = re.compile(
    r"(?P<prefixed>0(?:[xX][0-9a-fA-F]+|[oO][0-7]+|[bB][01]+))"
    r"|(?P<digits>\d[0-9A-Fa-f]*|[A-F]+[0-9A-F]+)\s?"
    r"(?:_\s?(?:\{\s?(?P<b1>\d{1,2})\s?\}|(?P<b2>\d{1,2}))|\(?(?:in )?base[ -](?P<b3>\d{1,2})\)?)"
    r"|(?P<time>\d{1,2}(?::\d\d){0,2})\s?(?:(?P<half>[apAP])(?:[mM]\b|\.\s?[mM]\b\.?)|o'clock\b)"
    rf"|(?P<iso>\d{{4}}(?:-\d\d?-|/\d\d?/)\d\d?)"
    rf"|(?P<date>{_MONTH}\s(?:{_DAY}{_YEAR}?|\d{{4}}\b)|{_DAY}\s(?:of\s)?{_MONTH}{_YEAR}?)"
    r"|(?P<code>(?:[0-9A-Fa-f]{1,4}:){5,7}[0-9A-Fa-f]{1,4}|(?=[0-9A-Fa-f:]*::)[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}"
    r"|[vV]?\d+(?:\.\d+){2,}(?:[-+][0-9A-Za-z.]*[0-9A-Za-z])?(?::\d+)?(?:/\d+)?|\d+(?:/\d+){2,}"
    r"|(?:\+\d{1,3}[ -]?)?\(\d{3}\)[ -]?\d{3}[ -]\d{4}|\+\d{1,3}(?:[ -]\d{2,4}){2,5}|\d+(?:-\d+)+(?:-[0-9X])?"
    r"|(?!\d+E\d+\b)\d*[A-Z]+\d[0-9A-Z]*)"
    rf"|(?P<ratio>{_TERM}(?:\s?:\s?{_TERM})+)",
    re.ASCII,
)
_IN_TEXT = re.compile(rf"(?<![\w.:/^+*-])(?:{_LABEL.pattern})(?![\w:/^*+]|[.-]\d)", re.ASCII)
_RATIO_IN_WORDS = re.compile(rf"({_TERM}) (?:is )?to ({_TERM})", re.ASCII)
_FRACTION = re.compile(r"(\d+) ?/ ?(\d+)|\\frac ?\{(\d+)\} ?\{(\d+)\}|\\frac(\d)(\d)", re.ASCII)
_BASES = {"x": 16, "o": 8, "b": 2}
_MANY_DIGITS = 7
"""A code of so many digits is compared by them alone: how an ISBN or a telephone number is grouped says nothing."""


@functools.lru_cache(maxsize=512)
def read_label(text: str) -> Label | None:
    """Reads a cleaned answer that is one label; ``None`` for anything else."""
    if len(text) > MAX_CHARS or text.isdecimal():
        return None
    if (words := _RATIO_IN_WORDS.fullmatch(text)) is not None:
        text = f"{words[1]}:{words[2]}"
    found = _LABEL.fullmatch(text)
    return _label(found) if found else None


def labels_in(text: str, start: int = 0, end: int | None = None) -> list[tuple[int, int]]:
    """Gives where the labels in a short text, or in a part of it, stand; no part of a formula is one."""
    return [found.span() for found in _IN_TEXT.finditer(text, start, len(text) if end is None else end)]


def label_at(text: str, place: int) -> tuple[int, int] | None:
    """Gives where the label that a place of a text stands in begins and ends, if it stands in one."""
    near = labels_in(text, max(0, place - MAX_CHARS), place + MAX_CHARS)
    return next((span for span in near if span[0] <= place < span[1]), None)


def _label(found: re.Match[str]) -> Label | None:
    if found["prefixed"]:
        return _numeral(found["prefixed"][2:], _BASES[found["prefixed"][1].lower()])
    if found["digits"]:
        return _numeral(found["digits"], int(found["b1"] or found["b2"] or found["b3"]))
    if found["time"]:
        return Label(Kind.TIME, _terms(found["time"]), (found["half"] or "").lower())
    if found["iso"] or found["date"]:
        return Label(Kind.DATE, _date(found["iso"] or found["date"]))
    if found["ratio"]:
        return Label(Kind.RATIO, _terms(found["ratio"]))
    code = found["code"].lower().removeprefix("v")
    digits = re.sub(r"[-+() ]", "", code)
    return Label(Kind.CODE, (digits if "." not in code and len(digits) >= _MANY_DIGITS else code,))


def _numeral(digits: str, base: int) -> Label | None:
    """What digits in a base write; ``None`` where they are no such digits."""
    try:
        return Label(Kind.NUMERAL, (base, int(digits, base))) if digits.isalnum() else None
    except ValueError:
        return None


def _terms(text: str) -> tuple[int | str, ...]:
    """The terms as they stand; a zero before the hour says nothing."""
    first, *others = (term.strip().replace(",", "") for term in text.split(":"))
    return (int(first) if first.isdecimal() else first, *others)


def _date(text: str) -> tuple[int | str, ...]:
    numbers = [int(number) for number in re.findall(r"\d+", text)]
    month = re.search(r"[A-Z][a-z]{2}", text)
    if month is None:
        year, first, second = numbers
        return (first, second, year)
    day = next((number for number in numbers if number <= _LAST_DAY), "")
    return (_MONTHS.index(month[0].lower()) + 1, day, next((number for number in numbers if number > _LAST_DAY), ""))


def same_label(gold: Label, given: Label) -> bool:
    """Whether two labels are the same.

    - Numerals: the same base and the same number. ``0x1F`` is ``0x1f`` and ``1F_{16}``, and not 31.
    - Times: the same time of day. ``17:00`` is ``5 pm``. ``5:00`` is not, for it leaves the half of the day open, but
      where the gold leaves it open, either half will do.
    - Dates: the same day, month and year, in digits (``2024-05-03``) or words (``May 3rd, 2024``). A year or a day
      that the gold leaves out may be any.
    - Ratios: the same terms in the same order, never reduced: ``2:4`` is not ``1:2``, as scores and scales are not.
    - Codes: the same signs, without regard to case; of seven digits or more the digits, however they are grouped.
    """
    if Kind.TIME in (gold.kind, given.kind):
        moments = _moment(gold), _moment(given)
        if None in moments:
            return False
        return moments[0] == moments[1] or (not gold.half and _moment(gold) == _moment(replace(given, half="")))
    if gold.kind is Kind.DATE is given.kind:
        return all(part in ("", other) for part, other in zip(gold.parts, given.parts, strict=True))
    return gold == given


def says_bare(gold: Label, text: str) -> bool:
    """Whether a text says a label without its marks: the digits of a numeral, an hour, a fraction for a ratio.

    ``52`` answers ``52_8``, for the question names the base; ``5`` answers ``5 o'clock``; ``3/4`` answers ``3:4``.
    """
    if gold.kind is Kind.NUMERAL:
        return _numeral(text, int(gold.parts[0])) == gold
    if gold.kind is Kind.TIME:
        return not gold.half and text == str(gold.parts[0]) and len(gold.parts) == 1
    return gold.kind is Kind.RATIO and as_ratio(text) == gold


def as_ratio(text: str) -> Label | None:
    """Gives the ratio of a fraction's terms as they stand."""
    terms = _FRACTION.fullmatch(text)
    return read_label(":".join(term for term in terms.groups() if term)) if terms else None


def bare_number(label: Label) -> int | None:
    """Gives the number in a label that answers a gold which is a plain number; ``None`` where there is none.

    It is the hour of ``5 pm``, the day of ``March 5``, and the number itself in base 10.
    """
    if label.kind is Kind.NUMERAL:
        return int(label.parts[1]) if label.parts[0] == 10 else None
    day = label.parts[1] if label.kind is Kind.DATE and label.parts[2] == "" else ""
    hour = label.parts[0] if label.kind is Kind.TIME and label.half and set(label.parts[1:]) <= {"00"} else ""
    return next((part for part in (day, hour) if isinstance(part, int)), None)


def _moment(label: Label) -> tuple[int, ...] | None:
    """The hour, minute and second that a time says, or terms that may be one; ``None`` for what is no time of day."""
    parts = [str(part) for part in label.parts]
    if label.kind not in (Kind.TIME, Kind.RATIO) or len(parts) > 3 or not all(map(str.isdecimal, parts)):
        return None
    hour, minute, second = (*map(int, parts), 0, 0)[:3]
    if any(len(part) != 2 for part in parts[1:]) or hour > (12 if label.half else 24) or max(minute, second) > 59:
        return None
    return (hour % 12 + 12 * (label.half == "p") if label.half else hour, minute, second)
