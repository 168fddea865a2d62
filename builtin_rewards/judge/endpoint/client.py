"""One HTTP request, below httpx's client: no second try, redirect, log or cookie, and no key for another host."""

from __future__ import annotations

import asyncio
import functools
import importlib.util
import itertools
import json
import os
import re
import ssl
import time
import urllib.request
from collections import defaultdict
from collections.abc import AsyncGenerator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias
from urllib.parse import urlsplit

from builtin_rewards.judge.endpoint.foreign import Addressee, HttpAnswer, parse_completion, retry_after_s, translate
from builtin_rewards.judge.errors import Fault, JudgeError, JudgeSetupError
from builtin_rewards.judge.messages import Reply, Request
from builtin_rewards.judge.prompt import near_names
from rewardkit import RewardError
from rewardkit.extending import of_this_loop

if TYPE_CHECKING:
    import httpx2

OPENAI_URL = "https://api.openai.com/v1"
NO_KEY = "no-key"  # what a server on loopback is sent where the environment has no key
MOST_BYTES = 16 * 2**20  # of an answer, unpacked, that are read

_VERIFY_S, _AGAIN_S = 3.0, 0.3
_HEADERS = {"Accept-Encoding": "identity", "Content-Type": "application/json", "User-Agent": "rewardkit"}


class StandIn(Protocol):
    """A client of OpenAI's shape, ``await client.chat.completions.create(...)``, that is asked in a server's place."""

    @property
    def chat(self) -> Any: ...


@dataclass(frozen=True, slots=True, init=False)
class Server:
    """Where a model is served; pickles and holds no key. JudgeSetupError names the wrong setting and its fix."""

    base_url: str  # The API's address, mostly ending with `/v1`; by default `OPENAI_BASE_URL`'s, else OpenAI's own
    key_env: str  # The environment variable of the key, read for each request. A server on loopback may do without.

    def __init__(self, base_url: str | None = None, key_env: str = "OPENAI_API_KEY") -> None:
        if importlib.util.find_spec("httpx2") is None:
            raise JudgeSetupError("a judge needs httpx2: pip install 'httpx2>=2.12'")
        url = base_url if base_url is not None else os.environ.get("OPENAI_BASE_URL") or OPENAI_URL
        problem = _why_no_url(url)
        if not isinstance(key_env, str) or not re.fullmatch(r"[A-Z_][A-Z0-9_]*", key_env):
            problem = "key_env: expected the name of an environment variable in capitals, not the key itself"
        if problem is not None:
            raise JudgeSetupError(problem)
        object.__setattr__(self, "base_url", url.rstrip("/"))
        object.__setattr__(self, "key_env", key_env)
        self.key()

    @property
    def on_loopback(self) -> bool:
        """Whether it is on this machine, so that it needs no key and is not asked through a proxy."""
        host = urlsplit(self.base_url).hostname or ""
        return re.fullmatch(r"(.+\.)?localhost|127(\.\d+){3}|::1", host) is not None

    def key(self) -> str:
        """Return the key from the environment; JudgeSetupError if it is missing or cannot be a header."""
        key = os.environ.get(self.key_env, "").strip()
        if not key and not self.on_loopback:
            raise JudgeSetupError(
                f"no key for {self.base_url}: set the environment variable {self.key_env} (to any word if the server "
                "wants none), or name another one with key_env"
            )
        if not re.fullmatch(r"[\x21-\x7e]*", key):
            del key  # tracebacks may show locals
            raise JudgeSetupError(f"the key in {self.key_env} holds a space, a line break or a character outside ASCII")
        return key or NO_KEY


Backend: TypeAlias = Server | StandIn  # what can be asked: a server, or a client that stands in for one


def name_of(backend: Backend) -> str:
    """Return the name of a server, or of the client in its place, for messages."""
    return backend.base_url if isinstance(backend, Server) else f"the client {type(backend).__name__}"


def _why_no_url(url: Any) -> str | None:
    """Return why an address cannot be an API's; it shows the address only if that cannot hold a secret."""
    try:
        parts = urlsplit(url if isinstance(url, str) else "")
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        is_url = False
    if not is_url or re.search(r"[\s\x00-\x1f]", url):
        hint = f", got {url!r}" if isinstance(url, str) and not re.search(r"[@?#]", url) else ""
        return f"base_url: expected an address such as 'http://127.0.0.1:8000/v1'{hint}"
    if parts.username is not None or parts.query or parts.fragment:
        return "base_url: holds a user name, password or query; take it out, and put the key in key_env's variable"
    if parts.path.rstrip("/").endswith(("/chat/completions", "/completions", "/responses")):
        return f"base_url: {url!r} names one call; end it before, mostly at /v1"
    return None


async def ask_once(backend: Backend, request: Request) -> Reply | JudgeError:
    """Return the reply, or an error that says why no reply came, without its cause, which may hold the key."""
    addressee = Addressee(name_of(backend), request.model, backend.key() if isinstance(backend, Server) else None)
    options, messages = dict(request.options), [dict(message) for message in request.messages]
    try:
        if not isinstance(backend, Server):
            completion = await backend.chat.completions.create(model=request.model, messages=messages, **options)
            return parse_completion(completion, addressee)
        body = {"model": request.model, **(options.pop("extra_body", None) or {}), **options, "messages": messages}
        answer = await send(backend, "chat/completions", body)
        return parse_completion(answer.content, addressee) if answer.status < 300 else addressee.refusal(answer)
    except JudgeError as error:
        return error.with_traceback(None)
    except RewardError:
        raise
    except Exception as error:
        return translate(error, addressee)


async def send(server: Server, path: str, body: Mapping[str, Any] | None = None) -> HttpAnswer:
    """Send one request, a POST if it has a body, and return the server's answer; raise what httpx does."""
    import httpx2  # takes its time, so at first use

    request = httpx2.Request(
        "GET" if body is None else "POST",
        f"{server.base_url}/{path}",
        headers={"Authorization": f"Bearer {server.key()}", **_HEADERS},  # no local: tracebacks may show those
        content=None if body is None else json.dumps(body).encode("ascii"),
    )
    connections = await anext(of_this_loop("connections", _connections))
    idle, raw = connections[server], bytearray()
    transport = idle.pop() if idle else _transport(server)
    try:
        response = await transport.handle_async_request(request)
        async with aclosing(response), aclosing(response.aiter_bytes()) as parts:
            async for part in parts:  # unpacked by at most a megabyte at a time
                raw += part
                if len(raw) > MOST_BYTES:
                    size = f"more than {MOST_BYTES >> 20} MB, and was read no further"
                    problem = f"HTTP {response.status_code} with {size}"
                    raise Addressee(server.base_url, "").error(Fault.UNREADABLE, problem)
    finally:
        idle.append(transport)
    content = raw.decode("utf-8-sig", "replace")
    with suppress(ValueError, RecursionError):
        content = json.loads(content)
    return HttpAnswer(response.status_code, response.headers, content)


async def prepare(server: Backend) -> None:
    """Make this event loop's first connection, which costs no deadline; JudgeSetupError for an unusable proxy."""
    if isinstance(server, Server) and not (idle := (await anext(of_this_loop("connections", _connections)))[server]):
        idle.append(_transport(server))


@functools.lru_cache(maxsize=256)
def verify(server: Server, model: str) -> None:
    """Raise JudgeSetupError if the server refuses the key or the model, or lacks /v1; ask it once a process."""
    with ThreadPoolExecutor(1) as thread:  # for an event loop may run in this one
        thread.submit(asyncio.run, _verify(server, model)).result()


async def _verify(server: Server, model: str) -> None:
    """Raise as :func:`verify` does; a server that does not answer in time proves nothing."""
    await prepare(server)
    url, off = server.base_url, "verify=False leaves this check out"
    status, models = await _probe(server, "models")
    if status == 401:
        raise JudgeSetupError(f"{url} refuses the key in the environment variable {server.key_env}; {off}")
    if status == 404 and not url.endswith("/v1"):
        # Either alone proves nothing: some servers have no list of models, and some have judgements at both addresses.
        there = replace(server, base_url=f"{url}/v1")
        if (await _probe(there, "models"))[1] and (await _probe(server, "chat/completions", {}))[0] == 404:
            raise JudgeSetupError(f"base_url={url!r}: no API is served there; set it to {there.base_url!r}; {off}")
    itself = re.compile(rf"(.*/)?{re.escape(model)}([:@-].*)?")  # or a tag or date of it, or it in a folder
    if models and not any(map(itself.fullmatch, models)):
        raise JudgeSetupError(f"{url} has no model {model!r}; {near_names(model, sorted(models)[:20])}; {off}")


async def _probe(server: Server, path: str, body: Mapping[str, Any] | None = None) -> tuple[int, set[str]]:
    """Return the status of the answer, 0 if none came in time, and the models that it lists, if any."""
    try:
        async with asyncio.timeout(_VERIFY_S):
            while (answer := await send(server, path, body)).status == 429:  # noqa: ASYNC110 - the timeout ends it
                await asyncio.sleep(max(_AGAIN_S, retry_after_s(answer.headers, time.time()) or 0.0))
    except Exception:  # whatever it is, it proves nothing
        return 0, set()
    data = answer.content.get("data") if answer.status == 200 and isinstance(answer.content, dict) else None
    ids = [entry.get("id") for entry in data if isinstance(entry, dict)] if isinstance(data, list) else []
    return answer.status, {name for name in ids if isinstance(name, str)}


async def _connections() -> AsyncGenerator[dict[Server, list[httpx2.AsyncHTTPTransport]], None]:
    """Yield an event loop's idle connections, time and again, and close them when ``asyncio.run`` ends the loop."""
    # A transport each: of 2,400 requests, 128 in flight, a pool, which looks at all that it has, took 38 s, several 27.
    idle: defaultdict[Server, list[httpx2.AsyncHTTPTransport]] = defaultdict(list)
    try:
        while True:
            yield idle
    finally:
        for transport in itertools.chain(*idle.values()):
            await transport.aclose()


def _transport(server: Server) -> httpx2.AsyncHTTPTransport:
    """Return a transport through the environment's proxy, if any; no message or frame shows its password."""
    import httpx2

    proxy, parts = None, urlsplit(server.base_url)
    if not server.on_loopback and not urllib.request.proxy_bypass(parts.hostname or ""):
        proxy = urllib.request.getproxies().get(parts.scheme) or urllib.request.getproxies().get("all")
    if proxy is not None and "://" not in proxy:
        proxy = f"http://{proxy}"
    with suppress(ValueError, ImportError, httpx2.InvalidURL):
        return httpx2.AsyncHTTPTransport(verify=_tls(), proxy=proxy, limits=httpx2.Limits(keepalive_expiry=30.0))
    del proxy  # tracebacks may show locals
    raise JudgeSetupError(
        f"{server.base_url}: the proxy that http_proxy, https_proxy or all_proxy names in the environment cannot be "
        "used; write it as http://host:port, name the server in no_proxy, or for socks5:// install socksio"
    )


@functools.cache
def _tls() -> ssl.SSLContext:
    """Return the TLS context of all transports; making one takes 80 ms, because it reads the certificates."""
    import httpx2

    return httpx2.create_ssl_context()
