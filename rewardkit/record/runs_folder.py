"""Runs in a folder: names that never lead out of it, and the list of what is in it and its subfolders."""

from __future__ import annotations

import itertools
import os
import time
from collections import deque
from pathlib import Path
from typing import NamedTuple

from rewardkit.errors import ConfigError, RecordError
from rewardkit.record.file_place import FilePlace
from rewardkit.record.place import Stamp
from rewardkit.record.sqlite_file import FILE

RUNS = Path("runs")  # The folder in which a plain name is looked for
DEEPEST = 3  # Folders below a folder of runs in which runs are looked for
MOST_ENTRIES = 5_000  # Entries of folders that are looked at
BELOW_S = 10.0  # Seconds for which is remembered which runs lie in subfolders


class RunsBelow(NamedTuple):
    """The runs in the subfolders of a folder of runs."""

    names: list[str]  # Their names, as `sweep/one`
    is_complete: bool  # Whether all subfolders were looked at


class RunsFolder:
    """A folder of runs, or a run's own, which need not be there: see :class:`~rewardkit.record.place.RunsPlace`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._below: RunsBelow | None = None
        self._below_read_s = 0.0  # When they were looked for

    def __str__(self) -> str:
        return str(self.path)

    @property
    def label(self) -> str:
        return f"{self.path}/"

    example = "runs/one"

    @property
    def exists(self) -> bool:
        return os.path.isdir(self.path)  # False, and no error, where this user may not look

    @property
    def is_complete(self) -> bool:
        return self._below is None or self._below.is_complete

    def describe(self) -> str:
        return self.label if self.path.exists() else f"{self.label}, which is not there yet,"

    def check(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise ConfigError(f"{self.path}: is a file; expected a folder of runs, or a run's folder")

    def names(self) -> list[str]:
        """Return the names of those folders in it that hold a record."""
        if self.path == RUNS and not self.path.exists():
            return []
        try:
            names = sorted(entry.name for entry in self.path.iterdir())
        except OSError as error:
            raise RecordError(f"{self.path}: {error.strerror or error}; expected a folder of runs") from error
        return [name for name in names if _is_run(name, self.path)]

    def all_names(self) -> list[str]:
        """Return the names of the runs; of one in a subfolder, behind the subfolder's: ``sweep/one``."""
        if not self.exists:
            return []
        own = self._own_name()
        names = [*self.names(), *(() if own else self._names_below())]
        return [*([own] if own else []), *(name for name in names if name != own)]

    def run(self, name: str) -> FilePlace:
        return FilePlace((self.path if name == self._own_name() else run_below(name, self.path)) / FILE)

    def has(self, name: str) -> bool:
        return os.path.exists(self.run(name))

    def identity(self, name: str) -> Stamp:
        return self.run(name).identity

    def stamp(self, name: str) -> Stamp:
        return self.run(name).stamp()

    def size(self, name: str) -> int:
        return self.run(name).size()

    def _own_name(self) -> str | None:
        """Return the name of the run whose folder this is."""
        return (self.path.resolve().name or "run") if os.path.isfile(self.path / FILE) else None

    def _names_below(self) -> list[str]:
        now = time.monotonic()
        if self._below is None or now - self._below_read_s > BELOW_S:
            self._below, self._below_read_s = runs_below(self.path), now
        return self._below.names


def named_run(name: str, folder: Path = RUNS) -> Path:
    """Return the folder of the run with a name, which need not be there. Names from strangers are checked here.

    Raises RecordError where the name is empty, a path or hidden, or it or its record is a link that leads out of the
    folder. The folder of runs may itself be a link.
    """
    if not name or name.startswith(".") or any(letter in name for letter in "/\\\x00\n") or len(name) > 200:
        raise RecordError(f"run {name[:60]!r}: not a run's name; expected one under {folder}/, or a path with a slash")
    path = folder / name
    home = folder.resolve()
    if not path.resolve().is_relative_to(home) or not (path / FILE).resolve().is_relative_to(home):
        raise RecordError(f"run {name!r}: a link that leads out of {folder}/; name the folder that it leads to")
    return path


def run_below(name: str, folder: Path) -> Path:
    """Return the folder of a run that may lie in a subfolder, as ``sweep/one``; it need not be there.

    Names from strangers are checked here. Raises RecordError where a part is not a name, or leads out of the folder; or
    the run lies deeper than :data:`DEEPEST`.
    """
    *parents, last = name.split("/")
    if len(parents) > DEEPEST:
        raise RecordError(f"run {name[:60]!r}: lies deeper than {DEEPEST} folders; name a folder that is nearer to it")
    for parent in parents:
        folder = named_run(parent, folder)
    return named_run(last, folder)


def runs_below(folder: Path) -> RunsBelow:
    """Return the runs in the subfolders of a folder of runs.

    A run's own folder, a hidden one and a link to a folder are not looked into.
    """
    names: list[str] = []
    queue, count = deque([("", 0)]), 0
    while queue:
        parent, depth = queue.popleft()
        try:
            with os.scandir(folder / parent) as scan:
                entries = list(itertools.islice(scan, MOST_ENTRIES - count))
        except OSError:
            continue
        count += len(entries)
        for name in sorted(entry.name for entry in entries if _is_folder(entry)):
            path = f"{parent}/{name}".lstrip("/")
            if not _is_run(name, folder / parent):
                queue += [(path, depth + 1)] if depth < DEEPEST else []
            elif depth:
                names.append(path)
        if count >= MOST_ENTRIES:
            return RunsBelow(names, is_complete=False)
    return RunsBelow(names, is_complete=True)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return not entry.name.startswith(".") and entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _is_run(name: str, folder: Path) -> bool:
    try:
        return (named_run(name, folder) / FILE).is_file()
    except (RecordError, OSError):
        return False
