"""Where records are: what the file of one run and a run of a database have in common, and so folders and databases.

:mod:`rewardkit.record.places` chooses the kind, once, where a path or an address enters.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol, TypeAlias, TypeVar

from rewardkit.record.store import RecordConnection
from rewardkit.record.writer import WriteTarget

ConnectionT = TypeVar("ConnectionT", bound=RecordConnection)
Stamp: TypeAlias = tuple[Hashable, ...]  # A value that differs where what it was made of differs


class Opening(Protocol):
    """Connects to a record by a function, and prepares the connection."""

    def __call__(self, connect: Callable[[], ConnectionT], /) -> ConnectionT: ...


class RecordPlace(Protocol):
    """Where the record of a run is. ``str`` of it names the record in messages, without a password.

    What asks a server raises a :class:`~rewardkit.RecordError` where it does not answer.
    """

    @property
    def name(self) -> str:
        """The run's name."""

    @property
    def label(self) -> str:
        """What commands take to name the run, without a password: its folder, or its address."""

    @property
    def locator(self) -> str:
        """What another process of this user opens the record by. A password is in it: it goes into a pipe."""

    @property
    def home(self) -> Path:
        """The folder for other files of the run: its own, or ``runs/NAME`` here for a run of a database."""

    @property
    def files(self) -> Sequence[Path]:
        """The record's files that are there; none for a database."""

    @property
    def secrets(self) -> Mapping[str, str]:
        """Secrets of the place that no record may hold, by a name for each."""

    def exists(self) -> bool:
        """Return whether a record was made: there is a file that is not empty, or the run's schema."""

    def connect_to_read(self) -> RecordConnection:
        """Return a connection that can only read.

        Raises:
            RecordError: There is no record, it is something else or of a newer version, or this user may not read it.
        """

    def connect_to_write(self, *, threads: bool = False) -> RecordConnection:
        """Return a connection for writing to the record, which is made if missing and brought up to this version.

        Args:
            threads: Whether several threads use the connection, one at a time.

        Raises:
            RecordError: It is not a record, is of a newer version, or cannot be made or written.
        """

    def write_target(self, opening: Opening) -> WriteTarget:
        """Return what a writer writes to; ``opening`` is called with :meth:`connect_to_write` where it connects."""

    def errors(self) -> AbstractContextManager[None]:
        """Return a context in which what SQLite and the file system raise becomes an error that names the record."""

    def is_lock(self, error: Exception) -> bool:
        """Return whether an error says that another writer kept the record locked beyond the time to wait."""

    def move_aside(self) -> RecordPlace | None:
        """Rename the record to a free name with the time in it; return its new place.

        Returns:
            The new place; ``None`` where there is no record.

        Raises:
            RecordError: It cannot be moved.
        """

    def remove(self) -> bool:
        """Delete the record, and its folder where nothing else is in it; return whether nothing of it is left."""

    def size(self) -> int:
        """Return the record's bytes, with those that SQLite keeps beside it, or with a database's indexes."""

    def last_write(self) -> float:
        """Return when the record was last written, in seconds since 1970; now where that is not known."""

    def stamp(self, connection: RecordConnection) -> Stamp:
        """Return a value that differs for each state of the record and for another record of its name, not for readers.

        Args:
            connection: A connection to the record.
        """

    def resolve(self) -> RecordPlace:
        """Return the same place under the name that it has without links."""


class RunsPlace(Protocol):
    """Where runs are: a folder of runs, a run's own, or a database. ``str`` of it names it without a password."""

    @property
    def label(self) -> str:
        """What people are shown: the folder with its slash, or the address."""

    @property
    def example(self) -> str:
        """What a command takes to record a first run there."""

    @property
    def exists(self) -> bool:
        """Whether there is such a folder, or the database answers."""

    @property
    def is_complete(self) -> bool:
        """Whether all of it was looked at."""

    def describe(self) -> str:
        """Return the label, with the word that a folder is not there yet."""

    def check(self) -> None:
        """Raise ConfigError where no runs can be there, because it is a file."""

    def names(self) -> list[str]:
        """Return the names of the runs, in order, without links that lead out; RecordError if they cannot be read."""

    def all_names(self) -> list[str]:
        """Return the names of this run, of its runs, and of those in subfolders, if any; RecordError if unreadable."""

    def run(self, name: str) -> RecordPlace:
        """Return the place of a run, which need not be there; RecordError where its name is no run's, or leads out."""

    def has(self, name: str) -> bool:
        """Return whether a run is there, as far as that is known."""

    def identity(self, name: str) -> Stamp:
        """Return a value that differs for another run that took this one's place; it is empty without a run."""

    def stamp(self, name: str) -> Stamp:
        """Return a value that changes when something is written to a run."""

    def size(self, name: str) -> int:
        """Return the bytes that a run takes."""
