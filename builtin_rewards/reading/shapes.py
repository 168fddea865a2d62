"""The structure of a formula: lists, intervals, sets, matrices, equations and inequalities, in bounded time."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection
from dataclasses import dataclass
from itertools import accumulate
from operator import gt

from builtin_rewards.reading.expressions import UnreadError, equal, is_name, names_in, tokens_of, value_at

MAX_CHARS = 600
MAX_DEPTH = 10  # the parser recurses
_ROUGHEST = 0.05  # the largest relative error of a number behind an approximate sign

Tokens = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """The structure of a formula."""

    kind: str
    """``value``, ``relation``, ``vector``, brackets such as ``()``, an operator on sets, or without brackets ``list``,
    and ``bounds`` for a list of inequalities."""
    tokens: Tokens
    parts: tuple[Shape, ...] = ()  # items or sides
    signs: Tokens = ()  # between the sides, or the cells of a matrix


FLIPPED = {"<": ">", ">": "<", "\\le": "\\ge", "\\ge": "\\le"}
RELATIONS = frozenset(("=", "\\ne", "\\in", *FLIPPED))
SET_OPERATORS: dict[str, Callable[[bool, bool], bool]] = {"\\cup": max, "\\setminus": gt, "\\cap": min}
UNORDERED = frozenset(("list", "bounds", "\\{\\}"))
_SIGNS = ({"\\pm": "+", "\\mp": "-"}, {"\\pm": "-", "\\mp": "+"})
INTERVALS = frozenset(("()", "[]", "(]", "[)"))
EMPTY, REALS = ("\\emptyset",), ("\\reals",)
MATRIX = "\\matrixbegin\\matrixend"
_DEPTHS = dict.fromkeys(("(", "[", "{", "\\{", "\\langle", "\\matrixbegin"), 1)
_DEPTHS |= dict.fromkeys((")", "]", "}", "\\}", "\\rangle", "\\matrixend"), -1)


def _depths(tokens: Tokens) -> list[int]:
    return [*accumulate(_DEPTHS.get(token, 0) for token in tokens)]


def split(tokens: Tokens, marks: Collection[str]) -> tuple[list[Tokens], Tokens]:
    """Return the parts of tokens between marks that stand in no brackets, and the marks."""
    pairs = zip(tokens, _depths(tokens), strict=True)
    indices = [index for index, (token, depth) in enumerate(pairs) if token in marks and not depth]
    bounds = zip([-1, *indices], [*indices, len(tokens)], strict=True)
    return [tokens[start + 1 : end] for start, end in bounds], tuple(tokens[index] for index in indices)


def _shape(tokens: Tokens) -> Shape:
    """Return a formula's structure, split first where it binds most loosely; raise ``UnreadError``."""
    parts, marks = split(tokens, (",", ";", "\\or", "\\and"))
    if marks or "\\pm" in tokens or "\\mp" in tokens:
        is_or = {*marks} == {"\\or"} and any(not {*FLIPPED}.isdisjoint(part) for part in parts)
        are_bounds = len({*marks}) == 1 and all({*FLIPPED, "\\ne", *"=" * is_or}.intersection(part) for part in parts)
        kind = {"\\or": "\\cup", "\\and": "\\cap"}.get(marks[0], "bounds") if are_bounds else "list"
        return Shape(kind, tokens, _items(parts))
    parts, marks = split(tokens, ("\\approx",))
    if marks and is_named(parts[0]):
        return _shape(parts[-1])
    if marks and _may_be_rounded(parts[0], parts[-1]):
        return _shape(parts[0])
    parts, marks = split(tokens, RELATIONS)
    if marks == ("\\in",) and is_named(parts[0]):
        return _shape(parts[1])
    if marks and marks[0] in (">", "\\ge"):
        parts, marks = parts[::-1], tuple(FLIPPED.get(sign, sign) for sign in marks[::-1])
    if marks and all(parts):
        return _bounds_of_size(parts, marks) or Shape("relation", tokens, tuple(map(_shape, parts)), marks)
    for operator in SET_OPERATORS:
        parts, marks = split(tokens, (operator,))
        if marks and all(parts):
            return Shape(operator, tokens, tuple(map(_shape, parts)))
    is_bracketed = tokens and tokens[0] in _DEPTHS and _depths(tokens).index(0) == len(tokens) - 1
    return _bracket_shape(tokens) if is_bracketed else _value(tokens)


def _may_be_rounded(formula: Tokens, approximation: Tokens) -> bool:
    """Return whether the second may be the first one's last side rounded; names and units may be any number."""
    sides, _ = split(formula, RELATIONS)
    if names_in(sides[-1]) or names_in(approximation):
        return True
    value = value_at(sides[-1])
    return bool(abs(value - value_at(approximation)) <= abs(value) * _ROUGHEST)


def _bounds_of_size(parts: list[Tokens], marks: Tokens) -> Shape | None:
    """Return ``|x - c| < a`` as the interval that it is and ``|x - c| > a`` as its two rays; ``None`` for the rest."""
    bars = [side[:1] == ("|",) == side[-1:] and side.count("|") == 2 for side in parts]
    if len(parts) != 2 or not any(bars) or marks[0] not in ("<", "\\le"):
        return None
    inner, bound = parts[bars.index(True)][1:-1], parts[not bars.index(True)]
    names = [token for token in inner if is_name(token)]
    centre = tuple("0" if token in names else token for token in inner)
    if len(names) != 1 or len(names[0]) != 1 or not equal(inner, (names[0], "+", "(", *centre, ")")):
        return None
    (low, high) = ((sign, "(", *bound, ")", "-", "(", *centre, ")") for sign in "-+")
    name = (names[0],)
    if bars[0]:
        return _shape((*low, *marks, *name, *marks, *high))
    return _shape((*name, *marks, *low, "\\or", *high, *marks, *name))


def _value(tokens: Tokens) -> Shape:
    if tokens not in (EMPTY, REALS):
        value_at(tokens)
    return Shape("value", tokens)


def _items(parts: list[Tokens]) -> tuple[Shape, ...]:
    """Return the shapes of items; an item with plus or minus becomes two, in which all such signs agree."""
    if any(part.count("\\pm") > 1 or part.count("\\mp") > 1 for part in parts):
        raise UnreadError("several signs of plus or minus")
    return tuple(
        _shape(variant)
        for part in filter(None, parts)
        for variant in dict.fromkeys(tuple(signs.get(token, token) for token in part) for signs in _SIGNS)
    )


def _bracket_shape(tokens: Tokens) -> Shape:
    kind, content = tokens[0] + tokens[-1], tokens[1:-1]
    if kind in ("()", "[]") and content[:1] == ("\\matrixbegin",) and content.index("\\matrixend") == len(content) - 1:
        return _bracket_shape(content)
    if kind == "\\{\\}" and (condition := _condition(content)):
        return _shape(condition)
    parts, marks = split(content, ("&", "\\\\") if kind == MATRIX else (",", ";"))
    if kind == "\\{\\}" or (kind == "{}" and marks):
        return Shape("\\{\\}", tokens, _items(parts)) if content else _value(EMPTY)
    if kind == "\\langle\\rangle" or {*marks} == {"\\\\"}:
        kind = "vector" if marks and all(parts) else kind
    if kind in {*INTERVALS, MATRIX, "vector"} and (kind == MATRIX or (marks and all(parts))):
        return Shape(kind, tokens, tuple(map(_shape, parts)), marks if kind == MATRIX else ())
    return _value(tokens)


def _condition(content: Tokens) -> Tokens:
    """Return the condition of a set such as ``x : x > 2`` or ``x \\in \\reals : x > 2``; nothing for other sets."""
    start = 3 if content[1:3] == ("\\in", *REALS) else 1
    if not is_named(content[:1]) or content[start : start + 1] not in ((":",), ("\\mid",), ("|",)):
        return ()
    parts, _ = split(content[start + 1 :], (",",))
    return tuple(token for part in parts for token in ("\\and", *part))[1:]


@functools.lru_cache(maxsize=512)
def parse_formula(text: str) -> Shape | str:
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
    shape = parse_formula(text)
    return shape if isinstance(shape, str) else None


def is_named(side: Tokens) -> bool:
    """Return whether a side is one name, perhaps of a function with its arguments, or a tuple of names."""
    if side[:1] == ("(",) and side[-1:] == (")",):
        return all(map(is_named, split(side[1:-1], (",",))[0]))
    is_applied = side[1:2] == ("(",) and side[-1] == ")" and {"(", ")", "="}.isdisjoint(side[2:-1])
    return bool(side) and is_name(side[0]) and side not in (("e",), ("i",)) and (len(side) == 1 or is_applied)
