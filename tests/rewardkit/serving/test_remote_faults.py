"""The client of reward servers under faults: no reward reaches the wrong completion, and every wait ends."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from patience import wait_for
from reward_servers import Served, reward_server
from serve_processes import serving

from rewardkit import Cause, DataError, InfrastructureError, Rollout, Runtime, RuntimeClosedError, reward
from rewardkit.serving import JoinedRuntime, RemoteRuntime, packing
from rewardkit.serving import remote as module
from rewardkit.serving.outages import OutageLog


@reward(default=None)
def told(completion: str) -> float:
    """Score a completion by the number that it holds, so that a score tells whose it is."""
    return float(completion.partition(" ")[0])


ROWS = [Rollout(f"p{number // 4}", f"{number} {'x' * 50}") for number in range(600)]
TOTALS = [float(number) for number in range(600)]


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with Runtime([told], workers=1) as runtime, reward_server(runtime) as made:
        runtime.wait_loaded()
        yield made


WITHOUT_END_S = 1.5
"""Seconds after which an answer that does not end is given up; a good server is far quicker."""
Fault = Callable[[BaseHTTPRequestHandler, bytes], None]


class Proxy(NamedTuple):
    """A server before a server, which spoils answers.

    Attributes:
        url: Where it listens.
        faults: What becomes of the next answers, one each; an answer without a fault is passed on.
        seen: How many answers it gave.
    """

    url: str
    faults: list[Fault | None]
    seen: list[str]


@contextlib.contextmanager
def _proxy(served: Served, *faults: Fault | None, always: Fault | None = None) -> Iterator[Proxy]:
    left, seen, over = list(faults), [], threading.Event()  # type: ignore[var-annotated]

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: object) -> None:
            pass

        def _pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            reply = served.ask(self.command, self.path, body or None)
            seen.append(self.path)
            fault = None if self.path != "/v1/score" else left.pop(0) if left else always
            with contextlib.suppress(OSError):
                if fault is not None:
                    fault(self, reply.body)
                else:
                    _answer(self, reply.status, reply.body)

        do_GET = do_POST = _pass_on

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads, server.over = True, over  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield Proxy(f"http://127.0.0.1:{server.server_port}", left, seen)
    finally:
        over.set()
        server.shutdown()
        thread.join()
        server.server_close()


def _answer(handler: BaseHTTPRequestHandler, status: int, body: bytes, announced: int | None = None) -> None:
    handler.send_response(status)
    handler.send_header("content-type", "application/json")
    handler.send_header("content-length", str(len(body) if announced is None else announced))
    handler.end_headers()
    handler.wfile.write(body)


def _cut_off(handler: BaseHTTPRequestHandler, body: bytes) -> None:
    _answer(handler, 200, body[: len(body) // 2], len(body))
    handler.close_connection = True


def _hung_up(handler: BaseHTTPRequestHandler, body: bytes) -> None:
    handler.close_connection = True
    handler.connection.shutdown(socket.SHUT_RDWR)


def _silent(handler: BaseHTTPRequestHandler, body: bytes) -> None:
    handler.server.over.wait(60)  # type: ignore[attr-defined]
    handler.close_connection = True


def _dripping(handler: BaseHTTPRequestHandler, body: bytes) -> None:
    handler.send_response(200)
    handler.send_header("content-length", str(len(body)))
    handler.end_headers()
    for place in range(len(body)):
        handler.wfile.write(body[place : place + 1])
        if handler.server.over.wait(0.05):  # type: ignore[attr-defined]
            return


def _changed(change: Callable[[Any], object]) -> Fault:
    def fault(handler: BaseHTTPRequestHandler, body: bytes) -> None:
        answer = json.loads(body)
        change(answer)
        _answer(handler, 200, json.dumps(answer).encode())

    return fault


def _status(status: int) -> Fault:
    return lambda handler, body: _answer(handler, status, b'{"error": "the server is full"}')


RESTARTED = """
from rewardkit import reward

@reward
def told(completion: str) -> float:
    return float(completion)
"""
FAULTS: dict[str, Fault] = {
    "cut off": _cut_off,
    "hung up": _hung_up,
    "full": _status(503),
    "a proxy's fault": _status(502),
    "a fault": _status(500),
    "no JSON": lambda handler, body: _answer(handler, 200, b"<html>"),
    "null": lambda handler, body: _answer(handler, 200, b"null"),
    "a row less": _changed(lambda answer: answer["rows"].pop()),
    "a row more": _changed(lambda answer: answer["rows"].append(answer["rows"][0])),
    "no outcomes": _changed(lambda answer: answer["rows"][0].pop("outcomes")),
    "an unknown status": _changed(lambda answer: answer["rows"][0]["outcomes"]["told"].update(status="fine")),
    "another version": _changed(lambda answer: answer["versions"].update(told="0" * 12)),
    "no versions": _changed(lambda answer: answer.pop("versions")),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_spoilt_answer_is_asked_for_again(served: Served, fault: Fault) -> None:
    """Every completion gets its own score in the end, though the first answers are spoilt."""
    with _proxy(served, fault, None, fault) as proxy, RemoteRuntime(proxy.url, retry_s=30) as remote:
        assert TOTALS == remote.score(ROWS).totals
        assert TOTALS[:1] == remote.score(ROWS[:1]).totals
        assert [] == proxy.faults


@pytest.mark.parametrize("fault", [*FAULTS.values(), _silent, _dripping], ids=[*FAULTS, "silent", "dripping"])
def test_one_of_two_servers_may_be_bad_for_good(served: Served, fault: Fault) -> None:
    """The other one is asked, and the wait for the bad one ends."""
    timeout_s = WITHOUT_END_S if fault in (_silent, _dripping) else 60.0
    with _proxy(served, always=fault) as bad, RemoteRuntime([bad.url, served.url], timeout_s=timeout_s) as remote:
        assert TOTALS == remote.score(ROWS).totals
        assert bad.seen.count("/v1/score") > 0


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (_silent, "does not answer"),
        (_dripping, "does not answer"),
        (_cut_off, "does not answer: IncompleteRead"),
        (_status(503), "answered 503: the server is full"),
        (FAULTS["a row less"], r"answered 2 rows where 3 were asked"),
        (FAULTS["another version"], r"serves told 0{12} now, and \w+ when this client was made"),
    ],
    ids=["silent", "dripping", "cut off", "full", "a row less", "another version"],
)
def test_what_is_spoilt_for_good_is_lost_and_says_why(served: Served, fault: Fault, said: str) -> None:
    """No score is made up: the rows failed for infrastructure, with the address and what was wrong."""
    timeout_s = WITHOUT_END_S if fault in (_silent, _dripping) else 60.0
    with _proxy(served, always=fault) as bad:
        with RemoteRuntime(bad.url, timeout_s=timeout_s, retry_s=0.3, max_infrastructure_rate=1.0) as remote:
            batch = remote.score(ROWS[:3])
        assert [None] * 3 == batch.totals
        assert {Cause.INFRASTRUCTURE} == {one.cause for one in batch["told"]}
        error = batch["told"][0].error or ""
        assert bad.url in error
        with pytest.raises(InfrastructureError, match=said):
            raise InfrastructureError(error)


def test_long_rows_travel_in_several_requests(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request stays below what a server takes, though a step's completions together do not; groups stay whole."""
    monkeypatch.setattr(packing, "ROWS_BYTES", 2_000)
    with _proxy(served) as proxy, RemoteRuntime(proxy.url) as remote:
        assert TOTALS == remote.score(ROWS).totals
        assert 150 / 4 <= proxy.seen.count("/v1/score") <= 150


def test_what_is_no_reward_server_is_said_at_the_start(served: Served) -> None:
    """An address that answers something else, or not at all, is named."""

    class Other(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            _answer(self, 200, b"{}")

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Other)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        with pytest.raises(InfrastructureError, match="is not a reward server"):
            RemoteRuntime([served.url, f"http://127.0.0.1:{server.server_port}"], retry_s=0)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.slow
def test_a_server_may_be_restarted_in_the_middle(tmp_path: Path) -> None:
    """Requests of that time are asked again, and each completion gets its own score."""
    path = tmp_path / "rewards_restarted.py"
    path.write_text(RESTARTED)
    rows = [Rollout("p", str(number)) for number in range(20)]
    scored: list[bool] = []
    is_over = threading.Event()

    def train(remote: RemoteRuntime) -> None:
        while not is_over.is_set():
            scored.append(remote.score(rows).totals == [float(number) for number in range(20)])

    with contextlib.ExitStack() as stack:
        first = stack.enter_context(serving(path))
        remote = stack.enter_context(RemoteRuntime(first.url, retry_s=60))
        training = stack.enter_context(ThreadPoolExecutor(1)).submit(train, remote)
        assert wait_for(lambda: len(scored) > 5)
        first.process.kill()
        first.process.wait(60)
        before = len(scored)
        stack.enter_context(serving(path, port=first.port))
        assert wait_for(lambda: len(scored) > before + 5)
        is_over.set()
        training.result(60)
    assert all(scored)


def test_a_client_that_is_closed_waits_no_longer(served: Served) -> None:
    """A thread that tries again gives up soon after another one has closed the client."""
    with _proxy(served, always=_status(503)) as bad:
        remote = RemoteRuntime(bad.url, retry_s=600, max_infrastructure_rate=1.0)
        with ThreadPoolExecutor(1) as threads:
            waiting = threads.submit(remote.score, ROWS[:1])
            assert wait_for(lambda: bad.seen.count("/v1/score") > 1)
            remote.close()
            assert [None] == waiting.result(60).totals  # and not after its 600 s


@pytest.mark.parametrize("joins", [False, True], ids=["remote", "joined"])
def test_a_client_that_is_closed_waits_for_no_answer(
    served: Served, monkeypatch: pytest.MonkeyPatch, *, joins: bool
) -> None:
    """What a server was asked is lost once the client is closed, and what it was not asked yet ends the batch."""
    monkeypatch.setattr(module, "ROWS", 4)
    monkeypatch.setattr("rewardkit.serving.joined_runtime.CLOSE_S", 0.2)
    with _proxy(served, always=_silent) as silent, ThreadPoolExecutor(2) as threads:
        remote = RemoteRuntime(silent.url, timeout_s=120, max_infrastructure_rate=1.0)
        runtime = JoinedRuntime(remote) if joins else remote
        one = threads.submit(runtime.score, ROWS[:1])
        assert wait_for(lambda: silent.seen.count("/v1/score") == 1)
        many = threads.submit(runtime.score, ROWS[1:])
        assert wait_for(lambda: silent.seen.count("/v1/score") == module.CONNECTIONS)
        runtime.close()
        assert [None] == one.result(60).totals
        with pytest.raises(RuntimeClosedError, match="closed before all was scored"):
            many.result(60)
    assert "rewardkit-joined" not in [thread.name for thread in threading.enumerate()]


def test_a_connection_that_was_idle_may_be_closed(served: Served) -> None:
    """A server that hangs up between two batches costs no row, also where nothing is tried again."""

    def answered(handler: BaseHTTPRequestHandler, body: bytes) -> None:
        _answer(handler, 200, body)
        handler.close_connection = True

    with _proxy(served, always=answered) as proxy, RemoteRuntime(proxy.url, retry_s=0) as remote:
        assert [TOTALS[:1]] * 3 == [remote.score(ROWS[:1]).totals for _ in range(3)]


def test_wrong_rows_are_an_error_and_not_lost(served: Served) -> None:
    """What a server refuses is not asked again elsewhere."""
    with _proxy(served, always=_status(422)) as bad, RemoteRuntime([bad.url, served.url]) as remote:
        with pytest.raises(DataError, match="answered 422: the server is full"):
            remote.score(ROWS[:1])
        assert 1 == bad.seen.count("/v1/score")


def _of_another_version(answer: Any) -> None:
    answer["versions"]["told"] = "ffffffffffff"


@pytest.mark.parametrize("door", ["score", "stream", "joined"])
@pytest.mark.parametrize(
    ("faults", "patience_s", "lines"),
    [
        ([], 0.0, []),
        ([_hung_up, _hung_up, _hung_up], 0.0, ["does not answer: .*; it is asked again until ", "answers, after "]),
        (
            [_status(503), _cut_off],
            0.0,
            ["answered 503: the server is full; it is asked again until ", "answers, after "],
        ),
        ([_hung_up, _hung_up], 100.0, []),
        (
            [_changed(_of_another_version)] * 3,
            100.0,
            ["serves told ffffffffffff now, and .*; it is asked again until "],
        ),
    ],
    ids=["well", "hung up", "busy", "briefly", "version"],
)
def test_a_client_logs_what_it_waits_for_while_it_scores(
    door: str,
    faults: list[Fault | None],
    patience_s: float,
    lines: list[str],
    served: Served,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A line when an outage lasts and one when it ends; of another version at once; how to wait for another time."""
    monkeypatch.setattr("rewardkit.serving.outages.PATIENCE_S", patience_s)
    with _proxy(served, *faults) as proxy, RemoteRuntime(proxy.url, retry_s=30) as remote:
        if door == "stream":
            assert 1 == len(list(remote.stream(ROWS[:1])))
        else:
            runtime = JoinedRuntime(remote) if door == "joined" else remote
            assert TOTALS[:1] == runtime.score(ROWS[:1]).totals
            runtime.close()
    logged = [record.getMessage() for record in caplog.records if record.name == "rewardkit.serving.remote"]
    assert len(lines) == len(logged)
    assert all(re.match(f"{proxy.url} {line}", text) for line, text in zip(lines, logged, strict=True))
    assert all("(retry_s=30 of RemoteRuntime)" in text for text in logged[:1])


def test_one_outage_of_many_requests_is_one_line(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Requests at once and one after another share it; where they are given up, the next batch logs anew."""
    monkeypatch.setattr(module, "ROWS", 4)
    monkeypatch.setattr("rewardkit.serving.outages.PATIENCE_S", 0.0)
    settings: dict[str, Any] = {"retry_s": 0.3, "max_infrastructure_rate": 1.0}
    with _proxy(served, always=_hung_up) as proxy, RemoteRuntime(proxy.url, **settings) as remote:
        for batches in (1, 2):
            assert [None] * 40 == remote.score(ROWS[:40]).totals
            assert batches == sum("asked again" in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_each_outage_has_its_two_lines(
    count: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """However many tries an outage has, and however many answers come between two."""
    monkeypatch.setattr("rewardkit.serving.outages.PATIENCE_S", 0.0)
    log = OutageLog("retry_s", 120.0)
    for number in range(count):
        begin = time.monotonic()
        for _ in range(number + 1):
            log.note_failure("http://a does not answer", begin, begin + 1, begin + 120)
        for _ in range(number + 1):
            log.note_answer("http://a")
    assert ["asked again" in record.getMessage() for record in caplog.records] == [True, False] * count


def test_a_connection_that_does_not_open_is_given_up(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that is off answers no attempt; the client asks another server long before ``timeout_s``."""
    with socket.socket() as full, contextlib.ExitStack() as stack, _proxy(served) as proxy:
        remote = stack.enter_context(RemoteRuntime([proxy.url, served.url], timeout_s=600))
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        stack.enter_context(socket.create_connection(full.getsockname()))  # its queue is full
        monkeypatch.setattr("rewardkit.serving.server_link.CONNECT_S", 0.1)
        remote._links[0]._port = full.getsockname()[1]
        assert TOTALS[:1] == remote.score(ROWS[:1]).totals
