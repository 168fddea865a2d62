"""The record of a run wherever it lies: in a file of its own, or in a database with others."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

from rewardkit.record import postgres, sqlite_file
from rewardkit.record.address import RunAddress, is_address, run_address
from rewardkit.record.file_target import FileTarget
from rewardkit.record.postgres_connection import ServerError
from rewardkit.record.server_target import ServerTarget
from rewardkit.record.store import RecordConnection
from rewardkit.record.writer import Held

RecordPlace: TypeAlias = Path | RunAddress
"""Where a record is: a file, or a run of a database."""


def place_of(run: str | os.PathLike[str] | RunAddress) -> RecordPlace:
    """Return the place of a run that is named by its folder, its file, or the address of a database.

    Raises:
        RecordError: The name is empty, no file can have it, or the address is malformed or names no run.
    """
    if isinstance(run, RunAddress) or is_address(run):
        return run_address(run if isinstance(run, RunAddress) else str(run))
    return sqlite_file.file_of(run)


def reading(place: RecordPlace) -> RecordConnection:
    """Return a connection that can only read; see the function of this name of each store."""
    return postgres.reading(place) if isinstance(place, RunAddress) else sqlite_file.reading(place)


def writing(place: RecordPlace, *, threads: bool = False) -> RecordConnection:
    """Return a connection for writing to a record, which is made if it is missing and brought up to this version.

    Args:
        place: The record's.
        threads: Whether several threads use the connection, one at a time.

    Raises:
        RecordError: It is not a record, is of a newer version, or cannot be made or written.
    """
    return postgres.writing(place) if isinstance(place, RunAddress) else sqlite_file.writing(place, threads=threads)


def held(place: RecordPlace, connect: Callable[[], RecordConnection]) -> Held:
    """Return what a writer writes to.

    Args:
        place: The record's.
        connect: Connects to it, as :func:`writing` does.
    """
    if isinstance(place, RunAddress):
        return ServerTarget(connect, place)  # type: ignore[arg-type]
    return FileTarget(connect, place)  # type: ignore[arg-type]


@contextlib.contextmanager
def named(place: RecordPlace) -> Iterator[None]:
    """Name the record in what SQLite and the file system raise; what a server says names it already."""
    if isinstance(place, RunAddress):
        yield
        return
    with sqlite_file.named(place):
        yield


def has_content(place: RecordPlace) -> bool:
    """Return whether there is something at a place.

    Raises:
        RecordError: This user may not look, or the server cannot be had.
    """
    return postgres.has_content(place) if isinstance(place, RunAddress) else sqlite_file.has_content(place)


def exists(place: RecordPlace) -> bool:
    """Return whether a record was made, for a process that waits for another one to make it.

    Raises:
        RecordError: The server cannot be had.
    """
    return postgres.has_content(place) if isinstance(place, RunAddress) else place.exists()


def move_aside(run: str | os.PathLike[str] | RunAddress) -> RecordPlace | None:
    """Give a run's record another name beside it, with the time in it; return its new place.

    Returns:
        The new place; ``None`` where there is no record.

    Raises:
        RecordError: It cannot be moved.
    """
    place = place_of(run)
    return postgres.move_aside(place) if isinstance(place, RunAddress) else sqlite_file.move_aside(place)


def is_lock(reason: Exception) -> bool:
    """Return whether another writer kept the record locked beyond the time to wait."""
    return sqlite_file.is_lock(reason) or (isinstance(reason, ServerError) and reason.is_lock)


def home_of(place: RecordPlace) -> Path:
    """Return the folder for files that belong to a run: its own, or ``runs/NAME`` here for one in a database."""
    return Path("runs", str(place.name)) if isinstance(place, RunAddress) else place.parent


def place_of_record(given: str | os.PathLike[str]) -> RecordPlace:
    """Return a folder as a path, or the address of a run in a database.

    Raises:
        RecordError: The address is malformed, or names no run.
    """
    return run_address(str(given)) if is_address(given) else Path(given)


def has_record(run: str | os.PathLike[str] | RunAddress) -> bool:
    """Return whether a run was recorded: there is its file, or its schema.

    Raises:
        RecordError: It is not a run, or the server cannot be had.
    """
    return exists(place_of(run))


def opening_words(place: RecordPlace) -> str:
    """Return by what another process of this user opens a record; a password is in it, so it goes into a pipe."""
    return place.whole if isinstance(place, RunAddress) else str(place)


def secrets_of(place: RecordPlace) -> dict[str, str]:
    """Return what of a place must stand in no record, by a name for it."""
    found = place.secrets if isinstance(place, RunAddress) else ()
    return {f"DATABASE_PASSWORD_{number}": one for number, one in enumerate(found)}
