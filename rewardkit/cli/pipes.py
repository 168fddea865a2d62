"""Output into a pipe whose reader has gone, as under ``rewardkit list | head``: dropped, which is no fault.

The command goes on: what it writes to files is whole, and its exit code is its own.
"""

from __future__ import annotations

import contextlib
import io
import os
import stat
import sys
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


def let_reader_go(name: Literal["stdout", "stderr"]) -> None:
    """Let a standard stream lose its reader, and write out the letters that its encoding lacks."""
    stream: Any = getattr(sys, name)
    if not isinstance(stream, io.TextIOWrapper):
        return
    stream.reconfigure(errors="backslashreplace")
    with contextlib.suppress(OSError, ValueError):  # closed, or held in memory
        mode = os.fstat(stream.fileno()).st_mode
        if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
            pipe = io.BufferedWriter(_Pipe(stream.fileno(), "wb", closefd=False))
            often = stream.line_buffering, stream.write_through
            setattr(sys, name, io.TextIOWrapper(pipe, stream.encoding, stream.errors, None, *often))
