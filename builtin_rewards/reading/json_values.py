"""JSON values in a completion: where one stands, how strictly it is read, and when two are equal."""

from __future__ import annotations

import contextlib
import json
import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from json import JSONDecoder
from typing import Any

from builtin_rewards.reading.answer import AnswerRule, final_answer
from builtin_rewards.reading.markdown import last_code
from builtin_rewards.reading.negation import objection
from builtin_rewards.reading.thoughts import strip_frame
from rewardkit.extending import IsoText, plain_json, shorten

_MAX_DEPTH = 100  # the deepest value that a row may expect, so that comparing with it cannot recurse too deep
_SHOWN_CHARS = 200
PYTHON_CONSTANTS = {"True": "true", "False": "false", "None": "null"}


class Untyped(str):
    """A value in a form without types, such as an XML tag: ``5`` may be the number or the text."""


class GoldObject(dict[str, Any]):
    """An object of a row that is not JSON text, without its nulls: Arrow pads a row with null for keys it lacks."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        super().__init__({name: value for name, value in fields.items() if value is not None})
        self.nulls = frozenset(fields.keys() - self.keys())
        """The names whose value is null: a completion may leave them out, and may give null."""


def json_text(completion: str) -> str | None:
    """Return the last block marked ``json`` of :func:`answer_part`, else the last unmarked one, else all of it."""
    return last_code(answer_part(completion), ("json",))


def fence_objection(text: str) -> str:
    """Return why the fenced JSON of an answer does not count, such as a denial before it; an empty text if it does."""
    block = (last_code(text, ("json",)) or "").strip()
    start = text.rfind(block)
    fence = max(text.rfind(marks, 0, max(start, 0)) for marks in ("```", "~~~"))
    if not block or fence < 0:
        return ""
    behind = text[start + len(block) :].lstrip("`~ \t\r\n")
    return objection(f"{text[:fence]}X\n{behind}", fence, fence + 1)


def answer_part(completion: str) -> str:
    """Return the final answer by its tags; all of a completion that is one JSON value, which may itself hold tags."""
    text = strip_frame(completion)
    if text.lstrip()[:1] in ("{", "[", '"'):
        with contextlib.suppress(ValueError):
            read_json(text)
            return text
    return final_answer(completion, (AnswerRule.TAG,))


def read_json(text: str) -> Any:
    """Return the one JSON value that a text is, read strictly by RFC 8259; raise a ``ValueError`` where it is not.

    Refused are ``NaN``, ``Infinity``, a key twice, numbers beyond a double and nesting beyond some 1,000 levels.
    """
    try:
        return _DECODER.decode(text)
    except RecursionError:
        raise ValueError("nested too deep") from None


def read_json_at(text: str, start: int) -> tuple[Any, int]:
    """Return the JSON value at an index, and the index behind it; raise as :func:`read_json` does."""
    try:
        return _DECODER.raw_decode(text, start)
    except RecursionError:
        raise ValueError("nested too deep") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        key, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise ValueError(f"the key {shorten(key, _SHOWN_CHARS)} stands twice in an object")
    return result


def _number(text: str) -> int | float:
    if not math.isfinite(number := float(text)):
        raise ValueError(f"{text[:_SHOWN_CHARS]} is not a JSON number within a double's range")
    return int(text) if text.lstrip("-").isdigit() else number


def json_decoder(pairs_hook: Callable[[list[tuple[str, Any]]], dict[str, Any]], *, strict: bool = True) -> JSONDecoder:
    """Return a decoder that refuses numbers as :func:`read_json` does, and makes objects by the hook."""
    return JSONDecoder(
        object_pairs_hook=pairs_hook, strict=strict, parse_constant=_number, parse_float=_number, parse_int=_number
    )


_DECODER = json_decoder(_unique)


def expected_json(answer: object) -> Any:
    """Return the JSON value that a row expects, from JSON text or an object; raise a ``ValueError`` for none.

    Objects of a row that is not text are each a :class:`GoldObject`, and dates that a library read an ``IsoText``.
    """
    try:
        value = read_json(answer) if isinstance(answer, str) and not _is_nothing(answer) else _row_json(answer)
        if value is None or _is_nothing(value):
            raise LookupError("the row has no answer")
        if deeper_than(value, _MAX_DEPTH):
            raise ValueError(f"nested more than {_MAX_DEPTH} deep")
    except LookupError as error:
        raise ValueError(*error.args) from None
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"the row's answer is not JSON that can be used: {error}") from None
    return value


def _is_nothing(value: object) -> bool:
    return isinstance(value, str) and value.strip() in ("", "null", "None")


def _row_json(value: object) -> Any:
    """Return the JSON value of a row's own value, which is not JSON text; raise as ``json.dumps`` and the reader do."""
    plain = plain_json(value)
    read_json(json.dumps(plain))
    return _without_nulls(plain)


def _without_nulls(value: Any) -> Any:
    """Return a JSON value whose objects are each a :class:`GoldObject`."""
    if isinstance(value, dict):
        return GoldObject({name: _without_nulls(part) for name, part in value.items()})
    return [_without_nulls(part) for part in value] if isinstance(value, list) else value


def counted_names(expected: Mapping[str, Any], value: Mapping[str, Any]) -> set[str]:
    """Return the names of an object that count where another is expected: all but those that are null in both."""
    nulls = expected.nulls if isinstance(expected, GoldObject) else frozenset()
    return {name for name, part in value.items() if name not in nulls or not same_json(None, part)}


def same_json(expected: object, value: object) -> bool:
    """Whether two JSON values are equal: 1 is 1.0, not ``true`` or ``"1"``; an :class:`Untyped` equals its JSON too.

    An ``IsoText`` equals the texts of its moment, and a :class:`GoldObject` one with or without its nulls.
    """
    if isinstance(expected, IsoText) and isinstance(value, str):
        return expected.means(str(value))
    if isinstance(value, Untyped):
        if isinstance(expected, str):
            return expected == str(value)
        with contextlib.suppress(ValueError):
            return same_json(expected, read_json(PYTHON_CONSTANTS.get(value.strip(), value.strip())))
        return False
    if isinstance(expected, bool) or isinstance(value, bool):
        return expected is value
    if isinstance(expected, Mapping) and isinstance(value, Mapping):
        names = counted_names(expected, value)
        return expected.keys() == names and all(same_json(part, value[name]) for name, part in expected.items())
    if isinstance(expected, list) and isinstance(value, list | tuple):
        return len(expected) == len(value) and all(map(same_json, expected, value))
    are_numbers = isinstance(expected, int | float) and isinstance(value, int | float)
    return (are_numbers or type(expected) is type(value)) and bool(expected == value)


def _inner(value: object) -> Collection[object]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def deeper_than(value: object, levels: int) -> bool:
    """Return whether a JSON value is nested deeper than so many levels; text and numbers are one level."""
    values = [value]
    for _ in range(levels):
        values = [part for value in values for part in _inner(value)]
    return bool(values)


def count_nulls(expected: object) -> int:
    """Return how many nulls the objects of an expected value had."""
    own = len(expected.nulls) if isinstance(expected, GoldObject) else 0
    return own + sum(map(count_nulls, _inner(expected)))


def count_leaves(value: object) -> int:
    """Return how many values in a JSON value hold no others; an empty object or array is one."""
    count, pending = 0, [value]
    while pending:
        inner = _inner(pending.pop())
        pending.extend(inner)
        count += not inner
    return count
