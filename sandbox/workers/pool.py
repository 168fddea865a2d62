"""The pool: it takes calls from other threads, and owns the one thread that does all the work.

That thread owns every slot and job, so nothing here is locked; other threads hand it commands. A call that goes well
costs no message of its own: calls go out in chunks, the worker notes what it runs on a shared page and its results in a
shared file, and gives a chunk's rest back after 20 ms. Messages and deadlines are left to ``supervisor``,
``replacement``, ``ledger``, ``dispatch`` and ``link``, each of which knows only those after it.
"""

from __future__ import annotations

import atexit
import contextlib
import math
import os
import selectors
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sandbox.errors import PoolClosedError, SandboxError
from sandbox.limits import DEFAULT_MEMORY_BYTES, LOAD_TIMEOUT_S
from sandbox.workers.dispatch import Dispatch
from sandbox.workers.job import Call, Job
from sandbox.workers.ledger import Ledger
from sandbox.workers.link import WardenLink
from sandbox.workers.replacement import Replacement
from sandbox.workers.slot import AWAY_S, Lane, Slot
from sandbox.workers.steady import INSIDE
from sandbox.workers.supervisor import Supervisor
from sandbox.workers.worker import Payload

MANY_WORKERS = 16  # from which on they share the memory of what they load: a library of 200 MB is then loaded twice
LOADED_POLL_S = 0.02  # seconds between two looks of a thread that waits for the workers to load


@dataclass(frozen=True, slots=True)
class Target:
    """A function that calls run."""

    name: str  # for messages
    payload: bytes  # pickled callable ``(common, segments, places) -> JSON text``; ``async`` for the event loop
    lane: Lane = Lane.SERIAL  # how its calls run
    width: int = 1  # calls in flight at once; 1 in the serial lane
    setup: bytes = b""
    """A pickled object that a worker unpickles before its targets; serial targets of different ones share no worker."""


class WorkerPool:
    """Runs calls of targets in isolated worker processes.

    Serial targets of one setup share ``workers`` processes; each other target has a process of its own.

    Args:
        targets: What can be called.
        workers: Processes for the serial targets, at least 1.
        path: ``sys.path`` of the workers; the caller's if ``None``.
        env: Environment variables added for the workers.
        preload: Modules imported once, before workers are forked.
        memory_bytes: Memory of one worker; ``None`` for no limit.
        load_timeout_s: Seconds that loading the targets may take.

    Raises:
        SandboxError: It is made inside a worker of another pool.
        WorkerStartError: From jobs, where workers cannot be started or cannot load a target.
    """

    def __init__(
        self,
        targets: Sequence[Target],
        *,
        workers: int = 2,
        path: Sequence[str] | None = None,
        env: Mapping[str, str] | None = None,
        preload: Sequence[str] = (),
        memory_bytes: int | None = DEFAULT_MEMORY_BYTES,
        load_timeout_s: float = LOAD_TIMEOUT_S,
    ) -> None:
        if os.environ.get(INSIDE):
            raise SandboxError(
                "a worker cannot start workers of its own; where a file of rewards scores something at its top "
                "level, put that under: if __name__ == '__main__':"
            )
        self._slots = _slots(targets, workers)
        self._owner = os.getpid()
        self._commands: deque[Callable[[], None]] = deque()
        self._wake_read, self._wake_write = socket.socketpair()
        self._wake_write.setblocking(False)
        self._wake_read.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._wake_read, selectors.EVENT_READ, None)
        self._warden = WardenLink(
            self._selector,
            {slot.index: _payload(targets, slot) for slot in self._slots},
            path=sys.path if path is None else path,
            env=env or {},
            preload=preload,
            memory_bytes=memory_bytes,
            load_timeout_s=load_timeout_s,
        )
        self._closing = threading.Event()
        self._dispatch = Dispatch(self._slots, self._warden.retire)
        self._ledger = Ledger(self._slots, self._dispatch, self._warden.distrust)
        self._replacement = Replacement(self._slots, self._warden, self._ledger, load_timeout_s, self._closing)
        self._supervisor = Supervisor(self._warden, self._dispatch, self._ledger, self._replacement, memory_bytes)
        self._thread = threading.Thread(target=self._run, name="rewardkit-pool", daemon=True)
        self._started = False
        # Protects _started and _closing against two callers at once, and so that no job comes when no thread serves it.
        self._start_lock = threading.Lock()
        atexit.register(self.close)

    def start(self) -> None:
        """Start the workers, without waiting for them."""
        self._check_usable()
        with self._start_lock:
            if not self._started:
                self._started = True
                self._thread.start()

    def wait_loaded(self, timeout_s: float) -> bool:
        """Start the workers and wait until each has loaded its targets; ``False`` where one has not in that time.

        Raises:
            PoolClosedError: The pool was closed.
            WorkerStartError: A worker cannot be started or cannot load a target.
        """
        self.start()
        end = time.monotonic() + timeout_s
        while not all(slot.loaded for slot in self._slots):
            if self._ledger.broken is not None:
                raise self._ledger.broken
            if time.monotonic() > end:
                return False
            time.sleep(LOADED_POLL_S)
        return True

    def submit(self, job: Job, calls: Sequence[Call], *, complete: bool = True) -> None:
        """Run calls of a job, whose segments are in its file; ``complete`` says that no more calls will come."""
        self.start()
        with self._start_lock:
            self._check_usable()
            self._command(lambda: self._ledger.admit(job, calls, complete))

    def cancel(self, job: Job, error: BaseException) -> None:
        """End a job; calls that run already run on, and their results are dropped."""
        self._command(lambda: self._ledger.end_job(job, error))

    def close(self) -> None:
        """End every worker and wait for it. Jobs on the way fail with :class:`PoolClosedError`."""
        if os.getpid() != self._owner:
            return
        with self._start_lock:
            first, started = not self._closing.is_set(), self._started
            self._closing.set()
        if first and started:
            self._command(lambda: None)  # wakes the thread
        if started and threading.current_thread() is not self._thread:
            self._thread.join()
        if first and not started:
            self._release()
        atexit.unregister(self.close)

    @property
    def processes(self) -> list[int]:
        """Process ids of the workers that are alive now."""
        return [slot.process for slot in self._slots if slot.process]

    def _check_usable(self) -> None:
        if os.getpid() != self._owner:
            raise PoolClosedError("this pool belongs to the process that made it, not to a fork of it")
        if self._closing.is_set():
            raise PoolClosedError("this pool is closed")

    def _command(self, command: Callable[[], None]) -> None:
        self._commands.append(command)
        with contextlib.suppress(OSError):  # a full pipe wakes as well
            self._wake_write.send(b"x")

    # The pool's thread from here on.

    def _run(self) -> None:
        """Take turns until closed; after a fault of our own, refuse every job until then."""
        try:
            self._replacement.start()
            while not self._closing.is_set():
                self._turn()
        except BaseException as fault:
            self._ledger.refuse(fault)
            self._serve_refusals()
        finally:
            with self._start_lock:  # no job comes from here on, and those that came are ended
                self._closing.set()
            self._ledger.refuse(self._ledger.broken or PoolClosedError("the pool was closed"))
            self._obey()
            self._release()

    def _serve_refusals(self) -> None:
        """Answer every further job with a fault of our own, until closed."""
        self._warden.stop()
        for slot in self._slots:
            self._warden.deafen(slot)  # the end of a dead worker's socket would be ready for ever
        while not self._closing.is_set():
            self._selector.select()
            with contextlib.suppress(OSError):
                self._wake_read.recv(4096)
            self._obey()

    def _obey(self) -> None:
        while self._commands:
            self._commands.popleft()()

    def _turn(self) -> None:
        """Wait for a message or a deadline, do what is due, and send calls to workers that are free."""
        now = time.monotonic()
        due = min((slot.look_at for slot in self._slots), default=math.inf)
        due = min(due, self._warden.due, self._ledger.due)
        ready = self._selector.select(None if due == math.inf else max(0.0, due - now))
        control = self._warden.control
        ready.sort(key=_is_no_worker)  # a worker's last message comes before the warden's that it has ended
        for key, _ in ready:
            if self._warden.control is not control:
                break  # the warden was lost: what else was ready has been closed
            if key.fileobj is self._wake_read:
                with contextlib.suppress(OSError):
                    self._wake_read.recv(4096)
            elif self._warden.is_end_of(key.fileobj):
                self._replacement.lost_warden()
            elif key.data is None:
                self._replacement.hear()
            elif key.fileobj is key.data.channel:  # not of a worker whose slot was given to another just now
                self._supervisor.hear(key.data)
        self._obey()
        if self._closing.is_set():
            return
        now = time.monotonic()
        self._ledger.put_due(now)
        for slot in self._slots:
            if slot.look_at <= now:
                self._supervisor.look(slot, now)
        if self._warden.due <= now - AWAY_S:
            self._warden.excuse(now)  # we stood still ourselves, perhaps all of us
        elif self._warden.due <= now:
            self._replacement.lost_warden(stopped=True)
        self._dispatch.feed()

    def _release(self) -> None:
        self._warden.stop()
        for slot in self._slots:
            slot.close()
        self._selector.close()
        self._wake_read.close()
        self._wake_write.close()


def _slots(targets: Sequence[Target], workers: int) -> list[Slot]:
    """Return the slots: as many as workers for each setup of serial targets, and one for each other target."""
    serial: dict[bytes, list[int]] = {}
    plans: list[tuple[Lane, int, list[int]]] = []
    for number, target in enumerate(targets):
        if target.lane is Lane.SERIAL:
            serial.setdefault(target.setup, []).append(number)
        else:
            plans.append((target.lane, target.width, [number]))
    plans = [(Lane.SERIAL, 1, numbers) for numbers in serial.values() for _ in range(workers)] + plans
    slots = [
        Slot(index, lane, width, frozenset(numbers), ", ".join(repr(targets[number].name) for number in numbers))
        for index, (lane, width, numbers) in enumerate(plans)
    ]
    if workers >= MANY_WORKERS:
        for slot in slots[: len(serial) * workers]:
            slot.is_of_many = slot.index % workers > 0  # the first loads by itself, and calls begin in it
    return slots


def _payload(targets: Sequence[Target], slot: Slot) -> Payload:
    """Return what a slot's workers load: the setup of one of its targets, which is that of all, and the targets."""
    numbers = sorted(slot.targets)
    return Payload(targets[numbers[0]].setup, {i: (targets[i].name, targets[i].payload) for i in numbers})


def _is_no_worker(event: tuple[selectors.SelectorKey, int]) -> bool:
    return event[0].data is None
