"""One server as a judge sees it: what may be in flight, what is tried again, what is left alone, what is paid.

Puts the mechanisms of this folder in their order. For a question: tries with waits between them and one deadline over
all (``retry``). For a try: its turn by the rates, a slot among those in flight (``limits``), the breaker's leave
(``breaker``), and a second request where the first is slow (``hedge``). For a request: money (``budget``), and then the
request itself (``client``). Each mechanism is told what became of it.
"""

from __future__ import annotations

import math
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass

from builtin_rewards.judge.budget import Budget, Ticket, most_tokens
from builtin_rewards.judge.endpoint.breaker import BreakerState, CircuitBreaker, Try
from builtin_rewards.judge.endpoint.client import Asks, Server, create
from builtin_rewards.judge.endpoint.hedge import HedgeDelay, hedged
from builtin_rewards.judge.endpoint.limits import AdaptiveLimit, RateLimit, Slot
from builtin_rewards.judge.endpoint.retry import RetryPolicy, Sign, Tried, with_retries
from builtin_rewards.judge.endpoint.values import Reply, Request, texts_of
from builtin_rewards.judge.errors import BudgetSpentError, Fault, JudgeError, JudgeSetupError, JudgeUnavailableError
from builtin_rewards.judge.prices import Price

_CHARS_A_TOKEN = 4
"""Of English with usual vocabularies; a rate in tokens is corrected by what the server counts."""
_MONEY_MARGIN_S = 0.05
"""Money is waited for until so long before the deadline: who waits in vain hears of the cap, not of a silent server."""
_OUT_OF_PATIENCE = frozenset({504, 524})
"""How a gateway says that it waited no longer for the server behind it, which may go on with the work and bill it."""
_LONGEST_RESTS = 12
"""5 s grow to 60 s, see :class:`~builtin_rewards.judge.endpoint.breaker.CircuitBreaker`."""


@dataclass(frozen=True, slots=True)
class Load:
    """How much a server is asked.

    Attributes:
        concurrency: Requests in flight at most. Fewer are where the server says 429.
        requests_per_minute: ``None``: not bounded.
        tokens_per_minute: Prompts and completions together; ``None``: not bounded.
        rest_s: Seconds that a server is left alone, by chance up to a quarter longer, once most of its last tries have
            failed. Then one request probes it; each that fails doubles the time, up to twelve times this.
        hedge: Whether requests slower than 95 % of the last 200 are asked a second time, at most one in twenty. The
            first answer counts; both are paid.

    Raises:
        JudgeSetupError: A setting makes no sense.
    """

    concurrency: int = 128
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    rest_s: float = 5.0
    hedge: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.concurrency, bool) or not isinstance(self.concurrency, int) or self.concurrency < 1:
            raise JudgeSetupError(f"Load(concurrency={self.concurrency!r}): expected a whole number, 1 or more")
        if isinstance(self.rest_s, bool) or not isinstance(self.rest_s, int | float) or not 0 < self.rest_s < math.inf:
            raise JudgeSetupError(f"Load(rest_s={self.rest_s!r}): expected a number of seconds greater than 0")
        RateLimit(self.requests_per_minute, self.tokens_per_minute)


@dataclass(frozen=True, slots=True)
class Spender:
    """Who pays for a judge's requests.

    Attributes:
        budget: The caps.
        judge: The judge's name in the ledger.
        price: The model's price; ``None`` where it has none.
    """

    budget: Budget
    judge: str
    price: Price | None

    async def reserve(self, request: Request, timeout_s: float) -> Ticket:
        """Gives what a request needs to be sent; see :meth:`Budget.reserve_within`."""
        return await self.budget.reserve_within(self.judge, most_tokens(request), self.price, timeout_s)

    def refusal(self, request: Request) -> BudgetSpentError | None:
        """Gives the error of a request that there is no money for now."""
        try:
            self.budget.reserve(self.judge, most_tokens(request), self.price).release()
        except BudgetSpentError as error:
            return error
        return None


@dataclass(slots=True)
class _Errand:
    """One question on its way.

    Attributes:
        request: What is asked.
        spender: Who pays.
        until: Its deadline, on the monotonic clock.
        sent: Requests that were sent for it so far.
        taken: Tokens that the try under way took, or may take.
        tries: Tries that were begun.
        before: Those of ``sent`` that the tries before the one under way sent.
        unpaid: Whether the try under way has sent nothing and waits for money.
    """

    request: Request
    spender: Spender | None
    until: float
    sent: int = 0
    taken: float = 0.0
    tries: int = 0
    before: int = 0
    unpaid: bool = False

    @property
    def left_s(self) -> float:
        return max(0.0, self.until - time.monotonic())

    @property
    def tokens(self) -> float:
        """About how many tokens it takes."""
        length = self.request.options.get("max_completion_tokens") or self.request.options.get("max_tokens") or 0
        read = sum(len(text) for message in self.request.messages for text in texts_of(message)[0])
        return read / _CHARS_A_TOKEN + float(length)


class Endpoint:
    """One server, for one event loop.

    Args:
        asks: The server.
        load: How much it is asked.
        retry: What is tried again and when.
    """

    def __init__(self, asks: Asks, load: Load, retry: RetryPolicy) -> None:
        self._asks = asks
        self._name = asks.name if isinstance(asks, Server) else f"the client {type(asks).__name__}"
        self._retry = retry
        self._limit = AdaptiveLimit(load.concurrency)
        self._rate = RateLimit(load.requests_per_minute, load.tokens_per_minute)
        self._breaker = CircuitBreaker(self._name, open_s=load.rest_s, longest_s=_LONGEST_RESTS * load.rest_s)
        self._delay = HedgeDelay() if load.hedge else None

    @property
    def limit(self) -> int:
        """Requests that may be in flight now."""
        return self._limit.current

    @property
    def breaker(self) -> BreakerState:
        """Whether it is asked at all."""
        return self._breaker.state

    async def ask(self, request: Request, deadline_s: float, spender: Spender | None = None) -> Reply:
        """Gives the reply, its ``requests`` all that were sent for it.

        Args:
            request: What is asked.
            deadline_s: Seconds for everything, waits for a turn included.
            spender: Who pays; ``None`` where nothing is counted.

        Raises:
            JudgeUnavailableError: No reply came, or none was asked for: an open breaker, a spent budget.
            JudgeReplyError: The reply was cut short or filtered.
        """
        errand = _Errand(request, spender, time.monotonic() + deadline_s)
        try:
            return await with_retries(
                self._retry,
                lambda: self._hedged(errand),
                deadline_s,
                asked=f"{self._name}, model {request.model!r}",
                admit=lambda: self._turn(errand),
                sent=lambda: errand.sent,
            )
        except JudgeUnavailableError as late:
            # An event loop that was held up sees both times pass at once, its own and that for the money.
            refusal = spender.refusal(request) if late.fault is Fault.DEADLINE and errand.unpaid and spender else None
            if refusal is None:
                raise
            refusal.requests = late.requests
            raise refusal from None

    @asynccontextmanager
    async def _turn(self, errand: _Errand) -> AsyncIterator[Callable[[Tried], None]]:
        """Waits until a try may go, and takes note of what becomes of it."""
        self._breaker.look()  # before it queues; below it is asked for its leave
        errand.taken = errand.tokens
        errand.tries += 1
        errand.before, errand.unpaid = errand.sent, False
        async with self._place(errand) as slot:
            with self._breaker.attempt(counts=errand.tries == 1) as attempt:
                yield lambda tried: self._hear(tried, slot, attempt)

    @asynccontextmanager
    async def _place(self, errand: _Errand) -> AsyncIterator[Slot]:
        """Waits until one more request may go by the rates, and by what is in flight."""
        tokens = errand.tokens
        await self._rate.acquire(tokens)
        try:
            async with self._limit.slot() as slot:
                yield slot
        finally:
            self._rate.settle(tokens, errand.taken)

    def _hear(self, tried: Tried, slot: Slot, attempt: Try) -> None:
        if tried.sign is Sign.ANSWERED:
            slot.accepted()
            attempt.succeeded()
        elif tried.sign is Sign.AT_FAULT:
            attempt.failed()
        elif tried.sign is Sign.THROTTLED:
            attempt.rejected()
            wait_s = tried.retry_after_s or 0.0
            # One of many: all wait as long as the server asks. A lone one waits by itself, before its next try.
            if slot.rejected() and wait_s <= self._retry.longest_retry_after_s:
                self._limit.pause_until(time.monotonic() + wait_s)

    async def _hedged(self, errand: _Errand) -> Reply:
        """Sends a request, and once more where it is slow; the second takes a turn and a slot of its own."""
        delay = self._delay
        if delay is None:
            return await self._paid(errand)
        first = True

        async def send() -> Reply:
            nonlocal first
            if first:
                first = False
                return await self._paid(errand)
            async with self._place(errand):
                return await self._paid(errand)

        delay.began()
        began = time.monotonic()
        reply = await hedged(send, delay.after_s, may_hedge=delay.may_hedge)
        delay.observe(time.monotonic() - began)
        return reply

    async def _paid(self, errand: _Errand) -> Reply:
        """Sends a request when there is money for it."""
        spender = errand.spender
        wait_s = max(0.0, errand.left_s - _MONEY_MARGIN_S)
        errand.unpaid = errand.sent == errand.before
        ticket = None if spender is None else await spender.reserve(errand.request, wait_s)
        errand.unpaid = False
        with nullcontext() if ticket is None else ticket:
            errand.sent += 1
            try:
                reply = await create(self._asks, errand.request)
            except JudgeError as error:
                if _is_free(error):
                    errand.taken = 0.0
                    if ticket is not None:
                        ticket.release()
                raise
            if reply.usage is not None:
                errand.taken = float(sum(reply.usage[:2]))
            if ticket is not None:
                ticket.settle(reply.usage)
            return reply


def _is_free(error: JudgeError) -> bool:
    """Whether a failed request took nothing: it did not reach the server, or the server said no to it.

    Whatever else went wrong may have happened after the work was done, and may be billed.
    """
    said_no = error.status is not None and error.status >= 400 and error.status not in _OUT_OF_PATIENCE
    return said_no or not error.reached
