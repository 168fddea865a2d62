"""Hostile clients of a real server: each gets a clear refusal, memory stays bounded, others are scored meanwhile."""

from __future__ import annotations

import contextlib
import gzip
import itertools
import json
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from patience import wait_for
from serve_processes import STACKS, WAIT_S, Serving, received, serving, use_stack

pytestmark = pytest.mark.slow  # seconds, for slow clients are waited for
TOKEN = "a-token-of-the-tests"
BEARER = {"authorization": f"Bearer {TOKEN}"}
REWARDS = """
from rewardkit import reward

@reward
def right(completion: str, answer: str) -> float:
    return float(completion == answer)
"""
LIMITS = """
app.BODY_S, app.LINGER_S, listening.IDLE_S, listening.CROWDED_S = 3.0, 1.0, 3.0, 1.0
server.MOST_CONNECTIONS = 200
"""
GIGABYTE = 2**30
MEMORY_BYTES = 300 * 2**20
"""What the process may grow by at most; one body may have 32 MiB, and all of them 256 MiB."""


@pytest.fixture(scope="module", params=STACKS)
def served(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Serving]:
    path = tmp_path_factory.mktemp("hostile") / "rewards_among_enemies.py"
    path.write_text(REWARDS)
    with use_stack(request.param), serving(path, limits=LIMITS, env={"REWARDKIT_SERVE_TOKEN": TOKEN}) as made:
        yield made


@pytest.fixture(autouse=True)
def _others(served: Serving) -> Iterator[None]:
    """Ask for scores all the while, and find each of them right, in an answer without a fault."""
    stop, wrong = threading.Event(), []
    expected = [1.0, 0.0]

    def ask() -> None:
        for asked in itertools.count():
            number = str(asked)
            body = {"query": [f"p{number}", "pno"], "prompts": ["p", "p"], "labels": [number, number]}
            reply = served.ask("POST", "/get_reward", body, BEARER)
            if reply.status != 200 or reply.json["rewards"] != expected:
                wrong.append(reply)
            if stop.wait(0.01):
                return

    before = served.rss_bytes
    client = threading.Thread(target=ask)
    client.start()
    try:
        yield
    finally:
        stop.set()
        client.join(WAIT_S)
    assert not client.is_alive()
    assert [] == wrong
    assert served.process.poll() is None
    assert served.rss_bytes - before < MEMORY_BYTES


def _head(path: str = "/v1/score", *lines: str, token: str | None = TOKEN, method: str = "POST") -> bytes:
    bearer = [] if token is None else [f"authorization: Bearer {token}"]
    return "\r\n".join([f"{method} {path} HTTP/1.1", "host: localhost", *bearer, *lines, "", ""]).encode()


def _status(answer: bytes) -> int:
    assert answer.startswith(b"HTTP/1.1 "), answer[:200]
    return int(answer[9:12])


def _sent(connection: socket.socket, pieces: Iterator[bytes]) -> int:
    """Send until the other side hangs up, and return how many bytes went."""
    sent = 0
    with contextlib.suppress(OSError):
        for piece in pieces:
            connection.sendall(piece)
            sent += len(piece)
    return sent


@pytest.mark.parametrize("is_announced", [True, False], ids=["announced", "streamed"])
@pytest.mark.parametrize("token", [TOKEN, "another-token"], ids=["token", "no token"])
def test_a_gigabyte_is_refused_before_it_has_come(served: Serving, is_announced: bool, token: str) -> None:
    """The answer comes while the client still sends, and then the server hangs up; little of it was kept."""
    piece = b" " * 2**20
    before = served.rss_bytes
    lines = [f"content-length: {GIGABYTE}"] if is_announced else ["transfer-encoding: chunked"]
    chunk = piece if is_announced else b"100000\r\n" + piece + b"\r\n"
    with served.connected() as connection:
        connection.sendall(_head("/v1/score", *lines, token=token))
        told: list[bytes] = []
        reader = threading.Thread(target=lambda: told.append(received(connection)))
        reader.start()
        sent = _sent(connection, itertools.repeat(chunk, GIGABYTE // len(piece)))
        reader.join(WAIT_S)
        assert not reader.is_alive()
    assert (413 if token == TOKEN else 401) == _status(told[0])
    assert sent < GIGABYTE / 4
    assert (token == TOKEN) == (b"more than 33,554,432 bytes; send fewer rows at once" in told[0])
    assert served.rss_bytes - before < MEMORY_BYTES


def test_a_client_that_sends_first_and_reads_then_sees_why(served: Serving) -> None:
    """A body of 40 MB, from a client that reads no answer before all is sent, is told what is wrong."""
    reply = served.ask("POST", "/v1/score", b" " * 40_000_000, BEARER)
    assert (413, "close") == (reply.status, reply.headers["connection"])
    assert "send fewer rows at once" in reply.json["error"]


BODIES: dict[str, tuple[str, bytes, int, str]] = {
    "no JSON": ("/v1/score", b"completion=4", 400, "not JSON"),
    "empty": ("/v1/score", b"", 400, "not JSON"),
    "NaN": ("/get_reward", b'{"query": [NaN], "prompts": [""], "labels": [1]}', 400, "NaN is not a JSON number"),
    "Infinity": ("/slime", b'{"prompt": "p", "response": "r", "label": -Infinity}', 400, "Infinity is not a JSON"),
    "too large": ("/slime", b'{"prompt": "p", "response": "r", "label": 1e999}', 400, "too large for a number"),
    "digits": ("/slime", b'{"prompt": "p", "response": "r", "label": ' + b"9" * 10_000 + b"}", 400, "digits"),
    "not UTF-8": ("/score", b'{"messages": ["\xff\xfe"]}', 400, "not UTF-8"),
    "zeros": ("/score", b"\0" * 1_000, 400, "not JSON"),
    "deep lists": ("/v1/score", b"[" * 900_000 + b"]" * 900_000, 400, "nested deeper than 32 layers"),
    "open lists": ("/v1/score", b"[" * 30_000_000, 413, "lists and objects"),
    "an open text": ("/v1/score", b'{"a": "' + b'[\\"' * 10_000_000, 400, "not JSON"),
    "deep objects": ("/v1/score", b'{"a":' * 500_000 + b"1" + b"}" * 500_000, 400, "nested deeper than 32 layers"),
    "deep columns": (
        "/v1/score",
        b'{"rollouts":[{"prompt":"p","completion":"c","example":{"answer":' + b"[" * 40 + b"]" * 40 + b"}}]}",
        400,
        "nested deeper than 32 layers",
    ),
    "a million rows": (
        "/v1/score",
        json.dumps({"rollouts": [{"prompt": "p", "completion": "c"}] * 700_000}).encode(),
        413,
        "700,000 rows, and a request may have 8,192",
    ),
    "a million texts": ("/score", json.dumps({"messages": ["x"] * 1_000_000}).encode(), 413, "1,000,000 rows"),
    "ten million objects": ("/v1/score", b'{"rollouts":[' + b"{}," * 10_000_000 + b"{}]}", 413, "lists and objects"),
    "many in a column": (
        "/v1/score",
        b'{"rollouts":[{"prompt":"p","completion":"c","example":{"answer":[' + b"{}," * 10_000_000 + b"{}]}}]}",
        413,
        "lists and objects",
    ),
    "a list": ("/v1/score", b"[1]", 422, "the body: expected an object, got [1]"),
    "a number": ("/verify", b"3", 422, "expected an object, got 3"),
    "null": ("/evaluate", b"null", 422, "expected an object, got null"),
    "wrong rows": ("/v1/score", b'{"rollouts": {"prompt": "p"}}', 422, "rollouts: expected a list"),
    "wrong texts": ("/get_reward", b'{"query": [{}], "prompts": ["p"], "labels": [1]}', 422, "query[0]: expected"),
    "a step of a text": ("/v1/score", b'{"rollouts": [], "step": "3"}', 422, "step: expected a whole number"),
    "no column": ("/v1/score", b'{"rollouts": [{"prompt": "p", "completion": "c"}]}', 422, "needs column 'answer'"),
}


@pytest.mark.parametrize(("path", "body", "status", "said"), BODIES.values(), ids=BODIES)
def test_a_hostile_body_is_told_what_is_wrong(served: Serving, path: str, body: bytes, status: int, said: str) -> None:
    """The answer names what is wrong in one line of JSON."""
    reply = served.ask("POST", path, body, BEARER)
    assert status == reply.status, reply.body[:300]
    assert said in reply.json["error"]
    assert b"\n" not in reply.body
    assert len(reply.body) < 1_000


def test_brackets_in_a_text_are_no_lists(served: Serving) -> None:
    """A completion that is nothing else is scored."""
    text = '[{\\"' * 700_000
    body = {"prompt": "p", "response": text, "label": text}
    assert 1.0 == served.ask("POST", "/slime", body, BEARER).json


def test_of_two_equal_keys_the_last_counts(served: Serving) -> None:
    """Nothing is read from the first one."""
    body = b'{"prompt": "p", "response": "4", "response": "5", "label": "4"}'
    assert 0.0 == served.ask("POST", "/slime", body, BEARER).json


def test_a_packed_body_is_refused(served: Serving) -> None:
    """A small body that would unpack to a gigabyte is not unpacked."""
    packed = gzip.compress(b" " * 10_000_000)
    reply = served.ask("POST", "/v1/score", packed, {**BEARER, "content-encoding": "gzip"})
    assert (400, "not packed" in reply.json["error"]) == (reply.status, True)
    plain = served.ask("POST", "/slime", b'{"prompt": "p", "response": "4", "label": "4"}',
                       {**BEARER, "content-encoding": "Identity"})  # fmt: skip
    assert 1.0 == plain.json
    packed_too = served.raw(_head("/v1/score", "transfer-encoding: gzip, chunked") + b"0\r\n\r\n")
    assert _status(packed_too) in (400, 501)  # the protocol's own parser refuses it


def test_a_mark_before_a_body_and_the_older_version_do_not_matter(served: Serving) -> None:
    """Some programs write a byte order mark; a client of HTTP/1.0 is told that its connection ends."""
    body = b'\xef\xbb\xbf{"prompt": "p", "response": "4", "label": "4"}'
    assert 1.0 == served.ask("POST", "/slime", body, BEARER).json
    older = _head("/slime", "connection: keep-alive", f"content-length: {len(body)}").replace(b"HTTP/1.1", b"HTTP/1.0")
    with served.connected() as connection:
        connection.sendall(older + body)
        answer = received(connection)
    assert 200 == _status(answer)
    assert b"connection: close" in answer.lower()


def test_the_type_of_a_body_does_not_matter(served: Serving) -> None:
    """Trainers and curl send various types; what is no JSON is refused whatever it calls itself."""
    good, bad = b'{"prompt": "p", "response": "4", "label": "4"}', b"--x\r\ncontent-disposition: form-data\r\n\r\n"
    for kind in ("application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=x", "\x7f"):
        headers = {**BEARER, "content-type": kind}
        if kind.isprintable():
            assert 200 == served.ask("POST", "/slime", good, headers).status
        assert 400 == served.ask("POST", "/slime", bad, headers).status


PATHS = [
    "/", "//v1/score", "/v1//score", "/v1/../v1/score", "/v1/./score", "/v1/%2e%2e/score", "/v1%2fscore",
    "/V1/SCORE", "/../../etc/passwd", "/%00", "/v1/score;x=1", "/v1/score%20", f"/{'a' * 60_000}", "*",
    "http://localhost/v1/score", f"/t/{TOKEN}", f"/t/{TOKEN}/", f"/t/{TOKEN}//v1/score",
    f"/t/{TOKEN}/t/{TOKEN}/v1/score", f"/v1/score/t/{TOKEN}",
    f"/v1/t/{TOKEN}/score", f"//t/{TOKEN}/v1/score", f"/t/{TOKEN}/../t/{TOKEN}/v1/score",
    f"/t/{TOKEN.replace('-', '%2d')}/v1/score",
]  # fmt: skip


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path[:40])
def test_no_trick_with_a_path_leads_anywhere(served: Serving, path: str) -> None:
    """With the token it is 404; without one it is 401 wherever the token does not stand at its place."""
    body = b"content-length: 2\r\n\r\n{}"
    assert 404 == _status(served.raw(_head(path)[:-2] + body))
    expected = 404 if path.replace("%2d", "-").startswith(f"/t/{TOKEN}") else 401
    assert expected == _status(served.raw(_head(path, token=None)[:-2] + body))


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/v1/score", {}),
        ("/v1/score", {"authorization": "Bearer"}),
        ("/v1/score", {"authorization": "Bearer "}),
        ("/v1/score", {"authorization": f"Basic {TOKEN}"}),
        ("/v1/score", {"authorization": TOKEN}),
        ("/v1/score", {"authorization": f"Bearer {TOKEN}x"}),
        ("/v1/score", {"authorization": f"Bearer {TOKEN[:-1]}"}),
        ("/v1/score", {"authorization": f"Bearer {TOKEN} {TOKEN}"}),
        ("/v1/score", {"authorization": "Bearer \xff\xfe"}),
        ("/v1/score", {"x-token": TOKEN}),
        (f"/v1/score?token={TOKEN}", {}),
        ("/t//v1/score", {}),
        (f"/t/{TOKEN[:-1]}/v1/score", {}),
        (f"/t/{TOKEN}/v1/score", {"authorization": "Bearer another-token"}),
        ("/metrics", {}),
        ("/openapi.json", {}),
        ("/v1/rewards", {}),
        ("/nothing", {}),
    ],
)
def test_without_the_token_nothing_is_answered(served: Serving, path: str, headers: dict[str, str]) -> None:
    """It is 401 whatever is asked, before a body is read."""
    reply = served.ask("POST", path, b"{", headers)
    assert (401, "Bearer") == (reply.status, reply.headers["www-authenticate"])
    assert TOKEN not in reply.body.decode()


def test_tokens_are_compared_without_telling_how_much_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each comparison is hmac's, which takes as long for a nearly right token as for any other."""
    from rewardkit.serving import app as module

    compared: list[Sequence[bytes]] = []
    monkeypatch.setattr(module, "compare_digest", lambda *both: bool(compared.append(both)))
    for given in (TOKEN, "wrong"):
        made: Any = object.__new__(module.RewardApp)
        made._token = TOKEN
        scope = {"path": "/v1/score", "method": "POST", "headers": [(b"authorization", f"Bearer {given}".encode())]}
        with pytest.raises(module.RefusedError, match="wrong token"):
            made._route_of(module._Request(scope, None))  # type: ignore[arg-type]
    assert [(TOKEN.encode(), TOKEN.encode()), (b"wrong", TOKEN.encode())] == compared


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "TRACE", "CONNECT"])
def test_another_method_is_told_the_right_one(served: Serving, method: str) -> None:
    """405 names the method that an address answers."""
    answer = served.raw(_head("/v1/score", method=method))
    assert (405, True) == (_status(answer), b"allow: POST" in answer)


def test_a_method_that_nobody_knows_is_refused(served: Serving) -> None:
    """As any other, or, where the parser itself knows the methods, as no request of HTTP."""
    answer = served.raw(_head("/v1/score", method="BREW"))
    assert _status(answer) in (400, 405)
    assert b'{"error":' in answer


def test_probes_answer_head(served: Serving) -> None:
    """HEAD is GET without its body."""
    reply = served.ask("HEAD", "/readyz")
    assert (200, b"") == (reply.status, reply.body)


ODD = {
    "no HTTP": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 20 + b"\r\n\r\n",
    "no version": b"GET /livez\r\n\r\n",
    "no host": b"POST /v1/score HTTP/1.1\r\n\r\n",
    "a long head": _head("/v1/score", *[f"x-{number}: {'y' * 1_000}" for number in range(100)]),
    "no number of bytes": _head("/v1/score", "content-length: abc"),
    "less than no bytes": _head("/v1/score", "content-length: -1"),
    "two numbers of bytes": _head("/v1/score", "content-length: 2", "content-length: 3"),
    "a wrong chunk": _head("/v1/score", "transfer-encoding: chunked") + b"zz\r\n{}\r\n",
    "two lengths": _head("/v1/score", "content-length: 5", "transfer-encoding: chunked") + b"2\r\n{}\r\n0\r\n\r\n",
    "a folded header": _head("/v1/score", "x-a: b", " c: d", "content-length: 1") + b"{",
    "a zero in a header": _head("/v1/score", "x-a: \0", "content-length: 0"),
    "two hosts": _head("/v1/score", "host: elsewhere", "content-length: 0"),
    "one long header": _head("/v1/score", f"x-a: {'y' * 200_000}"),
    "a head without end": _head("/v1/score", f"x-a: {'y' * 200_000}")[:-4],
    "trailers without end": _head("/v1/score", "transfer-encoding: chunked") + b"0\r\nx-a: " + b"y" * 200_000,
    "another encoding": _head("/v1/score", "transfer-encoding: gzip", "content-length: 0"),
    "no path": b"GET  HTTP/1.1\r\nhost: localhost\r\n\r\n",
}


@pytest.mark.parametrize("sent", ODD.values(), ids=ODD)
def test_what_is_no_request_is_refused(served: Serving, sent: bytes) -> None:
    """It is 400, in JSON, and the server hangs up."""
    answer = served.raw(sent)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert 400 == _status(answer)
    assert b"content-type: application/json" in head.lower()
    assert json.loads(body)["error"].strip()


def test_an_upgrade_is_not_made(served: Serving) -> None:
    """A request for a websocket is answered as any other."""
    answer = served.raw(_head("/v1/score", "connection: upgrade", "upgrade: websocket", method="GET"))
    assert 405 == _status(answer)


def test_a_head_that_drips_is_given_up(served: Serving) -> None:
    """A client that never ends its head, or never sends a byte, is hung up on."""
    with served.connected() as silent, served.connected() as dripping:
        began = time.monotonic()
        dripping.sendall(b"POST /v1/score HTTP/1.1\r\n")
        dripping.settimeout(0.2)
        is_open = True
        while is_open and time.monotonic() - began < WAIT_S:
            try:
                is_open = bool(dripping.recv(1))
            except TimeoutError:
                dripping.sendall(b"x-a: b\r\n")
            except ConnectionError:
                is_open = False
        assert not is_open
        assert b"" == received(silent)


def test_a_body_that_drips_is_given_up(served: Serving) -> None:
    """A client that sends a byte now and then is answered by 408."""
    with served.connected() as connection:
        connection.sendall(_head("/v1/score", "content-length: 1000"))
        connection.settimeout(0.2)
        answer = b""
        for _ in range(5 * WAIT_S):
            try:
                answer = connection.recv(65_536)
                break
            except TimeoutError:
                connection.sendall(b" ")
    assert 408 == _status(answer)


def test_many_slow_connections_shut_nobody_out(served: Serving, full: bool) -> None:
    """More connections than may be open, of which none ever asks anything: the others are answered nevertheless."""
    for _ in range(10 if full else 1):
        with contextlib.ExitStack() as stack:
            for number in range(150):
                slow = stack.enter_context(served.connected())
                slow.sendall(b"POST " if number % 2 else _head("/v1/score", "content-length: 1000"))
            assert wait_for(lambda: len(_established(served)) < 100)
            assert 200 == served.ask("GET", "/v1/rewards", headers=BEARER).status


def test_a_client_that_reads_no_answers_is_given_up(served: Serving) -> None:
    """One that asks and asks over a connection and reads nothing fills a buffer, and then loses the connection."""
    with served.connected() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        request = _head("/openapi.json", method="GET")
        connection.settimeout(1.0)
        for _ in range(20_000):
            try:
                connection.sendall(request)
            except OSError:
                break
        assert wait_for(lambda: len(_established(served)) < 3)


def _established(served: Serving) -> list[Any]:
    import psutil

    found = psutil.Process(served.process.pid).net_connections("tcp")
    return [one for one in found if one.status == psutil.CONN_ESTABLISHED]


def test_the_token_is_in_no_log(served: Serving) -> None:
    """Neither from a header nor from an address."""
    assert 422 == served.ask("POST", f"/t/{TOKEN}/v1/score", {}).status
    assert 404 == served.ask("POST", f"/t/{TOKEN}/nothing", {}).status
    assert wait_for(lambda: "/v1/score" in served.logged)
    assert TOKEN not in served.logged
    assert "a fault of rewardkit's own" not in served.logged
