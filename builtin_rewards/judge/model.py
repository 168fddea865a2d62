"""The model behind a judge: one question from its cache key to the verdict, within a budget, and its bill."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from builtin_rewards.endpoint.backends import Backend, LazyClient, Server, StandIn, lazy_client, name_of
from builtin_rewards.endpoint.budget import Budget, Price, check_prices, most_tokens, price_of
from builtin_rewards.endpoint.client import prepare, verify
from builtin_rewards.endpoint.endpoint import Endpoint, RetryPolicy
from builtin_rewards.endpoint.errors import (
    BudgetSpentError,
    Fault,
    JudgeError,
    JudgeReplyError,
    JudgeSetupError,
    JudgeUnavailableError,
)
from builtin_rewards.endpoint.limits import Load
from builtin_rewards.endpoint.messages import Reply, Request, append_text, bare_text
from builtin_rewards.judge.cache import JudgeCache, question_key
from builtin_rewards.judge.formats import (
    Changes,
    Format,
    Negotiator,
    apply_changes,
    format_instruction,
    reply_form,
    response_format,
)
from builtin_rewards.judge.settings import check
from rewardkit.extending import COST_METRICS, UNMETERED, of_this_loop

T = TypeVar("T")
Read: TypeAlias = Callable[[Reply, Format], T]

_TOP_LOGPROBS = 20  # the most that OpenAI's API gives (chat completions, ``top_logprobs``)
# What the second question says of the first reply, and nothing of its text, which may quote the completion.
_PROBLEMS = {
    Fault.UNREADABLE: "it was not one JSON object of your own",
    Fault.WRONG_SCHEMA: "it lacked a key, or had one too many, or a value of another type",
    Fault.OUT_OF_RANGE: "it had a grade that may not be given",
}
_FORM_CHARS = 300  # of the form of a right reply in an error
_LESS_REASONING = "raise max_tokens, or let it reason less, as by options={'reasoning_effort': 'low'}"


@dataclass(frozen=True, slots=True)
class Question:
    """One question to a model: messages, and the JSON schema of the reply, which the messages do not mention."""

    messages: tuple[Mapping[str, Any], ...]
    schema: Mapping[str, Any]
    version: str  # the prompt's
    index: int = 0  # the sample's number
    likelihoods: bool = False  # whether those of the tokens are wanted
    max_tokens: int | None = None  # in place of the model's
    states_form: bool = False  # whether the messages describe the reply's form even to a server that enforces it

    def again(self, fault: Fault) -> Question:
        """Return the question with what was wrong with the reply to it, and the form of a right one."""
        *history, last = self.messages
        last = append_text(last, f"Your reply to this could not be used, because {_PROBLEMS[fault]}. Reply again.")
        return replace(self, messages=(*history, last), states_form=True)

    def own_reply(self, read: Read[T]) -> Read[T]:
        """Return what reads a reply, and knows what the question quotes, so that no quotation is the reply's own."""
        text = bare_text(self.messages)
        return lambda reply, format: read(replace(reply, question=text), format)


class ReadReply(NamedTuple, Generic[T]):
    """What was read from a reply, the requests that it took (0 from the cache), and their cost in USD if known.

    ``unmetered`` of the requests may be billed and are not in that cost.
    """

    value: T
    reply: Reply
    requests: int
    cost_usd: float | None
    is_second: bool = False  # whether the reply to the first question could not be read
    is_lost: bool = False  # whether no reply came, so that only its requests are known
    unmetered: int = 0


@dataclass(frozen=True, eq=False)
class JudgeModel:
    """A model that judges and how it is asked; docs/reference/judge.md explains the settings, which hold no key."""

    model: str
    base_url: str | None = None
    key_env: str = "OPENAI_API_KEY"
    default_headers: Mapping[str, str] | None = None
    default_query: Mapping[str, str] | None = None
    temperature: float | None = 0.0
    max_tokens: int | None = 1024
    options: Mapping[str, Any] = field(default_factory=dict)
    deadline_s: float = 30.0
    reasks: int = 1
    format: str | None = None
    load: Load = field(default_factory=Load)
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    budget: Budget | None = None
    prices: Mapping[str, Price] = field(default_factory=dict)
    cache: JudgeCache | None = None
    client: StandIn | Callable[..., StandIn] | None = None
    verify: bool = True
    _backend: Backend = field(init=False, repr=False)
    _negotiator: Negotiator = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check(vars(self))
        object.__setattr__(self, "options", dict(self.options))
        object.__setattr__(self, "prices", check_prices(self.prices, self.model))
        object.__setattr__(self, "_negotiator", Negotiator(None if self.format is None else Format(self.format)))
        if self.budget is not None:
            price = price_of(self.prices, self.model)
            self.budget.check(self.model, {**self.options, "max_tokens": self.max_tokens}, price)
        backend = lazy_client(self.client)
        object.__setattr__(self, "client", backend)
        for name in ("default_headers", "default_query"):
            if getattr(self, name) and isinstance(backend, LazyClient):
                raise JudgeSetupError(f"{name}: {backend.name} would not send them; give them to the client itself")
        if backend is None:  # last, because a server looks for its key
            backend = Server(self.base_url, self.key_env, self.default_headers, self.default_query)
        object.__setattr__(self, "_backend", backend)

    def set_up(self) -> None:
        """Make the files of cache and budget, and ask the server once for the model. Raises JudgeSetupError."""
        for database in (self.cache, self.budget):
            if database is not None:
                database.set_up()
        if self.verify and isinstance(self._backend, Server | LazyClient):
            verify(self._backend, self.model)

    @property
    def where(self) -> str:
        """The server's address."""
        return name_of(self._backend)

    @property
    def served(self) -> str:
        """The address that decides the replies: also that of a client, which :attr:`where` keeps out of messages."""
        if isinstance(self._backend, Server | LazyClient):
            return self._backend.address
        return str(getattr(self._backend, "base_url", self.where))

    @property
    def server_key(self) -> tuple[Hashable, Load, RetryPolicy]:
        """The server and limits; models that have both in common share their requests in flight."""
        backend = self._backend if isinstance(self._backend, Server | LazyClient) else id(self._backend)
        return backend, self.load, self.retry

    @property
    def identity(self) -> tuple[object, ...]:
        """All settings that its replies depend on."""
        sent = self.temperature, self.max_tokens, sorted(self.options.items()), self.format
        return self.model, self.served, *sent, self.reasks

    def request(self, question: Question, format: Format) -> Request:
        """Return a question's request; its messages describe the reply's form where the server does not enforce it."""
        *history, last = question.messages
        if question.states_form or format is not Format.JSON_SCHEMA:
            last = append_text(last, format_instruction(question.schema))
        form = response_format(format, question.schema)
        limit = question.max_tokens or self.max_tokens
        settings = {"temperature": self.temperature, "max_tokens": limit, "response_format": form}
        options = {**self.options, **{name: value for name, value in settings.items() if value is not None}}
        if question.likelihoods:
            options = {"top_logprobs": _TOP_LOGPROBS, **options, "logprobs": True}
        if isinstance(options.get("seed"), int):
            options["seed"] += question.index  # one seed would draw the same sample each time
        return Request(self.model, (*history, last), options, question.index)

    async def attempt(self, judge: str, question: Question, read: Read[T]) -> ReadReply[T | JudgeReplyError]:
        """Ask a judge's question; return what the reply says, or its fault. Raise where no reply came whole.

        A reply that cannot be read is asked for again up to ``reasks`` times, as far as deadline and budget allow; it
        then stands on the bill.
        """
        try:
            await prepare(self._backend)
        except JudgeSetupError as error:  # of a proxy, so of the machine and not of the judge
            raise JudgeUnavailableError(error.message, Fault.CONNECTION) from None
        exchange = _Exchange(self, judge, question, time.monotonic() + self.deadline_s)
        answer = await self._read_reply(exchange, read)
        for _ in range(self.reasks):
            if not isinstance(answer.value, JudgeReplyError) or answer.value.fault not in _PROBLEMS:
                break
            question, requests = question.again(answer.value.fault), answer.value.requests
            try:
                second = await self._read_reply(replace(exchange, question=question, is_second=True), read)
            except JudgeError as error:  # the first reply's fault says more
                answer.value.requests += error.requests
                requests, unmetered = answer.requests + error.requests, answer.unmetered + error.unmetered
                return answer._replace(requests=requests, unmetered=unmetered)
            charge(answer)
            answer = second
            if isinstance(answer.value, JudgeReplyError):
                answer.value.requests += requests
        return answer

    async def _read_reply(self, exchange: _Exchange, read: Read[T]) -> ReadReply[T | JudgeReplyError]:
        """Return what an exchange's reply says, or its fault."""
        reply, format = await self._negotiator.ask(exchange.reply)
        try:
            value: T | JudgeReplyError = read(reply, format)
        except JudgeReplyError as error:
            error.requests = exchange.failed_requests + reply.requests
            is_all_reasoning = reply.reasoned and not reply.text.strip() and reply.refusal is None
            hint = f"; all that it wrote is reasoning: {_LESS_REASONING}" if is_all_reasoning else ""
            if error.fault in _PROBLEMS:
                form = reply_form(exchange.question.schema)
                hint = f"; a right reply is {form[:_FORM_CHARS]}{'...' if len(form) > _FORM_CHARS else ''}"
            value = error.with_message(error.message + hint)
        if not reply.requests:
            return ReadReply(value, reply, 0, 0.0, exchange.is_second)
        if not exchange.is_second:  # which says the form in words, so that its reply tells nothing of the server
            self._negotiator.note(format, value.fault if isinstance(value, JudgeReplyError) else None)
        if self.cache is not None and not isinstance(value, JudgeReplyError):
            self.cache.put(exchange.key, reply)
        price = price_of(self.prices, self.model)
        cost = None if reply.usage is None or price is None else price.cost(reply.usage)
        requests, unmetered = exchange.failed_requests + reply.requests, exchange.unmetered + reply.unmetered
        return ReadReply(value, reply, requests, cost, exchange.is_second, unmetered=unmetered)

    async def ask(self, judge: str, request: Request, left_s: float, patience_s: float) -> Reply:
        """Return a new reply from the server within so many seconds, beside so many of waiting for a slot."""
        if left_s <= 0:
            message = f"{self.where}, model {self.model!r}: no reply within the deadline of {self.deadline_s:g} s"
            raise JudgeUnavailableError(f"{message}; raise deadline_s", Fault.DEADLINE)
        reserve, price = None, price_of(self.prices, self.model)
        if self.budget is not None:
            reserve = functools.partial(self.budget.reserve_within, judge, most_tokens(request), price)
        endpoint = of_this_loop(("endpoint", self.server_key), lambda: Endpoint(self._backend, self.load, self.retry))
        return await endpoint.ask(request, left_s, reserve, patience_s=patience_s)


@dataclass(slots=True)
class _Exchange:
    """One question's exchange with a model, until a time of the monotonic clock."""

    model: JudgeModel
    judge: str
    question: Question
    until: float
    is_second: bool = False  # the reply is kept under the first question's key, so that neither is paid for again
    key: str = ""  # the cache's for the last format, before the changes that a server makes necessary
    waited_s: float = 0.0  # for slots, which the deadline does not count
    failed_requests: int = field(default=0, init=False)
    unmetered: int = field(default=0, init=False)  # of these
    first_error: JudgeError | None = field(default=None, init=False)

    async def reply(self, format: Format, changes: Changes) -> Reply:
        """Return the reply in a format: the cache's, which takes no requests, or a new one."""
        model, request = self.model, self.model.request(self.question, format)
        if model.cache is not None and not self.is_second:
            self.key = question_key(model.served, request, self.question.version)
            if (cached := model.cache.get(self.key)) is not None:
                return cached
        request = replace(request, options=apply_changes(request.options, changes))
        left_s, patience_s = self.until + self.waited_s - time.monotonic(), max(0.0, model.deadline_s - self.waited_s)
        try:
            reply = await model.ask(self.judge, request, left_s, patience_s)
        except JudgeError as failure:
            error = failure
            if isinstance(error, BudgetSpentError) and not error.requests and self.first_error is not None:
                error = error.after(self.first_error)
            self.first_error = self.first_error or error
            self.waited_s += min(patience_s, error.waited_s)
            self.failed_requests += error.requests
            self.unmetered += error.unmetered
            error.requests, error.unmetered = self.failed_requests, self.unmetered
            raise error from None
        self.waited_s += min(patience_s, reply.waited_s)
        return reply


_OF_BILLS = (*COST_METRICS, UNMETERED, "cached", "reasked")
Bill: TypeAlias = Sequence[ReadReply[Any]]
_bills: ContextVar[tuple[list[ReadReply[Any]], ...]] = ContextVar("bills", default=())


def charge(answer: ReadReply[Any]) -> None:
    """Put a reply on all bills that are open where it is asked for."""
    for bill in _bills.get():
        bill.append(answer)


def charge_lost(model: str, error: JudgeError) -> None:
    """Put the requests of a question to which no reply came on all open bills."""
    if error.requests:
        reply = Reply("", model, requests=error.requests)
        charge(ReadReply(error, reply, error.requests, None, is_lost=True, unmetered=error.unmetered))


@contextmanager
def open_bill() -> Iterator[Bill]:
    """Return the bill of the replies that the block and its tasks ask for; they stand on the caller's bill too."""
    bill: list[ReadReply[Any]] = []
    token = _bills.set((*_bills.get(), bill))
    try:
        yield bill
    finally:
        _bills.reset(token)


def cost_metrics(answers: Bill) -> dict[str, float]:
    """Return what replies took: requests, tokens, USD if the price is known, and the share that the cache had.

    Requests without a reply count as requests alone, and as ``unmetered`` where they may be billed.
    """
    unmetered = sum(answer.unmetered for answer in answers)
    lost = sum(answer.requests for answer in answers if answer.is_lost)
    answers = [answer for answer in answers if not answer.is_lost]
    sent = [answer for answer in answers if answer.requests]
    usages = [answer.reply.usage for answer in sent if answer.reply.usage is not None]
    costs = [answer.cost_usd for answer in sent if answer.cost_usd is not None]
    cached = 1 - len(sent) / len(answers) if answers else 0.0
    metrics = {"requests": float(lost + sum(answer.requests for answer in sent)), "cached": cached}
    if unmetered:
        metrics[UNMETERED] = float(unmetered)
    if second := sum(answer.is_second for answer in answers):
        metrics["reasked"] = float(second)
    if len(usages) == len(sent):
        metrics["prompt_tokens"] = float(sum(usage.prompt_tokens for usage in usages))
        metrics["completion_tokens"] = float(sum(usage.completion_tokens for usage in usages))
    return metrics | ({"cost_usd": sum(costs)} if len(costs) == len(sent) else {})


def with_costs(metrics: Mapping[str, float], bill: Bill) -> dict[str, float]:
    """Return metrics whose costs are replaced by the bill's, which include them; an empty bill changes nothing."""
    if not bill:
        return dict(metrics)
    others = {name: value for name, value in metrics.items() if name not in _OF_BILLS}
    return others | cost_metrics(bill)
