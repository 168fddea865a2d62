"""``rewardkit runs``: the recorded runs, and the removal of old ones."""

from __future__ import annotations

import functools
import shlex
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer
from rich.table import Table
from rich.text import Text

from rewardkit.cli.arguments import AsJson, argument, option
from rewardkit.cli.exits import finish
from rewardkit.cli.screen import fitting
from rewardkit.cli.view import NONE, day, grid, page, size_told
from rewardkit.errors import ConfigError, RecordError
from rewardkit.record.address import RunAddress
from rewardkit.record.places import RUNS, place_of_runs, remove, run_in, runs_in, size_of
from rewardkit.record.reader import RunReader
from rewardkit.record.sqlite_file import FILE
from rewardkit.shown.text import counted, plain, shortened

_DAY_S = 86400.0
_LEAST = 20
"""Columns of the screen for the names of the rewards, at the least."""
RunsPlace: TypeAlias = Path | RunAddress


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
    place = place_of_runs(folder)
    found = [_described(one, place) for one in runs_in(place)]
    if prune:
        _prune(found, place, name, older_than, yes=yes, as_json=as_json)
        return
    finish({"folder": str(place), "runs": found}, lambda: _show(found, place), as_json=as_json)


def _described(name: str, folder: RunsPlace) -> dict[str, Any]:
    """Return what the table has of a run; where it cannot be read, why."""
    path = run_in(name, folder)
    empty = dict.fromkeys(("began", "seen", "steps", "last_step", "completions", "running"))
    told: dict[str, Any] = {"name": name, **empty, "rewards": [], "bytes": size_of(path), "error": None}
    try:
        with RunReader(path) as run:
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
        place = folder.of_run("one") if isinstance(folder, RunAddress) else "runs/one"
        typer.echo(
            f"no runs in {_in_words(folder)}; a record is made by: rewardkit score REWARDS DATA --record "
            f"{shlex.quote(str(place))}"
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
        those = f"{counted(len(chosen), 'run')} from {_in_words(folder)} ({size}): {words}"
        if not typer.confirm(f"remove {those}?", err=True):
            chosen = []
    for one in chosen:
        _refuse_running(one["name"], folder)  # again: it may have begun while the question stood
        one["folder_left"] = not remove(run_in(one["name"], folder))

    def show() -> None:
        for one in chosen:
            left = f"; {run_in(one['name'], folder)} holds other files, and stays" if one["folder_left"] else ""
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
        run_in(name, folder)
        if name not in by_name:
            raise RecordError(f"--name {name}: no run in {_in_words(folder)}; it has {', '.join(by_name) or 'none'}")
        _refuse_running(name, folder)
    before = None if days is None else time.time() - days * _DAY_S
    chosen = [by_name[name] for name in dict.fromkeys(names or ())] if names else list(found)
    if before is None:
        return chosen
    return [one for one in chosen if not one["running"] and _last_sign(one, folder) <= before]


def _last_sign(one: dict[str, Any], folder: RunsPlace) -> float:
    """Return when something was last recorded; of a file that cannot be read, when it was last written."""
    seen = one["seen"]
    return float(seen) if seen is not None else _written(run_in(one["name"], folder))


def _written(run: RunsPlace) -> float:
    """Return when a run's file was last written; of one in a database that is not known, and it is never old."""
    return (run / FILE).stat().st_mtime if isinstance(run, Path) else time.time()


def _in_words(folder: RunsPlace) -> str:
    return f"{folder}/" if isinstance(folder, Path) else str(folder)


def _refuse_running(name: str, folder: RunsPlace) -> None:
    if _described(name, folder)["running"]:
        raise RecordError(f"{run_in(name, folder)}: still being written; end the run first")
