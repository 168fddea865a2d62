"""Labels: text with digits that is neither number nor arithmetic, such as times and codes, each with its equality."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

MAX_CHARS = 60  # a longer text is not a label
_Parts = tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class Label:
    """A label as it is written; ``parts`` are its numbers or text, a date's month, day and year empty if unknown."""

    kind: str  # `numeral` in a base, `time`, `date`, `ratio` (which may be a time) or `code`
    parts: _Parts
    half: str = ""  # `a` or `p` of a time, for before and after noon; empty where it is open


_YEAR_TEXT = "January February March April May June July August September October November December"
_MONTHS = _YEAR_TEXT.split()
_MONTH = rf"(?:{'|'.join((*_MONTHS, *(name[:3] for name in _MONTHS), 'Sept'))})\b\.?"
_LAST_DAY = 31
_DAY = r"\d{1,2}(?:st|nd|rd|th)?\b"
_YEAR = r"(?:,?\s\d{4}\b)"
_TERM = r"\d{1,20}(?:,\d{3})*(?:\.\d+)?"
_LABEL = re.compile(
    r"(?P<numeral>0(?:[xX][0-9a-fA-F]+|[oO][0-7]+|[bB][01]+)|(?P<digits>\d[0-9A-Fa-f]*|[A-F]+[0-9A-F]+)\s?"
    r"(?:_\s?(?P<brace>\{\s?)?|\(?(?:in )?base[ -])(?P<base>\d{1,2})(?(brace)\s?\}|\)?))"
    r"|(?P<time>(?P<clock>\d{1,2}(?::\d\d){0,2})\s{0,3}(?:(?P<half>[apAP])(?:[mM]\b|\.\s?[mM]\b\.?)|o'clock\b))"
    rf"|(?P<date>\d{{4}}(?:-\d\d?-|/\d\d?/)\d\d?"
    rf"|{_MONTH}\s(?:{_DAY}{_YEAR}?|\d{{4}}\b)|{_DAY}\s(?:of\s)?{_MONTH}{_YEAR}?)"
    r"|(?P<code>(?:[0-9A-Fa-f]{1,4}:){5,7}[0-9A-Fa-f]{1,4}|(?=[0-9A-Fa-f:]*::)[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}"
    r"|[vV]?\d+(?:\.\d+){2,}(?:[-+][0-9A-Za-z.]*[0-9A-Za-z])?(?::\d+)?(?:/\d+)?|\d+(?:/\d+){2,}"
    r"|(?:\+\d{1,3}[ -]?)?\(\d{3}\)[ -]?\d{3}[ -]\d{4}|\+\d{1,3}(?:[ -]\d{2,4}){2,5}|\d+(?:-\d+)+(?:-[0-9X])?"
    r"|(?!\d+E\d+\b)\d*[A-Z]+\d[0-9A-Z]*)"
    rf"|(?P<ratio>{_TERM}(?:(?:\s?:\s?){_TERM})+)",
    re.ASCII,
)
_IN_TEXT = re.compile(rf"(?<![\w.:/^+*-])(?:{_LABEL.pattern})(?![\w:/^*+]|[.-]\d)", re.ASCII)
_RATIO_IN_WORDS = re.compile(rf"({_TERM}) (?:is )?to ({_TERM})", re.ASCII)
_BASES = {"x": 16, "o": 8, "b": 2}
# A code of so many digits is compared by them alone: how an ISBN or a telephone number is grouped says nothing.
_MANY_DIGITS = 7


@functools.lru_cache(maxsize=512)
def read_label(text: str) -> Label | None:
    """Return the label that a cleaned answer is; ``None`` for anything else."""
    if len(text) > MAX_CHARS or text.isdecimal():
        return None
    match = _LABEL.fullmatch(_RATIO_IN_WORDS.sub(r"\1:\2", text))
    if match is None or match.lastgroup is None:
        return None
    parts = _PARTS_OF[match.lastgroup](match)
    return Label(match.lastgroup, parts, (match["half"] or "").lower()) if parts else None


def labels_in(text: str, start: int = 0, end: int | None = None) -> list[tuple[int, int]]:
    """Return where the labels in a short text, or in a part of it, stand, outside of formulas."""
    return [match.span() for match in _IN_TEXT.finditer(text, start, len(text) if end is None else end)]


def label_at(text: str, index: int) -> tuple[int, int] | None:
    """Return where the label around a place begins and ends, if there is one."""
    spans = labels_in(text, max(0, index - MAX_CHARS), index + MAX_CHARS)
    return next((span for span in spans if span[0] <= index < span[1]), None)


def _numeral(match: re.Match[str]) -> _Parts:
    digits = match["digits"] or match[0][2:]
    base = int(match["base"] or _BASES[match[0][1].lower()])
    try:
        return (base, int(digits, base))
    except ValueError:
        return ()


def _terms(match: re.Match[str]) -> _Parts:
    first, *rest = (term.strip().replace(",", "") for term in (match["clock"] or match[0]).split(":"))
    return (int(first) if first.isdecimal() else first, *rest)


def _date(match: re.Match[str]) -> _Parts:
    numbers = [int(number) for number in re.findall(r"\d+", match[0])]
    if (month := re.search(r"[A-Z][a-z]{2}", match[0])) is None:
        return (*numbers[1:], numbers[0])
    day = next((number for number in numbers if number <= _LAST_DAY), "")
    year = next((number for number in numbers if number > _LAST_DAY), "")
    return ([name[:3] for name in _MONTHS].index(month[0]) + 1, day, year)


def _code(match: re.Match[str]) -> _Parts:
    code = match[0].lower().removeprefix("v")
    digits = re.sub(r"[-+() ]", "", code)
    return (digits if "." not in code and len(digits) >= _MANY_DIGITS else code,)


_PARTS_OF = {"numeral": _numeral, "time": _terms, "date": _date, "ratio": _terms, "code": _code}


def same_label(gold: Label, answer: Label) -> bool:
    """Whether two labels are the same; what a gold leaves open, such as the half of the day, any answer may fill.

    Numerals have the same base and number: ``0x1F`` is ``1F_{16}``, and not 31. Times are the same time of day:
    ``17:00`` is ``5 pm`` and not ``5:00``. Dates have the same day, month and year, in digits or words. Ratios are
    never reduced, since scores and scales are not. Codes have the same characters in any case; with seven digits or
    more the same digits in any grouping.
    """
    if "time" in (gold.kind, answer.kind):
        moment, answer_moment = _moment(gold, gold.half), _moment(answer, answer.half)
        is_half_open = not gold.half and moment == _moment(answer, "")
        return None not in (moment, answer_moment) and (moment == answer_moment or is_half_open)
    if gold.kind == answer.kind == "date":
        return all(part in ("", other) for part, other in zip(gold.parts, answer.parts, strict=True))
    return gold == answer


def bare_number(label: Label) -> int | str | None:
    """Return the number that answers a plain gold: the hour of ``5 pm``, the day of a date, a numeral in base 10."""
    first, *rest = label.parts
    if label.kind == "time":
        return first if {*rest} <= {"00"} else None
    return rest[0] if (label.kind == "numeral" and first == 10) or (label.kind == "date" and not rest[1]) else None


def _moment(label: Label, half: str) -> tuple[int, ...] | None:
    """Return the hour, minute and second of a time, or of a ratio that may be one; else ``None``."""
    first, *rest = map(str, label.parts)
    if label.kind not in ("time", "ratio") or not re.fullmatch(r"\d+(:\d\d){0,2}", ":".join((first, *rest))):
        return None
    hour, minute, second = (*map(int, (first, *rest)), 0, 0)[:3]
    if hour > (12 if half else 24) or max(minute, second) > 59:
        return None
    return (hour % 12 + 12 * (half == "p") if half else hour, minute, second)
