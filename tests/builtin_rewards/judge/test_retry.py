"""What is tried again and when: each fault in its real HTTP form, counted at the server; waits and deadlines."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from virtual_time import AheadLoop

from builtin_rewards.judge.endpoint import endpoint as endpoints
from builtin_rewards.judge.endpoint.client import Server, prepare
from builtin_rewards.judge.endpoint.endpoint import Endpoint
from builtin_rewards.judge.endpoint.limits import Load
from builtin_rewards.judge.endpoint.retry import TRIED_AGAIN, RetryPolicy, Sign, with_retries
from builtin_rewards.judge.endpoint.values import Reply, Request
from builtin_rewards.judge.errors import Fault, JudgeError, JudgeReplyError, JudgeSetupError, JudgeUnavailableError

Serve = Callable[..., Any]

POLICY = RetryPolicy(attempts=3, first_wait_s=0.01, longest_wait_s=0.02)


def _request(words: str = "Good?") -> Request:
    return Request("m", ({"role": "user", "content": words},))


async def _ask(url: str, policy: RetryPolicy = POLICY, deadline_s: float = 60.0) -> Reply:
    server = Server(url)
    await prepare(server)
    return await Endpoint(server, Load(), policy).ask(_request(), deadline_s)


class Sleeps(list[float]):
    """Waits that take no time, written down."""

    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


FAULTS: dict[str, tuple[Callable[[ModuleType], Any], Fault, int, Sign]] = {
    "408": (lambda f: f.status(408), Fault.SERVER_ERROR, 3, Sign.AT_FAULT),
    "409": (lambda f: f.status(409), Fault.SERVER_ERROR, 3, Sign.AT_FAULT),
    "429": (lambda f: f.too_many(), Fault.RATE_LIMIT, 3, Sign.THROTTLED),
    "429 with Retry-After": (lambda f: f.too_many("0.02"), Fault.RATE_LIMIT, 3, Sign.THROTTLED),
    "429 with a long Retry-After": (lambda f: f.too_many("3600"), Fault.RATE_LIMIT, 1, Sign.THROTTLED),
    "429 insufficient_quota": (lambda f: f.quota(), Fault.QUOTA, 1, Sign.REFUSED),
    "500": (lambda f: f.status(500), Fault.SERVER_ERROR, 3, Sign.AT_FAULT),
    "502 page": (lambda f: f.html(502), Fault.SERVER_ERROR, 3, Sign.AT_FAULT),
    "503": (lambda f: f.status(503), Fault.SERVER_ERROR, 3, Sign.AT_FAULT),
    "503 not to be retried": (
        lambda f: f.status(503, headers={"x-should-retry": "false"}),
        Fault.SERVER_ERROR,
        1,
        Sign.AT_FAULT,
    ),
    "400": (lambda f: f.status(400), Fault.REJECTED, 1, Sign.ANSWERED),
    "401": (lambda f: f.status(401), Fault.REJECTED, 1, Sign.REFUSED),
    "402": (lambda f: f.status(402), Fault.QUOTA, 1, Sign.REFUSED),
    "403": (lambda f: f.status(403), Fault.REJECTED, 1, Sign.REFUSED),
    "403 flagged": (lambda f: f.status(403, "your input was flagged"), Fault.REJECTED, 1, Sign.ANSWERED),
    "403 moderation": (lambda f: f.status(403, "no", code="moderation_blocked"), Fault.REJECTED, 1, Sign.ANSWERED),
    "403 policy": (lambda f: f.status(403, "it violates our usage policies"), Fault.REJECTED, 1, Sign.ANSWERED),
    "404": (lambda f: f.status(404), Fault.REJECTED, 1, Sign.ANSWERED),
    "413": (lambda f: f.status(413), Fault.REJECTED, 1, Sign.ANSWERED),
    "422": (lambda f: f.status(422), Fault.REJECTED, 1, Sign.ANSWERED),
    "reset before the body": (lambda f: f.reset(0), Fault.CONNECTION, 3, Sign.AT_FAULT),
    "reset in the body": (lambda f: f.reset(40), Fault.CONNECTION, 3, Sign.AT_FAULT),
    "page with 200": (lambda f: f.html(), Fault.NOT_A_COMPLETION, 3, Sign.AT_FAULT),
    "empty choices": (lambda f: f.empty_choices(), Fault.NOT_A_COMPLETION, 3, Sign.AT_FAULT),
    "null choices": (lambda f: f.null_choices(), Fault.NOT_A_COMPLETION, 3, Sign.AT_FAULT),
    "truncated JSON": (lambda f: f.truncated_json(), Fault.NOT_A_COMPLETION, 3, Sign.AT_FAULT),
}


@pytest.mark.usefixtures("canary")
@pytest.mark.parametrize(("action", "fault", "requests", "sign"), FAULTS.values(), ids=FAULTS)
def test_a_fault_is_tried_as_often_as_the_policy_says(
    serve: Serve, faults: ModuleType, action: Callable[[ModuleType], Any], fault: Fault, requests: int, sign: Sign
) -> None:
    """A server that always fails sees as many requests as the policy allows for its fault, and the error says so."""
    server = serve([action(faults)])
    with pytest.raises(JudgeUnavailableError) as caught:
        asyncio.run(_ask(server.url))

    assert (fault, requests) == (caught.value.fault, caught.value.requests)
    assert requests == len(server.seen)
    assert caught.value.reached
    assert sign is Sign.of(caught.value)
    assert ("tried 3 times" in str(caught.value)) == (requests == 3)
    assert caught.value.__cause__ is None


MENDED = [name for name, (_, fault, requests, _) in FAULTS.items() if fault in TRIED_AGAIN and requests > 1]


@pytest.mark.usefixtures("canary")
@pytest.mark.parametrize("name", MENDED)
def test_a_fault_that_passes_is_mended(serve: Serve, faults: ModuleType, name: str) -> None:
    """Two failed tries and a good one make one reply that counts three requests."""
    bad = FAULTS[name][0](faults)
    server = serve([bad, bad, faults.ok("4")])
    reply = asyncio.run(_ask(server.url))

    assert ("4", 3) == (reply.text, reply.requests)
    assert 3 == len(server.seen)


REPLIES: dict[str, Callable[[ModuleType], Any]] = {
    "refusal": lambda f: f.refusal(),
    "out of range": lambda f: f.out_of_range(),
    "wrong schema": lambda f: f.wrong_schema(),
    "cut short": lambda f: f.ok("{", finish_reason="length"),
    "filtered": lambda f: f.ok(None, finish_reason="content_filter"),
    "no usage": lambda f: f.ok("4", usage=None),
}


@pytest.mark.usefixtures("canary")
@pytest.mark.parametrize("action", REPLIES.values(), ids=REPLIES)
def test_a_reply_that_may_be_no_verdict_is_not_tried_again(
    serve: Serve, faults: ModuleType, action: Callable[[ModuleType], Any]
) -> None:
    """What the model said, good or bad, is one reply of one request: reading it is left to others."""
    server = serve([action(faults)])

    assert 1 == asyncio.run(_ask(server.url)).requests
    assert 1 == len(server.seen)


@pytest.mark.usefixtures("canary")
def test_a_refused_connection_is_tried_again(faults: ModuleType) -> None:
    """A server that does not listen is tried as often as one that fails."""
    with faults.refused() as url, pytest.raises(JudgeUnavailableError, match="tried 3 times") as caught:
        asyncio.run(_ask(url))

    assert (Fault.CONNECTION, 3, False) == (caught.value.fault, caught.value.requests, caught.value.reached)


@pytest.mark.usefixtures("canary")
def test_a_server_that_comes_back_is_found(serve: Serve, faults: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that is stopped and started again at its port answers the next try."""
    server = serve([faults.ok("back")])
    server.stop()

    async def sleep(_: float) -> None:
        if not server.running:
            server.start()

    async def retried(*arguments: Any) -> Reply:
        return await with_retries(*arguments, sleep=sleep)

    monkeypatch.setattr(endpoints, "with_retries", retried)
    assert ("back", 2) == (lambda reply: (reply.text, reply.requests))(asyncio.run(_ask(server.url)))


def _fails(fault: Fault | None, kind: type[JudgeError] = JudgeUnavailableError, **said: Any) -> JudgeError:
    error = kind("words", fault)
    error.__dict__.update(requests=1, **said)
    return error


async def _run(*steps: Any, policy: RetryPolicy = POLICY, left_s: float = 60.0, **seams: Any) -> tuple[Any, Sleeps]:
    script, sleeps = iter(steps), Sleeps()

    async def attempt(_: int) -> Any:
        step = next(script)
        if isinstance(step, BaseException):
            raise step
        return step

    return await with_retries(policy, attempt, lambda: left_s, sleep=sleeps, **seams), sleeps


def test_retry_after_is_waited_for() -> None:
    """The wait is what the server asked for and a little more, whatever the policy's own would be."""
    steps = _fails(Fault.RATE_LIMIT, retry_after_s=7.0), _fails(Fault.SERVER_ERROR), "4"
    said, sleeps = asyncio.run(_run(*steps, draw=lambda: 0.5))

    assert "4" == said
    assert pytest.approx([7.0025, 0.015]) == sleeps


ENDS: dict[str, tuple[dict[str, Any], str]] = {
    "a long Retry-After": (
        {"retry_after_s": 90.0},
        r"^words \(it asks to wait 90 s, and longest_retry_after_s=60\)$",
    ),
    "a wait beyond the deadline": (
        {"retry_after_s": 30.0},
        r"^words \(waiting 30\.. s more would pass the deadline\)$",
    ),
    "the server's own word": ({"should_retry": False}, r"^words \(the server asks not to be tried again\)$"),
}


@pytest.mark.parametrize(("said", "words"), ENDS.values(), ids=ENDS)
def test_what_ends_the_tries_is_told(said: dict[str, Any], words: str) -> None:
    """No further try is begun that cannot help, and the error says why."""
    with pytest.raises(JudgeUnavailableError, match=words) as caught:
        asyncio.run(_run(_fails(Fault.RATE_LIMIT, **said), left_s=10.0))

    assert Fault.RATE_LIMIT is caught.value.fault
    assert said.items() <= vars(caught.value).items()


@pytest.mark.parametrize("fault", [fault for fault in Fault if fault not in TRIED_AGAIN])
def test_a_fault_of_another_kind_ends_the_tries(fault: Fault) -> None:
    """An open breaker, a spent budget, a refusal: no further try, and the error is told as it is."""
    with pytest.raises(JudgeReplyError, match=r"^words$"):
        asyncio.run(_run(_fails(fault, JudgeReplyError)))


def test_an_error_that_is_not_of_judges_passes() -> None:
    """A mistake of our own is neither hidden nor tried again, nor is a timeout that is none of ours."""
    for error in (KeyError("mine"), TimeoutError("mine")):
        with pytest.raises(type(error), match="mine"):
            asyncio.run(_run(error))


def test_one_attempt_means_no_second_one() -> None:
    """With attempts=1 the first error is told as it is."""
    with pytest.raises(JudgeUnavailableError, match=r"^words$"):
        asyncio.run(_run(_fails(Fault.CONNECTION), policy=RetryPolicy(attempts=1)))


@pytest.mark.usefixtures("canary")
@pytest.mark.parametrize("silence", ["dribble", "stall"])
def test_a_silent_server_meets_the_deadline(serve: Serve, faults: ModuleType, silence: str) -> None:
    """Bytes that keep coming hold no judgement past its deadline, and the server is at fault."""
    server = serve([getattr(faults, silence)()])

    async def ask() -> bool:
        asked = Server(server.url)
        await prepare(asked)
        endpoint = Endpoint(asked, Load(), POLICY)
        for _ in range(20):
            with pytest.raises(JudgeUnavailableError, match=r"within 0\.05 s; 1 try was made, none") as caught:
                await endpoint.ask(_request(), 0.05)
            assert (Fault.DEADLINE, 1) == (caught.value.fault, caught.value.requests)
        return endpoint.breaker("m").is_open

    assert asyncio.run(ask())


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

    assert (Fault.DEADLINE, 2, 503) == (caught.value.fault, caught.value.requests, caught.value.status)


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
        return await asyncio.gather(*(endpoint.ask(_request(str(place)), 60.0) for place in range(300)))

    replies = asyncio.run(ask_all())

    assert [str(place) for place in range(300)] == [reply.text for reply in replies]
    assert sum(reply.requests for reply in replies) == len(server.seen)
