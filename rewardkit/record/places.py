"""The one place where it is decided what a path, a name or an address means: a file or a database."""

from __future__ import annotations

import os
from pathlib import Path

from rewardkit.record.address import address_of, is_address, run_address
from rewardkit.record.database_place import DatabasePlace, RunsDatabase
from rewardkit.record.file_place import FilePlace
from rewardkit.record.place import RecordPlace, RunsPlace
from rewardkit.record.runs_folder import RUNS, RunsFolder, named_run
from rewardkit.record.sqlite_file import file_of


def place_of_record(run: str | os.PathLike[str] | RecordPlace) -> RecordPlace:
    """Return the place of the record of a run.

    Args:
        run: The run's folder, its file, or its address in a database; a place is returned as it is.

    Raises:
        RecordError: The name is empty, no file can have it, or the address is malformed or names no run.
    """
    if isinstance(run, FilePlace | DatabasePlace):
        return run
    assert isinstance(run, str | os.PathLike)  # there are no other kinds of place
    return DatabasePlace(run_address(os.fspath(run))) if is_address(run) else FilePlace(file_of(run))


def run_path(run: str | os.PathLike[str], folder: Path = RUNS) -> RecordPlace:
    """Return the place of a run that a command's argument names: a path, if it has a slash, or a name in ``runs/``.

    Args:
        run: ``runs/one``, ``/data/one``, ``./one`` or ``one``, or ``postgresql://user@host/database?run=one``. A path
            is taken as it is.
        folder: Where names are looked for. A name without a record there may be a folder with one right here, as
            ``rewardkit train --output one`` makes it.

    Raises:
        RecordError: A name leads out of the folder, or the address is malformed or names no run.
    """
    text = os.fspath(run)
    if is_address(run) or os.sep in text or (os.altsep and os.altsep in text):
        return place_of_record(run)
    named = FilePlace(file_of(named_run(text, folder)))
    here = FilePlace(file_of(text))
    return here if os.path.isdir(text) and not named.exists() and here.exists() else named


def place_of_runs(folder: str | os.PathLike[str]) -> RunsPlace:
    """Return a folder of runs, or a database, as a command is given it; RecordError where an address is not one."""
    return RunsDatabase(address_of(os.fspath(folder))) if is_address(folder) else RunsFolder(Path(folder))


def has_record(run: str | os.PathLike[str] | RecordPlace) -> bool:
    """Return whether a run was recorded: whether its file or its schema is there.

    Raises:
        RecordError: It is not a run, or the server does not answer.
    """
    return place_of_record(run).exists()
