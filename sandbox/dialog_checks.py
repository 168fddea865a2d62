"""Interactive programs: each talks with an interactor of the row, which runs in a jail of its own and judges it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sandbox.errors import CheckError
from sandbox.reports import CheckReport, CheckResult, CheckStatus, preview, refuse_empty
from sandbox.results import AssertsRun, ExecutionResult, ExecutionStatus, printable

if TYPE_CHECKING:
    from sandbox.client import Sandbox
    from sandbox.limits import Limits
    from sandbox.program_checks import ProgramCheck


def check_dialogs(
    sandbox: Sandbox,
    source: str,
    checks: Sequence[ProgramCheck],
    interactor: str,
    *,
    limits: Limits | None = None,
) -> CheckReport:
    """Run a program once for each check, in a dialog with an interactor that says how right it is.

    The interactor alone decides; how the program ends does not matter. What goes wrong in it before it first waits for
    the program, by reading or by writing more than fits, is its own fault; afterwards it is the program's, which may
    have written anything. An answer that is no share is the interactor's fault always.

    Args:
        sandbox: Where both run, each in a process of its own.
        source: The program's Python source.
        checks: What the interactor is told: input and expected output. The program sees neither.
        interactor: Python source that defines ``interact(input, expected, read, write)``: ``read()`` returns the
            program's next line, or an empty text once it has ended, ``write(text)`` sends it a line. It returns a bool
            or a share from 0 to 1.
        limits: What all dialogs may use together; the sandbox's own if ``None``.

    Raises:
        CheckError: There are no checks, or the interactor is at fault; the message names the check.
    """
    refuse_empty(checks)
    limits = limits or sandbox.limits
    deadline = time.monotonic() + limits.timeout_s
    results: list[CheckResult] = []
    executions: list[ExecutionResult] = []
    for number, check in enumerate(checks):
        label = f"input {preview(check.stdin)}"
        if results and results[-1].status is CheckStatus.TIMEOUT:
            results.append(CheckResult(CheckStatus.NOT_REACHED, "no time was left", label))
            continue
        run = sandbox.run_dialog(source, interactor, check.stdin, check.stdout, limits=limits.until(deadline))
        executions.append(run.execution)
        results.append(_result(run, number, label))
    failed = (execution for execution in executions if execution.status is not ExecutionStatus.OK)
    return CheckReport(tuple(results), next(failed, executions[-1]))


def _result(run: AssertsRun, number: int, label: str) -> CheckResult:
    execution = run.execution
    if execution.status is ExecutionStatus.INFRASTRUCTURE:
        return CheckResult(CheckStatus.INFRASTRUCTURE, execution.error, label)
    report: Mapping[str, Any] = run.lines[-1] if run.lines else {}
    share = report.get("share")
    if isinstance(share, float):
        reason = f"the interactor gives {share:g}" + (f"; the program: {execution.error}" if execution.error else "")
        status = CheckStatus.PASSED if share == 1 else CheckStatus.FAILED
        return CheckResult(status, "" if share == 1 else reason, label, share)
    fault = _fault(report)
    if not fault and _is_ended_by_program(execution):
        return CheckResult(CheckStatus.ERROR, execution.error, label)
    if "odd" in report or not any("waiting" in line for line in run.lines):
        reason = fault or execution.error or "it ended without an answer"
        raise CheckError(f"the interactor is at fault in check {number}: {reason}")
    if execution.status is ExecutionStatus.TIMEOUT:
        return CheckResult(CheckStatus.TIMEOUT, execution.error, label)
    reason = fault or "it ended without an answer"
    reason += f"; the program: {execution.error}" if execution.error else ""
    return CheckResult(CheckStatus.FAILED, f"the interactor could not go on: {reason}", label)


def _is_ended_by_program(execution: ExecutionResult) -> bool:
    """Return whether the program alone ended the dialog: it is too large, or its output is, which ends both."""
    is_unrun = execution.exit_code is None and execution.signal is None
    return is_unrun or execution.status is ExecutionStatus.OUTPUT_LIMIT


def _fault(report: Mapping[str, Any]) -> str:
    if "odd" in report:
        return f"it returned {report['odd']}: expected a bool or a share from 0 to 1"
    raised = report.get("raised")
    return printable(f"{raised.get('type')}: {raised.get('message')}") if isinstance(raised, dict) else ""
