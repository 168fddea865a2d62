"""Rewards as TRL's GRPOTrainer and RLOOTrainer call them.

TRL calls reward functions one after another, each with the whole batch. :class:`RewardAdapter` hands it one
callable for each reward. The first one called scores all rewards on the batch at once, in the runtime's workers, and
the others answer from that result. So a step costs the slowest reward, not the sum.

This module decides which scores TRL sees, which metrics are logged and what stops training;
:mod:`trainer_adapter.capture` decides what is recorded.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypedDict, Unpack, get_args

from rewardkit import (
    Cause,
    ConfigError,
    RewardDefinitionError,
    RewardError,
    RewardFunctionsConfig,
    Runtime,
    ScoreBatch,
    Status,
)
from trainer_adapter.columns import FrozenBatch
from trainer_adapter.models import needing_extra

if TYPE_CHECKING:
    from rewardkit import Recorder
    from rewardkit.health import OnFlag
    from trainer_adapter.callback import RewardCallback
    from trainer_adapter.capture import Capture
    from trainer_adapter.updating import AdapterUpdates

MAX_SCORE = 1e16
"""The largest score or weighted sum handed to TRL. It computes in float32 (at most 3.4e38) and squares scores for a
group's spread. A larger score would silently void the group, or destroy the model's weights."""
Scores: TypeAlias = list[float | None]
Partial: TypeAlias = Literal["leave_out", "sum"]
"""What becomes of a rollout that has scores from some rewards and none from another.

``"leave_out"``: A rollout is left out if a reward with weight failed and has no default, or if no reward with weight
scored it. A reward that skipped it adds nothing. ``"sum"``: A missing score adds nothing, whatever the reason. This is
TRL's own rule.
"""


class BatchTiming(NamedTuple):
    """How long one scored batch kept the trainer waiting.

    Attributes:
        step: Optimizer steps done; ``None`` if the trainer does not say.
        rows: Completions in the batch.
        wall_s: Seconds that the trainer waited for the batch's rewards.
    """

    step: int | None
    rows: int
    wall_s: float


class RuntimeOptions(TypedDict, total=False):
    """The options that an adapter passes on to :class:`rewardkit.Runtime`."""

    workers: int | None
    lane: str
    memory_bytes: int | None
    load_timeout_s: float
    cache_entries: int
    max_infrastructure_rate: float
    on_failure: str


class RewardAdapter:
    """Rewards for TRL, scored all at once in isolated workers.

    ::

        adapter = RewardAdapter([correct, exact], weights=[0.8, 0.2], workers=2)
        trainer = GRPOTrainer(
            model,
            reward_funcs=adapter.reward_funcs,
            args=GRPOConfig(reward_weights=adapter.weights),
            callbacks=[adapter.callback],
        )
        trainer.train()
        adapter.close()

    The adapter recognises a step's calls by their content: prompts, completions, token ids, columns, step and epoch.
    It scores a call anew if any of these differs.

    Args:
        rewards: Rewards in any form that :class:`rewardkit.Runtime` takes.
        weights: Each reward's weight in TRL's sum; the default is Runtime's. Pass :attr:`weights` to TRL's config.
        partial: ``"leave_out"`` or ``"sum"``, see :data:`Partial`.
        record: A run's folder, such as ``"runs/one"``, or a :class:`rewardkit.Recorder`: every scored batch is recorded
            in it, with TRL's metrics and advantages.
        health_every: Steps from one look of the health checks at the record to the next; 0 for no checks.
        on_flag: Called with each flag that they raise, a :class:`rewardkit.health.Flag`, in a thread of theirs.
        options: The other options of :class:`rewardkit.Runtime`.

    Raises:
        RewardDefinitionError: Two rewards have one name, weights do not match, or an option's value is wrong.
        RewardLoadError: A reference names nothing.
        RewardTransportError: A reward cannot travel to a worker process.
        RecordError: ``record`` names a run that has a record, or a place that cannot be written.
    """

    def __init__(
        self,
        rewards: Any,
        *,
        weights: Sequence[float] | Mapping[str, float] | None = None,
        partial: Partial = "leave_out",
        record: str | os.PathLike[str] | Recorder | None = None,
        health_every: int = 10,
        on_flag: OnFlag | None = None,
        **options: Unpack[RuntimeOptions],
    ) -> None:
        if partial not in get_args(Partial):
            raise RewardDefinitionError(f"partial={partial!r}: expected 'leave_out' or 'sum'")
        if isinstance(health_every, bool) or not isinstance(health_every, int) or health_every < 0:
            raise RewardDefinitionError(f"health_every={health_every!r}: expected a number of steps, or 0")
        self._partial = partial
        self._health = health_every, on_flag
        self._env = rewards.runtime.env if isinstance(rewards, RewardFunctionsConfig) else {}
        self.runtime = Runtime(rewards, weights=weights, **options)
        self.check_weights(self.runtime.weights)
        self._functions = {name: self._function(name) for name in self.runtime.names}
        self._shadows: frozenset[str] = frozenset()
        self._timings: deque[BatchTiming] = deque(maxlen=100_000)
        self._seconds = 0.0
        # The digest of the last scored batch, and its scores that TRL has not asked for yet.
        self._waiting: tuple[bytes, dict[str, Scores]] = b"", {}
        # Two trainer threads may call at once: one scores, the other waits and takes its scores from the result.
        self._lock = threading.Lock()
        self.capture: Capture | None = None
        """What hands this process's batches to a recorder; ``None`` where nothing is recorded."""
        self.updates: AdapterUpdates | None = None
        """What changes the rewards while they are used; ``None`` where nothing is recorded."""
        if record is not None:
            self.record_in(record)

    if not TYPE_CHECKING:  # a type checker would take every attribute to be there

        def __getattr__(self, name: str) -> Any:
            """Raise an error that says what to write, if TRL takes the adapter itself for a reward function."""
            if name in ("__call__", "__name__"):
                raise AttributeError(
                    "a RewardAdapter is no reward function; pass its functions to the trainer: "
                    "reward_funcs=adapter.reward_funcs"
                )
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    @property
    def reward_funcs(self) -> list[Any]:  # TRL wants a list of a union, and lists are invariant
        """A function for each reward, for TRL's ``reward_funcs``, in a new list that TRL may change."""
        return [function for name, function in self._functions.items() if name not in self._shadows]

    @property
    def weights(self) -> list[float]:
        """The weights for TRL's ``reward_weights``, in the order of :attr:`reward_funcs`."""
        return [self.runtime.weights[name] for name in self.names]

    @property
    def names(self) -> list[str]:
        """The rewards' names, in the order of :attr:`reward_funcs`; without those that only shadow another one."""
        return [name for name in self.runtime.names if name not in self._shadows]

    @property
    def group_rewards(self) -> list[str]:
        """Names of the rewards that score whole groups, or have a part that does."""
        rewards = self.runtime.rewards.items()
        return [name for name, reward in rewards if any(leaf.spec.kind == "group" for leaf in reward.leaves)]

    @property
    def timings(self) -> list[BatchTiming]:
        """An entry for each of the last 100,000 scored batches, oldest first."""
        return list(self._timings)

    @property
    def seconds(self) -> float:
        """Seconds that the trainer has waited for rewards so far."""
        return self._seconds

    @cached_property
    def callback(self) -> RewardCallback:
        """The ``transformers.TrainerCallback`` for TRL's ``callbacks``; the first access imports transformers."""
        with needing_extra():
            from trainer_adapter.callback import RewardCallback

        return RewardCallback(self)

    def start(self) -> RewardAdapter:
        """Start the workers without waiting for them, and return the adapter."""
        self.runtime.start()
        return self

    def attach(self, trainer: Any) -> RewardAdapter:
        """Add :attr:`callback` to a trainer that lacks it, and know the trainer from now on; return the adapter.

        Then weights can change, and rewards come and go, while it trains. Without it the adapter knows the trainer from
        the first batch on, and changes none of its lists.

        Raises:
            ConfigError: It is no trainer of TRL's.
        """
        callback = self.callback
        if not (hasattr(trainer, "reward_funcs") and hasattr(trainer, "callback_handler")):
            raise ConfigError(f"attach({trainer!r}): expected a GRPOTrainer or RLOOTrainer")
        if callback not in trainer.callback_handler.callbacks:
            trainer.add_callback(callback)
        if self.capture is not None:
            self.capture.attach(trainer)
        if self.updates is not None:
            self.updates.attach(trainer)
        return self

    def record_in(self, record: str | os.PathLike[str] | Recorder) -> None:
        """Record every batch that is scored from now on; :meth:`close` closes the recorder.

        Raises:
            RecordError: The run has a record, or the place cannot be written.
        """
        from trainer_adapter.capture import Capture, recorder_of  # it brings numpy along

        about = {"rewards": self.runtime.weights, "partial": self._partial}
        self.capture = Capture(recorder_of(record, self._env), self.runtime.rewards, about)
        self.capture.check_health(*self._health)
        from trainer_adapter.updating import AdapterUpdates

        self.updates = AdapterUpdates(self, self.capture.recorder.path)

    def check_weights(self, weights: Mapping[str, float]) -> None:
        """Raise :class:`~rewardkit.RewardDefinitionError` for a weight that is too large for TRL's arithmetic."""
        for name, weight in weights.items():
            if abs(weight) > MAX_SCORE:
                raise RewardDefinitionError(f"weight of {name!r} is {weight!r}: expected at most {MAX_SCORE:g}")

    def take(self, runtime: Runtime, shadows: frozenset[str]) -> None:
        """Score with another runtime from now on; the one before is left to the caller.

        Args:
            runtime: What scores.
            shadows: Names of its rewards that the trainer does not see.
        """
        self._functions = {name: self._functions.get(name) or self._function(name) for name in runtime.names}
        self.runtime, self._shadows, self._waiting = runtime, shadows, (b"", {})
        if self.capture is not None:
            self.capture.take(runtime.rewards, shadows)

    def close(self) -> None:
        """End the workers, and write what is still to be recorded. A second call does nothing."""
        if self.updates is not None:
            self.updates.end()
        self.runtime.close()
        if self.capture is not None:
            self.capture.close()

    def __enter__(self) -> RewardAdapter:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.close()

    def _function(self, name: str) -> Callable[..., Scores]:
        """Return one reward in the form that TRL calls."""

        def function(
            *,
            prompts: Sequence[Any],
            completions: Sequence[Any],
            completion_ids: Sequence[Any] | None = None,
            **keywords: Any,
        ) -> Scores:
            """Return this reward's score of each completion; TRL leaves ``None`` out of the sum."""
            with self._lock:
                began = time.monotonic()
                try:
                    batch = FrozenBatch(prompts, completions, completion_ids, keywords)
                    return self._answer(name, batch, keywords.get("log_metric"), began)
                finally:
                    self._seconds += time.monotonic() - began

        function.__name__ = function.__qualname__ = name
        return function

    def _answer(self, name: str, batch: FrozenBatch, log_metric: object, began: float) -> Scores:
        """Return one reward's scores of a batch, and score the batch first if that is not done yet."""
        digest, waiting = self._waiting
        if digest != batch.digest or name not in waiting:
            self._waiting = b"", {}
            if self.updates is not None:
                self.updates.begin(batch.step)
            scored = self.runtime.score(batch.rollouts(), step=batch.step, epoch=batch.epoch)
            waiting = self._scores(scored, batch.step)
            if self.capture is not None:
                self.capture.attach(getattr(log_metric, "__self__", None))  # TRL's is a method of its trainer
                self.capture.record(scored, dict(waiting), batch.step, batch.epoch)
            if callable(log_metric):
                health = [] if self.capture is None else self.capture.health_metrics()
                for metric, value in (*_metrics(scored), *health):
                    log_metric(metric, value)
            self._timings.append(BatchTiming(batch.step, len(batch), 0.0))
            self._waiting = batch.digest, waiting
        scores = waiting.pop(name)
        newest = self._timings.pop()
        self._timings.append(newest._replace(wall_s=newest.wall_s + time.monotonic() - began))
        return scores

    def _scores(self, batch: ScoreBatch, step: int | None) -> dict[str, Scores]:
        """Return the scores for TRL, by reward."""
        _check_size(batch, step)
        scores = batch.scores
        if self._partial == "sum":
            return scores
        counting = [column for name, column in batch.items() if batch.weights[name] != 0]
        for row in range(len(batch.rollouts)):
            parts = [column[row] for column in counting]
            failed = any(part.status is Status.FAILED and part.score is None for part in parts)
            if failed or (parts and all(part.score is None for part in parts)):
                for column in scores.values():
                    column[row] = None
        return scores


def _metrics(batch: ScoreBatch) -> Iterator[tuple[str, float]]:
    """Yield the metrics for TRL's logs, each a name and a finite number."""
    for name, outcomes in batch.items():
        if not outcomes:
            continue
        causes = [outcome.cause for outcome in outcomes if outcome.status is Status.FAILED]
        timeouts = causes.count(Cause.TIMEOUT)
        skipped = sum(outcome.status is Status.SKIPPED for outcome in outcomes)
        seconds = sorted(outcome.duration_s for outcome in outcomes if not outcome.cached) or [0.0]
        yield f"reward_time/{name}/p95", seconds[math.ceil(0.95 * len(seconds)) - 1]  # by nearest rank
        yield f"reward_errors/{name}", (len(causes) - timeouts) / len(outcomes)
        yield f"reward_timeouts/{name}", timeouts / len(outcomes)
        yield f"reward_skipped/{name}", skipped / len(outcomes)
        yield f"reward_infrastructure/{name}", causes.count(Cause.INFRASTRUCTURE) / len(outcomes)
        own: defaultdict[str, list[float]] = defaultdict(list)
        for outcome in outcomes:
            for metric, value in outcome.metrics.items():
                own[metric].append(value)
        yield from ((f"reward_metrics/{name}/{metric}", fmean(values)) for metric, values in own.items())


def _check_size(batch: ScoreBatch, step: int | None) -> None:
    """Raise if a score, or a rollout's weighted sum, is too large for TRL's arithmetic."""
    where = "" if step is None else f" at step {step}"
    for row in range(len(batch.rollouts)):
        total = 0.0
        for name, column in batch.items():
            score = column[row].score or 0.0
            if abs(score) > MAX_SCORE:
                raise RewardError(
                    f"reward {name!r} gave {score:g}{where} on row {row}; the trainer computes in float32 and can take "
                    f"at most {MAX_SCORE:g}: scale it down, or declare @reward(score_range=...)"
                )
            total += abs(batch.weights[name] * score)
        if total > MAX_SCORE:
            raise RewardError(
                f"the weighted rewards{where} on row {row} add up to {total:g}; the trainer computes in float32 and "
                f"can take at most {MAX_SCORE:g}: give smaller weights"
            )
