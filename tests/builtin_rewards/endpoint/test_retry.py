"""What is tried again and when: each fault in its real HTTP form, counted at the server; waits and deadlines."""

from __future__ import annotations

import asyncio
import pickle
import re
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from virtual_time import AheadLoop, now, virtual

from builtin_rewards.endpoint.backends import Server
from builtin_rewards.endpoint.client import prepare
from builtin_rewards.endpoint.endpoint import Endpoint, RetryPolicy
from builtin_rewards.endpoint.errors import Fault, JudgeSetupError, JudgeUnavailableError
from builtin_rewards.endpoint.limits import Load
from builtin_rewards.endpoint.messages import Reply, Request
from rewardkit import RewardError

Serve = Callable[..., Any]

POLICY = RetryPolicy(attempts=3, first_wait_s=0.01, longest_wait_s=0.02)


def _request(words: str = "Good?") -> Request:
    return Request("m", ({"role": "user", "content": words},))


async def _ask(url: str, policy: RetryPolicy = POLICY, deadline_s: float = 60.0) -> Reply:
    server = Server(url)
    await prepare(server)
    return await Endpoint(server, Load(), policy).ask(_request(), deadline_s)


@pytest.mark.usefixtures("canary")
def test_a_server_that_comes_back_is_found(serve: Serve, faults: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that is stopped and started again at its port answers the next try."""
    server = serve([faults.ok("back")])
    server.stop()
    wait_s = RetryPolicy.wait_s

    def started(*arguments: Any) -> float:
        server.start()
        return wait_s(*arguments)

    monkeypatch.setattr(RetryPolicy, "wait_s", started)
    assert ("back", 2) == (lambda reply: (reply.text, reply.requests))(asyncio.run(_ask(server.url)))


def _told(*steps: Any, policy: RetryPolicy = POLICY, deadline_s: float = 1000.0) -> tuple[Any, list[float]]:
    """Return what comes of a client that does these in turn, or what is raised, and when it was asked, in virtual time.

    A step is an answer, an exception, or a status and its headers.
    """
    script, asked_s = iter(steps), []

    async def create(**_: Any) -> Any:
        asked_s.append(now())
        step = next(script)
        if isinstance(step, tuple):
            step = Answered(*step)
        if isinstance(step, BaseException):
            raise step
        return {"choices": [{"message": {"content": step}}]}

    async def ask() -> Any:
        client = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create)))
        try:
            return await Endpoint(client, Load(), policy).ask(_request(), deadline_s)
        except Exception as error:
            return error

    return virtual(ask()), asked_s


class Answered(Exception):
    """What a client raises for an answer whose status is no success, as openai's does."""

    def __init__(self, status: int, headers: dict[str, str]) -> None:
        super().__init__("words")
        self.status_code, self.body, self.response = status, "words", SimpleNamespace(headers=headers)


def test_retry_after_is_waited_for() -> None:
    """The wait is what the server asked for and a little more, whatever the policy's own would be."""
    policy = RetryPolicy(first_wait_s=1.0)
    reply, asked_s = _told((429, {"retry-after": "7"}), (503, {}), "4", policy=policy)

    assert ("4", 3) == (reply.text, reply.requests)
    assert 7.0 <= asked_s[1] <= 7.5
    assert 1.0 <= asked_s[2] - asked_s[1] <= 2.0


ENDS: dict[str, tuple[float, str]] = {
    "a long Retry-After": (90.0, r"\(it asks to wait 90 s, and longest_retry_after_s=60\)$"),
    "a wait beyond the deadline": (30.0, r"\(waiting 30\.. s more would pass the deadline\)$"),
}


@pytest.mark.parametrize(("after_s", "words"), ENDS.values(), ids=ENDS)
def test_what_ends_the_tries_is_told(after_s: float, words: str) -> None:
    """No further try is begun that cannot help, and the error says why."""
    error, asked_s = _told((429, {"retry-after": str(after_s)}), deadline_s=10.0)

    assert (Fault.RATE_LIMIT, 429, after_s, 1) == (error.fault, error.status, error.retry_after_s, len(asked_s))
    assert re.search(words, str(error)), error


def test_an_error_that_is_not_of_judges_passes() -> None:
    """A mistake of our own is neither hidden nor tried again."""
    error, asked_s = _told(RewardError("mine"))
    assert ("mine", 1) == (str(error), len(asked_s))


@pytest.mark.parametrize("attempts", [1, 2, 5])
def test_tries_are_as_many_as_the_policy_says(attempts: int) -> None:
    """The last error is told, with how often it was tried where that was more than once."""
    error, asked_s = _told(*[(503, {})] * attempts, policy=RetryPolicy(attempts))
    assert (Fault.SERVER_ERROR, attempts) == (error.fault, error.requests)
    assert attempts == len(asked_s)
    assert (f"(tried {attempts} times)" in str(error)) == (attempts > 1)


@pytest.mark.usefixtures("canary")
@pytest.mark.parametrize("silence", ["dribble", "stall"])
def test_a_silent_server_meets_the_deadline(serve: Serve, faults: ModuleType, silence: str) -> None:
    """Bytes that keep coming hold no judgement past its deadline, and the server is at fault."""
    server = serve([getattr(faults, silence)()])

    async def ask() -> None:
        asked = Server(server.url)
        await prepare(asked)
        endpoint = Endpoint(asked, Load(), POLICY)
        for _ in range(20):
            with pytest.raises(JudgeUnavailableError, match=r"within 0\.05 s; 1 try was made, none") as caught:
                await endpoint.ask(_request(), 0.05)
            assert (Fault.DEADLINE, 1) == (caught.value.fault, caught.value.requests)
        with pytest.raises(JudgeUnavailableError) as caught:
            await endpoint.ask(_request(), 0.05)
        assert Fault.BREAKER_OPEN is caught.value.fault

    asyncio.run(ask())


@pytest.mark.usefixtures("canary")
def test_a_deadline_tells_what_failed_before_it(serve: Serve, faults: ModuleType) -> None:
    """The last fault is named where tries failed before the one that was cut off."""
    server, loop = serve([faults.status(503, "overloaded"), faults.dribble()]), AheadLoop()

    async def ask() -> None:
        asked = asyncio.create_task(_ask(server.url, deadline_s=30))
        await asyncio.to_thread(server.wait_for, 2)
        loop.ahead_s = 40.0
        await asked

    words = r"2 tries were made, the last that failed: .*overloaded"
    with (
        asyncio.Runner(loop_factory=lambda: loop) as runner,
        pytest.raises(JudgeUnavailableError, match=words) as caught,
    ):
        runner.run(ask())

    assert (Fault.DEADLINE, 2) == (caught.value.fault, caught.value.requests)


def test_a_try_that_was_never_sent_is_no_try() -> None:
    """A question whose next try, or whose first, waits for its turn to the deadline counts those that were sent."""
    asked: list[Any] = []

    async def create(**arguments: Any) -> Any:
        asked.append(arguments)
        if len(asked) == 1:
            raise Answered(500, {})
        await asyncio.Event().wait()

    async def ask() -> list[Any]:
        client = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create)))
        endpoint = Endpoint(client, Load(concurrency=1), POLICY)
        questions = [endpoint.ask(_request(), deadline_s) for deadline_s in (4.0, 50.0, 4.5)]  # the second has the turn
        return await asyncio.gather(*questions, return_exceptions=True)

    errors = virtual(ask())
    tries = ["1 try was made, the last that failed: ", "1 try was made, none ended before it", "no try was made;"]
    assert [(Fault.DEADLINE, 1), (Fault.DEADLINE, 1), (Fault.DEADLINE, 0)] == [(e.fault, e.requests) for e in errors]
    assert [True] * 3 == [words in str(error) for words, error in zip(tries, errors, strict=True)], errors
    assert 2 == len(asked)
    waits = [
        "within 4 s, beside 7.99 s of waiting for a slot, of which there are 1;",
        "within 50 s;",
        "beside 9 s of waiting",
    ]
    assert [True] * 3 == [words in str(error) for words, error in zip(waits, errors, strict=True)], errors
    helps = [
        "raise the load's concurrency if the server takes more",
        "or allow fewer requests at once",
        "hold the slots",
    ]
    assert [True] * 3 == [words in str(error) for words, error in zip(helps, errors, strict=True)], errors


BAD = {
    "no tries": ({"attempts": 0}, "attempts=0: expected a whole number"),
    "half a try": ({"attempts": 1.5}, "attempts=1.5"),
    "true": ({"attempts": True}, "attempts=True"),
    "negative": ({"first_wait_s": -1}, "first_wait_s=-1: expected a number of seconds"),
    "endless": ({"longest_retry_after_s": float("inf")}, "longest_retry_after_s=inf"),
    "upside down": ({"first_wait_s": 5, "longest_wait_s": 1}, "longest_wait_s=1: expected at least first_wait_s=5"),
}


@pytest.mark.parametrize(("settings", "words"), BAD.values(), ids=BAD)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], words: str) -> None:
    """The error names the setting and what is expected."""
    with pytest.raises(JudgeSetupError, match=words):
        RetryPolicy(**settings)


def test_a_policy_pickles() -> None:
    """A policy travels to worker processes."""
    assert POLICY == pickle.loads(pickle.dumps(POLICY))


@given(
    tries=st.integers(1, 10_000),
    drawn=st.floats(0, 1, exclude_max=True),
    first_s=st.floats(0.001, 10),
    longest_s=st.floats(10, 1000),
)
def test_waits_grow_within_their_bounds(tries: int, drawn: float, first_s: float, longest_s: float) -> None:
    """Each wait lies between half of its bound and the bound, and the bound doubles up to the longest wait."""
    policy = RetryPolicy(first_wait_s=first_s, longest_wait_s=longest_s)
    bound = min(longest_s, first_s * 2.0 ** min(tries - 1, 64))

    assert bound / 2 <= policy.wait_s(tries, None, drawn) <= bound
    assert policy.wait_s(tries, None, drawn) <= policy.wait_s(tries + 1, None, drawn)


@given(retry_after_s=st.floats(0.001, 1000), drawn=st.floats(0, 1, exclude_max=True))
def test_no_wait_is_shorter_than_the_server_asks(retry_after_s: float, drawn: float) -> None:
    """After a Retry-After the server is left alone for at least that long."""
    assert retry_after_s <= RetryPolicy().wait_s(3, retry_after_s, drawn) <= retry_after_s + 0.25


@pytest.mark.usefixtures("canary")
def test_many_judgements_among_faults(serve: Serve, faults: ModuleType) -> None:
    """With a fault in every fifth request at 64 in flight, replies are of their own requests, and all are counted."""
    server = serve(faults.mixed, process=True)

    async def ask_all() -> list[Reply]:
        endpoint = Endpoint(Server(server.url), Load(concurrency=64), RetryPolicy(12, 0.005, 0.02))
        return await asyncio.gather(*(endpoint.ask(_request(str(place)), 600.0) for place in range(300)))

    replies = asyncio.run(ask_all())

    assert [str(place) for place in range(300)] == [reply.text for reply in replies]
    assert sum(reply.requests for reply in replies) == len(server.seen)
