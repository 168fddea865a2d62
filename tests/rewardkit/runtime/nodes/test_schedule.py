"""The schedule of nodes, from values and times alone: who is sent what, what goes out again, who is given up."""

from __future__ import annotations

import heapq
import random
from collections import Counter, defaultdict

import pytest

from rewardkit.runtime.nodes import schedule
from rewardkit.runtime.nodes.schedule import (
    AWAY_S,
    CHUNK_S,
    GIVE_UP_S,
    HOME,
    MAX_LOST,
    MOST_BYTES,
    SEND_COST_S,
    Schedule,
    Send,
)
from sandbox.workers import Call


def _calls(count: int, target: int = 0) -> list[Call]:
    return [Call(target, (n,), 10.0) for n in range(count)]


def _sends(plan: Schedule, size: int = 2000) -> list[Send]:
    return plan.sends(lambda job, call: size)


def _answer(plan: Schedule, send: Send, ran_s: float, now: float = 0.0) -> list[Call | None]:
    tickets = send.calls if send.node == HOME else range(send.first, send.first + len(send.calls))
    return plan.take_answers(send.node, send.job, [(ticket, ran_s) for ticket in tickets], now)


def _measured(plan: Schedule, ran_s: float, target: int = 0) -> None:
    """Have the plan know how long a target's calls run."""
    plan.add(99, [Call(target, (0,), 10.0)])
    (send,) = _sends(plan)
    assert send.calls == _answer(plan, send, ran_s)


def test_what_was_never_measured_goes_out_a_call_for_each_worker() -> None:
    """The first chunks tell how long calls run; with 30 s each, many would be too many."""
    plan = Schedule(2)
    plan.join("a", 3, 0.0)
    plan.add(1, _calls(100))
    sends = _sends(plan)
    assert {HOME: 4, "a": 6} == {
        name: sum(len(send.calls) for send in sends if send.node == name) for name in (HOME, "a")
    }
    assert {2, 3} == {len(send.calls) for send in sends}


def test_a_chunk_is_cut_by_measured_time_and_a_node_holds_about_two() -> None:
    plan = Schedule(1)
    plan.join("a", 1, 0.0)
    _measured(plan, 0.01)
    plan.add(1, _calls(10_000))
    sizes = [len(send.calls) for send in _sends(plan) if send.node == "a"]
    assert 1 <= len(sizes) <= 2
    assert 0.5 * CHUNK_S <= sizes[0] * 0.01 <= 1.1 * CHUNK_S
    assert [] == _sends(plan)


def test_chunks_shrink_towards_the_end() -> None:
    """Half of a node's share of what is left, so that none works on long after the others are done."""
    plan = Schedule(1)
    plan.join("a", 1, 0.0)
    _measured(plan, 0.05)
    plan.add(1, _calls(8))
    assert [2, 2, 1, 1] == [len(send.calls) for send in _sends(plan)][:4]


def test_calls_that_are_shorter_than_their_journey_stay() -> None:
    plan = Schedule(1)
    plan.join("a", 1, 0.0)
    _measured(plan, SEND_COST_S / 10)
    plan.add(1, _calls(5000))
    assert {HOME} == {send.node for send in _sends(plan)}


def test_calls_of_what_stays_go_home_at_once_and_take_no_room() -> None:
    plan = Schedule(1, home_only=[1])
    plan.join("a", 1, 0.0)
    plan.add(1, [*_calls(300, 1), *_calls(4)])
    sends = _sends(plan)
    assert [(HOME, 300)] == [(send.node, len(send.calls)) for send in sends if send.calls[0].target == 1]
    assert {HOME, "a"} == {send.node for send in sends if send.calls[0].target == 0}


def test_calls_of_what_stays_hold_no_others_back() -> None:
    """Those of a reward that waits run beside the workers, however many are in flight and however long they take."""
    plan = Schedule(1, home_only=[1])
    _measured(plan, 0.01)
    plan.add(1, [*_calls(300, 1), *_calls(30)])
    assert [15, 8] == [len(send.calls) for send in _sends(plan) if send.calls[0].target == 0]


def test_large_rows_make_small_chunks_and_one_always_travels() -> None:
    plan = Schedule(1)
    plan.join("a", 1, 0.0)
    _measured(plan, 0.001)
    plan.add(1, _calls(400))
    far = [send for send in _sends(plan, MOST_BYTES // 3) if send.node == "a"]
    assert {3} >= {len(send.calls) for send in far} != set()
    plan.forget(1)
    plan.add(2, _calls(40))
    assert 1 in {len(send.calls) for send in _sends(plan, 2 * MOST_BYTES) if send.node == "a"}


def test_jobs_and_targets_take_turns() -> None:
    plan = Schedule(1)
    _measured(plan, 0.01)
    _measured(plan, 0.01, target=1)
    plan.add(1, _calls(1000))
    plan.add(2, [*_calls(500), *_calls(500, 1)])
    met = []
    for _ in range(6):
        for send in _sends(plan):
            met.append((send.job, send.calls[0].target))
            _answer(plan, send, 0.01)
    assert {(1, 0), (2, 0), (2, 1)} == set(met[:3])


def test_a_lost_nodes_calls_go_out_again_first_and_in_order() -> None:
    plan = Schedule(1)
    plan.join("a", 2, 0.0)
    calls = _calls(20)
    plan.add(1, calls)
    sends = _sends(plan)
    theirs = [call for send in sends if send.node == "a" for call in send.calls]
    for send in sends:
        if send.node == HOME:
            _answer(plan, send, 0.01)
    assert [] == plan.lose("a")
    assert theirs == [call for send in _sends(plan) for call in send.calls][: len(theirs)]


def test_a_call_whose_node_is_lost_three_times_is_given_up() -> None:
    plan = Schedule(1)
    plan.add(2, _calls(1))
    assert {HOME} == {send.node for send in _sends(plan)}  # which has no room from now on
    (call,) = _calls(1)
    plan.add(1, [call])
    for count in range(1, MAX_LOST + 1):
        plan.join("a", 1, 0.0)
        assert [("a", [call])] == [(send.node, send.calls) for send in _sends(plan)]
        assert ([(1, call)] if count == MAX_LOST else []) == plan.lose("a")


def test_a_full_store_is_not_held_against_the_calls() -> None:
    plan = Schedule(1)
    calls = _calls(2)
    plan.add(1, calls)
    for count in range(5):
        plan.join("a", 4, 0.0)
        assert [] == plan.lose("a", blameless=True), count
        _sends(plan)


def test_late_and_repeated_answers_are_dropped() -> None:
    plan = Schedule(1)
    plan.join("a", 1, 0.0)
    plan.add(1, _calls(4))
    send = next(send for send in _sends(plan) if send.node == "a")
    assert send.calls == _answer(plan, send, 0.01)
    assert [None] * len(send.calls) == _answer(plan, send, 0.01)
    plan.lose("a")
    assert [None] * len(send.calls) == _answer(plan, send, 0.01)


def test_a_forgotten_job_tells_who_holds_its_calls() -> None:
    plan = Schedule(1)
    plan.join("a", 1, 0.0)
    plan.add(1, _calls(50))
    plan.add(2, _calls(1))
    _sends(plan)
    assert {HOME, "a"} == set(plan.forget(1))
    assert [] == plan.forget(1)
    assert {2} == {send.job for send in _sends(plan)} | {2}


def test_a_silent_node_is_given_up_after_ten_seconds() -> None:
    plan = Schedule(1)
    plan.join("a", 1, 0.0)
    plan.join("b", 1, 0.0)
    silent: dict[str, int] = {}
    for now in range(1, 15):
        plan.mark_alive("b", float(now))
        for name in plan.silent_nodes(float(now)):
            silent.setdefault(name, now)
    assert {"a": int(GIVE_UP_S) + 1} == silent


def test_silence_while_the_driver_stood_still_is_its_own() -> None:
    plan = Schedule(1)
    plan.join("a", 1, 0.0)
    assert [] == plan.silent_nodes(1.0)
    assert [] == plan.silent_nodes(1.0 + 3600.0)
    assert [] == plan.silent_nodes(1.0 + 3600.0 + AWAY_S)


@pytest.mark.parametrize("seed", range(20))
def test_every_call_is_answered_once_whatever_nodes_do(seed: int) -> None:
    """Nodes join, are lost, and answer in any order, also late; each call is handed over once."""
    drawn = random.Random(seed)
    plan = Schedule(drawn.randint(1, 4), home_only=[2])
    calls = {job: [c for t in range(3) for c in _calls(drawn.randint(1, 80), t)] for job in (1, 2)}
    for job, some in calls.items():
        plan.add(job, some)
    out: list[Send] = []
    late: list[Send] = []
    answers: Counter[Call] = Counter()
    for turn in range(5000):
        out += _sends(plan)
        if drawn.random() < 0.05 and turn < 300:
            plan.join(f"n{turn}", drawn.randint(1, 8), float(turn))
        if plan.nodes and drawn.random() < 0.03:
            lost = drawn.choice(plan.nodes)
            answers.update(call for _, call in plan.lose(lost))
            late += [send for send in out if send.node == lost]
            out = [send for send in out if send.node != lost]
        for some in (out, late):
            if some and (some is out or drawn.random() < 0.5):
                send = some.pop(drawn.randrange(len(some)))
                answers.update(call for call in _answer(plan, send, drawn.choice([1e-5, 0.01, 3.0])) if call)
        if not out and not _waiting(plan):
            break
    assert [1] == sorted(set(answers.values()))
    assert {call for some in calls.values() for call in some} == set(answers)


def _waiting(plan: Schedule) -> bool:
    return bool(plan._ring)


@pytest.mark.parametrize(
    ("nodes", "workers", "ran_s", "count", "least"),
    [(3, 1, 0.01, 1000, 0.93), (4, 4, 0.01, 4000, 0.93), (3, 4, 1.0, 240, 0.9), (8, 16, 0.2, 10_000, 0.9)],
)
def test_nodes_are_kept_busy(nodes: int, workers: int, ran_s: float, count: int, least: float) -> None:
    """In virtual time, with 5 ms each way: the share of the ideal speed-up that is reached."""
    plan = Schedule(workers)
    for number in range(1, nodes):
        plan.join(f"n{number}", workers, 0.0)
    plan.add(1, _calls(count))
    free: dict[str, list[float]] = defaultdict(lambda: [0.0] * workers)
    events: list[tuple[float, int, str, object]] = []
    now, order = 0.0, 0
    while True:
        for send in _sends(plan):
            way_s = 0.0 if send.node == HOME else 0.005
            tickets = send.calls if send.node == HOME else range(send.first, send.first + len(send.calls))
            for ticket in tickets:
                begin = max(heapq.heappop(free[send.node]), now + way_s)
                heapq.heappush(free[send.node], begin + ran_s)
                order += 1
                heapq.heappush(events, (begin + ran_s + way_s, order, send.node, ticket))
        if not events:
            break
        now, _, name, ticket = heapq.heappop(events)
        plan.take_answers(name, 1, [(ticket, ran_s)], now)  # type: ignore[list-item]
    assert least <= count * ran_s / (nodes * workers) / now


def test_the_constants_hang_together() -> None:
    """A chunk is longer than a node's answer may gather, and a node says something well before it is given up."""
    from rewardkit.runtime.nodes import host, recruiting

    assert 2 * host.GATHER_S < schedule.CHUNK_S
    assert 3 * recruiting.WAIT_S < schedule.GIVE_UP_S
