"""Where the runs that are shown lie: a folder of runs, a single run's, or a database."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Hashable
from pathlib import Path
from typing import Protocol, TypeAlias

from rewardkit.errors import RecordError
from rewardkit.record import postgres
from rewardkit.record.address import RunAddress
from rewardkit.record.places import run_below, runs_below, runs_in, size_of
from rewardkit.record.sqlite_file import FILE
from rewardkit.record.stores import RecordPlace

Stamp: TypeAlias = tuple[Hashable, ...]

BELOW_S = 10.0
"""Seconds for which is remembered which runs lie in subfolders."""
LISTED_S = 1.0
"""Seconds for which is remembered what a database told of its runs."""
_TICK_S = 0.05
"""File systems count time in steps of some milliseconds: two writes so close may leave a file with one and the same."""


class Runs(Protocol):
    """Where runs lie."""

    @property
    def path(self) -> RecordPlace:
        """The folder, or the database's address."""

    @property
    def exists(self) -> bool:
        """Whether there is such a place."""

    @property
    def is_complete(self) -> bool:
        """Whether all of it was looked at."""

    def names(self) -> list[str]:
        """Return the names of the runs."""

    def file(self, name: str) -> RecordPlace:
        """Return the record of a run, which need not be there."""

    def has(self, name: str) -> bool:
        """Return whether a run is there."""

    def identity(self, name: str) -> Stamp:
        """Return what tells a run from another that took its place; it is empty without such a run."""

    def stamp(self, name: str) -> Stamp:
        """Return a value that changes when something is written to a run."""

    def size(self, name: str) -> int:
        """Return the bytes that a run takes."""


class Folder:
    """Where the runs lie. It need not be there: the runs are seen as they begin.

    Args:
        path: A folder of runs, or a run's own.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._below: tuple[float, tuple[list[str], bool]] | None = None

    @property
    def exists(self) -> bool:
        """Whether there is such a folder."""
        return os.path.isdir(self.path)  # False, and no error, where this user may not look

    def names(self) -> list[str]:
        """Return the names of the runs; of one in a subfolder, behind the subfolder's: ``sweep/one``.

        Raises:
            RecordError: The folder cannot be read.
        """
        if not self.exists:
            return []
        own = self._own()
        names = [*runs_in(self.path), *(() if own else self._subfolders()[0])]
        return [*([own] if own else []), *(name for name in names if name != own)]

    @property
    def is_complete(self) -> bool:
        """Whether all subfolders were looked at that may hold runs."""
        return self._below is None or self._below[1][1]

    def _subfolders(self) -> tuple[list[str], bool]:
        now = time.monotonic()
        if self._below is None or now - self._below[0] > BELOW_S:
            self._below = (now, runs_below(self.path))
        return self._below[1]

    def file(self, name: str) -> Path:
        """Return the record's file of a run, which need not be there.

        Raises:
            RecordError: It is not a run's name, or leads out of the folder.
        """
        return (self.path if name == self._own() else run_below(name, self.path)) / FILE

    def has(self, name: str) -> bool:
        """Return whether a run's file is there."""
        return os.path.exists(self.file(name))

    def identity(self, name: str) -> Stamp:
        """Return what tells a run's file from another that took its place; it is empty without such a run."""
        try:
            status = os.stat(self.file(name))
        except OSError:
            return ()
        return status.st_dev, status.st_ino

    def stamp(self, name: str) -> Stamp:
        """Return a value that changes when something is written to a run."""
        return stamp_of(self.file(name))

    def size(self, name: str) -> int:
        """Return the bytes of a run's record."""
        return size_of(self.file(name).parent)

    def _own(self) -> str | None:
        """Return the name of the run whose folder this is."""
        return (self.path.resolve().name or "run") if os.path.isfile(self.path / FILE) else None


class DatabaseRuns:
    """Where runs lie in a database. It need not answer: its runs are seen when it does.

    Args:
        path: The database's address, or that of one of its runs, which then is the only one that is shown.
    """

    def __init__(self, path: RunAddress) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._listed: tuple[float, dict[str, postgres.Listed]] | None = None

    @property
    def exists(self) -> bool:
        """Whether the database answers."""
        try:
            self._runs()
        except RecordError:
            return False
        return True

    @property
    def is_complete(self) -> bool:
        """``True``: a database knows all of its runs."""
        return True

    def names(self) -> list[str]:
        """Return the names of the runs.

        Raises:
            RecordError: The database does not answer.
        """
        return sorted(self._runs())

    def file(self, name: str) -> RunAddress:
        """Return the address of a run, which need not be there.

        Raises:
            RecordError: It is not a run's name.
        """
        if self.path.name not in (None, name):
            raise RecordError(f"run {name[:60]!r}: not shown here; this is {self.path}")
        return self.path.of_run(name)

    def has(self, name: str) -> bool:
        """Return whether a run is there, as far as the database tells."""
        try:
            return name in self._runs()
        except RecordError:
            return True  # what cannot be asked is not deleted

    def identity(self, name: str) -> Stamp:
        """Return what tells a run from another that took its place; it is empty without such a run."""
        listed = self._runs().get(name)
        return () if listed is None else ("schema", listed.identity)

    def stamp(self, name: str) -> Stamp:
        """Return a value that changes when something is written to a run."""
        listed = self._runs().get(name)
        return () if listed is None else ("schema", listed.identity, listed.written)

    def size(self, name: str) -> int:
        """Return the bytes that a run takes in the database."""
        listed = self._runs().get(name)
        return 0 if listed is None else listed.size

    def _runs(self) -> dict[str, postgres.Listed]:
        """Return what the database tells of its runs, by name; asked for once a second."""
        with self._lock:
            now = time.monotonic()
            if self._listed is None or now - self._listed[0] > LISTED_S:
                listed = postgres.listed(self.path)
                own = self.path.name
                self._listed = (now, {name: row for name, row in listed.items() if own in (None, name)})
            return self._listed[1]


def stamp_of(file: Path) -> Stamp:
    """Return what tells the states of a record apart: the sizes and times of its file and its log.

    A file written within the last moments may be written again in the same step of its clock, so that its stamp is
    never the same as another.
    """
    parts: list[Hashable] = []
    now = time.time()
    for path in (file, file.with_name(f"{file.name}-wal")):
        try:
            status = path.stat()
        except OSError:
            parts.append(None)
            continue
        parts += [status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns]
        if abs(now - status.st_mtime) < _TICK_S:
            parts.append(time.monotonic_ns())
    return tuple(parts)
