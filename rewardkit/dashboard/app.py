"""The addresses of the dashboard: its page, and the views of runs as JSON."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import hashlib
import importlib.resources
import json
import logging
import mimetypes
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass
from hmac import compare_digest
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, TypeAlias

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from rewardkit.dashboard.folder import DatabaseRuns, Folder, Runs
from rewardkit.dashboard.guard import Guard, page
from rewardkit.dashboard.jobs import Jobs
from rewardkit.dashboard.live import LOOK_S, Live
from rewardkit.dashboard.query import Query
from rewardkit.dashboard.readers import Missing, NotThere, Opened, Readers, Shared, Unreadable
from rewardkit.dashboard.views.change import POSTS
from rewardkit.dashboard.views.change import view as change
from rewardkit.dashboard.views.completions import completion, completions, prompt, prompts
from rewardkit.dashboard.views.graphs import view as graphs
from rewardkit.dashboard.views.health import view as health
from rewardkit.dashboard.views.logs import view as logs
from rewardkit.dashboard.views.overview import overview
from rewardkit.dashboard.views.runs import Listing
from rewardkit.dashboard.workers import BusyError, Workers
from rewardkit.errors import RewardError
from rewardkit.record.address import RunAddress
from rewardkit.record.stores import RecordPlace

View: TypeAlias = Callable[[Opened, Query], dict[str, Any]]
Action: TypeAlias = Callable[[Opened, Mapping[str, Any]], dict[str, Any]]

VIEWS: dict[str, View] = {
    "overview": overview,
    "graphs": graphs,
    "logs": logs,
    "prompts": prompts,
    "prompt": prompt,
    "completions": completions,
    "completion": completion,
    "health": health,
    "change": change,
}
"""What is read of a run, at ``GET /api/runs/{run}/{view}``."""
ACTIONS: dict[str, Action] = {**POSTS}
"""What is done to a run, at ``POST /api/runs/{run}/change/{action}`` with the write token."""
VIEW_S = 30.0
"""Seconds for a view."""
ACTION_S = 600.0
"""Seconds for an action, which may score completions."""
BODY_BYTES = 1_000_000
"""Bytes of a request's body."""
BODY_S = 20.0
"""Seconds for a body to arrive."""
_PACKED_BYTES = 2_000
_PACKED_ANSWER_BYTES = 20_000
_VIEW_THREADS, _ACTION_THREADS = 4, 2
_SURROGATES = re.compile("[\ud800-\udfff]")
_log = logging.getLogger("rewardkit.dashboard")

mimetypes.add_type("text/javascript", ".js")


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file of the page, read when the server starts.

    Attributes:
        body: What is in it.
        kind: Its type, as browsers are told.
        packed: The same in gzip, for a page that is reached through a tunnel; ``None`` where it would save little.
        tag: What tells it from another release's.
    """

    body: bytes
    kind: str
    packed: bytes | None = None
    tag: str = ""


@dataclass(frozen=True, slots=True)
class PackedAnswer:
    """An answer in gzip."""

    body: bytes


def file_of_page(body: bytes, kind: str) -> PageFile:
    """Return a file with its tag, packed where that is worth it."""
    packed = gzip.compress(body, 6, mtime=0) if len(body) > _PACKED_BYTES else None
    return PageFile(body, kind, packed, f'"{hashlib.sha256(body).hexdigest()[:20]}"')


class Dashboard:
    """What the addresses work with, and closes in the end.

    Args:
        path: The folder of runs, a run's own, or the address of a database or a run in it.
        write_token: What allows rewards to be changed; ``None`` forbids it.
    """

    def __init__(self, path: RecordPlace, write_token: str | None = None) -> None:
        self.write_token = write_token
        self.folder: Runs = DatabaseRuns(path) if isinstance(path, RunAddress) else Folder(path)
        self.shared, self.jobs = Shared(), Jobs()
        self.workers = Workers(_VIEW_THREADS, self._readers, "rewardkit-view")
        self.doers = Workers(_ACTION_THREADS, self._readers, "rewardkit-action")
        self.live = Live(lambda: Readers(self.folder, Shared(), wait_s=LOOK_S))
        self.listing = Listing(self.folder, self.shared)

    def _readers(self) -> Readers:
        return Readers(self.folder, self.shared, jobs=None if self.write_token is None else self.jobs)

    def close(self) -> None:
        """End the threads and streams. A second call does nothing."""
        self.jobs.close()
        self.live.close()
        self.workers.close()
        self.doers.close()


def application(dashboard: Dashboard, token: str, host: str = "127.0.0.1", names: Sequence[str] = ()) -> Guard:
    """Return the app, guarded.

    Args:
        dashboard: What it shows.
        token: What opens it.
        host: The address that it is bound to.
        names: Further names that it answers to.
    """
    files = page_files()
    index = files.get("/index.html", PageFile(page(404, "").encode(), "text/html; charset=utf-8"))

    async def shell(request: Request) -> Response:
        return _file(request, index)

    async def static(request: Request) -> Response:
        found = files.get(request.url.path)
        return Response(page(404, ""), 404, media_type="text/html") if found is None else _file(request, found)

    async def runs(request: Request) -> Response:
        dashboard.shared.let_go()  # the page asks for this list again and again, whichever run it shows
        return await _told(lambda: dashboard.workers.ask(lambda readers: dashboard.listing.told(), VIEW_S))

    async def view(request: Request) -> Response:
        name, which = request.path_params["run"], VIEWS.get(request.path_params["view"])
        if which is None:
            return _json({"error": f"no view {request.path_params['view'][:40]!r}; there are {', '.join(VIEWS)}"}, 404)
        query = Query(dict(request.query_params))
        return await _told(
            lambda: dashboard.workers.ask(
                lambda readers: _packed(request, _seen(readers, name, lambda one: which(one, query))), VIEW_S
            )
        )

    async def action(request: Request) -> Response:
        name, which = request.path_params["run"], ACTIONS.get(request.path_params["action"])
        refused = _may_not_write(request, dashboard.write_token)
        if refused is not None:
            return refused
        if which is None:
            return _json({"error": f"no action {request.path_params['action'][:40]!r}"}, 404)
        body = await _body(request)
        if isinstance(body, Response):
            return body
        return await _told(
            lambda: dashboard.doers.ask(lambda readers: _seen(readers, name, lambda one: which(one, body)), ACTION_S)
        )

    async def write(request: Request) -> Response:
        return _may_not_write(request, dashboard.write_token) or _json({"can_write": True})

    async def state(request: Request) -> Response:
        return await _told(lambda: dashboard.live.state(request.path_params["run"]))

    async def live(request: Request) -> Response:
        if request.method == "HEAD":
            return Response(media_type="text/event-stream")
        browser = _browser(request)
        if dashboard.live.full(browser):
            return _json({"error": "too many streams at once; the page asks again every 2 s instead"}, 503)
        stream = _events(dashboard.live, request.path_params["run"], browser)
        return StreamingResponse(stream, media_type="text/event-stream", headers={"x-accel-buffering": "no"})

    routes = [
        Route("/api/runs", runs),
        Route("/api/write", write, methods=["POST"]),
        Route("/api/runs/{run:path}/live", live),
        Route("/api/runs/{run:path}/state", state),
        Route("/api/runs/{run:path}/{view}", view),
        Route("/api/runs/{run:path}/change/{action}", action, methods=["POST"]),
        Route("/api/{rest:path}", _nothing, methods=["GET", "POST"]),
        Route("/", shell),
        Route("/runs", shell),
        Route("/runs/{rest:path}", shell),
        Route("/{rest:path}", static),
    ]
    return Guard(Starlette(routes=routes), token, host, names)


def page_files() -> dict[str, PageFile]:
    """Return the files of the page by their addresses; no other file is ever read for a visitor."""
    found: dict[str, PageFile] = {}

    def walk(folder: Traversable, place: str) -> None:
        for one in folder.iterdir():
            if one.is_dir():
                walk(one, f"{place}{one.name}/")
            elif not one.name.startswith("."):
                kind = mimetypes.guess_type(one.name)[0] or "application/octet-stream"
                text = kind.startswith("text/")
                found[f"{place}{one.name}"] = file_of_page(one.read_bytes(), f"{kind}; charset=utf-8" if text else kind)

    root = importlib.resources.files("rewardkit.dashboard") / "page"
    if root.is_dir():
        walk(root, "/")
    return found


def encoded(value: Any) -> bytes:
    """Return a value as JSON: numbers that are not finite are ``null``, halves of surrogate pairs become U+FFFD."""
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False, default=_plain)
    except ValueError:
        finite = json.loads(json.dumps(value, default=_plain), parse_constant=lambda _: None)
        text = json.dumps(finite, ensure_ascii=False)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _SURROGATES.sub("\ufffd", text).encode()


def _plain(value: Any) -> Any:
    """Return what JSON can hold of a number or an array of numpy's, a set or a path."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset):
        return sorted(value)
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


def _json(value: Any, status: int = 200) -> Response:
    return Response(encoded(value), status, media_type="application/json")


def _packed(request: Request, body: bytes) -> bytes | PackedAnswer:
    """Return an answer in gzip where it is long and the browser takes that; in the thread that made it."""
    if len(body) < _PACKED_ANSWER_BYTES or "gzip" not in request.headers.get("accept-encoding", ""):
        return body
    return PackedAnswer(gzip.compress(body, 1, mtime=0))


async def _nothing(request: Request) -> Response:
    return _json({"error": "there is nothing at this address"}, 404)


def _file(request: Request, file: PageFile) -> Response:
    headers = {"cache-control": "no-cache", "etag": file.tag, "vary": "accept-encoding"}
    if file.tag and request.headers.get("if-none-match") == file.tag:
        return Response(status_code=304, headers=headers)
    if file.packed is not None and "gzip" in request.headers.get("accept-encoding", ""):
        return Response(file.packed, media_type=file.kind, headers={**headers, "content-encoding": "gzip"})
    return Response(file.body, media_type=file.kind, headers=headers)


def _seen(readers: Readers, name: str, ask: Callable[[Opened], dict[str, Any]]) -> Any:
    """Return what is asked of a run, as JSON; a record that turns out to be damaged is opened anew the next time."""
    opened = readers.get(name)
    try:
        return encoded(ask(opened))
    except NotThere:
        raise
    except RewardError as wrong:
        if str(wrong).startswith(f"{opened.run.path}:"):
            readers.drop(name)
            raise Unreadable(str(wrong)) from wrong
        raise
    except Exception as fault:
        place = opened.run.unsound()
        if place is None:
            raise
        readers.drop(name)
        raise Unreadable(f"{opened.run.path}: damaged: {place} holds what no recorder writes") from fault


async def _told(ask: Callable[[], Any]) -> Response:
    """Return the answer of a view, or why it failed; the words of our own faults go to the terminal alone."""
    try:
        found = await ask()
    except Missing as wrong:
        return _json({"error": str(wrong), "state": "missing"}, 404)
    except NotThere as wrong:
        return _json({"error": str(wrong)}, 404)
    except Unreadable as wrong:
        return _json({"error": str(wrong), "state": "unreadable"}, 503)
    except BusyError as wrong:
        return _json({"error": str(wrong), "state": "busy"}, 503)
    except RewardError as wrong:
        return _json({"error": str(wrong)}, 400)
    except Exception as fault:
        _log.exception("a fault of rewardkit's own")
        return _json({"error": f"a fault of rewardkit's own, {type(fault).__name__}; its terminal says more"}, 500)
    if isinstance(found, PackedAnswer):
        headers = {"content-encoding": "gzip", "vary": "accept-encoding"}
        return Response(found.body, media_type="application/json", headers=headers)
    return Response(found, media_type="application/json") if isinstance(found, bytes) else _json(found)


def _may_not_write(request: Request, token: str | None) -> Response | None:
    given = request.headers.get("x-write-token", "")
    if token is None:
        return _json({"error": "rewards cannot be changed here; start `rewardkit ui` with --write"}, 403)
    if not compare_digest(given.encode("utf-8", "replace"), token.encode()):
        return _json({"error": "wrong write token; `rewardkit ui --write` printed it"}, 403)
    return None


async def _body(request: Request) -> Response | dict[str, Any]:
    """Return a request's body, or why it is not taken."""
    parts, size = [], 0
    try:
        async with asyncio.timeout(BODY_S):
            async for part in request.stream():
                size += len(part)
                if size > BODY_BYTES:
                    return _json({"error": f"expected at most {BODY_BYTES:,} bytes"}, 413)
                parts.append(part)
    except (TimeoutError, ClientDisconnect):
        return _json({"error": "the request did not arrive"}, 408)
    try:
        body = json.loads(b"".join(parts))
    except (ValueError, RecursionError):
        body = None
    return body if isinstance(body, dict) else _json({"error": "expected a JSON object"}, 400)


def _browser(request: Request) -> str:
    """Return what the windows of one browser have in common; those of two may share it, and then ask more slowly."""
    return f"{request.client.host if request.client else ''} {request.headers.get('user-agent', '')[:200]}"


async def _events(live: Live, name: str, browser: str) -> AsyncGenerator[bytes]:
    async with contextlib.aclosing(live.states(name, browser)) as states:
        async for state in states:
            yield b": still here\n\n" if state is None else b"event: state\ndata: " + encoded(state) + b"\n\n"
