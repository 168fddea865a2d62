"""Limits let through what they may, in order, and lose no slot whoever is cancelled. No test waits in real time."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from virtual_time import now, virtual

from builtin_rewards.judge.endpoint.limits import AdaptiveLimit, RateLimit
from builtin_rewards.judge.errors import JudgeSetupError


def adaptive(most: int, least: int = 1) -> AdaptiveLimit:
    return AdaptiveLimit(most, least, clock=asyncio.get_running_loop().time)


Server = Callable[[], Awaitable[bool]]


class Bounded:
    """A server that takes so many requests at once and says 429 to more, after ``no_s``."""

    def __init__(self, most: int, no_s: float) -> None:
        self.most = most
        self.no_s = no_s
        self.busy = 0

    async def __call__(self) -> bool:
        if self.busy >= self.most:
            await asyncio.sleep(self.no_s)
            return False
        self.busy += 1
        await asyncio.sleep(1)
        self.busy -= 1
        return True


def sporadic(share: float, no_s: float, chance: random.Random) -> Server:
    """A server that says 429 to some requests at random, however many there are."""

    async def serve() -> bool:
        rejected = chance.random() < share
        await asyncio.sleep(no_s if rejected else chance.uniform(0.8, 1.2))
        return not rejected

    return serve


async def judge_all(count: int, limit: AdaptiveLimit, serve: Server, adapt: bool = True) -> list[tuple[float, int]]:
    """Ask until each of so many is answered; return when each 429 came, with the limit that it left."""
    rejections = []

    async def one() -> None:
        for delay_s in itertools.chain((0.5, 1, 2), itertools.repeat(4)):
            async with limit.slot() as slot:
                if await serve():
                    slot.accepted()
                    return
                if adapt:
                    slot.rejected()
                rejections.append((now(), limit.current))
            await asyncio.sleep(delay_s)

    await asyncio.gather(*(one() for _ in range(count)))
    return rejections


@pytest.mark.parametrize("no_s", [0.02, 1.0], ids=["quick 429", "slow 429"])
@pytest.mark.parametrize("share", [0.02, 0.03])
def test_sporadic_429s_cost_less_than_a_tenth(share: float, no_s: float) -> None:
    """429s that have nothing to do with load take less than 10 % of the throughput of a limit that ignores them."""

    async def seconds(adapt: bool, seed: int) -> float:
        serve = sporadic(share, no_s, random.Random(seed))
        await judge_all(2000, adaptive(128), serve, adapt)
        return now()

    for seed in range(2):
        assert virtual(seconds(True, seed)) <= 1.1 * virtual(seconds(False, seed))


@pytest.mark.parametrize("no_s", [0.02, 1.0], ids=["quick 429", "slow 429"])
def test_what_a_server_takes_is_found_within_a_few_round_trips(no_s: float) -> None:
    """A server that takes 20 at a time is asked by at most 25 at once from the fifth round trip on, and kept busy."""

    async def run() -> None:
        server = Bounded(20, no_s)
        rejections = await judge_all(2000, adaptive(128), server)
        assert 25 >= max(current for at_s, current in rejections if at_s > 5 * no_s)
        assert 2000 / 20 * 1.15 >= now()
        late = [at_s for at_s, _ in rejections if at_s > 10]
        assert 0.25 * 2000 >= len(late)

    virtual(run())


def test_the_limit_grows_back_when_the_server_recovers() -> None:
    """From 16 to 128 it takes fewer than 40 round trips, for each that passes well adds more than the one before."""

    async def run() -> None:
        server = Bounded(16, 0.02)
        limit = adaptive(128)
        work = asyncio.create_task(judge_all(8000, limit, server))
        await asyncio.sleep(10)
        assert 40 >= limit.current
        server.most = 1000
        await asyncio.sleep(40)
        assert 128 == limit.current
        await work

    virtual(run())


def test_a_burst_of_429s_decreases_the_limit_once() -> None:
    """Of requests that started together only the first few count; the limit halves and stays."""

    async def run() -> None:
        limit = adaptive(64)
        slots = [await limit.acquire() for _ in range(64)]
        assert 1 == sum(slot.rejected() for slot in slots)
        assert (32, 1) == (limit.current, limit.decreases)

    virtual(run())


def test_each_round_trip_of_429s_decreases_the_limit_once() -> None:
    """Where every request is rejected, the limit is halved as often as a round of them was started."""

    async def run() -> None:
        limit = adaptive(64)
        sizes = []
        while limit.current > 1:
            sizes.append(limit.current)
            for slot in [await limit.acquire() for _ in range(limit.current)]:
                slot.rejected()
                limit.release()
        assert [64, 32, 16, 8, 4, 2] == sizes

    virtual(run())


def test_the_limit_never_falls_below_its_least() -> None:
    """Whatever the server says, so many may go."""

    async def run() -> None:
        limit = adaptive(64, 5)
        for _ in range(100):
            (await limit.acquire()).rejected()
            limit.release()
        assert 5 == limit.current

    virtual(run())


def test_a_limit_that_is_not_used_does_not_grow() -> None:
    """One request at a time says nothing of what the server takes from many."""

    async def run() -> None:
        limit = adaptive(64)
        for slot in [await limit.acquire() for _ in range(64)]:
            slot.rejected()
            limit.release()
        for _ in range(1000):
            async with limit.slot() as slot:
                slot.accepted()
        assert 32 == limit.current

    virtual(run())


def test_a_pause_holds_new_starts_and_only_those() -> None:
    """Those in flight go on, those that wait start when it is over, and it is never shortened."""

    async def run() -> None:
        limit = adaptive(2)
        await limit.acquire()
        limit.pause_until(7)
        limit.pause_until(3)
        starts = []

        async def one() -> None:
            async with limit.slot():
                starts.append(now())

        waiters = [asyncio.create_task(one()) for _ in range(2)]
        await asyncio.sleep(1)
        limit.release()
        assert (0, 2) == (limit.in_flight, limit.waiting)
        await asyncio.gather(*waiters)
        assert starts == pytest.approx([7, 7], abs=0.01)

    virtual(run())


def test_callers_go_in_the_order_they_came() -> None:
    """Who comes later waits behind those who wait already."""

    async def run() -> None:
        limit = adaptive(3)
        order: list[int] = []

        async def one(number: int) -> None:
            async with limit.slot():
                order.append(number)
                await asyncio.sleep(1 + number % 3)

        await asyncio.gather(*(one(number) for number in range(30)))
        assert list(range(30)) == order

    virtual(run())


def test_a_slot_that_is_given_to_a_cancelled_caller_goes_to_the_next() -> None:
    """Cancellation in the moment between being let through and running again loses nothing."""

    async def run() -> None:
        limit = adaptive(1)
        await limit.acquire()
        first, second = (asyncio.create_task(limit.acquire()) for _ in range(2))
        await asyncio.sleep(0)
        limit.release()
        first.cancel()
        await asyncio.wait({first, second})
        assert first.cancelled()
        assert (1, 0) == (limit.in_flight, limit.waiting)

    virtual(run())


def test_a_caller_that_is_cancelled_while_it_waits_is_passed_over() -> None:
    """A slot that is freed in the same moment goes to who is next."""

    async def run() -> None:
        limit = adaptive(1)
        await limit.acquire()
        first, second = (asyncio.create_task(limit.acquire()) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        limit.release()
        await asyncio.wait({first, second})
        assert first.cancelled()
        assert (1, 0) == (limit.in_flight, limit.waiting)

    virtual(run())


calls = st.lists(
    st.tuples(
        st.integers(0, 20),  # comes, tenths of a second
        st.integers(0, 20),  # works
        st.one_of(st.none(), st.integers(0, 30)),  # is cancelled, after it came
        st.sampled_from(["accepted", "rejected", "nothing", "pause"]),
    ),
    max_size=30,
)


@settings(max_examples=100)
@given(most=st.integers(1, 6), calls=calls)
def test_no_slot_is_lost_and_none_too_many_is_given(most: int, calls: list[tuple[int, int, int | None, str]]) -> None:
    """With callers cancelled at any moment, never more start than may, all end, and all slots are there again."""

    async def run() -> None:
        limit = adaptive(most)

        async def one(work: int, end: str) -> None:
            async with limit.slot() as slot:
                assert limit.in_flight <= most
                await asyncio.sleep(work / 10)
                if end == "pause":
                    limit.pause_until(now() + 1)
                elif end != "nothing":
                    getattr(slot, end)()

        async def call(comes: int, work: int, cancelled: int | None, end: str) -> None:
            await asyncio.sleep(comes / 10)
            task = asyncio.create_task(one(work, end))
            if cancelled is not None:
                await asyncio.sleep(cancelled / 10)
                task.cancel()
            await asyncio.wait({task})
            assert task.cancelled() or task.exception() is None

        await asyncio.gather(*(call(*each) for each in calls))
        assert (0, 0) == (limit.in_flight, limit.waiting)
        await asyncio.gather(*(limit.acquire() for _ in range(limit.current)))

    virtual(run())


@pytest.mark.parametrize(("most", "least"), [(0, 1), (4, 0), (4, 5)])
def test_a_limit_that_makes_no_sense_is_rejected(most: int, least: int) -> None:
    """The message names both bounds."""
    with pytest.raises(JudgeSetupError, match=f"got least {least}, most {most}"):
        AdaptiveLimit(most, least)


def rate(requests: float | None, tokens: float | None = None, **settings: float) -> RateLimit:
    return RateLimit(requests, tokens, clock=asyncio.get_running_loop().time, **settings)


async def times(limit: RateLimit, tokens: list[float]) -> list[float]:
    """When each of several that come at once goes."""

    async def one(amount: float) -> float:
        await limit.acquire(amount)
        return now()

    return await asyncio.gather(*(one(amount) for amount in tokens))


def test_requests_go_at_their_rate_after_a_burst() -> None:
    """At 60 a minute 10 go at once and then one a second."""

    async def run() -> None:
        assert await times(rate(60), [0] * 13) == pytest.approx([0] * 10 + [1, 2, 3], abs=0.01)

    virtual(run())


def test_a_slow_rate_still_lets_one_go_at_once() -> None:
    """At 2 a minute a sixth of a minute holds less than one request."""

    async def run() -> None:
        assert await times(rate(2), [0] * 3) == pytest.approx([0, 30, 60], abs=0.01)

    virtual(run())


def test_a_request_larger_than_the_bucket_waits_for_a_full_one() -> None:
    """It goes in its turn, and those behind it wait until its debt is paid."""

    async def run() -> None:
        limit = rate(None, 60)  # one a second, ten at most
        assert await times(limit, [4, 25, 1]) == pytest.approx([0, 4, 20], abs=0.01)

    virtual(run())


def test_small_requests_do_not_overtake_a_large_one() -> None:
    """What would fit waits behind what does not fit yet."""

    async def run() -> None:
        limit = rate(None, 60)
        assert await times(limit, [10, 10, 1]) == pytest.approx([0, 10, 11], abs=0.01)

    virtual(run())


def test_what_was_not_used_lets_the_next_go_sooner() -> None:
    """Settling gives back, also to one who waits already, and charges what was used beyond the estimate."""

    async def run() -> None:
        limit = rate(None, 60)
        await limit.acquire(10)
        waiter = asyncio.create_task(times(limit, [10]))
        await asyncio.sleep(1)
        limit.settle(10, 4)
        assert await waiter == pytest.approx([4], abs=0.01)
        limit.settle(10, 15)
        assert await times(limit, [1]) == pytest.approx([10], abs=0.01)

    virtual(run())


def test_what_is_given_back_does_not_overfill_the_bucket() -> None:
    """A burst stays a burst, whatever was overestimated."""

    async def run() -> None:
        limit = rate(None, 60)
        limit.settle(1000, 0)
        assert await times(limit, [10, 1]) == pytest.approx([0, 1], abs=0.01)

    virtual(run())


def test_no_rate_means_no_waiting() -> None:
    """Without either bound everyone goes at once."""

    async def run() -> None:
        assert [0] * 100 == await times(rate(None), [1e9] * 100)

    virtual(run())


@settings(max_examples=100)
@given(
    requests=st.one_of(st.none(), st.floats(1, 600)),
    tokens=st.one_of(st.none(), st.floats(60, 6000)),
    burst_s=st.floats(1, 60),
    calls=st.lists(
        st.tuples(st.integers(0, 50), st.integers(0, 500), st.one_of(st.none(), st.integers(0, 100))), max_size=25
    ),
)
def test_no_span_of_time_sees_more_than_burst_and_rate(
    requests: float | None,
    tokens: float | None,
    burst_s: float,
    calls: list[tuple[int, int, int | None]],
) -> None:
    """Callers go in their order, all that are not cancelled, and in no span more than the bucket and its inflow."""

    async def run() -> list[tuple[float, int]]:
        limit = rate(requests, tokens, burst_s=burst_s)
        gone: list[tuple[float, int]] = []
        order: list[int] = []

        async def one(number: int, amount: int) -> None:
            await limit.acquire(amount)
            gone.append((now(), amount))
            order.append(number)

        tasks = []
        for number, (comes, amount, cancelled) in enumerate(sorted(calls, key=lambda call: call[0])):
            await asyncio.sleep(max(comes - now(), 0))
            tasks.append(asyncio.create_task(one(number, amount)))
            if cancelled is not None:
                asyncio.get_running_loop().call_later(cancelled, tasks[-1].cancel)
        if tasks:
            await asyncio.wait(tasks)
        assert sorted(order) == order
        assert len(gone) == sum(not task.cancelled() for task in tasks)
        assert 0 == limit.waiting
        return gone

    gone = virtual(run())
    for first, last in itertools.combinations(range(len(gone)), 2):
        span_s = gone[last][0] - gone[first][0]
        if requests is not None:
            assert last - first + 1 <= max(requests / 60 * burst_s, 1) + requests / 60 * span_s + 1e-6
        if tokens is not None:
            most = max(tokens / 60 * burst_s, 1)
            beyond = max(gone[last][1] - most, 0)
            taken = sum(amount for _, amount in gone[first : last + 1])
            assert taken <= most + tokens / 60 * span_s + beyond + 1e-6


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), "500", True])
@pytest.mark.parametrize("name", ["requests_per_minute", "tokens_per_minute", "burst_s"])
def test_a_rate_that_makes_no_sense_is_rejected(name: str, value: Any) -> None:
    """The message names the setting and the value."""
    with pytest.raises(JudgeSetupError, match=f"{name}: .* got {value!r}"):
        RateLimit(**{name: value})
