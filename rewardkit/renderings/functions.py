"""Expressions with functions: a factor times an exponential, logarithm, sine or cosine; and quotients of lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import ClassVar, Self

from rewardkit.renderings.numerals import coefficient, read_coefficient
from rewardkit.renderings.polynomials import Term, write_sum
from rewardkit.renderings.writing import Writing

_NAMES = ("ln", "sin", "cos", "exp")
_CALL = re.compile(r"(-?\d{0,4})\s*\\(ln|sin|cos)\s*\(\s*(\d{0,4})x\s*\)")
_POWER = re.compile(r"(-?\d{0,4})\s*e\^\{(-?\d{0,4})x\}")
_QUOTIENT = re.compile(
    r"\\[dt]?frac\s*\{\s*(-?\d{0,4})x\s*([-+]\s*\d{1,4})\s*\}\s*\{\s*(-?\d{0,4})x\s*([-+]\s*\d{1,4})\s*\}"
)


@dataclass(frozen=True, slots=True)
class FunctionTerm:
    """A whole number times a function of a whole multiple of x."""

    kind: ClassVar[str] = "function"

    factor: int
    name: str
    inner: int  # above 0 but for an exponential

    @classmethod
    def draw(cls, random: Random) -> Self:
        return cls(random.choice((1, 2, 3, 5, -1, -2, -4)), random.choice(_NAMES), random.randint(2, 9))

    @classmethod
    def read(cls, text: str) -> Self | None:
        if match := _POWER.fullmatch(text.strip()):
            return cls(read_coefficient(match[1]), "exp", read_coefficient(match[2]))
        match = _CALL.fullmatch(text.strip())
        if match is None or match[3] == "0":
            return None
        return cls(read_coefficient(match[1]), match[2], read_coefficient(match[3]))

    @property
    def text(self) -> str:
        if self.name == "exp":
            return f"{coefficient(self.factor)}e^{{{coefficient(self.inner)}x}}"
        return f"{coefficient(self.factor)}{self._call}"

    @property
    def _call(self) -> str:
        return f"\\{self.name}({coefficient(self.inner)}x)"

    def renderings(self) -> Iterator[Writing]:
        factor, inner = coefficient(self.factor), coefficient(self.inner)
        yield Writing("with the function's name", f"{factor}{self._call}")
        yield Writing("with growing brackets", f"{factor}\\{self.name}\\left({inner}x\\right)")
        yield Writing("with a dot inside", f"{factor}\\{self.name}({self.inner} \\cdot x)")
        yield Writing("with the factor behind", f"{self._call} \\cdot ({self.factor})")
        yield Writing("in plain characters", f"{self.factor}*{self.name}({self.inner}*x)")
        yield Writing("as the side of an equation", f"y = {self.text}")

    def perturbations(self) -> Iterator[Writing]:
        yield Writing("with the other sign", replace(self, factor=-self.factor).text)
        yield Writing("another factor", replace(self, factor=self.factor * 3).text)
        yield Writing("another argument", replace(self, inner=self.inner + 1).text)
        for name in _NAMES:
            if name != self.name:
                yield Writing("another function", replace(self, name=name).text)
        yield Writing("another letter", self.text.replace("x", "y" if self.name == "exp" else "t"))
        yield Writing("without the function", f"{self.factor * self.inner}x")
        yield Writing("squared", f"({self.text})^2")
        yield Writing("a term added", f"{self.text} + 1")
        if self.name == "ln":
            yield Writing("of the size", f"{coefficient(self.factor)}\\ln|{coefficient(self.inner)}x|")


@dataclass(frozen=True, slots=True)
class LineQuotient:
    """The quotient of two lines, with whole numbers that are not 0, none a multiple of the other."""

    kind: ClassVar[str] = "quotient"

    top: tuple[int, int]
    bottom: tuple[int, int]

    @classmethod
    def draw(cls, random: Random) -> Self:
        numbers = [n for n in range(-9, 10) if n]
        top, bottom = ((random.randint(1, 9), random.choice(numbers)) for _ in range(2))
        return cls(top, bottom if top[0] * bottom[1] != top[1] * bottom[0] else (bottom[0] + 1, bottom[1]))

    @classmethod
    def read(cls, text: str) -> Self | None:
        match = _QUOTIENT.fullmatch(text.strip())
        if match is None:
            return None
        a, b, c, d = map(read_coefficient, match.groups())
        return cls((a, b), (c, d)) if a * b * c * d and a * d != b * c else None

    @property
    def text(self) -> str:
        return f"\\frac{{{_line(self.top)}}}{{{_line(self.bottom)}}}"

    def renderings(self) -> Iterator[Writing]:
        top, bottom = self.top, self.bottom
        yield Writing("on a slope", f"({_line(top)})/({_line(bottom)})")
        yield Writing("with \\dfrac", self.text.replace("frac", "dfrac"))
        yield Writing("with other signs", f"\\frac{{{_line((-top[0], -top[1]))}}}{{{_line((-bottom[0], -bottom[1]))}}}")
        yield Writing("expanded by two", f"\\frac{{{_line((2 * top[0], 2 * top[1]))}}}{{2({_line(bottom)})}}")
        yield Writing("as a product", f"({_line(top)})({_line(bottom)})^{{-1}}")
        yield Writing("as the side of an equation", f"y = {self.text}")

    def perturbations(self) -> Iterator[Writing]:
        top, bottom = self.top, self.bottom
        yield Writing("upside down", LineQuotient(bottom, top).text)
        yield Writing("with the other sign", f"-{self.text}")
        yield Writing("a sign changed above", LineQuotient((top[0], -top[1]), bottom).text)
        yield Writing("a sign changed below", LineQuotient(top, (bottom[0], -bottom[1])).text)
        yield Writing("without brackets", f"{_line(top)}/{_line(bottom)}")
        yield Writing("only the line above", _line(top))
        yield Writing("another letter", self.text.replace("x", "t"))


def _line(numbers: tuple[int, int]) -> str:
    return write_sum((Term(numbers[0], (("x", 1),)), Term(numbers[1])))
