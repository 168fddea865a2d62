"""Tests that patch what the code uses, or hand it what cannot travel, run in one process with it, with canaries."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import pytest

from builtin_rewards.code import code_tests
from sandbox import Sandbox

PATCHED = """
import unittest
from unittest.mock import patch

class TestPath(unittest.TestCase):
    @patch("os.getcwd", return_value="/here")
    def test_path(self, getcwd):
        self.assertEqual(path_of("a.txt"), "/here/a.txt")
        getcwd.assert_called_once()

    def test_absolute(self):
        self.assertEqual(path_of("/b.txt"), "/b.txt")
"""
RIGHT = "import os\ndef path_of(name):\n    return name if name[0] == '/' else f'{os.getcwd()}/{name}'\n"
ONE_WRONG = "import os\ndef path_of(name):\n    return f'{os.getcwd()}/{name}'\n"
FORGED = {
    "equals everything": "import os\nclass Any(str):\n    __hash__ = None\n    def __eq__(self, other): return True\n"
    "def path_of(name):\n    name[0] == '/' or os.getcwd()\n    return Any()\n",
    "patches unittest": "import os, unittest\nunittest.TestCase.assertEqual = lambda *a: None\n"
    "def path_of(name): name[0] == '/' or os.getcwd()\n",
    "copies the line": "import linecache, os, re, sys\ndef path_of(name):\n    name[0] == '/' or os.getcwd()\n"
    "    frame = sys._getframe(1)\n    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)\n"
    "    return eval(line.rpartition(', ')[2].strip()[:-1])\n",
    "ends the process": "import os\nos._exit(0)\n",
    "replaces the runner": "import pytest, _pytest.runner as r\n"
    "r.runtestprotocol = lambda item, **k: []\npath_of = print\n",
}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


def score(sandbox: Sandbox, code: str, tests: str, entry_point: str | None = "path_of") -> tuple[float | None, str]:
    result = code_tests(completion=f"```python\n{code}```", sandbox=sandbox, tests=tests, entry_point=entry_point)
    return result.value, result.reason or ""


def test_a_patch_reaches_the_code(sandbox: Sandbox) -> None:
    """Each test is a check."""
    assert 1.0 == score(sandbox, RIGHT, PATCHED)[0]
    value, reason = score(sandbox, ONE_WRONG, PATCHED)
    assert (0.5, True) == (value, "passed: TestPath::test_path; not passed: TestPath::test_absolute" in reason), reason


@pytest.mark.parametrize("name", FORGED)
def test_nothing_is_paid_for_a_forgery(sandbox: Sandbox, name: str) -> None:
    """Nor for the other tests."""
    assert 0.0 == score(sandbox, FORGED[name], PATCHED)[0]


@pytest.mark.parametrize(
    ("tests", "code"),
    [
        (
            "import json\ndef test_a():\n    assert f(json) == 'json7'\n",
            "def f(module): return f'{module.__name__}7'\n",
        ),
        (
            "from unittest.mock import Mock\nimport pytest\n"
            "@pytest.mark.parametrize('n, expected', [(3, 13), (5, 15)])\n"
            "def test_a(n, expected):\n    assert f(Mock(return_value=n)) == expected\n",
            "def f(function): return function() + 10\n",
        ),
        (
            "import solution\nfrom unittest.mock import patch\ndef test_a():\n"
            "    with patch('solution.size', return_value=7):\n        assert solution.f(3) == 21\n",
            "def size(): return 2\ndef f(n): return size() * n\n",
        ),
    ],
    ids=["a module", "a mock", "a name of the code's own"],
)
def test_what_cannot_travel_is_there(sandbox: Sandbox, tests: str, code: str) -> None:
    """Right code passes, and other code fails."""
    assert 1.0 == score(sandbox, code, tests, "f")[0]
    assert 0.0 == score(sandbox, "def size(): return 2\ndef f(any): return 0\n", tests, "f")[0]


@pytest.mark.parametrize(
    ("tests", "words"),
    [
        (
            "def test_a():\n    with patch('os.getcwd') as cwd:\n        path_of('a')\n        assert cwd.called\n",
            "no canary",
        ),
        ("with patch('os.getcwd', return_value='/here'):\n    assert path_of('a') == '/here/a'\n", "has no tests"),
    ],
)
@pytest.mark.parametrize("code", [RIGHT, "def path_of(name): return 1\n"])
def test_what_cannot_be_guarded_is_skipped_whatever_the_code_is(
    sandbox: Sandbox, tests: str, words: str, code: str
) -> None:
    """With the reason."""
    value, reason = score(sandbox, code, f"from unittest.mock import patch\n{tests}")
    assert (None, True) == (value, "patch os.getcwd" in reason and words in reason), reason


USUAL_NAMES = (
    "def test_a():\n    with patch('os.getcwd'):\n        assert isclose(path_of('a'), 1.0) and not Counter()\n"
)


def test_tests_without_an_import_find_the_code(sandbox: Sandbox) -> None:
    """Nor need the row an entry point: what the tests leave unbound is the code's."""
    assert 1.0 == score(sandbox, RIGHT, PATCHED, None)[0]
    value, reason = score(sandbox, ONE_WRONG, PATCHED, None)
    assert (0.5, True) == (value, "not passed: TestPath::test_absolute" in reason), reason
    assert (0.0, True) == ((other := score(sandbox, "x = 1\n", PATCHED, None))[0], "'path_of'" in other[1]), other[1]


def test_usual_names_are_never_the_codes(sandbox: Sandbox) -> None:
    """Neither its isclose nor its Counter judges."""
    tests = f"from unittest.mock import patch\n{USUAL_NAMES}"
    forged = "def isclose(*a): return True\ndef Counter(*a): return 0\ndef path_of(name): return 7.0\n"
    assert 0.0 == score(sandbox, forged, tests, None)[0]
    assert 1.0 == score(sandbox, "def path_of(name): return 1.0\n", tests, None)[0]


def test_a_test_that_is_not_reported_says_so(sandbox: Sandbox) -> None:
    """What reports it was replaced."""
    value, reason = score(sandbox, f"import json\njson.dumps = lambda *a, **k: '1'\n{RIGHT}", PATCHED)
    assert (0.0, True) == (value, "it was not reported: the code ended the run" in reason), reason


@pytest.mark.parametrize("name", ["a.txt", "os.path", "x"])
@pytest.mark.parametrize("module", ["solution", "your_module"])
def test_the_code_is_one_module_under_all_its_names(sandbox: Sandbox, module: str, name: str) -> None:
    """A patch by one of them is seen by what was imported of another; other texts with dots are no modules."""
    tests = (
        f"from unittest.mock import patch\nimport {module}\ndef test_a():\n    name = {name!r}\n"
        f"    with patch('{module}.size', return_value=7):\n        assert f(3, name) == 21\n"
    )
    assert 1.0 == score(sandbox, "def size(): return 2\ndef f(n, name): return size() * n\n", tests, "f")[0]


def test_a_library_that_tests_patch_is_nothing_that_the_code_can_be(sandbox: Sandbox) -> None:
    """Where it is not there, the row is skipped."""
    tests = (
        "from unittest.mock import patch\ndef test_a():\n    with patch('os.getcwd', return_value='/x'):\n"
        "        with patch('absent_library.get', return_value=7):\n            assert f(3) == 6\n"
    )
    value, reason = score(sandbox, "def get(): return 2\ndef f(n): return n * 2\n", tests, "f")
    assert (None, True) == (value, "absent_library" in reason), reason


def test_numpy_is_there_where_the_jail_of_other_tests_has_it() -> None:
    """So that such a row loses no right code."""
    pytest.importorskip("numpy", reason="the profile needs numpy")
    tests = "import json\ndef test_a():\n    assert f(json) == 6.0\n"
    with Sandbox("numpy") as own:
        assert 1.0 == score(own, "import numpy\ndef f(m): return float(numpy.arange(4).sum())\n", tests, "f")[0]


def test_without_pytest_such_rows_are_skipped(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    value, reason = score(sandbox, RIGHT, PATCHED)
    assert (None, True) == (value, "pytest" in reason and "not installed" in reason), reason
