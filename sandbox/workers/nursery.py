"""The nursery: a process that has loaded the rewards once and forks workers, so that a replacement loads nothing.

The warden makes it when it replaces a worker that took long to load, and at once for many workers, which then share the
memory of what they load. Without one it forks workers itself: a nursery saves time, and nothing depends on it. A worker
that is forked here is handed to the warden (its parent ends, and orphans come to the warden), so it is reaped, reported
and killed like every other.

*Not used* where a fork would be less than loading anew: after loading, the process has more than one thread, a child,
an open descriptor, memory that is shared, or the name of a temporary file, has seeded a random generator or uses a
card. *Not noticed:* what a module derives from its process id, and random generators of its own, alike in workers
forked here.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import random
import select
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from sandbox.workers import shell, worker
from sandbox.workers.desk import BROKEN, TargetFunction
from sandbox.workers.steady import Steady
from sandbox.workers.wire import Channel, MalformedError, parse_json, raise_descriptor
from sandbox.workers.worker import Payload

ANSWER_S = 5.0  # seconds that a nursery has to fork a worker
IDLE_S = 600.0  # seconds without a fork after which a nursery is ended: it holds as much memory as a worker
_CHOSEN_SEEDS_BELOW = 1 << 32  # PyTorch's own first seed is of 64 bits; those that people choose are shorter


class ForkRequest(NamedTuple):
    slot: int
    generation: int  # which of the slot's workers
    lane: str
    width: int
    descriptors: list[int]

    def close(self) -> None:
        """Close the descriptors: they were handed on."""
        for descriptor in self.descriptors:
            os.close(descriptor)


class Nursery:
    """The warden's side of a nursery."""

    def __init__(self, process: int, channel: Channel, load_timeout_s: float) -> None:
        self.process = process
        self.channel = channel
        self.fit = False  # whether it has loaded the rewards and can fork
        self.waiting: dict[int, ForkRequest] = {}  # workers that it has not forked yet, by the number of the order
        self._orders = 0
        self._due = time.monotonic() + load_timeout_s

    def ask(self, request: ForkRequest) -> None:
        """Have a worker forked, as soon as the rewards are loaded."""
        self._orders += 1
        self.waiting[self._orders] = request
        if self.fit:
            self._send(self._orders)

    def _send(self, order: int) -> None:
        request = self.waiting[order]
        self._due = time.monotonic() + ANSWER_S
        self.channel.send_pickle((order, request.lane, request.width), request.descriptors)

    def late(self, now: float) -> bool:
        """Return whether it has failed to load, or to fork a worker, in time."""
        return now > self._due and (bool(self.waiting) or not self.fit)

    def idle(self, now: float) -> bool:
        """Return whether it has forked nothing for so long that its memory is worth more."""
        return self.fit and not self.waiting and now > self._due + IDLE_S

    def hear(self) -> list[tuple[ForkRequest, int]]:
        """Return workers forked since the last call, with process ids; raise if it is gone or sends junk."""
        started = []
        while select.select([self.channel], [], [], 0)[0]:
            for frame in self.channel.receive():
                match parse_json(frame):
                    case ["fit"] if not self.fit:
                        self.fit = True
                        for order in self.waiting:
                            self._send(order)
                    case ["forked", int(order), int(process)] if order in self.waiting:
                        started.append((self.waiting.pop(order), process))
                        self._due = time.monotonic() + ANSWER_S
                    case ["unfit"]:
                        raise EOFError
                    case message:
                        raise MalformedError(str(message))
        return started


# The nursery's own side from here on.


def run(payload: Payload, channel: Channel, warden: int) -> int:
    """Load the payload's targets and fork workers until the warden is gone."""
    worker.fill_low_descriptors()
    worker.reseed()
    before, randomness = _Traces.now(), _Randomness.now()
    try:
        loaded = worker.load(payload)
    except BaseException:
        channel.send_json(["unfit"])  # the next worker says itself why
        return 0
    gc.collect()
    gc.freeze()
    if not _Traces.now().are_none_beyond(before) or randomness.was_chosen_since() or _uses_card():
        channel.send_json(["unfit"])
        return 0
    shell.adopt_orphans(on=False)
    channel.send_json(["fit"])
    with contextlib.suppress(EOFError):
        while True:
            for frame in channel.receive():
                order = pickle.loads(frame)  # noqa: S301 - the warden is trusted
                _fork_worker(order, payload, loaded, channel, warden)
    return 0


def _uses_card() -> bool:
    """Return whether loading has begun to use a card: a fork's first call of it would fail, or hang."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    return cuda is not None and bool(cuda.is_initialized())


def _fork_worker(
    order: tuple[int, str, int], payload: Payload, loaded: dict[int, TargetFunction], channel: Channel, warden: int
) -> None:
    """Fork a worker by way of a child that ends at once, so that the warden becomes its parent."""
    number, lane, width = order
    descriptors = channel.take_descriptors(4)
    go_reader, go_writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            forked = os.fork()
            if forked == 0:
                code = BROKEN
                os.close(go_writer)
                if not os.read(go_reader, 1):
                    Steady.end(0)  # the warden does not know of it
                os.close(go_reader)
                channel.close()
                shell.wait_for_parent(warden)
                shell.lead_session(warden, shell.WORKER_OOM_SCORE)
                shell.adopt_orphans()
                code = worker.serve(lane, width, payload, *map(raise_descriptor, descriptors), loaded=loaded)
            else:
                channel.send_json(["forked", number, forked])
                os.write(go_writer, b"x")
                code = 0
        finally:
            Steady.end(code)
    for descriptor in (go_reader, go_writer, *descriptors):
        os.close(descriptor)
    if os.waitpid(child, 0)[1] != 0:
        raise EOFError


class _Traces(NamedTuple):
    """Traces of loading that forks would share: threads, children, descriptors, memory, a temporary file's name."""

    threads: int
    children: int
    descriptors: int
    shared_memory: int
    temporary_names: bool

    @classmethod
    def now(cls) -> _Traces:
        """Return the traces of this process, once the children that have ended are reaped."""
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        maps = Path("/proc/self/maps").read_text(errors="replace").splitlines()
        return cls(
            len(os.listdir("/proc/self/task")),
            len(shell.children()),
            len(os.listdir("/proc/self/fd")),
            sum(line.split(maxsplit=2)[1].startswith("rw-s") for line in maps),
            getattr(sys.modules.get("tempfile"), "_name_sequence", None) is not None,
        )

    def are_none_beyond(self, before: _Traces) -> bool:
        return self.threads == 1 and not any(now > then for now, then in zip(self, before, strict=True))


class _Randomness(NamedTuple):
    """The states of Python's and NumPy's generators; ``None`` for NumPy if it is not loaded."""

    python: tuple[Any, ...]
    numpy: bytes | None

    @classmethod
    def now(cls) -> _Randomness:
        numpy = sys.modules.get("numpy")
        return cls(random.getstate(), None if numpy is None else pickle.dumps(numpy.random.get_state()))

    def was_chosen_since(self) -> bool:
        """Return whether loading seeded a generator or drew from it: all forks would then draw the same numbers."""
        now, torch = self.now(), sys.modules.get("torch")
        numpy = _numpy_was_seeded() if self.numpy is None else now.numpy != self.numpy
        return now.python != self.python or numpy or (torch is not None and torch.initial_seed() < _CHOSEN_SEEDS_BELOW)


def _numpy_was_seeded() -> bool:
    """Return whether NumPy, which the rewards have loaded, was seeded: its generator then forgets how it began."""
    generator = getattr(sys.modules.get("numpy.random.mtrand"), "_rand", None)
    begun = getattr(getattr(generator, "_bit_generator", None), "_seed_seq", 0)
    return begun is None
