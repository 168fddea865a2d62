"""The worker: it loads its targets once and runs calls of them until it is killed.

A target is a callable ``(common, segments, places) -> JSON text or a float``.
This module serves the lane that runs one call at a time; ``threads`` and ``loop`` serve the others.
"""

from __future__ import annotations

import faulthandler
import fcntl
import gc
import importlib
import math
import os
import pickle
import random
import resource
import socket
import sys
import threading
import traceback
from collections.abc import Callable
from json import dumps
from pickle import loads
from typing import Any, NamedTuple

from sandbox.workers import capture, clock
from sandbox.workers.job import Answer
from sandbox.workers.page import Page, page_bytes
from sandbox.workers.steady import INSIDE, Keeper, Steady
from sandbox.workers.wire import BatchView, Channel, RecordWriter, map_shared

BOX_S = 0.02
"""Seconds after which a worker gives the rest of its chunk back, so that no slow call holds up quick ones."""

WEIGH_S = 0.01
"""Seconds for which what a process held counts as what it holds: asking the kernel takes longer than a short call."""

OUR_DESCRIPTORS_FROM = 400
"""A worker's own descriptors have numbers above what a reward's files get, so that the two are never mistaken."""
_LOW_DESCRIPTORS = 32
"""Numbers below this are ``/dev/null`` in a worker: one that meant a log file in another process writes there."""

CHANNEL_LOST = 71
"""Exit code of a worker whose own descriptors were closed under it."""
BROKEN = 70
"""Exit code of a worker whose own code failed, for what some call did to it."""

Payload = dict[int, tuple[str, bytes]]
Target = Callable[[Any, list[memoryview], tuple[int, ...]], Any]


class Order(NamedTuple):
    """One call to run.

    Attributes:
        ticket: The number to answer under.
        batch: Which batch its segments are in.
        target: Which target to run.
        places: Which segments.
        timeout_s: Its time; used by the event loop, elsewhere the parent watches.
    """

    ticket: int
    batch: int
    target: int
    places: tuple[int, ...]
    timeout_s: float


class Desk:
    """What every lane needs: the channel, the page, the results file, the batches and the targets."""

    def __init__(self, channel: Channel, page: Page, results: RecordWriter, targets: dict[int, Target]) -> None:
        self.channel = channel
        self.page = page
        self.targets = targets
        self.batches: dict[int, BatchView] = {}
        self.keeper = Keeper()
        self._held_bytes, self._weighed_at = 0, -math.inf
        self._results = results
        self.threads = threading.active_count()

    def batch(self, batch: int, common: bytes) -> None:
        """Open a batch whose file came with the frame."""
        (descriptor,) = self.channel.take_descriptors(1)
        own = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, OUR_DESCRIPTORS_FROM)
        os.close(descriptor)
        self.batches[batch] = BatchView(own, loads(common))  # noqa: S301 - the parent is trusted

    def drop(self, batch: int) -> None:
        """Forget a batch."""
        view = self.batches.pop(batch, None)
        if view is not None:
            try:
                view.close()
            except BufferError:
                gc.collect()  # an abandoned call still reads it; the memory goes when that call does

    def arguments(self, order: Order) -> tuple[Any, list[memoryview], tuple[int, ...]]:
        """Gives what the order's target is called with."""
        view = self.batches[order.batch]
        return view.common, [view.segment(place) for place in order.places], order.places

    def record(self, ticket: int, duration_s: float, logs: str, answer: Answer) -> None:
        """Write one result; where its place is full it is lost, and the parent has the call made again."""
        quoted = dumps(logs) if logs else '""'
        text = f"[{ticket},{duration_s:.9f},{quoted},{answer if isinstance(answer, str) else repr(answer)}]\n"
        self._results.write(text.encode())

    def check_descriptors(self) -> None:
        """End this process where its channel was closed under it: there is nothing more to do in it."""
        capture.descriptors_closed = False
        try:
            os.fstat(self.channel.fileno())
        except OSError:
            Steady.end(CHANNEL_LOST)

    def empty_results(self) -> None:
        """Start the results file again, and say so; the parent has read all of it and sends nothing meanwhile."""
        self._results.restart()
        self.tell("emptied")

    def wake(self) -> None:
        """Tell the parent of results: one message for all that are written before it looks."""
        if not self.page.woken:
            self.page.woken = True
            now = Steady.monotonic()
            if now >= self._weighed_at + WEIGH_S:
                self._held_bytes, self._weighed_at = _held_bytes()[0], now
            self.tell("wake", self._held_bytes)

    def tell(self, *message: Any) -> None:
        """Send a message to the parent."""
        try:
            self.channel.send_json(list(message))
        except OSError:
            Steady.end(CHANNEL_LOST)

    @property
    def tainted(self) -> bool:
        """Whether calls left threads running."""
        return capture.threads_started > 0 and threading.active_count() > self.threads


def serve(
    lane: str,
    width: int,
    payload: Payload,
    control: int,
    page: int,
    results: int,
    console: int,
    *,
    loaded: dict[int, Target] | None = None,
) -> int:
    """Loads the payload's targets and serves calls until the parent is gone.

    Args:
        lane: "serial", "threads" or "asyncio".
        width: Calls in flight at once.
        payload: Each target's name and pickle, by number.
        control: Socket to the parent.
        page: Descriptor of the shared page.
        results: Descriptor of the results file.
        console: Where the interpreter writes its last words in a crash.
        loaded: The targets, where this process was forked from one that has loaded them.
    """
    faulthandler.enable(os.fdopen(console, "wb", buffering=0, closefd=False))
    channel = Channel(socket.socket(fileno=control))
    cells = cells_of(lane, width)
    shared, writer = Page(map_shared(page, page_bytes(cells), writable=True), cells), RecordWriter(results)
    os.close(page)
    os.close(results)
    fill_low_descriptors()
    try:
        targets = load(payload) if loaded is None else loaded
    except BaseException as fault:
        channel.send_json(["load_error", str(fault)[-_MAX_LOAD_ERROR_CHARS:]])
        return 1
    capture.threads_started = 0
    capture.cancel_plans()
    gc.freeze()  # what is loaded stays; collections then look at calls' garbage only
    desk = Desk(channel, shared, writer, targets)
    desk.page.beat(Steady.monotonic())  # the lane takes a moment to beat by itself
    desk.tell("ready")
    try:
        if lane == "serial":
            return SerialLane(desk).run()
        if lane == "threads":
            from sandbox.workers.threads import ThreadLane

            return ThreadLane(desk, width).run()
        from sandbox.workers.loop import LoopLane

        return LoopLane(desk, width).run()
    except EOFError:
        return 0


_MAX_LOAD_ERROR_CHARS = 20_000


def load(payload: Payload) -> dict[int, Target]:
    """Make this process one for targets, and load them.

    Raises:
        RuntimeError: One cannot be loaded; says which and why.
    """
    os.environ[INSIDE] = "1"
    _reseed()
    capture.install()
    process = Steady.process()
    try:
        return {index: _load(*target) for index, target in payload.items()}
    finally:
        if Steady.process() != process:  # a module of the reward's forked, and its copy came here as well
            Steady.end(0)


def fill_low_descriptors() -> None:
    """Let low numbers lead nowhere, for as long as the worker lives."""
    null = os.open(os.devnull, os.O_RDWR)
    while null < _LOW_DESCRIPTORS:
        null = os.dup(null)
    os.close(null)


def _load(name: str, payload: bytes) -> Target:
    try:
        if b"_asyncio" in payload:
            importlib.import_module("asyncio")  # before its C half: the two would have tasks of their own
        target: Target = pickle.loads(payload)  # noqa: S301 - the parent is trusted
        return target
    except BaseException as fault:
        words = "".join(traceback.format_exception(fault, limit=-4)).strip()
        raise RuntimeError(f"{name!r} cannot be loaded in a worker:\n{words}") from fault


def cells_of(lane: str, width: int) -> int:
    """Gives how many cells a lane's page has: a lane of threads may have as many stuck as working."""
    return 2 * width if lane == "threads" else 1


def _reseed() -> None:
    """Give each worker random numbers of its own; forks would all draw the same."""
    random.seed()
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed()


class SerialLane:
    """Runs one call at a time, in the main thread."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._data_bytes = _held_bytes()[1]

    def run(self) -> int:
        """Serve until the parent is gone."""
        while True:
            for frame in self._desk.channel.receive():
                self._obey(*loads(frame))  # noqa: S301 - the parent is trusted

    def _obey(self, kind: str, *message: Any) -> None:
        match kind:
            case "run":
                self._run_chunk(*message)
            case "batch":
                self._desk.batch(*message)
            case "drop":
                self._desk.drop(*message)
            case "empty":
                self._desk.empty_results()

    def _run_chunk(self, ticket: int, half: int, batch: int, target: int, calls: list[tuple[int, ...]]) -> None:
        """Run calls until the chunk or its time box ends, and say how many were run.

        Args:
            ticket: The first call's.
            half: Which half of the page takes the answers.
            batch: Which batch their segments are in.
            target: Which target to run.
            calls: Each call's segments.
        """
        desk, monotonic, check = self._desk, Steady.monotonic, self._desk.keeper.check
        page, view, run = desk.page, desk.batches[batch], desk.targets[target]
        box = monotonic() + BOX_S
        done = numbers = 0
        common, segment = view.common, view.segment
        log, timer = capture.begin_call(), self._new_clock()
        for places in calls:
            began = monotonic()
            page.begin(0, ticket + done, began, desk.tainted)
            answer = run(common, [segment(place) for place in places], places)
            check()
            ended = monotonic()
            if timer.touched or capture.threads_started:
                timer.end()
                began += timer.stopped_s()
                timer = self._new_clock()
            if capture.descriptors_closed:
                desk.check_descriptors()
            if capture.planned:
                capture.cancel_plans()
            if log.pristine and not capture.threads_started:
                if type(answer) is float:
                    page.answer(half, numbers, ended - began, answer, ticket + done)
                    numbers += 1
                else:
                    desk.record(ticket + done, ended - began, "", answer)
            else:
                desk.record(ticket + done, ended - began, log.finish(), answer)
                log = capture.begin_call()
            done += 1
            if ended > box:
                break
        timer.end()
        page.end(0)
        touched, data = _held_bytes()
        desk.tell("done", ticket, done, desk.tainted, max(touched, data - self._data_bytes))

    def _new_clock(self) -> clock.Clock:
        timer = clock.CellClock(self._desk.page, 0)
        clock.use(timer)
        return timer


def _held_bytes() -> tuple[int, int]:
    """Gives the memory that this process holds now, in bytes: what it has touched, and its data, touched or not.

    Where that is not told, the first is its highest ever and the second 0.
    """
    try:
        with open("/proc/self/statm") as file:
            pages = file.read().split()
        return int(pages[1]) * resource.getpagesize(), int(pages[5]) * resource.getpagesize()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024), 0
