"""The file of scored rows: written beside its place and renamed, so that it is whole or not there."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from rewardkit.errors import ConfigError


def check_writable(path: Path, inputs: Iterable[Path], option: str = "--out") -> None:
    """Refuse a place that cannot be written to, before any work is done.

    Raises:
        ConfigError: It is a folder, a device, or one of the files that are read, or its folder does not take files.
    """
    if path.is_dir():
        raise ConfigError(f"{option} {path}: is a folder; name a file in it")
    if path.exists() and not path.is_file():
        raise ConfigError(f"{option} {path}: is not an ordinary file, and would be replaced by one; name another")
    for source in inputs:
        if path.exists() and source.exists() and path.samefile(source):
            raise ConfigError(f"{option} {path}: is {source} itself, which is read; name another")
    try:
        with tempfile.TemporaryFile(dir=path.parent, prefix=f".{path.name}."):
            pass
    except OSError as error:
        raise ConfigError(f"{option} {path}: cannot write to {path.parent}: {error.strerror or error}") from error


def check_new(path: Path, inputs: Iterable[Path], option: str, *, force: bool) -> None:
    """Refuse what :func:`check_writable` refuses, and without ``force`` a place where a file is already."""
    check_writable(path, inputs, option)
    if path.exists() and not force:
        raise ConfigError(f"{option} {path}: is there already; --force replaces it")


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write one JSON object a line; the file appears when the last of them is on disk. A link's target is replaced."""
    with replacing(path.resolve()) as file:
        for row in rows:
            file.write(_line(row))


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[IO[str]]:
    """Give a file to write to that takes the place of another when all of it is on disk."""
    with replaced(path) as beside, beside.open("w", encoding="utf-8") as file:
        yield file


@contextlib.contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """Give the name of a file that takes the place of another when all of it is on disk."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield beside
        with beside.open("rb") as file:
            os.fsync(file.fileno())
        if path.exists():
            beside.chmod(path.stat().st_mode & 0o777)
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def write_new(folder: Path, texts: Mapping[Path, str]) -> None:
    """Write new files to a folder; none of them stays where one cannot be written, which raises ConfigError."""
    made: list[Path] = []
    try:
        folder.mkdir(exist_ok=True)
        for path, text in texts.items():
            with path.open("x", encoding="utf-8") as file:
                made.append(path)
                file.write(text)
    except BaseException as error:
        for path in made:
            path.unlink()
        if isinstance(error, OSError):
            raise ConfigError(f"{folder}: {error.strerror or error}") from error
        raise


def _line(row: Mapping[str, Any]) -> str:
    text = json.dumps(row, ensure_ascii=False, default=str)  # a Parquet column may hold dates or bytes
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair, which JSON can say and UTF-8 cannot
        text = json.dumps(row, default=str)
    return text + "\n"
