"""The trainer callback of a RewardAdapter: checks settings, starts the workers, measures steps, records metrics.

It imports transformers, so :attr:`trainer_adapter.grpo.RewardAdapter.callback` imports this module late.
"""

from __future__ import annotations

import functools
import time
from typing import TYPE_CHECKING, Any, Protocol

from transformers import TrainerCallback

from rewardkit import ConfigError
from trainer_adapter.splitting import check_groups
from trainer_adapter.trainer_scores import WaitingMetrics
from trainer_adapter.trainer_versions import check_trl_version

if TYPE_CHECKING:
    from transformers import TrainerControl, TrainerState, TrainingArguments

    from trainer_adapter.capture import Capture
    from trainer_adapter.updating import AdapterUpdates


class AdapterView(Protocol):
    """What the callback needs of an adapter."""

    @property
    def names(self) -> list[str]: ...
    @property
    def weights(self) -> list[float]: ...
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
    def start(self) -> object: ...


class RewardCallback(TrainerCallback):
    """The callback that starts an adapter's workers when training begins, and measures what rewards cost a step.

    The workers outlive the training, because an evaluation may follow; :meth:`RewardAdapter.close` ends them.

    Attributes:
        step_s: Seconds spent in training steps so far.
        reward_s: Of these, seconds that the trainer waited for rewards.
    """

    def __init__(self, adapter: AdapterView) -> None:
        self._adapter = adapter
        self._start: tuple[float, float] | None = None
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
        _check_weights(self._adapter, args)
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
        self._start = time.monotonic(), self._adapter.seconds

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object) -> None:
        """Add the step's time."""
        if self._start is not None:
            self.step_s += time.monotonic() - self._start[0]
            self.reward_s += self._adapter.seconds - self._start[1]
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


def _check_weights(adapter: AdapterView, args: object) -> None:
    """Raise if the trainer would sum with other weights than the adapter's."""
    weights = getattr(args, "reward_weights", adapter.weights)
    if weights is None:  # TRL then sums with weights of 1
        weights = [1.0] * len(adapter.weights)
    # Lists of equal length are about the same rewards; a longer one is also about functions from elsewhere.
    if len(weights) == len(adapter.weights) and list(weights) != adapter.weights:
        raise ConfigError(
            f"the trainer has reward_weights={list(weights)}, but {', '.join(adapter.names)} have {adapter.weights}; "
            "pass reward_weights=adapter.weights to its config"
        )
