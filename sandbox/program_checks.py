"""Checks of programs, which read standard input and write standard output: see :func:`check_programs`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandbox.errors import CheckError
from sandbox.matching.outputs import OutputMatch, output_matcher
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
        stdout: The right standard output. What the program writes to standard error does not matter.

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
    sandbox: Sandbox,
    source: str,
    checks: Sequence[ProgramCheck],
    *,
    match: str = OutputMatch.TOKENS,
    tolerance: float | None = None,
    limits: Limits | None = None,
) -> CheckReport:
    """Run a program once for each check and compare its output here, outside the jail.

    A check is passed if the program ended by itself with exit code 0 and its output is right. The runs share a process,
    each with names of its own, and the time limit.

    Args:
        sandbox: Where the program runs.
        source: Its Python source.
        checks: What it reads, and what it must write.
        match: The rule by which its output is right, of :class:`~sandbox.matching.outputs.OutputMatch`: by default the
            same tokens, whole numbers exactly and decimals within the tolerance.
        tolerance: How far a number may be off, absolutely or relative to the expected one, from 0 to below 1; 1e-6 if
            ``None``.
        limits: What all runs may use together; the sandbox's own if ``None``.

    Raises:
        CheckError: There are no checks, there is no such rule, or the tolerance makes no sense.
    """
    refuse_empty(checks)
    matches = output_matcher(match, tolerance)
    executions = sandbox.run_inputs(source, [check.stdin for check in checks], limits=limits)
    results = []
    for check, execution, before in zip(checks, executions, [None, *executions[:-1]], strict=True):
        status, reason = _judge_run(check, execution, matches, ended=execution is before)
        results.append(CheckResult(status, reason, f"stdin {preview(check.stdin)}"))
    # the report shows a failure of the sandbox, else the first run that did not end well
    lost = (execution for execution in executions if execution.status is ExecutionStatus.INFRASTRUCTURE)
    failed = (execution for execution in executions if execution.status is not ExecutionStatus.OK)
    return CheckReport(tuple(results), next(lost, None) or next(failed, None) or executions[-1])


def _judge_run(
    check: ProgramCheck, execution: ExecutionResult, matches: Callable[[str, str], bool], *, ended: bool
) -> tuple[CheckStatus, str]:
    if execution.status is not ExecutionStatus.OK:
        return unfinished_status(execution, ended), execution.error
    if not execution.truncated and matches(execution.stdout, check.stdout):
        return CheckStatus.PASSED, ""
    return CheckStatus.FAILED, f"wrote {preview(execution.stdout)}, not {preview(check.stdout)}"
