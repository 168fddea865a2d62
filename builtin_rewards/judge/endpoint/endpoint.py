"""One server as a judge sees it: what may be in flight, what is tried again, what is left alone, what is paid.

Puts the mechanisms of this folder in their order. For a question: tries with waits between them and one deadline over
all (``retry``). For a try: its turn by the rates and among those in flight (``limits``), the breaker's leave
(``breaker``), money, and then the request itself (``client``). Each is told what became of it.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Protocol

from builtin_rewards.judge.endpoint.breaker import Breaker
from builtin_rewards.judge.endpoint.client import Asks, Server, create
from builtin_rewards.judge.endpoint.limits import Gate, Load
from builtin_rewards.judge.endpoint.retry import RetryPolicy, Sign, with_retries
from builtin_rewards.judge.endpoint.values import Reply, Request, Usage, texts_of
from builtin_rewards.judge.errors import Fault, JudgeError, JudgeUnavailableError

_CHARS_A_TOKEN = 4
"""Of English with usual vocabularies; a rate in tokens is corrected by what the server counts."""
_MONEY_MARGIN_S = 0.05
"""Money is waited for until so long before the deadline: who waits in vain hears of the cap, not of a silent server."""
_OUT_OF_PATIENCE = frozenset({504, 524})
"""How a gateway says that it waited no longer for the server behind it, which may go on with the work and bill it."""


class Ticket(Protocol):
    """What a request needs to be sent where its cost is counted; one that nobody settles counts at its most."""

    def settle(self, usage: Usage | None = None) -> object:
        """Tell what the request took."""

    def release(self) -> None:
        """Tell that it took nothing."""


class Spender(Protocol):
    """Who pays for requests."""

    async def reserve(self, request: Request, timeout_s: float) -> AbstractContextManager[Ticket]:
        """Gives what a request needs to be sent, or raises where there is no money for it in time."""


@dataclass(slots=True)
class _Errand:
    """One question on its way: its deadline by the monotonic clock, requests sent, tries begun, the last error."""

    request: Request
    spender: Spender | None
    until: float
    sent: int = 0
    tries: int = 0
    last: JudgeError | None = None

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
        self._gate = Gate(load)
        self._breakers: defaultdict[str, Breaker] = defaultdict(lambda: Breaker(self._name, load.rest_s))

    def breaker(self, model: str) -> Breaker:
        """What leaves a model alone."""
        return self._breakers[model]

    async def ask(self, request: Request, deadline_s: float, spender: Spender | None = None) -> Reply:
        """Gives the reply, its ``requests`` all that were sent for it.

        Args:
            request: What is asked.
            deadline_s: Seconds for everything, waits for a turn included.
            spender: Who pays; ``None`` where nothing is counted.

        Raises:
            JudgeUnavailableError: No reply came, or none was asked for: an open breaker, a spent budget.
            JudgeReplyError: The reply is longer than any may be.
        """
        errand = _Errand(request, spender, time.monotonic() + deadline_s)
        limit = asyncio.timeout(deadline_s)
        try:
            async with limit:
                reply = await with_retries(self._retry, lambda _: self._try(errand, limit), lambda: errand.left_s)
            return replace(reply, requests=errand.sent)
        except JudgeError as error:
            error.requests = errand.sent
            raise
        except TimeoutError:
            if not limit.expired():
                raise
        raise self._late(errand, deadline_s)

    async def _try(self, errand: _Errand, limit: asyncio.Timeout) -> Reply:
        """Sends a request when it may go, and tells all who must know what became of it."""
        breaker, before = self._breakers[errand.request.model], errand.sent
        breaker.look()  # before it queues; below it is asked for its leave
        errand.tries += 1
        async with self._gate.turn(errand.tokens) as turn:
            with breaker.attempt(counts=errand.tries == 1) as tell:
                try:
                    reply = await self._paid(errand)
                except JudgeError as error:
                    errand.last = error
                    turn.tokens = 0.0 if _is_free(error) else _taken(error.usage, turn.tokens)
                    if (sign := Sign.of(error)) is not None:
                        tell(sign, error.words)
                    if sign is Sign.THROTTLED:
                        wait_s = error.retry_after_s or 0.0
                        self._gate.rejected(wait_s if wait_s <= self._retry.longest_retry_after_s else None)
                    raise
                except asyncio.CancelledError:
                    if limit.expired() and errand.sent > before:  # its request is out, and it was silent to the end
                        tell(Sign.AT_FAULT, "")
                    raise
                turn.tokens = _taken(reply.usage, turn.tokens)
                self._gate.accepted()
                tell(Sign.ANSWERED, "")
                return reply

    async def _paid(self, errand: _Errand) -> Reply:
        """Sends a request when there is money for it."""
        spender, wait_s = errand.spender, max(0.0, errand.left_s - _MONEY_MARGIN_S)
        with nullcontext() if spender is None else await spender.reserve(errand.request, wait_s) as ticket:
            errand.sent += 1
            try:
                reply = await create(self._asks, errand.request)
            except JudgeError as error:
                if ticket is not None:
                    ticket.release() if _is_free(error) else ticket.settle(error.usage)
                raise
            if ticket is not None:
                ticket.settle(reply.usage)
            return reply

    def _late(self, errand: _Errand, deadline_s: float) -> JudgeError:
        """Gives the error of a deadline that passed."""
        tries = f"{errand.tries} {'try was' if errand.tries == 1 else 'tries were'} made"
        before = f", the last that failed: {errand.last.words}" if errand.last else ", none ended before it"
        error = JudgeUnavailableError(
            f"{self._name}, model {errand.request.model!r}: no reply within {deadline_s:.3g} s; {tries}{before}; "
            "raise deadline_s, or allow fewer requests at once",
            Fault.DEADLINE,
        )
        error.requests = errand.sent
        error.status = errand.last.status if errand.last else None
        return error


def _is_free(error: JudgeError) -> bool:
    """Whether a failed request took nothing: it did not reach the server, or the server said no to it.

    Whatever else went wrong may have happened after the work was done, and may be billed.
    """
    said_no = error.status is not None and error.status >= 400 and error.status not in _OUT_OF_PATIENCE
    return (said_no and not error.worked_on) or not error.reached


def _taken(usage: Usage | None, estimate: float) -> float:
    return estimate if usage is None else float(sum(usage[:2]))
