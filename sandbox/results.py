"""The results of an evaluation in a jail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class ExecutionStatus(StrEnum):
    """How an evaluation ended."""

    OK = "ok"  # by itself: a program with exit code 0, or every call made (each may have raised; see its value)
    NONZERO = "nonzero"  # by itself, with another exit code or an uncaught exception, or it did not compile
    TIMEOUT = "timeout"  # its time was up, by the clock or of the processor
    MEMORY = "memory"  # it needed more memory than it may have
    OUTPUT_LIMIT = "output_limit"  # it wrote more than it may: outputs, scratch directory or values given back
    KILLED = "killed"  # a signal ended it that nobody sent: a crash of the interpreter
    FORBIDDEN = "forbidden"  # it tried what the jail does not allow, and did not handle the refusal
    INFRASTRUCTURE = "infrastructure"  # no fault of the code: the sandbox itself failed, again and again


@dataclass(frozen=True, slots=True)
class CallValue:
    """The outcome of one call of a function in the jail.

    Attributes:
        ok: Whether the function returned a plain value.
        value: That value; ``None`` unless ``ok``.
        error: Why there is no value, such as ``"ValueError: the message"``; ``""`` if ``ok``.
        line: The line of the code at which it raised, from 1; ``None`` where it is not known.
    """

    ok: bool
    value: Any = None
    error: str = ""
    line: int | None = None


@dataclass(frozen=True, slots=True)
class ExecutionResult:
    """The outcome of one evaluation. Nothing in it is a verdict: the code chose what it printed and returned.

    Attributes:
        status: How it ended.
        exit_code: Its exit code; ``None`` where a signal ended it.
        signal: The signal that ended it; ``None`` for none.
        stdout: What it wrote to standard output, decoded with replacements, up to the limit.
        stderr: The same of standard error.
        truncated: Whether output was lost to the limit.
        value: For :meth:`~sandbox.Sandbox.call` a :class:`CallValue` for each call; otherwise ``None``.
        error: Why the status is not ``ok``, in a sentence; ``""`` if it is.
        line: The line of the code at which it failed, from 1; ``None`` where it is not known.
        duration_s: Wall-clock seconds.
        cpu_s: Seconds of processor time.
        peak_memory_bytes: The most memory it held, the interpreter's own included.
        level: The level of isolation.
    """

    status: ExecutionStatus
    exit_code: int | None
    signal: int | None
    stdout: str
    stderr: str
    truncated: bool
    value: list[CallValue] | None
    error: str
    line: int | None
    duration_s: float
    cpu_s: float
    peak_memory_bytes: int
    level: str


@dataclass(frozen=True, slots=True)
class AssertsRun:
    """What the tester of assert-style tests reported; see :func:`~sandbox.checks.check_asserts`."""

    execution: ExecutionResult  # how the completion's process ended
    lines: list[Mapping[str, Any]] = field(default_factory=list)  # the tester's reports, in order
    ended: bool = False  # whether the tester came to its own end


LATE = "not done within"
"""What the error of an evaluation begins with whose time was up by the clock; the seconds that it had follow."""
NO_COMPILE = "it does not compile: "
"""What the error of a program begins with that its compiler refused; its ``stderr`` has the compiler's messages."""
NO_ANSWER_CODES = range(71, 77)
"""Exit codes by which a suite's stub says that the completion gave no answer."""
TESTS_AT_FAULT = 77
"""The exit code by which it says that the tests are at fault: they cannot be read, or end without a call."""


@dataclass(frozen=True, slots=True)
class SuiteRun:
    """How a test suite in another language ended, and the completion that it called; see ``check_suite``."""

    execution: ExecutionResult  # the completion's process
    tester: ExecutionResult | None  # the suite's; None where the completion does not compile

    @property
    def is_lost(self) -> bool:
        """Whether the sandbox itself failed, so that nothing is known about the completion."""
        ends = (self.execution, self.tester)
        return any(end is not None and end.status is ExecutionStatus.INFRASTRUCTURE for end in ends)


def printable(text: str) -> str:
    """Return text of untrusted code as UTF-8 can hold it: lone surrogates are escaped."""
    return text.encode("utf-8", "backslashreplace").decode()
