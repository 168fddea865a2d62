"""Plain numbers with their units, read exactly and without sympy: what most answers are.

Owns the reading of ``$1,234.50``, ``3/4``, ``1\\frac{1}{2}``, ``6.7e-5``, ``60%`` and ``5 miles per hour``
and the comparison of two of them. Everything else is a formula: see :mod:`builtin_rewards.reading.formulas`.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, replace
from fractions import Fraction

MAX_DIGITS = 1_000
"""A number of more digits is not read."""
MAX_POWER_OF_TEN = 400
"""A number with a larger power of ten is not read."""

Dimensions = tuple[tuple[str, int], ...]

_INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff\u00ad\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_VULGAR = {"½": "1/2", "⅓": "1/3", "⅔": "2/3", "¼": "1/4", "¾": "3/4", "⅕": "1/5", "⅛": "1/8"}
_SIGNS_TEXT = """
\u00d7 \\times \u00b7 \\cdot \u22c5 \\cdot \u00f7 \\div \u03c0 \\pi \u221e \\infty \u2264 \\le \u2265 \\ge \u2260 \\ne
\u222a \\cup \u2229 \\cap \u2208 \\in \u2205 \\emptyset \u00b1 \\pm \u00b0 ^\\circ
"""
_SIGNS = _SIGNS_TEXT.split()
_FOLDED: dict[int, str] = {
    **{code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},
    **dict.fromkeys(map(ord, "\u00a0\u2007\u2009\u200a\u202f\u3000"), " "),
    **dict.fromkeys(map(ord, "\u2212\u2010\u2011\u2012\u2013\ufe63"), "-"),
    **{ord(sign): f" {written}" for sign, written in _VULGAR.items()},
    **{ord(sign): f"{command} " for sign, command in zip(_SIGNS[::2], _SIGNS[1::2], strict=True)},
    **dict(zip(map(ord, "\u2044\u2019\u3002"), "/'.", strict=True)),
}
_SMALL = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻₀₁₂₃₄₅₆₇₈₉", "0123456789-0123456789")
_RAISED, _LOWERED = re.compile("⁻?[⁰¹²³⁴⁵⁶⁷⁸⁹]+"), re.compile("[₀₁₂₃₄₅₆₇₈₉]+")
_ROOT = re.compile("√\\s*(?:\\(([^()]*)\\)|(\\d+|[a-z]))")
_TEXT_GROUP = re.compile(
    r"\\(?:text|mbox|mathrm|textbf|textrm|textit|mathbf|mathit|operatorname|underline|bm|boldsymbol)\s*\{([^{}]*)\}"
)
_COLOUR = re.compile(r"\\(?:text)?color\s*\{[^{}]*\}")
_BRACED = re.compile(r"\{([^{}]*)\}")
_THOUSANDS_SPACE = re.compile(r",\\!\s*")
_DELIMITER = re.compile(r"(?<!\\)\\[()\[\]]")
_SPACING = re.compile(r"(?<!\\)\\[,;: ]|~|\\q?quad\b|\\displaystyle\b")
_SIDES = re.compile(r"\\(?:left|right|[bB]igg?[lr]?)(?=[^A-Za-z])")
_DEGREES = re.compile(r"\^\s*\{?\s*\\circ\s*\}?|\\degrees?\b")
_FRACTION_NAMES = re.compile(r"\\[dtc]frac(?![A-Za-z])")


def in_latex(text: str) -> str:
    """Gives the text with full-width forms and the usual mathematical signs in ASCII or LaTeX.

    Digits of other scripts, and letters that only look alike, stay what they are.
    """
    if text.isascii():
        return text
    text = _RAISED.sub(lambda run: f"^{{{run[0].translate(_SMALL)}}}", text)
    text = _LOWERED.sub(lambda run: f"_{{{run[0].translate(_SMALL)}}}", text)
    return _ROOT.sub(lambda root: f"\\sqrt{{{root[1] or root[2]}}}", text).translate(_FOLDED)


def clean(text: str) -> str:
    """Gives an answer without what does not change it: delimiters, markdown, spacing commands, the full stop.

    Invisible characters go at its ends only: within it they make it unreadable, for what is shown would not be
    what is compared.
    """
    if not text.isascii():
        text = in_latex(text.strip(_INVISIBLE + " \t\r\n"))
    text = text.strip(" \t\r\n*`").rstrip(".,;: \t\r\n*`")
    if "\\" in text or "{,}" in text:
        text = _without_commands(text)
    if "US$" in text:
        text = text.replace("US$", "$")
    dollars = text.count("$")
    if dollars and dollars % 2 == 0:
        text = text.replace("$", "")
    return text.replace("\0", "$").strip(" \t\r\n*`").rstrip(".,;: \t\r\n*`")


def _without_commands(text: str) -> str:
    text = text.replace("\0", " ").replace("\\$", "\0")
    text = _THOUSANDS_SPACE.sub(",", text).replace("{,}", ",").replace("\\!", "").replace("\\%", "%")
    text = _SPACING.sub(" ", _DELIMITER.sub(" ", text))
    text = _SIDES.sub("", text)
    if "color" in text:
        text = _COLOUR.sub("", text).strip()
        if (braced := _BRACED.fullmatch(text)) is not None:
            text = braced[1]
    text = _TEXT_GROUP.sub(r" \1 ", text)
    text = _DEGREES.sub(" degrees ", text)
    return _FRACTION_NAMES.sub(r"\\frac", text)


@dataclass(frozen=True, slots=True)
class Unit:
    """What a number counts.

    Attributes:
        scale: How many base units it is; 1 for a noun.
        dimensions: Powers of the base units, sorted; empty for a noun, such as apples.
        words: The noun's words without their endings; empty for a unit of the table.
        money: The scale of the currency in a rate (``dollars per day``); ``None`` for all else.
    """

    scale: Fraction
    dimensions: Dimensions
    words: frozenset[str] = frozenset()
    money: Fraction | None = None


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number as it is written.

    Attributes:
        value: The number, exactly; 60 for ``60%``.
        unit: What it counts; ``None`` where nothing is said.
        percent: Whether a percent sign or word follows.
        places: Digits after the point; ``None`` for a fraction.
    """

    value: Fraction
    unit: Unit | None = None
    percent: bool = False
    places: int | None = 0


# One unit a line: dimension, power, scale, its names; plurals in -s are made.
_TABLE = """
length 1 1 m meter metre
length 1 1/100 cm centimeter centimetre
length 1 1/1000 mm millimeter millimetre
length 1 1000 km kilometer kilometre
length 1 127/5000 inch inches in
length 1 381/1250 ft foot feet
length 1 1143/1250 yd yard
length 1 201168/125 mi mile
length 3 1/1000 l liter litre
length 3 1/1000000 ml milliliter millilitre
mass 1 1 g gram
mass 1 1/1000 mg milligram
mass 1 1000 kg kilogram kilo
mass 1 45359237/100000 lb lbs pound
mass 1 45359237/1600000 oz ounce
time 1 1 s sec second
time 1 60 min minute
time 1 3600 h hr hour
time 1 86400 day
time 1 604800 week
month 1 1 month
month 1 12 year yr
dollar 1 1 dollar usd buck
dollar 1 1/100 cent penny pennies
euro 1 1 euro eur
sterling 1 1 gbp
yen 1 1 yen jpy
rupee 1 1 rupee inr
angle 1 1 degree deg
celsius 1 1 celsius degc
fahrenheit 1 1 fahrenheit degf
gallon 1 1 gallon gal
gallon 1 1/4 quart
gallon 1 1/8 pint
"""
_MONEY = {"$": "dollar", "€": "euro", "£": "gbp", "¥": "yen", "₹": "rupee"}
_SPEEDS = {"mph": ("mile", "hour"), "kmh": ("km", "hour"), "kph": ("km", "hour")}
_CURRENCIES = ("dollar", "euro", "sterling", "yen", "rupee")


def _units() -> dict[str, Unit]:
    units: dict[str, Unit] = {}
    for line in _TABLE.strip().splitlines():
        dimension, power, scale, *names = line.split()
        unit = Unit(Fraction(scale), ((dimension, int(power)),))
        for name in names:
            units[name] = unit
            if len(name) > 2:
                units.setdefault(f"{name}s", unit)
    for name, (over, under) in _SPEEDS.items():
        units[name] = _times(units[over], units[under], -1)
    return units


def _times(one: Unit, other: Unit, power: int) -> Unit:
    """One unit times a power of another."""
    powers = dict(one.dimensions)
    for name, given in other.dimensions:
        powers[name] = powers.get(name, 0) + given * power
    kept = tuple(sorted((name, given) for name, given in powers.items() if given))
    return Unit(one.scale * other.scale**power, kept)


_UNITS = _units()
_STERLING = (("sterling", 1),)
_NO_NOUN_TEXT = """
a about after all also altogether an and are as at away because before but by each every for from had has
have how however if in instead into is it left less long longer more now of old older on only or out over
per remaining since so such tall taller than that the then there thus to together total under until was
we were when where which while who wide will with would not
"""
_NO_NOUN = frozenset(_NO_NOUN_TEXT.split())
# With these behind it, a number is part of a formula, or in doubt.
_NO_UNIT_TEXT = """
pi sqrt sin cos tan cot sec csc log ln exp infty cdot cup cap pm i e mod choose plus minus factorial
doubled tripled halved squared cubed or not isn't wasn't nor either maybe perhaps but except incorrect wrong false
never rejected discarded dismissed ruled
"""
_NO_UNIT = frozenset(_NO_UNIT_TEXT.split())

_DIGITS = r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d{1,3}(?: \d{3})+(?![\d.,/])|\d{1,2}(?:,\d{2})+,\d{3}(?!\d)|\d+)"
NUMBER = rf"(?:{_DIGITS}(?:\.\d+|\.(?!\d))?|\.\d+)"
_PART = r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?|-?\d+(?:\.\d+)?"
_TIMES_TEN = r"10\s*(?:\^|\*\*)\s*(?:\{\s*(?P<t1>[+-]?\d+)\s*\}|\(?(?P<t2>[+-]?\d+)\)?)"
_QUANTITY = re.compile(
    r"(?P<sign>[+-]?)\s*(?:(?P<money>[$€£¥₹])\s*(?P<inner>-?))?\s*"
    rf"(?:(?P<whole>\d+)?\s*\\frac\s*(?:\{{\s*(?P<n1>{_PART})\s*\}}|(?P<n2>\d))"
    rf"\s*(?:\{{\s*(?P<d1>{_PART})\s*\}}|(?P<d2>\d))"
    r"|(?P<mixed>\d+) +(?P<mn>\d+) ?/ ?(?P<md>\d+)"
    rf"|(?:(?P<mantissa>{NUMBER})\s*(?:\\times|\\cdot|\*|x)\s*)?{_TIMES_TEN}"
    rf"|(?P<number>{NUMBER})(?: ?/ ?(?P<under>\d+(?:\.\d+)?(?![\d.,]\d))|[eE](?P<e>[+-]?\d+))?)",
    re.ASCII,
)
CHANGES_NUMBER = (
    r"\b(?:more|less|fewer|greater|larger|smaller|higher|lower|bigger|older|younger|longer|shorter|taller) than"
    r"|\bat (?:least|most)|\b(?:under|over|below|above|beyond|is up to|are up to)"
    r"|\b(?:twice|thrice|double|triple|times|half|root|negative|minus)"
    r"|\b(?:plus|(?:divided|multiplied) by|to the power(?: of)?|modulo|choose)|(?:%|\bpercent)\s+of"
    r"|\b(?:half|thirds?|quarters?|square|cube|root|logarithm|factorial|opposite|inverse|reciprocal) of"
    r"|(?<![<\w/])\w{1,3}\s?(?:[<>]=?|[\u2264\u2265]|\\[lg]eq?\b)"
)
"""A pattern of the words before a number that make it another one or a bound."""

_PERCENT = re.compile(r"\s*(?:%|percent\b|per cent\b|pct\b)(?:\s*age)?", re.IGNORECASE)
_ORDINAL = re.compile(r"(?:\^\s*\{?\s*)?(?:st|nd|rd|th)\b\s*\}?")
_MAGNITUDE = re.compile(
    r"\s*(?:(hundred|thousand|million|billion|trillion|dozen)s?"
    r"|[ -](halve|third|fifth|sixth|seventh|eighth|ninth|tenth)s)\b",
    re.IGNORECASE,
)
_MAGNITUDES = {"hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12, "dozen": 12}
_WORD = re.compile(r"[ \t\r\n-]*([A-Za-z]+)(?:\.(?=[ ,/]|$))?")
_SINGLE = re.compile(
    r"[ \t\r\n-]*(?:(?P<before>square|sq|cubic|cu)\b\.?[ -]*)?(?P<degrees>degrees?\s*(?=(?:celsius|fahrenheit|C|F)\b))?"
    r"(?P<name>[A-Za-z]+)(?:\.(?=[ ,/]|$))?"
    r"(?:\s*(?:(?:\^|\*\*)\s*\{?\s*(?P<power>-?\d)\s*\}?|(?P<behind>squared|cubed)\b))?",
    re.ASCII | re.IGNORECASE,
)
_PER = re.compile(r"\s*(?:/|\bper\b|\ban?\b(?=\s))\s*")
_APPROXIMATELY = re.compile(
    r"(?:\\approx|approximately|approx\.?|about|around|roughly|exactly|≈|~|=|a total of)\s*", re.IGNORECASE
)


@functools.lru_cache(maxsize=512)
def read_quantity(text: str, *, attached: bool = False) -> Quantity | None:
    """Reads a cleaned answer that is one number, with or without a unit; ``None`` for anything else.

    Args:
        text: The answer, as :func:`clean` gives it.
        attached: Whether one letter right after the number is a unit (``5m``) and not algebra.
    """
    text = _in_digits(text) if text[:1].isalpha() else text
    found = match_quantity(text)
    return _with_unit(found[0], text[found[1] :], attached) if found else None


_ONES_TEXT = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
eighteen nineteen
"""
_TENS_TEXT = "twenty thirty forty fifty sixty seventy eighty ninety"
_ONES, _TENS = _ONES_TEXT.split(), _TENS_TEXT.split()
_SPELLED = {name: each for each, name in enumerate(_ONES)} | {name: 10 * each for each, name in enumerate(_TENS, 2)}
_BELOW_100 = rf"(?:(?:{'|'.join(_TENS)})(?:[ -](?:{'|'.join(_ONES[1:10])}))?|(?:{'|'.join(_ONES)}))\b"
_BELOW_1000 = rf"(?:{_BELOW_100} hundred\b(?: (?:and )?{_BELOW_100})?|{_BELOW_100})"
_PARTS = {"half": 2, "halve": 2, "third": 3, "quarter": 4, "fourth": 4}
_PARTS |= {name: each for each, name in enumerate(["fifth", "sixth", "seventh", "eighth", "ninth", "tenth"], 5)}
_MULTIPLIED = re.compile(rf" ?times (?:{_BELOW_1000}|an? )", re.IGNORECASE)
_FRACTION_IN_WORDS = re.compile(
    rf"(?P<sign>minus |negative )?(?P<top>a|an|{'|'.join(_ONES[1:])})[ -](?P<part>{'|'.join(_PARTS)})s?", re.IGNORECASE
)
_IN_WORDS = re.compile(
    rf"(?P<sign>minus |negative )?(?P<number>{_BELOW_1000}(?: thousand\b(?:,? (?:and )?{_BELOW_1000})?)?)"
    r"(?P<unit> (?!\w*(?:th|rd|halve|quarter|les)s$)(?:[a-z]+s|feet|inch|percent|million|billion|dozen))?",
    re.IGNORECASE,
)


def _in_digits(text: str) -> str:
    """A number in words, alone or before one noun, in digits: ``twenty-five apples`` is ``25 apples``."""
    if (fraction := _FRACTION_IN_WORDS.fullmatch(text)) is not None:
        top = _SPELLED.get(fraction["top"].lower(), 1)
        return f"{'-' if fraction['sign'] else ''}{top}/{_PARTS[fraction['part'].lower().rstrip('s')]}"
    written = _IN_WORDS.fullmatch(text)
    if written is None:
        return text
    total = part = 0
    for word in re.findall(r"[a-z]+", written["number"].lower()):
        if word == "thousand":
            total, part = 1_000 * part, 0
        else:
            part = part * 100 if word == "hundred" else part + _SPELLED.get(word, 0)
    return f"{'-' if written['sign'] else ''}{total + part}{written['unit'] or ''}"


def match_quantity(text: str) -> tuple[Quantity, int] | None:
    """Gives the number that a text begins with, its currency sign included, and where it ends."""
    approximately = _APPROXIMATELY.match(text)
    match = _QUANTITY.match(text, approximately.end() if approximately else 0)
    if match is None or match.end() - match.start() > MAX_DIGITS or (value := _value(match)) is None:
        return None
    negative = (match["sign"] == "-") != (match["inner"] == "-")
    unit = _UNITS[_MONEY[match["money"]]] if match["money"] else None
    return Quantity(-value if negative else value, unit, places=_places(match)), match.end()


def _value(match: re.Match[str]) -> Fraction | None:
    top, bottom = match["mn"] or match["n1"] or match["n2"], match["md"] or match["d1"] or match["d2"] or match["under"]
    power = match["e"] or match["t1"] or match["t2"] or "0"
    if len(power) > 5 or abs(int(power)) > MAX_POWER_OF_TEN:
        return None
    number = top or match["number"] or match["mantissa"] or "1"
    under = _decimal(bottom or "1")
    if not under:
        return None
    return _decimal(number) / under * Fraction(10) ** int(power) + int(match["mixed"] or match["whole"] or 0)


def _decimal(text: str) -> Fraction:
    return Fraction(text.replace(",", "").replace(" ", "").rstrip("."))


def _places(match: re.Match[str]) -> int | None:
    """Digits after the point; ``None`` for a fraction."""
    if match["n1"] or match["n2"] or match["mn"] or match["under"]:
        return None
    return len((match["number"] or match["mantissa"] or "").partition(".")[2])


def _with_unit(quantity: Quantity, rest: str, attached: bool) -> Quantity | None:
    """The quantity with what the rest says of it; ``None`` where the rest is not a unit but more of a formula."""
    value, unit, percent = quantity.value, quantity.unit, False
    if rest == "$":
        return replace(quantity, unit=_UNITS["dollar"])
    if _MULTIPLIED.match(rest):
        return None
    if match := _PERCENT.match(rest):
        percent = True
    elif match := _MAGNITUDE.match(rest):
        value = value * _MAGNITUDES[match[1].lower()] if match[1] else value / _PARTS[match[2].lower()]
    else:
        match = _ORDINAL.match(rest)
    rest = rest[match.end() :] if match else rest
    if rest[:1] == "/" and unit is not None:
        rest = f" per {rest[1:]}"
    named, rest = read_unit(rest, attached=attached)
    if (named is None and rest[:1].isalpha()) or not harmless(rest):
        return None
    return Quantity(value, unit or named, percent, quantity.places)


_ODD = re.compile(r"^[!'\"]|[^A-Za-z .,;:'\"!()-]")
_LONE_LETTER = re.compile(r"(?:^|[ (])(?!a\b|A\b|I\b)[A-Za-z](?![A-Za-z.'])")


def harmless(rest: str) -> bool:
    """Whether what stands after number and unit is words only, and no words of mathematics or denial."""
    if _ODD.search(rest) or _LONE_LETTER.search(rest):
        return False
    return _NO_UNIT.isdisjoint(re.findall(r"[a-z']+", rest.lower()))


def read_unit(text: str, *, attached: bool = False) -> tuple[Unit | None, str]:
    """Reads the unit that a text begins with, and gives the rest.

    Compound units (``miles per hour``, ``m/s^2``, ``square feet``) are read; a noun that is not in the table is a
    unit of its own, by its words.
    """
    over, rest = _single(text, attached)
    if over is None:
        return _noun(text)
    unit = over
    while (per := _PER.match(rest)) is not None:
        under, after = _single(" " + rest[per.end() :], True)
        if under is None:
            break
        unit, rest = _times(unit, under, -1), after
    money = over.scale if unit is not over and over.dimensions[0][0] in _CURRENCIES else None
    return replace(unit, money=money), rest


def _single(text: str, attached: bool) -> tuple[Unit | None, str]:
    found = _SINGLE.match(text)
    if found is None:
        return None, text
    rest = text[found.end() :]
    name = f"deg{found['name'][0].lower()}" if found["degrees"] else found["name"].lower()
    unit = None if name == "in" and _WORD.match(rest.lstrip(".")) else _UNITS.get(name)
    if unit is None or (len(name) == 1 and not attached and not text[:1].isspace()):
        return None, text
    raised = (found["before"] or found["behind"] or "").lower()
    power = int(found["power"] or (2 if raised.startswith("s") else 3 if raised else 1))
    return _times(Unit(Fraction(1), ()), unit, power), rest


def _noun(text: str) -> tuple[Unit | None, str]:
    """A noun of at most four words; a unit of the table among them is the unit."""
    words: list[str] = []
    rest = text
    while len(words) < 4 and (word := _WORD.match(rest)) is not None and (words or not text[:1].isalpha()):
        name = word[1].lower()
        if name in _NO_NOUN or name in _NO_UNIT or len(name) == 1:
            break
        unit, after = _single(rest, False)
        if unit is not None and len(name) > 1:
            return unit, after
        words.append(name.rstrip("seiy") or name)
        rest = rest[word.end() :]
    return (Unit(Fraction(1), (), frozenset(words)), rest) if words else (None, text)


def factor_between(gold: Unit | None, given: Unit | None) -> Fraction | None:
    """What the given number is to be multiplied by to be in the gold's unit; ``None`` where the units do not agree.

    A unit that only one side has changes nothing.
    """
    if gold is None or given is None or gold == given:
        return Fraction(1)
    if gold.words or given.words:
        return Fraction(1) if gold.words & given.words else None
    wanted, had = gold.dimensions, given.dimensions
    if given.money is not None and gold.money is None and wanted[0] in had:
        # "$18 per day" answers "$18": the question says per what.
        return given.money / gold.scale
    if wanted == _STERLING and given == _UNITS["pound"]:
        return Fraction(1)
    return given.scale / gold.scale if wanted == had else None


_OPERATION = re.compile(
    r"[+*/^!|√]|-\s*[({]?\s*-|(?<=[\w)}\].])\s*-|\\(?!(?:overline|bar|dot|text|in|approx|left|right)(?![A-Za-z]))[A-Za-z]"
    r"|(?<![A-Za-z])(?:sqrt|root|log|ln|exp|sin|cos|tan|choose|mod|plus|minus|times|squared|cubed)(?![A-Za-z])"
    r"|[)}\]\d]\s*\(|\)\s*\d|\d\s*[xX]\s*\d"
)


def has_operation(text: str) -> bool:
    """Whether a formula has something in it that is to be worked out yet: ``17*23``, ``2^{10}``, ``\\sqrt{4}``.

    It is asked of what :func:`read_quantity` does not read: fractions, mixed numbers, percentages and scientific
    notation are numbers, and no operations.
    """
    return _OPERATION.search(text) is not None


MIN_PLACES = 6
"""A decimal of fewer places does not stand for a fraction that has no finite decimal."""


def readings(gold: Quantity, given: Quantity) -> tuple[Fraction, ...]:
    """Gives what a number may say in the gold's unit; nothing where the units do not agree.

    ``x%`` is ``x / 100``, and no number with another unit. Where one side has the sign and the gold is above 1, it is x
    itself as well, for questions for a percentage have golds of either kind: the gold 60 pays ``60%``, and the gold 1
    ``100%`` alone.
    """
    factor = factor_between(gold.unit, given.unit)
    if factor is None or (gold.percent != given.percent and (given if gold.percent else gold).unit is not None):
        return ()
    value = given.value * factor
    if gold.percent == given.percent:
        return (value,)
    scaled = value / 100 if given.percent else value * 100
    return (value, scaled) if abs(gold.value) > 1 else (scaled,)


def same_quantity(gold: Quantity, given: Quantity) -> bool:
    """Whether two numbers with their units are the same.

    Exactly so, save that a decimal of six places and six digits or more stands for the fraction it approximates.
    """
    values = readings(gold, given)
    if gold.value in values:
        return True
    return len(values) == 1 and (_rounded(gold, given, values[0]) or _rounded(given, gold, values[0]))


def _rounded(decimal: Quantity, fraction: Quantity, value: Fraction) -> bool:
    """Whether the one is a long decimal that rounds or cuts off the other, a fraction without a finite decimal."""
    if decimal.places is None or fraction.places is not None or decimal.places < MIN_PLACES:
        return False
    if decimal.unit is not None and fraction.unit is not None and value not in (decimal.value, fraction.value):
        return False
    step = Fraction(1, 10**decimal.places)
    precise = abs(decimal.value) >= step * 10 ** (MIN_PLACES - 1)
    return precise and abs(decimal.value - fraction.value) < step and (fraction.value / step).denominator != 1
