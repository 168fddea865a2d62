"""The output of each call (prints and logs), kept apart call by call, also among threads and coroutines.

Output below Python (a C extension writing to descriptor 1, a child process) goes to ``/dev/null``.
"""

from __future__ import annotations

import _thread
import contextvars
import ctypes
import io
import logging
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any, TextIO

from sandbox.workers.prints import LOG_CHARS, PrintWriter, note_dropped

_current: contextvars.ContextVar[CallLog | None] = contextvars.ContextVar("call_log", default=None)


class CallLog:
    """The output of the call ``ticket``, at most :data:`LOG_CHARS`; with a writer the parent reads it as it comes."""

    __slots__ = ("_chars", "_dropped", "_parts", "_writer", "closed", "is_beset", "ticket")

    def __init__(self, writer: PrintWriter | None = None, ticket: int = 0) -> None:
        self.ticket = ticket
        self._writer = writer
        self._parts: list[str] = []
        self._chars = 0
        self._dropped = 0
        self.closed = False
        self.is_beset = False  # whether the collector has worked for long during the call

    def write(self, text: str) -> None:
        """Add text, or drop it if the call is over or the cap reached."""
        if self.closed:
            return
        room = LOG_CHARS - self._chars
        piece = text[:room]
        if piece:
            self._parts.append(piece)
            self._chars += len(piece)
        self._dropped += len(text) - len(piece)
        if self._writer is not None:
            self._writer.add(self.ticket, piece, self._dropped)

    @property
    def pristine(self) -> bool:
        """Whether nothing has been written, so that the next call may have this log as well."""
        return not self._parts

    def finish(self) -> str:
        """Return the call's output and close it: what a left-over thread writes is dropped."""
        self.closed = True
        if not self._parts:
            return ""
        text = note_dropped("".join(self._parts), self._dropped)
        return text.encode("utf-8", "backslashreplace").decode()


def begin_call(writer: PrintWriter, ticket: int) -> CallLog:
    """Start a fresh log for the call that this thread runs from now on."""
    log = CallLog(writer, ticket)
    _current.set(log)
    return log


def current() -> CallLog | None:
    """Return the log of the call that runs in this context; the log of a call that is over is closed.

    In a finaliser that the collector runs it is ``None``: the object is nobody's any more.
    """
    return None if _collector == _get_ident() else _current.get()


def use(log: CallLog | None) -> None:
    """Make this context's output go to the given log, or nowhere."""
    _current.set(log)


_collector = 0  # The thread in which the collector works now; 0 for none
_get_ident = threading.get_ident


def begin_collection() -> None:
    """Note that the collector works in this thread from now on.

    No context may be changed here: up to Python 3.11 the collector also runs inside ``copy_context()`` and
    ``ContextVar.set()``, which then go on with what the change has freed, and the next task has another's variables.
    """
    global _collector
    _collector = _get_ident()


def end_collection() -> None:
    """Note that the collector is done."""
    global _collector
    _collector = 0


class _Stream(io.TextIOBase):
    """Stands in for ``sys.stdout`` and ``sys.stderr``: writes go to the log of the call that writes."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.buffer = _Bytes()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        log = current()
        if log is not None:
            log.write(text)
        return len(text)

    def fileno(self) -> int:
        return self._descriptor

    def close(self) -> None:
        """Stay open: a reward that closes its streams must not silence the next call's."""


class _Bytes(io.RawIOBase):
    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        log = current()
        if log is not None:
            log.write(bytes(data[: 4 * LOG_CHARS]).decode("utf-8", "replace"))
        return len(data)


class _Handler(logging.Handler):
    """Sends log records to the log of the call that made them."""

    def emit(self, record: logging.LogRecord) -> None:
        log = current()
        if log is not None:
            log.write(self.format(record) + "\n")


def log_handler() -> logging.Handler:
    """Return a handler that writes ``LEVEL name: message`` into the current call's log."""
    handler = _Handler()
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    return handler


def install() -> None:
    """Make this process's output go to the calls' logs. For worker processes only."""
    sys.stdout = _Stream(1)
    sys.stderr = _Stream(2)
    root = logging.getLogger()
    root.addHandler(log_handler())
    root.setLevel(logging.INFO)
    threading.Thread.start = _start_with_context  # type: ignore[method-assign, assignment]
    _thread.start_new_thread = _thread.start_new = _start_new_thread
    _thread.interrupt_main = _interrupt_main
    ctypes.pythonapi.PyThreadState_SetAsyncExc = _throw  # type: ignore[attr-defined]  # a function of C


_plain_start = threading.Thread.start
threads_started = 0  # threads that this process has started since its targets were loaded
threads: dict[object, CallLog | None] = {}  # what runs in threads started since, each with the call that started it
_throwers: dict[int, CallLog | None] = {}  # threads in which another raised an error, and the call that did


def others_threw(log: CallLog) -> bool:
    """Return whether another call, or a thread that one left, has raised an error in this thread since the last."""
    return _throwers.pop(_get_ident(), log) is not log


def threads_are_left() -> bool:
    """Return whether threads run whose call is over."""
    return any(log is None or log.closed for log in list(threads.values()))


def _interrupt_main(number: signal.Signals = signal.SIGINT) -> None:
    """Interrupt the main thread as Python's C function does, and note whose call did that."""
    _throwers[_main_ident] = current()
    _plain_interrupt(number)


def _throw(thread: int | ctypes.c_ulong | ctypes.c_long, error: object) -> int:
    """Raise an error in a thread as Python's C function does, and note whose call did that."""
    number = thread if isinstance(thread, int) else thread.value
    _throwers[number] = current()
    wrapped = error if error is None or isinstance(error, ctypes.py_object) else ctypes.py_object(error)
    return int(_plain_throw(ctypes.c_ulong(number), wrapped))


_plain_throw, _plain_interrupt = ctypes.pythonapi.PyThreadState_SetAsyncExc, _thread.interrupt_main
_main_ident = threading.main_thread().ident or 0


def _enlist(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function for a thread that is among :data:`threads` from now on until it ends."""

    def run(*arguments: object, **options: object) -> Any:
        try:
            return function(*arguments, **options)
        finally:
            threads.pop(run, None)

    threads[run] = current()
    return run


def _start_new_thread(function: Callable[..., Any], *arguments: object, **options: object) -> int:
    """Start a thread below ``threading``, as ``_thread.start_new_thread`` does."""
    return _plain_start_new(_enlist(function), *arguments, **options)


_plain_start_new: Callable[..., int] = _thread.start_new_thread


def _start_with_context(thread: threading.Thread) -> None:
    """Start a thread inside the call that starts it (as Python 3.14 does), so that its output is that call's."""
    global threads_started
    threads_started += 1
    context, run = contextvars.copy_context(), _enlist(thread.run)
    context.run(use, current())
    thread.run = lambda: context.run(run)  # type: ignore[method-assign]
    try:
        _plain_start(thread)
    except BaseException:
        threads.pop(run, None)
        raise


class inline_capture:
    """Captures this thread's output around calls in the caller's own process, and puts everything back."""

    def __enter__(self) -> CallLog:
        self._streams = sys.stdout, sys.stderr
        sys.stdout, sys.stderr = _Tee(sys.stdout), _Tee(sys.stderr)
        self._handler = log_handler()
        logging.getLogger().addHandler(self._handler)
        self._log = CallLog()
        self._token = _current.set(self._log)
        return self._log

    def __exit__(self, *error: object) -> None:
        _current.reset(self._token)
        logging.getLogger().removeHandler(self._handler)
        sys.stdout, sys.stderr = self._streams


class _Tee(_Stream):
    """Writes to the call's log where there is a call, and to the stream it stands in for otherwise."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(-1)
        self._stream = stream

    def write(self, text: str) -> int:
        if current() is None:
            self._stream.write(text)
        return super().write(text)

    def flush(self) -> None:
        self._stream.flush()

    def fileno(self) -> int:
        return self._stream.fileno()
