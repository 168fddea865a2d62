"""``rewardkit runs``: the recorded runs, and the removal of old ones."""

from __future__ import annotations

import functools
import os
import shlex
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from rewardkit.cli.arguments import AsJson, argument, option
from rewardkit.cli.exits import finish
from rewardkit.cli.progress import told_progress
from rewardkit.cli.render import ENDLESS, NONE, STATE_STYLES, byte_size, day, number, screen, table
from rewardkit.errors import ConfigError, DataError, RecordError
from rewardkit.record.overview import overviews
from rewardkit.record.place import RunsPlace
from rewardkit.record.places import place_of_runs
from rewardkit.record.reader import RunReader
from rewardkit.record.run_end import RunEnd, RunState
from rewardkit.record.runs_folder import RUNS
from rewardkit.rows.files import name_of
from rewardkit.rows.reader import numbered_rollouts
from rewardkit.score_batch import ScoreBatch
from rewardkit.shown.text import counted, plain, shortened

_DAY_S = 86400.0
_CHUNK_ROWS = 1000
_LEAST = 10  # columns of the screen for the name, the state (with its error) and the rewards, at the least
_WHOLE_NAMES = "whole names"  # left out last: a long name of a run is then on several lines


def runs_command(
    folder: Annotated[
        str, argument("The folder of runs, or the address of a database; runs/ unless given.", "FOLDER")
    ] = str(RUNS),
    add: Annotated[
        Path | None, option("Record the rows that rewardkit score --out wrote in FILE as a run of its name.", "FILE")
    ] = None,
    prune: Annotated[bool, option("Remove the records of runs.", None, "--prune")] = False,
    name: Annotated[list[str] | None, option("A run to remove, by its name; may be repeated.", "NAME")] = None,
    older_than: Annotated[
        float | None, option("Remove all runs in which nothing was recorded for so many days.", "DAYS", min=0)
    ] = None,
    yes: Annotated[bool, option("Remove without asking.", None, "--yes")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the recorded runs: when they began, how far they came, their rewards and size, and how they ended.

    The column reward has the mean reward of the last step: the weighted sum, as the trainer computes it. Of a scored
    file, which has no steps, it is the mean of all rows; `rewardkit compare` compares two on the same rows.

    With --add a file that rewardkit score wrote becomes a run, which the list, the page and every command have.

    With --prune it removes the records of the runs that --name or --older-than names. What else is in a run's folder
    stays, and a run that is still being written is never removed.

    Examples:

    [bold]rewardkit runs
    rewardkit runs --add scored.jsonl
    rewardkit runs --prune --name one --name two
    rewardkit runs --prune --older-than 30 --yes[/]
    """
    if not prune and (name or older_than is not None or yes):
        raise ConfigError("--name, --older-than and --yes say what --prune removes; give --prune, too")
    if add is not None and prune:
        raise ConfigError("--add and --prune: give one of them")
    records = place_of_runs(folder)
    if add is not None:
        _add(add, records, as_json=as_json)
        return
    runs = [_row_of(run, records) for run in records.names()]
    if prune:
        _prune(runs, records, name, older_than, yes=yes, as_json=as_json)
        return
    finish({"folder": str(records), "runs": runs}, lambda: _show(runs, records), as_json=as_json)


def _add(path: Path, folder: RunsPlace, *, as_json: bool) -> None:
    """Record the scored rows of a file as a run of the file's name, whole groups together.

    Raises DataError where they are no scored rows, and RecordError where there is such a run already.
    """
    from rewardkit.cli.score import chunks_of_groups, recording  # they bring much along
    from rewardkit.health.scored_rows import are_scored, batch_of
    from rewardkit.loading.registry import RewardSet

    name = path.name.partition(".")[0]
    record = folder.run(name)
    if record.exists():
        raise RecordError(f"--add {path}: {record.label} has a record; rename the file, or remove the run with --prune")
    numbered = numbered_rollouts(path)
    rollouts = [rollout for _, rollout in numbered]
    if not are_scored(rollouts):
        raise DataError(f"--add {path}: no rows of rewardkit score --out; score them with --record {name} instead")
    batch = batch_of(rollouts, [f"{name_of(path)}:{line}" for line, _ in numbered])
    about = {"command": "runs --add", "data": str(path)}
    done = 0
    with recording(record.locator, RewardSet({}), about, append=False) as keep, told_progress("recording") as tick:
        for rows in chunks_of_groups(batch.rollouts, _CHUNK_ROWS, lambda row: True):
            columns = {reward: [column[row] for row in rows] for reward, column in batch.outcomes.items()}
            keep(ScoreBatch([batch.rollouts[row] for row in rows], columns, batch.weights))
            done += len(rows)
            tick(done, len(rollouts))
    result = {"run": name, "record": record.label, "rows": done, "weights": dict(batch.weights)}
    finish(result, lambda: typer.echo(plain(f"recorded {counted(done, 'row')} in {record.label}")), as_json=as_json)


def _row_of(name: str, folder: RunsPlace) -> dict[str, Any]:
    """Return a run's row of the table; where its record cannot be read, ``error`` says why."""
    record = folder.run(name)
    empty = dict.fromkeys(("began", "seen", "steps", "last_step", "completions", "total", "running", "state_reason"))
    row: dict[str, Any] = {"name": name, **empty, "rewards": [], "means": {}, "bytes": record.size(), "error": None}
    row["state"] = str(RunState.UNREADABLE)
    try:
        with RunReader(record) as run:
            sessions, steps, end = run.sessions, run.steps(), run.end
            return {
                **row,
                "began": min((session["began"] for session in sessions), default=None),
                "seen": max((session["seen"] for session in sessions), default=None),
                "steps": len(steps),
                "last_step": steps[-1] if steps else None,
                "completions": run.count(),
                **_means(run, steps),
                "rewards": run.rewards,
                "running": end.state is RunState.RUNNING,
                **end.as_json(),
            }
    except RecordError as error:
        return {**row, "error": str(error)}


def _means(run: RunReader, steps: Sequence[int]) -> dict[str, Any]:
    """Return the mean total and each reward's mean: of the last step, and without steps of all that was scored."""
    if not steps:
        means = run.file_means()
        return {} if means is None else {"total": means.total, "means": dict(means.rewards)}
    total = next((total for _, total in run.total_series(steps=steps[-1:])), None)
    last = run.summaries(since=steps[-1])
    return {"total": total, "means": {row.reward: row.last for row in overviews(last)}}


def _show(runs: Sequence[dict[str, Any]], folder: RunsPlace) -> None:
    if not runs:
        how = f"rewardkit score REWARDS DATA --record {shlex.quote(folder.example)}"
        typer.echo(f"no runs in {folder.label}; a record is made by: {how}")
        return
    console = screen() if os.environ.get("COLUMNS", "").isdigit() else screen(ENDLESS)
    console.fitted_table(functools.partial(_table, runs), ["size"], ["completions"], ["began"], [_WHOLE_NAMES])


def _table(runs: Sequence[dict[str, Any]], left_out: Collection[str]) -> Table:
    """Return the table of runs, the latest first, without the columns ``left_out``."""
    head = ["run", "began", "steps", "completions", "reward", "size", "state", "rewards"]
    names = [name for name in head if name not in left_out]
    rows = table(*names, left=1)
    if _WHOLE_NAMES in left_out:
        rows.columns[0].min_width = min(_LEAST, max(cell_len(run["name"]) for run in runs))
    else:
        rows.columns[0].no_wrap = True  # so that a name can be copied
    for column in rows.columns:
        if column.header in ("state", "rewards"):
            column.justify, column.no_wrap, column.min_width = "left", False, _LEAST
    for run in sorted(runs, key=lambda run: -(run["began"] or 0.0)):
        rewards = ", ".join(_reward_text(name, run) for name in run["rewards"]) or NONE
        end = RunEnd(RunState(run["state"]), run["state_reason"])
        state = Text(shortened(end.text, 40), style=STATE_STYLES[end.state])
        if run["error"]:
            rewards = run["error"]
        cells: dict[str, str | Text] = {
            "run": Text(run["name"], style="bold"),
            "began": NONE if run["began"] is None else day(run["began"]),
            **{key: NONE if run[key] is None else f"{run[key]:,}" for key in ("steps", "completions")},
            "reward": number(run["total"]),
            "size": byte_size(run["bytes"]),
            "state": state,
            "rewards": Text(rewards),
        }
        rows.add_row(*(cells[name] for name in names))
    return rows


def _reward_text(name: str, run: Mapping[str, Any]) -> str:
    """Return a reward's name; of a scored file with its mean behind it, for which no curve stands elsewhere."""
    return shortened(name, 40) if run["steps"] else f"{shortened(name, 40)} {number(run['means'].get(name))}"


def _prune(
    runs: Sequence[dict[str, Any]],
    folder: RunsPlace,
    names: Sequence[str] | None,
    days: float | None,
    *,
    yes: bool,
    as_json: bool,
) -> None:
    """Remove the chosen runs, after a question unless ``yes``; refuse a run that is being written."""
    chosen = _runs_to_remove(runs, folder, names, days)
    if chosen and not yes:
        if as_json:
            raise ConfigError("--prune --json asks nothing; say --yes as well")
        names = ", ".join(plain(run["name"]) for run in chosen)
        what = f"{counted(len(chosen), 'run')} from {folder.label} ({byte_size(sum(run['bytes'] for run in chosen))})"
        if not typer.confirm(f"remove {what}: {names}?", err=True):
            chosen = []
    for run in chosen:
        _refuse_running(run["name"], folder)  # again: it may have begun while the question stood
        run["folder_left"] = not folder.run(run["name"]).remove()

    def show() -> None:
        for run in chosen:
            left = f"; {folder.run(run['name']).label} holds other files, and stays" if run["folder_left"] else ""
            typer.echo(plain(f"removed {run['name']} ({byte_size(run['bytes'])}){left}"))
        if not chosen:
            typer.echo("nothing removed")

    removed = [{key: run[key] for key in ("name", "bytes", "folder_left")} for run in chosen]
    finish({"folder": str(folder), "removed": removed}, show, as_json=as_json)


def _runs_to_remove(
    runs: Sequence[dict[str, Any]], folder: RunsPlace, names: Sequence[str] | None, days: float | None
) -> list[dict[str, Any]]:
    """Return the runs to remove.

    Raises ConfigError without names and an age, and RecordError for a run that is unknown or being written.
    """
    if not names and days is None:
        raise ConfigError("--prune: say which runs, by --name NAME or --older-than DAYS")
    by_name = {run["name"]: run for run in runs}
    for name in dict.fromkeys(names or ()):
        folder.run(name)  # refuses what is no name
        if name not in by_name:
            raise RecordError(f"--name {name}: no run in {folder.label}; it has {', '.join(by_name) or 'none'}")
        _refuse_running(name, folder)
    before = None if days is None else time.time() - days * _DAY_S
    chosen = [by_name[name] for name in dict.fromkeys(names or ())] if names else list(runs)
    if before is None:
        return chosen
    return [run for run in chosen if not run["running"] and _last_sign(run, folder) <= before]


def _last_sign(run: dict[str, Any], folder: RunsPlace) -> float:
    """Return when something was last recorded; of a file that cannot be read, when it was last written."""
    seen = run["seen"]
    return float(seen) if seen is not None else folder.run(run["name"]).last_write()


def _refuse_running(name: str, folder: RunsPlace) -> None:
    if _row_of(name, folder)["running"]:
        raise RecordError(f"{folder.run(name).label}: still being written; end the run first")
