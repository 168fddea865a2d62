"""Plain numbers: whole ones, decimals, fractions and percentages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import ClassVar, Self

from rewardkit.renderings.numerals import decimal, in_english, latex, plain, read_rational, rounded
from rewardkit.renderings.writing import Writing

_PERCENT = re.compile(r"(.+?)\s*(?:\\?%|percent)")
_ROUNDED_PLACES = 2
_EXACT_PLACES = 9  # a decimal of so many places stands for its fraction


@dataclass(frozen=True, slots=True)
class PlainNumber:
    """A rational number, and whether it is written as a decimal or with a percent sign."""

    kind: ClassVar[str] = "number"

    number: Fraction  # 60 for `60%`
    is_decimal: bool = False
    is_percent: bool = False

    @classmethod
    def draw(cls, random: Random) -> Self:
        sign = random.choice((1, 1, 1, -1))
        form = random.choice(("whole", "whole", "large", "decimal", "fraction", "percent"))
        if form == "whole":
            return cls(Fraction(sign * random.randint(2, 999)))
        if form == "large":
            return cls(Fraction(sign * random.randint(1_000, 99_999) * 10 ** random.randint(0, 3)))
        if form == "percent":
            return cls(Fraction(random.randint(2, 99)), is_percent=True)
        if form == "decimal":
            places = random.randint(1, 4)
            number = random.randint(0, 99) + Fraction(random.randint(1, 10**places - 1), 10**places)
            return cls(sign * number, is_decimal=True)
        return cls(sign * _fraction(random))

    @classmethod
    def read(cls, text: str) -> Self | None:
        percent = _PERCENT.fullmatch(text.strip())
        number = read_rational(percent[1] if percent else text)
        if number is None:
            return None
        return cls(number, is_decimal="." in text and number.denominator > 1, is_percent=percent is not None)

    @property
    def text(self) -> str:
        return self._write(self.number)

    def _write(self, number: Fraction) -> str:
        digits = decimal(number) if self.is_decimal else None
        return (digits or plain(number)) + "%" * self.is_percent

    def renderings(self) -> Iterator[Writing]:
        number = self.number
        if self.is_percent:
            yield from self._percentages()
            return
        yield Writing("as the side of an equation", f"x = {latex(number)}")
        if number < 0 and number.denominator == 1:
            yield Writing("with a real minus sign", f"\u2212{plain(-number)}")
        if number.denominator == 1:
            yield from _wholes(number.numerator)
        else:
            yield from _fractions(number)

    def _percentages(self) -> Iterator[Writing]:
        digits = decimal(self.number) or plain(self.number)
        yield Writing("with LaTeX's percent sign", f"{digits}\\%")
        yield Writing("in words", f"{digits} percent")
        yield Writing("as a fraction of 100", latex(self.number / 100))
        if share := decimal(self.number / 100):
            yield Writing("as a decimal", share)

    def perturbations(self) -> Iterator[Writing]:
        number = self.number
        for name, other in _neighbours(number):
            if other != number:
                yield Writing(name, self._write(other))
        if number.denominator > 1 and len(decimal(number) or "." * 20) > len(rounded(number, _ROUNDED_PLACES)):
            yield Writing("rounded", rounded(number, _ROUNDED_PLACES) + "%" * self.is_percent)
        if not self.is_percent:
            yield from changed_structures(latex(number), number)


def _fraction(random: Random) -> Fraction:
    number = Fraction(random.randint(1, 40), random.randint(2, 24))
    return number if number.denominator > 1 else number + Fraction(1, 3)


def _wholes(number: int) -> Iterator[Writing]:
    size, minus = f"{abs(number):,}", "-" * (number < 0)
    yield Writing("with a decimal point", f"{number}.0")
    yield Writing("in text", f"\\text{{{number}}}")
    yield Writing("in bold", f"\\mathbf{{{number}}}")
    if "," in size:
        yield Writing("with commas", f"{minus}{size}")
        yield Writing("with LaTeX's commas", minus + size.replace(",", "{,}"))
        yield Writing("with thin spaces", minus + size.replace(",", "\\,"))
    digits = str(abs(number)).rstrip("0")
    if abs(number) >= 10_000:
        mantissa = digits[0] + (f".{digits[1:]}" if len(digits) > 1 else "")
        yield Writing("as a power of ten", f"{minus}{mantissa} \\times 10^{{{len(str(abs(number))) - 1}}}")
    if 0 <= number < 100:
        yield Writing("in words", in_english(number))


def _fractions(number: Fraction) -> Iterator[Writing]:
    top, bottom, minus = abs(number.numerator), number.denominator, "-" * (number < 0)
    yield Writing("as a plain fraction", f"{minus}{top}/{bottom}")
    for command in ("frac", "dfrac", "tfrac"):
        yield Writing(f"with \\{command}", latex(number, command))
    if number < 0:
        yield Writing("with the sign above", f"\\frac{{-{top}}}{{{bottom}}}")
    if max(top, bottom) < 10:
        yield Writing("without braces", f"{minus}\\frac{top}{bottom}")
    if top > bottom and number > 0:
        whole, rest = divmod(top, bottom)
        yield Writing("as a mixed number", f"{whole}\\frac{{{rest}}}{{{bottom}}}")
        yield Writing("as a plain mixed number", f"{whole} {rest}/{bottom}")
    digits = decimal(number)
    if digits is None:
        yield Writing("as a long decimal", rounded(number, _EXACT_PLACES))
        return
    yield Writing("as a decimal", digits)
    yield Writing("with a zero behind", f"{digits}0")
    if abs(number) < 1:
        yield Writing("without a zero before the point", digits.replace("0.", ".", 1))
        yield Writing("as a percentage", f"{decimal(number * 100)}\\%")


def _neighbours(number: Fraction) -> Iterator[tuple[str, Fraction]]:
    step = Fraction(1, number.denominator)
    yield "with the other sign", -number
    yield "a step more", number + step
    yield "a step less", number - step
    yield "ten times", number * 10
    yield "a tenth", number / 10
    if number:
        yield "upside down", 1 / number
    digits = str(abs(number.numerator))
    if len(digits) > 1:
        swapped = digits[:-2] + digits[-1] + digits[-2]
        yield "two digits swapped", Fraction(int(swapped) * (-1 if number < 0 else 1), number.denominator)
        yield "a digit lost", Fraction(int(digits[:-1]) * (-1 if number < 0 else 1), number.denominator)
    yield "a digit more", Fraction(int(f"{digits}7") * (-1 if number < 0 else 1), number.denominator)


def changed_structures(text: str, number: Fraction) -> Iterator[Writing]:
    """Yield formulas around a number, in LaTeX, that are another answer than the number."""
    if not number:
        return
    base = text if number > 0 and number.denominator == 1 else f"\\left({text}\\right)"
    yield Writing("a variable behind", f"{text}x")
    yield Writing("less a variable", f"{text}-x")
    yield Writing("plus a variable", f"x+{text}" if number > 0 else f"x{text}")
    yield Writing("over a variable", f"\\frac{{{text}}}{{x}}")
    yield Writing("times pi", f"{text}\\pi")
    yield Writing("times the imaginary unit", f"{text}i")
    yield Writing("with a second answer", f"{text}, {latex(number + 1)}")
    yield Writing("or a second answer", f"{text} \\text{{ or }} {latex(number + 1)}")
    yield Writing("plus or minus", f"\\pm {latex(abs(number))}")
    yield Writing("a point", f"({text}, 0)")
    yield Writing("an interval", f"[{text}, {latex(number + 1)}]")
    yield Writing("a bound", f"x > {text}")
    yield Writing("another side of the equation", f"{text} = {latex(number + 1)}")
    if number > 1:
        yield Writing("its root", f"\\sqrt{{{text}}}")
        yield Writing("squared", f"{base}^2")
    if number.denominator == 1 and number > 2:
        yield Writing("a factorial", f"{{{text}}}!")
