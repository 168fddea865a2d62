"""A hard cap on what judges spend, over all processes of a run, with the ledger that counts it.

A request is sent if the cap holds what is spent, what all requests in flight may cost at most, and the request's own
reservation: its prompt by an estimate, and ``max_tokens``. So spending exceeds the cap by no more than what one request
can cost beyond its reservation, in however many threads and processes; a cap on requests is exact. A server that bills
more than :func:`most_tokens` may exceed the cap by as much; that is counted, and logged once.

What tokens cost is a table that the user sets; none is shipped, because prices change.
"""

from __future__ import annotations

import asyncio
import functools
import json
import logging
import os
import re
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from builtin_rewards.endpoint.database import Database
from builtin_rewards.endpoint.errors import (
    OR_FALLBACK,
    BudgetSpentError,
    Fault,
    JudgeSetupError,
    JudgeUnavailableError,
    is_number,
)
from builtin_rewards.endpoint.messages import Request, Usage, texts_of
from rewardkit.extending import of_this_loop, shortened

_log = logging.getLogger("rewardkit")
_warn_once = functools.cache(_log.warning)
_REQUEST_TOKENS, _MESSAGE_TOKENS = 64, 16  # what chat templates add: a short system prompt; role and markers
_IMAGE_TOKENS = 50_000  # the most that a model is known to count for one image: gpt-4o-mini's 48,169
_BYTES_A_TOKEN = 4  # of English; the estimate by which a prompt is reserved
_AGAIN_S = 0.02  # how often a call that waits for room looks again; one a process and event loop does
_LOST_AFTER_S = 3600.0  # a request in flight for this long counts as spent: its process has died
_TABLE = '{"%s": Price(prompt, completion)}'
_DATE = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8})\Z")


@dataclass(frozen=True, slots=True)
class Price:
    """What a model's tokens cost, in USD per million.

    Attributes:
        prompt: Of what it reads; at least 0.
        completion: Of what it writes; at least 0.
        cached: Of what it reads and the server had cached; at most ``prompt``. ``None``: as ``prompt``.
    """

    prompt: float
    completion: float
    cached: float | None = None

    def __post_init__(self) -> None:
        cached = self.prompt if self.cached is None else self.cached
        for name, value in (("prompt", self.prompt), ("completion", self.completion), ("cached", cached)):
            if not is_number(value) or value < 0:
                raise JudgeSetupError(f"Price({name}={value!r}): expected USD per million tokens, a finite number >= 0")
        if cached > self.prompt:
            raise JudgeSetupError(f"Price(cached={cached!r}): expected at most the price of others, {self.prompt!r}")

    def cost(self, usage: Usage) -> float:
        """Return what a usage costs, in USD."""
        cached = min(usage.cached_tokens, usage.prompt_tokens)
        cheap = self.prompt if self.cached is None else self.cached
        fresh = usage.prompt_tokens - cached
        return (fresh * self.prompt + cached * cheap + usage.completion_tokens * self.completion) / 1_000_000


def check_prices(prices: Mapping[str, Price], model: str) -> dict[str, Price]:
    """Return prices by model, or raise JudgeSetupError; warn if there are prices and none is the model's."""
    is_table = isinstance(prices, Mapping)
    if not is_table or not all(isinstance(n, str) and isinstance(price, Price) for n, price in prices.items()):
        raise JudgeSetupError(f"prices={prices!r}: expected {_TABLE % 'model'}")
    if prices and price_of(prices, model) is None:
        message = 'no price is known for model "%s": its tokens are counted, its cost is not; set prices=%s'
        _log.warning(message, shortened(model), _TABLE % shortened(model))
    return dict(prices)


def price_of(prices: Mapping[str, Price], model: str) -> Price | None:
    """Return a model's price by its name, else by that without its date (``-2026-03-01``, ``-20260301``)."""
    return prices.get(model) or prices.get(_DATE.sub("", model))


class Spend(NamedTuple):
    """What was spent: USD if the model has a price, tokens read and written, and requests that may be billed."""

    usd: float = 0.0
    tokens: int = 0
    requests: int = 0

    def __str__(self) -> str:
        return f"{self.usd:.4f} USD, {self.tokens} tokens, {self.requests} request{'' if self.requests == 1 else 's'}"


class _Ledger(Database):
    """One row for what each judge has spent, and one with its start time for each request in flight."""

    setting = "Budget(ledger=...)"
    application_id = 0x726B6A6C  # "rkjl"
    version = 3
    schema = (
        "CREATE TABLE amounts (id INTEGER PRIMARY KEY, judge TEXT NOT NULL, at REAL NOT NULL DEFAULT 0, "
        "usd REAL NOT NULL, tokens INTEGER NOT NULL, requests INTEGER NOT NULL)",
        "CREATE UNIQUE INDEX spent ON amounts (judge) WHERE at = 0",
    )
    busy_s = 5.0


_TOTAL = "SELECT ifnull(sum(usd), 0), ifnull(sum(tokens), 0), ifnull(sum(requests), 0) FROM amounts"
_BEGIN = "INSERT INTO amounts (judge, at, usd, tokens, requests) VALUES (?, ?, ?, ?, ?)"
_END = "DELETE FROM amounts WHERE id = ?"
_ADD = (
    "INSERT INTO amounts (judge, usd, tokens, requests) VALUES (?, ?, ?, ?) ON CONFLICT (judge) WHERE at = 0 "
    "DO UPDATE SET usd = usd + excluded.usd, tokens = tokens + excluded.tokens, requests = requests + excluded.requests"
)
_BY_JUDGE = "SELECT judge, sum(usd), sum(tokens), sum(requests) FROM amounts WHERE at < ? GROUP BY judge ORDER BY judge"


@dataclass(frozen=True, slots=True)
class Budget:
    """Caps on what judges may spend, shared by all that have it or a copy; JudgeSetupError without any cap.

    Attributes:
        usd: Cap in USD; each model then needs a price.
        tokens: Cap in tokens, read and written together.
        requests: Cap in requests.
        ledger: The file to count in, so that a resumed run goes on counting. ``None``: a private file that is removed
            when the process that made it exits; the processes of a training on one host share it, so that the cap holds
            once over all of them.
    """

    usd: float | None = None
    tokens: int | None = None
    requests: int | None = None
    ledger: str | os.PathLike[str] | None = None
    _ledger: _Ledger = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        caps = {"usd": self.usd, "tokens": self.tokens, "requests": self.requests}
        if not any(cap is not None for cap in caps.values()):
            raise JudgeSetupError("Budget(): it caps nothing; give usd=, tokens= or requests=")
        for name, cap in caps.items():
            if cap is not None and not (is_number(cap, whole=name != "usd") and cap > 0):
                kind = "an amount" if name == "usd" else "a whole number"
                raise JudgeSetupError(f"Budget({name}={cap!r}): expected {kind} above 0, or None for no cap")
        object.__setattr__(self, "_ledger", _Ledger(self.ledger, json.dumps([*caps.values()])))

    @property
    def is_of_one_host(self) -> bool:
        """Whether what it counts is known on this host alone: it has a private ledger."""
        return self._ledger.is_private

    def set_up(self) -> None:
        """Make the ledger, as its first use does too; JudgeSetupError if it cannot be used."""
        self._ledger.set_up()

    def check(self, model: str, options: Mapping[str, Any], price: Price | None) -> None:
        """Raise JudgeSetupError if a model's replies have no bound on their length, or the cap needs a price."""
        most_tokens(Request(model, (), options))
        if self.usd is not None and price is None:
            problem = f'no price is known for model "{model}"; set prices={{"{model}": Price(prompt, completion)}}'
            raise JudgeSetupError(f"Budget(usd={self.usd!r}): {problem}, or cap tokens or requests instead")

    def reserve(self, judge: str, most: Usage, price: Price | None = None) -> Reservation:
        """Reserve a request that takes ``most`` tokens at most; the reservation is settled when the request ends.

        Raises:
            BudgetSpentError: A cap would be passed if all requests in flight cost their most, and this one as expected.
            JudgeUnavailableError: The ledger cannot be written.
        """
        bound, expected = _spend(most, price), _expected(most, price)
        with self._counting(), self._ledger.transaction() as connection:
            total = Spend(*connection.execute(_TOTAL).fetchone())
            if not (cap := self._passed(total, expected)):
                number = connection.execute(_BEGIN, (judge, time.time(), *bound)).lastrowid
                return Reservation(self._ledger, number, judge, bound, price)
        raise BudgetSpentError(
            f'judge "{judge}" was not asked: the cap {cap} of the budget is reached; spent {self.spent()}, with all in '
            f"flight at most {total}, and one more may take {expected}; raise Budget({cap}) or lower max_tokens"
            f"{OR_FALLBACK}",
            Fault.BUDGET,
        )

    async def reserve_within(self, judge: str, most: Usage, price: Price | None, timeout_s: float) -> Reservation:
        """Reserve as :meth:`reserve` does, but wait up to ``timeout_s`` if only requests in flight stand in the way.

        Requests of one event loop are served in the order they came.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s), of_this_loop(("ledger", self._ledger.path), asyncio.Lock):
                while True:
                    try:
                        return self.reserve(judge, most, price)
                    except BudgetSpentError:
                        if self._passed(self.spent(), _expected(most, price)):
                            raise
                    await asyncio.sleep(_AGAIN_S)
        return self.reserve(judge, most, price)

    def spent(self) -> Spend:
        """Return what all judges have spent, as :meth:`by_judge` counts it."""
        return Spend(*map(sum, zip(*self.by_judge().values(), strict=True)))

    def by_judge(self) -> dict[str, Spend]:
        """Return what each judge has spent, without requests in flight; one in flight for an hour counts as spent.

        Raises JudgeUnavailableError if the ledger cannot be used.
        """
        with self._counting():
            rows = self._ledger.rows(_BY_JUDGE, (time.time() - _LOST_AFTER_S,))
        return {judge: Spend(*amounts) for judge, *amounts in rows}

    def _passed(self, total: Spend, more: Spend) -> str:
        """Return the cap that a sum and one more request pass, in words; empty if they pass none."""
        caps = zip(Spend._fields, (self.usd, self.tokens, self.requests), total, more, strict=True)
        return next((f"{name}={cap!r}" for name, cap, sum, own in caps if cap is not None and sum + own > cap), "")

    @contextmanager
    def _counting(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            self._ledger.close()
            raise JudgeUnavailableError(
                f"the budget's ledger {self._ledger.path} cannot be used ({error}), so no call is made: "
                "free the disk, or make the Budget with a ledger in another place",
                Fault.BUDGET,
            ) from error


def charges_of(budget: Budget | None) -> dict[str, float]:
    """Return the USD that a budget's ledger counts, by its path; ``{}`` without one that can be read."""
    if budget is None:
        return {}
    try:
        return {str(budget._ledger.path): budget.spent().usd}
    except JudgeUnavailableError:
        return {}


@dataclass
class Reservation(AbstractContextManager["Reservation"]):
    """Money for one HTTP request. The first :meth:`settle` or :meth:`release` ends it, else the end of its block."""

    _ledger: _Ledger
    _number: int | None
    _judge: str
    _most: Spend
    _price: Price | None

    def settle(self, usage: Usage | None = None) -> None:
        """Count a sent request by its usage, or at its most if the usage is unknown or below zero."""
        spent = self._most if usage is None or min(usage) < 0 else _spend(usage, self._price)
        if spent.usd > self._most.usd or spent.tokens > self._most.tokens:
            _warn_once('judge "%s": a request took more than max_tokens and its prompt allow', self._judge)
        self._end(spent)

    def release(self) -> None:
        """Count nothing: the request was not sent, or the server refused it."""
        self._end(Spend())

    def _end(self, spent: Spend) -> None:
        number, self._number = self._number, None
        if number is None:
            return
        try:
            with self._ledger.transaction() as connection:
                connection.execute(_END, (number,))
                connection.execute(_ADD, (self._judge, *spent))
        except sqlite3.Error as error:
            # The reply is had and stays good. The request goes on to count at its most, which is never too little.
            _log.warning('what judge "%s" spent counts at its most: the ledger says: %s', self._judge, error)

    def __exit__(self, *error: object) -> None:
        self.settle()


def most_tokens(request: Request) -> Usage:
    """Return the most tokens that a request may take; raise JudgeSetupError where it has no limit of output.

    Read are a token per UTF-8 byte of messages and schema, because hostile text may consist of such tokens, and what
    chat templates add. Written are the larger of ``max_tokens`` and ``max_completion_tokens``, for each choice.
    """
    options = {**(request.options.get("extra_body") or {}), **request.options}  # as they are sent
    lengths = [options[name] for name in ("max_completion_tokens", "max_tokens") if options.get(name) is not None]
    if not lengths or not all(isinstance(length, int) and length >= 1 for length in lengths):
        raise JudgeSetupError("a judge with a budget needs max_tokens, or one reply could cost any amount; set it")
    read = _REQUEST_TOKENS
    for texts, images in map(texts_of, request.messages):
        read += _MESSAGE_TOKENS + images * _IMAGE_TOKENS
        read += sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
    if "response_format" in options:
        read += len(json.dumps(options["response_format"]))
    return Usage(read, max(lengths) * (options.get("n") or 1))


def _expected(most: Usage, price: Price | None) -> Spend:
    """Return a request's reservation: its prompt by an estimate from the bytes, and all that it may write."""
    return _spend(Usage(-(-most.prompt_tokens // _BYTES_A_TOKEN), most.completion_tokens), price)


def _spend(usage: Usage, price: Price | None) -> Spend:
    return Spend(0.0 if price is None else price.cost(usage), usage.prompt_tokens + usage.completion_tokens, 1)
