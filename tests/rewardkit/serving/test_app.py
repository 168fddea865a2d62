"""The server's addresses: each trainer's shape, what becomes of each fate, and what hostile requests get."""

from __future__ import annotations

import json
import math
import re
import resource
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from reward_servers import Served, reward_server

from rewardkit import InfrastructureError, Runtime, group_reward, reward
from rewardkit.serving import RemoteRuntime
from rewardkit.serving import app as module
from rewardkit.serving.contract import TABLE, RowFate

TOKEN = "a-token-of-the-tests"


@reward(default=None)
def graded(completion: str, answer: str = "") -> float | None:
    """Score a completion as it says: a number, nothing, or a failure."""
    if "skip" in completion:
        return None
    if "unknown" in completion:
        raise InfrastructureError("the judge is down")
    return float("right" in completion)


@reward(name="stood_in", default=0.25)
def stood_in(completion: str) -> float | None:
    if "failed" in completion:
        raise ValueError("no such thing")
    return None


@group_reward
def shortest(completions: list[str]) -> list[float]:
    return [float(len(one) == min(map(len, completions))) for one in completions]


@pytest.fixture(scope="module")
def runtime() -> Iterator[Runtime]:
    with Runtime([graded, stood_in], workers=1, weights=[1.0, 1.0]) as made:
        made.wait_loaded()
        yield made


@pytest.fixture(scope="module")
def served(runtime: Runtime) -> Iterator[Served]:
    with reward_server(runtime) as made:
        yield made


SAID = {RowFate.SCORED: "right", RowFate.SKIPPED: "skip", RowFate.FAILED: "right, failed", RowFate.UNKNOWN: "unknown"}
TOTALS = {RowFate.SCORED: 1.0, RowFate.SKIPPED: None, RowFate.FAILED: 1.25, RowFate.UNKNOWN: None}


def _asked(place: str, said: str) -> tuple[str, dict[str, Any]]:
    """Return a request for one completion, as recorded from each trainer."""
    user = {"role": "user", "content": "2+2="}
    bodies: dict[str, dict[str, Any]] = {
        "/v1/score": {"rollouts": [{"prompt": "2+2=", "completion": said, "example": {"answer": "4"}}]},
        "/get_reward": {"query": ["2+2=" + said], "prompts": ["2+2="], "labels": ["4"]},
        "/slime": {"prompt": "2+2=", "response": said, "label": "4"},
        "/verify": {
            "responses_create_params": {"input": [user]},
            "response": {
                "id": "resp_1",
                "object": "response",
                "output": [
                    {
                        "id": "msg_1",
                        "type": "message",
                        "role": "assistant",
                        "status": "completed",
                        "content": [{"type": "output_text", "text": said, "annotations": []}],
                    }
                ],
            },
            "answer": "4",
            "_ng_task_index": 3,
        },
        "/evaluate": {"messages": [user, {"role": "assistant", "content": said}], "ground_truth": "4", "kwargs": {}},
        "/score": {"model": "reward", "messages": ["2+2=" + said]},
    }
    return place, bodies[place]


def _number(place: str, told: Any) -> Any:
    """Return what a trainer takes for the reward."""
    if place == "/slime":
        return told
    key = {"/v1/score": "totals", "/get_reward": "rewards", "/verify": "reward", "/evaluate": "score"}.get(place)
    found = told[key or "scores"]
    return found[0] if isinstance(found, list) else found


@pytest.mark.parametrize("place", TABLE)
@pytest.mark.parametrize("fate", RowFate)
def test_each_route_says_of_each_fate_what_the_table_says(served: Served, place: str, fate: RowFate) -> None:
    """The number is the total, null or 0.0, and what stands beside it says the rest, row by row."""
    reply = served.post(*_asked(place, SAID[fate]))
    assert (200, "application/json") == (reply.status, reply.headers["content-type"])
    told, number = reply.json, TABLE[place][fate].number
    assert {"total": TOTALS[fate], "null": None, "0.0": 0.0}[number] == _number(place, told)
    if place == "/v1/score":
        assert fate == told["rows"][0]["fate"]
        assert (fate is RowFate.UNKNOWN) == (told["rows"][0]["outcomes"]["graded"]["cause"] == "infrastructure")
    if place == "/get_reward":
        logs = told["extra_logs"]
        scores = {f"{key}/{name}" for key in ("reward", "failed") for name in ("graded", "stood_in")}
        assert {*scores, "unknown", "skipped", "failed"} == set(logs)
        assert [float(fate is one) for one in (RowFate.UNKNOWN, RowFate.SKIPPED, RowFate.FAILED)] == [
            logs[name][0] for name in ("unknown", "skipped", "failed")
        ]
        assert all(type(value) is float for column in logs.values() for value in column)
        assert [min(1.0, TOTALS[fate] or 0.0)] == told["scores"]
    if place == "/verify":
        masked = fate in (RowFate.SKIPPED, RowFate.UNKNOWN)
        assert masked is told["mask_sample"]
        assert masked is told.get("instance_config", {}).get("mask_sample", False)
        assert (fate is RowFate.UNKNOWN) == ("_ng_failure_class" in told)
        assert (fate in (RowFate.UNKNOWN, RowFate.FAILED)) == ("failure_kind" in told)
        assert (3, "4") == (told["_ng_task_index"], told["answer"])
    if place == "/evaluate":
        assert (fate in (RowFate.SCORED, RowFate.FAILED)) is told["is_score_valid"]
        assert (fate is RowFate.UNKNOWN) == (told["error"] is not None)
        assert all(0 <= one["score"] <= 1 and one["reason"] for one in told["metrics"].values())


def test_the_table_is_in_the_documentation(root: Path) -> None:
    """The how-to has a row for each route with the number of each fate."""
    page = (root / "docs" / "how-to" / "serve-rewards.md").read_text(encoding="utf-8")
    page = page.partition("## What becomes of a failure")[2]
    for place, fates in TABLE.items():
        row = re.search(rf"^\| `{place}` \|(.*)\|$", page, re.M)
        assert row is not None, place
        assert [fates[fate].number for fate in RowFate] == [cell.strip().strip("`") for cell in row[1].split("|")][:4]


def test_slime_may_be_told_more(served: Served) -> None:
    """With a key the reply is an object that has it; NaN stands for no score where that is asked for."""
    _, body = _asked("/slime", "unknown")
    told = served.post("/slime?reward_key=score", body).json
    assert (0.0, 1.0) == (told["score"], told["unknown"])
    assert math.isnan(served.post("/slime?unknown=nan", body).json)
    assert (422, "unknown='no': expected zero or nan") == (
        (reply := served.post("/slime?unknown=no", body)).status,
        reply.error,
    )


def test_empty_lists_are_answered(served: Served) -> None:
    """OpenRLHF with several addresses sends empty lists to all but the first."""
    told = served.post("/get_reward", {"query": [], "prompts": [], "labels": []})
    assert (200, [], []) == (told.status, told.json["rewards"], told.json["scores"])
    assert [] == served.post("/v1/score", {"rollouts": []}).json["totals"]


def test_rows_come_as_lines_on_request(served: Served) -> None:
    """With NDJSON each line is a row with its place."""
    body = {"rollouts": [{"prompt": "p", "completion": said} for said in ("right", "skip")], "step": 3, "epoch": 0.5}
    reply = served.post("/v1/score", body, {"accept": "application/x-ndjson"})
    rows = [json.loads(line) for line in reply.body.splitlines()]
    assert [(0, 1.0), (1, None)] == [(row["row"], row["total"]) for row in rows]


def test_gym_has_a_session_and_metrics(served: Served) -> None:
    """A session holds nothing; masked rows are counted, and in no mean."""
    assert {} == served.post("/seed_session", {"any": "thing"}).json
    rows = [{"_ng_task_index": task, "reward": value} for task, value in ((0, 1.0), (0, 0.0), (1, 1.0))]
    told = served.post("/aggregate_metrics", {"verify_responses": [*rows, {"reward": 0.0, "mask_sample": True}]}).json
    assert (2 / 3, 1) == (told["agent_metrics"]["mean/reward"], told["agent_metrics"]["masked"])
    assert [0.5, 1.0] == [group["mean/reward"] for group in told["group_level_metrics"]]
    assert {"mean/reward": 2 / 3} == told["key_metrics"]
    odd = served.post("/aggregate_metrics", {"verify_responses": [{"_ng_task_index": [0], "reward": 1.0}]})
    assert (422, "_ng_task_index: expected a whole number, got [0]") == (odd.status, odd.json["error"])
    huge = {"reward": 1.0, "seconds": 10**400, "bytes": 1e300}
    assert ["mean/reward"] == [*served.post("/aggregate_metrics", {"verify_responses": [huge]}).json["key_metrics"]]


def test_a_field_of_a_row_of_gyms_is_not_overwritten(served: Served) -> None:
    """A reward of its name has its score under another."""
    place, body = _asked("/verify", "right")
    told = served.post(place, {**body, "graded": "the row's own"}).json
    assert ("the row's own", served.post(place, body).json["graded"]) == (told["graded"], told["reward/graded"])


def test_a_tool_call_of_gyms_is_one_of_the_conversation(served: Served) -> None:
    """Items of OpenAI's Responses format become messages, calls and answers of tools included."""
    place, body = _asked("/verify", "right")
    body["response"]["output"][:0] = [
        {"type": "reasoning", "summary": []},
        {"type": "function_call", "call_id": "c1", "name": "add", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "4"},
    ]
    assert 1.0 == served.post(place, body).json["reward"]


def test_it_says_how_it_is(served: Served) -> None:
    """Probes, counters, rewards and the description are there, and the description has every address."""
    assert [{"ok": True}] * 3 == [served.ask("GET", path).json for path in ("/livez", "/health", "/readyz")]
    assert {"graded": "single", "stood_in": "single"} == served.ask("GET", "/v1/rewards").json["rewards"]
    paths = served.ask("GET", "/openapi.json").json["paths"]
    assert {place: method.lower() for place, method in module.ADDRESSES.items()} == {
        place: next(iter(methods)) for place, methods in paths.items()
    }
    served.post(*_asked("/slime", "right"))
    text = served.ask("GET", "/metrics").body.decode()
    assert re.search(r'^rewardkit_requests_total\{route="/slime",status="200"\} [1-9]', text, re.M)
    assert re.search(r'^rewardkit_rollouts_total\{fate="scored"\} [1-9]', text, re.M)
    assert "rewardkit_rows_inside 0.0" in text


WRONG: dict[str, tuple[str, Any, int, str]] = {
    "no JSON": ("/v1/score", b"{", 400, "not JSON"),
    "NaN": ("/v1/score", b'{"rollouts": [NaN]}', 400, "NaN is not a JSON number"),
    "infinite": ("/v1/score", b'{"rollouts": [1e999]}', 400, "too large for a number"),
    "not UTF-8": ("/v1/score", b'{"a": "\xff"}', 400, "not UTF-8"),
    "deep": ("/v1/score", b"[" * 40 + b"]" * 40, 400, "nested deeper than 32 layers"),
    "deepest": ("/v1/score", b'{"a":' * 200_000 + b"1" + b"}" * 200_000, 400, "nested deeper than 32 layers"),
    "a list": ("/v1/score", [], 422, "the body: expected an object, got []"),
    "a word": ("/get_reward", {"query": "x", "prompts": [], "labels": []}, 422, "query: expected a list"),
    "uneven": ("/get_reward", {"query": ["x"], "prompts": [], "labels": []}, 422, "1 query, 0 prompts, 0 labels"),
    "a number": ("/get_reward", {"query": [1], "prompts": ["x"], "labels": [1]}, 422, "query[0]: expected a string"),
    "no rollout": ("/v1/score", {"rollouts": [3]}, 422, "rollouts[0]: expected an object, got 3"),
    "no completion": ("/v1/score", {"rollouts": [{"prompt": "p"}]}, 422, "rollouts[0].completion: expected a string"),
    "a wrong field": ("/v1/score", {"rollouts": [{"promt": "p"}]}, 422, "unknown field 'promt'"),
    "a wrong example": (
        "/v1/score",
        {"rollouts": [{"prompt": "p", "completion": "c", "example": [1]}]},
        422,
        "rollouts[0].example: expected an object, got [1]",
    ),
    "a column beside": (
        "/v1/score",
        {"rollouts": [{"prompt": "p", "completion": "c", "answer": "4", "level": 1}]},
        422,
        "unknown fields 'answer', 'level'; there are prompt, completion, example, completion_ids and sample; columns",
    ),
    "rows alone": ("/v1/score", [{"prompt": "p"}], 422, '; /v1/score takes {"rollouts": [{"prompt": '),
    "columns of lists": ("/v1/score", {"prompts": []}, 422, '; /v1/score takes {"rollouts": [{"prompt": '),
    "nothing": ("/v1/score", {}, 422, "rollouts is missing in the body: expected a list; /v1/score takes"),
    "another's address": (
        "/score",
        {"prompts": ["a"]},
        422,
        "messages is missing in the body: expected a list; it has 'prompts'; /score reads what LLaMA-Factory sends",
    ),
    "a list to a trainer's": ("/verify", [], 422, "got []; /verify reads what NeMo Gym sends"),
    "a wrong step": ("/v1/score", {"rollouts": [], "step": -1}, 422, "step: expected a whole number of 0 or more"),
    "a true step": ("/v1/score", {"rollouts": [], "step": True}, 422, "step: expected a whole number"),
    "a wrong message": ("/evaluate", {"messages": [{"role": 3}]}, 422, "messages[0]: expected a message with a role"),
    "no assistant": ("/evaluate", {"messages": [{"role": "user", "content": "x"}]}, 422, "no message of the assistant"),
    "no response": ("/verify", {"responses_create_params": {"input": "x"}}, 422, "response: expected an object"),
    "a million rows": ("/score", {"messages": ["x"] * 1_000_000}, 413, "1,000,000 rows, and a request may have 8,192"),
}


@pytest.mark.parametrize(("place", "body", "status", "said"), WRONG.values(), ids=WRONG)
def test_a_wrong_request_is_told_what_is_wrong(served: Served, place: str, body: Any, status: int, said: str) -> None:
    """The answer has the right status and one line that names the field and what was expected."""
    reply = served.post(place, body)
    assert status == reply.status
    assert said in reply.error


@pytest.mark.parametrize(
    "path",
    ["/", "//v1/score", "/v1/../v1/score", "/v1/%2e%2e/score", "/v1/score//", "/v1%2fscore", "/t/", "/../etc/passwd"],
)
def test_no_other_path_leads_anywhere(served: Served, path: str) -> None:
    """An address that is none of the server's, but for a slash at its end, is answered by 404."""
    assert 404 == served.post(path, {}).status


def test_a_wrong_method_is_told_the_right_one(served: Served) -> None:
    """405 names it."""
    reply = served.ask("GET", "/v1/score")
    assert (405, "POST") == (reply.status, reply.headers["allow"])
    assert 405 == served.post("/metrics", {}).status


def test_a_huge_body_is_refused_and_takes_no_memory(served: Served) -> None:
    """A gigabyte that is announced is not read; one that is streamed ends at the limit; others are scored meanwhile."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    head = b"POST /v1/score HTTP/1.1\r\nhost: localhost\r\n"
    announced = served.raw(head + b"content-length: 1000000000\r\n\r\n", b"{")
    assert announced.startswith(b"HTTP/1.1 413 ")
    assert b"more than 33,554,432 bytes" in announced
    piece = b"100000\r\n" + b" " * 2**20 + b"\r\n"
    with ThreadPoolExecutor(2) as threads:
        streamed = threads.submit(served.raw, head + b"transfer-encoding: chunked\r\n\r\n", *([piece] * 1_000))
        assert 1.0 == served.post(*_asked("/slime", "right")).json
        assert streamed.result().startswith((b"HTTP/1.1 413 ", b""))
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert after - before < 200_000  # kB


def test_a_body_that_never_ends_is_given_up(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that sends a byte now and then is told so, and holds up nobody."""
    monkeypatch.setattr(module, "BODY_S", 0.05)
    answer = served.raw(b"POST /v1/score HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\n{")
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert 1.0 == served.post(*_asked("/slime", "right")).json


def test_all_bodies_together_have_a_limit(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not fit is answered by 503, to be tried again; all is given back."""
    monkeypatch.setattr(module, "ALL_BYTES", 1_000)
    reply = served.post("/v1/score", b" " * 2_000)
    assert (503, "1") == (reply.status, reply.headers["retry-after"])
    assert 1.0 == served.post(*_asked("/slime", "right")).json


def test_a_query_that_is_not_behind_its_prompt_is_logged(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    """The whole of it is scored, because templates differ; the log says which one."""
    body = {"query": ["2+2=right", "3+3=right"], "prompts": ["2+2=", "2+2="], "labels": ["4", "4"]}
    assert [1.0, 1.0] == served.post("/get_reward", body).json["rewards"]
    assert any("query[1] does not begin with prompts[1]" in message for message in caplog.messages)


def test_a_check_names_columns_that_are_missing() -> None:
    """A reward that needs a column says so of each row without it, and a client's own check says it once."""

    @reward
    def typed(completion: str, answer: int, note: str = "") -> float:
        return 1.0

    with Runtime([typed], workers=1) as runtime, reward_server(runtime) as server:
        rows = [{"answer": "4"}, {"answer": "four"}, {}, {"anwser": "4"}]
        misfits = server.post("/v1/check", {"reward": "typed", "examples": rows}).json["misfits"]
        assert [[1, "answer"], [2, "answer"], [3, "answer"]] == [misfit[:2] for misfit in misfits]
        assert "column 'answer' is missing" == misfits[1][2]
        hint = "the data has the near name 'anwser': use one name in data and reward"
        assert f"column 'answer' is missing; {hint}" == misfits[2][2]
        with RemoteRuntime(server.url) as remote:
            assert [1] == [misfit.row for misfit in remote.rewards["typed"].misfits(rows)]


def test_a_token_is_needed_in_the_header_or_the_address(runtime: Runtime, caplog: pytest.LogCaptureFixture) -> None:
    """Without it all but the probes are refused; it stands in no line of the log."""
    place, body = _asked("/get_reward", "right")
    with reward_server(runtime, token=TOKEN) as served:
        assert 401 == served.post(place, body).status
        assert 401 == served.post(place, body, {"authorization": "Bearer another-token"}).status
        assert 401 == served.post(f"/t/another-token{place}", body).status
        assert 401 == served.ask("GET", "/metrics").status == served.ask("GET", "/nothing").status
        assert 200 == served.ask("GET", "/livez").status == served.ask("GET", "/readyz").status
        assert 200 == served.post(place, body, {"authorization": f"Bearer {TOKEN}"}).status
        assert 200 == served.post(f"/t/{TOKEN}{place}", body).status
        assert 422 == served.post(f"/t/{TOKEN}{place}", {}).status
        assert 404 == served.post(f"/t/{TOKEN}/nothing", {}).status
    assert caplog.messages
    assert TOKEN not in caplog.text


@pytest.mark.parametrize("headers", [{"origin": "http://localhost"}, {"host": "evil.example"}])
def test_without_a_token_no_page_in_a_browser_may_ask(served: Served, headers: dict[str, str]) -> None:
    """A page of another site, or a name that was rebound, is refused."""
    assert 401 == served.post(*_asked("/slime", "right"), headers).status


def test_rows_of_one_prompt_wait_for_each_other() -> None:
    """With a group size single requests are scored as groups; a late one is unknown, and says so."""
    with Runtime([shortest], workers=1) as runtime, reward_server(runtime, group_size=4, group_wait_s=0.3) as served:
        asked = [_asked("/get_reward", "x" * size) for size in (3, 1, 2, 4)]
        with ThreadPoolExecutor(4) as threads:
            told = [reply.json for reply in threads.map(lambda one: served.post(*one), asked)]
        assert [0.0, 1.0, 0.0, 0.0] == [one["rewards"][0] for one in told]
        late = served.post(*_asked("/get_reward", "y")).json
        assert ([0.0], [1.0]) == (late["rewards"], late["extra_logs"]["unknown"])


def test_one_row_of_v1_score_waits_and_several_are_whole_groups() -> None:
    """Unless the request says otherwise; a row alone is never the best of a group of one."""
    with Runtime([shortest], workers=1) as runtime, reward_server(runtime, group_size=3, group_wait_s=60.0) as served:

        def totals(*said: str, **more: Any) -> list[float | None]:
            rows = [{"prompt": "p", "completion": one} for one in said]
            told: list[float | None] = served.post("/v1/score", {"rollouts": rows, **more}).json["totals"]
            return told

        with ThreadPoolExecutor(3) as threads:
            assert [[0.0], [1.0], [0.0]] == list(threads.map(totals, ("xxx", "x", "xx")))
        assert [0.0, 1.0] == totals("xx", "x")
        assert [1.0] == totals("xx", gather=False)
        with ThreadPoolExecutor(2) as threads:
            pair = threads.submit(totals, "xx", "xxx", gather=True)
            assert ([1.0], [0.0, 0.0]) == (totals("x"), pair.result())


def test_a_client_that_hangs_up_may_ask_again() -> None:
    """A row that was sent, given up and sent again has one place in its group."""
    with Runtime([shortest], workers=1) as runtime, reward_server(runtime, group_size=2, group_wait_s=30.0) as served:
        _, body = _asked("/slime", "xx")
        raw = json.dumps(body).encode()
        head = f"POST /slime HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(raw)}\r\n\r\n".encode()
        import socket

        with socket.create_connection(("127.0.0.1", served.port)) as gone:
            gone.sendall(head + raw)
            _until(served, "rewardkit_rows_gathering 1.0")
        with ThreadPoolExecutor(2) as threads:
            _until_left(served)
            again = threads.submit(served.post, "/slime", body)
            other = threads.submit(served.post, *_asked("/slime", "x"))
            assert (0.0, 1.0) == (again.result().json, other.result().json)


def _until(served: Served, line: str) -> None:
    waited = threading.Event()
    for _ in range(600):
        if line in served.ask("GET", "/metrics").body.decode():
            return
        waited.wait(0.02)
    raise AssertionError(f"never said {line}")


def _until_left(served: Served) -> None:
    """Wait until the server knows that a client hung up."""
    waited = threading.Event()
    gathering = served.app._gathering
    assert gathering is not None
    for _ in range(600):
        if gathering._left:
            return
        waited.wait(0.02)
    raise AssertionError("the client never left")


def test_group_rewards_without_a_group_size_are_refused() -> None:
    """Single requests cannot be compared; the answer names the option. Whole groups in a request can be."""
    with Runtime([shortest], workers=1) as runtime, reward_server(runtime) as served:
        reply = served.post(*_asked("/get_reward", "x"))
        assert (422, True) == (reply.status, "start with --group-size" in reply.error)
        assert 200 == served.post("/get_reward", {"query": [], "prompts": [], "labels": []}).status


def test_a_request_that_never_fits_is_not_told_to_come_again(runtime: Runtime) -> None:
    """It is too large and not early: 413 and no 503."""
    place, body = _asked("/v1/score", "right")
    with reward_server(runtime, most_rows=2) as served:
        reply = served.post(place, {"rollouts": body["rollouts"] * 3})
        assert (413, "rollouts: 3 rows, and a request may have 2; send several") == (reply.status, reply.error)
        assert 200 == served.post(place, {"rollouts": body["rollouts"] * 2}).status


def test_overload_and_the_end_lose_no_request_that_was_taken(runtime: Runtime) -> None:
    """Many clients at once, of which few fit, and then the end: each is answered by its score or by 503."""
    place, body = _asked("/v1/score", "right")
    body["rollouts"] *= 8
    answers: list[tuple[int, bool]] = []
    stop = threading.Event()

    def client() -> None:
        for _ in range(40):
            try:
                reply = served.post(place, body)
            except OSError:  # it listens no more
                return
            right = reply.json["totals"] == [1.0] * 8 if reply.status == 200 else "retry-after" in reply.headers
            answers.append((reply.status, right))
            if len(answers) > 60:
                stop.set()

    with reward_server(runtime, most_rows=64) as served:
        clients = [threading.Thread(target=client) for _ in range(24)]
        for one in clients:
            one.start()
        assert stop.wait(120)
        served.server.handle_exit(15, None)
        for one in clients:
            one.join(120)
    assert {200, 503} >= {status for status, _ in answers}
    assert all(right for _, right in answers)
    assert 0 == served.app.active


@pytest.mark.parametrize("address", module.ADDRESSES)
def test_a_slash_at_the_end_makes_no_difference(served: Served, address: str) -> None:
    """A request is answered or refused as without; two slashes are another address, which is none."""
    method = module.ADDRESSES[address]
    body = {} if method == "POST" else None
    reply, slashed = (served.ask(method, path, body) for path in (address, f"{address}/"))
    assert reply.status == slashed.status != 404
    assert reply.body == slashed.body or address == "/metrics"
    assert 404 == served.ask(method, f"{address}//", body).status
