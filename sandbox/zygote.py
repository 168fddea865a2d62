"""The zygote: an interpreter inside the jail that forks one child for each evaluation.

It is started as ``python -I -S``, loads its profile's modules, enters the jail and then serves requests
from its client over one socket. It never reads what untrusted code wrote, nor the code itself: requests and
results pass between client and child in files of memory that all three hold open and that are emptied
between evaluations.
"""

from __future__ import annotations

import builtins
import contextlib
import ctypes
import gc
import json
import os
import resource
import select
import signal
import struct
import sys
import time
from _sitebuiltins import Quitter
from collections.abc import Callable, Sequence
from typing import Any

from sandbox import inside
from sandbox.jail import kernel, rlimits, seccomp
from sandbox.jail.levels import Level, enter
from sandbox.judge import perform as perform_judge

ORDER = struct.Struct("=BBdddqqqqB")
"""What to do: kind, whether a child was told already, when (monotonic), seconds; processor seconds, memory, file
size, open files; scratch bytes, processes."""
Bounds = Sequence[float]
"""The four of an order that are a child's resource limits."""
REPORT = struct.Struct("=iBdddqi?")
"""What came of it: wait status, place in :data:`REASONS`, seconds, user and system seconds, peak KiB; the judge's;
whether nothing is left to clean up. Otherwise :data:`CLEANED` follows, and no order may be given before."""
CLEANED = b"cleaned"
REASONS = ("", "timeout", "scratch", "no process")
_NO_PROCESS = (-1, REASONS.index("no process"), 0, 0, 0, 0, -1)
FILES = ("stdin", "stdout", "stderr", "request", "results", "peer", "tests", "verdict")
"""The files that client and children share, each under its place as descriptor: a child has the first five so."""
CONTROL = len(FILES)
"""Descriptor of the socket on which a client orders evaluations and gets reports."""
STARTS = (len(FILES) + 1, len(FILES) + 2)
"""Descriptors of the sockets on which it tells a waiting child at once to start, which spares a switch of processes.

Evaluations use them in turn, so that the next one's child, forked beside this one's, cannot take its start."""
PAIR = inside.SERVE
"""Kind of an order for two children: the completion, and its judge in a process of its own."""

_START = 6  # descriptor of a child: the socket on which it is told to start
_PAUSE_S = 0.0005  # after a report and before the next fork, in which the client gets the processor
_STREAM_S = 0.002  # orders that follow a report so soon are a stream
_SHORT_S = 0.002  # an evaluation that takes longer is worth preparing the next one beside it
_PEEK_S = 0.05  # seconds between two looks at the scratch directory
_MOST_FILES = 4096
_DEEPEST = 64  # directories in each other
_NO_ENTRIES = 48  # bytes of a listing that has only the directory itself and the one above
_MOVED = ".moved-"


class _ClientGone(Exception):
    """Nobody is there to serve any more."""


def main(settings: str) -> None:
    """Serve until the client is gone.

    Args:
        settings: JSON: ``parent`` (the client's process id), ``level``, ``preload`` (modules), ``path``
            (directories to import from besides the standard library), ``readable`` (directories),
            ``mount_point``, ``scratch_bytes``.
    """
    os.closerange(STARTS[-1] + 1, 1 << 16)  # what the client left inheritable is none of ours
    try:
        zygote = Zygote(json.loads(settings))
    except BaseException as fault:
        os.write(CONTROL, json.dumps({"error": f"{type(fault).__name__}: {fault}"}).encode())
        os._exit(1)
    try:
        zygote.serve()
    except (_ClientGone, ConnectionError):
        os._exit(0)


class Zygote:
    """Enters the jail when it is made."""

    def __init__(self, asked: dict[str, Any]) -> None:
        self._files = {name: number for number, name in enumerate(FILES)}
        self._client = os.pidfd_open(asked["parent"])
        if os.getppid() != asked["parent"]:
            raise _ClientGone
        standard = [path for path in sys.path if os.path.isdir(path)]
        sys.path.extend(asked["path"])
        for module in asked["preload"]:
            __import__(module)
        for name in ("exit", "quit"):  # what Python's start without site leaves out, and programs end by
            setattr(builtins, name, Quitter(name, "the end of the input"))
        sys.path[:] = standard  # a package knows its own folder; its neighbours there are not to be read
        with contextlib.suppress(OSError):  # it only saves time
            kernel.merge_mappings()
        self._level = Level(asked["level"])
        self._scratch = enter(
            self._level, [*standard, *asked["readable"]], asked["mount_point"], asked["scratch_bytes"]
        )
        self._first = os.getpid() == 1
        self._folder = os.open(self._scratch, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._names = ctypes.create_string_buffer(512)
        self._list = kernel.Prepared("getdents64", self._folder, ctypes.addressof(self._names), 512)
        self._null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
        self._spare: tuple[int, int] | None = None
        self._worn = False  # whether something of an evaluation stayed in memory here
        self._number = 0  # of the evaluation
        self._spare_limits: Bounds = ()
        self._die_with_us = kernel.Prepared("prctl", kernel.PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        self._filters = {
            may_fork: seccomp.Installer(seccomp.child_filter(may_fork=may_fork)) for may_fork in (False, True)
        }

    def serve(self) -> None:
        """Answer orders, one at a time."""
        for _ in range(3):
            inside.rehearse()
        gc.collect()
        kernel.give_back_memory()
        gc.freeze()
        gc.disable()  # a collection would touch, and so copy, pages that children share
        os.write(CONTROL, json.dumps({"ready": os.getpid()}).encode())
        sources = [CONTROL, self._client]
        reported = 0.0
        while True:
            unprepared = self._spare is None and len(self._spare_limits) > 0
            ready, _, _ = select.select(sources, [], [], _PAUSE_S if unprepared else None)
            if not ready:
                self._fork_spare(self._spare_limits)
                continue
            if self._client in ready:
                raise _ClientGone
            order = os.read(CONTROL, ORDER.size)
            if not order:
                raise _ClientGone
            report = self._evaluate(order, in_stream=time.monotonic() - reported < _STREAM_S)
            tidy = not self._worn and self._scratch_is_empty()
            os.write(CONTROL, REPORT.pack(*report, tidy))
            if not tidy:  # which may take long: it is not to the charge of what was evaluated
                self._clean_scratch()
                os.write(CONTROL, CLEANED)
            reported = time.monotonic()

    def _evaluate(self, order: bytes, *, in_stream: bool) -> tuple[float, ...]:
        """Run an evaluation to its end and give the report.

        Args:
            order: What to do.
            in_stream: Whether the next order is likely to come at once, so that the next child is forked beside
                this one. Otherwise that is left for later: the fork would be in a short evaluation's way.
        """
        kind, started, began, timeout_s, *limits, scratch_bytes, processes = ORDER.unpack(order)
        judge = 0
        start = STARTS[self._number % 2]
        self._number += 1
        try:
            if started:
                completion, channel = self._spare or self._fork(limits, start)
                self._spare = None
            else:
                self._end_spare()
                # a judge is of the same user, and counted with the completion's processes
                completion, channel = self._fork(
                    limits, start, processes + (kind == PAIR) if processes > 1 else 1, kind
                )
            if kind == PAIR:
                judge = self._fork_judge(channel, limits)
            os.close(channel)  # so that of the two each sees the other's end
        except OSError:
            return _NO_PROCESS
        if processes == 1 and in_stream:
            self._fork_spare(limits)
        reason = self._wait(completion, judge, began + timeout_s, scratch_bytes, prepare=processes == 1)
        judged = -1
        if judge:
            judged = _end(judge)[0]
            status, usage = _end(completion)
        else:
            if reason:
                self._kill(processes, completion)
            _, status, usage = os.wait4(completion, 0)
        if processes > 1:
            self._kill(processes, 0)
        if status and started and select.select([start], [], [], 0)[0]:  # it had ended before it was told
            return _NO_PROCESS
        took = time.monotonic() - began
        return status, REASONS.index(reason), took, usage.ru_utime, usage.ru_stime, usage.ru_maxrss, judged

    def _end_spare(self) -> None:
        """End the waiting child: it is limited otherwise than the next evaluation."""
        if self._spare is not None:
            child, channel = self._spare
            self._spare = None
            os.close(channel)
            _end(child)

    def _fork_spare(self, limits: Bounds) -> None:
        """Fork the next evaluation's child, limited as the last one is, so that this time is not the evaluation's."""
        try:
            self._spare = self._fork(limits, STARTS[self._number % 2])
        except OSError:  # there are too many processes or threads: it is tried again after the next evaluation
            self._spare_limits = ()

    def _fork(self, limits: Bounds, start: int, processes: int = 1, kind: int | None = None) -> tuple[int, int]:
        """Fork a child for one evaluation; gives it and the other end of its descriptor 5.

        Without a kind it is told on ``start`` what to do.
        """
        ours, theirs = kernel.socket_pair()
        self._spare_limits = limits
        try:
            child = os.fork()
        except OSError:
            os.close(ours)
            os.close(theirs)
            raise
        if child == 0:
            try:
                os.dup2(start, _START)
                self._become(theirs, limits, processes)
                inside.rehearse()
                told = os.read(_START, 1) if kind is None else bytes([kind])
                os.close(_START)
                if told:
                    if told[0] != PAIR:
                        os.close(inside.PEER)
                    inside.perform(told[0])
            finally:
                os._exit(82)
        os.close(theirs)
        return child, ours

    def _fork_judge(self, channel: int, limits: Bounds) -> int:
        child = os.fork()
        if child == 0:
            try:
                for number in (0, 1, 2):
                    os.dup2(self._null, number)
                os.dup2(self._files["tests"], inside.REQUEST)
                os.dup2(self._files["verdict"], inside.RESULTS)
                self._become(channel, limits, 1, inside.PEER)
                perform_judge()
            finally:
                os._exit(82)
        return child

    def _become(self, peer: int, limits: Bounds, processes: int, last: int = _START) -> None:
        """In the child: keep only the descriptors that are its own, and give up what the zygote may do."""
        self._die_with_us()
        os.dup2(peer, inside.PEER)
        os.closerange(last + 1, 1 << 16)
        cpu_s, memory_bytes, file_bytes, open_files = limits
        # the zygote is counted too, and where its user is still root, what process 1 came from
        tasks = processes + 1 + (os.getuid() == 0) if processes > 1 else 0
        rlimits.restrict(int(memory_bytes), int(-(-cpu_s // 1)), int(file_bytes), int(open_files), tasks)
        if self._level is not Level.NONE:
            self._filters[processes > 1].enter(prepared=True)

    def _wait(self, completion: int, judge: int, deadline: float, scratch_bytes: int, *, prepare: bool) -> str:
        """Wait for the end of the judge, or of the completion where it has none; gives why it was ended.

        Where that takes a while and ``prepare`` is set, the next child is forked meanwhile; for a short evaluation
        the fork would only be in its way. (An end that kills all in the jail would kill that child too.)
        """
        awaited = os.pidfd_open(judge or completion)
        try:
            poll = select.poll()
            poll.register(awaited, select.POLLIN)
            poll.register(self._client, select.POLLIN)
            poll.register(CONTROL, 0)  # its other end closed
            while True:
                left = deadline - time.monotonic()
                if left <= 0:
                    return "timeout"
                unprepared = prepare and self._spare is None and len(self._spare_limits) > 0
                patience_s = _SHORT_S if unprepared else _PEEK_S
                ready = [descriptor for descriptor, _ in poll.poll(min(left, patience_s) * 1000 + 1)]
                if awaited in ready:
                    return ""
                if ready:
                    self._kill(2, completion)
                    raise _ClientGone
                if unprepared:
                    self._fork_spare(self._spare_limits)
                elif not self._scratch_is_empty() and not self._is_within(scratch_bytes):
                    return "scratch"
        finally:
            os.close(awaited)

    def _kill(self, processes: int, child: int) -> None:
        """Kill a child; all processes of the jail where it may have started some."""
        if processes > 1 and self._first:
            try:
                os.kill(-1, signal.SIGKILL)
            except ProcessLookupError:
                return
            while processes and not child:
                try:
                    os.waitpid(-1, 0)
                except ChildProcessError:
                    return
        elif child:
            os.kill(child, signal.SIGKILL)

    def _is_within(self, scratch_bytes: int) -> bool:
        """Whether the scratch directory holds no more than it may."""
        try:
            return _in_a_child(lambda: _check_used(self._scratch, scratch_bytes))
        except OSError:  # code has started so many threads that there cannot be another process
            self._worn = True
        try:
            _check_used(self._scratch, scratch_bytes)
        except OSError:
            return False
        return True

    def _clean_scratch(self) -> None:
        """Empty the scratch directory; where that cannot be done, end: the next evaluation must not see it."""
        if self._worn or not _in_a_child(lambda: empty(self._scratch)):
            os._exit(3)

    def _scratch_is_empty(self) -> bool:
        """Whether the scratch directory is, without a name of its files staying in memory."""
        os.lseek(self._folder, 0, os.SEEK_SET)
        try:
            return self._list() <= _NO_ENTRIES and self._list() == 0
        except OSError:  # a name that has no room
            return False
        finally:
            ctypes.memset(self._names, 0, len(self._names))


def _in_a_child(act: Callable[[], object]) -> bool:
    """Do something with files in a child: whether that came to its end.

    What is read of their names here, all later evaluations would have in their memory.
    """
    child = os.fork()
    if child == 0:
        try:
            act()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def _end(process: int) -> tuple[int, resource.struct_rusage]:
    """Kill a child that may have ended, and give its wait status and what it used."""
    os.kill(process, signal.SIGKILL)
    _, status, usage = os.wait4(process, 0)
    return status, usage


def _check_used(folder: str, most_bytes: int) -> None:
    """Look at all files below a directory.

    Raises:
        OSError: They are more bytes than may be, very many, deeply nested, or cannot be looked at.
    """
    total, folders, seen = 0, [(folder, 0)], 0
    while folders:
        path, depth = folders.pop()
        try:
            entries = list(os.scandir(path))
        except FileNotFoundError:  # gone again
            continue
        seen += len(entries)
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append((entry.path, depth + 1))
                continue
            with contextlib.suppress(FileNotFoundError):
                total += entry.stat(follow_symlinks=False).st_size
        if total > most_bytes or seen > _MOST_FILES or depth > _DEEPEST:
            raise OSError("the scratch directory is full")


def empty(folder: str) -> None:
    """Remove all that a directory holds. Directories in it are emptied by moving theirs up, however deep they go."""
    number = 0
    while names := os.listdir(folder):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.islink(path) or not os.path.isdir(path):
                os.unlink(path)
                continue
            os.chmod(path, 0o700)
            for inner in os.scandir(path):
                if inner.is_dir(follow_symlinks=False):
                    with contextlib.suppress(OSError):
                        os.rmdir(inner.path)
                        continue
                    os.chmod(inner.path, 0o700)  # what cannot be written cannot be moved
                    while os.path.lexists(moved := os.path.join(folder, f"{_MOVED}{number}")):
                        number += 1
                    os.rename(inner.path, moved)
                else:
                    os.unlink(inner.path)
            os.rmdir(path)
