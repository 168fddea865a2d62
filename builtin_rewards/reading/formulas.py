"""Formulas compared, item by item, in bounded time: lists, intervals, sets, matrices, equations and inequalities."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from builtin_rewards.reading.expressions import (
    POINTS,
    UnreadError,
    equal,
    is_name,
    names_in,
    near,
    tokens_of,
    value_at,
)
from builtin_rewards.reading.latex import clean
from builtin_rewards.reading.number_sets import same_set
from builtin_rewards.reading.shapes import (
    EMPTY,
    MAX_CHARS,
    REALS,
    RELATIONS,
    SET_OPERATORS,
    UNORDERED,
    Shape,
    Tokens,
    is_named,
    parse_formula,
    split,
)
from builtin_rewards.reading.units import Unit, read_unit

_CAPITAL = re.compile(r"(\\[A-Za-z]+)|[A-DF-HJ-Z]")  # all but E and I: e and i are numbers


def names_sign(text: str) -> bool:
    """Return whether a cleaned text is the name of a sign: ``pi``, ``all real numbers``, ``no solution``."""
    tokens = tokens_of(text)
    return len(tokens) == 1 and tokens[0].startswith(("\\", "@\\"))


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
      name.
    - Sets of real numbers are equal where they hold the same numbers: intervals, also turned outwards, inequalities
      joined by "or" and "and", ``|x| < a``, sets with a condition, all real numbers, none, and unions, differences and
      intersections of these.
    - A column, a vector in angle brackets and ``(2, 4)`` are the same; a row is another, and a determinant no matrix.
    - Capital and small letters differ only where one of the formulas has both.
    """
    if len(gold) <= MAX_CHARS < len(answer):
        return False
    if gold.split() == answer.split() or tokens_of(gold) == tokens_of(answer):
        return True
    names = [names_in(tokens_of(text)) for text in (gold, answer)]
    if not any(name != name.lower() and name.lower() in others for others in names for name in others):
        gold, answer = (_CAPITAL.sub(lambda match: match[1] or match[0].lower(), text) for text in (gold, answer))
    gold_shape, answer_shape = parse_formula(gold), parse_formula(answer)
    try:
        return isinstance(gold_shape, Shape) and isinstance(answer_shape, Shape) and _same(gold_shape, answer_shape)
    except UnreadError:  # what has a value at the first point alone
        return False


def _same(gold: Shape, answer: Shape) -> bool:
    kinds, texts = {gold.kind, answer.kind}, {gold.tokens, answer.tokens}
    if ({"relation", "bounds", *SET_OPERATORS} & kinds or {EMPTY, REALS} & texts) and same_set(gold, answer):
        return True
    if gold.kind == answer.kind == "relation":
        return _same_relation(gold, answer)
    if "vector" in kinds and kinds <= {"vector", "()", "list"}:
        gold, answer = (replace(shape, kind="()") if shape.kind == "vector" else shape for shape in (gold, answer))
    if _assigns(answer, _is_plain):
        answer = answer.parts[-1]
    elif _assigns(gold, _is_quantity):
        gold = gold.parts[-1]
    elif "()" in (gold.kind, answer.kind):
        gold, answer = _pair(gold), _pair(answer)
    elif (pair := _pair(gold)).kind == "()" and answer.kind in UNORDERED and answer == _pair(answer):
        return answer.kind == "list" and _all_same(pair.parts, answer.parts)
    if gold.kind == answer.kind in ("\\cup", "\\cap") or {gold.kind, answer.kind} <= UNORDERED:
        return len(gold.parts) == len(answer.parts) and _same_in_any_order(gold.parts, answer.parts)
    if gold.kind == answer.kind and gold.signs == answer.signs:
        value = gold.kind == "value"
        return equal(gold.tokens, answer.tokens) if value else _all_same(gold.parts, answer.parts)
    parts = [shape.parts if shape.kind in UNORDERED else (shape,) for shape in (gold, answer)]
    return len(parts[0]) == 1 and parts != [(gold,), (answer,)] and _all_same(parts[0], parts[1])


def _all_same(golds: Sequence[Shape], answers: Sequence[Shape]) -> bool:
    return len(golds) == len(answers) and all(map(_same, golds, answers))


def _same_in_any_order(golds: Sequence[Shape], answers: Sequence[Shape]) -> bool:
    rest = list(answers)
    for gold in golds:
        index = next((index for index, answer in enumerate(rest) if _same(gold, answer)), None)
        if index is None:
            return False
        del rest[index]
    return not rest


def _assigns(shape: Shape, is_left_side: Callable[[Tokens], bool]) -> bool:
    """Return whether a shape states the value of something named; a chain of equations states it last."""
    return {*shape.signs} == {"="} and _states_last([side.tokens for side in shape.parts], is_left_side)


def _states_last(sides: Sequence[Tokens], is_left_side: Callable[[Tokens], bool]) -> bool:
    """Return whether each side of a chain is a left side, equal to the last one, or follows one in other names."""
    starts_with_name = is_left_side(sides[0])
    return all(is_left_side(side) or (starts_with_name and names_in(side)) or equal(side, sides[-1]) for side in sides)


def _pair(shape: Shape) -> Shape:
    """Return the tuple of the values that a list gives to several names, in alphabetical order; else the list."""
    if shape.kind != "list" or not all(_assigns(part, is_named) for part in shape.parts):
        return shape
    values = {"".join(part.parts[0].tokens).strip("@\\"): part.parts[-1] for part in shape.parts}
    if len(values) < len(shape.parts):
        return shape
    return Shape("()", shape.tokens, tuple(values[name] for name in sorted(values)))


def _same_relation(gold: Shape, answer: Shape) -> bool:
    """Return whether two relations are the same.

    They are side by side, or mirrored, or, unless the gold is solved for its only name, where one is a multiple of the
    other. A chain that gives a name's value counts as that one equation.
    """
    gold, answer = _without_steps(gold), _without_steps(answer)
    if gold.signs == answer.signs and _all_same(gold.parts, answer.parts):
        return True
    is_symmetric = {*answer.signs} <= {"=", "\\ne"}
    if is_symmetric and gold.signs == answer.signs[::-1] and _all_same(gold.parts, answer.parts[::-1]):
        return True
    is_solved = any(is_named(part.tokens) for part in gold.parts) and len(names_in(gold.tokens)) == 1
    if is_solved or gold.signs != answer.signs or len(gold.signs) != 1:
        return False
    return _proportional(gold, answer)


def _without_steps(relation: Shape) -> Shape:
    """Return ``x = 3`` for ``x = 1 + 2 = 3``; other relations as they are."""
    if not _assigns(relation, is_named):
        return relation
    return replace(relation, parts=(relation.parts[0], relation.parts[-1]), signs=("=",))


def _proportional(gold: Shape, answer: Shape) -> bool:
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


# Left sides

_OF_ANGLES = ("\\sin", "\\cos", "\\tan", "\\cot", "\\sec", "\\csc")
_CALCULATION = re.compile(r"(?=.*\d)(?=.*[-+*/])(?:[-+*/$%()\d.]|[A-Za-z]{3,}+| )+")


def _is_quantity(side: Tokens) -> bool:
    """Return whether a side is a name, or the size or an angle's function of one: ``|z|``, ``\\cos A``."""
    inner = side[1:-1] if side[:1] == ("|",) == side[-1:] else side[1:] if side[:1] and side[0] in _OF_ANGLES else side
    return is_named(inner)


def _is_plain(side: Tokens) -> bool:
    """Return whether a side is words, a quantity, a calculation with units, or several names without a factor.

    The size of an unknown is no such side, since ``|x| = 5`` leaves its sign open.
    """
    if side[:1] == ("|",) == side[-1:] and {*side[1:-1]} <= {*"xytnkm"}:
        return False
    signs = re.sub(r"\^\{?\d+", "", "".join(sign for sign in side if not is_name(sign)))
    has_names = len(names_in(side)) > 1 and not re.search(r"\d", signs) and RELATIONS.isdisjoint(side)
    is_plain = has_names or all(map(str.isalpha, side)) or _is_quantity(side)
    return bool(side) and (is_plain or _CALCULATION.fullmatch(" ".join(side)) is not None)


def right_side(text: str) -> str:
    """Return the last side of a cleaned equation whose other sides do not tell its value, else the text."""
    sides = split(tokens_of(text), ("=",))[0] if "=" in text else []
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
    shape = parse_formula(text)
    if isinstance(shape, Shape) and _assigns(shape, _is_plain):
        shape = shape.parts[-1]
    if isinstance(shape, str) or shape.kind != "value" or names_in(shape.tokens) or shape.tokens in (EMPTY, REALS):
        return None
    value = value_at(shape.tokens)
    return complex(value) if abs(value) < _LARGEST and "\\infty" not in shape.tokens else None
