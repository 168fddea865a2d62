"""A dashboard that is served on loopback for a test, and a browser that is none: requests as they are sent."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from patience import wait_for
from recorded import batch

from rewardkit.record.places import place_of_runs
from rewardkit.record.recorder import Recorder

for _needed in ("starlette", "uvicorn"):
    pytest.importorskip(_needed, reason=f"no {_needed}; the extra ui brings it")

from rewardkit.dashboard.app import Dashboard  # noqa: E402 - skipped where it cannot be imported
from rewardkit.dashboard.serve import server  # noqa: E402
from rewardkit.web.listening import listening  # noqa: E402

TOKEN = "a-token-of-the-tests"
WRITE_TOKEN = "a-write-token"


def free_port() -> int:
    """Return a port of loopback that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


class Answer(NamedTuple):
    """What came back: the status, the headers by lower-case names, and the body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def told(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class Served:
    """A dashboard that listens."""

    def __init__(self, dashboard: Dashboard, port: int) -> None:
        self.dashboard, self.port = dashboard, port
        self.cookie = ""
        self.base = f"http://127.0.0.1:{port}"
        self.url = f"{self.base}/?token={TOKEN}"

    def ask(self, path: str, method: str = "GET", headers: Mapping[str, str] | None = None, body: Any = None) -> Answer:
        """Send a request as it is given, with the cookie once :meth:`enter` was called."""
        sent = {"Cookie": self.cookie, **(headers or {})}
        if body is not None:
            sent.setdefault("Content-Type", "application/json")
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            connection.request(method, path, data, sent)
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, found, response.read())

    def told(self, path: str) -> Any:
        """Return what is told at a path below ``/api``, as JSON."""
        answer = self.ask(f"/api{path}")
        assert 200 == answer.status, answer
        return answer.told

    def enter(self) -> Served:
        """Take the cookie for the token, as a browser does."""
        self.cookie = self.ask(f"/?token={TOKEN}").headers["set-cookie"].partition(";")[0]
        return self

    @contextlib.contextmanager
    def stream(self, run: str) -> Iterator[Iterator[str]]:
        """Give the lines of a run's stream as they come; it is not packed for a browser that takes packed answers."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as connection:
            head = f"GET /api/runs/{run}/live HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: {self.cookie}\r\n"
            connection.sendall(f"{head}Accept-Encoding: gzip\r\n\r\n".encode())
            with connection.makefile("r", encoding="utf-8", newline="\n") as file:
                yield (line.rstrip("\r\n") for line in file)


def states(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    """Yield the states of a stream's lines."""
    return (json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: "))


@contextlib.contextmanager
def serving(folder: Path | str, *, write: bool = False) -> Iterator[Served]:
    """Serve a folder or a database on a free port of this machine."""
    dashboard = Dashboard(place_of_runs(folder), WRITE_TOKEN if write else None)
    bound = listening("127.0.0.1", 0)
    serves = server(dashboard, TOKEN)
    thread = threading.Thread(target=serves.run, args=([bound],))
    thread.start()
    try:
        assert wait_for(lambda: serves.started)
        yield Served(dashboard, bound.getsockname()[1])
    finally:
        serves.should_exit = True
        thread.join(60)
        dashboard.close()
        bound.close()


def recorded_run(run: Path, steps: int = 3, first: int = 0) -> Path:
    """Record some steps of two rewards, and return the run's folder."""
    with contextlib.closing(Recorder(run, append=first > 0)) as recorder:
        for step in range(first, first + steps):
            recorder.record(batch(8, f"{step}"), step=step, epoch=step / 10)
    return run
