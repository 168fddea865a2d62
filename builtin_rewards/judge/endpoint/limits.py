"""How much a server is asked: :class:`Load` says it, :class:`Limiter` keeps to it, :class:`Breaker` leaves it alone."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass

from builtin_rewards.judge.errors import Fault, JudgeError, JudgeSetupError, JudgeUnavailableError, is_number

TOLERATED = 0.1
"""Share of 429s that is no sign of overload: a limit that halves at each settles at some 8 of 128 in flight where a
server rejects one request in 40 at random."""
BURST_S = 10.0
"""Seconds of a rate that may go at once after a rest; so within any minute up to 7/6 of the rate may go."""
FIRST, FIRST_S = 8, 2.0
"""Requests in flight before the first answer, and for how long at most: a wrong key is found out by them."""

AT_LEAST = 20
"""Failures in a row that open a breaker, or as many as there are requests in flight, if those are more: a fault comes
at once and an answer takes its time, so the first that end have failed, on any server."""
REFUSED = 5  # as many in a row open it where the server takes nothing from the key: no further one would be answered
REFUSED_REST_S = 300.0  # how long such a server is left alone; an account may be filled up in the middle of a run
_AT_FAULT = frozenset({Fault.CONNECTION, Fault.SERVER_ERROR, Fault.NOT_A_COMPLETION, Fault.DEADLINE})


@dataclass(frozen=True, slots=True)
class Load:
    """How much a server is asked. A setting that makes no sense raises JudgeSetupError.

    Attributes:
        concurrency: Requests in flight at most. Fewer are where the server says 429.
        requests_per_minute: ``None``: not bounded. At least one, and ten seconds' worth, may go at once.
        tokens_per_minute: Prompts and completions together; ``None``: not bounded.
        rest_s: Seconds that a server is left alone once its last tries have all failed; then one request probes it.
    """

    concurrency: int = 128
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    rest_s: float = 5.0

    def __post_init__(self) -> None:
        if not is_number(self.concurrency, whole=True) or self.concurrency < 1:
            raise JudgeSetupError(f"Load(concurrency={self.concurrency!r}): expected a whole number, 1 or more")
        for name in ("requests_per_minute", "tokens_per_minute", "rest_s"):
            value = getattr(self, name)
            if not (value is None and name != "rest_s") and not (is_number(value) and value > 0):
                raise JudgeSetupError(f"Load({name}={value!r}): expected a number greater than 0")


class Limiter:
    """Lets requests through by a load: so many in flight, and a rate each of requests and tokens, as they came.

    With as many answers as may be in flight a round is over. Where more than a tenth of them were 429s, the share that
    was not is kept, at least half; else an eighth is added, up to what the load allows.
    """

    def __init__(self, load: Load) -> None:
        self._most = load.concurrency
        self._requests = _Rate(load.requests_per_minute)
        self.tokens = _Rate(load.tokens_per_minute)
        self._line = asyncio.Lock()
        self._changed = asyncio.Event()
        self._size = float(load.concurrency)
        self._finished = self._refused = 0
        self._paused_until = -math.inf
        self._first_until: float | None = None
        self.in_flight = 0

    @property
    def current(self) -> int:
        """Requests that may be in flight now."""
        is_new = self._first_until is not None and time.monotonic() < self._first_until
        return min(FIRST, self._most) if is_new else int(self._size)

    @asynccontextmanager
    async def turn(self, tokens: float = 0.0) -> AsyncIterator[None]:
        """Waits for one's turn and holds it for the block, taking an estimate of tokens, the completion included."""
        async with self._line:  # only who came first waits for the gate itself
            while (wait_s := self._wait_s(tokens)) > 0:
                self._changed.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(None if wait_s == math.inf else max(wait_s, 0.001)):
                        await self._changed.wait()
            self._requests.take(1)
            self.tokens.take(tokens)
            self.in_flight += 1
        try:
            yield
        finally:
            self.in_flight -= 1
            self._changed.set()

    def give_back(self, tokens: float) -> None:
        """Tell that a turn was not used: no request was sent."""
        self._requests.take(-1)
        self.tokens.take(-tokens)

    def refused(self, retry_after_s: float = 0.0) -> None:
        """Tell that the server said 429. Where it is one of many, all wait for as long as the server asks."""
        self._refused += 1
        if self._refused > max(1, TOLERATED * self._size):
            self._paused_until = max(self._paused_until, time.monotonic() + retry_after_s)
        self._end()

    def answered(self) -> None:
        """Tell that the server did the work."""
        self._first_until = -math.inf
        self._end()

    def _end(self) -> None:
        self._finished += 1
        if self._finished < self._size:
            return
        share = self._refused / self._finished
        if share > TOLERATED:
            self._size = max(1.0, self._size * max(0.5, 1 - share))
        else:
            self._size = min(float(self._most), self._size + max(1.0, self._size / 8))
        self._finished = self._refused = 0

    def _wait_s(self, tokens: float) -> float:
        """Return the seconds after which to look again: 0 or less for a turn now, infinite for one that must end."""
        now_s = time.monotonic()
        if self._first_until is None:
            self._first_until = now_s + FIRST_S
        wait_s = max(self._paused_until - now_s, self._requests.wait_s(1), self.tokens.wait_s(tokens))
        if self.in_flight >= self.current:
            return max(wait_s, self._first_until - now_s if self._first_until > now_s else math.inf)
        return wait_s


class _Rate:
    """A rate with a burst. An amount beyond the burst goes after a rest, and leaves a debt that later ones wait for."""

    def __init__(self, per_minute: float | None) -> None:
        self._each_s = 0.0 if per_minute is None else 60 / per_minute
        self._burst_s = max(BURST_S, self._each_s)
        self._paid_at_s = -math.inf  # when the rate has caught up with all that was taken

    def wait_s(self, amount: float) -> float:
        """Return the seconds until an amount may be taken; 0 or less: now."""
        debt_s = max(0.0, self._paid_at_s - time.monotonic())
        return debt_s + min(amount * self._each_s, self._burst_s) - self._burst_s

    def take(self, amount: float) -> None:
        """Takes an amount; gives it back where it is negative."""
        self._paid_at_s = max(self._paid_at_s, time.monotonic()) + amount * self._each_s


class Breaker:
    """Opens when all last tries have failed, so that tries fail at once, and closes with an answer; a 429 says nothing.

    After its rest one try at a time goes as a probe.
    """

    def __init__(self, name: str, rest_s: float) -> None:
        self._name, self._rest_s = name, rest_s
        self._in_flight = 0
        self._close()

    def _close(self) -> None:
        self._failed = self._refused = 0
        self._until: float | None = None
        self._why, self._probing = "", False

    def look(self) -> None:
        """Raises JudgeUnavailableError where a try would not be let through now; says why and for how long."""
        left_s = 0.0 if self._until is None else max(0.0, self._until - time.monotonic())
        if left_s > 0 or self._probing:
            when = f"it is asked again in {left_s:.1f} s" if left_s > 0 else "a probe is under way, 0.0 s are left"
            raise JudgeUnavailableError(f"{self._name} {self._why} and is left alone; {when}", Fault.BREAKER_OPEN)

    @contextmanager
    def attempt(self, counts: bool = True) -> Iterator[None]:
        """Lets a try through, or raises as :meth:`look`, and hears how the block ends.

        A second failure of the same thing is not to count: at a run's end those that fail are all that is left.
        """
        self.look()
        self._probing = probes = self._until is not None
        self._in_flight += 1
        try:
            yield
            self._close()
        except JudgeError as error:
            if error.requests:
                self._hear(error, probes, counts)
            raise
        finally:
            self._in_flight -= 1
            self._probing = self._probing and not probes

    def _hear(self, error: JudgeError, probes: bool, counts: bool) -> None:
        if error.refuses_key:
            self._refused += 1
            if probes or self._refused >= REFUSED:
                self._why = f"refused {self._refused} requests in a row ({error.words})"
                self._until = time.monotonic() + REFUSED_REST_S
        elif error.fault in _AT_FAULT:
            self._failed += counts
            if probes or (self._until is None and self._failed >= max(AT_LEAST, self._in_flight)):
                self._why = f"failed {self._failed} tries in a row"
                self._until = time.monotonic() + self._rest_s
        elif error.fault is not Fault.RATE_LIMIT or probes:
            self._close()
