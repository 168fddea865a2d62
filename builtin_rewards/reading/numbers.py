"""Plain numbers with units, read and compared exactly: ``$1,234.50``, ``1\\frac{1}{2}``; all else is a formula."""

from __future__ import annotations

import functools
import math
import re
from dataclasses import dataclass, replace
from fractions import Fraction

from builtin_rewards.reading.expressions import FUNCTION
from builtin_rewards.reading.unit_names import MONEY, MONEY_BEHIND, NO_UNIT, is_formula, money_of
from builtin_rewards.reading.units import Unit, conversion, read_unit

# The limits of numbers, and the places from which a decimal may stand for a fraction without a finite decimal.
MAX_DIGITS, MAX_POWER_OF_TEN, MIN_PLACES = 1_000, 400, 6


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number as it is written."""

    value: Fraction  # The number, exactly; 60 for `60%`
    unit: Unit | None = None  # What it counts; `None` for a number without a unit
    percent: bool = False  # Whether a percent sign or word follows
    places: int | None = 0  # Digits after the point; `None` for a fraction


_DIGITS = r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d{1,3}(?: \d{3})+(?![\d.,/])|\d{1,2}(?:,\d{2})+,\d{3}(?!\d)|\d+)"
NUMBER = rf"(?:{_DIGITS}(?:\.\d+|\.(?!\d))?|\.\d+)"
_PART = r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?|-?\d+(?:\.\d+)?"
_TIMES_TEN = r"10\s*(?:\^|\*\*)\s*(?:\{\s*(?P<t1>[+-]?\d+)\s*\}|\(?(?P<t2>[+-]?\d+)\)?)"
_QUANTITY = re.compile(
    r"(?:(?i:\\approx|approximately|approx\.?|about|around|roughly|exactly|≈|~|=|a total of)\s*)?"
    rf"(?P<sign>[+-]?)\s*(?:(?P<money>{MONEY})\s*(?P<inner>-?))?\s*"
    rf"(?:(?P<whole>\d+)?\s*(?:(?<=\d )and )?\\frac\s*(?:\{{\s*(?P<n1>{_PART})\s*\}}|(?P<n2>\d))"
    rf"\s*(?:\{{\s*(?P<d1>{_PART})\s*\}}|(?P<d2>\d))"
    r"|(?P<mixed>\d+) +(?:and +)?(?P<mn>\d+) ?/ ?(?P<md>\d+)"
    rf"|(?:(?P<mantissa>{NUMBER})\s*(?:\\times|\\cdot|\*|x)\s*)?{_TIMES_TEN}"
    rf"|(?P<number>{NUMBER})(?: ?/ ?(?P<under>\d+(?:\.\d+)?(?![\d.,]\d))|[eE](?P<e>[+-]?\d+))?)",
    re.ASCII,
)
CHANGES_NUMBER = (  # a pattern of words before a number that change it or make it a bound
    r"\b(?:more|less|fewer|greater|larger|smaller|higher|lower|bigger|older|younger|longer|shorter|taller)"
    r"(?: than(?: or equal to)?| or equal to)"
    r"|\bat (?:least|most)|\b(?:under|over|below|above|beyond|is up to|are up to|almost|nearly|exceeds?)"
    rf"|\b(?:twice|thrice|double|triple|times|half|root|negative|minus|{FUNCTION})"
    r"|\b(?:plus|(?:divided|multiplied|divisible) by|to the power(?: of)?|modulo|choose)|(?:%|\bpercent)\s+of"
    r"|\b(?:half|thirds?|quarters?|square|cube|root|logarithm|factorial|opposite|inverse|reciprocal|multiple) of"
    r"|(?<![<\w/])\w{1,21}[ \t]?(?:[<>]=?|[\u2264\u2265]|\\[lg]eq?\b)"
)

REFERS_TO_NUMBER = (  # a pattern of words right before a number that is not the answer: `a factor of 42`, `theorem 42`
    r"\b(?:(?:(?:not|relatively|mutually) )?(?:congruent|equivalent|proportional|coprime|prime|close|adjacent) to"
    r"|an? (?:factor|divisor|power|part|fraction|share|function|prime factor|proper divisor) of|divides|divide"
    r"|on (?:the )?page|(?:see|by|from|in|using|per) (?:the )?(?:page|theorem|lemma|corollary|chapter|section|figure"
    r"|table|exercise|appendix|footnote|remark|proposition|definition)|theorem|lemma|corollary|chapter|footnote|proposition)"
)

_MAGNITUDES = {"hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12, "dozen": 12}
_MAGNITUDES |= {"lakh": 10**5, "crore": 10**7, "mil": 10**6, "bn": 10**9, "gross": 144, "ten": 10}
_OF_MONEY = {"k": 10**3, "m": 10**6, "mn": 10**6, "b": 10**9, "t": 10**12, "tn": 10**12}  # letters: `$5M`
_ONES_TEXT = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
_TENS_TEXT = "twenty thirty forty fifty sixty seventy eighty ninety"
_PARTS_TEXT = "half third fourth fifth sixth seventh eighth ninth tenth"
_ONES, _TENS = f"{_ONES_TEXT} seventeen eighteen nineteen".split(), _TENS_TEXT.split()
_SPELLED = {name: n for n, name in enumerate(_ONES)} | {name: 10 * n for n, name in enumerate(_TENS, 2)}
_PARTS = {name: n for n, name in enumerate(_PARTS_TEXT.split(), 2)} | {"halve": 2, "quarter": 4}
_PARTS |= {"twelfth": 12, "sixteenth": 16, "twentieth": 20, "hundredth": 100, "thousandth": 1000, "millionth": 10**6}
_UNDER_100 = rf"(?:(?:{'|'.join(_TENS)})(?:[ -](?:{'|'.join(_ONES[1:10])}))?|(?:{'|'.join(_ONES)}))\b"
_UNDER_1000 = rf"(?:(?:{_UNDER_100}|a) hundred\b(?: (?:and )?{_UNDER_100})?|{_UNDER_100})"
_IN_WORDS = re.compile(  # a fraction, or a number below a million
    rf"(?P<sign>minus |negative )?(?:(?:(?P<top>an?|{'|'.join(_ONES[1:])})[ -]|(?=half))(?P<part>{'|'.join(_PARTS)})s?"
    rf"|(?P<number>{_UNDER_1000}(?: thousand\b(?:,? (?:and )?{_UNDER_1000})?)?|a(?= (?:{'|'.join(_MAGNITUDES)})$))"
    r"(?P<unit> (?!\w*(?:th|rd|halve|quarter|les)s$)(?:[a-z]+s|feet|inch|percent|thousand|million|billion|dozen))?)",
    re.IGNORECASE,
)
_MARK = re.compile(
    rf"(?i:(?P<percent>\s*(?:%|percent\b|per cent\b|pct\b)(?:\s*age)?)|\s*(?P<magnitude>{'|'.join(_MAGNITUDES)})s?\b"
    rf"|[ -](?P<part>{'|'.join(_PARTS)})s\b)|(?:\^\s*\{{?\s*)?(?:st|nd|rd|th)\b\s*\}}?|"
)  # a percent sign, a magnitude, a part such as `thirds` or the ending of an ordinal behind a number, or nothing
_MULTIPLIED = re.compile(rf" ?times (?:{_UNDER_1000}|an? )", re.IGNORECASE)


@functools.lru_cache(maxsize=512)
def read_quantity(text: str, *, attached: bool = False) -> Quantity | None:
    """Return the one number, with a unit or not, that a cleaned answer is, or ``None``; ``attached`` permits ``5m``."""
    text = _in_digits(_without_primes(text) if "'" in text else text)
    match = _match_quantity(text)
    return _with_unit(match[0], text[match[1] :], attached) if match else None


_FEET = re.compile(r"([+-]?\d+)'\s*(\d+(?:\.\d+)?)(?:\"|'')")
_ARC_MINUTES = re.compile(r"(?<=degrees)\s*(\d+(?:\.\d+)?)'(?:\s*(\d+(?:\.\d+)?)(?:''|\"))?")


def _without_primes(text: str) -> str:
    """Return ``5'7"`` and ``45 degrees 30'`` with the names of their units."""
    text = _FEET.sub(r"\1 feet \2 inches", text) if _FEET.fullmatch(text) else text
    return _ARC_MINUTES.sub(lambda match: f" {match[1]} arcminutes {match[2] or 0} arcseconds", text)


def _in_digits(text: str) -> str:
    """Return a number in words, alone or before one noun, in digits: ``twenty-five apples`` is ``25 apples``."""
    match = _IN_WORDS.fullmatch(text)
    if match is None:
        return text
    sign = "-" if match["sign"] else ""
    if match["part"]:
        return f"{sign}{_SPELLED.get((match['top'] or '').lower(), 1)}/{_PARTS[match['part'].lower()]}"
    total = part = 0
    for word in re.findall(r"[a-z]+", match["number"].lower()):
        if word == "thousand":
            total, part = 1_000 * part, 0
        else:
            part = part * 100 if word == "hundred" else part + _SPELLED.get(word, word == "a")
    return f"{sign}{total + part}{match['unit'] or ''}"


def _match_quantity(text: str) -> tuple[Quantity, int] | None:
    """Return the number at the start of a text, with its currency sign, and where it ends; ``None`` without one."""
    match = _QUANTITY.match(text)
    if match is None or len(match[0]) > MAX_DIGITS:
        return None
    top, bottom = match["mn"] or match["n1"] or match["n2"], match["md"] or match["d1"] or match["d2"] or match["under"]
    number, power = match["number"] or match["mantissa"] or "1", match["e"] or match["t1"] or match["t2"] or "0"
    if len(power) > 5 or abs(int(power)) > MAX_POWER_OF_TEN or (bottom and not _decimal(bottom)):
        return None
    value = _decimal(top or number) / _decimal(bottom or "1") * Fraction(10) ** int(power)
    value += int(match["mixed"] or match["whole"] or 0)
    places = None if bottom else len(number.partition(".")[2])
    unit = Unit(((money_of(match["money"]), 1),)) if match["money"] else None
    is_negative = (match["sign"] == "-") != (match["inner"] == "-")
    return Quantity(-value if is_negative else value, unit, places=places), match.end()


def _decimal(text: str) -> Fraction:
    return Fraction(text.replace(",", "").replace(" ", "").rstrip("."))


def _with_unit(quantity: Quantity, rest: str, attached: bool) -> Quantity | None:
    """Return the quantity with the unit in the rest; ``None`` where the rest is more of a formula."""
    if _MULTIPLIED.match(rest):
        return None
    if rest == "/-":  # behind rupees
        rest = ""
    if rest.endswith(" below zero"):
        quantity, rest = replace(quantity, value=-quantity.value), rest.removesuffix(" below zero")
    quantity, rest, is_percent = _with_magnitude(quantity, rest)
    if (money := _MONEY_AFTER.match(rest)) is not None and quantity.unit is None:
        quantity, rest = replace(quantity, unit=Unit(((money_of(money[1]), 1),))), rest[money.end() :]
    if rest[:1] == "/" and quantity.unit is not None:
        rest = f" per {rest[1:]}"
    unit, rest = read_unit(rest, attached=attached)
    whole_unit = unit or quantity.unit
    if (
        whole_unit
        and whole_unit.factors
        and not is_percent
        and len(rest) <= _LONGEST_PART
        and (joint := _MORE.match(rest)) is not None
    ):
        return _joined(quantity, whole_unit, _MINUTES.sub("min", rest[joint.end() :]))
    if unit is None and (
        (rest[:1].isalpha() and rest[:1].isascii()) or rest.strip() == ")" or _MINUS.match(rest) or _is_factor(rest)
    ):
        return None
    return replace(quantity, unit=quantity.unit or unit, percent=is_percent) if harmless(rest) else None


def _with_magnitude(quantity: Quantity, rest: str) -> tuple[Quantity, str, bool]:
    """Return the number times the magnitude behind it, the rest, and whether it is a percentage."""
    suffix = _MARK.match(rest)
    if suffix is None:
        return quantity, rest, False
    letter = _MONEY_LETTER.match(rest) if quantity.unit is not None and not suffix[0] else None
    name = (letter[1] if letter else suffix["magnitude"] or "").lower()
    scale = Fraction((_OF_MONEY if letter else _MAGNITUDES).get(name, 1), _PARTS.get((suffix["part"] or "").lower(), 1))
    end = (letter or suffix).end()
    return replace(quantity, value=quantity.value * scale), rest[end:], suffix["percent"] is not None


def _joined(quantity: Quantity, unit: Unit, rest: str) -> Quantity | None:
    """Return a quantity in two units, such as ``5 ft 7 in``; ``None`` where the second is no part of the first."""
    remainder = read_quantity(rest, attached=True)
    if remainder is None or remainder.unit is None or not remainder.unit.factors:
        return None
    into = conversion(unit, remainder.unit)
    part = into.of(remainder.value) if into else 1
    value = quantity.value + (-part if quantity.value < 0 else part)
    return replace(quantity, value=value, unit=unit, places=None) if 0 <= part < 1 else None


def _is_factor(rest: str) -> bool:
    """Return whether the first word behind a number is letters of a formula; two letters only if they are all."""
    match = _FIRST_WORD.match(rest)
    return match is not None and is_formula(match[1]) and (len(match[1]) > 2 or not match[2].strip(" )."))


_MONEY_AFTER = re.compile(rf"\s*({MONEY_BEHIND})")
_MONEY_LETTER = re.compile(r"\s?(k|mn?|b|tn?)\b", re.IGNORECASE)
_FIRST_WORD = re.compile(r"[\s(]*([A-Za-z]+)(?![A-Za-z])(.*)", re.DOTALL)
_MINUS = re.compile(r"[-\u2014]|\s+-+(?:\s*$|[A-Za-z(]|\s+[A-Za-z]{1,2}\s*$)")
# The text between the parts of a quantity in two units: `3 hours and 30 minutes`; `m` is a minute behind hours.
_MORE = re.compile(r"\.?(?:,? and|,)?\s*(?=\d)")
_LONGEST_PART = 60  # characters of the second part
_MINUTES = re.compile(r"(?<=\d)\s?m$")
_FOREIGN = r"\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u0400-\u04ff\u0590-\u1cff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_HARM = re.compile(  # what makes more than words of the text behind a number
    rf"^[!'\"]|\d|[^A-Za-z{_FOREIGN} .,;:'\"!()\u2014-]| -[A-Za-z(]"
    r"|(?:^|[ (,;:\u2014])(?!a\b|A\b|I\b)[A-Za-z\u00c0-\u04ff](?![\w.'])(?!-[A-Za-z]{3})"
    rf"|(?i:(?<![a-z'])(?:{'|'.join(NO_UNIT)}|не|нет|pas|nicht|niet|não|ikke|inte)(?![a-z'])"
    rf"|^ (?:and|to) (?:one|two|three|four|five|an? (?:{'|'.join(_PARTS)}))\b"
    r"|^ (?:and|plus) (?:others?|more|up|over|beyond|counting|rising|change|above|below)\b|(?:^| )at (?:least|most)\b"
    r"|^ (?:under|below|above|over) (?:par|budget|average|zero|freezing)\b)|[不没沒错錯]|ない|ません|아니|않"
)


def harmless(rest: str) -> bool:
    """Return whether the text behind a number and its unit is words without mathematics or denial."""
    return _HARM.search(rest) is None


_OPERATION = re.compile(  # anything that is left to be worked out
    r"[+*/^!|√]|-\s*[({]?\s*-|(?<=[\w)}\].])\s*-|\\(?!(?:overline|bar|dot|text|in|approx|left|right)(?![A-Za-z]))[A-Za-z]"
    rf"|(?<![A-Za-z])(?:{FUNCTION}|root|choose|plus|minus|times|squared|cubed)(?![A-Za-z])"
    r"|[)}\]\d]\s*\(|\)\s*\d|\d\s*[xX]\s*\d"
)


def has_operation(text: str) -> bool:
    """Return whether a text has something to be worked out: ``17*23``, ``\\sqrt{4}``."""
    return _OPERATION.search(text) is not None


def readings(gold: Quantity, answer: Quantity) -> tuple[Fraction, ...]:
    """Return what a number may mean in the gold's unit; nothing where the units do not agree.

    ``x%`` is ``x / 100``, and no number with another unit. Where one side has the sign and the gold is above 1, it is x
    as well: 60 answers ``60%``, and only ``100%`` answers 1.
    """
    into = conversion(gold.unit, answer.unit)
    if into is None or (gold.percent != answer.percent and (answer if gold.percent else gold).unit is not None):
        return ()
    value = into.of(answer.value)
    if gold.percent == answer.percent:
        return (value,)
    converted = value / 100 if answer.percent else value * 100
    return (value, converted) if abs(gold.value) > 1 else (converted,)


def same_quantity(gold: Quantity, answer: Quantity) -> bool:
    """Whether two numbers with units are the same; a decimal of six places and digits stands for its fraction."""
    values = readings(gold, answer)
    if gold.value in values:
        return True
    return len(values) == 1 and (_is_rounding_of(gold, answer, values[0]) or _is_rounding_of(answer, gold, values[0]))


def _is_rounding_of(decimal: Quantity, fraction: Quantity, value: Fraction) -> bool:
    """Return whether the first is a long decimal that rounds or cuts off the other, an infinite fraction."""
    if decimal.places is None or fraction.places is not None or decimal.places < MIN_PLACES:
        return False
    if decimal.unit is not None and fraction.unit is not None and value not in (decimal.value, fraction.value):
        return False
    step = Fraction(1, 10**decimal.places)
    is_precise = abs(decimal.value) >= step * 10 ** (MIN_PLACES - 1)
    steps = fraction.value / step
    return is_precise and steps.denominator != 1 and decimal.value / step in (round(steps), math.trunc(steps))
