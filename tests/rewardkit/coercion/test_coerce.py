"""Coercion: what each annotation makes of a column's text and of real values, what it refuses, and its bounds."""

from __future__ import annotations

import collections
import decimal
import enum
import inspect
import json
import pickle
import subprocess
import sys
import time
import typing
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from datetime import time as clock
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NewType, NotRequired, Optional, TypedDict, TypeVar, Union

import numpy as np
import pytest
import typing_extensions
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from pydantic import BaseModel, BeforeValidator, Field, Json, RootModel

from rewardkit.coercion.coerce import Coercer, build_coercer
from rewardkit.coercion.literals import MAX_DEPTH, MAX_LITERAL_CHARS, MAX_TEXT_CHARS
from rewardkit.coercion.rule import ColumnValueError
from rewardkit.errors import RewardDefinitionError

T = TypeVar("T")
Key = TypeVar("Key")
Element = TypeVar("Element")
Grade = NewType("Grade", int)
Alias = typing_extensions.TypeAliasType("Alias", list[int])
Swapped = typing_extensions.TypeAliasType("Swapped", dict[Element, Key], type_params=(Key, Element))


class Color(enum.Enum):
    """By text."""

    RED = "red"
    GREEN = "green"


class Level(enum.IntEnum):
    """By number."""

    LOW = 1
    HIGH = 2


class Mode(enum.StrEnum):
    """A value that is another member's name."""

    FAST = "SLOW"
    SLOW = "slow"


class Access(enum.Flag):
    """Values that combine."""

    READ = 1
    WRITE = 2


class Picky(enum.Enum):
    """An Enum whose own code fails."""

    ONE = "one"

    @classmethod
    def _missing_(cls, value: object) -> Picky | None:
        raise KeyError(value)


@dataclass(frozen=True)
class Point:
    """A dataclass with a default."""

    x: int
    y: float = 0.5
    tags: list[str] = field(default_factory=list)


@dataclass
class Tree:
    """A dataclass that refers to itself."""

    name: str
    children: list[Tree] = field(default_factory=list)


@dataclass
class Fussy:
    """A dataclass that refuses some values itself."""

    x: int

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("x is negative")


class Pair(NamedTuple):
    """A NamedTuple with a default."""

    left: int
    right: str = "r"


Loose = collections.namedtuple("Loose", ["a", "b"])


class Options(TypedDict):
    """A TypedDict, with a field that may be absent."""

    limit: int
    strict: NotRequired[bool]


class ExtensionOptions(typing_extensions.TypedDict, total=False):
    """A TypedDict of typing_extensions."""

    limit: typing_extensions.Required[int]
    strict: bool


class Model(BaseModel):
    """A pydantic model."""

    name: str
    sizes: list[int] = []


class Numbers(RootModel[list[int]]):
    """A pydantic root model."""


class Named(RootModel[str]):
    """A pydantic root model of text."""


class Angry(BaseModel):
    """A pydantic model whose validator fails in its own way."""

    x: Annotated[int, BeforeValidator(lambda value: {}[value])]


class Unresolved(TypedDict):
    """A record with an annotation that nobody defines."""

    x: Nowhere  # type: ignore[name-defined]  # noqa: F821


class Stranger:
    """A class that nobody can read from text."""


POINT = Point(1, 2.5, ["a"])
MODEL = Model(name="n", sizes=[1])

ACCEPTED: list[tuple[Any, object, object]] = [
    (str, "abc", "abc"),
    (str, "", ""),
    (str, "None", "None"),
    (str, "[1]", "[1]"),
    (str, 4, "4"),
    (str, 4.5, "4.5"),
    (str, np.str_("abc"), "abc"),
    (str, np.int64(4), "4"),
    (typing.LiteralString, "abc", "abc"),
    (int, "4", 4),
    (int, " 4 ", 4),
    (int, "-7", -7),
    (int, "+3", 3),
    (int, "007", 7),
    (int, "4.0", 4),
    (int, "4.", 4),
    (int, "1e3", 1000),
    (int, "12345678901234567890.0", 12345678901234567890),
    (int, "-0.0", 0),
    (int, "0e99999", 0),
    (int, "9" * 4300, int("9" * 4300)),
    (int, 4, 4),
    (int, 4.0, 4),
    (int, Decimal("4.0"), 4),
    (int, Fraction(8, 2), 4),
    (int, np.int64(4), 4),
    (int, np.float32(4), 4),
    (int, np.array(4), 4),
    (float, "4", 4.0),
    (float, "4.0", 4.0),
    (float, "1e-3", 0.001),
    (float, " .5 ", 0.5),
    (float, "-0.0", -0.0),
    (float, 4, 4.0),
    (float, 0.1, 0.1),
    (float, np.float64(0.1), 0.1),
    (float, Decimal("0.1"), 0.1),
    (bool, "True", True),
    (bool, " true ", True),
    (bool, "TRUE", True),
    (bool, "1", True),
    (bool, "yes", True),
    (bool, "On", True),
    (bool, "y", True),
    (bool, "t", True),
    (bool, "False", False),
    (bool, "false", False),
    (bool, "0", False),
    (bool, "NO", False),
    (bool, "off", False),
    (bool, "n", False),
    (bool, "F", False),
    (bool, True, True),
    (bool, 0, False),
    (bool, np.bool_(False), False),
    (Decimal, "0.10", Decimal("0.10")),
    (Decimal, 0.1, Decimal("0.1")),
    (Decimal, 3, Decimal(3)),
    (Fraction, "1/3", Fraction(1, 3)),
    (Fraction, "0.25", Fraction(1, 4)),
    (Fraction, " -2 ", Fraction(-2)),
    (Fraction, 0.1, Fraction(1, 10)),
    (Fraction, Fraction(1, 3), Fraction(1, 3)),
    (complex, "1+2j", 1 + 2j),
    (complex, 3, 3 + 0j),
    (bytes, "é", "é".encode()),
    (bytes, bytearray(b"a"), b"a"),
    (bytes, b"a", b"a"),
    (Path, "/a/b", Path("/a/b")),
    (Path, Path("a"), Path("a")),
    (date, "2024-02-29", date(2024, 2, 29)),
    (datetime, " 2024-02-29T10:00:00 ", datetime(2024, 2, 29, 10)),
    (clock, "10:30", clock(10, 30)),
    (timedelta, "PT1H", timedelta(hours=1)),
    (date, date(2024, 1, 1), date(2024, 1, 1)),
    (uuid.UUID, "12345678-1234-5678-1234-567812345678", uuid.UUID("12345678-1234-5678-1234-567812345678")),
    (Color, "red", Color.RED),
    (Color, "RED", Color.RED),
    (Color, Color.GREEN, Color.GREEN),
    (Level, "1", Level.LOW),
    (Level, 2, Level.HIGH),
    (Level, "HIGH", Level.HIGH),
    (Mode, "SLOW", Mode.FAST),
    (Access, "3", Access.READ | Access.WRITE),
    (Literal["a", "b"], "a", "a"),
    (Literal["a", 1], "1", 1),
    (Literal["1", 1], "1", "1"),
    (Literal["1", 1], 1, 1),
    (Literal[True, 1], "1", 1),
    (Literal[True, 1], "yes", True),
    (Literal["a", None], "null", None),
    (Literal[b"a"], "a", b"a"),
    (Literal[Color.RED], "red", Color.RED),
    (Literal["4"], 4, "4"),
    (list, '[1, "a", null]', [1, "a", None]),
    (list, "['a', None]", ["a", None]),
    (list[str], '["a", "b"]', ["a", "b"]),
    (list[str], "['a', 'b']", ["a", "b"]),
    (list[str], "('a', 'b')", ["a", "b"]),
    (list[str], " [] ", []),
    (list[str], "[1, 2.5]", ["1", "2.5"]),
    (list[str], r"['\d', '\\n', '\n', '\x41', 'it\'s']", [r"\d", r"\n", "\n", "A", "it's"]),
    (list[str], '["it\'s [ok"]', ["it's [ok"]),
    (list[bytes], r"[b'\xff', b'\N', b'\d']", [b"\xff", rb"\N", rb"\d"]),
    (list[int], "['1', '2']", [1, 2]),
    (list[int], '["1", 2, 3.0]', [1, 2, 3]),
    (list[bool], '["False", "True", 1]', [False, True, True]),
    (list[int], ["1", 2], [1, 2]),
    (list[int], (1, 2), [1, 2]),
    (list[int], np.array([1, 2]), [1, 2]),
    (list[int], range(3), [0, 1, 2]),
    (list[complex], "[1+2j, (3-4j), 5j]", [1 + 2j, 3 - 4j, 5j]),
    (list[int | None], "[1, None, 'null', '']", [1, None, None, None]),
    (list[list[int]], "[[1], ['2'], '[3]']", [[1], [2], [3]]),
    (list[Any], "[[1], 'a']", [[1], "a"]),
    (list[int], "[0x10, -1, +2]", [16, -1, 2]),
    (typing.List[int], "[1]", [1]),  # noqa: UP006 - old code has it
    (typing.List, "[1]", [1]),  # noqa: UP006
    (Sequence[int], "(1, 2)", [1, 2]),
    (Sequence, ["a"], ["a"]),
    (tuple, "(1, 'a')", (1, "a")),
    (tuple[int, str], "(1, 'a')", (1, "a")),
    (tuple[int, str], '["1", "a"]', (1, "a")),
    (tuple[int, ...], "[1, 2, 3]", (1, 2, 3)),
    (tuple[()], "()", ()),
    (set[int], "{1, 2}", {1, 2}),
    (set[int], "set()", set()),
    (set[str], '["a", "a"]', {"a"}),
    (set[int], frozenset({1}), {1}),
    (frozenset[str], "{'a'}", frozenset({"a"})),
    (dict, '{"a": [1]}', {"a": [1]}),
    (dict, "{'a': 1}", {"a": 1}),
    (dict[str, int], "{'a': '1'}", {"a": 1}),
    (dict[int, str], '{"1": "a"}', {1: "a"}),
    (dict[str, list[int]], '{"a": [1], "b": []}', {"a": [1], "b": []}),
    (Mapping[str, Any], "{'a': (1, 2)}", {"a": (1, 2)}),
    (dict[str, int], collections.OrderedDict(a=1), {"a": 1}),
    (collections.deque[int], "[1, 2]", collections.deque([1, 2])),
    (Point, '{"x": "1", "y": 2.5, "tags": ["a"]}', POINT),
    (Point, "{'x': 1}", Point(1)),
    (Point, {"x": 1, "unknown": 2}, Point(1)),
    (Point, POINT, POINT),
    (list[Point], '[{"x": 1}]', [Point(1)]),
    (Tree, '{"name": "a", "children": [{"name": "b"}]}', Tree("a", [Tree("b")])),
    (Pair, '{"left": 1}', Pair(1)),
    (Pair, "(1, 'b')", Pair(1, "b")),
    (Pair, "[1]", Pair(1)),
    (Loose, "[1, 'x']", Loose(1, "x")),
    (Options, '{"limit": "3"}', {"limit": 3}),
    (Options, "{'limit': 3, 'strict': 'no', 'more': 1}", {"limit": 3, "strict": False, "more": 1}),
    (ExtensionOptions, "{'limit': '3'}", {"limit": 3}),
    (Model, '{"name": "n", "sizes": [1]}', MODEL),
    (Model, "{'name': 'n', 'sizes': (1,)}", MODEL),
    (Model, {"name": "n", "sizes": ["1"]}, MODEL),
    (Model, MODEL, MODEL),
    (Numbers, "[1, 2]", Numbers([1, 2])),
    (Named, "[a", Named("[a")),
    (Named, "[1]", Named("[1]")),
    (Json[list[int]], "[1]", [1]),
    (int | None, "4", 4),
    (int | None, "4.0", 4),
    (int | None, "", None),
    (int | None, " None ", None),
    (int | None, "none", None),
    (int | None, "null", None),
    (int | None, "Null", None),
    (int | None, "NULL", None),
    (int | None, None, None),
    (Optional[int], "4", 4),  # noqa: UP045 - old code has it
    (str | None, "", None),
    (str | None, "null", None),
    (str | None, "NaN", "NaN"),
    (list[str] | None, "None", None),
    (None, "None", None),
    (int | str, "4", 4),
    (str | int, "4", 4),
    (int | str, "4.0", "4.0"),
    (int | str, "abc", "abc"),
    (int | str, 4, 4),
    (Union[int, str], "4", 4),  # noqa: UP007 - old code has it
    (float | int, "4", 4),
    (float | int, 4, 4),
    (int | float, "4.0", 4.0),
    (int | float, 4.0, 4.0),
    (float | str, "nan", "nan"),
    (bool | int, "1", 1),
    (bool | int, "true", True),
    (bool | int, "yes", True),
    (bool | int, True, True),
    (int | str | None, "", None),
    (int | list[int], "[1]", [1]),
    (int | list[int], "4.0", 4),
    (list[int] | str, "[1]", [1]),
    (list[int] | str, "[a", "[a"),
    (list[int] | str, '"quoted"', '"quoted"'),
    (list[int] | list[str], "['1']", ["1"]),
    (list[int] | list[str], "['a']", ["a"]),
    (list[int] | list[str], [1], [1]),
    (list[str] | list[int], "[1]", [1]),
    (dict[str, int] | list[int], "{'a': 1}", {"a": 1}),
    (Point | Model, "{'name': 'n', 'sizes': [1]}", MODEL),
    (Literal["auto"] | int, "auto", "auto"),
    (Literal["1"] | int, "1", "1"),
    (bytes | str, "abc", "abc"),
    (Path | str, "abc", "abc"),
    (date | str, "2024-01-02", date(2024, 1, 2)),
    (date | str, "2024", "2024"),
    (Annotated[int, Field(ge=0)], "4.0", 4),
    (Annotated[int, "a note"], "4", 4),
    (Annotated[list[int], Field(min_length=1)], "['1']", [1]),
    (list[Annotated[int, Field(ge=0)]], "['1']", [1]),
    (Annotated[int | None, Field(ge=0)], "null", None),
    (Annotated[list[str], BeforeValidator(lambda text: text.split(","))], "a,b", ["a", "b"]),
    (Annotated[Options, "a note"], "{'limit': 1}", {"limit": 1}),
    (Grade, "4", 4),
    (Alias, "[1]", [1]),
    (Swapped[int, str], "{'a': '1'}", {"a": 1}),
    (Any, "[1]", "[1]"),
    (object, None, None),
    (Any | None, "", ""),
    (inspect.Parameter.empty, "4", "4"),
]

REFUSED: list[tuple[Any, object, tuple[str, ...]]] = [
    (str, None, ("expected str, got None",)),
    (str, True, ("expected str, got True",)),
    (list[str], [[1]], ("expected list[str], got [[1]]",)),
    (str, float("nan"), ("expected str", "not finite")),
    (str, 10**5000, ("expected str", "too many digits")),
    (int, "x", ("expected int, got 'x'",)),
    (int, "", ("expected int, got ''",)),
    (int, "None", ("expected int, got 'None'",)),
    (int, "4.5", ("'4.5'", "not a whole number")),
    (int, 4.5, ("4.5", "not a whole number")),
    (int, "1_000", ("'1_000'",)),
    (int, "1,000", ("'1,000'", "take the column as str to read signs and commas")),
    (float, "$5.00", ("'$5.00'", "take the column as str")),
    (int | None, "60%", ("'60%'", "take the column as str")),
    (int, "48+24 = <<48+24=72>>72.\n#### 72", ("a solution whose answer follows '####': take the column as str",)),
    (float, "She sold 24 clips. " * 400 + "\n#### 72", ("a solution whose answer follows '####'",)),
    (int, "She sold 24 clips. " * 400, ("expected int, got 'She sold",)),
    (int, "٣", ("expected int",)),
    (int, "0x10", ("expected int",)),
    (int, "--1", ("expected int",)),
    (int, True, ("expected int, got True",)),
    (int, np.bool_(True), ("expected int",)),
    (int, None, ("expected int, got None",)),
    (int, "nan", ("not finite",)),
    (int, float("inf"), ("not finite",)),
    (int, "9" * 4301, ("too many digits",)),
    (int, "9" * 100_000, ("too many digits",)),
    (int, "1e999999999", ("exponent out of range",)),
    (int, "1e-999999999", ("exponent out of range",)),
    (int, "1e" + "9" * 30, ("exponent out of range",)),
    (int, Decimal("1e999999"), ("too large",)),
    (int, Decimal("sNaN"), ("not finite",)),
    (float, "x", ("expected float, got 'x'",)),
    (float, "nan", ("not finite",)),
    (float, "-Infinity", ("not finite",)),
    (float, "1e999", ("not finite",)),
    (float, float("nan"), ("not finite",)),
    (float, 10**400, ("too large",)),
    (float, True, ("expected float, got True",)),
    (float, "1_0", ("expected float",)),
    (float, None, ("expected float, got None",)),
    (bool, "", ("expected bool, got ''",)),
    (bool, "maybe", ("expected bool, got 'maybe'",)),
    (bool, 2, ("expected bool, got 2",)),
    (bool, 1.0, ("expected bool, got 1.0",)),
    (Decimal, "NaN", ("not finite",)),
    (Decimal, Decimal("NaN"), ("not finite",)),
    (Decimal, True, ("expected Decimal",)),
    (Fraction, "1/0", ("division by zero",)),
    (Fraction, "1e999999999", ("exponent out of range",)),
    (Fraction, None, ("expected Fraction",)),
    (complex, "1_0j", ("expected complex",)),
    (complex, "nanj", ("not finite",)),
    (bytes, "\ud800", ("UTF-8",)),
    (bytes, 4, ("expected bytes",)),
    (Path, "", ("empty",)),
    (Path, 4, ("expected Path",)),
    (date, "1700000000", ("not ISO 8601",)),
    (date, 5, ("not ISO 8601",)),
    (date, "soon", ("expected date, got 'soon'",)),
    (uuid.UUID, "x", ("expected UUID",)),
    (Color, "blue", ("expected Color, got 'blue'", "one of 'red', 'green'")),
    (Level, True, ("expected Level",)),
    (Picky, "two", ("KeyError",)),
    (Literal["a", "b"], "c", ("expected Literal['a', 'b'], got 'c'",)),
    (Literal["a"], [1], ("got [1]",)),
    (list[str], "abc", ("expected list[str], got 'abc'", "no bracket")),
    (list[str], '"abc"', ("no bracket",)),
    (list[str], "'a', 'b'", ("no bracket",)),
    (list[str], "None", ("expected list[str], got 'None'",)),
    (list[str], "['a'", ("neither JSON nor a Python literal",)),
    (list[str], "['a' 'b']", ("neither JSON nor a Python literal",)),
    (list[int], "[1 2]", ("neither JSON nor a Python literal",)),
    (list[str], "[open('x')]", ("neither JSON nor a Python literal",)),
    (list[str], "[f'{1}']", ("neither JSON nor a Python literal",)),
    (list[str], r"['\400']", ("neither JSON nor a Python literal",)),
    (list[str], "['\\x4']", ("neither JSON nor a Python literal",)),
    (list[str], "['a\0']", ("neither JSON nor a Python literal",)),
    (dict, "{[1]: 2}", ("neither JSON nor a Python literal",)),
    (list[str], '{"a": 1}', ("expected list[str]", "type dict")),
    (list, "(1)", ("type int",)),
    (list[int], "['a', 'x']", ("expected list[int]", "item 0: expected int, got 'a'")),
    (list[int], "[1, true]", ("item 1: expected int, got True",)),
    (list[list[int]], "[[1], [2, 'x']]", ("item 1: item 1: expected int, got 'x'",)),
    (list[float], "[NaN]", ("NaN is not finite",)),
    (list[float], "[1e999]", ("not finite",)),
    (list[float], "(1e999,)", ("not finite",)),
    (list, "{'a': {1e999}}", ("not finite",)),
    (list, "(1e999j,)", ("not finite",)),
    (list[int], {1, 2}, ("expected list[int]",)),
    (list[str], b"ab", ("expected list[str], got b'ab'",)),
    (list[int], 4, ("expected list[int], got 4",)),
    (tuple[int, str], "(1,)", ("2 items needed, 1 found",)),
    (tuple[int, str], "('a', 'b')", ("item 0: expected int, got 'a'",)),
    (set, "[[1]]", ("unhashable",)),
    (dict[str, int], "{'a': 'x'}", ("key 'a': expected int, got 'x'",)),
    (dict[list[int], int], "{'[1]': 1}", ("unhashable",)),
    (dict, "[1]", ("expected dict", "type list")),
    (Point, "{'y': 1}", ("expected Point", "field 'x' is missing")),
    (Point, "{'x': 'a'}", ("field 'x': expected int, got 'a'",)),
    (Point, "[1]", ("expected Point", "type list")),
    (list[Point], "[{}]", ("item 0: expected Point, got {} (field 'x' is missing)",)),
    (Fussy, "{'x': -1}", ("ValueError: x is negative",)),
    (Pair, "(1, 'a', 2)", ("expected Pair",)),
    (Pair, "{'right': 'a'}", ("field 'left' is missing",)),
    (Options, "{'strict': 'maybe'}", ("field 'limit' is missing",)),
    (Options, "{'limit': 1, 'strict': 'maybe'}", ("field 'strict': expected bool, got 'maybe'",)),
    (ExtensionOptions, "{}", ("field 'limit' is missing",)),
    (Model, "{}", ("expected Model", "field 'name' is missing")),
    (Model, "{'name': 'a', 'sizes': [1, 'x']}", ("field 'sizes': item 1: ",)),
    (Model, "abc", ("expected Model, got 'abc'",)),
    (list[Model], "[{}]", ("item 0: ", "field 'name' is missing")),
    (Angry, "{'x': 1}", ("KeyError",)),
    (int | None, "x", ("expected int | None, got 'x'",)),
    (int | None, "4.5", ("expected int | None", "not a whole number")),
    (list[int] | None, "[1, 'x']", ("expected list[int] | None", "item 1: expected int, got 'x'")),
    (int | list[int], "x", ("expected int | list[int], got 'x'",)),
    (int | list[int], "['x']", ("expected int | list[int]",)),
    (int | str, None, ("expected int | str, got None",)),
    (None, "x", ("expected None, got 'x'",)),
    (Annotated[int, Field(ge=0)], "-1", ("expected int, got '-1'", "greater than or equal to 0")),
    (Annotated[int, Field(ge=0)], "x", ("expected int, got 'x'",)),
    (Annotated[np.ndarray, Field(min_length=3)], "[1]", ("at least 3",)),
    (NDArray[np.int64], "[1.5]", ("expected NDArray[int64]", "not all of it is int64")),
    (NDArray[np.uint8], "[300]", ("not all of it is uint8",)),
    (NDArray[np.float64], "['a']", ("item 0: expected float, got 'a'",)),
    (NDArray[np.int64], "[False, 1j]", ("item 0: expected int, got 0j",)),
    (NDArray[np.float64], "[1, None]", ("item 1: expected float, got None",)),
    (np.ndarray, "[[1], [2, 3]]", ("expected ndarray", "sequence")),
    (np.ndarray, "5", ("no bracket",)),
]

NONSENSE: list[Any] = [
    "int",
    T,
    5,
    Stranger,
    Callable[[int], int],
    Callable,
    Iterator[int],
    type[int],
    typing.Never,
    typing.Self,
    list[Stranger],
    int | Stranger,
    enum.Enum,
    Unresolved,
    Annotated[Stranger, "a note"],
    Annotated[int, Field(pattern=5)],  # type: ignore[arg-type]
]

NAMES: list[tuple[Any, str]] = [
    (list[str], "list[str]"),
    (int | None, "int | None"),
    (Optional[int], "int | None"),  # noqa: UP045
    (None | int, "int | None"),
    (int | str | None, "int | str | None"),
    (Literal["a", "b"], "Literal['a', 'b']"),
    (dict[str, list[int]], "dict[str, list[int]]"),
    (tuple[int, ...], "tuple[int, ...]"),
    (tuple[()], "tuple[()]"),
    (Sequence[int], "Sequence[int]"),
    (list, "list"),
    (Annotated[int, Field(ge=0)], "int"),
    (Point, "Point"),
    (Color, "Color"),
    (datetime, "datetime"),
    (NDArray[np.float64], "NDArray[float64]"),
    (NDArray[Any], "ndarray"),
    (np.ndarray, "ndarray"),
    (inspect.Parameter.empty, "Any"),
]


def row_id(value: object) -> str | None:
    """A short name for a parameter: an annotation's name, a value's repr."""
    if isinstance(value, tuple) and value and all(isinstance(piece, str) for piece in value):
        return ""
    if isinstance(value, int) and value > 10**20:
        return "huge-int"
    name = value.__name__ if isinstance(value, type) and hasattr(value, "__name__") else ascii(value)
    return name.replace("typing.", "")[:50]


def same(left: object, right: object) -> bool:
    """Whether two values agree in type and content, all the way down; floats in the sign of zero too.

    Complex numbers are not held to that: Python does not read its own repr of ``-0j`` back.
    """
    if type(left) is not type(right):
        return False
    if isinstance(left, (list, tuple, collections.deque)):
        return len(left) == len(right) and all(map(same, left, right))  # type: ignore[arg-type]
    if isinstance(left, dict):
        return all(map(same, left.items(), right.items())) and len(left) == len(right)  # type: ignore[arg-type,attr-defined]
    if isinstance(left, (set, frozenset)):
        return {(type(one), one) for one in left} == {(type(one), one) for one in right}  # type: ignore[attr-defined]
    return repr(left) == repr(right) if isinstance(left, float) else bool(left == right)


def error_of(annotation: Any, value: object) -> ColumnValueError:
    """The error that a coercion raises."""
    with pytest.raises(ColumnValueError) as caught:
        build_coercer(annotation)(value)
    return caught.value


@pytest.mark.parametrize(("annotation", "value", "expected"), ACCEPTED, ids=row_id)
def test_a_value_becomes_what_its_annotation_says(annotation: Any, value: object, expected: object) -> None:
    """Each accepted value gives the expected value, of the expected type, all the way down."""
    actual = build_coercer(annotation)(value)
    assert same(expected, actual), f"expected {expected!r}, got {actual!r}"


@pytest.mark.parametrize(("annotation", "value", "pieces"), REFUSED, ids=row_id)
def test_a_wrong_value_is_refused_in_few_words(annotation: Any, value: object, pieces: tuple[str, ...]) -> None:
    """Each refused value gives one short line that says what was expected, what came and why."""
    message = str(error_of(annotation, value))
    assert [piece for piece in pieces if piece not in message] == [], message
    assert "\n" not in message
    assert len(message) < 400


@pytest.mark.parametrize("annotation", NONSENSE, ids=row_id)
def test_an_annotation_without_sense_is_refused_at_once(annotation: Any) -> None:
    """What no column's text can become is an error of the definition, which names the annotation."""
    with pytest.raises(RewardDefinitionError, match=r"^annotation "):
        build_coercer(annotation)


@pytest.mark.parametrize(("annotation", "name"), NAMES, ids=row_id)
def test_expected_names_the_annotation_as_one_would_write_it(annotation: Any, name: str) -> None:
    """The readable name is short and has no module paths."""
    assert name == build_coercer(annotation).expected


@pytest.mark.parametrize("annotation", [Any, object, inspect.Parameter.empty, Any | None], ids=row_id)
def test_passthrough_hands_on_the_very_object(annotation: Any) -> None:
    """Without a type to coerce to, the object itself comes out and the coercer says so beforehand."""
    coercer = build_coercer(annotation)
    value = ["1"]
    assert coercer.passthrough
    assert value is coercer(value)


def test_a_typed_coercer_is_no_passthrough() -> None:
    """Where there is a type, values are looked at."""
    coercer = build_coercer(list[str])
    assert isinstance(coercer, Coercer)
    assert not coercer.passthrough


def test_a_real_list_is_not_the_one_given_but_its_equal() -> None:
    """A reward may change its list without changing the dataset."""
    for annotation in (list, list[Any], list[int]):
        given = [1, 2]
        result = build_coercer(annotation)(given)
        assert given == result
        assert given is not result


def test_describe_names_column_example_and_fault() -> None:
    """The sentence for the user has column, row, expectation, value and reason."""
    error = error_of(list[str], "['a'")
    fault = "expected list[str], got \"['a'\" (neither JSON nor a Python literal)"
    assert f"column 'tests' of example 17: {fault}" == error.describe("tests", 17)
    assert f"column 'tests': {fault}" == error.describe("tests", None)
    assert (error.expected, error.preview) == ("list[str]", "\"['a'\"")


def test_the_error_pickles() -> None:
    """An error of a worker process arrives whole."""
    error = error_of(list[int], "[1, 'x']")
    copy = pickle.loads(pickle.dumps(error))
    assert (str(error), error.detail, error.inner) == (str(copy), copy.detail, copy.inner)


@pytest.mark.parametrize(
    "value", ["x" * 10_000_000, list(range(100_000)), "\n" * 500, {"k" * 500: "v" * 500}, 16**5000], ids=lambda v: ""
)
def test_a_long_value_is_shown_short(value: object) -> None:
    """What is shown of a value has about 80 characters."""
    assert len(error_of(bool, value).preview) <= 80


def test_a_value_without_repr_is_shown_by_its_type() -> None:
    """A value whose repr fails does not hide the fault."""

    class Silent:
        def __repr__(self) -> str:
            raise RuntimeError

    assert "Silent" in error_of(int, Silent()).preview


def test_arrays_are_made_of_lists_and_texts() -> None:
    """An array annotation reads lists, keeps a fitting array itself and follows the scalar rules for texts."""
    array = np.array([1.5, 2.0])
    assert array is build_coercer(np.ndarray)(array)
    assert array is build_coercer(NDArray[np.float64])(array)
    for annotation, value, expected in [
        (np.ndarray, "[[1, 2], [3, 4]]", np.array([[1, 2], [3, 4]])),
        (NDArray[np.float32], "[1, '2.5']", np.array([1, 2.5], np.float32)),
        (NDArray[np.int64], (1.0, 2.0), np.array([1, 2])),
        (NDArray[np.bool_], "['False', 'yes']", np.array([False, True])),
        (NDArray[np.str_], "['a', 'b']", np.array(["a", "b"])),
        (np.ndarray | None, "[1]", np.array([1])),
    ]:
        actual = build_coercer(annotation)(value)
        assert isinstance(actual, np.ndarray)
        assert expected.dtype == actual.dtype
        np.testing.assert_array_equal(expected, actual)


def test_a_recursive_alias_is_followed() -> None:
    """An alias that refers to itself reads what it describes."""
    namespace: dict[str, Any] = {"typing_extensions": typing_extensions, "__name__": "aliases"}
    alias = "typing_extensions.TypeAliasType('Nested', 'list[Nested] | int')"
    nested = eval(alias, namespace)
    if sys.version_info >= (3, 12):
        exec("type Nested = list[Nested] | int", namespace)
        nested = namespace["Nested"]
        assert build_coercer(nested)("[[1, ['2']], 3]") == [[1, [2]], 3]
        assert build_coercer(nested | None)("[[1], 2]") == [[1], 2]
        error_of(nested, "[['x']]")
    else:
        with pytest.raises(RewardDefinitionError):
            build_coercer(nested)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "[" * 100_000 + "]" * 100_000,
        "{'a':" * 100_000,
        "(" * 1_000_000,
        "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1),
        "[" + "-" * 900_000 + "1]",
        "[" + "1+" * 400_000 + "1]",
        "[" + "a." * 400_000 + "a]",
        "[" + "not " * 200_000 + "1]",
        '["' + '\\"' * 1_000_000,
        "[" * 100 + "'''\\" * 400_000,
        "[" * 100 + "'" * 900_000,
        "[" + " " * 900_000 + "x",
        "[" + "1" * 1_000_000 + "]",
        "(" + "1" * 900_000 + ",)",
        "(" + "1" * 900_000 + ".5,)",
        "[1e" + "9" * 100_000 + "]",
        "(" + "1," * MAX_LITERAL_CHARS + ")",
        "[" + "1," * MAX_TEXT_CHARS,
    ],
    ids=lambda text: f"{text[:12]}...x{len(text)}",
)
@pytest.mark.parametrize("annotation", [list, Numbers, int | list[int] | None], ids=row_id)
def test_a_hostile_text_is_refused_quickly(annotation: Any, text: str) -> None:
    """Deep, long, chained and unclosed texts give our error, not the parser's, and take no time to speak of."""
    start = time.process_time()
    assert "got" in str(error_of(annotation, text))
    assert time.process_time() - start < 5


def test_the_allowed_depth_is_read() -> None:
    """MAX_DEPTH containers within one another are read, in JSON and as a literal; brackets in a string do not count."""
    for text in ("[" * MAX_DEPTH + "]" * MAX_DEPTH, "(" * (MAX_DEPTH - 1) + "{1}," + ",)" * (MAX_DEPTH - 2) + ")"):
        build_coercer(list | tuple)(text.replace(",,", ","))
    assert build_coercer(list[str])(json.dumps(["[" * 500])) == ["[" * 500]
    assert build_coercer(list[str])(repr(["[" * 500, "'"])) == ["[" * 500, "'"]
    assert build_coercer(list)("[" + "[]," * 499 + "[]]") == [[]] * 500


def test_a_real_value_without_end_is_refused() -> None:
    """A real list that contains itself, for a type that refers to itself, is our error."""
    tree: dict[str, Any] = {"name": "a"}
    tree["children"] = [tree]
    assert error_of(Tree, tree).detail is not None


def test_no_warning_escapes_a_text() -> None:
    """Escapes that Python would warn of are read as Python reads them, in silence."""
    text = r"""['\d\w', "\s", '\\', u'\q', '\8', '\101']"""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = eval(text)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert expected == build_coercer(list[str])(text)
    assert caught == []


def test_importing_and_building_simple_coercers_loads_neither_pydantic_nor_numpy() -> None:
    """A reward with plain annotations does not wait for heavy libraries."""
    code = (
        "import sys; from rewardkit.coercion.coerce import build_coercer as b; "
        "[b(a) for a in (str, int, float, bool, list[str], dict[str, int], int | None)]; b(list[int])('[1]'); "
        "assert not {'pydantic', 'numpy'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


"""Hypothesis measures the machine as well as the code; on a busy one its limits of time say nothing."""

NESTED_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
HASHABLE = st.none() | st.booleans() | st.integers() | st.text() | st.binary()
NESTED_LITERAL = st.recursive(
    HASHABLE
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.complex_numbers(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.sets(HASHABLE) | st.dictionaries(HASHABLE, inner),
    max_leaves=10,
)


@given(st.text())
def test_text_given_to_str_is_the_very_object(text: str) -> None:
    """No text is changed or copied on its way to a str."""
    assert build_coercer(str)(text) is text


@given(st.integers())
def test_ints_come_back_from_their_text(number: int) -> None:
    """repr and JSON of an int are read as that int."""
    assert same(number, build_coercer(int)(repr(number)))
    assert same(number, build_coercer(int)(f"{number}.0"))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_come_back_from_their_text(number: float) -> None:
    """repr and JSON of a finite float are read as that float, to the last bit."""
    assert same(number, build_coercer(float)(repr(number)))
    assert same(number, build_coercer(float)(json.dumps(number)))


@given(st.booleans())
def test_bools_come_back_from_their_text(flag: bool) -> None:
    """repr and JSON of a bool are read as that bool."""
    assert flag is build_coercer(bool)(repr(flag))
    assert flag is build_coercer(bool)(json.dumps(flag))


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9), st.fractions())
def test_exact_numbers_come_back_from_their_text(number: Decimal, fraction: Fraction) -> None:
    """A Decimal and a Fraction come back from str."""
    with decimal.localcontext():
        assert number == build_coercer(Decimal)(str(number))
    assert same(fraction, build_coercer(Fraction)(str(fraction)))


@given(st.lists(NESTED_JSON), st.dictionaries(st.text(), NESTED_JSON))
def test_nested_json_comes_back(items: list[Any], mapping: dict[str, Any]) -> None:
    """Lists and dicts come back from json.dumps, whatever they hold."""
    assert same(items, build_coercer(list)(json.dumps(items)))
    assert same(mapping, build_coercer(dict)(json.dumps(mapping, ensure_ascii=False)))


@given(st.lists(NESTED_LITERAL), st.tuples(NESTED_LITERAL, NESTED_LITERAL), st.dictionaries(HASHABLE, NESTED_LITERAL))
def test_nested_literals_come_back(items: list[Any], pair: tuple[Any, Any], mapping: dict[Any, Any]) -> None:
    """Lists, tuples and dicts come back from repr, whatever they hold."""
    assert same(items, build_coercer(list)(repr(items)))
    assert same(pair, build_coercer(tuple)(repr(pair)))
    assert same(mapping, build_coercer(dict)(repr(mapping)))


@given(
    st.dictionaries(st.text(), st.lists(st.integers())),
    st.sets(st.integers()),
    st.lists(st.tuples(st.booleans(), st.floats(allow_nan=False, allow_infinity=False))),
)
def test_typed_containers_come_back(
    mapping: dict[str, list[int]], numbers: set[int], pairs: list[tuple[bool, float]]
) -> None:
    """Typed containers come back from repr, and the first from JSON, with their elements' types."""
    assert same(mapping, build_coercer(dict[str, list[int]])(json.dumps(mapping)))
    assert same(mapping, build_coercer(dict[str, list[int]])(repr(mapping)))
    assert same(numbers, build_coercer(set[int])(repr(numbers)))
    assert same(pairs, build_coercer(list[tuple[bool, float]])(repr(pairs)))


FUZZED: list[tuple[Any, type | tuple[type, ...]]] = [
    (int, int),
    (float, float),
    (bool, bool),
    (Decimal, Decimal),
    (Fraction, Fraction),
    (complex, complex),
    (bytes, bytes),
    (Path, Path),
    (date, date),
    (datetime, datetime),
    (timedelta, timedelta),
    (uuid.UUID, uuid.UUID),
    (Level, Level),
    (Literal["a", 1], (str, int)),
    (list[str], list),
    (list[int | None], list),
    (set[Any], set),
    (dict[str, Any], dict),
    (Point, Point),
    (Pair, Pair),
    (Options, dict),
    (Model, Model),
    (Numbers, Numbers),
    (np.ndarray, np.ndarray),
    (NDArray[np.int64], np.ndarray),
    (int | list[int] | None, (int, list, type(None))),
    (Annotated[int, Field(ge=0)], int),
]
COERCERS = [(build_coercer(annotation), kinds) for annotation, kinds in FUZZED]
PIECES = st.sampled_from([*"[](){},:'\"\\+-.0123456789 eEjbruxN\n", "None", "true", "NaN", "set()", "name", "x", "1e9"])
TEXTS = st.one_of(
    st.text(),
    st.text(st.characters()),
    st.lists(PIECES).map("".join),
    st.lists(PIECES).map(lambda pieces: "[" + "".join(pieces) + "]"),
    NESTED_LITERAL.map(repr),
    NESTED_JSON.map(json.dumps),
)


@given(TEXTS)
def test_any_text_gives_the_type_or_our_error(text: str) -> None:
    """No text makes a coercer raise anything but ColumnValueError, or give another type."""
    for coercer, kinds in COERCERS:
        try:
            value = coercer(text)
        except ColumnValueError:
            continue
        assert isinstance(value, kinds), (coercer, value)


@given(st.one_of(NESTED_LITERAL, st.floats(), st.datetimes(), st.builds(object), st.integers().map(np.array)))
def test_any_real_value_gives_the_type_or_our_error(value: object) -> None:
    """No real value makes a coercer raise anything but ColumnValueError, or give another type."""
    for coercer, kinds in COERCERS:
        try:
            result = coercer(value)
        except ColumnValueError:
            continue
        assert isinstance(result, kinds), (coercer, result)
