"""One launcher process, as its client sees it: giving it commands to run, and ending what uses more than it may."""

from __future__ import annotations

import json
import os
import select
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sandbox.errors import SandboxUnavailableError
from sandbox.inside.launcher import END, FILES, MAX_ORDER, PROGRAM, STARTED, TAKEN, WORK
from sandbox.inside.workfolder import FOLDER
from sandbox.jail import scratch
from sandbox.jail.levels import Level
from sandbox.jail_process import JailProcess
from sandbox.programs.tree import ProcessTree
from sandbox.workers.wire import anonymous_file

_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": "/"}
_FIRST_LOOK_S, _LAST_LOOK_S = 0.004, 0.02  # between two looks at what a program uses, first and later
_FILES_S = 0.05  # between two looks at what its directory holds
_BEGIN_S = 10.0  # seconds until a program's first command must have started
_REPORT_S = 3.0  # seconds after its end by which it must be reported
_MOST_LAG = 2.0  # a program's time is lengthened at most by so many times itself where the machine lags


@dataclass(frozen=True, slots=True)
class LaunchOrder:
    """Commands that a launcher runs in one jail, one after the other, and what they may use.

    Attributes:
        commands: Each an absolute path and its arguments.
        environment: All variables.
        executable: Paths that may be executed and read.
        readable: Paths that may be read.
        files: The files of its directory by relative name.
        stdin: Its standard input.
        streams: Descriptors of this process that it has, too.
        channel: The numbers that the streams have in the program; those of standard ones replace them.
        artefact: The key of the artefact that it sees; ``""`` for none.
        takes: Names of files, with ``*``, that are handed back.
        forks, proc, tasks: As in :class:`~sandbox.languages.language.Walls`.
        deep_stack: Whether the stack of each thread may have 64 MiB.
        data_bytes: ``RLIMIT_DATA``; 0 for none.
        memory_bytes: Private and shared memory of all its processes together.
        timeout_s: Seconds from the moment that the first command has started, without those it waits for a processor.
        cpu_s: Whole seconds of processor time of each process.
        output_bytes: Of standard output and of standard error, each.
        file_bytes: Of its directory, and of each file.
        open_files: Descriptors of a process.
    """

    commands: tuple[tuple[str, ...], ...]
    environment: Mapping[str, str]
    executable: tuple[str, ...]
    readable: tuple[str, ...]
    files: Mapping[str, bytes]
    timeout_s: float
    cpu_s: int
    memory_bytes: int
    output_bytes: int
    file_bytes: int
    open_files: int
    data_bytes: int = 0
    tasks: int = 1
    deep_stack: bool = False
    forks: bool = False
    proc: bool = False
    stdin: bytes = b""
    streams: tuple[int, ...] = ()
    channel: tuple[int, ...] = ()
    artefact: str = ""
    takes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ending:
    """How an order ended: what the kernel says of it, and its output, which it wrote itself.

    Attributes:
        status: Wait status of the last command that ran.
        reason: Why its client ended it: ``timeout``, ``memory``, ``output``, ``files``, ``tasks`` or ``stopped``, or
            ``""``.
        duration_s: Seconds from the first command's start to the end.
        cpu_s: Seconds of processor time.
        peak_bytes: The most memory seen.
        stdout, stderr: At most one byte more than it may write.
        taken: The files handed back; ``None`` where they could not be.
    """

    status: int
    reason: str
    duration_s: float
    cpu_s: float
    peak_bytes: int
    stdout: bytes
    stderr: bytes
    taken: Mapping[str, bytes] | None = field(default_factory=dict)


class LauncherProcess(JailProcess):
    """A launcher for the stages of one language.

    Args:
        level: ``strict`` or ``standard``.
        readable: All paths that any stage reads or executes.
        artefacts: The folder of compiled programs.
        proc: Whether any stage needs a ``/proc``.
    """

    noun = "launcher"

    def __init__(self, level: Level, readable: Sequence[str], artefacts: str, *, proc: bool = False) -> None:
        self._level = level
        self._artefacts = artefacts
        settings = {"level": level, "readable": [*readable], "artefacts": artefacts, "proc": proc}
        super().__init__("launcher", FILES, settings, _ENVIRONMENT)
        if level is Level.STRICT:
            self.scratch = WORK
        else:
            self.scratch = os.path.join(self._folder, FOLDER)
        self._tree = ProcessTree(self.process, 2 if level is Level.STRICT else 1)

    def artefact_folder(self, key: str) -> str:
        """Return where a program sees its artefact."""
        return PROGRAM if self._level is Level.STRICT else os.path.join(self._artefacts, key)

    def run(self, order: LaunchOrder, stop: int | None = None) -> Ending:
        """Run an order; raise ``OSError`` or ``EOFError`` if the launcher died, could not start it, or was ended.

        When the descriptor ``stop`` becomes readable the program is ended, with the reason ``stopped``.
        """
        with self._in_use, _shared_files(order) as files:
            if not self.process:
                raise EOFError("the launcher was ended")
            try:
                return self._run(order, files, stop)
            except BaseException:
                self.close()
                raise

    def _run(self, order: LaunchOrder, files: dict[str, int], stop: int | None) -> Ending:
        message = json.dumps(self._message(order)).encode()
        if len(message) > MAX_ORDER:
            raise SandboxUnavailableError(f"an order of {len(message):,} bytes; at most {MAX_ORDER:,}")
        socket.send_fds(self._control, [message], [*files.values(), *order.streams])
        with self._directory() as directory:
            watch = _Watch(order, self._tree, (files["stdout"], files["stderr"]), directory)
            report = self._await_report(watch, stop)
        if "fault" in report:
            raise OSError(report["fault"])
        if report["last"]:  # it ends, because it could not take away all that the program left
            self.close()
        outputs = {name: os.pread(files[name], order.output_bytes + 1, 0) for name in ("stdout", "stderr")}
        return Ending(
            status=report["status"],
            reason=watch.reason,
            duration_s=watch.duration_s,
            cpu_s=report["user_s"] + report["system_s"],
            peak_bytes=max(watch.peak_bytes, report["peak_kib"] << 10),  # it may have grown since the last look
            taken=_read_taken(files["taken"]) if report.get("taken", True) else None,
            **outputs,
        )

    @contextmanager
    def _directory(self) -> Iterator[int | None]:
        """Return the programs' directory where nothing but looks at it bounds what it holds; else ``None``."""
        if self._level is Level.STRICT:
            yield None
            return
        directory = os.open(self.scratch, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            yield directory
        finally:
            os.close(directory)

    def _message(self, order: LaunchOrder) -> dict[str, Any]:
        plain = ("commands", "environment", "executable", "readable", "takes", "artefact", "proc", "forks", "tasks")
        limits = ("data_bytes", "cpu_s", "open_files", "deep_stack", "channel")
        message = {name: getattr(order, name) for name in (*plain, *limits)}
        return message | {
            "environment": dict(order.environment),
            "files": [(name, len(content)) for name, content in order.files.items()],
            "file_bytes": max(order.file_bytes, order.output_bytes) + 1,
            "scratch_bytes": order.file_bytes,
            "most_bytes": order.file_bytes,
            "most_s": (1 + _MOST_LAG) * order.timeout_s + _REPORT_S,
            "own_users": self._level is Level.STRICT,
        }

    def _await_report(self, watch: _Watch, stop: int | None) -> dict[str, Any]:
        """Return the launcher's report; meanwhile look at the program, and have it ended if it uses too much."""
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        if stop is not None:
            poll.register(stop, select.POLLIN)
        while True:
            ready = [descriptor for descriptor, _ in poll.poll(watch.patience_s * 1000)]
            if stop is not None and stop in ready:
                poll.unregister(stop)
                watch.stop()
                self._control.send(END)
            if self._control.fileno() in ready:
                data = self._hear(_REPORT_S)
                if data != STARTED:
                    watch.note_end()
                    report: dict[str, Any] = json.loads(data)
                    return report
                watch.note_start()
            elif watch.is_overdue():
                raise TimeoutError("the launcher did not report")
            elif watch.look():
                self._control.send(END)


class _Watch:
    """A look from time to time at what a program uses, and the reason for which it must end."""

    def __init__(
        self, order: LaunchOrder, tree: ProcessTree, outputs: tuple[int, int], directory: int | None = None
    ) -> None:
        self.reason = ""
        self.peak_bytes = 0
        self.patience_s = _FIRST_LOOK_S
        self.duration_s = 0.0
        self._order = order
        self._tree = tree
        self._outputs = outputs
        self._directory = directory
        self._files_at = 0.0
        self._last_bytes = 0
        self._started_at: float | None = None
        self._until = time.monotonic() + _BEGIN_S

    def note_start(self) -> None:
        """Begin the program's time, at its first command."""
        if self._started_at is None:
            self._started_at = time.monotonic()
            self._until = self._started_at + self._order.timeout_s

    def note_end(self) -> None:
        self.duration_s = time.monotonic() - (self._started_at or time.monotonic())

    def stop(self) -> None:
        """Note that the program is ended because nobody waits for it any more."""
        self.reason = self.reason or "stopped"
        self._until = time.monotonic() + _REPORT_S

    def is_overdue(self) -> bool:
        """Return whether the launcher itself should have said something by now."""
        return time.monotonic() > self._until and (self._started_at is None or bool(self.reason))

    def look(self) -> bool:
        """Look once; return whether the program must be ended now."""
        if self.reason or self._started_at is None:
            return False
        now, order = time.monotonic(), self._order
        usage = self._tree.usage()
        growth, self._last_bytes = usage.memory_bytes - self._last_bytes, usage.memory_bytes
        self.peak_bytes = max(self.peak_bytes, usage.memory_bytes)
        is_quick = growth > order.memory_bytes // 10
        self.patience_s = _FIRST_LOOK_S if is_quick else min(_LAST_LOOK_S, self.patience_s * 1.1)
        self.patience_s = min(self.patience_s, max(0.001, self._until - now))
        if usage.memory_bytes > order.memory_bytes:
            self.reason = "memory"
        elif usage.tasks > order.tasks:
            self.reason = "tasks"
        elif any(os.fstat(output).st_size > order.output_bytes for output in self._outputs):
            self.reason = "output"
        elif not self._is_directory_within(now):
            self.reason = "files"
        elif now >= self._until and not self._is_lengthened(now):
            self.reason = "timeout"
        if self.reason:
            self._until = now + _REPORT_S
        return bool(self.reason)

    def _is_directory_within(self, now: float) -> bool:
        """Return whether the directory holds no more than it may, as far as that is looked at now."""
        if self._directory is None or now < self._files_at + _FILES_S:
            return True
        self._files_at = now
        try:
            scratch.check_used(self._directory, self._order.file_bytes)
        except OSError:  # also for a folder that may not be looked into
            return False
        return True

    def _is_lengthened(self, now: float) -> bool:
        """Return whether there is time left because the program had to wait for a processor."""
        assert self._started_at is not None
        lag_s = min(self._tree.lag_s(), _MOST_LAG * self._order.timeout_s)
        self._until = self._started_at + self._order.timeout_s + lag_s
        return now < self._until


@contextmanager
def _shared_files(order: LaunchOrder) -> Iterator[dict[str, int]]:
    """Return the files of an order, in memory, by name; they are closed afterwards."""
    files = {name: anonymous_file(name) for name in ("content", "stdin", "stdout", "stderr", "taken")}
    try:
        for name, content in (("content", b"".join(order.files.values())), ("stdin", order.stdin)):
            view = memoryview(content)
            while view:
                view = view[os.write(files[name], view) :]
            os.lseek(files[name], 0, os.SEEK_SET)
        yield files
    finally:
        for descriptor in files.values():
            os.close(descriptor)


def _read_taken(descriptor: int) -> dict[str, bytes]:
    """Return the files that the launcher's child has copied."""
    files, at = {}, 0
    while at < os.fstat(descriptor).st_size:
        name_length, length = TAKEN.unpack(os.pread(descriptor, TAKEN.size, at))
        at += TAKEN.size
        name = os.fsdecode(os.pread(descriptor, name_length, at))
        at += name_length
        files[name] = _read(descriptor, at, length)
        at += length
    return files


def _read(descriptor: int, at: int, length: int) -> bytes:
    parts = []
    while length and (part := os.pread(descriptor, min(length, 1 << 24), at)):
        parts.append(part)
        at, length = at + len(part), length - len(part)
    return b"".join(parts)
