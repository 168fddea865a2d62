"""The list of runs, and what every tab of a run needs: its size, state, rewards, versions and metrics."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

from rewardkit.dashboard.as_json import attributes
from rewardkit.dashboard.query import SPLITS, Query
from rewardkit.dashboard.readers import OpenRun, RunCaches, summaries
from rewardkit.dashboard.views.health import flag_count
from rewardkit.errors import RecordError
from rewardkit.record.overview import RewardOverview, overviews
from rewardkit.record.place import RecordPlace, RunsPlace, Stamp
from rewardkit.record.run_end import STOPPED, RunState, run_end
from rewardkit.record.sums import thin
from rewardkit.record.values import StepSummary, Version
from rewardkit.replay.recorded_run import Run
from rewardkit.types import Cause

READ_S = 5.0  # Seconds for one run, so that a damaged one does not hold up the list
MOST_POINTS = 60  # Points of a small curve


def overview(opened: OpenRun, query: Query) -> dict[str, Any]:
    """Return what every tab of a run needs."""
    run, sums = opened.run, summaries(opened)
    numbers = opened.cache.get("overview", opened.version, lambda: _numbers(run, sums))
    return {**numbers, **run.end.as_json(), "can_write": opened.can_write}


def _numbers(run: Run, sums: Sequence[StepSummary]) -> dict[str, Any]:
    return {
        "name": run.name,
        "path": run.path.label,
        "completions": run.count(),
        "prompts": run.prompt_count,
        "left_out": run.left_out,
        "steps": {split: _range(run.steps(split)) for split in SPLITS},
        "rewards": _rewards(run, sums),
        "versions": [_version(version) for version in run.versions],
        "metrics": {split: run.metric_names(split) for split in SPLITS},
        "causes": [cause.value for cause in Cause],
    }


def _range(steps: list[int]) -> list[int]:
    """Return the first step, the last one and how many there are; an empty list without steps."""
    return [steps[0], steps[-1], len(steps)] if steps else []


def _rewards(run: Run, sums: Sequence[StepSummary]) -> list[dict[str, Any]]:
    """Return the rewards in the order in which they were first recorded, with their newest version of the run."""
    by_name = {row.reward: row for row in overviews(sums)}
    newest = {version.reward: version.number for version in run.own_versions}
    return [_reward(name, newest.get(name), by_name.get(name)) for name in run.rewards]


def _reward(name: str, version: int | None, row: RewardOverview | None) -> dict[str, Any]:
    """Return a reward's numbers, which are all unknown for one that scored nothing in training."""
    names = ("first", "last", "std", "low", "high", "p50_s", "p95_s", "flat_share")
    counts = {"scored": 0, "skipped": 0, "failed": {}}
    if row is not None:
        counts = {"scored": row.scored, "skipped": row.skipped, "failed": dict(row.failed)}
    return {"name": name, "version": version, **{key: getattr(row, key, None) for key in names}, **counts}


def _version(version: Version) -> dict[str, Any]:
    return attributes(version, "id", "reward", "number", "digits", "origin", "reference", "first_step", "began")


class _CachedRow(NamedTuple):
    stamp: Stamp  # The state of the record that was read
    row: dict[str, Any]


class Listing:
    """The list of a folder's runs. A run is read again only after something was written to it."""

    def __init__(self, folder: RunsPlace, shared: RunCaches) -> None:
        self._folder, self._shared = folder, shared
        self._lock = threading.Lock()
        self._rows: dict[str, _CachedRow] = {}

    def rows(self) -> dict[str, Any]:
        """Return the folder and its runs, the newest first."""
        names = self._folder.all_names()
        with self._lock:
            rows = [row for row in map(self._row, names) if row is not None]
            self._rows = {name: self._rows[name] for name in names if name in self._rows}
        return {
            "folder": str(self._folder),
            "there": self._folder.exists,
            "whole": self._folder.is_complete,
            "runs": sorted(rows, key=lambda row: -(row["began"] or 0.0)),
        }

    def _row(self, name: str) -> dict[str, Any] | None:
        """Return the row of a run; ``None`` where it was deleted meanwhile."""
        try:
            file = self._folder.run(name)
            stamp = self._folder.stamp(name)
            if name not in self._rows or self._rows[name].stamp != stamp:
                self._rows[name] = _CachedRow(stamp, _read(name, file))
            row = dict(self._rows[name].row)
            row["bytes"] = self._folder.size(name)
            row["flags"] = self._flags(name, stamp, row["flags"])
        except (RecordError, OSError):
            return None
        sessions, events = row.pop("sessions"), row.pop("events")
        return row if row["state"] else row | run_end(sessions, events).as_json()

    def _flags(self, name: str, stamp: Stamp, live: int) -> int | None:
        """Return the count of flags of the diagnosis, else of the training; ``None`` without both."""
        cache = self._shared.get(name)
        count = None if cache is None else flag_count(cache, stamp)
        return (live or None) if count is None else count


def _read(name: str, file: RecordPlace) -> dict[str, Any]:
    """Return the row of a run as its record has it; where that cannot be read, ``problem`` says why."""
    empty = dict.fromkeys(("completions", "steps", "first_step", "last_step", "began", "seen", "problem", "state",
                           "state_reason", "failed_share", "total"))  # fmt: skip
    lists: dict[str, list[Any]] = {key: [] for key in ("totals", "rewards", "metrics", "sessions", "events")}
    row: dict[str, Any] = {"name": name, **empty, **lists, "flags": 0}
    try:
        with Run.open(file) as run:
            run.within(READ_S)
            sessions, steps, events = run.sessions, run.steps(), run.events
            run_end(sessions, events)  # what cannot be asked later is damaged
            failed, calls = run.calls()
            numbers = {
                "completions": run.count(),
                "steps": len(steps),
                "first_step": steps[0] if steps else None,
                "last_step": steps[-1] if steps else None,
                "began": min((float(session["began"]) for session in sessions), default=None),
                "seen": max((float(session["seen"]) for session in sessions), default=None),
                **(_curves(run, steps) if steps else _means(run)),
                "metrics": run.metric_names(),
                "failed_share": failed / calls if calls else None,
                "flags": sum(event["kind"] == "flag" for event in events),
            }
            json.dumps(numbers)  # a value that is not JSON is damaged too
            stops = [event for event in events if event["kind"] == STOPPED]
            return {**row, **numbers, "sessions": sessions, "events": stops}
    except RecordError as error:
        problem = str(error)
    except Exception as error:  # whatever stands in a damaged record, the other runs are listed
        problem = f"{file}: damaged: {type(error).__name__}: {error}"
    return {**row, "state": str(RunState.UNREADABLE), "problem": problem}


def _curves(run: Run, steps: Sequence[int]) -> dict[str, Any]:
    """Return the mean total and each reward's mean at the last step, and of at most :data:`MOST_POINTS` as series."""
    totals = run.total_series(steps=thin(steps, MOST_POINTS))
    series = {name: run.series(name, most=MOST_POINTS) for name in run.rewards}
    rewards = [
        {"name": name, "last": points[-1][1] if points else None, "series": points} for name, points in series.items()
    ]
    return {"total": totals[-1][1] if totals else None, "totals": totals, "rewards": rewards}


def _means(run: Run) -> dict[str, Any]:
    """Return the mean total and each reward's mean over all rows of a scored file, which has no steps."""
    means = run.file_means()
    rewards: list[dict[str, Any]] = [
        {"name": name, "last": None if means is None else means.rewards.get(name), "series": []} for name in run.rewards
    ]
    return {"total": None if means is None else means.total, "rewards": rewards}
