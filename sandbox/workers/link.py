"""The link to the warden: starting it, having it begin and end workers, hearing what it says, and ending it.

Owns the warden's process, both ways by which its end is noticed, and whether a worker's socket is listened to. Others
decide why a worker is begun or ended, and :mod:`~sandbox.workers.replacement` what the warden's messages mean.

A lost warden may leave descendants of its workers behind. A mark in the environment that the warden was started with
identifies them. *Not covered:* a process with an environment of its own; machines without ``/proc``.
"""

from __future__ import annotations

import contextlib
import math
import os
import selectors
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sandbox.errors import WorkerStartError
from sandbox.workers.slot import Slot, State
from sandbox.workers.warden import process_descriptor
from sandbox.workers.wire import Channel, MalformedError, channel_pair, parse_json
from sandbox.workers.worker import Payload

NURSERY_FROM_S = 0.25  # seconds of loading from which on a replacement comes from a nursery
WARDEN_DOUBT_S = 2.0  # seconds for a warden to start a worker or report an end; then it is asked whether it is there
ANSWER_S = 8.0  # seconds that a warden has to say that it is there; then it counts as stopped, and is killed
_START_S = 60.0  # seconds, at least, that a warden has to start and to import what it imports for all workers
_END_S = 5.0  # seconds that a warden has to end its workers and itself
_MARK = "REWARDKIT_POOL"  # the environment variable that marks what a pool started
_KILL_ROUNDS, _KILL_ROUND_S = 50, 0.01  # until nothing marked is left, or it does not die
_CONTROL = 3  # the warden's end of its socket
_BOOT = "import sys; sys.path.insert(0, {root!r}); from sandbox.workers.warden import main; main({fd}, {pid})"
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class WardenLink:
    """One warden at a time; after :meth:`stop` another one can be started.

    The selector watches its socket and process with ``None`` as data, and workers' sockets with their slots. Payloads
    are by slot. ``due`` is when the warden must have answered, on the monotonic clock, or infinite.
    """

    def __init__(
        self,
        selector: selectors.BaseSelector,
        payloads: Mapping[int, Payload],
        *,
        path: Sequence[str],
        env: Mapping[str, str],
        preload: Sequence[str],
        memory_bytes: int | None,
        load_timeout_s: float,
    ) -> None:
        self.due = math.inf
        self._selector = selector
        self._setup = (list(path), list(preload), memory_bytes, load_timeout_s, payloads)
        self._start_s = max(_START_S, load_timeout_s)
        self._mark = f"{os.getpid()}-{os.urandom(8).hex()}"  # no other pool has it
        self._env = {**dict.fromkeys(_ONE_THREAD, "1"), **os.environ, **env, _MARK: self._mark}
        self._process = 0
        self._watch: int | None = None
        self._control: Channel | None = None

    @property
    def control(self) -> Channel | None:
        """The socket to the present warden, which another one's is not."""
        return self._control

    def is_end_of(self, fileobj: object) -> bool:
        """Return whether what became ready says that the warden's process has ended."""
        return self._watch is not None and fileobj == self._watch

    def start(self) -> None:
        """Start a warden, without waiting for it, or raise ``WorkerStartError``."""
        self._control, theirs = channel_pair(int(ANSWER_S))  # one that was stopped reads nothing
        boot = _BOOT.format(root=str(Path(__file__).parents[2]), fd=_CONTROL, pid=os.getpid())
        # Not subprocess.Popen: it waits for the end of a pipe that a fork in another thread (a data
        # loader's, say) may hold open for ever.
        try:
            self._process = os.posix_spawn(
                sys.executable,
                [sys.executable, "-c", boot],
                self._env,
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                    (os.POSIX_SPAWN_DUP2, theirs.fileno(), _CONTROL),
                ],
                # Ctrl-C is the trainer's also until the warden ignores it.
                setsigmask=signal.pthread_sigmask(signal.SIG_BLOCK, ()) | {signal.SIGINT},
            )
        except OSError as reason:
            raise WorkerStartError(f"cannot start {sys.executable}: {reason}") from reason
        finally:
            theirs.close()
        self._selector.register(self._control, selectors.EVENT_READ, None)
        self._watch = process_descriptor(self._process)
        if self._watch is not None:
            self._selector.register(self._watch, selectors.EVENT_READ, None)
        self.tell(("setup", *self._setup))
        self.due = time.monotonic() + self._start_s

    def tell(self, message: tuple[Any, ...], descriptors: Sequence[int] = ()) -> None:
        """Send it a message; its end is noticed when it is next heard."""
        if self._control is not None:
            with contextlib.suppress(OSError):
                self._control.send_pickle(message, descriptors)

    def spawn(self, slot: Slot) -> None:
        self.deafen(slot)
        descriptors = slot.open()
        assert slot.channel is not None
        self._selector.register(slot.channel, selectors.EVENT_READ, slot)
        slot.check_at = time.monotonic() + WARDEN_DOUBT_S
        loads_slowly = (slot.is_of_many or slot.load_s > NURSERY_FROM_S) and not slot.nursery_failed
        order = ("spawn", slot.index, slot.generation, slot.lane.value, slot.width, loads_slowly)
        self.tell(order, descriptors)
        os.close(descriptors[0])

    def retire(self, slot: Slot) -> None:
        """Kill a worker; of the calls it runs only those with a fate in :attr:`Slot.fates` pay for it."""
        if slot.state in (State.READY, State.CUT_OFF):
            slot.retiring = True
            self.kill(slot)

    def kill(self, slot: Slot) -> None:
        """Kill a worker, if it is not dying already."""
        if slot.state in (State.STARTING, State.READY, State.CUT_OFF):
            slot.state, slot.check_at = State.DYING, time.monotonic() + WARDEN_DOUBT_S
            slot.doubted = False  # the warden was not yet asked about its end, though perhaps about its beginning
            self.tell(("kill", slot.index))

    def distrust(self, slot: Slot, reason: str) -> None:
        """Kill a worker whose messages or memory hold what its own code does not write there: some call did."""
        slot.malformed = slot.malformed or reason
        if slot.state in (State.READY, State.CUT_OFF):
            self.deafen(slot)
            self.kill(slot)

    def deafen(self, slot: Slot) -> None:
        if slot.channel is not None:
            with contextlib.suppress(KeyError):
                self._selector.unregister(slot.channel)

    def hear(self) -> list[Any] | None:
        """Return its messages, which show that it is there; ``None`` if it is gone or sends junk."""
        assert self._control is not None
        try:
            frames = [parse_json(frame) for frame in self._control.receive()]
        except (EOFError, OSError, MalformedError):
            return None
        self.due = math.inf
        return frames

    def ask(self, now: float) -> None:
        self.excuse(now)
        self.tell(("ping",))

    def excuse(self, now: float) -> None:
        """Give it its time for an answer anew."""
        self.due = now + ANSWER_S

    def wake(self) -> None:
        """Let it go on where it was stopped."""
        if self._process:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process, signal.SIGCONT)

    def end_left_behind(self) -> None:
        """End what its workers have started and left behind."""
        for _ in range(_KILL_ROUNDS):
            processes = _processes_with(f"{_MARK}={self._mark}".encode())
            for process in processes:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(process, signal.SIGKILL)
            if not processes:
                return
            time.sleep(_KILL_ROUND_S)

    def stop(self, *, at_once: bool = False) -> None:
        """End the warden; it has some seconds to go by itself, unless that is to happen at once."""
        self.due = math.inf
        if self._control is not None:
            self.tell(("close",))
            self.wake()
            with contextlib.suppress(KeyError):
                self._selector.unregister(self._control)
            self._control.close()
            self._control = None
        if self._watch is not None:
            self._selector.unregister(self._watch)
            os.close(self._watch)
            self._watch = None
        if self._process:
            if not _wait_for_end(self._process, 0.0 if at_once else _END_S):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self._process, signal.SIGKILL)
                self.end_left_behind()  # also a worker that traces the warden, which nobody can reap until then
                _wait_for_end(self._process, _END_S)
            self._process = 0


def _wait_for_end(process: int, timeout_s: float) -> bool:
    """Reap a child; return whether it ended in time."""
    deadline = time.monotonic() + timeout_s
    try:
        while os.waitpid(process, os.WNOHANG)[0] == 0:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.002)
    except ChildProcessError:  # somebody else in this process reaps every child
        pass
    return True


def _processes_with(mark: bytes) -> list[int]:
    """Return the processes with this mark in their first environment."""
    processes = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it is gone, has ended, or is somebody else's
            if mark in (process / "environ").read_bytes().split(b"\0"):
                processes.append(int(process.name))
    return processes
