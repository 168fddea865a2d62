"""JSON values: where one stands, how strictly it is read, when two are equal."""

from __future__ import annotations

from typing import Any

import pytest

from builtin_rewards.reading.json_values import (
    count_leaves,
    deeper_than,
    expected_json,
    json_text,
    read_json,
    same_json,
)

DEEP = "[" * 10_000 + "]" * 10_000


def test_reading() -> None:
    """Where the value stands, and what is said of one that is none."""
    assert "1" == json_text("<think>[2]</think>1")
    assert json_text("```python\n1\n```") is None
    assert {"a": [1, 1.5]} == read_json('{"a": [1, 1.5]}')
    for text, words in ((DEEP, "too deep"), ('{"a":1,"a":1}', "'a' stands twice"), ("[NaN]", "NaN is not a JSON")):
        with pytest.raises(ValueError, match=words):
            read_json(text)


@pytest.mark.parametrize(
    ("wanted", "given", "equal"),
    [
        (1, 1.0, True),
        (1, True, False),
        (False, 0, False),
        (1, "1", False),
        (None, None, True),
        (None, False, False),
        ("a", "A", False),
        ([1, [2]], [1, [2.0]], True),
        ([1, 2], [2, 1], False),
        ([1], [1, 1], False),
        ({"a": 1, "b": {}}, {"b": {}, "a": 1}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({}, [], False),
    ],
)
def test_equal_values(wanted: Any, given: Any, equal: bool) -> None:
    """As JSON has them: numbers by value, kinds apart, names in any order."""
    assert equal is same_json(wanted, given)


def test_leaves_and_levels() -> None:
    """An empty object is a value that holds no others."""
    assert [1, 1, 1, 3] == [count_leaves(value) for value in (1, {}, [[]], {"a": [1, {"b": 2}], "c": None})]
    assert [False, True] == [deeper_than([[1]], levels) for levels in (3, 2)]


@pytest.mark.parametrize(
    "answer", [None, " ", "null", "None", "[", {1}, [float("inf")], "[" * 120 + "]" * 120], ids=repr
)
def test_answers_that_are_none(answer: Any) -> None:
    """They are told by the row."""
    with pytest.raises(ValueError, match="the row"):
        expected_json(answer)
