"""Equal requests in flight are one, whoever of those that wait for it is cancelled, fails or gives up."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builtin_rewards.judge.endpoint.merge import Merger


class Server:
    """Answers when it is told to; counts requests, answers and cancellations."""

    def __init__(self, error: Exception | None = None) -> None:
        self.may_answer = asyncio.Event()
        self.error = error
        self.requests = self.answers = self.cancelled = 0

    async def ask(self) -> int:
        self.requests += 1
        try:
            await self.may_answer.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        self.answers += 1
        if self.error is not None:
            raise self.error
        return self.requests


def quietly(main: Coroutine[Any, Any, None]) -> None:
    """Run to the end; asyncio must have nothing to complain of, such as an error that was never retrieved."""
    complaints: list[dict[str, Any]] = []

    async def run() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        await main
        gc.collect(1)
        assert 1 == len(asyncio.all_tasks())

    asyncio.run(run())
    gc.collect(1)
    assert [] == complaints


async def settle() -> None:
    """Let every task run until it waits."""
    for _ in range(10):
        await asyncio.sleep(0)


def test_equal_requests_in_flight_are_one() -> None:
    """A hundred callers get the answer to one request."""

    async def run() -> None:
        merger, server = Merger[str, int](), Server()
        callers = [asyncio.create_task(merger.once("key", server.ask)) for _ in range(100)]
        await settle()
        server.may_answer.set()
        assert [1] * 100 == await asyncio.gather(*callers)
        assert (1, 99, 0) == (server.requests, merger.merged, len(merger))

    quietly(run())


def test_different_requests_are_not_merged() -> None:
    """Each key has its own request."""

    async def run() -> None:
        merger, server = Merger[int, int](), Server()
        server.may_answer.set()
        await asyncio.gather(*(merger.once(key, server.ask) for key in range(10)))
        assert (10, 0) == (server.requests, merger.merged)

    quietly(run())


def test_an_answer_is_not_kept() -> None:
    """Who asks after the answer came asks anew."""

    async def run() -> None:
        merger, server = Merger[str, int](), Server()
        server.may_answer.set()
        assert [1, 2] == [await merger.once("key", server.ask) for _ in range(2)]

    quietly(run())


def test_an_error_reaches_all() -> None:
    """And is not kept either."""

    async def run() -> None:
        merger, server = Merger[str, int](), Server(ValueError("no"))
        callers = [asyncio.create_task(merger.once("key", server.ask)) for _ in range(3)]
        await settle()
        server.may_answer.set()
        results = await asyncio.gather(*callers, return_exceptions=True)
        assert ["no"] * 3 == [str(result) for result in results]
        assert (1, 0) == (server.requests, len(merger))

    quietly(run())


def test_the_others_get_their_answer_when_the_first_is_cancelled() -> None:
    """The work belongs to all who wait."""

    async def run() -> None:
        merger, server = Merger[str, int](), Server()
        first, second = (asyncio.create_task(merger.once("key", server.ask)) for _ in range(2))
        await settle()
        first.cancel()
        await settle()
        assert first.cancelled()
        server.may_answer.set()
        assert 1 == await second

    quietly(run())


def test_the_work_is_cancelled_when_the_last_is_gone() -> None:
    """It is over when the last caller is, and who comes then asks anew."""

    async def run() -> None:
        merger, server = Merger[str, int](), Server()
        callers = [asyncio.create_task(merger.once("key", server.ask)) for _ in range(3)]
        await settle()
        for number, caller in enumerate(callers):
            assert (0, number) == (server.cancelled, sum(each.done() for each in callers))
            caller.cancel()
            await settle()
        assert (1, 0) == (server.cancelled, len(merger))
        server.may_answer.set()
        assert 2 == await merger.once("key", server.ask)

    quietly(run())


def test_who_comes_while_the_work_is_being_cancelled_asks_anew() -> None:
    """Nobody is given work that has been told to end."""

    async def run() -> None:
        may_end = asyncio.Event()

        async def slow_to_end() -> int:
            try:
                return await asyncio.Event().wait()
            finally:
                await may_end.wait()

        merger, server = Merger[str, int](), Server()
        caller = asyncio.create_task(merger.once("key", slow_to_end))
        await settle()
        caller.cancel()
        await settle()
        server.may_answer.set()
        assert 1 == await merger.once("key", server.ask)
        may_end.set()
        await asyncio.wait({caller})
        assert caller.cancelled()

    quietly(run())


def test_each_deadline_is_its_own() -> None:
    """One that passes at once leaves the other's request alone."""

    async def run() -> None:
        merger, server = Merger[str, int](), Server()
        patient = asyncio.create_task(merger.once("key", server.ask))
        await settle()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await merger.once("key", server.ask)
        server.may_answer.set()
        assert 1 == await patient

    quietly(run())


def test_an_error_that_nobody_hears_is_no_warning() -> None:
    """Work that fails while it is cancelled, after the last caller has gone, fails in silence."""

    async def run() -> None:
        async def ask() -> int:
            try:
                return await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise ValueError("while it was cancelled") from None

        merger = Merger[str, int]()
        caller = asyncio.create_task(merger.once("key", ask))
        await settle()
        caller.cancel()
        await asyncio.wait({caller})
        assert caller.cancelled()

    quietly(run())


@settings(max_examples=60)
@given(
    moves=st.lists(
        st.one_of(
            st.tuples(st.just("ask"), st.integers(0, 2)),
            st.tuples(st.just("cancel"), st.integers(0, 30)),
            st.tuples(st.just("answer"), st.just(0)),
            st.tuples(st.just("run"), st.just(0)),
        ),
        max_size=40,
    ),
    fails=st.booleans(),
)
def test_every_caller_ends_and_no_work_is_left(moves: list[tuple[str, int]], fails: bool) -> None:
    """In whichever order callers come, are cancelled and answered, each has an end and each request too."""

    async def run() -> None:
        merger, server = Merger[int, int](), Server(ValueError("no") if fails else None)
        callers: list[asyncio.Task[int]] = []
        stopped: set[asyncio.Task[int]] = set()
        for move, number in moves:
            if move == "ask":
                callers.append(asyncio.create_task(merger.once(number, server.ask)))
            elif move == "cancel" and number < len(callers) and not callers[number].done():
                callers[number].cancel()
                stopped.add(callers[number])
            elif move == "answer":
                server.may_answer.set()
                await settle()
                server.may_answer.clear()
            else:
                await asyncio.sleep(0)
        server.may_answer.set()
        await asyncio.gather(*callers, return_exceptions=True)
        assert {caller for caller in callers if caller.cancelled()} == stopped
        assert 0 == len(merger)
        assert server.requests == server.answers + server.cancelled

    quietly(run())
