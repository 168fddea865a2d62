"""Numbers that count something: quantities in units of the SI, and amounts of money."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from random import Random
from typing import ClassVar, NamedTuple, Self

from rewardkit.renderings.numerals import decimal, plain, read_rational
from rewardkit.renderings.writing import Writing


class SiUnit(NamedTuple):
    """A unit: its symbol in plain characters, in LaTeX and in words, how many base units it is, and of what."""

    symbol: str
    latex: str
    name: str  # the plural; empty where people use the symbol alone
    scale: Fraction
    dimension: str


# A line is a dimension; an entry is a symbol, the scale, and a name with `_` for blanks where the unit has one.
_TABLE = r"""
length mm:1/1000:millimeters cm:1/100:centimeters m:1:meters km:1000:kilometers
mass mg:1/1000:milligrams g:1:grams kg:1000:kilograms
time s:1:seconds min:60:minutes h:3600:hours
volume mL:1/1000:milliliters L:1:liters
area cm^2:1/10000:square_centimeters m^2:1:square_meters
solid cm^3:1/1000000:cubic_centimeters m^3:1:cubic_meters
speed m/s:1:meters_per_second km/h:5/18:kilometers_per_hour
acceleration m/s^2:1:
force N:1:newtons kN:1000:kilonewtons
energy J:1:joules kJ:1000:kilojoules
power W:1:watts kW:1000:kilowatts
pressure Pa:1:pascals kPa:1000:kilopascals
voltage mV:1/1000:millivolts V:1:volts
current mA:1/1000:milliamperes A:1:amperes
frequency Hz:1:hertz kHz:1000:kilohertz MHz:1000000:megahertz
substance mmol:1/1000:millimoles mol:1:moles
molar_energy J/mol:1: kJ/mol:1000:
density kg/m^3:1: g/cm^3:1000:
"""


def _units() -> Iterator[SiUnit]:
    for dimension, *entries in map(str.split, _TABLE.strip().splitlines()):
        for symbol, scale, name in (entry.split(":") for entry in entries):
            upright = re.sub(r"([A-Za-z]+)", r"\\text{\1}", symbol)
            yield SiUnit(symbol, upright, name.replace("_", " "), Fraction(scale), dimension)


UNITS = tuple(_units())
_BY_SYMBOL = {unit.symbol: unit for unit in UNITS}
_LATEX_WORDS = re.compile(r"\\(?:text|mathrm|textrm|mbox|operatorname)\s*\{([^{}]*)\}|\\[,;: ]|~")
_MEASURE = re.compile(r"(-?[\d.,]+|-?\\[dt]?frac\{\d+\}\{\d+\}|-?\d+/\d+)\s*([A-Za-z][A-Za-z/^\d ]*)")


@dataclass(frozen=True, slots=True)
class Measure:
    """A number of units of the SI."""

    kind: ClassVar[str] = "quantity"

    number: Fraction
    unit: SiUnit

    @classmethod
    def draw(cls, random: Random) -> Self:
        number = Fraction(random.randint(2, 999), random.choice((1, 1, 1, 10, 100)))
        return cls(number, random.choice(UNITS))

    @classmethod
    def read(cls, text: str) -> Self | None:
        bare = _LATEX_WORDS.sub(lambda match: f" {match[1] or ''}", text).replace("^{", "^").replace("}", "").strip()
        match = _MEASURE.fullmatch(" ".join(bare.split()).replace(" ^", "^").replace(" /", "/").replace("/ ", "/"))
        if match is None:
            return None
        number, name = read_rational(match[1]), match[2].strip()
        names = (unit for unit in UNITS if unit.name and name.lower() in (unit.name, unit.name.removesuffix("s")))
        unit = _BY_SYMBOL.get(name) or next(names, None)
        return cls(number, unit) if unit is not None and number else None

    @property
    def text(self) -> str:
        return f"{self._digits} {self.unit.symbol}"

    @property
    def _digits(self) -> str:
        return decimal(self.number) or plain(self.number)

    def renderings(self) -> Iterator[Writing]:
        yield Writing("with its unit in text", f"{self._digits} {self.unit.latex}")
        yield Writing("with its unit in one text", f"{self._digits}\\text{{ {self.unit.symbol}}}")
        yield Writing("with an upright unit", f"{self._digits}\\,\\mathrm{{{self.unit.symbol}}}")
        yield Writing("as the side of an equation", f"x = {self._digits}\\ \\text{{{self.unit.symbol}}}")
        if self.unit.name:
            yield Writing("with its unit in words", f"{self._digits} {self.unit.name}")
            yield Writing("with its unit's words in text", f"{self._digits} \\text{{ {self.unit.name}}}")
        for unit in UNITS:
            number = decimal(self.number * self.unit.scale / unit.scale)
            if unit.dimension == self.unit.dimension and unit != self.unit and number:
                yield Writing(f"in {unit.symbol}", f"{number} {unit.symbol}")
                yield Writing(f"in {unit.symbol}, in text", f"{number}\\text{{ {unit.symbol}}}")

    def perturbations(self) -> Iterator[Writing]:
        for name, number in (("another number", self.number + 1), ("ten times", self.number * 10)):
            yield Writing(name, replace(self, number=number).text)
        yield Writing("with the other sign", replace(self, number=-self.number).text)
        others = [unit for unit in UNITS if unit != self.unit]
        siblings = [unit for unit in others if unit.dimension == self.unit.dimension]
        position = UNITS.index(self.unit)
        strangers = [unit for unit in others if unit.dimension != self.unit.dimension]
        for unit in (*siblings, strangers[position % len(strangers)], strangers[(position * 7 + 3) % len(strangers)]):
            yield Writing("another unit", replace(self, unit=unit).text)
            yield Writing("another unit, in text", f"{self._digits}\\text{{ {unit.symbol}}}")
        if self.unit.symbol.isalpha() and self.unit.symbol != "s":
            yield Writing("its unit squared", f"{self._digits}\\text{{ {self.unit.symbol}}}^2")
            yield Writing("by the second", f"{self._digits}\\text{{ {self.unit.symbol}/s}}")
        yield Writing("with a second answer", f"{self.text} or {replace(self, number=self.number + 3).text}")
        yield Writing("times a variable", f"{self._digits}x\\text{{ {self.unit.symbol}}}")


class Currency(NamedTuple):
    """A currency: its sign, the sign in LaTeX, its code and its plural in words."""

    sign: str
    latex: str
    code: str
    name: str


CURRENCIES = (
    Currency("$", "\\$", "USD", "dollars"),
    Currency("\u20ac", "\u20ac", "EUR", "euros"),
    Currency("\u00a3", "\\pounds ", "GBP", "pounds"),
    Currency("\u20b9", "\u20b9", "INR", "rupees"),
)
_MONEY = re.compile(r"(\\?\$|\u20ac|\u00a3|\u20b9)\s*(\d[\d,]*(?:\.\d{1,2})?)")


@dataclass(frozen=True, slots=True)
class Money:
    """An amount of a currency, in whole cents."""

    kind: ClassVar[str] = "money"

    amount: Fraction
    currency: Currency

    @classmethod
    def draw(cls, random: Random) -> Self:
        amount = Fraction(random.choice((random.randint(2, 999), random.randint(1_000, 99_999))))
        cents = random.choice((0, 0, Fraction(random.randint(1, 99), 100)))
        return cls(amount + cents, random.choice(CURRENCIES))

    @classmethod
    def read(cls, text: str) -> Self | None:
        match = _MONEY.fullmatch(text.strip())
        if match is None:
            return None
        amount = read_rational(match[2])
        currency = next(currency for currency in CURRENCIES if currency.sign == match[1].strip("\\"))
        return cls(amount, currency) if amount else None

    @property
    def text(self) -> str:
        return f"{self.currency.sign}{self._digits}"

    @property
    def _digits(self) -> str:
        return f"{float(self.amount):,.2f}" if self.amount.denominator > 1 else f"{self.amount.numerator:,}"

    def renderings(self) -> Iterator[Writing]:
        digits, currency = self._digits, self.currency
        yield Writing("with LaTeX's sign", f"{currency.latex}{digits}")
        yield Writing("without commas", f"{currency.sign}{digits.replace(',', '')}")
        yield Writing("with LaTeX's commas", f"{currency.latex}{digits.replace(',', '{,}')}")
        yield Writing("in words", f"{digits} {currency.name}")
        yield Writing("in words in text", f"{digits}\\text{{ {currency.name}}}")
        yield Writing("with the code behind", f"{digits} {currency.code}")
        yield Writing("with the code before", f"{currency.code} {digits}")
        if currency.sign == "\u20ac":
            yield Writing("with the sign behind", f"{digits} \u20ac")
        if self.amount.denominator == 1:
            yield Writing("with cents", f"{currency.sign}{digits}.00")

    def perturbations(self) -> Iterator[Writing]:
        for name, amount in (("another amount", self.amount + 1), ("ten times", self.amount * 10)):
            yield Writing(name, replace(self, amount=amount).text)
        yield Writing("a cent more", replace(self, amount=self.amount + Fraction(1, 100)).text)
        yield Writing("with a minus", f"-{self.text}")
        for currency in CURRENCIES:
            if currency != self.currency:
                yield Writing("another currency", replace(self, currency=currency).text)
                yield Writing("another currency's code", f"{self._digits} {currency.code}")
                yield Writing("another currency in words", f"{self._digits} {currency.name}")
        yield Writing("in meters", f"{self._digits.replace(',', '')}\\text{{ meters}}")
        yield Writing("with a second answer", f"{self.text} or {replace(self, amount=self.amount + 3).text}")
