"""The types of a row's arguments, which open functions are called by."""

from typing import Any

import pytest

from sandbox.errors import NotPlainError
from sandbox.languages.drivers.row_types import RowType, signatures_of


def _text(kind: RowType) -> str:
    return kind.name + (f"[{', '.join(map(_text, kind.parts))}]" if kind.parts else "")


@pytest.mark.parametrize(
    ("calls", "signatures"),
    [
        ([[1, True], [2, False]], ["int, bool"]),
        ([[1], [2**31], [0.5]], ["float"]),
        ([[1], [-(2**31)]], ["int"]),
        ([[1], [2**31]], ["long"]),
        ([[[]], [["a"]]], ["list[str]"]),
        ([[[]]], ["list[any]"]),
        ([[[[1], [2.5]]]], ["list[list[float]]"]),
        ([[{"a": [1]}], [{}]], ["dict[str, list[int]]"]),
        ([[None], [1]], ["optional[int]"]),
        ([[None]], ["none"]),
        ([[[1, None, 2.5]]], ["list[optional[float]]"]),
        ([[{1, 2}], [frozenset({3})], [(1,)]], ["set[int]", "list[int]"]),
        ([[1], ["a"], [2], [1, 2]], ["int", "str", "int, int"]),
        ([[True], [1]], ["bool", "int"]),
        ([[]], [""]),
        ([], []),
    ],
)
def test_calls_share_the_narrowest_signature_that_takes_them(calls: list[list[Any]], signatures: list[str]) -> None:
    """Calls whose types have nothing in common have signatures of their own."""
    assert signatures == [", ".join(map(_text, signature)) for signature in signatures_of(calls)]


@pytest.mark.parametrize("value", [[1, "a"], [True, 1], {"a": 1, "b": []}, [b"x"]], ids=repr)
def test_values_without_a_common_type_are_the_rows_fault(value: Any) -> None:
    """No typed list holds them, so the row is skipped with the reason."""
    with pytest.raises(NotPlainError, match="call 1: "):
        signatures_of([[1], [value]])
