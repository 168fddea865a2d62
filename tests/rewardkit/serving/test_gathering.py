"""Gathering: rows that come one by one are scored in whole groups, once each, and a late group is not invented."""

from __future__ import annotations

import asyncio
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from parts_runtime import NumberedRuntime

from rewardkit import Cause, InfrastructureError, RewardDefinitionError, Rollout, ScoreBatch, Status
from rewardkit.errors import FullError
from rewardkit.serving import gathering as module
from rewardkit.serving.gathering import Gathering
from rewardkit.serving.joining import Joining

WAIT_S = 30
NEVER_S = 1e6


def _row(number: int, prompt: str = "p", **example: str) -> Rollout:
    return Rollout(prompt, str(number), example)


def _ask(gathering: Gathering, number: int, sample: str | None = None, prompt: str = "p") -> asyncio.Task[ScoreBatch]:
    return asyncio.create_task(gathering.score([_row(number, prompt)], samples=[sample]))


async def _turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def _left(task: asyncio.Task[ScoreBatch]) -> None:
    """Hang up, as a client does that waited for too long."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def _totals(*tasks: asyncio.Task[ScoreBatch]) -> list[float | None]:
    return [one.totals[0] for one in await asyncio.wait_for(asyncio.gather(*tasks), WAIT_S)]


async def test_rows_wait_until_their_group_is_whole() -> None:
    """Each group is one call of the runtime, in the order of its rows, and each row gets its own score."""
    runtime = NumberedRuntime()
    gathering = Gathering(Joining(runtime), 3, NEVER_S)
    asked = [_ask(gathering, number, prompt="pq"[number % 2]) for number in range(5)]
    await _turns()
    assert ([[["0", "2", "4"]]], 2) == (runtime.batches, gathering.waiting)
    asked.append(_ask(gathering, 7, prompt="q"))
    assert [0.0, 1.0, 2.0, 3.0, 4.0, 7.0] == await _totals(*asked)
    assert [[["0", "2", "4"]], [["1", "3", "7"]]] == runtime.batches


async def test_rows_of_two_examples_are_of_two_groups() -> None:
    """The prompt alone makes no group: rows of one prompt with two answers are apart."""
    runtime = NumberedRuntime()
    gathering = Gathering(Joining(runtime), 2, NEVER_S)
    rows = [_row(1, answer="a"), _row(2, answer="b"), _row(3, answer="b"), _row(4, answer="a")]
    assert [1.0, 2.0, 3.0, 4.0] == (await asyncio.wait_for(gathering.score(rows), WAIT_S)).totals
    assert [["2", "3"], ["1", "4"]] == [group for batch in runtime.batches for group in batch]


async def test_more_rows_than_a_group_has_begin_the_next() -> None:
    """Of six rows of one prompt, four are two groups, and two wait."""
    runtime = NumberedRuntime()
    gathering = Gathering(Joining(runtime), 2, NEVER_S)
    asked = [_ask(gathering, number) for number in range(5)]
    await _turns()
    assert [["0", "1"], ["2", "3"]] == [group for batch in runtime.batches for group in batch]
    assert 1 == gathering.waiting
    asked.append(_ask(gathering, 5))
    assert [0.0, 1.0, 2.0, 3.0, 4.0, 5.0] == await _totals(*asked)


async def test_a_late_group_is_lost_and_says_why() -> None:
    """The rows of a group that is not whole in time are failed for infrastructure, with no score."""
    gathering = Gathering(Joining(NumberedRuntime()), 3, 0.01)
    batch = await asyncio.wait_for(gathering.score([_row(1), _row(2)]), WAIT_S)
    said = "the group is not whole: 2 of the 3 completions of the prompt came within 0.01 s"
    assert [(Status.FAILED, None, Cause.INFRASTRUCTURE, said)] * 2 == [
        (one.status, one.score, one.cause, one.error) for one in batch["number"]
    ]


async def test_equal_completions_have_places_of_their_own() -> None:
    """Two rows of the same content, whose callers both wait, are two completions of the group."""
    runtime = NumberedRuntime()
    gathering = Gathering(Joining(runtime), 3, NEVER_S)
    assert [4.0, 4.0, 4.0] == await _totals(*(_ask(gathering, 4) for _ in range(3)))
    assert [[["4", "4", "4"]]] == runtime.batches


async def test_a_row_sent_again_keeps_its_place() -> None:
    """Whoever hangs up and asks anew gets the answer of the first time, before and after the group was scored."""
    runtime = NumberedRuntime()
    joining = Joining(runtime)
    gathering = Gathering(joining, 2, NEVER_S)
    first, gone = _ask(gathering, 1), _ask(gathering, 5, prompt="q")
    await _turns()
    await _left(first)
    await _left(gone)
    again = _ask(gathering, 1)
    await _turns()
    assert 2 == gathering.waiting
    assert [1.0, 2.0, 6.0] == await _totals(again, _ask(gathering, 2), _ask(gathering, 6, prompt="q"))
    assert [5.0] == await _totals(_ask(gathering, 5, prompt="q"))
    assert [["1", "2"], ["5", "6"]] == [group for batch in runtime.batches for group in batch]
    assert (0, 0) == (joining.rows, gathering.waiting)


async def test_a_row_with_a_sample_is_known_without_hanging_up() -> None:
    """Its answer is given again while the first caller waits, and after; another sample is another row."""
    runtime = NumberedRuntime()
    joining = Joining(runtime)
    gathering = Gathering(joining, 2, NEVER_S)
    asked = [_ask(gathering, 1, "a"), _ask(gathering, 1, "a"), _ask(gathering, 1, "b")]
    assert [1.0, 1.0, 1.0] == await _totals(*asked)
    assert [1.0, 1.0] == await _totals(_ask(gathering, 1, "a"), _ask(gathering, 1, "b"))
    assert [[["1", "1"]]] == runtime.batches
    assert 0 == joining.rows


async def test_an_answer_is_forgotten_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the same row is a new one, which waits for a group of its own."""
    monkeypatch.setattr(module, "REMEMBERED_S", 0.0)
    runtime = NumberedRuntime()
    gathering = Gathering(Joining(runtime), 1, NEVER_S)
    assert [1.0, 1.0] == [*(await _totals(_ask(gathering, 1, "a"))), *(await _totals(_ask(gathering, 1, "a")))]
    assert 2 == len(runtime.batches)


async def test_no_more_answers_than_allowed_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest are forgotten first, with everything that leads to them."""
    monkeypatch.setattr(module, "REMEMBERED", 3)
    gathering = Gathering(Joining(NumberedRuntime()), 1, NEVER_S)
    for number in range(10):
        await _totals(_ask(gathering, number, "a"))
        unnamed = _ask(gathering, number)
        await asyncio.sleep(0)
        await _left(unnamed)
        await _turns(20)
    assert 3 >= len(gathering._answered)
    assert 3 >= len(gathering._by_sample) + len(gathering._left)


async def test_a_fault_is_told_to_the_group_and_not_remembered() -> None:
    """What ends a batch reaches every row of the group; sent again, the rows are scored."""
    runtime = NumberedRuntime()
    runtime.fails = [InfrastructureError("all lost")]
    joining = Joining(runtime)
    gathering = Gathering(joining, 2, NEVER_S)
    found = await asyncio.gather(_ask(gathering, 1, "a"), _ask(gathering, 2, "b"), return_exceptions=True)
    assert ["all lost"] * 2 == [str(one) for one in found]
    assert [1.0, 2.0] == await _totals(_ask(gathering, 1, "a"), _ask(gathering, 2, "b"))
    assert 0 == joining.rows


async def test_waiting_rows_count_as_inside() -> None:
    """Rows that wait for their group take room, and are refused where there is none; a flush gives it back."""
    joining = Joining(NumberedRuntime(), most_rows=2)
    gathering = Gathering(joining, 9, NEVER_S)
    asked = [_ask(gathering, 1), _ask(gathering, 2)]
    await _turns()
    with pytest.raises(FullError):
        await gathering.score([_row(3)])
    gathering.flush("closing time")
    assert [None, None] == await _totals(*asked)
    assert 0 == joining.rows


async def test_a_row_has_its_deadline_and_the_group_goes_on() -> None:
    """Who waits no longer keeps a place, so that the group of the others becomes whole."""
    gathering = Gathering(Joining(NumberedRuntime()), 2, NEVER_S)
    with pytest.raises(InfrastructureError, match=r"not scored within 0\.01 s"):
        await gathering.score([_row(1)], within_s=0.01)
    assert [2.0] == await _totals(_ask(gathering, 2))


@pytest.mark.parametrize(("size", "wait_s", "said"), [(0, 1, "group_size=0"), (2, 0, "group_wait_s=0")])
async def test_a_setting_that_makes_no_sense_is_named(size: int, wait_s: float, said: str) -> None:
    """The error has the setting and its value."""
    with pytest.raises(RewardDefinitionError, match=said):
        Gathering(Joining(NumberedRuntime()), size, wait_s)


@given(
    groups=st.integers(1, 4),
    size=st.integers(1, 4),
    seed=st.integers(0, 10_000),
    retried=st.lists(st.integers(0, 15), max_size=6),
)
def test_rows_in_any_order_with_retries_make_whole_groups(
    groups: int, size: int, seed: int, retried: list[int]
) -> None:
    """In any order, with any rows hung up and sent again, every group is whole, once, and each row has its score."""

    async def scored() -> None:
        runtime = NumberedRuntime()
        joining = Joining(runtime)
        gathering = Gathering(joining, size, NEVER_S)
        rows = [_row(10 * group + place % 2, f"p{group}") for group in range(groups) for place in range(size)]
        drawn = random.Random(seed)
        drawn.shuffle(rows)

        async def ask(place: int, row: Rollout) -> float | None:
            if place in retried:
                gone = asyncio.create_task(gathering.score([row]))
                await _turns(drawn.randrange(4))
                if not gone.done():
                    await _left(gone)
                else:
                    return gone.result().totals[0]
            return (await gathering.score([row])).totals[0]

        tasks = []
        for place, row in enumerate(rows):
            tasks.append(asyncio.create_task(ask(place, row)))
            await _turns(drawn.randrange(3))
        found = await asyncio.wait_for(asyncio.gather(*tasks), WAIT_S)
        assert [float(str(row.completion)) for row in rows] == found
        made = [group for batch in runtime.batches for group in batch]
        assert [size] * groups == [len(group) for group in made]
        assert sorted(str(row.completion) for row in rows) == sorted(one for group in made for one in group)
        assert (0, 0) == (joining.rows, gathering.waiting)

    asyncio.run(scored())
