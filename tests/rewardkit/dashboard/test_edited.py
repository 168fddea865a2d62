"""Which lines of a file a reward consists of."""

from __future__ import annotations

import pytest

from rewardkit.dashboard.edited import own_lines

FILE = """\
import re
import json

LIMIT = 3
OTHER = 4


def words(text):
    return re.findall(r"\\w+", text)


def unused():
    return OTHER, json


@reward(
    default=0.0,
)
def brief(completion):
    return len(words(completion)) < LIMIT
"""


def test_a_reward_is_its_function_and_what_that_uses() -> None:
    """With its decorators, through other functions, to imports and constants; what it does not use is left out."""
    assert [(1, 1), (4, 4), (8, 9), (16, 20)] == own_lines(FILE, "brief")
    assert [(2, 2), (5, 5), (12, 13)] == own_lines(FILE, "unused")


@pytest.mark.parametrize("text", ["def brief(:", "x = 1", "", "def brief" + "(" * 5_000, "\0"])
def test_of_what_cannot_be_read_nothing_is_known(text: str) -> None:
    """No function of the name, or no Python."""
    assert own_lines(text, "brief") is None


def test_functions_that_use_each_other_come_to_an_end() -> None:
    """Each stands there once."""
    assert [(1, 1), (2, 2)] == own_lines("def a(): return b()\ndef b(): return a()\n", "a")
