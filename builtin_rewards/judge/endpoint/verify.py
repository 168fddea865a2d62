"""Whether a server knows a model and a key, and is at its address, asked once when a runtime sets a judge up.

A run that would fail at its first judgement fails before it begins. A server that is not there, or has no list of its
models, proves nothing: that is for tries, breakers and fallbacks to bear.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from builtin_rewards.judge.endpoint.client import Server, prepare, send
from builtin_rewards.judge.endpoint.foreign import Said, retry_after_s
from builtin_rewards.judge.errors import JudgeSetupError
from builtin_rewards.judge.prompt import near_names

_TIMEOUT_S = 3.0
_TRIES = 3
_WAIT_S = 0.5
_LONGEST_WAIT_S = 5.0
_OFF = "verify=False leaves this check out"


@functools.lru_cache(maxsize=256)
def verify(server: Server, model: str) -> None:
    """Asks the server for its models, from a thread of its own, for an event loop may run in this one.

    Raises:
        JudgeSetupError: It refuses the key, or lists models and this one is not among them, or its address lacks /v1.
    """
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, _verify(server, model)).result()


async def _verify(server: Server, model: str) -> None:
    await prepare(server)
    said = await _said(server, "models")
    if said.status == 401:
        raise JudgeSetupError(f"{server.name} refuses the key in the environment variable {server.key_env}; {_OFF}")
    if said.status == 404 and not server.name.endswith("/v1"):
        await _check_path(server)
    listed = _listed(said)
    if listed and not any(_is(model, name) for name in listed):
        raise JudgeSetupError(f"{server.name} has no model {model!r}; {near_names(model, sorted(listed)[:20])}; {_OFF}")


async def _check_path(server: Server) -> None:
    """Refuse an address where no judgement can be asked for, if there are models at the one with /v1.

    Either alone proves nothing: some servers have no list of models, and some have judgements at both addresses.
    """
    there = replace(server, base_url=f"{server.name}/v1")
    if _listed(await _said(there, "models")) and (await _said(server, "chat/completions", {})).status == 404:
        raise JudgeSetupError(f"base_url={server.name!r}: no API is served there; set it to {there.name!r}; {_OFF}")


def _listed(said: Said) -> set[str]:
    """Gives the models that a server lists, none where its list cannot be read."""
    data = said.content.get("data") if said.status == 200 and isinstance(said.content, dict) else None
    entries = data if isinstance(data, list) else []
    return {entry["id"] for entry in entries if isinstance(entry, dict) and isinstance(entry.get("id"), str)}


async def _said(server: Server, path: str, body: Mapping[str, Any] | None = None) -> Said:
    """Gives what a server says, after a while again where it says 429; status 0 where it says nothing in time."""
    said = Said(0, {}, None)
    for tries in range(_TRIES):
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                said = await send(server, path, body)
        except Exception:  # whatever it is, it proves nothing
            return Said(0, {}, None)
        if said.status != 429 or tries == _TRIES - 1:
            break
        await asyncio.sleep(min(retry_after_s(said.headers, time.time()) or _WAIT_S, _LONGEST_WAIT_S))
    return said


def _is(model: str, listed: str) -> bool:
    """Whether a model that is asked for may be a listed one: itself, a tag or date of it, or it in a folder."""
    return listed == model or listed.endswith(f"/{model}") or listed.startswith((f"{model}:", f"{model}-", f"{model}@"))
