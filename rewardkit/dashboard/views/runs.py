"""The list of runs: each with its size, its state and a small curve of each reward."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from typing import Any

from rewardkit.dashboard.folder import Runs, Stamp
from rewardkit.dashboard.readers import Shared
from rewardkit.dashboard.views.health import flags_found
from rewardkit.errors import RecordError
from rewardkit.record.sessions import is_alive
from rewardkit.record.stores import RecordPlace
from rewardkit.replay.recorded_run import Run

READ_S = 5.0
"""Seconds for one run, so that a damaged one does not hold up the list."""
MOST_POINTS = 60
"""Points of a small curve."""


class Listing:
    """The list of a folder's runs, of which only those are read in which something was written.

    Args:
        folder: Where they lie.
        shared: What is kept of the runs, their diagnoses among it.
    """

    def __init__(self, folder: Runs, shared: Shared) -> None:
        self._folder, self._shared = folder, shared
        self._lock = threading.Lock()
        self._known: dict[str, tuple[Stamp, dict[str, Any]]] = {}

    def rows(self) -> dict[str, Any]:
        """Return the folder and its runs, the newest first."""
        names = self._folder.names()
        with self._lock:
            found = [self._one(name) for name in names]
            self._known = {name: self._known[name] for name in names if name in self._known}
        runs = [one for one in found if one is not None]
        return {
            "folder": str(self._folder.path),
            "there": self._folder.there,
            "whole": self._folder.whole,
            "runs": sorted(runs, key=lambda one: -(one["began"] or 0.0)),
        }

    def _one(self, name: str) -> dict[str, Any] | None:
        """Return what is told of a run; ``None`` where it was deleted meanwhile."""
        try:
            file = self._folder.file(name)
            stamp = self._folder.stamp(name)
            if name not in self._known or self._known[name][0] != stamp:
                self._known[name] = (stamp, _read(name, file))
            told = dict(self._known[name][1])
            told["bytes"] = self._folder.size(name)
            told["flags"] = self._flags(name, stamp, told["flags"])
        except (RecordError, OSError):
            return None
        sessions = told.pop("sessions")
        if told["state"] is None:
            told["state"] = "running" if any(map(is_alive, sessions)) else "ended"
        return told

    def _flags(self, name: str, stamp: Stamp, live: int) -> int | None:
        """Return how many flags the detectors found, else the training; ``None`` where it is not known that any looked.

        A training in which none came up may not have been watched.
        """
        kept = self._shared.known(name)
        found = None if kept is None else flags_found(kept, stamp)
        return (live or None) if found is None else found


def _read(name: str, file: RecordPlace) -> dict[str, Any]:
    empty = dict.fromkeys(("completions", "steps", "first_step", "last_step", "began", "seen", "problem", "state",
                           "failed_share"))  # fmt: skip
    told: dict[str, Any] = {"name": name, **empty, "rewards": [], "metrics": [], "flags": 0, "sessions": []}
    try:
        with Run.open(file) as run:
            run.within(READ_S)
            sessions, steps = run.sessions, run.steps()
            for one in sessions:
                is_alive(one)  # what cannot be asked later is damaged
            found = {
                **told,
                "completions": run.count(),
                "steps": len(steps),
                "first_step": steps[0] if steps else None,
                "last_step": steps[-1] if steps else None,
                "began": min((float(one["began"]) for one in sessions), default=None),
                "seen": max((float(one["seen"]) for one in sessions), default=None),
                "rewards": [_reward(run, one) for one in run.rewards],
                "metrics": run.metric_names(),
                "failed_share": _share(*run.calls()),
                "flags": sum(one["kind"] == "flag" for one in run.events),
            }
            json.dumps(found)
            return {**found, "sessions": sessions}
    except RecordError as wrong:
        return {**told, "state": "unreadable", "problem": str(wrong)}
    except Exception as wrong:  # whatever stands in a damaged record, the other runs are listed
        return {**told, "state": "unreadable", "problem": f"{file}: damaged: {type(wrong).__name__}: {wrong}"}


def _reward(run: Run, name: str) -> dict[str, Any]:
    series = run.series(name)
    return {"name": name, "last": series[-1][1] if series else None, "series": thinned(series)}


def _share(failed: int, calls: int) -> float | None:
    return failed / calls if calls else None


def thinned(series: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    """Return at most so many points of a series as fit in a small curve, the first and the last among them."""
    if len(series) <= MOST_POINTS:
        return list(series)
    last = len(series) - 1
    return [series[round(place * last / (MOST_POINTS - 1))] for place in range(MOST_POINTS)]
