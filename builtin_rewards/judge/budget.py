"""A hard cap on what judges spend, over all processes of a run.

Owns what a cap means, what a request may cost at most, and the ticket that each request needs. The sums lie in
:mod:`builtin_rewards.judge.ledger`; prices come from :mod:`builtin_rewards.judge.prices`.

The rule: a request is let through while all that is spent and all that those in flight may still cost, at most, is
below the cap. The sum grows only when one is let through, by what that one may cost at most, and shrinks when one ends
for less. So spending stays below the cap plus the most that one request may cost, however many are in flight in however
many threads and processes; and no request is let through once the cap is reached. A cap on requests is never passed.

What it rests on: no request is billed more than :func:`most_tokens` says. It reads a token per byte, for text of a
hostile policy can be made of such tokens. A server that writes more than ``max_tokens``, or hides a long prompt of its
own in its template, can be billed more; that is counted as it is, logged once, and may pass the cap by as much.
"""

from __future__ import annotations

import asyncio
import atexit
import functools
import json
import logging
import os
import shutil
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from builtin_rewards.judge.database import absolute
from builtin_rewards.judge.endpoint.values import Request, Usage, texts_of
from builtin_rewards.judge.errors import BudgetSpentError, Fault, JudgeSetupError, JudgeUnavailableError, is_number
from builtin_rewards.judge.ledger import Held, Ledger, Spend
from builtin_rewards.judge.loops import per_loop
from builtin_rewards.judge.prices import Price
from rewardkit.shown import one_line
from sandbox import folders

_log = logging.getLogger("rewardkit")

_REQUEST_TOKENS = 64
"""What a chat template may add to a prompt: markers and a short system prompt of its own."""
_IMAGE_TOKENS = 50_000
"""The most that a model is known to count for one image: gpt-4o-mini's 48,169."""
_MESSAGE_TOKENS = 16
"""What a chat template may add to a message: its role and markers."""
_AGAIN_S = 0.02
"""How often a call that waits for room looks again; one a process and event loop does."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Caps on what judges may spend; at least one.

    Hand the same budget to several judges to cap them together. It pickles as its settings, and all its copies count
    in one ledger.

    Attributes:
        usd: Cap in USD; each model then needs a price.
        tokens: Cap in tokens, read and written together.
        requests: Cap in requests.
        ledger: The file to count in, kept over restarts, so that a resumed run goes on counting. ``None``: one in a
            private folder that is removed when the process that made the budget exits. A crash of a process loses
            nothing of it; a crash of the machine may lose the last requests.

    Raises:
        JudgeSetupError: No cap, a cap that is none, or a ledger that cannot be used.
    """

    usd: float | None = None
    tokens: int | None = None
    requests: int | None = None
    ledger: str | os.PathLike[str] | None = None
    _ledger: Ledger = field(init=False, repr=False, compare=False)
    _path: Path = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _check_caps(self)
        path = _private_ledger() if self.ledger is None else absolute(self.ledger, "Budget(ledger=...)")
        object.__setattr__(self, "_path", path)
        object.__setattr__(self, "_ledger", Ledger(path))
        self._ledger.found()

    def check(self, model: str, options: Mapping[str, Any], price: Price | None) -> None:
        """See that the calls of a model with these options can be held to the caps.

        Raises:
            JudgeSetupError: There is no bound on a reply's length, or a cap in USD and the model has no price.
        """
        most_tokens(Request(model, (), options))
        if self.usd is not None and price is None:
            raise JudgeSetupError(
                f'Budget(usd={self.usd!r}): no price is known for model "{model}"; '
                f'set prices={{"{model}": Price(prompt, completion)}}, or cap tokens or requests instead'
            )

    def reserve(self, judge: str, most: Usage, price: Price | None = None) -> Ticket:
        """Let one request through, at once. What it gives is settled or released when the request ends.

        Args:
            judge: Whose request; :meth:`by_judge` tells judges apart by it.
            most: The tokens it may take at most, see :func:`most_tokens`.
            price: The model's price.

        Raises:
            BudgetSpentError: A cap is reached, or would be if all requests in flight cost their most.
            JudgeUnavailableError: The ledger cannot be written, so that the request could not be counted.
            JudgeSetupError: There is a cap in USD and no price.
        """
        entered = self._enter(judge, most, price)
        if isinstance(entered, Held):
            raise self._spent_error(judge, entered)
        return entered

    async def reserve_within(self, judge: str, most: Usage, price: Price | None, timeout_s: float) -> Ticket:
        """As :meth:`reserve`; where only the requests in flight stand in the way, wait for some of them to end.

        Those that wait on one event loop are let through in the order they came, after ``timeout_s`` at most.
        """
        try:
            async with asyncio.timeout(timeout_s), _turns(self._ledger):
                while isinstance(entered := self._enter(judge, most, price), Held):
                    if self._reached(entered.spent):
                        break
                    await asyncio.sleep(_AGAIN_S)
        except TimeoutError:
            return self.reserve(judge, most, price)
        if isinstance(entered, Held):
            raise self._spent_error(judge, entered)
        return entered

    def spent(self) -> Spend:
        """What all judges have spent; requests in flight are left out.

        Raises:
            JudgeUnavailableError: The ledger cannot be used.
        """
        return functools.reduce(Spend.plus, self.by_judge().values(), Spend())

    def by_judge(self) -> dict[str, Spend]:
        """What each judge has spent; requests in flight are left out.

        Raises:
            JudgeUnavailableError: The ledger cannot be used.
        """
        return self._ledger.totals()

    def _enter(self, judge: str, most: Usage, price: Price | None) -> Ticket | Held:
        if self.usd is not None and price is None:
            raise JudgeSetupError(f'Budget(usd={self.usd!r}): judge "{judge}" reserves without a price; set prices=...')
        bound = _spend(most, price)
        entered = self._ledger.enter(judge, bound, lambda total: not self._reached(total))
        return entered if isinstance(entered, Held) else Ticket(self._ledger, entered, judge, bound, price)

    def _reached(self, total: Spend) -> str:
        """The cap that such a sum reaches, in words; empty if none."""
        if self.usd is not None and total.usd >= self.usd:
            return f"usd={self.usd!r}"
        if self.tokens is not None and total.tokens >= self.tokens:
            return f"tokens={self.tokens!r}"
        if self.requests is not None and total.requests >= self.requests:
            return f"requests={self.requests!r}"
        return ""

    def _spent_error(self, judge: str, held: Held) -> BudgetSpentError:
        spent, in_flight = held
        cap = self._reached(spent) or self._reached(spent.plus(in_flight))
        return BudgetSpentError(
            f'judge "{judge}" was not asked: the cap {cap} of the budget is reached; spent {_words(spent)}, reserved '
            f"at most {_words(in_flight)} in flight; raise Budget({cap}) or give the judge a fallback",
            Fault.BUDGET,
        )


class Ticket:
    """What a request needs to be sent under a budget. One ticket is one request over HTTP, a try again is another.

    It ends once, by the first of :meth:`settle` and :meth:`release`; later ones do nothing. As a context manager it
    is settled at its most where nothing else was said.
    """

    __slots__ = ("_judge", "_ledger", "_most", "_number", "_open", "_price")

    def __init__(self, ledger: Ledger, number: int, judge: str, most: Spend, price: Price | None) -> None:
        self._ledger = ledger
        self._number = number
        self._judge = judge
        self._most = most
        self._price = price
        self._open = True

    def settle(self, usage: Usage | None = None) -> float | None:
        """The request was sent, and took that much.

        Args:
            usage: What the server says. ``None``, or counts below zero: not known, so it counts at its most, for it
                may be billed: no answer came, or one without usage.

        Returns:
            The cost that is counted, in USD; ``None`` if the model has no price.
        """
        known = usage is not None and min(usage) >= 0
        spent = _spend(usage, self._price) if usage is not None and known else self._most
        if spent.usd > self._most.usd or spent.tokens > self._most.tokens:
            _say_beyond(self._judge)
        self._end(spent)
        return None if self._price is None else spent.usd

    def release(self) -> None:
        """Nothing was spent: the request was not sent, or turned away with 429."""
        self._end(Spend())

    def _end(self, spent: Spend) -> None:
        if not self._open:
            return
        self._open = False
        try:
            self._ledger.leave(self._number, self._judge, self._most, spent)
        except JudgeUnavailableError as error:
            # The reply is had and stays good. The request goes on to count at its most, which is never too little.
            _log.warning('what judge "%s" spent counts at its most: %s', self._judge, one_line(str(error)))

    def __enter__(self) -> Ticket:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._open:
            self.settle()


@dataclass(frozen=True, slots=True)
class Spending:
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


def most_tokens(request: Request) -> Usage:
    """The tokens that a request may take at most.

    Of the prompt: the bytes of its messages and of its schema in UTF-8, for no token of a byte-level or byte-fallback
    vocabulary is less than a byte, and what chat templates add. Of the reply: ``max_tokens``, once per choice; where
    ``max_completion_tokens`` stands beside it the larger of both, for a server may read either.

    Raises:
        JudgeSetupError: The request has no ``max_tokens``, so that its cost has no bound.
    """
    options = {**(request.options.get("extra_body") or {}), **request.options}  # as they are sent
    lengths = [options[name] for name in ("max_completion_tokens", "max_tokens") if options.get(name) is not None]
    if not lengths or not all(isinstance(length, int) and length >= 1 for length in lengths):
        raise JudgeSetupError("a judge with a budget needs max_tokens, or one reply could cost any amount; set it")
    read = _REQUEST_TOKENS
    for message in request.messages:
        texts, images = texts_of(message)
        read += _MESSAGE_TOKENS + sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
        read += images * _IMAGE_TOKENS
    if "response_format" in options:
        read += len(json.dumps(options["response_format"]))
    return Usage(read, max(lengths) * (options.get("n") or 1))


def _spend(usage: Usage, price: Price | None) -> Spend:
    cost = 0.0 if price is None else price.cost(usage)
    return Spend(cost, usage.prompt_tokens, usage.completion_tokens, 1, int(price is None))


def _words(spend: Spend) -> str:
    return f"{spend.usd:.4f} USD, {spend.tokens} tokens, {spend.requests} requests"


def _check_caps(budget: Budget) -> None:
    caps = {"usd": budget.usd, "tokens": budget.tokens, "requests": budget.requests}
    if all(cap is None for cap in caps.values()):
        raise JudgeSetupError("Budget(): it caps nothing; give usd=, tokens= or requests=")
    for name, cap in caps.items():
        if cap is not None and not (is_number(cap, whole=name != "usd") and cap > 0):
            kind = "an amount" if name == "usd" else "a whole number"
            raise JudgeSetupError(f"Budget({name}={cap!r}): expected {kind} above 0, or None for no cap")


_FOLDERS = "rewardkit-budget-"


def _private_ledger() -> Path:
    folders.sweep(_FOLDERS)
    folder = folders.make(_FOLDERS)
    atexit.register(_remove, folder, os.getpid())
    return Path(folder, "ledger.db")


def _remove(folder: str, pid: int) -> None:
    # A forked child inherits the exit handlers, and other processes count on the file.
    if os.getpid() == pid:
        shutil.rmtree(folder, ignore_errors=True)


@functools.cache
def _say_beyond(judge: str) -> None:
    _log.warning(
        'a request of judge "%s" took more than max_tokens and the length of its prompt allow; the caps may be passed '
        "by as much",
        judge,
    )


@per_loop
def _lines() -> weakref.WeakKeyDictionary[Ledger, asyncio.Lock]:
    return weakref.WeakKeyDictionary()


def _turns(ledger: Ledger) -> asyncio.Lock:
    """The queue of those that wait for room in the ledger on this event loop."""
    return _lines().setdefault(ledger, asyncio.Lock())
