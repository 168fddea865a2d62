"""Values of languages that have one type for several: they are what the expected value's type makes of them."""

from typing import Any

import pytest

from sandbox import LANGUAGES
from sandbox.equality import same
from sandbox.languages.readings import as_returned


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
