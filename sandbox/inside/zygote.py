"""The zygote: an interpreter inside the jail that forks one child for each evaluation.

It is started as ``python -I -S``, loads its profile's modules, enters the jail and then serves its client over one
socket. It reads neither untrusted code nor what that wrote: requests and results pass between client and child in files
of memory that all three hold open and that are emptied between evaluations.
"""

from __future__ import annotations

import builtins
import contextlib
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
from collections.abc import Sequence
from typing import Any

from sandbox.inside import runner, service
from sandbox.inside.asserts import perform as perform_asserts
from sandbox.inside.children import Children
from sandbox.inside.dialog import converse
from sandbox.inside.workfolder import WorkFolder
from sandbox.jail import bpf, kernel, memory, rlimits, seccomp
from sandbox.jail.levels import Level, enter

ORDER = struct.Struct("=BdddqqqqqB")
"""An evaluation: kind, when it was ordered (monotonic), seconds; processor seconds, memory, file size, open files;
scratch bytes, output bytes, processes."""
Bounds = Sequence[float]  # the four of an order that are a child's resource limits
REPORT = struct.Struct("=iBdddqi?")
"""How it ended: wait status, index in :data:`REASONS`, seconds, user and system seconds, peak KiB; the tester's wait
status; whether nothing is left to clean up. Otherwise :data:`CLEANED` follows, and no order may be given before."""
CLEANED = b"cleaned"
REASONS = ("", "timeout", "scratch", "output", "threads", "no process")
_NO_PROCESS = (-1, REASONS.index("no process"), 0, 0, 0, 0, -1)
FILES = ("stdin", "stdout", "stderr", "request", "results", "peer", "tests", "verdict")
"""The files that client and children share. Each has its index as descriptor, in a child the first five."""
_TESTS, _VERDICT = FILES.index("tests"), FILES.index("verdict")
CONTROL = len(FILES)  # descriptor of the socket on which a client orders evaluations and gets reports
PAIR = runner.SERVE  # kind of an order for two children: the completion, and its tester in a process of its own
MAX_THREADS = 128  # threads of an evaluation at once. With stacks of the usual size its memory holds fewer.

_PAUSE_S = 0.0005  # seconds between a report and the next fork, in which the client gets the processor
_STREAM_S = 0.002  # seconds after a report within which an order belongs to a stream
_SHORT_S = 0.002  # an evaluation that takes longer is worth preparing the next one beside it
_PEEK_S = 0.01  # seconds between two looks at an evaluation's threads
_NICE = 1  # how much niceness is added to a child, so that the zygote and others get the processor first
_TASKS = 8  # processes of the jail that are counted with an evaluation's threads: a tester, a checker, the next child


def output_room(output_bytes: int) -> dict[str, int]:
    """Return how large each output may become, in bytes; results have their form besides, which takes some."""
    return {"stdout": output_bytes, "stderr": output_bytes, "results": 2 * output_bytes + (1 << 20)}


class _ClientGone(Exception):
    """Nobody is there to serve any more."""


def main() -> None:
    """Serve until the client is gone.

    The file of requests holds settings as JSON, where code cannot read them as it can a command line: ``parent``
    (the client's process id), ``level``, ``preload`` (modules), ``path`` (directories to import from besides the
    standard library), ``readable`` (directories), ``mount_point``, ``scratch_bytes``.
    """
    settings = os.pread(FILES.index("request"), 1 << 16, 0)
    os.closerange(CONTROL + 1, 1 << 16)  # the client may have left others inheritable
    try:
        zygote = Zygote(json.loads(settings))
    except BaseException as fault:
        os.write(CONTROL, json.dumps({"error": f"{type(fault).__name__}: {fault}"}).encode())
        os._exit(1)
    code = 3
    try:
        zygote.serve()
    except (_ClientGone, ConnectionError):
        code = zygote.finish()
    finally:
        os._exit(code)


class Zygote:
    """Enters the jail when it is made, and then forks a child for each evaluation."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._client = os.pidfd_open(settings["parent"])
        if os.getppid() != settings["parent"]:
            raise _ClientGone
        sys.orig_argv.clear()
        standard = [path for path in sys.path if os.path.isdir(path)]
        sys.path.extend(settings["path"])
        for module in settings["preload"]:
            __import__(module)
        for name in ("exit", "quit"):  # what Python's start without site leaves out, and programs end by
            setattr(builtins, name, Quitter(name, "the end of the input"))
        sys.path[:] = standard  # a package knows its own folder; its neighbours there are not to be read
        with contextlib.suppress(OSError):  # it only saves time
            memory.merge_mappings()
        self._nice = min(19, os.getpriority(os.PRIO_PROCESS, 0) + _NICE)
        self._level = Level(settings["level"])
        if self._level is not Level.NONE:
            _hide_the_hosts_name()
        readable = [*standard, *settings["readable"]]
        above = enter(self._level, readable, settings["mount_point"], settings["scratch_bytes"])
        self._self = os.getpid()
        self._first = self._self == 1
        self._children = Children()
        self._folder = WorkFolder(above, self._children)
        self._running: list[int] = []  # an evaluation's processes that are not reaped yet
        self._null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
        self._spare: tuple[int, int] | None = None
        self._spare_limits: Bounds = ()
        self._limited: tuple[Bounds, int] = ((), 0)  # what the limits below were made for
        self._limit_values: rlimits.LimitValues = []
        self._filters = {may_fork: bpf.Installer(seccomp.child_filter(may_fork=may_fork)) for may_fork in (False, True)}

    def serve(self) -> None:
        """Answer orders, one at a time."""
        for _ in range(3):
            runner.rehearse()
        gc.collect()
        memory.fill_holes()
        memory.give_back()
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
                self._rehearse()
                continue
            if self._client in ready:
                raise _ClientGone
            order = os.read(CONTROL, ORDER.size)
            if not order:
                raise _ClientGone
            report = self._evaluate(order, in_stream=time.monotonic() - reported < _STREAM_S)
            tidy = not self._children.worn and (self._folder.is_untouched() or self._folder.is_as_made())
            os.write(CONTROL, REPORT.pack(*report, tidy))
            if not tidy:  # cleaning may take long, so it comes after the report: its time is not the evaluation's
                if not self._folder.clean():
                    os._exit(3)  # the next evaluation must not see what is left
                os.write(CONTROL, CLEANED)
            reported = time.monotonic()

    def _rehearse(self) -> None:
        """Do what an evaluation takes here, to no effect: after a fork each page of memory is copied at its first use.

        Nobody waits now; during an evaluation its client would.
        """
        kind, began, timeout_s, *limits, scratch_bytes, output_bytes, _ = ORDER.unpack(bytes(ORDER.size))
        if self._spare is None or limits == self._spare_limits:
            return
        child, channel = self._spare
        reason = self._wait(child, 0, began + timeout_s, (scratch_bytes, output_bytes), prepare=False)
        self._folder.end_check()
        usage = resource.struct_rusage([0] * 16)
        times = (time.monotonic() - began, usage.ru_utime, usage.ru_stime)
        unread = _is_unread(channel)
        REPORT.pack(kind, REASONS.index(reason), *times, usage.ru_maxrss, -1, unread and self._folder.is_untouched())

    def _evaluate(self, order: bytes, *, in_stream: bool) -> tuple[float, ...]:
        """Run an evaluation and return its report; only in a stream of orders fork the next child beside it."""
        kind, began, timeout_s, *limits, scratch_bytes, output_bytes, processes = ORDER.unpack(order)
        tester = 0
        self._running = []
        try:
            completion, channel = self._begin(kind, limits, processes)
            self._running.append(completion)
            if kind == PAIR:
                try:
                    tester = self._fork_tester(channel, limits)
                    self._running.append(tester)
                finally:
                    os.close(channel)  # so that of the two each sees the other's end
        except OSError:
            for process in self._running:
                os.kill(process, signal.SIGKILL)
                self._children.reap(process)
            return _NO_PROCESS
        if processes == 1 and in_stream:
            self._fork_spare(limits)
        room = (scratch_bytes, output_bytes)
        reason = self._wait(completion, tester, began + timeout_s, room, prepare=processes == 1)
        duration_s = time.monotonic() - began
        status, usage, tester_status = self._end(completion, tester, processes, reason)
        if kind == PAIR:
            unread = tester_status == runner.UNTOLD << 8
        else:
            unread = _is_unread(channel)
            os.close(channel)
        if unread and not reason:  # the child was killed before it read the order
            return _NO_PROCESS
        return status, REASONS.index(reason), duration_s, usage.ru_utime, usage.ru_stime, usage.ru_maxrss, tester_status

    def _begin(self, kind: int, limits: Bounds, processes: int) -> tuple[int, int]:
        """Order the waiting child, or a new one if that died or has other limits; return the child and its socket."""
        if self._spare is not None and processes == 1 and limits == self._spare_limits:
            with contextlib.suppress(BrokenPipeError):
                os.write(self._spare[1], bytes([kind]))
                spare, self._spare = self._spare, None
                return spare
        self._end_spare()
        # a tester is of the same user, and counted with the completion's processes
        child, channel = self._fork(limits, processes + (kind == PAIR) if processes > 1 else 1)
        os.write(channel, bytes([kind]))
        return child, channel

    def _end(
        self, completion: int, tester: int, processes: int, reason: str
    ) -> tuple[int, resource.struct_rusage, int]:
        """End an evaluation; return the completion's wait status, what it used, and its tester's status."""
        if reason or tester:
            self._kill(processes, completion)
        if tester:
            with contextlib.suppress(ProcessLookupError):
                os.kill(tester, signal.SIGKILL)
        status, usage = self._children.reap(completion)
        tester_status = self._children.reap(tester)[0] if tester else -1
        self._folder.end_check()
        if processes > 1:
            self._kill(processes, 0)
            self._children.reap_all()
        self._running = []
        return status, usage, tester_status

    def _end_spare(self) -> None:
        """End the waiting child: it is limited otherwise than the next evaluation."""
        if self._spare is not None:
            (child, channel), self._spare = self._spare, None
            self._children.end(child, channel)

    def _fork_spare(self, limits: Bounds) -> None:
        """Fork the next evaluation's child, limited as the last one is, so that this time is not the evaluation's."""
        try:
            self._spare = self._fork(limits)
        except OSError:  # there are too many processes or threads: it is tried again after the next evaluation
            self._spare_limits = ()

    def _fork(self, limits: Bounds, processes: int = 1) -> tuple[int, int]:
        """Fork a child that waits for its order; return it and its socket, the other end of its descriptor 5."""
        ours, theirs = kernel.socket_pair()
        self._spare_limits = limits
        self._prepare_limits(limits, processes)
        try:
            child = os.fork()
        except OSError:
            os.close(ours)
            os.close(theirs)
            raise
        if child == 0:
            try:
                self._become(theirs, processes)
                runner.rehearse()
                order = os.read(runner.PEER, 1)
                os.chdir(self._folder.path)  # made anew, perhaps, since this child was forked
                if order:
                    if order[0] != PAIR:
                        os.close(runner.PEER)
                    runner.perform(order[0], _serve)
            finally:
                os._exit(82)
        os.close(theirs)
        return child, ours

    def _fork_tester(self, channel: int, limits: Bounds) -> int:
        self._prepare_limits(limits, 1)
        child = os.fork()
        if child == 0:
            try:
                for number in (0, 1, 2):
                    os.dup2(self._null, number)
                os.dup2(_TESTS, runner.REQUEST)
                os.dup2(_VERDICT, runner.RESULTS)
                self._become(channel, 1, tester=True)
                os.chdir(self._folder.path)
                perform_asserts()
            finally:
                os._exit(82)
        return child

    def _become(self, peer: int, processes: int, *, tester: bool = False) -> None:
        """Turn this forked process into a child: close other descriptors, set its limits and enter its filter.

        What it needs was made before the fork: each thing that is touched here is a page of memory that is copied.
        """
        if not self._first:  # else it ends with its namespace
            self._children.die_with_us()
            if os.getppid() != self._self:  # the zygote ended before the call above
                os._exit(83)
        os.dup2(peer, runner.PEER)
        os.closerange(runner.PEER + 1, 1 << 16)
        if not tester:  # which may come before what it tests
            os.setpriority(os.PRIO_PROCESS, 0, self._nice)
        rlimits.restrict(self._limit_values)
        if self._level is not Level.NONE:
            self._filters[processes > 1].enter(prepared=True)

    def _prepare_limits(self, limits: Bounds, processes: int) -> None:
        """Make ready what limits the next child."""
        if (limits, processes) == self._limited:
            return
        cpu_s, memory_bytes, file_bytes, open_files = limits
        # the zygote is counted too, and where its user is still root, what process 1 came from
        tasks = processes + 1 + (os.getuid() == 0) if processes > 1 else MAX_THREADS + _TASKS if self._first else 0
        bounds = (int(memory_bytes), int(-(-cpu_s // 1)), int(file_bytes), int(open_files), tasks)
        self._limit_values, self._limited = rlimits.values(*bounds), (limits, processes)

    def _wait(self, completion: int, tester: int, deadline: float, room: tuple[int, int], *, prepare: bool) -> str:
        """Wait for the tester's or completion's end; return why to end it. ``prepare`` forks the next child.

        ``room`` has the bytes that the scratch directory may hold, and each output.
        """
        pidfd = os.pidfd_open(tester or completion)
        try:
            poll = select.poll()
            poll.register(pidfd, select.POLLIN)
            poll.register(self._client, select.POLLIN)
            poll.register(CONTROL, 0)  # its other end closed
            while True:
                left = deadline - time.monotonic()
                if left <= 0:
                    return "timeout"
                unprepared = prepare and self._spare is None and len(self._spare_limits) > 0
                patience_s = _SHORT_S if unprepared else _PEEK_S
                ready = [descriptor for descriptor, _ in poll.poll(min(left, patience_s) * 1000 + 1)]
                if pidfd in ready:
                    return ""
                if ready:
                    raise _ClientGone
                if unprepared:
                    self._fork_spare(self._spare_limits)
                elif self._threads(completion) > MAX_THREADS:
                    return "threads"
                elif not self._folder.is_within(room[0]):
                    return "scratch"
                elif any(os.fstat(FILES.index(name)).st_size > most for name, most in output_room(room[1]).items()):
                    return "output"
        finally:
            os.close(pidfd)

    @staticmethod
    def _threads(process: int) -> int:
        """Return how many threads a process has, where that can be seen: in a jail of namespaces the kernel counts."""
        try:
            return os.stat(f"/proc/{process}/task").st_nlink - 2
        except OSError:  # where others' processes are hidden, too
            return 0

    def _kill(self, processes: int, child: int) -> None:
        """Kill a child; all processes of the jail where it may have started some."""
        with contextlib.suppress(ProcessLookupError):
            if processes > 1 and self._first:
                os.kill(-1, signal.SIGKILL)
            elif child:
                os.kill(child, signal.SIGKILL)

    def finish(self) -> int:
        """End all that is under way and empty the scratch directory; return 0 if nothing at all is left."""
        self._kill(2, 0)  # all, where this is process 1
        for process in self._running:
            self._kill(1, process)
        for process in self._running:
            with contextlib.suppress(ChildProcessError):
                self._children.reap(process)
        with contextlib.suppress(ChildProcessError, ProcessLookupError):
            self._folder.end_check()
            self._end_spare()
        if not self._folder.empty():
            return 3
        self._folder.remove()
        return 0


def _serve(request: dict[str, Any]) -> int:
    """Answer a tester, or converse with an interactor."""
    return converse(request) if "dialog" in request else service.serve(request)


def _hide_the_hosts_name() -> None:
    """Make ``os.uname`` return the system's kind and version without its name, as the jail refuses the call."""
    host = os.uname()
    jail = os.uname_result((host.sysname, "jail", host.release, host.version, host.machine))
    platform = sys.modules.get("platform")
    if platform is not None:
        vars(platform)["_uname_cache"] = None  # it asks again
    sys.modules["posix"].uname = os.uname = lambda: jail  # type: ignore[attr-defined]


def _is_unread(channel: int) -> bool:
    """Return whether the other end of a socket was closed before it read what was written here."""
    poll = select.poll()
    poll.register(channel, 0)
    return any(events & select.POLLERR for _, events in poll.poll(0))
