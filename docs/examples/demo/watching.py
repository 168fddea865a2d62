"""What follows the demo's training: a line for each step, and its end before the time is over."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import report
from rich.console import Console
from transformers import TrainerCallback

from trainer_adapter import RewardAdapter

DRAWING_S = 8.0
"""Seconds kept for ending the workers and drawing the curves."""


def step_fits(left_s: float, step_seconds: Sequence[float], evaluation_s: float) -> bool:
    """Whether a step as long as the longest of the last five fits into the time left, with what comes after it."""
    return max(step_seconds[-5:], default=0.0) + 1.25 * evaluation_s + DRAWING_S <= left_s


class Watching(TrainerCallback):
    """A transformers callback that prints a line for each step, and ends the training in time.

    Args:
        console: Where the lines go.
        adapter: The rewards.
        began: When the demo began, in seconds of ``time.monotonic``.
        limit_s: Seconds that the demo may take; ``None`` sets no limit.
        evaluation_s: Seconds to keep for the evaluation after training.

    Attributes:
        steps: The steps so far.
    """

    def __init__(
        self, console: Console, adapter: RewardAdapter, began: float, limit_s: float | None, evaluation_s: float
    ) -> None:
        self._console, self._adapter = console, adapter
        self._began, self._limit_s, self._evaluation_s = began, limit_s, evaluation_s
        self._step_began = self._seconds = 0.0
        self.steps: list[report.Step] = []

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        self._console.print(f"[bold]{report.HEADER}[/]")

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        self._step_began = time.monotonic()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self._seconds = time.monotonic() - self._step_began

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any], **_: Any) -> None:
        if "reward" not in logs:
            return
        self.steps.append(report.Step(dict(logs), self._seconds, self._adapter.timings[-1]))
        elapsed_s = time.monotonic() - self._began
        self._console.print(report.line(state.global_step, self.steps[-1], elapsed_s), highlight=False)
        seconds = [step.seconds for step in self.steps]
        if self._limit_s is not None and not step_fits(self._limit_s - elapsed_s, seconds, self._evaluation_s):
            control.should_training_stop = True
