"""Two golds mean the same where each is paid in full for the other, and neither on a third row."""

from __future__ import annotations

import pytest

from rewardkit.audit.equal_golds import PayLevels, equal_places
from rewardkit.audit.gold import gold_of

LEVELS = PayLevels(full=1.0, limit=0.5)

SCORES: dict[str, tuple[int, dict[tuple[int, int], float | None], list[int]]] = {
    "each for the other, and not for a third": (
        3,
        {(1, 0): 1, (0, 1): 1, (2, 0): 0, (0, 2): 0, (2, 1): 0, (1, 2): 0},
        [1],
    ),
    "one way alone": (3, {(1, 0): 1, (0, 1): 0, (2, 0): 0, (0, 2): 0, (2, 1): 0, (1, 2): 0}, []),
    "for the third as well": (3, {(1, 0): 1, (0, 1): 1, (2, 0): 1, (0, 2): 1, (2, 1): 1, (1, 2): 1}, []),
    "for a third one way": (3, {(1, 0): 1, (0, 1): 1, (2, 0): 0, (0, 2): 1, (2, 1): 0, (1, 2): 0}, []),
    "three that are one, and a fourth": (
        4,
        {(a, b): float(3 not in (a, b)) for a in range(4) for b in range(4) if a != b},
        [1, 2],
    ),
    "in part alone": (3, {(1, 0): 0.8, (0, 1): 0.8, (2, 0): 0, (0, 2): 0, (2, 1): 0, (1, 2): 0}, []),
    "two rows, and one made up that is not paid": (2, {(1, 0): 1, (0, 1): 1, (2, 0): 0}, [1]),
    "two rows, and one made up that is paid": (2, {(1, 0): 1, (0, 1): 1, (2, 0): 1}, []),
    "two rows alone": (2, {(1, 0): 1, (0, 1): 1}, []),
    "lost calls": (3, {(1, 0): 1, (0, 1): None, (2, 0): 0, (0, 2): 0, (2, 1): 0, (1, 2): 0}, []),
}


@pytest.mark.parametrize(("count", "scores", "expected"), SCORES.values(), ids=SCORES)
def test_equal_golds_are_told_by_what_is_paid(
    count: int, scores: dict[tuple[int, int], float | None], expected: list[int]
) -> None:
    """By the answers' scores on each other's rows, and on a third row or that of an answer made up."""
    assert expected == equal_places(count, scores, LEVELS)


EQUAL = {
    "a number": (1, "1.0"),
    "keys in another order": ('{"a": 1, "b": [2, 3]}', {"b": [2.0, 3], "a": 1.0}),
    "a unit": ("5 km", "5000 m"),
    "a letter": ("(B)", "b"),
    "blanks and case": ("New  York", "new york"),
}
DIFFERENT = {
    "another number": ("1", "1.01"),
    "items in another order": ([1, 2], [2, 1]),
    "a truth value and a number": ({"a": True}, {"a": 1}),
    "another dimension": ("5 km", "5000 g"),
}


@pytest.mark.parametrize(("left", "right"), EQUAL.values(), ids=EQUAL)
def test_golds_that_are_written_in_two_ways_are_one(left: object, right: object) -> None:
    """Nothing of the one is tried on a row of the other."""
    a, b = gold_of(left), gold_of(right)
    assert a is not None
    assert b is not None
    assert a.key == b.key


@pytest.mark.parametrize(("left", "right"), DIFFERENT.values(), ids=DIFFERENT)
def test_golds_that_differ_stay_apart(left: object, right: object) -> None:
    """A reward may tell them apart, and what it pays shows whether it does."""
    a, b = gold_of(left), gold_of(right)
    assert a is not None
    assert b is not None
    assert a.key != b.key
