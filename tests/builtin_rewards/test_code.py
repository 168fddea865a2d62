"""Rewards for code: what counts as the completion's code, and what its tests make of it."""

from __future__ import annotations

import gzip
import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from builtin_rewards.code import code_compiles, code_runs, code_tests, extract_code
from rewardkit import Rollout, Runtime
from sandbox import Limits, Sandbox

ADD = "def add(a, b):\n    return a + b\n"
WRONG = "def add(a, b):\n    return a - b\n"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(workers=1) as made:
        yield made


def fenced(code: str, mark: str = "python") -> str:
    return f"Here it is:\n```{mark}\n{code}```\n"


@pytest.mark.parametrize(
    ("completion", "code"),
    [
        (fenced("x = 1\n"), "x = 1\n"),
        (fenced("x = 1\n", "py"), "x = 1\n"),
        (fenced("x = 1\n", "Python3"), "x = 1\n"),
        (fenced("x = 1\n", "{.python}"), "x = 1\n"),
        (fenced("x = 1\n", "python title=main.py"), "x = 1\n"),
        (fenced("x = 1\n", ""), "x = 1\n"),
        (fenced("x = 1\n") + fenced("x = 2\n"), "x = 2\n"),
        (fenced("x = 1\n") + fenced("ls\n", "bash") + fenced("out\n", ""), "x = 1\n"),
        (fenced("ls\n", "bash") + fenced("x = 2\n", ""), "x = 2\n"),
        (fenced("ls\n", "bash"), None),
        ("~~~python\nx = 1\n~~~", "x = 1\n"),
        ("````python\ns = '''\n```\n'''\n````", "s = '''\n```\n'''\n"),
        ("```python\nx = 1", "x = 1"),
        ("  ```python\n  if x:\n      y\n  ```", "if x:\n    y\n"),
        ("x = 1\n", "x = 1\n"),
        ("", None),
        (" \n", None),
        ("```python\n```", ""),
    ],
)
def test_the_rule_for_blocks(completion: str, code: str | None) -> None:
    """The last block of the language, else the last unmarked one, else all where there is no fence."""
    assert extract_code(completion) == code


def test_asserts_by_name_and_by_candidate(sandbox: Sandbox) -> None:
    lines = json.dumps(["assert add(1, 2) == 3", "assert add(0, 0) == 0"])
    assert code_tests(completion=fenced(ADD), sandbox=sandbox, tests=lines).value == 1.0
    half = code_tests(completion=fenced(WRONG), sandbox=sandbox, tests=lines)
    assert half.value == 0.5
    assert half.metrics == {"passed": 1.0, "checks": 2.0}
    assert half.reason is not None
    assert "assert add(1, 2) == 3" in half.reason
    check = "def check(candidate):\n    assert candidate(1, 2) == 3\n    assert candidate(2, 2) == TWO + 2\n"
    assert code_tests(completion=ADD, sandbox=sandbox, tests=check, entry_point="add", setup="TWO = 2").value == 1.0


def test_calls_and_programs_from_string_columns(sandbox: Sandbox) -> None:
    """Columns arrive as strings and are coerced."""
    calls = {"entry_point": "add", "inputs": "[[1, 2], [2, 2]]", "outputs": "[3, 5]"}
    assert code_tests(completion=fenced(ADD), sandbox=sandbox, **calls).value == 0.5
    program = "print(int(input()) * 2)\n"
    pairs = {"inputs": json.dumps(["1\n", "4\n"]), "outputs": json.dumps(["2\n", "8"])}
    assert code_tests(completion=fenced(program), sandbox=sandbox, **pairs).value == 1.0
    assert code_tests(all_or_nothing=True)(completion=fenced(ADD), sandbox=sandbox, **calls).value == 0.0


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({}, "no tests"),
        ({"tests": "assert add(1, 2) =="}, "cannot be run"),
        ({"tests": "import no_such_module\nassert add(1, 2) == 3", "setup": "1 / 0"}, "cannot be run"),
        ({"inputs": ["1"], "outputs": ["1", "2"]}, "1 inputs and 2 outputs"),
        ({"inputs": ["1"]}, "1 inputs and 0 outputs"),
        ({"inputs": [[{1: object}]], "outputs": [1], "entry_point": "add"}, "cannot be run"),
    ],
)
def test_rows_whose_tests_are_at_fault_are_skipped(sandbox: Sandbox, columns: dict[str, Any], words: str) -> None:
    """It is not the completion's fault, so it is no 0."""
    score = code_tests(completion=fenced(ADD), sandbox=sandbox, **columns)
    assert score.value is None
    assert words in (score.reason or "")


@pytest.mark.parametrize(
    ("completion", "runs", "compiles"),
    [
        (fenced("print(1)\n"), 1.0, 1.0),
        (fenced("import sys\nsys.exit(3)\n"), 0.0, 1.0),
        (fenced("1 / 0\n"), 0.0, 1.0),
        (fenced("def f(:\n"), 0.0, 0.0),
        (fenced("open('/etc/passwd')\n"), 0.0, 1.0),
        ("```bash\nls\n```", 0.0, 0.0),
        ("", 0.0, 0.0),
        ("\0", 0.0, 0.0),
        ("x = '\ud800'", 0.0, 0.0),
        ("(" * 5_000, 0.0, 0.0),
        ("x = 1\n" * 400_000, 0.0, 0.0),
    ],
)
def test_code_runs_and_compiles(sandbox: Sandbox, completion: str, runs: float, compiles: float) -> None:
    ran, compiled = code_runs(completion=completion, sandbox=sandbox), code_compiles(completion, sandbox)
    assert (ran.value, compiled.value) == (runs, compiles)
    assert all(score.value == 1.0 or score.reason for score in (ran, compiled))


def test_in_the_runtime_the_jail_is_filled_in() -> None:
    """Each worker has a jail of its own; hostile completions cost themselves alone."""
    tests = "assert add(1, 2) == 3"
    completions = {fenced(ADD): 1.0, fenced(WRONG): 0.0, "import os; os._exit(0)": 0.0, "while True: pass": 0.0}
    rollouts = [Rollout("add", completion, {"tests": tests}) for completion in completions]
    quick = code_tests(limits=Limits(timeout_s=1.4)).with_options(name="quick")
    with Runtime([quick, code_compiles], workers=2) as runtime:
        batch = runtime.score(rollouts * 3)
    assert batch.scores["quick"] == list(completions.values()) * 3
    assert batch.scores["code_compiles"] == [1.0] * 12


def test_rewards_travel() -> None:
    for made in (code_tests, code_runs, code_compiles):
        assert pickle.loads(pickle.dumps(made)).name == made.name


def test_human_eval_as_a_data_set(sandbox: Sandbox, data: Path, full: bool) -> None:
    """The columns of HumanEval are the reward's columns: a canonical solution scores 1, an empty body less."""
    with gzip.open(data / "humaneval" / "HumanEval.jsonl.gz", "rt") as file:
        rows = [json.loads(line) for line in file][:: 1 if full else 20]
    for row in rows:
        columns = {"tests": row["test"], "entry_point": row["entry_point"], "setup": row["prompt"]}
        right = fenced(row["prompt"] + row["canonical_solution"])
        assert code_tests(completion=right, sandbox=sandbox, **columns).value == 1.0, row["task_id"]
        empty = code_tests(completion=fenced(row["prompt"] + "    pass\n"), sandbox=sandbox, **columns)
        assert (empty.value or 0.0) < 1.0, row["task_id"]
