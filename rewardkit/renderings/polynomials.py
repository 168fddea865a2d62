"""Polynomials and lines: sums of whole multiples of powers of letters, and equations of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isqrt
from random import Random
from typing import ClassVar, Self

from rewardkit.renderings.numerals import read_coefficient, signed
from rewardkit.renderings.writing import Writing

Powers = tuple[tuple[str, int], ...]  # the exponents of letters, in alphabetical order
_LETTERS = "xyabcnkt"
_SHARE_OF_PRODUCTS = 0.3
_TERM = re.compile(
    r"\s*(?P<sign>[-+\u2212]?)\s*(?P<factor>\d{0,9})(?P<letters>(?:\s*(?:\\cdot|\*)?\s*[a-df-hj-z](?:\^(?:\d|\{\d{1,2}\}))?)*)"
)
_LETTER = re.compile(r"([a-z])(?:\^\{?(\d{1,2})\}?)?")


@dataclass(frozen=True, slots=True)
class Term:
    """A whole number, not 0, times powers of letters."""

    factor: int
    powers: Powers = ()

    def write(self, times: str = "", power: str = "^{{{}}}") -> str:
        """Return the term's size, without its sign."""
        letters = [letter + (power.format(n) if n > 1 else "") for letter, n in self.powers]
        size = [str(abs(self.factor))] if abs(self.factor) != 1 or not letters else []
        return times.join([*size, *letters])


def write_sum(terms: Sequence[Term], times: str = "", power: str = "^{{{}}}", gap: str = "") -> str:
    """Return terms joined by their signs; ``times`` stands between factors, ``power`` is what follows a letter."""
    text = ""
    for index, term in enumerate(terms):
        sign = "-" if term.factor < 0 else "+" if index else ""
        text += (f"{gap}{sign}{gap}" if index else sign) + term.write(times, power)
    return text


@dataclass(frozen=True, slots=True)
class Polynomial:
    """A sum of at least two terms, or a term with letters; no two have the same powers."""

    kind: ClassVar[str] = "polynomial"

    terms: tuple[Term, ...]

    @classmethod
    def draw(cls, random: Random) -> Self:
        if random.random() < _SHARE_OF_PRODUCTS:
            first, second = random.sample(range(-7, 8), 2)
            return cls._of_roots(random.choice("xtn"), first, second, random.choice((1, 1, 2, 3)))
        letters = random.sample(_LETTERS, random.choice((1, 1, 1, 2, 2, 3)))
        highest = ((letters[0], random.choice((1, 2))),)
        lower = {_draw_powers(letters, random) for _ in range(random.randint(1, 3))} - {highest}
        numbers = [n for n in range(-12, 13) if n]
        return cls.of({highest: random.randint(2, 9)} | {powers: random.choice(numbers) for powers in sorted(lower)})

    @classmethod
    def _of_roots(cls, letter: str, first: int, second: int, factor: int) -> Self:
        """Return the product of a factor and of the letter less each of two numbers."""
        square, linear = ((letter, 2),), ((letter, 1),)
        return cls.of({square: factor, linear: -factor * (first + second), (): factor * first * second})

    @classmethod
    def of(cls, factors: Mapping[Powers, int]) -> Self:
        """Return the sum of powers times their factors, the highest first."""
        order = sorted(factors, key=lambda powers: (-sum(n for _, n in powers), powers))
        return cls(tuple(Term(factors[powers], powers) for powers in order if factors[powers]))

    @classmethod
    def read(cls, text: str) -> Self | None:
        factors: dict[Powers, int] = {}
        at, bare = 0, text.strip().strip("$")
        while at < len(bare):
            match = _TERM.match(bare, at)
            if (
                match is None
                or match.end() == at
                or (at and not match["sign"])
                or not (match["factor"] or match["letters"])
            ):
                return None
            exponents: dict[str, int] = {}
            for letter, exponent in _LETTER.findall(match["letters"]):
                exponents[letter] = exponents.get(letter, 0) + int(exponent or 1)
            powers = tuple(sorted(exponents.items()))
            factor = signed(match["sign"], int(match["factor"] or 1))
            if powers in factors or not factor:
                return None
            factors[powers], at = factor, match.end()
        has_letters = any(factors)
        is_word = len(factors) == 1 and "^" not in bare and not any(map(str.isdigit, bare))
        return cls.of(factors) if has_letters and not is_word else None

    @property
    def text(self) -> str:
        return write_sum(self.terms)

    def renderings(self) -> Iterator[Writing]:
        terms = self.terms
        yield Writing("in another order", write_sum(terms[::-1]))
        yield Writing("beginning elsewhere", write_sum((*terms[1:], terms[0])))
        yield Writing("with blanks", write_sum(terms, gap=" "))
        yield Writing("with dots", write_sum(terms, " \\cdot "))
        yield Writing("as a program writes it", write_sum(terms, "*", "**{}", " "))
        yield Writing("in plain characters", write_sum(terms, "*", "^{}"))
        yield Writing("in text style", f"\\displaystyle {self.text}")
        if len(terms) > 1:
            opposite = [Term(-term.factor, term.powers) for term in terms]
            yield Writing("as the opposite of its opposite", f"-({write_sum(opposite)})")
            yield Writing("with a term split", f"{write_sum(terms)}+3-3")
        yield from self._factored()

    def _factored(self) -> Iterator[Writing]:
        first, *others = self.terms
        letter, degree = first.powers[0]
        roots = _whole_roots(letter, self.terms) if len(first.powers) == 1 and degree == 2 and others else ()
        if not roots:
            return
        size = first.factor
        factors = [f"({letter}{-root:+})" if root else letter for root in roots]
        yield Writing("as a product", f"{size if size != 1 else ''}{''.join(factors)}")
        yield Writing("as a product with dots", " \\cdot ".join([str(size), *factors[::-1]]))

    def perturbations(self) -> Iterator[Writing]:
        terms = self.terms
        for index, term in enumerate(terms):
            before, behind = terms[:index], terms[index + 1 :]
            for name, changed in _changed_terms(term, terms):
                yield Writing(name, write_sum((*before, changed, *behind)))
            if len(terms) > 1:
                yield Writing("a term lost", write_sum((*before, *behind)))
        yield Writing("a term added", f"{self.text}+1")
        yield Writing("with a second answer", f"{self.text}, {self.text}+1")
        letters = {letter for term in terms for letter, _ in term.powers}
        other = next(letter for letter in "zmqr" if letter not in letters)
        renamed = self.text.replace(min(letters), other)
        yield Writing("another letter", renamed)
        yield Writing("over another letter", f"\\frac{{{self.text}}}{{{other}}}")
        yield Writing("squared", f"({self.text})^2")
        yield Writing("an inequality", f"{self.text} > 0")
        yield Writing("an equation", f"{self.text} = 0")


def _draw_powers(letters: Sequence[str], random: Random) -> Powers:
    exponents = {letter: random.choice((0, 1, 1, 2, 3)) for letter in letters}
    return tuple(sorted((letter, n) for letter, n in exponents.items() if n))


def _whole_roots(letter: str, terms: Sequence[Term]) -> tuple[int, ...]:
    """Return the two whole numbers at which a quadratic of a letter is zero; nothing where it has no such."""
    factors = {term.powers: term.factor for term in terms}
    square = factors.pop(((letter, 2),))
    linear, constant = factors.pop(((letter, 1),), 0), factors.pop((), 0)
    discriminant = linear**2 - 4 * square * constant
    if factors or discriminant < 0 or isqrt(discriminant) ** 2 != discriminant:
        return ()
    tops = [-linear - isqrt(discriminant), -linear + isqrt(discriminant)]
    return () if any(top % (2 * square) for top in tops) else tuple(top // (2 * square) for top in tops)


def _changed_terms(term: Term, terms: Sequence[Term]) -> Iterator[tuple[str, Term]]:
    yield "a sign changed", Term(-term.factor, term.powers)
    yield "a coefficient changed", Term(term.factor + (1 if term.factor > 0 else -1), term.powers)
    if term.powers:
        letter, exponent = term.powers[-1]
        raised = (*term.powers[:-1], (letter, exponent + 1))
        if all(other.powers != raised for other in terms):
            yield "an exponent changed", Term(term.factor, raised)


@dataclass(frozen=True, slots=True)
class LineEquation:
    """The equation of a line, ``y = ax + b``, with whole numbers that are not 0."""

    kind: ClassVar[str] = "equation"

    slope: int
    height: int

    @classmethod
    def draw(cls, random: Random) -> Self:
        numbers = [n for n in range(-9, 10) if n]
        return cls(random.choice(numbers), random.choice(numbers))

    @classmethod
    def read(cls, text: str) -> Self | None:
        match = re.fullmatch(r"\s*y\s*=\s*(-?\d{0,6})\s*x\s*([-+])\s*(\d{1,6})\s*", text)
        if match is None:
            return None
        slope = read_coefficient(match[1])
        height = int(match[2] + match[3])
        return cls(slope, height) if slope and height else None

    @property
    def text(self) -> str:
        return f"y = {self._side}"

    @property
    def _side(self) -> str:
        return write_sum((Term(self.slope, (("x", 1),)), Term(self.height)))

    def _zero(self, factor: int) -> str:
        """Return the equation with all terms on the left, times a factor."""
        terms = Term(factor * self.slope, (("x", 1),)), Term(-factor, (("y", 1),)), Term(factor * self.height)
        return f"{write_sum(terms)} = 0"

    def renderings(self) -> Iterator[Writing]:
        yield Writing("in another order", f"y = {write_sum((Term(self.height), Term(self.slope, (('x', 1),))))}")
        yield Writing("with its sides swapped", f"{self._side} = y")
        yield Writing("with a right side of zero", self._zero(1))
        yield Writing("with the other signs", self._zero(-1))
        yield Writing("twice as large", self._zero(2))
        yield Writing("without blanks", "".join(self.text.split()))
        moved = write_sum((Term(-self.slope, (("x", 1),)), Term(1, (("y", 1),))))
        yield Writing("with the letters on the left", f"{moved} = {self.height}")

    def perturbations(self) -> Iterator[Writing]:
        yield Writing("another slope", LineEquation(-self.slope, self.height).text)
        yield Writing("another height", LineEquation(self.slope, -self.height).text)
        if self.slope != self.height:
            yield Writing("slope and height swapped", LineEquation(self.height, self.slope).text)
        yield Writing("a term lost", f"y = {write_sum((Term(self.slope, (('x', 1),)),))}")
        if self.slope != -1:
            yield Writing("the letters swapped", f"x = {self._side.replace('x', 'y')}")
        yield Writing("an inequality", f"y < {self._side}")
        yield Writing("a right side of one", self._zero(1).replace("= 0", "= 1"))
        yield Writing("another power", f"y = {self._side.replace('x', 'x^2')}")
