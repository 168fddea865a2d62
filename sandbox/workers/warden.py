"""The warden: one slim, single-threaded process that forks workers, reaps them and cleans up after them.

It never imports the caller's main module, and it is not forked from the caller: a fork of a process
with torch costs tens of milliseconds and copies its threads' locks. Forking from here makes a new
worker in a few milliseconds. It outlives none of its parents: when the caller is gone, however it
went, the warden kills every worker and goes too.

*Covered:* a worker's whole process group and every descendant that it leaves, also those that made a
session of their own (Linux: the warden is their subreaper); workers that have themselves traced; every
signal to the warden that can be ignored. *Not covered:* such daemons on macOS; a worker that kills or
stops the warden, which the parent notices: see ``pool``.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pickle
import select
import signal
import socket
import sys
from typing import Any

from sandbox.workers import shell, worker
from sandbox.workers.wire import Channel
from sandbox.workers.worker import Payload

_REAPED_AT_ONCE = 256
"""Ends and stops that are looked at before orders are: a worker may make any number of stops."""


def main(control: int, parent: int) -> None:
    """Runs the warden on the given control socket until the parent says close or is gone."""
    os.setsid()
    shell.ignore_signals()
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
        shell.adopt_orphans()

    def run(self) -> None:
        """Serve until the parent says close or is gone, then kill every worker."""
        poll = select.poll()
        poll.register(self._control.fileno(), select.POLLIN)
        poll.register(self._wake_read, select.POLLIN)
        parent = process_descriptor(self._parent)
        if parent is not None:
            poll.register(parent, select.POLLIN)
        more = False
        try:
            while os.getppid() == self._parent:
                ready = dict(poll.poll(0 if more else 1000))
                if parent in ready:
                    return
                if self._wake_read in ready:
                    with contextlib.suppress(BlockingIOError):
                        os.read(self._wake_read, 4096)
                more = self._reap()
                if self._control.fileno() in ready:
                    for frame in self._control.receive():
                        self._obey(*pickle.loads(frame))  # noqa: S301 - the parent is trusted
        except (EOFError, OSError, MemoryError):  # also where a worker left us too few descriptors or too little memory
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
            case "ping":
                self._control.send_json(["here"])
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
        self._control.send_json(["here"])

    def _spawn(self, slot: int, generation: int, lane: str, width: int) -> None:
        descriptors = self._take_descriptors()
        warden, process = os.getpid(), os.fork()
        if process == 0:
            code = worker.BROKEN
            try:
                self._become_worker(warden)
                code = worker.serve(lane, width, self._payloads[slot], *shell.raise_descriptors(descriptors))
            finally:
                os._exit(code)
        for descriptor in descriptors:
            os.close(descriptor)
        self._workers[process] = slot
        self._control.send_json(["started", slot, generation, process])

    def _take_descriptors(self) -> list[int]:
        """Gives a new worker's socket and files."""
        descriptors = self._control.take_descriptors(4)
        if len(descriptors) < 4:
            raise OSError("the kernel kept descriptors back: the warden may have no more of them")
        return descriptors

    def _become_worker(self, warden: int) -> None:
        """Turn the forked child into a worker's shell: own session, limits, plain signals, no parental descriptors."""
        shell.plain_signals()
        shell.lead_session(warden, shell.WORKER_OOM_SCORE)
        shell.adopt_orphans()
        self._control.close()
        os.close(self._wake_read)
        os.close(self._wake_write)
        shell.limit(self._memory_bytes)
        shell.silence()

    def _kill_slot(self, slot: int) -> None:
        for process, owner in self._workers.items():
            if owner == slot:
                shell.kill_group(process)

    def _reap(self) -> bool:
        """Report dead workers, and kill and reap whatever their deaths left to us; gives whether there may be more."""
        for _ in range(_REAPED_AT_ONCE):
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if process == 0:
                return False
            if os.WIFSTOPPED(status):
                shell.let_go(process, os.WSTOPSIG(status))
            else:
                self._note_end(process, os.waitstatus_to_exitcode(status))
        return True

    def _note_end(self, process: int, code: int) -> None:
        slot = self._workers.pop(process, None)
        if slot is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process, signal.SIGKILL)
            self._kill_strays()
            self._control.send_json(["ended", slot, process, code])

    def _kill_strays(self) -> None:
        """Kill every child of ours that is no worker: descendants of a dead one, handed to us as subreaper."""
        for process in shell.children():
            if process not in self._workers:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(process, signal.SIGKILL)

    def _kill_everything(self) -> None:
        workers, self._workers = dict(self._workers), {}
        for process in workers:
            shell.kill_group(process)
        for _ in range(200):  # a stray's own children come to us only when it is dead
            self._kill_strays()
            try:
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            except ChildProcessError:
                return
            select.select([], [], [], 0.01)


def _close_others(control: int) -> None:
    """Close what the parent left inheritable: a worker must not hold the trainer's files open."""
    with contextlib.suppress(OSError):
        for descriptor in [int(name) for name in os.listdir("/proc/self/fd")]:
            if descriptor > 2 and descriptor != control:
                with contextlib.suppress(OSError):
                    os.close(descriptor)


def process_descriptor(process: int) -> int | None:
    """Gives a descriptor that becomes readable when the process ends, where the kernel has such."""
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(process)
    except OSError:
        return None
