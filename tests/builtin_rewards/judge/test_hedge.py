"""A slow request is asked twice, seldom, and nothing is left over. No test waits in real time."""

from __future__ import annotations

import asyncio
import gc
import random
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from virtual_time import now, virtual

from builtin_rewards.judge.endpoint.hedge import HedgeDelay, hedged
from builtin_rewards.judge.errors import JudgeSetupError


def cleanly(main: Coroutine[Any, Any, Any]) -> None:
    """Run to the end in virtual time; no task may be left and asyncio must have nothing to complain of."""
    complaints: list[dict[str, Any]] = []

    async def run() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        await main
        assert 1 == len(asyncio.all_tasks())

    virtual(run())
    gc.collect(1)
    assert [] == complaints


class Server:
    """Gives each request in turn its latency and its end: an answer or an error."""

    def __init__(self, *script: tuple[float, str | Exception]) -> None:
        self.script = script
        self.requests = self.cancelled = 0

    async def ask(self) -> str:
        self.requests += 1
        latency_s, end = self.script[self.requests - 1]
        try:
            await asyncio.sleep(latency_s)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if isinstance(end, Exception):
            raise end
        return end


@pytest.mark.parametrize(
    ("script", "answer", "at_s", "requests"),
    [
        ([(1, "first")], "first", 1, 1),
        ([(9, "first"), (1, "second")], "second", 3, 2),
        ([(3, "first"), (9, "second")], "first", 3, 2),
        ([(3, "first"), (1, "second")], "first", 3, 2),
        ([(3, ValueError("first")), (2, "second")], "second", 4, 2),
        ([(5, "first"), (1, ValueError("second"))], "first", 5, 2),
    ],
    ids=[
        "in time",
        "the second is quicker",
        "the first is quicker",
        "both at once",
        "the first fails late",
        "the second fails",
    ],
)
def test_the_first_answer_counts(script: list[Any], answer: str, at_s: float, requests: int) -> None:
    """Whichever comes first, at its time, with the other one cancelled and over."""

    async def run() -> None:
        server = Server(*script)
        assert answer == await hedged(server.ask, 2)
        assert pytest.approx(at_s) == now()
        assert requests == server.requests

    cleanly(run())


def test_the_slower_one_is_cancelled() -> None:
    """It is over when the answer is returned."""

    async def run() -> None:
        server = Server((9, "first"), (1, "second"))
        await hedged(server.ask, 2)
        assert 1 == server.cancelled

    cleanly(run())


def test_an_early_error_is_raised_at_once() -> None:
    """Trying again is for others; no second request is sent."""

    async def run() -> None:
        server = Server((1, ValueError("first")))
        with pytest.raises(ValueError, match="first"):
            await hedged(server.ask, 2)
        assert (1, 1) == (now(), server.requests)

    cleanly(run())


@pytest.mark.parametrize("latencies", [(3, 5), (5, 1)], ids=["first fails first", "second fails first"])
def test_if_both_fail_the_first_ones_error_is_raised(latencies: tuple[float, float]) -> None:
    """In whichever order they failed."""

    async def run() -> None:
        server = Server((latencies[0], ValueError("first")), (latencies[1], ValueError("second")))
        with pytest.raises(ValueError, match="first"):
            await hedged(server.ask, 2)

    cleanly(run())


@pytest.mark.parametrize("options", [(None, True), (2, False)], ids=["no delay", "not allowed"])
def test_what_may_not_be_hedged_is_asked_once(options: tuple[float | None, bool]) -> None:
    """However long it takes."""

    async def run() -> None:
        server = Server((9, "first"), (1, "second"))
        after_s, allowed = options
        assert "first" == await hedged(server.ask, after_s, may_hedge=lambda: allowed)
        assert 1 == server.requests

    cleanly(run())


@pytest.mark.parametrize("at_s", [1, 3], ids=["one in flight", "two in flight"])
def test_cancelling_the_caller_cancels_all_its_requests(at_s: float) -> None:
    """A deadline that passes leaves no request behind."""

    async def run() -> None:
        server = Server((9, "first"), (9, "second"))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(at_s):
                await hedged(server.ask, 2)
        assert server.requests == server.cancelled
        assert pytest.approx(at_s) == now()

    cleanly(run())


def test_an_error_of_the_one_that_is_cancelled_is_no_warning() -> None:
    """It fails in silence, also where the caller was cancelled twice and did not wait for it."""

    async def run() -> None:
        async def ask() -> None:
            try:
                await asyncio.sleep(9)
            except asyncio.CancelledError:
                await asyncio.sleep(1)
                raise ValueError("while it was cancelled") from None

        caller = asyncio.create_task(hedged(ask, 2))
        await asyncio.sleep(3)
        caller.cancel()
        await asyncio.sleep(0.5)
        caller.cancel()
        await asyncio.wait({caller})
        assert (True, pytest.approx(3.5)) == (caller.cancelled(), now())
        await asyncio.sleep(1)

    cleanly(run())


request = st.tuples(st.integers(0, 6), st.sampled_from(["answer", ValueError("no")]))


@settings(max_examples=100)
@given(first=request, second=request, after_s=st.integers(0, 5), deadline_s=st.integers(1, 9))
def test_it_always_ends_as_the_quickest_success_would(
    first: tuple[int, Any], second: tuple[int, Any], after_s: int, deadline_s: int
) -> None:
    """For any latencies, ends and deadlines: the earliest success, else the error, else the deadline."""

    async def run() -> None:
        server = Server((first[0] + 0.1, first[1]), (second[0] + 0.2, second[1]))
        ends = [(first[0] + 0.1, first[1])]
        if first[0] >= after_s:
            ends.append((after_s + second[0] + 0.2, second[1]))
        answers = [at_s for at_s, end in ends if end == "answer"]
        expected_s = min(answers) if answers else max(at_s for at_s, _ in ends)
        try:
            async with asyncio.timeout(deadline_s + 0.05):
                end: Any = await hedged(server.ask, after_s)
        except (TimeoutError, ValueError) as error:
            end = type(error)
        if expected_s > deadline_s:
            assert TimeoutError is end
        else:
            assert ("answer" if answers else ValueError) == end
            assert pytest.approx(expected_s) == now()

    cleanly(run())


def test_the_delay_is_what_most_requests_take() -> None:
    """Unknown before 20 latencies, then the 95th percentile of the last 200."""
    delay = HedgeDelay()
    for latency in range(19):
        delay.observe(latency)
        assert delay.after_s is None
    delay.observe(19)
    assert 18 == delay.after_s
    for latency in range(1, 201):
        delay.observe(latency)
    assert 190 == delay.after_s
    for _ in range(200):
        delay.observe(1)
    assert 1 == delay.after_s


def test_an_outage_does_not_double_the_load() -> None:
    """Where every request is slow, one in twenty is asked twice."""
    delay = HedgeDelay()
    for _ in range(1000):
        delay.began()
        delay.may_hedge()
    assert (1000, 50) == (delay.requests, pytest.approx(delay.hedges, abs=1))


def test_few_hedges_are_saved_up() -> None:
    """After a long time without one, ten may come at once."""
    delay = HedgeDelay()
    for _ in range(100_000):
        delay.began()
    assert 10 == sum(delay.may_hedge() for _ in range(100))


@given(st.lists(st.booleans(), max_size=300), st.floats(0.01, 1))
def test_no_more_than_the_share_is_hedged(wanted: list[bool], share: float) -> None:
    """At every moment hedges are at most that share of the requests."""
    delay = HedgeDelay(share=share)
    for wants in wanted:
        delay.began()
        if wants:
            delay.may_hedge()
        assert delay.hedges <= share * delay.requests + 1e-9


def test_hedging_cuts_the_tail_for_few_requests() -> None:
    """Of 1,000 requests of which 3 % take 30 times as long, a fifth of these are left, for 5 % more requests."""

    async def run() -> None:
        delay, chance = HedgeDelay(), random.Random(0)
        server = Server(*((30.0 if chance.random() < 0.03 else chance.uniform(0.8, 1.2), "yes") for _ in range(1100)))
        latencies = []
        for _ in range(1000):
            began_s = now()
            delay.began()
            await hedged(server.ask, delay.after_s, may_hedge=delay.may_hedge)
            latencies.append(now() - began_s)
            delay.observe(latencies[-1])
        assert 6 >= sum(latency > 3 for latency in latencies)
        assert server.requests <= 1050

    cleanly(run())


@pytest.mark.parametrize(
    "settings",
    [{"quantile": 0}, {"quantile": 1}, {"at_least": 0}, {"at_least": 201}, {"share": 0}, {"share": float("nan")}],
    ids=str,
)
def test_settings_that_make_no_sense_are_rejected(settings: dict[str, Any]) -> None:
    """The message names the setting and the value."""
    ((name, value),) = settings.items()
    with pytest.raises(JudgeSetupError, match=f"{name}: expected .*, got {value}"):
        HedgeDelay(**settings)
