"""What a tester reported of test text, read as results of checks.

The tester writes lines that :func:`sandbox.inside.asserts.run` lists; the completion's process has no part in them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sandbox.errors import CheckError, SharedProcessError
from sandbox.reports import CheckResult, CheckStatus, unfinished_status
from sandbox.results import AssertsRun, ExecutionStatus, printable

Report = Mapping[str, Any]


@dataclass(slots=True)
class _Lines:
    """The lines of one tester: what it planned, what it reported, and how it ended."""

    plan: list[tuple[str, bool]] = field(default_factory=list)
    checks: dict[int, Report] = field(default_factory=dict)
    labels: list[str] | None = None  # of the tests that it collected; ``None`` before it had
    cases: dict[str, Report] = field(default_factory=dict)
    end: Report = field(default_factory=dict)


def read_reports(run: AssertsRun) -> tuple[CheckResult, ...]:
    """Return a result for each check of test text; raise ``CheckError`` where the tests are at fault."""
    lines = _read_lines(run)
    results = [_result(lines.plan[number][0], lines.checks[number]) for number in sorted(lines.checks)]
    results += [_result(label, report, is_test=True) for label, report in lines.cases.items()]
    if run.ended and "done" in lines.end:  # asserts and tests that were not reached do not count
        if not lines.plan and not results:
            return (CheckResult(CheckStatus.PASSED, "", "the end of the tests"),)
        label = lines.plan[0][0] if lines.plan else "a test"
        return tuple(results) or (CheckResult(CheckStatus.NOT_REACHED, "the tests ended without any assert", label),)
    status, reason = _why_stopped(run, lines.end)
    return _results_until(lines, status, reason)


def _read_lines(run: AssertsRun) -> _Lines:
    lines = _Lines()
    is_planned = False
    for line in run.lines:
        if "tests_fault" in line or ("fault" in line and not is_planned):
            kind = SharedProcessError if line.get("is_shared") else CheckError
            raise kind(f"the tests are at fault, not the completion: {_fault(line)}")
        if "plan" in line:
            lines.plan = [(text, again) for text, again in line["plan"]]
            is_planned = True  # from here on the tester reads what the completion sends: what breaks it is no fault
        elif "cases" in line:
            lines.labels = list(line["cases"])
        elif "case" in line:
            if not line["passed"] or line["case"] not in lines.cases:
                lines.cases[line["case"]] = line
        elif "check" not in line:
            lines.end = line
        elif not line["passed"] or line["check"] not in lines.checks:
            lines.checks[line["check"]] = line
    return lines


def _results_until(lines: _Lines, status: CheckStatus, reason: str) -> tuple[CheckResult, ...]:
    """Return the results of tests that stopped: the first check without a report has the reason, and others follow.

    Once tests were collected, the text itself had come to its end, so its asserts without a report do not count.
    """
    later = status if status is CheckStatus.INFRASTRUCTURE else CheckStatus.NOT_REACHED
    results: list[CheckResult] = []

    def add(label: str, report: Report | None, *, certain: bool, is_test: bool) -> None:
        nonlocal status
        if report is not None and (certain or not report["passed"]):
            results.append(_result(label, report, is_test=is_test))
        else:
            results.append(CheckResult(status, reason, label, is_test=is_test))
            status = later

    for number, (text, again) in enumerate(lines.plan):
        if lines.labels is None or number in lines.checks:
            add(text, lines.checks.get(number), certain=not again or lines.labels is not None, is_test=False)
    for label in dict.fromkeys([*lines.cases, *(lines.labels or ())]):
        add(label, lines.cases.get(label), certain=True, is_test=True)
    if all(result.status is CheckStatus.PASSED for result in results):
        results.append(CheckResult(status, reason, "the end of the tests"))
    return tuple(results)


def _result(label: str, report: Report, *, is_test: bool = False) -> CheckResult:
    if report["passed"] is True:
        return CheckResult(CheckStatus.PASSED, "", label, is_test=is_test)
    reason = ": ".join(part for part in (report.get("last"), report.get("why")) if part)
    return CheckResult(CheckStatus.FAILED, printable(reason) or "it does not hold", label, is_test=is_test)


def _why_stopped(run: AssertsRun, end: Report) -> tuple[CheckStatus, str]:
    """Return the status of the check at which the tests stopped before their end, and the reason."""
    execution = run.execution
    if execution.status in (ExecutionStatus.INFRASTRUCTURE, ExecutionStatus.TIMEOUT):
        return unfinished_status(execution, ended=False), execution.error
    if "load" in end:
        return CheckStatus.ERROR, execution.error or "the code could not be loaded"
    if "missing" in end:
        return CheckStatus.ERROR, f"the code defines no {end['missing']!r}"
    if "gone" in end:
        during = f" during {end['gone']}" if end["gone"] else " while it was loaded"
        how = execution.error or f"it ended its process (exit code {execution.exit_code})"
        return CheckStatus.ERROR, f"{how},{during}"
    if "stopped" in end:
        return CheckStatus.ERROR, f"{_fault(end)} (last: {end.get('last')})" if end.get("last") else _fault(end)
    return CheckStatus.ERROR, execution.error or "the tests did not come to their end"


def _fault(line: Report) -> str:
    """Return the text of the exception that the tester reported."""
    for name in ("tests_fault", "stopped"):
        raised = line.get(name)
        if isinstance(raised, dict):
            is_placed = not raised.get("line") or f"line {raised['line']})" in str(raised.get("message"))
            where = "" if is_placed else f" (line {raised['line']})"
            return printable(f"{raised.get('type')}: {raised.get('message')}{where}")
    return str(line.get("fault"))
