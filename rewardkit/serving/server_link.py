"""One reward server as a client asks it: a connection for each thread, waits that end, and what an answer means.

It reads no scores; which server is asked for what, and again, is :mod:`~rewardkit.serving.remote`'s.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import math
import re
import socket
import threading
import time
from urllib.parse import urlsplit

from rewardkit.errors import ConfigError, DataError
from rewardkit.shown.text import shortened

TOKEN_VARIABLE = "REWARDKIT_SERVE_TOKEN"  # noqa: S105 - the variable's name
"""The environment variable with the token of reward servers and their clients."""


CONNECT_S = (
    10.0  # Seconds for a connection to open: a machine that is off refuses none, and the system tries for minutes
)


class AgainError(Exception):
    """A request was not answered, and nobody is at fault."""


class OtherVersionError(AgainError):
    """A server has scored with other versions of its rewards than it had when the client was made."""


class ServerLink:
    """One server, with a connection for each thread that asks it."""

    def __init__(self, url: str, token: str | None, timeout_s: float) -> None:
        try:
            parts = urlsplit(url)
            is_address = parts.scheme in ("http", "https") and parts.hostname and not parts.query
            self._port = parts.port
        except ValueError:  # a port that is no number, or a bracket too few
            is_address = False
        if not is_address:
            raise ConfigError(f"urls: {without_token(url)!r}: expected an address such as 'http://rewards:8000'")
        if token is not None and not (token.isascii() and token.isprintable()):
            raise ConfigError("token: expected letters, digits and signs; it has a line break or another character")
        if isinstance(timeout_s, bool) or not 0 < timeout_s < math.inf:
            raise ConfigError(f"timeout_s={timeout_s!r}: expected a number of seconds above 0")
        self.url, self._base, self._timeout_s = without_token(url), parts.path.rstrip("/"), timeout_s
        self._host, self._is_tls = parts.hostname or "", parts.scheme == "https"
        self._headers = {"content-type": "application/json"}
        if token is not None:
            self._headers["authorization"] = f"Bearer {token}"
        self._of_thread = threading.local()  # a connection has one request at a time
        self._open: list[http.client.HTTPConnection] = []
        self._asking: set[http.client.HTTPConnection] = set()
        self._is_closed = False

    def ask(self, method: str, path: str, body: bytes | None) -> object:
        """Return the JSON that the server answers with.

        Raises AgainError if it is late or busy, DataError if it refuses the rows, ConfigError if the client.
        """
        connection = self._connection()
        was_used, start = connection.sock is not None, time.monotonic()
        timer = threading.Timer(self._timeout_s, _shut, (connection,))  # an answer may drip for ever
        timer.daemon = True
        timer.start()
        self._asking.add(connection)
        try:
            if not was_used:
                connection.timeout = min(self._timeout_s, CONNECT_S)
                connection.connect()
                connection.sock.settimeout(self._timeout_s)
            connection.request(method, self._base + path, body, self._headers)
            if self._is_closed:  # before there was a socket to shut
                raise http.client.NotConnected("this client is closed")
            response = connection.getresponse()
            status, answer = response.status, response.read()
        except (OSError, http.client.HTTPException) as error:
            self.drop()
            is_late = self._is_closed or time.monotonic() - start >= self._timeout_s
            if was_used and isinstance(error, ConnectionError) and not is_late:
                return self.ask(method, path, body)  # perhaps the server had closed a connection that was idle
            raise AgainError(f"does not answer: {type(error).__name__}: {error}") from error
        finally:
            timer.cancel()
            self._asking.discard(connection)
            if self._is_closed:
                self.drop()
        if status == 200:
            try:
                reply: object = json.loads(answer)
                return reply
            except ValueError:
                raise AgainError("answered something that is not JSON") from None
        message = f"answered {status}: {_error_in(answer)}"
        if status in (400, 413, 422):  # no other server would take these rows
            raise DataError(f"{self.url} {message}")
        if status == 401 and "authorization" not in self._headers:
            message += f"; put the server's token into {TOKEN_VARIABLE}"
        if status in (401, 403, 404, 405):  # nor this client
            raise ConfigError(f"{self.url} {message}")
        raise AgainError(message)

    def _connection(self) -> http.client.HTTPConnection:
        """Return this thread's connection, which opens when something is asked."""
        connection: http.client.HTTPConnection | None = getattr(self._of_thread, "connection", None)
        if connection is None:
            kind = http.client.HTTPSConnection if self._is_tls else http.client.HTTPConnection
            connection = self._of_thread.connection = kind(self._host, self._port, timeout=self._timeout_s)
            self._open.append(connection)
        return connection

    def drop(self) -> None:
        """Close this thread's connection."""
        connection = getattr(self._of_thread, "connection", None)
        if connection is not None:
            connection.close()
            with contextlib.suppress(ValueError):  # closed and dropped
                self._open.remove(connection)
            self._of_thread.connection = None

    def close(self) -> None:
        """Close the connections of all threads; one that waits for an answer closes its own when it is woken."""
        self._is_closed = True
        for connection in list(self._open):
            _shut(connection)
            if connection not in self._asking:
                connection.close()


def without_token(url: str) -> str:
    """Return an address for messages and records, with the token in it hidden."""
    return re.sub(r"/t/[^/#?]+", "/t/***", url)


def _shut(connection: http.client.HTTPConnection) -> None:
    """End what a thread waits for on a connection."""
    with contextlib.suppress(OSError):
        if connection.sock is not None:
            connection.sock.shutdown(socket.SHUT_RDWR)


def _error_in(answer: bytes) -> str:
    """Return the error in a server's answer, or the beginning of what else it is."""
    try:
        return str(json.loads(answer)["error"])
    except (ValueError, KeyError, TypeError):
        return shortened(answer.decode("utf-8", "replace"))
