"""The trainer callback of a RewardAdapter: checks at the start, starts the workers, measures steps.

It imports transformers; :attr:`trainer_adapter.grpo.RewardAdapter.callback` imports this module when asked.
"""

from __future__ import annotations

import time
from typing import Any, Protocol

from transformers import TrainerCallback

from rewardkit import ConfigError


class Watched(Protocol):
    """What the callback needs of an adapter."""

    @property
    def names(self) -> list[str]: ...
    @property
    def weights(self) -> list[float]: ...
    @property
    def group_rewards(self) -> list[str]: ...
    @property
    def seconds(self) -> float: ...
    def start(self) -> object: ...


class RewardCallback(TrainerCallback):
    """Starts an adapter's workers when training begins, and measures what rewards cost a step.

    The workers outlive the training, for an evaluation may follow; :meth:`RewardAdapter.close` ends them.

    Attributes:
        step_s: Seconds spent in training steps so far.
        reward_s: Of these, seconds that the trainer waited for rewards.
    """

    def __init__(self, adapter: Watched) -> None:
        self._adapter = adapter
        self._began: tuple[float, float] | None = None
        self.step_s = 0.0
        self.reward_s = 0.0

    @property
    def reward_share(self) -> float | None:
        """Share of the steps' time that went to rewards, 0 to 1; ``None`` before the first step has ended."""
        return self.reward_s / self.step_s if self.step_s else None

    def on_train_begin(self, args: Any, state: Any, control: Any, **keywords: Any) -> None:
        """Refuses settings under which rewards would be wrong, and starts the workers.

        Raises:
            ConfigError: A group would be split between processes, or the trainer has not been given the weights.
        """
        _check_weights(self._adapter, args)
        _check_groups(self._adapter, args)
        self._adapter.start()

    def on_step_begin(self, args: Any, state: Any, control: Any, **keywords: Any) -> None:
        """Notes when a step begins."""
        self._began = time.monotonic(), self._adapter.seconds

    def on_step_end(self, args: Any, state: Any, control: Any, **keywords: Any) -> None:
        """Adds a step's time."""
        if self._began is not None:
            self.step_s += time.monotonic() - self._began[0]
            self.reward_s += self._adapter.seconds - self._began[1]
            self._began = None


def _check_weights(adapter: Watched, args: Any) -> None:
    """Raise where the trainer would sum with other weights than the adapter's."""
    if not hasattr(args, "reward_weights"):
        return
    given = args.reward_weights
    if given is None and any(weight != 1 for weight in adapter.weights):
        raise ConfigError(
            f"the rewards have weights {adapter.weights}, but the trainer has none; "
            "pass reward_weights=adapter.weights to its config"
        )
    # With as many weights as rewards there are no others among them, so the two lists are about the same rewards.
    if given is not None and len(given) == len(adapter.weights) and list(given) != adapter.weights:
        raise ConfigError(
            f"the trainer has reward_weights={list(given)}, but {', '.join(adapter.names)} have {adapter.weights}; "
            "pass reward_weights=adapter.weights to its config"
        )


def _check_groups(adapter: Watched, args: Any) -> None:
    """Raise where a reward needs whole groups and a process would see a part of one."""
    if not adapter.group_rewards or getattr(args, "num_generations", None) is None:
        return
    steps = getattr(args, "steps_per_generation", None) or 1
    rows = args.per_device_train_batch_size * steps
    _check_whole(
        adapter,
        rows,
        args.num_generations,
        f"per_device_train_batch_size={args.per_device_train_batch_size} times steps_per_generation={steps}",
        "num_generations",
    )
    if str(getattr(args.eval_strategy, "value", args.eval_strategy)) != "no":
        rows = args.per_device_eval_batch_size
        wanted = getattr(args, "num_generations_eval", None) or args.num_generations
        _check_whole(adapter, rows, wanted, f"per_device_eval_batch_size={rows}", "num_generations_eval")


def _check_whole(adapter: Watched, rows: int, generations: int, what: str, option: str) -> None:
    if rows % generations:
        raise ConfigError(
            f"reward {adapter.group_rewards[0]!r} scores whole groups, but a process has {rows} completions a batch "
            f"({what}), which is no multiple of {option}={generations}: a group would be split between processes"
        )
