"""The process of the reward server: where it listens, and how it drains when it is told to end."""

from __future__ import annotations

import gc
import resource
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import uvicorn

from rewardkit.runtime.runtime import Runtime
from rewardkit.serving.app import RewardApp
from rewardkit.serving.gathering import GROUP_WAIT_S
from rewardkit.serving.joining import MOST_ROWS
from rewardkit.serving.shared_counts import SharedCounts
from rewardkit.web.listening import PatientServer, check_token, config_of, listening, url_host

PORT = 8000
MOST_CONNECTIONS = 8_192  # Connections that may be open at once; a row that waits for its group holds one
_OTHER_FILES = 256  # Files and pipes of the process that are not connections
_COLLECTED_AFTER = (50_000, 20, 10)
"""Objects made before Python looks among the youngest, and looks before it looks among older ones."""
DRAIN_S = 60.0  # Seconds that requests have to be answered once the server is told to end
LINGER_S = 0.5  # Seconds for which a server that is told to end still says so to those who ask
END_S = 2


class RewardServer(PatientServer):
    """A server that answers what it has taken before it ends; ``stopped_by`` is the signal, ``None`` while it runs."""

    def __init__(self, config: uvicorn.Config, app: RewardApp) -> None:
        super().__init__(config)
        self._app = app
        self.stopped_by: int | None = None
        self._signal_s = 0.0
        self._drains = False

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Note the signal, at which the server drains; end it at once at a second one."""
        if self.stopped_by is not None:
            self.should_exit = self.force_exit = True
        self.stopped_by, self._signal_s = sig, time.monotonic()

    async def on_tick(self, counter: int) -> bool:
        """Drain once a signal came, and end when all requests are answered or have had their time."""
        self._app.publish()
        if self.stopped_by is not None and not self._drains:
            self._drains = True
            self._app.drain()
        since = time.monotonic() - self._signal_s
        if self._drains and since > LINGER_S and (not self._app.active or since > DRAIN_S):
            self.should_exit = True
        return await super().on_tick(counter)


def serve(
    runtime: Runtime,
    host: str = "127.0.0.1",
    port: int = PORT,
    token: str | None = None,
    *,
    group_size: int | None = None,
    group_wait_s: float = GROUP_WAIT_S,
    most_rows: int = MOST_ROWS,
    tell: Callable[[str], None] = lambda url: None,
) -> int | None:
    """Serve rewards until a signal ends the server, and return its number.

    The runtime is loaded before the first request is answered, and left open. ``tell`` gets the server's address once
    it is ready. For the other options see :class:`~rewardkit.serving.app.RewardApp`. Raises ConfigError where the port
    is taken or others could ask without a token, and RewardLoadError where a worker cannot load a reward.
    """
    check_token(host, token, drawn=False)
    with listening(host, port, tries=1) as listener:
        runtime.wait_loaded()
        url = f"http://{url_host(host)}:{listener.getsockname()[1]}"
        return run_server(
            runtime, listener, token=token, group_size=group_size, group_wait_s=group_wait_s, most_rows=most_rows,
            tell=lambda: tell(url),
        )  # fmt: skip


def run_server(
    runtime: Runtime,
    listener: socket.socket,
    *,
    token: str | None,
    group_size: int | None,
    group_wait_s: float,
    most_rows: int,
    tell: Callable[[], None],
    counts: SharedCounts | None = None,
) -> int | None:
    """Answer what connects to a socket until a signal, and return its number; ``counts`` are those of all processes."""
    app = RewardApp(
        runtime, token=token, group_size=group_size, group_wait_s=group_wait_s, most_rows=most_rows, counts=counts
    )
    server = RewardServer(config_of(app, connections=_connections(), end_s=END_S), app)
    spare_collections()
    tell()
    with _hang_ups(server):
        server.run(sockets=[listener])
    app.end_logs()
    return server.stopped_by


@contextmanager
def _hang_ups(server: RewardServer) -> Iterator[None]:
    """Let the end of a terminal or session drain the server as other signals do, unless it is ignored, as by nohup."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        yield
        return
    previous = signal.signal(signal.SIGHUP, server.handle_exit)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, previous)


def spare_collections() -> None:
    """Make Python collect garbage less often, and not among what is loaded by now: a full collection is slow."""
    gc.collect()
    gc.freeze()  # what is loaded by now lives as long as the process
    gc.set_threshold(*_COLLECTED_AFTER)


def _connections() -> int:
    """Return how many connections may be open, and let this process open as many files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = MOST_CONNECTIONS + _OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < files:
        soft = files if hard == resource.RLIM_INFINITY else min(files, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return MOST_CONNECTIONS if soft == resource.RLIM_INFINITY else max(1, min(MOST_CONNECTIONS, soft - _OTHER_FILES))


def was_interrupted(number: int | None) -> bool:
    return number == signal.SIGINT
