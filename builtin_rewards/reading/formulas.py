"""Formulas compared, item by item, in bounded time: lists, intervals, sets, matrices, equations and inequalities."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from operator import gt

from builtin_rewards.reading.expressions import (
    POINTS,
    Number,
    UnreadError,
    equal,
    is_name,
    names_in,
    near,
    tokens_of,
    value_at,
)
from builtin_rewards.reading.latex import clean
from builtin_rewards.reading.units import Unit, read_unit

MAX_CHARS = 600
MAX_DEPTH = 10  # the parser recurses
_ROUGHEST = 0.05  # the largest relative error of a number behind an approximate sign

_Tokens = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Shape:
    """The structure of a formula."""

    kind: str  # `value`, `relation`, `list` without brackets, brackets such as `()`, or an operator on sets
    tokens: _Tokens
    parts: tuple[_Shape, ...] = ()  # items or sides
    signs: _Tokens = ()  # between the sides, or the cells of a matrix


_FLIPPED = {"<": ">", ">": "<", "\\le": "\\ge", "\\ge": "\\le"}
_RELATIONS = frozenset(("=", "\\ne", "\\in", *_FLIPPED))
_SET_OPERATORS: dict[str, Callable[[bool, bool], bool]] = {"\\cup": max, "\\setminus": gt, "\\cap": min}
_UNORDERED = frozenset(("list", "\\{\\}"))
_SIGNS = ({"\\pm": "+", "\\mp": "-"}, {"\\pm": "-", "\\mp": "+"})
_INTERVALS = frozenset(("()", "[]", "(]", "[)"))
_EMPTY, _REALS = ("\\emptyset",), ("@\\mathbbr",)
_CAPITAL = re.compile(r"(\\[A-Za-z]+)|[A-DF-HJ-Z]")  # all but E and I: e and i are numbers
_MATRIX = "\\matrixbegin\\matrixend"
_DEPTHS = dict.fromkeys(("(", "[", "{", "\\{", "\\langle", "\\matrixbegin"), 1)
_DEPTHS |= dict.fromkeys((")", "]", "}", "\\}", "\\rangle", "\\matrixend"), -1)


def _depths(tokens: _Tokens) -> list[int]:
    return [*accumulate(_DEPTHS.get(token, 0) for token in tokens)]


def _split(tokens: _Tokens, marks: Collection[str]) -> tuple[list[_Tokens], _Tokens]:
    """Return the parts of tokens between marks that stand in no brackets, and the marks."""
    pairs = zip(tokens, _depths(tokens), strict=True)
    indices = [index for index, (token, depth) in enumerate(pairs) if token in marks and not depth]
    bounds = zip([-1, *indices], [*indices, len(tokens)], strict=True)
    return [tokens[start + 1 : end] for start, end in bounds], tuple(tokens[index] for index in indices)


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
    is_bracketed = tokens and tokens[0] in _DEPTHS and _depths(tokens).index(0) == len(tokens) - 1
    return _bracket_shape(tokens) if is_bracketed else _value(tokens)


def _may_be_rounded(formula: _Tokens, approximation: _Tokens) -> bool:
    """Return whether the second may be the first one's last side rounded; names and units may be any number."""
    sides, _ = _split(formula, _RELATIONS)
    if names_in(sides[-1]) or names_in(approximation):
        return True
    value = value_at(sides[-1])
    return bool(abs(value - value_at(approximation)) <= abs(value) * _ROUGHEST)


def _value(tokens: _Tokens) -> _Shape:
    if tokens != _EMPTY:
        value_at(tokens)
    return _Shape("value", tokens)


def _items(parts: list[_Tokens]) -> tuple[_Shape, ...]:
    """Return the shapes of items; an item with plus or minus becomes two, in which all such signs agree."""
    if any(part.count("\\pm") > 1 or part.count("\\mp") > 1 for part in parts):
        raise UnreadError("several signs of plus or minus")
    return tuple(
        _shape(variant)
        for part in filter(None, parts)
        for variant in dict.fromkeys(tuple(signs.get(token, token) for token in part) for signs in _SIGNS)
    )


def _bracket_shape(tokens: _Tokens) -> _Shape:
    kind, content = tokens[0] + tokens[-1], tokens[1:-1]
    parts, marks = _split(content, ("&", "\\\\") if kind == _MATRIX else (",", ";"))
    if kind == "\\{\\}" or (kind == "{}" and marks):
        return _Shape("\\{\\}", tokens, _items(parts)) if content else _value(_EMPTY)
    if kind == _MATRIX or (kind in {*_INTERVALS, "\\langle\\rangle"} and marks and all(parts)):
        return _Shape(kind, tokens, tuple(map(_shape, parts)), marks if kind == _MATRIX else ())
    return _value(tokens)


@functools.lru_cache(maxsize=512)
def _parse(text: str) -> _Shape | str:
    if len(text) > MAX_CHARS:
        return f"longer than {MAX_CHARS} characters"
    if not text.isascii():
        return "characters that cannot be read"
    tokens = tokens_of(text)
    depths = [0, *_depths(tokens)]
    if min(depths) < 0 or depths[-1] or max(depths) > MAX_DEPTH:
        return f"braces or brackets that do not balance, or are nested deeper than {MAX_DEPTH}"
    try:
        return _shape(tokens)
    except UnreadError as error:
        return str(error)


def reading_fault(text: str) -> str | None:
    """Return why a cleaned formula can be compared only as text, or ``None`` if it has a value."""
    shape = _parse(text)
    return shape if isinstance(shape, str) else None


def same_formula(gold: str, answer: str) -> bool:
    """Return whether two cleaned formulas are equal.

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
    if len(gold) <= MAX_CHARS < len(answer):
        return False
    if gold.split() == answer.split() or tokens_of(gold) == tokens_of(answer):
        return True
    names = [names_in(tokens_of(text)) for text in (gold, answer)]
    if not any(name != name.lower() and name.lower() in others for others in names for name in others):
        gold, answer = (_CAPITAL.sub(lambda match: match[1] or match[0].lower(), text) for text in (gold, answer))
    gold_shape, answer_shape = _parse(gold), _parse(answer)
    try:
        return isinstance(gold_shape, _Shape) and isinstance(answer_shape, _Shape) and _same(gold_shape, answer_shape)
    except UnreadError:  # what has a value at the first point alone
        return False


def _same(gold: _Shape, answer: _Shape) -> bool:
    if not {"relation", *_SET_OPERATORS}.isdisjoint((gold.kind, answer.kind)) and _same_set(gold, answer):
        return True
    if gold.kind == answer.kind == "relation":
        return _same_relation(gold, answer)
    if _assigns(answer, _is_plain):
        answer = answer.parts[-1]
    elif _assigns(gold, _is_quantity):
        gold = gold.parts[-1]
    elif "()" in (gold.kind, answer.kind):
        gold, answer = _pair(gold), _pair(answer)
    if gold.kind == answer.kind in ("\\cup", "\\cap") or {gold.kind, answer.kind} <= _UNORDERED:
        return len(gold.parts) == len(answer.parts) and _same_in_any_order(gold.parts, answer.parts)
    if gold.kind == answer.kind and gold.signs == answer.signs:
        value = gold.kind == "value"
        return equal(gold.tokens, answer.tokens) if value else _all_same(gold.parts, answer.parts)
    parts = [shape.parts if shape.kind in _UNORDERED else (shape,) for shape in (gold, answer)]
    return len(parts[0]) == 1 and parts != [(gold,), (answer,)] and _all_same(parts[0], parts[1])


def _all_same(golds: Sequence[_Shape], answers: Sequence[_Shape]) -> bool:
    return len(golds) == len(answers) and all(map(_same, golds, answers))


def _same_in_any_order(golds: Sequence[_Shape], answers: Sequence[_Shape]) -> bool:
    rest = list(answers)
    for gold in golds:
        index = next((index for index, answer in enumerate(rest) if _same(gold, answer)), None)
        if index is None:
            return False
        del rest[index]
    return not rest


def _assigns(shape: _Shape, is_named: Callable[[_Tokens], bool]) -> bool:
    """Return whether a shape states the value of something named; a chain of equations states it last."""
    return {*shape.signs} == {"="} and _states_last([side.tokens for side in shape.parts], is_named)


def _states_last(sides: Sequence[_Tokens], is_named: Callable[[_Tokens], bool]) -> bool:
    """Return whether each side of a chain is named, equal to the last one, or follows a name in other names."""
    starts_with_name = is_named(sides[0])
    return all(is_named(side) or (starts_with_name and names_in(side)) or equal(side, sides[-1]) for side in sides)


def _pair(shape: _Shape) -> _Shape:
    """Return the tuple of the values that a list gives to several names, in alphabetical order; else the list."""
    if shape.kind != "list" or not all(_assigns(part, _is_name) for part in shape.parts):
        return shape
    values = {"".join(part.parts[0].tokens).strip("@\\"): part.parts[-1] for part in shape.parts}
    if len(values) < len(shape.parts):
        return shape
    return _Shape("()", shape.tokens, tuple(values[name] for name in sorted(values)))


def _same_relation(gold: _Shape, answer: _Shape) -> bool:
    gold, answer = (
        replace(shape, parts=(shape.parts[0], shape.parts[-1]), signs=("=",)) if _assigns(shape, _is_name) else shape
        for shape in (gold, answer)
    )
    if gold.signs != answer.signs:
        return False
    mirror = answer.parts[::-1] if {*answer.signs} <= {"=", "\\ne"} else answer.parts
    is_solved = any(_is_name(part.tokens) for part in gold.parts) and len(names_in(gold.tokens)) == 1
    is_same = _all_same(gold.parts, answer.parts) or _all_same(gold.parts, mirror)
    return is_same or (not is_solved and len(gold.signs) == 1 and _proportional(gold, answer))


def _proportional(gold: _Shape, answer: _Shape) -> bool:
    """Return whether one relation is the other times a number, both as a difference of their sides."""
    if any(side.kind != "value" for side in (*gold.parts, *answer.parts)):
        return False
    ratios = []
    for point in range(POINTS):
        sides = [[value_at(side.tokens, point) for side in shape.parts] for shape in (gold, answer)]
        gold_difference, answer_difference = (left - right for left, right in sides)
        if near(gold_difference, 0) or near(answer_difference, 0):
            return False
        ratios.append(gold_difference / answer_difference)
    is_constant = all(near(ratio, ratios[0]) for ratio in ratios)
    return is_constant and (gold.signs[0] in ("=", "\\ne") or ratios[0].real > 0)


# Sets of real numbers

_END = 10**650  # beyond every number that is read, in place of infinity


def _same_set(first: _Shape, second: _Shape) -> bool:
    """Return whether two sets hold the same numbers at all their ends, and between these."""
    names = [names_in(shape.tokens) - {*_REALS} for shape in (first, second)]
    if all(names) and names[0] != names[1]:
        return False
    try:
        bounds = sorted({-_END, _END, *_ends_of(first), *_ends_of(second)})
        points = [*bounds[1:-1], *((low + high) / 2 for low, high in pairwise(bounds))]
        return all(_contains(first, point) == _contains(second, point) for point in points)
    except UnreadError:
        return False


def _ends_of(shape: _Shape) -> list[Number]:
    if shape.parts:
        return [bound for part in shape.parts for bound in _ends_of(part)]
    return [] if _is_name(shape.tokens) or shape.tokens == _EMPTY else [_end(shape)]


def _contains(shape: _Shape, point: Number) -> bool:
    """Return whether a set holds a number; raise ``UnreadError`` unless it is a set of real numbers."""
    if shape.kind in _SET_OPERATORS:
        return functools.reduce(_SET_OPERATORS[shape.kind], (_contains(part, point) for part in shape.parts))
    if shape.tokens in (_EMPTY, _REALS):
        return shape.tokens == _REALS
    signs, name_flags = shape.signs, [_is_name(part.tokens) for part in shape.parts]
    sides = [point if is_name else _end(part) for is_name, part in zip(name_flags, shape.parts, strict=True)]
    if shape.kind in _UNORDERED and not any(name_flags):
        return any(near(point, side) for side in sides)
    if shape.kind in _INTERVALS and not any(name_flags) and len(sides) == 2 and sides[0] < sides[1]:
        signs, name_flags = tuple("\\le" if bracket in "[]" else "<" for bracket in shape.kind), [True]
        sides.insert(1, point)
    if name_flags.count(True) != 1 or not {*signs} <= {*_FLIPPED, "\\ne"}:
        raise UnreadError("no set of real numbers")
    return all(map(_compares, signs, sides, sides[1:]))


def _end(shape: _Shape) -> Number:
    """Return an end as a real number, infinity as one beyond all; raise ``UnreadError`` for anything else."""
    if shape.tokens[-1:] == ("\\infty",) and shape.tokens[:-1] in ((), ("+",), ("-",)):
        return -_END if shape.tokens[0] == "-" else _END
    if shape.kind != "value" or names_in(shape.tokens) or (value := value_at(shape.tokens)).imag:
        raise UnreadError("no real number")
    return value.real


def _compares(sign: str, first: Number, second: Number) -> bool:
    if near(first, second):
        return sign in ("\\le", "\\ge")
    return sign == "\\ne" or (first < second) == (sign in ("<", "\\le"))


# Left sides

_OF_ANGLES = ("\\sin", "\\cos", "\\tan", "\\cot", "\\sec", "\\csc")
_CALCULATION = re.compile(r"(?=.*\d)(?=.*[-+*/])(?:[-+*/$%()\d.]|[A-Za-z]{3,}+| )+")


def _is_name(side: _Tokens) -> bool:
    """Return whether a side is one name, perhaps of a function with its arguments, or a tuple of names."""
    if side[:1] == ("(",) and side[-1:] == (")",):
        return all(map(_is_name, _split(side[1:-1], (",",))[0]))
    is_applied = side[1:2] == ("(",) and side[-1] == ")" and {"(", ")", "="}.isdisjoint(side[2:-1])
    return bool(side) and is_name(side[0]) and side not in (("e",), ("i",)) and (len(side) == 1 or is_applied)


def _is_quantity(side: _Tokens) -> bool:
    """Return whether a side is a name, or the size or an angle's function of one: ``|z|``, ``\\cos A``."""
    inner = side[1:-1] if side[:1] == ("|",) == side[-1:] else side[1:] if side[:1] and side[0] in _OF_ANGLES else side
    return _is_name(inner)


def _is_plain(side: _Tokens) -> bool:
    """Return whether a side is words, a quantity, a calculation with units, or several names without a factor.

    The size of an unknown is no such side, since ``|x| = 5`` leaves its sign open.
    """
    if side[:1] == ("|",) == side[-1:] and {*side[1:-1]} <= {*"xytnkm"}:
        return False
    signs = re.sub(r"\^\{?\d+", "", "".join(sign for sign in side if not is_name(sign)))
    has_names = len(names_in(side)) > 1 and not re.search(r"\d", signs) and _RELATIONS.isdisjoint(side)
    is_plain = has_names or all(map(str.isalpha, side)) or _is_quantity(side)
    return bool(side) and (is_plain or _CALCULATION.fullmatch(" ".join(side)) is not None)


def right_side(text: str) -> str:
    """Return the last side of a cleaned equation whose other sides do not tell its value, else the text."""
    sides = _split(tokens_of(text), ("=",))[0] if "=" in text else []
    is_equation = len(sides) - 1 == text.count("=") and _states_last(sides, _is_plain)  # no <=
    return text.rpartition("=")[2].strip() if is_equation else text


# Units and numbers

_UNIT_AT = re.compile(
    r"\\(?:text|mbox|mathrm)\s*\{[~\s]*\\?[A-Za-z]|(?<![\\A-Za-z])[A-Za-z]{2}|(?<![\\A-Za-z])[TGMkmunp]?\\(?:Omega|AA|mu)(?![A-Za-z])"
)
_LARGEST = 10**300  # below a float's largest


def split_unit(text: str) -> tuple[str, Unit | None]:
    """Return an answer's formula, cleaned, and the named unit after it."""
    for match in _UNIT_AT.finditer(text) if len(text) <= 2 * MAX_CHARS else ():
        formula, suffix = clean(text[: match.start()]), clean(text[match.start() :])
        unit, rest = read_unit(f" {suffix}")
        if formula and unit is not None and unit.factors and not rest.strip(" $"):
            return formula, unit
    return clean(text), None


def number_of(text: str) -> complex | None:
    """Return the value of a cleaned formula without names; in ``x = 3`` that of the right side."""
    shape = _parse(text)
    if isinstance(shape, _Shape) and _assigns(shape, _is_plain):
        shape = shape.parts[-1]
    if isinstance(shape, str) or shape.kind != "value" or names_in(shape.tokens) or shape.tokens == _EMPTY:
        return None
    value = value_at(shape.tokens)
    return complex(value) if abs(value) < _LARGEST and "\\infty" not in shape.tokens else None
