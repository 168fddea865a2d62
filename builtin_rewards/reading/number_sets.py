"""Sets of real numbers compared: intervals, inequalities, what is listed, and these joined."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from builtin_rewards.reading.expressions import Number, UnreadError, names_in, near, value_at
from builtin_rewards.reading.shapes import EMPTY, FLIPPED, INTERVALS, REALS, SET_OPERATORS, UNORDERED, Shape, is_named


@functools.cache
def _infinity() -> Number:
    """Return a number beyond every one that is read, in place of infinity."""
    return value_at(("0",)) + 10**650


def same_set(first: Shape, second: Shape) -> bool:
    """Return whether two sets hold the same numbers at all their ends, and between these."""
    names = [names_in(shape.tokens) for shape in (first, second)]
    if all(names) and names[0] != names[1]:
        return False
    try:
        bounds = sorted({-_infinity(), _infinity(), *_ends_of(first), *_ends_of(second)})
        points = [*bounds[1:-1], *((low + high) / 2 for low, high in pairwise(bounds))]
        first, second = (_joined(shape, points) for shape in (first, second))
        return all(_contains(first, point) == _contains(second, point) for point in points)
    except UnreadError:
        return False


def _joined(shape: Shape, points: Sequence[Number]) -> Shape:
    """Return inequalities behind commas as what they share, or as their union where no number fulfils two of them."""
    if shape.kind != "bounds":
        return shape
    do_overlap = any(sum(_contains(part, point) for part in shape.parts) > 1 for point in points)
    return replace(shape, kind="\\cap" if do_overlap else "\\cup")


def _ends_of(shape: Shape) -> list[Number]:
    if shape.parts:
        return [bound for part in shape.parts for bound in _ends_of(part)]
    return [] if is_named(shape.tokens) or shape.tokens in (EMPTY, REALS) else [_end(shape)]


def _contains(shape: Shape, point: Number) -> bool:
    """Return whether a set holds a number; raise ``UnreadError`` unless it is a set of real numbers."""
    if shape.kind in SET_OPERATORS:
        return functools.reduce(SET_OPERATORS[shape.kind], (_contains(part, point) for part in shape.parts))
    if shape.tokens in (EMPTY, REALS):
        return shape.tokens == REALS
    signs, name_flags = shape.signs, [is_named(part.tokens) for part in shape.parts]
    sides = [point if is_name else _end(part) for is_name, part in zip(name_flags, shape.parts, strict=True)]
    if shape.kind in UNORDERED and not any(name_flags):
        return any(near(point, side) for side in sides)
    if shape.kind in INTERVALS and not any(name_flags) and len(sides) == 2 and sides[0] < sides[1]:
        signs, name_flags = tuple("\\le" if bracket in "[]" else "<" for bracket in shape.kind), [True]
        sides.insert(1, point)
    if name_flags.count(True) != 1 or not {*signs} <= {*FLIPPED, "\\ne", "="}:
        raise UnreadError("no set of real numbers")
    return all(map(_compares, signs, sides, sides[1:]))


def _end(shape: Shape) -> Number:
    """Return an end as a real number, infinity as one beyond all; raise ``UnreadError`` for anything else."""
    if shape.tokens[-1:] == ("\\infty",) and shape.tokens[:-1] in ((), ("+",), ("-",)):
        return -_infinity() if shape.tokens[0] == "-" else _infinity()
    if shape.kind != "value" or names_in(shape.tokens) or (value := value_at(shape.tokens)).imag:
        raise UnreadError("no real number")
    return value.real


def _compares(sign: str, first: Number, second: Number) -> bool:
    if near(first, second):
        return sign in ("\\le", "\\ge", "=")
    return sign == "\\ne" or (sign != "=" and (first < second) == (sign in ("<", "\\le")))
