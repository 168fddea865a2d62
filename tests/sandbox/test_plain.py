"""Plain values: what goes in comes out as the same, with its type; what is hostile comes out as a named error."""

from __future__ import annotations

import collections
import contextlib
import enum
import json
import math
import pickle
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox import plain
from sandbox.effort import MAX_ALIKE
from sandbox.errors import NotPlainError, SandboxError

HASHABLE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=-(1 << 300), max_value=1 << 300)
    | st.floats()
    | st.complex_numbers()
    | st.text()
    | st.text(st.characters(categories=["Cs", "Cc", "Lu"]))
    | st.binary(),
    lambda inner: st.lists(inner, max_size=4).map(tuple) | st.frozensets(inner, max_size=4),
    max_leaves=12,
)
VALUES = st.recursive(
    HASHABLE | st.binary().map(bytearray),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(HASHABLE, inner, max_size=4)
        | st.sets(HASHABLE, max_size=4)
    ),
    max_leaves=20,
)


def same(one: Any, other: Any) -> bool:
    """Whether two plain values are equal with all their types, nan being itself and 0.0 not -0.0."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        return one.hex() == other.hex()
    if isinstance(one, complex):
        return same(one.real, other.real) and same(one.imag, other.imag)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return same(list(one.items()), list(other.items()))
    if isinstance(one, set | frozenset):
        left = list(other)
        for member in one:
            place = next((place for place, candidate in enumerate(left) if same(member, candidate)), None)
            if place is None:
                return False
            del left[place]
        return not left
    return bool(one == other)


@given(VALUES)
def test_values_come_back_as_they_were(value: Any) -> None:
    """Every value of Python's literals comes back equal, of the same type, and the text is plain JSON."""
    text = plain.dumps(value)
    assert text.isascii()
    assert same(value, plain.loads(text)), value


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from([*plain._READERS, "other"]) | st.text(), inner, max_size=2)
    ),
    max_leaves=20,
)


@given(JSON)
def test_any_json_is_read_or_refused(tree: Any) -> None:
    """Whatever JSON a jailed process writes: a plain value, or the one error."""
    try:
        value = plain.loads(json.dumps(tree))
    except NotPlainError:
        return
    assert same(value, plain.loads(plain.dumps(value)))


@given(st.binary() | st.text())
def test_any_text_is_read_or_refused(data: bytes | str) -> None:
    """Whatever bytes a jailed process writes: a plain value, or the one error."""
    with contextlib.suppress(NotPlainError):
        plain.loads(data)


HOSTILE = {
    "two-keys": '{"tuple": [], "list": []}',
    "no-key": "{}",
    "unknown-type": '{"object": 1}',
    "a-long-type": json.dumps({"x" * 10_000: 1}),
    "a-type-by-its-dunder": '{"__class__": []}',
    "no-number": '{"int": "zz"}',
    "a-number-with-code": '{"int": "__import__(\'os\')"}',
    "int-of-a-list": '{"int": []}',
    "int-of-none": '{"int": null}',
    "float-by-name": '{"float": "1e5"}',
    "float-of-a-list": '{"float": [1]}',
    "bytes-not-hex": '{"bytes": "zz"}',
    "bytes-of-a-number": '{"bytes": 100000000000}',
    "bytearray-of-a-number": '{"bytearray": 100000000000}',
    "a-tuple-of-a-string": '{"tuple": "ab"}',
    "a-set-of-a-dict": '{"set": {"dict": []}}',
    "a-set-of-lists": '{"set": [[1]]}',
    "a-dict-of-nothing": '{"dict": null}',
    "a-dict-of-single-items": '{"dict": [[1]]}',
    "a-dict-of-triples": '{"dict": [[1, 2, 3]]}',
    "a-dict-with-a-list-as-key": '{"dict": [[[], 1]]}',
    "complex-of-one": '{"complex": [1]}',
    "complex-of-text": '{"complex": ["a", "b"]}',
    "complex-of-none": '{"complex": [null, null]}',
    "complex-of-a-huge-number": '{"complex": [{"int": "0x1' + "0" * 400 + '"}, 0]}',
    "too-deep": "[" * 300 + "]" * 300,
    "far-too-deep": "[" * 100_000 + "]" * 100_000,
    "too-deep-in-tuples": '{"tuple": [' * 300 + "]}" * 300,
    "no-json": "{",
    "two-values": "1 2",
    "python-not-json": "(1, 2)",
    "a-number-of-a-million-digits": "1" * 1_000_000,
    "not-utf-8": b"\xff\xfe\xff",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_is_refused(text: str | bytes) -> None:
    """Each is the one error, which is ours and a ValueError, and says little however long the text is."""
    with pytest.raises(NotPlainError) as refusal:
        plain.loads(text)
    assert isinstance(refusal.value, SandboxError)
    assert isinstance(refusal.value, ValueError)
    assert len(str(refusal.value)) < 500


def _tuples_alike(count: int) -> list[Any]:
    """Tuples with the same hash, for that of -1 is that of -2."""
    return [{"tuple": [-1 - (number >> bit & 1) for bit in range(12)]} for number in range(count)]


ALIKE: dict[str, Callable[[int], list[Any]]] = {
    "whole-numbers": lambda count: [{"int": hex((2**61 - 1) * (number + 8))} for number in range(count)],
    "tuples": _tuples_alike,
    "tuples-in-tuples": lambda count: [{"tuple": [1, one]} for one in _tuples_alike(count)],
}


@pytest.mark.parametrize("kind", ["set", "frozenset", "dict"])
@pytest.mark.parametrize("make", ALIKE.values(), ids=ALIKE)
def test_members_with_the_same_hash_are_few(make: Callable[[int], list[Any]], kind: str) -> None:
    """Thousands of members with the same hash, which a reader would compare for minutes, are refused; some are not."""

    def tree(count: int) -> str:
        return json.dumps({kind: [[one, 0] for one in make(count)] if kind == "dict" else make(count)})

    assert MAX_ALIKE == len(plain.loads(tree(MAX_ALIKE)))
    with pytest.raises(NotPlainError, match="same hash"):
        plain.loads(tree(MAX_ALIKE + 1))
    with pytest.raises(NotPlainError, match="same hash"):
        plain.loads(tree(4_000))


def test_many_honest_members_are_read() -> None:
    """Large sets and dicts are read: their hashes differ."""
    grid = {(x, y) for x in range(-60, 60) for y in range(-60, 60)}
    assert grid == plain.loads(plain.dumps(grid))
    table = {number / 7: str(number) for number in range(-5_000, 5_000)}
    assert table == plain.loads(plain.dumps(table))


class _Lying:
    """What a subclass of a plain type may try."""

    def __eq__(self, other: object) -> bool:
        raise AssertionError("a method of the sender's ran")

    def __iter__(self) -> Any:
        raise AssertionError("a method of the sender's ran")

    def __len__(self) -> int:
        raise AssertionError("a method of the sender's ran")

    def __repr__(self) -> str:
        raise AssertionError("a method of the sender's ran")

    __str__ = __ne__ = __add__ = __index__ = __float__ = __int__ = items = keys = hex = tolist = __repr__  # type: ignore[assignment]
    __lt__ = __gt__ = __abs__ = __pos__ = __bool__ = __getitem__ = __reduce__ = __repr__  # type: ignore[assignment]

    def __hash__(self) -> int:
        return 1


def _lying(base: type, *arguments: Any) -> Any:
    kind: Any = type(f"Lying{base.__name__}", (_Lying, base), {})
    return (
        base.__new__(kind, *arguments) if base not in (list, dict, set, bytearray) else _filled(kind, base, *arguments)
    )


def _filled(kind: Any, base: Any, content: Any) -> Any:
    made = base.__new__(kind)
    base.__init__(made, content)
    return made


SUBCLASSES = [
    (int, 5), (int, 1 << 100), (int, 0), (float, 2.5), (float, 0.0), (float, math.inf), (str, "text"), (str, ""),
    (bytes, b"x"), (bytearray, b"y"), (list, [1, 2]), (tuple, (1, 2)), (dict, {1: 2}), (set, {1}),
    (frozenset, {2}), (complex, 1 + 2j),
]  # fmt: skip


@pytest.mark.parametrize(
    ("base", "value"), SUBCLASSES, ids=[f"{base.__name__}-{value!r}" for base, value in SUBCLASSES]
)
def test_a_subclass_is_sent_as_its_plain_value(base: type, value: Any) -> None:
    """A value whose methods lie is sent as the one beneath, and none of the methods runs."""
    back = plain.loads(plain.dumps([_lying(base, value)]))
    assert same([base(value)], back)


def test_minus_zero_keeps_its_sign() -> None:
    """0.0 and -0.0 stay apart, in a subclass too."""

    class Own(float):
        pass

    assert "-0.0" == repr(plain.loads(plain.dumps(-0.0)))
    assert "-0.0" == repr(plain.loads(plain.dumps(Own(-0.0))))


class Point(NamedTuple):
    x: int
    y: int


class Colour(enum.IntEnum):
    RED = 3


STANDARD = {
    "namedtuple": (Point(1, 2), (1, 2)),
    "int-enum": (Colour.RED, 3),
    "defaultdict": (collections.defaultdict(list, {"a": [1]}), {"a": [1]}),
    "counter": (collections.Counter("aab"), {"a": 2, "b": 1}),
    "ordered-dict": (collections.OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
    "numpy-array": (np.arange(4).reshape(2, 2), [[0, 1], [2, 3]]),
    "numpy-float": (np.float64(0.5), 0.5),
    "numpy-int": (np.int32(7), 7),
    "numpy-bool": (np.True_, True),
    "bool-as-key": ({True: 1, 2: False}, {True: 1, 2: False}),
}


@pytest.mark.parametrize(("value", "expected"), STANDARD.values(), ids=STANDARD)
def test_everyday_types_are_plain_beneath(value: Any, expected: Any) -> None:
    """Named tuples, counters, enumerations and arrays are sent as what they hold."""
    assert same(expected, plain.loads(plain.dumps(value)))


NOT_PLAIN = {
    "object": object(),
    "function": len,
    "class": type("int", (), {}),
    "type": object,
    "type-of-types": type,
    "type-of-a-module": Decimal,
    "union": int | str,
    "module": json,
    "generator": (x for x in ()),
    "decimal": Decimal("1.5"),
    "fraction": Fraction(1, 3),
    "range": range(3),
    "memoryview": memoryview(b"x"),
    "ellipsis": ...,
    "deque": collections.deque([1]),
    "dict-view": {}.keys(),
    "enum": enum.Enum("E", "A").A,  # type: ignore[attr-defined]
    "exception": ValueError("x"),
    "complex-array-of-objects": np.array([object()]),
}


@pytest.mark.parametrize("value", NOT_PLAIN.values(), ids=NOT_PLAIN)
@pytest.mark.parametrize(
    "wrap", [lambda one: one, lambda one: [one], lambda one: {"k": (one,)}], ids=["bare", "list", "deep"]
)
def test_what_is_not_plain_is_refused(value: Any, wrap: Callable[[Any], Any]) -> None:
    """Anything else is refused by its type's name, also within containers."""
    with pytest.raises(NotPlainError, match="not plain"):
        plain.dumps(wrap(value))


def test_the_types_of_plain_values_and_exceptions_are_plain() -> None:
    """They arrive as themselves, also as members and keys; a name that is none of theirs is refused."""
    value = [int, (str, type(None)), {ValueError: {bool}}, frozenset({list, complex})]
    assert same(value, plain.loads(plain.dumps(value)))
    words = ["eval", "exit", "__loader__", "SystemExit", "type", "object", "map", "os.system", "int ", ""]
    for name in [*words, 1, None, ["int"]]:
        with pytest.raises(NotPlainError):
            plain.loads(json.dumps({"type": name}))


def test_depth_is_bounded() -> None:
    """Containers in each other are sent down to a depth, whatever their kind, and no deeper; nor are circles."""

    def nested(depth: int, wrap: Callable[[Any], Any]) -> Any:
        value: Any = 1
        for _ in range(depth):
            value = wrap(value)
        return value

    for wrap in (lambda v: [v], lambda v: (v,), lambda v: {"k": v}, lambda v: frozenset([v])):
        deep = nested(plain.MAX_DEPTH, wrap)
        assert deep == plain.loads(plain.dumps(deep))
        with pytest.raises(NotPlainError, match="nested"):
            plain.dumps(nested(plain.MAX_DEPTH + 2, wrap))
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(NotPlainError, match="nested"):
        plain.dumps(circle)


def test_the_error_pickles() -> None:
    """The error can be sent between processes."""
    assert "why" == str(pickle.loads(pickle.dumps(NotPlainError("why"))))
