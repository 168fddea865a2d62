"""The protocol that reads requests by httptools, whose parser is in C."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.flow_control import service_unavailable
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from rewardkit.web.protocols import HEAD_BYTES, refusal, whole_answer

_VERSIONS = ("1.1", "1.0")
_ONCE = (b"host", b"content-length")  # Headers that may stand once


class _NoRequestError(Exception):
    """What came is no request that is answered; the message says why."""


class _Cycle(RequestResponseCycle):
    """A request and its answer, whose head is sent together with its body where that is whole."""

    _start: Any = None  # The head that waits for the body

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start" and not self.response_started:
            self.response_started, self._start = True, message
            return
        start, self._start = self._start, None
        if start is None:
            await super().send(message)
            return
        if message.get("more_body", False) or self.flow.write_paused or self.scope["method"] == "HEAD":
            self.response_started = False
            await super().send(start)
            await super().send(message)
        elif not self.disconnected:
            self._send_whole(start, message.get("body", b""))

    def _send_whole(self, start: dict[str, Any], body: bytes) -> None:
        """Send an answer and end the exchange."""
        data, self.keep_alive = whole_answer(start, body, self.default_headers, keep_alive=self.keep_alive)
        self.transport.write(data)
        self.response_complete = True
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()


class NativeProtocol(HttpToolsProtocol):
    """Reads requests by httptools, and refuses what :class:`~rewardkit.web.protocols.JsonProtocol` refuses."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=False)
        self._head_bytes = 0  # Of a head, or of what stands between the parts of a body, that is not complete
        self._is_deaf = False  # Whether what comes is not read any more

    def data_received(self, data: bytes) -> None:
        if self._is_deaf:
            return
        self._head_bytes += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._is_deaf = True  # its request is answered as any other, and what comes behind it is not HTTP
        except httptools.HttpParserError as error:
            self._refuse(error.__context__ if isinstance(error.__context__, _NoRequestError) else error)
            return
        if self._head_bytes > HEAD_BYTES:
            self._refuse(f"its head has more than {HEAD_BYTES:,} bytes")

    def _refuse(self, reason: object) -> None:
        """Answer what is no request, and hang up."""
        self._is_deaf = True
        self.transport.write(refusal(reason))
        self.transport.close()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._named_bytes = 0

    def on_header(self, name: bytes, value: bytes) -> None:
        self._named_bytes += len(name) + len(value)
        if self._named_bytes > HEAD_BYTES:
            raise _NoRequestError(f"its head has more than {HEAD_BYTES:,} bytes")
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._head_bytes = 0
        version = self.parser.get_http_version()
        self._check(version)
        scope = self.scope
        scope["method"] = self.parser.get_method().decode("ascii")
        scope["http_version"] = version
        raw_path, _, scope["query_string"] = self.url.partition(b"?")
        scope["raw_path"] = raw_path
        path = raw_path.decode("latin-1")
        scope["path"] = unquote(path) if "%" in path else path
        is_last = version == "1.0" or self.parser.should_upgrade() or not self.parser.should_keep_alive()
        self._begin(keep_alive=not is_last)

    def _check(self, version: str) -> None:
        """Refuse a request that h11 refuses, too, and one that httptools would read without its body."""
        names = [name for name, _ in self.headers]
        if version not in _VERSIONS:
            raise _NoRequestError(f"its version is {version}, and 1.1 is answered")
        if b"host" not in names and version != "1.0":
            raise _NoRequestError("it has no Host header")
        for name in _ONCE:
            if names.count(name) > 1:
                raise _NoRequestError(f"it has several headers {name.decode()}")
        if b"transfer-encoding" in names:
            if b"content-length" in names:
                raise _NoRequestError("it has both Content-Length and Transfer-Encoding")
            encodings = [value.lower() for name, value in self.headers if name == b"transfer-encoding"]
            if encodings != [b"chunked"]:
                raise _NoRequestError("its Transfer-Encoding is another than chunked")
        if self.parser.should_upgrade() and (b"transfer-encoding" in names or b"content-length" in names):
            raise _NoRequestError("it has a body and asks for another protocol; ask without Upgrade")

    def _begin(self, *, keep_alive: bool) -> None:
        """Begin to answer a request whose head is complete, or have it wait for the one before it."""
        app, limit = self.app, self.limit_concurrency
        if limit is not None and (len(self.connections) >= limit or len(self.tasks) >= limit):
            app = service_unavailable
        before = self.cycle
        self.cycle = _Cycle(
            scope=self.scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=False,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=self.expect_100_continue,
            keep_alive=keep_alive,
            on_response=self.on_response_complete,
        )
        if before is None or before.response_complete:
            self._start_asgi_task(self.cycle, app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, app))

    def on_body(self, body: bytes) -> None:
        self._head_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._head_bytes = 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            cycle, app = self.pipeline.pop()
            self._start_asgi_task(cycle, app)
