"""Looking for what breaks a law: hypothesis generates and makes smaller, within bounds of time."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any, NamedTuple

SHRINK_S = 10.0  # Seconds spent on making what was found smaller

Unit = tuple[int, tuple[Any, ...]]  # What is scored at once: the place of a row, and one completion or a group's


class Found(NamedTuple):
    """How a law was broken."""

    law: str
    units: tuple[Unit, ...]  # what was scored when it broke
    happened: str  # what happened, in words
    trace: str | None = None  # the reward's own frames, where it raised
    slow: bool = False  # whether each try costs the reward's whole deadline; then nothing smaller is looked for

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
    """Return the smallest breach of a law that a check finds among values, or ``None``.

    The same values are tried on every run with the same modules loaded: hypothesis draws their constants too.

    Args:
        values: A hypothesis strategy.
        check: Returns what a value breaks, or ``None``. What it raises is raised.
        max_examples: Values to try.
    """
    import hypothesis

    best: list[Found] = []
    errors: list[Exception] = []
    until = 0.0

    @hypothesis.settings(
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
    @hypothesis.given(values)
    def try_value(value: object) -> None:
        """Note a breach, and raise _Broken so that hypothesis looks for a smaller one of its law, or _Enough to end."""
        nonlocal until
        try:
            breach = check(value)
        except Exception as error:
            errors.append(error)
            raise _Enough from error
        if breach is None or (best and breach.law != best[-1].law):
            return
        until = until or time.monotonic() + SHRINK_S
        if not best or breach.size <= best[-1].size:
            best.append(breach)
        raise _Enough if breach.slow or time.monotonic() > until else _Broken

    # Flaky: it broke a law once and not again; once is enough
    with contextlib.suppress(_Broken, _Enough, hypothesis.errors.Flaky):
        try_value()
    if errors:
        raise errors[0]
    return best[-1] if best else None
