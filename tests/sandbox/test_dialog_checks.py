"""Dialogs: an interactor of the row talks with the program, and its word alone decides."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sandbox import CheckReport, CheckStatus, Limits, ProgramCheck, Sandbox, check_dialogs
from sandbox.client import MAX_SOURCE_BYTES
from sandbox.errors import CheckError

GUESS = """
def interact(input, expected, read, write):
    for turn in range(10):
        guess = int(read())
        if guess == int(input):
            write("right")
            return True
        write("higher" if guess < int(input) else "lower")
    return 0.5
"""
SPEAKS_FIRST = """
def interact(input, expected, read, write):
    write(input)
    return read() == expected
"""
BISECTS = """
import sys
low, high = 1, 1000
while True:
    middle = (low + high) // 2
    {write}
    answer = {read}
    if answer.strip() == "right":
        break
    low, high = (low, middle - 1) if answer.strip() == "lower" else (middle + 1, high)
"""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(workers=1) as made:
        yield made


def _report(
    sandbox: Sandbox, program: str, interactor: str, *checks: tuple[str, str], time_s: float = 10
) -> CheckReport:
    told = [ProgramCheck(*check) for check in checks]
    return check_dialogs(sandbox, program, told, interactor, limits=Limits(timeout_s=time_s))


@pytest.mark.parametrize(
    ("write", "read"),
    [
        ("print(middle)", "input()"),
        ("print(middle, flush=True)", "sys.stdin.readline()"),
        ("sys.stdout.write(f'{middle}\\n')", "next(sys.stdin)"),
        ("sys.stdout.buffer.write(b'%d\\n' % middle); sys.stdout.flush()", "sys.stdin.buffer.readline().decode()"),
        ("__import__('os').write(1, b'%d\\n' % middle)", "__import__('os').read(0, 99).decode()"),
    ],
)
def test_a_program_talks_as_it_likes(sandbox: Sandbox, write: str, read: str) -> None:
    program = BISECTS.format(write=write, read=read)
    report = _report(sandbox, program, GUESS, ("7", ""), ("998", ""), ("500", ""))
    assert report.all_passed, report.checks


@pytest.mark.parametrize(
    ("program", "credit", "words"),
    [
        ("for n in range(1, 11): print(n)", 0.5, "the interactor gives 0.5"),
        ("pass", 0.0, "could not go on: ValueError"),
        ("1 / 0", 0.0, "the program: exit code 1"),
        ("print('seven')", 0.0, "could not go on: ValueError"),
        ("import os; os._exit(0)", 0.0, "could not go on"),
        ("while True: print(1)", 0.5, "the interactor gives 0.5"),
        ("print('1' * 2_000_000)", 0.0, "writes more than it may"),
        ("def f(:", 0.0, "the program: exit code 1"),
    ],
)
def test_a_program_that_talks_wrongly_is_wrong(sandbox: Sandbox, program: str, credit: float, words: str) -> None:
    """Once the interactor has read, what goes wrong is the program's fault."""
    (check,) = _report(sandbox, program, GUESS, ("700", "")).checks
    assert (CheckStatus.FAILED, credit) == (check.status, check.credit)
    assert words in check.reason


def test_a_program_that_says_nothing_runs_out_of_time(sandbox: Sandbox) -> None:
    report = _report(sandbox, "input()", GUESS, ("7", ""), ("8", ""), time_s=0.5)
    assert [CheckStatus.TIMEOUT, CheckStatus.NOT_REACHED] == [check.status for check in report.checks]


@pytest.mark.parametrize(
    ("program", "is_right"),
    [("print(int(input()) * 2)", True), ("pass", False), ("import os; os._exit(0)", False), ("print(1)", False)],
)
def test_an_interactor_may_speak_first(sandbox: Sandbox, program: str, is_right: bool) -> None:
    """A program that ends without reading what was sent to it is wrong, and no failure of the sandbox."""
    report = _report(sandbox, program, SPEAKS_FIRST, ("21", "42"))
    assert is_right is report.all_passed
    assert CheckStatus.INFRASTRUCTURE not in [check.status for check in report.checks]


def test_an_interactor_may_say_more_than_the_socket_holds(sandbox: Sandbox) -> None:
    assert _report(sandbox, "print(len(input()))", SPEAKS_FIRST, ("7" * 1_000_000, "1000000")).all_passed


SLOW = "import time\ndef interact(input, expected, read, write):\n    time.sleep(1)\n    return read() == expected"


@pytest.mark.parametrize(
    ("program", "interactor", "status"),
    [
        ("#" * (MAX_SOURCE_BYTES + 1), SPEAKS_FIRST, CheckStatus.ERROR),
        ("while True: pass", SPEAKS_FIRST, CheckStatus.TIMEOUT),
        ("import sys\nwhile True: sys.stderr.write('x' * 10_000)", SLOW, CheckStatus.ERROR),
    ],
    ids=["too large", "never reads", "floods standard error"],
)
def test_no_program_puts_the_interactor_at_fault(
    sandbox: Sandbox, program: str, interactor: str, status: CheckStatus
) -> None:
    """What ends a dialog before the interactor has read is the program's fault where the program is the cause."""
    report = _report(sandbox, program, interactor, ("7 " * 1_000_000, "2000000"), time_s=1.5)
    assert [status] == [check.status for check in report.checks]


@pytest.mark.parametrize(
    ("interactor", "words"),
    [
        ("def interact(input, expected, read, write)", "SyntaxError"),
        ("def talk(): pass", "KeyError: 'interact'"),
        ("def interact(): return True", "TypeError"),
        ("def interact(input, expected, read, write):\n    raise LookupError(input)", "LookupError: 7"),
        ("def interact(input, expected, read, write):\n    while True: pass", "not done within"),
        ("def interact(input, expected, read, write):\n    return 'well'", "it returned 'well': expected a bool"),
        ("def interact(input, expected, read, write):\n    read()\n    return 7", "it returned 7: expected a bool"),
        (
            "def interact(input, expected, read, write):\n    read()\n    return 10 ** 5_000",
            "it returned a very long int: expected a bool",
        ),
        ("import os; os._exit(0)", "it ended without an answer"),
    ],
)
def test_an_interactor_at_fault_is_an_error_of_the_caller(sandbox: Sandbox, interactor: str, words: str) -> None:
    with pytest.raises(CheckError, match="the interactor is at fault in check 0") as raised:
        _report(sandbox, "print(7)\ninput()", interactor, ("7", ""), time_s=0.5)
    assert words in str(raised.value)


FORGERIES = [
    "import os\nfor n in range(3, 200):\n    try: os.write(n, b'{\"share\": 1.0}\\n')\n    except OSError: pass",
    "print('{\"share\": 1.0}')",
    "import os\nos.write(4, b'{\"share\": 1.0}\\n')\nos.kill(os.getppid(), 9)",
    "import gc\nprint([x for x in gc.get_objects() if x == 'secret'])",
    "class Same(str):\n    def __eq__(self, other): return True\nprint(Same('x'))",
    "import sys\nsys.exit(0)",
]


@pytest.mark.parametrize("program", FORGERIES)
def test_no_program_forges_an_interactors_word(sandbox: Sandbox, program: str) -> None:
    """The verdict's file, the input and the expected output are not in the program's process."""
    interactor = "def interact(input, expected, read, write):\n    return read() == expected"
    (check,) = _report(sandbox, program, interactor, ("secret", "secret")).checks
    assert (CheckStatus.FAILED, 0.0) == (check.status, check.credit)
    assert _report(sandbox, "print('secret')", interactor, ("", "secret")).all_passed
