"""Expected values as other languages write them: equal values of different types are equal, and no others."""

from typing import Any

import pytest

from sandbox.equality import same
from sandbox.languages.readings import as_returned

_EQUAL: list[tuple[Any, Any]] = [
    (2, 2.0),
    (2.0, 2),
    ((1, (2.0, None)), [1.0, [2, None]]),
    ({"1": [2]}, {1: [2.0]}),
    ({"0.5": "a"}, {0.5: "a"}),
    ({1.0: "a"}, {1: "a"}),
    ({(1, 2): 3}, {(1, 2): 3.0}),
    ([1, 2], {2, 1}),
    ([[1, 2], [3, 4]], {(3, 4), (1, 2)}),
    ([], set()),
    (10**300, 1e300 if 10**300 == 1e300 else 10**300),
]
_UNEQUAL: list[tuple[Any, Any]] = [
    (1, True),
    (True, 1),
    (0.0, False),
    (2.5, 2),
    (10**400, 1.0),
    (float("nan"), 0),
    (float("inf"), 1),
    (2**53 + 1, float(2**53)),
    ((1, 2), [1]),
    ([1, 2], [2, 1]),
    ([1, 1], {1}),
    ([{}], {1}),
    ({"a": 1}, {1: 1}),
    ({"1": 1, "1.0": 2}, {1.0: 1, 2.0: 2}),
    ({"1": 1}, {1: 2}),
    ({1: 1}, {"1": 1}),
    ("1", 1),
    (None, 0),
]


@pytest.mark.parametrize(("expected", "value"), _EQUAL, ids=repr)
def test_equal_values_of_other_types_are_the_same(expected: Any, value: Any):
    """A value is the expected one when both say the same in their own types."""
    assert same(value, as_returned(expected, value))


@pytest.mark.parametrize(("expected", "value"), _UNEQUAL, ids=repr)
def test_other_values_are_not(expected: Any, value: Any):
    """A boolean is no number, and what differs in size, order or digits is another value."""
    assert not same(value, as_returned(expected, value))


def test_values_nested_without_end_are_compared_in_bounds():
    """What is nested deeper than any value of a program is left as it is."""
    deep: Any = (1,)
    for _ in range(2000):
        deep = (deep,)
    assert not same([[1]], as_returned(deep, [[1]]))
    value: Any = [1]
    for _ in range(900):
        value = [value]
    assert isinstance(as_returned(value, value), list)


def test_letters_are_numbers_where_a_language_writes_them_so():
    """A rune of Go is its number, and a slice of bytes is a text."""
    expected = ["x", "ab", {"x": 1}]
    value = [120, [97, 98], {120: 1}]
    assert same(value, as_returned(expected, value, letters=True))
    assert not same(value, as_returned(expected, value))
    assert not same(120, as_returned("xy", 120, letters=True))
    assert not same([97], as_returned("b", [97], letters=True))
