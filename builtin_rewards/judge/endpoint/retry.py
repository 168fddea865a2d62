"""What is tried again and when: the one retry policy, and the total deadline of a judgement.

Owns the number of tries, the waits between them and the words for how a judgement ended without a reply. Leaves the
try itself to ``client``. The library's own retries are off, for two policies multiply: three tries of three make nine.

Tried again: a connection that failed or fell silent, 408, 409, 429, 5xx, and what is no completion. Not tried again:
other 4xx, an empty account, and whatever the server says ``x-should-retry: false`` to.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from builtin_rewards.judge.endpoint.values import Reply
from builtin_rewards.judge.errors import Fault, JudgeError, JudgeSetupError, JudgeUnavailableError

if TYPE_CHECKING:
    from tenacity import RetryCallState

TRIED_AGAIN = frozenset({Fault.CONNECTION, Fault.RATE_LIMIT, Fault.SERVER_ERROR, Fault.NOT_A_COMPLETION})
"""Faults that another try may mend."""

SERVER_FAULTS = TRIED_AGAIN - {Fault.RATE_LIMIT}
"""Faults that speak against the server."""


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
        if isinstance(self.attempts, bool) or not isinstance(self.attempts, int) or self.attempts < 1:
            raise JudgeSetupError(f"attempts={self.attempts!r}: expected a whole number of tries, 1 for no second one")
        for setting in ("first_wait_s", "longest_wait_s", "longest_retry_after_s"):
            value: Any = getattr(self, setting)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
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

    def tries_again(self, error: JudgeError) -> bool:
        """Whether another try may mend an error, were there tries and time left."""
        if error.fault not in TRIED_AGAIN or error.should_retry is False:
            return False
        return error.retry_after_s is None or error.retry_after_s <= self.longest_retry_after_s


class Sign(StrEnum):
    """What one try says of the server, for limits and breakers."""

    ANSWERED = "answered"
    """It works. Also where the reply is no verdict, or the request was rejected for its own sake."""
    THROTTLED = "throttled"
    """It wants fewer requests: 429."""
    AT_FAULT = "at_fault"
    """It is down, broken or silent."""
    UNKNOWN = "unknown"
    """Nothing: the try was abandoned from outside, or no request was sent."""


class Tried(NamedTuple):
    """What became of one try.

    Attributes:
        sign: What it says of the server.
        retry_after_s: Seconds that the server asked to be left alone; ``None`` where it did not.
        duration_s: Seconds that the try took.
    """

    sign: Sign
    retry_after_s: float | None
    duration_s: float


Admit: TypeAlias = Callable[[], AbstractAsyncContextManager[Callable[[Tried], None]]]
"""Entered before each try: may wait (a limit) or raise (an open breaker, a spent budget). What it gives hears what
became of the try, exactly once, also of one that is cancelled; it is left before the wait for the next try."""


@asynccontextmanager
async def at_once() -> AsyncIterator[Callable[[Tried], None]]:
    """Admits every try without waiting."""
    yield lambda tried: None


async def with_retries(
    policy: RetryPolicy,
    attempt: Callable[[], Awaitable[Reply]],
    deadline_s: float,
    *,
    asked: str = "the judge",
    admit: Admit = at_once,
    sent: Callable[[], int] | None = None,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    draw: Callable[[], float] = random.random,
) -> Reply:
    """Makes tries until one gives a reply, the policy ends them, or the deadline passes.

    Args:
        policy: What is tried again and when.
        attempt: Makes one try. Its Reply, or its JudgeError, says how many requests it sent.
        deadline_s: Seconds for everything: tries, waits, admission. A wait that would outlast it is not begun.
        asked: Server and model, for the message of a deadline that passes before the first try has ended.
        admit: Lets each try through and hears what became of it.
        sent: Says how many requests were sent so far, where a try may wait for a turn or send several. Without it
            replies and errors say so, and a try that is cut off counts as one.
        sleep: Waits; for tests.
        draw: Draws from [0, 1); for tests.

    Returns:
        The reply, its ``requests`` those of all tries.

    Raises:
        JudgeError: No reply; the last try's error with what ended the tries. ``requests`` are those of all tries.
    """
    try:
        from tenacity import AsyncRetrying
    except ImportError as missing:
        raise ImportError("a judge needs tenacity: pip install 'rewardkit[judge]'") from missing
    tries = _Tries(policy, attempt, admit, sent, deadline_s, draw, asyncio.timeout(deadline_s))
    retrying = AsyncRetrying(retry=tries.goes_on, wait=tries.wait_s, stop=tries.is_over, sleep=sleep, reraise=True)
    try:
        async with tries.limit:
            return replace(await retrying(tries.one), requests=tries.requests())
    except JudgeError as error:
        raise tries.ended(error) from None
    except TimeoutError:
        if not tries.limit.expired():
            raise
        raise tries.late(asked) from None


@dataclass(slots=True)
class _Tries:
    """The tries of one judgement, as tenacity calls upon them."""

    policy: RetryPolicy
    attempt: Callable[[], Awaitable[Reply]]
    admit: Admit
    sent: Callable[[], int] | None
    deadline_s: float
    draw: Callable[[], float]
    limit: asyncio.Timeout
    made: int = 0
    told: int = 0
    last: JudgeError | None = None
    why: str = ""

    def requests(self) -> int:
        return self.told if self.sent is None else self.sent()

    async def one(self) -> Reply:
        async with self.admit() as tell:
            self.made += 1
            sent_before, began = self.requests(), time.monotonic()
            try:
                reply = await self.attempt()
            except JudgeError as error:
                self.told += error.requests
                self.last = error
                tell(Tried(_sign(error), error.retry_after_s, time.monotonic() - began))
                raise
            except BaseException:
                # Cut off under way: where its request is out, a server that was silent to the end is at fault.
                self.told += 1
                silent = self.limit.expired() and self.requests() > sent_before
                sign = Sign.AT_FAULT if silent else Sign.UNKNOWN
                tell(Tried(sign, None, time.monotonic() - began))
                raise
            self.told += reply.requests
            tell(Tried(Sign.ANSWERED, None, time.monotonic() - began))
            return reply

    def goes_on(self, state: RetryCallState) -> bool:
        error = state.outcome and state.outcome.exception()
        if not isinstance(error, JudgeError):
            return False
        again = self.policy.tries_again(error)
        if not again and error.fault in TRIED_AGAIN:
            self.why = (
                "the server asks not to be tried again"
                if error.should_retry is False
                else f"it asks to wait {error.retry_after_s:.0f} s, and "
                f"longest_retry_after_s={self.policy.longest_retry_after_s:g}"
            )
        return again

    def wait_s(self, state: RetryCallState) -> float:
        retry_after_s = self.last.retry_after_s if self.last else None
        return self.policy.wait_s(state.attempt_number, retry_after_s, self.draw())

    def is_over(self, state: RetryCallState) -> bool:
        left_s = (self.limit.when() or math.inf) - asyncio.get_running_loop().time()
        if state.attempt_number < self.policy.attempts and state.upcoming_sleep >= left_s:
            self.why = f"waiting {state.upcoming_sleep:.1f} s more would pass the deadline"
            return True
        return state.attempt_number >= self.policy.attempts

    def ended(self, error: JudgeError) -> JudgeError:
        """Gives the error that ends the judgement: the last try's own, and what became of the tries."""
        more = [f"tried {self.made} times"] if self.made > 1 else []
        more += [self.why] if self.why else []
        final = type(error)(f"{error.words} ({'; '.join(more)})" if more else error.words, error.fault)
        final.requests, final.reached = self.requests(), error.reached
        final.status, final.retry_after_s, final.should_retry = error.status, error.retry_after_s, error.should_retry
        return final

    def late(self, asked: str) -> JudgeError:
        """Gives the error of a deadline that passed."""
        tries = f"{self.made} {'try was' if self.made == 1 else 'tries were'} made"
        before = f", the last that failed: {self.last.words}" if self.last else ", none ended before it"
        error = JudgeUnavailableError(
            f"{asked}: no reply within {self.deadline_s:.3g} s; {tries}{before}; "
            "raise deadline_s, or allow fewer requests at once",
            Fault.DEADLINE,
        )
        error.requests = self.requests()
        error.status = self.last.status if self.last else None
        return error


def _sign(error: JudgeError) -> Sign:
    if not error.requests:
        return Sign.UNKNOWN
    if error.fault is Fault.RATE_LIMIT:
        return Sign.THROTTLED
    return Sign.AT_FAULT if error.fault in SERVER_FAULTS else Sign.ANSWERED
