"""What becomes of a question depends on its own faults alone: mixes of faults at several loads, in virtual time."""

from __future__ import annotations

import asyncio
import math
import random
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
from virtual_time import virtual

from builtin_rewards.endpoint.budget import Budget, most_tokens
from builtin_rewards.endpoint.endpoint import Endpoint, RetryPolicy
from builtin_rewards.endpoint.errors import BudgetSpentError, Fault, JudgeError
from builtin_rewards.endpoint.limits import Load
from builtin_rewards.endpoint.messages import Reply, Request

ATTEMPTS, DEADLINE_S = 4, 3.0
RETRY = RetryPolicy(ATTEMPTS, first_wait_s=0.05)
HANG, PAGE, ANSWER = "hang", "<html>", {"choices": [{"message": {"content": "4"}}]}
PLANS: dict[str, tuple[list[Any], Fault | None, int]] = {
    "ok": ([ANSWER], None, 1),
    "429": ([429], Fault.RATE_LIMIT, ATTEMPTS),
    "429 once": ([429, ANSWER], None, 2),
    "500": ([500], Fault.SERVER_ERROR, ATTEMPTS),
    "500 twice": ([500, 500, ANSWER], None, 3),
    "page": ([PAGE], Fault.NOT_A_COMPLETION, ATTEMPTS),
    "hang": ([HANG], Fault.DEADLINE, 1),
    "500, then hang": ([500, HANG], Fault.DEADLINE, 2),
}
"""By name: what the server does at each try, the last repeated; the fault in which the question ends; its requests."""
OF_A_USER = ["ok", "ok", "ok", "ok", "ok", "500", "500 twice", "429", "429 once", "hang", "page", "ok"]


class Refusal(Exception):
    """What a client raises for a status that is no success."""

    def __init__(self, status: int) -> None:
        super().__init__("words")
        headers = {"retry-after": "0.1"} if status == 429 else {}
        self.status_code, self.body, self.response = status, "words", SimpleNamespace(headers=headers)


def _client(names: list[str], answer_s: float) -> Any:
    """Return a client that does for each question what its plan says."""
    tries = [0] * len(names)

    async def create(*, messages: Any, **_: Any) -> Any:
        row = int(messages[0]["content"])
        plan = PLANS[names[row]][0]
        step = plan[min(tries[row], len(plan) - 1)]
        tries[row] += 1
        if step == HANG:
            await asyncio.Event().wait()
        if isinstance(step, int):
            raise Refusal(step)
        await asyncio.sleep(answer_s)
        return step

    return SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create)))


def _ask_all(names: list[str], concurrency: int, answer_s: float) -> list[Reply | JudgeError]:
    """Return the reply or the error of each question, of which as many begin at once as a judge lets."""

    async def ask_all() -> list[Any]:
        endpoint = Endpoint(_client(names, answer_s), Load(concurrency), RETRY)
        line = asyncio.Semaphore(math.ceil(1.25 * concurrency))

        async def ask(row: int) -> Reply:
            async with line:
                return await endpoint.ask(Request("m", ({"role": "user", "content": str(row)},)), DEADLINE_S)

        return await asyncio.gather(*(ask(row) for row in range(len(names))), return_exceptions=True)

    return virtual(ask_all())


def _mixes(count: int) -> list[tuple[list[str], int]]:
    """Return mixes of faults with a load; at most three questions hang, and fewer than requests may be in flight."""
    mixes = [(OF_A_USER, concurrency) for concurrency in (1, 2, 4, 8)]
    for seed in range(count):
        chance = random.Random(seed)
        concurrency = chance.choice([1, 2, 3, 4, 8, 16])
        calm = [name for name in PLANS if HANG not in PLANS[name][0]]
        hanging = chance.choices(["hang", "500, then hang"], k=chance.randint(0, min(3, max(1, concurrency - 1))))
        names = chance.choices(calm, k=chance.randint(4, 40)) + hanging
        chance.shuffle(names)
        mixes.append((names, concurrency))
    return mixes


@pytest.mark.parametrize("answer_s", [0.01, 0.1])
def test_a_neighbour_changes_no_question(answer_s: float, full: bool) -> None:
    """A question answers, or ends in its own fault after its own tries, whatever hangs or is refused beside it."""
    for names, concurrency in _mixes(200 if full else 30):
        for row, (name, result) in enumerate(zip(names, _ask_all(names, concurrency, answer_s), strict=True)):
            _, fault, requests = PLANS[name]
            actual = (getattr(result, "fault", None), result.requests)
            assert (fault, requests) == actual, (concurrency, names, row, name, str(result))


def test_waiting_for_a_slot_ends_and_is_told() -> None:
    """Where every slot hangs, a question waits for its deadline and as long again; the error names its first fault."""
    results = _ask_all(["429", *["429"] * 3, *["hang"] * 12], 2, 0.01)
    assert {Fault.RATE_LIMIT, Fault.DEADLINE} == {getattr(result, "fault", None) for result in results}

    async def ask_all() -> list[Any]:
        endpoint = Endpoint(_client(["500", "hang", "hang", "hang"], 0.01), Load(1), RETRY)
        requests = [Request("m", ({"role": "user", "content": str(row)},)) for row in range(4)]
        return await asyncio.gather(*(endpoint.ask(one, DEADLINE_S) for one in requests), return_exceptions=True)

    first, *_, last = virtual(ask_all())
    assert (Fault.DEADLINE, 1, Fault.DEADLINE, 0) == (first.fault, first.requests, last.fault, last.requests)
    assert "s of waiting for a slot, of which there are 1; 1 try was made, the last that failed: " in str(first)
    assert "HTTP 500: words" in str(first)
    assert "allow fewer requests" not in str(first)
    assert "s of waiting for a slot, of which there are 1; no try was made; raise the load's concurrency" in str(last)


def test_a_throttle_is_named_where_it_made_slots_scarce() -> None:
    """Then more concurrency would not help, and fewer requests at once would not either."""

    async def ask_all() -> list[Any]:
        names = ["429", "429", "429", "429", *["hang"] * 36]
        endpoint = Endpoint(_client(names, 0.01), Load(4), RETRY)
        requests = [Request("m", ({"role": "user", "content": str(row)},)) for row in range(len(names))]
        return await asyncio.gather(*(endpoint.ask(one, DEADLINE_S) for one in requests), return_exceptions=True)

    messages = [str(error) for error in virtual(ask_all()) if not error.requests]
    assert any("of which there are 2 in place of 4 because of HTTP 429; no try was made" in text for text in messages)
    assert not any("allow fewer" in text or "the load's concurrency" in text for text in messages)


@pytest.mark.parametrize("fault", ["500", "page", "429"])
def test_a_cap_names_the_first_fault_of_a_question_that_was_asked(fault: str) -> None:
    """Its money was enough for one try: it was not asked again, and not for the first time."""
    budget, question = Budget(requests=1), Request("m", ({"role": "user", "content": "0"},), {"max_tokens": 9})
    reserves: list[float] = []

    async def reserve(wait_s: float) -> Any:
        reserves.append(wait_s)
        if len(reserves) == 2:  # meanwhile another judge has spent what is left
            with suppress(BudgetSpentError):
                budget.reserve("other", most_tokens(question)).settle()
        return budget.reserve("j", most_tokens(question))

    with pytest.raises(BudgetSpentError) as raised:
        virtual(Endpoint(_client([fault], 0.0), Load(), RETRY).ask(question, DEADLINE_S, reserve))

    assert (Fault.BUDGET, 1) == (raised.value.fault, raised.value.requests)
    first = {"500": "HTTP 500: words", "page": "HTTP 200 with no JSON", "429": "HTTP 429: words"}[fault]
    assert 'judge "j" was not asked again: the cap requests=1 of the budget is reached' in str(raised.value)
    assert f"; its first try failed: {first}" in str(raised.value)
