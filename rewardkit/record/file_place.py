"""A record in a file of its own: see :class:`~rewardkit.record.place.RecordPlace`."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Hashable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from rewardkit.record import sqlite_file
from rewardkit.record.file_target import FileTarget
from rewardkit.record.place import Opening
from rewardkit.record.sqlite_file import BESIDE, FILE, Connection

_TICK_S = 0.05
"""File systems count time in steps of some milliseconds: two writes so close may leave a file with one and the same."""


@dataclass(frozen=True, slots=True)
class FilePlace:
    """A record in a file."""

    file: Path  # The file, which need not be there
    secrets: ClassVar[Mapping[str, str]] = {}

    def __str__(self) -> str:
        return str(self.file)

    def __fspath__(self) -> str:
        return str(self.file)

    @property
    def name(self) -> str:
        """The run's name: that of its folder, or of a file with a name of its own."""
        return self.file.absolute().parent.name if self.file.name == FILE else self.file.stem

    @property
    def label(self) -> str:
        """The run's folder, or a file with a name of its own; with a slash, by which commands tell it from a name."""
        path = str(self.file.parent if self.file.name == FILE else self.file)
        return path if os.sep in path else os.path.join(os.curdir, path)

    @property
    def locator(self) -> str:
        return str(self.file)

    @property
    def home(self) -> Path:
        return self.file.parent

    @property
    def files(self) -> list[Path]:
        candidates = (self.file, *(self.file.with_name(f"{self.file.name}{suffix}") for suffix in BESIDE))
        return [file for file in candidates if file.exists()]

    def exists(self) -> bool:
        """Return whether there is a file that is not empty.

        Raises RecordError where this user may not look, or what should be its folder is a file.
        """
        with self.errors():
            try:
                return self.file.stat().st_size > 0
            except FileNotFoundError:
                return False

    def connect_to_read(self) -> Connection:
        return sqlite_file.connect_to_read(self.file)

    def connect_to_write(self, *, threads: bool = False) -> Connection:
        return sqlite_file.connect_to_write(self.file, threads=threads)

    def write_target(self, opening: Opening) -> FileTarget:
        return FileTarget(lambda: opening(self.connect_to_write), self.file)

    def errors(self) -> AbstractContextManager[None]:
        return sqlite_file.errors_of(self.file)

    def is_lock(self, error: Exception) -> bool:
        return sqlite_file.is_lock(error)

    def move_aside(self) -> FilePlace | None:
        """Rename the file to a free name, as ``record-20261124-093000.db``; return its place, ``None`` without one."""
        with self.errors():
            if not self.file.exists():
                return None
            stamp = time.strftime("%Y%m%d-%H%M%S")
            suffixes = ("", *(f"-{number}" for number in range(2, 1000)))
            names = (self.file.with_name(f"{self.file.stem}-{stamp}{suffix}.db") for suffix in suffixes)
            target = next(name for name in names if not name.exists())
            for ending in (*BESIDE, ""):  # what is not yet in the file itself lies beside it
                with contextlib.suppress(FileNotFoundError):
                    self.file.with_name(self.file.name + ending).rename(target.with_name(target.name + ending))
            return FilePlace(target)

    def remove(self) -> bool:
        """Remove the file, and the run's folder if nothing else is in it; return whether the folder is gone."""
        for file in reversed(self.files):
            file.unlink(missing_ok=True)
        if self.file.name != FILE or any(self.home.iterdir()):
            return False
        self.home.resolve().rmdir()
        if self.home.is_symlink():
            self.home.unlink()
        return True

    def size(self) -> int:
        total = 0
        for file in self.files:
            with contextlib.suppress(FileNotFoundError):  # a run that ends takes its log away
                total += file.stat().st_size
        return total

    def last_write(self) -> float:
        return self.file.stat().st_mtime

    def stamp(self, connection: object = None) -> tuple[Hashable, ...]:
        """Return the sizes and times of the file and its log; the connection is not asked.

        A file written within the last moments may be written again in the same step of its clock, so that its stamp is
        never the same as another.
        """
        parts: list[Hashable] = []
        now = time.time()
        for path in (self.file, sqlite_file.log_of(self.file)):
            try:
                status = path.stat()
            except OSError:
                parts.append(None)
                continue
            parts += [status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns]
            if abs(now - status.st_mtime) < _TICK_S:
                parts.append(time.monotonic_ns())
        return tuple(parts)

    def resolve(self) -> FilePlace:
        return FilePlace(self.file.resolve())

    @property
    def identity(self) -> tuple[Hashable, ...]:
        """The device and inode, which tell the file from another that replaced it; empty without a file."""
        try:
            status = os.stat(self.file)
        except OSError:
            return ()
        return status.st_dev, status.st_ino
