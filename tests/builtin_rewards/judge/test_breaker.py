"""A breaker opens when all fails, leaves the server alone, and lets one request find out whether it is back."""

from __future__ import annotations

import pickle
import random

import pytest

from builtin_rewards.judge.endpoint.breaker import AT_LEAST, REFUSED, REFUSED_REST_S, Breaker
from builtin_rewards.judge.endpoint.retry import Sign
from builtin_rewards.judge.errors import Fault, JudgeUnavailableError


class Clock:
    """A clock that stands still until it is told."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def breaker(clock: Clock) -> Breaker:
    return Breaker("http://server/v1", 5.0, clock)


def tried(breaker: Breaker, sign: Sign, times: int = 1, *, words: str = "", counts: bool = True) -> None:
    """Lets tries through that end so, one after another."""
    for _ in range(times):
        with breaker.attempt(counts) as tell:
            tell(sign, words)


def test_it_opens_when_as_many_tries_as_that_failed_in_a_row(breaker: Breaker) -> None:
    """One fewer is too few to tell, and an answer among them begins anew."""
    tried(breaker, Sign.AT_FAULT, AT_LEAST - 1)
    tried(breaker, Sign.ANSWERED)
    tried(breaker, Sign.AT_FAULT, AT_LEAST - 1)
    assert not breaker.is_open
    tried(breaker, Sign.AT_FAULT)
    assert breaker.is_open


def test_a_fifth_of_failures_at_random_does_not_open_it(clock: Clock) -> None:
    """2,000 tries of which a fifth fail go through, in each of ten runs."""
    for seed in range(10):
        breaker, chance = Breaker("s", 5.0, clock), random.Random(seed)
        for _ in range(2000):
            tried(breaker, Sign.AT_FAULT if chance.random() < 0.2 else Sign.ANSWERED)


def test_those_in_flight_may_yet_be_answered(breaker: Breaker) -> None:
    """Faults that come at once while answers are under way do not open it on a server that works."""
    under_way = [breaker.attempt() for _ in range(103)]
    tells = [one.__enter__() for one in under_way]
    tried(breaker, Sign.AT_FAULT, 25)
    assert not breaker.is_open
    for tell, one in zip(tells, under_way, strict=True):
        tell(Sign.AT_FAULT, "")
        if breaker.is_open:
            break
        one.__exit__(None, None, None)
    assert breaker.is_open


@pytest.mark.parametrize("sign", [Sign.THROTTLED, Sign.ANSWERED])
def test_a_server_that_says_no_is_well(breaker: Breaker, sign: Sign) -> None:
    """429 and rejections of single requests never open it; nor do second tries, of which only failures are left."""
    tried(breaker, sign, 100)
    tried(breaker, Sign.AT_FAULT, 100, counts=False)
    assert not breaker.is_open


def test_an_open_one_says_which_server_and_how_long(clock: Clock, breaker: Breaker) -> None:
    """The error names the server, why, and the seconds left; it pickles and is not tried again."""
    tried(breaker, Sign.AT_FAULT, AT_LEAST)
    clock.now_s = 2.0
    with pytest.raises(JudgeUnavailableError) as caught:
        tried(breaker, Sign.ANSWERED)

    words = "http://server/v1 failed 20 tries in a row and is left alone; it is asked again in 3.0 s"
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (words, Fault.BREAKER_OPEN, 0) == (str(copy), copy.fault, copy.requests)
    assert not copy.retry


@pytest.mark.parametrize("sign", [Sign.ANSWERED, Sign.THROTTLED])
def test_one_probe_at_a_time_goes_and_an_answer_closes_it(clock: Clock, breaker: Breaker, sign: Sign) -> None:
    """The others fail at once while it is under way. Also 429 is an answer: the server is there."""
    tried(breaker, Sign.AT_FAULT, AT_LEAST)
    clock.now_s = 5.0
    with breaker.attempt() as tell:
        with pytest.raises(JudgeUnavailableError, match="a probe is under way"):
            tried(breaker, Sign.ANSWERED)
        tell(sign, "")

    assert not breaker.is_open
    tried(breaker, Sign.AT_FAULT, AT_LEAST - 1)
    assert not breaker.is_open


def test_a_probe_that_fails_opens_it_for_twice_as_long(clock: Clock, breaker: Breaker) -> None:
    """5, 10, 20, 40, 60, 60 seconds; then an answer begins anew."""
    tried(breaker, Sign.AT_FAULT, AT_LEAST)
    for rest_s in (5, 10, 20, 40, 60, 60):
        clock.now_s += rest_s - 0.5
        with pytest.raises(JudgeUnavailableError, match=r"0\.5 s"):
            breaker.look()
        clock.now_s += 0.5
        tried(breaker, Sign.AT_FAULT)
    clock.now_s += 60
    tried(breaker, Sign.ANSWERED)
    tried(breaker, Sign.AT_FAULT, AT_LEAST)
    clock.now_s += 5
    breaker.look()


def test_a_cancelled_probe_lets_another_probe(clock: Clock, breaker: Breaker) -> None:
    """A block that is left without a word says nothing."""
    tried(breaker, Sign.AT_FAULT, AT_LEAST)
    clock.now_s = 5.0
    with breaker.attempt():
        pass

    assert breaker.is_open
    tried(breaker, Sign.ANSWERED)
    assert not breaker.is_open


def test_what_began_before_it_opened_counts_no_more(clock: Clock, breaker: Breaker) -> None:
    """A late failure does not end a probe; a late answer closes it, for the server is there."""
    with breaker.attempt() as late, breaker.attempt() as later:
        tried(breaker, Sign.AT_FAULT, AT_LEAST)
        clock.now_s = 5.0
        with breaker.attempt():
            late(Sign.AT_FAULT, "")
            assert breaker.is_open
            later(Sign.ANSWERED, "")
            assert not breaker.is_open


def test_a_server_that_takes_nothing_from_a_key_is_left_alone_after_a_few(clock: Clock, breaker: Breaker) -> None:
    """401, 402 and 403 in a row; its words are told, and after a long while one request finds out."""
    tried(breaker, Sign.REFUSED, REFUSED - 1, words="HTTP 401: wrong key")
    tried(breaker, Sign.ANSWERED)
    tried(breaker, Sign.REFUSED, REFUSED, words="HTTP 401: wrong key")
    with pytest.raises(JudgeUnavailableError, match=r"refused 5 requests in a row \(HTTP 401: wrong key\).* 300.0 s"):
        breaker.look()
    clock.now_s = REFUSED_REST_S
    tried(breaker, Sign.REFUSED, words="HTTP 402: empty")
    with pytest.raises(JudgeUnavailableError, match=r"HTTP 402"):
        breaker.look()
