"""A breaker opens when all fails, leaves the server alone, and lets one request find out whether it is back."""

from __future__ import annotations

import asyncio
import pickle
import random
import time
from contextlib import ExitStack, nullcontext, suppress

import pytest

from builtin_rewards.endpoint.errors import Fault, JudgeUnavailableError
from builtin_rewards.endpoint.limits import AT_LEAST, REFUSED, REFUSED_REST_S, Breaker

AT_FAULT, THROTTLED, REJECTED, REFUSES = Fault.SERVER_ERROR, Fault.RATE_LIMIT, Fault.REJECTED, Fault.QUOTA
ANSWERED = None


class Clock:
    """A clock that stands still until it is told."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", clock)
    return clock


@pytest.fixture
def breaker(clock: Clock) -> Breaker:
    return Breaker("http://server/v1", 5.0)


def failed(fault: Fault, words: str = "") -> JudgeUnavailableError:
    """Return the error of a try that was sent."""
    error = JudgeUnavailableError(words, fault)
    error.requests, error.refuses_key = 1, fault is REFUSES
    return error


def tried(breaker: Breaker, fault: Fault | None, times: int = 1, *, words: str = "", counts: bool = True) -> None:
    """Lets tries through that end so, one after another."""
    for _ in range(times):
        error = None if fault is None else failed(fault, words)
        with pytest.raises(JudgeUnavailableError) if error else nullcontext() as caught, breaker.attempt(counts):
            if error is not None:
                raise error
        assert caught is None or caught.value is error, caught.value


def is_open(breaker: Breaker) -> bool:
    """Whether no try would be let through."""
    try:
        breaker.look()
    except JudgeUnavailableError:
        return True
    return False


def test_it_opens_when_as_many_tries_as_that_failed_in_a_row(breaker: Breaker) -> None:
    """One fewer is too few to tell, and an answer among them begins anew."""
    tried(breaker, AT_FAULT, AT_LEAST - 1)
    tried(breaker, ANSWERED)
    tried(breaker, AT_FAULT, AT_LEAST - 1)
    assert not is_open(breaker)
    tried(breaker, AT_FAULT)
    assert is_open(breaker)


def test_a_fifth_of_failures_at_random_does_not_open_it(clock: Clock) -> None:
    """2,000 tries of which a fifth fail go through, in each of ten runs."""
    for seed in range(10):
        breaker, chance = Breaker("s", 5.0), random.Random(seed)
        for _ in range(2000):
            tried(breaker, AT_FAULT if chance.random() < 0.2 else ANSWERED)


def test_those_in_flight_may_yet_be_answered(breaker: Breaker) -> None:
    """Faults that come at once while answers are under way do not open it on a server that works."""
    with ExitStack() as under_way:
        for _ in range(103):
            under_way.enter_context(breaker.attempt())
        tried(breaker, AT_FAULT, 103)
        assert not is_open(breaker)
        tried(breaker, AT_FAULT)
        assert is_open(breaker)


@pytest.mark.parametrize("sign", [THROTTLED, REJECTED, ANSWERED])
def test_a_server_that_says_no_is_well(breaker: Breaker, sign: Fault | None) -> None:
    """429 and rejections of single requests never open it; nor do second tries, of which only failures are left."""
    tried(breaker, sign, 100)
    tried(breaker, AT_FAULT, 100, counts=False)
    assert not is_open(breaker)


def test_an_open_one_says_which_server_and_how_long(clock: Clock, breaker: Breaker) -> None:
    """The error names the server, why, and the seconds left; it pickles and is not tried again."""
    tried(breaker, AT_FAULT, AT_LEAST)
    clock.now_s = 2.0
    with pytest.raises(JudgeUnavailableError) as caught:
        tried(breaker, ANSWERED)

    words = "http://server/v1 failed 20 tries in a row and is left alone; it is asked again in 3.0 s"
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (words, Fault.BREAKER_OPEN, 0) == (str(copy), copy.fault, copy.requests)
    assert not copy.retry


@pytest.mark.parametrize("sign", [ANSWERED, REJECTED, THROTTLED])
def test_one_probe_at_a_time_goes_and_an_answer_closes_it(clock: Clock, breaker: Breaker, sign: Fault | None) -> None:
    """The others fail at once while it is under way. Also 429 is an answer: the server is there."""
    tried(breaker, AT_FAULT, AT_LEAST)
    clock.now_s = 5.0
    with suppress(JudgeUnavailableError), breaker.attempt():
        with pytest.raises(JudgeUnavailableError, match="a probe is under way"):
            breaker.look()
        if sign is not None:
            raise failed(sign)

    assert not is_open(breaker)
    tried(breaker, AT_FAULT, AT_LEAST - 1)
    assert not is_open(breaker)


def test_a_probe_that_fails_leaves_it_open_for_another_rest(clock: Clock, breaker: Breaker) -> None:
    """Again and again; then an answer begins anew."""
    tried(breaker, AT_FAULT, AT_LEAST)
    for _ in range(3):
        clock.now_s += 4.5
        with pytest.raises(JudgeUnavailableError, match=r"0\.5 s"):
            breaker.look()
        clock.now_s += 0.5
        tried(breaker, AT_FAULT)
    clock.now_s += 5
    tried(breaker, ANSWERED)
    tried(breaker, AT_FAULT, AT_LEAST - 1)
    assert not is_open(breaker)


def test_a_cancelled_probe_lets_another_probe(clock: Clock, breaker: Breaker) -> None:
    """A block that is left by anything else says nothing, and so does an error of a request that was never sent."""
    tried(breaker, AT_FAULT, AT_LEAST)
    clock.now_s = 5.0
    for error in (asyncio.CancelledError(), JudgeUnavailableError("no money", Fault.BUDGET)):
        with pytest.raises(type(error)), breaker.attempt():
            raise error
        assert not is_open(breaker)
    with breaker.attempt():
        assert is_open(breaker)


def test_what_began_before_it_opened_counts_no_more(clock: Clock, breaker: Breaker) -> None:
    """A late failure does not end a probe; a late answer closes it, for the server is there."""
    with ExitStack() as probe, breaker.attempt():
        with suppress(JudgeUnavailableError), breaker.attempt():
            tried(breaker, AT_FAULT, AT_LEAST)
            clock.now_s = 5.0
            probe.enter_context(breaker.attempt())
            raise failed(AT_FAULT)
        with pytest.raises(JudgeUnavailableError, match="a probe is under way"):
            breaker.look()
    assert not is_open(breaker)


def test_a_server_that_takes_nothing_from_a_key_is_left_alone_after_a_few(clock: Clock, breaker: Breaker) -> None:
    """401, 402 and 403 in a row; its words are told, and after a long while one request finds out."""
    tried(breaker, REFUSES, REFUSED - 1, words="HTTP 401: wrong key")
    tried(breaker, ANSWERED)
    tried(breaker, REFUSES, REFUSED, words="HTTP 401: wrong key")
    with pytest.raises(JudgeUnavailableError, match=r"refused 5 requests in a row \(HTTP 401: wrong key\).* 300.0 s"):
        breaker.look()
    clock.now_s = REFUSED_REST_S
    tried(breaker, REFUSES, words="HTTP 402: empty")
    with pytest.raises(JudgeUnavailableError, match=r"HTTP 402"):
        breaker.look()
