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
from builtin_rewards.judge.endpoint.foreign import retry_after_s
from builtin_rewards.judge.errors import JudgeSetupError
from builtin_rewards.judge.prompt import near_names

_TIMEOUT_S = 3.0
_WAITS_S = (0.5, 0.5, None)
"""By try: seconds before the next one, where a 429 does not say how many; ``None``: there is none."""
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
    url = server.base_url
    status, listed = await _asked(server, "models")
    if status == 401:
        raise JudgeSetupError(f"{url} refuses the key in the environment variable {server.key_env}; {_OFF}")
    if status == 404 and not url.endswith("/v1"):
        # Either alone proves nothing: some servers have no list of models, and some have judgements at both addresses.
        there = replace(server, base_url=f"{url}/v1")
        if (await _asked(there, "models"))[1] and (await _asked(server, "chat/completions", {}))[0] == 404:
            raise JudgeSetupError(f"base_url={url!r}: no API is served there; set it to {there.base_url!r}; {_OFF}")
    if listed and not any(_is(model, name) for name in listed):
        raise JudgeSetupError(f"{url} has no model {model!r}; {near_names(model, sorted(listed)[:20])}; {_OFF}")


async def _asked(server: Server, path: str, body: Mapping[str, Any] | None = None) -> tuple[int, set[str]]:
    """Gives an answer's status, 0 where none came in time, and the models that it lists, none where it lists none."""
    for wait_s in _WAITS_S:
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                said = await send(server, path, body)
        except Exception:  # whatever it is, it proves nothing
            return 0, set()
        if said.status != 429 or wait_s is None:
            break
        await asyncio.sleep(min(retry_after_s(said.headers, time.time()) or wait_s, _LONGEST_WAIT_S))
    data = said.content.get("data") if said.status == 200 and isinstance(said.content, dict) else None
    ids = [entry.get("id") for entry in data if isinstance(entry, dict)] if isinstance(data, list) else []
    return said.status, {name for name in ids if isinstance(name, str)}


def _is(model: str, listed: str) -> bool:
    """Whether a model that is asked for may be a listed one: itself, a tag or date of it, or it in a folder."""
    return listed == model or listed.endswith(f"/{model}") or listed.startswith((f"{model}:", f"{model}-", f"{model}@"))
