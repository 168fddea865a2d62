"""Several server processes on one port: who starts them, replaces those that end, and drains all of them together.

The parent listens and answers nothing: each process accepts connections from the socket that all of them share, so that
what connects while one is replaced goes to another. Each has a runtime with workers of its own, made of the code that
the parent loaded at the start, so that a process that is replaced serves the same versions.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import multiprocessing
import os
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from multiprocessing import connection, resource_tracker
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import Any, NoReturn

from rewardkit.errors import RewardError, RewardLoadError
from rewardkit.runtime.runtime import Runtime
from rewardkit.serving.server import DRAIN_S, END_S, run_server
from rewardkit.serving.shared_counts import SharedCounts, bury
from rewardkit.web.listening import check_token, listening, url_host

_TURN_S = 0.1  # Seconds between two looks for a signal
_FORCED_S = 10.0  # Seconds that a process has to end once it is told to end at once
_PAUSES_S = (0.0, 1.0, 5.0, 30.0)  # Seconds before a process is replaced, the last for all after several failures
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_log = logging.getLogger("rewardkit.serving")


@dataclass(slots=True, eq=False)
class _Member:
    """A server process, as its parent knows it."""

    number: int
    process: BaseProcess
    pipe: connection.Connection  # Its end of file tells the process that the parent is gone
    is_ready: bool = False
    failure: str = ""  # Why it could not serve, where it could say so


@dataclass(slots=True, eq=False)
class Crew:
    """The server processes of one port."""

    runtime: Runtime  # What each makes a runtime of its own of; not started here
    listener: socket.socket
    options: Mapping[str, Any]  # Of :func:`~rewardkit.serving.server.run_server`
    folder: str  # Where they share their numbers
    count: int
    members: list[_Member] = field(default_factory=list)
    first_signal: int | None = None
    signals: int = 0
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _failures: int = 0  # Processes in a row that ended before they served
    _due: list[float] = field(default_factory=list)  # When processes that are missing are started

    def start(self) -> None:
        """Start all processes and return when each serves, or a signal came; raise RewardLoadError where one cannot."""
        resource_tracker.ensure_running()  # here, since it unblocks signals
        for _ in range(self.count):
            self._start_member()
        while not self.signals and not all(member.is_ready for member in self.members):
            for member in self._turn():
                raise RewardLoadError(member.failure or f"a server process ended before it served: {_end_of(member)}")

    def watch(self) -> None:
        """Replace processes that end, until a signal comes."""
        while not self.signals:
            for member in self._turn():
                bury(self.folder, member.number)
                self._failures = 0 if member.is_ready else self._failures + 1
                pause_s = _PAUSES_S[min(self._failures, len(_PAUSES_S) - 1)]
                soon = "at once" if not pause_s else f"in {pause_s:g} s"
                reason = f": {member.failure}" if member.failure else ""
                _log.warning("a server process ended (%s)%s; another is started %s", _end_of(member), reason, soon)
                self._due.append(time.monotonic() + pause_s)
            now = time.monotonic()
            for due in [due for due in self._due if due <= now]:
                self._due.remove(due)
                self._start_member()

    def drain(self) -> None:
        """Have every process answer what it has taken and end; a further signal ends them at once."""
        self.listener.close()
        self._tell()
        passed_on, until = self.signals, time.monotonic() + DRAIN_S + END_S + _FORCED_S
        while self.members and time.monotonic() < until:
            self._turn()
            if self.signals > passed_on:
                passed_on, until = self.signals, time.monotonic() + _FORCED_S
                self._tell()

    def kill(self) -> None:
        """End what is left."""
        for member in self.members:
            member.process.kill()
        for member in self.members:
            member.process.join(_FORCED_S)
            member.pipe.close()

    def note_signal(self, number: int, frame: FrameType | None) -> None:
        self.first_signal = number if self.first_signal is None else self.first_signal
        self.signals += 1

    def _tell(self) -> None:
        for member in self.members:
            member.process.terminate()

    def _start_member(self) -> None:
        context, number = multiprocessing.get_context("spawn"), next(self._numbers)
        ours, theirs = context.Pipe()
        arguments = (self.runtime, self.listener, self.options, self.folder, number, theirs)
        process = context.Process(target=_serve_member, args=arguments, name=f"rewardkit-serve-{number}")
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # a signal before it can drain would end it halfway
        try:
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        theirs.close()
        self.members.append(_Member(number, process, ours))

    def _turn(self) -> list[_Member]:
        """Wait a moment for what the processes have to say, and return those that have ended."""
        pipes = {member.pipe: member for member in self.members if not member.pipe.closed}
        for ready in connection.wait([*pipes, *(member.process.sentinel for member in self.members)], _TURN_S):
            member = pipes.get(ready)  # type: ignore[call-overload]
            if member is not None:
                self._hear(member)
        ended = [member for member in self.members if member.process.exitcode is not None]
        for member in ended:
            self.members.remove(member)
            self._hear(member)
            member.pipe.close()
        return ended

    def _hear(self, member: _Member) -> None:
        """Note what a process has said of itself."""
        try:
            while not member.pipe.closed and member.pipe.poll():
                kind, text = member.pipe.recv()
                member.is_ready, member.failure = kind == "ready", text
        except (EOFError, OSError):
            member.pipe.close()


def serve_processes(
    runtime: Runtime,
    host: str,
    port: int,
    token: str | None,
    *,
    processes: int,
    tell: Callable[[str], None],
    **options: Any,
) -> int | None:
    """Serve rewards by several processes until a signal ends them, and return its number.

    Raises as :func:`~rewardkit.serving.server.serve` does; the options are those of that function, too.
    """
    check_token(host, token, drawn=False)
    with (
        listening(host, port, tries=1) as listener,
        tempfile.TemporaryDirectory(prefix="rewardkit-serve-") as folder,
    ):
        url = f"http://{url_host(host)}:{listener.getsockname()[1]}"
        crew = Crew(runtime, listener, {"token": token, **options}, folder, processes)
        with _signals_to(crew.note_signal):
            try:
                crew.start()
                if not crew.signals:
                    tell(url)
                crew.watch()
                crew.drain()
            finally:
                crew.kill()
    return crew.first_signal


@contextlib.contextmanager
def _signals_to(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Have the signals that end a server handled, but SIGHUP not where it is ignored, as by nohup."""
    numbers = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, former in before.items():
            signal.signal(number, former)


def _end_of(member: _Member) -> str:
    code = member.process.exitcode
    return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"


def _serve_member(
    runtime: Runtime,
    listener: socket.socket,
    options: Mapping[str, Any],
    folder: str,
    number: int,
    pipe: connection.Connection,
) -> None:
    """Serve in a process of its own, which ends with its parent."""
    os.setsid()  # Ctrl-C is for the parent, which tells all of them
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s", level=logging.WARNING)
    signal.signal(signal.SIGTERM, _exit)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    threading.Thread(target=_end_with_parent, args=[pipe], daemon=True).start()
    try:
        with runtime, listener:
            runtime.wait_loaded()
            run_server(
                runtime, listener, counts=SharedCounts(folder, number), tell=lambda: pipe.send(("ready", "")), **options
            )
    except RewardError as error:
        pipe.send(("failed", str(error)))
        raise SystemExit(1) from error


def _exit(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(0)


def _end_with_parent(pipe: connection.Connection) -> None:
    """Drain this process once its parent is gone."""
    with contextlib.suppress(EOFError, OSError):
        pipe.recv()
    os.kill(os.getpid(), signal.SIGTERM)
