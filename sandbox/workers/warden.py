"""The warden: one slim, single-threaded process that forks workers, reaps them and cleans up after them.

It never imports the caller's main module, and it is not forked from the caller: a fork of a process with torch costs
tens of milliseconds, not a few, and copies its threads' locks. When the caller is gone, however it went, the warden
kills every worker and goes too.

*Covered:* a worker's whole process group and every descendant that it leaves, also those that made a session of their
own (Linux: the warden is their subreaper); workers that have themselves traced; every signal to the warden that can be
ignored. *Not covered:* such daemons on macOS; a worker that kills or stops the warden, which the parent notices.
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
import time
from collections import Counter
from typing import Any

from sandbox.workers import shell, worker
from sandbox.workers.desk import BROKEN
from sandbox.workers.nursery import ForkRequest, Nursery
from sandbox.workers.nursery import run as run_nursery
from sandbox.workers.wire import Channel, MalformedError, channel_pair, raise_descriptor
from sandbox.workers.worker import Payload

MAX_NURSERIES = 3  # nurseries for the same rewards that may be lost; one that cannot be is not tried again
_REAPED_AT_ONCE = 256  # ends and stops that are looked at before orders are: a worker may make any number of stops


def main(control: int, parent: int) -> None:
    """Run the warden on the given control socket until the parent says close or is gone."""
    os.setsid()
    shell.ignore_signals()
    shell.allow_open_files()
    _close_others(control)
    Warden(Channel(socket.socket(fileno=control)), parent).run()


class Warden:
    """Forks workers on request and reports each one's start and end."""

    def __init__(self, control: Channel, parent: int) -> None:
        self._control = control
        self._parent = parent
        self._workers: dict[int, int] = {}  # process id -> slot
        self._payloads: dict[int, Payload] = {}  # slot -> what its workers are to run
        self._nurseries: dict[tuple[int, ...], Nursery] = {}  # what they have loaded -> those that live
        self._nurseries_lost: Counter[tuple[int, ...]] = Counter()
        self._memory_bytes: int | None = None
        self._load_timeout_s = 0.0
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)
        os.set_blocking(self._wake_read, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        self._poll = select.poll()
        self._adopts = shell.adopt_orphans()  # whether orphans come to us, among them the workers of nurseries

    def run(self) -> None:
        """Serve until the parent says close or is gone, then kill every worker."""
        poll = self._poll
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
                self._hear_nurseries()
                more = self._reap()
                if self._control.fileno() in ready:
                    for frame in self._control.receive():
                        self._obey(*pickle.loads(frame))  # noqa: S301 - the parent is trusted
        except (EOFError, OSError, MemoryError):  # also where a worker left us too few descriptors or too little memory
            return
        finally:
            self._kill_everything()

    def _obey(self, order: str, *arguments: Any) -> None:
        """Do what the parent's order says; the last one, to close, raises EOFError."""
        match order:
            case "setup":
                self._set_up(*arguments)
            case "spawn":
                self._spawn(*arguments)
            case "kill":
                for process, slot in self._workers.items():
                    if slot == arguments[0]:
                        shell.kill_group(process)
            case "ping":
                self._control.send_json(["here"])
            case "close":
                raise EOFError

    def _set_up(
        self,
        path: list[str],
        preload: list[str],
        memory_bytes: int | None,
        load_timeout_s: float,
        payloads: dict[int, Payload],
    ) -> None:
        sys.path[:] = path
        self._memory_bytes, self._load_timeout_s = memory_bytes, load_timeout_s
        self._payloads = payloads
        for module in preload:
            with contextlib.suppress(ImportError):  # a worker that needs it says so itself
                importlib.import_module(module)
        self._control.send_json(["here"])

    def _spawn(self, slot: int, generation: int, lane: str, width: int, loads_slowly: bool) -> None:
        """Start a worker: by a nursery where loading takes long and there may be one, else by a fork from here."""
        descriptors = self._control.take_descriptors(4)
        if len(descriptors) < 4:
            raise OSError("the kernel kept descriptors back: the warden may have no more of them")
        request = ForkRequest(slot, generation, lane, width, descriptors)
        nursery = self._nursery(request) if loads_slowly else None
        if nursery is None:
            self._fork_worker(request)
            return
        if not nursery.fit:
            self._control.send_json(["waits", slot, generation])
        try:
            nursery.ask(request)
        except OSError:
            self._lose_nursery(nursery)

    def _fork_worker(self, request: ForkRequest) -> None:
        """Fork a worker from here, which loads its targets itself."""
        warden, process = os.getpid(), os.fork()
        if process == 0:
            code = BROKEN
            try:
                self._leave_warden(warden, shell.WORKER_OOM_SCORE)
                descriptors = list(map(raise_descriptor, request.descriptors))
                code = worker.serve(request.lane, request.width, self._payloads[request.slot], *descriptors)
            finally:
                os._exit(code)
        self._note_start(request, process, from_nursery=False)

    def _note_start(self, request: ForkRequest, process: int, *, from_nursery: bool) -> None:
        request.close()
        self._workers[process] = request.slot
        self._control.send_json(["started", request.slot, request.generation, process, from_nursery])

    def _nursery(self, request: ForkRequest) -> Nursery | None:
        """Return the nursery for a slot's workers, made now if need be; ``None`` where they start without one."""
        payload = self._payloads[request.slot]
        key = tuple(payload.targets)
        if key in self._nurseries:
            return self._nurseries[key]
        if not self._adopts or self._nurseries_lost[key] >= MAX_NURSERIES:
            return None
        ours, theirs = channel_pair()
        warden, process = os.getpid(), os.fork()
        if process == 0:
            try:
                ours.close()
                request.close()
                self._leave_warden(warden, shell.NURSERY_OOM_SCORE)
                descriptor = raise_descriptor(theirs.detach())
                run_nursery(payload, Channel(socket.socket(fileno=descriptor)), warden)
            finally:
                os._exit(0)
        theirs.close()
        nursery = self._nurseries[key] = Nursery(process, ours, self._load_timeout_s)
        self._poll.register(ours.fileno(), select.POLLIN)
        return nursery

    def _hear_nurseries(self) -> None:
        """Note what nurseries have forked, and do without those that are gone, unfit or late."""
        now = time.monotonic()
        for nursery in list(self._nurseries.values()):
            try:
                for request, process in nursery.hear():
                    self._note_start(request, process, from_nursery=True)
            except (EOFError, OSError, MalformedError):
                self._lose_nursery(nursery)
                continue
            if nursery.late(now):
                self._lose_nursery(nursery, for_good=True)
            elif nursery.idle(now):
                self._lose_nursery(nursery)
                self._nurseries_lost.clear()  # it was no loss, and one that serves so long shows that nurseries work

    def _lose_nursery(self, nursery: Nursery, *, for_good: bool = False) -> None:
        """End a nursery, and fork from here what it was to fork."""
        key = next((key for key, other in self._nurseries.items() if other is nursery), None)
        if key is None:
            return
        del self._nurseries[key]
        self._nurseries_lost[key] += 1 if nursery.fit and not for_good else MAX_NURSERIES
        shell.kill_group(nursery.process)  # and with it a child that it forks and has not reported yet
        with contextlib.suppress(EOFError, OSError, MalformedError):
            for request, process in nursery.hear():
                self._note_start(request, process, from_nursery=True)
        self._poll.unregister(nursery.channel.fileno())
        nursery.channel.close()
        for request in nursery.waiting.values():
            self._fork_worker(request)

    def _leave_warden(self, warden: int, oom_score: int) -> None:
        """Turn the forked child into a worker's shell: own session, limits, plain signals, no parental descriptors."""
        shell.plain_signals()
        shell.lead_session(warden, oom_score)
        shell.adopt_orphans()
        self._control.close()
        for nursery in self._nurseries.values():
            nursery.channel.close()
            for request in nursery.waiting.values():
                request.close()
        os.close(self._wake_read)
        os.close(self._wake_write)
        shell.limit(self._memory_bytes)
        shell.silence()

    def _reap(self) -> bool:
        """Report dead workers, kill and reap what they left behind; return whether there may be more."""
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
        """Report a worker's end, after killing what it left; do without a nursery that has ended."""
        if process not in self._workers:
            self._hear_nurseries()  # it may have been forked just now
        slot = self._workers.pop(process, None)
        for nursery in list(self._nurseries.values()):
            if nursery.process == process:
                self._lose_nursery(nursery)
        if slot is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process, signal.SIGKILL)
            self._kill_strays()
            self._control.send_json(["ended", slot, process, code])

    def _kill_strays(self) -> None:
        """Kill every child of ours that is no worker and no nursery: a dead one's descendants, handed to us."""
        children = shell.children()
        self._hear_nurseries()  # a worker that a nursery has just forked is among the children, too
        ours = {*self._workers, *(nursery.process for nursery in self._nurseries.values())}
        for process in children:
            if process not in ours:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(process, signal.SIGKILL)

    def _kill_everything(self) -> None:
        """Kill and reap workers, nurseries and strays, for about two seconds at most."""
        workers, self._workers, self._nurseries = dict(self._workers), {}, {}
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
    """Return a descriptor that becomes readable when the process ends, where the kernel has such."""
    with contextlib.suppress(OSError, AttributeError):
        return os.pidfd_open(process)
    return None
