"""The sandbox's own behaviour: statuses, streams, files, calls, order, bad input, faults of its own, and its end."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest
from patience import LONG_S, alive, in_time, wait_for

from sandbox import CallValue, ExecutionResult, ExecutionStatus, Limits, Sandbox, check_asserts, folders
from sandbox.client import MAX_ATTEMPTS, MAX_SOURCE_BYTES
from sandbox.errors import NotPlainError, PoolClosedError, SandboxError
from sandbox.inside.workfolder import FOLDER
from sandbox.inside.zygote import _is_unread
from sandbox.jail_input import MAX_CALLS
from sandbox.process import remove_stale_folders

pytestmark = pytest.mark.slow  # a minute, for there are processes to be killed and waited for

OK, NONZERO, TIMEOUT, MEMORY, OUTPUT_LIMIT, KILLED, FORBIDDEN, INFRASTRUCTURE = ExecutionStatus
LIMITS = Limits(timeout_s=60, memory_bytes=256 << 20)


@pytest.fixture(scope="module", params=["standard", "strict"])
def sandbox(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """A sandbox at each level."""
    with Sandbox(level=request.param, workers=2, limits=LIMITS) as sandbox:
        yield sandbox


@pytest.fixture
def own(sandbox: Sandbox) -> Iterator[Sandbox]:
    """A sandbox of the test's own, with one zygote, to be broken."""
    with Sandbox(level=str(sandbox.level), workers=1, limits=LIMITS) as own:
        yield own


ONE_LEVEL = pytest.mark.parametrize(
    "sandbox", ["strict", pytest.param("standard", marks=pytest.mark.full)], indirect=True
)
"""Of tests of what is the same at each level, and takes long: at standard with ``--full``."""

# How evaluations end.

ENDS: dict[str, tuple[str, ExecutionStatus, int | None, int | None, str]] = {
    "ok": ("print(1)", OK, 0, None, ""),
    "exit-0": ("import sys; sys.exit(0)", OK, 0, None, ""),
    "exit-without-a-code": ("raise SystemExit", OK, 0, None, ""),
    "exit-3": ("import sys; sys.exit(3)", NONZERO, 3, None, "exit code 3"),
    "exit-with-words": ("import sys; sys.exit('words')", NONZERO, 1, None, "exit code 1"),
    "exit-at-once": ("import os; os._exit(7)", NONZERO, 7, None, "exit code 7"),
    "exception": ("\nraise ValueError('why')", NONZERO, 1, None, "ValueError: why"),
    "exception-without-words": ("raise KeyError", NONZERO, 1, None, "KeyError"),
    "syntax-error": ("x = (\n", NONZERO, 1, None, "SyntaxError"),
    "null-byte": ("print(1)\0", NONZERO, 1, None, "null bytes"),
    "lone-surrogate": ("print('\ud800')", NONZERO, 1, None, "surrogates not allowed"),
    "interrupt": ("raise KeyboardInterrupt", NONZERO, 1, None, "KeyboardInterrupt"),
    "group": ("raise ExceptionGroup('g', [ValueError(1)])", NONZERO, 1, None, "ExceptionGroup: g"),
    "forbidden": ("import os; os.chmod('.', 0)", FORBIDDEN, 1, None, "PermissionError"),
    "fork": ("import os; os.fork()", FORBIDDEN, 1, None, "PermissionError"),
    "memory": ("x = bytes(1 << 40)", MEMORY, 1, None, "MemoryError"),
    "output": ("print('x' * (2 << 20))", OUTPUT_LIMIT, None, None, "more than 1,048,576 bytes of output"),
    "segfault": ("import ctypes; ctypes.string_at(0)", KILLED, None, signal.SIGSEGV, "SIGSEGV"),
    "abort": ("import os; os.abort()", KILLED, None, None, "ended by"),
}


@pytest.mark.parametrize("name", ENDS)
def test_a_programs_end_is_told(sandbox: Sandbox, name: str) -> None:
    """Each way to end has its status, exit code or signal, and words; and a time and a memory."""
    source, status, code, number, words = ENDS[name]
    result = sandbox.run(source)
    assert status == result.status, result
    if code is not None:
        assert (code, None) == (result.exit_code, result.signal)
    if number is not None:
        assert (None, number) == (result.exit_code, result.signal)
    assert words in result.error
    assert ("" == result.error) == (status is OK)
    assert result.duration_s > 0
    assert result.cpu_s >= 0
    assert result.peak_memory_bytes > 1 << 20
    assert str(sandbox.level) == result.level


def test_a_timeout_is_told(sandbox: Sandbox) -> None:
    """What is not done in its time is a timeout, by the clock, and says so."""
    result, told = in_time(
        lambda time_s: (
            sandbox.run("print('begun', flush=True)\nwhile True: pass", limits=Limits(timeout_s=time_s)),
            f"not done within {time_s:g} s",
        ),
        lambda ended: ended[0].stdout,
        0.3,
    )
    assert (TIMEOUT, "begun\n", told) == (result.status, result.stdout, result.error)
    assert None is result.exit_code


@pytest.mark.parametrize(
    ("sandbox", "ignored"),
    [
        ("strict", IGNORING := "import signal; signal.signal(signal.SIGXCPU, signal.SIG_IGN)\n"),
        ("standard", ""),
        pytest.param("strict", "", marks=pytest.mark.full),
        pytest.param("standard", IGNORING, marks=pytest.mark.full),
    ],
    indirect=["sandbox"],
)
def test_processor_time_is_limited(sandbox: Sandbox, ignored: str) -> None:
    """What uses up its processor time is a timeout, also where it ignores the first signal."""
    result = sandbox.run(f"{ignored}while True: pass", limits=Limits(timeout_s=600, cpu_s=1))
    assert (TIMEOUT, "its processor time is used up") == (result.status, result.error)
    assert result.cpu_s > 0.1  # the kernel counts it in ticks, and a busy machine has others


def test_lines_of_errors_are_told(sandbox: Sandbox) -> None:
    """The line at which it failed is that of the program, also within a library, and of its syntax."""
    assert 3 == sandbox.run("\n\nraise ValueError").line
    assert 2 == sandbox.run("import json\njson.loads('{')").line
    assert 2 == sandbox.run("x = 1\nx = = 2").line
    assert None is sandbox.run("pass").line
    assert "main.py" in sandbox.run("\nraise ValueError").stderr


def test_a_traceback_shows_the_programs_lines(sandbox: Sandbox) -> None:
    """Standard error has what Python would print, without the sandbox's own frames."""
    told = sandbox.run("def f():\n    return 1 / 0\nf()").stderr
    assert "return 1 / 0" in told
    assert "ZeroDivisionError" in told
    assert "inside.py" not in told


# Streams, arguments, files.


def test_streams_and_arguments(sandbox: Sandbox) -> None:
    """Standard input, output, error and arguments are as of any program."""
    source = (
        "import sys\nprint(sys.argv)\nprint(input(), sys.stdin.read())\nprint('e', file=sys.stderr)\nprint(__name__)"
    )
    result = sandbox.run(source, stdin="first\nsecond ünï\n", args=["a", "b c"])
    assert "['main.py', 'a', 'b c']\nfirst second ünï\n\n__main__\n" == result.stdout
    assert ("e\n", False) == (result.stderr, result.truncated)


def test_raw_output_that_is_no_text(sandbox: Sandbox) -> None:
    """Bytes that are no UTF-8 are shown with replacements; NUL bytes stay."""
    result = sandbox.run("import os; os.write(1, b'a\\xff\\0b')")
    assert "a\ufffd\0b" == result.stdout


def test_output_up_to_the_limit(sandbox: Sandbox) -> None:
    """Output of just the limit is whole; one byte more is the limit's, cut, with truncation told."""
    limits = Limits(timeout_s=60, output_bytes=1000)
    whole = sandbox.run("print('x' * 999)", limits=limits)
    assert (OK, 1000, False) == (whole.status, len(whole.stdout), whole.truncated)
    for stream in ("stdout", "stderr"):
        cut = sandbox.run(f"import sys; sys.{stream}.write('y' * 1001)", limits=limits)
        assert (OUTPUT_LIMIT, True) == (cut.status, cut.truncated)
        assert 1000 <= len(getattr(cut, stream)) <= 1001


@pytest.mark.parametrize("descriptor", [1, 2, 4])
def test_code_that_has_written_too_much_does_not_go_on(sandbox: Sandbox, descriptor: int) -> None:
    """Output beyond its limit ends an evaluation that would hold it, at once and not at its own end."""
    source = f"import os, time\nos.write({descriptor}, bytes(4 << 20))\ntime.sleep(600)"
    result = sandbox.run(source, limits=Limits(timeout_s=600))
    assert (OUTPUT_LIMIT, "more than 1,048,576 bytes of output") == (result.status, result.error)


def test_files(sandbox: Sandbox) -> None:
    """Files lie in the current directory, also below it, and nothing else does; the next program finds none."""
    files = {"a.txt": "ünï\r\n", "deep/er/b": "x" * 100_000}
    source = """
import os
print(open('a.txt', newline='').read() == 'ünï\\r\\n', len(open('deep/er/b').read()), sorted(os.listdir()))
"""
    assert "True 100000 ['a.txt', 'deep']\n" == sandbox.run(source, files=files).stdout
    assert "[]\n" == sandbox.run("import os; print(os.listdir())").stdout


@pytest.mark.parametrize("name", ["", "/etc/x", "../x", "a/../../x", "a\0b", "..", "bad\ud800"])
def test_file_names_that_leave_the_directory_are_refused(sandbox: Sandbox, name: str) -> None:
    """Names of files must stay below the directory and be names; the caller is told which is not."""
    with pytest.raises(ValueError, match="file"):
        sandbox.run("pass", files={name: ""})


def test_files_that_cannot_be_written_are_refused(sandbox: Sandbox) -> None:
    """What cannot be encoded, or is larger than files may be, is the caller's mistake."""
    with pytest.raises(ValueError, match="UTF-8"):
        sandbox.run("pass", files={"a": "\ud800"})
    with pytest.raises(ValueError, match="file_bytes"):
        sandbox.run("pass", files={"a": "x" * 1001}, limits=Limits(file_bytes=1000))


@pytest.mark.parametrize(
    "text",
    ["\0", "\ud800", "a" * (4 << 20), "\r\n\r", "\U0010ffff", ""],
    ids=["nul", "surrogate", "large", "returns", "last", "none"],
)
def test_any_standard_input(sandbox: Sandbox, text: str) -> None:
    """Any text can be read, as bytes and as text."""
    source = "import sys\ndata = sys.stdin.buffer.read()\nsys.stdout.write(str(len(data)))"
    result = sandbox.run(source, stdin=text)
    assert (OK, str(len(text.encode("utf-8", "surrogatepass")))) == (result.status, result.stdout)


def test_one_program_on_many_inputs(sandbox: Sandbox) -> None:
    """Each input has its result, in order, with names of its own; the one that ends the process ends no other."""
    source = """
import os, sys
try:
    seen
except NameError:
    seen = 1
else:
    print("left over")
text = input()
if text == "exit": os._exit(5)
if text == "crash": import ctypes; ctypes.string_at(0)
if text == "raise": raise ValueError(text)
if text == "sys": sys.exit(6)
print(text * 2)
"""
    inputs = ["a", "exit", "b", "crash", "raise", "sys", "c"]
    results = sandbox.run_inputs(source, inputs)
    statuses = [result.status for result in results]
    assert [OK, NONZERO, OK, KILLED, NONZERO, NONZERO, OK] == statuses
    assert ["aa\n", "", "bb\n", "", "", "", "cc\n"] == [result.stdout for result in results]
    assert [5, 1, 6] == [results[place].exit_code for place in (1, 4, 5)]


FORGED_RUNS = """
import json, os, sys
print(input(), flush=True)
for number in range(9):
    ran = {{"ran": number, "out": 2, "err": 0, "code": 0, "raised": None}}
    for told in (ran, {{"run": number + 1, "out": 2, "err": 0}}):
        os.write(4, json.dumps(told).encode() + b"\\n")
{}
"""


@ONE_LEVEL
@pytest.mark.parametrize("run_timeout_s", [None, 0.5])
@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize(
    ("act", "status"),
    [
        ("import ctypes; ctypes.string_at(0)", KILLED),
        ("while True: pass", TIMEOUT),
        ("import time; time.sleep(999)", TIMEOUT),
        ("import signal; signal.setitimer(signal.ITIMER_REAL, 0.01); time = __import__('time'); time.sleep(9)", KILLED),
    ],
    ids=["crash", "loop", "sleep", "alarm"],
)
def test_how_a_program_ended_is_not_its_own_to_tell(
    sandbox: Sandbox, act: str, status: ExecutionStatus, count: int, run_timeout_s: float | None
) -> None:
    """A program that writes its own runs' ends is told as its process ended, all of them, and with limits for each."""
    limits = Limits(timeout_s=0.5 if status is TIMEOUT and run_timeout_s is None else 10)
    inputs = ["a", "b", "c"][:count]
    run_timeout_s = run_timeout_s and (run_timeout_s if status is TIMEOUT else 10)
    results = sandbox.run_inputs(FORGED_RUNS.format(act), inputs, limits=limits, run_timeout_s=run_timeout_s)
    assert [status] * count == [result.status for result in results]
    assert [None] * count == [result.exit_code for result in results]


@ONE_LEVEL
@pytest.mark.parametrize(
    ("act", "status"),
    [("import ctypes; ctypes.string_at(0)", KILLED), ("while True: pass", TIMEOUT)],
    ids=["crash", "loop"],
)
def test_honest_runs_keep_their_results_beside_one_that_does_not_end(
    sandbox: Sandbox, act: str, status: ExecutionStatus
) -> None:
    """What ran before a run that ends by a signal did end, also where that took all the time."""
    source = f"n = int(input())\nprint(n, flush=True)\nif n == 3: raise ValueError\nif n == 5:\n    {act}\n"

    def ran(time_s: float) -> list[ExecutionResult]:
        return sandbox.run_inputs(source, list(map(str, range(6))), limits=Limits(timeout_s=time_s))

    results = in_time(ran, lambda results: results[0].status is OK, 2.0)
    assert [OK, OK, OK, NONZERO, OK, status] == [result.status for result in results]
    assert [f"{n}\n" for n in range(6)] == [result.stdout for result in results]
    assert "ValueError" in results[3].error


def test_runs_that_take_their_time_have_processes_of_their_own(sandbox: Sandbox) -> None:
    """Only quick runs share a process, so that how a slow one ended is told by its process."""
    source = "import os, time\ntime.sleep(float(input()))\nprint(os.path.exists('mark'))\nopen('mark', 'w').close()\n"
    results = sandbox.run_inputs(source, ["0.06", "0.06", "0", "0"])
    assert [OK] * 4 == [result.status for result in results]
    assert ["False\n", "False\n", "False\n"] == [result.stdout for result in results[:3]]


# Calls.


def test_calls_give_values(sandbox: Sandbox) -> None:
    """Each call has its value, by position or name, methods too; one that raises leaves the others alone."""
    source = "class S:\n    def g(self, a, b=2): return [a, b]\ndef f(x, y=1): return {x: (y, 1 / x)}\n"
    result = sandbox.call(source, "f", [(1,), (0,), {"x": 2, "y": {3}}, [b"x"]])
    assert OK == result.status
    values = result.value or []
    assert [{1: (1, 1.0)}, None, {2: ({3}, 0.5)}, None] == [value.value for value in values]
    assert [True, False, True, False] == [value.ok for value in values]
    assert ("ZeroDivisionError: division by zero", 3) == (values[1].error, values[1].line)
    assert [[1, 2], [3, 4]] == [value.value for value in sandbox.call(source, "S.g", [(1,), (3, 4)]).value or []]
    assert [] == sandbox.call(source, "f", []).value


CALLS_THAT_FAIL = {
    "does-not-compile": ("def f(:", "f", NONZERO, "SyntaxError"),
    "raises-when-loaded": ("1 / 0", "f", NONZERO, "ZeroDivisionError"),
    "no-such-function": ("x = 1", "f", NONZERO, "defines no 'f'"),
    "not-callable": ("f = 3", "f", NONZERO, "not a function"),
    "exits-when-loaded": ("raise SystemExit(0)", "f", NONZERO, "SystemExit"),
    "value-that-is-not-plain": ("def f(x): return object()", "f", OK, "not plain"),
    "value-too-deep": ("def f(x):\n    for _ in range(500): x = [x]\n    return x", "f", OK, "nested"),
    "value-in-a-circle": ("def f(x):\n    a = []\n    a.append(a)\n    return a", "f", OK, "nested"),
    "generator": ("def f(x): yield x", "f", OK, "not plain"),
    "wrong-arguments": ("def f(): pass", "f", OK, "TypeError"),
    "exits-in-the-call": ("def f(x): raise SystemExit(0)", "f", OK, "SystemExit"),
    "ends-the-process": ("import os\ndef f(x): os._exit(0)", "f", OK, "before this call was answered"),
    "crashes": ("import ctypes\ndef f(x): ctypes.string_at(0)", "f", KILLED, "SIGSEGV"),
    "recursion": ("def f(x): return f(x)", "f", OK, "RecursionError"),
    "memory": ("def f(x): return bytes(1 << 40)", "f", OK, "MemoryError"),
    "hostile-value": (
        "import os\ndef f(x):\n    os.write(4, b'{\"call\":0,\"value\":{\"int\":\"zz\"}}\\n')\n    os._exit(0)",
        "f", OK, "read",
    ),
    "error-without-words": (
        "class E(Exception):\n    def __str__(self): raise E\ndef f(x): raise E", "f", OK, "cannot be read",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS_THAT_FAIL)
def test_a_call_that_fails_says_why(sandbox: Sandbox, name: str) -> None:
    """No value, and a reason; never an exception of ours."""
    source, function, status, words = CALLS_THAT_FAIL[name]
    result = sandbox.call(source, function, [(1,)])
    assert status == result.status, result
    (value,) = result.value or []
    assert (False, None) == (value.ok, value.value)
    assert words in value.error + result.error


def test_a_call_that_never_ends(sandbox: Sandbox) -> None:
    """The calls before it keep their values; it and those after it have a reason."""
    source = "def f(x):\n    while x == 2: pass\n    return x"
    result = in_time(
        lambda time_s: sandbox.call(source, "f", [(n,) for n in range(5)], limits=Limits(timeout_s=time_s)),
        lambda result: [value.ok for value in result.value or []][1],
        0.5,
    )
    assert TIMEOUT == result.status
    assert [True, True, False, False, False] == [value.ok for value in result.value or []]


def test_values_of_all_calls_are_bounded(sandbox: Sandbox) -> None:
    """A value that is too large is none, and the small ones are."""
    source = "def f(x): return 'x' * x"
    values = (
        sandbox.call(source, "f", [(10,), (5_000,), (20,)], limits=Limits(timeout_s=60, output_bytes=1000)).value or []
    )
    assert [True, False, True] == [value.ok for value in values]
    assert "larger" in values[1].error


@pytest.mark.parametrize("sandbox", ["strict"], indirect=True)
def test_a_hundred_thousand_calls_and_no_more(sandbox: Sandbox) -> None:
    """As many calls as may be are made, in order; one more is refused before anything runs."""
    limits = Limits(timeout_s=600, output_bytes=16 << 20)
    values = sandbox.call("def f(x): return -x", "f", ([n] for n in range(MAX_CALLS)), limits=limits).value or []
    assert [-n for n in range(MAX_CALLS)] == [value.value for value in values]
    with pytest.raises(ValueError, match="100,001 calls in one evaluation; at most 100,000"):
        sandbox.call("def f(x): return -x", "f", ([n] for n in range(MAX_CALLS + 1)))


@pytest.mark.parametrize(
    "argument", [object(), len, {1: {2: object()}}, [(json,)]], ids=["object", "function", "deep", "module"]
)
def test_arguments_that_are_not_plain_are_refused(sandbox: Sandbox, argument: Any) -> None:
    """The error is ours, and names the call."""
    with pytest.raises(NotPlainError, match=r"call 1: .*not plain") as refusal:
        sandbox.call("def f(x): return x", "f", [(1,), (argument,)])
    assert isinstance(refusal.value, SandboxError)


def test_arguments_arrive_with_their_types(sandbox: Sandbox) -> None:
    """Every plain type goes in and comes out as itself."""
    things = [
        (1, 2),
        {1: "a", (2,): None},
        {1, 2},
        frozenset({3}),
        b"\0\xff",
        1j,
        1 << 200,
        -0.0,
        float("inf"),
        "\ud800",
        True,
    ]
    source = "def f(x): return [type(x).__name__, x]"
    values = sandbox.call(source, "f", [(thing,) for thing in things]).value or []
    for thing, value in zip(things, values, strict=True):
        assert [type(thing).__name__, thing] == value.value


# Bad input.


def test_a_large_source_is_refused(sandbox: Sandbox) -> None:
    """Ten megabytes are not run, and say so, as a result; as much as may be is run."""
    large = "#" * (10 << 20)
    result = sandbox.run(large)
    assert (NONZERO, "the source is 10,485,760 bytes; at most 1,048,576 are run") == (result.status, result.error)
    called = sandbox.call(large, "f", [(1,), (2,)])
    assert [False, False] == [value.ok for value in called.value or []]
    assert [NONZERO] * 2 == [one.status for one in sandbox.run_inputs(large, ["", ""])]
    assert "ok\n" == sandbox.run("#" * (MAX_SOURCE_BYTES - 12) + "\nprint('ok')").stdout


BAD_LIMITS: list[dict[str, Any]] = [
    {"timeout_s": 0}, {"timeout_s": -1}, {"timeout_s": float("nan")}, {"timeout_s": float("inf")}, {"timeout_s": "1"},
    {"timeout_s": None}, {"timeout_s": True}, {"timeout_s": 1e9}, {"cpu_s": 0}, {"cpu_s": float("inf")},
    {"memory_bytes": 0}, {"memory_bytes": 1.5}, {"memory_bytes": 1 << 70}, {"memory_bytes": None}, {"output_bytes": -1},
    {"output_bytes": 1 << 64}, {"processes": 0}, {"processes": 1.0}, {"processes": False}, {"open_files": 0},
    {"file_bytes": 0}, {"file_bytes": []},
]  # fmt: skip


@pytest.mark.parametrize("options", BAD_LIMITS, ids=str)
def test_limits_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    """The limit and its value are named."""
    ((name, value),) = options.items()
    with pytest.raises((ValueError, TypeError), match=f"{name}="):
        Limits(**options)
    assert value is not Limits()


@pytest.mark.parametrize(
    "options",
    [
        {"profile": "torch9"},
        {"level": "high"},
        {"level": ""},
        {"workers": 0},
        {"workers": -1},
        {"workers": True},
        {"workers": 1.5},
    ],
    ids=str,
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    """The option and its value are named."""
    with pytest.raises(ValueError, match=f"{next(iter(options))}="):
        Sandbox(**options)


EXTREME_LIMITS = {
    "hardly-any-memory": Limits(memory_bytes=1),
    "all-memory": Limits(timeout_s=60, memory_bytes=1 << 50),
    "hardly-any-time": Limits(timeout_s=1e-6),
    "all-time": Limits(timeout_s=1_000_000, cpu_s=1_000_000),
    "hardly-any-processor-time": Limits(cpu_s=1e-9),
    "one-byte-of-output": Limits(output_bytes=1),
    "one-byte-of-files": Limits(file_bytes=1),
    "one-descriptor": Limits(open_files=1),
    "all-descriptors": Limits(timeout_s=60, open_files=1 << 50),
}


@pytest.mark.parametrize("name", EXTREME_LIMITS)
def test_extreme_limits_do_no_harm(own: Sandbox, name: str) -> None:
    """Whatever the limit, the evaluation ends as its own, not as a fault of the sandbox, and the zygote lives."""
    zygotes = own.processes
    result = own.run("print('x')", limits=EXTREME_LIMITS[name])
    assert INFRASTRUCTURE is not result.status, result
    if name.startswith("all"):
        assert (OK, "x\n") == (result.status, result.stdout), result
    assert "x\n" == own.run("print('x')").stdout
    assert zygotes == own.processes


def test_too_little_memory_says_so(sandbox: Sandbox) -> None:
    """Input that does not fit into the memory is a matter of memory."""
    result = sandbox.run("pass", stdin="x" * (100 << 20), limits=Limits(timeout_s=60, memory_bytes=32 << 20))
    assert MEMORY == result.status, result


# Several at once.


def test_results_come_in_order(sandbox: Sandbox) -> None:
    """Programs of different lengths give their results in the order in which they were given."""
    sources = [f"import time; time.sleep({0.05 if n % 3 == 0 else 0}); print({n})" for n in range(24)]
    assert [f"{n}\n" for n in range(24)] == [result.stdout for result in sandbox.run_many(sources)]
    calls = [(f"def f(x): return x + {n}", "f", [(1,), (2,)]) for n in range(24)]
    expected = [[n + 1, n + 2] for n in range(24)]
    results = sandbox.call_many(calls)
    assert expected == [[value.value for value in result.value or []] for result in results]
    assert [] == sandbox.run_many([])


def test_many_threads_may_use_one_sandbox(sandbox: Sandbox) -> None:
    """Eight threads on two zygotes: every result is that of its own program."""
    wrong: list[Any] = []

    def use(thread: int) -> None:
        for number in range(15):
            text = f"{thread}.{number}"
            result = sandbox.run("print(input())", stdin=text)
            if (OK, f"{text}\n") != (result.status, result.stdout):
                wrong.append(result)

    threads = [threading.Thread(target=use, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [] == wrong
    assert len(sandbox.processes) <= 2


def test_processes_of_its_own() -> None:
    """At strict, a program may start as many processes as its limit says; no more, and none of them outlives it."""
    source = """
import os, sys, time
started = 0
try:
    while True:
        if os.fork() == 0:
            time.sleep(600)
        started += 1
except OSError:
    pass
print(started)
"""
    limits = Limits(timeout_s=60, processes=4)
    with Sandbox(level="strict", workers=1, limits=limits) as sandbox:
        zygotes = sandbox.processes
        assert (OK, "3\n") == (sandbox.run(source).status, sandbox.run(source).stdout)
        looping = "import os\nfor _ in range(2): os.fork()\nwhile True: pass"
        assert TIMEOUT == sandbox.run(looping, limits=Limits(timeout_s=0.5, processes=8)).status
        assert FORBIDDEN == sandbox.run("import os; os.fork()", limits=LIMITS).status
        assert zygotes == sandbox.processes
        (zygote,) = zygotes
        assert wait_for(lambda: len(psutil.Process(zygote).children(recursive=True)) <= 2)


def test_processes_only_where_they_can_be_ended() -> None:
    """Below strict, a limit of more than one process is refused."""
    with Sandbox(level="standard", workers=1) as sandbox, pytest.raises(ValueError, match="processes=2"):
        sandbox.run("pass", limits=Limits(processes=2))


# Its end, and faults of its own.


def test_a_closed_sandbox_is_not_usable(own: Sandbox) -> None:
    """Each use is the named error; closing again is nothing."""
    own.run("pass")
    own.close()
    own.close()
    for use in (lambda: own.run("pass"), lambda: own.call("", "f", []), lambda: own.run_many(["pass"]), own.start):
        with pytest.raises(PoolClosedError, match="closed"):
            use()
    assert [] == own.processes


def test_a_sandbox_that_never_started_closes() -> None:
    """Made, not used, closed: no process, no error."""
    sandbox = Sandbox(workers=1)
    assert [] == sandbox.processes
    sandbox.close()
    with pytest.raises(PoolClosedError):
        sandbox.run("pass")


def test_closing_ends_evaluations_under_way(own: Sandbox) -> None:
    """A thread whose evaluation runs while another closes gets the named error, and all processes end."""
    seen: list[BaseException] = []

    def use() -> None:
        try:
            own.run("import time; time.sleep(600)", limits=Limits(timeout_s=600))
        except BaseException as error:
            seen.append(error)

    thread = threading.Thread(target=use)
    (zygote,) = own.processes
    inner = psutil.Process(zygote)
    before = len(inner.children(recursive=True))
    thread.start()
    assert wait_for(lambda: len(inner.children(recursive=True)) > before)
    own.close()
    thread.join()
    assert [PoolClosedError] == [type(error) for error in seen], seen
    assert not psutil.pid_exists(zygote)


def test_closing_ends_a_zygote_that_is_being_started() -> None:
    """A thread whose zygote only starts while another closes gets the named error, and the zygote ends as well."""
    me = psutil.Process()
    others = set(me.children())
    sandbox = Sandbox(workers=2, limits=LIMITS).start()
    seen: list[BaseException] = []

    def use() -> None:
        try:
            sandbox.run("import time; time.sleep(600)")
        except BaseException as error:
            seen.append(error)

    threads = [threading.Thread(target=use) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert wait_for(lambda: len(set(me.children()) - others) == 2)
    sandbox.close()
    for thread in threads:
        thread.join()
    assert [PoolClosedError] * 2 == [type(error) for error in seen], seen
    assert set() == set(me.children()) - others


def test_a_fork_cannot_use_it_nor_harm_it(own: Sandbox) -> None:
    """In a fork of its process the sandbox is the named error, and the fork's end leaves the zygotes alone."""
    own.run("pass")
    zygotes = own.processes
    child = os.fork()
    if child == 0:
        code = 1
        try:
            try:
                own.run("pass")
            except PoolClosedError:
                own.close()
                for zygote in list(own._zygotes):
                    zygote.__del__()
                code = 0
        finally:
            os._exit(code)
    assert 0 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert "1\n" == own.run("print(1)").stdout
    assert zygotes == own.processes


def test_a_zygote_killed_between_evaluations_is_replaced(own: Sandbox) -> None:
    """The next evaluation is right, in a new zygote."""
    for _ in range(3):
        (zygote,) = own.processes
        below = psutil.Process(zygote).children(recursive=True)
        os.kill(zygote, signal.SIGKILL)
        assert [] == alive(below)
        result = own.run("print(6 * 7)")
        assert (OK, "42\n") == (result.status, result.stdout)
        assert [zygote] != own.processes


def test_a_waiting_child_that_is_killed_costs_no_verdict(own: Sandbox) -> None:
    """The evaluation that it was told of is begun again, not taken for killed."""
    for number in range(3):
        own.run("pass")
        (zygote,) = own.processes
        below = psutil.Process(zygote)
        depth = 2 if own.level == "strict" else 1  # process 1 of the jail is between
        assert wait_for(lambda below=below, depth=depth: len(below.children(recursive=True)) == depth)
        waiting = below.children(recursive=True)[-1]
        waiting.kill()
        assert wait_for(lambda waiting=waiting: waiting.status() == psutil.STATUS_ZOMBIE)
        result = own.run(f"print({number})")
        assert (OK, f"{number}\n") == (result.status, result.stdout)


@pytest.mark.parametrize("kind", ["program", "asserts"])
def test_a_child_killed_before_it_reads_its_order_costs_no_verdict(own: Sandbox, kind: str) -> None:
    """An evaluation whose child was told, and never read it, is begun again; that of a tester's completion too."""
    source = "def f(): return 42\nprint(42)"
    with ThreadPoolExecutor(1) as thread:
        assert OK == own.run("pass").status
        (zygote,) = own.processes
        inner = psutil.Process(zygote).children()[0] if own.level == "strict" else psutil.Process(zygote)
        assert wait_for(lambda: len(inner.children()) == 1)
        (waiting,) = inner.children()
        waiting.suspend()
        if kind == "program":
            ended = thread.submit(lambda: own.run(source).status is OK)
        else:
            ended = thread.submit(lambda: check_asserts(own, source, "assert f() == 42", limits=LIMITS).all_passed)
        assert wait_for(lambda: len(inner.children()) > 1)
        waiting.kill()
        assert ended.result()
    assert [zygote] != own.processes


@pytest.mark.parametrize("read", [False, True])
def test_a_child_that_died_before_its_order_is_told_from_one_that_read_it(read: bool) -> None:
    """So an evaluation whose child was killed while it waited is begun again, and no other is."""
    ours, theirs = socket.socketpair()
    ours.send(b"x")
    if read:
        theirs.recv(1)
    theirs.close()
    assert _is_unread(ours.fileno()) is not read
    ours.close()


def test_a_zygote_serves_streams_and_evaluations_with_pauses(own: Sandbox) -> None:
    """What it does while nobody waits, such as making the next child, ends neither it nor that child."""
    own.run("pass")
    before = own.processes
    for pause_s in (0, 0, 0.005, 0.005, 0, 0.02):
        time.sleep(pause_s)
        assert OK == own.run("pass").status
    assert before == own.processes


def test_evaluations_limited_in_turn_otherwise(own: Sandbox) -> None:
    """A child that waits with other limits than the next evaluation has is not used for it."""
    source = "import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    for number, files in enumerate([20, 20, 30, 20, 30, 30, 20]):
        result = own.run(source, limits=Limits(open_files=files, timeout_s=60 + number))
        assert (OK, f"{files}\n") == (result.status, result.stdout)


def test_an_evaluation_may_have_larger_files_than_the_sandbox(own: Sandbox) -> None:
    """An evaluation's own limit of files counts, also where the kernel bounds the scratch directory."""
    source = "for n in (1, 2): open(str(n), 'wb').write(bytes(12 << 20))\nprint('written')"
    larger = Limits(timeout_s=60, file_bytes=32 << 20)
    for _ in range(2):
        result = own.run(source, limits=larger)
        assert (OK, "written\n") == (result.status, result.stdout), result


def test_a_directory_that_cannot_be_emptied_is_left_with_its_zygote(own: Sandbox) -> None:
    """The evaluation keeps its result, and the next one is given another directory."""
    if own.level == "strict" or os.getuid() != 0:
        pytest.skip("the directory is not within reach, or nobody can take a part of it away")
    source = "import os, time\nopen('ready', 'w').close()\nwhile not os.path.exists('go'): time.sleep(0.01)\nprint(1)"
    for _ in range(2):
        results: list[Any] = []
        thread = threading.Thread(target=lambda results=results: results.append(own.run(source)))
        before = own.processes
        thread.start()
        folder = own_folder(own)
        assert wait_for((folder / "ready").exists)
        (folder / "theirs" / "file").mkdir(parents=True)
        os.chown(folder / "theirs", 1, 1)
        (folder / "theirs").chmod(0o755)  # what it holds can be counted, and not removed
        (folder / "go").touch()
        thread.join()
        assert [(OK, "1\n")] == [(one.status, one.stdout) for one in results], results
        assert "[]\n" == own.run("import os; print(os.listdir())").stdout
        assert before != own.processes
        assert not folder.exists()


def own_folder(sandbox: Sandbox) -> Path:
    """Return the scratch directory of the only zygote."""
    (process,) = sandbox.processes
    return Path(f"/proc/{process}/cwd").readlink() / FOLDER


def test_no_more_processes_are_to_be_had(own: Sandbox) -> None:
    """Code that takes all threads there are does not end its zygote: the result is its own."""
    if own.level != "strict" or os.getuid() != 0:
        pytest.skip("only there is a limit counted for the jail alone")
    source = """
import threading, time
open("f", "w").close()  # from now on the directory is looked at
threading.stack_size(1 << 15)
started = 0
try:
    for started in range(1000):
        threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
except RuntimeError:
    time.sleep(0.3)
    print(started < 1000)
"""
    for _ in range(3):
        (zygote,) = own.processes
        (first,) = psutil.Process(zygote).children()
        resource.prlimit(first.pid, resource.RLIMIT_NPROC, (60, 60))
        own.run("pass", limits=Limits(timeout_s=59))  # its child has the limit already
        results = [own.run(source, limits=LIMITS), own.run("import os; print(os.listdir())")]
        assert [(OK, "True\n"), (OK, "[]\n")] == [(one.status, one.stdout) for one in results], results


def test_folders_of_dead_clients_are_removed_however_deep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What code made of its scratch directory before its client was killed hinders no later one."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(folders, "_HELP_S", LONG_S)
    with subprocess.Popen(["true"]) as dead:
        pass
    left = tmp_path / f"rewardkit-jail-{os.stat('/proc/self/ns/pid').st_ino}-{dead.pid}-x"
    left.mkdir(mode=0o700)
    inner = os.open(left, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=inner)
        outer, inner = inner, os.open("d", os.O_RDONLY, dir_fd=inner)
        os.close(outer)
    os.close(inner)
    try:
        remove_stale_folders()
        assert [] == list(tmp_path.iterdir())
    finally:
        subprocess.run(["rm", "-rf", left], check=True)  # it would be too deep for pytest, too


@pytest.mark.parametrize("place", ["outer", "innermost"])
def test_a_zygote_killed_under_an_evaluation(own: Sandbox, place: str) -> None:
    """The evaluation is begun again in another zygote, and its result is right."""
    where = "import os; print(os.fstat(1).st_ino)"  # each zygote has files of its own
    first = int(own.run(where).stdout)
    source = f"import os, time\nif os.fstat(1).st_ino == {first}: time.sleep(600)\nprint(6 * 7)"
    (zygote,) = own.processes
    victim = psutil.Process(zygote)
    idle = 2 if own.level == "strict" else 1  # the child that waits, and process 1 of the jail
    assert wait_for(lambda: len(psutil.Process(zygote).children(recursive=True)) == idle)
    if place == "innermost" and own.level == "strict":
        (victim,) = victim.children()  # process 1 of the jail
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(own.run(source)))
    thread.start()
    assert wait_for(lambda: len(psutil.Process(zygote).children(recursive=True)) > idle)
    victim.kill()
    thread.join()
    assert (OK, "42\n") == (results[0].status, results[0].stdout), results
    assert wait_for(lambda: not psutil.pid_exists(zygote))


def test_a_zygote_killed_every_time(own: Sandbox) -> None:
    """After some attempts the evaluation is given up as infrastructure, with a reason; the sandbox still works."""
    done = threading.Event()

    def kill() -> None:
        while not done.is_set():
            for zygote in own.processes:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(zygote, signal.SIGKILL)
            time.sleep(0.01)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        result = own.run("import time; time.sleep(600)")
        called = own.call("import time; time.sleep(600)", "f", [(1,)])
    finally:
        done.set()
        thread.join()
    assert INFRASTRUCTURE == result.status
    assert f"failed {MAX_ATTEMPTS} times" in result.error
    assert INFRASTRUCTURE == called.status
    assert [False] == [value.ok for value in called.value or []]
    assert "42\n" == own.run("print(6 * 7)").stdout


@ONE_LEVEL
def test_a_stopped_zygote_is_replaced(own: Sandbox) -> None:
    """A zygote that answers no more is ended when its time is up, and the evaluation is begun again."""

    def run_on_a_stopped_one(time_s: float) -> ExecutionResult:
        own.run("pass")
        (zygote,) = own.processes
        os.kill(zygote, signal.SIGSTOP)
        inner = psutil.Process(zygote).children()
        if own.level == "strict":
            os.kill(inner[0].pid, signal.SIGSTOP)
        result = own.run("print(6 * 7)", limits=Limits(timeout_s=time_s))
        assert not psutil.pid_exists(zygote)
        return result

    result = in_time(run_on_a_stopped_one, lambda result: result.status is not TIMEOUT, 1.0)
    assert (OK, "42\n") == (result.status, result.stdout)


CLIENT = """
import os, sys, threading, time
from sandbox import Limits, Sandbox
sandbox = Sandbox(level=sys.argv[1], workers=2, limits=Limits(timeout_s=600))
source = "import time\\nwhile True: time.sleep(1)"
for _ in range(2):
    threading.Thread(target=sandbox.run, args=(source,), daemon=True).start()
while len(sandbox.processes) < 2: time.sleep(0.01)
print("ready", *sandbox.processes, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("level", ["standard", "strict"])
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_client_leaves_nothing_running(root: Path, level: str, end: signal.Signals) -> None:
    """When the client is killed amid evaluations, zygotes and children end; its folders go at the next start."""
    environment = {**os.environ, "PYTHONPATH": str(root)}
    with subprocess.Popen(
        [sys.executable, "-c", CLIENT, level], env=environment, stdout=subprocess.PIPE, text=True
    ) as client:
        assert client.stdout is not None
        word, *zygotes = client.stdout.readline().split()
        assert "ready" == word
        assert 2 == len(zygotes)
        # each has an evaluation, the next one's child beside it, and at strict process 1 of the jail
        within = {"standard": 3, "strict": 4}[level]
        assert wait_for(lambda: len(psutil.Process(client.pid).children(recursive=True)) == 2 * within)
        below = psutil.Process(client.pid).children(recursive=True)
        folders = _folders(client.pid)
        assert 2 == len(folders)
        client.send_signal(end)
    assert [] == alive(below)
    with Sandbox(level=level, workers=1):
        assert [] == _folders(client.pid)


def _folders(client: int) -> list[Path]:
    return sorted(Path(tempfile.gettempdir()).glob(f"rewardkit-jail-*-{client}-*"))


def test_nothing_is_left_of_a_sandbox() -> None:
    """Processes, descriptors and folders are as before once a sandbox is closed, or forgotten."""
    Sandbox(workers=1).start().close()
    gc.collect()
    me = psutil.Process()
    before = (me.num_fds(), set(me.children()), len(_folders(me.pid)))
    below: list[psutil.Process] = []
    for _ in range(3):
        with Sandbox(workers=2) as sandbox:
            sandbox.run_many(["pass"] * 4)
            sandbox.run("import ctypes; ctypes.string_at(0)")
            below += [inner for one in sandbox.processes for inner in psutil.Process(one).children(recursive=True)]
    assert before == (me.num_fds(), set(me.children()), len(_folders(me.pid)))
    assert [] == alive(below)


def test_no_descriptor_of_the_client_is_passed_on(own: Sandbox) -> None:
    """A descriptor that the client left inheritable is not open in the program."""
    ours, theirs = os.pipe()
    os.set_inheritable(theirs, True)
    try:
        with Sandbox(level=str(own.level), workers=1) as sandbox:
            source = "import os\nfor n in range(5, 200):\n    try: os.fstat(n); print(n)\n    except OSError: pass"
            assert "" == sandbox.run(source).stdout
            os.close(theirs)
            theirs = -1
            os.set_blocking(ours, False)
            assert b"" == os.read(ours, 1), "a zygote holds the other end"
    finally:
        os.close(ours)
        if theirs >= 0:
            os.close(theirs)


def test_the_environment_is_not_passed_on(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the client's environment is in the program's, secrets least of all."""
    monkeypatch.setenv("REWARDKIT_SECRET", "s3cret")
    with Sandbox(level=str(sandbox.level), workers=1) as other:
        told = other.run("import os; print(dict(os.environ))").stdout
    assert "s3cret" not in told
    assert "REWARDKIT" not in told


def test_random_numbers_differ_between_evaluations(sandbox: Sandbox) -> None:
    """No evaluation can foresee what another draws."""
    drawn = [sandbox.run("import random; print(random.random())").stdout for _ in range(5)]
    assert 5 == len(set(drawn))


def test_the_numpy_profile(sandbox: Sandbox) -> None:
    """numpy can be used in its profile, and its values come back as plain ones."""
    with Sandbox(
        "numpy", level=str(sandbox.level), workers=1, limits=Limits(timeout_s=60, memory_bytes=2 << 30)
    ) as other:
        source = "import numpy as np\ndef f(n): return np.arange(n).reshape(2, -1) * 0.5"
        assert [CallValue(ok=True, value=[[0.0, 0.5], [1.0, 1.5]])] == other.call(source, "f", [(4,)]).value
        assert (
            "BREACH"
            not in other.run("import os\ntry: print('BREACH', os.listdir('/root'))\nexcept OSError: pass").stdout
        )
