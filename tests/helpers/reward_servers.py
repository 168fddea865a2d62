"""Reward servers in a thread, and what tests ask of them."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from rewardkit.serving.app import RewardApp
from rewardkit.serving.joining import PartsScorer
from rewardkit.serving.server import RewardServer
from rewardkit.web.listening import config_of, listening

WAIT_S = 60


class Reply(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        """What an error says; each is one line of JSON."""
        assert b"\n" not in self.body
        return str(self.json["error"])


class Served(NamedTuple):
    port: int
    app: RewardApp
    server: RewardServer

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None) -> Reply:
        """Send one request; a body that is not bytes is sent as JSON."""
        raw = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S)) as connection:
            connection.request(method, path, raw, dict(headers or {}))
            response = connection.getresponse()
            return Reply(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())

    def post(self, path: str, body: object, headers: Mapping[str, str] | None = None) -> Reply:
        return self.ask("POST", path, body, headers)

    def raw(self, *parts: bytes) -> bytes:
        """Send bytes as they are, and return all that comes back until the server hangs up."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=WAIT_S) as connection:
            with contextlib.suppress(OSError):
                for part in parts:
                    connection.sendall(part)
            answer = b""
            with contextlib.suppress(OSError):
                while part := connection.recv(65_536):
                    answer += part
            return answer


@contextlib.contextmanager
def reward_server(runtime: PartsScorer, *, connections: int = 512, **options: Any) -> Iterator[Served]:
    """Serve a runtime in a thread, and drain the server in the end."""
    app = RewardApp(runtime, **options)
    server = RewardServer(config_of(app, connections=connections, end_s=2), app)
    with listening("127.0.0.1", 0, tries=1) as bound:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()
        try:
            yield Served(bound.getsockname()[1], app, server)
        finally:
            server.handle_exit(15, None)
            thread.join(WAIT_S)
            assert not thread.is_alive()
