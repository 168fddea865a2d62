"""What is tried again and when: the one retry policy, and the loop that keeps to it.

Tried again: a connection that failed or fell silent, 408, 409, 429, 5xx, and what is no completion. Not tried again:
other 4xx, an empty account, and whatever the server says ``x-should-retry: false`` to. No layer below makes tries of
its own, for two policies multiply: three tries of three make nine.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

from builtin_rewards.judge.errors import Fault, JudgeError, JudgeSetupError, is_number

T = TypeVar("T")

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
            value: Any = getattr(self, setting)
            if not is_number(value) or value < 0:
                raise JudgeSetupError(f"{setting}={value!r}: expected a number of seconds, 0 or more")
        if self.longest_wait_s < self.first_wait_s:
            raise JudgeSetupError(
                f"longest_wait_s={self.longest_wait_s!r}: expected at least first_wait_s={self.first_wait_s!r}"
            )

    def wait_s(self, tries: int, retry_after_s: float | None, drawn: float) -> float:
        """Gives the seconds before the next try.

        Exponential with equal jitter: half of the wait is drawn, so that clients part and none hurries
        (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter). After a ``Retry-After`` the jitter
        of the first wait is added to it, lest all clients come back in the same instant.

        Args:
            tries: Tries made so far, from 1.
            retry_after_s: What the server asks for, if anything.
            drawn: A number drawn from [0, 1).
        """
        if retry_after_s is not None:
            return retry_after_s + drawn * self.first_wait_s / 2
        longest = min(self.longest_wait_s, math.ldexp(self.first_wait_s, min(tries - 1, 64)))
        return longest * (1 + drawn) / 2

    def why_no_more(self, error: JudgeError, tries: int, wait_s: float, left_s: float) -> str | None:
        """Gives why an error ends the tries, in words that may be none; ``None`` where another one may mend it."""
        if error.fault not in TRIED_AGAIN or tries >= self.attempts:
            return ""
        if error.should_retry is False:
            return "the server asks not to be tried again"
        if (error.retry_after_s or 0.0) > self.longest_retry_after_s:
            return (
                f"it asks to wait {error.retry_after_s:.0f} s, and longest_retry_after_s={self.longest_retry_after_s:g}"
            )
        return f"waiting {wait_s:.1f} s more would pass the deadline" if wait_s >= left_s else None


class Sign(StrEnum):
    """What one try says of the server."""

    ANSWERED = "answered"
    """It works. Also where the reply is no verdict, or the request was rejected for its own sake."""
    THROTTLED = "throttled"
    """It wants fewer requests: 429."""
    REFUSED = "refused"
    """It takes nothing from this account or key: 401, 402, 403 but for one of a request's content, an empty account."""
    AT_FAULT = "at_fault"
    """It is down, broken or silent."""

    @classmethod
    def of(cls, error: JudgeError) -> Sign | None:
        """What an error says; ``None`` for nothing, for no request was sent."""
        if not error.requests:
            return None
        if error.fault is Fault.RATE_LIMIT:
            return cls.THROTTLED
        if error.fault is Fault.QUOTA or (error.status in (401, 403) and not error.of_content):
            return cls.REFUSED
        return cls.AT_FAULT if error.fault in TRIED_AGAIN else cls.ANSWERED


async def with_retries(
    policy: RetryPolicy,
    attempt: Callable[[int], Awaitable[T]],
    left_s: Callable[[], float],
    *,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    draw: Callable[[], float] = random.random,
) -> T:
    """Makes tries until one gives something or the policy ends them.

    Args:
        policy: What is tried again and when.
        attempt: Makes one try, given its number from 1.
        left_s: Says how many seconds are left; a wait that would outlast them is not begun.
        sleep: Waits, and with ``draw``, which draws from [0, 1), is for tests.
        draw: See ``sleep``.

    Raises:
        JudgeError: The last try's error, with what became of the tries.
    """
    tries = 1
    while True:
        try:
            return await attempt(tries)
        except JudgeError as error:
            wait_s = policy.wait_s(tries, error.retry_after_s, draw())
            why = policy.why_no_more(error, tries, wait_s, left_s())
            if why is not None:
                told = [f"tried {tries} times"] * (tries > 1) + [why] * bool(why)
                raise error.retold(f"{error.words} ({'; '.join(told)})" if told else error.words) from None
        await sleep(wait_s)
        tries += 1
