"""Looking for what breaks a law: hypothesis generates and makes smaller, within bounds of time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

SHRINK_S = 10.0
"""Seconds spent on making what was found smaller."""

Unit = tuple[int, tuple[Any, ...]]
"""What is scored at once: the place of a row, and one completion or a group's."""


class Found(NamedTuple):
    """How a law was broken.

    Attributes:
        law: The law.
        units: What was scored when it broke.
        happened: What happened, in words.
        trace: The reward's own frames, where it raised.
        slow: Whether each try costs the reward's whole deadline, so that none smaller is looked for.
    """

    law: str
    units: tuple[Unit, ...]
    happened: str
    trace: str | None = None
    slow: bool = False

    @property
    def size(self) -> int:
        """Characters and completions, to tell the smaller of two."""
        return sum(1 + len(str(text)) for _, texts in self.units for text in texts)


Check = Callable[[Any], Found | None]


class _Broken(Exception):
    """A law broke; hypothesis looks for something smaller."""


class _Enough(BaseException):
    """The search is over; passes through hypothesis, which takes other errors for findings."""


def search(values: Any, check: Check, max_examples: int) -> Found | None:
    """Return the smallest way found in which a check breaks a law, or ``None``.

    The same values are tried on every run.

    Args:
        values: A hypothesis strategy.
        check: Gives what a value breaks, or ``None``. What it raises is raised.
        max_examples: Values to try.
    """
    import hypothesis

    found = _Smallest(check)
    settings = hypothesis.settings(
        max_examples=max_examples,
        deadline=None,
        database=None,
        derandomize=True,
        report_multiple_bugs=False,
        print_blob=False,
        verbosity=hypothesis.Verbosity.quiet,
        phases=(hypothesis.Phase.generate, hypothesis.Phase.shrink),
        suppress_health_check=list(hypothesis.HealthCheck),
    )

    @settings
    @hypothesis.given(values)
    def tried(value: Any) -> None:
        found.take(value)

    try:
        tried()
    except (_Broken, _Enough):
        pass
    except hypothesis.errors.Flaky:  # it broke a law once and not again; once is enough
        pass
    if found.error is not None:
        raise found.error
    return found.best


class _Smallest:
    """Keeps the smallest finding."""

    def __init__(self, check: Check) -> None:
        self._check = check
        self._until = 0.0
        self.best: Found | None = None
        self.error: Exception | None = None

    def take(self, value: Any) -> None:
        """Checks a value; raises what tells hypothesis to go on or to stop."""
        try:
            found = self._check(value)
        except Exception as error:
            self.error = error
            raise _Enough from error
        if found is None or (self.best is not None and found.law != self.best.law):
            return
        if self.best is None:
            self._until = time.monotonic() + SHRINK_S
        if self.best is None or found.size <= self.best.size:
            self.best = found
        if found.slow or time.monotonic() > self._until:
            raise _Enough
        raise _Broken


def shortest_beginning(text: str, check: Check) -> Found | None:
    """Return what a beginning of a text breaks, a short one by halving; ``None`` where only the whole breaks it."""
    best: Found | None = None
    low, high = 0, len(text)
    until = time.monotonic() + SHRINK_S
    while low < high and time.monotonic() < until:
        middle = (low + high) // 2
        found = check(text[:middle])
        if found is None:
            low = middle + 1
        else:
            best, high = found, middle
    return best
