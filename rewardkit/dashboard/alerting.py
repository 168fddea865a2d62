"""Alerts of a page that watches: of each run that is being written a target is told of each flag, once.

The detectors look as for the tab Health, in a process of their own and seldom; the record notes that an alert went out,
so that neither a restart, nor the training's own alerts, nor another page tells of a flag twice. A run that had ended
before is not looked at.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any

from rewardkit.dashboard.readers import DIAGNOSIS, OpenRun, Readers
from rewardkit.dashboard.views.health import Look, Looking
from rewardkit.errors import RecordError
from rewardkit.health.alerts import GIVE_UP, Alert, tell
from rewardkit.health.flag import Flag
from rewardkit.record.place import RunsPlace, Stamp

PAUSE_S = 2.0  # Seconds between two looks at the folder
_log = logging.getLogger("rewardkit.dashboard")


class Alerting:
    """A thread that looks at the runs of a folder that are being written, and tells a target of their flags.

    Args:
        folder: The runs.
        readers: Makes the readers of the thread.
        alert: The target.
    """

    def __init__(self, folder: RunsPlace, readers: Callable[[], Readers], alert: Alert) -> None:
        self._folder, self._readers, self._alert = folder, readers, alert
        self._stamps: dict[str, Stamp] = {}  # Of the runs that are not being written, when they were last looked at
        self._looks: dict[str, Look | None] = {}  # Of the runs that are watched, the look that the target was told of
        self._failures = 0  # Looks in a row whose alerts did not go out
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="rewardkit-alerting", daemon=True)
        self._thread.start()

    def close(self, wait_s: float = 1.0) -> None:
        """End the thread. A second call does nothing."""
        self._end.set()
        self._thread.join(wait_s)

    def _watch(self) -> None:
        readers = self._readers()
        try:
            while not self._end.is_set() and self._failures < GIVE_UP:
                for name in self._names():
                    if not self._end.is_set():
                        self._look_at(readers, name)
                self._end.wait(PAUSE_S)
        finally:
            readers.close()

    def _names(self) -> list[str]:
        """Return the runs to look at: those that are watched, and those that were written since the last look."""
        try:
            names = self._folder.all_names()
            return [name for name in names if name in self._looks or self._folder.stamp(name) != self._stamps.get(name)]
        except (RecordError, OSError):  # the folder is not there, or the database does not answer just now
            return []

    def _look_at(self, readers: Readers, name: str) -> None:
        try:
            stamp = self._folder.stamp(name)
            opened = readers.get(name)
            is_written = opened.run.running
            if not is_written and name not in self._looks:
                self._stamps[name] = stamp
                return
            last = self._looks.setdefault(name, None)
            look, at_work = opened.cache.get(DIAGNOSIS, 0, Looking).newest(opened.run.path, opened.version)
            if look is not None and look is not last:
                self._looks[name] = look
                self._tell(opened, look)
            if not is_written and not at_work and look is not None and look.version == opened.version:
                del self._looks[name]
                self._stamps[name] = stamp
        except Exception as error:  # whatever stands in a damaged record, the other runs are watched on
            readers.drop(name)
            self._looks.pop(name, None)
            if not isinstance(error, RecordError):
                _log.exception("the flags of a run were not told")

    def _tell(self, opened: OpenRun, look: Look) -> None:
        """Tell the target of the flags of a look that nobody was told of, and log the first failure."""
        flags = [_flag(row) for row in (look.answer["diagnosis"] or {"flags": []})["flags"]]
        try:
            reason = tell(self._alert, opened.run, flags).reason
        except RecordError as error:
            reason = f"the record cannot note it: {error}"
        if reason is not None and self._failures == 0:
            _log.warning("on_flag: %s: %s; after %d failures in a row none is sent", self._alert.label, reason, GIVE_UP)
        self._failures = 0 if reason is None else self._failures + 1


def _flag(row: Mapping[str, Any]) -> Flag:
    """Return a flag of a diagnosis as the page has it."""
    values = {name: row[name] for name in Flag.__slots__}
    evidence = tuple(completion["completion"] for completion in row["rows"])
    return Flag(**values | {"rows": evidence, "spans": tuple(tuple(span) for span in row["spans"])})
