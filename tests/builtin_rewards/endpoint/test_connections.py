"""Connections of openai's client: each reply is of its own request, whatever a server sends beside it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import pytest

from builtin_rewards.endpoint import connections
from builtin_rewards.endpoint.backends import Server
from builtin_rewards.endpoint.client import send

Step: TypeAlias = bytes | float  # what is sent at once, or the seconds until more is
LATER_S = 0.05


def with_length(text: str) -> bytes:
    body = json.dumps({"text": text}).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


def in_chunks(text: str) -> bytes:
    body = json.dumps({"text": text}).encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    return b"%b%x\r\n%b\r\n0\r\n\r\n" % (head, len(body), body)


WAYS: dict[str, Callable[[bytes, bytes], list[Step]]] = {
    "in one packet": lambda reply, surplus: [reply + surplus],
    "right behind it": lambda reply, surplus: [reply, surplus],
    "later": lambda reply, surplus: [reply, LATER_S, surplus],
    "cut": lambda reply, surplus: [reply + surplus[:30]],
    "a line": lambda reply, surplus: [reply + b"\r\n"],
    "a status of its own": lambda reply, surplus: [reply, b"HTTP/1.1 408 Late\r\nContent-Length: 0\r\n\r\n"],
}


class _Served:
    """A server that answers its first request with these steps, and each later one with ``second``."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps, self.requests, self.connections = steps, 0, 0

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = re.search(rb"(?i)content-length: (\d+)", head)
                await reader.readexactly(int(length[1]) if length else 0)
                self.requests += 1
                for step in self.steps if self.requests == 1 else [with_length("second")]:
                    if isinstance(step, float):
                        await asyncio.sleep(step)
                    else:
                        writer.write(step)
                        await writer.drain()
        writer.close()


@contextlib.asynccontextmanager
async def serving(steps: Sequence[Step], tls: ssl.SSLContext | None = None) -> AsyncIterator[tuple[_Served, Server]]:
    served = _Served(steps)
    listener = await asyncio.start_server(served.connected, "127.0.0.1", 0, ssl=tls)
    port = listener.sockets[0].getsockname()[1]
    try:
        yield served, Server(f"{'http' if tls is None else 'https'}://127.0.0.1:{port}/v1")
    finally:
        listener.close()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate of this machine's address, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the certificate")
    folder = tmp_path_factory.mktemp("tls")
    paths = folder / "certificate.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-out", str(paths[0]), "-keyout", str(paths[1])]
    subprocess.run([*command, *names], check=True, capture_output=True, timeout=60)
    return paths


@pytest.fixture
def tls(certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """A server's context whose certificate the client takes."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    monkeypatch.setattr(connections, "_tls", connections._tls.__wrapped__)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    return context


async def ask_twice(steps: Sequence[Step], tls: ssl.SSLContext | None = None) -> list[str]:
    """Ask a server that sends these steps for the first question; return both replies."""
    async with serving(steps, tls) as (_, server):
        texts = []
        for _ in range(2):
            texts.append((await send(server, "chat/completions", {})).content["text"])
            await asyncio.sleep(3 * LATER_S if LATER_S in steps else 0.0)
        return texts


@pytest.mark.usefixtures("canary")
@pytest.mark.parametrize("reply", [with_length, in_chunks])
@pytest.mark.parametrize("way", WAYS)
def test_a_surplus_is_no_reply_to_the_next_question(way: str, reply: Callable[[str], bytes]) -> None:
    """However it comes, the connection is not asked again."""
    assert ["first", "second"] == asyncio.run(ask_twice(WAYS[way](reply("first"), reply("surplus"))))


@pytest.mark.usefixtures("canary")
@pytest.mark.parametrize("reply", [with_length, in_chunks])
@pytest.mark.parametrize("way", WAYS)
def test_a_surplus_behind_tls_is_no_reply_either(way: str, reply: Callable[[str], bytes], tls: ssl.SSLContext) -> None:
    """A record that came with the reply's lies in neither the parser nor the socket."""
    assert ["first", "second"] == asyncio.run(ask_twice(WAYS[way](reply("first"), reply("surplus")), tls))


@pytest.mark.usefixtures("canary")
@pytest.mark.parametrize("reply", [with_length, in_chunks])
@pytest.mark.parametrize("with_tls", [False, True], ids=["plain", "TLS"])
def test_a_clean_connection_is_asked_again(
    with_tls: bool, reply: Callable[[str], bytes], request: pytest.FixtureRequest
) -> None:
    """Its parser is looked into, and a parser that cannot be seen would cost a connection a question."""
    context = request.getfixturevalue("tls") if with_tls else None

    async def ask_often() -> int:
        async with serving([reply("first")], context) as (served, server):
            for _ in range(4):
                await send(server, "chat/completions", {})
            return served.connections

    assert (2 if with_tls else 1) >= asyncio.run(ask_often())  # TLS 1.3 sends tickets behind its handshake
