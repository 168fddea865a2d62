"""How much an endpoint is asked at once and in a minute: AdaptiveLimit and RateLimit.

Both let callers through in the order they came, and a caller that is cancelled while it waits takes nothing with it.
They belong to one event loop, whose timers they use. What a 429 is, what is tried again and what a request costs is
for their callers to know.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Generic, TypeVar

from builtin_rewards.judge.errors import JudgeSetupError

T = TypeVar("T")

TOLERATED = 0.1
"""Share of 429s that is no sign of overload. TCP's rule, which halves at every loss, settles at sqrt(1.5 / p) requests
in flight whatever the server could take (Mathis et al., "The macroscopic behavior of the TCP congestion avoidance
algorithm", 1997): 8 of 128 where the server rejects one request in 40 at random."""

MOST_SURPLUS = 8
"""429s beyond the tolerated share that may come in a row by chance: a sixth of the limit, from 1 to this.
In simulated runs of 4,000 requests, 128 in flight and 3 % of 429s at random, 4 gave about one decrease and 8 none; of
a server that takes 100 at a time 4 made it reject 1 to 6 % of the requests, 8 1 to 8 %, 16 2 to 10 %."""

MOST_KEPT = 0.85
"""Share of the limit that is left after the mildest decrease."""

LEAST_KEPT = 0.5
"""Share of the limit that is left after the harshest decrease, as in TCP (RFC 5681)."""

STEP_GROWTH = 0.25
"""What every round trip without a decrease adds to the step of the next, which begins at 1: from 16 to 128 it takes 27
round trips, not 112."""

SHORTEST_WAIT_S = 0.001
"""No timer is set for less, for a float's rounding may leave a wait that no clock can tell from none."""


class Slot:
    """One request in flight, and where to say what became of it. Say nothing where it says nothing of the load."""

    __slots__ = ("_limit", "era")

    def __init__(self, limit: AdaptiveLimit) -> None:
        self._limit = limit
        self.era = 0

    def accepted(self) -> None:
        """Tell that the server did the work."""
        self._limit._accepted(self.era)

    def rejected(self) -> bool:
        """Tell that the server said 429.

        Returns:
            Whether the limit was decreased for it. If not, the 429 is one of few, or of a burst that was answered.
        """
        return self._limit._rejected(self.era)


class AdaptiveLimit:
    """Bounds the requests in flight by what the server takes: additive increase, multiplicative decrease on 429.

    It begins at ``most``. A decrease leaves the share of requests that the server accepted since the last one, but
    at least half and at most 85 % of the limit (in proportion to the congestion, as DCTCP does, RFC 8257). It comes at
    most once a round trip: only requests started after the last decrease may cause another. 429s of up to a tenth of
    the requests cause none.

    The increase is 1 a round trip, and a quarter more with each that passes without a decrease. It stops at ``most``
    and while fewer requests are in flight than may be.

        async with limit.slot() as slot:
            reply = await post()
            slot.accepted()

    Args:
        most: Requests in flight at most, and at first.
        least: Requests that may be in flight whatever the server says.
        clock: Monotonic seconds.

    Raises:
        JudgeSetupError: Not 1 <= least <= most.
    """

    def __init__(self, most: int, least: int = 1, *, clock: Callable[[], float] = time.monotonic) -> None:
        if not 1 <= least <= most:
            raise JudgeSetupError(f"requests in flight: expected 1 <= least <= most, got least {least}, most {most}")
        self._most = most
        self._least = least
        self._clock = clock
        self._line = _Line(self._take, self._put_back)
        self._size = float(most)
        self._step = 1.0
        self._in_flight = 0
        self._paused_until = -math.inf
        self._era = 0
        self._finished = self._refused = 0
        self._credit = self._most_credit

    @property
    def current(self) -> int:
        """Requests that may be in flight now."""
        return int(self._size)

    @property
    def in_flight(self) -> int:
        """Requests in flight now."""
        return self._in_flight

    @property
    def waiting(self) -> int:
        """Callers that wait for a slot."""
        return len(self._line)

    @property
    def decreases(self) -> int:
        """How often the limit was decreased."""
        return self._era

    async def acquire(self) -> Slot:
        """Wait for a turn. Every slot is given back with :meth:`release`, once."""
        slot = Slot(self)
        await self._line.wait(slot)
        return slot

    def release(self) -> None:
        """Give back a slot."""
        self._in_flight -= 1
        self._line.advance()

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[Slot]:
        """Wait for a turn and hold a slot for the block."""
        slot = await self.acquire()
        try:
            yield slot
        finally:
            self.release()

    def pause_until(self, when_s: float) -> None:
        """Start no request before a time on the clock, such as the one that ``Retry-After`` names.

        A pause is never shortened. Those in flight go on.
        """
        self._paused_until = max(self._paused_until, when_s)

    def _take(self, slot: Slot) -> float:
        """Start a request and return 0, or return the seconds after which to try again."""
        paused_s = self._paused_until - self._clock()
        if paused_s > 0:
            return paused_s
        if self._in_flight >= self.current:
            return math.inf
        self._in_flight += 1
        slot.era = self._era
        self._credit = min(self._credit + TOLERATED, self._most_credit)
        return 0

    def _put_back(self, _: Slot) -> None:
        self._in_flight -= 1

    def _accepted(self, era: int) -> None:
        if era != self._era:
            return
        self._finished += 1
        if self._in_flight >= self.current:
            self._size = min(self._size + self._step / self._size, self._most)
            self._step += STEP_GROWTH / self._size
            self._line.advance()

    def _rejected(self, era: int) -> bool:
        if era != self._era:
            return False
        self._finished += 1
        self._refused += 1
        self._credit -= 1
        if self._credit >= 0:
            return False
        kept = min(max(1 - self._refused / self._finished, LEAST_KEPT), MOST_KEPT)
        self._size = max(self._size * kept, self._least)
        self._step = 1.0
        self._begin_era(era + 1)
        return True

    def _begin_era(self, era: int) -> None:
        """Count anew from a decrease on; those that were started before it count no more."""
        self._era = era
        self._finished = self._refused = 0
        self._credit = self._most_credit

    @property
    def _most_credit(self) -> float:
        return min(max(self._size / 6, 1), MOST_SURPLUS)


class RateLimit:
    """Bounds requests and tokens a minute by a token bucket each; both must have enough before a request goes.

    A bucket fills steadily and holds ``burst_s`` seconds of its rate, by default a sixth of a minute. So within any
    minute up to 7/6 of the rate may go: name a lower rate, or a smaller burst, to a server that counts strictly.
    A request of more tokens than the bucket holds goes when it is full, and leaves a debt that later ones wait for.

    Args:
        requests_per_minute: ``None``: not bounded.
        tokens_per_minute: ``None``: not bounded. Counts prompt and completion.
        burst_s: Seconds of either rate that may go at once after a rest. At least one request may.
        clock: Monotonic seconds.

    Raises:
        JudgeSetupError: A rate or the burst is not a finite number above 0.
    """

    def __init__(
        self,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        *,
        burst_s: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        _expect_positive("burst_s", burst_s, "name seconds")
        _expect_positive("requests_per_minute", requests_per_minute, "leave it out for no bound")
        _expect_positive("tokens_per_minute", tokens_per_minute, "leave it out for no bound")
        self._clock = clock
        self._requests = _Bucket(requests_per_minute, burst_s, clock())
        self._tokens = _Bucket(tokens_per_minute, burst_s, clock())
        self._line = _Line(self._take, self._put_back)

    @property
    def waiting(self) -> int:
        """Callers that wait for their turn."""
        return len(self._line)

    async def acquire(self, tokens: float) -> None:
        """Wait until one more request of so many tokens may go.

        Args:
            tokens: What it is expected to take, the completion included; :meth:`settle` corrects it.
        """
        await self._line.wait(tokens)

    def settle(self, estimated: float, actual: float) -> None:
        """Give back the tokens that a request did not take, or charge those it took beyond its estimate."""
        self._tokens.add(estimated - actual, self._clock())
        self._line.advance()

    def _take(self, tokens: float) -> float:
        """Take a request and its tokens and return 0, or return the seconds after which to try again."""
        now_s = self._clock()
        needs = ((self._requests, 1.0), (self._tokens, tokens))
        wait_s = max(bucket.wait_s(amount, now_s) for bucket, amount in needs)
        if wait_s <= 0:
            for bucket, amount in needs:
                bucket.add(-amount, now_s)
        return wait_s

    def _put_back(self, tokens: float) -> None:
        now_s = self._clock()
        self._requests.add(1, now_s)
        self._tokens.add(tokens, now_s)


class _Bucket:
    """A token bucket; one with no rate has enough for everyone. Its level is below zero while it is in debt."""

    def __init__(self, per_minute: float | None, burst_s: float, now_s: float) -> None:
        self._per_s = None if per_minute is None else per_minute / 60
        self._most = 0.0 if per_minute is None else max(per_minute / 60 * burst_s, 1.0)
        self._level = self._most
        self._at_s = now_s

    def wait_s(self, amount: float, now_s: float) -> float:
        """Return the seconds until an amount may be taken; 0 or less: now."""
        if self._per_s is None:
            return 0.0
        level = min(self._level + (now_s - self._at_s) * self._per_s, self._most)
        return (min(amount, self._most) - level) / self._per_s

    def add(self, amount: float, now_s: float) -> None:
        """Add what has flown in since the last time, then an amount, negative to take."""
        if self._per_s is None:
            return
        self._level = min(self._level + (now_s - self._at_s) * self._per_s, self._most) + amount
        self._at_s = now_s


class _Line(Generic[T]):
    """Callers in the order they came, of whom only the first may be next.

    Args:
        take: Takes what a caller wants and returns 0, or returns the seconds after which to try again; infinite: not
            before :meth:`advance` is called.
        put_back: Gives back what was taken for a caller that was cancelled.
    """

    def __init__(self, take: Callable[[T], float], put_back: Callable[[T], None]) -> None:
        self._take = take
        self._put_back = put_back
        self._waiters: deque[tuple[asyncio.Future[None], T]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._waiters)

    async def wait(self, wanted: T) -> None:
        """Return once what it wants is taken for this caller."""
        if not self._waiters and self._take(wanted) <= 0:
            return
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append((waiter, wanted))
        self.advance()
        try:
            await waiter
        except asyncio.CancelledError:
            self._leave(waiter, wanted)
            raise

    def advance(self) -> None:
        """Let through whom there is enough for, and come again when there may be enough for the next."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._waiters:
            waiter, wanted = self._waiters[0]
            if not waiter.cancelled():
                wait_s = self._take(wanted)
                if wait_s > 0:
                    self._come_again(wait_s)
                    return
                waiter.set_result(None)
            self._waiters.popleft()

    def _come_again(self, wait_s: float) -> None:
        if wait_s < math.inf:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(wait_s, SHORTEST_WAIT_S), self.advance)

    def _leave(self, waiter: asyncio.Future[None], wanted: T) -> None:
        """Let a cancelled caller go, with what was taken for it in the moment between."""
        if waiter.cancelled():
            with suppress(ValueError):  # advance() may have passed over it already
                self._waiters.remove((waiter, wanted))
        else:
            self._put_back(wanted)
        self.advance()


def _expect_positive(name: str, value: float | None, fix: str) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is not None and not (number and 0 < value < math.inf):
        raise JudgeSetupError(f"{name}: expected a number above 0, got {value!r}; {fix}")
