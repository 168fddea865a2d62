"""What each event loop has one of: it is the loop's own, and ends with it."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from builtin_rewards.endpoint.backends import Server
from builtin_rewards.endpoint.client import prepare
from builtin_rewards.endpoint.messages import Usage
from builtin_rewards.judge import Budget, Load
from builtin_rewards.judge.model import JudgeModel, Question
from rewardkit.loops import of_this_loop, turns

LATER_S = 0.001


async def contend(one: Callable[[], Awaitable[object]]) -> None:
    """Does the same several times at once."""
    await asyncio.gather(*(one() for _ in range(4)))


async def take_a_turn() -> None:
    async with turns("the line", 1):
        await asyncio.sleep(LATER_S)


async def answer_later(**_: Any) -> dict[str, Any]:
    await asyncio.sleep(LATER_S)
    return {"choices": [{"message": {"content": "4"}}]}


def test_a_loop_has_its_own_and_keeps_it() -> None:
    """Those of several threads at once too."""

    def own() -> list[int]:
        return of_this_loop("own", list[int])

    together = threading.Barrier(8)
    came: list[tuple[list[int], list[int]]] = []

    async def twice() -> None:
        first = own()
        await asyncio.to_thread(together.wait)
        came.append((first, own()))

    threads = [threading.Thread(target=lambda: asyncio.run(twice())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert all(first is second for first, second in came)
    assert 8 == len({id(first) for first, _ in came})


@pytest.mark.parametrize("what", ["turns", "budget", "judge", "client"])
def test_what_was_waited_for_ends_with_its_loop(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of five loops with contention at most the last is held, until the next one comes."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-a-test")
    budget = Budget(tokens=2, ledger=tmp_path / "ledger.db")
    completions = SimpleNamespace(create=answer_later)
    client = SimpleNamespace(chat=SimpleNamespace(completions=completions))
    model = JudgeModel("m", client=client, load=Load(concurrency=1))

    async def pay() -> None:
        with await budget.reserve_within("held", Usage(1, 1), None, 60.0) as ticket:
            await asyncio.sleep(LATER_S)
            ticket.release()

    async def ask() -> object:
        return await model.attempt(
            "held", Question(({"role": "user", "content": "?"},), {}, "1"), lambda reply, _: reply
        )

    async def connect() -> None:
        await prepare(Server("http://127.0.0.1:1/v1"))

    one = {"turns": take_a_turn, "budget": pay, "judge": ask, "client": connect}[what]
    loops = []

    async def noted() -> None:
        loops.append(weakref.ref(asyncio.get_running_loop()))
        await contend(one)

    for _ in range(5):
        asyncio.run(noted())
    gc.collect()

    assert 1 >= sum(loop() is not None for loop in loops)
