"""Code that puts something else in the place of builtins and of parts of modules: only it finds that there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from builtin_rewards.code import code_tests
from builtin_rewards.reading.replaced_names import replacement_note
from sandbox import Sandbox

RIGHT = "def f(xs):\n    return sorted(xs)\n"
WRONG = "def f(xs):\n    return xs\n"
MAIN = "print(*f([int(part) for part in input().split()]))\n"
HARMLESS = {
    "builtins.len": "import builtins\nbuiltins.len = lambda x: 3\n",
    "builtins.type": "import builtins\nbuiltins.type = lambda *a: int\n",
    "builtins.isinstance": "import builtins\nsetattr(builtins, 'isinstance', lambda *a: True)\n",
    "builtins.repr": "import builtins as b\nb.repr = b.str = None\n",
    "builtins.hash": "import builtins\nvars(builtins)['hash'] = None\n",
    "builtins.getattr": "import builtins\nbuiltins.__dict__['getattr'] = None\n",
    "builtins.all": "__builtins__.all = lambda xs: True\n",
    "builtins.any": "import builtins\ndel builtins.any\n",
    "json.dumps": "import json\njson.dumps = lambda *a, **k: '1'\n",
    "sys.modules['json']": "import sys\nsys.modules['json'] = None\n",
    "sys.exit": "import sys\nsys.exit = lambda *a: None\n",
    "unittest.TestCase.assertEqual": "import unittest\nunittest.TestCase.assertEqual = lambda *a: None\n",
    "math.isclose": "import os, math\nmath.isclose = lambda *a, **k: True\n",
}
FORMS: dict[str, dict[str, Any]] = {
    "asserts": {"tests": "assert f([3, 1, 2]) == [1, 2, 3]\nassert f([2, 1]) == sorted([2, 1])"},
    "check": {
        "tests": "def check(f):\n    assert f([3, 1, 2]) == [1, 2, 3]\n    assert f([2, 1]) == [1, 2]",
        "entry_point": "f",
    },
    "calls": {"inputs": [[[3, 1, 2]], [[2, 1]]], "outputs": [[1, 2, 3], [1, 2]], "entry_point": "f"},
    "programs": {"inputs": ["3 1 2", "2 1"], "outputs": ["1 2 3", "1 2"]},
}


@pytest.fixture(scope="module", params=["python", "numpy", "pytest"])
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    with Sandbox(workers=1, profile=request.param) as sandbox:
        yield sandbox


def score(sandbox: Sandbox, form: str, code: str) -> tuple[float | None, str]:
    source = code + (MAIN if form == "programs" else "")
    result = code_tests(prompt="", completion=source, sandbox=sandbox, **FORMS[form])
    return result.value, result.reason or ""


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", HARMLESS)
def test_only_the_answer_counts_and_the_reason_says_what_was_tried(sandbox: Sandbox, name: str, form: str) -> None:
    """Right code stays right, and of wrong code the reason says what it gave and what it tried to replace."""
    assert (1.0, "2 of 2 checks passed") == score(sandbox, form, HARMLESS[name] + RIGHT)
    value, reason = score(sandbox, form, HARMLESS[name] + WRONG)
    assert value == 0.0
    assert "gave [3, 1, 2]" in reason or "wrote '3 1 2" in reason, reason
    assert f"the code tries to replace {name}" in reason, reason


@pytest.mark.parametrize("form", FORMS)
def test_a_replaced_builtin_is_what_the_code_itself_finds(sandbox: Sandbox, form: str) -> None:
    """It is still Python: the function calls the new one, and the tests the old one."""
    code = "import builtins\nbuiltins.sorted = lambda *a, **k: [1, 2, 3]\n" + RIGHT
    value, reason = score(sandbox, form, code)
    assert (0.5, True) == (value, "[1, 2, 3]" in reason or "wrote '1 2 3" in reason), reason


def test_a_run_finds_the_builtins_as_they_are(sandbox: Sandbox) -> None:
    """Though an earlier one replaced some, in the same process."""
    code = "import builtins\nprint(len(input()))\nbuiltins.len = builtins.input = None\n"
    row = {"inputs": ["ab", "abc", "a"], "outputs": ["2", "3", "1"]}
    assert 1.0 == code_tests(prompt="", completion=code, sandbox=sandbox, **row).value


@pytest.mark.parametrize(
    ("act", "words"),
    [
        ("import os\nos.closerange(0, 100)\n", "it closed the files through which it answers"),
        ("import os\nos.fork()\n", "the jail has no network, and lets a process neither start others nor signal them"),
        ("import socket\nsocket.create_connection(('127.0.0.1', 80))\n", "the jail has no network"),
        ("__builtins__['sorted'] = print\n", "TypeError"),
        ("import builtins\nfor name in ('sorted', 'len', 'str'):\n    setattr(builtins, name, None)\n", "gave"),
    ],
)
@pytest.mark.parametrize("form", ["asserts", "check", "calls"])
def test_what_the_code_did_to_its_process_is_in_the_reason(sandbox: Sandbox, form: str, act: str, words: str) -> None:
    """And never that a function that it defines is not defined."""
    value, reason = score(sandbox, form, act + WRONG)
    assert (0.0, True, False) == (value, words in reason, "defined" in reason), reason


@pytest.mark.parametrize(
    "code",
    [
        "import sys\nsys.stdin = open(0)\nsys.stdout = None\nsys.setrecursionlimit(9)\n",
        "class Node:\n    pass\nnode = Node()\nnode.next = None\nNode.size = 3\n",
        "import numpy as np\nx = np.pi == 3\nprint(np.pi)\n",
        "input = open(0).readline\nlen = 3\n",
        "# json.dumps = 1\nimport json\nd = {}\nd['json'] = json.dumps(1)\n",
        "def f(self, os):\n    self.os = os.name\n",
    ],
)
def test_ordinary_code_replaces_nothing(code: str) -> None:
    """Streams, attributes of its own objects and its own names are no replacement."""
    assert "" == replacement_note(code)


def test_many_names_are_counted() -> None:
    """The reason stays short."""
    code = "import os\n" + "".join(f"os.name{number} = None\n" for number in range(9))
    assert "the code tries to replace os.name0, os.name1, os.name2 and 6 more," in replacement_note(code)
