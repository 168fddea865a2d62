"""Twins of suites: right code passes each test as written and fails it changed; code that equals all passes both."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from rewardkit.suites.twins import SuiteTwins

DRAWS = 50
SAME_VALUE = [
    "4", "-3", "0", "True", "1_000", "0x1f", "1.5", "0.0", "2.5e3", "3j", "'a word'", "''' two\nlines '''", r"r'\d1'",
    r"'\n\x41b'", "('side '  # by\n 'side')", "b'by\\x00te'", "'日本'", "[1, [2, 3]]", "(1,)", "{'a': 1, 'b': [2]}",
    "{1, 2, 3}", "[True, None, 'x']", "[0] * 3",
]  # fmt: skip


class AlwaysEqual:
    """An object that equals everything, as a forger returns it."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return True


def passes(text: str, answer: Any) -> bool:
    """Return whether ``test_it`` passes with a function ``f`` that gives an answer."""
    names: dict[str, Any] = {"f": lambda *_: answer, "self": SimpleNamespace()}
    exec(compile(text, "test_it.py", "exec"), names)
    try:
        if "TestIt" in names:
            names["TestIt"]("test_it").test_it()
        else:
            names["test_it"]()
    except AssertionError:
        return False
    return True


def form(name: str, literal: str) -> str:
    """Return a file with one test of a form."""
    if name == "assert":
        return f"def test_it():\n    # a comment, é\n    assert f(2) == {literal}, 'why'  # after\n"
    if name == "turned":
        return f"def test_it():\n    assert {literal} == f( 2 )\n"
    lines = ["from unittest import TestCase", "class TestIt(TestCase):", "    def test_it(self):"]
    return "\n".join([*lines, f"        self.assertEqual(f(2), {literal})", ""])


@pytest.mark.parametrize("literal", SAME_VALUE)
@pytest.mark.parametrize("name", ["assert", "turned", "assertEqual"])
def test_right_code_passes_as_written_and_fails_each_twin(name: str, literal: str) -> None:
    """A twin differs in one span of the literal, right code fails it, and an object that equals all passes it."""
    text = form(name, literal)
    answer = eval(literal)
    twins = SuiteTwins({"test_it.py": text})
    (test,) = twins.tests
    assert ("value", 1, 1) == (test.kind, test.asserts, test.perturbable)
    assert passes(text, answer)
    start = text.index(literal)
    for seed in range(DRAWS):
        twin = twins.draw([test.name], Random(seed)).files["test_it.py"]
        assert twin != text
        assert (text[:start], text[start + len(literal) :]) == (
            twin[:start],
            twin[len(twin) - len(text) + start + len(literal) :],
        )
        assert not passes(twin, answer)
        if not isinstance(answer, set):
            assert passes(twin, AlwaysEqual())


def test_files_that_are_no_tests_stay_as_they_are() -> None:
    """Helpers and tests that were not drawn are given back as they came."""
    files = {"conftest.py": "assert f() == 4\n", "tests/test_a.py": form("assert", "4"), "tests/test_b.py": "x = 1\r\n"}
    twins = SuiteTwins(files)
    assert ["tests/test_a.py::test_it"] == [test.name for test in twins.tests]
    assert files == twins.draw([], Random(0)).files
    drawn = twins.draw(["tests/test_a.py::test_it"], Random(0)).files
    assert ["tests/test_a.py"] == [name for name in files if files[name] != drawn[name]]


def test_a_weak_test_and_an_unknown_name_are_refused() -> None:
    """A test without an assert that can be changed has no kind, and is not drawn."""
    twins = SuiteTwins({"test_a.py": "def test_weak():\n    f()\n"})
    assert [("", 0, 0)] == [(test.kind, test.asserts, test.perturbable) for test in twins.tests]
    with pytest.raises(ValueError, match="a weak test"):
        twins.draw(["test_a.py::test_weak"], Random(0))
    with pytest.raises(ValueError, match="no test"):
        twins.draw(["test_a.py::test_other"], Random(0))


@pytest.mark.parametrize(("text", "line"), [("x = 1\ny = (\n", 2), ("x = 1\n\ndef f(:\n", 3), ("x\0", 1)])
def test_a_file_that_is_no_python_is_named(text: str, line: int) -> None:
    """The message has the file and the line."""
    with pytest.raises(ValueError, match=rf"tests/test_a\.py, line {line}: "):
        SuiteTwins({"tests/test_a.py": text})


@pytest.mark.parametrize(
    ("test", "is_told"),
    [
        ("assert f() == 1234", False),
        ("assert f() == 1234  # 1234, as always", True),
        ("assert f() == 1234, 'not 1234'", True),
        ("assert f() == 'word'", False),
        ('assert f() == "word" or "a word"', True),
        ("assert f() == 4  # 4", False),
    ],
)
def test_a_value_that_stands_elsewhere_too_can_be_found(test: str, is_told: bool) -> None:
    """It is not counted among values that must be guessed; a single digit stands everywhere."""
    twins = SuiteTwins({"test_it.py": f"def test_it():\n    {test.replace(' or ', '; ')}\n"})
    (change,) = twins.draw(["test_it.py::test_it"], Random(0)).changes["test_it.py::test_it"]
    assert is_told == (change.choices == 1)


@pytest.mark.parametrize(
    "binding",
    [
        "from other import test_it",
        "if True:\n    from other import test_it",
        "import other as test_it",
        "test_it = other",
        "try:\n    def test_it(): pass\nfinally:\n    pass",
        "del test_it",
    ],
)
def test_a_test_whose_name_is_bound_again_is_another_one(binding: str) -> None:
    """What was written first does not run; a function that comes last does."""
    first = "def test_it():\n    assert f() == 1234\n"
    assert () == SuiteTwins({"test_a.py": f"{first}{binding}\n"}).tests
    assert ["value"] == [test.kind for test in SuiteTwins({"test_a.py": f"{binding}\n{first}"}).tests]
