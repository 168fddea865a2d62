"""The protocols by which the servers read requests: h11's here, and httptools' in :mod:`~rewardkit.web.native`.

Both are uvicorn's, with what it leaves open: what is no HTTP is answered in JSON, a head has a greatest length, and a
body whose length is given in two ways is refused. What closes idle connections is
:class:`~rewardkit.web.listening.PatientServer`, so that no connection needs a timer of its own.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import re
import sys
from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Protocol

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_BYTES = 64 * 1024  # of a request line and headers
_NAME, _VALUE = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"), re.compile(rb"[^\x00-\x08\x0a-\x1f\x7f]*")


class Stack(StrEnum):
    """What reads requests and runs the event loop."""

    PYTHON = "h11"  # h11 on asyncio's loop, which are in Python
    NATIVE = "httptools"  # httptools on uvloop, which are in C


def installed_stack() -> Stack:
    """Return the native stack where both of its libraries are installed."""
    has_both = all(importlib.util.find_spec(name) is not None for name in ("httptools", "uvloop"))
    return Stack.NATIVE if has_both else Stack.PYTHON


class Exchange(Protocol):
    """A request and its answer, as far as a server looks at them."""

    response_complete: bool
    more_body: bool


class HttpConnection(Protocol):
    """A connection of either protocol."""

    transport: asyncio.Transport

    @property
    def cycle(self) -> Exchange | None:
        """The last request that came."""


def refusal(reason: object) -> bytes:
    """Return the whole answer to what is no HTTP request."""
    body = json.dumps({"error": f"this is no HTTP request: {reason}"}).encode()
    head = f"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
    return head.encode() + b"connection: close\r\n\r\n" + body


@lru_cache(1024)
def header_line(name: bytes, value: bytes) -> bytes:
    """Return the line of a header; refuse what would end it early."""
    if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
        raise RuntimeError(f"no header of an answer: {name!r}: {value!r}")
    return name.lower() + b": " + value + b"\r\n"


def whole_answer(
    start: Mapping[str, Any], body: bytes, default_headers: Iterable[tuple[bytes, bytes]], *, keep_alive: bool
) -> tuple[bytes, bool]:
    """Return an answer of a head and a whole body, and whether the connection goes on after it.

    ``start`` is ASGI's message with the status and the headers.
    """
    lines = [_status_line(start["status"])]
    length = None
    for name, value in (*default_headers, *start["headers"]):
        if name == b"connection":
            keep_alive = keep_alive and value != b"close"
            continue
        lines.append(header_line(name, value))
        if name == b"content-length":
            length = int(value)
    if length is None:
        lines.append(b"content-length: %d\r\n" % len(body))
    elif length != len(body):
        raise RuntimeError(f"an answer of {len(body)} bytes was announced with {length}")
    if not keep_alive:
        lines.append(b"connection: close\r\n")
    return b"".join((*lines, b"\r\n", body)), keep_alive


@lru_cache(64)
def _status_line(status: int) -> bytes:
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n".encode()


class _Corked(asyncio.Transport):
    """A transport that sends what is written within one turn of the loop at once: an answer's head with its body.

    uvloop does that by itself.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        super().__init__()
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._waiting: list[bytes] = []
        self._handle: asyncio.Handle | None = None

    def write(self, data: Any) -> None:
        if not self._waiting:
            self._handle = self._loop.call_soon(self.flush)
        self._waiting.append(data)

    def flush(self) -> None:
        """Send what waits."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        if self._waiting:
            data, self._waiting = b"".join(self._waiting), []
            self._transport.write(data)

    def close(self) -> None:
        self.flush()
        self._transport.close()

    def abort(self) -> None:
        self._waiting.clear()
        self._transport.abort()

    def get_write_buffer_size(self) -> int:
        return self._transport.get_write_buffer_size() + sum(map(len, self._waiting))

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._transport.get_extra_info(name, default)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._transport.set_protocol(protocol)


class _Connection(h11.Connection):
    """Refuses a request that gives its body's length in two ways: another reader on its way may have read another."""

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        event = super().next_event()
        if isinstance(event, h11.Request):
            names = {name for name, _ in event.headers}
            if {b"content-length", b"transfer-encoding"} <= names:
                raise h11.RemoteProtocolError("it has both Content-Length and Transfer-Encoding", 400)
        return event


class JsonProtocol(H11Protocol):
    """Reads requests by h11. It answers what is no HTTP in JSON, as everything else, and closes the connection."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.conn = _Connection(h11.SERVER, HEAD_BYTES)
        self._served, self.app = self.app, self._answer

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        """Have the application answer a request, by one write where the answer is whole.

        h11 checks what is sent as it checks what comes, which takes longer than to read the request.
        """
        start: Any = None
        cycle = self.cycle

        async def send_whole(message: Any) -> None:
            nonlocal start
            if message["type"] == "http.response.start" and not cycle.response_started:
                start, cycle.response_started = message, True
                return
            waiting, start = start, None
            if waiting is None:
                await send(message)
            elif self._can_send_whole(message):
                self._send_whole(waiting, message.get("body", b""))
            else:
                cycle.response_started = False
                await send(waiting)
                await send(message)

        await self._served(scope, receive, send_whole)

    def _can_send_whole(self, message: Mapping[str, Any]) -> bool:
        """Return whether an answer ends with this message, to a request that h11 has read to its end."""
        cycle = self.cycle
        is_last = not message.get("more_body", False) and cycle.scope["method"] != "HEAD"
        is_read = self.conn.their_state is h11.DONE and self.conn.our_state is h11.SEND_RESPONSE
        return is_last and is_read and cycle.keep_alive and not (cycle.disconnected or self.flow.write_paused)

    def _send_whole(self, start: Mapping[str, Any], body: bytes) -> None:
        """Send an answer, and begin anew with what has come behind its request."""
        data, keep_alive = whole_answer(start, body, self.server_state.default_headers, keep_alive=True)
        self.transport.write(data)
        behind, _ = self.conn.trailing_data
        self.conn = _Connection(h11.SERVER, HEAD_BYTES)
        self.cycle.response_complete = True
        self.cycle.message_event.set()
        if not keep_alive:
            self.transport.close()
        self.on_response_complete()
        if behind and keep_alive:
            self.conn.receive_data(behind)
            self.handle_events()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(_Corked(transport))

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.app = self._served  # not a method of its own: a circle, which only the collector ends

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._unset_keepalive_if_required()  # the server looks for idle connections
        if isinstance(self.transport, _Corked):
            self.transport.flush()

    def send_400_response(self, msg: str) -> None:
        self.transport.write(refusal(sys.exception() or msg))
        self.transport.close()
