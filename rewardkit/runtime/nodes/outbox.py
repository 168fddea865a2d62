"""A thread that does what may wait for the cluster, one thing after another, so that the pool never waits for it."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable

_log = logging.getLogger("rewardkit")


class Outbox:
    """Runs tasks in order, in a daemon thread of its own. A task handles its own errors."""

    def __init__(self, name: str) -> None:
        self._errands: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def put(self, errand: Callable[[], None]) -> None:
        """Queue a task behind those before it."""
        self._errands.put(errand)

    def stop(self, timeout_s: float) -> None:
        """Run what was put, and end; wait at most so long, because a cluster may not answer."""
        self._errands.put(None)
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def _run(self) -> None:
        while (errand := self._errands.get()) is not None:
            try:
                errand()
            except Exception:
                _log.exception("an errand to the cluster failed")
