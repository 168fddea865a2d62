"""Values as real data sets have them: padded structs, what stands for a missing value, decimals, images, tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import Any, Literal, NamedTuple, NotRequired, TypedDict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from rewardkit.coercion.coerce import build_coercer
from rewardkit.coercion.rule import ColumnValueError
from rewardkit.errors import RewardDefinitionError


class Typed(TypedDict):
    a: int
    b: NotRequired[str]
    c: NotRequired[int | None]


@dataclass
class Data:
    a: int
    b: str = "x"
    c: int | None = None


class Named(NamedTuple):
    a: int
    b: str = "x"
    c: int | None = None


class Model(BaseModel):
    a: int
    b: str = "x"
    c: int | None = None


class Nested(BaseModel):
    parts: list[Model]


PADDED: Mapping[str, tuple[Any, Any, Any]] = {
    "TypedDict": (Typed, {"a": 1, "b": None, "c": None}, {"a": 1, "c": None}),
    "dataclass": (Data, {"a": 1, "b": None, "c": None}, Data(1)),
    "NamedTuple": (Named, {"a": 1, "b": None, "c": None}, Named(1)),
    "model": (Model, {"a": 1, "b": None, "c": None}, Model(a=1)),
    "model within a model": (Nested, {"parts": [{"a": 1, "b": None}]}, Nested(parts=[Model(a=1)])),
    "list": (list[Data], [{"a": 1, "b": None, "c": 2}], [Data(1, c=2)]),
    "dict": (dict[str, int], {"a": 1, "b": None}, {"a": 1}),
    "dict of lists": (dict[str, list[str]], {"a": ["1"], "b": None}, {"a": ["1"]}),
    "dict that takes None": (dict[str, int | None], {"a": 1, "b": None}, {"a": 1, "b": None}),
    "dict of anything": (dict[str, Any], {"a": 1, "b": None}, {"a": 1, "b": None}),
}


@pytest.mark.parametrize(("annotation", "value", "expected"), PADDED.values(), ids=PADDED.keys())
def test_nulls_that_arrow_padded_structs_with_are_absent(annotation: Any, value: Any, expected: Any) -> None:
    """Every value is as it was before another row's field came into the column."""
    original = repr(value)
    assert expected == build_coercer(annotation)(value)
    assert original == repr(value)


@pytest.mark.parametrize("annotation", [Typed, Data, Named, Model], ids=lambda kind: kind.__name__)
def test_a_null_in_a_field_that_must_be_there_is_refused(annotation: Any) -> None:
    with pytest.raises(ColumnValueError, match="field 'a'"):
        build_coercer(annotation)({"a": None, "b": None})


def test_arrow_itself_pads_as_these_tests_say() -> None:
    datasets = pytest.importorskip("datasets")
    rows = datasets.Dataset.from_list([{"tests": {"a": 1}}, {"tests": {"a": 1, "b": "y"}}])
    assert [Data(1), Data(1, "y")] == [build_coercer(Data)(row["tests"]) for row in rows]


class Color(Enum):
    RED = "red"


OPTIONAL = [
    int | None, float | None, str | None, bool | None, bytes | None, Decimal | None, date | None, Literal["a"] | None,
    Color | None, list[int] | None, dict[str, int] | None, Data | None, Model | None, int | str | None, None,
]  # fmt: skip
MISSING = [float("nan"), np.float32("nan"), np.float64("nan"), np.datetime64("NaT")]


@pytest.mark.parametrize("annotation", OPTIONAL, ids=str)
def test_what_stands_for_a_missing_value_is_none_where_none_is_allowed(annotation: Any) -> None:
    pandas = pytest.importorskip("pandas")
    for value in [*MISSING, pandas.NA, pandas.NaT]:
        assert build_coercer(annotation)(value) is None
    assert [None] == build_coercer(list[annotation])([float("nan")])


@pytest.mark.parametrize("annotation", [int, float, str, Decimal, list[int]], ids=str)
def test_a_missing_value_is_refused_where_none_is_not_allowed(annotation: Any) -> None:
    pandas = pytest.importorskip("pandas")
    for value in [*MISSING, pandas.NA]:
        with pytest.raises(ColumnValueError):
            build_coercer(annotation)(value)


@given(st.decimals(allow_nan=False, allow_infinity=False, places=8, min_value=-(10**12), max_value=10**12))
def test_a_decimal_is_text_with_all_its_digits_and_without_an_exponent(number: Decimal) -> None:
    text = build_coercer(str)(number)
    assert isinstance(text, str)
    assert (number, False) == (Decimal(text), "E" in text)


@pytest.mark.parametrize("number", [Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), Decimal("1E+9999999")])
def test_a_decimal_without_digits_of_its_own_is_no_text(number: Decimal) -> None:
    with pytest.raises(ColumnValueError):
        build_coercer(str)(number)


def test_images_and_tensors_are_taken_as_they_are() -> None:
    """Alone, in lists and where None is allowed; another value is refused by its row."""
    image_module, torch = pytest.importorskip("PIL.Image"), pytest.importorskip("torch")
    for kind, value in ((image_module.Image, image_module.new("RGB", (2, 2))), (torch.Tensor, torch.ones(2))):
        assert value is build_coercer(kind)(value)
        assert value is build_coercer(kind | None)(value)
        assert value is build_coercer(list[kind])([value])[0]  # type: ignore[index]
        with pytest.raises(ColumnValueError, match=f"expected {kind.__name__}"):
            build_coercer(kind)("x")


def test_a_class_that_no_data_set_holds_is_refused_at_once() -> None:
    with pytest.raises(RewardDefinitionError, match="no column's text can become one"):
        build_coercer(np.random.Generator)
