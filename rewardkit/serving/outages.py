"""What a client of reward servers logs while none of them answers: that it waits, until when, and how it ended."""

from __future__ import annotations

import logging
import math
import threading
import time

PATIENCE_S = 3.0  # Seconds without an answer after which a log says that a client waits
_log = logging.getLogger("rewardkit.serving.remote")


class OutageLog:
    """The lines of one client about its servers: a warning for each outage, and one when it has ended.

    An outage begins when no server takes a request, and ends with the next answer. Threads share it.

    Args:
        setting: The parameter of ``RemoteRuntime`` that says how long a request is tried again.
        tries_s: Its value, in seconds.
        least_s: Seconds below which a wait is too short for a warning.
    """

    def __init__(self, setting: str, tries_s: float, least_s: float = 0.0) -> None:
        self._setting, self._is_silent = f"{setting}={tries_s:g} of RemoteRuntime", tries_s < least_s
        self._lock = threading.Lock()  # protects what follows
        self._since_s: float | None = None  # When the first request failed since the last answer
        self._covered_s = -math.inf  # Requests that began before have been spoken of
        self._is_logged = False
        self._versions: set[str] = set()  # Messages of servers with other versions

    def note_failure(
        self, reason: str, begin_s: float, next_s: float, until_s: float, *, is_final: bool = False
    ) -> None:
        """Log, once an outage, that a request is tried again.

        Args:
            reason: Which server did not answer, and how.
            begin_s: When the request was first sent, on the monotonic clock.
            next_s: When it is sent again.
            until_s: When it is given up.
            is_final: Whether waiting is of no use, as where a server has other rewards; it is logged at once.
        """
        now_s = time.monotonic()
        with self._lock:
            self._since_s = now_s if self._since_s is None else self._since_s
            is_due = next_s - max(begin_s, self._since_s) >= PATIENCE_S and begin_s > self._covered_s
            is_new = is_final and reason not in self._versions
            if self._is_silent or not (is_due or is_new):
                return
            if is_final:
                self._versions.add(reason)
            self._is_logged, self._covered_s = True, max(until_s, self._covered_s)
        left_s = max(0.0, until_s - now_s)
        clock = time.strftime("%H:%M:%S", time.localtime(time.time() + left_s))
        _log.warning("%s; it is asked again until %s, for %.0f s more (%s)", reason, clock, left_s, self._setting)

    def note_lost(self) -> None:
        """Note that a request is given up: those which begin later may wait as long, and are spoken of anew."""
        with self._lock:
            self._covered_s = min(self._covered_s, time.monotonic())

    def note_answer(self, url: str) -> None:
        """End the outage, and log how long it was where a warning began it."""
        if self._since_s is None:  # the usual case needs no lock
            return
        with self._lock:
            since_s, is_logged = self._since_s, self._is_logged
            self._since_s, self._is_logged, self._covered_s = None, False, -math.inf
        if since_s is not None and is_logged and (lasted_s := time.monotonic() - since_s) >= PATIENCE_S:
            _log.warning("%s answers, after %.0f s", url, lasted_s)
