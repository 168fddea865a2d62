"""Reward models that vLLM or SGLang serve: their requests, their answers, and what is no score."""

from __future__ import annotations

import json
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from builtin_rewards.judge import JudgeSetupError, RetryPolicy
from builtin_rewards.reward_model import RemoteRewardModel
from builtin_rewards.reward_model.served_forms import UnreadableAnswerError, scores_of
from rewardkit import Cause, ConfigError, DataError, InfrastructureError, Rollout, Runtime, Status

pytest.importorskip("openai", reason="requests go by openai's client")
KEY = "sk-canary-0123456789abcdef"
QUICK = RetryPolicy(attempts=2, first_wait_s=0.01, longest_wait_s=0.02)
GATHERED_MS = 200  # in which the texts of a batch make one request, on a busy machine too
Answer = Callable[[str, Any], tuple[int, Any]]
ROLLOUTS = [Rollout("Say more.", "a" * length) for length in range(1, 6)]


class ModelServerFake:
    """A server on loopback that answers as it is told, and keeps what it was asked."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, Any, dict[str, str]]] = []
        self.answer: Answer = lambda path, body: (404, {"error": {"message": "no route"}})
        self.owner: str | None = "vllm"
        self.open = self.most_open = 0
        fake, lock = self, threading.Lock()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                if fake.owner is None:
                    return self._write(404, {"error": "no list"})
                return self._write(200, {"object": "list", "data": [{"id": "rm", "owned_by": fake.owner}]})

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                fake.requests.append((self.path, body, {k.lower(): v for k, v in self.headers.items()}))
                with lock:
                    fake.open += 1
                    fake.most_open = max(fake.most_open, fake.open)
                status, content = fake.answer(self.path, body)
                with lock:
                    fake.open -= 1
                self._write(status, content)

            def _write(self, status: int, content: Any) -> None:
                raw = content if isinstance(content, bytes) else json.dumps(content).encode()
                self.send_response(status)
                if 300 <= status < 400:
                    self.send_header("location", "http://127.0.0.1:9/elsewhere")
                self.send_header("content-type", "text/html" if isinstance(content, bytes) else "application/json")
                self.send_header("content-length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *_: Any) -> None:
                """Print nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def fake() -> Iterator[ModelServerFake]:
    server = ModelServerFake()
    yield server
    server.close()


def lengths_of(body: Any) -> list[float]:
    """Return the score of each text of a request: how long its completion is."""
    if "messages" in body:
        return [float(len(body["messages"][-1]["content"]))]
    if "text_2" in body:
        return [float(len(text)) for text in body["text_2"]]
    if "items" in body:
        return [float(len(text)) for text in body["items"]]
    texts = body.get("input", body.get("input_ids", body.get("text")))
    return [float(len(text.removeprefix("Say more.")) if isinstance(text, str) else len(text)) for text in texts]


def vllm(path: str, body: Any) -> tuple[int, Any]:
    """Answer as vLLM does."""
    entries = {
        "/classify": lambda score: {"label": "LABEL_0", "probs": [score], "num_classes": 1},
        "/pooling": lambda score: {"object": "pooling", "data": [[-1.0], [score]]},
        "/score": lambda score: {"object": "score", "score": score},
    }
    if path not in entries:
        return 404, {"detail": "Not Found"}
    data = [{"index": index, **entries[path](score)} for index, score in enumerate(lengths_of(body))]
    return 200, {
        "id": "x-1",
        "object": "list",
        "created": 1,
        "model": "rm",
        "data": data,
        "usage": {"prompt_tokens": 9},
    }


def sglang(path: str, body: Any) -> tuple[int, Any]:
    """Answer as SGLang does."""
    if path == "/v1/score":
        return 200, {"scores": [[score] for score in lengths_of(body)], "model": "rm", "object": "scoring"}
    return 200, [{"embedding": [score], "meta_info": {"prompt_tokens": 3}} for score in lengths_of(body)]


EXPECTED = [1.0, 2.0, 3.0, 4.0, 5.0]


@pytest.mark.parametrize(
    ("answer", "options", "path", "names"),
    [
        (vllm, {}, "/classify", {"model", "messages", "use_activation"}),
        (vllm, {"text_form": "plain"}, "/classify", {"model", "input", "use_activation"}),
        (vllm, {"route": "pooling"}, "/pooling", {"model", "messages", "use_activation", "encoding_format"}),
        (vllm, {"route": "score"}, "/score", {"model", "text_1", "text_2", "use_activation"}),
        (sglang, {"server": "sglang", "text_form": "plain"}, "/classify", {"model", "text"}),
        (sglang, {"server": "sglang", "route": "score", "label_token_ids": [9454, 2753]}, "/v1/score",
         {"model", "query", "items", "label_token_ids", "apply_softmax"}),
    ],
)  # fmt: skip
def test_each_route_is_asked_in_its_own_form(
    answer: Answer, options: dict[str, Any], path: str, names: set[str], fake: ModelServerFake
) -> None:
    """With its path, its fields and its answer's; scores stand in the order of the rollouts."""
    fake.answer = answer
    reward = RemoteRewardModel(f"{fake.url}/v1", **options)
    assert EXPECTED == reward.score_batch(ROLLOUTS)
    assert {path} == {asked for asked, _, _ in fake.requests}
    assert names == fake.requests[0][1].keys()
    assert "rm" == fake.requests[0][1]["model"]


@pytest.mark.parametrize("owner", ["vllm", "sglang"])
def test_tokens_are_those_of_the_models_own_tokenizer(owner: str, fake: ModelServerFake, tmp_path: Any) -> None:
    """Many texts go in one request, to whichever server the list of models names."""
    tiny = pytest.importorskip("tiny_reward_model")
    from builtin_rewards.reward_model import encode_text

    tokenizer = tiny.saved_tokenizer(tmp_path)
    fake.owner, fake.answer = owner, vllm if owner == "vllm" else sglang
    reward = RemoteRewardModel(fake.url, tokenizer=tmp_path, max_length=40)
    texts = ["the cat", "a dog ran </s>", "badly"]
    ids = [[*encode_text(tokenizer, "is it well ?", text).ids] for text in texts]
    assert [float(len(row)) for row in ids] == reward.score_batch([Rollout("is it well ?", text) for text in texts])
    sent = [row for _, body, _ in fake.requests for row in body["input" if owner == "vllm" else "input_ids"]]
    assert sorted(ids) == sorted(sent)


def test_without_a_named_route_the_first_that_is_there_is_taken(fake: ModelServerFake) -> None:
    """A server that has only pooling is asked for it from then on."""
    fake.answer = lambda path, body: vllm(path, body) if path == "/pooling" else (404, {"detail": "Not Found"})
    assert EXPECTED == RemoteRewardModel(fake.url).score_batch(ROLLOUTS)
    assert {"/classify", "/pooling"} == {path for path, _, _ in fake.requests}


def changed(change: Callable[[list[Any]], Any]) -> Answer:
    def answer(path: str, body: Any) -> tuple[int, Any]:
        status, content = vllm(path, body)
        return status, change(content["data"]) if status == 200 else content

    return answer


BAD: dict[str, tuple[Answer, str]] = {
    "fewer scores": (changed(lambda data: {"data": data[:-1]}), "answered 4 scores for 5 texts"),
    "more scores": (changed(lambda data: {"data": [*data, {**data[0], "index": 5}]}), "answered 6 scores for 5 texts"),
    "another order": (changed(lambda data: {"data": data[::-1]}), "another order: score 0 is that of text 4"),
    "one text twice": (changed(lambda data: {"data": [data[0], *data[:-1]]}), "another order: score 1 is that of"),
    "HTML": (lambda *_: (200, b"<html><body>Sign in</body></html>"), "answered no JSON: '<html>"),
    "no list": (lambda *_: (200, {"message": "hello"}), "answered no scores"),
    "a number": (lambda *_: (200, 7), "answered no scores"),
    "numbers without a name": (lambda *_: (200, [1.0, 2.0, 3.0, 4.0, 5.0]), "answered no scores"),
    "one number without a name": (lambda *_: (200, [1.0]), "answered no scores"),
    "NaN": (changed(lambda data: {"data": [{**entry, "probs": [float("nan")]} for entry in data]}), "number: nan"),
    "too large a number": (
        changed(lambda data: {"data": [{**entry, "probs": [10**400]} for entry in data]}), "no finite number: 1000"
    ),
    "null": (changed(lambda data: {"data": [{**entry, "probs": [None]} for entry in data]}), "no finite number: None"),
    "text": (changed(lambda data: {"data": [{**entry, "probs": ["0.7"]} for entry in data]}), "number: '0.7'"),
    "two labels": (changed(lambda data: {"data": [{**entry, "probs": [0.2, 0.8]} for entry in data]}), "2 numbers"),
    "an empty list": (changed(lambda data: {"data": [{**entry, "probs": []} for entry in data]}), "0 numbers"),
    "a status 500": (lambda *_: (500, {"error": {"message": "no memory"}}), "HTTP 500: no memory"),
    "HTML of a gateway": (lambda *_: (502, b"<html>Bad gateway</html>"), "HTTP 502"),
    "a redirect": (lambda *_: (302, {}), "it points to http://127.0.0.1:9/elsewhere, not followed"),
    "a wrong key": (lambda *_: (401, {"error": {"message": f"key {KEY} is wrong"}}), "REWARD_MODEL_API_KEY"),
    "no chat template": (
        lambda *_: (400, {"error": {"message": "you must provide a chat template", "type": "BadRequestError"}}),
        "give tokenizer= its folder, or set text_form='plain'",
    ),
    "another task": (
        lambda *_: (400, {"error": {"message": "The model does not support Classification API"}}), "name a route that",
    ),
    "an unknown model": (lambda *_: (404, {"error": {"message": "no model rm"}}), "HTTP 404"),
}  # fmt: skip


_OF_SEVERAL = ("another order", "one text twice")  # cases that one text alone cannot have


@pytest.mark.parametrize("case", BAD)
def test_a_wrong_answer_is_infrastructure_in_one_line_and_no_score(
    case: str, fake: ModelServerFake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a runtime too, with no default in its place; no message has the key."""
    monkeypatch.setenv("REWARD_MODEL_API_KEY", KEY)
    fake.answer, message = BAD[case]
    reward = RemoteRewardModel(fake.url, text_form="plain", route="classify", retry=QUICK, wait_ms=GATHERED_MS)
    for error in reward.score_batch(ROLLOUTS):
        assert isinstance(error, InfrastructureError)
        assert message in str(error)
        assert "\n" not in str(error)
        assert KEY not in str(error)
    assert {f"Bearer {KEY}"} == {headers["authorization"] for _, _, headers in fake.requests}
    if case in _OF_SEVERAL:
        return
    with Runtime([reward], lane="inline", max_infrastructure_rate=1.0) as runtime:
        outcomes = runtime.score(ROLLOUTS[:2])["reward_model"]
    assert [(Status.FAILED, Cause.INFRASTRUCTURE, None)] * 2 == [
        (outcome.status, outcome.cause, outcome.score) for outcome in outcomes
    ]


def test_one_nan_is_the_failure_of_its_text(fake: ModelServerFake) -> None:
    """The others of its request are scored."""
    fake.answer = changed(lambda data: {"data": [{**data[0], "probs": [float("nan")]}, *data[1:]]})
    first, *rest = RemoteRewardModel(fake.url, text_form="plain", wait_ms=GATHERED_MS).score_batch(ROLLOUTS)
    assert isinstance(first, InfrastructureError)
    assert EXPECTED[1:] == rest


def test_one_number_that_no_float_holds_is_the_failure_of_its_text(fake: ModelServerFake) -> None:
    """A whole number of hundreds of digits is JSON."""
    fake.answer = changed(lambda data: {"data": [{**data[0], "probs": [-(10**400)]}, *data[1:]]})
    first, *rest = RemoteRewardModel(fake.url, text_form="plain", wait_ms=GATHERED_MS).score_batch(ROLLOUTS)
    assert isinstance(first, InfrastructureError)
    assert EXPECTED[1:] == rest


def _called(**function: object) -> Rollout:
    """Return a completion whose message calls a tool."""
    calls = [{"type": "function", "function": {"name": "f", "arguments": "{}", **function}}]
    return Rollout("?", [{"role": "assistant", "content": "fine", "tool_calls": calls}])


@pytest.mark.parametrize(
    ("rollout", "message"),
    [
        (_called(arguments='{"a": "\ud83d"}'), "half of a surrogate pair"),
        (_called(name="\ud83d"), "half of a surrogate pair"),
        (_called(arguments={"a": {1, 2}}), "cannot be sent: TypeError"),
        (_called(arguments={"a": float("nan")}), "cannot be sent: ValueError"),
    ],
    ids=["arguments", "name", "a set", "NaN"],
)
def test_messages_that_are_no_json_fail_alone(rollout: Rollout, message: str, fake: ModelServerFake) -> None:
    """Before anything is sent of them, as an exception and not as the server's fault."""
    fake.answer = vllm
    (error,) = RemoteRewardModel(fake.url, server="vllm", model="rm").score_batch([rollout])
    assert isinstance(error, DataError)
    assert message in str(error)
    assert [] == fake.requests


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_text_that_the_server_refuses_fails_alone(status: int, fake: ModelServerFake) -> None:
    """It is found by halves, and its failure is an exception, not infrastructure."""

    def answer(path: str, body: Any) -> tuple[int, Any]:
        if any("aaa" == text.removeprefix("Say more.") for text in body["input"]):
            return status, {"error": {"message": "too long", "type": "BadRequestError"}}
        return vllm(path, body)

    fake.answer = answer
    results = RemoteRewardModel(fake.url, text_form="plain").score_batch(ROLLOUTS)
    error = results.pop(2)
    assert [1.0, 2.0, 4.0, 5.0] == results
    assert isinstance(error, DataError)
    assert f"HTTP {status}: too long" in str(error)


@pytest.mark.parametrize(
    ("rollout", "message"),
    [
        (Rollout("?", "cut \ud83d"), "half of a surrogate pair"),
        (Rollout("cut \udc00", "fine"), "half of a surrogate pair"),
        (Rollout("?", "  "), "the completion has no text"),
        (Rollout("?", "<think>only thoughts"), "the completion has no text"),
    ],
)
def test_a_text_that_cannot_be_sent_fails_alone(rollout: Rollout, message: str, fake: ModelServerFake) -> None:
    """Before anything is sent of it."""
    fake.answer = vllm
    *scores, error = RemoteRewardModel(fake.url, text_form="plain").score_batch([*ROLLOUTS, rollout])
    assert EXPECTED == scores
    assert isinstance(error, DataError)
    assert message in str(error)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_server_is_asked_again(status: int, fake: ModelServerFake) -> None:
    """As often as the policy says, and no oftener."""
    answers = iter([(status, {"error": {"message": "busy"}})])
    fake.answer = lambda path, body: next(answers, None) or vllm(path, body)
    reward = RemoteRewardModel(fake.url, text_form="plain", retry=QUICK, wait_ms=GATHERED_MS)
    assert EXPECTED == reward.score_batch(ROLLOUTS)
    assert len(fake.requests) == 2


def test_a_silent_server_ends_with_the_deadline(fake: ModelServerFake) -> None:
    """The error says for how long it was waited."""
    fake.answer = lambda path, body: (time.sleep(1.5), vllm(path, body))[1]
    (error,) = RemoteRewardModel(fake.url, deadline_s=0.5, server="vllm", model="rm").score_batch(ROLLOUTS[:1])
    assert isinstance(error, InfrastructureError)
    assert "no score within 0.5 s" in str(error)


def test_no_server_is_infrastructure() -> None:
    """With what to check."""
    reward = RemoteRewardModel("http://127.0.0.1:9", retry=QUICK, server="vllm", model="rm")
    (error,) = reward.score_batch(ROLLOUTS[:1])
    assert isinstance(error, InfrastructureError)
    assert "check that the server runs" in str(error)


def test_requests_in_flight_are_bounded_and_calls_share_them(fake: ModelServerFake) -> None:
    """Two hundred calls are a few requests, and each has the score of its own text."""
    fake.answer = vllm
    rollouts = [Rollout("Say more.", "a" * (1 + number % 50)) for number in range(200)]
    reward = RemoteRewardModel(fake.url, text_form="plain")
    assert [1.0 + number % 50 for number in range(200)] == reward.score_batch(rollouts)
    assert len(fake.requests) < 50
    assert fake.most_open <= 32


def test_it_pickles_without_a_key_and_scores_the_same(fake: ModelServerFake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key is read from the environment for each request; another provider's is never sent."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    fake.answer = vllm
    reward = RemoteRewardModel(fake.url, text_form="plain", name="helpful")
    again = pickle.loads(pickle.dumps(reward))
    assert EXPECTED == again.score_batch(ROLLOUTS)
    assert (reward.version, "helpful") == (again.version, again.name)
    assert KEY.encode() not in pickle.dumps(reward)
    assert all(KEY not in headers["authorization"] for _, _, headers in fake.requests)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"server": "tgi"}, "server='tgi': expected one of None, 'vllm', 'sglang'"),
        ({"route": "rerank"}, "route='rerank'"),
        ({"server": "sglang", "route": "pooling"}, "route='pooling': expected one of None, 'classify', 'score'"),
        ({"shows": "thoughts"}, "shows='thoughts'"),
        ({"text_form": "pasted"}, "text_form='pasted'"),
        ({"deadline_s": 0}, "deadline_s=0"),
        ({"deadline_s": "120"}, "deadline_s='120': expected a number of seconds above 0"),
        ({"wait_ms": -1}, "wait_ms=-1"),
        ({"wait_ms": None}, "wait_ms=None: expected a number, 0 or more"),
        ({"label_token_ids": 3}, "label_token_ids=3: expected a list of a tokenizer's numbers"),
        ({"label_token_ids": "42"}, "label_token_ids='42': "),
        ({"max_length": 8}, "max_length=8: expected a number of tokens, with tokenizer="),
        ({"max_length": "8", "tokenizer": "/nowhere"}, "max_length='8': expected a number of tokens"),
        ({"tokenizer": "/nowhere"}, "there is no such folder"),
    ],
)
def test_a_wrong_setting_is_refused_when_it_is_made(options: dict[str, Any], message: str) -> None:
    """In one line that names it."""
    with pytest.raises(ConfigError) as refused:
        RemoteRewardModel("http://127.0.0.1:8000", **options)
    assert message in str(refused.value)


@pytest.mark.parametrize("url", ["", "rm:8000", "ftp://rm", "http://user:pw@rm", "http://rm?key=1", 7])
def test_what_is_no_address_is_refused(url: Any) -> None:
    """With no secret of it in the message."""
    with pytest.raises(JudgeSetupError, match="base_url") as refused:
        RemoteRewardModel(url)
    assert "pw" not in str(refused.value)


def test_numbers_for_each_token_are_read_at_the_last() -> None:
    """As vLLM's pooling gives them of a model that pools nothing."""
    assert [3.0] == scores_of({"data": [{"index": 0, "data": [[1.0], [2.0], [3.0]]}]}, 1)
    assert [2.5] == scores_of({"embedding": [2.5], "meta_info": {}}, 1)
    with pytest.raises(UnreadableAnswerError):
        scores_of({"data": {"score": 1.0}}, 1)
