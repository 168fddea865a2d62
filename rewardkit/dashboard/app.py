"""The addresses of the dashboard: its page, and the views of runs as JSON."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from hmac import compare_digest
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Mount, Route

from rewardkit.dashboard.alerting import Alerting
from rewardkit.dashboard.as_json import json_bytes
from rewardkit.dashboard.guard import Guard, page
from rewardkit.dashboard.jobs import Jobs
from rewardkit.dashboard.live import LOOK_S, Live
from rewardkit.dashboard.page_files import PageFiles
from rewardkit.dashboard.panels import PANELS, VIEWS, Action
from rewardkit.dashboard.query import Query
from rewardkit.dashboard.readers import Missing, NotThere, OpenRun, Readers, RunCaches, Unreadable
from rewardkit.dashboard.sharing import stream
from rewardkit.dashboard.table_export import KINDS, ExportPart, export_part
from rewardkit.dashboard.views import pairs
from rewardkit.dashboard.views.pictures import picture
from rewardkit.dashboard.views.runs import Listing
from rewardkit.dashboard.workers import BusyError, Workers
from rewardkit.errors import RewardError
from rewardkit.health.alerts import Alert
from rewardkit.record.pictures.scaling import Picture
from rewardkit.record.place import RunsPlace

T = TypeVar("T")
ACTIONS: dict[str, Action] = {}
"""The actions on a run by their names, at ``POST /api/runs/{run}/change/{action}`` with the write token."""
for _panel in PANELS:
    ACTIONS |= _panel.actions
VIEW_S = 30.0  # Seconds for a view
ACTION_S = 600.0  # Seconds for an action, which may score completions
BODY_BYTES = 1_000_000  # Bytes of a request's body
BODY_S = 20.0  # Seconds for a body to arrive
_PACKED_BYTES, _PACK_LEVEL = 2_000, 1  # level 6 saves a seventh of the page, and takes three times as long
_VIEW_THREADS, _ACTION_THREADS = 4, 2
_FAILURES: dict[type[RewardError], tuple[int, dict[str, str]]] = {
    Missing: (404, {"state": "missing"}),
    NotThere: (404, {}),
    Unreadable: (503, {"state": "unreadable"}),
    BusyError: (503, {"state": "busy"}),
    RewardError: (400, {}),  # the last one: the others are kinds of it
}
_PICTURE_HEADERS = {
    "content-security-policy": "default-src 'none'; sandbox; frame-ancestors 'none'",
    "cache-control": "private, max-age=3600",
    "content-disposition": "inline",
}
"""Headers of a picture's file: opened by itself it is a picture of no origin, and no page."""
_log = logging.getLogger("rewardkit.dashboard")


class Dashboard:
    """What the addresses work with, and closes in the end.

    Without a ``write_token`` no reward can be changed. ``alert`` is told of the flags of runs that are being written.
    """

    def __init__(self, folder: RunsPlace, write_token: str | None = None, alert: Alert | None = None) -> None:
        self.write_token = write_token
        self.folder = folder
        self.shared, self.jobs = RunCaches(), Jobs()
        self.workers = Workers(_VIEW_THREADS, self._readers, "rewardkit-view")
        self.doers = Workers(_ACTION_THREADS, self._readers, "rewardkit-action")  # actions must not hold up views
        self.sharers = Workers(1, self._readers, "rewardkit-share")
        self.live = Live(lambda: Readers(self.folder, RunCaches(), wait_s=LOOK_S))  # states come from the run alone
        self.listing = Listing(self.folder, self.shared)
        self.alerting = None if alert is None else Alerting(folder, self._readers, alert)

    def _readers(self) -> Readers:
        return Readers(self.folder, self.shared, jobs=None if self.write_token is None else self.jobs)

    def close(self) -> None:
        """End the threads and streams. A second call does nothing."""
        if self.alerting is not None:
            self.alerting.close()
        self.jobs.close()
        self.live.close()
        self.workers.close()
        self.doers.close()
        self.sharers.close()


class JsonResponse(Response):
    """A value as JSON; bytes are JSON already."""

    media_type = "application/json"

    def render(self, content: object) -> bytes:
        return content if isinstance(content, bytes) else json_bytes(content)


def application(dashboard: Dashboard, token: str, host: str = "127.0.0.1", names: Sequence[str] = ()) -> Guard:
    """Return the dashboard's ASGI app: its routes, packed replies, and the guard before them."""
    endpoints = _Endpoints(dashboard)
    routes = [
        Route("/api/runs", endpoints.runs),
        Route("/api/compare", endpoints.compare),
        Route("/api/write", endpoints.write, methods=["POST"]),
        Route("/api/runs/{run:path}/live", endpoints.live),  # before {view}, which would match it
        Route("/api/runs/{run:path}/state", endpoints.state),
        Route("/api/runs/{run:path}/picture/{key}", endpoints.picture),
        Route("/api/runs/{run:path}/table.{kind}", endpoints.export),
        Route("/api/runs/{run:path}/share", endpoints.share),
        Route("/api/runs/{run:path}/{view}", endpoints.view),
        Route("/api/runs/{run:path}/change/{action}", endpoints.action, methods=["POST"]),
        Route("/api/{rest:path}", endpoints.nothing, methods=["GET", "POST"]),
        Mount("/", PageFiles()),
    ]
    packing = Middleware(GZipMiddleware, minimum_size=_PACKED_BYTES, compresslevel=_PACK_LEVEL)
    app = Starlette(routes=routes, middleware=[packing], exception_handlers={404: _no_file})
    return Guard(app, token, host, names)


class _Endpoints:
    def __init__(self, dashboard: Dashboard) -> None:
        self._dashboard = dashboard

    async def runs(self, request: Request) -> Response:
        dashboard = self._dashboard
        dashboard.shared.expire()  # the page asks for this list again and again, whichever run it shows
        return await _answer(dashboard.workers.ask(lambda readers: dashboard.listing.rows(), VIEW_S))

    async def view(self, request: Request) -> Response:
        name, compute = request.path_params["view"], VIEWS.get(request.path_params["view"])
        if compute is None:
            return _error(f"no view {name[:40]!r}; there are {', '.join(VIEWS)}", 404)
        query = Query(dict(request.query_params))
        task = partial(_view_bytes, request.path_params["run"], lambda opened: compute(opened, query))
        return await _answer(self._dashboard.workers.ask(task, VIEW_S))

    async def picture(self, request: Request) -> Response:
        key = request.path_params["key"]
        task = partial(_of_run, request.path_params["run"], lambda opened: _picture_file(picture(opened, key)))
        return await _answer(self._dashboard.workers.ask(task, VIEW_S))

    async def share(self, request: Request) -> Response:
        """Send a saved page of a run, or of a part of it, and before it how far it is."""
        query = Query(dict(request.query_params))
        parts = stream(self._dashboard.sharers, request.path_params["run"], query)
        headers = {"x-accel-buffering": "no", "content-encoding": "identity"}  # each line is to be there at once
        return StreamingResponse(parts, media_type="application/octet-stream", headers=headers)

    async def compare(self, request: Request) -> Response:
        """Answer how the run ``other`` differs from the run ``first`` on the rows that both have."""
        query = Query(dict(request.query_params))

        def task(readers: Readers) -> bytes:
            first, other = query.text("first", ""), query.text("other", "")
            opposite = _of_run(other, lambda opened: pairs.part(opened, query), readers)
            return _view_bytes(first, lambda opened: pairs.compare(opened, opposite, query), readers)

        return await _answer(self._dashboard.workers.ask(task, VIEW_S))

    async def export(self, request: Request) -> Response:
        """Send what the table of completions shows as a file, as fast as it is taken."""
        run, kind = request.path_params["run"], request.path_params["kind"]
        if kind not in KINDS:
            return _error(f"no table.{kind[:40]}; there are {', '.join(f'table.{name}' for name in KINDS)}", 404)
        return await _answer(self._file(run, kind, dict(request.query_params)))

    async def _file(self, run: str, kind: str, parameters: Mapping[str, str]) -> Response:
        async def read(start: int, until: int) -> ExportPart:
            query = Query({**parameters, "until": str(until)} if until else parameters)
            task = partial(_of_run, run, lambda opened: export_part(opened, query, kind, start))
            part: ExportPart = await self._dashboard.workers.ask(task, VIEW_S)
            return part

        async def parts(part: ExportPart) -> AsyncGenerator[bytes]:
            yield part.body
            while not part.is_last:
                part = await read(part.end, part.until)
                yield part.body

        first = await read(0, 0)  # its errors are answered in words
        name = re.sub(r"[^\w.-]+", "-", run, flags=re.ASCII).strip("-.") or "run"
        headers = {"content-disposition": f'attachment; filename="{name}.{kind}"'}
        return StreamingResponse(parts(first), media_type=KINDS[kind], headers=headers)

    async def action(self, request: Request) -> Response:
        """Do something to a run, in a thread of the actions; refuse a request without the write token unread."""
        name, act = request.path_params["action"], ACTIONS.get(request.path_params["action"])
        refusal = self._write_refusal(request)
        if refusal is not None:
            return refusal
        if act is None:
            return _error(f"no action {name[:40]!r}", 404)
        body = await _body(request)
        if isinstance(body, Response):
            return body
        task = partial(_view_bytes, request.path_params["run"], lambda opened: act(opened, body))
        return await _answer(self._dashboard.doers.ask(task, ACTION_S))

    async def write(self, request: Request) -> Response:
        return self._write_refusal(request) or JsonResponse({"can_write": True})

    def _write_refusal(self, request: Request) -> Response | None:
        """Return the answer to a request that may not change rewards; ``None`` for one that may."""
        token = self._dashboard.write_token
        if token is None:
            return _error("rewards cannot be changed here; start `rewardkit ui` with --write", 403)
        if not compare_digest(request.headers.get("x-write-token", "").encode("utf-8", "replace"), token.encode()):
            return _error("wrong write token; `rewardkit ui --write` printed it", 403)
        return None

    async def state(self, request: Request) -> Response:
        return await _answer(self._dashboard.live.state(request.path_params["run"]))

    async def live(self, request: Request) -> Response:
        """Stream a run's states to the page; refuse a browser that has all the streams it may have."""
        if request.method == "HEAD":
            return Response(media_type="text/event-stream")
        # the windows of one browser share a number of streams; those of two that look alike ask more slowly
        browser = f"{request.client.host if request.client else ''} {request.headers.get('user-agent', '')[:200]}"
        if self._dashboard.live.full(browser):
            return _error("too many streams at once; the page asks again every 2 s instead", 503)
        stream = _events(self._dashboard.live, request.path_params["run"], browser)
        headers = {"x-accel-buffering": "no"}  # a proxy is to pass each event on at once
        return StreamingResponse(stream, media_type="text/event-stream", headers=headers)

    async def nothing(self, request: Request) -> Response:
        return _error("there is nothing at this address", 404)


async def _no_file(request: Request, error: Exception) -> Response:
    return HTMLResponse(page(404, ""), 404)


def _error(message: str, status: int, **fields: str) -> Response:
    return JsonResponse({"error": message, **fields}, status)


def _picture_file(content: Picture) -> Response:
    """Return the file of a picture, of the type that was stored, whatever its bytes look like to a browser."""
    return Response(content.body, media_type=content.media_type, headers=_PICTURE_HEADERS)


def _view_bytes(name: str, compute: Callable[[OpenRun], dict[str, Any]], readers: Readers) -> bytes:
    """Return a run's view as JSON."""
    return _of_run(name, lambda opened: json_bytes(compute(opened)), readers)


def _of_run(name: str, compute: Callable[[OpenRun], T], readers: Readers) -> T:
    """Return what is computed of a run; close it and raise Unreadable where its record turns out to be damaged."""
    opened = readers.get(name)
    try:
        return compute(opened)
    except RewardError as error:
        if not isinstance(error, NotThere) and str(error).startswith(f"{opened.run.path}:"):
            readers.drop(name)
            raise Unreadable(str(error)) from error
        raise
    except Exception as error:
        column = opened.run.unsound()
        if column is None:
            raise
        readers.drop(name)
        raise Unreadable(f"{opened.run.path}: damaged: {column} holds what no recorder writes") from error


async def _answer(result: Awaitable[object]) -> Response:
    """Return the answer of a view, or why it failed; the message of our own faults goes to the terminal alone."""
    try:
        content = await result
        return content if isinstance(content, Response) else JsonResponse(content)
    except RewardError as error:
        status, state = next(answer for kind, answer in _FAILURES.items() if isinstance(error, kind))
        return _error(str(error), status, **state)
    except Exception as error:
        _log.exception("a fault of rewardkit's own")
        return _error(f"a fault of rewardkit's own, {type(error).__name__}; its terminal says more", 500)


async def _body(request: Request) -> Response | dict[str, Any]:
    """Return the JSON object of a request, or the response to one that is late, too large or no object."""
    parts, size = [], 0
    try:
        async with asyncio.timeout(BODY_S):
            async for part in request.stream():
                size += len(part)
                if size > BODY_BYTES:  # counted as it comes: its length may be wrong or not given
                    return _error(f"expected at most {BODY_BYTES:,} bytes", 413)
                parts.append(part)
    except (TimeoutError, ClientDisconnect):
        return _error("the request did not arrive", 408)
    try:
        body = json.loads(b"".join(parts))
    except (ValueError, RecursionError):
        body = None
    return body if isinstance(body, dict) else _error("expected a JSON object", 400)


async def _events(live: Live, name: str, browser: str) -> AsyncGenerator[bytes]:
    """Yield a run's states as server-sent events, with a comment where there was nothing for a while."""
    async with contextlib.aclosing(live.states(name, browser)) as states:
        async for state in states:
            yield b": still here\n\n" if state is None else b"event: state\ndata: " + json_bytes(state) + b"\n\n"
