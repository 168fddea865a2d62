"""How much a server is asked: :class:`Load` sets it, :class:`Limiter` keeps it, :class:`Breaker` stops asking."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass

from builtin_rewards.endpoint.errors import Fault, JudgeError, JudgeSetupError, JudgeUnavailableError, is_number

# Share of 429s that is no sign of overload: a limit that halves at each 429 settles at some 8 of 128 in flight if a
# server rejects one request in 40 at random.
TOLERATED = 0.1
BURST_S = 10.0  # seconds of a rate that may go at once after a rest; so within any minute up to 7/6 of the rate may go
FIRST, FIRST_S = 8, 2.0  # in flight before the first answer, and for how long at most: few find out a wrong key
# A request in flight for so many times the longest of the last answers is overdue, and takes no room of a limit that
# shrank: else one that hangs would hold up all others where the limit is 1. It still counts for the load's concurrency.
OVERDUE, OVERDUE_S, FADE = 3.0, 0.2, 0.95  # times, seconds at least, and how the longest fades with each answer
# Failures in a row that open a breaker, or as many as requests are in flight, if that is more: a fault comes at once
# and an answer takes its time, so on any server the first that end have failed.
AT_LEAST = 20
REFUSED = 5  # refusals of the key in a row that open it, because no further request would be answered
REFUSED_REST_S = 300.0  # how long such a server is left alone; an account may be topped up during a run
_AT_FAULT = frozenset({Fault.CONNECTION, Fault.SERVER_ERROR, Fault.NOT_A_COMPLETION, Fault.DEADLINE})


@dataclass(frozen=True, slots=True)
class Load:
    """How much a server is asked. A wrong setting raises JudgeSetupError.

    Attributes:
        concurrency: Requests in flight at most; fewer if the server answers 429.
        requests_per_minute: ``None``: no bound. At least one, and ten seconds' worth, may go at once.
        tokens_per_minute: Prompts and completions together; ``None``: no bound.
        rest_s: Seconds that a server is left alone after its last tries have all failed; then one request probes it.
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
    """Lets requests through in the order they came: a number in flight, a rate of requests, and one of tokens.

    A round has as many answers as may be in flight. If more than a tenth of a round were 429s, the limit shrinks to
    the share of the others, at least by half; else it grows by an eighth, up to the load's. A request that is overdue
    leaves its room of a limit that shrank to another.
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
        self._begun_s: list[float] = []  # when those in flight began, in order
        self._longest_s: float | None = None  # about the longest of the last answers

    @property
    def in_flight(self) -> int:
        return len(self._begun_s)

    @property
    def current(self) -> int:
        """Requests that may be in flight now."""
        is_new = self._first_until is not None and time.monotonic() < self._first_until
        return min(FIRST, self._most) if is_new else int(self._size)

    @property
    def most(self) -> int:
        """Requests that the load lets be in flight."""
        return self._most

    @asynccontextmanager
    async def turn(self, tokens: float = 0.0) -> AsyncIterator[None]:
        """Wait for a turn and hold it over the block, taking an estimate of tokens, the completion's included."""
        async with self._line:  # only the first in line waits for the limiter itself
            while (wait_s := self._wait_s(tokens)) > 0:
                self._changed.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(None if wait_s == math.inf else max(wait_s, 0.001)):
                        await self._changed.wait()
            self._requests.take(1)
            self.tokens.take(tokens)
            begun_s = time.monotonic()
            self._begun_s.append(begun_s)
        try:
            yield
        finally:
            self._begun_s.remove(begun_s)
            self._changed.set()

    def give_back(self, tokens: float) -> None:
        """Note that no request was sent in a turn."""
        self._requests.take(-1)
        self.tokens.take(-tokens)

    def note_refusal(self, retry_after_s: float = 0.0) -> None:
        """Note a 429. If it is one of many, all requests wait for as long as the server asks."""
        self._refused += 1
        if self._refused > max(1, TOLERATED * self._size):
            self._paused_until = max(self._paused_until, time.monotonic() + retry_after_s)
        self._end()

    def note_answer(self, took_s: float | None = None) -> None:
        """Note that the server did the work, and how long it took if that was measured."""
        self._first_until = -math.inf
        if took_s is not None:
            self._longest_s = max(took_s, FADE * (self._longest_s or 0.0))
        self._end()

    def _end(self) -> None:
        """Count an answer or a 429, and set the limit anew where it ends the round."""
        self._finished += 1
        if self._finished < self._size:
            return
        share = self._refused / self._finished
        smaller, larger = self._size * max(0.5, 1 - share), self._size + max(1.0, self._size / 8)
        self._size = max(1.0, smaller) if share > TOLERATED else min(float(self._most), larger)
        self._finished = self._refused = 0

    def _wait_s(self, tokens: float) -> float:
        """Return the seconds after which to look again: at most 0 for a turn now, infinite until another turn ends."""
        now_s = time.monotonic()
        if self._first_until is None:
            self._first_until = now_s + FIRST_S
        wait_s = max(self._paused_until - now_s, self._requests.wait_s(1), self.tokens.wait_s(tokens))
        return max(wait_s, self._slot_wait_s(now_s))

    def _slot_wait_s(self, now_s: float) -> float:
        """Return the seconds until a slot may be free: at most 0 if one is, infinite until another turn ends."""
        first_until = self._first_until or -math.inf
        if self.in_flight >= self._most or (self.in_flight >= self.current and first_until > now_s):
            return first_until - now_s if first_until > now_s else math.inf
        overdue_s = FIRST_S if self._longest_s is None else max(OVERDUE_S, OVERDUE * self._longest_s)
        prompt = [begun_s for begun_s in self._begun_s if now_s - begun_s < overdue_s]
        excess = len(prompt) - self.current
        return prompt[excess] + overdue_s - now_s if excess >= 0 else 0.0


class _Rate:
    """A rate with a burst. An amount beyond the burst waits for the full burst, and later ones wait for its debt."""

    def __init__(self, per_minute: float | None) -> None:
        self._each_s = 0.0 if per_minute is None else 60 / per_minute
        self._burst_s = max(BURST_S, self._each_s)
        self._paid_at_s = -math.inf  # when the rate has caught up with all that was taken

    def wait_s(self, amount: float) -> float:
        """Return the seconds until an amount may be taken; 0 or less: now."""
        debt_s = max(0.0, self._paid_at_s - time.monotonic())
        return debt_s + min(amount * self._each_s, self._burst_s) - self._burst_s

    def take(self, amount: float) -> None:
        """Take an amount, or give it back if it is negative."""
        self._paid_at_s = max(self._paid_at_s, time.monotonic()) + amount * self._each_s


class Breaker:
    """Opens when all last tries failed, ignoring 429s; after its rest it probes, and an answer closes it."""

    def __init__(self, name: str, rest_s: float) -> None:
        self._name, self._rest_s = name, rest_s
        self._in_flight = 0
        self._close()

    def _close(self) -> None:
        self._failed = self._refused = 0
        self._until: float | None = None
        self._why, self._probing = "", False

    def look(self) -> None:
        """Raise JudgeUnavailableError if no try is let through now; the message says why and for how long."""
        left_s = 0.0 if self._until is None else max(0.0, self._until - time.monotonic())
        if left_s > 0 or self._probing:
            when = f"it is asked again in {left_s:.1f} s" if left_s > 0 else "a probe is under way, 0.0 s are left"
            raise JudgeUnavailableError(f"{self._name} {self._why} and is left alone; {when}", Fault.BREAKER_OPEN)

    @contextmanager
    def attempt(self, counts: bool = True) -> Iterator[None]:
        """Let a try through or raise, and note how it ends; at a run's end all are retries, which do not count."""
        self.look()
        self._probing = probes = self._until is not None
        self._in_flight += 1
        try:
            yield
            self._close()
        except JudgeError as error:
            if error.requests:
                self._note_failure(error, probes, counts)
            raise
        finally:
            self._in_flight -= 1
            self._probing = self._probing and not probes

    def _note_failure(self, error: JudgeError, probes: bool, counts: bool) -> None:
        """Count a failure in a row, and open after enough of them; close where it shows that the server works."""
        if error.refuses_key:
            self._refused += 1
            if probes or self._refused >= REFUSED:
                self._why = f"refused {self._refused} requests in a row ({error.message})"
                self._until = time.monotonic() + REFUSED_REST_S
        elif error.fault in _AT_FAULT:
            self._failed += counts
            if probes or (self._until is None and self._failed >= max(AT_LEAST, self._in_flight)):
                self._why = f"failed {self._failed} tries in a row"
                self._until = time.monotonic() + self._rest_s
        elif error.fault is not Fault.RATE_LIMIT or probes:
            self._close()
