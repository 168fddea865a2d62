"""Who may ask the server what: the token, the host's name, where a request comes from, and the headers of answers."""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import platform
import re
from collections.abc import Iterable, Mapping
from hmac import compare_digest
from pathlib import Path
from string import Template
from urllib.parse import quote, urlencode, urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rewardkit.web.listening import is_loopback

_REFUSAL = (Path(__file__).parent / "page" / "refusal.html").read_text(encoding="utf-8")
_STYLE = _REFUSAL.partition("<style>")[2].partition("</style>")[0]  # the only one that stands in a page
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
"""Headers of every answer; an answer that a browser may keep has a cache-control of its own."""
METHODS = ("GET", "HEAD", "POST")
_LOCAL_NAMES = ("localhost",)
_TRICKS = re.compile(rb"%(?:2f|5c|00)|\\|//|/%2e|/\.\.?(?:/|$)|%2e(?:/|$)", re.IGNORECASE)
"""Paths that no link of the page has: encoded slashes and NUL, backslashes, empty and hidden parts, ``..``."""


class Guard:
    """Lets a request pass to an app, or answers it.

    The ``token`` opens the page, in the address at first and then in a cookie. The server is bound to ``host``, and
    answers to further ``names`` such as this machine's with its domain.
    """

    def __init__(self, app: ASGIApp, token: str, host: str = "127.0.0.1", names: Iterable[str] = ()) -> None:
        self._app, self._token = app, token
        self._hosts = frozenset(name.lower() for name in (*_LOCAL_NAMES, host, platform.node(), *names) if name)
        self._is_open = not is_loopback(host)
        # Cookies are shared between the ports of a host, so that each server needs a name of its own.
        self._cookie = f"rewardkit_{hashlib.sha256(token.encode()).hexdigest()[:12]}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            answer = self._refusal(Request(scope)) or self._app
            await answer(scope, receive, _with_headers(send))
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})

    def _refusal(self, request: Request) -> Response | None:
        """Return the answer to a request that does not pass; ``None`` for one that does."""
        scope, path = request.scope, request.scope["path"]
        if not self._is_own(request.headers.get("host", "")):
            message = "this server does not answer to that name; use the address that `rewardkit ui` printed"
            return _refuse(request, 421, message)
        if request.method not in METHODS:
            return _refuse(request, 405, "only GET, HEAD and POST are answered", {"allow": ", ".join(METHODS)})
        has_cookie = self._is_token(request.cookies.get(self._cookie, ""))
        if not has_cookie or ("token" in request.query_params and not path.startswith("/api/")):
            return self._entrance(request, has_cookie=has_cookie)
        if _TRICKS.search(scope.get("raw_path") or b"") or "\x00" in path:
            return _refuse(request, 404, "there is nothing at this address")
        return _foreign_refusal(request)

    def _is_own(self, host: str) -> bool:
        """Return whether a Host header names this server, by a name of its own or an address, which nobody can rebind.

        Starlette's TrustedHostMiddleware takes a list of names. A server that others reach answers to each address of
        its machine, also to those of a tunnel or a container's host that it cannot list.
        """
        try:
            parts = urlsplit(f"//{host}")
            name = (parts.hostname or "").lower()
        except ValueError:
            return False
        if parts.netloc != host or "@" in host:
            return False
        return name in self._hosts or is_loopback(name) or (self._is_open and _is_address(name))

    def _is_token(self, text: str) -> bool:
        return compare_digest(text.encode("utf-8", "replace"), self._token.encode())  # in equal time for every token

    def _entrance(self, request: Request, *, has_cookie: bool) -> Response:
        """Return a redirect to the address without its token, which sets the cookie; refuse a wrong token."""
        tokens = request.query_params.getlist("token")
        if request.method == "POST" or not (has_cookie or (tokens and self._is_token(tokens[-1]))):
            return _refuse(request, 401, "wrong token" if tokens else "no token")
        query = urlencode([pair for pair in request.query_params.multi_items() if pair[0] != "token"])
        path = "/" + quote(request.scope["path"], safe="/").lstrip("/")  # two slashes would lead to another host
        cookie = f"{self._cookie}={self._token}; HttpOnly; SameSite=Strict; Path=/"
        headers = {"location": f"{path}?{query}" if query else path, "set-cookie": cookie}
        return Response(status_code=303, headers=headers)  # the browser's history keeps no token


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _foreign_refusal(request: Request) -> Response | None:
    """Return the refusal of a request that another page makes; links to the page from elsewhere pass."""
    is_post, headers = request.method == "POST", request.headers
    if is_post or request.scope["path"].startswith("/api/"):
        origin = headers.get("origin")
        is_cross = headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none")  # old browsers send none
        if is_cross or (origin is not None and _netloc(origin) != headers["host"]):
            return _refuse(request, 403, "a request from another page")
    if is_post and headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        return _refuse(request, 415, "expected application/json")  # no form of another page can send this type
    return None


def _netloc(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


def _with_headers(send: Send) -> Send:
    """Return a ``send`` that adds the headers of every answer to those that it has."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return send_with_headers


def _refuse(request: Request, status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return a refusal: as JSON to the page's own requests, else as a small page."""
    if request.scope["path"].startswith("/api/"):
        return JSONResponse({"error": message}, status, headers)
    return HTMLResponse(page(status, message), status, headers)


def page(status: int, message: str) -> str:
    """Return the page that stands in place of the dashboard. The message is our own, never the visitor's."""
    heading, sentence, hint = _PAGES.get(status, ("Not here", message, ""))
    return Template(_REFUSAL).substitute(heading=heading, sentence=sentence, hint=hint)


_PAGES = {
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
