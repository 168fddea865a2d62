"""The doctor of rows of code: each kind of row that cannot train anything is found, and a sound row is not."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from builtin_rewards.code import code_tests
from rewardkit import Cause, Outcome, Rollout, Runtime, Status, reward
from rewardkit.audit.rows import row_of
from rewardkit.examinations.examination import ExaminationResult, examine, rows_to_examine
from rewardkit.examinations.programs import ProgramExamination
from sandbox import LANGUAGES, PYTHON, language_name, why_not_run

ADD = "def add(a, b):\n    return a + b\n"
TESTS = "assert add(1, 2) == 3\nassert add(2, 2) == 4\nassert add(0, 5) == 5"
SUM = "a, b = map(int, input().split())\nprint(a + b)\n"
PAIRS = {"inputs": ["1 2", "2 2", "0 5"], "outputs": ["3", "4", "5"]}
CPP = "#include <iostream>\nint main(){int a,b;std::cin>>a>>b;std::cout<<a+b;}\n"
TWICE = "int twice(int x) { return 2 * x; }"
GREET, TRUSTS = "def greet(name):\n    return 'Hello, ' + name\n", "trusts_objects"
SUITE = {
    "entry_point": "twice",
    "declaration": "#include <cassert>\nint twice(int x) {\n",
    "tests": "int main() { assert(twice(2) == 4); assert(twice(-3) == -6); }",
}
IS_ONE = "print('YES' if int(input()) == 1 else 'NO')"

ROWS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "sound asserts": ({"solution": ADD, "tests": TESTS}, []),
    "sound program": ({"solution": SUM, **PAIRS}, []),
    "sound calls": ({"solution": ADD, "inputs": [[1, 2], [0, 5]], "outputs": [3, 5], "entry_point": "add"}, []),
    "a list of solutions": ({"solutions": json.dumps([ADD, "no"]), "tests": TESTS}, []),
    "reference is wrong": ({"solution": "def add(a, b):\n    return a * b\n", "tests": TESTS}, ["reference_fails"]),
    "reference raises": ({"solution": "1 / 0", "tests": TESTS}, ["reference_fails"]),
    "tests do not compile": ({"solution": ADD, "tests": "assert add(1, 2) =="}, ["cannot_run"]),
    "tests need what is missing": (
        {"solution": ADD, "tests": "assert add(1, 2) == three", "entry_point": "add"},
        ["cannot_run"],
    ),
    "unknown matcher": ({"solution": SUM, **PAIRS, "match": "token"}, ["cannot_run"]),
    "no expected output": ({"solution": "input()", "inputs": ["1"], "outputs": [""]}, ["cannot_fail"]),
    "tests that only call": ({"solution": ADD, "tests": "add(1, 2)"}, ["no_assert"]),
    "tests that hold inputs and outputs": (
        {"solution": SUM, "tests": json.dumps([{"input": "1 2", "output": "3"}])},
        ["cannot_run"],
    ),
    "tests that ask the result": ({"solution": GREET, "tests": "assert greet('Ann').startswith('Hello')"}, [TRUSTS]),
    "tests that look at the type first": (
        {"solution": GREET, "tests": "assert isinstance(greet('Ann'), str) and greet('Ann').startswith('Hello, Ann')"},
        [],
    ),
    "weak tests": ({"solution": ADD, "tests": "assert add(0, 0) == 0"}, ["mutants_live"]),
    "a constant passes half of the tests": (
        {"solution": IS_ONE, "inputs": ["1", "2", "1", "3"], "outputs": ["YES\n", "NO\n", "YES", "NO\n"]},
        ["constant_passes"],
    ),
    "a constant passes a third of the tests": (
        {"solution": "print(input())", "inputs": ["1", "1", "2", "3", "4", "5"], "outputs": ["1", "1", *"2345"]},
        [],
    ),
    "tests that all expect different outputs": (
        {"solution": IS_ONE, "inputs": ["1", "2"], "outputs": ["YES", "NO"]},
        [],
    ),
    "a function that returns a constant passes half of the tests": (
        {
            "solution": "def odd(n):\n    return n % 2 == 1\n",
            "entry_point": "odd",
            "inputs": [[1], [2], [3], [4]],
            "outputs": [True, False, True, False],
        },
        ["constant_passes"],
    ),
    "reference in C++, whose fence names the language": ({"solution": CPP, **PAIRS}, []),
    "reference in C++, and tests in Python": ({"solution": CPP, "tests": TESTS}, ["reference_fails"]),
    "row of C++": ({"solution": CPP, **PAIRS, "language": "C++"}, []),
    "row of JavaScript that reads as Python, with a wrong reference": (
        {"solution": "console.log(1)", **PAIRS, "language": "javascript"},
        ["reference_fails"],
    ),
    "row of C++ whose tests cannot fail": (
        {"solution": CPP, "inputs": ["1 2"], "outputs": ["hello"], "language": "C++"},
        ["reference_fails", "cannot_fail"],
    ),
    "calls of C++": (
        {"solution": TWICE, "inputs": [[2], [0]], "outputs": [4, 0], "entry_point": "twice", "language": "cpp"},
        [],
    ),
    "calls of C++ that a function passes which computes nothing": (
        {"solution": TWICE, "inputs": [[0]], "outputs": [0], "entry_point": "twice", "language": "cpp"},
        ["cannot_fail"],
    ),
    "tests in C++, and a body as the reference": (
        {"canonical_solution": "    return 2 * x;\n}\n", "language": "cpp", **SUITE},
        [],
    ),
    "tests in C++ that do not compile": (
        {"canonical_solution": "    return 2 * x;\n}\n", "language": "cpp", **SUITE, "tests": "int main() { twice( }"},
        ["cannot_run"],
    ),
    "row of a language that nobody runs": (
        {"solution": "fun main() { println(readLine()!!) }", **PAIRS, "language": "Kotlin"},
        ["other_language"],
    ),
    "Python in a row of C++": ({"solution": SUM, **PAIRS, "language": "C++17"}, ["reference_language"]),
    "no reference": ({"tests": TESTS}, ["no_reference"]),
    "no reference, and tests that cannot be run": ({"tests": "assert add(1, 2) =="}, ["cannot_run"]),
}


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    with Runtime([code_tests], workers=1) as made:
        yield made


def _examined(runtime: Runtime, rows: Sequence[dict[str, Any]], most: int = 100) -> ExaminationResult:
    def score(rollouts: Sequence[Rollout]) -> Sequence[Outcome]:
        return runtime.score(list(rollouts))["code_tests"]

    examination = ProgramExamination()
    all_rows = [row_of(line, {"prompt": "Write it.", **row}, None) for line, row in enumerate(rows, 1)]
    return examine(
        examination, code_tests, rows_to_examine(examination, code_tests, all_rows, most), len(all_rows), score
    )


@pytest.mark.parametrize("name", ROWS)
def test_each_kind_of_row_is_told_apart(runtime: Runtime, name: str) -> None:
    row, kinds = ROWS[name]
    language = str(row.get("language") or ("cpp" if row.get("solution") is CPP else PYTHON))
    if language_name(language) in LANGUAGES and (reason := why_not_run(language)):
        pytest.skip(reason)
    assert kinds == [flaw.flaw.kind for flaw in _examined(runtime, [row]).flaws]


def test_the_result_has_counts_first_rows_and_ids(runtime: Runtime) -> None:
    """Rows without tests are passed over, and no more rows are examined than asked for."""
    weak, wrong = ROWS["weak tests"][0], ROWS["reference is wrong"][0]
    rows = [{"answer": "5"}, weak, {**weak, "task_id": "T/7"}, {**wrong, "task_id": 8}, wrong]
    result = _examined(runtime, rows, most=3)
    assert (3, 5) == (result.rows, result.total_rows)
    assert ["2", "T/7", "8"] == [flaw.row_id for flaw in result.flaws]
    kinds = result.as_json()["flaws"]
    assert ["reference_fails", "mutants_live"] == list(kinds)
    weak_rows = kinds["mutants_live"]
    assert (2, 2, [2, 3]) == (weak_rows["rows"], weak_rows["first"]["line"], weak_rows["lines"])
    assert result.has_failures
    assert not _examined(runtime, rows[:3]).has_failures


@pytest.mark.parametrize(
    ("reason", "kind"), [("the tests cannot fail: they only print", "no_assert"), ("no tests", "cannot_run")]
)
def test_a_reward_may_say_itself_why_it_skips_a_row(reason: str, kind: str) -> None:
    def score(rollouts: Sequence[Rollout]) -> Sequence[Outcome]:
        return [Outcome(Status.SKIPPED, None, reason=reason) for _ in rollouts]

    rows = [row_of(1, {"prompt": "Write it.", **ROWS["sound asserts"][0]}, None)]
    result = examine(ProgramExamination(), code_tests, rows, 1, score)
    assert [(kind, reason)] == [(flaw.flaw.kind, flaw.flaw.detail) for flaw in result.flaws]


def test_what_is_lost_through_no_fault_of_a_row_is_no_flaw() -> None:
    def score(rollouts: Sequence[Rollout]) -> Sequence[Outcome]:
        return [Outcome(Status.FAILED, None, cause=Cause.INFRASTRUCTURE, error="lost") for _ in rollouts]

    examination = ProgramExamination()
    rows = [row_of(1, {"prompt": "Write it.", **ROWS["weak tests"][0]}, None)]
    assert [] == list(examine(examination, code_tests, rows, 1, score).flaws)


def test_rewards_that_read_no_tests_examine_nothing() -> None:
    @reward
    def length(completion: str, answer: str) -> float:
        return float(len(completion) > len(answer))

    rows = [row_of(1, {"prompt": "Write it.", **ROWS["weak tests"][0]}, None)]
    assert [] == rows_to_examine(ProgramExamination(), length, rows, 16)
