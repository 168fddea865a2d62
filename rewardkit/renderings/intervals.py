"""Sets of real numbers made of intervals: one interval, two of them, all real numbers, or none."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from random import Random
from typing import ClassVar, NamedTuple, Self

from rewardkit.renderings.numerals import latex, plain, read_rational
from rewardkit.renderings.writing import Writing

_BRACKETS = re.compile(r"(?:\\left)?\s*([(\[])\s*([^,;()\[\]]+?)\s*,\s*([^,;()\[\]]+?)\s*(?:\\right)?\s*([)\]])")
_UNION = re.compile(r"\s*(?:\\cup|\u222a)\s*")
_INFINITE = re.compile(r"[-+]?\s*(?:\\infty|\u221e|\\infin|inf(?:inity)?|oo)")
_AT_LEAST = {"\\le": "\\ge", "\\leq": "\\geq", "<=": ">="}  # by the sign of "at most" in the same style


class RealSpan(NamedTuple):
    """An interval with its ends, ``None`` for an infinite one, and whether they belong to it."""

    low: Fraction | None
    high: Fraction | None
    has_low: bool = False
    has_high: bool = False

    @property
    def text(self) -> str:
        return f"{'(['[self.has_low]}{self.ends}{')]'[self.has_high]}"

    @property
    def ends(self) -> str:
        low = "-\\infty" if self.low is None else latex(self.low)
        return f"{low}, {_high(self.high)}"

    def inequality(self, at_most: str = "\\le") -> str:
        """Return the interval as a chain of inequalities of x; ``at_most`` is a key of :data:`_AT_LEAST`."""
        if self.high is None and self.low is not None:
            return f"x {_AT_LEAST[at_most] if self.has_low else '>'} {latex(self.low)}"
        left = "" if self.low is None else f"{latex(self.low)} {at_most if self.has_low else '<'} "
        return f"{left}x {at_most if self.has_high else '<'} {_high(self.high)}"


def _high(end: Fraction | None) -> str:
    return "\\infty" if end is None else latex(end)


REALS = RealSpan(None, None)


@dataclass(frozen=True, slots=True)
class NumberRange:
    """The union of at most two intervals that do not touch, in order; without one it is empty."""

    kind: ClassVar[str] = "interval"

    spans: tuple[RealSpan, ...]

    @classmethod
    def draw(cls, random: Random) -> Self:
        low = Fraction(random.randint(-9, 5), random.choice((1, 1, 1, 2)))
        middle, high = low + random.randint(1, 6), low + random.randint(8, 14)
        size = abs(high) or Fraction(3)
        flags = [random.random() < 0.5 for _ in range(4)]
        shape = random.choice(("one", "one", "around zero", "above", "below", "outside", "two", "reals", "none"))
        spans = {
            "one": (RealSpan(low, high, flags[0], flags[1]),),
            "around zero": (RealSpan(-size, size, flags[0], flags[0]),),
            "above": (RealSpan(low, None, flags[0]),),
            "below": (RealSpan(None, low, False, flags[0]),),
            "outside": (RealSpan(None, low, False, flags[0]), RealSpan(middle, None, flags[1])),
            "two": (RealSpan(low, middle, flags[0], flags[1]), RealSpan(middle + 1, high + 1, flags[2], flags[3])),
            "reals": (REALS,),
            "none": (),
        }
        return cls(spans[shape])

    @classmethod
    def read(cls, text: str) -> Self | None:
        bare = text.strip().strip("$").strip()
        if bare in ("\\emptyset", "\\varnothing", "\u2205"):
            return cls(())
        if bare in ("\\mathbb{R}", "\\mathbb R", "\\R", "\u211d"):
            return cls((REALS,))
        spans = [_read_span(part) for part in _UNION.split(bare)]
        # A pair of two numbers in round brackets is a point as well.
        is_clear = len(spans) > 1 or "infty" in bare or "\u221e" in bare or "[" in bare or "]" in bare
        ordered = sorted((span for span in spans if span), key=lambda span: (span.low is not None, span.low))
        are_apart = all(a.high is not None and b.low is not None and a.high < b.low for a, b in pairwise(ordered))
        is_read = is_clear and 0 < len(ordered) == len(spans) <= 2 and are_apart
        return cls(tuple(ordered)) if is_read else None

    @property
    def text(self) -> str:
        return " \\cup ".join(span.text for span in self.spans) or "\\emptyset"

    def renderings(self) -> Iterator[Writing]:
        if not self.spans:
            yield from (Writing("as an empty set", text) for text in ("\\varnothing", "\u2205", "\\{\\}"))
            yield Writing("in words", "\\text{no solution}")
            return
        yield Writing("with an element sign", f"x \\in {self.text}")
        yield Writing("with growing brackets", " \\cup ".join(map(_growing, self.spans)))
        yield Writing("in plain characters", self.text.replace("\\cup", "\u222a").replace("\\infty", "\u221e"))
        yield Writing("with brackets turned outwards", " \\cup ".join(map(_turned, self.spans)))
        if self.spans == (REALS,):
            yield from (Writing("as a letter", text) for text in ("\\mathbb{R}", "\\mathbb R", "\u211d"))
            yield Writing("in words", "\\text{all real numbers}")
            return
        yield from self._inequalities()
        yield from self._sizes()

    def _inequalities(self) -> Iterator[Writing]:
        for name, sign in (("or", " \\text{ or } "), ("a wedge", " \\lor "), ("a plain or", " or ")):
            yield Writing(f"as inequalities with {name}", sign.join(span.inequality() for span in self.spans))
        yield Writing("with slanted signs", " or ".join(span.inequality(at_most="\\leq") for span in self.spans))
        yield Writing("with plain signs", " or ".join(span.inequality(at_most="<=") for span in self.spans))
        inside = " \\text{ or } ".join(span.inequality() for span in self.spans)
        yield Writing("as a set with a bar", f"\\{{x \\mid {inside}\\}}")
        yield Writing("as a set with a colon", f"\\{{x : {inside}\\}}")
        yield Writing("as a set of reals", f"\\{{x \\in \\mathbb{{R}} : {inside}\\}}")
        if len(self.spans) > 1:
            yield Writing("in another order", " \\cup ".join(span.text for span in self.spans[::-1]))

    def _sizes(self) -> Iterator[Writing]:
        """Yield the bounds of a size, for what lies around zero or outside of it."""
        first, last = self.spans[0], self.spans[-1]
        if len(self.spans) == 1 and first.high and first.low == -first.high and first.has_low == first.has_high:
            sign = "\\le" if first.has_low else "<"
            yield Writing("as the bound of a size", f"|x| {sign} {latex(first.high)}")
        if len(self.spans) == 2 and first.low is None and last.high is None and last.low is not None:
            centre = ((first.high or 0) + last.low) / 2
            if first.has_high == last.has_low and centre.denominator == 1:
                distance = f"x{int(-centre):+}" if centre else "x"
                sign = "\\ge" if last.has_low else ">"
                yield Writing("as a distance", f"|{distance}| {sign} {latex(last.low - centre)}")

    def perturbations(self) -> Iterator[Writing]:
        if not self.spans or self.spans == (REALS,):
            other = "\\mathbb{R}" if not self.spans else "\\emptyset"
            yield Writing("the opposite", other)
            yield Writing("one number", "\\{0\\}")
            yield Writing("half of it", "(0, \\infty)")
            yield Writing("without zero", "(-\\infty, 0) \\cup (0, \\infty)")
            return
        for index, span in enumerate(self.spans):
            for name, changed in _changes(span):
                spans = (*self.spans[:index], changed, *self.spans[index + 1 :])
                yield Writing(name, replace(self, spans=spans).text)
                yield Writing(f"{name}, as an inequality", " or ".join(part.inequality() for part in spans))
        if len(self.spans) > 1:
            yield Writing("an interval lost", self.spans[0].text)
            yield Writing("what both share", " \\cap ".join(span.text for span in self.spans))
        yield Writing("all real numbers", "\\mathbb{R}")
        yield Writing("the empty set", "\\emptyset")
        end = next(end for end in (self.spans[0].high, self.spans[0].low) if end is not None)
        yield Writing("one of its ends", plain(end))
        yield Writing("an equation", f"x = {latex(end)}")


def _read_span(text: str) -> RealSpan | None:
    match = _BRACKETS.fullmatch(text.strip())
    if match is None:
        return None
    is_below = match[2].startswith("-") and _INFINITE.fullmatch(match[2]) is not None
    is_above = not match[3].startswith("-") and _INFINITE.fullmatch(match[3]) is not None
    span = RealSpan(read_rational(match[2]), read_rational(match[3]), match[1] == "[", match[4] == "]")
    if (span.low is None) != is_below or (span.high is None) != is_above:
        return None
    is_ordered = span.low is None or span.high is None or span.low < span.high
    has_infinity = (is_below and span.has_low) or (is_above and span.has_high)
    return span if is_ordered and not has_infinity else None


def _growing(span: RealSpan) -> str:
    return f"\\left{span.text[0]}{span.ends}\\right{span.text[-1]}"


def _turned(span: RealSpan) -> str:
    return f"{']['[span.has_low]}{span.ends}{'[]'[span.has_high]}"


def _changes(span: RealSpan) -> Iterator[tuple[str, RealSpan]]:
    if span.low is not None:
        yield "the lower bound open or closed", span._replace(has_low=not span.has_low)
        yield "another lower bound", span._replace(low=span.low - Fraction(1, 3))
    if span.high is not None:
        yield "the upper bound open or closed", span._replace(has_high=not span.has_high)
        yield "another upper bound", span._replace(high=span.high + Fraction(1, 3))
    if span.low is None and span.high is not None:
        yield "bounded below", span._replace(low=span.high - 5)
    if span.high is None and span.low is not None:
        yield "bounded above", span._replace(high=span.low + Fraction(1, 2))
