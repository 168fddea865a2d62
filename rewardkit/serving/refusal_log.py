"""The log's lines about what clients did wrong: the first of a kind at once, and the others as a number."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Hashable
from dataclasses import dataclass

LOG_EVERY_S = 10.0  # Seconds between two lines of one topic

_log = logging.getLogger("rewardkit.serving")


@dataclass(slots=True)
class _Pause:
    """The time after a line of a topic, in which further messages are counted."""

    until: float  # Of the monotonic clock
    timer: asyncio.TimerHandle
    count: int = 0
    last: str = ""

    def tell(self) -> None:
        """Log how many messages were counted, with the last of them, if there were any."""
        self.timer.cancel()
        if self.count:
            _log.warning("%s more like it, the last: %s", f"{self.count:,}", self.last)


class RefusalLog:
    """Warnings by topic, in an event loop: one line of each topic at once, and what follows it as a number.

    Args:
        every_s: Seconds after a line in which further warnings of its topic are counted; then a line has their number
            and the last of them.
    """

    def __init__(self, every_s: float = LOG_EVERY_S) -> None:
        self._every_s = every_s
        self._pauses: dict[Hashable, _Pause] = {}

    def warn(self, topic: Hashable, message: str) -> None:
        """Log a message, or count it where the topic had a line less than ``every_s`` seconds ago."""
        pause = self._pauses.get(topic)
        if pause is not None and time.monotonic() < pause.until:
            pause.count += 1
            pause.last = message
            return
        if pause is not None:  # its timer was late, or its event loop ended
            pause.tell()
        _log.warning("%s", message)
        self._begin_pause(topic)

    def flush(self) -> None:
        """Log what was counted and not told, as when the server ends."""
        for topic in list(self._pauses):
            self._pauses.pop(topic).tell()

    def _begin_pause(self, topic: Hashable) -> None:
        timer = asyncio.get_running_loop().call_later(self._every_s, self._end_pause, topic)
        self._pauses[topic] = _Pause(time.monotonic() + self._every_s, timer)

    def _end_pause(self, topic: Hashable) -> None:
        pause = self._pauses.pop(topic)
        pause.tell()
        if pause.count:
            self._begin_pause(topic)
