"""One request to a server by openai's client, or to a client in its place: sent once, with a key that stays hidden."""

from __future__ import annotations

import asyncio
import functools
import importlib
import inspect
import re
import time
from collections.abc import AsyncGenerator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from builtin_rewards.endpoint.backends import Backend, LazyClient, Server, name_of
from builtin_rewards.endpoint.errors import JudgeError, JudgeSetupError, near_names
from builtin_rewards.endpoint.foreign import Addressee, HttpAnswer, parse_completion, retry_after_s, translate
from builtin_rewards.endpoint.messages import Reply, Request
from rewardkit import RewardError
from rewardkit.extending import of_this_loop

_VERIFY_S, _AGAIN_S = 3.0, 0.3


async def ask_once(backend: Backend, request: Request) -> Reply | JudgeError:
    """Return the reply, or an error that says why no reply came, without its cause, which may hold the key."""
    client: Any = backend if not isinstance(backend, Server | LazyClient) else await _client_of(backend)
    key = backend.key() if isinstance(backend, Server) else getattr(client, "api_key", None)
    addressee = Addressee(name_of(backend), request.model, key if isinstance(key, str) else None)
    options, messages = dict(request.options), [dict(message) for message in request.messages]
    try:
        if not isinstance(backend, Server):
            completion = await client.chat.completions.create(model=request.model, messages=messages, **options)
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
    from builtin_rewards.endpoint.connections import fetch

    return await fetch(client, path, body)


async def prepare(backend: Backend) -> None:
    """Make this event loop's client, which costs no deadline; JudgeSetupError for an unusable proxy."""
    if isinstance(backend, Server | LazyClient):
        await _client_of(backend)


async def _client_of(backend: Server | LazyClient) -> Any:
    """Return this event loop's client for a server, or the one that is made in its place."""
    clients = await anext(of_this_loop("clients", _clients))
    if backend not in clients:
        module = await asyncio.to_thread(importlib.import_module, "builtin_rewards.endpoint.connections")
        if backend not in clients:  # no other question has made it meanwhile
            make = module.take_over if isinstance(backend, LazyClient) else module.make_client
            clients[backend] = make(backend)
    return clients[backend]


async def _clients() -> AsyncGenerator[dict[Server | LazyClient, Any], None]:
    """Yield an event loop's clients, time and again, and close them when ``asyncio.run`` ends the loop."""
    clients: dict[Server | LazyClient, Any] = {}
    try:
        while True:
            yield clients
    finally:
        for client in clients.values():
            if inspect.iscoroutinefunction(close := getattr(client, "close", None)):
                await close()


@functools.lru_cache(maxsize=256)
def verify(backend: Server | LazyClient, model: str) -> None:
    """Raise JudgeSetupError if the server refuses the key or the model, or lacks /v1; ask it once a process.

    Of a client in its place it raises if that cannot be made.
    """
    with ThreadPoolExecutor(1) as thread:  # for an event loop may run in this one
        thread.submit(asyncio.run, _verify(backend, model)).result()


async def _verify(server: Server | LazyClient, model: str) -> None:
    """Raise as :func:`verify` does; a server that does not answer in time proves nothing."""
    await prepare(server)
    if isinstance(server, LazyClient):
        return
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
