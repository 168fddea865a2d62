"""Values of languages that have one type for several: they are what the expected value's type makes of them."""

from typing import Any

import pytest

from sandbox import LANGUAGES
from sandbox.equality import same
from sandbox.errors import NotPlainError
from sandbox.languages.readings import as_returned
from sandbox.languages.shell_values import as_word


def _is_right(language: str, value: Any, expected: Any) -> bool:
    notation = LANGUAGES[language].notation
    value = notation.meant(value, expected)
    return same(value, as_returned(expected, value, letters=notation.letters), float_tol=1e-9)


_RIGHT: list[tuple[str, Any, Any]] = [
    ("perl", "7", 7),
    ("perl", 7, "7"),
    ("perl", 0.5, "0.5"),
    ("perl", "0.30000000000000004", 0.3),
    ("perl", "-1e3", -1000.0),
    ("perl", 1, True),
    ("perl", "1", True),
    ("perl", "", False),
    ("perl", 0, False),
    ("perl", None, False),
    ("perl", (), False),
    ("perl", (), None),
    ("perl", (), []),
    ("perl", (1, "2"), [1, 2]),
    ("perl", 5, [5]),
    ("perl", ["1", ["", 1]], [1, (False, True)]),
    ("perl", {"1": "2", "0.5": 1}, {1: 2, 0.5: True}),
    ("perl", {"a": {"2": []}}, {"a": {"2": []}}),
    ("php", [], {}),
    ("php", ["a", "b"], {0: "a", "1": "b"}),
    ("php", {1: "x", "a": []}, {"1": "x", "a": {}}),
    ("lua", [], {}),
    ("lua", [], []),
    ("lua", ["a", "b"], {1: "a", 2: "b"}),
    ("lua", ["a", "b"], {"1": "a", "2": "b"}),
    ("lua", [[], {"x": []}], [{}, {"x": {}}]),
    ("lua", [1], [1, None, None]),
    ("lua", ("text", 3), "text"),
    ("lua", (1, [2]), (1, [2])),
    ("lua", ([1, 2], 3), [[1, 2], 3]),
    ("lua", {2: "b"}, {"2": "b"}),
    ("bash", " a ", " a "),
    ("bash", "7", "7"),
    ("bash", " 7", 7),
    ("bash", "0.30000000000000004", 0.3),
    ("bash", "true", True),
    ("bash", "false", False),
    ("bash", "", None),
    ("bash", "None", None),
    ("bash", "", []),
    ("bash", "1  2\n3", [1, 2, 3]),
    ("bash", "a 1.5 true", ("a", 1.5, True)),
    ("bash", "a b\n\n1", [["a", "b"], [], [1], []]),
    ("bash", "", [[]]),
    ("bash", "b,2\na,1", {"a": 1, "b": 2}),
    ("bash", "1,x,y", {1: "x,y"}),
    ("bash", "", {}),
    ("c", 4, True),
    ("c", 0, False),
    ("c", [1, 0], [True, False]),
]
_WRONG: list[tuple[str, Any, Any]] = [
    ("perl", "7 ", 7),
    ("perl", "7a", 7),
    ("perl", "0x7", 7),
    ("perl", "", 0),
    ("perl", None, 0),
    ("perl", 2, True),
    ("perl", "true", True),
    ("perl", "0.0", False),
    ("perl", [], False),
    ("perl", "07", "7"),
    ("perl", 7.5, "7"),
    ("perl", (1, 2), 2),
    ("perl", [5], 5),
    ("perl", 5, [[5]]),
    ("perl", [5], [[5]]),
    ("perl", None, [5]),
    ("perl", None, []),
    ("perl", {"1": 2, "01": 3}, {1: 2}),
    ("perl", "9" * 500, 10**499),
    ("php", "7", 7),
    ("php", 1, True),
    ("php", ["a"], {1: "a"}),
    ("php", {1: "a"}, ["a"]),
    ("php", [], None),
    ("lua", ("text", 3), 3),
    ("lua", "7", 7),
    ("lua", 1, True),
    ("lua", None, False),
    ("lua", None, {}),
    ("lua", ["a"], {0: "a"}),
    ("lua", [1], [1, 2]),
    ("lua", [1, 2], [1]),
    ("lua", {"a": 1}, {"a": 1, "b": None}),
    ("bash", "7 ", "7"),
    ("bash", "7a", 7),
    ("bash", "", 0),
    ("bash", "1", True),
    ("bash", "", False),
    ("bash", "1 2", [1, 2, 3]),
    ("bash", "1 2 3", [1, 2]),
    ("bash", "1 2\n3", [[1, 2, 3]]),
    ("bash", "a,1\na,1", {"a": 1}),
    ("bash", "a 1", {"a": 1}),
    ("bash", "x", []),
    ("c", 1, "1"),
    ("c", True, 1),
    ("c", 0.5, True),
    ("ruby", 1, True),
    ("ruby", "7", 7),
    ("ruby", [], {}),
]


@pytest.mark.parametrize(("language", "value", "expected"), _RIGHT, ids=repr)
def test_a_value_is_read_as_the_expected_one_is_meant(language: str, value: Any, expected: Any) -> None:
    assert _is_right(language, value, expected)


@pytest.mark.parametrize(("language", "value", "expected"), _WRONG, ids=repr)
def test_no_other_value_is(language: str, value: Any, expected: Any) -> None:
    """A language with types of its own keeps them."""
    assert not _is_right(language, value, expected)


_NO_WORDS: list[Any] = [
    ["a b"], [""], ["a\n"], [[["a"]]], [{}], [1, [2]], {"a b": 1}, {"a,b": 1}, {"a": [1]}, {1, 2},
    "a\n", "a\0", "\ud800",
]  # fmt: skip


@pytest.mark.parametrize("expected", _NO_WORDS, ids=repr)
def test_what_no_word_of_a_shell_can_be_is_the_rows_fault(expected: Any) -> None:
    """Another value has the same word, or it has none."""
    with pytest.raises(NotPlainError):
        LANGUAGES["bash"].notation.check(expected)


@pytest.mark.parametrize(
    "value", [" a\nb", 7, -0.5, True, None, [], [1, "a"], [[1], []], {"a": 1.5, "b": "x,y"}], ids=repr
)
def test_what_is_written_as_a_word_is_read_from_it(value: Any) -> None:
    LANGUAGES["bash"].notation.check(value)
    assert _is_right("bash", as_word(value).rstrip("\n"), value)
