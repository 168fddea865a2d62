"""One request to a server by openai's client, or to a client in its place: sent once, with a key that stays hidden."""

from __future__ import annotations

import asyncio
import functools
import importlib
import importlib.util
import os
import re
import time
from collections.abc import AsyncGenerator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias
from urllib.parse import urlsplit

from builtin_rewards.judge.endpoint.foreign import Addressee, HttpAnswer, parse_completion, retry_after_s, translate
from builtin_rewards.judge.errors import JudgeError, JudgeSetupError
from builtin_rewards.judge.messages import Reply, Request
from builtin_rewards.judge.prompt import near_names
from rewardkit import RewardError
from rewardkit.extending import of_this_loop

if TYPE_CHECKING:
    from openai import AsyncOpenAI

OPENAI_URL = "https://api.openai.com/v1"
NO_KEY = "no-key"  # what a server on loopback is sent where the environment has no key

_VERIFY_S, _AGAIN_S = 3.0, 0.3


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
        if importlib.util.find_spec("openai") is None:
            raise JudgeSetupError("a judge needs openai: pip install 'openai>=3.0'")
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

    async def read_key(self) -> str:
        """Return the key as openai's client asks for it, before each request."""
        return self.key()


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
    """Send one request, a POST if it has a body, and return the server's answer; raise what openai's client does."""
    client = await _client_of(server)
    from builtin_rewards.judge.endpoint.connections import fetch

    return await fetch(client, path, body)


async def prepare(backend: Backend) -> None:
    """Make this event loop's client, which costs no deadline; JudgeSetupError for an unusable proxy."""
    if isinstance(backend, Server):
        await _client_of(backend)


async def _client_of(server: Server) -> AsyncOpenAI:
    """Return this event loop's client for a server."""
    clients = await anext(of_this_loop("clients", _clients))
    if server not in clients:
        module = await asyncio.to_thread(importlib.import_module, "builtin_rewards.judge.endpoint.connections")
        clients.setdefault(server, module.make_client(server.base_url, server.read_key, server.on_loopback))
    return clients[server]


async def _clients() -> AsyncGenerator[dict[Server, AsyncOpenAI], None]:
    """Yield an event loop's clients, time and again, and close them when ``asyncio.run`` ends the loop."""
    clients: dict[Server, AsyncOpenAI] = {}
    try:
        while True:
            yield clients
    finally:
        for client in clients.values():
            await client.close()


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
