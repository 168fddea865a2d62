"""What commands write: files, written beside their place and renamed, so that they are whole or not there; and pipes.

Output into a pipe whose reader has gone, as under ``rewardkit list | head``, is dropped, which is no fault: the command
goes on, and its exit code is its own.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Literal

from rewardkit.coercion.plain_json import legible
from rewardkit.errors import ConfigError


def check_writable(path: Path, inputs: Iterable[Path], option: str = "--out") -> None:
    """Raise ConfigError where a path cannot be written to; call it before any work is done.

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
    """Raise ConfigError as :func:`check_writable` does, and where the file exists and ``force`` is false."""
    check_writable(path, inputs, option)
    if path.exists() and not force:
        raise ConfigError(f"{option} {path}: is there already; --force replaces it")


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> int:
    """Write one JSON object a line and return how many; the file appears when the last of them is on disk.

    A link's target is replaced.
    """
    count = 0
    with replacing(path.resolve()) as file:
        for row in rows:
            file.write(json_line(row))
            count += 1
    return count


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[IO[str]]:
    """Give a file to write to that takes the place of another when all of it is on disk."""
    with replacement_path(path) as beside, beside.open("w", encoding="utf-8") as file:
        yield file


@contextlib.contextmanager
def replacement_path(path: Path) -> Iterator[Path]:
    """Yield a path to write to, which replaces ``path`` at the end of the block; an error removes it."""
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
    """Write new files to a folder; where one cannot be written, remove those that were and raise ConfigError."""
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


def json_line(row: Mapping[str, Any]) -> str:
    """Return a row as a line of JSON."""
    text = json.dumps(row, ensure_ascii=False, default=legible)  # a Parquet column may hold dates or bytes
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair, which JSON can say and UTF-8 cannot
        text = json.dumps(row, default=legible)
    return text + "\n"


class _Pipe(io.FileIO):
    """The writing end of a pipe. Once nobody reads, what is written goes nowhere."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            return len(data)


def tolerate_lost_reader(name: Literal["stdout", "stderr"]) -> None:
    """Make a standard stream drop output once its reader is gone, and escape letters that its encoding lacks."""
    stream: Any = getattr(sys, name)
    if not isinstance(stream, io.TextIOWrapper):
        return
    stream.reconfigure(errors="backslashreplace")
    with contextlib.suppress(OSError, ValueError):  # closed, or held in memory
        mode = os.fstat(stream.fileno()).st_mode
        if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
            pipe = io.BufferedWriter(_Pipe(stream.fileno(), "wb", closefd=False))
            buffering = {"line_buffering": stream.line_buffering, "write_through": stream.write_through}
            setattr(sys, name, io.TextIOWrapper(pipe, stream.encoding, stream.errors, None, **buffering))
