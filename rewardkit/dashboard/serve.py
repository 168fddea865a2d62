"""The server: where it listens, what it prints, and how it ends."""

from __future__ import annotations

import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import uvicorn

from rewardkit.dashboard.app import Dashboard, application
from rewardkit.health.alerts import Alert
from rewardkit.record.place import RunsPlace
from rewardkit.web.listening import PatientServer, check_token, config_of, listening, url_host

PORT = 8642
MOST_CONNECTIONS = 512
END_S = 1  # Seconds that a stopped server gives its last answers


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens."""

    url: str  # What to open in a browser; the token is in it
    tunnel: str  # The command that brings the port of this machine to another one
    port: int  # The port
    write_token: str | None  # What allows rewards to be changed


def serve(
    folder: RunsPlace,
    host: str = "127.0.0.1",
    port: int = PORT,
    token: str | None = None,
    *,
    write: bool = False,
    open_page: bool = False,
    names: Sequence[str] = (),
    alert: Alert | None = None,
    tell: Callable[[Address], None] = lambda address: None,
) -> None:
    """Serve the dashboard of a folder of runs, which need not be there, of a run or of a database until it is stopped.

    The first free port from ``port`` on is taken. The ``token`` opens the page; it is drawn at random unless given.
    With ``write`` rewards may be changed, with a second token. ``names`` are further names of this host. ``alert`` is
    told of the flags of runs that are being written. ``tell`` learns where it listens before the first answer. Raises
    ConfigError where the folder is a file, no port is free, or others could ask without a token.
    """
    check(folder, host, token)
    token = token or secrets.token_urlsafe(24)
    with listening(host, port) as bound:
        dashboard = Dashboard(folder, secrets.token_urlsafe(12) if write else None, alert)
        try:
            address = address_of(host, bound.getsockname()[1], token, dashboard.write_token)
            tell(address)
            if open_page:
                threading.Thread(target=webbrowser.open, args=(address.url,), daemon=True).start()
            server(dashboard, token, host, names).run(sockets=[bound])
        finally:
            dashboard.close()


def check(folder: RunsPlace, host: str, token: str | None) -> None:
    """Raise ConfigError where a server cannot be started so."""
    folder.check()
    check_token(host, token, drawn=True)


class DashboardServer(PatientServer):
    """A server that closes its streams when it stops; they have no end of their own."""

    def __init__(self, config: uvicorn.Config, dashboard: Dashboard) -> None:
        super().__init__(config)
        self._dashboard = dashboard

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._dashboard.live.end()
        self._dashboard.jobs.close()  # here: uvicorn raises the signal once more, before anything else is closed
        await super().shutdown(sockets)


def server(dashboard: Dashboard, token: str, host: str = "127.0.0.1", names: Sequence[str] = ()) -> DashboardServer:
    """Return the server of a dashboard, which does not listen yet."""
    config = config_of(application(dashboard, token, host, names), connections=MOST_CONNECTIONS, end_s=END_S)
    return DashboardServer(config, dashboard)


def address_of(host: str, port: int, token: str, write_token: str | None) -> Address:
    """Return the addresses of a server that listens at a host and port."""
    anywhere = host in ("0.0.0.0", "::")  # noqa: S104 - compared, not bound
    host_name = socket.gethostname() if anywhere else url_host(host)
    target = "127.0.0.1" if anywhere else host_name
    tunnel = f"ssh -N -L {port}:{target}:{port} you@{socket.gethostname()}"
    return Address(f"http://{host_name}:{port}/?token={token}", tunnel, port, write_token)
