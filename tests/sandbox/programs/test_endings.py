"""How a program's end is read: by the wait status and the client's looks; its words name a failure and excuse none."""

from __future__ import annotations

import signal

import pytest

from sandbox import ExecutionStatus
from sandbox.programs.endings import result_of
from sandbox.programs.launcher import Ending

MEMORY_BYTES, OUTPUT_BYTES = 1000, 100
EXITS = {code: code << 8 for code in (0, 1, 7)}


def ending(
    status: int, reason: str = "", stderr: bytes = b"", peak_bytes: int = 10, stdout: bytes = b"", *, taken: None = None
) -> Ending:
    return Ending(status, reason, 0.5, 0.25, peak_bytes, stdout, stderr, taken)


@pytest.mark.parametrize(
    ("end", "status"),
    [
        (ending(EXITS[0]), ExecutionStatus.OK),
        (ending(EXITS[0], stderr=b"out of room"), ExecutionStatus.OK),
        (ending(EXITS[7]), ExecutionStatus.NONZERO),
        (ending(EXITS[1], stderr=b"out of room"), ExecutionStatus.MEMORY),
        (ending(EXITS[1], peak_bytes=960), ExecutionStatus.MEMORY),
        (ending(int(signal.SIGABRT)), ExecutionStatus.KILLED),
        (ending(int(signal.SIGABRT), peak_bytes=960), ExecutionStatus.MEMORY),
        (ending(int(signal.SIGKILL)), ExecutionStatus.MEMORY),
        (ending(int(signal.SIGXCPU)), ExecutionStatus.TIMEOUT),
        (ending(int(signal.SIGXFSZ)), ExecutionStatus.OUTPUT_LIMIT),
        (ending(int(signal.SIGSYS)), ExecutionStatus.FORBIDDEN),
        (ending(int(signal.SIGKILL), "timeout"), ExecutionStatus.TIMEOUT),
        (ending(int(signal.SIGKILL), "memory"), ExecutionStatus.MEMORY),
        (ending(int(signal.SIGKILL), "tasks"), ExecutionStatus.FORBIDDEN),
        (ending(int(signal.SIGKILL), "output"), ExecutionStatus.OUTPUT_LIMIT),
        (ending(int(signal.SIGKILL), "stopped"), ExecutionStatus.OK),
        (ending(EXITS[0], stdout=b"x" * 101), ExecutionStatus.OUTPUT_LIMIT),
    ],
)
def test_how_a_program_ended(end: Ending, status: ExecutionStatus) -> None:
    """One row for each end that the kernel or the client can tell."""
    assert status == result_of(end, MEMORY_BYTES, OUTPUT_BYTES, 1.0, ["out of room"], "strict").status


@pytest.mark.parametrize(
    ("stderr", "error"),
    [
        ("Uncaught:\nTypeError: no\n    at main\n\nNode.js v20.20.2\n", "TypeError: no"),
        ("main.rb:1: syntax error, unexpected '}'\n}\n^\n", "main.rb:1: syntax error, unexpected '}'"),
        ("something\nelse\n", "else"),
        ("", "exit code 1"),
    ],
)
def test_the_error_is_the_line_that_speaks_of_one(stderr: str, error: str) -> None:
    """Runtimes end with their version or a mark."""
    result = result_of(ending(EXITS[1], stderr=stderr.encode()), MEMORY_BYTES, 10_000, 1.0, [], "strict")
    assert error == result.error
