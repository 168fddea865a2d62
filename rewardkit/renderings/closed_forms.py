"""Numbers that are no fractions: multiples of a root or of pi, perhaps with a whole number added."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isqrt
from random import Random
from typing import ClassVar, Self

from rewardkit.renderings.numerals import coefficient, latex, plain, read_rational, rounded, signed
from rewardkit.renderings.writing import Writing

_SQUARE_FREE = (2, 3, 5, 6, 7, 10, 11, 13, 14, 15)
_PI = Fraction(3_141_592_653_589_793, 10**15)
_SIGN = r"\s*(?P<sign>[-+\u2212]?)\s*"
_ROOT = re.compile(
    rf"(?:(?P<whole>-?\d{{1,6}})\s*(?=[-+]))?{_SIGN}(?P<factor>\d{{0,6}})\s*\\sqrt\s*\{{\s*(?P<under>\d{{1,6}})\s*\}}"
)
_PLAIN_ROOT = re.compile(
    rf"{_SIGN}(?P<factor>\d{{0,6}})\s*(?:\*\s*)?(?:sqrt\((?P<u1>\d{{1,6}})\)|\u221a(?P<u2>\d{{1,6}}))"
)
_MULTIPLE_OF_PI = re.compile(
    rf"{_SIGN}(?:\\[dt]?frac\s*\{{\s*(?P<factor>\d{{0,6}})\s*\\pi\s*\}}\s*\{{\s*(?P<divisor>\d{{1,6}})\s*\}}"
    r"|(?P<number>\\[dt]?frac\{\d{1,6}\}\{\d{1,6}\}|\d{0,6}(?:\.\d{1,6})?)\s*(?:\\pi|\u03c0|pi\b)(?:\s*/\s*(?P<under>\d{1,6}))?)"
)


@dataclass(frozen=True, slots=True)
class RootNumber:
    """A whole number, or none, and a multiple of the root of a number without square factors."""

    kind: ClassVar[str] = "root"

    factor: int
    under: int
    whole: int = 0

    @classmethod
    def draw(cls, random: Random) -> Self:
        factor = random.choice((1, 2, 3, 4, 5, -1, -2, -3))
        return cls(factor, random.choice(_SQUARE_FREE), random.choice((0, 0, 0, 1, 2, -3, 7)))

    @classmethod
    def read(cls, text: str) -> Self | None:
        match = _ROOT.fullmatch(text.strip()) or _PLAIN_ROOT.fullmatch(text.strip())
        if match is None:
            return None
        groups = match.groupdict()
        under = int(groups.get("under") or groups.get("u1") or groups["u2"] or 0)
        factor = signed(match["sign"], int(match["factor"] or 1))
        square = next((n for n in range(isqrt(under), 0, -1) if under % n**2 == 0), 1)
        under //= square**2
        return cls(factor * square, under, int(groups.get("whole") or 0)) if under > 1 and factor else None

    @property
    def text(self) -> str:
        term = f"{coefficient(self.factor)}\\sqrt{{{self.under}}}"
        return self._add(term)

    def _add(self, term: str) -> str:
        if not self.whole:
            return term
        return f"{self.whole}{term}" if term.startswith("-") else f"{self.whole}+{term}"

    def _term(self, write: str) -> str:
        """Return the text with its size, written so, as the root's term."""
        return self._add(f"{'-' * (self.factor < 0)}{write}")

    def renderings(self) -> Iterator[Writing]:
        size, under = abs(self.factor), self.under
        yield Writing("as the side of an equation", f"x = {self.text}")
        yield Writing("all under the root", self._term(f"\\sqrt{{{size * size * under}}}"))
        yield Writing("as a power", self._term(f"{size}\\cdot {under}^{{1/2}}" if size > 1 else f"{under}^{{1/2}}"))
        yield Writing("in plain characters", self._term(f"{size}*sqrt({under})" if size > 1 else f"sqrt({under})"))
        yield Writing("with a root sign", self._term(f"{size if size > 1 else ''}\u221a{under}"))
        yield Writing("rationalised", self._term(f"\\frac{{{size * under}}}{{\\sqrt{{{under}}}}}"))
        if size > 1:
            yield Writing("with the factor behind", self._term(f"\\sqrt{{{under}}} \\cdot {size}"))
        if self.whole:
            sign = "-" if self.factor < 0 else ""
            rest = f"{size if size > 1 else ''}\\sqrt{{{under}}}"
            yield Writing("in another order", f"{sign}{rest}{'+' * (self.whole > 0)}{self.whole}")

    def perturbations(self) -> Iterator[Writing]:
        yield Writing("with the other sign", replace(self, factor=-self.factor).text)
        yield Writing("another number under the root", replace(self, under=self.under + 1).text)
        yield Writing("another factor", replace(self, factor=self.factor + (1 if self.factor > 0 else -1)).text)
        yield Writing("without the root", self._term(f"{abs(self.factor) * self.under}"))
        yield Writing("another root", self._term(f"\\sqrt[3]{{{self.factor**2 * self.under}}}"))
        yield Writing("a variable behind", f"{self.text}x")
        yield Writing("rounded", rounded(self._approximation(), 2))
        yield Writing("with a second answer", f"{self.text}, {replace(self, factor=self.factor + 7).text}")
        yield Writing("plus or minus", f"\\pm \\sqrt{{{self.factor**2 * self.under}}}")
        if self.whole:
            yield Writing("another whole number", replace(self, whole=-self.whole).text)
            yield Writing("a term lost", replace(self, whole=0).text)

    def _approximation(self) -> Fraction:
        size = Fraction(isqrt(self.factor**2 * self.under * 10**12), 10**6)
        return self.whole + (size if self.factor > 0 else -size)


@dataclass(frozen=True, slots=True)
class MultipleOfPi:
    """A rational multiple of pi."""

    kind: ClassVar[str] = "multiple of pi"

    factor: Fraction

    @classmethod
    def draw(cls, random: Random) -> Self:
        factor = Fraction(random.randint(1, 12), random.choice((1, 1, 2, 3, 4, 6)))
        return cls(-factor if random.random() < 0.2 else factor)

    @classmethod
    def read(cls, text: str) -> Self | None:
        match = _MULTIPLE_OF_PI.fullmatch(text.strip())
        if match is None:
            return None
        number = read_rational(match["number"] or match["factor"] or "1")
        divisor = int(match["divisor"] or match["under"] or 1)
        return cls(signed(match["sign"], number / divisor)) if number and divisor else None

    @property
    def text(self) -> str:
        top, bottom = abs(self.factor.numerator), self.factor.denominator
        numerator = f"{top if top > 1 else ''}\\pi"
        fraction = f"\\frac{{{numerator}}}{{{bottom}}}" if bottom > 1 else numerator
        return f"{'-' * (self.factor < 0)}{fraction}"

    def renderings(self) -> Iterator[Writing]:
        top, bottom, minus = abs(self.factor.numerator), self.factor.denominator, "-" * (self.factor < 0)
        size = str(top) if top > 1 else ""
        yield Writing("as the side of an equation", f"x = {self.text}")
        yield Writing("with the sign of pi", f"{minus}{size}\u03c0{f'/{bottom}' if bottom > 1 else ''}")
        yield Writing(
            "in plain characters", f"{minus}{f'{top}*' if top > 1 else ''}pi{f'/{bottom}' if bottom > 1 else ''}"
        )
        if bottom > 1:
            yield Writing("with the fraction before it", f"{latex(self.factor)}\\pi")
            yield Writing("on a slope", f"{minus}{size}\\pi/{bottom}")
        if top > 1:
            yield Writing("with a sign of multiplication", f"{latex(self.factor)} \\cdot \\pi")

    def perturbations(self) -> Iterator[Writing]:
        yield Writing("with the other sign", MultipleOfPi(-self.factor).text)
        yield Writing("another factor", MultipleOfPi(self.factor * 2).text)
        yield Writing("a half more", MultipleOfPi(self.factor + Fraction(1, 2) * (1 if self.factor > 0 else -1)).text)
        yield Writing("upside down", f"\\frac{{{self.factor.denominator}}}{{{self.factor.numerator}\\pi}}")
        yield Writing("without pi", plain(self.factor))
        yield Writing("pi squared", f"{coefficient(self.factor)}\\pi^2")
        yield Writing("a variable behind", f"{self.text} x")
        yield Writing("rounded", rounded(self.factor * _PI, 2))
        yield Writing("with a second answer", f"{self.text}, {MultipleOfPi(self.factor + 3).text}")
