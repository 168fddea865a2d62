"""The command ``rewardkit serve`` in a process of its own, and what tests do to it."""

from __future__ import annotations

import contextlib
import http.client
import importlib.util
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

import psutil
import pytest
from served import free_port

WAIT_S = 60
_LIMITS = (
    "import rewardkit.serving.app as app, rewardkit.serving.server as server, rewardkit.web.listening as listening"
)
_HAS_NATIVE = all(importlib.util.find_spec(name) for name in ("httptools", "uvloop"))
STACKS = [
    "PYTHON",
    pytest.param("NATIVE", marks=pytest.mark.skipif(not _HAS_NATIVE, reason="httptools and uvloop are not installed")),
]
"""What reads requests and runs the event loop; a test can set :func:`use_stack` to each."""
_stack = ""


@contextlib.contextmanager
def use_stack(name: str) -> Iterator[None]:
    """Have servers that start within the block use a stack."""
    global _stack
    before, _stack = _stack, name
    try:
        yield
    finally:
        _stack = before


class Reply(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Serving(NamedTuple):
    """A server that is ready.

    Attributes:
        process: The command.
        port: Where it listens on loopback.
        told: What it printed.
        log: What it wrote on stderr.
    """

    process: subprocess.Popen[str]
    port: int
    told: dict[str, Any]
    log: IO[str]

    @property
    def logged(self) -> str:
        """What it wrote on stderr until now."""
        self.log.seek(0)
        return self.log.read()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def rss_bytes(self) -> int:
        return int(psutil.Process(self.process.pid).memory_info().rss)

    def children(self) -> list[psutil.Process]:
        """Return all processes that the command has started, and those that they have."""
        return list(psutil.Process(self.process.pid).children(recursive=True))

    def ask(self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None) -> Reply:
        """Send one request; a body that is not bytes is sent as JSON."""
        raw = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S)) as connection:
            connection.request(method, path, raw, dict(headers or {}))
            response = connection.getresponse()
            return Reply(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())

    def connected(self) -> socket.socket:
        """Return a connection over which anything can be sent."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=WAIT_S)

    def raw(self, sent: bytes) -> bytes:
        """Send bytes as they are and no more, and return all that comes back until the server hangs up."""
        with self.connected() as connection:
            with contextlib.suppress(OSError):
                connection.sendall(sent)
                connection.shutdown(socket.SHUT_WR)
            return received(connection)


def received(connection: socket.socket) -> bytes:
    """Return all that comes until the other side hangs up."""
    answer = b""
    with contextlib.suppress(ConnectionError):
        while part := connection.recv(65_536):
            answer += part
    return answer


@contextlib.contextmanager
def command(
    *arguments: str | Path, limits: str = "", env: Mapping[str, str] | None = None, port: int | None = None
) -> Iterator[Serving]:
    """Start the command, and give it before it is ready; its ``told`` is empty.

    Args:
        arguments: What stands after ``serve``; the port is added.
        limits: Statements that change constants of the modules ``app``, ``server`` and ``listening``.
        env: Further variables.
        port: Where it is to listen; any free port unless given.
    """
    port = free_port() if port is None else port
    if _stack:
        limits += f"\nlistening.installed_stack = lambda: listening.Stack.{_stack}\n"
    options = ["serve", *map(str, arguments), "--port", str(port), "--workers", "1", "--json"]
    code = f"{_LIMITS}\n{limits}\nimport sys\nfrom rewardkit.cli import main\nsys.argv[1:] = {options!r}\nmain()"
    program = [sys.executable, "-c", code] if limits else [sys.executable, "-m", "rewardkit", *options]
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as log,
        subprocess.Popen(
            program, stdout=subprocess.PIPE, stderr=log, text=True, env={**os.environ, **(env or {})}
        ) as process,
    ):
        try:
            yield Serving(process, port, {}, log)
        finally:
            process.kill()


@contextlib.contextmanager
def serving(
    *arguments: str | Path, limits: str = "", env: Mapping[str, str] | None = None, port: int | None = None
) -> Iterator[Serving]:
    """Start the command as :func:`command` does, and give it when it is ready."""
    with command(*arguments, limits=limits, env=env, port=port) as starting:
        stdout = starting.process.stdout
        assert stdout is not None
        lines: list[str] = []
        while not lines or lines[-1].rstrip() != "}":
            lines.append(stdout.readline())
            assert lines[-1], starting.logged
        yield starting._replace(told=json.loads("".join(lines)))
