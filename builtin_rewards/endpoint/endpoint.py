"""One server as a judge sees it: tries with waits under one deadline, each past the breaker and the budget."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from builtin_rewards.endpoint.backends import Backend, Server, name_of
from builtin_rewards.endpoint.budget import Reservation
from builtin_rewards.endpoint.client import ask_once
from builtin_rewards.endpoint.errors import (
    BudgetSpentError,
    Fault,
    JudgeError,
    JudgeSetupError,
    JudgeUnavailableError,
    is_number,
)
from builtin_rewards.endpoint.limits import Breaker, Limiter, Load
from builtin_rewards.endpoint.messages import Reply, Request, texts_of

if TYPE_CHECKING:
    from tenacity import RetryCallState

_CHARS_A_TOKEN = 4  # of English; a rate in tokens is corrected by what the server counts
_NOTABLE_WAIT_S = 0.05  # shorter waits for a slot are no news
_MONEY_MARGIN_S = 0.05  # stop waiting for budget this long before the deadline, so that the error names the cap
Reserve: TypeAlias = Callable[[float], Awaitable[Reservation]]  # takes seconds, reserves a request's money in them
# Faults that another try may cure.
TRIED_AGAIN = frozenset({Fault.CONNECTION, Fault.RATE_LIMIT, Fault.SERVER_ERROR, Fault.NOT_A_COMPLETION})


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and when a request is tried again. A wrong setting raises JudgeSetupError.

    Attributes:
        attempts: Tries altogether, at least 1.
        first_wait_s: Seconds before the second try, before jitter; each further wait is twice as long.
        longest_wait_s: The longest of these waits.
        longest_retry_after_s: The longest ``Retry-After`` to wait for; a longer one ends the judgement at once.
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
            expected = f"at least first_wait_s={self.first_wait_s!r}"
            raise JudgeSetupError(f"longest_wait_s={self.longest_wait_s!r}: expected {expected}")

    def wait_s(self, tries: int, retry_after_s: float | None = None, jitter: float | None = None) -> float:
        """Return the seconds before the next try, exponential with equal jitter.

        Source: https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter.
        """
        jitter = random.random() if jitter is None else jitter  # noqa: S311  # for no secret
        if retry_after_s is not None:
            return retry_after_s + jitter * self.first_wait_s / 2
        return min(self.longest_wait_s, self.first_wait_s * 2.0 ** min(tries - 1, 64)) * (1 + jitter) / 2

    def why_no_more(self, error: JudgeError, tries: int, wait_s: float, left_s: float) -> str | None:
        """Return why an error ends the tries, perhaps an empty text; ``None`` if another try may cure it."""
        if error.fault not in TRIED_AGAIN or tries >= self.attempts:
            return ""
        if (asked_s := error.retry_after_s or 0.0) > self.longest_retry_after_s:
            return f"it asks to wait {asked_s:.0f} s, and longest_retry_after_s={self.longest_retry_after_s:g}"
        return f"waiting {wait_s:.1f} s more would pass the deadline" if wait_s >= left_s else None


@dataclass(slots=True)
class _PendingQuestion:
    """One question until its reply: its deadline, requests sent, tries begun, errors, if it waits for money.

    A try is begun before its request is sent, which waits for a turn and for money. ``unmetered`` are requests that
    failed, may be billed, and have no usage in a reply. The deadline stands still while the question waits for its
    turn, for ``patience_s`` over all tries.
    """

    request: Request
    reserve: Reserve | None
    deadline_s: float
    limit: asyncio.Timeout
    patience_s: float
    waited_s: float = 0.0
    waits_since_s: float | None = None
    sent: int = 0
    unmetered: int = 0
    tries: int = 0
    first: JudgeError | None = None
    last: JudgeError | None = None
    reserving: bool = False

    def pause(self) -> None:
        """Let the deadline stand still, until :meth:`resume` or the end of the patience."""
        self.waits_since_s = asyncio.get_running_loop().time()
        self.limit.reschedule((self.limit.when() or 0.0) + self.patience_s)

    def resume(self) -> None:
        """Let the deadline run on; what was waited beyond the patience counts for it."""
        if self.waits_since_s is None:
            return
        waited_s = asyncio.get_running_loop().time() - self.waits_since_s
        self.waited_s, self.waits_since_s = self.waited_s + waited_s, None
        unused_s = max(0.0, self.patience_s - waited_s)
        if not self.limit.expired():
            self.limit.reschedule((self.limit.when() or 0.0) - unused_s)
        self.patience_s = unused_s

    @property
    def left_s(self) -> float:
        return max(0.0, (self.limit.when() or 0.0) - asyncio.get_running_loop().time())

    @property
    def tokens(self) -> float:
        """About how many tokens it takes, read and written."""
        length = self.request.options.get("max_completion_tokens") or self.request.options.get("max_tokens") or 0
        read = sum(len(text) for message in self.request.messages for text in texts_of(message)[0])
        return read / _CHARS_A_TOKEN + float(length)


class Endpoint:
    """One server for one event loop: it limits how much is asked, and tries again."""

    def __init__(self, backend: Backend, load: Load, retry: RetryPolicy) -> None:
        self._backend = backend
        self._name = name_of(backend)
        self._retry = retry
        self._gate = Limiter(load)
        self._breakers: defaultdict[str, Breaker] = defaultdict(lambda: Breaker(self._name, load.rest_s))

    async def ask(
        self, request: Request, deadline_s: float, reserve: Reserve | None = None, *, patience_s: float | None = None
    ) -> Reply:
        """Return the reply, its ``requests`` those of all tries, or raise within a deadline that includes all waits.

        The deadline does not count the first ``patience_s``, by default as much as ``deadline_s``, of waiting for a
        slot, which other questions hold up.
        """
        from tenacity import AsyncRetrying, retry_if_exception_type

        limit = asyncio.timeout(deadline_s)
        patience_s = deadline_s if patience_s is None else patience_s
        pending = _PendingQuestion(request, reserve, deadline_s, limit, patience_s)
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(JudgeError),
            wait=lambda state: self._retry.wait_s(state.attempt_number, _error_of(state).retry_after_s),
            stop=lambda state: self._why_no_more(pending, state) is not None,
            retry_error_callback=lambda state: self._give_up(pending, state),
            sleep=asyncio.sleep,
        )
        try:
            async with limit:
                reply: Reply = await retrying(self._try, pending)
                waited_s = pending.waited_s
                return replace(reply, requests=pending.sent, unmetered=pending.unmetered, waited_s=waited_s)
        except TimeoutError:
            if not limit.expired():
                raise
        if pending.reserve is not None and pending.reserving:  # a machine that stood still used up the margin
            try:
                (await pending.reserve(0.0)).release()
            except BudgetSpentError as error:
                raise _with_counts(error, pending) from None
        raise self._deadline_error(pending)

    def _why_no_more(self, pending: _PendingQuestion, state: RetryCallState) -> str | None:
        """Return why the tries end with this one, perhaps an empty text; ``None`` if another may cure its error."""
        return self._retry.why_no_more(_error_of(state), pending.tries, state.upcoming_sleep, pending.left_s)

    def _give_up(self, pending: _PendingQuestion, state: RetryCallState) -> NoReturn:
        """Raise the last error with what became of the tries."""
        error, reason = _error_of(state), self._why_no_more(pending, state)
        notes = [reason] if reason else []
        if pending.sent > 1 and error.fault is not Fault.DEADLINE:  # whose message has the tries
            notes.insert(0, f"tried {pending.sent} times")
        last = error.with_message(f"{error.message} ({'; '.join(notes)})" if notes else error.message)
        raise _with_counts(last, pending) from None

    @asynccontextmanager
    async def _turn(self, pending: _PendingQuestion, tokens: float) -> AsyncIterator[None]:
        """Wait for a turn, which the deadline does not count as far as patience goes, and hold it over the block."""
        pending.pause()
        try:
            async with self._gate.turn(tokens):
                pending.resume()
                yield
        finally:
            pending.resume()

    async def _try(self, pending: _PendingQuestion) -> Reply:
        """Send a request in its turn, and tell the breaker and the limiter what became of it."""
        breaker, before, estimate = self._breakers[pending.request.model], pending.sent, pending.tokens
        breaker.look()  # so that nothing queues for a server that is left alone
        pending.tries += 1
        async with self._turn(pending, estimate):
            begun_s = asyncio.get_running_loop().time()
            try:
                with breaker.attempt(counts=pending.tries == 1):
                    try:
                        outcome = await self._send_paid(pending)
                    except asyncio.CancelledError:
                        if pending.limit.expired() and pending.sent > before:  # the server was silent to the end
                            raise self._deadline_error(pending) from None
                        raise
                    if outcome.free or outcome.usage is not None:
                        self._gate.tokens.take(sum((outcome.usage or (0, 0))[:2]) - estimate)
                    if isinstance(outcome, Reply):
                        self._gate.note_answer(asyncio.get_running_loop().time() - begun_s)
                        return outcome
                    pending.first, pending.last = pending.first or outcome, outcome
                    if outcome.fault is Fault.RATE_LIMIT:
                        wait_s = outcome.retry_after_s or 0.0
                        self._gate.note_refusal(wait_s if wait_s <= self._retry.longest_retry_after_s else 0.0)
                    raise outcome
            finally:
                if pending.sent == before:  # no money, no leave, or cancelled
                    self._gate.give_back(estimate)

    async def _send_paid(self, pending: _PendingQuestion) -> Reply | JudgeError:
        """Send a request when there is money for it."""
        if isinstance(self._backend, Server):
            self._backend.key()  # if the environment has no key any more, nothing is sent and nothing is paid
        reserve, wait_s = pending.reserve, max(0.0, pending.left_s - _MONEY_MARGIN_S)
        pending.reserving = reserve is not None
        with nullcontext() if reserve is None else await reserve(wait_s) as reservation:
            pending.reserving = False
            pending.sent += 1
            pending.unmetered += 1  # until it is known what became of it, as where the deadline ends it
            outcome = await ask_once(self._backend, pending.request)
            pending.unmetered -= isinstance(outcome, Reply) or outcome.free
            if reservation is not None:
                reservation.release() if outcome.free else reservation.settle(outcome.usage)
            return outcome

    def _deadline_error(self, pending: _PendingQuestion) -> JudgeError:
        # A try that waited for its turn, for money or for leave and was never sent is no try.
        tries = f"{pending.sent or 'no'} {'tries were' if pending.sent > 1 else 'try was'} made"
        ended = ", none ended before it" if pending.sent else ""
        before = f", the last that failed: {pending.last.problem or pending.last.message}" if pending.last else ended
        if pending.first and pending.last and pending.first.fault is not pending.last.fault:
            before = f", the first that failed: {pending.first.problem or pending.first.message}{before}"
        waited, help = "", "raise deadline_s, or allow fewer requests at once"
        if pending.waited_s >= _NOTABLE_WAIT_S:
            waited = f", beside {pending.waited_s:.3g} s of waiting for a slot"
        if pending.waited_s >= pending.deadline_s:  # then other requests took its time
            most, current = self._gate.most, self._gate.current
            is_throttled = current < most
            waited += f", of which there are {current if is_throttled else most}"
            waited += f" in place of {most} because of HTTP 429" if is_throttled else ""
            help = "raise deadline_s" if is_throttled else "raise the load's concurrency if the server takes more"
            help += ", or find out why requests hang, which hold the slots"
        problem = f"no reply within {pending.deadline_s:.3g} s{waited}; {tries}{before}"
        error = JudgeUnavailableError(
            f"{self._name}, model {pending.request.model!r}: {problem}; {help}", Fault.DEADLINE
        )
        return _with_counts(error, pending)


def _with_counts(error: JudgeError, pending: _PendingQuestion) -> JudgeError:
    """Return the error that ends a question with its counts, and of a cap with how the first try failed."""
    if isinstance(error, BudgetSpentError) and pending.first is not None and pending.first.fault is not Fault.BUDGET:
        error = error.after(pending.first)
    error.requests, error.unmetered, error.waited_s = pending.sent, pending.unmetered, pending.waited_s
    return error


def _error_of(state: RetryCallState) -> JudgeError:
    """Return the error with which a try ended."""
    error = None if state.outcome is None else state.outcome.exception()
    assert isinstance(error, JudgeError)  # nothing else is tried again
    return error
