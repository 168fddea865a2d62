"""The desk of a worker, which every lane works at: its channel, page and results file, the batches and the targets.

A target is a callable ``(common, segments, places) -> JSON text or a float``.
"""

from __future__ import annotations

import contextlib
import gc
import math
import os
import resource
import sys
from collections.abc import Callable
from json.encoder import encode_basestring_ascii as quote
from pickle import loads
from typing import Any, NamedTuple

from sandbox.workers import capture, surroundings
from sandbox.workers.job import Answer
from sandbox.workers.page import Page
from sandbox.workers.steady import Steady
from sandbox.workers.surroundings import Keeper
from sandbox.workers.wire import BESET, CANCELLED, DISTURBED, BatchView, Channel, RecordWriter, raise_descriptor

WEIGH_S = 0.01  # seconds for which a measure of memory counts: asking the kernel takes longer than a short call
CHANNEL_LOST = 71  # exit code of a worker whose own descriptors were closed under it
BROKEN = 70  # exit code of a worker whose own code failed, for what some call did to it

QUOTED_DISTURBED, QUOTED_CANCELLED, QUOTED_BESET = map(quote, (DISTURBED, CANCELLED, BESET))  # as targets answer
TargetFunction = Callable[[Any, list[memoryview], tuple[int, ...]], Any]


SmallBatch = tuple[bytes, dict[int, bytes]]
"""What is common to calls, pickled, and the segments that they need: a batch that came with the message."""


class Order(NamedTuple):
    """One call to run."""

    ticket: int  # the number to answer under
    batch: int  # which batch its segments are in
    target: int  # which target to run
    places: tuple[int, ...]  # which segments
    timeout_s: float  # its time; used by the event loop, elsewhere the parent watches


class Desk:
    """The channel, the page, the results file, the batches and the targets."""

    def __init__(self, channel: Channel, page: Page, results: RecordWriter, targets: dict[int, TargetFunction]) -> None:
        self.channel = channel
        self.page = page
        self.targets = targets
        self.batches: dict[int, BatchView] = {}
        self.keeper = Keeper(page)
        self._held_bytes, self._weighed_at = 0, -math.inf
        self._results = results

    def batch(self, batch: int, common: bytes) -> None:
        """Open a batch whose file came with the frame."""
        (descriptor,) = self.channel.take_descriptors(1)
        self.batches[batch] = BatchView(raise_descriptor(descriptor), loads(common))  # noqa: S301 - the parent is trusted

    def data_of(self, batch: int | SmallBatch) -> tuple[Any, Callable[[int], memoryview]]:
        """Return what is common to the calls of a batch, and what returns a segment of it."""
        if isinstance(batch, int):
            view = self.batches[batch]
            return view.common, view.segment
        common, segments = batch
        return loads(common), lambda index: memoryview(segments[index])  # noqa: S301 - the parent is trusted

    def drop(self, batch: int) -> None:
        view = self.batches.pop(batch, None)
        if view is not None:
            try:
                view.close()
            except BufferError:
                gc.collect()  # an abandoned call still reads it; the memory goes when that call does

    def arguments(self, order: Order) -> tuple[Any, list[memoryview], tuple[int, ...]]:
        view = self.batches[order.batch]
        return view.common, [view.segment(index) for index in order.places], order.places

    def record(self, ticket: int, duration_s: float, logs: str, answer: Answer) -> None:
        """Write one result; if the file is full it is lost, and the parent has the call made again."""
        quoted = quote(logs) if logs else '""'
        text = f"[{ticket},{duration_s:.9f},{quoted},{answer if isinstance(answer, str) else repr(answer)}]\n"
        self._results.write(text.encode())

    def put_back(self, log: capture.CallLog | None = None) -> None:
        """Put back what a call, or every call, changed; end this process where its channel was closed under it."""
        if surroundings.descriptors_closed():
            try:
                os.fstat(self.channel.fileno())
            except OSError:
                Steady.end(CHANNEL_LOST)
        surroundings.put_back(log)

    def obey(self, frame: bytes, begin: Callable[..., None]) -> None:
        """Do what a frame from the parent says; ``begin`` is how the lane begins the calls of a message."""
        kind, *message = loads(frame)  # noqa: S301 - the parent is trusted
        match kind:
            case "run" | "start":
                begin(*message)
            case "batch":
                self.batch(*message)
            case "drop":
                self.drop(*message)
            case "empty":  # the parent has read all of the results, and sends nothing until it is answered
                self._results.restart()
                self.tell("emptied")

    def wake(self) -> None:
        """Tell the parent of results: one message for all that are written before it looks."""
        if not self.page.woken:
            self.page.woken = True
            now = Steady.monotonic()
            if now >= self._weighed_at + WEIGH_S:
                self._held_bytes, self._weighed_at = held_bytes().touched, now
            self.tell("wake", self._held_bytes)

    def tell(self, *message: object) -> None:
        try:
            self.channel.send_json(list(message))
        except OSError:
            Steady.end(CHANNEL_LOST)


def cells_of(lane: str, width: int) -> int:
    """Return how many cells a lane's page has: one a call; a lane of threads may have as many stuck as working."""
    return 2 * width if lane == "threads" else width


def threads_of(process: int) -> int:
    """Return how many threads a process has; 0 if unknown."""
    with contextlib.suppress(OSError):
        return len(os.listdir(f"/proc/{process}/task"))
    return 0


class HeldBytes(NamedTuple):
    """The memory of this process."""

    touched: int
    data: int


def held_bytes() -> HeldBytes:
    """Return the bytes of memory that are held; without ``/proc`` the most ever touched, and 0 of data."""
    try:
        with open("/proc/self/statm") as file:
            _, resident, _, _, _, data, *_ = map(int, file.read().split())
        return HeldBytes(resident * resource.getpagesize(), data * resource.getpagesize())
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return HeldBytes(most * (1 if sys.platform == "darwin" else 1024), 0)
