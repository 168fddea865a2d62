"""``rewardkit runs``: the recorded runs, and the removal of old ones."""

from __future__ import annotations

import functools
import shlex
import time
from collections.abc import Collection, Sequence
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from rewardkit.cli.arguments import AsJson, argument, option
from rewardkit.cli.exits import finish
from rewardkit.cli.screen import fitting
from rewardkit.cli.view import NONE, day, grid, page, size_told
from rewardkit.errors import ConfigError, RecordError
from rewardkit.record.place import RunsPlace
from rewardkit.record.places import place_of_runs
from rewardkit.record.reader import RunReader
from rewardkit.record.runs_folder import RUNS
from rewardkit.shown.text import counted, plain, shortened

_DAY_S = 86400.0
_LEAST = 20
"""Columns of the screen for the names of the rewards, at the least."""


def runs_command(
    folder: Annotated[
        str, argument("The folder of runs, or the address of a database; runs/ unless given.", "FOLDER")
    ] = str(RUNS),
    prune: Annotated[bool, option("Remove the records of runs.", None, "--prune")] = False,
    name: Annotated[list[str] | None, option("A run to remove, by its name; may be repeated.", "NAME")] = None,
    older_than: Annotated[
        float | None, option("Remove all runs in which nothing was recorded for so many days.", "DAYS", min=0)
    ] = None,
    yes: Annotated[bool, option("Remove without asking.", None, "--yes")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the recorded runs: when they began, how far they came, their rewards and size, and whether they still run.

    With --prune it removes the records of the runs that --name or --older-than names. What else is in a run's folder
    stays, and a run that is still being written is never removed.

    Examples:

    [bold]rewardkit runs
    rewardkit runs --prune --name one --name two
    rewardkit runs --prune --older-than 30 --yes[/]
    """
    if not prune and (name or older_than is not None or yes):
        raise ConfigError("--name, --older-than and --yes say what --prune removes; give --prune, too")
    runs = place_of_runs(folder)
    found = [_described(run, runs) for run in runs.names()]
    if prune:
        _prune(found, runs, name, older_than, yes=yes, as_json=as_json)
        return
    finish({"folder": str(runs), "runs": found}, lambda: _show(found, runs), as_json=as_json)


def _described(name: str, folder: RunsPlace) -> dict[str, Any]:
    """Return what the table has of a run; where it cannot be read, why."""
    record = folder.run(name)
    empty = dict.fromkeys(("began", "seen", "steps", "last_step", "completions", "running"))
    told: dict[str, Any] = {"name": name, **empty, "rewards": [], "bytes": record.size(), "error": None}
    try:
        with RunReader(record) as run:
            sessions, steps = run.sessions, run.steps()
            return {
                **told,
                "began": min((one["began"] for one in sessions), default=None),
                "seen": max((one["seen"] for one in sessions), default=None),
                "steps": len(steps),
                "last_step": steps[-1] if steps else None,
                "completions": run.count(),
                "rewards": run.rewards,
                "running": run.running,
            }
    except RecordError as wrong:
        return {**told, "error": str(wrong)}


def _show(found: Sequence[dict[str, Any]], folder: RunsPlace) -> None:
    if not found:
        typer.echo(
            f"no runs in {folder.label}; a record is made by: rewardkit score REWARDS DATA --record "
            f"{shlex.quote(folder.example)}"
        )
        return
    console = page()
    console.print(fitting(console, functools.partial(_table, found), ["size"], ["completions"]))


def _table(found: Sequence[dict[str, Any]], left_out: Collection[str]) -> Table:
    names = [one for one in ("run", "began", "steps", "completions", "size", "state", "rewards") if one not in left_out]
    shown = grid(*names)
    last = shown.columns[-1]
    last.justify, last.no_wrap, last.min_width = "left", False, _LEAST
    for one in sorted(found, key=lambda one: -(one["began"] or 0.0)):
        if one["error"]:
            state, words = Text("unreadable", style="red"), one["error"]
        else:
            state, words = (Text("running", style="green") if one["running"] else Text("ended")), _names(one["rewards"])
        cells: dict[str, str | Text] = {
            "run": Text(one["name"], style="bold"),
            "began": NONE if one["began"] is None else day(one["began"]),
            **{key: NONE if one[key] is None else f"{one[key]:,}" for key in ("steps", "completions")},
            "size": size_told(one["bytes"]),
            "state": state,
            "rewards": Text(words),
        }
        shown.add_row(*(cells[name] for name in names))
    return shown


def _names(rewards: Sequence[str]) -> str:
    return ", ".join(shortened(one, 40) for one in rewards) or NONE


def _prune(
    found: Sequence[dict[str, Any]],
    folder: RunsPlace,
    names: Sequence[str] | None,
    days: float | None,
    *,
    yes: bool,
    as_json: bool,
) -> None:
    chosen = _chosen(found, folder, names, days)
    if chosen and not yes:
        if as_json:
            raise ConfigError("--prune --json asks nothing; say --yes as well")
        words = ", ".join(plain(one["name"]) for one in chosen)
        size = size_told(sum(one["bytes"] for one in chosen))
        those = f"{counted(len(chosen), 'run')} from {folder.label} ({size}): {words}"
        if not typer.confirm(f"remove {those}?", err=True):
            chosen = []
    for one in chosen:
        _refuse_running(one["name"], folder)  # again: it may have begun while the question stood
        one["folder_left"] = not folder.run(one["name"]).remove()

    def show() -> None:
        for one in chosen:
            left = f"; {folder.run(one['name']).label} holds other files, and stays" if one["folder_left"] else ""
            typer.echo(plain(f"removed {one['name']} ({size_told(one['bytes'])}){left}"))
        if not chosen:
            typer.echo("nothing removed")

    told = [{key: one[key] for key in ("name", "bytes", "folder_left")} for one in chosen]
    finish({"folder": str(folder), "removed": told}, show, as_json=as_json)


def _chosen(
    found: Sequence[dict[str, Any]], folder: RunsPlace, names: Sequence[str] | None, days: float | None
) -> list[dict[str, Any]]:
    """Return the runs to remove.

    Raises:
        ConfigError: Neither names nor an age are given.
        RecordError: A name is that of no run, or of one that is being written.
    """
    if not names and days is None:
        raise ConfigError("--prune: say which runs, by --name NAME or --older-than DAYS")
    by_name = {one["name"]: one for one in found}
    for name in dict.fromkeys(names or ()):
        folder.run(name)  # refuses what is no name
        if name not in by_name:
            raise RecordError(f"--name {name}: no run in {folder.label}; it has {', '.join(by_name) or 'none'}")
        _refuse_running(name, folder)
    before = None if days is None else time.time() - days * _DAY_S
    chosen = [by_name[name] for name in dict.fromkeys(names or ())] if names else list(found)
    if before is None:
        return chosen
    return [one for one in chosen if not one["running"] and _last_sign(one, folder) <= before]


def _last_sign(one: dict[str, Any], folder: RunsPlace) -> float:
    """Return when something was last recorded; of a file that cannot be read, when it was last written."""
    seen = one["seen"]
    return float(seen) if seen is not None else folder.run(one["name"]).last_write()


def _refuse_running(name: str, folder: RunsPlace) -> None:
    if _described(name, folder)["running"]:
        raise RecordError(f"{folder.run(name).label}: still being written; end the run first")
