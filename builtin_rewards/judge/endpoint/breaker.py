"""CircuitBreaker: an endpoint that fails again and again is left alone for a while, and asked carefully afterwards.

It counts what its callers tell it and has no tasks or timers. What counts as a fault of the server is theirs to say.
"""

from __future__ import annotations

import math
import random
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum

from builtin_rewards.judge.errors import Fault, JudgeSetupError, JudgeUnavailableError

JITTER = 0.25
"""Share of its time that a breaker may stay open longer, by chance: processes that opened together do not all probe at
the same moment."""


_MOST_KEPT = 1024
"""Tries that are remembered at most."""


class BreakerState(StrEnum):
    """What a breaker does with the next try."""

    CLOSED = "closed"
    """It goes."""
    OPEN = "open"
    """It fails at once."""
    HALF_OPEN = "half_open"
    """It goes as a probe, if not enough of them are under way."""


class Try:
    """A try that a breaker let through, and where to say how it ended: once, the first word counts."""

    __slots__ = ("_breaker", "_ended", "counts", "era", "is_probe")

    def __init__(self, breaker: CircuitBreaker, era: int, is_probe: bool, counts: bool) -> None:
        self._breaker = breaker
        self._ended = False
        self.era = era
        self.is_probe = is_probe
        self.counts = counts

    def succeeded(self) -> None:
        """Tell that the server did what was asked of it."""
        self._end(self._breaker._succeeded)

    def failed(self) -> None:
        """Tell of a fault of the server: no connection, a broken or late reply, 5xx."""
        self._end(self._breaker._failed)

    def rejected(self) -> None:
        """Tell that the server is well and said no: 429, or 4xx. Not counted; as a probe it closes the breaker."""
        self._end(self._breaker._rejected)

    def abandoned(self) -> None:
        """Tell that nobody knows how it would have ended, for it was cancelled. Another may probe in its stead."""
        self._end(self._breaker._abandoned)

    def _end(self, tell: Callable[[Try], None]) -> None:
        if not self._ended:
            self._ended = True
            self._breaker._ended(self)
            tell(self)


class CircuitBreaker:
    """Opens when a server fails most of its tries, and closes when a probe succeeds.

    closed: the last ``window`` tries are counted, or twice as many as are in flight, if that is more; it opens when
    there are ``at_least`` of them and ``share`` of them and of those in flight have failed. open: every try fails at
    once for ``open_s``, by chance up to a quarter longer. half-open: ``probes`` tries at a time go through. One that
    succeeds closes it, one that fails opens it for twice as long, up to ``longest_s``.
    Tries that were let through before it opened count no more.

    The numbers: a server that fails a fifth of its tries at random fails 12 of 20 once in 10,000 times and 30 of 50
    once in 10^9 (binomial), and is not left alone; one that is down is known to be within two rounds of what is in
    flight. 5 s and 60 s are how long litellm's router and resilience4j's breaker wait.

        with breaker.attempt() as attempt:
            try: reply = await post()
            except ServerFault: attempt.failed(); raise
            attempt.succeeded()

    Args:
        name: The endpoint, as messages call it; without a key.
        share: Share of failed tries, in (0, 1], at which it opens.
        window: Tries that are counted.
        at_least: Tries, in the window, before which it does not open.
        open_s: Seconds that it stays open the first time.
        longest_s: Seconds that it stays open at most.
        probes: Tries at a time while half-open.
        clock: Monotonic seconds.
        chance: A number in [0, 1) for the jitter.

    Raises:
        JudgeSetupError: A setting makes no sense.
    """

    def __init__(
        self,
        name: str,
        *,
        share: float = 0.6,
        window: int = 50,
        at_least: int = 20,
        open_s: float = 5.0,
        longest_s: float = 60.0,
        probes: int = 1,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        _expect(0 < share <= 1, "share", share, "a share of failed tries above 0 and up to 1")
        _expect(1 <= at_least <= window, "at_least", at_least, f"a number of tries from 1 to the window of {window}")
        _expect(0 < open_s <= longest_s < math.inf, "open_s", open_s, f"seconds above 0, up to longest_s {longest_s}")
        _expect(probes >= 1, "probes", probes, "1 or more, or it never closes")
        self._name = name
        self._share = share
        self._at_least = at_least
        self._first_open_s = open_s
        self._longest_s = longest_s
        self._most_probes = probes
        self._clock = clock
        self._chance = chance
        self._window = window
        self._in_flight = 0
        self._failures: deque[bool] = deque(maxlen=max(window, _MOST_KEPT))
        self._last_words = ""
        self._open_until: float | None = None
        self._open_s = open_s
        self._probing = 0
        self._era = 0
        self.openings = 0
        """How often it opened, again after a failed probe included."""

    @property
    def state(self) -> BreakerState:
        """What it does with the next try."""
        if self._open_until is None:
            return BreakerState.CLOSED
        return BreakerState.OPEN if self._clock() < self._open_until else BreakerState.HALF_OPEN

    def check(self, counts: bool = True) -> Try:
        """Let a try through, or raise. Each one let through is told how it ended, also when it is cancelled.

        Args:
            counts: Whether it counts while the breaker is closed. A second try at the same thing should not: at the
                end of a batch those that fail are all that is left, on any server.

        Raises:
            JudgeUnavailableError: The endpoint is left alone; the message says for how long.
        """
        is_probe = self.look() is BreakerState.HALF_OPEN
        self._probing += is_probe
        self._in_flight += counts
        return Try(self, self._era, is_probe, counts)

    def look(self) -> BreakerState:
        """Raise where a try would not be let through now; none is let through by this.

        Raises:
            JudgeUnavailableError: As :meth:`check`.
        """
        state = self.state
        if state is BreakerState.OPEN:
            assert self._open_until is not None
            raise self._refusal(f"it is asked again in {self._open_until - self._clock():.1f} s")
        if state is BreakerState.HALF_OPEN and self._probing >= self._most_probes:
            raise self._refusal("a probe is under way, 0.0 s are left")
        return state

    @contextmanager
    def attempt(self, counts: bool = True) -> Iterator[Try]:
        """Check, and hold a try for the block; it is abandoned where the block does not say how it ended."""
        attempt = self.check(counts)
        try:
            yield attempt
        finally:
            attempt.abandoned()

    def _ended(self, attempt: Try) -> None:
        if attempt.era == self._era:
            self._in_flight -= attempt.counts

    def _succeeded(self, attempt: Try) -> None:
        if attempt.era != self._era:
            return
        if attempt.is_probe:
            self._close()
        elif attempt.counts:
            self._failures.append(False)

    def _failed(self, attempt: Try) -> None:
        if attempt.era != self._era:
            return
        if attempt.is_probe:
            self._open_s = min(2 * self._open_s, self._longest_s)
            self._open("failed again when it was probed")
            return
        if not attempt.counts:
            return
        self._failures.append(True)
        # Those in flight count as not failed: a fault comes at once and an answer takes its time, so of the tries that
        # ended first most failed, on any server.
        last = list(self._failures)[-max(self._window, 2 * self._in_flight) :]
        failed, tries = sum(last), len(last)
        if tries >= self._at_least and failed >= self._share * (tries + self._in_flight):
            self._open(f"failed {failed} of its last {tries} tries")

    def _rejected(self, attempt: Try) -> None:
        if attempt.is_probe and attempt.era == self._era:
            self._close()

    def _abandoned(self, attempt: Try) -> None:
        if attempt.is_probe and attempt.era == self._era:
            self._probing -= 1

    def _open(self, words: str) -> None:
        self._last_words = words
        self.openings += 1
        self._open_until = self._clock() + self._open_s * (1 + JITTER * self._chance())
        self._begin_era()

    def _close(self) -> None:
        self._open_until = None
        self._open_s = self._first_open_s
        self._begin_era()

    def _begin_era(self) -> None:
        """Forget what was counted, and the tries that are under way."""
        self._era += 1
        self._probing = 0
        self._in_flight = 0
        self._failures.clear()

    def _refusal(self, when: str) -> JudgeUnavailableError:
        words = f"judge endpoint {self._name} {self._last_words} and is left alone; {when}"
        return JudgeUnavailableError(words, Fault.BREAKER_OPEN)


def _expect(holds: bool, name: str, value: float, fix: str) -> None:
    if not holds:
        raise JudgeSetupError(f"circuit breaker, {name}: expected {fix}, got {value}")
