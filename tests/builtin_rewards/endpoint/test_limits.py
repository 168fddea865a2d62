"""Limits let through what they may, in order, and lose no turn whoever is cancelled. No test waits in real time."""

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

from builtin_rewards.endpoint.errors import JudgeSetupError
from builtin_rewards.endpoint.limits import FIRST, FIRST_S, Limiter, Load


def gate(most: int = 128, requests: float | None = None, tokens: float | None = None, *, known: bool = True) -> Limiter:
    """Return a gate, by default to a server that has answered already."""
    made = Limiter(Load(most, requests, tokens))
    if known:
        made._first_until = 0.0
    return made


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


async def judge_all(count: int, limit: Limiter, serve: Server, adapt: bool = True) -> list[tuple[float, int]]:
    """Asks until each of so many is answered; gives when each 429 came, with the limit that it left."""
    rejections = []

    async def one() -> None:
        for delay_s in itertools.chain((0.5, 1, 2), itertools.repeat(4)):
            async with limit.turn():
                if await serve():
                    limit.note_answer()
                    return
                if adapt:
                    limit.note_refusal()
                rejections.append((now(), limit.current))
            await asyncio.sleep(delay_s)

    await asyncio.gather(*(one() for _ in range(count)))
    return rejections


@pytest.mark.parametrize("no_s", [0.02, 1.0], ids=["quick 429", "slow 429"])
@pytest.mark.parametrize("share", [0.02, 0.03])
def test_sporadic_429s_cost_less_than_a_tenth(share: float, no_s: float, full: bool) -> None:
    """429s that have nothing to do with load take less than 10 % of the throughput of a limit that ignores them."""

    async def seconds(adapt: bool, seed: int) -> float:
        await judge_all(2000, gate(), sporadic(share, no_s, random.Random(seed)), adapt)
        return now()

    for seed in range(2 if full else 1):
        assert virtual(seconds(True, seed)) <= 1.1 * virtual(seconds(False, seed))


@pytest.mark.parametrize("no_s", [0.02, 1.0], ids=["quick 429", "slow 429"])
def test_what_a_server_takes_is_found_within_a_few_round_trips(no_s: float) -> None:
    """A server that takes 20 at a time is kept busy, and says 429 to few once it is known."""

    async def run() -> None:
        rejections = await judge_all(2000, gate(), Bounded(20, no_s))
        assert 2000 / 20 * 1.25 >= now()
        assert 0.25 * 2000 >= len([at_s for at_s, _ in rejections if at_s > 10])

    virtual(run())


def test_the_limit_grows_back_when_the_server_recovers() -> None:
    """From what 16 at a time leaves to 128."""

    async def run() -> None:
        server, limit = Bounded(16, 0.02), gate()
        work = asyncio.create_task(judge_all(5000, limit, server))
        await asyncio.sleep(10)
        assert 40 >= limit.current
        server.most = 1000
        await asyncio.sleep(40)
        assert 128 == limit.current
        await work

    virtual(run())


def test_the_limit_never_falls_below_one() -> None:
    """Whatever the server says, one may go; a round of 429s halves it once."""

    async def run() -> None:
        limit, sizes = gate(64), []
        while limit.current > 1:
            sizes.append(limit.current)
            for _ in range(limit.current):
                limit.note_refusal()
        for _ in range(100):
            limit.note_refusal()
        assert [64, 32, 16, 8, 4, 2] == sizes
        assert 1 == limit.current

    virtual(run())


def test_all_wait_as_long_as_the_server_asks() -> None:
    """Where its 429s are many; after a lone one the others go on. Those in flight are left alone."""

    async def run() -> None:
        limit, starts = gate(10), []

        async def one() -> None:
            async with limit.turn():
                starts.append(now())

        limit.note_refusal(7.0)
        await one()
        for wait_s in (7.0, 3.0):
            limit.note_refusal(wait_s)
        await asyncio.gather(one(), one())
        assert starts == pytest.approx([0, 7, 7], abs=0.01)

    virtual(run())


def test_a_new_server_is_asked_by_a_few_until_it_answers() -> None:
    """A wrong key costs no more; an answer lets all go, and so does a while without any."""

    async def most_at(answers_s: float) -> list[tuple[float, int]]:
        limit, seen = gate(known=False), []

        async def one() -> None:
            async with limit.turn():
                seen.append((now(), limit.in_flight))
                await asyncio.sleep(answers_s)
                limit.note_answer()

        await asyncio.gather(*(one() for _ in range(20)))
        return seen

    quick, slow = virtual(most_at(0.1)), virtual(most_at(60.0))
    for seen, at_s in ((quick, 0.1), (slow, FIRST_S)):
        assert [1 + n for n in range(FIRST)] == [flight for when, flight in seen if when < at_s - 0.01]
        assert at_s == pytest.approx(seen[FIRST][0], abs=0.01)


def test_callers_go_in_the_order_they_came() -> None:
    """Who comes later waits behind those who wait already."""

    async def run() -> None:
        limit, order = gate(3), []

        async def one(number: int) -> None:
            async with limit.turn():
                order.append(number)
                await asyncio.sleep(1 + number % 3)

        await asyncio.gather(*(one(number) for number in range(30)))
        assert list(range(30)) == order

    virtual(run())


calls = st.lists(
    st.tuples(
        st.integers(0, 20),  # comes, tenths of a second
        st.integers(0, 20),  # works
        st.one_of(st.none(), st.integers(0, 30)),  # is cancelled, after it came
        st.sampled_from(["note_answer", "note_refusal", "nothing", "pause"]),
    ),
    max_size=30,
)


@settings(max_examples=100)
@given(most=st.integers(1, 6), calls=calls)
def test_no_turn_is_lost_and_none_too_many_is_given(most: int, calls: list[tuple[int, int, int | None, str]]) -> None:
    """With callers cancelled at any moment, never more start than may, all end, and all turns are there again."""

    async def run() -> None:
        limit = gate(most)

        async def one(work: int, end: str) -> None:
            async with limit.turn():
                assert limit.in_flight <= most
                await asyncio.sleep(work / 10)
                if end == "pause":
                    limit.note_refusal(1.0)
                elif end != "nothing":
                    getattr(limit, end)()

        async def call(comes: int, work: int, cancelled: int | None, end: str) -> None:
            await asyncio.sleep(comes / 10)
            task = asyncio.create_task(one(work, end))
            if cancelled is not None:
                await asyncio.sleep(cancelled / 10)
                task.cancel()
            await asyncio.wait({task})
            assert task.cancelled() or task.exception() is None

        await asyncio.gather(*(call(*each) for each in calls))
        assert 0 == limit.in_flight
        assert not limit._line.locked()

    virtual(run())


async def times(limit: Limiter, tokens: list[float]) -> list[float]:
    """Return when each of several that come at once goes."""

    async def one(amount: float) -> float:
        async with limit.turn(amount):
            return now()

    return await asyncio.gather(*(one(amount) for amount in tokens))


RATES: dict[str, tuple[float | None, float | None, list[float], list[float]]] = {
    "60 a minute: 10 at once and then one a second": (60, None, [0] * 13, [0] * 10 + [1, 2, 3]),
    "a slow rate still lets one go at once": (2, None, [0] * 3, [0, 30, 60]),
    "one larger than the bucket waits for a full one, and those behind it for its debt": (
        None,
        60,
        [4, 25, 1],
        [0, 4, 20],
    ),
    "a small one does not overtake a large one": (None, 60, [10, 10, 1], [0, 10, 11]),
    "without a rate everyone goes at once": (None, None, [1e9] * 100, [0] * 100),
}


@pytest.mark.parametrize(("requests", "tokens", "amounts", "expected"), RATES.values(), ids=RATES)
def test_requests_and_tokens_go_at_their_rate(
    requests: float | None, tokens: float | None, amounts: list[float], expected: list[float]
) -> None:
    """A burst of ten seconds' worth, and then by the rate."""

    async def run() -> None:
        assert await times(gate(128, requests, tokens), amounts) == pytest.approx(expected, abs=0.01)

    virtual(run())


def test_what_was_not_used_lets_the_next_go_sooner() -> None:
    """A turn that ends gives back what it did not take, and is charged what it took beyond its estimate."""

    async def run() -> None:
        limit = gate(128, None, 60)

        async def one(takes: float) -> None:
            async with limit.turn(10):
                await asyncio.sleep(1)
                limit.tokens.take(takes - 10)

        first = asyncio.create_task(one(4))
        await asyncio.sleep(0)
        assert await times(limit, [10]) == pytest.approx([4], abs=0.01)
        await first
        await one(15)
        began = now()
        assert await times(limit, [1]) == pytest.approx([began + 5], abs=0.01)

    virtual(run())


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), "500", True])
@pytest.mark.parametrize("name", ["concurrency", "requests_per_minute", "tokens_per_minute", "rest_s"])
def test_a_load_that_makes_no_sense_is_rejected(name: str, value: Any) -> None:
    """The message names the setting and the value."""
    with pytest.raises(JudgeSetupError, match=rf"Load\({name}={value!r}\): expected"):
        Load(**{name: value})
