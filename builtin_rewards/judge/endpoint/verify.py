"""Whether a server knows a model and a key, and is at its address, asked once when a judge is made.

A run that would fail at its first judgement fails before it begins. A server that is not there, or has no list of its
models, proves nothing: that is for tries, breakers and fallbacks to bear.
"""

from __future__ import annotations

import functools
import http.client
import json
import os
import time
import urllib.error
import urllib.request
from dataclasses import replace
from typing import Any

from builtin_rewards.judge.endpoint.client import NO_KEY, Server
from builtin_rewards.judge.errors import JudgeSetupError
from builtin_rewards.judge.prompt import near_names

_TIMEOUT_S = 3.0
_MOST_BYTES = 10_000_000
_PART_BYTES = 65_536
_OFF = "verify=False leaves this check out"


@functools.lru_cache(maxsize=256)
def verify(server: Server, model: str) -> None:
    """Asks the server for its models.

    Raises:
        JudgeSetupError: It refuses the key, or lists models and this one is not among them, or its address lacks /v1.
    """
    listed, status = _models(server)
    if status == 401:
        raise JudgeSetupError(f"{server.name} refuses the key in the environment variable {server.key_env}; {_OFF}")
    if status == 404 and not server.name.endswith("/v1"):
        _check_path(server)
    if listed and not any(_is(model, name) for name in listed):
        raise JudgeSetupError(f"{server.name} has no model {model!r}; {near_names(model, sorted(listed)[:20])}; {_OFF}")


def _check_path(server: Server) -> None:
    """Refuse an address where no judgement can be asked for, if there are models at the one with /v1.

    Either alone proves nothing: some servers have no list of models, and some have judgements at both addresses.
    """
    there = replace(server, base_url=f"{server.name}/v1")
    if _models(there)[0] and _asked(server, "chat/completions", b"{}")[1] == 404:
        raise JudgeSetupError(f"base_url={server.name!r}: no API is served there; set it to {there.name!r}; {_OFF}")


def _models(server: Server) -> tuple[set[str], int]:
    """Gives the models that a server lists, none where its list cannot be read, and the status."""
    answer, status = _asked(server, "models")
    data = answer.get("data") if isinstance(answer, dict) else None
    entries = data if isinstance(data, list) else []
    return {entry["id"] for entry in entries if isinstance(entry, dict) and isinstance(entry.get("id"), str)}, status


def _asked(server: Server, path: str, body: bytes | None = None) -> tuple[Any, int]:
    """Gives what a server says, ``None`` where that cannot be read, and the status, 0 where there is none."""
    headers = {
        **dict(server.headers),
        "Authorization": f"Bearer {os.environ.get(server.key_env, '').strip() or NO_KEY}",
        "Content-Type": "application/json",
    }
    address = f"{server.name}/{path}"
    request = urllib.request.Request(address, body, headers)  # noqa: S310 - checked: http or https
    handlers = [urllib.request.ProxyHandler({})] if server.on_loopback else []
    try:
        with urllib.request.build_opener(*handlers, _NoRedirect).open(request, timeout=_TIMEOUT_S) as response:
            return json.loads(_body(response)), 200
    except urllib.error.HTTPError as refusal:
        refusal.close()
        return None, refusal.code
    except (OSError, ValueError, http.client.HTTPException):
        return None, 0


def _body(response: Any) -> bytes:
    """Gives what a server says if all of it comes in time: the library's timeout begins anew with every byte."""
    until, body = time.monotonic() + _TIMEOUT_S, b""
    while part := response.read1(_PART_BYTES):
        body += part
        if len(body) > _MOST_BYTES or time.monotonic() > until:
            raise TimeoutError("the list of models does not end")
    return body


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """The key goes to no other host than the one that was named."""

    def redirect_request(self, *arguments: object) -> None:
        """Follow nothing."""


def _is(model: str, listed: str) -> bool:
    """Whether a model that is asked for may be a listed one: itself, a tag or date of it, or it in a folder."""
    return listed == model or listed.endswith(f"/{model}") or listed.startswith((f"{model}:", f"{model}-", f"{model}@"))
