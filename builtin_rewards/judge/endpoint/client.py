"""One HTTP request for a chat completion, on the AsyncOpenAI client, at any OpenAI-compatible server.

Owns the server's settings, the key's way from the environment into the request, and one client per event loop and
server, made at first use. Leaves foreign errors and completions to ``foreign``, further tries to ``retry``.

Exactly one request a call: the library's own retries are off and redirects are not followed, so the key goes to no
other host than the one that was named. Clients are closed when their event loop ends as ``asyncio.run`` ends it; one
that is closed without ``loop.shutdown_asyncgens()`` leaves its connections to the garbage collector.
"""

from __future__ import annotations

import asyncio
import functools
import ipaddress
import math
import os
import re
import ssl
import threading
import weakref
from collections.abc import AsyncGenerator, Awaitable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias
from urllib.parse import SplitResult, urlsplit

from builtin_rewards.judge.endpoint.foreign import SHORTEST_KEY, Asked, read, translate
from builtin_rewards.judge.endpoint.values import Reply, Request
from builtin_rewards.judge.errors import JudgeSetupError
from rewardkit import RewardError

if TYPE_CHECKING:
    from openai import AsyncOpenAI

OPENAI_URL = "https://api.openai.com/v1"
NO_KEY = "no-key"
"""What a server on loopback is sent where the environment has no key: the library sends none without one."""

_REQUESTS_A_LANE = 8
_IDLE_S = 30.0
_SECRET_HEADER = re.compile(r"auth|key|token|secret|cookie|password", re.IGNORECASE)


class StandIn(Protocol):
    """Has the shape of an OpenAI client, ``await client.chat.completions.create(...)``, and is asked in its place."""

    @property
    def chat(self) -> Any: ...


@dataclass(frozen=True, slots=True)
class Server:
    """Where a model is served. Checked when made; pickles; holds no key.

    Attributes:
        base_url: The API's address, mostly ending with ``/v1``; ``None`` takes ``OPENAI_BASE_URL`` from the
            environment, else OpenAI's own.
        key_env: The environment variable that holds the key, read when a process first asks the server. A server on
            loopback may do without.
        connect_timeout_s: Longest time for a connection to be made.
        read_timeout_s: Longest time without a byte from the server; the whole reply may take longer.
        headers: Further headers of every request, as a mapping or as pairs. None of them may be a secret.

    Raises:
        JudgeSetupError: A setting makes no sense, or there is no key; names the fix.
    """

    base_url: str | None = None
    key_env: str = "OPENAI_API_KEY"
    connect_timeout_s: float = 5.0
    read_timeout_s: float = 60.0
    headers: Mapping[str, str] | tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        url = self.base_url if self.base_url is not None else os.environ.get("OPENAI_BASE_URL") or OPENAI_URL
        _check_url(url)
        _check_key_env(self.key_env)
        for setting in ("connect_timeout_s", "read_timeout_s"):
            _check_seconds(setting, getattr(self, setting))
        headers = self.headers.items() if isinstance(self.headers, Mapping) else self.headers
        object.__setattr__(self, "base_url", url.rstrip("/"))
        object.__setattr__(self, "headers", tuple(sorted((str(name), str(value)) for name, value in headers)))
        _check_headers(self, _key(self))

    @property
    def name(self) -> str:
        """What messages call it: its address."""
        return self.base_url or OPENAI_URL

    @property
    def on_loopback(self) -> bool:
        """Whether it is on this machine, so that it may do without a key and is not asked through a proxy."""
        host = urlsplit(self.name).hostname or ""
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost" or host.endswith(".localhost")


Asks: TypeAlias = Server | StandIn
"""What can be asked: a server, or a client that stands in for one."""


def _check_url(url: Any) -> None:
    """Refuse what is no address of an API. The address is shown only where it cannot hold a secret."""
    parts = _split(url)
    if parts.username is not None or parts.password is not None:
        raise JudgeSetupError("base_url: holds a user name or password; take them out and put the key in key_env's")
    if parts.query or parts.fragment:
        raise JudgeSetupError(f"base_url: take away what follows the path at {parts.hostname}; a key goes in key_env's")
    if parts.path.rstrip("/").endswith(("/chat/completions", "/completions", "/responses")):
        raise JudgeSetupError(f"base_url: {url!r} names one call; end it before, mostly at /v1")


def _split(url: Any) -> SplitResult:
    fix = "expected an address such as 'http://127.0.0.1:8000/v1'"
    try:
        parts = urlsplit(url if isinstance(url, str) else "")
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        known = False
    if not known or re.search(r"[\s\x00-\x1f]", url):
        shown = f", got {url!r}" if isinstance(url, str) and not re.search(r"[@?#]", url) else ""
        raise JudgeSetupError(f"base_url: {fix}{shown}")
    return parts


def _check_key_env(name: Any) -> None:
    # Capitals only, and the value is not shown: what is no such name may be the key itself.
    if not isinstance(name, str) or not re.fullmatch(r"[A-Z_][A-Z0-9_]*", name):
        raise JudgeSetupError("key_env: expected the name of an environment variable in capitals, not the key itself")


def _check_seconds(setting: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise JudgeSetupError(f"{setting}={value!r}: expected a positive number of seconds")


def _check_headers(server: Server, key: str) -> None:
    for name, value in dict(server.headers).items():
        if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name) or not re.fullmatch(r"[\x20-\x7e]*", value):
            raise JudgeSetupError(f"headers: {name!r}: expected a header's name with a value of one line of ASCII")
        if _SECRET_HEADER.search(name) or (len(key) >= SHORTEST_KEY and key in value):
            raise JudgeSetupError(
                f"headers: {name!r} looks like a secret, and settings travel and are shown; "
                "put the key in the environment variable that key_env names"
            )


def _key(server: Server) -> str:
    """Gives the key from the environment.

    Raises:
        JudgeSetupError: There is none and the server is not on loopback, or it cannot be a header's value.
    """
    key = os.environ.get(server.key_env, "").strip()
    if not key and not server.on_loopback:
        raise JudgeSetupError(
            f"no key for {server.name}: set the environment variable {server.key_env} (to any word if the server "
            "wants none), or name another one with key_env"
        )
    if not re.fullmatch(r"[\x21-\x7e]*", key):
        raise JudgeSetupError(f"the key in {server.key_env} holds a space, a line break or a character outside ASCII")
    return key or NO_KEY


async def create(server: Asks, request: Request) -> Reply:
    """Sends one request and gives the reply, whatever it says.

    Raises:
        JudgeUnavailableError: No chat completion came; ``fault``, ``status`` and ``retry_after_s`` say why.
        JudgeReplyError: The library itself says that the reply was cut short or filtered.
        JudgeSetupError: There is no key.
        ImportError: openai is not installed; names the extra.
    """
    if not isinstance(server, Server):
        asked = Asked(f"the client {type(server).__name__}", request.model)
        return await _translated(_ask(server, request), asked)
    with (await _of_this_loop()).lane(server) as client:
        return await _translated(_send(client, request), Asked(server.name, request.model, client.api_key))


async def _translated(answer: Awaitable[Any], asked: Asked) -> Reply:
    try:
        completion = await answer
    except RewardError:
        raise
    except Exception as raised:
        error = translate(raised, asked)
    else:
        return read(completion, asked)
    # Outside the handler: there the library's error, which holds the request with its key, would be the context.
    raise error


async def _ask(client: StandIn, request: Request) -> Any:
    messages = [dict(message) for message in request.messages]
    return await client.chat.completions.create(model=request.model, messages=messages, **request.options)


async def _send(client: AsyncOpenAI, request: Request) -> Any:
    """Sends a request and gives the response's JSON, or its text where it is none.

    Everything goes as ``extra_body``, which is sent as it is, and the response comes raw: the library's walks over the
    types of both take as long as the rest of a request, while the loop can do nothing else.
    """
    options = dict(request.options)
    body = {**(options.pop("extra_body", None) or {}), **options}
    body["messages"] = [dict(message) for message in request.messages]
    raw = await client.chat.completions.with_raw_response.create(model=request.model, messages=[], extra_body=body)
    try:
        return raw.http_response.json()
    except ValueError:
        return raw.http_response.text


async def prepare(server: Asks) -> None:
    """Imports the library and makes this event loop's client, so that no deadline is charged for it (1.6 s)."""
    if isinstance(server, Server):
        with (await _of_this_loop()).lane(server):
            pass


@dataclass(slots=True)
class _Lane:
    """A client with a pool of connections of its own, and how many requests are on it."""

    client: AsyncOpenAI
    in_flight: int = 0


@dataclass(slots=True)
class _Clients:
    """The clients of one event loop.

    Attributes:
        lanes: Those made so far. A server has several, for the transport's pool looks at each of its connections for
            each request, and one of 128 takes more time than everything else together.
        life: A generator that waits for the loop's end; ``loop.shutdown_asyncgens()`` closes it, and it the clients.
    """

    lanes: dict[Server, list[_Lane]] = field(default_factory=dict)
    life: AsyncGenerator[None, None] | None = None

    @contextmanager
    def lane(self, server: Server) -> Iterator[AsyncOpenAI]:
        """Gives a client to send one request on, the first that has room."""
        lanes = self.lanes.setdefault(server, [])
        lane = next((one for one in lanes if one.in_flight < _REQUESTS_A_LANE), None)
        if lane is None:
            lane = _Lane(_make(server))
            lanes.append(lane)
        lane.in_flight += 1
        try:
            yield lane.client
        finally:
            lane.in_flight -= 1

    async def until_loop_ends(self) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            for lane in [lane for lanes in self.lanes.values() for lane in lanes]:
                await lane.client.close()
            self.lanes.clear()


_loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Clients] = weakref.WeakKeyDictionary()
_loops_lock = threading.Lock()
"""For ``_loops``, which several event loops in several threads share."""


async def _of_this_loop() -> _Clients:
    loop = asyncio.get_running_loop()
    with _loops_lock:
        clients = _loops.get(loop)
        if clients is None:
            # Open connections refer to their loop, so an entry would outlive it, weak key or not.
            for ended in [other for other in _loops if other.is_closed()]:
                del _loops[ended]
            clients = _loops[loop] = _Clients()
    if clients.life is None:
        clients.life = clients.until_loop_ends()
        await anext(clients.life)
    return clients


def _make(server: Server) -> AsyncOpenAI:
    try:
        import httpx2
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient
    except ImportError as missing:
        raise ImportError("a judge needs openai: pip install 'rewardkit[judge]'") from missing
    transport = DefaultAsyncHttpxClient(
        limits=httpx2.Limits(keepalive_expiry=_IDLE_S),
        verify=_tls(),
        timeout=httpx2.Timeout(server.read_timeout_s, connect=server.connect_timeout_s),
        follow_redirects=False,
        trust_env=not server.on_loopback,
    )
    return AsyncOpenAI(
        api_key=_key(server),
        base_url=server.name,
        max_retries=0,
        timeout=transport.timeout,
        default_headers=dict(server.headers),
        http_client=transport,
    )


@functools.cache
def _tls() -> ssl.SSLContext:
    """Gives the one TLS context of all clients: each takes 80 ms to make, for it reads the certificates."""
    import httpx2

    return httpx2.create_ssl_context()
