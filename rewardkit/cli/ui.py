"""``rewardkit ui``: the dashboard in a browser."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Annotated

import typer

from rewardkit.cli.arguments import AsJson, OnFlag, argument, option
from rewardkit.cli.exits import INTERRUPTED, finish
from rewardkit.errors import ConfigError
from rewardkit.health.alerts import alert_of
from rewardkit.record.place import RunsPlace
from rewardkit.record.places import place_of_runs
from rewardkit.record.runs_folder import RUNS
from rewardkit.shown.text import plain

if TYPE_CHECKING:
    from rewardkit.dashboard.serve import Address

_NEEDED = ("starlette", "uvicorn")


def ui_command(
    folder: Annotated[
        str, argument("A folder of runs, a run's own, or the address of a database; runs/ unless given.", "RUNS_DIR")
    ] = str(RUNS),
    host: Annotated[str, option("The address to listen on.", "HOST")] = "127.0.0.1",
    port: Annotated[int, option("The first port to try.", "PORT", min=1, max=65535)] = 8642,
    token: Annotated[
        str | None, option("What opens the page; drawn at random unless given.", "TOKEN", envvar="REWARDKIT_UI_TOKEN")
    ] = None,
    allow_host: Annotated[
        list[str] | None, option("A further name that the server answers to, with its domain; may be repeated.", "NAME")
    ] = None,
    write: Annotated[bool, option("Allow changes of rewards, with a second token.", None, "--write")] = False,
    on_flag: OnFlag = None,
    open_page: Annotated[bool, option("Open the page in a browser.", None, "--open")] = False,
    as_json: AsJson = False,
) -> None:
    """Show recorded runs in a browser, also while they run: graphs, logs, completions, health.

    It prints the page's address, with a token in it that the browser needs once, and serves until Ctrl-C. A port that
    is taken moves to the next. Only this machine reaches the page unless --host says otherwise. The variable
    REWARDKIT_UI_TOKEN holds a token that other users of the machine do not see.

    With --on-flag the health checks look at each run that is being written, whether or not the page is open, and tell
    the target of each flag, once; the record notes that it was told.

    Examples:

    [bold]rewardkit ui
    rewardkit ui runs/one --open
    rewardkit ui --on-flag '$SLACK_HOOK'
    rewardkit ui --host 0.0.0.0 --token a-long-secret[/]
    """
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise ConfigError(f"rewardkit ui needs {' and '.join(missing)}: pip install {' '.join(_NEEDED)}")
    where, alert = place_of_runs(folder), alert_of(on_flag)
    from rewardkit.dashboard.serve import serve  # needs what is installed with the extra

    def tell(address: Address) -> None:
        result = {name: getattr(address, name) for name in ("url", "tunnel", "write_token")}
        finish({**result, "folder": str(where)}, lambda: _show(address, where), as_json=as_json)

    try:
        serve(
            where, host, port, token, write=write, open_page=open_page, names=allow_host or (), alert=alert, tell=tell
        )
    except KeyboardInterrupt:  # how it is meant to be stopped: no error, and no second object
        typer.echo("stopped", err=True)
        raise typer.Exit(INTERRUPTED) from None


def _show(address: Address, runs: RunsPlace) -> None:
    typer.echo(plain(f"runs of {runs.describe()} at"))
    typer.echo(f"  {address.url}")
    if address.write_token is not None:
        typer.echo(f"  write token, to change rewards: {address.write_token}")
    typer.echo(f"from another machine: {address.tunnel}")
    typer.echo("Ctrl-C stops it")
