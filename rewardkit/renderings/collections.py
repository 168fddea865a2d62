"""Several numbers together: sets and lists without an order, points with one, and matrices."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import ClassVar, Self

from rewardkit.renderings.numerals import decimal, latex, plain, read_rational
from rewardkit.renderings.writing import Writing

_SET = re.compile(r"\\\{(.+)\\\}|\{(.+)\}|\\left\\\{(.+)\\right\\\}")
_POINT = re.compile(r"(?:\\left)?\s*\((.+?)(?:\\right)?\)")
_MATRIX = re.compile(r"\\begin\{([pb]matrix)\}(.+)\\end\{\1\}", re.DOTALL)

_NAMES = {2: "xy", 3: "xyz", 4: "wxyz"}

Numbers = tuple[Fraction, ...]
Rows = tuple[Numbers, ...]


def _draw_number(random: Random) -> Fraction:
    return Fraction(random.randint(-12, 12), random.choice((1, 1, 1, 1, 2, 3)))


def _read_numbers(text: str) -> Numbers | None:
    numbers = [read_rational(part) for part in re.split(r",(?!\d{3}\b)|;", text)]
    complete = tuple(number for number in numbers if number is not None)
    return complete if len(complete) == len(numbers) > 1 else None


def _changed_numbers(numbers: Numbers) -> Iterator[tuple[str, Numbers]]:
    """Yield numbers of which one has changed."""
    for index, number in enumerate(numbers):
        before, behind = numbers[:index], numbers[index + 1 :]
        if number:
            yield "a sign changed", (*before, -number, *behind)
        yield "a number changed", (*before, number + 20, *behind)
        yield "a number lost", (*before, *behind)
    yield "a number added", (*numbers, numbers[-1] + 20)


def _decimal_or_latex(number: Fraction) -> str:
    return decimal(number) or latex(number)


def _listing(numbers: Sequence[Fraction], comma: str = ", ", write: Callable[[Fraction], str] = latex) -> str:
    return comma.join(map(write, numbers))


def _braced(numbers: Sequence[Fraction], comma: str = ", ") -> str:
    return f"\\{{{_listing(numbers, comma)}\\}}"


def _point(numbers: Sequence[Fraction], comma: str = ", ", write: Callable[[Fraction], str] = latex) -> str:
    return f"({_listing(numbers, comma, write)})"


@dataclass(frozen=True, slots=True)
class NumberSet:
    """Two or more different numbers without an order, in braces or not."""

    kind: ClassVar[str] = "set"

    numbers: Numbers
    has_braces: bool = True

    @classmethod
    def draw(cls, random: Random) -> Self:
        numbers = {_draw_number(random) for _ in range(random.randint(2, 5))}
        while len(numbers) < 2:
            numbers.add(_draw_number(random))
        return cls(tuple(sorted(numbers)), random.random() < 0.5)

    @classmethod
    def read(cls, text: str) -> Self | None:
        match = _SET.fullmatch(text.strip())
        numbers = _read_numbers(next(filter(None, match.groups())) if match else text)
        if numbers is None or len(set(numbers)) < len(numbers):
            return None
        return cls(tuple(sorted(numbers)), match is not None)

    @property
    def text(self) -> str:
        return self._write(self.numbers)

    def _write(self, numbers: Sequence[Fraction], comma: str = ", ") -> str:
        return _braced(numbers, comma) if self.has_braces else _listing(numbers, comma)

    def renderings(self) -> Iterator[Writing]:
        numbers = self.numbers
        yield Writing("in another order", self._write(numbers[::-1]))
        yield Writing("beginning elsewhere", self._write((*numbers[1:], numbers[0])))
        yield Writing("without blanks", self._write(numbers, ","))
        yield Writing("in braces", _braced(numbers))
        yield Writing("in growing braces", f"\\left\\{{{_listing(numbers)}\\right\\}}")
        yield Writing("as a list", _listing(numbers))
        yield Writing("with a name", f"x = {_listing(numbers)}")
        yield Writing("with a word before the last", f"{_listing(numbers[:-1])} \\text{{ and }} {latex(numbers[-1])}")
        yield Writing("as equations", " \\text{ or } ".join(f"x = {latex(number)}" for number in numbers))

    def perturbations(self) -> Iterator[Writing]:
        for name, numbers in _changed_numbers(self.numbers):
            if set(numbers) != set(self.numbers) and numbers:
                yield Writing(name, self._write(numbers))
        if len(self.numbers) > 2:
            yield Writing("a point", _point(self.numbers))
        low, high = self.numbers[0], self.numbers[-1]
        yield Writing("an interval", f"[{latex(low)}, {latex(high)}]")
        total = sum(self.numbers, Fraction(0))
        if total not in self.numbers:
            yield Writing("its sum", plain(total))


@dataclass(frozen=True, slots=True)
class Point:
    """Two or more numbers in their order."""

    kind: ClassVar[str] = "point"

    numbers: Numbers

    @classmethod
    def draw(cls, random: Random) -> Self:
        return cls(tuple(_draw_number(random) for _ in range(random.choice((2, 2, 3, 3, 4)))))

    @classmethod
    def read(cls, text: str) -> Self | None:
        match = _POINT.fullmatch(text.strip())
        numbers = _read_numbers(match[1]) if match else None
        return cls(numbers) if numbers else None

    @property
    def text(self) -> str:
        return _point(self.numbers)

    def renderings(self) -> Iterator[Writing]:
        yield Writing("without blanks", _point(self.numbers, ","))
        yield Writing("with growing brackets", f"\\left({_listing(self.numbers)}\\right)")
        yield Writing("with big brackets", f"\\Big({_listing(self.numbers)}\\Big)")
        yield Writing("in plain characters", _point(self.numbers, write=plain))
        yield Writing("with decimals", _point(self.numbers, write=_decimal_or_latex))
        if names := _NAMES.get(len(self.numbers)):
            pairs = zip(names, self.numbers, strict=True)
            yield Writing("as equations", ", ".join(f"{name} = {latex(number)}" for name, number in pairs))
        yield Writing("as a column", _matrix([(number,) for number in self.numbers], "pmatrix"))
        yield Writing("in angle brackets", f"\\langle {_listing(self.numbers)} \\rangle")

    def perturbations(self) -> Iterator[Writing]:
        numbers = self.numbers
        if numbers != numbers[::-1]:
            yield Writing("in another order", _point(numbers[::-1]))
        for name, changed in _changed_numbers(numbers):
            if changed != numbers and len(changed) > 1:
                yield Writing(name, _point(changed))
        yield Writing("in square brackets", f"[{_listing(numbers)}]")
        yield Writing("its first number", latex(numbers[0]))
        yield Writing("with a second answer", f"{_point(numbers)}, {_point([number + 20 for number in numbers])}")
        if len(numbers) > 2:
            yield Writing("in braces", _braced(numbers))


@dataclass(frozen=True, slots=True)
class NumberMatrix:
    """A table of numbers with rows and columns."""

    kind: ClassVar[str] = "matrix"

    rows: Rows

    @classmethod
    def draw(cls, random: Random) -> Self:
        height, width = random.choice(((2, 2), (2, 2), (2, 3), (3, 2), (3, 3)))
        return cls(tuple(tuple(_draw_number(random) for _ in range(width)) for _ in range(height)))

    @classmethod
    def read(cls, text: str) -> Self | None:
        match = _MATRIX.fullmatch(text.strip())
        if match is None:
            return None
        lines = [line for line in match[2].split("\\\\") if line.strip()]
        rows = [[read_rational(cell) for cell in line.split("&")] for line in lines]
        complete = tuple(tuple(cell for cell in row if cell is not None) for row in rows)
        is_read = all(len(row) == len(cells) == len(complete[0]) > 1 for row, cells in zip(rows, complete, strict=True))
        return cls(complete) if is_read and len(rows) > 1 else None

    @property
    def text(self) -> str:
        return _matrix(self.rows, "pmatrix")

    def renderings(self) -> Iterator[Writing]:
        for kind in ("bmatrix", "pmatrix"):
            yield Writing(f"as a {kind}", _matrix(self.rows, kind))
        bare = _matrix(self.rows, "matrix")
        yield Writing("in brackets of its own", f"\\left({bare}\\right)")
        yield Writing("in square brackets of its own", f"\\left[{bare}\\right]")
        columns = "c" * len(self.rows[0])
        array = bare.replace("\\begin{matrix}", f"\\begin{{array}}{{{columns}}}").replace("{matrix}", "{array}")
        yield Writing("as an array", f"\\left[{array}\\right]")
        yield Writing("with wider lines", _matrix(self.rows, "pmatrix", "\\\\[2pt] "))
        yield Writing("with a last line end", self.text.replace("\\end", "\\\\ \\end"))
        yield Writing("with a name", f"A = {self.text}")
        yield Writing("without blanks", "".join(self.text.split()))
        yield Writing("with small fractions", _matrix(self.rows, "pmatrix", write=lambda cell: latex(cell, "tfrac")))
        yield Writing("with decimals", _matrix(self.rows, "pmatrix", write=_decimal_or_latex))

    def perturbations(self) -> Iterator[Writing]:
        rows = self.rows
        transposed = tuple(zip(*rows, strict=True))
        if transposed != rows:
            yield Writing("transposed", _matrix(transposed, "pmatrix"))
        if rows != rows[::-1]:
            yield Writing("rows in another order", _matrix(rows[::-1], "pmatrix"))
        yield Writing("a row lost", _matrix(rows[:-1], "pmatrix"))
        yield Writing("its determinant", _matrix(rows, "vmatrix"))
        yield Writing("twice it", f"2{self.text}")
        for index, row in enumerate(rows):
            changed = (*rows[:index], (row[0] + 1, *row[1:]), *rows[index + 1 :])
            yield Writing("a cell changed", _matrix(changed, "pmatrix"))
            if row[-1]:
                other = (*rows[:index], (*row[:-1], -row[-1]), *rows[index + 1 :])
                yield Writing("a sign changed", _matrix(other, "bmatrix"))


def _matrix(
    rows: Sequence[Sequence[Fraction]], kind: str, end: str = " \\\\ ", write: Callable[[Fraction], str] = latex
) -> str:
    lines = end.join(" & ".join(map(write, row)) for row in rows)
    return f"\\begin{{{kind}}} {lines} \\end{{{kind}}}"
