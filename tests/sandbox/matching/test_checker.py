"""Checkers: what they say counts, their own faults are the row's, and an output that they cannot judge is wrong."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sandbox import CheckStatus, Limits, ProgramCheck, Sandbox, check_programs
from sandbox.errors import CheckError

SUM = """
def check(input, output, expected):
    a, b = map(int, output.split())
    return a + b == int(input)
"""
SHARE = """
def check(input, output, expected):
    return sum(a == b for a, b in zip(output.split(), expected.split())) / len(expected.split())
"""
PROGRAM = """
import sys
given, expected, output = (open(name).read() for name in sys.argv[1:])
a, b = map(int, output.split())
print("looking at", a, b)
print({verdict})
"""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(workers=1) as made:
        yield made


@pytest.mark.parametrize(
    ("checker", "program", "expected", "credit"),
    [
        (SUM, "print(2, 3)", "1 4", 1.0),
        (SUM, "print(2, 2)", "1 4", 0.0),
        (SHARE, "print(1, 2, 5, 4)", "1 2 3 4", 0.75),
        (SHARE, "print(1, 2, 3, 4)", "1 2 3 4", 1.0),
        (PROGRAM.format(verdict="a + b == int(given)"), "print(2, 3)", "1 4", 1.0),
        (PROGRAM.format(verdict="'YES' if a + b == 5 else 'NO'"), "print(2, 2)", "1 4", 0.0),
        (PROGRAM.format(verdict="0.25"), "print(2, 2)", "1 4", 0.25),
    ],
)
def test_a_checker_says_yes_no_or_a_share(
    sandbox: Sandbox, checker: str, program: str, expected: str, credit: float
) -> None:
    report = check_programs(sandbox, program, [ProgramCheck("5", expected)], checker=checker)
    assert [credit] == [check.credit for check in report.checks]
    assert report.all_passed is (credit == 1)


@pytest.mark.parametrize(
    ("checker", "words"),
    [
        ("def check(input, output, expected)", "SyntaxError"),
        ("#include <testlib.h>\nint main() {}", "SyntaxError"),
        ("def check(input, output, expected):\n    raise KeyError(input)", "check 0: KeyError"),
        ("def check(input, output, expected):\n    return 'fine'", "it returned 'fine': expected yes, no or a share"),
        ("def check(input, output, expected):\n    return 2", "it returned 2: expected"),
        ("def check(input, output, expected):\n    return float('nan')", "it returned nan: expected"),
        ("def check(input, output, expected):\n    return None", "it returned None: expected"),
        ("def check(input, output, expected):\n    return 10 ** 5_000", "it returned a very long int: expected"),
        ("def check(output):\n    return True", "TypeError"),
        ("def check(input, output, expected):\n    return input == '5'\nimport os; os._exit(0)", "check 0"),
        ("def check(input, output, expected):\n    while True: pass", "not done within"),
        ("print('well')", "it printed 'well': expected"),
        ("pass", "it printed '': expected"),
        ("print(1); raise SystemExit(3)", "exit code 3"),
        ("while True: pass", "not done within"),
        ("print('x' * 3_000_000)", "output"),
        ("", "it printed '': expected"),
    ],
)
def test_a_checker_at_fault_is_an_error_of_the_caller_before_the_program_runs(
    sandbox: Sandbox, checker: str, words: str
) -> None:
    """It is told with the check, and never depends on what the completion writes."""
    for program in ("print(2, 3)", "while True: pass"):
        with pytest.raises(CheckError, match="the checker cannot judge the expected output of check 0") as raised:
            check_programs(sandbox, program, [ProgramCheck("5", "1 4")], checker=checker, limits=Limits(timeout_s=0.5))
        assert words in str(raised.value)


HOSTILE = """
def check(input, output, expected):
    if output == "raise": raise ValueError(output)
    if output == "hang":
        while True: pass
    if output == "end":
        import os
        os._exit(0)
    if output == "nonsense": return output
    if output == "long": return 10 ** 5_000
    return output == expected
"""


@pytest.mark.parametrize("output", ["raise", "hang", "end", "nonsense", "long"])
def test_an_output_that_a_sound_checker_cannot_judge_is_wrong(sandbox: Sandbox, output: str) -> None:
    """The other outputs are judged all the same."""
    checks = [ProgramCheck(text, "right") for text in ("right", output, "right")]
    program = "print(input(), end='')"
    report = check_programs(sandbox, program, checks, checker=HOSTILE, limits=Limits(timeout_s=2.0))
    first, second, third = report.checks
    assert (CheckStatus.PASSED, CheckStatus.FAILED) == (first.status, second.status)
    assert "the checker cannot judge the output" in second.reason
    assert output == "hang" or third.status is CheckStatus.PASSED


def test_a_run_that_did_not_end_well_is_not_judged(sandbox: Sandbox) -> None:
    always = "def check(input, output, expected):\n    return True"
    report = check_programs(sandbox, "print(1)\n1 / 0", [ProgramCheck("", "1")], checker=always)
    assert [CheckStatus.ERROR] == [check.status for check in report.checks]


def test_the_completion_sees_nothing_of_the_checker(sandbox: Sandbox) -> None:
    """Neither the expected output nor the checker's source or files are in the completion's process or folder."""
    program = """
import gc, os, sys
names = [name for _, _, files in os.walk(".") for name in files]
held = [text for text in gc.get_objects() if isinstance(text, str) and "secret" in text and len(text) < 99]
frames = [text for text in sys._current_frames()[__import__("threading").get_ident()].f_globals if "expected" in text]
print(names, held, frames)
"""
    function = "def check(input, output, expected):\n    return output.strip() in ('[] [] []', expected)"
    script = "import sys\nprint(open(sys.argv[3]).read().strip() in ('[] [] []', open(sys.argv[2]).read()))"
    for form in (function, script):
        report = check_programs(sandbox, program, [ProgramCheck("", "the secret")] * 2, checker=form)
        assert report.all_passed, report.checks
