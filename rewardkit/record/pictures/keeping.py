"""The thread that scales a recorder's pictures, so that the training does not wait for them."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

from rewardkit.record.pictures.scaling import MISSING, ScaledPicture, scale
from rewardkit.record.pictures.sources import PictureSource
from rewardkit.record.pictures.storing import store_picture
from rewardkit.record.store import RecordConnection

WAITING_BYTES = 128 << 20  # Bytes of pictures that may wait to be scaled, or to be written
_LATE = "pictures came faster than they could be scaled or written"

Put = Callable[[Callable[[RecordConnection], object], int], None]
"""Hands a job and its bytes to the writer."""


class PictureKeeper:
    """Scales pictures one after the other in a thread of its own, and hands each to the writer.

    What comes faster is left out, with the reason, and has another chance when it comes again.

    Args:
        side: The longer side of a stored picture in pixels, at most; 0 keeps none.
        most_bytes: Bytes of all pictures that this process stores, at most.
        put: Hands a job and its bytes to the writer. It never waits.
    """

    def __init__(self, side: int, most_bytes: int, put: Put) -> None:
        self._side, self._most_bytes, self._put = side, most_bytes, put
        self._owner = os.getpid()
        self._changed = threading.Condition()  # protects the numbers below
        self._waiting = self._unwritten = self._stored = 0
        self._waiting_count = 0
        self._pool: ThreadPoolExecutor | None = None
        self.handled: set[str] = set()
        """Keys of the pictures that were handled for good."""

    def take(self, sources: Iterable[PictureSource]) -> None:
        """Scale and store pictures in the background; return at once, and do nothing in a fork."""
        for source in sources if os.getpid() == self._owner else ():
            reason = self._refusal(source)
            if reason is not None:
                if reason != _LATE:
                    self.handled.add(source.key)
                self._hand_over(source.key, ScaledPicture(None, reason))
                continue
            self.handled.add(source.key)
            with self._changed:
                self._waiting += source.size
                self._waiting_count += 1
            if self._pool is None:
                self._pool = ThreadPoolExecutor(1, thread_name_prefix="rewardkit-record-pictures")
            try:
                self._pool.submit(self._keep, source)
            except RuntimeError:  # the interpreter ends, and takes no more work beside it
                self._keep(source)

    def wait(self, timeout_s: float) -> bool:
        """Wait until all pictures are handed to the writer; ``False`` where some are not after this time."""
        if os.getpid() != self._owner:  # a fork has no thread that would end the wait
            return False
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting_count, timeout_s)

    def close(self, timeout_s: float = 30.0) -> None:
        """Wait for the pictures that were taken, at most so long; drop those that are left."""
        if self._pool is not None and os.getpid() == self._owner:
            self.wait(timeout_s)
            self._pool.shutdown(wait=False, cancel_futures=True)

    def _refusal(self, source: PictureSource) -> str | None:
        if self._side == 0:
            return "the recorder keeps no pictures (picture_side=0)"
        with self._changed:
            if self._stored >= self._most_bytes:
                return f"the run has its {self._most_bytes:,} bytes of pictures (picture_bytes)"
            pending = self._waiting + self._unwritten
        return _LATE if pending and pending + source.size > WAITING_BYTES else None

    def _keep(self, source: PictureSource) -> None:
        """Scale one picture and hand it over."""
        try:
            scaled = scale(source.content, self._side)
            if scaled.reason == MISSING:
                self.handled.discard(source.key)
            self._hand_over(source.key, scaled)
        finally:
            with self._changed:
                self._waiting -= source.size
                self._waiting_count -= 1
                self._changed.notify_all()

    def _hand_over(self, key: str, scaled: ScaledPicture) -> None:
        size = 0 if scaled.picture is None else len(scaled.picture.body)
        with self._changed:
            self._unwritten += size
            self._stored += size
        self._put(functools.partial(self._write, key=key, scaled=scaled, size=size), size + 512)

    def _write(self, connection: RecordConnection, key: str, scaled: ScaledPicture, size: int) -> None:
        store_picture(connection, key, scaled)
        with self._changed:
            self._unwritten = max(0, self._unwritten - size)  # a transaction that is done again counts once
