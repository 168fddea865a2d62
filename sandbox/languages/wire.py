"""Values between a client and the drivers of other languages: a line of JSON for each call, and one for its answer.

A request is the list of a call's arguments; as ``{"a": [...]}`` it also asks for the arguments that the call changes.
An answer is ``{"v": VALUE}``, or ``{"e": "text"}`` where the call raised, with ``"a": [[index, VALUE], ...]`` where
asked for, or where the call has no result. ``null``, ``true``, ``false``, numbers (a float has a ``.`` or an exponent,
an integer neither), texts and lists are JSON's own; an object with one key stands for everything else:

====================  =========================================================
``{"$f": "NaN"}``     a float that JSON lacks; also ``Infinity``, ``-Infinity``
``{"$i": "123"}``     an integer of any size
``{"$m": [[k, v]]}``  a mapping, whose keys need not be text
``{"$o": [[k, v]]}``  an object with text keys
``{"$s": [...]}``     a set
``{"$t": [...]}``     several results, or none, of a function that returns a list of them: a tuple
``{"$u": 1}``         undefined
``{"$x": "type"}``    what cannot travel, such as a function
====================  =========================================================

A request's bytes are ours. An answer's are the completion's: they are bounded in size, depth and work.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from sandbox.effort import Effort, pay_for_alike
from sandbox.errors import NotPlainError

MAX_LINE_BYTES = 8 << 20
"""Bytes of a line, in both directions; the drivers have the same bound."""
MAX_WIRE_DEPTH = 100
"""Containers inside each other; the drivers read twice as many brackets, since a mapping has three."""
_PLAIN_INTEGER = 1 << 63  # integers beyond it are tagged, because JSON's readers make floats of them
_MOST_DIGITS = 4000  # Python reads no more


@dataclass(frozen=True, slots=True)
class DriverAnswer:
    """What a call gave back.

    Attributes:
        value: What the function returned; ``None`` also for undefined.
        error: What the call raised, as text; ``None`` where it returned.
        changed: The arguments that it changed, by their index, where that was asked for.
    """

    value: Any = None
    error: str | None = None
    changed: tuple[tuple[int, Any], ...] = ()


def encode_call(arguments: Iterable[Any]) -> bytes:
    """Return a call's line; raise ``NotPlainError`` where an argument is no plain value, or too deep or too large."""
    line = json.dumps([_encode(argument, 0) for argument in arguments], separators=(",", ":")).encode() + b"\n"
    if len(line) > MAX_LINE_BYTES:
        raise NotPlainError(f"arguments of more than {MAX_LINE_BYTES >> 20} MiB")
    return line


def decode_answer(line: bytes, effort: Effort) -> DriverAnswer:
    """Return the answer that a line of a driver holds.

    Raises:
        NotPlainError: It is no answer, holds what cannot travel, or takes too much work to read.
    """
    if len(line) > MAX_LINE_BYTES:
        raise NotPlainError(f"an answer of more than {MAX_LINE_BYTES >> 20} MiB")
    effort.spend_on_json(line)
    try:
        tree = json.loads(line.decode(errors="surrogateescape"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as fault:
        raise NotPlainError(f"not an answer: {fault}") from None
    return _answer_of(tree, effort)


def as_answered(value: Any) -> Any:
    """Return an argument of a call as it is in an answer that gives it back unchanged."""
    return _decode(_encode(value, 0), Effort(), 0)


def _answer_of(tree: object, effort: Effort) -> DriverAnswer:
    if type(tree) is not dict or not tree.keys() <= {"v", "e", "a"} or ("v" in tree) == ("e" in tree):
        raise NotPlainError("not an answer")
    changed = tuple(_changed(pair, effort) for pair in _list(tree.get("a", [])))
    if "e" in tree:
        return DriverAnswer(error=_text(tree["e"]), changed=changed)
    return DriverAnswer(_decode(tree["v"], effort, 0), changed=changed)


def _changed(pair: object, effort: Effort) -> tuple[int, Any]:
    index, value = _pair(pair)
    if type(index) is not int:
        raise NotPlainError("no index of an argument")
    return index, _decode(value, effort, 0)


# From values to trees.


def _encode(value: Any, depth: int) -> Any:
    if value is None or type(value) in (bool, str):
        return value
    if type(value) is int:
        return _encode_integer(value)
    if type(value) is float:
        return value if math.isfinite(value) else {"$f": _FLOAT_NAMES[str(value)]}
    if depth > MAX_WIRE_DEPTH:
        raise NotPlainError(f"nested more than {MAX_WIRE_DEPTH} deep")
    if type(value) in (list, tuple):
        return [_encode(item, depth + 1) for item in value]
    if type(value) is dict:
        return {"$m": [[_encode(key, depth + 1), _encode(item, depth + 1)] for key, item in value.items()]}
    if type(value) in (set, frozenset):
        return {"$s": [_encode(item, depth + 1) for item in value]}
    raise NotPlainError(f"a value of type {type(value).__name__} does not travel to another language")


def _encode_integer(value: int) -> Any:
    if -_PLAIN_INTEGER <= value < _PLAIN_INTEGER:
        return value
    if value.bit_length() > 3 * _MOST_DIGITS:
        raise NotPlainError("an integer of too many digits")
    return {"$i": str(value)}


# From trees to values. What a tree is of another type than its place asks for is no answer.


def _decode(tree: Any, effort: Effort, depth: int) -> Any:
    if depth > MAX_WIRE_DEPTH:
        raise NotPlainError(f"nested more than {MAX_WIRE_DEPTH} deep")
    if type(tree) is list:
        effort.spend(1 + len(tree))
        return [_decode(item, effort, depth + 1) for item in tree]
    if type(tree) is not dict:
        return tree
    if len(tree) != 1:
        raise NotPlainError("an object without a tag")
    ((tag, content),) = tree.items()
    read = _READERS.get(tag)
    if read is None:
        raise NotPlainError(f"an unknown tag {tag[:20]!r}")
    return read(content, effort, depth)


def _decode_mapping(content: object, effort: Effort, depth: int) -> dict[Any, Any]:
    pairs = [_pair(pair) for pair in _list(content)]
    effort.spend(2 * len(pairs) + 4)
    items = [
        (_hashable(_decode(key, effort, depth + 1), effort), _decode(value, effort, depth + 1)) for key, value in pairs
    ]
    pay_for_alike([key for key, _ in items], effort)
    table: dict[Any, Any] = {}
    effort.fill(table, items)
    if len(table) != len(items):
        raise NotPlainError("a mapping with two keys that are equal")
    return table


def _decode_object(content: object, effort: Effort, depth: int) -> dict[str, Any]:
    table = _decode_mapping(content, effort, depth)
    if not all(type(key) is str for key in table):
        raise NotPlainError("an object with a key that is no text")
    return table


def _decode_set(content: object, effort: Effort, depth: int) -> set[Any]:
    members = [_hashable(_decode(item, effort, depth + 1), effort) for item in _list(content)]
    effort.spend(len(members) + 4)
    pay_for_alike(members, effort)
    table: set[Any] = set()
    effort.fill(table, members)
    return table


def _hashable(value: Any, effort: Effort) -> Any:
    """Return a value as it can be a key: a list as a tuple, a set as a frozenset, a mapping as its items."""
    if type(value) in (list, tuple):
        return tuple(_hashable(item, effort) for item in value)
    if type(value) is set:
        return frozenset(value)
    if type(value) is dict:
        items = [(key, _hashable(item, effort)) for key, item in value.items()]
        pay_for_alike(items, effort)  # keys that differ can be chosen together with values that make all hashes one
        members: set[Any] = set()
        effort.fill(members, items)
        return frozenset(members)
    return value


def _decode_integer(content: object, effort: Effort, depth: int) -> int:
    text = _text(content)
    if not text.removeprefix("-").isdecimal() or not text.isascii() or len(text) > _MOST_DIGITS:
        raise NotPlainError("no integer")
    return int(text)


def _decode_float(content: object, effort: Effort, depth: int) -> float:
    if content not in ("NaN", "Infinity", "-Infinity"):
        raise NotPlainError("no special float")
    return float(_text(content))


def _refuse_foreign(content: object, effort: Effort, depth: int) -> Any:
    raise NotPlainError(f"a value that cannot leave its program: {str(content)[:40]}")


def _refuse_constant(text: str) -> Any:
    raise NotPlainError(f"{text} is not JSON")


def _list(content: object) -> list[Any]:
    if type(content) is not list:
        raise NotPlainError("no list where one belongs")
    return content


def _pair(content: object) -> list[Any]:
    if len(_list(content)) != 2:
        raise NotPlainError("no pair where one belongs")
    return _list(content)


def _text(content: object) -> str:
    if type(content) is not str:
        raise NotPlainError("no text where one belongs")
    return content


_FLOAT_NAMES = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
_READERS: dict[str, Callable[[Any, Effort, int], Any]] = {
    "$f": _decode_float,
    "$i": _decode_integer,
    "$m": _decode_mapping,
    "$o": _decode_object,
    "$s": _decode_set,
    "$t": lambda content, effort, depth: tuple(_decode(_list(content), effort, depth)),
    "$u": lambda content, effort, depth: None,
    "$x": _refuse_foreign,
}
