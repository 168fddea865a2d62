"""The model behind a judge: where it is served, how it is asked, and what may be spent on it.

Owns the settings that all kinds of judges share, and one question from its cache key to the verdict that was read: the
format and parameters that the server takes, the cache, the budget. What is asked is the judges' work, how a request is
sent the endpoint's.
"""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, NamedTuple, TypedDict, TypeVar

from builtin_rewards.judge.budget import Budget, Spending
from builtin_rewards.judge.cache import JudgeCache, question_key
from builtin_rewards.judge.endpoint.client import Server, StandIn, prepare, verify
from builtin_rewards.judge.endpoint.endpoint import Endpoint, RetryPolicy
from builtin_rewards.judge.endpoint.limits import Load
from builtin_rewards.judge.endpoint.values import Reply, Request, with_words
from builtin_rewards.judge.errors import Fault, JudgeReplyError, JudgeSetupError, JudgeUnavailableError, is_number
from builtin_rewards.judge.formats import Changes, Format, Negotiator, changed, format_instruction, response_format
from builtin_rewards.judge.loops import per_loop
from builtin_rewards.judge.prices import Price, checked_prices, price_of
from builtin_rewards.judge.prompt import near_names

T = TypeVar("T")

_TOP_LOGPROBS = 20
"""The most that OpenAI's API gives (chat completions, ``top_logprobs``)."""
_SET_BY_US = frozenset({"model", "messages", "temperature", "max_tokens", "response_format", "n", "stream", "timeout"})
_NO_PARAMETERS = frozenset({"api_key", "extra_headers", "extra_query"})
"""What the library's call takes beside a request's parameters; here it would be sent in the body, and may be a key."""
_ALL_REASONING = (
    "all that it wrote is reasoning: raise max_tokens, or let it reason less, as by options={'reasoning_effort': 'low'}"
)
_OTHER_NAMES = {
    "api_key": "the key is read from the environment variable that key_env names, and is never a setting",
    "timeout": "the deadline of a judgement is deadline_s",
    "timeout_s": "the deadline of a judgement is deadline_s; that of a call is changed by .with_options(timeout_s=...)",
    "n": "several samples of each judgement are samples",
    "max_retries": "tries are set by retry=RetryPolicy(attempts=...)",
}


class Asking(TypedDict, total=False):
    """The settings of a judge's model; all have defaults. See :class:`JudgeModel`."""

    base_url: str | None
    key_env: str
    temperature: float | None
    max_tokens: int | None
    options: Mapping[str, Any]
    deadline_s: float
    format: str | None
    load: Load
    retry: RetryPolicy
    budget: Budget | None
    prices: Mapping[str, Price]
    cache: JudgeCache | None
    client: StandIn | None
    verify: bool


@dataclass(frozen=True, slots=True)
class Question:
    """One question to a model.

    Attributes:
        messages: The chat messages, without the words that ask for a form of reply.
        schema: The JSON schema of the reply.
        version: The version of the prompt.
        index: Which of several samples of the question it is, from 0.
        likelihoods: Whether the tokens' log-probabilities are wanted.
    """

    messages: tuple[Mapping[str, Any], ...]
    schema: Mapping[str, Any]
    version: str
    index: int = 0
    likelihoods: bool = False


class Answer(NamedTuple, Generic[T]):
    """What came of a question.

    Attributes:
        value: What was read from the reply.
        reply: The reply.
        requests: HTTP requests that were sent for it; 0 where it was cached.
        cost_usd: What it cost; ``None`` where the model has no price or the server gave no usage.
        cached: Whether it came from the cache.
    """

    value: T
    reply: Reply
    requests: int
    cost_usd: float | None
    cached: bool


@dataclass(frozen=True, eq=False)
class JudgeModel:
    """A model that judges, and how it is asked.

    Attributes:
        model: Its name, as the server knows it.
        base_url: An OpenAI-compatible address, such as ``http://127.0.0.1:8000/v1``; ``None`` for ``OPENAI_BASE_URL``
            of the environment, else OpenAI's own.
        key_env: The environment variable that holds the key. A key itself is never taken: settings travel.
        temperature: ``None`` leaves it to the server, as models that reason want.
        max_tokens: Tokens a reply may have; ``None`` leaves it out. A model that wants ``max_completion_tokens`` is
            sent that.
        options: Further parameters of the request, such as ``{"seed": 1}``. Of several samples each has a seed of its
            own, counted on from this one.
        deadline_s: Seconds for one judgement from its turn on, all its tries and waits together.
        format: ``"json_schema"``, ``"json_object"`` or ``"text"``; ``None`` finds out what the server takes.
        load: How much the server is asked at once and in a minute.
        retry: What is tried again and when.
        budget: Caps on what may be spent; ``None`` for none.
        prices: USD per million tokens, by model, for costs and for a cap in USD.
        cache: Replies kept on disk; ``None`` for none.
        client: What is asked in a server's place, such as :class:`rewardkit.testing.FakeJudge`, in tests.
        verify: Whether the server is asked, when a runtime sets the judge up, if it has the model and takes the key,
            and whether ``base_url`` lacks its ``/v1``. One that is not there is no error.

    Raises:
        JudgeSetupError: A setting makes no sense; names it and the fix.
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
    _server: Server | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.model, str) or not self.model.strip():
            raise JudgeSetupError(f"model={self.model!r}: expected the model's name, as its server knows it")
        _check_kinds(self)
        _check_numbers(self.temperature, self.max_tokens, self.deadline_s)
        _check_options(self.options)
        if self.format is not None and self.format not in tuple(Format):
            raise JudgeSetupError(f"format={self.format!r}: expected one of {', '.join(Format)}, or None to find out")
        object.__setattr__(self, "options", dict(self.options))
        object.__setattr__(self, "prices", checked_prices(self.prices, self.model))
        if self.budget is not None:
            price = price_of(self.prices, self.model)
            self.budget.check(self.model, {**self.options, "max_tokens": self.max_tokens}, price)
        object.__setattr__(self, "_server", None if self.client is not None else Server(self.base_url, self.key_env))

    def set_up(self) -> None:
        """Asks the server, once a process, whether it has the model and takes the key; what is not there is no error.

        Raises:
            JudgeSetupError: It has not, or does not, or ``base_url`` lacks its ``/v1``.
        """
        if self.verify and self._server is not None:
            verify(self._server, self.model)

    @classmethod
    def of(cls, model: str, asking: Asking) -> JudgeModel:
        """Gives the model for the settings of a judge.

        Raises:
            JudgeSetupError: There is no such setting, or one makes no sense.
        """
        known = Asking.__annotations__
        for name in asking:
            if name not in known:
                hint = _OTHER_NAMES.get(name) or near_names(name, known)
                raise JudgeSetupError(f"a judge has no setting {name!r}; {hint}")
        return cls(model, **asking)

    @property
    def where(self) -> str:
        """The server's address."""
        return f"the client {type(self.client).__name__}" if self._server is None else self._server.base_url

    @property
    def place(self) -> tuple[Hashable, Load, RetryPolicy]:
        """What models share their requests in flight by: a server, and the same limits."""
        return self._server if self._server is not None else id(self.client), self.load, self.retry

    @property
    def identity(self) -> tuple[object, ...]:
        """What its replies depend on."""
        return self.model, self.where, self.temperature, self.max_tokens, sorted(self.options.items()), self.format

    def request(self, question: Question, format: Format) -> Request:
        """Gives the request that asks a question in a format."""
        *before, last = question.messages
        if format.in_prompt:
            last = with_words(last, format_instruction(question.schema))
        options: dict[str, Any] = dict(self.options)
        wanted = {"temperature": self.temperature, "max_tokens": self.max_tokens}
        options |= {name: value for name, value in wanted.items() if value is not None}
        form = response_format(format, question.schema)
        options |= {} if form is None else {"response_format": form}
        if question.likelihoods:
            options = {"top_logprobs": _TOP_LOGPROBS, **options, "logprobs": True}
        if isinstance(options.get("seed"), int):
            options["seed"] += question.index  # one seed would draw the same sample each time
        return Request(self.model, (*before, last), options, question.index)

    async def attempt(
        self, judge: str, question: Question, read: Callable[[Reply, Format], T]
    ) -> Answer[T | JudgeReplyError]:
        """Asks a question and reads the reply; one that holds no verdict is an answer too, with what it took and why.

        Args:
            judge: Whose question it is, in the budget and in messages.
            question: The question.
            read: Reads the reply that came in a format; raises JudgeReplyError where it holds no verdict.

        Raises:
            JudgeUnavailableError: No reply could be had.
            JudgeReplyError: The client library itself says that the reply was cut short or filtered.
        """
        if self._server is not None:
            try:
                await prepare(self._server)
            except JudgeSetupError as wrong:  # of a proxy, so of the machine and not of the judge
                raise JudgeUnavailableError(wrong.words, Fault.CONNECTION) from None
        until = time.monotonic() + self.deadline_s
        return await _Asked(self, judge, question, _state(self), until).answer(read)

    def cost(self, reply: Reply) -> float | None:
        """What a reply cost in USD; ``None`` where that is not known."""
        price = price_of(self.prices, self.model)
        return None if reply.usage is None or price is None else price.cost(reply.usage)

    def spender(self, judge: str) -> Spending | None:
        """What reserves money for requests; ``None`` where there is no budget."""
        return None if self.budget is None else Spending(self.budget, judge, price_of(self.prices, self.model))


def _check_kinds(model: JudgeModel) -> None:
    for setting, kind, example in (
        ("load", Load, "Load(concurrency=64)"),
        ("retry", RetryPolicy, "RetryPolicy(attempts=3)"),
        ("budget", Budget, "Budget(usd=5), or None"),
        ("cache", JudgeCache, "JudgeCache('judge.db'), or None"),
        ("options", Mapping, "{'seed': 1}"),
    ):
        value = getattr(model, setting)
        if not isinstance(value, kind) and not (value is None and "None" in example):
            raise JudgeSetupError(f"{setting}={value!r}: expected a {kind.__name__}, such as {example}")
    if model.client is not None and not hasattr(getattr(model.client, "chat", None), "completions"):
        raise JudgeSetupError(
            f"client={model.client!r}: expected an object with client.chat.completions.create; an address is base_url"
        )


def _check_numbers(temperature: float | None, max_tokens: int | None, deadline_s: float) -> None:
    if temperature is not None and not (is_number(temperature) and 0 <= temperature <= 2):
        raise JudgeSetupError(f"temperature={temperature!r}: expected 0 to 2, or None to leave it to the server")
    if max_tokens is not None and not (is_number(max_tokens, whole=True) and max_tokens >= 1):
        raise JudgeSetupError(f"max_tokens={max_tokens!r}: expected a whole number, 1 or more, or None to leave it out")
    if not is_number(deadline_s) or deadline_s <= 0:
        raise JudgeSetupError(f"deadline_s={deadline_s!r}: expected a number of seconds greater than 0")


def _check_options(options: Mapping[str, Any]) -> None:
    body = options.get("extra_body") or {}
    if not isinstance(body, Mapping):
        raise JudgeSetupError(f"options: extra_body={body!r}: expected a mapping, such as {{'top_k': 1}}")
    for name, value in (*body.items(), *options.items()):
        if name in _SET_BY_US:
            raise JudgeSetupError(f"options: {name!r} is set by the judge; take it out")
        if name in _NO_PARAMETERS:
            raise JudgeSetupError(
                f"options: {name!r} is no parameter of a request; take it out, and put the key in the environment "
                f"variable that key_env names"
            )
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError) as fault:
            raise JudgeSetupError(f"options: {name!r}: {fault}; give plain values, as JSON has them") from None


class _State(NamedTuple):
    """What is known of a model's server: this event loop's limits, and the format and parameters that it takes."""

    endpoint: Endpoint
    negotiator: Negotiator


@per_loop
def _of_this_loop() -> dict[Any, Any]:
    return {}


def _state(model: JudgeModel) -> _State:
    """Gives this event loop's state; models on one server share its limits."""
    kept = _of_this_loop()
    place = model.place
    if place not in kept:
        asks = model._server if model._server is not None else model.client
        assert asks is not None
        kept[place] = Endpoint(asks, model.load, model.retry)
    if model._server is not None:
        return _State(kept[place], negotiator(model._server, model.model, model.format))
    talk = (place[0], model.model, model.format)  # a client's id is its own for as long as its endpoint is kept
    if talk not in kept:
        kept[talk] = Negotiator(None if model.format is None else Format(model.format))
    return _State(kept[place], kept[talk])


@functools.lru_cache(maxsize=256)
def negotiator(server: Server, model: str, format: str | None) -> Negotiator:
    """Gives this process's one for a model: each plain call has an event loop of its own, and would learn it anew."""
    return Negotiator(None if format is None else Format(format))


@dataclass(slots=True)
class _Asked:
    """One question on its way."""

    model: JudgeModel
    judge: str
    question: Question
    state: _State
    until: float
    key: str = ""
    cached: bool = False
    rejected: int = 0

    async def answer(self, read: Callable[[Reply, Format], T]) -> Answer[T | JudgeReplyError]:
        reply, format = await self.state.negotiator.ask(self._reply)
        value: T | JudgeReplyError
        try:
            value = read(reply, format)
        except JudgeReplyError as error:
            value = error.retold(f"{error.words}; {_ALL_REASONING}") if _is_all_reasoning(reply) else error
        if self.cached:
            return Answer(value, reply, 0, 0.0, True)
        self.state.negotiator.note(format, value.fault if isinstance(value, JudgeReplyError) else None)
        if self.model.cache is not None and not isinstance(value, JudgeReplyError):
            self.model.cache.put(self.key, reply)
        return Answer(value, reply, self.rejected + reply.requests, self.model.cost(reply), False)

    async def _reply(self, format: Format, changes: Changes) -> Reply:
        """Gives the reply in a format: a kept one or a new one."""
        request, cache = self.model.request(self.question, format), self.model.cache
        # The key is of what was asked for, so that a reply is found again before a server's changes are known.
        self.key = question_key(self.model.where, request, self.question.version)
        kept = None if cache is None else cache.get(self.key)
        self.cached = kept is not None
        if kept is not None:
            return kept
        left_s = self.until - time.monotonic()
        if left_s <= 0:
            words = f"{self.model.where}, model {self.model.model!r}: no reply within the deadline of "
            raise JudgeUnavailableError(f"{words}{self.model.deadline_s:g} s; raise deadline_s", Fault.DEADLINE)
        request = replace(request, options=changed(request.options, changes))
        try:
            return await self.state.endpoint.ask(request, left_s, self.model.spender(self.judge))
        except JudgeUnavailableError as error:
            self.rejected += error.requests
            raise


def _is_all_reasoning(reply: Reply) -> bool:
    return reply.reasoned and not reply.text.strip() and reply.refusal is None
