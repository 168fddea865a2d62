"""The demo's time: how much is spent, and whether another step leaves enough for what comes after training."""

from __future__ import annotations

import time
from collections.abc import Sequence

DRAWING_S = 8.0
"""Seconds kept for ending the workers and drawing the curves."""


class Clock:
    """Time since the demo began, and how much it may take in all.

    Args:
        minutes: Minutes that the demo may take; ``None`` sets no limit.
    """

    def __init__(self, minutes: float | None) -> None:
        self.limit_s = None if minutes is None else 60 * minutes
        self._began = time.monotonic()

    @property
    def elapsed_s(self) -> float:
        """Seconds since the demo began."""
        return time.monotonic() - self._began

    def has_time(self, step_seconds: Sequence[float], evaluation_s: float) -> bool:
        """Whether another step, the evaluation after training and the drawing still fit.

        Args:
            step_seconds: Seconds of the steps so far, oldest first.
            evaluation_s: Seconds that the evaluation before training took.
        """
        return self.limit_s is None or step_fits(self.limit_s - self.elapsed_s, step_seconds, evaluation_s)


def step_fits(left_s: float, step_seconds: Sequence[float], evaluation_s: float) -> bool:
    """Whether a step as long as the longest of the last five fits into the time left, with what comes after it."""
    return max(step_seconds[-5:], default=0.0) + 1.25 * evaluation_s + DRAWING_S <= left_s
