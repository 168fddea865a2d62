"""The warden: one slim, single-threaded process that forks workers, reaps them and cleans up after them.

It never imports the caller's main module, and it is not forked from the caller: a fork of a process
with torch costs tens of milliseconds and copies its threads' locks. Forking from here makes a new
worker in a few milliseconds. It outlives none of its parents: when the caller is gone, however it
went, the warden kills every worker and goes too.

*Covered:* a worker's whole process group and every descendant that it leaves, also those that made a
session of their own (Linux: the warden is their subreaper). *Not covered:* such daemons on macOS.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import importlib
import os
import pickle
import resource
import select
import signal
import socket
import sys
from pathlib import Path
from typing import Any

from sandbox.workers import worker
from sandbox.workers.wire import Channel
from sandbox.workers.worker import Payload

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_WORKER_OOM_SCORE = "500"  # where memory runs out, the kernel takes a worker before the trainer


def main(control: int, parent: int) -> None:
    """Runs the warden on the given control socket until the parent says close or is gone."""
    os.setsid()
    _close_others(control)
    Warden(Channel(socket.socket(fileno=control)), parent).run()


class Warden:
    """Forks workers on request and reports each one's start and end."""

    def __init__(self, control: Channel, parent: int) -> None:
        self._control = control
        self._parent = parent
        self._workers: dict[int, int] = {}  # process id -> slot
        self._payloads: dict[int, Payload] = {}  # slot -> what its workers are to run
        self._memory_bytes: int | None = None
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)
        os.set_blocking(self._wake_read, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)

    def run(self) -> None:
        """Serve until the parent says close or is gone, then kill every worker."""
        poll = select.poll()
        poll.register(self._control.fileno(), select.POLLIN)
        poll.register(self._wake_read, select.POLLIN)
        parent = process_descriptor(self._parent)
        if parent is not None:
            poll.register(parent, select.POLLIN)
        try:
            while os.getppid() == self._parent:
                ready = dict(poll.poll(1000))
                if parent in ready:
                    return
                if self._wake_read in ready:
                    with contextlib.suppress(BlockingIOError):
                        os.read(self._wake_read, 4096)
                self._reap()
                if self._control.fileno() in ready:
                    for frame in self._control.receive():
                        self._obey(*pickle.loads(frame))  # noqa: S301 - the parent is trusted
        except (EOFError, OSError):
            return
        finally:
            self._kill_everything()

    def _obey(self, order: str, *arguments: Any) -> None:
        match order:
            case "setup":
                self._set_up(*arguments)
            case "spawn":
                self._spawn(*arguments)
            case "kill":
                self._kill_slot(*arguments)
            case "close":
                raise EOFError

    def _set_up(
        self, path: list[str], preload: list[str], memory_bytes: int | None, payloads: dict[int, Payload]
    ) -> None:
        sys.path[:] = path
        self._memory_bytes = memory_bytes
        self._payloads = payloads
        for module in preload:
            with contextlib.suppress(ImportError):  # a worker that needs it says so itself
                importlib.import_module(module)

    def _spawn(self, slot: int, generation: int, lane: str, width: int) -> None:
        descriptors = self._control.take_descriptors(4)
        process = os.fork()
        if process == 0:
            code = worker.BROKEN
            try:
                _become_worker(self._control, self._wake_read, self._wake_write, self._memory_bytes)
                code = _serve(lane, width, self._payloads[slot], descriptors)
            finally:
                os._exit(code)
        for descriptor in descriptors:
            os.close(descriptor)
        self._workers[process] = slot
        self._control.send_json(["started", slot, generation, process])

    def _kill_slot(self, slot: int) -> None:
        for process, owner in self._workers.items():
            if owner == slot:
                _kill_group(process)

    def _reap(self) -> None:
        """Report dead workers, and kill and reap whatever their deaths left to us."""
        while True:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if process == 0:
                return
            slot = self._workers.pop(process, None)
            if slot is not None:
                _kill_group(process)
                self._kill_strays()
                self._control.send_json(["ended", slot, process, os.waitstatus_to_exitcode(status)])

    def _kill_strays(self) -> None:
        """Kill every child of ours that is no worker: descendants of a dead one, handed to us as subreaper."""
        for process in _children():
            if process not in self._workers:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(process, signal.SIGKILL)

    def _kill_everything(self) -> None:
        workers, self._workers = dict(self._workers), {}
        for process in workers:
            _kill_group(process)
        for _ in range(200):  # a stray's own children come to us only when it is dead
            self._kill_strays()
            try:
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            except ChildProcessError:
                return
            select.select([], [], [], 0.01)


def _become_worker(control: Channel, wake_read: int, wake_write: int, memory_bytes: int | None) -> None:
    """Turn the forked child into a worker's shell: own session, limits, plain signals, no parental descriptors."""
    warden = os.getppid()
    os.setsid()
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    if os.getppid() != warden:
        os._exit(0)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    control.close()
    os.close(wake_read)
    os.close(wake_write)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_WORKER_OOM_SCORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory_bytes is not None:
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        limit = memory_bytes if hard == resource.RLIM_INFINITY else min(memory_bytes, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


def _serve(lane: str, width: int, payload: Payload, descriptors: list[int]) -> int:
    raised = [fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, worker.OUR_DESCRIPTORS_FROM) for one in descriptors]
    for one in descriptors:
        os.close(one)
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    os.close(null)
    return worker.serve(lane, width, payload, *raised)


def _close_others(control: int) -> None:
    """Close what the parent left inheritable: a worker must not hold the trainer's files open."""
    with contextlib.suppress(OSError):
        for descriptor in [int(name) for name in os.listdir("/proc/self/fd")]:
            if descriptor > 2 and descriptor != control:
                with contextlib.suppress(OSError):
                    os.close(descriptor)


def _kill_group(process: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(process, signal.SIGKILL)  # before its setsid the group does not exist yet


def _children() -> list[int]:
    """Gives our children, as the kernel lists them; elsewhere than on Linux none are known."""
    try:
        return [int(one) for one in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]
    except OSError:
        return []


def process_descriptor(process: int) -> int | None:
    """Gives a descriptor that becomes readable when the process ends, where the kernel has such."""
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(process)
    except OSError:
        return None


def _prctl(option: int, value: int) -> None:
    """Call prctl(2), where there is one."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)
