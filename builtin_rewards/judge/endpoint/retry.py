"""What is tried again and when: the one policy, for no layer below makes tries of its own, and two would multiply."""

from __future__ import annotations

import random
from dataclasses import dataclass

from builtin_rewards.judge.errors import Fault, JudgeError, JudgeSetupError, is_number

TRIED_AGAIN = frozenset({Fault.CONNECTION, Fault.RATE_LIMIT, Fault.SERVER_ERROR, Fault.NOT_A_COMPLETION})
"""Faults that another try may mend."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and when a request is tried again.

    Attributes:
        attempts: Tries altogether, at least 1.
        first_wait_s: Seconds before the second try, before jitter; each further wait is twice as long.
        longest_wait_s: The longest of these waits.
        longest_retry_after_s: The longest ``Retry-After`` that is waited for; a longer one ends the judgement at once.

    Raises:
        JudgeSetupError: A setting makes no sense.
    """

    attempts: int = 4
    first_wait_s: float = 0.5
    longest_wait_s: float = 20.0
    longest_retry_after_s: float = 60.0

    def __post_init__(self) -> None:
        if not is_number(self.attempts, whole=True) or self.attempts < 1:
            raise JudgeSetupError(f"attempts={self.attempts!r}: expected a whole number of tries, 1 for no second one")
        for setting in ("first_wait_s", "longest_wait_s", "longest_retry_after_s"):
            value = getattr(self, setting)
            if not is_number(value) or value < 0:
                raise JudgeSetupError(f"{setting}={value!r}: expected a number of seconds, 0 or more")
        if self.longest_wait_s < self.first_wait_s:
            raise JudgeSetupError(
                f"longest_wait_s={self.longest_wait_s!r}: expected at least first_wait_s={self.first_wait_s!r}"
            )

    def wait_s(self, tries: int, retry_after_s: float | None = None, drawn: float | None = None) -> float:
        """Gives the seconds before the next try, after so many: exponential, half of it drawn, so that clients part.

        To a ``Retry-After`` the jitter of the first wait is added, lest all clients come back in the same instant. See
        https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter.
        """
        drawn = random.random() if drawn is None else drawn  # noqa: S311  # for no secret
        if retry_after_s is not None:
            return retry_after_s + drawn * self.first_wait_s / 2
        return min(self.longest_wait_s, self.first_wait_s * 2.0 ** min(tries - 1, 64)) * (1 + drawn) / 2

    def why_no_more(self, error: JudgeError, tries: int, wait_s: float, left_s: float) -> str | None:
        """Gives why an error ends the tries, in words that may be none; ``None`` where another one may mend it."""
        if error.fault not in TRIED_AGAIN or tries >= self.attempts:
            return ""
        if (asked_s := error.retry_after_s or 0.0) > self.longest_retry_after_s:
            return f"it asks to wait {asked_s:.0f} s, and longest_retry_after_s={self.longest_retry_after_s:g}"
        return f"waiting {wait_s:.1f} s more would pass the deadline" if wait_s >= left_s else None
