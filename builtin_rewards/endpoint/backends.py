"""What can be asked: a server by its settings, a client that stands in for one, or how such a client is made anew.

None of their pickles holds a key: a server names its key's environment variable, and so does what makes a client.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias
from urllib.parse import parse_qsl, urlsplit

from builtin_rewards.endpoint.errors import JudgeSetupError

OPENAI_URL = "https://api.openai.com/v1"
NO_KEY = "no-key"  # what a server on loopback is sent where the environment has no key

# In the name of a setting whose value may be a secret.
_SECRET = re.compile(r"auth|key|token|secret|cookie|password|signature", re.IGNORECASE)


class StandIn(Protocol):
    """A client of OpenAI's shape, ``await client.chat.completions.create(...)``, that is asked in a server's place."""

    @property
    def chat(self) -> Any: ...


@dataclass(frozen=True, slots=True, init=False)
class Server:
    """Where a model is served; pickles and holds no key. JudgeSetupError names the wrong setting and its fix."""

    base_url: str  # The API's address, mostly ending with `/v1`; by default `OPENAI_BASE_URL`'s, else OpenAI's own
    key_env: str  # The environment variable of the key, read for each request. A server on loopback may do without.
    headers: tuple[tuple[str, str], ...]  # Further ones of each request, by name
    query: tuple[tuple[str, str], ...]  # Of each request's address, by name, such as `api-version`

    def __init__(
        self,
        base_url: str | None = None,
        key_env: str = "OPENAI_API_KEY",
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
    ) -> None:
        if importlib.util.find_spec("openai") is None:
            raise JudgeSetupError("a judge needs openai: pip install 'openai>=3.0'")
        url = base_url if base_url is not None else os.environ.get("OPENAI_BASE_URL") or OPENAI_URL
        problem = _why_no_url(url) or _why_not_sent("default_headers", headers) or _why_not_sent("default_query", query)
        if not isinstance(key_env, str) or not re.fullmatch(r"[A-Z_][A-Z0-9_]*", key_env):
            problem = "key_env: expected the name of an environment variable in capitals, not the key itself"
        if problem is not None:
            raise JudgeSetupError(problem)
        address, _, own_query = url.partition("?")
        object.__setattr__(self, "base_url", address.rstrip("/"))
        object.__setattr__(self, "key_env", key_env)
        object.__setattr__(self, "headers", tuple(sorted((headers or {}).items())))
        object.__setattr__(self, "query", tuple(sorted({**dict(parse_qsl(own_query)), **(query or {})}.items())))
        self.key()

    @property
    def address(self) -> str:
        """All by which it may be another server, or answer otherwise: further headers, and its URL with the query."""
        query = "&".join(map("=".join, self.query))
        return " ".join((*map(": ".join, self.headers), self.base_url + (query and f"?{query}")))

    @property
    def on_loopback(self) -> bool:
        """Whether it is on this machine, so that it needs no key and is not asked through a proxy."""
        return is_loopback(self.base_url)

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


@dataclass(frozen=True, repr=False)
class LazyClient:
    """How a client is made: by a class, a ``functools.partial`` or a function, with settings that hold no key.

    Those of the same settings are equal, so that judges with one client share its connections and limits.
    """

    make: Callable[..., Any] = field(hash=False)
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
    key_variable: str | None = None  # the environment variable of the ``api_key``, which the settings leave out

    @property
    def name(self) -> str:
        return str(getattr(getattr(self.make, "func", self.make), "__name__", type(self.make).__name__))

    @property
    def address(self) -> str:
        """What tells its server from others: its settings, without connections and those that may be secrets."""
        settings = {**getattr(self.make, "keywords", {}), **self.settings}
        plain = {name: str(value) for name, value in settings.items() if not _SECRET.search(name)}
        plain.pop("http_client", None)
        return f"{self.name} {sorted(plain.items())}"

    @property
    def has_own_http(self) -> bool:
        """Whether it comes with connections of its own, or may: what a function makes is taken as it is."""
        return not isinstance(getattr(self.make, "func", self.make), type) or "http_client" in getattr(
            self.make, "keywords", {}
        )

    def __call__(self) -> Any:
        """Return a new client; JudgeSetupError says why none can be made, without its key."""
        try:
            key = {} if self.key_variable is None else {"api_key": os.environ[self.key_variable]}
            client = self.make(**self.settings, **key)
        except Exception as error:
            problem = f"{type(error).__name__}: {error}" if type(error).__module__.startswith("openai") else ""
            raise JudgeSetupError(
                f"client: {self.name} cannot be made in this process: {problem or type(error).__name__}; "
                f"see that it has its environment variables{f', {self.key_variable}' if self.key_variable else ''}, "
                "and takes no arguments"
            ) from None
        if not is_stand_in(client):
            raise JudgeSetupError(
                f"client: {self.name} makes a {type(client).__name__}, which has no chat.completions.create; let it "
                "make one that has, such as an openai.AsyncOpenAI"
            )
        return client


Backend: TypeAlias = Server | LazyClient | StandIn  # what can be asked: a server, or a client in its place


def name_of(backend: Backend) -> str:
    """Return the name of a server, or of the client in its place, for messages."""
    if isinstance(backend, Server):
        return backend.base_url
    return f"the client {backend.name if isinstance(backend, LazyClient) else type(backend).__name__}"


def is_stand_in(client: object) -> bool:
    return hasattr(getattr(client, "chat", None), "completions")


def is_loopback(url: str) -> bool:
    return re.fullmatch(r"(.+\.)?localhost|127(\.\d+){3}|::1", urlsplit(url).hostname or "") is not None


def lazy_client(client: Any) -> Any:
    """Return what makes a client anew where that can be told, else the client itself, which then may not pickle.

    It can of a class, a partial and a function, and of a client of openai's whose key is the value of an environment
    variable, if it has no connections of its own, and no header or query that may be a secret. JudgeSetupError for a
    partial that holds a key, and for a client of openai's that blocks. A client of openai's tries nothing again.
    """
    if isinstance(client, LazyClient):
        return client
    made = getattr(client, "func", client)
    kind = made if isinstance(made, type) else type(made)
    is_openais = kind.__module__.partition(".")[0] == "openai"
    if is_openais and not kind.__name__.startswith("Async"):
        raise JudgeSetupError(f"client: {kind.__name__} blocks and cannot be awaited; take Async{kind.__name__}")
    if isinstance(client, type | functools.partial) or (callable(client) and not hasattr(client, "chat")):
        if (name := _secret_of(getattr(client, "keywords", {}))) is not None:
            fix = "let its environment variable have it, or use a function that reads it"
            raise JudgeSetupError(f"client: {name!r} of the partial would travel with the judge; {fix}")
        return LazyClient(client)
    headers = getattr(client, "_custom_headers", None)
    if not is_openais or not isinstance(headers, Mapping):
        return client
    settings = {"base_url": str(client.base_url), "default_headers": dict(headers)}
    settings["default_query"] = dict(client.default_query)
    own = {"organization": "organization", "project": "project", "api_version": "_api_version"}
    settings |= {name: value for name, part in own.items() if (value := getattr(client, part, None)) is not None}
    key = getattr(client, "api_key", None)
    variable = next((name for name, value in os.environ.items() if key and value == key), None)
    has_own_http = type(getattr(client, "_client", None)).__name__ != "AsyncHttpxClientWrapper"
    if variable is None or has_own_http or _secret_of(settings) is not None:
        return client.with_options(max_retries=0)
    return LazyClient(type(client), settings, variable)


def _secret_of(settings: Mapping[str, Any]) -> str | None:
    """Return the name of a client's setting, header or query that may be a secret, if any."""
    parts = (settings, settings.get("default_headers") or {}, settings.get("default_query") or {})
    items = (item for part in parts for item in part.items())
    return next((name for name, value in items if isinstance(value, str) and _SECRET.search(name)), None)


def _why_no_url(address: object) -> str | None:
    """Return why an address cannot be an API's; it shows the address only if that cannot hold a secret."""
    url = address if isinstance(address, str) else ""
    try:
        parts = urlsplit(url)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        is_url = False
    if not is_url or re.search(r"[\s\x00-\x1f]", url):
        hint = "" if re.search(r"[@?#]", url) else f", got {url!r}"
        hint = hint if isinstance(address, str) else f", got {type(address).__name__}"
        return f"base_url: expected an address such as 'http://127.0.0.1:8000/v1'{hint}"
    if parts.username is not None or parts.fragment or set(dict(parse_qsl(parts.query, True))) - {"api-version"}:
        return (
            "base_url: holds a user name, password or query other than api-version, or a fragment; take it out, put "
            "the key in key_env's variable and other queries in default_query"
        )
    if parts.path.rstrip("/").endswith(("/chat/completions", "/completions", "/responses")):
        return f"base_url: {url!r} names one call; end it before, mostly at /v1"
    return None


def _why_not_sent(setting: str, values: Mapping[str, str] | None) -> str | None:
    """Return why headers or queries cannot be sent; it shows no value, which may be a secret."""
    for name, value in (values or {}).items():
        if not isinstance(name, str) or not isinstance(value, str) or not re.fullmatch(r"[\x20-\x7e]*", name + value):
            return f"{setting}: {name!r}: expected a name and a text of printable ASCII"
        if _SECRET.search(name):
            return (
                f"{setting}: {name!r} may be a secret, and settings travel; the key goes in key_env's variable, and "
                "others into a client=function that reads them from the environment"
            )
    return None
