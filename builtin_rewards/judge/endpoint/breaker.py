"""Breaker: a server that fails again and again is left alone for a while, and then asked by one request at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from builtin_rewards.judge.endpoint.retry import Sign
from builtin_rewards.judge.errors import Fault, JudgeUnavailableError

AT_LEAST = 20
"""Failures in a row that open it, or as many as there are requests in flight, if those are more: a fault comes at once
and an answer takes its time, so the first that end have failed, on any server."""
REFUSED = 5
"""Requests in a row of which the server says 401, 402 or 403 that open it: no further one would be answered."""
REFUSED_REST_S = 300.0
"""How long such a server is left alone; an account may be filled up in the middle of a run."""
_LONGEST_RESTS = 12


class Breaker:
    """Opens when all of a server's last tries have failed, and closes with the next answer.

        with breaker.attempt() as tell:
            ...
            tell(Sign.ANSWERED, "")

    While it is open every try fails at once. After its rest one try at a time goes as a probe; each that fails doubles
    the rest, up to twelve times the first.

    Args:
        name: The server, as messages call it.
        rest_s: Seconds that it is left alone at first.
        clock: Monotonic seconds.
    """

    def __init__(self, name: str, rest_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._first_rest_s = self._rest_s = rest_s
        self._clock = clock
        self._failed = self._refused = self._in_flight = 0
        self._until: float | None = None
        self._probing = False
        self._why = ""

    @property
    def is_open(self) -> bool:
        """Whether the server is left alone, or asked by a probe alone."""
        return self._until is not None

    def look(self) -> None:
        """Raise where a try would not be let through now.

        Raises:
            JudgeUnavailableError: The server is left alone; says why and for how long.
        """
        if self._until is None:
            return
        left_s = self._until - self._clock()
        if left_s > 0 or self._probing:
            when = f"it is asked again in {left_s:.1f} s" if left_s > 0 else "a probe is under way, 0.0 s are left"
            raise JudgeUnavailableError(f"{self._name} {self._why} and is left alone; {when}", Fault.BREAKER_OPEN)

    @contextmanager
    def attempt(self, counts: bool = True) -> Iterator[Callable[[Sign, str], None]]:
        """Let a try through, or raise as :meth:`look`. Gives where to say how it ended, with the server's words.

        Args:
            counts: Whether its failure counts while the breaker is closed. That of a second try at the same thing
                should not: at the end of a batch those that fail are all that is left, on any server.
        """
        self.look()
        probes = self.is_open
        self._probing = probes
        self._in_flight += 1
        try:
            yield lambda sign, words: self._hear(sign, words, probes, counts)
        finally:
            self._in_flight -= 1
            self._probing = self._probing and not probes

    def _hear(self, sign: Sign, words: str, probes: bool, counts: bool) -> None:
        if sign is Sign.ANSWERED or (sign is Sign.THROTTLED and probes):
            self._failed = self._refused = 0
            self._until, self._rest_s = None, self._first_rest_s
        elif self.is_open and not probes:
            return  # it began before the server was given up
        elif sign is Sign.REFUSED:
            self._refused += 1
            if probes or self._refused >= REFUSED:
                self._open(f"refused {self._refused} requests in a row ({words})", REFUSED_REST_S)
        elif sign is Sign.AT_FAULT and probes:
            self._rest_s = min(2 * self._rest_s, _LONGEST_RESTS * self._first_rest_s)
            self._open("failed again when it was probed", self._rest_s)
        elif sign is Sign.AT_FAULT:
            self._failed += counts
            if self._failed >= max(AT_LEAST, self._in_flight):
                self._open(f"failed {self._failed} tries in a row", self._rest_s)

    def _open(self, why: str, rest_s: float) -> None:
        self._why, self._failed = why, 0
        self._until = self._clock() + rest_s
