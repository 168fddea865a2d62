"""Plain numbers with units, read and compared exactly: ``$1,234.50``, ``1\\frac{1}{2}``; all else is a formula."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, replace
from fractions import Fraction

from builtin_rewards.reading.expressions import FUNCTION, FUNCTION_NAMES
from builtin_rewards.reading.normalisation import FRACTIONS

# The limits of numbers, and the places from which a decimal may stand for a fraction without a finite decimal.
MAX_DIGITS, MAX_POWER_OF_TEN, MIN_PLACES = 1_000, 400, 6

_INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff\u00ad\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_AROUND, _AT_END = " \t\r\n*`", ".,;: \t\r\n*`"
_SIGNS = "\u00d7\u00b7\u22c5\u00f7\u03c0\u221e\u2264\u2265\u2260\u222a\u2229\u2208\u2205\u00b1\u00b0"
_NAMES = r"\times \cdot \cdot \div \pi \infty \le \ge \ne \cup \cap \in \emptyset \pm ^\circ"
_FOLDED: dict[int, str] = {
    **{code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},
    **dict.fromkeys(map(ord, "\u00a0\u2007\u2009\u200a\u202f\u3000"), " "),
    **dict.fromkeys(map(ord, "\u2212\u2010\u2011\u2012\u2013\ufe63"), "-"),
    **{ord(sign): f"{command} " for sign, command in zip(_SIGNS, _NAMES.split(), strict=True)},
    **dict(zip(map(ord, "\u2044\u2019\u3002"), "/'.", strict=True)),
    **FRACTIONS,
}
_SMALL = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻₀₁₂₃₄₅₆₇₈₉", "0123456789-0123456789")
_RUN = re.compile("(⁻?[⁰¹²³⁴⁵⁶⁷⁸⁹]+)|[₀₁₂₃₄₅₆₇₈₉]+")
_ROOT = re.compile("√\\s*(?:\\(([^()]*)\\)|(\\d+|[a-z]))")  # without LaTeX
_COLOUR = r"\\(?:text)?color\s*\{[^{}]*\}"
_COMMANDS = (  # what LaTeX's commands are read as, in this order; `\0` stands for a dollar that is money
    (r"\0", " "),
    (r"\\\$", "\0"),
    (r",\\!\s*|\{,\}", ","),
    (r"\\(?:left|right|[bB]igg?[lr]?)(?=[^A-Za-z])|\\!", ""),
    (r"\\%", "%"),
    (r"(?<!\\)\\[()\[\],;: ]|~|\\q?quad\b|\\displaystyle\b", " "),
    (rf"^\s*(?:\{{\s*)?{_COLOUR}\s*(?:\{{([^{{}}]*)\}}|([^{{}}]*)\}})\s*$|{_COLOUR}", r"\1\2"),
    (r"\\(?:text(?:bf|rm|it)?|mbox|math(?:rm|bf|it)|operatorname|underline|bm|boldsymbol)\s*\{([^{}]*)\}", r" \1 "),
    (r"\^\s*\{?\s*\\circ\s*\}?|\\degrees?\b", " degrees "),
    (r"\\[dtc]frac(?![A-Za-z])", r"\\frac"),
)


def in_latex(text: str) -> str:
    """Return the text with usual mathematical signs in ASCII or LaTeX; look-alike letters and other digits stay."""
    if text.isascii():
        return text
    text = _RUN.sub(lambda run: f"{'^' if run[1] else '_'}{{{run[0].translate(_SMALL)}}}", text)
    return _ROOT.sub(lambda root: f"\\sqrt{{{root[1] or root[2]}}}", text).translate(_FOLDED)


def clean(text: str) -> str:
    """Return an answer without delimiters, markdown and full stop; invisible characters go at its ends only."""
    text = in_latex(text.strip(_INVISIBLE + _AROUND)).strip(_AROUND).rstrip(_AT_END)
    if "\\" in text or "{,}" in text:
        for command, instead in _COMMANDS:
            text = re.sub(command, instead, text)
    text = text.replace("US$", "$")
    if text.count("$") % 2 == 0:
        text = text.replace("$", "")
    return text.replace("\0", "$").strip(_AROUND).rstrip(_AT_END)


@dataclass(frozen=True, slots=True)
class Unit:
    """What a number counts."""

    scale: Fraction  # How many base units it is; 1 for a noun
    dimensions: tuple[tuple[str, int], ...]  # Powers of the base units, sorted; empty for a noun, such as apples
    stems: frozenset[str] = frozenset()  # The noun's words without their endings; empty for a unit of the table
    money: Fraction | None = None  # The scale of the currency in a rate (`dollars per day`), else `None`


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number as it is written."""

    value: Fraction  # The number, exactly; 60 for `60%`
    unit: Unit | None = None  # What it counts; `None` for a number without a unit
    percent: bool = False  # Whether a percent sign or word follows
    places: int | None = 0  # Digits after the point; `None` for a fraction


# A line is a dimension, and how many of its base unit are each of its units; what is alone has one of its own.
_TABLE = """
length 1=m,meter,metre 1/100=cm,centimeter,centimetre 1/1000=mm,millimeter,millimetre 1000=km,kilometer,kilometre
length 127/5000=inch,inches,in 381/1250=ft,foot,feet 1143/1250=yd,yard 201168/125=mi,mile
mass 1=g,gram 1/1000=mg,milligram 1000=kg,kilogram,kilo 45359237/100000=lb,lbs,pound 45359237/1600000=oz,ounce
time 1=s,sec,second 60=min,minute 3600=h,hr,hour 86400=day 604800=week
month 1=month 12=year,yr
dollar 1=dollar,usd,buck 1/100=cent,penny,pennies
gallon 1=gallon,gal 1/4=quart 1/8=pint
alone 1=euro,eur 1=gbp 1=yen,jpy 1=rupee,inr 1=degree,deg 1=celsius,degc 1=fahrenheit,degf
"""
_VOLUMES = {"l": 1000, "liter": 1000, "litre": 1000, "ml": 1, "milliliter": 1, "millilitre": 1}
_MONEY = {"$": "dollar", "€": "euro", "£": "gbp", "¥": "yen", "₹": "rupee"}
_SPEEDS = {"mph": ("mile", "hour"), "kmh": ("km", "hour"), "kph": ("km", "hour")}


def _times(unit: Unit, factor: Unit, power: int) -> Unit:
    powers = dict(unit.dimensions)
    for name, exponent in factor.dimensions:
        powers[name] = powers.get(name, 0) + exponent * power
    dimensions = tuple(sorted((name, exponent) for name, exponent in powers.items() if exponent))
    return Unit(unit.scale * factor.scale**power, dimensions)


_UNITS = {name: Unit(Fraction(scale, 10**6), (("length", 3),)) for name, scale in _VOLUMES.items()}
for _dimension, *_entries in map(str.split, _TABLE.strip().splitlines()):
    for _scale, _, _names in (entry.partition("=") for entry in _entries):
        _base_unit = _names.split(",")[0] if _dimension == "alone" else _dimension
        _UNITS |= dict.fromkeys(_names.split(","), Unit(Fraction(_scale), ((_base_unit, 1),)))
_UNITS |= {name: _times(_UNITS[over], _UNITS[under], -1) for name, (over, under) in _SPEEDS.items()}
_UNITS = {f"{name}s": unit for name, unit in _UNITS.items() if len(name) > 2} | _UNITS
_NO_NOUN_TEXT = """
a about after all also altogether an and are as at away because before but by each every for from had has
have how however if in instead into is it left less long longer more now of old older on only or out over
per remaining since so such tall taller than that the then there thus to together total under until was
we were when where which while who wide will with would not
"""
_NO_NOUN = frozenset(_NO_NOUN_TEXT.split())
# With these behind it, a number is part of a formula, or in doubt.
_NO_UNIT_TEXT = """
pi infty cdot cup cap pm i e choose plus minus factorial half zero
doubled tripled halved squared cubed or not isn't wasn't nor either maybe perhaps but except incorrect wrong false
never rejected discarded dismissed ruled
"""
_NO_UNIT = frozenset((*_NO_UNIT_TEXT.split(), *FUNCTION_NAMES))

_DIGITS = r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d{1,3}(?: \d{3})+(?![\d.,/])|\d{1,2}(?:,\d{2})+,\d{3}(?!\d)|\d+)"
NUMBER = rf"(?:{_DIGITS}(?:\.\d+|\.(?!\d))?|\.\d+)"
_PART = r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?|-?\d+(?:\.\d+)?"
_TIMES_TEN = r"10\s*(?:\^|\*\*)\s*(?:\{\s*(?P<t1>[+-]?\d+)\s*\}|\(?(?P<t2>[+-]?\d+)\)?)"
_QUANTITY = re.compile(
    r"(?:(?i:\\approx|approximately|approx\.?|about|around|roughly|exactly|≈|~|=|a total of)\s*)?"
    r"(?P<sign>[+-]?)\s*(?:(?P<money>[$€£¥₹])\s*(?P<inner>-?))?\s*"
    rf"(?:(?P<whole>\d+)?\s*\\frac\s*(?:\{{\s*(?P<n1>{_PART})\s*\}}|(?P<n2>\d))"
    rf"\s*(?:\{{\s*(?P<d1>{_PART})\s*\}}|(?P<d2>\d))"
    r"|(?P<mixed>\d+) +(?P<mn>\d+) ?/ ?(?P<md>\d+)"
    rf"|(?:(?P<mantissa>{NUMBER})\s*(?:\\times|\\cdot|\*|x)\s*)?{_TIMES_TEN}"
    rf"|(?P<number>{NUMBER})(?: ?/ ?(?P<under>\d+(?:\.\d+)?(?![\d.,]\d))|[eE](?P<e>[+-]?\d+))?)",
    re.ASCII,
)
CHANGES_NUMBER = (  # a pattern of words before a number that change it or make it a bound
    r"\b(?:more|less|fewer|greater|larger|smaller|higher|lower|bigger|older|younger|longer|shorter|taller)"
    r"(?: than(?: or equal to)?| or equal to)"
    r"|\bat (?:least|most)|\b(?:under|over|below|above|beyond|is up to|are up to|almost|nearly)"
    rf"|\b(?:twice|thrice|double|triple|times|half|root|negative|minus|{FUNCTION})"
    r"|\b(?:plus|(?:divided|multiplied|divisible) by|to the power(?: of)?|modulo|choose)|(?:%|\bpercent)\s+of"
    r"|\b(?:half|thirds?|quarters?|square|cube|root|logarithm|factorial|opposite|inverse|reciprocal|multiple) of"
    r"|(?<![<\w/])\w{1,21}[ \t]?(?:[<>]=?|[\u2264\u2265]|\\[lg]eq?\b)"
)

_MAGNITUDES = {"hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12, "dozen": 12}
_WORD = re.compile(r"[ \t\r\n-]*([A-Za-z]+)(?:\.(?=[ ,/]|$))?")
_SINGLE = re.compile(
    r"[ \t\r\n-]*(?:(?P<before>square|sq|cubic|cu)\b\.?[ -]*)?(?P<degrees>degrees?\s*(?=(?:celsius|fahrenheit|C|F)\b))?"
    r"(?P<name>[A-Za-z]+)(?:\.(?=[ ,/]|$))?"
    r"(?:\s*(?:(?:\^|\*\*)\s*\{?\s*(?P<power>-?\d)\s*\}?|(?P<behind>squared|cubed)\b))?",
    re.ASCII | re.IGNORECASE,
)
_PER = re.compile(r"\s*(?:/|\bper\b|\ban?\b(?=\s))\s*")  # also `dollars a day`

_ONES_TEXT = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
_TENS_TEXT = "twenty thirty forty fifty sixty seventy eighty ninety"
_PARTS_TEXT = "half third fourth fifth sixth seventh eighth ninth tenth"
_ONES, _TENS = f"{_ONES_TEXT} seventeen eighteen nineteen".split(), _TENS_TEXT.split()
_SPELLED = {name: n for n, name in enumerate(_ONES)} | {name: 10 * n for n, name in enumerate(_TENS, 2)}
_PARTS = {name: n for n, name in enumerate(_PARTS_TEXT.split(), 2)} | {"halve": 2, "quarter": 4}
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
    text = _in_digits(text)
    match = match_quantity(text)
    return _with_unit(match[0], text[match[1] :], attached) if match else None


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


def match_quantity(text: str) -> tuple[Quantity, int] | None:
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
    unit = _UNITS[_MONEY[match["money"]]] if match["money"] else None
    is_negative = (match["sign"] == "-") != (match["inner"] == "-")
    return Quantity(-value if is_negative else value, unit, places=places), match.end()


def _decimal(text: str) -> Fraction:
    return Fraction(text.replace(",", "").replace(" ", "").rstrip("."))


def _with_unit(quantity: Quantity, rest: str, attached: bool) -> Quantity | None:
    """Return the quantity with the unit in the rest; ``None`` where the rest is more of a formula."""
    if rest == "$":
        return replace(quantity, unit=_UNITS["dollar"])
    if _MULTIPLIED.match(rest):
        return None
    suffix, is_percent = _MARK.match(rest), False
    if suffix is not None:
        is_percent = suffix["percent"] is not None
        scale = Fraction(
            _MAGNITUDES.get((suffix["magnitude"] or "").lower(), 1), _PARTS.get((suffix["part"] or "").lower(), 1)
        )
        quantity, rest = replace(quantity, value=quantity.value * scale), rest[suffix.end() :]
    if rest[:1] == "/" and quantity.unit is not None:
        rest = f" per {rest[1:]}"
    unit, rest = read_unit(rest, attached=attached)
    joint = _MORE.match(rest) if unit and not unit.stems and not is_percent else None
    remainder = read_quantity(rest[joint.end() :]) if joint else None
    if unit and remainder and remainder.unit and remainder.unit.dimensions == unit.dimensions:
        part = remainder.value * remainder.unit.scale / unit.scale
        value = quantity.value + (-part if quantity.value < 0 else part)
        return replace(quantity, value=value, unit=unit, places=None) if 0 <= part < 1 else None
    if (unit is None and rest[:1].isalpha()) or not harmless(rest):
        return None
    return replace(quantity, unit=quantity.unit or unit, percent=is_percent)


# The text between the parts of a quantity in two units: `3 hours and 30 minutes`.
_MORE = re.compile(r"\.?(?:,? and|,)? (?=\d)")
_HARM = re.compile(  # what makes more than words of the text behind a number
    r"^[!'\"]|[^A-Za-z .,;:'\"!()-]|(?:^|[ (])(?!a\b|A\b|I\b)[A-Za-z](?![A-Za-z.'])"
    rf"|(?i:(?<![a-z'])(?:{'|'.join(_NO_UNIT)})(?![a-z'])"
    rf"|^ (?:and|to) (?:one|two|three|four|five|an? (?:{'|'.join(_PARTS)}))\b)"
)


def harmless(rest: str) -> bool:
    """Return whether the text behind a number and its unit is words without mathematics or denial."""
    return _HARM.search(rest) is None


def read_unit(text: str, *, attached: bool = False) -> tuple[Unit | None, str]:
    """Return the unit at the start of a text (also ``m/s^2`` or a noun of no table), and the rest."""
    numerator, rest = _one_unit(text, attached)
    if numerator is None:
        return _noun(text)
    unit = numerator
    while (slash := _PER.match(rest)) and (denominator := _one_unit(" " + rest[slash.end() :], True))[0] is not None:
        unit, rest = _times(unit, denominator[0], -1), denominator[1]
    money = numerator.scale if unit is not numerator and numerator.dimensions[0][0] in _MONEY.values() else None
    return replace(unit, money=money), rest


def _one_unit(text: str, attached: bool) -> tuple[Unit | None, str]:
    """Return the unit of one name, with its power, at the start of a text, and the rest; else ``None`` and the text."""
    match = _SINGLE.match(text)
    if match is None:
        return None, text
    rest = text[match.end() :]
    name = f"deg{match['name'][0].lower()}" if match["degrees"] else match["name"].lower()
    is_preposition = name == "in" and _WORD.match(rest.lstrip("."))  # else it is an inch
    unit = None if is_preposition else _UNITS.get(name)
    if unit is None or (len(name) == 1 and not attached and not text[:1].isspace()):
        return None, text
    exponent_word = (match["before"] or match["behind"] or "").lower()
    power = int(match["power"] or (2 if exponent_word.startswith("s") else 3 if exponent_word else 1))
    return _times(Unit(Fraction(1), ()), unit, power), rest


def _noun(text: str) -> tuple[Unit | None, str]:
    """Return a noun of at most four words, or the unit of the table among them, and the rest."""
    stems: list[str] = []
    rest = text
    while len(stems) < 4 and (match := _WORD.match(rest)) is not None and (stems or not text[:1].isalpha()):
        name = match[1].lower()
        if name in _NO_NOUN or name in _NO_UNIT or len(name) == 1:
            break
        unit, after = _one_unit(rest, False)
        if unit is not None and len(name) > 1:
            return unit, after
        stems.append(name.rstrip("seiy") or name)
        rest = rest[match.end() :]
    return (Unit(Fraction(1), (), frozenset(stems)), rest) if stems else (None, text)


def factor_between(gold: Unit | None, answer: Unit | None) -> Fraction | None:
    """Return the factor to the gold's unit, 1 where one side has none; ``None`` where the units differ."""
    if gold is None or answer is None or gold == answer or (gold, answer) == (_UNITS["gbp"], _UNITS["pound"]):
        return Fraction(1)
    if gold.stems or answer.stems:
        return Fraction(1) if gold.stems & answer.stems else None
    if answer.money is not None and gold.money is None and gold.dimensions[0] in answer.dimensions:
        return answer.money / gold.scale
    return answer.scale / gold.scale if gold.dimensions == answer.dimensions else None


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
    factor = factor_between(gold.unit, answer.unit)
    if factor is None or (gold.percent != answer.percent and (answer if gold.percent else gold).unit is not None):
        return ()
    value = answer.value * factor
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
    return is_precise and abs(decimal.value - fraction.value) < step and (fraction.value / step).denominator != 1
