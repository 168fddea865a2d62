"""What of a TRL run is recorded: each scored batch as the trainer lays it out, its advantages, metrics and settings.

The trainer is known from :meth:`RewardAdapter.attach`, or from the first batch, because TRL hands reward functions a
method of its own. What TRL's attributes do not say stays unknown in the record and is not guessed. A fault in here is
logged, and the training goes on without that part of its record.
"""

from __future__ import annotations

import functools
import logging
import math
import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, ParamSpec

import numpy as np
from numpy.typing import NDArray

from rewardkit import Composable, Recorder, Rollout, ScoreBatch
from rewardkit.advantages import gdpo_advantages, group_advantages, leave_one_out_advantages, weighted_rewards
from rewardkit.health import Alert, FlagTarget, LiveHealth
from trainer_adapter.run_identity import own_rank
from trainer_adapter.splitting import TrlTrainer, generations_of, is_trainer, split_of
from trainer_adapter.trainer_versions import counts_unknown_as_zero

_log = logging.getLogger("trainer_adapter")
_P = ParamSpec("_P")
Scores = Mapping[str, Sequence[float | None]]  # The scores as TRL got them, by reward
Advantages = list[float | None]


@dataclass(frozen=True, slots=True)
class AdvantageRule:
    """How a trainer makes advantages of scores, as its settings say."""

    method: str | None  # "grpo" or "rloo"; `None` for other trainers, and where not all functions are ours
    generations: int  # Completions a group
    scale: str = "group"  # GRPO's `scale_rewards`
    aggregation: str = "sum_then_normalize"  # GRPO's `multi_objective_aggregation`
    clip: tuple[float, float] | None = None  # RLOO's `reward_clip_range`
    normalize: bool = False  # RLOO's `normalize_advantages`
    processes: int = 1  # Training processes, each of which scores its own part of a batch
    unknown_is_zero: bool = False  # Whether it takes 0 for the reward of a completion without any score

    def advantages(self, scores: Scores, weights: Mapping[str, float], before: int) -> Advantages:
        """Return the advantages of one process's part of a batch; ``None`` where the other parts decide as well.

        ``before`` counts the completions of the batch that other processes scored and that stand before these.
        """
        count = len(next(iter(scores.values()), ()))
        first = min(count, -before % self.generations)
        last = first + (count - first) // self.generations * self.generations
        over_batch = self.normalize or self.scale == "batch" or self.aggregation != "sum_then_normalize"
        if self.method is None or (over_batch and (self.processes > 1 or last - first != count)):
            return [None] * count
        groups = {name: column[first:last] for name, column in scores.items()}
        advantages = self._of_groups(groups, weights)
        return [None] * first + [float(value) for value in advantages] + [None] * (count - last)

    def _of_groups(self, scores: Scores, weights: Mapping[str, float]) -> Any:
        """Return the advantages of whole groups, of scores (by reward), as the method makes them."""
        if self.method == "grpo" and self.aggregation == "normalize_then_sum":
            return gdpo_advantages(scores, weights, self.generations)
        rewards = weighted_rewards(scores, weights)
        if self.unknown_is_zero:
            rewards = np.nan_to_num(rewards)
        if self.method == "grpo":
            return group_advantages(rewards, self.generations, scale=self.scale)
        if self.clip is not None:
            rewards = np.clip(rewards, *self.clip)
        return leave_one_out_advantages(rewards, self.generations, normalize=self.normalize)


def rule_of(trainer: TrlTrainer, names: Sequence[str], split: str) -> AdvantageRule | None:
    """Return a trainer's rule for ``"train"`` or ``"eval"``; ``None`` where it does not say how large a group is."""
    args = trainer.args
    generations = generations_of(args, split)
    if not generations:
        return None
    scale = getattr(args, "scale_rewards", None)
    if scale is not None:
        method: str | None = "grpo"
    else:  # the KL divergence that RLOO takes off the rewards is known to the trainer alone
        is_rloo = hasattr(args, "normalize_advantages") and not getattr(args, "beta", 0.0)
        method = "rloo" if is_rloo else None
    clip = getattr(args, "reward_clip_range", None)
    return AdvantageRule(
        method=method if len(trainer.reward_funcs) == len(names) else None,
        generations=generations,
        scale="group" if scale in (None, True) else "none" if scale is False else str(scale),
        aggregation=getattr(args, "multi_objective_aggregation", "sum_then_normalize"),
        clip=None if clip is None else tuple(clip),
        normalize=bool(getattr(args, "normalize_advantages", False)),
        processes=trainer.accelerator.num_processes,
        unknown_is_zero=counts_unknown_as_zero(),
    )


class _Pending(NamedTuple):
    """A recorded batch whose advantages only the trainer knows."""

    step: int | None
    split: str
    scores: Scores


def _harmless(function: Callable[_P, None]) -> Callable[_P, None]:
    """Return a function whose faults are logged and end nothing."""

    @functools.wraps(function)
    def guarded(*arguments: _P.args, **keywords: _P.kwargs) -> None:
        try:
            function(*arguments, **keywords)
        except Exception:
            _log.exception("a part of this run could not be recorded; training goes on")

    return guarded


def recorder_of(
    record: str | os.PathLike[str] | Recorder, env: Mapping[str, str], on_flag: FlagTarget | None = None
) -> Recorder:
    """Return what records in a run's folder, as this process of a training.

    The values of ``env``, which is that of the rewards' workers, and the target of ``on_flag`` reach no record.
    """
    if isinstance(record, Recorder):
        return record
    hidden = on_flag.secrets if isinstance(on_flag, Alert) else {}
    return Recorder(record, rank=own_rank(), env={**env, **hidden})


class Capture:
    """Hands a recorder what happens in one training process; ``about`` is what the record says of the adapter."""

    def __init__(self, recorder: Recorder, rewards: Mapping[str, Composable], about: Mapping[str, Any]) -> None:
        self.recorder = recorder
        self._rewards = rewards
        self._shadows: frozenset[str] = frozenset()
        self._trainer_reference: Callable[[], TrlTrainer | None] = lambda: None
        self._pending: _Pending | None = None
        self._health: LiveHealth | None = None
        self.error: BaseException | None = None
        """The error that ends the training."""
        self._flagged: set[str] = set()
        self._split = "train"
        recorder.add_about(about)

    def check_health(self, every: int, on_flag: FlagTarget | None) -> None:
        """Start health checks of the record, one every ``every`` steps in the first process alone; 0 is never."""
        if every and self.recorder.rank == 0:
            self._health = LiveHealth(self.recorder, every=every, on_flag=on_flag)

    def health_metrics(self) -> list[tuple[str, float]]:
        """Return ``health/<detector>`` for each detector that has raised a flag so far; none in an evaluation."""
        if self._health is None or self._split != "train":
            return []
        now = self._health.metrics
        self._flagged.update(name for name, value in now.items() if value)
        return [(name, value) for name, value in now.items() if name in self._flagged]

    def close(self) -> None:
        """End the health checks, and write what is still to be recorded."""
        if self._health is not None:
            self._health.close()
        self.recorder.release(self.error)

    @property
    def _trainer(self) -> TrlTrainer | None:
        """The trainer; ``None`` where it is not known. Only its user keeps it, and its model, in memory."""
        return self._trainer_reference()

    @_harmless
    def attach(self, trainer: object) -> None:
        """Keep a reference to the trainer, for its layout of batches, and add its settings to the record."""
        if self._trainer is trainer or not is_trainer(trainer):
            return
        self._trainer_reference = weakref.ref(trainer)
        args: Any = trainer.args
        settings = args.to_dict() if hasattr(args, "to_dict") else vars(args)
        self.recorder.add_about({"trainer": type(trainer).__name__, "training": settings})

    def take(self, rewards: Mapping[str, Composable], shadows: frozenset[str]) -> None:
        """Go on with other rewards, of which the trainer does not see the shadows."""
        self._rewards, self._shadows = rewards, shadows

    @_harmless
    def begins(self, step: int) -> None:
        """Note that training begins after so many steps; take out of the record what a run that goes on does again."""
        if step > 0 and self.recorder.rank == 0:
            self.recorder.rewind(step)

    @_harmless
    def record(self, batch: ScoreBatch, scores: Scores, step: int | None, epoch: float | None) -> None:
        """Record a scored batch with the scores as TRL gets them, and the optimizer steps and epochs done."""
        trainer, count = self._trainer, len(batch.rollouts)
        split = "train" if trainer is None else split_of(trainer)
        self._split = split
        if self._health is not None and step is not None and split == "train":
            self._health.begins(step)
        summed = {name: column for name, column in scores.items() if name not in self._shadows}
        rule = None if trainer is None else rule_of(trainer, list(summed), split)
        before = 0 if trainer is None else count * trainer.accelerator.process_index
        advantages = [None] * count if rule is None else _advantages(rule, summed, batch.weights, before, count)
        self.recorder.record(
            batch,
            step=step,
            epoch=epoch,
            split=split,
            rewards=self._rewards,
            num_generations=None if rule is None else rule.generations,
            before=before,
            truncated=_truncation_flags(trainer, batch.rollouts),
            handed=scores,
            unseen=self._shadows,
            advantages=advantages,
        )
        self._pending = _Pending(step, split, summed) if None in advantages and rule is not None else None

    @_harmless
    def read_advantages(self) -> None:
        """Record the trainer's own advantages of the last batch, where they could not be computed."""
        pending, self._pending = self._pending, None
        trainer = self._trainer
        if pending is None or trainer is None:
            return
        advantages = _logged_advantages(trainer, pending.scores)
        if advantages is not None:
            self.recorder.advantages(pending.step, pending.split, advantages)

    @_harmless
    def log(self, step: int, logs: Mapping[str, Any]) -> None:
        """Record what the trainer logs, under its names; an entry with names of an evaluation is one."""
        if self.recorder.rank == 0:
            numbers = {name: value for name, value in logs.items() if not _is_nan(value)}  # a record holds no nan
            split = "eval" if any(name.startswith("eval_") for name in logs) else "train"
            self.recorder.metrics(step, numbers, split)


def _advantages(
    rule: AdvantageRule, scores: Scores, weights: Mapping[str, float], before: int, count: int
) -> Advantages:
    """Return the advantages, unknown where they cannot be computed; the scores are recorded all the same."""
    try:
        return rule.advantages(scores, {name: weights[name] for name in scores}, before)
    except Exception:
        _log.exception("the advantages of a batch could not be computed; it is recorded without them")
        return [None] * count  # a fault of ours must not end a training


def _truncation_flags(trainer: TrlTrainer | None, rollouts: Sequence[Rollout]) -> list[bool | None]:
    """Return which completions were cut, as TRL counts them: the last token is neither an end nor padding."""
    ends, tokenizer = getattr(trainer, "eos_token_ids", None), getattr(trainer, "_tokenizer", None)
    if ends is None or tokenizer is None:
        return [None] * len(rollouts)
    last = {*ends, tokenizer.pad_token_id}
    return [None if not rollout.completion_ids else int(rollout.completion_ids[-1]) not in last for rollout in rollouts]


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _logged_advantages(trainer: TrlTrainer, scores: Scores) -> Advantages | None:
    """Return the advantages of the batch that a trainer logged last; ``None`` where they may be those of another.

    TRL keeps the newest rows of all processes, in their order. Those of this process must have the very scores that
    TRL got.
    """
    logs, accelerator = getattr(trainer, "_logs", None), trainer.accelerator
    count = len(next(iter(scores.values())))
    total = count * accelerator.num_processes
    if logs is None or len(logs["advantages"]) < total:
        return None
    own = slice(count * accelerator.process_index, count * (accelerator.process_index + 1))
    for name, column in scores.items():
        logged = list(logs["rewards"].get(name, ()))[-total:][own]
        if not np.array_equal(_float32(logged), _float32(column), equal_nan=True):  # TRL logs float32
            return None
    return list(logs["advantages"])[-total:][own]


def _float32(scores: Sequence[float | None]) -> NDArray[np.float32]:
    return np.asarray([math.nan if score is None else score for score in scores], np.float32)
