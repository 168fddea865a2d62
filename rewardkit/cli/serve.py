"""``rewardkit serve``: rewards over HTTP, for trainers that ask one."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import signal
import threading
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer

from rewardkit.cli.arguments import (
    AsJson,
    LoadTimeout,
    RewardsHere,
    Timeout,
    Weights,
    Workers,
    option,
    seconds_option,
    weight_numbers,
)
from rewardkit.cli.exits import INTERRUPTED, finish
from rewardkit.cli.rewards import load_rewards
from rewardkit.errors import ConfigError
from rewardkit.runtime.runtime import Runtime
from rewardkit.shown.text import plain
from sandbox import LOAD_TIMEOUT_S, cores, worker_count

MOST_PROCESSES = 256  # Beyond, some option was meant for another
_NEEDED = {"starlette": "starlette", "uvicorn": "uvicorn", "orjson": "orjson", "prometheus_client": "prometheus-client"}


def serve_command(  # long because typer reads the options from the signature, and the help from the docstring
    rewards: RewardsHere,
    host: Annotated[str, option("The address to listen on.", "HOST")] = "127.0.0.1",
    port: Annotated[int, option("The port.", "PORT", min=1, max=65535)] = 8000,
    token: Annotated[
        str | None, option("What clients must send: letters, digits and -_.~", "TOKEN", envvar="REWARDKIT_SERVE_TOKEN")
    ] = None,
    group_size: Annotated[
        int | None, option("Completions of a prompt that wait for each other and are scored together.", "N", min=1)
    ] = None,
    group_wait: Annotated[float, seconds_option("Seconds until a group is scored as it is.")] = 120.0,
    max_rows: Annotated[int, option("Rows that may wait or be scored at once.", "N", min=1)] = 16_384,
    processes: Annotated[
        int,
        option("Server processes on the port; --workers and --max-rows are for each.", "N", min=1, max=MOST_PROCESSES),
    ] = 1,
    workers: Workers = None,
    timeout: Timeout = None,
    load_timeout: LoadTimeout = LOAD_TIMEOUT_S,
    weights: Weights = None,
    check: Annotated[bool, option("Load the rewards, try the port and the token, and stop.", None, "--check")] = False,
    as_json: AsJson = False,
) -> None:
    """Serve REWARDS over HTTP, for OpenRLHF, slime, NeMo Gym, eval-protocol, LLaMA-Factory and verl.

    It loads the rewards, prints its address and answers until SIGTERM or Ctrl-C; then it answers what it has taken
    and ends. Only this machine reaches it unless --host says otherwise, which needs a token. The variable
    REWARDKIT_SERVE_TOKEN holds one that other users of the machine do not see. Where a reward scores the completions
    of a prompt together and the trainer sends them one by one, give --group-size. On a machine with cores to spare
    --processes has several processes share the port; one that ends is replaced.

    Examples:

    [bold]rewardkit serve my_rewards.py
    rewardkit serve rewards.yaml --port 9000 --group-size 8
    rewardkit serve a.py:correct,b.py:short --weights 0.8,0.2
    rewardkit serve my_rewards.py --host 0.0.0.0 --token a-long-secret[/]
    """
    _check_installed()
    from rewardkit.serving.server import was_interrupted  # needs what is installed with the extra
    from rewardkit.web.listening import check_token

    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s", level=logging.WARNING)
    check_token(host, token, drawn=False)
    if group_size is not None and group_size > max_rows:
        raise ConfigError(f"--group-size {group_size}: no group would ever be whole, for --max-rows is {max_rows}")
    joining = {"group_size": group_size, "group_wait_s": group_wait, "most_rows": max_rows}
    if processes > 1 and workers is None:
        workers = worker_count(cores(), processes)
    numbers = weight_numbers(weights)
    loaded = load_rewards(rewards, timeout, here=True)
    with (
        _exit_at_sigterm(),
        contextlib.closing(Runtime(loaded, weights=numbers, workers=workers, load_timeout_s=load_timeout)) as runtime,
    ):
        _check_groups(runtime, processes, group_size)
        if check:
            _check(runtime, host, port, group_size, as_json)
            return
        signal_number = _serve(runtime, host, port, token, joining, processes, as_json)
    typer.echo("stopped", err=True)
    if was_interrupted(signal_number):
        raise typer.Exit(INTERRUPTED)


def _check_installed() -> None:
    """Raise ConfigError where a library is missing, with all that are."""
    missing = [package for module, package in _NEEDED.items() if importlib.util.find_spec(module) is None]
    if missing:
        raise ConfigError(f"rewardkit serve needs {' and '.join(missing)}: pip install {' '.join(_NEEDED.values())}")


def _check_groups(runtime: Runtime, processes: int, group_size: int | None) -> None:
    """Raise ConfigError where the rows of a group would come to different processes."""
    from rewardkit.serving.app import groups_among

    groups = groups_among(runtime.rewards)
    if processes > 1 and group_size is not None and groups:
        raise ConfigError(
            f"--processes {processes} with --group-size {group_size}: reward {groups[0]!r} scores the completions of a "
            "prompt together, and single requests of one prompt may come to different processes; leave --processes "
            "away, or have whole groups sent to /v1/score and leave --group-size away"
        )


def _facts(runtime: Runtime, group_size: int | None) -> dict[str, Any]:
    """Return what is told of the rewards that are served."""
    return {
        "rewards": {name: reward.version for name, reward in runtime.rewards.items()},
        "weights": runtime.weights,
        "group_size": group_size,
        "warnings": _warnings(runtime, group_size),
    }


def _check(runtime: Runtime, host: str, port: int, group_size: int | None, as_json: bool) -> None:
    """Load the rewards and try the port, and print what would be served."""
    from rewardkit.web.listening import listening

    facts = _facts(runtime, group_size)
    with listening(host, port, tries=1):
        runtime.wait_loaded()
    finish(facts, lambda: _show(None, facts), as_json=as_json)


def _serve(
    runtime: Runtime,
    host: str,
    port: int,
    token: str | None,
    joining: Mapping[str, Any],
    processes: int,
    as_json: bool,
) -> int | None:
    """Answer until a signal, and print the address before; return the signal's number."""
    from rewardkit.serving.server import serve

    facts = {**_facts(runtime, joining["group_size"]), "processes": processes}

    def tell(url: str) -> None:
        finish({"url": url, **facts}, lambda: _show(url, facts), as_json=as_json)

    if processes == 1:
        return serve(runtime, host, port, token, **joining, tell=tell)
    from rewardkit.serving.processes import serve_processes

    return serve_processes(runtime, host, port, token, **joining, processes=processes, tell=tell)


@contextlib.contextmanager
def _exit_at_sigterm() -> Iterator[None]:
    """End the process with code 0 at SIGTERM within the block: a container's first process ignores it by default."""

    def end(number: int, frame: FrameType | None) -> NoReturn:
        raise SystemExit(0)

    if threading.current_thread() is not threading.main_thread():
        yield  # only there signals are heard
        return
    previous = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def _warnings(runtime: Runtime, group_size: int | None) -> list[str]:
    """Return a warning where ``group_size`` does not suit the rewards."""
    from rewardkit.serving.app import groups_among

    groups = groups_among(runtime.rewards)
    if groups and group_size is None:
        needed = "only /v1/score, with whole groups in a request, is answered; --group-size N answers all"
        return [f"reward {groups[0]!r} scores the completions of a prompt together: {needed}"]
    if not groups and group_size is not None:
        return [f"--group-size {group_size}: no reward scores groups, so that no row waits for others"]
    return []


def _show(url: str | None, facts: Mapping[str, Any]) -> None:
    names = ", ".join(facts["rewards"])
    typer.echo(plain(f"loaded {names}" if url is None else f"serving {names} at {url}"))
    for warning in facts["warnings"]:
        typer.echo(plain(f"warning: {warning}"), err=True)
