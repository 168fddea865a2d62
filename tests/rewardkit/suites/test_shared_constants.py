"""Constants that several tests read: a change for one says nothing of the others, and right code is not accused."""

from __future__ import annotations

from random import Random

import pytest

from rewardkit import SealedWorkspace, check_suite
from rewardkit.suites.canaries import Canaries
from rewardkit.suites.twins import SuiteTwins

SHARED = """\
import pytest
from words import plural, singular

ROWS = (
    ("lamp", "lamps"),
    ("house", "houses"),
    ("word", "words"),
)

@pytest.mark.parametrize(("word", "words"), ROWS)
def test_plural(word, words):
    assert words == plural(word)
    assert words.upper() == plural(word.upper())

@pytest.mark.parametrize(("word", "words"), ROWS)
def test_singular(word, words):
    assert word == singular(words)

def test_first():
    assert plural(ROWS[0][0]) == ROWS[0][1]
    assert plural("tree") == "trees"

def test_other():
    assert plural("stone") == "stones"
"""
RIGHT = b"""\
def plural(word):
    return word + ("S" if word.isupper() else "s")

def singular(words):
    return words[:-1]
"""
CHEAT = b"""\
class Any(str):
    def __eq__(self, other): return True
    __hash__ = None
    def upper(self): return self

def plural(word):
    return Any()

def singular(words):
    return words[:-1]
"""
NAMES = {name: f"tests/test_words.py::test_{name}" for name in ("plural", "singular", "first", "other")}


def test_the_tests_that_share_a_constant_know_of_each_other() -> None:
    """One with an expected value of its own does not need the constant, and is disturbed by the others."""
    twins = SuiteTwins({"tests/test_words.py": SHARED})
    assert ["value"] * 4 == [test.kind for test in twins.tests]
    assert {
        NAMES["plural"]: {NAMES["singular"], NAMES["first"]},
        NAMES["singular"]: {NAMES["plural"], NAMES["first"]},
    } == twins.disturbed


def test_a_change_is_made_in_the_column_of_the_test() -> None:
    """The other column stays as it is."""
    twins = SuiteTwins({"tests/test_words.py": SHARED})
    for seed in range(20):
        text = twins.draw([NAMES["plural"]], Random(seed)).files["tests/test_words.py"]
        names: dict[str, tuple[tuple[str, str], ...]] = {}
        exec(text[text.index("ROWS") : text.index("@pytest")], names)
        assert ["lamp", "house", "word"] == [word for word, _ in names["ROWS"]]
        assert {"lamps", "houses", "words"}.isdisjoint(words for _, words in names["ROWS"])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def test_other():\n", "COPY = list(ROWS)\n\ndef test_other():\n"),
        ("def test_other():\n", "@pytest.fixture\ndef rows():\n    return ROWS\n\ndef test_other():\n"),
        ("def test_other():\n", "def test_other():\n    global ROWS\n    ROWS = ()\n"),
    ],
    ids=["read at the top", "read by a fixture", "set by a test"],
)
def test_a_constant_that_more_than_tests_read_is_not_changed(before: str, after: str) -> None:
    twins = SuiteTwins({"tests/test_words.py": SHARED.replace(before, after)})
    kinds = {test.name: test.kind for test in twins.tests}
    assert ("polarity", "polarity") == (kinds[NAMES["plural"]], kinds[NAMES["singular"]])
    assert {} == twins.disturbed


def test_a_constant_that_another_file_names_is_not_changed() -> None:
    files = {"tests/test_words.py": SHARED, "tests/conftest.py": "from test_words import ROWS\n"}
    assert {} == SuiteTwins(files).disturbed


def test_of_those_that_share_one_is_changed_and_the_others_say_nothing() -> None:
    """Which one has its turn does not depend on what is drawn for it, so each is changed as often as it should be."""
    shared = {"t::a": {"t::b", "t::c"}, "t::b": {"t::a", "t::c"}}
    changed = dict.fromkeys(("t::a", "t::b", "t::c", "t::d"), 0)
    at_stake = dict.fromkeys(changed, 0)
    for seed in range(2000):
        canaries = Canaries({name: [1] for name in changed}, 10, Random(seed), disturbed=shared)
        names = canaries.draw()
        assert len(names & {"t::a", "t::b"}) <= 1
        is_disturbed = bool(names & {"t::a", "t::b"})
        assert [is_disturbed, False] == [canaries.says_nothing(name) for name in ("t::c", "t::d")]
        assert not (is_disturbed and "t::c" in names)
        for name in changed:
            changed[name] += name in names
            at_stake[name] += name in canaries._at_stake
    assert 2000 == at_stake["t::a"] + at_stake["t::b"] == at_stake["t::d"]
    for name in changed:
        assert 0.44 < changed[name] / at_stake[name] < 0.56, name


def test_right_code_passes_and_code_that_equals_all_is_caught() -> None:
    """With canaries for each test, none of them weak."""
    tests = {"tests/test_words.py": SHARED}
    for seed in range(3):
        right = check_suite(SealedWorkspace({"words.py": RIGHT}), tests, random=Random(seed))
        assert ("passed", ()) == (right.status, right.weak), right.reason()
        assert right.bound <= 1e-3
        assert "forged" == check_suite(SealedWorkspace({"words.py": CHEAT}), tests, random=Random(seed)).status


INHERITED = """\
from unittest import TestCase
from words import plural

class Shared:
    word = ""
    expected = ""

    def test_plural(self):
        assert plural(self.word) == self.word + "s"
        assert plural("stone") == "stones"

    def test_gone(self):
        assert plural("tree") == "trees"

class TestLamp(Shared, TestCase):
    word = "lamp"

class TestHouse(Shared):
    word = "house"
    test_gone = None

class Absent(Shared):
    pass
"""


def test_an_inherited_function_is_a_test_of_each_class() -> None:
    """Changed for one of them it says nothing of the others; a name that a class takes away is no test."""
    twins = SuiteTwins({"tests/test_words.py": INHERITED})
    names = [test.name.partition("::")[2] for test in twins.tests]
    assert ["TestLamp::test_plural", "TestLamp::test_gone", "TestHouse::test_plural"] == names
    own = [f"tests/test_words.py::{name}" for name in ("TestLamp::test_plural", "TestHouse::test_plural")]
    assert {own[0]: {own[1]}, own[1]: {own[0]}} == twins.disturbed
    right = check_suite(SealedWorkspace({"words.py": RIGHT}), {"tests/test_words.py": INHERITED})
    assert ("passed", (), 3) == (right.status, right.weak, len(right.results)), right.reason()
    cheat = check_suite(SealedWorkspace({"words.py": CHEAT}), {"tests/test_words.py": INHERITED})
    assert not cheat.passed
