"""What a gold answer is: a number, a number with a unit, a letter, a word of yes and no, a JSON value, a text."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any, TypeAlias

from rewardkit.coercion.plain_json import legible
from rewardkit.renderings.quantities import Measure
from rewardkit.rows.strict_json import encode

_NUMBER = re.compile(r"[+-]?(?:\d{1,3}(?:,\d{3})+|\d{1,30})(?:\.\d{1,30})?")
_SCIENTIFIC = re.compile(r"[+-]?\d{1,30}(?:\.\d{1,30})?[eE][+-]?\d{1,2}")
_FRACTION = re.compile(r"([+-]?\d{1,30})/(\d{1,30})")
_MEASURE = re.compile(r"([$€£]?)\s?([+-]?\d[\d,]{0,30}(?:\.\d{1,30})?)\s?(%|°[CF]?|[A-Za-z][A-Za-z/^0-9]{0,20})?")
_LETTER = re.compile(r"\(?([A-Ja-j])\)?\.?")
_WORD = re.compile(r"\w")
_MORE = re.compile(r"\w|[.,]\d")  # goes on with a word or number
_AMID = re.compile(r"\d[.,]\d")  # a number that goes on over a point or a comma
_MAX_FINAL_CHARS = 200
_MAX_SHORT_CHARS = 60
_MAX_SEARCHED_CHARS = 10_000

Span: TypeAlias = tuple[int, int]  # where a part of a text begins and ends


class GoldShape(StrEnum):
    """What a gold looks like; it decides which neighbours and ways of writing it has."""

    NUMBER = "number"
    MEASURE = "measure"
    LETTER = "letter"
    TRUTH = "truth"
    JSON = "json"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Gold:
    """A row's gold answer."""

    text: str
    shape: GoldShape
    number: Fraction | None = None  # Its value where it is a number or a measure
    unit: tuple[str, str] = ("", "")  # What stands around a measure's number: before and behind

    @property
    def short(self) -> bool:
        """Whether people put it into a box, bold or a sentence: no JSON, and not more than a short line."""
        return self.shape is not GoldShape.JSON and len(self.text) <= _MAX_SHORT_CHARS and "\n" not in self.text

    def in_unit(self, number: str) -> str:
        """Return another number with what stands around the gold's own."""
        before, behind = self.unit
        space = " " if behind and f" {behind}" in self.text else ""
        return f"{before}{number}{space}{behind}"

    @property
    def key(self) -> object:
        """Equal for golds that mean the same: 1 and 1.0, 5 km and 5000 m, an object with its keys in another order."""
        if self.number is not None:
            measure = Measure.read(self.text) if self.unit[1] else None
            base = None if measure is None else (measure.number * measure.unit.scale, measure.unit.dimension)
            return base or (self.number, self.unit)
        if self.shape is GoldShape.JSON:
            return _canonical(self.text)
        return letter(self).casefold() if self.shape is GoldShape.LETTER else " ".join(self.text.casefold().split())


def gold_of(value: Any) -> Gold | None:
    """Return the gold in a column's value; ``None`` where the value holds no gold."""
    if not isinstance(value, str | int | float | list | dict):
        value = legible(value)
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if not isinstance(value, str):
        text = encode(value, functools.partial(json.dumps, ensure_ascii=False, default=legible))
        return Gold(text, GoldShape.JSON) if isinstance(value, list | dict) else _read(text)
    return _read(final_of(value))


def final_of(text: str) -> str:
    r"""Return the final answer in a text: behind the last ``####``, in the last ``\boxed{}``, else all of it."""
    if "####" in text:
        return text.rpartition("####")[2].strip()
    start = max(0, text.rfind("\\boxed{"))
    box = next(boxes_in(text[start:]), None)
    return (text if box is None else text[start:][slice(*box)]).strip()


def boxes_in(text: str) -> Iterator[Span]:
    r"""Yield the span inside each ``\boxed{}`` that is closed."""
    for opened in re.finditer(r"\\boxed\{", text):
        depth = 1
        for index in range(opened.end(), len(text)):
            depth += {"{": 1, "}": -1}.get(text[index], 0)
            if depth == 0:
                yield opened.end(), index
                break


def _read(text: str) -> Gold:
    """Return a final answer with its shape, tried from the narrowest to plain text."""
    if len(text) > _MAX_FINAL_CHARS:
        return Gold(text, GoldShape.JSON if _is_json(text) else GoldShape.TEXT)
    if text.lower() in ("yes", "no", "true", "false"):
        return Gold(text, GoldShape.TRUTH)
    if _NUMBER.fullmatch(text) or _SCIENTIFIC.fullmatch(text):
        return Gold(text, GoldShape.NUMBER, Fraction(text.replace(",", "")))
    fraction = _FRACTION.fullmatch(text)
    if fraction and int(fraction[2]):
        return Gold(text, GoldShape.NUMBER, Fraction(int(fraction[1]), int(fraction[2])))
    if _LETTER.fullmatch(text):
        return Gold(text, GoldShape.LETTER)
    measure = _MEASURE.fullmatch(text)
    if measure and (measure[1] or measure[3]):
        return Gold(text, GoldShape.MEASURE, Fraction(measure[2].replace(",", "")), (measure[1], measure[3] or ""))
    return Gold(text, GoldShape.JSON if _is_json(text) else GoldShape.TEXT)


def _is_json(text: str) -> bool:
    if text[:1] not in "[{":
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _canonical(text: str) -> str:
    """Return JSON with sorted keys and whole floats as integers; a text nested too deep as it is."""
    try:
        return json.dumps(_plain(json.loads(text)), sort_keys=True)
    except RecursionError:
        return text


def _plain(value: Any) -> Any:
    """Return a JSON value with whole floats as integers: 1.0 is written as 1."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def mentions(text: str, gold: Gold | None) -> bool:
    """Return whether a text that was not made of the gold happens to hold it as a word or number of its own."""
    if gold is None or len(text) > _MAX_SEARCHED_CHARS:
        return False
    if gold.number is not None:
        numbers = (Fraction(match.replace(",", "")) for match in _NUMBER.findall(text))
        return any(abs(number) == abs(gold.number) for number in numbers)
    tokens = re.findall(r"\w+", text.casefold())
    return " ".join(re.findall(r"\w+", gold.text.casefold())) in (tokens if len(gold.text) < 4 else " ".join(tokens))


def share_parts(gold: Gold | None, text: str) -> bool:
    """Return whether another answer has parts of the gold, so that a share of the pay may be its due."""
    if gold is None or gold.shape not in (GoldShape.JSON, GoldShape.TEXT):
        return False
    return not set(re.findall(r"\w+", gold.text.casefold())).isdisjoint(re.findall(r"\w+", text.casefold()))


def spot_of(text: str, gold: Gold) -> Span | None:
    """Return where the gold stands in a text's last line, the last place of several; ``None`` where it does not."""
    text = text.rstrip()
    start = max(text.rfind("\n") + 1, len(text) - _MAX_FINAL_CHARS)
    return max(((start + a, start + b) for a, b in places_of(text[start:], gold)), default=None)


def places_of(text: str, gold: Gold) -> list[Span]:
    """Return where the gold stands in a text as a word or number of its own, in their order."""
    places = set(_written_places(text, gold.text))
    if gold.shape is GoldShape.NUMBER:
        numbers = _NUMBER.finditer(text)
        places |= {match.span() for match in numbers if Fraction(match[0].replace(",", "")) == gold.number}
    spans: list[Span] = []
    last_end = 0  # of spans that overlap the first counts, of those that start together the longest
    for start, end in sorted(places, key=lambda span: (span[0], -span[1])):
        if start >= last_end:
            spans.append((start, end))
            last_end = end
    return spans


def _written_places(text: str, part: str) -> Iterator[Span]:
    """Yield where a part stands as a word or number of its own.

    It looks with ``find``: a pattern made of megabytes would take minutes to compile.
    """
    start = text.find(part)
    while start >= 0:
        end = start + len(part)
        is_amid_number = _AMID.match(text[max(0, start - 2) : start + 1])
        inside = _WORD.match(text[start - 1 : start]) or is_amid_number or _MORE.match(text, end)
        if not inside:
            yield start, end
        start = text.find(part, start + 1 if inside else max(end, start + 1))


def letter(gold: Gold) -> str:
    """Return a multiple choice's letter without its brackets."""
    return gold.text.strip("(). ")


def numeral(number: Fraction, like: str = "") -> str:
    """Return a number as text: whole, as a decimal where it ends, else as a fraction."""
    if number.denominator == 1 and "." not in like:
        return str(number.numerator)
    if "/" in like:
        return f"{number.numerator}/{number.denominator}"
    decimals = re.search(r"\.(\d+)", like)
    places = len(decimals[1]) if decimals else 3
    return f"{float(number):.{places}f}"


_OTHER_UNITS = {
    "%": "feet", "meters": "feet", "meter": "foot", "m": "ft", "feet": "meters", "ft": "m", "km": "miles",
    "kg": "pounds", "g": "kg", "cm": "mm", "hours": "minutes", "minutes": "hours", "s": "min", "days": "weeks",
}  # fmt: skip
_OPPOSITES = {"yes": "no", "no": "yes", "true": "false", "false": "true", "1": "0", "0": "1"}
_OTHER_SIGNS = {"$": "€", "€": "$", "£": "$"}


def in_other_unit(gold: Gold) -> str | None:
    """Return the same number in another unit; ``None`` for a gold without one."""
    before, behind = gold.unit
    if before:
        return gold.text.replace(before, _OTHER_SIGNS[before], 1)
    if not behind:
        return None
    other = _OTHER_UNITS.get(behind.lower(), "litres" if behind.lower() != "litres" else "grams")
    return gold.text[: len(gold.text) - len(behind)] + (f" {other}" if behind == "%" else other)


def other_gold(gold: Gold) -> Gold | None:
    """Return a made-up answer that is not the gold; ``None`` for JSON, of which none is made up."""
    if gold.number is not None:
        return _read(gold.in_unit(numeral(gold.number + 7, gold.text)))
    if gold.shape is GoldShape.LETTER:
        return _read(next_letter(letter(gold)))
    if gold.shape is GoldShape.TRUTH:
        opposite = _OPPOSITES[gold.text.lower()]
        return Gold(opposite.capitalize() if gold.text[:1].isupper() else opposite, GoldShape.TRUTH)
    return _read("zebra crossing") if gold.shape is GoldShape.TEXT else None


def in_words(gold: Gold, pair: tuple[str, str]) -> Gold:
    """Return a gold that is true or false in a pair of words for both; any other gold as it is."""
    if gold.shape is not GoldShape.TRUTH:
        return gold
    return Gold(pair[gold.text.lower() in ("false", "no")], GoldShape.TRUTH)


def next_letter(choice: str) -> str:
    """Return the next letter of a multiple choice of four."""
    upper = "ABCD"[("ABCD".find(choice.upper()) + 1) % 4]
    return upper if choice.isupper() else upper.lower()
