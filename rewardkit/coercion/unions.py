"""Which member of a union a value becomes.

A real value becomes the first member that takes it unchanged, else the first that takes it at all. A text is offered
to the members in the order of :class:`~rewardkit.coercion.rule.TextOrder`, whatever order the union has: the narrower
first, ``str`` last. So ``int | str`` makes ``"4"`` a 4 and leaves ``"4.0"`` and ``"abc"`` text.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from rewardkit.coercion.literals import TextError, looks_structured, parse_container
from rewardkit.coercion.rule import Coercer, ColumnValueError, Convert, TextOrder
from rewardkit.coercion.scalars import is_missing, python_scalar, to_bool, to_bool_word, to_int, to_plain_int

_VALUES = (str, int, float, bool, bytes, complex, Decimal, type(None))
_NARROW: dict[Convert, Convert] = {to_bool: to_bool_word, to_int: to_plain_int}
"""Members that are offered a text twice: narrowly in their turn, and in full as the last resort."""


def optional_convert(coercer: Coercer, expected: str) -> Convert:
    """Return the reader of None or one other member."""
    convert_member = coercer.convert

    def convert(value: object) -> object:
        if is_missing(value):
            return None
        try:
            return convert_member(value)
        except ColumnValueError as error:
            raise error.seen_as(expected, value) from None

    return convert


def union_convert(coercers: Sequence[Coercer], expected: str) -> Convert:
    """Return the reader of several members, none of them None."""
    members = sorted(coercers, key=lambda coercer: coercer.order)
    structured = [coercer.convert for coercer in members if coercer.order is TextOrder.STRUCTURED]
    before, after = _text_steps(members)

    def convert(value: object) -> object:
        scalar = python_scalar(value)
        if not isinstance(scalar, str):
            return _choose([coercer.convert for coercer in coercers], scalar, expected, value)
        has_result, result = _first(before, scalar)
        if not has_result and structured and looks_structured(scalar):
            has_result, result = _read_container(structured, scalar)
        if not has_result:
            has_result, result = _first(after, scalar)
        if not has_result:
            raise ColumnValueError.of(expected, value)
        return result

    return convert


def _text_steps(members: Sequence[Coercer]) -> tuple[list[Convert], list[Convert]]:
    """Return the members that a text is offered to before those that read brackets, and those after them."""
    before = [_NARROW.get(member.convert, member.convert) for member in members if member.order < TextOrder.STRUCTURED]
    after = [member.convert for member in members if member.order > TextOrder.STRUCTURED]
    return before, after + [member.convert for member in members if member.convert in _NARROW]


def _first(converts: Sequence[Convert], value: object) -> tuple[bool, object]:
    """Return whether a reader accepts the value, and the result of the first that does."""
    for convert in converts:
        try:
            return True, convert(value)
        except ColumnValueError:
            continue
    return False, None


def _read_container(converts: Sequence[Convert], text: str) -> tuple[bool, object]:
    """Return whether a reader accepts the container in a text, and the result of the one that suits best."""
    try:
        container = parse_container(text)
        return True, _choose(converts, container, "", text)
    except (TextError, ColumnValueError):
        return False, None


def _choose(converts: Sequence[Convert], scalar: object, expected: str, value: object) -> object:
    """Return the first result that equals ``scalar``, else the first result; ColumnValueError without any."""
    results: list[object] = []
    for convert in converts:
        try:
            result = convert(scalar)
        except ColumnValueError:
            continue
        if _is_same(scalar, result):
            return result
        results.append(result)
    if not results:
        raise ColumnValueError.of(expected, value)
    return results[0]


def _is_same(scalar: object, result: object) -> bool:
    """Return whether two values are the same in type and content, all the way down."""
    if scalar is result:
        return True
    if type(scalar) is not type(result):
        return False
    if isinstance(scalar, _VALUES):
        return scalar == result
    if isinstance(scalar, list | tuple) and isinstance(result, list | tuple):
        return len(scalar) == len(result) and all(map(_is_same, scalar, result))
    if isinstance(scalar, dict) and isinstance(result, dict):
        return len(scalar) == len(result) and all(map(_is_same, scalar.items(), result.items()))
    if isinstance(scalar, set | frozenset) and isinstance(result, set | frozenset):
        return {(type(member), member) for member in scalar} == {(type(member), member) for member in result}
    return False
