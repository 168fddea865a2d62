"""A folder is graded by tests that are not its own, and no code of it can pass them otherwise than by being right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import pytest

from rewardkit.errors import SuiteError
from rewardkit.jailed.sealed import SealedWorkspace
from rewardkit.suites import canary_runs
from rewardkit.suites.canaries import Canaries
from rewardkit.suites.grading import check_suite
from rewardkit.suites.suite_jail import GradedRun, SuiteJail
from rewardkit.suites.suite_verdict import SuiteStatus, SuiteVerdict

RIGHT = "def blend(a, b):\n    return a * 7919 + b * 104729\n\ndef word(n):\n    return 'ab' * n\n"
WRONG = RIGHT.replace("7919", "7918")
TESTS = """
import pytest
from solution import blend, word

def test_blend():
    assert blend(3, 5) == 547402

@pytest.mark.parametrize("n, text", [(1, "ab"), (2, "abab")])
def test_word(n, text):
    assert word(n) == text

def test_fails():
    with pytest.raises(TypeError):
        blend(1)
"""
NAMES = ("test_s.py::test_blend", "test_s.py::test_word[1-ab]", "test_s.py::test_word[2-abab]", "test_s.py::test_fails")


def graded(solution: str | dict[str, str], tests: str | dict[str, str] = TESTS, **options: Any) -> SuiteVerdict:
    files = {"solution.py": solution} if isinstance(solution, str) else solution
    sealed = SealedWorkspace({name: text.encode() for name, text in files.items()})
    trusted = {"test_s.py": tests} if isinstance(tests, str) else tests
    return check_suite(sealed, trusted, **{"timeout_s": 30.0, "random": Random(5), **options})


def test_right_code_passes_and_the_chance_of_a_forgery_is_said() -> None:
    """All tests are named as the runner names them."""
    verdict = graded(RIGHT)
    assert SuiteStatus.PASSED is verdict.status, verdict
    assert NAMES == tuple(result.name for result in verdict.results)
    assert verdict.bound <= 1e-3
    assert (1.0, ()) == (verdict.score().value, verdict.weak)


def test_wrong_code_fails_in_one_run() -> None:
    """The tests that do not see the fault pass."""
    verdict = graded(WRONG)
    assert (SuiteStatus.FAILED, 1) == (verdict.status, verdict.runs)
    assert ["failed", "passed", "passed", "passed"] == [result.outcome for result in verdict.results]
    assert (0.0, 0.75) == (verdict.score().value, verdict.share())


EQUAL = """
class Equal:
    def __eq__(self, other): return True
    def __init__(self, *a): pass
word = Equal
def blend(a, b): return Equal()
"""
COPIES = """
import sys
def blend(a, b=None):
    if b is None: raise TypeError
    code = sys._getframe(1).f_code
    return next(c for c in code.co_consts if type(c) is int and c > 1000)
def word(n):
    return sys._getframe(1).f_locals["text"]
"""
REPORTS = """
import _pytest.reports as reports
made = reports.TestReport.from_item_and_call.__func__
def passed(cls, item, call):
    report = made(cls, item, call)
    report.outcome, report.longrepr = "passed", None
    return report
reports.TestReport.from_item_and_call = classmethod(passed)
blend = word = lambda *a: 0
"""
WRITES = """
import json, os, sys
frame = sys._getframe()
while frame and "settings" not in frame.f_locals: frame = frame.f_back
mark, channel = frame.f_locals["settings"]["mark"], frame.f_locals["reports"]._descriptor
names = ["test_s.py::test_blend", "test_s.py::test_word[1-ab]", "test_s.py::test_word[2-abab]", "test_s.py::test_fails"]
lines = [{"collected": names}, *({"test": n, "outcome": "passed", "duration_s": 0.1} for n in names), {"end": 0}]
for line in lines: os.write(channel, f"\\n{mark}{json.dumps(line)}\\n".encode())
os._exit(0)
"""


@pytest.mark.parametrize("act", [EQUAL, COPIES, REPORTS, WRITES], ids=["equal", "copies", "reports", "writes"])
def test_code_that_passes_whatever_is_expected_is_caught(act: str) -> None:
    """By objects, by frames, in the runner and on its channel."""
    verdict = graded(act)
    assert SuiteStatus.FORGED is verdict.status, verdict
    assert (0.0, 0.0) == (verdict.score().value, verdict.share())


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("conftest.py", "import os; os._exit(0)"),
        ("pytest.ini", "[pytest]\naddopts = --collect-only\n"),
        ("pyproject.toml", "[tool.pytest.ini_options]\naddopts = '--collect-only'\n"),
        ("sitecustomize.py", "import os; os._exit(0)"),
        ("json.py", "import os; os._exit(0)"),
        ("random/__init__.py", "import os; os._exit(0)"),
        ("_pytest/__init__.py", "import os; os._exit(0)"),
        ("src/string.py", "import os; os._exit(0)"),
        ("test_s.py", "def test_nothing(): pass"),
    ],
)
def test_what_a_runner_reads_before_the_tests_is_left_out(name: str, text: str) -> None:
    """The reason names it, and the solution passes without it."""
    verdict = graded({"solution.py": RIGHT, name: text}, confidence=1.0)
    assert (SuiteStatus.PASSED, [name]) == (verdict.status, [*verdict.left_out])
    assert name in verdict.reason()


def test_expected_names_decide() -> None:
    """By group, each with its share; the weighted mean is partial credit."""
    groups = {"fail_to_pass": NAMES[:1], "pass_to_pass": NAMES[1:]}
    assert graded(RIGHT, expected=groups).passed
    verdict = graded(WRONG, expected=groups)
    assert (0.0, 1.0) == (verdict.share("fail_to_pass"), verdict.share("pass_to_pass"))
    assert 0.25 == verdict.score({"fail_to_pass": 3, "pass_to_pass": 1}).value
    assert graded(WRONG, expected=NAMES[1:]).passed
    with pytest.raises(SuiteError, match="group 'other'"):
        verdict.share("other")


@pytest.mark.parametrize(
    ("tests", "expected", "outcome"),
    [
        (TESTS, ["test_s.py::test_word[3-x]"], "missing"),
        ("import pytest\ndef test_a(): pytest.skip('no')\n", None, "skipped"),
        ("import pytest\n@pytest.mark.xfail\ndef test_a(): assert 0\n", None, "skipped"),
        ("import nothing\ndef test_a(): assert 1\n", None, "missing"),
        (
            "import pytest\n@pytest.fixture\ndef f():\n    yield 1\n    assert 0\ndef test_a(f): assert f\n",
            None,
            "failed",
        ),
    ],
)
def test_what_did_not_pass_has_not(tests: str, expected: list[str] | None, outcome: str) -> None:
    """A test that does not appear, is skipped, or fails after its end."""
    verdict = graded(RIGHT, tests, expected=expected)
    assert (SuiteStatus.FAILED, [outcome]) == (verdict.status, [result.outcome for result in verdict.results])


@pytest.mark.parametrize(
    ("tests", "words"),
    [({}, "no file of tests"), ("x = 1\n", "no tests"), ("def test_a(:\n", "test_s.py"), ({"a.py": "x"}, "no file of")],
)
def test_a_suite_that_cannot_judge_is_the_tasks_fault(tests: str | dict[str, str], words: str) -> None:
    """Its score is not applicable."""
    verdict = graded(RIGHT, tests)
    assert (SuiteStatus.UNSUITABLE, None) == (verdict.status, verdict.score().value)
    assert words in verdict.error


UNITTESTS = """
import unittest
from solution import blend

class A(unittest.TestCase):
    def test_b(self):
        self.assertEqual(blend(3, 5), 547402)
"""


@pytest.mark.parametrize("name", ["test_s.py::test_other", "test_t.py::test_blend", "test_blend"])
def test_an_expected_name_that_no_test_can_have_is_the_tasks_fault(name: str) -> None:
    """It is found in the trusted text, so no completion decides it."""
    verdict = graded(WRONG, expected=[name])
    assert (SuiteStatus.UNSUITABLE, 0, True) == (verdict.status, verdict.runs, name in verdict.error)


def test_what_pytest_says_of_its_arguments_is_told() -> None:
    """In the reason of the failure."""
    assert "unrecognized arguments: --no-such" in graded(RIGHT, arguments=["--no-such"]).error


def test_unittest_has_names_of_its_own() -> None:
    """Those of modules, classes and methods."""
    verdict = graded(RIGHT, {"tests/test_s.py": UNITTESTS}, expected=["tests.test_s.A.test_b"], runner="unittest")
    assert (SuiteStatus.PASSED, "tests/test_s.py::A::test_b") == (verdict.status, verdict.results[0].name)


def test_tests_that_depend_on_each_other_are_changed_together() -> None:
    """Right code passes them, with more runs."""
    tests = "from solution import word\nseen = []\n" + "".join(
        f"def test_{n}():\n    assert len(seen) == {n}\n    assert word({n}) == {'ab' * n!r}\n    seen.append({n})\n"
        for n in (0, 1, 2)
    )
    verdict = graded(RIGHT, tests, confidence=0.1)
    assert (SuiteStatus.PASSED, True) == (verdict.status, verdict.bound <= 0.1), verdict


def test_code_that_passes_at_times_only_fails() -> None:
    """It is no forgery, and no pass."""
    solution = RIGHT + "import os\nif os.urandom(1)[0] < 128: blend = None\n"
    statuses = {graded(solution, confidence=1e-6).status for _ in range(3)}
    assert statuses <= {SuiteStatus.FAILED, SuiteStatus.FORGED}, statuses


WEAK = "from solution import word\ndef test_a():\n    assert word(2).startswith('a')\n"


def test_a_test_that_canaries_should_have_guarded_is_no_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only tests whose text says so are weak: a completion excuses none by what it does."""
    monkeypatch.setattr(canary_runs, "_MORE_RUNS", 0)
    monkeypatch.setattr(Canaries, "runs_alone", lambda self: 0)
    verdict = graded(RIGHT)
    assert (SuiteStatus.FAILED, 0.0) == (verdict.status, verdict.score().value)
    assert "4 tests do not say what they compare" in verdict.reason()


def test_tests_that_no_canary_guards_are_named_or_refused() -> None:
    """As the caller says."""
    assert (SuiteStatus.PASSED, ("test_s.py::test_a",)) == ((v := graded(RIGHT, WEAK)).status, v.weak)
    assert SuiteStatus.UNSUITABLE is graded(RIGHT, WEAK, weak="refuse").status


def test_weak_tests_run_as_canaries_too() -> None:
    """What passes whatever happens is caught in them."""
    assert SuiteStatus.FORGED is graded(REPORTS, WEAK).status


def test_packages_are_those_that_are_named() -> None:
    """With what they require and their versions; others are not there."""
    tests = (
        "import importlib.metadata\nimport tenacity\ndef test_a():\n    assert importlib.metadata.version('tenacity')\n"
    )
    assert graded(RIGHT, tests, packages=["tenacity"]).passed
    assert SuiteStatus.FAILED is graded(RIGHT, tests).status
    with pytest.raises(SuiteError, match="'nobody-has-this': not installed here"):
        graded(RIGHT, packages=["nobody-has-this"])


def test_protected_files_must_stay() -> None:
    """Neither changed nor removed nor added."""
    original = SealedWorkspace({"solution.py": b"", "lock/a": b"1"})
    for files, passes in (
        ({"lock/a": "1"}, True),
        ({"lock/a": "2"}, False),
        ({}, False),
        ({"lock/a": "1", "lock/b": ""}, False),
    ):
        verdict = graded({"solution.py": RIGHT, **files}, original=original, protected=["lock/*"], confidence=1.0)
        assert (passes, passes or "lock/" in verdict.error) == (verdict.passed, True), verdict


@pytest.mark.parametrize(
    ("solution", "words"),
    [
        ("while True: pass", "within"),
        ("x = bytearray(1 << 40)", ""),
        ("import os\nwhile True: os.write(1, b'x' * 65536)", ""),
        ("f = open('f', 'wb')\nwhile True: f.write(bytes(1 << 20))", ""),
        ("import os\nos.fork()", ""),
    ],
)
def test_a_suite_that_does_not_end_ends_in_its_limits(solution: str, words: str) -> None:
    """In its time, memory, output and disk, and without other processes."""
    verdict = graded(RIGHT + solution, timeout_s=3.0)
    assert (SuiteStatus.FAILED, 1, True) == (verdict.status, verdict.runs, words in verdict.error), verdict


@pytest.mark.parametrize(
    "options",
    [
        {"confidence": 0},
        {"confidence": 2},
        {"runner": "nose"},
        {"expected": "test_a"},
        {"arguments": ("-k", "blend")},
        {"arguments": ("--deselect=test_s.py",)},
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any]) -> None:
    """Before any run."""
    with pytest.raises(SuiteError, match=next(iter(options))):
        graded(RIGHT, **options)


def test_files_whose_tests_are_guarded_do_not_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where answers are true or false a canary shows one bit, and ten are wanted; a number of six digits shows more."""
    modules: list[list[str]] = []
    run = SuiteJail.run

    def noted(jail: SuiteJail, tests: Mapping[str, bytes], names: Sequence[str]) -> GradedRun:
        modules.append(list(names))
        return run(jail, tests, names)

    monkeypatch.setattr(SuiteJail, "run", noted)
    number = "from solution import blend\ndef test_a():\n    assert blend(3, 5) == 547402\n"
    truth = "from solution import word\ndef test_b():\n    assert word(2).isalpha() == True\n"
    verdict = graded(RIGHT, {"test_s.py": number, "test_t.py": truth})
    assert (SuiteStatus.PASSED, ()) == (verdict.status, verdict.weak)
    assert [["test_s.py", "test_t.py"], ["test_t.py"]] == [modules[0], modules[-1]]


def test_code_that_ends_a_suite_of_inherited_tests_is_not_excused() -> None:
    """Only the run shows which tests there are; that it ended is the completion's."""
    tests = "import cases\nfrom solution import word\nclass TestA(cases.Base):\n    word = word\n"
    trusted = {"test_s.py": tests, "cases.py": "class Base:\n    def test_a(self): assert 1\n"}
    verdict = graded("import os\nos._exit(0)\n", trusted)
    assert (SuiteStatus.FAILED, 0.0) == (verdict.status, verdict.score().value)


def test_parameters_may_hold_what_stands_between_names() -> None:
    """Colons and brackets in a parameter are part of its test's name alone."""
    suite = (
        "import pytest\nfrom solution import f\n"
        "@pytest.mark.parametrize('a, n', [('::1', 3), ('fe80::1', 7), ('a[0]::b', 7)])\n"
        "def test_a(a, n):\n    assert f(a) == n\n"
    )
    names = [f"test_s.py::test_a[{row}]" for row in ("::1-3", "fe80::1-7", "a[0]::b-7")]
    right = SealedWorkspace({"solution.py": b"def f(a): return len(a)\n"})
    verdict = check_suite(right, {"test_s.py": suite}, expected=names)
    assert (True, (), names) == (verdict.passed, verdict.weak, [result.name for result in verdict.results])
    wrong = SealedWorkspace({"solution.py": b"def f(a): return 3\n"})
    assert [True, False, False] == [
        result.outcome == "passed" for result in check_suite(wrong, {"test_s.py": suite}, expected=names).results
    ]
