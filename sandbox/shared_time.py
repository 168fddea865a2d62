"""The time of runs of which each has a limit of its own, and all together the limit of an evaluation.

What a run may use is charged at most, so a run that is late costs the next ones nothing of their own time.
"""

from __future__ import annotations

import dataclasses
import math

from sandbox.limits import MAX_SECONDS, Limits
from sandbox.results import ExecutionResult, ExecutionStatus

_LEAST_S = 0.001


class SharedTime:
    """What is left of the time of all runs.

    Args:
        limits: What a run may use; ``timeout_s`` is for all runs together.
        run_timeout_s: Seconds of each run.
    """

    def __init__(self, limits: Limits, run_timeout_s: float) -> None:
        self._limits = limits
        self._run_timeout_s = run_timeout_s
        self._left_s = limits.timeout_s

    def next_limits(self) -> Limits:
        """Return what the next run may use: its own seconds, or those that are left, and at least 0.001."""
        return dataclasses.replace(self._limits, timeout_s=max(_LEAST_S, min(self._run_timeout_s, self._left_s)))

    def charge(self, result: ExecutionResult, start_s: float = 0.0) -> None:
        """Take off what a run with the next limits used, without the seconds that its runtime needs to start."""
        is_late = result.status is ExecutionStatus.TIMEOUT
        self.spend(math.inf if is_late else result.duration_s - start_s)

    def spend(self, seconds: float) -> None:
        """Take off seconds, at most those of the next limits."""
        self._left_s -= min(self.next_limits().timeout_s, max(0.0, seconds))

    @property
    def is_spent(self) -> bool:
        """Whether no time is left."""
        return self._left_s <= 0

    def ends_with(self, result: ExecutionResult) -> bool:
        """Return whether nothing is run after this result: the sandbox failed, or it was late and no time is left."""
        is_late = result.status is ExecutionStatus.TIMEOUT
        return result.status is ExecutionStatus.INFRASTRUCTURE or (is_late and self.is_spent)


def time_of_checks(limits: Limits | None, default: Limits, check_timeout_s: float | None, count: int) -> Limits:
    """Return what all checks may use together; where each has a limit, and they have none, it is that of all of them.

    Raises:
        ValueError: The limit of a check is no number of seconds, or more than all of them have.
    """
    if check_timeout_s is None:
        return limits or default
    require_seconds("check_timeout_s", check_timeout_s)
    if limits is None:
        return dataclasses.replace(default, timeout_s=min(MAX_SECONDS, count * check_timeout_s))
    if check_timeout_s > limits.timeout_s:
        raise ValueError(
            f"check_timeout_s={check_timeout_s!r}: expected at most limits.timeout_s={limits.timeout_s!r}, which all "
            "checks have together; raise it, or leave limits out"
        )
    return limits


def require_seconds(name: str, value: float) -> None:
    """Raise ``ValueError`` for a limit that is no number of seconds, above 0 and at most :data:`MAX_SECONDS`."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= MAX_SECONDS:
        raise ValueError(f"{name}={value!r}: expected a number above 0, and at most {MAX_SECONDS:,}")
