"""How a program ended, as a result: the wait status and the client's own looks decide, and nothing that it printed.

What a runtime says when its memory is used up stands in output that the program could have written itself: it gives
a failure its name and makes none of a success.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence

from sandbox.programs.launcher import Ending
from sandbox.results import LATE, ExecutionResult, ExecutionStatus

_NEARLY = 0.95  # of the memory: who ended there, ended for want of it
_BY_MEMORY = frozenset({signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGTRAP, signal.SIGILL, signal.SIGKILL})


def result_of(
    ending: Ending, memory_bytes: int, output_bytes: int, timeout_s: float, memory_texts: Sequence[str], level: str
) -> ExecutionResult:
    """Return the result of a program that might use so much, whose runtime has these texts for a want of memory."""
    ended_by = os.WTERMSIG(ending.status) if os.WIFSIGNALED(ending.status) else None
    code = os.WEXITSTATUS(ending.status) if os.WIFEXITED(ending.status) else None
    truncated = max(len(ending.stdout), len(ending.stderr)) > output_bytes
    stdout, stderr = (text[:output_bytes].decode("utf-8", "replace") for text in (ending.stdout, ending.stderr))
    is_full = ending.peak_bytes >= _NEARLY * memory_bytes or any(text in stderr for text in memory_texts)
    if ending.reason == "timeout" or ended_by == signal.SIGXCPU:
        status, error = ExecutionStatus.TIMEOUT, f"{LATE} {timeout_s:.3g} s"
    elif ending.reason == "files":
        status, error = ExecutionStatus.OUTPUT_LIMIT, "more files in its directory than it may have"
    elif ending.reason == "stopped":
        status, error = ExecutionStatus.OK, ""  # its tester was done
    elif ending.reason == "tasks":
        status, error = ExecutionStatus.FORBIDDEN, "more processes and threads than its language needs"
    elif truncated or ending.reason == "output" or ended_by == signal.SIGXFSZ:
        status, error = ExecutionStatus.OUTPUT_LIMIT, f"more than {output_bytes:,} bytes of output"
    elif ending.reason == "memory" or (is_full and (code or ended_by in _BY_MEMORY)):
        status, error = ExecutionStatus.MEMORY, f"it may have {memory_bytes:,} bytes of memory"
    elif ended_by == signal.SIGKILL:
        status, error = ExecutionStatus.MEMORY, "the kernel ended it, most likely for want of memory"
    elif ended_by == signal.SIGSYS:
        status, error = ExecutionStatus.FORBIDDEN, "a system call of another architecture"
    elif ended_by is not None:
        status, error = ExecutionStatus.KILLED, f"ended by {_name_of(ended_by)}"
    elif code:
        status, error = ExecutionStatus.NONZERO, _last_words(stderr) or f"exit code {code}"
    else:
        status, error = ExecutionStatus.OK, ""
    return ExecutionResult(
        status=status,
        exit_code=code,
        signal=ended_by,
        stdout=stdout,
        stderr=stderr,
        truncated=truncated,
        value=None,
        error=error,
        line=None,
        duration_s=ending.duration_s,
        cpu_s=ending.cpu_s,
        peak_memory_bytes=ending.peak_bytes,
        level=level,
    )


def _name_of(number: int) -> str:
    return signal.Signals(number).name if number in list(signal.Signals) else f"signal {number}"


def _last_words(text: str) -> str:
    """Return the last line that speaks of an error, or else the last that says something; 300 characters of it."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.casefold() or "exception" in line.casefold()]
    return next(reversed(errors or lines), "")[:300]
