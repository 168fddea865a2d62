"""Limits of each check: a late one fails alone, in whatever order the checks are, and no time is endless."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import permutations

import pytest
from patience import LONG_S, in_time

from sandbox import (
    CheckReport,
    CheckStatus,
    FunctionCheck,
    Limits,
    ProgramCheck,
    Sandbox,
    check_asserts,
    check_dialogs,
    check_functions,
    check_programs,
    why_not_run,
)
from sandbox.errors import CheckError

PASSED, FAILED, ERROR = CheckStatus.PASSED, CheckStatus.FAILED, CheckStatus.ERROR
TIMEOUT, NOT_REACHED = CheckStatus.TIMEOUT, CheckStatus.NOT_REACHED
HANGING_PROGRAMS = {
    "python": "n = int(input())\nif n in {hang}:\n    while True: pass\nprint(n)\n",
    "javascript": (
        "const n = parseInt(require('fs').readFileSync(0, 'utf8'));\n"
        "if ({hang}.includes(n)) for (;;);\nconsole.log(n);\n"
    ),
    "c": (
        '#include <stdio.h>\nint main(void) {{ int n, late[] = {{{members}}}; volatile int x = 1; scanf("%d", &n);\n'
        '  for (int i = 0; i < {count}; i++) while (late[i] == n && x);\n  printf("%d\\n", n); }}\n'
    ),
}
HANGING_FUNCTIONS = {
    "python": "def f(n):\n    while n in {hang}: pass\n    return n\n",
    "javascript": "function f(n) {{ while ({hang}.includes(n)); return n; }}\n",
    "c": (
        "int f(int n) {{ int late[] = {{{members}}}; volatile int x = 1;\n"
        "  for (int i = 0; i < {count}; i++) while (late[i] == n && x);\n  return n; }}\n"
    ),
}
ORDERS = ["1234", "4123", "2143"]


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(workers=1) as made:
        yield made


def _source(form: str, hang: list[int]) -> str:
    return form.format(hang=hang, members=", ".join(map(str, hang)), count=len(hang))


def _check_programs(
    sandbox: Sandbox, language: str, hang: list[int], order: str, time_s: float, limits: Limits | None = None
) -> CheckReport:
    checks = [ProgramCheck(digit, digit) for digit in order]
    source = _source(HANGING_PROGRAMS[language], hang)
    return check_programs(sandbox, source, checks, check_timeout_s=time_s, limits=limits, language=language)


def _check_functions(
    sandbox: Sandbox, language: str, hang: list[int], order: str, time_s: float, limits: Limits | None = None
) -> CheckReport:
    checks = [FunctionCheck([int(digit)], int(digit)) for digit in order]
    source = _source(HANGING_FUNCTIONS[language], hang)
    return check_functions(sandbox, source, "f", checks, check_timeout_s=time_s, limits=limits, language=language)


@pytest.mark.slow
@pytest.mark.parametrize("check", [_check_programs, _check_functions], ids=["programs", "functions"])
@pytest.mark.parametrize("hang", [[4], [1, 4], [1, 2, 3, 4]], ids=["one", "two", "all"])
@pytest.mark.parametrize("language", ["python", "javascript", "c"])
def test_a_late_check_fails_alone_in_every_order(
    sandbox: Sandbox, full: bool, language: str, hang: list[int], check: Callable[..., CheckReport]
) -> None:
    """Each check has its own verdict, whichever checks come before it."""
    if reason := why_not_run(language):
        pytest.skip(reason)
    for order in map("".join, permutations("1234")) if full and language == "python" else ORDERS:
        expected = [TIMEOUT if int(digit) in hang else PASSED for digit in order]
        passes = expected.count(PASSED)
        report = in_time(
            partial(check, sandbox, language, hang, order), lambda report, passes=passes: report.passed == passes, 0.4
        )
        assert expected == [check.status for check in report.checks], order
        late = [check.reason for check in report.checks if check.status is TIMEOUT]
        assert all(reason.startswith("not done within") and "for all checks" not in reason for reason in late)


@pytest.mark.parametrize(
    ("act", "status"),
    [
        ("import os; os._exit(3)", ERROR),
        ("import ctypes; ctypes.string_at(0)", ERROR),
        ("raise ValueError", ERROR),
        ("return 0", FAILED),
    ],
    ids=["exit", "crash", "raises", "wrong"],
)
def test_a_call_that_ends_its_process_fails_alone(sandbox: Sandbox, act: str, status: CheckStatus) -> None:
    source = f"def f(n):\n    if n == 2:\n        {act}\n    return n\n"
    for order in ([1, 2, 3], [2, 3, 1]):
        checks = [FunctionCheck([n], n) for n in order]
        report = check_functions(sandbox, source, "f", checks, check_timeout_s=LONG_S)
        assert [status if n == 2 else PASSED for n in order] == [check.status for check in report.checks]


def test_calls_with_limits_leave_nothing_to_each_other(sandbox: Sandbox) -> None:
    """What one call changes in the code is not there for the next, so the order does not matter."""
    source = "seen = []\ndef f(n):\n    seen.append(n)\n    return seen\n"
    checks = [FunctionCheck([n], [n]) for n in (1, 2, 3)]
    assert check_functions(sandbox, source, "f", checks, check_timeout_s=LONG_S).all_passed


def test_a_function_that_works_in_place_is_seen_over_all_its_calls(sandbox: Sandbox) -> None:
    """A list that is sorted already is the value of a call that changes nothing, as without limits."""
    if reason := why_not_run("javascript"):
        pytest.skip(reason)
    checks = [FunctionCheck([[1, 2]], [1, 2]), FunctionCheck([[3, 1, 2]], [1, 2, 3])]
    source = "function f(x) { x.sort(); }"
    report = check_functions(sandbox, source, "f", checks, check_timeout_s=LONG_S, language="javascript")
    assert report.all_passed, report.checks


@pytest.mark.parametrize(
    ("check", "language"),
    [(_check_programs, "python"), (_check_functions, "python"), (_check_programs, "javascript")],
    ids=["programs", "functions", "javascript"],
)
def test_all_checks_together_have_an_end(sandbox: Sandbox, check: Callable[..., CheckReport], language: str) -> None:
    """Endless checks use up the time of all, the last with what was left of it; the others are not reached."""
    if reason := why_not_run(language):
        pytest.skip(reason)
    report = check(sandbox, language, [1, 2, 3, 4], "1234", 0.4, Limits(timeout_s=0.6))
    assert [TIMEOUT, TIMEOUT, NOT_REACHED, NOT_REACHED] == [check.status for check in report.checks]
    reasons = ["not done within 0.4 s", "not done within 0.2 s, what was left of 0.6 s for all checks"]
    assert reasons == [check.reason for check in report.checks[:2]]
    assert ["the time of all checks was used up"] * 2 == [check.reason for check in report.checks[2:]]


@pytest.mark.parametrize(
    ("hang", "reasons"),
    [
        ("1", ["not done within 0.5 s for all checks", *["the time of all checks was used up"] * 3]),
        ("4", ["", "", "", "not done within 0.5 s for all checks"]),
    ],
)
def test_without_a_limit_of_each_the_reason_says_that_all_share_one(
    sandbox: Sandbox, hang: str, reasons: list[str]
) -> None:
    source = f"def f(n):\n    while n == {hang}: pass\n    return n\n"
    checks = [FunctionCheck([n], n) for n in (1, 2, 3, 4)]
    report = check_functions(sandbox, source, "f", checks, limits=Limits(timeout_s=0.5))
    assert reasons == [check.reason for check in report.checks]
    tests = "\n".join(f"assert f({n}) == {n}" for n in (1, 2, 3, 4))
    report = check_asserts(sandbox, source, tests, limits=Limits(timeout_s=0.5))
    assert reasons == [check.reason for check in report.checks]


def test_what_earlier_checks_left_is_said(sandbox: Sandbox) -> None:
    """A run that had only a part of the time says of what it was left."""
    source = "import time\ntime.sleep(0.4)\nprint(input())"
    report = check_programs(sandbox, source, [ProgramCheck(n, n) for n in "1234"], limits=Limits(timeout_s=1.0))
    late = next(check for check in report.checks if check.status is TIMEOUT)
    assert late.reason.startswith("not done within 0.")
    assert late.reason.endswith(" s, what was left of 1 s for all checks")


def test_of_calls_whose_answers_count_together_none_is_blamed(sandbox: Sandbox) -> None:
    if reason := why_not_run("javascript"):
        pytest.skip(reason)
    source = _source(HANGING_FUNCTIONS["javascript"], [2])
    checks = [FunctionCheck([n], n) for n in (1, 2)]
    report = check_functions(sandbox, source, "f", checks, limits=Limits(timeout_s=0.5), language="javascript")
    assert [TIMEOUT, NOT_REACHED] == [check.status for check in report.checks]
    assert report.checks[0].reason.endswith("; which of the calls is late is not known")


INTERACTOR = "def interact(input, expected, read, write):\n    write(input)\n    return read() == expected\n"
SLOW_INTERACTOR = (
    "import time\ndef interact(input, expected, read, write):\n    time.sleep(0.5)\n    return read() == '1'\n"
)


@pytest.mark.parametrize("order", ["123", "213", "231"])
def test_a_late_dialog_fails_alone(sandbox: Sandbox, order: str) -> None:
    program = "n = input()\nwhile n == '2': pass\nprint(n)"
    checks = [ProgramCheck(n, n) for n in order]

    def checked(time_s: float) -> CheckReport:
        return check_dialogs(sandbox, program, checks, INTERACTOR, check_timeout_s=time_s)

    report = in_time(checked, lambda report: report.passed == 2, 0.5)
    assert [TIMEOUT if n == "2" else PASSED for n in order] == [check.status for check in report.checks]


def test_a_program_that_leaves_no_time_puts_no_interactor_at_fault(sandbox: Sandbox) -> None:
    """A dialog that began with little time left is the program's to answer for: its row is judged, and not skipped."""
    program = "import time\ntime.sleep(1.2)\nprint(1)"
    checks = [ProgramCheck("", "")] * 3
    report = check_dialogs(sandbox, program, checks, SLOW_INTERACTOR, limits=Limits(timeout_s=1.5))
    assert TIMEOUT in [check.status for check in report.checks]
    with pytest.raises(CheckError, match=r"the interactor is at fault in check 0: not done within 0\.1 s"):
        check_dialogs(sandbox, program, checks, SLOW_INTERACTOR, check_timeout_s=0.1)


CHECKERS = {
    "function": "def check(input, output, expected):\n    while output == '2': pass\n    return output == expected\n",
    "program": (
        "import sys\ninput, expected, output = (open(name).read() for name in sys.argv[1:])\n"
        "while output == '2': pass\nprint(output == expected)\n"
    ),
}


@pytest.mark.parametrize("checker", CHECKERS.values(), ids=CHECKERS)
@pytest.mark.parametrize("order", ["123", "213"])
def test_an_output_that_holds_up_the_checker_fails_alone(sandbox: Sandbox, order: str, checker: str) -> None:
    """The checker has the limit for each output, too."""
    checks = [ProgramCheck(n, "1" if n == "1" else "3") for n in order]

    def checked(time_s: float) -> CheckReport:
        return check_programs(sandbox, "print(input(), end='')", checks, checker=checker, check_timeout_s=time_s)

    report = in_time(checked, lambda report: report.passed == 2, 0.5)
    assert [FAILED if n == "2" else PASSED for n in order] == [check.status for check in report.checks]
