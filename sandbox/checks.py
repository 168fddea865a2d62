"""Tests of a completion, evaluated outside the process that holds it.

Three kinds: calls of a function (:func:`check_functions`), assert-style test text (:func:`check_asserts`), and programs
that read standard input and write standard output (:mod:`sandbox.program_checks`). All checks of one completion share
one forked process where none of them has a time limit of its own; two completions never share one.

Covered: the completion sees arguments and input, and gives back plain values and output. It never sees an
expected value, the text of a test, or the file where a verdict is written, so nothing that it does to its own
process (its builtins, modules, frames, descriptors, exit code) makes a check pass: only the right answer does.
A verdict counts only when the tests ran to their end: a run of tests that stopped early is never a pass.

Not covered: a completion that has learnt the answers by heart, or reads them off its arguments; tests that are
passed by wrong answers; test text that runs what the completion returned (``eval``), which gives it the tester.
Where test text judges, objects of the completion's own stay in its process, and the tests act on them by number: two of
them are equal if their class says so. None of them equals a plain value.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sandbox import plain
from sandbox.equality import same
from sandbox.errors import CheckError, NotPlainError
from sandbox.languages.catalogue import language_of
from sandbox.languages.names import PYTHON, language_name
from sandbox.languages.readings import as_returned
from sandbox.reports import (
    CheckReport,
    CheckResult,
    CheckStatus,
    preview,
    refuse_empty,
    shorten,
    telling_execution,
    unfinished_status,
    with_times,
)
from sandbox.results import NO_ANSWER_CODES, TESTS_AT_FAULT, CallValue, ExecutionResult, ExecutionStatus, SuiteRun
from sandbox.shared_time import time_of_checks
from sandbox.tester_reports import read_reports
from sandbox.workers.collector import CollectorPaused

if TYPE_CHECKING:
    from sandbox.client import Sandbox
    from sandbox.languages.language import Suite
    from sandbox.languages.notation import Notation
    from sandbox.limits import Limits

Arguments = list[Any] | tuple[Any, ...] | dict[str, Any]
MAX_TESTS_BYTES = 1 << 20  # size of test text and of its setup, each


@dataclass(frozen=True, slots=True)
class FunctionCheck:
    """A call of a function, and the value that it must return.

    Attributes:
        arguments: A list or tuple of arguments, or a dict of keyword arguments; plain values.
        expected: The right value, plain, compared by :func:`~sandbox.equality.same`.
        rel_tol: How far numbers may be off, relative to the larger one: 0 or more, below 1.
        abs_tol: How far numbers may be off in any case: 0 or more.
        float_tol: How far a float may be off from an expected float, relatively or in any case: 0 or more, below 1.

    Raises:
        CheckError: An attribute makes no sense.
    """

    arguments: Arguments
    expected: Any
    rel_tol: float = 0.0
    abs_tol: float = 0.0
    float_tol: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.arguments, list | tuple | dict):
            hint = f"such as [{preview(self.arguments)}], or a dict of keyword arguments"
            raise CheckError(f"arguments={preview(self.arguments)}: expected a list of all arguments, {hint}")
        for name, most in (("rel_tol", 1.0), ("abs_tol", math.inf), ("float_tol", 1.0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < most:
                raise CheckError(f"{name}={value!r}: expected a number, 0 or more and below {most:g}")


def check_functions(
    sandbox: Sandbox,
    source: str,
    entry_point: str,
    checks: Sequence[FunctionCheck],
    *,
    limits: Limits | None = None,
    check_timeout_s: float | None = None,
    language: str = PYTHON,
) -> CheckReport:
    """Run code once, call a function of it for each check, and compare the values here, outside the jail.

    Each call gets copies of its arguments, so no other call and no comparison sees what it changes in them. Without
    ``check_timeout_s`` all calls share a process, and what ends it ends the checks; in other languages than Python the
    answers count only once all are there.

    In other languages than Python a whole number is the same as a float of its size, a tuple as a list, a set as a list
    of its members, and a text as the number that it writes where it is a key.

    Args:
        sandbox: Where the code runs.
        source: Source that defines the function.
        entry_point: The function's name, or ``"Class.method"``.
        checks: What to call it with, and what it must return.
        limits: What all of it may use together; the sandbox's own if ``None``, where with ``check_timeout_s`` the time
            is that of all checks together.
        check_timeout_s: Seconds of each check. Each then runs the code anew, in a process of its own, and one that is
            late or ends its process fails alone. ``None`` for no limit of each.
        language: What it is written in.

    Raises:
        ValueError: ``check_timeout_s`` is no number of seconds, or more than ``limits.timeout_s``.
        CheckError: There are no checks, or in another language than Python the entry point is no name of a function.
        NotPlainError: An argument or expected value is not plain, or no value of the language.
        LanguageUnavailableError: Nobody knows the language, or it does not run here.
    """
    refuse_empty(checks)
    notation = None if language_name(language) == PYTHON else language_of(language).notation
    expected_values = [_as_from_jail(number, check.expected, notation) for number, check in enumerate(checks)]
    limits = time_of_checks(limits, sandbox.limits, check_timeout_s, len(checks))
    executions, values = _call(sandbox, source, entry_point, checks, limits, check_timeout_s, language)
    results: list[CheckResult] = []
    before: ExecutionResult | None = None
    for check, expected, value, execution in zip(checks, expected_values, values, executions, strict=True):
        if notation is not None:
            value = dataclasses.replace(value, value=notation.meant(value.value, expected))
            expected = as_returned(expected, value.value, letters=notation.letters)
        status, reason = _judge_call(check, expected, value, execution, ended=execution is before)
        if not value.ok and value.error == execution.error:
            before = execution
        results.append(CheckResult(status, reason, _describe_call(entry_point, check.arguments)))
    checked = with_times(results, limits, check_timeout_s)
    if notation is not None and check_timeout_s is None:
        checked = _without_blame(checked)
    return CheckReport(checked, telling_execution(executions))


def _without_blame(results: tuple[CheckResult, ...]) -> tuple[CheckResult, ...]:
    """Return results that say of a late process whose answers count only together that no call is known to be late."""
    first, *others = results
    if first.status is not CheckStatus.TIMEOUT or not others:
        return results
    return (dataclasses.replace(first, reason=f"{first.reason}; which of the calls is late is not known"), *others)


def _call(
    sandbox: Sandbox,
    source: str,
    entry_point: str,
    checks: Sequence[FunctionCheck],
    limits: Limits,
    check_timeout_s: float | None,
    language: str,
) -> tuple[list[ExecutionResult], list[CallValue]]:
    """Return the execution in which each check's call was made, and its value."""
    calls = [check.arguments for check in checks]
    if check_timeout_s is None:
        execution = sandbox.call(source, entry_point, calls, limits=limits, language=language)
        return [execution] * len(checks), [*(execution.value or ())]
    executions = sandbox.call_each(
        source, entry_point, calls, call_timeout_s=check_timeout_s, limits=limits, language=language
    )
    return executions, [value for execution in executions for value in execution.value or ()]


def check_asserts(
    sandbox: Sandbox,
    source: str,
    tests: str | Sequence[str],
    *,
    entry_point: str | None = None,
    setup: str = "",
    helpers: str = "",
    limits: Limits | None = None,
) -> CheckReport:
    """Run test text in a jail of its own, where the code under test is called through a channel into the completion's.

    The text may hold asserts, HumanEval's ``check``, pytest functions and classes, classes of :mod:`unittest`, sessions
    of :mod:`doctest`; ``docs/how-to/reward-code.md`` lists the forms. A test that the text leaves to a runner is one
    check by its name, passed if it ends without an exception.

    Each ``assert`` that is reached is a check, passed if it held each time; asserts inside ``try`` or ``with``
    are one check together with it, and ``assert True`` is no check. A failed check does not stop the tests. If
    something else does (an exception outside the checks, the end of the completion's process, the time limit),
    the checks that were not reached, and those that might have run again, are not passed; if all others passed, the
    tests' end itself counts as a check that was not reached. Tests that can only fail by raising count as one check.
    Tests that never call the completion, or that cannot fail, are at fault.

    The completion gets copies of the arguments. Where a call returns ``None``, as functions that work in place do,
    the tests' own objects become what the call made of the copies; where it returns a value, they stay as they were.

    Args:
        sandbox: Where both run.
        source: The completion's Python source.
        tests: Test text, or a list of lines of it. A function ``check`` in it is called with the candidate, as
            HumanEval means it. Usual names that it leaves unbound, such as ``math`` and ``Counter``, are its own.
        entry_point: The function under test, or ``"Class.method"``; the tests know it as ``candidate`` and by
            its own name. ``None``: the tests call functions by the names that the completion gives them, and
            each name that the tests and the setup leave unbound is looked up in the completion.
        setup: Run before the tests, in their jail: imports and helpers.
        helpers: Code that defines more than the tests may need, such as the prompt of the completion. With an
            entry point, names that the tests and the setup leave unbound are taken from it, and from nowhere else: it
            is run in the tests' jail, and only where there are such names. Text that is not Python defines none.
        limits: What each of the two may use; the sandbox's own if ``None``.

    Raises:
        CheckError: The tests are at fault, not the completion: they do not compile, the setup raises, an argument
            cannot enter a jail, the list is empty, they cannot fail or never call the code, they ask for a library or
            fixture that is not there, or with an entry point they use a name that nothing on their side
            binds, which their text shows before the completion runs.
    """
    text = tests if isinstance(tests, str) else "\n".join(tests)
    for name, value in (("tests", text), ("setup", setup), ("helpers", helpers)):
        if len(value.encode("utf-8", "surrogatepass")) > MAX_TESTS_BYTES:
            raise CheckError(f"the {name} are {len(value):,} characters; at most {MAX_TESTS_BYTES:,} bytes are run")
    if not text.strip():
        raise CheckError("there are no checks: the tests are empty")
    if entry_point is not None and not all(part.isidentifier() for part in entry_point.split(".")):
        raise CheckError(f"entry_point={entry_point!r}: expected the name of a function, or 'Class.method'")
    limits = limits or sandbox.limits
    run = sandbox.run_asserts(source, text, entry_point=entry_point, setup=setup, helpers=helpers, limits=limits)
    return CheckReport(with_times(read_reports(run), limits), run.execution)


def check_suite(
    sandbox: Sandbox, source: str, suite: Suite, language: str, *, limits: Limits | None = None
) -> CheckReport:
    """Run tests in another language than Python in a jail of their own, where a stub asks the code in its own jail.

    The suite is one check: passed if it ends by itself with exit code 0.

    Raises:
        CheckError: The tests are at fault, not the completion: they do not compile, or cannot be run apart from it.
        LanguageUnavailableError: Nobody knows the language, or it does not run here.
    """
    run = sandbox.run_suite(source, suite, language, limits=limits)
    if run.tester is not None and run.tester.exit_code == TESTS_AT_FAULT:
        raise CheckError("the tests cannot be read, or end without a call of the completion")
    status, reason = _judge_suite(run)
    return CheckReport((CheckResult(status, reason, f"tests of {suite.entry_point}"),), run.execution)


def _judge_suite(run: SuiteRun) -> tuple[CheckStatus, str]:
    tester, execution = run.tester, run.execution
    if run.is_lost:
        lost = execution if execution.status is ExecutionStatus.INFRASTRUCTURE else tester
        return CheckStatus.INFRASTRUCTURE, lost.error if lost else ""
    if tester is None or (execution.status is not ExecutionStatus.OK and tester.status is not ExecutionStatus.OK):
        return unfinished_status(execution, ended=False), execution.error
    if tester.status is ExecutionStatus.OK:
        return CheckStatus.PASSED, ""
    if tester.exit_code in NO_ANSWER_CODES:
        return CheckStatus.ERROR, "a call was not answered"
    return unfinished_status(tester, ended=False) if _is_unfinished(tester) else CheckStatus.FAILED, tester.error


def _is_unfinished(tester: ExecutionResult) -> bool:
    return tester.status in (ExecutionStatus.TIMEOUT, ExecutionStatus.INFRASTRUCTURE)


def _judge_call(
    check: FunctionCheck, expected: object, value: CallValue, execution: ExecutionResult, ended: bool
) -> tuple[CheckStatus, str]:
    """Return a call's status and the reason; a call that the execution's end left without a value has its error."""
    if execution.status is ExecutionStatus.INFRASTRUCTURE:
        return CheckStatus.INFRASTRUCTURE, execution.error
    if value.ok:
        with CollectorPaused():
            equal = same(value.value, expected, check.rel_tol, check.abs_tol, float_tol=check.float_tol)
        if equal:
            return CheckStatus.PASSED, ""
        return CheckStatus.FAILED, f"gave {preview(value.value)}, not {preview(expected)}"
    if value.error != execution.error:
        return CheckStatus.ERROR, value.error
    return unfinished_status(execution, ended), value.error


def _as_from_jail(number: int, expected: object, notation: Notation | None) -> Any:
    """Return an expected value as it would come out of a jail; raise ``NotPlainError`` that names its check."""
    try:
        if notation is not None:
            notation.check(expected)
        return plain.decode(plain.encode(expected))
    except NotPlainError as error:
        raise NotPlainError(f"check {number}: the expected value: {error}") from None


def _describe_call(entry_point: str, arguments: Arguments) -> str:
    if isinstance(arguments, dict):
        inner = ", ".join(f"{name}={preview(value)}" for name, value in arguments.items())
    else:
        inner = ", ".join(map(preview, arguments))
    return shorten(f"{entry_point}({inner})")
