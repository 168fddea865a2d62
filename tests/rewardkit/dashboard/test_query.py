"""The parameters of a request: each checked, and a wrong one named."""

from __future__ import annotations

import pytest

from rewardkit.dashboard.query import Query
from rewardkit.errors import RecordError

GIVEN = Query({"text": "a b", "whole": "-3", "number": "2.5e-1", "choice": "eval", "empty": "", "long": "x" * 3000})


def test_values_are_read() -> None:
    """Each kind, and the default for what is absent or empty."""
    assert ("a b", -3, 0.25, "eval") == (
        GIVEN.text("text"),
        GIVEN.integer("whole"),
        GIVEN.number("number"),
        GIVEN.choice("choice", ["train", "eval"]),
    )
    assert (None, "x", None, 7, None, 0.5, None, "train") == (
        GIVEN.text("absent"),
        GIVEN.text("empty", "x"),
        GIVEN.integer("empty"),
        GIVEN.integer("absent", 7),
        GIVEN.number("absent"),
        GIVEN.number("absent", 0.5),
        GIVEN.choice("absent", ["a"]),
        GIVEN.choice("empty", ["train"], "train"),
    )


@pytest.mark.parametrize("text", ["1.5", "x", "1e3", "٣٤x", "9" * 30, "9" * 1900, "0x10", "nan"])
def test_a_wrong_whole_number_is_named(text: str) -> None:
    """With its name, its value and what is expected."""
    with pytest.raises(RecordError, match=r"^step=.{1,40}: expected a whole number$"):
        Query({"step": text}).integer("step")


def test_bounds_are_told() -> None:
    """A number out of its range says which it is."""
    with pytest.raises(RecordError, match="limit=0: expected a whole number from 1 to 500"):
        Query({"limit": "0"}).integer("limit", low=1, high=500)
    with pytest.raises(RecordError, match="after=-1: expected a whole number of 0 or more"):
        Query({"after": "-1"}).integer("after", low=0)


@pytest.mark.parametrize("text", ["nan", "inf", "-Infinity", "x", "1e999"])
def test_a_number_is_finite(text: str) -> None:
    """No comparison with what is no number."""
    with pytest.raises(RecordError, match=r"low=.*: expected a number"):
        Query({"low": text}).number("low")


def test_a_choice_names_the_others() -> None:
    """And a text that is too long is not repeated whole."""
    with pytest.raises(RecordError, match="split=eval: expected train, both"):
        Query({"split": "eval"}).choice("split", ["train", "both"])
    with pytest.raises(RecordError, match=r"^long=x+…: expected at most 2,000 characters$"):
        GIVEN.text("long")
