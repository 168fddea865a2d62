"""How much a server is asked at once and in a minute: :class:`Load` says it, a :class:`Gate` keeps to it.

Callers are let through in the order they came, and one that is cancelled while it waits takes nothing with it. What a
429 is, what is tried again and what a request costs is for the callers to know.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from builtin_rewards.judge.errors import JudgeSetupError, is_number

TOLERATED = 0.1
"""Share of 429s that is no sign of overload: a limit that halves at each settles at some 8 of 128 in flight where a
server rejects one request in 40 at random."""
BURST_S = 10.0
"""Seconds of a rate that may go at once after a rest; so within any minute up to 7/6 of the rate may go."""
FIRST = 8
"""Requests that may be in flight before the first answer, for ``FIRST_S`` at most: a wrong key is found out by them."""
FIRST_S = 0.5
_SHORTEST_WAIT_S = 0.001


@dataclass(frozen=True, slots=True)
class Load:
    """How much a server is asked.

    Attributes:
        concurrency: Requests in flight at most. Fewer are where the server says 429.
        requests_per_minute: ``None``: not bounded. At least one, and ten seconds' worth, may go at once.
        tokens_per_minute: Prompts and completions together; ``None``: not bounded.
        rest_s: Seconds that a server is left alone once its last tries have all failed. Then one request probes it;
            each that fails doubles the time, up to twelve times this.

    Raises:
        JudgeSetupError: A setting makes no sense.
    """

    concurrency: int = 128
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    rest_s: float = 5.0

    def __post_init__(self) -> None:
        if not is_number(self.concurrency, whole=True) or self.concurrency < 1:
            raise JudgeSetupError(f"Load(concurrency={self.concurrency!r}): expected a whole number, 1 or more")
        for name in ("requests_per_minute", "tokens_per_minute", "rest_s"):
            value: Any = getattr(self, name)
            if not (value is None and name != "rest_s") and not (is_number(value) and value > 0):
                raise JudgeSetupError(f"Load({name}={value!r}): expected a number greater than 0")


@dataclass(slots=True)
class Turn:
    """One request in flight.

    Attributes:
        tokens: What it takes: an estimate, to be replaced by what the server counts.
    """

    tokens: float


class Gate:
    """Lets requests through by a load: so many in flight, and a bucket each of requests and tokens.

        async with gate.turn(tokens) as turn:
            ...
            gate.accepted()

    With as many answers as may be in flight a round is over. Where more than a tenth of them were 429s, the share that
    was not is kept, at least half; else an eighth is added, up to what the load allows.

    Args:
        load: How much may go.
        clock: Monotonic seconds.
    """

    def __init__(self, load: Load, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = load.concurrency
        self._clock = clock
        self._requests = _Bucket(load.requests_per_minute, clock)
        self._tokens = _Bucket(load.tokens_per_minute, clock)
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
        if self._first_until is not None and self._clock() < self._first_until:
            return min(FIRST, self._most)
        return int(self._size)

    @asynccontextmanager
    async def turn(self, tokens: float = 0.0) -> AsyncIterator[Turn]:
        """Wait for one's turn and hold it for the block.

        Args:
            tokens: What the request is expected to take, the completion included.
        """
        turn = Turn(tokens)
        async with self._line:  # only who came first waits for the gate itself
            while (wait_s := self._wait_s(tokens)) > 0:
                self._changed.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(None if wait_s == math.inf else max(wait_s, _SHORTEST_WAIT_S)):
                        await self._changed.wait()
            self._requests.add(-1)
            self._tokens.add(-tokens)
            self.in_flight += 1
        try:
            yield turn
        finally:
            self.in_flight -= 1
            self._tokens.add(tokens - turn.tokens)
            self._changed.set()

    def accepted(self) -> None:
        """Tell that the server did the work."""
        self._first_until = -math.inf
        self._end(refused=False)

    def rejected(self, retry_after_s: float | None = None) -> None:
        """Tell that the server said 429. Where it is one of many, all wait for as long as the server asks."""
        self._end(refused=True)
        if self._refused > max(1, TOLERATED * self._size):
            self._paused_until = max(self._paused_until, self._clock() + (retry_after_s or 0.0))

    def _end(self, *, refused: bool) -> None:
        self._finished += 1
        self._refused += refused
        if self._finished < self._size:
            return
        share = self._refused / self._finished
        if share > TOLERATED:
            self._size = max(1.0, self._size * max(0.5, 1 - share))
        else:
            self._size = min(float(self._most), self._size + max(1.0, self._size / 8))
        self._finished = self._refused = 0

    def _wait_s(self, tokens: float) -> float:
        """Gives the seconds after which to look again: 0 or less for a turn now, infinite for one that must end."""
        now_s = self._clock()
        if self._first_until is None:
            self._first_until = now_s + FIRST_S
        wait_s = max(self._paused_until - now_s, self._requests.wait_s(1), self._tokens.wait_s(tokens))
        if self.in_flight >= self.current:
            return max(wait_s, self._first_until - now_s if self._first_until > now_s else math.inf)
        return wait_s


class _Bucket:
    """A token bucket; one with no rate has enough for everyone.

    An amount beyond what it holds goes when it is full, and leaves a debt that later ones wait for.
    """

    def __init__(self, per_minute: float | None, clock: Callable[[], float]) -> None:
        self._per_s = math.inf if per_minute is None else per_minute / 60
        self._most = max(self._per_s * BURST_S, 1.0)
        self._level = self._most
        self._clock = clock
        self._at_s = clock()

    def wait_s(self, amount: float) -> float:
        """Gives the seconds until an amount may be taken; 0 or less: now."""
        if self._per_s == math.inf:
            return 0.0
        self.add(0.0)
        return (min(amount, self._most) - self._level) / self._per_s

    def add(self, amount: float) -> None:
        """Add what has flown in since the last time, then an amount, negative to take; it holds no more than it may."""
        if self._per_s == math.inf:
            return
        now_s = self._clock()
        self._level = min(self._level + (now_s - self._at_s) * self._per_s, self._most)
        self._level = min(self._level + amount, self._most)
        self._at_s = now_s
