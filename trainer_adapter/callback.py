"""The trainer callback of a RewardAdapter: checks settings, starts the workers, measures steps, records metrics.

It imports transformers, so :attr:`trainer_adapter.grpo.RewardAdapter.callback` imports this module late.
"""

from __future__ import annotations

import functools
import sys
import time
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from transformers import TrainerCallback

from trainer_adapter.splitting import check_groups
from trainer_adapter.trainer_scores import WaitingMetrics
from trainer_adapter.trainer_versions import check_trl_version

if TYPE_CHECKING:
    from types import FrameType

    from transformers import TrainerControl, TrainerState, TrainingArguments

    from trainer_adapter.capture import Capture
    from trainer_adapter.updating import AdapterUpdates


class AdapterView(Protocol):
    """What the callback needs of an adapter."""

    @property
    def names(self) -> list[str]: ...
    @property
    def group_rewards(self) -> list[str]: ...
    @property
    def seconds(self) -> float: ...
    @property
    def waiting_metrics(self) -> WaitingMetrics: ...
    @property
    def capture(self) -> Capture | None: ...
    @property
    def updates(self) -> AdapterUpdates | None: ...
    def check_handover(self, args: object, trainer: object) -> None: ...
    def start(self) -> object: ...


class _Start(NamedTuple):
    """When a step began, and the seconds that the trainer had waited for rewards by then."""

    at: float
    waited_s: float


class RewardCallback(TrainerCallback):
    """The callback that starts an adapter's workers when training begins, and measures what rewards cost a step.

    The workers outlive the training, because an evaluation may follow; :meth:`RewardAdapter.close` ends them.

    Attributes:
        step_s: Seconds spent in training steps so far.
        reward_s: Of these, seconds that the trainer waited for rewards.
    """

    def __init__(self, adapter: AdapterView) -> None:
        self._adapter = adapter
        self._start: _Start | None = None
        self.step_s = 0.0
        self.reward_s = 0.0

    @property
    def reward_share(self) -> float | None:
        """Share of the steps' time that went to rewards, 0 to 1; ``None`` before the end of the first step."""
        return self.reward_s / self.step_s if self.step_s else None

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Refuse settings under which rewards would be wrong, start the workers, and roll a record back to a step."""
        if self._adapter.updates is not None:
            self._adapter.updates.put_back(args)
        self._adapter.check_handover(args, self._trainer())
        check_groups(self._adapter.group_rewards, args)
        check_trl_version()
        self._adapter.start()
        if self._adapter.capture is not None:
            self._adapter.capture.begins(getattr(state, "global_step", 0))
        if self._adapter.updates is not None:
            check = functools.partial(check_groups, args=args)
            self._adapter.updates.begin_training(args, getattr(state, "global_step", 0), check)

    def on_step_begin(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object) -> None:
        """Note when a step begins."""
        self._start = _Start(time.monotonic(), self._adapter.seconds)

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object) -> None:
        """Add the step's time."""
        if self._start is not None:
            self.step_s += time.monotonic() - self._start.at
            self.reward_s += self._adapter.seconds - self._start.waited_s
            self._start = None
        self._end_batch("train")
        if self._adapter.updates is not None:  # before an evaluation, which is of the next step
            self._adapter.updates.begin(getattr(state, "global_step", None))

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object) -> None:
        """Stop taking changes of the rewards."""
        if self._adapter.updates is not None:
            self._adapter.updates.end()

    def on_substep_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Record what the trainer made of a batch that an accumulated step scored."""
        self._end_batch("train")

    def on_prediction_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Record what the trainer made of a batch of an evaluation."""
        self._end_batch("eval")

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **_: object,
    ) -> None:
        """Add what no ``log_metric`` took to the trainer's metrics, and record all of them."""
        if not logs:
            return
        split = "eval" if any(name.startswith("eval_") for name in logs) else "train"
        added = self._adapter.waiting_metrics.take(split)
        logs.update(added)
        history = getattr(state, "log_history", None)
        if added and history:
            history[-1].update(added)
        if self._adapter.capture is not None:
            self._adapter.capture.log(state.global_step, logs)

    def _end_batch(self, split: str) -> None:
        self._adapter.waiting_metrics.belong_to(split)
        if self._adapter.capture is not None:
            self._adapter.capture.read_advantages()

    def _trainer(self) -> object:
        """Return the trainer that calls this callback; transformers hands over all but the trainer itself."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            candidate = frame.f_locals.get("self")
            if self in getattr(getattr(candidate, "callback_handler", None), "callbacks", ()):
                return candidate
            frame = frame.f_back
        return None
