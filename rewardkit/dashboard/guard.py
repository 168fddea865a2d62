"""Who may ask the server what: the token, the host's name, where a request comes from, and the headers of answers."""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import json
import platform
import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from hmac import compare_digest
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from rewardkit.web.listening import is_loopback

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Message, Receive, Send], Awaitable[None]]

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2024; --ink-2: #5b6470; --ground: #fbfbfc; --line: #e3e5e9; }
@media (prefers-color-scheme: dark) { :root {
  --ink: #eceef1; --ink-2: #a2abb6; --ground: #131518; --line: #2b2f36; } }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; background: var(--ground); color: var(--ink);
  font: 15px/1.6 system-ui, sans-serif; }
main { max-width: 34rem; padding: 24px; }
h1 { font-size: 20px; font-weight: 600; margin: 0 0 8px; }
p { margin: 0 0 12px; } p.hint { color: var(--ink-2); font-size: 13px; }
code { font: 0.9em ui-monospace, monospace; padding: 1px 4px; border: 1px solid var(--line); border-radius: 4px;
  overflow-wrap: anywhere; }
a { color: inherit; }
"""
"""Of the page that stands in place of the dashboard: the only style that stands in a page."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'"
    f" 'sha256-{base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()}'; connect-src 'self';"
    " img-src 'self' data: blob:; font-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""Of every answer; one that may be kept says so itself."""
METHODS = ("GET", "HEAD", "POST")
_LOCAL_NAMES = ("localhost",)
_TRICKS = re.compile(rb"%(?:2f|5c|00)|\\|//|/%2e|/\.\.?(?:/|$)|%2e(?:/|$)", re.IGNORECASE)
"""Paths that no link of the page has: encoded slashes and NUL, backslashes, empty and hidden parts, ``..``."""


class Guard:
    """Lets a request pass to an app, or answers it.

    Args:
        app: The app.
        token: What opens the page, in the address at first and then in a cookie.
        host: The address that the server is bound to.
        names: Further names that the server answers to, such as this machine's with its domain.
    """

    def __init__(self, app: App, token: str, host: str = "127.0.0.1", names: Iterable[str] = ()) -> None:
        self._app, self._token = app, token
        self._hosts = frozenset(name.lower() for name in (*_LOCAL_NAMES, host, platform.node(), *names) if name)
        self._anywhere = not is_loopback(host)
        # Cookies are shared between the ports of a host, so that each server needs a name of its own.
        self._cookie = f"rewardkit_{hashlib.sha256(token.encode()).hexdigest()[:12]}"

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        refused = self._refused(scope, headers)
        if refused is not None:
            await _answer(scope, send, *refused)
        else:
            await self._app(scope, receive, _with_headers(send))

    def _refused(self, scope: Message, headers: dict[str, str]) -> Refusal | None:
        """Return why a request does not pass; ``None`` where it does."""
        host = headers.get("host", "")
        if not self._knows(host):
            return 421, "this server does not answer to that name; use the address that `rewardkit ui` printed", {}
        if scope["method"] not in METHODS:
            return 405, "only GET, HEAD and POST are answered", {"allow": ", ".join(METHODS)}
        known = self._has_cookie(headers.get("cookie", ""))
        if not known or (_in_address(scope) and not scope["path"].startswith("/api/")):
            return self._asked_in(scope, known=known)
        if _TRICKS.search(scope.get("raw_path") or b"") or "\x00" in scope["path"]:
            return 404, "there is nothing at this address", {}
        return _foreign(scope, headers, host)

    def _knows(self, host: str) -> bool:
        """Whether a Host header names this server: a name of its own, or an address, which no stranger can rebind."""
        try:
            parts = urlsplit(f"//{host}")
            name = (parts.hostname or "").lower()
        except ValueError:
            return False
        if parts.netloc != host or "@" in host:
            return False
        if name in self._hosts:
            return True
        return is_loopback(name) or (self._anywhere and _is_address(name))

    def _has_cookie(self, header: str) -> bool:
        """Whether the token is among the cookies, some of which are those of other servers on this machine."""
        pairs = (one.strip().partition("=") for one in header.split(";"))
        return any(name == self._cookie and self._is_token(value) for name, _, value in pairs)

    def _is_token(self, given: str) -> bool:
        return compare_digest(given.encode("utf-8", "replace"), self._token.encode())

    def _asked_in(self, scope: Message, *, known: bool) -> Refusal:
        """Answer a request with the token in its address: with a cookie, and the address without the token."""
        given = _in_address(scope)
        if scope["method"] == "POST" or not (known or (given and self._is_token(given[-1]))):
            return 401, "wrong token" if given else "no token", {}
        others = urlencode([pair for pair in _parameters(scope) if pair[0] != "token"])
        place = "/" + quote(scope["path"], safe="/").lstrip("/") + (f"?{others}" if others else "")
        cookie = f"{self._cookie}={self._token}; HttpOnly; SameSite=Strict; Path=/"
        return 303, "", {"location": place, "set-cookie": cookie}


Refusal: TypeAlias = tuple[int, str, dict[str, str]]


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _foreign(scope: Message, headers: dict[str, str], host: str) -> Refusal | None:
    """Return why a request that another page makes does not pass; links to the page from elsewhere do."""
    is_api = scope["path"].startswith("/api/")
    site = headers.get("sec-fetch-site", "same-origin")
    origin = headers.get("origin")
    if scope["method"] == "POST" or is_api:
        if site not in ("same-origin", "none"):
            return 403, "a request from another page", {}
        if origin is not None and _place(origin) != host:
            return 403, "a request from another page", {}
    if scope["method"] == "POST":
        kind = headers.get("content-type", "").partition(";")[0].strip()
        if kind != "application/json":
            return 415, "expected application/json", {}
    return None


def _place(origin: str) -> str | None:
    """Return host and port of an Origin header; ``None`` where it is not an address."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


def _parameters(scope: Message) -> list[tuple[str, str]]:
    return parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)


def _in_address(scope: Message) -> list[str]:
    """Return the tokens in a request's address."""
    return [value for name, value in _parameters(scope) if name == "token"]


def _with_headers(send: Send) -> Send:
    """Return a ``send`` that adds the headers of every answer to those that it has."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            own = list(message.get("headers", ()))
            names = {name for name, _ in own}
            message["headers"] = own + [pair for pair in _encoded(HEADERS.items()) if pair[0] not in names]
        await send(message)

    return sent


def _encoded(headers: Iterable[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode("latin-1")) for name, value in headers]


async def _answer(scope: Message, send: Send, status: int, words: str, headers: dict[str, str]) -> None:
    """Send a refusal: as JSON to the page's own requests, else as a small page."""
    if scope["path"].startswith("/api/"):
        kind, body = "application/json", json.dumps({"error": words}).encode()
    else:
        kind, body = "text/html; charset=utf-8", page(status, words).encode()
    if status == 303:
        body = b""
    length = {"content-type": kind, "content-length": str(len(body))}
    all_headers = _encoded({**HEADERS, **length, **headers}.items())
    await send({"type": "http.response.start", "status": status, "headers": all_headers})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})


def page(status: int, words: str) -> str:
    """Return the page that stands in place of the dashboard. The words are our own, never the visitor's."""
    told = _TOLD.get(status, ("Not here", words, ""))
    heading, sentence, hint = told
    return _PAGE.format(status=status, style=_STYLE, heading=heading, sentence=sentence, hint=hint)


_TOLD = {
    401: (
        "This dashboard needs its token",
        "Open the address that <code>rewardkit ui</code> printed in its terminal. It ends with <code>?token=…</code>"
        " and is needed once in each browser; a restarted server prints a new one.",
        "In another terminal: <code>rewardkit ui RUNS_DIR</code> starts a dashboard of your own.",
    ),
    421: (
        "Another name for this server",
        "This server does not answer to the name in the address. Use the address that <code>rewardkit ui</code>"
        " printed.",
        "Through SSH: <code>ssh -N -L 8642:127.0.0.1:8642 you@machine</code>, then <code>127.0.0.1:8642</code>.",
    ),
    404: ("Nothing here", "There is nothing at this address.", '<a href="/">All runs</a>'),
}
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{heading} · rewardkit</title><style>{style}</style></head>
<body><main><h1>{heading}</h1><p>{sentence}</p><p class="hint">{hint}</p></main></body></html>
"""
