"""Judges against a real HTTP server that fails, through the real client, in a worker process as in training."""

from __future__ import annotations

import asyncio
import json
import logging
import pickle
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from patience import LONG_S

from builtin_rewards.endpoint import limits
from builtin_rewards.judge import (
    Budget,
    Criterion,
    JudgeCache,
    JudgeUnavailableError,
    LLMJudge,
    Load,
    PairwiseJudge,
    Price,
    RetryPolicy,
)
from rewardkit import Cause, Outcome, Reward, Rollout, Runtime, Status, reward

Serve = Callable[..., Any]
CRITERIA = [Criterion("correct", "Is it right?")]
QUESTION = re.compile(r"It is (\d)\. #(\d+) (\w*)")
"""What a completion says: the grade that it is to get, its number, and the fault that its requests meet."""


def says(grade: Any) -> str:
    """Return the words of a verdict."""
    return f'{{"correct": {{"reason": "graded {grade}", "score": {grade}}}}}'


class Question(NamedTuple):
    """What the server reads out of a request."""

    grade: int
    number: int
    fault: str


def question_of(body: Mapping[str, Any]) -> Question:
    """Return the question of a request's body."""
    found = QUESTION.search(body["messages"][-1]["content"])
    assert found is not None
    return Question(int(found[1]), int(found[2]), found[3])


def completion(number: int, fault: str = "") -> str:
    """Return a completion whose grade is its number's, from 1 to 5."""
    return f"It is {number % 5 + 1}. #{number} {fault}"


def expected_score(number: int) -> float:
    """Return the score that its verdict comes to."""
    return number % 5 / 4


def run(made: Reward[..., Any], completions: Sequence[str], **settings: Any) -> list[Outcome]:
    """Return what became of each completion in a worker process."""
    with Runtime([made], max_infrastructure_rate=1.0, **settings) as runtime:
        return list(runtime.score([Rollout(f"p{text}", text) for text in completions])[made.name])


def judge(url: str, **settings: Any) -> LLMJudge:
    """Return a judge that tries twice, without waits worth the name."""
    policy = RetryPolicy(attempts=2, first_wait_s=0.02, longest_wait_s=0.05, longest_retry_after_s=2.0)
    return LLMJudge("m", CRITERIA, **{"base_url": url, "retry": policy, "deadline_s": 20.0, **settings})


# A fault of each kind ------------------------------------------------------------------------------------------------


def actions(faults: ModuleType) -> dict[str, Any]:
    """Return what the server does, by the name of the fault."""
    return {
        "too_many": faults.too_many(),
        "quota": faults.quota(),
        "status_500": faults.status(500),
        "status_503": faults.status(503),
        "status_401": faults.status(401, "wrong"),
        "reset_in_body": faults.reset(),
        "html": faults.html(),
        "empty_choices": faults.empty_choices(),
        "truncated_json": faults.truncated_json(),
        "out_of_range": faults.out_of_range(),
        "refusal": faults.refusal(),
        "wrong_schema": faults.wrong_schema(),
        "words": faults.ok("A clear 5 of 5."),
        "cut_off": faults.ok(says(4), finish_reason="length"),
    }


REPLIES = {"out_of_range", "refusal", "wrong_schema", "words", "cut_off"}


def test_a_fault_ends_as_a_failure_among_innocents(faults: ModuleType, serve: Serve) -> None:
    """Never as a score, with its cause; the others of the batch have theirs. ``test_faults`` has every reply."""
    acts = actions(faults)

    def script(number: int, body: Mapping[str, Any], headers: Mapping[str, str]) -> Any:
        asked = question_of(body)
        return acts[asked.fault] if asked.fault else faults.ok(says(asked.grade))

    names = [name for fault in acts for name in ("", "", fault)]
    texts = [completion(number, name) for number, name in enumerate(names)]
    outcomes = run(judge(serve(script).url, deadline_s=60.0), texts)

    for number, (name, outcome) in enumerate(zip(names, outcomes, strict=True)):
        if not name:
            assert (Status.SCORED, expected_score(number)) == (outcome.status, outcome.score)
        else:
            cause = Cause.EXCEPTION if name in REPLIES else Cause.INFRASTRUCTURE
            assert (Status.FAILED, None, cause) == (outcome.status, outcome.score, outcome.cause), outcome


# Many judgements -----------------------------------------------------------------------------------------------------

MENDED = ("status_500", "too_many", "reset_in_body", "status_503", "html", "empty_choices", "truncated_json")
LOST = ("refusal", "out_of_range", "wrong_schema")


@dataclass
class Flaky:
    """A server on which one completion in five meets a fault: most once to four times, some each time.

    Attributes:
        faults: The fault server's module.
        tried: Requests so far, by completion.
        together: Nothing is answered before so many were in flight at once.
    """

    faults: ModuleType
    tried: Counter[int] = field(default_factory=Counter)
    together: int = 0

    def __post_init__(self) -> None:
        self.acts = actions(self.faults)

    def __call__(self, number: int, body: Mapping[str, Any], headers: Mapping[str, str]) -> Any:
        return self.faults.replace(self.act(body), together=self.together)

    def act(self, body: Mapping[str, Any]) -> Any:
        """Return what becomes of a request."""
        asked = question_of(body)
        self.tried[asked.number] += 1
        fault, times = self.fault(asked.number)
        if self.tried[asked.number] <= times:
            return self.acts[fault]
        return self.faults.ok(says(asked.grade), delay_s=0.2)

    @staticmethod
    def fault(number: int) -> tuple[str, int]:
        """Return the fault of a completion, and how many of its requests meet it."""
        if number % 5 != 4:
            return "", 0
        place = number // 5
        if place % 4 == 3:
            return LOST[place // 4 % len(LOST)], 99
        return MENDED[place % len(MENDED)], place % 6 + 1

    @classmethod
    def requests(cls, number: int, attempts: int) -> int:
        """Return the requests that the policy makes for a completion."""
        fault, times = cls.fault(number)
        return 1 if fault in LOST else min(times + 1, attempts)

    @classmethod
    def lost(cls, number: int, attempts: int) -> bool:
        """Tells whether no verdict comes of it."""
        return cls.fault(number)[1] >= attempts


@pytest.mark.slow
def test_thousands_of_judgements_with_a_fifth_of_faults(faults: ModuleType, serve: Serve, full: bool) -> None:
    """2,000 (150 in short form) at 128 in flight: each has its outcome and its score, in as many requests as due."""
    count, attempts = (2000 if full else 150), 4
    server = serve(Flaky(faults, together=65))
    policy = RetryPolicy(attempts=attempts, first_wait_s=0.05, longest_wait_s=0.2)
    made = judge(server.url, retry=policy, deadline_s=600.0, reasks=0)
    outcomes = run(made, [completion(number) for number in range(count)])

    lost = [Flaky.lost(number, attempts) for number in range(count)]
    assert [None if gone else expected_score(number) for number, gone in enumerate(lost)] == [
        outcome.score for outcome in outcomes
    ]
    assert [Status.FAILED if gone else Status.SCORED for gone in lost] == [outcome.status for outcome in outcomes]
    due = {number: Flaky.requests(number, attempts) for number in range(count)}
    assert due == Counter(question_of(seen.body).number for seen in server.seen)
    told = {number: outcome.metrics["requests"] for number, outcome in enumerate(outcomes) if not lost[number]}
    assert {number: due[number] for number in told} == told
    assert server.most_in_flight <= 128
    assert server.most_in_flight > 64


# Servers as they are -------------------------------------------------------------------------------------------------


def reasoning(faults: ModuleType) -> Callable[..., Any]:
    """Return a model that takes neither max_tokens nor a temperature."""

    def script(number: int, body: Mapping[str, Any], headers: Mapping[str, str]) -> Any:
        for name, words in (
            (
                "max_tokens",
                "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead.",
            ),
            ("temperature", "Unsupported value: 'temperature' does not support 0.0 with this model."),
        ):
            if name in body:
                return faults.status(400, words, param=name)
        assert 1024 == body["max_completion_tokens"]
        assert "json_schema" == body["response_format"]["type"]
        return faults.ok(says(question_of(body).grade))

    return script


def test_a_model_that_reasons_judges_under_the_defaults(faults: ModuleType, serve: Serve) -> None:
    """The first questions learn what it takes, and the others are sent that."""
    server = serve(reasoning(faults))
    made = judge(server.url, budget=Budget(requests=10**6), load=Load(concurrency=4))
    outcomes = run(made, [completion(number) for number in range(40)])
    assert [expected_score(number) for number in range(40)] == [outcome.score for outcome in outcomes]
    assert 40 + 2 * 5 >= len(server.seen)  # five questions are under way before the first reply


def test_plain_calls_remember_what_a_server_takes(faults: ModuleType, serve: Serve) -> None:
    """Each has an event loop of its own; the judge's first alone is refused, in several threads too."""
    server = serve(reasoning(faults))
    made = judge(server.url)
    assert expected_score(1) == made(prompt="?", completion=completion(1)).value
    assert 3 == len(server.seen)
    with ThreadPoolExecutor(4) as threads:
        calls = [threads.submit(made, prompt="?", completion=completion(number)) for number in range(2, 10)]
        assert [expected_score(number) for number in range(2, 10)] == [call.result().value for call in calls]
    assert 3 + 8 == len(server.seen)


def test_a_reply_that_is_all_reasoning_says_what_to_set(faults: ModuleType, serve: Serve) -> None:
    """The model thought until it had no tokens left."""
    message = {"role": "assistant", "content": "", "reasoning_content": "Hm, let me think."}
    server = serve([faults.completion({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})])
    (outcome,) = run(judge(server.url), [completion(1)], lane="inline")
    assert (Status.FAILED, None) == (outcome.status, outcome.score)
    assert "all that it wrote is reasoning: raise max_tokens, or let it reason less" in str(outcome.error)


async def errors_of(made: LLMJudge, completions: Sequence[str]) -> list[str]:
    """Return the words of the errors with which all judgements fail, asked on one event loop as in a worker."""
    asked = [made(prompt="p", completion=text) for text in completions]
    came = await asyncio.gather(*asked, return_exceptions=True)
    assert {JudgeUnavailableError} == {type(one) for one in came}
    return [str(one) for one in came]


@pytest.mark.parametrize("status", [401, 402, 403])
def test_a_run_with_a_key_that_is_refused_asks_a_few_times(
    faults: ModuleType, serve: Serve, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not as often as there are completions, however slow the first answer is; each failed, and says why."""
    monkeypatch.setattr(limits, "FIRST_S", LONG_S)  # then all may go, which a busy machine would reach
    server = serve([faults.status(status, "no such key")])
    texts = [completion(number) for number in range(50)]
    if status == 401:
        outcomes = run(judge(server.url), texts, workers=1)  # each process finds it out for itself
        assert {(Status.FAILED, Cause.INFRASTRUCTURE)} == {(outcome.status, outcome.cause) for outcome in outcomes}
        errors = [str(outcome.error) for outcome in outcomes]
    else:
        errors = asyncio.run(errors_of(judge(server.url), texts))
    assert [True] * 50 == ["no such key" in error for error in errors]
    assert 16 >= len(server.seen)


# Money ---------------------------------------------------------------------------------------------------------------


@reward
def plain(completion: str) -> float:
    """What answers where the judge may not."""
    return 0.125


def test_spending_of_three_processes_stops_at_the_cap(faults: ModuleType, serve: Serve, tmp_path: Path) -> None:
    """With 64 in flight in each no call is made once the cap is reached, and the fallback scores the rest."""
    each, cap, count = 0.25, 8.0, 80

    def script(number: int, body: Mapping[str, Any], headers: Mapping[str, str]) -> Any:
        usage = {"prompt_tokens": 200, "completion_tokens": 50, "total_tokens": 250}
        return faults.ok(says(question_of(body).grade), usage=usage, delay_s=0.02)

    server = serve(script)
    budget = Budget(usd=cap, ledger=tmp_path / "ledger.db")
    settings: dict[str, Any] = {"budget": budget, "prices": {"m": Price(1000.0, 1000.0)}, "max_tokens": 100}
    settings |= {"load": Load(concurrency=64)}
    judges = [judge(server.url, name=f"judge{n}", **settings).fallback(plain) for n in range(3)]
    rollouts = [Rollout("p", completion(number)) for number in range(count)]
    with Runtime(judges) as runtime:
        batch = runtime.score(rollouts)

    spent, requests = budget.spent().usd, len(server.seen)
    assert cap - 0.5 < spent <= cap  # a question is expected to take some 375 tokens
    assert spent == requests * each
    judged = 0
    for made in judges:
        for number, outcome in enumerate(batch[made.name]):
            by_judge = outcome.metrics[f"link/{made.name}"] == 1.0
            judged += by_judge
            assert (expected_score(number) if by_judge else 0.125) == outcome.score
            assert by_judge or f"the cap usd={cap!r} of the budget is reached" in str(outcome.reason)
    assert judged == requests


# Outages -------------------------------------------------------------------------------------------------------------


def test_a_server_that_is_down_is_left_alone_until_it_is_back(faults: ModuleType, serve: Serve) -> None:
    """The breaker opens, and no request is sent; then one probe goes, and judging goes on."""
    up = False

    def script(number: int, body: Mapping[str, Any], headers: Mapping[str, str]) -> Any:
        return faults.ok(says(question_of(body).grade)) if up else faults.status(503)

    server = serve(script)
    made = judge(server.url, retry=RetryPolicy(attempts=1), load=Load(concurrency=8, rest_s=1.0))
    chain = made.fallback(plain)

    def links(count: int) -> list[float]:
        texts = [Rollout("p", completion(number)) for number in range(count)]
        outcomes = runtime.score(texts)["judge"]
        for number, outcome in enumerate(outcomes):
            by_judge = outcome.metrics["link/judge"] == 1.0
            assert (expected_score(number) if by_judge else 0.125) == outcome.score
        return [outcome.metrics["link/judge"] for outcome in outcomes]

    began = time.monotonic()

    def probes() -> int:
        return int(time.monotonic() - began)  # at most: one after each rest

    with Runtime([chain]) as runtime:
        assert [0.0] * 100 == links(100)
        down = len(server.seen)
        assert 20 <= down <= 20 + 8 + probes()  # as many as open it, and those in flight by then
        assert [0.0] * 50 == links(50)
        assert len(server.seen) <= down + probes()

        up = True
        deadline = time.monotonic() + 120
        probed = len(server.seen)
        while 0.0 in links(1) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert probed < len(server.seen) <= probed + 2
        assert [1.0] * 20 == links(20)


# Keys ----------------------------------------------------------------------------------------------------------------


def test_the_key_is_seen_by_the_server_alone(
    faults: ModuleType, serve: Serve, canary: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """In its one header; in no log, outcome, file, representation or pickle, whatever the server says of it."""
    caplog.set_level(logging.DEBUG)
    elsewhere: list[str] = []
    in_header: list[bool] = []

    def script(number: int, body: Mapping[str, Any], headers: Mapping[str, str]) -> Any:
        asked = question_of(body)
        in_header.append(headers["authorization"] == f"Bearer {canary}")
        elsewhere.extend(name for name, value in headers.items() if canary in value and name != "authorization")
        elsewhere.extend(["body"] if canary in repr(body) else [])
        echoes = {
            "whole": faults.status(500, f"bad key {canary}"),
            "masked": faults.status(401, f"Incorrect API key provided: {canary[:8]}****{canary[-4:]}."),
            "page": faults.Action(f"<html>Authorization: Bearer {canary}</html>".encode()),
            "location": faults.Action(status=302, headers=(("Location", "http://127.0.0.1:1/v1"),)),
            "reply": faults.ok(f"Incorrect API key provided: {canary}"),
            "refusal": faults.refusal(f"I cannot take {canary}"),
            "reason": faults.ok(json.dumps({"correct": {"reason": f"The key is {canary}.", "score": asked.grade}})),
        }
        return echoes[asked.fault] if asked.fault else faults.ok(says(asked.grade))

    server = serve(script)
    ledger, kept = tmp_path / "ledger.db", tmp_path / "judge.db"
    made = judge(server.url, budget=Budget(requests=1000, ledger=ledger), cache=JudgeCache(kept))
    chain = made.fallback(plain)
    names = ["", "whole", "masked", "page", "location", "reply", "refusal", "", "reason"]
    texts = [completion(number, name) for number, name in enumerate(names)]
    outcomes = [*run(made, texts), *run(chain, texts), *run(made, texts, lane="inline")]
    pair = PairwiseJudge("m", base_url=server.url)

    assert in_header
    assert all(in_header)
    assert [] == elsewhere
    shown = [repr(outcome) for outcome in outcomes] + [repr(one) + repr(one.options) for one in (made, chain, pair)]
    shown += [repr(made.model), repr(made.function), repr(vars(made)), caplog.text]
    parts = [canary, canary[:8], canary[-8:]]
    assert [] == [text for text in shown for part in parts if part in text]
    for one in (made, chain, pair):
        assert canary.encode() not in pickle.dumps(one)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {ledger, kept} <= set(files)
    assert [] == [path for path in files if canary.encode() in path.read_bytes()]
    assert [0.0, *[None] * 6, 0.5, 0.75] == [outcome.score for outcome in outcomes[: len(names)]]
    assert outcomes[len(names) - 1].reason is not None
    assert "The key is [key]." in outcomes[len(names) - 1].reason
