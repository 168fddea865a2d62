"""What the checks of a completion come to: a result for each check, and the report of all of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from sandbox.errors import CheckError
from sandbox.limits import Limits
from sandbox.results import LATE, ExecutionResult, ExecutionStatus

_MAX_SHOWN = 200


class CheckStatus(StrEnum):
    """The outcome of one check."""

    PASSED = "passed"  # the answer was right
    FAILED = "failed"  # there was an answer, and it was wrong
    ERROR = "error"  # there was no answer: the code raised, ended its process, or gave back what is not plain
    TIMEOUT = "timeout"  # the time was up during this check
    NOT_REACHED = "not_reached"  # an earlier check ended the run
    INFRASTRUCTURE = "infrastructure"  # the sandbox itself failed, so nothing is known about the code


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check.

    Attributes:
        status: Its outcome.
        reason: Why it was not passed, in a sentence; ``""`` if it was.
        label: Which check it is: the call, the input, the text of the assert, shortened, or the name of a test.
        share: How right the answer is, 0 to 1, where a checker said it; ``None`` where the status says all.
        is_test: Whether the label is the name of a test function or method.
    """

    status: CheckStatus
    reason: str
    label: str
    share: float | None = None
    is_test: bool = False

    @property
    def credit(self) -> float:
        """The checker's share, or else 1 for a check that was passed and 0 for any other."""
        return float(self.status is CheckStatus.PASSED) if self.share is None else self.share


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The results of all checks of one completion.

    Attributes:
        checks: A result for each check, in order.
        execution: How the completion's process ended; of several programs, the first that did not end well.
            ``infrastructure`` means that nothing was learnt about the completion.
    """

    checks: tuple[CheckResult, ...]
    execution: ExecutionResult

    @property
    def passed(self) -> int:
        """How many checks were passed."""
        return sum(check.status is CheckStatus.PASSED for check in self.checks)

    @property
    def total(self) -> int:
        """How many checks there were."""
        return len(self.checks)

    @property
    def all_passed(self) -> bool:
        """Whether there was a check, and all were passed."""
        return self.total > 0 and self.passed == self.total


def unfinished_status(execution: ExecutionResult, ended: bool) -> CheckStatus:
    """Return the status of a check without an answer: its process ended in it, or earlier (``ended``)."""
    if execution.status is ExecutionStatus.INFRASTRUCTURE:
        return CheckStatus.INFRASTRUCTURE
    if ended:
        return CheckStatus.NOT_REACHED
    return CheckStatus.TIMEOUT if execution.status is ExecutionStatus.TIMEOUT else CheckStatus.ERROR


def telling_execution(executions: Sequence[ExecutionResult]) -> ExecutionResult:
    """Return the execution that a report shows: a failure of the sandbox, else the first that did not end well."""
    lost = (execution for execution in executions if execution.status is ExecutionStatus.INFRASTRUCTURE)
    failed = (execution for execution in executions if execution.status is not ExecutionStatus.OK)
    return next(lost, None) or next(failed, None) or executions[-1]


def with_times(
    results: Sequence[CheckResult], limits: Limits, check_timeout_s: float | None = None
) -> tuple[CheckResult, ...]:
    """Return results whose reasons say whose time was up: that of a check, or what all checks share.

    Args:
        results: All checks of a completion.
        limits: What they may use together.
        check_timeout_s: Seconds of each; ``None`` where they have no limits of their own.
    """
    if len(results) == 1:
        return tuple(results)
    own_s = limits.timeout_s if check_timeout_s is None else check_timeout_s
    return tuple(
        dataclasses.replace(result, reason=_time_reason(result, own_s, limits, is_shared=check_timeout_s is None))
        for result in results
    )


def _time_reason(result: CheckResult, own_s: float, limits: Limits, *, is_shared: bool) -> str:
    if not result.reason.startswith(LATE):
        return result.reason
    if result.status is CheckStatus.NOT_REACHED:
        return "the time of all checks was used up"
    if result.status is not CheckStatus.TIMEOUT:
        return result.reason
    if result.reason != f"{LATE} {own_s:.3g} s":
        return f"{result.reason}, what was left of {limits.timeout_s:.3g} s for all checks"
    return f"{result.reason} for all checks" if is_shared else result.reason


def refuse_empty(checks: Sequence[object]) -> None:
    """Raise ``CheckError`` where there are no checks."""
    if not checks:
        raise CheckError("there are no checks: the list is empty")


def preview(value: object) -> str:
    """Return a value as a reason or label shows it."""
    try:
        return shorten(repr(value[: _MAX_SHOWN + 1] if isinstance(value, str | bytes | bytearray) else value))
    except (ValueError, RecursionError):  # an integer of very many digits
        return f"a very long {type(value).__name__}"


def shorten(text: str) -> str:
    """Return a text, cut where it is longer than a reason or label may be."""
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 3] + "..."
