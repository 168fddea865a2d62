"""Formulas compared: lists, tuples, intervals, sets, matrices, equations and inequalities, item by item.

Their structure is read here; the expressions in them are computed at a few points
(:mod:`builtin_rewards.reading.expressions`). A formula that is not understood equals its own text only. Every step is
bounded by the formula's length and the sizes of its numbers.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from operator import gt
from typing import Any

from builtin_rewards.reading.expressions import POINTS, UnreadError, equal, is_name, names_in, near, tokens_of, value_at
from builtin_rewards.reading.numbers import Unit, clean, read_unit

MAX_CHARS = 600
MAX_DEPTH = 10
_ROUGHEST = 0.05
"""The largest relative error of a number behind an approximate sign."""

_Tokens = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Shape:
    """The structure of a formula.

    ``kind`` is ``value`` for an expression, ``relation``, ``list`` for items without brackets, brackets such as ``()``,
    or an operator on sets; ``parts`` are its items or sides, and ``signs`` stand between sides, or cells of a matrix.
    """

    kind: str
    tokens: _Tokens
    parts: tuple[_Shape, ...] = ()
    signs: _Tokens = ()


_FLIPPED = {"<": ">", ">": "<", "\\le": "\\ge", "\\ge": "\\le"}
_RELATIONS = frozenset(("=", "\\ne", "\\in", *_FLIPPED))
_SET_OPERATORS: dict[str, Callable[[bool, bool], bool]] = {"\\cup": max, "\\setminus": gt, "\\cap": min}
_UNORDERED = frozenset(("list", "\\{\\}"))
_INTERVALS = frozenset(("()", "[]", "(]", "[)"))
_EMPTY, _REALS = ("\\emptyset",), ("@\\mathbbr",)
_CAPITAL = re.compile(r"(\\[A-Za-z]+)|[A-DF-HJ-Z]")
_MATRIX = "\\matrixbegin\\matrixend"
_DEPTHS = dict.fromkeys(("(", "[", "{", "\\{", "\\langle", "\\matrixbegin"), 1)
_DEPTHS |= dict.fromkeys((")", "]", "}", "\\}", "\\rangle", "\\matrixend"), -1)


def _depths(tokens: _Tokens) -> list[int]:
    return [*accumulate(_DEPTHS.get(token, 0) for token in tokens)]


def _split(tokens: _Tokens, marks: Collection[str]) -> tuple[list[_Tokens], _Tokens]:
    """Return the parts of tokens between marks that stand in no brackets, and the marks."""
    found = zip(tokens, _depths(tokens), strict=True)
    places = [place for place, (token, depth) in enumerate(found) if token in marks and not depth]
    ends = zip([-1, *places], [*places, len(tokens)], strict=True)
    return [tokens[start + 1 : end] for start, end in ends], tuple(tokens[place] for place in places)


def _shape(tokens: _Tokens) -> _Shape:
    """Return a formula's structure, split first where it binds most loosely; raise ``UnreadError``."""
    parts, marks = _split(tokens, (",", ";", "\\or", "\\and"))
    if marks or "\\pm" in tokens or "\\mp" in tokens:
        bounds = len({*marks}) == 1 and all({*_FLIPPED, "\\ne"}.intersection(part) for part in parts)
        kind = {"\\or": "\\cup", "\\and": "\\cap"}.get(marks[0], "list") if bounds else "list"
        return _Shape(kind, tokens, _items(parts))
    parts, marks = _split(tokens, ("\\approx",))
    if marks and _is_name(parts[0]):
        return _shape(parts[-1])
    if marks and _may_be_rounded(parts[0], parts[-1]):
        return _shape(parts[0])
    parts, marks = _split(tokens, _RELATIONS)
    if marks == ("\\in",) and _is_name(parts[0]):
        return _shape(parts[1])
    if marks and marks[0] in (">", "\\ge"):
        parts, marks = parts[::-1], tuple(_FLIPPED.get(sign, sign) for sign in marks[::-1])
    if marks and all(parts):
        return _Shape("relation", tokens, tuple(map(_shape, parts)), marks)
    for operator in _SET_OPERATORS:
        parts, marks = _split(tokens, (operator,))
        if marks and all(parts):
            return _Shape(operator, tokens, tuple(map(_shape, parts)))
    bracketed = tokens and tokens[0] in _DEPTHS and _depths(tokens).index(0) == len(tokens) - 1
    return _bracketed(tokens) if bracketed else _value(tokens)


def _may_be_rounded(exact: _Tokens, rounded: _Tokens) -> bool:
    """Whether the second may be the first one's last side rounded; names and units may be any number."""
    sides, _ = _split(exact, _RELATIONS)
    if names_in(sides[-1]) or names_in(rounded):
        return True
    value = value_at(sides[-1])
    return bool(abs(value - value_at(rounded)) <= abs(value) * _ROUGHEST)


def _value(tokens: _Tokens) -> _Shape:
    if tokens != _EMPTY:
        value_at(tokens)
    return _Shape("value", tokens)


def _items(parts: list[_Tokens]) -> tuple[_Shape, ...]:
    """Return the shapes of items; one with plus or minus is two, in which all such signs agree."""
    if any(part.count("\\pm") > 1 or part.count("\\mp") > 1 for part in parts):
        raise UnreadError("several signs of plus or minus")
    spread = (
        tuple({"\\pm": one, "\\mp": other}.get(token, token) for token in part)
        for part in filter(None, parts)
        for one, other in [("+", "-"), ("-", "+")][: 1 + (not {"\\pm", "\\mp"}.isdisjoint(part))]
    )
    return tuple(map(_shape, spread))


def _bracketed(tokens: _Tokens) -> _Shape:
    kind, inside = tokens[0] + tokens[-1], tokens[1:-1]
    parts, marks = _split(inside, ("&", "\\\\") if kind == _MATRIX else (",", ";"))
    if kind == "\\{\\}" or (kind == "{}" and marks):
        return _Shape("\\{\\}", tokens, _items(parts)) if inside else _value(_EMPTY)
    if kind == _MATRIX or (kind in {*_INTERVALS, "\\langle\\rangle"} and marks and all(parts)):
        return _Shape(kind, tokens, tuple(map(_shape, parts)), marks if kind == _MATRIX else ())
    return _value(tokens)


@functools.lru_cache(maxsize=512)
def _read(text: str) -> _Shape | str:
    if len(text) > MAX_CHARS:
        return f"longer than {MAX_CHARS} characters"
    if not text.isascii():
        return "characters that cannot be read"
    tokens = tokens_of(text)
    deep = [0, *_depths(tokens)]
    if min(deep) < 0 or deep[-1] or max(deep) > MAX_DEPTH:
        return f"braces or brackets that do not balance, or are nested deeper than {MAX_DEPTH}"
    try:
        return _shape(tokens)
    except UnreadError as fault:
        return str(fault)


def unread(text: str) -> str | None:
    """Return why a cleaned formula can be compared only as text, or ``None`` if it has a value."""
    shape = _read(text)
    return shape if isinstance(shape, str) else None


def same_formula(gold: str, given: str) -> bool:
    """Whether two cleaned formulas are equal.

    - Expressions are equal if they have the same value at every point; a decimal of six places or more is the number
      that it rounds. A formula that is not understood equals its own text only.
    - Brackets must be the same: ``(2, 4)`` is no ``\\{2, 4\\}``, ``2, 4`` or ``[2, 4]``. Braces, and items joined by
      commas, "and" or "or", have no order; ``\\pm 2`` is ``2, -2``.
    - ``x = 3`` and 3 are the same, and ``x = 3, y = 4`` and ``(3, 4)``; a gold may also give the size, an angle's
      function or a derivative of a name: ``|z| = 3``, ``\\cos A = 3/5``. An equation answers a gold without one only if
      its left side is one of these, words, several names, or a calculation: not ``2x = 6``.
    - Equations and inequalities are equal if one is a multiple of the other, unless the gold is solved for its only
      name. An inequality is the same as its interval.
    - Capital and small letters differ only where one of the formulas has both.
    """
    if len(gold) <= MAX_CHARS < len(given):
        return False
    if gold.split() == given.split() or tokens_of(gold) == tokens_of(given):
        return True
    names = [names_in(tokens_of(text)) for text in (gold, given)]
    if not any(name != name.lower() and name.lower() in each for each in names for name in each):
        gold, given = (_CAPITAL.sub(lambda found: found[1] or found[0].lower(), text) for text in (gold, given))
    one, other = _read(gold), _read(given)
    try:
        return isinstance(one, _Shape) and isinstance(other, _Shape) and _same(one, other)
    except UnreadError:  # what has a value at the first point alone
        return False


def _same(gold: _Shape, given: _Shape) -> bool:
    if not {"relation", *_SET_OPERATORS}.isdisjoint((gold.kind, given.kind)) and _same_set(gold, given):
        return True
    if gold.kind == given.kind == "relation":
        return _same_relation(gold, given)
    if _assigns(given, _is_plain):
        given = given.parts[-1]
    elif _assigns(gold, _is_quantity):
        gold = gold.parts[-1]
    elif "()" in (gold.kind, given.kind):
        gold, given = _pair(gold), _pair(given)
    if gold.kind == given.kind in ("\\cup", "\\cap") or {gold.kind, given.kind} <= _UNORDERED:
        return _paired(gold.parts, given.parts)
    if gold.kind == given.kind and gold.signs == given.signs:
        value = gold.kind == "value"
        return equal(gold.tokens, given.tokens) if value else _alike(gold.parts, given.parts)
    parts = [shape.parts if shape.kind in _UNORDERED else (shape,) for shape in (gold, given)]
    return len(parts[0]) == 1 and parts != [(gold,), (given,)] and _alike(parts[0], parts[1])


def _alike(golds: Sequence[_Shape], givens: Sequence[_Shape]) -> bool:
    return len(golds) == len(givens) and all(map(_same, golds, givens))


def _paired(golds: Sequence[_Shape], givens: Sequence[_Shape]) -> bool:
    if not golds or len(golds) != len(givens):
        return not golds and not givens
    place = next((place for place, given in enumerate(givens) if _same(golds[0], given)), None)
    return place is not None and _paired(golds[1:], (*givens[:place], *givens[place + 1 :]))


def _assigns(shape: _Shape, named: Callable[[_Tokens], bool]) -> bool:
    """Whether a shape states the value of something named; a chain of equations states it last."""
    return {*shape.signs} == {"="} and _says_last([side.tokens for side in shape.parts], named)


def _says_last(sides: Sequence[_Tokens], named: Callable[[_Tokens], bool]) -> bool:
    """Whether each side of a chain is named, equal to the last one, or follows a name in other names."""
    from_name = named(sides[0])
    return all(named(side) or (from_name and names_in(side)) or equal(side, sides[-1]) for side in sides)


def _pair(shape: _Shape) -> _Shape:
    """Return the tuple of the values that a list gives to several names, in alphabetical order; else the list."""
    if shape.kind != "list" or not all(_assigns(part, _is_name) for part in shape.parts):
        return shape
    values = {"".join(part.parts[0].tokens).strip("@\\"): part.parts[-1] for part in shape.parts}
    if len(values) < len(shape.parts):
        return shape
    return _Shape("()", shape.tokens, tuple(values[name] for name in sorted(values)))


def _same_relation(gold: _Shape, given: _Shape) -> bool:
    gold, given = (
        replace(shape, parts=(shape.parts[0], shape.parts[-1]), signs=("=",)) if _assigns(shape, _is_name) else shape
        for shape in (gold, given)
    )
    if gold.signs != given.signs:
        return False
    turned = given.parts[::-1] if {*given.signs} <= {"=", "\\ne"} else given.parts
    solved = any(_is_name(part.tokens) for part in gold.parts) and len(names_in(gold.tokens)) == 1
    same = _alike(gold.parts, given.parts) or _alike(gold.parts, turned)
    return same or (not solved and len(gold.signs) == 1 and _proportional(gold, given))


def _proportional(gold: _Shape, given: _Shape) -> bool:
    """Whether one relation is the other times a number, both as a difference of their sides."""
    if any(side.kind != "value" for side in (*gold.parts, *given.parts)):
        return False
    ratios = []
    for point in range(POINTS):
        sides = [[value_at(side.tokens, point) for side in shape.parts] for shape in (gold, given)]
        one, other = (left - right for left, right in sides)
        if near(one, 0) or near(other, 0):
            return False
        ratios.append(one / other)
    same = all(near(ratio, ratios[0]) for ratio in ratios)
    return same and (gold.signs[0] in ("=", "\\ne") or ratios[0].real > 0)


# Sets of real numbers

_END = 10**650


def _same_set(one: _Shape, other: _Shape) -> bool:
    """Whether two sets hold the same numbers at all their ends, and between these."""
    names = [names_in(shape.tokens) - {*_REALS} for shape in (one, other)]
    if all(names) and names[0] != names[1]:
        return False
    try:
        ends = sorted({-_END, _END, *_ends_of(one), *_ends_of(other)})
        places = [*ends[1:-1], *((low + high) / 2 for low, high in pairwise(ends))]
        return all(_holds(one, place) == _holds(other, place) for place in places)
    except UnreadError:
        return False


def _ends_of(shape: _Shape) -> list[Any]:
    if shape.parts:
        return [end for part in shape.parts for end in _ends_of(part)]
    return [] if _is_name(shape.tokens) or shape.tokens == _EMPTY else [_end(shape)]


def _holds(shape: _Shape, place: Any) -> bool:
    """Whether a set holds a number; raise ``UnreadError`` unless it is a set of real numbers."""
    if shape.kind in _SET_OPERATORS:
        return functools.reduce(_SET_OPERATORS[shape.kind], (_holds(part, place) for part in shape.parts))
    if shape.tokens in (_EMPTY, _REALS):
        return shape.tokens == _REALS
    signs, named = shape.signs, [_is_name(part.tokens) for part in shape.parts]
    sides = [place if name else _end(part) for name, part in zip(named, shape.parts, strict=True)]
    if shape.kind in _UNORDERED and not any(named):
        return any(near(place, side) for side in sides)
    if shape.kind in _INTERVALS and not any(named) and len(sides) == 2 and sides[0] < sides[1]:
        signs, named = tuple("\\le" if bracket in "[]" else "<" for bracket in shape.kind), [True]
        sides.insert(1, place)
    if named.count(True) != 1 or not {*signs} <= {*_FLIPPED, "\\ne"}:
        raise UnreadError("no set of real numbers")
    return all(map(_compares, signs, sides, sides[1:]))


def _end(shape: _Shape) -> Any:
    """Return a real number, or one beyond all for infinity."""
    if shape.tokens[-1:] == ("\\infty",) and shape.tokens[:-1] in ((), ("+",), ("-",)):
        return -_END if shape.tokens[0] == "-" else _END
    if shape.kind != "value" or names_in(shape.tokens) or (value := value_at(shape.tokens)).imag:
        raise UnreadError("no real number")
    return value.real


def _compares(sign: str, one: Any, other: Any) -> bool:
    if near(one, other):
        return sign in ("\\le", "\\ge")
    return sign == "\\ne" or (one < other) == (sign in ("<", "\\le"))


# Left sides

_OF_ANGLES = ("\\sin", "\\cos", "\\tan", "\\cot", "\\sec", "\\csc")
_CALCULATION = re.compile(r"(?=.*\d)(?=.*[-+*/])(?:[-+*/$%()\d.]|[A-Za-z]{3,}+| )+")


def _is_name(side: _Tokens) -> bool:
    """Whether a side is one name, perhaps of a function with its arguments, or a tuple of names."""
    if side[:1] == ("(",) and side[-1:] == (")",):
        return all(map(_is_name, _split(side[1:-1], (",",))[0]))
    applied = side[1:2] == ("(",) and side[-1] == ")" and {"(", ")", "="}.isdisjoint(side[2:-1])
    return bool(side) and is_name(side[0]) and side not in (("e",), ("i",)) and (len(side) == 1 or applied)


def _is_quantity(side: _Tokens) -> bool:
    """Whether a side is a name, or the size or an angle's function of one: ``|z|``, ``\\cos A``."""
    within = side[1:-1] if side[:1] == ("|",) == side[-1:] else side[1:] if side[:1] and side[0] in _OF_ANGLES else side
    return _is_name(within)


def _is_plain(side: _Tokens) -> bool:
    """Whether a side is words, a quantity, a calculation with units, or several names without a factor."""
    signs = re.sub(r"\^\{?\d+", "", "".join(sign for sign in side if not is_name(sign)))
    several = len(names_in(side)) > 1 and not re.search(r"\d", signs) and _RELATIONS.isdisjoint(side)
    plain = several or all(map(str.isalpha, side)) or _is_quantity(side)
    return bool(side) and (plain or _CALCULATION.fullmatch(" ".join(side)) is not None)


def right_side(text: str) -> str:
    """Return the last side of a cleaned equation whose other sides do not tell its value, else the text."""
    sides = _split(tokens_of(text), ("=",))[0] if "=" in text else []
    is_equation = len(sides) - 1 == text.count("=") and _says_last(sides, _is_plain)  # no <=
    return text.rpartition("=")[2].strip() if is_equation else text


# Units and numbers

_UNIT_AT = re.compile(r"\\(?:text|mbox|mathrm)\s*\{\s*[A-Za-z]|(?<![\\A-Za-z])[A-Za-z]{2}")
_LARGEST = 10**300
_NO_THING = frozenset(("unit", "squar", "cubic"))
"""The words of a unit that names no thing, as :func:`read_unit` returns them: ``square units``."""


def split_unit(text: str) -> tuple[str, Unit | None]:
    """Return an answer's formula, cleaned, and the unit after it."""
    for place in _UNIT_AT.finditer(text) if len(text) <= 2 * MAX_CHARS else ():
        formula, behind = clean(text[: place.start()]), clean(text[place.start() :])
        unit, rest = read_unit(f" {behind}")
        if formula and unit is not None and unit.words <= _NO_THING and not rest.strip(" $"):
            return formula, unit
    return clean(text), None


def number_of(text: str) -> complex | None:
    """Return the value of a cleaned formula without names; in ``x = 3`` that of the right side."""
    shape = _read(text)
    if isinstance(shape, _Shape) and _assigns(shape, _is_plain):
        shape = shape.parts[-1]
    if isinstance(shape, str) or shape.kind != "value" or names_in(shape.tokens) or shape.tokens == _EMPTY:
        return None
    value = value_at(shape.tokens)
    return complex(value) if abs(value) < _LARGEST and "\\infty" not in shape.tokens else None
