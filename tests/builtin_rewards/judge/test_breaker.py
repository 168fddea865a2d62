"""The breaker opens for a server that fails, asks carefully when its time is over, and never stays shut out."""

from __future__ import annotations

import pickle
import random
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builtin_rewards.judge.endpoint.breaker import BreakerState, CircuitBreaker
from builtin_rewards.judge.errors import Fault, JudgeSetupError, JudgeUnavailableError


class Clock:
    """A clock that stands still until it is told."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def breaker(clock: Clock) -> CircuitBreaker:
    return made(clock)


def made(clock: Clock, **settings: Any) -> CircuitBreaker:
    return CircuitBreaker("http://127.0.0.1/v1", clock=clock, chance=lambda: 0.0, **settings)


def fail(breaker: CircuitBreaker, times: int = 1) -> None:
    for _ in range(times):
        breaker.check().failed()


def test_it_opens_when_most_of_its_tries_failed(breaker: CircuitBreaker) -> None:
    """Nineteen failures are too few to tell, the twentieth opens it."""
    fail(breaker, 19)
    assert BreakerState.CLOSED == breaker.state
    fail(breaker)
    assert (BreakerState.OPEN, 1) == (breaker.state, breaker.openings)


def test_a_server_that_was_well_is_given_up_after_three_fifths_of_the_window(breaker: CircuitBreaker) -> None:
    """After many successes thirty failures in fifty open it."""
    for _ in range(1000):
        breaker.check().succeeded()
    fail(breaker, 29)
    assert BreakerState.CLOSED == breaker.state
    fail(breaker)
    assert BreakerState.OPEN == breaker.state


def test_a_fifth_of_failures_at_random_does_not_open_it(clock: Clock) -> None:
    """2,000 tries of which a fifth fail go through, in each of ten runs."""
    for seed in range(10):
        breaker, chance = made(clock), random.Random(seed)
        for _ in range(2000):
            attempt = breaker.check()
            attempt.failed() if chance.random() < 0.2 else attempt.succeeded()
        assert 0 == breaker.openings


def test_rejections_do_not_count(breaker: CircuitBreaker) -> None:
    """A server that says 429 or 400 is well; it is neither a failure nor a success."""
    for _ in range(1000):
        breaker.check().rejected()
    fail(breaker, 19)
    assert BreakerState.CLOSED == breaker.state
    fail(breaker)
    assert BreakerState.OPEN == breaker.state


def test_an_open_one_says_which_endpoint_and_how_long(clock: Clock, breaker: CircuitBreaker) -> None:
    """The error names the endpoint, why, and the seconds left; it pickles and is not tried again."""
    fail(breaker, 20)
    clock.now_s += 1.5
    with pytest.raises(JudgeUnavailableError) as caught:
        breaker.check()
    expected = (
        "judge endpoint http://127.0.0.1/v1 failed 20 of its last 20 tries and is left alone; "
        "it is asked again in 3.5 s"
    )
    assert (expected, Fault.BREAKER_OPEN, False) == (str(caught.value), caught.value.fault, caught.value.retry)
    assert expected == str(pickle.loads(pickle.dumps(caught.value)))


def test_one_probe_at_a_time_goes_when_its_time_is_over(clock: Clock, breaker: CircuitBreaker) -> None:
    """The others fail at once while it is under way."""
    fail(breaker, 20)
    clock.now_s += 5
    assert BreakerState.HALF_OPEN == breaker.state
    assert breaker.check().is_probe
    with pytest.raises(JudgeUnavailableError, match=re.escape("a probe is under way, 0.0 s are left")):
        breaker.check()


def test_so_many_probes_go_as_are_allowed(clock: Clock) -> None:
    """With three allowed, the fourth fails at once."""
    breaker = made(clock, probes=3)
    fail(breaker, 20)
    clock.now_s += 5
    for _ in range(3):
        breaker.check()
    with pytest.raises(JudgeUnavailableError):
        breaker.check()


@pytest.mark.parametrize("word", ["succeeded", "rejected"])
def test_a_probe_that_is_answered_closes_it(clock: Clock, breaker: CircuitBreaker, word: str) -> None:
    """Also one that is told 429: the server is there. Twenty failures open it again, for 5 s as at first."""
    fail(breaker, 20)
    clock.now_s += 5
    fail(breaker)
    clock.now_s += 10
    getattr(breaker.check(), word)()
    assert BreakerState.CLOSED == breaker.state
    fail(breaker, 20)
    assert BreakerState.CLOSED != breaker.state
    clock.now_s += 5
    assert BreakerState.HALF_OPEN == breaker.state


def test_a_probe_that_fails_opens_it_for_twice_as_long(clock: Clock, breaker: CircuitBreaker) -> None:
    """5, 10, 20, 40, 60, 60 seconds; then a success begins anew."""
    fail(breaker, 20)
    for open_s in (5, 10, 20, 40, 60, 60):
        clock.now_s += open_s - 0.1
        assert BreakerState.OPEN == breaker.state
        clock.now_s += 0.1
        fail(breaker)
    assert 7 == breaker.openings
    with pytest.raises(JudgeUnavailableError, match=r"failed again when it was probed and is left alone; .* 60.0 s"):
        breaker.check()


def test_chance_keeps_it_open_up_to_a_quarter_longer(clock: Clock) -> None:
    """At the most, 6.25 s instead of 5."""
    breaker = CircuitBreaker("there", clock=clock, chance=lambda: 1.0)
    fail(breaker, 20)
    clock.now_s += 6.2
    assert BreakerState.OPEN == breaker.state
    clock.now_s += 0.1
    assert BreakerState.HALF_OPEN == breaker.state


def test_a_cancelled_probe_lets_another_probe(clock: Clock, breaker: CircuitBreaker) -> None:
    """A block that is left without a word abandons its try."""
    fail(breaker, 20)
    clock.now_s += 5
    with pytest.raises(KeyboardInterrupt), breaker.attempt():
        raise KeyboardInterrupt
    with breaker.attempt() as attempt:
        attempt.succeeded()
    assert BreakerState.CLOSED == breaker.state


def test_those_in_flight_count_as_not_failed(breaker: CircuitBreaker) -> None:
    """Faults that come at once while answers are under way do not open it on a server that works."""
    under_way = [breaker.check() for _ in range(100)]
    fail(breaker, 26)
    assert BreakerState.CLOSED == breaker.state
    for attempt in under_way[:90]:
        attempt.succeeded()
    fail(breaker, 20)
    assert BreakerState.CLOSED == breaker.state


def test_second_tries_do_not_open_it(clock: Clock, breaker: CircuitBreaker) -> None:
    """At the end of a batch nothing but failures is left to be tried; as a probe a second try counts."""
    for _ in range(200):
        breaker.check(counts=False).failed()
    assert BreakerState.CLOSED == breaker.state
    fail(breaker, 20)
    clock.now_s += 5
    breaker.check(counts=False).succeeded()
    assert BreakerState.CLOSED == breaker.state


def test_what_began_before_it_opened_counts_no_more(clock: Clock, breaker: CircuitBreaker) -> None:
    """A late failure does not end a probe or count afterwards, a late success does not close it."""
    late = [breaker.check() for _ in range(50)]
    fail(breaker, 75)
    clock.now_s += 5
    probe = breaker.check()
    late[0].failed()
    late[1].succeeded()
    late[2].rejected()
    assert BreakerState.HALF_OPEN == breaker.state
    probe.succeeded()
    for attempt in late[3:]:
        attempt.failed()
    assert BreakerState.CLOSED == breaker.state


def test_a_probe_that_another_has_overtaken_counts_no_more(clock: Clock) -> None:
    """Of two probes one fails: the other's success is of before."""
    breaker = made(clock, probes=2)
    fail(breaker, 20)
    clock.now_s += 5
    late = breaker.check()
    fail(breaker)
    late.succeeded()
    assert BreakerState.OPEN == breaker.state


def test_only_the_first_word_on_a_try_counts(breaker: CircuitBreaker) -> None:
    """A failure that is told twice is one."""
    for _ in range(10):
        attempt = breaker.check()
        attempt.failed()
        attempt.failed()
    assert BreakerState.CLOSED == breaker.state


@given(
    moves=st.lists(
        st.sampled_from(["check", "wait", "succeeded", "failed", "rejected", "abandoned"]), min_size=20, max_size=200
    ),
    probes=st.integers(1, 3),
)
def test_no_more_probes_than_allowed_and_none_lost(moves: list[str], probes: int) -> None:
    """Whatever happens in whichever order, it never has more probes out than allowed, and it can always recover."""
    clock = Clock()
    breaker = made(clock, probes=probes, at_least=2, window=4)
    under_way = []
    for move in moves:
        if move == "wait":
            clock.now_s += 7
        elif move == "check":
            try:
                under_way.append(breaker.check())
            except JudgeUnavailableError:
                assert BreakerState.CLOSED != breaker.state
        elif under_way:
            getattr(under_way.pop(0), move)()
        if breaker.state is BreakerState.HALF_OPEN:
            assert probes >= sum(attempt.is_probe and attempt.era == breaker._era for attempt in under_way)
    for attempt in under_way:
        attempt.abandoned()
    clock.now_s += 60
    breaker.check().succeeded()
    assert BreakerState.CLOSED == breaker.state


@pytest.mark.parametrize(
    "settings",
    [
        {"share": 0},
        {"share": 1.1},
        {"at_least": 0},
        {"at_least": 51},
        {"open_s": 0},
        {"open_s": 61},
        {"open_s": float("nan")},
        {"probes": 0},
    ],
    ids=str,
)
def test_settings_that_make_no_sense_are_rejected(clock: Clock, settings: dict[str, float]) -> None:
    """The message names the setting and the value."""
    ((name, value),) = settings.items()
    with pytest.raises(JudgeSetupError, match=f"{name}: expected .*, got {value}"):
        made(clock, **settings)
