"""One server as a judge sees it: what its mechanisms are told of a try, and what a request that failed costs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from builtin_rewards.judge.budget import Budget
from builtin_rewards.judge.endpoint.breaker import BreakerState
from builtin_rewards.judge.endpoint.client import Server, prepare
from builtin_rewards.judge.endpoint.endpoint import Endpoint, Load, Spender
from builtin_rewards.judge.endpoint.retry import RetryPolicy
from builtin_rewards.judge.endpoint.values import Request, Usage
from builtin_rewards.judge.errors import BudgetSpentError, Fault, JudgeUnavailableError
from builtin_rewards.judge.ledger import Spend

Serve = Callable[..., Any]
ONCE = RetryPolicy(attempts=1)
MOST = Spend(prompt_tokens=89, completion_tokens=10, requests=1, unknown_price_requests=1)
"""What the request below may take at most."""


def request(words: str = "Good?") -> Request:
    """Gives a request whose length has a bound."""
    return Request("m", ({"role": "user", "content": words},), {"max_tokens": 10})


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
}
"""By what the server does: what the budget counts for it. What the server said no to is free; a gateway that waited no
longer for the server behind it (504, 524) says nothing of the work."""


@pytest.mark.usefixtures("canary")
@pytest.mark.parametrize(("action", "spent"), SENT.values(), ids=SENT)
def test_what_may_be_billed_is_counted(serve: Serve, faults: ModuleType, action: Any, spent: Spend) -> None:
    """A request that the server refused counts nothing, one of which nobody knows counts at its most."""
    done, budget = action(faults), Budget(requests=9)
    server = Server(serve([done]).url, read_timeout_s=0.25 if done.stall else 60.0)
    with pytest.raises(JudgeUnavailableError):
        asyncio.run(Endpoint(server, Load(), ONCE).ask(request(), 20.0, Spender(budget, "j", None)))

    assert spent == budget.spent()


@pytest.mark.usefixtures("canary")
@pytest.mark.parametrize("held_s", [0.0, 0.3], ids=["free", "held"])
def test_who_waits_for_money_in_vain_blames_no_server(serve: Serve, faults: ModuleType, held_s: float) -> None:
    """The error names the cap, also where the event loop was held up meanwhile; the breaker stays closed."""
    server, budget = serve([faults.ok()]), Budget(requests=1)
    asked, spender = Server(server.url), Spender(budget, "j", None)

    async def ask_all() -> tuple[list[Any], BreakerState]:
        await prepare(asked)
        endpoint = Endpoint(asked, Load(), ONCE)
        asks = (endpoint.ask(request(str(place)), 0.3, spender) for place in range(25))
        asyncio.get_running_loop().call_later(0.1, time.sleep, held_s)
        return await asyncio.gather(*asks, return_exceptions=True), endpoint.breaker

    with budget.reserve("another", Usage(1, 1)):  # its request is in flight for longer than these have time
        errors, breaker = asyncio.run(ask_all())

    assert [(BudgetSpentError, Fault.BUDGET, 0)] * 25 == [(type(e), e.fault, e.requests) for e in errors]
    assert "the cap requests=1 of the budget is reached" in str(errors[0])
    assert BreakerState.CLOSED is breaker
    assert [] == server.seen


def test_a_hedge_waits_for_its_turn_by_the_rates() -> None:
    """A second request is one more a minute: where the rate has no room for it, it is not sent."""
    sent: list[str] = []

    async def create(*, messages: Any, **_: Any) -> Any:
        sent.append(messages[0]["content"][:5])
        await asyncio.sleep(0.3 if sent[-1] == "slow " else 0.0)
        return {"choices": [{"message": {"content": "4"}, "finish_reason": "stop"}]}

    async def ask_all() -> None:
        client = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create)))
        # The slow one's tokens are a hundred times what a minute allows, so that nothing has a turn for long after it.
        endpoint = Endpoint(client, Load(tokens_per_minute=10_000, hedge=True), ONCE)
        for place in range(20):
            await endpoint.ask(request(f"quick {place}"), 60.0)
        await endpoint.ask(request("slow " * 800_000), 60.0)

    asyncio.run(ask_all())

    assert 1 == sent.count("slow ")


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
        assert BreakerState.HALF_OPEN is endpoint.breaker
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
