"""Checks of programs, which read standard input and write standard output: see :func:`check_programs`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandbox.errors import CheckError
from sandbox.reports import CheckReport, CheckResult, CheckStatus, preview, refuse_empty, unfinished_status
from sandbox.results import ExecutionResult, ExecutionStatus

if TYPE_CHECKING:
    from sandbox.client import Sandbox
    from sandbox.limits import Limits


@dataclass(frozen=True, slots=True)
class ProgramCheck:
    """The input of a program, and the output that it must write.

    Attributes:
        stdin: Its standard input.
        stdout: The right standard output. White space at the ends of lines and empty lines at the end of the
            output do not matter; all else does. What the program writes to standard error does not matter.

    Raises:
        CheckError: An attribute is not text.
    """

    stdin: str
    stdout: str

    def __post_init__(self) -> None:
        for name in ("stdin", "stdout"):
            if not isinstance(getattr(self, name), str):
                raise CheckError(f"{name}={preview(getattr(self, name))}: expected text")


def check_programs(
    sandbox: Sandbox, source: str, checks: Sequence[ProgramCheck], *, limits: Limits | None = None
) -> CheckReport:
    """Run a program once for each check and compare its output here, outside the jail.

    A check is passed if the program ended by itself with exit code 0 and its output is right, by the rule at
    :class:`ProgramCheck`. The runs share a process, each with names of its own, and the time limit.

    Args:
        sandbox: Where the program runs.
        source: Its Python source.
        checks: What it reads, and what it must write.
        limits: What all runs may use together; the sandbox's own if ``None``.

    Raises:
        CheckError: There are no checks.
    """
    refuse_empty(checks)
    executions = sandbox.run_inputs(source, [check.stdin for check in checks], limits=limits)
    results = []
    for check, execution, before in zip(checks, executions, [None, *executions[:-1]], strict=True):
        status, reason = _judge_run(check, execution, ended=execution is before)
        results.append(CheckResult(status, reason, f"stdin {preview(check.stdin)}"))
    # the report shows a failure of the sandbox, else the first run that did not end well
    lost = (execution for execution in executions if execution.status is ExecutionStatus.INFRASTRUCTURE)
    failed = (execution for execution in executions if execution.status is not ExecutionStatus.OK)
    return CheckReport(tuple(results), next(lost, None) or next(failed, None) or executions[-1])


def _judge_run(check: ProgramCheck, execution: ExecutionResult, *, ended: bool) -> tuple[CheckStatus, str]:
    if execution.status is not ExecutionStatus.OK:
        return unfinished_status(execution, ended), execution.error
    if not execution.truncated and _same_lines(execution.stdout, check.stdout):
        return CheckStatus.PASSED, ""
    return CheckStatus.FAILED, f"wrote {preview(execution.stdout)}, not {preview(check.stdout)}"


def _same_lines(text: str, expected: str) -> bool:
    text, expected = text.rstrip(), expected.rstrip()
    if text.count("\n") != expected.count("\n"):  # of long outputs most differ here already
        return False
    pairs = zip(text.split("\n"), expected.split("\n"), strict=True)
    return all(line.rstrip() == expected_line.rstrip() for line, expected_line in pairs)
