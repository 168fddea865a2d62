"""One server as a judge sees it: what its mechanisms are told of a try, and what a request that failed costs."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from patience import LONG_S

from builtin_rewards.endpoint import limits
from builtin_rewards.endpoint.backends import Server
from builtin_rewards.endpoint.budget import Budget, Reservation, Spend, most_tokens
from builtin_rewards.endpoint.client import prepare
from builtin_rewards.endpoint.endpoint import Endpoint, RetryPolicy
from builtin_rewards.endpoint.errors import (
    BudgetSpentError,
    Fault,
    JudgeError,
    JudgeReplyError,
    JudgeSetupError,
    JudgeUnavailableError,
)
from builtin_rewards.endpoint.limits import FIRST, REFUSED, Load
from builtin_rewards.endpoint.messages import Request, Usage
from builtin_rewards.judge.model import JudgeModel, Question
from rewardkit.testing import FakeJudge

Serve = Callable[..., Any]
ONCE = RetryPolicy(attempts=1)
MOST = Spend(tokens=99, requests=1)
"""What the request below may take at most."""


def paid_by(budget: Budget) -> Callable[[float], Awaitable[Reservation]]:
    """Return what reserves the money for the request in a budget."""
    return functools.partial(budget.reserve_within, "j", most_tokens(request()), None)


def request(words: str = "Good?") -> Request:
    """Return a request whose length has a bound."""
    return Request("m", ({"role": "user", "content": words},), {"max_tokens": 10})


USED = {"prompt_tokens": 7, "completion_tokens": 2}
SENT = {
    "429": (lambda f: f.too_many(), Spend()),
    "500": (lambda f: f.status(500), Spend()),
    "502": (lambda f: f.status(502), Spend()),
    "503": (lambda f: f.status(503), Spend()),
    "504": (lambda f: f.status(504), MOST),
    "524": (lambda f: f.status(524), MOST),
    "reset": (lambda f: f.reset(), MOST),
    "stall": (lambda f: f.stall(), MOST),
    "page": (lambda f: f.html(), MOST),
    "error behind 200": (lambda f: f.completion({"error": {"message": "died", "code": 502}}), MOST),
    "429 behind 200": (lambda f: f.completion({"error": {"message": "slow", "code": 429}}), MOST),
    "error behind 200 with usage": (
        lambda f: f.completion({"error": {"message": "died", "code": 502}, "usage": USED}),
        Spend(tokens=9, requests=1),
    ),
}
"""By what the server does: what the budget counts for it. What the server said no to is free; a gateway that waited no
longer for the server behind it (504, 524) says nothing of the work."""


@pytest.mark.usefixtures("canary")
@pytest.mark.parametrize(("action", "spent"), SENT.values(), ids=SENT)
def test_what_may_be_billed_is_counted(serve: Serve, faults: ModuleType, action: Any, spent: Spend) -> None:
    """A request that the server refused counts nothing, one of which nobody knows counts at its most."""
    done, budget = action(faults), Budget(requests=9)
    server = Server(serve([done]).url)

    async def ask() -> None:
        await prepare(server)
        await Endpoint(server, Load(), ONCE).ask(
            request(),
            0.5 if done.stall else 20.0,
            paid_by(budget),
        )

    with pytest.raises(JudgeUnavailableError):
        asyncio.run(ask())

    assert spent == budget.spent()


@pytest.mark.usefixtures("canary")
def test_who_waits_for_money_in_vain_blames_no_server(serve: Serve, faults: ModuleType) -> None:
    """The error names the cap; the breaker stays closed."""
    server, budget = serve([faults.ok()]), Budget(requests=1)
    asked, payer = Server(server.url), paid_by(budget)

    async def ask_all() -> list[Any]:
        await prepare(asked)
        endpoint = Endpoint(asked, Load(), ONCE)
        with budget.reserve("another", Usage(1, 1)):  # its request is in flight for longer than these have time
            asks = (endpoint.ask(request(str(place)), 0.3, payer) for place in range(FIRST))
            errors = await asyncio.gather(*asks, return_exceptions=True)
        assert "4" == (await endpoint.ask(request(), 60.0)).text
        return errors

    errors = asyncio.run(ask_all())

    assert [(BudgetSpentError, Fault.BUDGET, 0)] * FIRST == [(type(e), e.fault, e.requests) for e in errors]
    assert "the cap requests=1 of the budget is reached" in str(errors[0])
    assert 1 == len(server.seen)


def test_a_key_that_is_gone_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker without it in its environment has sent no request."""
    monkeypatch.setenv("JUDGE_KEY", "sk-canary-1234567890")
    endpoint, budget = Endpoint(Server("https://host.invalid/v1", "JUDGE_KEY"), Load(), ONCE), Budget(requests=1)
    monkeypatch.delenv("JUDGE_KEY")

    with pytest.raises(JudgeSetupError, match="set the environment variable JUDGE_KEY") as caught:
        asyncio.run(endpoint.ask(request(), 60.0, paid_by(budget)))

    assert (0, Spend()) == (caught.value.requests, budget.spent())


STEPS = {
    "rejected": (lambda f: f.status(400, "bad"), Fault.REJECTED),
    "silent": (lambda f: f.stall(), Fault.DEADLINE),
    "too long": (lambda f: f.Action(bytes(17 * 2**20)), Fault.UNREADABLE),
    "no verdict": (lambda f: f.ok("4"), Fault.WRONG_SCHEMA),
}


@pytest.mark.usefixtures("canary")
@pytest.mark.parametrize(("action", "fault"), STEPS.values(), ids=STEPS)
def test_an_error_tells_the_requests_of_all_steps(serve: Serve, faults: ModuleType, action: Any, fault: Fault) -> None:
    """Those that found out which format and parameters the server takes are some of them."""
    words = "response_format json_schema is not supported", "temperature is not supported"
    server = serve([*(faults.status(400, one) for one in words), action(faults)])
    model = JudgeModel("m", server.url, deadline_s=3.0 if fault is Fault.DEADLINE else LONG_S, retry=ONCE, verify=False)

    def read(reply: Any, format: Any) -> Any:
        raise JudgeReplyError("no verdict", Fault.WRONG_SCHEMA)

    async def ask() -> Any:
        return (await model.attempt("j", Question(request().messages, {}, "1"), read)).value

    try:
        error = asyncio.run(ask())
    except JudgeError as raised:
        error = raised

    sent = 4 if fault is Fault.WRONG_SCHEMA else 3  # which is asked for a second time
    assert (fault, sent, sent) == (error.fault, error.requests, len(server.seen))


def test_what_is_not_sent_is_given_back_to_the_rates() -> None:
    """A question that is cancelled, or finds no money, while it has its turn leaves room for the next."""

    async def ask_all() -> str:
        budget, load = Budget(requests=1), Load(requests_per_minute=2, tokens_per_minute=120)
        endpoint, spending = (
            Endpoint(FakeJudge("4"), load, ONCE),
            paid_by(budget),
        )
        with budget.reserve("another", Usage(1, 1)):
            for _ in range(3):
                waits = asyncio.create_task(endpoint.ask(request(), 60.0, spending))
                await asyncio.sleep(0.1)
                waits.cancel()
                await asyncio.wait({waits})
                with pytest.raises(BudgetSpentError):
                    await endpoint.ask(request(), 0.1, spending)
        return (await endpoint.ask(request(), 5.0)).text

    assert "4" == asyncio.run(ask_all())


@pytest.mark.parametrize(("spent", "error"), [(True, BudgetSpentError), (False, JudgeUnavailableError)])
def test_what_waits_for_money_to_its_deadline_hears_of_the_cap(spent: bool, error: type[JudgeError]) -> None:
    """Also where a machine that stood still let the wait for money end as late as the deadline."""
    budget = Budget(requests=1)
    waits: list[float] = []

    async def reserve(wait_s: float) -> Reservation:
        waits.append(wait_s)
        if len(waits) == 1:
            await asyncio.sleep(LONG_S)
        return budget.reserve("j", Usage(1, 1))

    with budget.reserve("another", Usage(1, 1)) if spent else nullcontext(), pytest.raises(JudgeError) as raised:
        asyncio.run(Endpoint(FakeJudge("4"), Load(), ONCE).ask(request(), 0.1, reserve))
    assert (error, 0.0, 2) == (type(raised.value), waits[1], len(waits))
    assert spent or budget.reserve("j", Usage(1, 1))  # nothing is left reserved


def test_while_a_probe_is_under_way_others_fail_at_once() -> None:
    """They do not queue for a turn first, which the rates would count for a request that is never sent."""

    async def ask_all() -> list[Fault | None]:
        asked, answer = asyncio.Event(), asyncio.Event()

        async def create(*, messages: Any, **_: Any) -> Any:
            if not messages[0]["content"].startswith("probe"):
                raise ConnectionRefusedError("down")
            asked.set()
            await answer.wait()

        client = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create)))
        endpoint = Endpoint(client, Load(tokens_per_minute=10_000, rest_s=0.01), ONCE)
        down = [endpoint.ask(request(str(place)), 60.0) for place in range(20)]
        assert {Fault.CONNECTION} == {error.fault for error in await asyncio.gather(*down, return_exceptions=True)}
        await asyncio.sleep(0.02)
        # Its tokens are a hundred times what a minute allows, so that nothing has a turn for long after it.
        probe = asyncio.create_task(endpoint.ask(request("probe" * 800_000), 60.0))
        await asked.wait()
        refused = [endpoint.ask(request(str(place)), 5.0) for place in range(3)]
        errors = await asyncio.gather(*refused, return_exceptions=True)
        answer.set()
        with pytest.raises(JudgeUnavailableError):
            await probe
        return [error.fault for error in errors]

    assert [Fault.BREAKER_OPEN] * 3 == asyncio.run(ask_all())


REFUSALS = {"401": {}, "402": {}, "403": {}, "429": {"code": "insufficient_quota"}}


@pytest.mark.usefixtures("canary")
@pytest.mark.parametrize(("status", "said"), REFUSALS.items(), ids=REFUSALS)
def test_a_server_that_refuses_the_key_is_asked_a_few_times(
    serve: Serve, faults: ModuleType, status: str, said: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 200 questions the first few are sent; the others fail at once with the server's words, another model's not."""
    monkeypatch.setattr(limits, "FIRST_S", LONG_S)  # else a machine that stands still is a silent server
    refusal = faults.status(int(status), "no money or no key", **said)
    server = serve(lambda number, body, headers: faults.ok() if body["model"] == "other" else refusal)

    async def ask_all() -> tuple[list[Any], Any]:
        backend = Server(server.url)
        await prepare(backend)  # as a judge does, lest the import of the client pass for the server's silence
        endpoint = Endpoint(backend, Load(), RetryPolicy())
        errors = await asyncio.gather(*(endpoint.ask(request(), 60.0) for _ in range(200)), return_exceptions=True)
        return errors, await endpoint.ask(Request("other", request().messages), 60.0)

    errors, other = asyncio.run(ask_all())

    assert "4" == other.text
    assert {JudgeUnavailableError} == {type(error) for error in errors}
    sent = sum(error.requests for error in errors)
    # Each of those that are answered before the last that is borne may let another through.
    assert FIRST + REFUSED - 1 >= sent == len(server.seen) - 1
    assert [Fault.BREAKER_OPEN] * (200 - sent) == [error.fault for error in errors[sent:]]
    assert "no money or no key" in str(errors[-1])
