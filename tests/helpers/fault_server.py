"""A chat-completions server on loopback that fails on request: real HTTP/1.1, each fault in its real form.

A *script* says what becomes of each request: a function of its number (from 0), its body and its headers that gives
an :class:`Action`, or a list of actions in turn whose last one stays. The server runs on a thread of the test's
process; with ``process=True`` in a process of its own, so that its work does not slow what is measured: the script is
then a function of a module's top level, or a ``functools.partial`` of one with JSON keywords.

    with FaultServer([status(503), ok("4")]) as server:
        ...ask server.url...
        assert 2 == len(server.seen)
"""

from __future__ import annotations

import asyncio
import functools
import json
import runpy
import socket
import struct
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

CANARY = "sk-canary-0123456789abcdefghijklmnopqrstuvwxyz"
"""A key that must be seen nowhere but in the environment and in the request's header."""
REASONS = {200: "OK", 302: "Found", 429: "Too Many Requests", 500: "Internal Server Error", 503: "Service Unavailable"}


@dataclass(frozen=True, slots=True)
class Action:
    """What becomes of one request.

    Attributes:
        body: The response's body.
        status: Its status.
        headers: Headers beside ``Content-Length``.
        delay_s: Seconds before anything is sent.
        interval_s: Seconds between the body's bytes, sent one by one; ``None`` sends the whole at once.
        cut: Bytes of the body after which the connection is reset; ``None`` sends all.
        stall: Send nothing, and keep the connection open.
        together: Nothing is sent before so many requests have been in flight at once.
        raw: Sent in place of all that, byte for byte; then the connection is closed.
    """

    body: bytes = b""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "application/json"),)
    delay_s: float = 0.0
    interval_s: float | None = None
    cut: int | None = None
    stall: bool = False
    together: int = 0
    raw: bytes | None = None

    def head(self) -> bytes:
        lines = [f"HTTP/1.1 {self.status} {REASONS.get(self.status, 'Said')}", f"Content-Length: {len(self.body)}"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        return "\r\n".join([*lines, "", ""]).encode("latin-1")


Script: TypeAlias = Callable[[int, Mapping[str, Any], Mapping[str, str]], Action] | Sequence[Action]


class Seen(NamedTuple):
    """One request that the server read.

    Attributes:
        number: Its place, from 0.
        path: The path asked for.
        body: Its JSON.
        authorization: Whether it had that header.
        headers: The names of its headers, in lower case.
    """

    number: int
    path: str
    body: dict[str, Any]
    authorization: bool
    headers: list[str]


def ok(
    text: Any = "4",
    *,
    finish_reason: str | None = "stop",
    refusal: str | None = None,
    usage: Mapping[str, Any] | None = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12},
    logprobs: Any = None,
    delay_s: float = 0.0,
) -> Action:
    """Return a chat completion."""
    message = {"role": "assistant", "content": text, "refusal": refusal}
    choice = {"index": 0, "message": message, "finish_reason": finish_reason, "logprobs": logprobs}
    return completion({"choices": [choice], "usage": usage}, delay_s=delay_s)


def completion(parts: Mapping[str, Any], delay_s: float = 0.0) -> Action:
    """Return a completion whose given parts stand for its own, right or wrong."""
    whole = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "served", **parts}
    return Action(json.dumps(whole).encode(), delay_s=delay_s)


def refusal(words: str = "I cannot judge this.") -> Action:
    return ok(None, refusal=words)


def wrong_schema() -> Action:
    return ok('{"mood": "good"}')


def out_of_range() -> Action:
    return ok('{"correct": {"reason": "r", "score": 99}}')


def status(number: int, words: str = "no", *, headers: Mapping[str, str] | None = None, **error: Any) -> Action:
    """Return an error with the JSON body that OpenAI's API has; ``error`` says more in it, such as its ``code``."""
    body = json.dumps({"error": {"message": words, "type": "error", "code": None, **error}}).encode()
    return Action(body, number, (("Content-Type", "application/json"), *(headers or {}).items()))


def too_many(retry_after: str | None = None) -> Action:
    return status(429, "Rate limit reached", headers={} if retry_after is None else {"Retry-After": retry_after})


def quota() -> Action:
    return status(429, "You exceeded your current quota", code="insufficient_quota", type="insufficient_quota")


def html(code: int = 200) -> Action:
    """Return a web page, as a proxy or a wrong path does."""
    return Action(b"<!doctype html><html><h1>Welcome</h1></html>", code, (("Content-Type", "text/html"),))


def reset(after: int = 40) -> Action:
    """Return a reply whose connection is reset after some bytes of its body; 0: before any."""
    return replace(ok(), cut=after)


def stall() -> Action:
    return Action(stall=True)


def dribble(text: str = "4", interval_s: float = 0.02) -> Action:
    """Return a whole reply, one byte at a time."""
    return replace(ok(text), interval_s=interval_s)


def empty_choices() -> Action:
    return completion({"choices": []})


def null_choices() -> Action:
    return completion({"choices": None})


def packed(body: bytes, packing: str) -> Action:
    """Return a body that says how it is packed."""
    return Action(body, headers=(("Content-Type", "application/json"), ("Content-Encoding", packing)))


def bomb(mega_bytes: int) -> Action:
    """Return zeros that gzip packs to a thousandth: a megabyte's block again and again, each complete in itself."""
    packer = zlib.compressobj(9, wbits=-15)
    block = packer.compress(bytes(2**20)) + packer.flush(zlib.Z_FULL_FLUSH)
    return packed(b"\x1f\x8b\x08\0\0\0\0\0\0\x03" + block * mega_bytes, "gzip")


def truncated_json() -> Action:
    return replace(ok(), body=ok().body[:60])


@dataclass(slots=True)
class _Serving:
    """The server's side: the script, what was seen, and the connections."""

    script: Callable[[int, Mapping[str, Any], Mapping[str, str]], Action]
    models: Callable[[Mapping[str, str]], Action] | None = None
    seen: list[Seen] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0
    came: asyncio.Event = field(default_factory=asyncio.Event)
    writers: set[asyncio.StreamWriter] = field(default_factory=set)

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.add(writer)
        try:
            while await self._one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self.writers.discard(writer)
            writer.transport.abort()

    def break_all(self) -> None:
        """Reset every connection."""
        for writer in list(self.writers):
            _reset(writer)
            writer.transport.abort()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head[:-4].split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        headers[":path"] = first.split()[1]
        raw = await reader.readexactly(int(headers.get("content-length", 0)))
        if first.startswith("GET "):  # the list of models, which a judge asks for when it is made; not counted
            action = self.models(headers) if self.models is not None else status(404)
            return await self._act(action, reader, writer)
        body = json.loads(raw) if raw else {}
        number = len(self.seen)
        self.seen.append(Seen(number, headers[":path"], body, "authorization" in headers, list(headers)))
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        self.came.set()
        self.came.clear()
        try:
            return await self._act(self.script(number, body, headers), reader, writer)
        finally:
            self.in_flight -= 1

    async def _act(self, action: Action, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        while self.most_in_flight < action.together:  # one more request may come at any time
            await self.came.wait()
        if action.delay_s:
            await asyncio.sleep(action.delay_s)
        if action.stall:
            await reader.read(1)
            return False
        if action.raw is not None:
            writer.write(action.raw)
            await writer.drain()
            writer.close()
            await writer.wait_closed()
            return False
        if action.interval_s is not None:
            return await _dribble(action, writer)
        writer.write(action.head() + action.body[: action.cut])
        if action.cut is None:
            return True
        await asyncio.sleep(0.01)
        _reset(writer)
        return False


async def _dribble(action: Action, writer: asyncio.StreamWriter) -> bool:
    writer.write(action.head())
    for byte in action.body:
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(action.interval_s or 0.0)
    return True


def _reset(writer: asyncio.StreamWriter) -> None:
    """Let the close that follows send RST, not FIN; where the client has just gone, there is no socket any more."""
    if writer.transport.is_closing():
        return
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


class FaultServer:
    """The server, as a context manager.

    Args:
        script: What becomes of each request.
        process: Serve from a process of its own.
        port: Where to listen; 0 for any free port. One that was stopped can be started again at its port, which is
            kept from others from its first start until the ``with`` block ends.
    """

    def __init__(
        self,
        script: Script,
        *,
        process: bool = False,
        port: int = 0,
        models: Callable[[Mapping[str, str]], Action] | None = None,
    ) -> None:
        self.script = script
        self.port = port
        self._kept: socket.socket | None = None
        self._side: _Thread | _Process = _Process(script) if process else _Thread(script, models)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def seen(self) -> list[Seen]:
        """Every request that was sent so far, those of earlier starts included."""
        return self._side.report()[0]

    @property
    def most_in_flight(self) -> int:
        return self._side.report()[1]

    def wait_for(self, requests: int, timeout_s: float = 60.0) -> None:
        """Wait until so many requests were seen, from a thread that serves none of them."""
        until = time.monotonic() + timeout_s
        while len(self.seen) < requests and time.monotonic() < until:
            time.sleep(0.005)

    @property
    def running(self) -> bool:
        return self._side.running

    def start(self) -> FaultServer:
        if self._kept is None:
            self._kept = _bound(self.port)
            self.port = self._kept.getsockname()[1]
        self._side.start(self.port)
        return self

    def stop(self) -> None:
        """Stop listening and break every connection; the port refuses from then on."""
        if self._side.running:
            self._side.stop()

    def __enter__(self) -> FaultServer:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()
        if self._kept is not None:
            self._kept.close()
            self._kept = None


def _as_function(script: Script) -> Callable[..., Action]:
    if callable(script):
        return script
    actions = list(script)
    return lambda number, _body, _headers: actions[min(number, len(actions) - 1)]


class _Thread:
    def __init__(self, script: Script, models: Callable[[Mapping[str, str]], Action] | None = None) -> None:
        self.serving = _Serving(_as_function(script), models)
        self.thread: threading.Thread | None = None

    @property
    def running(self) -> bool:
        return self.thread is not None

    def start(self, port: int) -> None:
        ready = threading.Event()
        self.thread = threading.Thread(target=lambda: asyncio.run(self._serve(ready, port)), daemon=True)
        self.thread.start()
        if not ready.wait(60):
            raise RuntimeError(f"the fault server did not start at port {port}")

    async def _serve(self, ready: threading.Event, port: int) -> None:
        self.loop, self.ended = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self.serving.connected, "127.0.0.1", port, backlog=1024, reuse_port=True)
        ready.set()
        await self.ended.wait()
        # Of a server that is closed while it takes a connection in, asyncio loses the socket, and it warns in any test.
        self.loop.remove_reader(server.sockets[0].fileno())
        await _settled()
        server.close()
        self.serving.break_all()
        await _settled()

    def stop(self) -> None:
        if self.thread is not None:
            self.loop.call_soon_threadsafe(self.ended.set)
            self.thread.join(60)
            if self.thread.is_alive():
                raise RuntimeError("the fault server did not end")
            self.thread = None

    def report(self) -> tuple[list[Seen], int]:
        if self.thread is not None:
            asyncio.run_coroutine_threadsafe(_settled(), self.loop).result(60)
        return list(self.serving.seen), self.serving.most_in_flight


async def _settled() -> None:
    """Let what lies in the sockets be read."""
    for _ in range(20):
        await asyncio.sleep(0)


class _Process:
    def __init__(self, script: Script) -> None:
        keywords = script.keywords if isinstance(script, functools.partial) else {}
        function = script.func if isinstance(script, functools.partial) else script
        if not callable(function) or "<" in function.__qualname__:
            raise TypeError("a script for a process of its own: a function of a module's top level, or a partial")
        self.spec = {"file": function.__code__.co_filename, "name": function.__qualname__, "keywords": keywords}
        self.process: subprocess.Popen[str] | None = None
        self.before: list[Seen] = []
        self.most = 0

    @property
    def running(self) -> bool:
        return self.process is not None

    def start(self, port: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__, json.dumps({**self.spec, "port": port})],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._line()

    def _line(self) -> str:
        if self.process is None or self.process.stdout is None:
            raise RuntimeError("the fault server is not started")
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the fault server's process ended; its error is above")
        return line

    def report(self) -> tuple[list[Seen], int]:
        if self.process is None or self.process.stdin is None:
            return self.before, self.most
        self.process.stdin.write("report\n")
        self.process.stdin.flush()
        seen, most = json.loads(self._line())
        return [*self.before, *(Seen(*one) for one in seen)], max(most, self.most)

    def stop(self) -> None:
        if self.process is not None:
            self.before, self.most = self.report()
            with self.process:
                self.process.kill()
            self.process = None


@contextmanager
def refused() -> Iterator[str]:
    """Return the URL of a port that refuses every connection for as long as the block lasts: bound, not listening."""
    with _bound(0) as held:
        yield f"http://127.0.0.1:{held.getsockname()[1]}/v1"


def _bound(port: int) -> socket.socket:
    """Return a socket that holds a port and does not listen; a server of the same user may listen there as well."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    held.bind(("127.0.0.1", port))
    return held


def mixed(
    number: int, body: Mapping[str, Any], headers: Mapping[str, str], *, every: int = 5, delay_s: float = 0.0
) -> Action:
    """A script: one request of every so many meets a fault, the faults in turn; the others get their words back.

    The answer's text is the last message's, so that a test sees whether answers are of their own requests.
    """
    faults = [status(500), status(503), too_many(), reset(), html(), empty_choices(), null_choices(), truncated_json()]
    if number % every == every - 1:
        return replace(faults[number // every % len(faults)], delay_s=delay_s)
    return ok(body["messages"][-1]["content"], delay_s=delay_s)


def _serve_as_process(spec: dict[str, Any]) -> None:
    """Serve until the parent's end of stdin closes; each line of it asks for what was seen."""
    function = globals().get(spec["name"]) if spec["file"] == __file__ else runpy.run_path(spec["file"])[spec["name"]]
    side = _Thread(functools.partial(function, **spec["keywords"]))
    side.start(spec["port"])
    print("serving", flush=True)
    for _ in sys.stdin:
        seen, most = side.report()
        print(json.dumps([seen, most]), flush=True)
    side.stop()


if __name__ == "__main__":
    _serve_as_process(json.loads(sys.argv[1]))
