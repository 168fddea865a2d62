"""The model behind a judge: where it is served, how it is asked, and what may be spent on it.

Owns one question from its cache key to the verdict that was read: the format and parameters that the server takes, the
cache, the budget. What is asked is the judges' work, how a request is sent the endpoint's.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, NamedTuple, TypeVar

from builtin_rewards.judge.budget import Budget, Spending
from builtin_rewards.judge.cache import JudgeCache, question_key
from builtin_rewards.judge.endpoint.client import Asks, Server, StandIn, name_of, prepare, verify
from builtin_rewards.judge.endpoint.endpoint import Endpoint, RetryPolicy
from builtin_rewards.judge.endpoint.limits import Load
from builtin_rewards.judge.errors import Fault, JudgeError, JudgeReplyError, JudgeSetupError, JudgeUnavailableError
from builtin_rewards.judge.formats import Changes, Format, Negotiator, changed, format_instruction, response_format
from builtin_rewards.judge.messages import Reply, Request, with_words
from builtin_rewards.judge.prices import Price, checked_prices, price_of
from builtin_rewards.judge.settings import check
from rewardkit.extending import of_this_loop

T = TypeVar("T")

_TOP_LOGPROBS = 20
"""The most that OpenAI's API gives (chat completions, ``top_logprobs``)."""
_ALL_REASONING = (
    "all that it wrote is reasoning: raise max_tokens, or let it reason less, as by options={'reasoning_effort': 'low'}"
)


@dataclass(frozen=True, slots=True)
class Question:
    """One question to a model: the messages, without words about the reply's form, which has a JSON schema.

    ``version`` is the prompt's, ``index`` which of several samples it is; ``likelihoods`` asks for the tokens'.
    """

    messages: tuple[Mapping[str, Any], ...]
    schema: Mapping[str, Any]
    version: str
    index: int = 0
    likelihoods: bool = False


class Answer(NamedTuple, Generic[T]):
    """What was read from a reply to a question, the requests that it took (0 where it was cached), and their cost.

    The cost is ``None`` where the model has no price or the server gave no usage.
    """

    value: T
    reply: Reply
    requests: int
    cost_usd: float | None


@dataclass(frozen=True, eq=False)
class JudgeModel:
    """A model that judges, and how it is asked: docs/reference/judge.md, Asking, says what each setting means.

    A key itself is never taken: settings travel. One that makes no sense raises JudgeSetupError, with the fix.
    """

    model: str
    base_url: str | None = None
    key_env: str = "OPENAI_API_KEY"
    temperature: float | None = 0.0
    max_tokens: int | None = 1024
    options: Mapping[str, Any] = field(default_factory=dict)
    deadline_s: float = 30.0
    format: str | None = None
    load: Load = field(default_factory=Load)
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    budget: Budget | None = None
    prices: Mapping[str, Price] = field(default_factory=dict)
    cache: JudgeCache | None = None
    client: StandIn | None = None
    verify: bool = True
    _asks: Asks = field(init=False, repr=False)
    _negotiator: Negotiator = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check(vars(self))
        object.__setattr__(self, "options", dict(self.options))
        object.__setattr__(self, "prices", checked_prices(self.prices, self.model))
        if self.budget is not None:
            price = price_of(self.prices, self.model)
            self.budget.check(self.model, {**self.options, "max_tokens": self.max_tokens}, price)
        asks = Server(self.base_url, self.key_env) if self.client is None else self.client  # last: it looks for a key
        object.__setattr__(self, "_asks", asks)
        object.__setattr__(self, "_negotiator", Negotiator(None if self.format is None else Format(self.format)))

    def set_up(self) -> None:
        """Makes the cache's and the budget's files, and asks the server, once a process, for the model and the key.

        Raises:
            JudgeSetupError: A file cannot be used, the server has no such model, or ``base_url`` lacks its ``/v1``.
        """
        for kept in (self.cache, self.budget):
            if kept is not None:
                kept.set_up()
        if self.verify and isinstance(self._asks, Server):
            verify(self._asks, self.model)

    @property
    def where(self) -> str:
        """The server's address."""
        return name_of(self._asks)

    @property
    def place(self) -> tuple[Hashable, Load, RetryPolicy]:
        """What models share their requests in flight by: a server, and the same limits."""
        return self._asks if isinstance(self._asks, Server) else id(self._asks), self.load, self.retry

    @property
    def identity(self) -> tuple[object, ...]:
        """What its replies depend on."""
        return self.model, self.where, self.temperature, self.max_tokens, sorted(self.options.items()), self.format

    def request(self, question: Question, format: Format) -> Request:
        """Return the request that asks a question in a format."""
        *before, last = question.messages
        if format is not Format.JSON_SCHEMA:
            last = with_words(last, format_instruction(question.schema))
        form = response_format(format, question.schema)
        wanted = {"temperature": self.temperature, "max_tokens": self.max_tokens, "response_format": form}
        options = {**self.options, **{name: value for name, value in wanted.items() if value is not None}}
        if question.likelihoods:
            options = {"top_logprobs": _TOP_LOGPROBS, **options, "logprobs": True}
        if isinstance(options.get("seed"), int):
            options["seed"] += question.index  # one seed would draw the same sample each time
        return Request(self.model, (*before, last), options, question.index)

    async def attempt(
        self, judge: str, question: Question, read: Callable[[Reply, Format], T]
    ) -> Answer[T | JudgeReplyError]:
        """Asks a judge's question, and ``read`` reads the reply; one that is no verdict is an answer too.

        Raises:
            JudgeUnavailableError: No reply could be had.
            JudgeReplyError: The client library itself says that the reply was cut short or filtered.
        """
        try:
            await prepare(self._asks)
        except JudgeSetupError as wrong:  # of a proxy, so of the machine and not of the judge
            raise JudgeUnavailableError(wrong.words, Fault.CONNECTION) from None
        until, sent = time.monotonic() + self.deadline_s, list[int]()
        reply, format = await self._negotiator.ask(functools.partial(self._reply, judge, question, until, sent))
        value: T | JudgeReplyError
        try:
            value = read(reply, format)
        except JudgeReplyError as error:
            error.requests = sum(sent) + reply.requests
            is_all_reasoning = reply.reasoned and not reply.text.strip() and reply.refusal is None
            value = error.retold(f"{error.words}; {_ALL_REASONING}") if is_all_reasoning else error
        if not reply.requests:
            return Answer(value, reply, 0, 0.0)
        self._negotiator.note(format, value.fault if isinstance(value, JudgeReplyError) else None)
        if self.cache is not None and not isinstance(value, JudgeReplyError):
            self.cache.put(self._key(question, format), reply)
        price = price_of(self.prices, self.model)
        cost = None if reply.usage is None or price is None else price.cost(reply.usage)
        return Answer(value, reply, sum(sent) + reply.requests, cost)

    async def _reply(
        self, judge: str, question: Question, until: float, sent: list[int], format: Format, changes: Changes
    ) -> Reply:
        """Return the reply in a format: a kept one, which took no requests, or a new one."""
        kept = None if self.cache is None else self.cache.get(self._key(question, format))
        if kept is not None:
            return kept
        budget, price = self.budget, price_of(self.prices, self.model)
        spender = None if budget is None else Spending(budget, judge, price)
        endpoint = of_this_loop(("endpoint", self.place), lambda: Endpoint(self._asks, self.load, self.retry))
        request = self.request(question, format)
        try:
            left_s = until - time.monotonic()
            if left_s <= 0:
                words = f"{self.where}, model {self.model!r}: no reply within the deadline of "
                raise JudgeUnavailableError(f"{words}{self.deadline_s:g} s; raise deadline_s", Fault.DEADLINE)
            return await endpoint.ask(replace(request, options=changed(request.options, changes)), left_s, spender)
        except JudgeError as error:
            sent.append(error.requests)
            error.requests = sum(sent)
            raise

    def _key(self, question: Question, format: Format) -> str:
        """Return the cache's key: of what was asked for, so that it is known before a server's changes are."""
        return question_key(self.where, self.request(question, format), question.version)
