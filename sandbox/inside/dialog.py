"""A dialog of two children: a program that reads and writes, and an interactor of the row at the other end.

The program's standard input and output are the socket to the interactor, which runs in a process of its own: it alone
knows the input and the expected output, and its verdict goes to a file that the program's process does not have.
"""

from __future__ import annotations

import io
import os
import select
import sys
from typing import Any

from sandbox.inside.peer import short
from sandbox.inside.runner import PEER, TESTS_NAME, UNTOLD, describe, emit, fresh_module, run_programs

_PIECE = 1 << 16
_PIECE_SENT = 1 << 12  # far less than the kernel has room for when it says that there is some
_HELLO = b"+"  # what the program's process sends before the program runs


def converse(request: dict[str, Any]) -> int:
    """Run the request's program with the socket as its standard input and output; return its exit code."""
    os.write(PEER, _HELLO)
    for number in (0, 1):
        os.dup2(PEER, number)
    os.close(PEER)
    sys.stdin = sys.__stdin__ = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), encoding="utf-8")  # type: ignore[misc]
    output = io.BufferedWriter(io.FileIO(1, "w", closefd=False))
    sys.stdout = sys.__stdout__ = io.TextIOWrapper(output, encoding="utf-8", line_buffering=True)  # type: ignore[misc]
    return run_programs({"source": request["source"], "files": {}, "args": [], "inputs": [""]})


class _Line:
    """The interactor's end of the socket."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._buffer = bytearray()
        self._is_open = True
        self._has_waited = False

    def await_program(self) -> None:
        """Wait until the program's process begins; end this one where that was killed before it read its order."""
        try:
            self._is_open = bool(os.read(PEER, 1))
        except ConnectionResetError:
            os._exit(UNTOLD)

    @staticmethod
    def _has_room() -> bool:
        """Return whether the program has read so much that a piece can be sent without waiting for it."""
        poll = select.poll()
        poll.register(PEER, select.POLLOUT)
        return bool(poll.poll(0))

    def _note_wait(self) -> None:
        """Report that the interactor waits for the program from here on, which may never read or write."""
        if not self._has_waited:
            self._has_waited = True
            emit({"waiting": True})

    def read(self) -> str:
        """Return the program's next line without its end; an empty text once the program has ended."""
        self._note_wait()
        while b"\n" not in self._buffer and self._is_open:
            try:
                piece = os.read(PEER, _PIECE)
            except ConnectionResetError:  # the program ended and left something unread
                piece = b""
            self._room -= len(piece)
            if self._room < 0:
                raise ValueError("the program writes more than it may")
            self._is_open = bool(piece)
            self._buffer += piece
        line, _, rest = bytes(self._buffer).partition(b"\n")
        self._buffer = bytearray(rest)
        return line.decode("utf-8", "replace").rstrip("\r")

    def write(self, text: object) -> None:
        """Send the program a text, with a line end where it has none; nothing once the program has ended."""
        data = str(text).encode("utf-8", "surrogatepass")
        data += b"" if data.endswith(b"\n") else b"\n"
        try:
            while data:
                if not self._has_room():
                    self._note_wait()
                data = data[os.write(PEER, data[:_PIECE_SENT]) :]
        except OSError:
            self._is_open = False


def interact(request: dict[str, Any]) -> int:
    """Run the request's interactor against the program.

    It reports ``waiting`` when it first waits for the program, by reading or by writing more than fits, and last
    ``share``, ``odd`` (no share was returned) or ``raised``.
    """
    line = _Line(request["room"])
    line.await_program()
    try:
        names = fresh_module("interactor")
        exec(compile(request["interactor"], TESTS_NAME, "exec", dont_inherit=True), names)  # noqa: S102 - the row's
        value = names["interact"](request["input"], request["expected"], line.read, line.write)
        is_share = isinstance(value, bool | int | float) and 0 <= value <= 1
        emit({"share": float(value)} if is_share else {"odd": short(value)})
    except BaseException as error:
        emit({"raised": describe(error)})
    return 0
