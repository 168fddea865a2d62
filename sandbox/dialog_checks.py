"""Interactive programs: each talks with an interactor of the row, which runs in a jail of its own and judges it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sandbox.errors import CheckError
from sandbox.reports import (
    CheckReport,
    CheckResult,
    CheckStatus,
    preview,
    refuse_empty,
    telling_execution,
    unfinished_status,
    with_times,
)
from sandbox.results import AssertsRun, ExecutionResult, ExecutionStatus, printable
from sandbox.shared_time import SharedTime, time_of_checks

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
    check_timeout_s: float | None = None,
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
        limits: What all dialogs may use together; the sandbox's own if ``None``, where with ``check_timeout_s`` the
            time is that of all checks together.
        check_timeout_s: Seconds of each dialog: a late one is failed, and those after it are held all the same while
            any of the time of all is left. ``None`` for no limit of each.

    Raises:
        ValueError: ``check_timeout_s`` is no number of seconds, or more than ``limits.timeout_s``.
        CheckError: There are no checks, or the interactor is at fault; the message names the check.
    """
    refuse_empty(checks)
    limits = time_of_checks(limits, sandbox.limits, check_timeout_s, len(checks))
    own_s = limits.timeout_s if check_timeout_s is None else check_timeout_s
    shared = SharedTime(limits, own_s)
    results: list[CheckResult] = []
    executions: list[ExecutionResult] = []
    for number, check in enumerate(checks):
        label = f"input {preview(check.stdin)}"
        if executions and shared.ends_with(executions[-1]):
            results.append(CheckResult(unfinished_status(executions[-1], ended=True), executions[-1].error, label))
            continue
        rest = shared.next_limits()
        run = sandbox.run_dialog(source, interactor, check.stdin, check.stdout, limits=rest)
        shared.charge(run.execution)
        executions.append(run.execution)
        results.append(_result(run, number, label, had_own_time=rest.timeout_s >= own_s))
    return CheckReport(with_times(results, limits, check_timeout_s), telling_execution(executions))


def _result(run: AssertsRun, number: int, label: str, *, had_own_time: bool) -> CheckResult:
    """Return the result of a dialog; an interactor that had only what earlier dialogs left is not at fault for it."""
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
    if execution.status is ExecutionStatus.TIMEOUT and "odd" not in report and not had_own_time:
        return CheckResult(CheckStatus.TIMEOUT, execution.error, label)
    if "odd" in report or not any("waiting" in line for line in run.lines):
        is_late = execution.status is ExecutionStatus.TIMEOUT  # any other error is the program's, left without it
        reason = fault or (is_late and execution.error) or "it ended without an answer"
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
