"""One HTTP request to an OpenAI-compatible server, and nothing more: no second try, no redirect, no log.

Owns the server's address, the key's way from the environment into the request, and the connections of each event loop,
made at first use. What an answer means is ``foreign``'s, further tries ``retry``'s. A redirect is not followed, so the
key goes to no other host than the one that was named.

Connections are closed when their event loop ends as ``asyncio.run`` ends it; one that is closed without
``loop.shutdown_asyncgens()`` leaves them to the garbage collector.
"""

from __future__ import annotations

import functools
import importlib.util
import ipaddress
import json
import os
import re
import ssl
import urllib.request
import zlib
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias
from urllib.parse import SplitResult, urlsplit

from builtin_rewards.judge.endpoint.foreign import Asked, Said, read, translate
from builtin_rewards.judge.endpoint.values import Reply, Request
from builtin_rewards.judge.errors import Fault, JudgeError, JudgeSetupError
from builtin_rewards.judge.loops import per_loop
from rewardkit import RewardError

if TYPE_CHECKING:
    import httpx2

OPENAI_URL = "https://api.openai.com/v1"
NO_KEY = "no-key"
"""What a server on loopback is sent where the environment has no key."""
MOST_BYTES = 16 * 2**20
"""Bytes of an answer, unpacked, after which it is read no further."""

_CONNECT_S = 5.0
"""Deadlines end requests, not the transport, whose other times begin anew with every byte."""
_HEADERS = {
    "Accept": "application/json",
    "Accept-Encoding": "identity",
    "Content-Type": "application/json",
    "User-Agent": "rewardkit",
}
_REQUESTS_A_POOL = 8
_IDLE_S = 30.0
_PACKED = ("gzip", "x-gzip", "deflate")


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
        key_env: The environment variable that holds the key, read for each request. A server on loopback may do
            without.

    Raises:
        JudgeSetupError: A setting makes no sense, there is no key, or the extra is not installed; names the fix.
    """

    base_url: str | None = None
    key_env: str = "OPENAI_API_KEY"

    def __post_init__(self) -> None:
        if importlib.util.find_spec("httpx2") is None:
            raise JudgeSetupError("a judge needs httpx2: pip install 'rewardkit[judge]'")
        url = self.base_url if self.base_url is not None else os.environ.get("OPENAI_BASE_URL") or OPENAI_URL
        _check_url(url)
        # Capitals only, and the value is not shown: what is no such name may be the key itself.
        if not isinstance(self.key_env, str) or not re.fullmatch(r"[A-Z_][A-Z0-9_]*", self.key_env):
            raise JudgeSetupError(
                "key_env: expected the name of an environment variable in capitals, not the key itself"
            )
        object.__setattr__(self, "base_url", url.rstrip("/"))
        self.key()

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

    def key(self) -> str:
        """Gives the key from the environment.

        Raises:
            JudgeSetupError: There is none and the server is not on loopback, or it cannot be a header's value.
        """
        key = os.environ.get(self.key_env, "").strip()
        if not key and not self.on_loopback:
            raise JudgeSetupError(
                f"no key for {self.name}: set the environment variable {self.key_env} (to any word if the server "
                "wants none), or name another one with key_env"
            )
        if not re.fullmatch(r"[\x21-\x7e]*", key):
            del key  # tracebacks may show locals
            raise JudgeSetupError(f"the key in {self.key_env} holds a space, a line break or a character outside ASCII")
        return key or NO_KEY


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


async def create(asks: Asks, request: Request) -> Reply:
    """Sends one request and gives the reply, whatever it says.

    Raises:
        JudgeUnavailableError: No chat completion came; ``fault``, ``status`` and ``retry_after_s`` say why.
        JudgeReplyError: The reply is longer than ``MOST_BYTES``.
        JudgeSetupError: There is no key.
    """
    if isinstance(asks, Server):
        asked = Asked(asks.name, request.model, asks.key())
    else:
        asked = Asked(f"the client {type(asks).__name__}", request.model)
    outcome = await _outcome(asks, request, asked)
    if isinstance(outcome, Reply):
        return outcome
    # Without what led to it: a foreign error holds the request with its key, and a frame what the server echoes of it.
    raise outcome.with_traceback(None)


async def _outcome(asks: Asks, request: Request, asked: Asked) -> Reply | JudgeError:
    try:
        said = await _said(asks, request)
        return read(said.content, asked) if said.status < 300 else asked.refusal(said)
    except JudgeError as error:
        return error
    except RewardError:
        raise
    except Exception as raised:
        return translate(raised, asked)


async def _said(asks: Asks, request: Request) -> Said:
    """Gives what a server says, or the completion of a client that stands in for one."""
    options, messages = dict(request.options), [dict(message) for message in request.messages]
    if isinstance(asks, Server):
        body = {"model": request.model, **(options.pop("extra_body", None) or {}), **options, "messages": messages}
        return await send(asks, "chat/completions", body)
    return Said(200, {}, await asks.chat.completions.create(model=request.model, messages=messages, **options))


async def send(server: Server, path: str, body: Mapping[str, Any] | None = None) -> Said:
    """Sends one request, a POST where it has a body, and gives what the server says.

    Raises:
        httpx2.TransportError: No whole answer came.
        JudgeError: The answer is too long, or packed in a way that nobody asked for.
    """
    import httpx2

    request = httpx2.Request(
        "GET" if body is None else "POST",
        f"{server.name}/{path}",
        headers={"Authorization": f"Bearer {server.key()}", **_HEADERS},  # no local: tracebacks may show those
        content=None if body is None else json.dumps(body).encode("ascii"),
        extensions={"timeout": {"connect": _CONNECT_S}},
    )
    with (await _of_this_loop()).pool(server) as transport:
        response = await transport.handle_async_request(request)
        try:
            raw = await _body(server, response)
        finally:
            await response.aclose()
    text = raw.decode("utf-8-sig", "replace")
    try:
        return Said(response.status_code, response.headers, json.loads(text))
    except (ValueError, RecursionError):
        return Said(response.status_code, response.headers, text)


async def _body(server: Server, response: httpx2.Response) -> bytes:
    """Gives an answer's bytes, unpacked: a server that packs though it was not asked to is read all the same."""
    packing, body = response.headers.get("content-encoding", "identity").strip().lower(), bytearray()
    if packing not in ("identity", "", *_PACKED):
        what = f"HTTP {response.status_code} packed as {packing!r}, which nobody asked for"
        raise Asked(server.name, "").error(Fault.NOT_A_COMPLETION, what, response.status_code)
    unpack = zlib.decompressobj(47) if packing in _PACKED else None
    async for part in response.stream:  # type: ignore[union-attr]  # of an asynchronous transport
        body += part if unpack is None else unpack.decompress(part, MOST_BYTES + 1 - len(body))
        if len(body) > MOST_BYTES:
            what = f"HTTP {response.status_code} with more than {MOST_BYTES >> 20} MB, and was read no further"
            raise Asked(server.name, "").error(Fault.UNREADABLE, what)
    return bytes(body)


async def prepare(server: Asks) -> None:
    """Imports the library and makes this event loop's first pool, so that no deadline is charged for it.

    Raises:
        JudgeSetupError: The environment's proxy cannot be used.
    """
    if isinstance(server, Server):
        with (await _of_this_loop()).pool(server):
            pass


@dataclass(slots=True)
class _Pool:
    """A transport with connections of its own, and how many requests are on it."""

    transport: httpx2.AsyncHTTPTransport
    in_flight: int = 0


@dataclass(slots=True)
class _Pools:
    """The connections of one event loop, whose end closes ``life``, and it the pools.

    A server has several, for a pool looks at each of its connections for each request: of 2,400 requests on a busy
    machine of two cores, 128 in flight, a single one took 38 s and these 27 s.
    """

    pools: dict[Server, list[_Pool]] = field(default_factory=dict)
    life: AsyncGenerator[None, None] | None = None

    @contextmanager
    def pool(self, server: Server) -> Iterator[httpx2.AsyncHTTPTransport]:
        """Gives a transport to send one request on, the first that has room."""
        pools = self.pools.setdefault(server, [])
        pool = next((one for one in pools if one.in_flight < _REQUESTS_A_POOL), None)
        if pool is None:
            pool = _Pool(_transport(server))
            pools.append(pool)
        pool.in_flight += 1
        try:
            yield pool.transport
        finally:
            pool.in_flight -= 1

    async def until_loop_ends(self) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            for pool in [pool for pools in self.pools.values() for pool in pools]:
                await pool.transport.aclose()
            self.pools.clear()


_pools = per_loop(_Pools)


async def _of_this_loop() -> _Pools:
    pools = _pools()
    if pools.life is None:
        pools.life = pools.until_loop_ends()
        await anext(pools.life)
    return pools


def _transport(server: Server) -> httpx2.AsyncHTTPTransport:
    """Gives a transport, below the library's client: that one logs every request, and keeps cookies.

    Raises:
        JudgeSetupError: The environment's proxy is none. It may hold a password, so no word or frame of it is shown.
    """
    transport = _by_proxy(server)
    if transport is None:
        raise JudgeSetupError(
            f"{server.name}: the proxy that http_proxy, https_proxy or all_proxy names in the environment cannot be "
            "used; write it as http://host:port, name the server in no_proxy, or for socks5:// install socksio"
        )
    return transport


def _by_proxy(server: Server) -> httpx2.AsyncHTTPTransport | None:
    """Gives a transport by the environment's proxy if there is one; ``None`` where that cannot be used."""
    import httpx2

    proxy, host = None, urlsplit(server.name).hostname or ""
    if not server.on_loopback and not urllib.request.proxy_bypass(host):
        proxies = urllib.request.getproxies()
        proxy = proxies.get(urlsplit(server.name).scheme) or proxies.get("all")
    if proxy is not None and "://" not in proxy:
        proxy = f"http://{proxy}"
    try:
        return httpx2.AsyncHTTPTransport(verify=_tls(), proxy=proxy, limits=httpx2.Limits(keepalive_expiry=_IDLE_S))
    except (ValueError, ImportError, httpx2.InvalidURL):
        return None


@functools.cache
def _tls() -> ssl.SSLContext:
    """Gives the one TLS context of all pools: each takes 80 ms to make, for it reads the certificates."""
    import httpx2

    return httpx2.create_ssl_context()
