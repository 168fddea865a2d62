"""openai's client as judges have it: no second try, redirect, log or cookie, and replies of a bounded size.

It is imported at a judge's first question, because openai takes its time. openai's client builds the requests and
knows the statuses of errors; connections, TLS and HTTP are httpx2's.
"""

from __future__ import annotations

import functools
import json
import ssl
import urllib.request
from collections.abc import Mapping
from contextlib import aclosing, suppress
from typing import Any
from urllib.parse import urlsplit

import httpx2
from openai import APIStatusError, AsyncOpenAI

from builtin_rewards.endpoint.backends import LazyClient, Server, is_loopback
from builtin_rewards.endpoint.errors import Fault, JudgeSetupError
from builtin_rewards.endpoint.foreign import MOST_BYTES, Addressee, HttpAnswer

_OF_TRANSFER = frozenset({"content-encoding", "content-length", "transfer-encoding"})


def make_client(server: Server) -> AsyncOpenAI:
    """Return a server's client for one event loop; JudgeSetupError if the environment's proxy cannot be used."""

    async def read_key() -> str:
        return server.key()

    return AsyncOpenAI(
        api_key=read_key,
        base_url=server.base_url,
        max_retries=0,
        timeout=None,  # a judgement has its deadline
        default_headers={"Accept-Encoding": "identity", "User-Agent": "rewardkit", **dict(server.headers)},
        default_query=dict(server.query),
        http_client=_HttpClient(server.base_url, server.on_loopback),
    )


def take_over(lazy: LazyClient) -> Any:
    """Return a new client of the user's; openai's tries nothing again, and has our connections for want of its own."""
    client = lazy()
    if not isinstance(client, AsyncOpenAI):
        return client
    url = str(client.base_url)
    more: dict[str, Any] = {} if lazy.has_own_http else {"http_client": _HttpClient(url, is_loopback(url))}
    return client.with_options(max_retries=0, timeout=None, **more)


async def fetch(client: AsyncOpenAI, path: str, body: Mapping[str, Any] | None) -> HttpAnswer:
    """Send one request, a POST if it has a body, and return the answer whatever its status."""
    try:
        if body is None:
            response = await client.get(path, cast_to=httpx2.Response)
        else:
            ascii_json = json.dumps(body).encode()  # half a surrogate can be sent
            response = await client.post(path, cast_to=httpx2.Response, content=ascii_json)
    except APIStatusError as error:
        response = error.response
    content: Any = response.content.decode("utf-8-sig", "replace")
    with suppress(ValueError, RecursionError):
        content = json.loads(content)
    return HttpAnswer(response.status_code, response.headers, content)


class _HttpClient(httpx2.AsyncClient):
    """What openai's client sends by: connections of which each has one request at a time."""

    def __init__(self, base_url: str, direct: bool) -> None:
        self._make_transport = functools.partial(_transport, base_url, direct)
        # A transport each: a pool looks at all connections that it has for each request, a fifth of the client's time.
        self._idle = [self._make_transport()]
        self._server = base_url
        super().__init__(transport=self._idle[0], timeout=None)

    async def send(self, request: httpx2.Request, **_: object) -> httpx2.Response:
        """Return the whole answer, unpacked; raise JudgeReplyError for one of more than ``MOST_BYTES``."""
        transport = self._idle.pop() if self._idle else self._make_transport()
        try:
            response = await transport.handle_async_request(request)
            content = await self._read(response)
            if _has_surplus(response):
                await transport.aclose()
        finally:
            self._idle.append(transport)
        headers = [header for header in response.headers.multi_items() if header[0] not in _OF_TRANSFER]
        return httpx2.Response(response.status_code, headers=headers, content=content, request=request)

    async def _read(self, response: httpx2.Response) -> bytes:
        raw = bytearray()
        async with aclosing(response), aclosing(response.aiter_bytes()) as parts:
            async for part in parts:  # unpacked by at most a megabyte at a time
                raw += part
                if len(raw) > MOST_BYTES:
                    size = f"more than {MOST_BYTES >> 20} MB, and was read no further"
                    problem = f"HTTP {response.status_code} with {size}"
                    raise Addressee(self._server, "").error(Fault.UNREADABLE, problem)
        return bytes(raw)

    async def aclose(self) -> None:
        """Close the connections that no request has."""
        for transport in self._idle:
            await transport.aclose()


def _has_surplus(response: httpx2.Response) -> bool:
    """Return whether more than the answer came, which would be read as the next request's; true if nothing tells.

    What comes later is seen by httpcore, which takes no connection again on which there is something to read.
    """
    part: Any = response.stream
    for name in ("_httpcore_stream", "_stream", "_connection", "_h11_state"):
        part = getattr(part, name, None)
    if part is None or part.trailing_data[0]:
        return True
    tls = response.extensions["network_stream"].get_extra_info("ssl_object")
    try:
        return tls is not None and isinstance(tls.read(1), bytes)  # of what came in the last packet; it never waits
    except ssl.SSLWantReadError:
        return False
    except ssl.SSLError:
        return True


def _transport(base_url: str, direct: bool) -> httpx2.AsyncHTTPTransport:
    """Return a transport, through the environment's proxy unless ``direct``; no message shows its password."""
    proxy, parts = None, urlsplit(base_url)
    if not direct and not urllib.request.proxy_bypass(parts.hostname or ""):
        proxy = urllib.request.getproxies().get(parts.scheme) or urllib.request.getproxies().get("all")
    if proxy is not None and "://" not in proxy:
        proxy = f"http://{proxy}"
    with suppress(ValueError, ImportError, httpx2.InvalidURL):
        return httpx2.AsyncHTTPTransport(verify=_tls(), proxy=proxy, limits=httpx2.Limits(keepalive_expiry=30.0))
    del proxy  # tracebacks may show locals
    raise JudgeSetupError(
        f"{base_url}: the proxy that http_proxy, https_proxy or all_proxy names in the environment cannot be "
        "used; write it as http://host:port, name the server in no_proxy, or for socks5:// install socksio"
    )


@functools.cache
def _tls() -> ssl.SSLContext:
    """Return the TLS context of all transports; making one takes 80 ms, because it reads the certificates."""
    return httpx2.create_ssl_context()
