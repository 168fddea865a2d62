"""Output into a pipe whose reader has gone, as under ``rewardkit list | head``: dropped, which is no fault.

The command goes on: what it writes to files is whole, and its exit code is its own.
"""

from __future__ import annotations

import contextlib
import io
import os
import stat
import sys
from collections.abc import Iterator
from typing import Any, Literal


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


@contextlib.contextmanager
def readers_may_go(name: Literal["stdout", "stderr"]) -> Iterator[None]:
    """Within it, a pipe at a standard stream may be closed by its reader.

    Raises:
        OSError: The stream cannot be written to for another reason, as where the disk is full.
    """
    stream: Any = getattr(sys, name)
    if not _is_pipe(stream):
        yield
        return
    stream.flush()
    held = io.TextIOWrapper(
        io.BufferedWriter(_Pipe(stream.fileno(), "wb", closefd=False)),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
    setattr(sys, name, held)
    try:
        yield
    finally:
        setattr(sys, name, stream)
        held.flush()


def _is_pipe(stream: Any) -> bool:
    """Whether a standard stream is Python's own, and a pipe or socket."""
    if not isinstance(stream, io.TextIOWrapper):
        return False
    try:
        mode = os.fstat(stream.fileno()).st_mode
    except (OSError, ValueError):  # closed, or held in memory
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
