"""Where runs lie: names that never lead out of the runs folder, and the list of what is in it."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections import deque
from pathlib import Path

from rewardkit.errors import RecordError
from rewardkit.record import postgres
from rewardkit.record.address import RunAddress, address_of, is_address, run_address
from rewardkit.record.sqlite_file import BESIDE, FILE, file_of

RUNS = Path("runs")
"""The folder in which a plain name is looked for."""
DEEPEST = 3
"""Folders below a folder of runs in which :func:`runs_below` looks for further ones."""
MOST_LOOKED = 5_000
"""Entries of folders that it looks at."""


def place_of_runs(folder: str | os.PathLike[str]) -> Path | RunAddress:
    """Return a folder of runs, or the address of a database, as a command is given it.

    Raises:
        RecordError: The address is not that of a database.
    """
    return address_of(os.fspath(folder)) if is_address(folder) else Path(folder)


def run_path(run: str | os.PathLike[str], folder: Path = RUNS) -> Path | RunAddress:
    """Return the place of a run as a command is given it: a path, told by its slash, or a name under ``runs/``.

    Args:
        run: ``runs/one``, ``/data/one``, ``./one`` or ``one``, or ``postgresql://user@host/database?run=one``. A path
            is taken as it is.
        folder: Where names are looked for.

    Raises:
        RecordError: A name leads out of the folder, or the address is malformed or names no run.
    """
    if is_address(run):
        return run_address(os.fspath(run))
    text = os.fspath(run)
    seps = [one for one in (os.sep, os.altsep) if one]
    return Path(text) if any(one in text for one in seps) else named_run(text, folder)


def run_in(name: str, folder: Path | RunAddress) -> Path | RunAddress:
    """Return a run of a folder or a database by its name; it need not be there.

    Raises:
        RecordError: It is not a name of a run, or leads out of the folder.
    """
    return folder.of_run(name) if isinstance(folder, RunAddress) else named_run(name, folder)


def named_run(name: str, folder: Path = RUNS) -> Path:
    """Return the folder of the run with a name, which need not be there. Names from strangers are checked here.

    Args:
        name: The run's name, which is not a path.
        folder: The folder of runs, which may itself be a link.

    Raises:
        RecordError: The name is empty, a path or hidden, or it or its record is a link that leads out of the folder.
    """
    if not name or name.startswith(".") or any(one in name for one in "/\\\x00\n") or len(name) > 200:
        raise RecordError(f"run {name[:60]!r}: not a run's name; expected one under {folder}/, or a path with a slash")
    path = folder / name
    home = folder.resolve()
    if not path.resolve().is_relative_to(home) or not (path / FILE).resolve().is_relative_to(home):
        raise RecordError(f"run {name!r}: a link that leads out of {folder}/; name the folder that it leads to")
    return path


def runs_in(folder: Path | RunAddress) -> list[str]:
    """Return the names of a folder's runs: of those folders in it that hold a record, without links that lead out.

    Raises:
        RecordError: There is no such folder, or it cannot be read; or the database does not answer.
    """
    if isinstance(folder, RunAddress):
        return postgres.runs_in(folder)
    if folder == RUNS and not folder.exists():
        return []
    try:
        names = sorted(one.name for one in folder.iterdir())
    except OSError as reason:
        raise RecordError(f"{folder}: {reason.strerror or reason}; expected a folder of runs") from reason
    return [name for name in names if _is_run(name, folder)]


def run_below(name: str, folder: Path) -> Path:
    """Return the folder of a run that may lie in a subfolder, as ``sweep/one``; it need not be there.

    Args:
        name: The run's name, behind those of the subfolders. Names from strangers are checked here.
        folder: The folder of runs.

    Raises:
        RecordError: A part of it is not a name, or leads out of the folder; or it lies deeper than :data:`DEEPEST`.
    """
    *above, last = name.split("/")
    if len(above) > DEEPEST:
        raise RecordError(f"run {name[:60]!r}: lies deeper than {DEEPEST} folders; name a folder that is nearer to it")
    for one in above:
        folder = named_run(one, folder)
    return named_run(last, folder)


def runs_below(folder: Path) -> tuple[list[str], bool]:
    """Return the names of the runs in the subfolders of a folder of runs, and whether all of these were looked at.

    A run's own folder, a hidden one and a link to a folder are not looked into.
    """
    found: list[str] = []
    waiting, looked = deque([("", 0)]), 0
    while waiting:
        above, depth = waiting.popleft()
        try:
            with os.scandir(folder / above) as entries:
                some = list(itertools.islice(entries, MOST_LOOKED - looked))
        except OSError:
            continue
        looked += len(some)
        for name in sorted(one.name for one in some if _is_folder(one)):
            below = f"{above}/{name}".lstrip("/")
            if not _is_run(name, folder / above):
                waiting += [(below, depth + 1)] if depth < DEEPEST else []
            elif depth:
                found.append(below)
        if looked >= MOST_LOOKED:
            return found, False
    return found, True


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


def size_of(run: Path | RunAddress) -> int:
    """Return the bytes of a run's record, with those that SQLite keeps beside it, or with a database's indexes."""
    if isinstance(run, RunAddress):
        return postgres.size_of(run)
    sizes = 0
    for one in files_of(run):
        with contextlib.suppress(FileNotFoundError):  # a run that ends takes its log away
            sizes += one.stat().st_size
    return sizes


def files_of(run: Path) -> list[Path]:
    """Return the files of a run's record that are there."""
    file = file_of(run)
    those = (file, *(file.with_name(f"{file.name}{end}") for end in BESIDE))
    return [one for one in those if one.exists()]


def remove(run: Path | RunAddress) -> bool:
    """Delete a run's record, and its folder where nothing else is in it; return whether nothing of it is left."""
    if isinstance(run, RunAddress):
        postgres.remove(run)
        return True
    for file in reversed(files_of(run)):
        file.unlink(missing_ok=True)
    if run.suffix == ".db" or any(run.iterdir()):
        return False
    run.resolve().rmdir()
    if run.is_symlink():
        run.unlink()
    return True
