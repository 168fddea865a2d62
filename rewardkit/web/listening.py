"""Where a server listens, who may reach it, and how it hangs up on clients that ask nothing."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import math
import re
import socket
import time
from typing import NamedTuple, cast

import uvicorn
from starlette.types import ASGIApp

from rewardkit.errors import ConfigError
from rewardkit.web.protocols import Exchange, HttpConnection, JsonProtocol, Stack, installed_stack

PORTS_TRIED = 20  # How many ports are tried, from the first one on
IDLE_S = 30.0  # Seconds for which a connection may stay without a request, or without its client reading the answer
CROWDED_S = 3.0  # Such seconds while many connections are open
_TICKS = 10  # Ticks of a tenth of a second between two looks for such connections
_BACKLOG = 128
_TOKEN = re.compile(r"[A-Za-z0-9_.~-]{1,200}")
MIN_TOKEN = 8  # Characters of a token, at least, where other machines can reach the address
_LOCAL_NAMES = ("localhost",)


class PatientServer(uvicorn.Server):
    """A server that hangs up on clients that keep a connection and do nothing with it, as uvicorn does not.

    A connection ends when nothing has changed on it for :data:`IDLE_S`. While more than half of the connections that
    may be are open, it and a body that arrives have :data:`CROWDED_S`, so that idlers do not shut out others.
    """

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._standings: dict[HttpConnection, tuple[_Standing, float]] = {}

    async def on_tick(self, counter: int) -> bool:
        if counter % _TICKS == 0:
            self._hang_up()
        return await super().on_tick(counter)

    def _hang_up(self) -> None:
        """Close the connections on which a client has let nothing happen for too long."""
        now = time.monotonic()
        connections = cast(list[HttpConnection], list(self.server_state.connections))
        is_crowded = len(connections) > (self.config.limit_concurrency or math.inf) / 2
        before, self._standings = self._standings, {}
        for connection in connections:
            standing = _standing(connection, is_crowded=is_crowded)
            if standing is None:
                continue
            earlier, since = before.get(connection, (standing, now))
            since = since if earlier == standing else now
            self._standings[connection] = standing, since
            if now - since > (CROWDED_S if is_crowded else IDLE_S):
                _end(connection)


class _Standing(NamedTuple):
    """What changes on a connection as soon as its client does anything."""

    request: Exchange | None  # The last request that came
    unsent_bytes: int  # What the client has not read of an answer


def _standing(connection: HttpConnection, *, is_crowded: bool) -> _Standing | None:
    """Return the state of a connection that waits for its client; ``None`` for one that waits for the server."""
    unsent = connection.transport.get_write_buffer_size()
    request = connection.cycle
    is_idle = request is None or request.response_complete
    is_uploading = is_crowded and request is not None and not is_idle and request.more_body
    return _Standing(request, unsent) if is_idle or unsent or is_uploading else None


def _end(connection: HttpConnection) -> None:
    """Close a connection; abort it where its client does not read the rest."""
    if connection.transport.get_write_buffer_size():
        connection.transport.abort()
    else:
        connection.transport.close()


def config_of(app: ASGIApp, *, connections: int, end_s: int, stack: Stack | None = None) -> uvicorn.Config:
    """Return both servers' settings of uvicorn; a stopped server has ``end_s`` seconds for its last answers.

    The stack is the native one where it is installed, unless given.
    """
    stack = stack or installed_stack()
    return uvicorn.Config(
        app,
        loop="asyncio" if stack is Stack.PYTHON else "uvloop",
        http=_protocol_of(stack),  # PatientServer reads the state of its connections
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        proxy_headers=False,  # anybody could send them
        limit_concurrency=connections,
        timeout_keep_alive=math.ceil(IDLE_S),  # longer than clients keep theirs: else a request meets a closed door
        timeout_graceful_shutdown=end_s,
    )


def _protocol_of(stack: Stack) -> type[asyncio.Protocol]:
    """Return the class whose objects read the connections' requests."""
    if stack is Stack.PYTHON:
        return JsonProtocol
    from rewardkit.web.native import NativeProtocol  # needs httptools

    return NativeProtocol


def check_token(host: str, token: str | None, *, drawn: bool) -> None:
    """Raise ConfigError for a token that no address can hold, or where others have access without a token.

    ``drawn`` is whether the server draws a token of its own where none is given; the message then asks for another.
    """
    if token is not None and not _TOKEN.fullmatch(token):
        raise ConfigError("--token: expected at most 200 letters, digits and -_.~, so that it can stand in an address")
    if token is not None and len(token) < MIN_TOKEN and not is_loopback(host):
        raise ConfigError(
            f"--host {host}: others can reach this address; give a --token of {MIN_TOKEN} characters or more"
        )
    if token is None and not is_loopback(host):
        own = " of your own" if drawn else ""
        raise ConfigError(f"--host {host}: others can reach this address; give a --token{own} as well")


def is_loopback(host: str) -> bool:
    """Return whether an address or a name stands for this machine alone."""
    if host.lower() in _LOCAL_NAMES:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def url_host(host: str) -> str:
    """Return an address to listen on as it stands in a URL."""
    return f"[{host}]" if ":" in host else host


def listening(host: str, port: int, tries: int | None = None) -> socket.socket:
    """Return a socket at the first free port from ``port`` on. Raises ConfigError where it can have none."""
    last = min(port + (tries or PORTS_TRIED) - 1, 65535)
    reason: OSError | None = None
    for candidate in range(port, last + 1):
        try:
            return _bind(host, candidate)
        except OSError as error:
            reason = error
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise ConfigError(f"--host {host}: no address of this machine: {error.strerror}") from error
    if port == last:
        remedy = "end what listens there, or give another --port"
        if reason is not None and reason.errno == errno.EACCES:
            remedy = "this user may not listen there; give another --port, such as 8000"
        raise ConfigError(f"--port {port}: is not free: {reason}; {remedy}")
    raise ConfigError(f"--port {port}: none of the ports {port} to {last} is free: {reason}")


def _bind(host: str, port: int) -> socket.socket:
    """Return a socket that listens at a port.

    Its protocol is TCP by name, unlike with ``socket.create_server``: else asyncio delays parts of an answer by 40 ms.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a restarted server need not wait a minute
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener
