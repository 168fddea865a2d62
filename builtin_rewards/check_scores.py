"""What checks of code come to as a score, and the time that they have: together, or each of its own."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from rewardkit import InfrastructureError, Score
from sandbox import CheckResult, CheckStatus, Limits

LIMITS = Limits(timeout_s=10.0)  # What one completion may use, all its checks together
DEADLINE_S = 60.0  # Seconds of one call; above the jail's own limit, which ends slow code
MOST_TOGETHER_S = 120.0  # Seconds of all checks of a completion where each has a limit and nobody limits all of them
MAX_NAMES = 10  # Names of tests that passed, and of those that did not, in the reason


@dataclass(frozen=True, slots=True)
class CheckTime:
    """The time that the checks of a completion have.

    Attributes:
        limits: What all checks may use together; ``None`` for :data:`LIMITS`, and where each check has a limit for the
            seconds that all of them may take, at most :data:`MOST_TOGETHER_S`.
        check_timeout_s: Seconds of each check; ``None`` where only all of them together have a limit.

    Raises:
        ValueError: The limit of a check is no number of seconds, or leaves no time for a second check.
    """

    limits: Limits | None
    check_timeout_s: float | None

    def __post_init__(self) -> None:
        if self.check_timeout_s is None:
            return
        try:
            Limits(timeout_s=self.check_timeout_s)
        except ValueError as error:
            raise ValueError(f"check_{error}") from None
        if self.limits is not None and self.check_timeout_s >= self.limits.timeout_s:
            raise ValueError(
                f"check_timeout_s={self.check_timeout_s:g}: expected less than limits.timeout_s="
                f"{self.limits.timeout_s:g}, which all checks of a completion have together: a late check would leave "
                "no time for the others; give limits=Limits(timeout_s=...) the seconds that all checks of a row may "
                "take, or leave limits out"
            )

    @property
    def call_s(self) -> float:
        """Seconds of a call of the reward, which the jail's own limits end before.

        The checker is asked about the expected outputs, the program is run, and the checker is asked about its outputs;
        where each check has a limit, runs may be run a second time to see whether they alone are late.
        """
        return max(DEADLINE_S, (3 if self.check_timeout_s is None else 4) * self._most().timeout_s)

    def together(self, count: int) -> Limits:
        """Return what so many checks may use together."""
        most = self._most()
        if self.limits is not None or self.check_timeout_s is None:
            return most
        return dataclasses.replace(most, timeout_s=min(most.timeout_s, max(1, count) * self.check_timeout_s))

    def _most(self) -> Limits:
        if self.limits is not None or self.check_timeout_s is None:
            return self.limits or LIMITS
        return dataclasses.replace(LIMITS, timeout_s=max(MOST_TOGETHER_S, self.check_timeout_s))

    def refusal(self) -> str:
        """Return why the setting cannot hold for a row with test text."""
        return (
            f"check_timeout_s={self.check_timeout_s:g} cannot limit the row's 'tests', which run as one text: give "
            "'inputs' and 'outputs', or limit all its checks together by limits=Limits(timeout_s=...)"
        )

    def advice(self, count: int) -> str:
        """Return what to set where so many checks did not have the time that they needed."""
        if self.check_timeout_s is None:
            return "code_tests(check_timeout_s=...) gives each a limit of its own"
        return f"all checks together have {self.together(count).timeout_s:g} s, which limits=Limits(timeout_s=...) sets"


def score_of(checks: Sequence[CheckResult], *, all_or_nothing: bool, time: CheckTime | None, note: str = "") -> Score:
    """Return the score of checks, with the share that passed, the first failure and how many were not reached.

    Args:
        checks: Their results.
        all_or_nothing: Whether the score is 1.0 only if all passed.
        time: The time that they had, of which the reason says what to set; ``None`` where there is nothing to set.
        note: What the reason says last where a check was not passed.

    Raises:
        InfrastructureError: The jail failed in one of them.
    """
    faults = [check.reason for check in checks if check.status is CheckStatus.INFRASTRUCTURE]
    if faults or not checks:
        raise InfrastructureError(f"the jail failed: {[*faults, 'it reported no check'][0]}")
    failures = [check for check in checks if check.status is not CheckStatus.PASSED]
    passes = len(checks) - len(failures)
    share = sum(check.credit for check in checks) / len(checks)
    score = float(not failures) if all_or_nothing else share
    metrics = {"passed": float(passes), "checks": float(len(checks))}
    parts = [f"{passes} of {len(checks)} checks passed", *_test_names(checks)]
    parts += [f"{check.status}: {check.label}: {check.reason}" for check in failures[:1]]
    parts += _missing(checks, time)
    parts += [note] if note and failures else []
    return Score(score, reason="; ".join(parts), metrics=metrics)


def _missing(checks: Sequence[CheckResult], time: CheckTime | None) -> list[str]:
    """Return how many checks were not reached, and what to set where the time of all checks was too short."""
    missing = sum(check.status is CheckStatus.NOT_REACHED for check in checks)
    is_late = any(check.status is CheckStatus.TIMEOUT for check in checks)
    parts = [f"{missing} of {len(checks)} not reached"] if missing else []
    is_short = is_late and len(checks) > 1 and (missing or (time is not None and time.check_timeout_s is None))
    return [*parts, time.advice(len(checks))] if time is not None and is_short else parts


def _test_names(checks: Sequence[CheckResult]) -> list[str]:
    """Return the names of the tests that passed and of those that did not, where checks are tests with names."""
    tests = [check for check in checks if check.is_test]
    parts = []
    for title, passed in (("passed", True), ("not passed", False)):
        labels = [check.label for check in tests if (check.status is CheckStatus.PASSED) is passed]
        more = f" and {len(labels) - MAX_NAMES} more" if len(labels) > MAX_NAMES else ""
        parts += [f"{title}: {', '.join(labels[:MAX_NAMES])}{more}"] if labels else []
    return parts
