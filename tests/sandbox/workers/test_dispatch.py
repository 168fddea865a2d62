"""How many calls are sent to a worker together: fewer and fewer of what may be slow, never too few of what is quick."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from sandbox.workers.dispatch import KNOWN_CALLS, QUICK_CHUNK, Dispatch
from sandbox.workers.job import Call, Job
from sandbox.workers.slot import Lane

CALLS, WORKERS = 64, 2


class _Slot(SimpleNamespace):
    """A serial worker that is always ready, and keeps what it is sent."""

    def __init__(self) -> None:
        super().__init__(lane=Lane.SERIAL, targets={0}, tainted=False, batches={1}, half=0, sent=[])

    def tickets(self, job: Job, calls: list[Call]) -> int:
        self.sent.append(len(calls))
        return 0

    def tell(self, message: object) -> None:
        pass


def _chunks(dispatch: Dispatch, slot: Any) -> list[int]:
    handler: Any = None
    job = Job(CALLS, None, handler, lambda: None)
    slot.batches.add(job.number)
    for target in job.add([Call(0, (place,), 1.0) for place in range(CALLS)]):
        dispatch.enlist(job, target)
    slot.sent.clear()
    while sum(slot.sent) < CALLS:
        dispatch.feed_serial(slot)
    return list(slot.sent)


@pytest.fixture
def slot() -> Any:
    return _Slot()


@pytest.fixture
def dispatch(slot: Any) -> Dispatch:
    return Dispatch([slot] * WORKERS, lambda slot: None)


def test_chunks_get_smaller_towards_the_end(dispatch: Dispatch, slot: Any) -> None:
    """Of a target that nothing is known of the last calls are sent one by one."""
    chunks = _chunks(dispatch, slot)
    assert (CALLS // (2 * WORKERS), [1, 1, 1]) == (chunks[0], chunks[-3:])
    assert sorted(chunks, reverse=True) == chunks


def test_quick_calls_are_sent_together(dispatch: Dispatch, slot: Any) -> None:
    """Once many have been quick there is no chunk that is not worth its cost; one slow call ends that."""
    dispatch.note(0, 8 * KNOWN_CALLS * 2e-5, 2e-4, KNOWN_CALLS)  # the mean takes an eighth of it
    assert [QUICK_CHUNK] * (CALLS // QUICK_CHUNK) == _chunks(dispatch, slot)
    dispatch.note(0, 0.5, 0.5)
    assert 1 == _chunks(dispatch, slot)[-1]


def test_a_chunk_of_quick_calls_takes_no_time(dispatch: Dispatch, slot: Any) -> None:
    """Calls of a third of a millisecond are quick, and three of them are enough."""
    for _ in range(KNOWN_CALLS):
        dispatch.note(0, 3e-4, 3e-4)
    assert 3 == min(_chunks(dispatch, slot)[:-1])


def test_calls_that_take_no_time_are_worth_their_chunk(dispatch: Dispatch, slot: Any) -> None:
    """A chunk costs the parent, which all workers share, as much as many calls of some microseconds."""
    dispatch.note(0, 5 * KNOWN_CALLS * 1.6e-5, 2e-5, 5 * KNOWN_CALLS)  # the mean takes an eighth of it
    assert [CALLS] == _chunks(dispatch, slot)
    for _ in range(40):
        dispatch.note(0, 1e-4, 1e-4)
    assert 10 == min(_chunks(dispatch, slot)[:-1])
