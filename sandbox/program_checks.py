"""Checks of programs, which read standard input and write standard output: see :func:`check_programs`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from sandbox.errors import CheckError
from sandbox.languages.names import PYTHON
from sandbox.matching.checker import CheckedOutput, Checker, CheckerAnswer, ask_checker, prove_checker
from sandbox.matching.outputs import OutputMatch, output_matcher
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
from sandbox.results import ExecutionResult, ExecutionStatus
from sandbox.shared_time import time_of_checks

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
                hint = "programs read and write text, and arguments of a function need an entry_point"
                raise CheckError(f"{name}={preview(getattr(self, name))}: expected text; {hint}")


def check_programs(
    sandbox: Sandbox,
    source: str,
    checks: Sequence[ProgramCheck],
    *,
    match: str = OutputMatch.TOKENS,
    tolerance: float | None = None,
    checker: str | None = None,
    limits: Limits | None = None,
    check_timeout_s: float | None = None,
    language: str = PYTHON,
    checker_language: str = PYTHON,
) -> CheckReport:
    """Run a program once for each check and compare its output here, outside the jail.

    A check is passed if the program ended by itself with exit code 0 and its output is right. The runs share the time
    limit, and quick ones of Python a process, each with names of its own. Without ``check_timeout_s`` nothing is run
    after a check at which the time was up.

    Args:
        sandbox: Where the program runs.
        source: Its source.
        checks: What it reads, and what it must write.
        match: The rule by which its output is right, of :class:`~sandbox.matching.outputs.OutputMatch`: by default the
            same tokens, whole numbers exactly and decimals within the tolerance.
        tolerance: How far a number may be off, absolutely or relative to the expected one, from 0 to below 1; 1e-6 if
            ``None``.
        checker: Source that judges the outputs in place of ``match``, in a jail of its own: it defines
            ``check(input, output, expected)``, which returns a bool or a share from 0 to 1, or is a program, as
            :func:`~sandbox.matching.checker.ask_checker` says. It must be able to judge the expected outputs; then an
            output that it cannot judge is wrong.
        limits: What all runs may use together, and the checker again; the sandbox's own if ``None``, where with
            ``check_timeout_s`` the time is that of all checks together.
        check_timeout_s: Seconds of each check, and of the checker for each output: a late check is failed, and those
            after it are run all the same while any of the time of all runs is left. ``None`` for no limit of each.
        language: What the program is written in.
        checker_language: What the checker is written in; in another language than Python it is a program.

    Raises:
        ValueError: ``check_timeout_s`` is no number of seconds, or more than ``limits.timeout_s``.
        LanguageUnavailableError: Nobody knows a language, or it does not run here.
        CheckError: There are no checks, there is no such rule, the tolerance makes no sense, or the checker is at
            fault, which shows before the program runs.
    """
    refuse_empty(checks)
    matches = output_matcher(match, tolerance)
    limits = time_of_checks(limits, sandbox.limits, check_timeout_s, len(checks))
    inputs = [check.stdin for check in checks]
    judge = None if checker is None else Checker(checker, checker_language)
    if judge is not None:
        prove_checker(sandbox, judge, inputs, [check.stdout for check in checks], limits, check_timeout_s)
    executions = sandbox.run_inputs(source, inputs, limits=limits, run_timeout_s=check_timeout_s, language=language)
    results: list[CheckResult] = []
    for check, execution, before in zip(checks, executions, [None, *executions[:-1]], strict=True):
        status, reason = _judge_run(check, execution, matches, ended=execution is before)
        results.append(CheckResult(status, reason, f"stdin {preview(check.stdin)}"))
    if judge is not None:
        ask = partial(ask_checker, sandbox, judge, limits=limits, output_timeout_s=check_timeout_s)
        results = _checked_results(ask, checks, executions, results)
    return CheckReport(with_times(results, limits, check_timeout_s), telling_execution(executions))


def _checked_results(
    ask: Callable[[Sequence[CheckedOutput]], Iterator[CheckerAnswer]],
    checks: Sequence[ProgramCheck],
    executions: Sequence[ExecutionResult],
    results: Sequence[CheckResult],
) -> list[CheckResult]:
    """Return the results with the checker's word on each output that a run wrote to its end."""
    whole = [execution.status is ExecutionStatus.OK and not execution.truncated for execution in executions]
    outputs = [
        CheckedOutput(check.stdin, execution.stdout, check.stdout)
        for check, execution, is_whole in zip(checks, executions, whole, strict=True)
        if is_whole
    ]
    answers = ask(outputs)
    return [
        _checked_result(next(answers), result) if is_whole else result
        for result, is_whole in zip(results, whole, strict=True)
    ]


def _checked_result(answer: CheckerAnswer, result: CheckResult) -> CheckResult:
    if answer.is_lost:
        return CheckResult(CheckStatus.INFRASTRUCTURE, answer.fault, result.label)
    if answer.share is None:
        reason = f"the checker cannot judge the output: {answer.fault}"
        return CheckResult(CheckStatus.FAILED, reason, result.label, 0.0)
    if answer.share == 1:
        return CheckResult(CheckStatus.PASSED, "", result.label, 1.0)
    return CheckResult(CheckStatus.FAILED, f"the checker gives {answer.share:g}", result.label, answer.share)


def _judge_run(
    check: ProgramCheck, execution: ExecutionResult, matches: Callable[[str, str], bool], *, ended: bool
) -> tuple[CheckStatus, str]:
    if execution.status is not ExecutionStatus.OK:
        return unfinished_status(execution, ended), execution.error
    if not execution.truncated and matches(execution.stdout, check.stdout):
        return CheckStatus.PASSED, ""
    return CheckStatus.FAILED, f"wrote {preview(execution.stdout)}, not {preview(check.stdout)}"
