"""The worker: it loads its targets once and runs calls of them until it is killed.

What each lane does is in ``serial``, ``threads`` and ``loop``; what they share is the ``desk``.
"""

from __future__ import annotations

import faulthandler
import gc
import importlib
import os
import pickle
import random
import socket
import sys
import traceback
from typing import TYPE_CHECKING, NamedTuple

from sandbox.errors import WorkerStartError
from sandbox.workers import capture, surroundings
from sandbox.workers.desk import Desk, TargetFunction, cells_of, threads_of
from sandbox.workers.page import Page, page_bytes
from sandbox.workers.serial import SerialLane
from sandbox.workers.steady import INSIDE, Steady
from sandbox.workers.wire import LOW_DESCRIPTORS, Channel, RecordWriter, map_shared, own_descriptors_from

if TYPE_CHECKING:
    from sandbox.workers.loop import LoopLane
    from sandbox.workers.threads import ThreadLane

_MAX_LOAD_ERROR_CHARS = 20_000


class Payload(NamedTuple):
    """What a worker loads."""

    setup: bytes  # A pickled object that is unpickled first, if there is one
    targets: dict[int, tuple[str, bytes]]  # Each target's name and pickle, by number


def serve(
    lane: str,
    width: int,
    payload: Payload,
    control: int,
    page: int,
    results: int,
    console: int,
    *,
    loaded: dict[int, TargetFunction] | None = None,
) -> int:
    """Load the payload's targets and serve ``width`` calls at once until the parent is gone.

    ``loaded`` are the payload's targets where the fork has them.
    ``control`` is the socket to the parent; the rest are descriptors of the page, the results, and crash output.
    """
    faulthandler.enable(os.fdopen(console, "wb", buffering=0, closefd=False))
    channel = Channel(socket.socket(fileno=control))
    cells = cells_of(lane, width)
    shared, writer = Page(map_shared(page, page_bytes(cells), writable=True), cells), RecordWriter(results)
    os.close(page)
    os.close(results)
    fill_low_descriptors()
    reseed()
    try:
        targets = load(payload) if loaded is None else loaded
    except BaseException as fault:
        channel.send_json(["load_error", str(fault)[-_MAX_LOAD_ERROR_CHARS:]])
        return 1
    capture.threads_started = 0
    surroundings.cancel_plans()
    surroundings.install()  # in what has been loaded, too
    surroundings.earlier_states.clear()
    gc.freeze()  # what is loaded stays; collections then look at calls' garbage only
    desk = Desk(channel, shared, writer, targets)
    runner = _lane(lane, desk, width)
    capture.threads.clear()  # those that loading and the lane started are no call's
    desk.page.beat(Steady.monotonic())  # the lane takes a moment to beat by itself
    desk.tell("ready", threads_of(os.getpid()))
    try:
        return runner.run()
    except EOFError:
        return 0


def _lane(lane: str, desk: Desk, width: int) -> SerialLane | ThreadLane | LoopLane:
    """Return what runs calls, with its threads; those of other lanes are not imported."""
    if lane == "serial":
        return SerialLane(desk)
    if lane == "threads":
        from sandbox.workers.threads import ThreadLane

        return ThreadLane(desk, width)
    from sandbox.workers.loop import LoopLane

    return LoopLane(desk, width)


def load(payload: Payload) -> dict[int, TargetFunction]:
    """Make this process one for targets, and load them; raise ``RuntimeError``, which names it, if one cannot load."""
    os.environ[INSIDE] = "1"
    capture.install()
    surroundings.install()
    process = Steady.process()
    try:
        if payload.setup:
            _load("what the rewards import", payload.setup)
        return {index: _load(*target) for index, target in payload.targets.items()}
    finally:
        if Steady.process() != process:  # a module of the reward's forked, and its copy came here as well
            Steady.end(0)


def fill_low_descriptors() -> None:
    """Let low numbers lead nowhere, for as long as the worker lives."""
    null, low = os.open(os.devnull, os.O_RDWR), min(LOW_DESCRIPTORS, own_descriptors_from())
    while null < low:
        null = os.dup(null)
    os.close(null)


def _load(name: str, payload: bytes) -> TargetFunction:
    """Return an unpickled target; raise RuntimeError, which names it and the cause."""
    try:
        if b"_asyncio" in payload:
            importlib.import_module("asyncio")  # before its C half: the two would have tasks of their own
        target: TargetFunction = pickle.loads(payload)  # noqa: S301 - the parent is trusted
        return target
    except WorkerStartError as error:  # its message suffices
        raise RuntimeError(f"{name!r} cannot be loaded in a worker: {error}") from error
    except BaseException as error:
        trace = "".join(traceback.format_exception(error, limit=-4)).strip()
        raise RuntimeError(f"{name!r} cannot be loaded in a worker:\n{trace}") from error


def reseed() -> None:
    """Give this process random numbers of its own; forks would all draw the same."""
    random.seed()
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None:
        numpy.random.seed()
    if torch is not None:
        torch.default_generator.seed()
