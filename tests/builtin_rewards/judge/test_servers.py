"""Judges on servers that others wrote, LiteLLM's proxy and llmock: scores are what these reply, faults what they do."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from real_servers import RealServer

from builtin_rewards.endpoint import client as verifying
from builtin_rewards.endpoint.errors import Fault
from builtin_rewards.judge import Budget, JudgeError, JudgeSetupError, LLMJudge, PairwiseJudge, RetryPolicy
from rewardkit import Cause, Rollout, Runtime, Status

pytest.importorskip("openai", reason="needs the extra 'judge'")
pytestmark = pytest.mark.servers

Start = Callable[..., RealServer]
KEY = "sk-master-of-the-proxy"
VERDICT = '{"correct": {"reason": "So.", "score": %s}}'
MOCKED = {
    "four": VERDICT % 4,
    "one": VERDICT % 1,
    "first": '{"reason": "So.", "verdict": "A"}',
    "chatty": "I like it!",
    "high": VERDICT % 9,
    "busy": "litellm.RateLimitError",
    "broken": "litellm.InternalServerError",
    "long": "litellm.ContextWindowExceededError",
    "filtered": "Exception: content_filter_policy",
}
"""What LiteLLM's proxy answers, by its model."""


@pytest.fixture(scope="module")
def litellm(start_server: Start, tmp_path_factory: pytest.TempPathFactory) -> RealServer:
    """LiteLLM's proxy, which tries nothing again by itself."""
    models = [
        {"model_name": name, "litellm_params": {"model": "openai/any", "api_key": "none", "mock_response": said}}
        for name, said in MOCKED.items()
    ]
    settings = {"model_list": models, "router_settings": {"num_retries": 0, "disable_cooldowns": True}}
    config: Path = tmp_path_factory.mktemp("litellm") / "config.yaml"
    config.write_text(json.dumps({**settings, "general_settings": {"master_key": KEY}}))
    return start_server("litellm", "--config", str(config), "--telemetry", "False")


@pytest.fixture(scope="module")
def llmock_server(start_server: Start) -> RealServer:
    """llmock, which does what it is told to."""
    return start_server("llmock", "serve")


@pytest.fixture
def script(llmock_server: RealServer) -> Callable[..., RealServer]:
    """Makes llmock forget everything, and do these things next."""

    def script(*behaviors: dict[str, Any]) -> RealServer:
        llmock_server.call("/_llmock/reset", {})
        if behaviors:
            llmock_server.call("/_llmock/scenario", {"behaviors": behaviors})
        return llmock_server

    return script


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """The proxy takes its key; the list of models may take its time on a busy machine, and is asked for each time."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setattr(verifying, "_VERIFY_S", 60.0)
    verifying.verify.cache_clear()


def judge_of(server: RealServer, model: str = "gpt-4o", **settings: Any) -> LLMJudge:
    """A judge of one criterion that tries three times, and asks no second question about what it cannot read."""
    asking: dict[str, Any] = {"retry": RetryPolicy(attempts=3, first_wait_s=0.05), "deadline_s": 60.0, "reasks": 0}
    return LLMJudge(model, ["correct"], base_url=server.base_url, **{**asking, **settings})


def fault_of(judge: LLMJudge) -> Fault | None:
    """Asks once, and gives what became of it; None for a score."""
    try:
        judge(prompt="2+2=", completion="4")
    except JudgeError as error:
        return error.fault
    return None


def test_a_proxys_replies_are_scores(litellm: RealServer, full: bool) -> None:
    """Every completion of a batch has the score that its model's reply says, and nothing is asked twice."""
    rows = [Rollout("2+2=", f"It is {n}.") for n in range(200 if full else 6)]
    before = litellm.asked
    judges = [judge_of(litellm, name, name=name, budget=Budget(requests=10**6)) for name in ("four", "one", "chatty")]
    with Runtime(judges, workers=1, max_infrastructure_rate=1) as runtime:
        batch = runtime.score(rows)
    assert [0.75] * len(rows) == batch.scores["four"]
    assert [0.0] * len(rows) == batch.scores["one"]
    assert {(Status.FAILED, Cause.EXCEPTION, None)} == {(one.status, one.cause, one.score) for one in batch["chatty"]}
    assert 3 * len(rows) == litellm.asked - before


def test_a_proxys_preference_is_asked_for_in_both_orders(litellm: RealServer) -> None:
    """A model that always prefers the first has no preference."""
    before = litellm.asked
    pair = PairwiseJudge("first", base_url=litellm.base_url, deadline_s=60.0)
    with Runtime([pair], workers=1) as runtime:
        outcomes = runtime.score([Rollout("Why?", said) for said in ("So.", "Because.")])["preference"]
    assert [0.5, 0.5] == [one.score for one in outcomes]
    assert 2 == litellm.asked - before


@pytest.mark.parametrize(
    ("model", "fault", "requests"),
    [
        pytest.param("four", None, 1, id="verdict"),
        pytest.param("busy", Fault.RATE_LIMIT, 3, id="429"),
        pytest.param("broken", Fault.SERVER_ERROR, 3, id="500"),
        pytest.param("long", Fault.CONTEXT_LENGTH, 1, id="context"),
        pytest.param("filtered", Fault.CONTENT_FILTER, 1, id="filter"),
        pytest.param("chatty", Fault.UNREADABLE, 1, id="no-verdict"),
        pytest.param("high", Fault.OUT_OF_RANGE, 1, id="off-scale"),
    ],
)
def test_a_proxys_fault_is_told_for_what_it_is(litellm: RealServer, model: str, fault: Fault, requests: int) -> None:
    """Faults of the model behind it are tried again or not, as if they were its own."""
    before = litellm.asked
    assert fault is fault_of(judge_of(litellm, model))
    assert requests == litellm.asked - before


def test_a_proxy_without_the_model_is_told_at_set_up(litellm: RealServer) -> None:
    """The error names the models that it has; a judge that does not verify is rejected when it asks."""
    judge_of(litellm, "four").set_up()
    with pytest.raises(JudgeSetupError, match="has no model 'fuor'; did you mean 'four'"):
        judge_of(litellm, "fuor").set_up()
    assert Fault.REJECTED is fault_of(judge_of(litellm, "fuor", verify=False))


def test_a_proxy_that_refuses_the_key_gives_no_score(litellm: RealServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy without a database answers a wrong key with 400: no verdict, one request, and its words in the error."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-someone-else")
    before = litellm.asked
    with pytest.raises(JudgeError, match="No connected db") as caught:
        judge_of(litellm, "four")(prompt="2+2=", completion="4")
    assert (Fault.REJECTED, 1) == (caught.value.fault, litellm.asked - before)
    assert "sk-of-someone-else" not in str(caught.value)


def fails(status: int, times: int | None = None, **settings: Any) -> dict[str, Any]:
    return {"type": "fail", "status": status, "times": times, **settings}


def says(text: str) -> dict[str, Any]:
    return {"type": "reply", "text": text}


@pytest.mark.cases(3)
@pytest.mark.parametrize(
    ("behaviors", "fault", "requests"),
    [
        pytest.param([], None, 1, id="any-verdict"),
        pytest.param([says(VERDICT % 3)], None, 1, id="verdict"),
        pytest.param([fails(429, 2, retry_after=0.5)], None, 3, id="429-twice"),
        pytest.param([fails(503, 1)], None, 2, id="503-once"),
        pytest.param([fails(429, retry_after=600)], Fault.RATE_LIMIT, 1, id="429-for-long"),
        pytest.param([fails(500)], Fault.SERVER_ERROR, 3, id="500"),
        pytest.param([fails(400)], Fault.REJECTED, 1, id="400"),
        pytest.param([fails(401)], Fault.REJECTED, 1, id="401"),
        pytest.param([fails(403)], Fault.REJECTED, 1, id="403"),
        pytest.param([fails(404)], Fault.REJECTED, 1, id="404"),
        pytest.param([{"type": "delay", "seconds": 3}], Fault.DEADLINE, 1, id="slow"),
        pytest.param([says("I like it!")], Fault.UNREADABLE, 1, id="no-verdict"),
        pytest.param([says('{"right": 4}')], Fault.WRONG_SCHEMA, 1, id="no-criterion"),
        pytest.param([says(VERDICT % 9)], Fault.OUT_OF_RANGE, 1, id="off-scale"),
    ],
)
def test_a_fault_that_llmock_makes_is_told(
    script: Callable[..., RealServer], behaviors: list[dict[str, Any]], fault: Fault | None, requests: int
) -> None:
    """Each becomes the right fault with the right number of requests, and llmock finds no fault with the client."""
    server = script(*behaviors)
    deadline_s = 2.0 if fault is Fault.DEADLINE else 60.0
    assert fault is fault_of(judge_of(server, deadline_s=deadline_s, verify=False))  # its list would be counted
    verdict = server.call("/_llmock/verdict")
    assert requests == server.call("/_llmock/requests")["count"]
    assert [] == [found for found in verdict["findings"] if found["severity"] == "error"]


def test_a_key_that_llmock_refuses_is_told_at_set_up(script: Callable[..., RealServer]) -> None:
    """Before a judgement is asked for; once it takes the key, the judge is set up."""
    server = script(fails(401, 1, match={"path": "*/models"}))
    with pytest.raises(JudgeSetupError, match="refuses the key in the environment variable OPENAI_API_KEY"):
        judge_of(server).set_up()
    judge_of(server).set_up()
    assert ["/v1/models"] * 2 == [one["path"] for one in server.call("/_llmock/requests")["requests"]]


@pytest.mark.full
def test_a_batch_outlives_random_faults(start_server: Start, full: bool) -> None:
    """Of a server that fails one request in five, every judgement is had, by a client that minds what it is told."""
    server = start_server("llmock", "serve", "--error-rate", "429=0.1", "--error-rate", "503=0.1")
    judge = judge_of(server, retry=RetryPolicy(attempts=12, first_wait_s=0.05, longest_wait_s=0.4))
    rows = [Rollout("2+2=", f"It is {n}.") for n in range(400 if full else 20)]
    with Runtime([judge], workers=1) as runtime:
        outcomes = runtime.score(rows)["judge"]
    assert {Status.SCORED} == {one.status for one in outcomes}
    asked = [one for one in server.call("/_llmock/requests")["requests"] if one["path"].endswith("completions")]
    assert sum(one.metrics["requests"] for one in outcomes) == len(asked)
