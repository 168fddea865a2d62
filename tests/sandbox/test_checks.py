"""Checks: right completions pass, wrong ones do not, and each check says what it came to."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from patience import LONG_S, in_time

from sandbox import (
    CheckReport,
    CheckStatus,
    ExecutionStatus,
    FunctionCheck,
    Limits,
    ProgramCheck,
    Sandbox,
    check_asserts,
    check_functions,
    check_programs,
)
from sandbox.client import MAX_SOURCE_BYTES
from sandbox.equality import same
from sandbox.errors import CheckError, NotPlainError, SandboxUnavailableError
from sandbox.results import AssertsRun, ExecutionResult

PATIENT = Limits(timeout_s=LONG_S)
PASSED, FAILED, ERROR = CheckStatus.PASSED, CheckStatus.FAILED, CheckStatus.ERROR
TIMEOUT, NOT_REACHED = CheckStatus.TIMEOUT, CheckStatus.NOT_REACHED


def _started(level: str) -> Sandbox:
    try:
        return Sandbox(level=level, workers=1, limits=PATIENT).start()
    except SandboxUnavailableError as fault:
        pytest.skip(f"this machine does not give level {level!r}: {fault}")


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """One at the best level."""
    with Sandbox(workers=1, limits=PATIENT) as sandbox:
        yield sandbox


@pytest.fixture(scope="module", params=["standard", "strict"])
def levelled(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """One at each level that is a boundary."""
    with _started(request.param) as sandbox:
        yield sandbox


def _statuses(report: CheckReport) -> list[CheckStatus]:
    return [check.status for check in report.checks]


def _with_time_for_the_first(check: Callable[[Limits], CheckReport], status: CheckStatus) -> CheckReport:
    """Give a report with little time where that is to run out in the last but the first check, if any, is to pass."""
    if status is not TIMEOUT:
        return check(PATIENT)
    return in_time(
        lambda time_s: check(Limits(timeout_s=time_s)),
        lambda report: len(report.checks) == 1 or report.checks[0].status is PASSED,
        1.0,
    )


# HumanEval.


@pytest.fixture(scope="module")
def problems(data: Path, full: bool) -> list[dict[str, str]]:
    """All problems of HumanEval; in short form every seventh, and two whose asserts are in loops."""
    with gzip.open(data / "humaneval" / "HumanEval.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return rows if full else [rows[place] for place in sorted({*range(0, len(rows), 7), 32, 38})]


def _humaneval(sandbox: Sandbox, problem: dict[str, str], source: str) -> CheckReport:
    return check_asserts(sandbox, source, problem["test"], entry_point=problem["entry_point"], setup=problem["prompt"])


@pytest.mark.slow
def test_every_canonical_solution_of_humaneval_passes(levelled: Sandbox, problems: list[dict[str, str]]) -> None:
    """The right solutions pass, all checks of them, and at least one each."""
    reports = {one["task_id"]: _humaneval(levelled, one, one["prompt"] + one["canonical_solution"]) for one in problems}
    assert {} == {name: report for name, report in reports.items() if not report.all_passed}


WRAPPED = """
right = {{}}
exec({source!r}, right)
class Same:
    def __init__(self, value):
        self.value = value
    def __eq__(self, other):
        return True
def {entry_point}(*arguments, **keywords):
    value = right[{entry_point!r}](*arguments, **keywords)
    return {answer}
"""


def _wrong(problem: dict[str, str], kind: str) -> str:
    """Return a completion that is wrong in the way asked for."""
    source = problem["prompt"] + problem["canonical_solution"]
    match kind:
        case "empty":
            return ""
        case "prompt alone":
            return problem["prompt"]
        case "pass":
            return problem["prompt"] + "    pass\n"
        case answer:
            return WRAPPED.format(source=source, entry_point=problem["entry_point"], answer=answer)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    ["empty", "prompt alone", "pass", "not value", "[value]", "(value,)", "{'value': value}", "Same(value)"],
)
def test_no_wrong_solution_of_humaneval_passes(
    levelled: Sandbox, problems: list[dict[str, str]], kind: str, full: bool
) -> None:
    """Nothing, a body that does nothing, and the right value negated or wrapped do not pass."""
    some = problems if full else problems[0 if levelled.level == "strict" else 2 :: 4]
    reports = {one["task_id"]: _humaneval(levelled, one, _wrong(one, kind)) for one in some}
    assert {} == {name: report for name, report in reports.items() if report.all_passed}
    assert {ExecutionStatus.OK, ExecutionStatus.NONZERO} >= {report.execution.status for report in reports.values()}


# Lists of asserts.


def test_a_list_of_asserts_calls_functions_by_their_names(sandbox: Sandbox) -> None:
    """Without an entry point the tests find what the completion defines, as MBPP means it."""
    source = "def double(x):\n    return 2 * x\ndef half(x):\n    return x / 2\n"
    tests = ["assert double(4) == 8", "assert half(double(3)) == 3", "assert double(4) == 9"]
    report = check_asserts(sandbox, source, tests)
    assert [PASSED, PASSED, FAILED] == _statuses(report)
    assert (2, 3, False) == (report.passed, report.total, report.all_passed)
    assert "assert double(4) == 9" == report.checks[2].label
    assert "double(4) gave 8" in report.checks[2].reason


def test_tuples_and_lists_are_kept_apart(sandbox: Sandbox) -> None:
    """What the function returned keeps its type on its way to the tests, nested too."""
    source = "def f(kind):\n    return {'list': [1, (2, 3)], 'tuple': (1, [2, 3]), 'keys': {(1, 2): {3}}}[kind]\n"
    tests = [
        "assert f('list') == [1, (2, 3)]",
        "assert f('tuple') == (1, [2, 3])",
        "assert f('keys') == {(1, 2): {3}}",
        "assert f('list') == [1, [2, 3]]",
        "assert f('tuple') == [1, [2, 3]]",
        "assert isinstance(f('tuple'), tuple)",
    ]
    assert [PASSED, PASSED, PASSED, FAILED, FAILED, PASSED] == _statuses(check_asserts(sandbox, source, tests))


@pytest.mark.parametrize(
    ("body", "tests"),
    [
        ("x.sort()", "data = [3, 1, 2]\nassert f(data) is None\nassert data == [1, 2, 3]"),
        ("x.reverse()", "data = bytearray(b'abc')\nassert f(data) is None\nassert data == b'cba'"),
        ("x.update(a=1)", "data = {'b': 2}\nassert f(x=data) is None\nassert data == {'a': 1, 'b': 2}"),
        ("x.discard(1)", "data = {1, 2}\nalias = data\nassert f(data) is None\nassert alias == {2}"),
        ("x[0].append(2)", "data = ([1],)\nassert f(data) is None\nassert data == ([1, 2],)"),
        ("x[0].append(2)", "data = [[1]]\nassert f(data) is None\nassert data == [[1, 2]]"),
        ("x[0] = 1.0", "data = [1]\nassert f(data) is None\nassert isinstance(data[0], float)"),
    ],
    ids=["list", "bytearray", "dict by name", "set", "in a tuple", "in a list", "type alone"],
)
def test_changes_of_arguments_are_seen(sandbox: Sandbox, body: str, tests: str) -> None:
    """A function that works in place is judged by what became of its argument."""
    report = check_asserts(sandbox, f"def f(x):\n    {body}\n", tests)
    assert report.all_passed, report
    assert not check_asserts(sandbox, "def f(x):\n    pass\n", tests).all_passed


@pytest.mark.parametrize(
    ("body", "tests"),
    [
        ("x.clear()\n    return []", "data = [3, 1]\nassert f(data) == sorted(data)"),
        ("x.clear()\n    return []", "data = [3, 1]\nresult = f(data)\nassert result == sorted(data)"),
        ("x.clear()\n    return {}", "data = {1: 2}\nassert f(x=data) == dict(data)"),
        ("del x[1:]\n    return 3", "data = [3, 1]\nassert f(data) == sum(data)"),
        ("x[0].clear()\n    return [[]]", "data = [[1]]\nassert f(data) == data"),
    ],
    ids=["in the assert", "before it", "dict by name", "part", "nested"],
)
def test_arguments_are_copies(sandbox: Sandbox, body: str, tests: str) -> None:
    """What a test computes from its own arguments is right, whatever the completion did to those that it got."""
    report = check_asserts(sandbox, f"def f(x):\n    {body}\n", tests)
    assert (0, 1) == (report.passed, report.total), report
    candidates = "def check(candidate):\n" + "\n".join(f"    {line}" for line in tests.split("\n"))
    report = check_asserts(
        sandbox, f"def f(x):\n    {body}\n", candidates.replace("f(data)", "candidate(data)"), entry_point="f"
    )
    assert 0 == report.passed, report


def test_each_call_has_its_own_arguments(sandbox: Sandbox) -> None:
    """One list that several checks name is whole for each of them, and for the caller."""
    data = [[3, 1], 2]
    checks = [FunctionCheck([data, data], [[[3, 1], 2], 2]), FunctionCheck({"x": data, "y": data}, [[[3, 1], 2], 2])]
    source = "def f(x, y):\n    x[0].clear()\n    del x[1:]\n    return [y, len(y)]\n"
    report = check_functions(sandbox, source, "f", checks)
    assert report.all_passed, report
    assert [[3, 1], 2] == data


def test_methods_can_be_the_entry_point(sandbox: Sandbox) -> None:
    """``Class.method`` is called on an instance."""
    source = "class Solution:\n    def twice(self, x):\n        return 2 * x\n"
    report = check_asserts(
        sandbox, source, "def check(candidate):\n    assert candidate(2) == twice(2) == 4", entry_point="Solution.twice"
    )
    assert report.all_passed, report


def test_exceptions_of_the_completion_are_the_tests_to_expect(sandbox: Sandbox) -> None:
    """A try block is one check, and what the completion raises has the built-in type beneath its own."""
    source = "class Odd(ValueError): pass\ndef f(x):\n    if x < 0:\n        raise Odd(x)\n    return x\n"
    expects = (
        "try:\n    f({})\n    assert False, 'no error'\nexcept ValueError as error:\n    assert str(error) == '-1'\n"
    )
    assert [PASSED] == _statuses(check_asserts(sandbox, source, expects.format(-1)))
    assert [FAILED] == _statuses(check_asserts(sandbox, source, expects.format(1)))
    assert [FAILED] == _statuses(check_asserts(sandbox, source, "assert f(-1) is None"))


def test_tests_without_asserts_are_one_check(sandbox: Sandbox) -> None:
    """Tests that can only fail by raising count as one, if they called the completion at all."""
    raising = "if f(1) != 1:\n    raise AssertionError('wrong')\nassert True, 'printed'"
    assert [PASSED] == _statuses(check_asserts(sandbox, "def f(x): return x", raising))
    assert [ERROR] == _statuses(check_asserts(sandbox, "def f(x): return 2", raising))


@pytest.mark.parametrize(
    ("tests", "entry_point", "words"),
    [
        ("assert True", None, "cannot fail"),
        ("f(1)", "f", "cannot fail"),
        ("f(1)", None, "cannot fail"),
        ("pass", "f", "cannot fail"),
        ("print('ok' if f(1) == 1 else 'wrong')", "f", "cannot fail"),
        ("results = [f(1) == 1]\nprint(results)", "f", "cannot fail"),
        ("try:\n    assert f(1) == 1\nexcept AssertionError:\n    print('bad')", "f", "cannot fail"),
        ("import unittest\nclass T(unittest.TestCase):\n    def test_a(self):\n        f(1)", "f", "cannot fail"),
        ("assert 1 == 1", None, "without a call"),
        ("assert 1 == 1", "f", "without a call"),
        ("def helper():\n    assert f(1) == 1", "f", "without a call"),
        ("def helper():\n    assert f(1) == 1", None, "without a call"),
        ("raise RuntimeError('x')", "f", "RuntimeError: x"),
        ("raise RuntimeError('x')", None, "RuntimeError: x"),
        ("import no_such_library\nassert f(1) == 1", "f", "no_such_library"),
        ("def test_a():\n    import no_such_library\n    assert f(1) == 1", None, "no_such_library"),
        ("def test_a(database):\n    assert f(1) == 1", "f", r"test_a \(line 1\) asks for the fixture 'database'"),
        (
            "import pytest\n@pytest.fixture\ndef a(b): return 1\ndef test_a(a):\n    assert f(a) == 1",
            None,
            "fixture 'b'",
        ),
        ("import pytest\ndef test_a():\n    with pytest.warns(UserWarning):\n        f(1)", "f", "warnings"),
        (
            "import pytest\n@pytest.mark.parametrize('a,b', [(1,)])\ndef test_a(a, b):\n    assert f(a) == b",
            "f",
            "row 0",
        ),
        ("from unittest.mock import patch\nwith patch('os.getcwd'):\n    assert f(1) == 1", "f", "patch os.getcwd"),
    ],
)
@pytest.mark.parametrize("source", ["def f(x): return x", "def f(x): return None", "", "def f(x): raise ValueError"])
def test_tests_that_cannot_judge_are_at_fault_whatever_the_completion_is(
    sandbox: Sandbox, tests: str, entry_point: str | None, words: str, source: str
) -> None:
    """Tests that cannot fail, never call the code, or want what is not there are an error of the caller."""
    if not source and entry_point:  # it lacks the entry point, which is its own fault, unless the text shows the tests'
        source = "def f(x, y): pass"
    with pytest.raises(CheckError, match=words):
        check_asserts(sandbox, source, tests, entry_point=entry_point)


def test_a_failed_check_does_not_stop_the_tests(sandbox: Sandbox) -> None:
    """Asserts after a failed one are still reached, and a loop's assert is failed if it failed once."""
    tests = "for n in range(4):\n    assert f(n) == n\nassert f(3) == 9\nassert f(9) == 9"
    assert [FAILED, FAILED, PASSED] == _statuses(check_asserts(sandbox, "def f(x): return x % 3 or x // 9 * 9", tests))


@pytest.mark.parametrize(
    ("act", "status", "words"),
    [
        ("import os; os._exit(0)", ERROR, "exit code 0"),
        ("import os; os._exit(7)", ERROR, "exit code 7"),
        ("import os; os.close(5)", ERROR, "during f(2)"),
        ("import ctypes; ctypes.string_at(0)", ERROR, "SIGSEGV"),
        ("while True: pass", TIMEOUT, "not done within"),
    ],
    ids=["exit 0", "exit 7", "closed", "crash", "hang"],
)
def test_tests_that_stop_early_are_not_passed(sandbox: Sandbox, act: str, status: CheckStatus, words: str) -> None:
    """What was reached counts; where it stopped says why; the rest, and what a loop may reach again, is not passed."""
    source = f"def f(x):\n    if x == 2:\n        {act}\n    return x\n"

    def checked(tests: str) -> CheckReport:
        return _with_time_for_the_first(lambda limits: check_asserts(sandbox, source, tests, limits=limits), status)

    report = checked("assert f(1) == 1\nassert f(2) == 2\nassert f(3) == 3\n")
    assert [PASSED, status, NOT_REACHED] == _statuses(report)
    assert words in report.checks[1].reason
    loop = checked("for n in (1, 2):\n    found = f(n)\n    assert found == n")
    assert [status] == _statuses(loop)
    last = checked("assert f(1) == 1\nf(2)")
    assert [PASSED, status] == _statuses(last)
    caught = checked("assert f(1) == 1\ntry:\n    f(2)\nexcept:\n    pass\n")
    assert [PASSED, status] == _statuses(caught)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("def g(x): return x", "defines no 'f'"),
        ("f = 3", "'f' is not a function"),
        ("def f(x) return x", "SyntaxError"),
        ("raise ValueError('no')", "ValueError: no"),
        ("import os; os._exit(0)", "while it was loaded"),
        ("x" * (MAX_SOURCE_BYTES + 1), "bytes"),
        ("def f(x): return (n for n in [1])", "f(1) gave <generator>"),
        ("def f(x): raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("import sys\ndef f(x): sys.exit(0)", "SystemExit"),
    ],
    ids=["missing", "none", "syntax", "raises", "exits", "large", "not plain", "interrupt", "sys.exit"],
)
def test_a_completion_without_an_answer_fails_with_the_reason(sandbox: Sandbox, source: str, words: str) -> None:
    """Every check is failed, and the first says why."""
    report = check_asserts(sandbox, source, "assert f(1) == 1\nassert candidate(2) == 2", entry_point="f")
    assert 0 == report.passed < report.total
    assert words in report.checks[0].reason


@pytest.mark.parametrize(
    ("tests", "setup", "words"),
    [
        ("assert f(1) ==", "", "SyntaxError"),
        ("return f(1)", "", "SyntaxError"),
        ("assert f(1) == 1", "import nothing_of_this_name", "ModuleNotFoundError"),
        ("assert f(1) == 1", "1 / 0", "ZeroDivisionError"),
        ("", "", "empty"),
        ([], "", "empty"),
        ("#" * (1 << 20) + "\nassert f(1) == 1", "", "at most"),
    ],
    ids=["syntax", "return", "import", "setup", "empty", "none", "large"],
)
@pytest.mark.parametrize("source", ["def f(x): return x", "not Python"], ids=["right", "wrong"])
def test_tests_at_fault_are_an_error_of_the_caller(
    sandbox: Sandbox, tests: str | list[str], setup: str, words: str, source: str
) -> None:
    """They are never blamed on the completion, whether it is good or not."""
    with pytest.raises(CheckError, match=words):
        check_asserts(sandbox, source, tests, entry_point="f", setup=setup)


def test_an_argument_that_cannot_enter_a_jail_is_the_tests_fault(sandbox: Sandbox) -> None:
    """Tests that pass a module cannot be judged, and say so rather than fail every completion."""
    with pytest.raises(CheckError, match="a value of type module is not plain"):
        check_asserts(sandbox, "def f(x): return x", "import math\nassert f(math) == 1")


def test_types_can_be_arguments_and_results(sandbox: Sandbox) -> None:
    """The types of plain values and exceptions go in and come out as themselves; a lying class is none of them."""
    source = """
class int(int): pass
class Meta(type):
    def __eq__(cls, other): return True
    __hash__ = type.__hash__
class Liar(metaclass=Meta): pass
def f(x, kind): return isinstance(x, kind)
def g(name): return {"int": 1 .__class__, "own": int, "liar": Liar, "object": object}[name]
def h(kinds): kinds.append(str)
"""
    tests = [
        "assert f(1, int) and not f('1', int)",
        "assert f('1', (int, str)) and f(x=None, kind=type(None)) and f([], list)",
        "assert f(1.0, float) and not f(1, ValueError)",
        "assert g('int') is int and g('int') in {int: 1}",
        "kinds = [int]\nh(kinds)\nassert kinds == [int, str]",
        "assert g('own') == int",
        "assert g('liar') == int",
        "assert g('object') == object",
    ]
    assert [*[PASSED] * 5, *[FAILED] * 3] == _statuses(check_asserts(sandbox, source, tests))
    checks = [FunctionCheck([1, int], True), FunctionCheck({"x": "", "kind": (str, bytes)}, True)]
    assert check_functions(sandbox, source, "f", checks).all_passed
    checks = [FunctionCheck(["int"], int), FunctionCheck(["int"], bool), FunctionCheck(["own"], int)]
    assert [PASSED, FAILED, ERROR] == _statuses(check_functions(sandbox, source, "g", checks))


HELPERS = "import math\ndef poly(x): return math.floor(x) - 2\ndef f(x): return 2\n"


@pytest.mark.parametrize(
    ("tests", "helpers", "status"),
    [
        ("assert poly(f(1)) == 0", HELPERS, PASSED),
        ("assert poly(candidate(0)) == 0", HELPERS, FAILED),
        ("def poly(x): return 5\nassert poly(f(1)) == 5", HELPERS, PASSED),
        ("assert math.floor(f(1)) == 2", HELPERS, PASSED),
        ("from math import *\nassert floor(f(1)) == 2", "", PASSED),
        (
            "match f(1):\n    case [*rest] | {**rest}: pass\n    case 2 as found: pass\nassert found == 2",
            "",
            PASSED,
        ),
        ("assert poly(f(1)) == 0", "", None),
        ("assert poly(f(1)) == 0", "Write a function f, please.", None),
        ("assert poly(f(1)) == 0", "def poly(x:", None),
        ("assert f(1) == 2 or poly(1)", "", None),
        ("assert poly(f(1)) == 0", "raise ValueError", None),
        ("assert other(f(1)) == 0", HELPERS, None),
        ("assert f(1) == 2", "raise ValueError", PASSED),
    ],
)
@pytest.mark.parametrize("extra", ["", "def poly(x): return 0\ndef other(x): return 0\n"], ids=["", "own"])
def test_names_of_the_tests_are_their_own_or_of_helpers(
    sandbox: Sandbox, tests: str, helpers: str, status: CheckStatus | None, extra: str
) -> None:
    """With an entry point a name is bound on the tests' side or nowhere, which is their fault and told in words."""
    source = "def f(x): return x + 1\n" + extra

    def checked() -> CheckReport:
        return check_asserts(sandbox, source, tests, entry_point="f", helpers=helpers)

    if status is None:
        with pytest.raises(CheckError, match=r"which nothing on their side defines|ValueError"):
            checked()
    else:
        assert [status] == _statuses(checked())


def test_a_completion_that_overwhelms_its_tester_has_failed(sandbox: Sandbox, full: bool) -> None:
    """Names for which the tester has no memory fail the completion; they do not put the tests at fault."""
    source = """
import os, time
COUNT = 2_000_000
def write(data):
    while data:
        data = data[os.write(5, data):]
write((25 + COUNT * 9 + 5).to_bytes(4, "little") + b'{"loaded":true,"names":[ ')
for start in range(0, COUNT, 10_000):
    write(b"".join(b'"%06x",' % number for number in range(start, start + 10_000)))
write(b'"f"]}')
time.sleep(1)
"""
    for memory_bytes in (200 << 20, 220 << 20, 240 << 20) if full else (220 << 20,):
        limits = Limits(timeout_s=LONG_S, memory_bytes=memory_bytes, output_bytes=32 << 20)
        report = check_asserts(sandbox, source, "assert f(1) == 1", limits=limits)
        assert [ERROR] == _statuses(report), report


def test_an_exception_that_the_tests_pass_on_is_not_their_fault(sandbox: Sandbox) -> None:
    """A completion that raises where a value is wanted has failed, also where the tests call it with the exception."""
    tests = "try:\n    found = f(1)\nexcept Exception as error:\n    found = error\nassert f(found) == 2"
    assert [PASSED] == _statuses(check_asserts(sandbox, "def f(x): return x + (x == 1)", tests))
    assert 0 == check_asserts(sandbox, "def f(x): raise ValueError", tests).passed


def test_large_integers_and_special_floats_travel(sandbox: Sandbox) -> None:
    """Numbers of any size compare, also those that Python does not print."""
    source = "import math\ndef f(n):\n    return math.factorial(n)\ndef g():\n    return [math.inf, -math.inf]\n"
    tests = (
        "import math\nassert f(3000) == math.factorial(3000)\nassert g() == [math.inf, -math.inf]\nassert f(3000) == 1"
    )
    assert [PASSED, PASSED, FAILED] == _statuses(check_asserts(sandbox, source, tests))


# Calls of a function.


def test_function_checks_say_what_each_call_came_to(sandbox: Sandbox) -> None:
    """Right, wrong, raised and not plain are told apart, with the reason."""
    source = "def f(x):\n    if x == 3: raise KeyError('k')\n    if x == 4: return object()\n    return x\n"
    checks = [FunctionCheck([n], 1) for n in (1, 2, 3, 4)] + [FunctionCheck({"x": 1}, 1), FunctionCheck((1,), 1)]
    report = check_functions(sandbox, source, "f", checks)
    assert [PASSED, FAILED, ERROR, ERROR, PASSED, PASSED] == _statuses(report)
    assert ["", "gave 2, not 1", "KeyError: 'k'"] == [check.reason for check in report.checks[:3]]
    assert "a value of type object is not plain" in report.checks[3].reason
    assert ["f(1)", "f(x=1)"] == [report.checks[0].label, report.checks[4].label]
    assert (3, 6, False) == (report.passed, report.total, report.all_passed)


@pytest.mark.parametrize(
    ("act", "first", "then"),
    [
        ("import os; os._exit(0)", ERROR, ERROR),
        ("import os; os._exit(3)", ERROR, NOT_REACHED),
        ("import ctypes; ctypes.string_at(0)", ERROR, NOT_REACHED),
        ("while True: pass", TIMEOUT, NOT_REACHED),
        ("import sys; sys.exit(0)", ERROR, PASSED),
        ("return 10 ** 5000", FAILED, PASSED),
        ("return [0] * 10 ** 6", ERROR, PASSED),
    ],
    ids=["exit 0", "exit 3", "crash", "hang", "sys.exit", "long", "large"],
)
def test_one_function_check_does_not_pass_for_another(
    sandbox: Sandbox, act: str, first: CheckStatus, then: CheckStatus
) -> None:
    """What ends the process fails its own check and those after it, never those before."""
    source = f"def f(x):\n    if x == 2:\n        {act}\n    return x\n"
    checks = [FunctionCheck([n], n) for n in (1, 2, 3)]
    report = _with_time_for_the_first(
        lambda limits: check_functions(sandbox, source, "f", checks, limits=limits), first
    )
    assert [PASSED, first, then] == _statuses(report)
    assert "" != report.checks[1].reason


def test_reasons_can_be_written_anywhere(sandbox: Sandbox) -> None:
    """What the completion puts into its errors does not break whoever writes the reasons down."""
    odd = "raise ValueError('\\ud800 \\0')"
    for source in (odd, f"def f(x):\n    {odd}\n"):
        for report in (
            check_functions(sandbox, source, "f", [FunctionCheck([1], 1)]),
            check_asserts(sandbox, source, "assert f(1) == 1", entry_point="f"),
            check_asserts(sandbox, source, "if f(1) != 1:\n    raise ValueError", entry_point="f"),
        ):
            assert "ValueError: \\ud800" in report.checks[0].reason, report
            assert report.checks[0].reason.encode("utf-8")


@pytest.mark.parametrize("source", ["", "def f(x) return", "raise ValueError", "f = 1", "import os; os._exit(0)"])
def test_code_without_the_function_passes_no_function_check(sandbox: Sandbox, source: str) -> None:
    """A function that is not there, or cannot be loaded, fails every check."""
    report = check_functions(sandbox, source, "f", [FunctionCheck([1], None), FunctionCheck([], 0)])
    assert (0, 2) == (report.passed, report.total)
    assert "" != report.checks[0].reason


def test_function_checks_compare_by_type_and_tolerance(sandbox: Sandbox) -> None:
    """The values that come out of the jail are compared by the rule of ``same``."""
    checks = [
        FunctionCheck([1 / 3], 0.3333),
        FunctionCheck([1 / 3], 0.3333, rel_tol=1e-3),
        FunctionCheck([1], 1.0),
        FunctionCheck([1], 1.0, abs_tol=1e-9),
        FunctionCheck([True], 1, abs_tol=0.5),
        FunctionCheck([(1, 2)], [1, 2]),
        FunctionCheck([math.nan], math.nan),
    ]
    report = check_functions(sandbox, "def f(x): return x", "f", checks)
    assert [FAILED, PASSED, FAILED, PASSED, FAILED, FAILED, PASSED] == _statuses(report)


def test_arguments_and_expected_values_must_be_plain(sandbox: Sandbox) -> None:
    """What cannot enter a jail is the caller's mistake, and named."""
    with pytest.raises(NotPlainError, match="check 1: the expected value: a value of type object"):
        check_functions(sandbox, "def f(x): return x", "f", [FunctionCheck([1], 1), FunctionCheck([1], object())])
    with pytest.raises(NotPlainError, match="call 0"):
        check_functions(sandbox, "def f(x): return x", "f", [FunctionCheck([object()], 1)])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: FunctionCheck("ab", 1), "arguments='ab'"),  # type: ignore[arg-type]
        (lambda: FunctionCheck([1], 1, rel_tol=1.0), "rel_tol=1.0"),
        (lambda: FunctionCheck([1], 1, abs_tol=-1), "abs_tol=-1"),
        (lambda: FunctionCheck([1], 1, abs_tol=math.inf), "abs_tol=inf"),
        (lambda: FunctionCheck([1], 1, rel_tol=math.nan), "rel_tol=nan"),
        (lambda: FunctionCheck([1], 1, abs_tol=True), "abs_tol=True"),
        (lambda: ProgramCheck(b"", ""), "stdin=b''"),  # type: ignore[arg-type]
        (lambda: ProgramCheck("", None), "stdout=None"),  # type: ignore[arg-type]
    ],
    ids=["arguments", "rel_tol", "negative", "infinite", "nan", "bool", "stdin", "stdout"],
)
def test_a_check_that_makes_no_sense_is_refused(make: Any, words: str) -> None:
    """The message names the attribute and its value."""
    with pytest.raises(CheckError, match=words):
        make()


def test_no_checks_are_an_error_and_no_pass(sandbox: Sandbox) -> None:
    """A completion that nobody checked has not passed."""
    with pytest.raises(CheckError, match="no checks"):
        check_functions(sandbox, "", "f", [])
    with pytest.raises(CheckError, match="no checks"):
        check_programs(sandbox, "", [])
    assert not CheckReport((), sandbox.run("")).all_passed


# Programs.


def test_program_checks_compare_output(sandbox: Sandbox) -> None:
    """The rule is named once for all checks, and a check that fails says what was written and what was expected."""
    echo = "print(input())"
    checks = [
        ProgramCheck("a\n", "a\n"),
        ProgramCheck("a  \n", "a"),
        ProgramCheck("a\n", "a \r\n\n\n"),
        ProgramCheck("a\n", " a\n"),
        ProgramCheck("a\n", "A\n"),
        ProgramCheck("a\n", "a\na\n"),
        ProgramCheck("a\n", ""),
    ]
    report = check_programs(sandbox, echo, checks, match="lines")
    assert [PASSED, PASSED, PASSED, FAILED, FAILED, FAILED, FAILED] == _statuses(report)
    assert "wrote 'a\\n', not 'A\\n'" == report.checks[4].reason
    report = check_programs(sandbox, echo, checks)
    assert [PASSED, PASSED, PASSED, PASSED, FAILED, FAILED, FAILED] == _statuses(report)
    assert "stdin 'a\\n'" == report.checks[0].label


@pytest.mark.parametrize(
    ("act", "status", "then"),
    [
        ("import os; print('2', flush=True); os._exit(1)", ERROR, PASSED),
        ("import os; os._exit(0)", FAILED, PASSED),
        ("import os; print('2', flush=True); os._exit(0)", PASSED, PASSED),
        ("import sys; print('2'); sys.exit(1)", ERROR, PASSED),
        ("import sys; print('2'); sys.exit(0)", PASSED, PASSED),
        ("print('2'); raise ValueError", ERROR, PASSED),
        ("print('2', flush=True); import ctypes; ctypes.string_at(0)", ERROR, PASSED),
        ("print('2', flush=True)\n    while True: pass", TIMEOUT, NOT_REACHED),
        ("print('2' * 2_000_000)", ERROR, None),
    ],
    ids=["_exit 1", "_exit 0 silent", "_exit 0", "exit 1", "exit 0", "raises", "crash", "hang", "flood"],
)
def test_one_program_check_does_not_pass_for_another(
    sandbox: Sandbox, act: str, status: CheckStatus, then: CheckStatus | None
) -> None:
    """Right output counts only with exit code 0, and a run that ends the process does not hinder the next."""
    source = f"n = input()\nif n == '2':\n    {act}\nelse:\n    print(n)\n"
    checks = [ProgramCheck(n, n) for n in "123"]
    report = _with_time_for_the_first(lambda limits: check_programs(sandbox, source, checks, limits=limits), status)
    assert [PASSED, status] == _statuses(report)[:2]
    assert then is None or then == report.checks[2].status
    bad = status is not PASSED and status is not FAILED
    assert bad is (report.execution.status is not ExecutionStatus.OK)


READ_AND_WRITE = {
    "reads by open(0)": "print(open(0).read().strip())",
    "closes its input": "with open(0) as file: print(file.read().strip())",
    "closes sys.stdin": "import sys\nprint(input())\nsys.stdin.close()",
    "writes by open(1)": "open(1, 'w').write(input())",
    "never flushes": "out = open(1, 'w', closefd=False)\nout.write(input())",
    "never flushes, closes": "import os\nout = os.fdopen(1, 'w')\nout.write(input())",
    "a wrapper of its own": "import io, sys\nout = io.TextIOWrapper(sys.stdout.buffer)\nout.write(input())",
    "another stdout": "import io, sys\nprint(input())\nsys.stdout = io.StringIO()",
    "closes its output": "import sys\nprint(input())\nsys.stdout.close()",
    "writes when it goes": "class C:\n    def __del__(self): print(text)\ntext = input()\nheld = C()",
    "ends by exit()": "print(input())\nexit()",
    "ends by quit(0)": "print(input())\nquit(0)",
    "asks for modes": "import sys\nassert 'rww' == sys.stdin.mode + sys.stdout.mode + sys.stderr.mode\nprint(input())",
    "by the first streams": "import sys\nsys.__stderr__.write('x')\nsys.__stdout__.write(sys.__stdin__.readline())",
    "exits unflushed": "import sys\nout = open(1, 'w', closefd=False)\nout.write(input())\nsys.exit()",
}
"""Ways in which programs read their input and write their output; each gives back the line that it reads."""


@pytest.mark.parametrize("way", READ_AND_WRITE)
def test_programs_may_read_and_write_as_they_like(sandbox: Sandbox, way: str) -> None:
    """What Python writes out at a program's end counts for that run, and a run that closes a stream costs no other."""
    checks = [ProgramCheck(f"{n}\n", f"{n}\n") for n in range(4)]
    report = check_programs(sandbox, READ_AND_WRITE[way], checks)
    assert report.all_passed, [check.reason for check in report.checks]
    wrong = check_programs(sandbox, READ_AND_WRITE[way], [*checks, ProgramCheck("5\n", "4\n")])
    assert [*[PASSED] * 4, FAILED] == _statuses(wrong)


def test_an_error_after_a_stream_was_closed_is_told(sandbox: Sandbox) -> None:
    """Of a run that closed its input and then raised, the reason is known, and the next run is its own."""
    report = check_programs(sandbox, "n = open(0).read()\nprint(1 // int(n))", [ProgramCheck(n, "1") for n in "101"])
    assert [PASSED, ERROR, PASSED] == _statuses(report)
    assert "ZeroDivisionError" in report.checks[1].reason


def test_every_input_of_a_program_is_whole(levelled: Sandbox) -> None:
    """An input may be larger than the files that the program may write; the first one is no exception."""
    limits = Limits(timeout_s=LONG_S, file_bytes=1 << 16, output_bytes=1 << 16)
    sizes = [10, 1 << 18, 1 << 18, 10, 1 << 16, (1 << 16) + 1]
    checks = [ProgramCheck("é" * (size // 2), str(size // 2)) for size in sizes]
    report = check_programs(levelled, "import sys\nprint(len(sys.stdin.read()))", checks, limits=limits)
    assert report.all_passed, [check.reason for check in report.checks]


# Infrastructure.


class _Broken(Sandbox):
    """A sandbox whose evaluations all come to nothing."""

    def __init__(self) -> None:
        super().__init__(workers=1)
        self.lost = ExecutionResult(
            ExecutionStatus.INFRASTRUCTURE, None, None, "", "", False, [], "it failed", None, 0.0, 0.0, 0, "strict"
        )

    def run_asserts(self, *arguments: Any, **options: Any) -> AssertsRun:
        return AssertsRun(self.lost)

    def run_inputs(self, source: str, inputs: Any, **options: Any) -> list[ExecutionResult]:
        return [self.lost] * len(inputs)


def test_the_sandboxs_own_failure_is_told_from_a_wrong_answer() -> None:
    """Infrastructure is in the report and in each check, and is no pass."""
    broken = _Broken()
    for report in (
        check_asserts(broken, "", "assert f(1) == 1"),
        check_programs(broken, "", [ProgramCheck("", ""), ProgramCheck("", "")]),
    ):
        assert ExecutionStatus.INFRASTRUCTURE is report.execution.status
        assert {CheckStatus.INFRASTRUCTURE} == set(_statuses(report))
        assert not report.all_passed


# Equality.


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, 1), ("a", "a"), (b"a", b"a"), (None, None), (True, True), (0.1, 0.1), (1j, 1j), ([], []), ((), ()),
        ([1, (2, {3: {4}})], [1, (2, {3: {4}})]), ({"a": 1, "b": 2}, {"b": 2, "a": 1}), ({1, 2}, {2, 1}),
        (math.nan, math.nan), ([math.nan], [float("nan")]), ({math.nan}, {float("nan")}), (math.inf, math.inf),
        ({(math.nan, 1): 2}, {(float("nan"), 1): 2}), (complex(math.nan, 1), complex(math.nan, 1)), (0.0, -0.0),
        (frozenset({(1, 2)}), frozenset({(1, 2)})), (10**400, 10**400), ({frozenset({1}): 1}, {frozenset({1}): 1}),
    ],
    ids=lambda value: repr(value)[:30],
)  # fmt: skip
def test_the_same_is_the_same(value: Any, expected: Any) -> None:
    """Equal values of equal types are the same, with a tolerance too; so is nan."""
    assert same(value, expected)
    assert same(value, expected, rel_tol=1e-9)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, 1), (1, True), (False, 0), (1.0, True), ([True], [1]), ({1: True}, {1: 1}), ({True: 1}, {1: 1}),
        ({True}, {1}), ((1,), [1]), ([1], (1,)), ({1}, frozenset({1})), (b"a", bytearray(b"a")), (b"a", "a"),
        ("1", 1), (None, False), ([1], [1, 2]), ([1, 2], [1]), ({"a": 1}, {"a": 1, "b": 2}), ({1}, {1, 2}),
        ({(1, True)}, {(1, 1)}), (math.nan, math.inf), (math.nan, 0.0), ([], ()), ({}, set()), (10**400, 10**400 + 1),
        (10**400, 1.0), (math.nan, "nan"), (1.5, 1), ({1.0000000001}, {1.0}), (1j, 1), (math.inf, -math.inf),
    ],
    ids=lambda value: repr(value)[:30],
)  # fmt: skip
def test_what_differs_is_not_the_same(value: Any, expected: Any) -> None:
    """Other values, and equal ones of other types, are not the same; a tolerance does not make them so."""
    assert not same(value, expected)
    assert not same(value, expected, rel_tol=1e-9, abs_tol=1e-9)


NAN, NAN_TOO = math.nan, float("nan")


@pytest.mark.parametrize(
    ("value", "expected", "equal"),
    [
        ({NAN: 1, NAN_TOO: 2}, {NAN: 2, NAN_TOO: 1}, True),
        ({NAN: 2, NAN_TOO: 2}, {NAN: 1, NAN_TOO: 2}, False),
        ({NAN: 1, NAN_TOO: 1}, {NAN: 1, 3: 1}, False),
        ({NAN: [2], NAN_TOO: {2}}, {NAN: [2], NAN_TOO: [2]}, False),
        ({NAN: [2], NAN_TOO: {2: NAN}}, {NAN_TOO: [2], NAN: {2: NAN_TOO}}, True),
        ({(NAN, 1): 1, (NAN_TOO, 1): 2}, {(NAN, 1): 1, (NAN_TOO, 1): 1}, False),
        ({complex(NAN, 0): 1, complex(NAN_TOO, 0): 2}, {complex(NAN, 0): 1, complex(NAN_TOO, 0): 1}, False),
        ({(NAN, 1), (NAN_TOO, 1), (NAN, 2)}, {(NAN, 1), (NAN, 2), (NAN_TOO, 2)}, False),
        ({(NAN, 1), (NAN_TOO, 1), (NAN, 2)}, {(NAN, 1), (NAN_TOO, 2), (NAN_TOO, 1)}, True),
        ({NAN, NAN_TOO}, {NAN, 0.0}, False),
        ({0.0: 1}, {-0.0: 1}, True),
        ({(0.0,)}, {(-0.0,)}, True),
        ({0.0: 1}, {0: 1}, False),
        ({0.0: 1}, {False: 1}, False),
        ({complex(0.0, -0.0)}, {complex(-0.0, 0.0)}, True),
        ({"i1"}, {1}, False),
        ({("a", "b")}, {("a1:sb",)}, False),
        ({frozenset({1, 2}), frozenset({3})}, {frozenset({1}), frozenset({2, 3})}, False),
        ({"\ud800"}, {"\ud800"}, True),
        ({"x" * 500: 1}, {"x" * 499 + "y": 1}, False),
    ],
    ids=lambda value: type(value).__name__,  # no set in a name, for its order is not the same twice
)
def test_members_and_keys_are_counted_one_by_one(value: Any, expected: Any, equal: bool) -> None:
    """A set or dict with several nans holds as many as the other, with the same items; types stay apart in it."""
    assert equal == same(value, expected)
    assert equal == same(value, expected, rel_tol=1e-9)


def test_sets_made_to_be_slow_to_compare_are_compared() -> None:
    """No set is asked for what another holds, so what has one hash costs no more than anything else."""
    prime = (1 << 61) - 1

    def nested(start: int) -> Any:
        inner = [frozenset({start + number * prime for number in range(100)} | {place}) for place in range(100)]
        return [frozenset((one, number * prime) for number in range(20)) for one in inner]

    assert same(nested(8), nested(8))
    assert not same(nested(8), nested(9))


def test_a_tolerance_lets_numbers_be_close() -> None:
    """Numbers of any kind compare by closeness then, wherever they stand; without one they do not."""
    assert not same(1, 1.0)
    assert same(1, 1.0, abs_tol=1e-12)
    assert same([{"a": (0.1 + 0.2,)}], [{"a": (0.3,)}], rel_tol=1e-9)
    assert not same([0.1 + 0.2], [0.3])
    assert same(1 + 1e-12j, 1, abs_tol=1e-9)
    assert not same(1.1, 1.0, rel_tol=0.05)


def test_nothing_of_another_type_is_asked_whether_it_is_equal() -> None:
    """A lying object is not the same as anything, on either side, nor is a subclass."""

    class Liar:
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = None  # type: ignore[assignment]

    class LyingFloat(float):
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = float.__hash__

    for liar in (Liar(), LyingFloat(1)):
        assert not same(liar, 1.0)
        assert not same(1.0, liar)
        assert not same(liar, liar, abs_tol=1.0)


def test_comparison_of_deep_values_ends() -> None:
    """Values nested beyond any that leaves a jail are not the same, rather than a crash."""
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert not same(deep, deep)
