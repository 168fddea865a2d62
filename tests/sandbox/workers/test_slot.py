"""What the parent reads from a worker's page: who does nothing, and whose time is up."""

from __future__ import annotations

import math
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any, cast

import pytest
from patience import LONG_S

from sandbox.workers.job import Call, Terms
from sandbox.workers.process_state import RunQueue
from sandbox.workers.slot import GRACE_S, STOPPED_S, Lag, Lane, Slot

CALL: Any = (None, SimpleNamespace(timeout_s=60.0))
CALLS: Any = (None, [SimpleNamespace(timeout_s=60.0)])


@pytest.mark.parametrize("lane", [Lane.SERIAL, Lane.ASYNCIO])
@pytest.mark.parametrize(
    ("looks", "stalled"),
    [
        ([0, 2, 4, 5.9], False),
        ([n / 10 for n in range(70)], True),
        ([0, 0.1, 7, 7.1, 7.2], False),
        ([0, 0.1, *(7 + n / 10 for n in range(70))], True),
    ],
    ids=["few looks, all far apart", "seen idle all the time", "nobody looked for long", "and idle long after that"],
)
def test_a_worker_is_given_up_where_it_was_seen_doing_nothing(lane: Lane, looks: list[float], stalled: bool) -> None:
    """Time in which the parent stood still itself, as in a paused container, does not count."""
    slot = Slot(0, lane, 4, frozenset({0}))
    try:
        os.close(slot.open()[0])
        slot.sent[1] = CALL
        assert slot.page is not None
        slot.page.beat(0.0)
        for now in looks:
            assert {} == slot.overdue(now)
        assert stalled == slot.stalled(looks[-1])
    finally:
        slot.close()


@pytest.mark.parametrize("lane", [Lane.SERIAL, Lane.ASYNCIO])
def test_a_sign_of_life_begins_the_time_anew(lane: Lane) -> None:
    """A worker that beats, or is seen at a call, is not stopped."""
    slot = Slot(0, lane, 4, frozenset({0}))
    try:
        os.close(slot.open()[0])
        slot.sent[1] = CALL
        assert slot.page is not None
        for tenth in range(70):
            if tenth == 30:
                slot.page.beat(tenth / 10)
                slot.page.begin(0, 1, tenth / 10, tainted=False)
            slot.overdue(tenth / 10)
            if tenth == 30:
                slot.page.end(0)
        assert not slot.stalled(6.9)
    finally:
        slot.close()


@pytest.mark.parametrize("lane", [Lane.SERIAL, Lane.ASYNCIO])
def test_nobodys_time_is_up_while_its_clock_stands_still(lane: Lane) -> None:
    """The call has its whole time afterwards; a worker that never lets the clock go on is given up."""
    slot = Slot(0, lane, 4, frozenset({0}))
    try:
        os.close(slot.open()[0])
        slot.sent[1] = CALL
        assert slot.page is not None
        slot.page.beat(1.0)
        slot.page.begin(0, 1, 1.0, tainted=False)
        slot.page.step(1, 1.0, 61.0)
        slot.page.halt(0, 31.0)
        slot.page.halt_step(31.0)
        assert {} == slot.overdue(31.0 + STOPPED_S)
        slot.page.resume(0, 101.0)
        slot.page.resume_step(161.0)
        assert [{}, {1: False}] == [slot.overdue(160.9), slot.overdue(161.1)]
        slot.page.halt(0, 200.0)
        slot.page.halt_step(200.0)
        given_up = []
        for tenth in range(2 * int(10 * STOPPED_S)):
            assert {} == slot.overdue(200 + tenth / 10)
            given_up.append(slot.stalled(200 + tenth / 10))
        assert 200 + STOPPED_S < 200 + given_up.index(True) / 10 < 200 + STOPPED_S + 6
    finally:
        slot.close()


def test_no_step_is_seen_with_times_that_are_not_its_own() -> None:
    """However often the parent looks while an event loop steps from call to call, nobody's time is up."""
    slot = Slot(0, Lane.ASYNCIO, 4, frozenset({0}))
    try:
        os.close(slot.open()[0])
        assert slot.page is not None
        writer = os.fork()
        if not writer:
            while True:
                now = time.monotonic()
                slot.page.step(1 + int(now * 1e6) % 1000, now, now + 60)
                slot.page.beat(now)
                slot.page.step_over()
        try:
            slot.sent[1] = CALL
            seen, last = set(), 0.0
            begun = time.monotonic()
            while (now := time.monotonic()) < begun + 1.5 or (len(seen) <= 10 and now < begun + LONG_S):
                assert {} == slot.overdue(now)
                assert last <= (last := slot.page.heartbeat()) <= time.monotonic()
                seen.add(slot.page.stepping().ticket)
            assert len(seen) > 10
        finally:
            os.kill(writer, signal.SIGKILL)
            os.waitpid(writer, 0)
    finally:
        slot.close()


@pytest.mark.parametrize("lane", [Lane.SERIAL, Lane.ASYNCIO, Lane.THREADS])
def test_what_is_not_answered_in_time_and_grace_is_lost_whatever_the_page_says(lane: Lane) -> None:
    """A page that shows nothing, or nonsense, puts nothing off."""
    slot = Slot(0, lane, 4, frozenset({0}))
    try:
        os.close(slot.open()[0])
        assert slot.page is not None
        slot.tickets(*CALLS)
        sent_at = slot.looked_at
        slot.page.begin(0, 99, math.nan, tainted=False)
        slot.page.step(99, math.nan, math.inf)
        late = sent_at + 60.0 + GRACE_S
        assert [[], [1]] == [slot.expired(late - 0.1), slot.expired(late + 0.1)]
    finally:
        slot.close()


def test_a_call_whose_clock_stands_still_is_waited_for_but_not_without_end() -> None:
    """The time for which clocks stood still is added, and no more of it than the bound."""
    slot = Slot(0, Lane.SERIAL, 1, frozenset({0}))
    try:
        os.close(slot.open()[0])
        assert slot.page is not None
        slot.tickets(*CALLS)
        sent_at = slot.looked_at
        for look in range(200):
            slot.page.begin(0, 1, -(sent_at + look), tainted=False)  # stopped anew each second
            slot.overdue(sent_at + look)
        late = sent_at + 60.0 + GRACE_S + STOPPED_S
        assert [[], [1]] == [slot.expired(late - 0.1), slot.expired(late + 0.1)]
    finally:
        slot.close()


def test_time_in_which_the_parent_looked_at_nothing_is_no_calls() -> None:
    """After a paused container each call has its time anew; one sent after an idle hour has no more than its own."""
    slot = Slot(0, Lane.THREADS, 4, frozenset({0}))
    try:
        os.close(slot.open()[0])
        slot.tickets(*CALLS)
        sent_at = slot.looked_at
        slot.overdue(sent_at + 30.0)
        late = sent_at + 60.0 + GRACE_S + 30.0
        assert [[], [1]] == [slot.expired(late - 0.1), slot.expired(late + 0.1)]
        slot.sent.clear()
        slot.looked_at = sent_at - 3600.0
        ticket = slot.tickets(*CALLS)
        slot.overdue(slot.looked_at + 0.1)
        assert [ticket] == slot.expired(slot.looked_at + 61.0 + GRACE_S)
    finally:
        slot.close()


def test_a_call_to_run_alone_needs_a_worker_in_which_nothing_is_left() -> None:
    """Threads that others left, stuck calls, and for some calls any call before them make a worker unfit."""
    slot = Slot(0, Lane.ASYNCIO, 4, frozenset({0}), process=os.getpid(), threads=10**6)
    alone, fresh = (Call(0, (0,), 60.0, Terms(alone=True, fresh=fresh)) for fresh in (False, True))
    assert [True, True] == [slot.is_clean_for(alone), slot.is_clean_for(fresh)]
    slot._next_ticket += 1
    assert [True, False] == [slot.is_clean_for(alone), slot.is_clean_for(fresh)]
    slot.threads = 1
    with ThreadPoolExecutor(1) as threads:
        threads.submit(len, ()).result()
        assert not slot.is_clean_for(alone)
    slot.threads, slot.given_up = 10**6, 1
    assert not slot.is_clean_for(alone)


class _Waits:
    """A run queue that says what it is told."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def waited_s(self) -> float:
        return self.seconds

    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("looks", "due"),
    [
        ([(0.5, 0.0), (0.9, 0.0)], 1.1),
        ([(0.5, 0.2), (0.9, 0.2)], 1.3 - 0.1),
        ([(0.5, 0.0), (0.9, 0.3)], 1.4),
        ([(0.5, 0.3), (0.9, 0.6)], 1.1 + 0.2 + 0.3),
        ([(0.5, 9.0), (0.9, 9e3)], 1.1 + STOPPED_S),
    ],
    ids=["none", "partly before it began", "seen while it ran", "both", "at most so long"],
)
def test_a_serial_call_has_the_time_that_it_waited_for_a_processor(
    looks: list[tuple[float, float]], due: float
) -> None:
    """It began 0.1 s after it was sent and has 1 s; of the wait before the first look that much may be before it."""
    slot = Slot(0, Lane.SERIAL, 1, frozenset({0}))
    queue = _Waits()
    try:
        os.close(slot.open()[0])
        assert slot.page is not None
        slot.lag = Lag(cast("RunQueue", queue))
        slot.lag.look(0.0)
        slot.sent[1] = (None, SimpleNamespace(timeout_s=1.0))  # type: ignore[assignment]
        slot.page.begin(0, 1, 0.1, tainted=False)
        for now, queue.seconds in looks:
            assert {} == slot.overdue(now)
        assert {} == slot.overdue(due - 1e-6)
        assert {1: False} == slot.overdue(due + 1e-6)
        slot.sent[2] = slot.sent.pop(1)
        slot.page.begin(0, 2, due, tainted=False)
        assert {} == slot.overdue(due + 1 - 1e-6)  # the next call's own lag counts from nothing
        assert {2: False} == slot.overdue(due + 1 + 1e-6)
    finally:
        slot.close()


def test_the_kernel_says_how_long_a_process_waited() -> None:
    """A process that is gone, or a kernel that does not say, has not waited any longer."""
    queue = RunQueue(os.getpid())
    before = queue.waited_s()
    assert 0 <= before <= queue.waited_s()
    queue.close()
    assert before <= queue.waited_s()
    assert 0 == RunQueue(0).waited_s()
