"""Joining: who is scored with whom, who gets which result, and how much may be inside."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from parts_runtime import NumberedRuntime

from rewardkit import DataError, InfrastructureError, RewardDefinitionError, RewardLoadError, Rollout, Runtime, reward
from rewardkit.errors import FullError
from rewardkit.runtime.plan import CallerRows
from rewardkit.score_batch import ScoreBatch
from rewardkit.serving.joining import Joining

WAIT_S = 30


def _rows(*numbers: int, **example: str) -> list[Rollout]:
    return [Rollout("p", str(number), example) for number in numbers]


async def _turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_what_arrives_while_a_batch_is_scored_is_the_next() -> None:
    """Two calls of one moment are a batch, and those that come while it is scored are another, in their order."""
    gate = asyncio.Event()
    runtime = NumberedRuntime(gate)
    joining = Joining(runtime)
    first = [asyncio.create_task(joining.score(_rows(n))) for n in (1, 2)]
    await _turns()
    assert [[["1"], ["2"]]] == runtime.batches
    later = [asyncio.create_task(joining.score(_rows(n, n + 1))) for n in (3, 5)]
    await _turns()
    assert 6 == joining.rows
    gate.set()
    batches = await asyncio.wait_for(asyncio.gather(*first, *later), WAIT_S)
    assert [[1.0], [2.0], [3.0, 4.0], [5.0, 6.0]] == [one.totals for one in batches]
    assert [[["1"], ["2"]], [["3", "4"], ["5", "6"]]] == runtime.batches
    assert 0 == joining.rows


async def test_a_slow_batch_does_not_hold_up_the_next() -> None:
    """The next batch begins a moment after the one before, though that is not done."""
    gate, begun = asyncio.Event(), asyncio.Event()
    batches: list[int] = []

    def on_batch(callers: int, rows: int) -> None:
        batches.append(rows)
        if len(batches) == 2:
            begun.set()

    joining = Joining(NumberedRuntime(gate), on_batch=on_batch)
    slow = asyncio.create_task(joining.score(_rows(1)))
    await _turns()
    quick = asyncio.create_task(joining.score(_rows(2)))
    await asyncio.wait_for(begun.wait(), WAIT_S)
    assert not slow.done()
    gate.set()
    await asyncio.wait_for(asyncio.gather(slow, quick), WAIT_S)


async def test_calls_of_two_steps_are_not_one_batch() -> None:
    """A batch has one step and epoch, for schedules and rewards that ask."""
    runtime = NumberedRuntime()
    joining = Joining(runtime)
    calls = [joining.score(_rows(n), step=step) for n, step in ((1, 7), (2, 8), (3, 7))]
    assert [[1.0], [2.0], [3.0]] == [one.totals for one in await asyncio.gather(*calls)]
    assert [[["1"], ["3"]], [["2"]]] == runtime.batches
    assert [(7, None), (8, None)] == runtime.contexts


async def test_a_batch_is_full_at_its_rows() -> None:
    """A call's rows are never split, and a call that does not fit waits for the next batch."""
    runtime = NumberedRuntime()
    joining = Joining(runtime, batch_rows=3)
    await asyncio.gather(*(joining.score(_rows(*numbers)) for numbers in ((1, 2), (3, 4), (5,), (6, 7, 8, 9))))
    assert [[["1", "2"], ["5"]], [["3", "4"]], [["6", "7", "8", "9"]]] == runtime.batches


async def test_wrong_rows_cost_their_own_caller() -> None:
    """A call with wrong rows is refused; one whose rows cannot travel is found by scoring each caller alone."""
    runtime = NumberedRuntime()
    joining = Joining(runtime)
    found = await asyncio.gather(
        joining.score(_rows(1)),
        joining.score([Rollout("p", "none")]),
        joining.score(_rows(2, unpacked="")),
        joining.score(_rows(3)),
        return_exceptions=True,
    )
    assert [type(one).__name__ for one in found] == ["ScoreBatch", "DataError", "DataError", "ScoreBatch"]
    assert "no number: 'none'" == str(found[1])
    assert 0 == joining.rows


@pytest.mark.parametrize("fault", [RewardLoadError("no such"), InfrastructureError("all lost"), ValueError("ours")])
async def test_what_ends_a_batch_reaches_all_of_its_callers_and_no_other(fault: Exception) -> None:
    """Each caller has an error of its own; the next batch is scored."""
    runtime = NumberedRuntime()
    runtime.fails = [fault]
    joining = Joining(runtime)
    found = await asyncio.gather(joining.score(_rows(1)), joining.score(_rows(2)), return_exceptions=True)
    assert [type(fault)] * 2 == [type(one) for one in found]
    assert found[0] is not found[1]
    assert [3.0] == (await joining.score(_rows(3))).totals


class OfTwoWordsError(Exception):
    """One that cannot be copied, because it is made of something else than its arguments."""

    def __init__(self, one: str, other: str) -> None:
        super().__init__(f"{one} {other}")


async def test_an_error_that_cannot_be_copied_reaches_its_callers() -> None:
    """Nobody waits for ever because of an error's class, which may be that of a user's schedule."""
    runtime = NumberedRuntime()
    runtime.fails = [OfTwoWordsError("no", "luck")]
    joining = Joining(runtime)
    with pytest.raises(OfTwoWordsError, match="no luck"):
        await joining.score(_rows(1), within_s=WAIT_S)


async def test_no_more_rows_than_allowed_are_inside() -> None:
    """A call for which there is no room is refused, and one that fits is taken; there is room again later."""
    gate = asyncio.Event()
    joining = Joining(NumberedRuntime(gate), most_rows=3)
    inside = asyncio.create_task(joining.score(_rows(1, 2)))
    await _turns()
    with pytest.raises(FullError, match="2 rows wait to be scored, and at most 3 may; try again later"):
        await joining.score(_rows(3, 4))
    fits = asyncio.create_task(joining.score(_rows(5)))
    await _turns()
    gate.set()
    await asyncio.wait_for(asyncio.gather(inside, fits), WAIT_S)
    assert [3.0, 4.0] == (await joining.score(_rows(3, 4))).totals


async def test_an_ended_one_takes_no_more_and_drains() -> None:
    """After the end calls are refused, and those that are inside are scored."""
    gate = asyncio.Event()
    joining = Joining(NumberedRuntime(gate))
    inside = asyncio.create_task(joining.score(_rows(1)))
    await _turns()
    joining.end("closing time")
    with pytest.raises(FullError, match="closing time"):
        await joining.score(_rows(2))
    gate.set()
    await asyncio.wait_for(joining.wait_empty(), WAIT_S)
    assert [1.0] == (await inside).totals


async def test_a_call_has_its_deadline() -> None:
    """A call that is not scored in time fails, the others of its batch do not."""
    gate = asyncio.Event()
    joining = Joining(NumberedRuntime(gate))
    patient = asyncio.create_task(joining.score(_rows(1)))
    with pytest.raises(InfrastructureError, match=r"1 rows were not scored within 0\.01 s"):
        await joining.score(_rows(2), within_s=0.01)
    gate.set()
    assert [1.0] == (await asyncio.wait_for(patient, WAIT_S)).totals


async def test_a_cancelled_call_is_not_scored_and_its_batch_is() -> None:
    """Who leaves before the batch is left out; a batch that nobody waits for is cancelled."""
    gate = asyncio.Event()
    runtime = NumberedRuntime(gate)
    joining = Joining(runtime)
    only = asyncio.create_task(joining.score(_rows(1)))
    await _turns()
    gone, stays = (asyncio.create_task(joining.score(_rows(n))) for n in (2, 3))
    await _turns()
    gone.cancel()
    only.cancel()
    await asyncio.gather(gone, only, return_exceptions=True)
    gate.set()
    assert [3.0] == (await asyncio.wait_for(stays, WAIT_S)).totals
    assert [[["1"]], [["3"]]] == runtime.batches
    assert (1, 0) == (runtime.cancelled, joining.rows)


async def test_nothing_is_scored_at_once() -> None:
    """A call without rows is answered like any other, also where there is no room."""
    joining = Joining(NumberedRuntime(), most_rows=1)
    assert [] == (await joining.score([])).totals


@pytest.mark.parametrize("options", [{"most_rows": 0}, {"batch_rows": True}, {"batch_rows": 1.5}])
async def test_a_number_that_makes_no_sense_is_named(options: dict[str, int]) -> None:
    """The error has the option and its value."""
    name, value = next(iter(options.items()))
    with pytest.raises(RewardDefinitionError, match=f"{name}={value!r}: expected a whole number, 1 or more"):
        Joining(NumberedRuntime(), **options)


@given(
    calls=st.lists(
        st.tuples(st.integers(0, 4), st.integers(0, 3), st.sampled_from(["", "wrong", "leaves"])), max_size=20
    ),
    batch_rows=st.integers(1, 8),
)
def test_every_call_gets_its_own_scores_in_any_order(calls: Sequence[tuple[int, int, str]], batch_rows: int) -> None:
    """Whatever arrives when, of however many rows, each call that stays has its scores and wrong ones their error."""

    async def one(joining: Joining, place: int, size: int, turns: int, fate: str) -> object:
        await _turns(turns)
        rows = [Rollout("p", "none" if fate == "wrong" else str(100 * place + row)) for row in range(size + 1)]
        return (await joining.score(rows)).totals

    async def all_of_them() -> None:
        joining = Joining(NumberedRuntime(), batch_rows=batch_rows)
        tasks = [asyncio.create_task(one(joining, place, *call)) for place, call in enumerate(calls)]
        await _turns(2)
        for task, (_, _, fate) in zip(tasks, calls, strict=True):
            if fate == "leaves":
                task.cancel()
        found = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), WAIT_S)
        for place, (answer, (size, _, fate)) in enumerate(zip(found, calls, strict=True)):
            if fate == "wrong":
                assert isinstance(answer, DataError)
            elif fate == "" or not isinstance(answer, asyncio.CancelledError):
                assert [100.0 * place + row for row in range(size + 1)] == answer
        assert 0 == joining.rows

    asyncio.run(all_of_them())


async def test_a_batch_that_is_answered_leaves_no_circle() -> None:
    """Its rows and scores are gone with their last reader; the collector of circles need not look for them."""

    @reward
    def right(completion: str, answer: str) -> float:
        return float(completion == answer)

    with Runtime([right], workers=1) as runtime:
        joining = Joining(runtime)
        rows = [Rollout("p", str(number), {"answer": "4"}) for number in range(20)]
        await asyncio.gather(*(joining.score([row]) for row in rows))
        await asyncio.sleep(0.1)  # until the pool's thread has let go of the batch
        gc.collect()
        gc.disable()
        try:
            before = _scored_batches()
            await asyncio.gather(*(joining.score([row]) for row in rows))
            await asyncio.sleep(0.1)
            assert before == _scored_batches()
        finally:
            gc.enable()


def _scored_batches() -> int:
    return sum(type(thing) in (ScoreBatch, CallerRows) for thing in gc.get_objects())
