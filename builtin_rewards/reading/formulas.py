"""Formulas compared: lists, tuples, intervals, sets, matrices, equations and inequalities, item by item.

What they are made of is read here; the expressions in them are computed at a few points
(:mod:`builtin_rewards.reading.expressions`). A formula with anything that is not understood equals its own text only.
Every step is bounded by the formula's length and the sizes of its numbers.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from operator import gt
from typing import Any

from builtin_rewards.reading.expressions import (
    LETTERS,
    MARKED,
    OPENERS,
    POINTS,
    UnreadError,
    closing,
    depth_change,
    equal,
    is_real,
    names_in,
    near,
    tokens_of,
    value_at,
)
from builtin_rewards.reading.numbers import Unit, clean, read_unit

MAX_CHARS = 600
MAX_DEPTH = 10
MAX_ITEMS = 40
_ROUGHEST = 20
"""What a number is said to be approximately is off by less than this part of it."""

_Tokens = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Shape:
    """A formula as it is built.

    Attributes:
        kind: ``value`` for an expression, ``relation``, ``list`` for items without brackets, brackets such as ``()``,
            ``row`` of a matrix, or an operator on sets.
        tokens: All that it is made of.
        parts: Its items or sides.
        signs: A relation's signs, one fewer than its sides.
    """

    kind: str
    tokens: _Tokens
    parts: tuple[_Shape, ...] = ()
    signs: _Tokens = ()


_RELATIONS = frozenset(("=", "<", ">", "\\le", "\\ge", "\\ne", "\\in"))
_FLIPPED = {"<": ">", ">": "<", "\\le": "\\ge", "\\ge": "\\le"}
_SET_OPERATORS: dict[str, Callable[[bool, bool], bool]] = {"\\cup": max, "\\setminus": gt, "\\cap": min}
_UNORDERED = frozenset(("list", "\\{\\}"))
_INTERVALS = frozenset(("()", "[]", "(]", "[)"))
_WHOLE_SETS = ("\\emptyset", "\\mathbb{R}", "\\mathbbR")
_MATRIX = "\\matrixbegin\\matrixend"


def _split(tokens: Sequence[str], marks: Collection[str]) -> tuple[list[_Tokens], _Tokens]:
    """The parts of tokens between marks that stand in no brackets, and the marks."""
    depths = accumulate(map(depth_change, tokens))
    places = [
        place for place, (token, depth) in enumerate(zip(tokens, depths, strict=True)) if token in marks and not depth
    ]
    starts, ends = [0, *(place + 1 for place in places)], [*places, len(tokens)]
    parts = [tuple(tokens[start:end]) for start, end in zip(starts, ends, strict=True)]
    return parts, tuple(tokens[place] for place in places)


def _shape(tokens: _Tokens) -> _Shape:
    parts, marks = _split(tokens, (",", ";", "\\or", "\\and"))
    if marks or "\\pm" in tokens or "\\mp" in tokens:
        bounds = len({*marks}) == 1 and not any({*_FLIPPED, "\\ne"}.isdisjoint(part) for part in parts)
        kind = {"\\or": "\\cup", "\\and": "\\cap"}.get(marks[0], "list") if bounds else "list"
        return _Shape(kind, tokens, _items(parts))
    parts, marks = _split(tokens, ("\\approx",))
    if marks and all(parts) and _approximate(parts[0], parts[-1]):
        return _shape(parts[-1] if _is_name(parts[0]) else parts[0])
    parts, marks = _split(tokens, _RELATIONS)
    if marks == ("\\in",) and _is_name(parts[0]):
        return _shape(parts[1])
    if marks and all(parts):
        return _Shape("relation", tokens, tuple(map(_shape, parts)), marks)
    for operator in _SET_OPERATORS:
        parts, marks = _split(tokens, (operator,))
        if marks and all(parts):
            return _Shape(operator, tokens, tuple(map(_shape, parts)))
    if tokens and tokens[0] in OPENERS and closing(tokens, 0) == len(tokens) - 1:
        return _bracketed(tokens)
    return _Shape("value", tokens)


def _approximate(exact: _Tokens, rounded: _Tokens) -> bool:
    """Whether the second of two numbers may be the first one rounded; what has names in it may be anything."""
    if names_in(exact) or names_in(rounded):
        return True
    one, other = (value_at(side, 0) for side in (exact, rounded))
    return bool(abs(one - other) <= abs(one) / _ROUGHEST)


def _items(parts: list[_Tokens]) -> tuple[_Shape, ...]:
    """The shapes of items; one with plus or minus is two, and all such signs in it are chosen together."""
    spread: list[_Tokens] = []
    for part in filter(None, parts):
        if part.count("\\pm") > 1 or part.count("\\mp") > 1:
            raise UnreadError("several signs of plus or minus")
        signs = [("+", "-"), ("-", "+")][: 2 if "\\pm" in part or "\\mp" in part else 1]
        spread += [tuple({"\\pm": one, "\\mp": other}.get(token, token) for token in part) for one, other in signs]
    if len(spread) > MAX_ITEMS:
        raise UnreadError(f"longer than {MAX_ITEMS} items")
    return tuple(map(_shape, spread))


def _bracketed(tokens: _Tokens) -> _Shape:
    kind, inside = tokens[0] + tokens[-1], tokens[1:-1]
    if kind == _MATRIX:
        rows = [row for row in _split(inside, ("\\\\",))[0] if row]
        return _Shape(kind, tokens, tuple(_Shape("row", row, tuple(map(_shape, _split(row, "&")[0]))) for row in rows))
    parts = _split(inside, (",", ";"))[0]
    is_set = kind == "\\{\\}" or (kind == "{}" and len(parts) > 1)
    if is_set and not {"\\mid", "|", ":", "\\colon"}.intersection(inside):
        return _Shape("\\{\\}", tokens, _items(parts)) if inside else _Shape("value", ("\\emptyset",))
    if kind not in {*_INTERVALS, "\\langle\\rangle"} or len(parts) == 1 or not all(parts):
        return _Shape("value", tokens)
    return _Shape(kind, tokens, tuple(map(_shape, parts)))


@functools.lru_cache(maxsize=512)
def _read(text: str) -> _Shape | str:
    """A cleaned formula's shape, or why it has none."""
    if len(text) > MAX_CHARS:
        return f"longer than {MAX_CHARS} characters"
    braces = [*accumulate((character == "{") - (character == "}") for character in text)]
    if any(depth < 0 for depth in braces) or 0 not in braces[-1:]:
        return "braces that do not balance"
    if max(accumulate((character in "([{") - (character in ")]}") for character in text)) > MAX_DEPTH:
        return f"nested deeper than {MAX_DEPTH}"
    try:
        return _shape(tokens_of(text))
    except UnreadError as fault:
        return str(fault)


def _leaves(shape: _Shape) -> Iterator[_Shape]:
    if not shape.parts:
        yield shape
    for part in shape.parts:
        yield from _leaves(part)


@functools.lru_cache(maxsize=512)
def unread(text: str) -> str | None:
    """Says why a cleaned formula can be compared as text only, or ``None`` if its value can be."""
    shape = _read(text)
    if isinstance(shape, str):
        return shape
    try:
        for leaf in _leaves(shape):
            if leaf.tokens != ("\\emptyset",):
                value_at(leaf.tokens, 0)
    except UnreadError as fault:
        return str(fault)
    return None


def same_formula(gold: str, given: str) -> bool:
    """Whether two cleaned formulas are equal.

    - Expressions are equal if they have the same value at every point; a decimal of six places or more also stands for
      the number that it is, rounded. An expression that is not understood equals its own text only.
    - What stands in brackets is not what stands in others or in none: ``(2, 4)`` is neither ``\\{2, 4\\}`` nor ``2, 4``
      nor ``[2, 4]``. Braces, and items joined by commas, "and" or "or", have no order; ``\\pm 2`` is ``2, -2``.
    - ``x = 3`` and 3 are the same, and ``x = 3, y = 4`` and ``(3, 4)``; a gold may also say what the size, an angle's
      function or a derivative of a name is: ``|z| = 3``, ``\\cos A = 3/5``. An equation answers a gold without
      one only if its left side is a name, what several names make up, a function of a name, or a calculation: not
      ``2x = 6``.
    - Equations and inequalities are equal if one is the other times a number, unless the gold is solved for its only
      name. An inequality is the same as its interval.
    - Capitals are other letters than small ones only where one of the formulas has both.
    """
    if len(gold) <= MAX_CHARS and len(given) > MAX_CHARS:
        return False
    if gold.split() == given.split() or tokens_of(gold) == tokens_of(given):
        return True
    one, other = _read(gold), _read(given)
    if isinstance(one, str) or isinstance(other, str):
        return False
    names = [names_in(shape.tokens) for shape in (one, other)]
    folded = not any(name != name.lower() and name.lower() in each for each in names for name in each)
    return _same(one, other, folded)


def _same(gold: _Shape, given: _Shape, folded: bool) -> bool:
    if not {"relation", *_SET_OPERATORS}.isdisjoint((gold.kind, given.kind)) and _same_set(gold, given):
        return True
    if gold.kind == given.kind == "relation":
        return _same_relation(gold, given, folded)
    gold, given = _unassigned(gold, given)
    unordered = gold.kind == given.kind and gold.kind in ("\\cup", "\\cap")
    if unordered or (gold.kind in _UNORDERED and given.kind in _UNORDERED):
        return _paired(gold.parts, given.parts, folded)
    if gold.kind != given.kind:
        single = {gold.kind, given.kind} & _UNORDERED and len(_parts(gold)) == 1 == len(_parts(given))
        return bool(single) and _same(_parts(gold)[0], _parts(given)[0], folded)
    if gold.kind == "value":
        return equal(gold.tokens, given.tokens, folded=folded)
    return _alike(gold.parts, given.parts, folded)


def _parts(shape: _Shape) -> tuple[_Shape, ...]:
    return shape.parts if shape.kind in _UNORDERED else (shape,)


def _alike(golds: Sequence[_Shape], givens: Sequence[_Shape], folded: bool) -> bool:
    """Whether items are the same one by one."""
    return len(golds) == len(givens) and all(_same(*pair, folded) for pair in zip(golds, givens, strict=True))


def _paired(golds: Sequence[_Shape], givens: Sequence[_Shape], folded: bool) -> bool:
    """Whether items are the same in some order."""
    left = list(givens)
    for gold in golds:
        found = next((place for place, given in enumerate(left) if _same(gold, given, folded)), None)
        if found is None:
            return False
        del left[found]
    return not left


def _unassigned(gold: _Shape, given: _Shape) -> tuple[_Shape, _Shape]:
    """Both without the names that only one of them gives values to."""
    if _assigns(given, _is_plain):
        return gold, given.parts[-1]
    if _assigns(gold, lambda side: _is_name(side) or _is_function(side)):
        return gold.parts[-1], given
    if given.kind == "()":
        return _pair(gold), given
    return gold, _pair(given) if gold.kind == "()" else given


def _assigns(shape: _Shape, named: Callable[[_Tokens], bool]) -> bool:
    """Whether a shape says what something named is; a chain of equations says it last."""
    return {*shape.signs} == {"="} and _says_last(shape.parts[-1].tokens, [side.tokens for side in shape.parts], named)


def _says_last(last: _Tokens, sides: Sequence[_Tokens], named: Callable[[_Tokens], bool]) -> bool:
    """Whether sides of a chain of equations are named, calculations, what a name is in other names, or the last."""
    from_name = named(sides[0])
    return all(
        named(side) or _is_calculation(side) or (from_name and names_in(side)) or equal(side, last, folded=False)
        for side in sides
    )


def _pair(shape: _Shape) -> _Shape:
    """The tuple of what a list gives to several names, if they stand in the order of the alphabet; else the list."""
    if shape.kind != "list" or not all(_assigns(part, _is_name) for part in shape.parts):
        return shape
    names = ["".join(part.parts[0].tokens) for part in shape.parts]
    ordered = len({*names}) == len(names) and names == sorted(names)
    return _Shape("()", shape.tokens, tuple(part.parts[-1] for part in shape.parts)) if ordered else shape


def _same_relation(gold: _Shape, given: _Shape, folded: bool) -> bool:
    gold, given = _ends(gold), _ends(given)
    for each in (given, _turned(given)):
        if each.signs == gold.signs and _alike(gold.parts, each.parts, folded):
            return True
    solved = _is_name(gold.parts[0].tokens) and len(names_in(gold.tokens)) == 1
    return not solved and len(gold.signs) == 1 == len(given.signs) and _proportional(gold, given, folded)


def _turned(shape: _Shape) -> _Shape:
    signs = tuple(_FLIPPED.get(sign, sign) for sign in shape.signs[::-1])
    return _Shape(shape.kind, shape.tokens, shape.parts[::-1], signs)


def _ends(shape: _Shape) -> _Shape:
    """A chain of equations from a name: its first and its last side."""
    if {*shape.signs} != {"="} or not _is_name(shape.parts[0].tokens):
        return shape
    return _Shape("relation", shape.tokens, (shape.parts[0], shape.parts[-1]), ("=",))


def _proportional(gold: _Shape, given: _Shape, folded: bool) -> bool:
    """Whether what one relation says to be 0, or less, is the other's times a number; an identity is no multiple."""
    pair = [_turned(shape) if shape.signs[0] in (">", "\\ge") else shape for shape in (gold, given)]
    if pair[0].signs != pair[1].signs or any(side.kind != "value" for shape in pair for side in shape.parts):
        return False
    ratios = []
    for point in range(POINTS):
        try:
            sides = [[value_at(side.tokens, point, folded=folded) for side in shape.parts] for shape in pair]
        except UnreadError:  # a side that is text only
            return False
        one, other = (left - right for left, right in sides)
        if near(one, 0) or near(other, 0):
            return False
        ratios.append(one / other)
    same = all(near(ratio, ratios[0]) for ratio in ratios)
    return same and (pair[0].signs[0] in ("=", "\\ne") or ratios[0].real > 0)


# Sets of real numbers: the same if they hold the same ones of all places where they begin and end, and between these

_END = 10**650


def _same_set(one: _Shape, other: _Shape) -> bool:
    names = [{name.lower() for name in names_in(shape.tokens)} - {"r"} for shape in (one, other)]
    if all(names) and names[0] != names[1]:
        return False
    if (ends := _ends_of(one)) is None or (others := _ends_of(other)) is None:
        return False
    places = sorted({*ends, *others, -_END, _END})
    between = [(low + high) / 2 for low, high in pairwise(places)]
    return all(_holds(one, place) == _holds(other, place) for place in (*places[1:-1], *between))


def _ends_of(shape: _Shape) -> list[Any] | None:
    """Where a set of real numbers begins and ends; ``None`` for what is none, or has other names in it."""
    if shape.kind in _SET_OPERATORS:
        found = [_ends_of(part) for part in shape.parts]
        return None if None in found else [end for ends in found for end in ends or ()]
    if "".join(shape.tokens) in _WHOLE_SETS:
        return []
    sides = [part for part in shape.parts if shape.kind != "relation" or not _is_name(part.tokens)]
    ends = [end for side in sides if (end := _end(side)) is not None]
    if len(ends) != len(sides):
        return None
    if shape.kind == "relation":
        return ends if len(ends) == len(shape.parts) - 1 and {*shape.signs} <= {*_FLIPPED, "\\ne"} else None
    rising = shape.kind in _INTERVALS and len(ends) == 2 and ends[0] < ends[1]
    return ends if rising or shape.kind in _UNORDERED else None


def _end(shape: _Shape) -> Any:
    """A real number, or one beyond all for infinity; ``None`` for anything else."""
    if shape.tokens[-1:] == ("\\infty",) and shape.tokens[:-1] in ((), ("+",), ("-",)):
        return -_END if shape.tokens[0] == "-" else _END
    try:
        value = None if shape.kind != "value" or names_in(shape.tokens) else value_at(shape.tokens, 0)
    except UnreadError:
        return None
    return value if value is not None and is_real(value) else None


def _holds(shape: _Shape, place: Any) -> bool:
    if shape.kind in _SET_OPERATORS:
        return functools.reduce(_SET_OPERATORS[shape.kind], (_holds(part, place) for part in shape.parts))
    if not shape.parts:
        return shape.tokens != ("\\emptyset",)
    sides = [place if _is_name(part.tokens) else _end(part) for part in shape.parts]
    if shape.kind in _UNORDERED:
        return any(near(place, side) for side in sides)
    if shape.kind != "relation":
        begins, ends = ("\\le" if bracket in "[]" else "<" for bracket in shape.kind)
        return _compares(begins, sides[0], place) and _compares(ends, place, sides[1])
    return all(map(_compares, shape.signs, sides, sides[1:]))


def _compares(sign: str, one: Any, other: Any) -> bool:
    if near(one, other):
        return sign in ("\\le", "\\ge")
    return sign == "\\ne" or (one < other) == (sign in ("<", "\\le"))


# Left sides

_CHANGES = frozenset(("-", "+", "*", "/", "^", "!", "\\sqrt", "\\log", "\\ln", "\\exp", "\\frac", "\\binom"))
_AFTER_NAME = re.compile(r"(?:_(?:\{[^{}]*\}|\w))?'*(?:\([^()=]*\))?")
_OF_ANGLES = frozenset(f"\\{name}" for name in ("sin", "cos", "tan", "cot", "sec", "csc"))
_UNDER_MARK = re.compile(r"(?:\{[^{}]*\}|[A-Za-z]+)")


def _is_name(side: _Tokens) -> bool:
    """Whether a side is one name, with its index and what it is a function of, or a tuple of names."""
    if side[:1] == ("(",) and side[-1:] == (")",):
        return all(map(_is_name, _split(side[1:-1], (",",))[0]))
    if not side or side in (("e",), ("i",), ("\\infty",)):
        return False
    after = "".join(side[1:])
    if side[0] in MARKED:
        return _UNDER_MARK.fullmatch(after) is not None
    return (side[0].isalpha() or side[0] in LETTERS) and _AFTER_NAME.fullmatch(after) is not None


def _is_function(side: _Tokens) -> bool:
    """Whether a side is the size, an angle's function or a derivative of a name: ``|z|``, ``\\cos A``."""
    if side[:1] == ("|",) == side[-1:]:
        return _is_name(side[1:-1])
    if side[:2] == ("\\frac", "{") and side[2:3] and side[2].startswith("d"):
        return all(each in "{}" or each == "\\frac" or each.startswith("d") for each in side)
    return bool(side) and side[0] in _OF_ANGLES and _is_name(side[1:])


def _is_plain(side: _Tokens) -> bool:
    """Whether a side is a name, words, what several names make up or one function of a name, and has no factor."""
    if not side or not _RELATIONS.isdisjoint(side):
        return False
    if all(map(str.isalpha, side)) or _is_name(side):
        return True
    inner = re.sub(r"[_^](?:\{[^{}]*\}|\w)", "", " ".join(side).replace("^ ", "^").replace("_ ", "_"))
    names = names_in(side)
    return not re.search(r"\d", inner) and (len(names) > 1 or (len(names) == 1 and _CHANGES.isdisjoint(side)))


def _is_calculation(side: _Tokens) -> bool:
    """Whether a side is numbers with their units, and an operator at least: ``18 eggs \\times 1``."""
    plain = all(each in "+-*/$%()" or each[0].isdigit() or (each.isalpha() and len(each) > 2) for each in side)
    return plain and not {*"+-*/"}.isdisjoint(side) and any(each[0].isdigit() for each in side)


def plain_left_side(text: str) -> bool:
    """Whether all but the last side of an equation are names, words, calculations with numbers or plain otherwise."""
    sides = _split(tokens_of(text), ("=",))[0]
    return _says_last(sides[-1], sides, _is_plain)


# Units and numbers

_TEXT_UNIT = re.compile(r"\\(?:text|mbox|mathrm)\s*\{\s*([A-Za-z][^{}]*)\}\s*(\^\s*\{?\s*\d\s*\}?)?[\s.$]*$")
_NO_THING = frozenset(("unit", "squar", "cubic"))
"""The words of a unit that names no thing, as :func:`read_unit` gives them: ``square units``."""
_UNIT_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{2,}")


def split_unit(text: str) -> tuple[str, Unit | None]:
    """Gives an answer's formula, cleaned, and the unit that stands after it."""
    if len(text) > 2 * MAX_CHARS:
        return clean(text), None
    cleaned, named = clean(text), _TEXT_UNIT.search(text)
    parts = [(clean(text[: named.start()]), f"{named[1].strip()}{named[2] or ''}")] if named else []
    parts += [(cleaned[: word.start()].rstrip(), cleaned[word.start() :]) for word in _UNIT_WORD.finditer(cleaned)]
    for formula, behind in parts:
        unit, rest = read_unit(f" {behind}")
        if formula and unit is not None and unit.words <= _NO_THING and not rest.strip():
            return formula, unit
    return cleaned, None


def number_of(text: str) -> complex | None:
    """The value of a cleaned formula without names; of an equation that says what something is, its right side's."""
    shape = _read(text)
    if isinstance(shape, str):
        return None
    shape = shape.parts[-1] if _assigns(shape, _is_plain) else shape
    if shape.kind != "value" or names_in(shape.tokens) or "\\infty" in shape.tokens:
        return None
    try:
        value = complex(value_at(shape.tokens, 0))
    except (UnreadError, OverflowError):
        return None
    return value if math.isfinite(value.real) and math.isfinite(value.imag) else None
