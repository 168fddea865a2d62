"""Rewards as TRL's GRPOTrainer and RLOOTrainer call them.

TRL calls reward functions one after another, each with the whole batch. :class:`RewardAdapter` hands it one
callable for each reward. The first one called scores all rewards on the batch at once, in the runtime's workers, and
the others answer from that result. So a step costs the slowest reward, not the sum.

This module decides when a batch is scored and what pickles; :mod:`trainer_adapter.trainer_scores` what TRL gets of it,
:mod:`trainer_adapter.ranks` which process scores which row, :mod:`trainer_adapter.capture` what is recorded.
"""

from __future__ import annotations

import os
import pickle
import socket
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack, get_args

from rewardkit import (
    ConfigError,
    RewardDefinitionError,
    RewardFunctionsConfig,
    Rollout,
    ScoreBatch,
    Scorer,
)
from rewardkit.serving import scorer_of
from sandbox import default_workers
from trainer_adapter import trainer_scores
from trainer_adapter.columns import FrozenBatch
from trainer_adapter.credit import BatchTurns, batch_turns, tell_of_one_number
from trainer_adapter.early import EarlyScores
from trainer_adapter.environment_values import EnvironmentColumns, check_workspaces, take_over
from trainer_adapter.functions import AdaptedFunction, Copies, Scorings
from trainer_adapter.handover import RuntimeOptions, check_handover, check_health_settings, check_listed_weights
from trainer_adapter.models import needing_extra
from trainer_adapter.overlapped_rollout import OverlappedRollout
from trainer_adapter.ranks import RankCall, Ranks, check_same_rewards, owners, score_together
from trainer_adapter.splitting import TrlTrainer, check_groups, generations_of, is_trainer, split_of
from trainer_adapter.trainer_scores import MAX_SCORE, Partial, Scores, WaitingMetrics

if TYPE_CHECKING:
    from rewardkit import Recorder
    from rewardkit.health import FlagTarget
    from trainer_adapter.callback import RewardCallback
    from trainer_adapter.capture import Capture
    from trainer_adapter.updating import AdapterUpdates

_ASYNC_GRPO = "trl.experimental.async_grpo.async_rollout_worker"


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


class _Packed(NamedTuple):
    """The pickle of an adapter, and what was packed; without a runtime where the adapter came from the pickle."""

    runtime: Scorer | None
    weights: Mapping[str, float]
    settings: bytes


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

    With several processes a group whose rows are split between them is scored by the one that has its first row, and
    an error of one is raised in all. The adapter and its functions pickle as their settings: where they are unpickled,
    the first call makes a runtime, and nothing is recorded.

    Args:
        rewards: Rewards in any form that :class:`rewardkit.Runtime` takes, the address of a server that scores, such as
            ``"http://rewards:8000"``, or a :class:`rewardkit.serving.RemoteRuntime`.
        weights: Each reward's weight in TRL's sum; the default is Runtime's. Pass :attr:`weights` to TRL's config.
        partial: ``"leave_out"`` or ``"sum"``, see :data:`Partial`.
        record: A run's folder, such as ``"runs/one"``, or a :class:`rewardkit.Recorder`: every scored batch is recorded
            in it, with TRL's metrics and advantages.
        health_every: Steps from one look of the health checks at the record to the next; 0 for no checks.
        on_flag: What is told of each flag that they raise, once in a run: a URL, a command, or an object of
            :class:`rewardkit.health.Alert`; or a function of a :class:`rewardkit.health.Flag`, in a thread of theirs.
        options: The other options of :class:`rewardkit.Runtime`. ``workers`` is by default this process's share of the
            cores, of more than 4 the half, 4 to 16.

    Raises:
        RewardDefinitionError: Two rewards have one name, weights do not match, or an option's value is wrong.
        RewardLoadError: A reference names nothing.
        RewardTransportError: A reward cannot travel to a worker process.
        ConfigError: ``on_flag`` is no function, address or command.
        RecordError: ``record`` names a run that has a record, or a place that cannot be written.
    """

    _runtime: Scorer | None
    _health: tuple[int, FlagTarget | None]
    _env: Mapping[str, str]

    def __init__(
        self,
        rewards: object,
        *,
        weights: Sequence[float] | Mapping[str, float] | None = None,
        partial: Partial = "leave_out",
        record: str | os.PathLike[str] | Recorder | None = None,
        health_every: int = 10,
        on_flag: FlagTarget | None = None,
        **options: Unpack[RuntimeOptions],
    ) -> None:
        if partial not in get_args(Partial):
            raise RewardDefinitionError(f"partial={partial!r}: expected 'leave_out' or 'sum'")
        self._prepare(partial)
        self._health = check_health_settings(health_every, on_flag)
        if isinstance(rewards, RewardFunctionsConfig):
            self._env = rewards.runtime.env
        if options.get("workers") is None:
            options.pop("workers", None)
        defaults = {"workers": default_workers(among_ranks=True)}  # a rank has its share of the host
        self._runtime = scorer_of(rewards, weights=weights, defaults=defaults, **options)
        self.check_weights(self.runtime.weights)
        if record is not None:
            self.record_in(record)

    def _prepare(self, partial: Partial) -> None:
        """Set up what every adapter has, also one that is made of a pickle."""
        self._partial = partial
        self._runtime = None
        self._packed: _Packed | None = None
        self._is_copy = False
        self._health = 0, None
        self._env = {}
        self._shadows: frozenset[str] = frozenset()
        self._functions: dict[str, AdaptedFunction] = {}
        self._timings: deque[BatchTiming] = deque(maxlen=100_000)
        self._seconds = 0.0
        self._scorings = Scorings()
        self._environments = EnvironmentColumns()
        self._early = EarlyScores()
        self.waiting_metrics = WaitingMetrics()
        """Metrics for the trainer's next log, which :attr:`callback` adds where TRL gives functions no way to."""
        self.turns: BatchTurns = {}
        """What each turn of the batch that was scored last earned, by rewards with ``credit``, on this process."""
        self._trainer: Callable[[], TrlTrainer | None] = lambda: None
        self._ranks = Ranks()
        # Two trainer threads may call at once: one scores, the other waits and takes its scores from the result.
        self._lock = threading.Lock()
        self._making = threading.Lock()
        self.capture: Capture | None = None
        """What hands this process's batches to a recorder; ``None`` where nothing is recorded."""
        self.updates: AdapterUpdates | None = None
        """What changes the rewards while they are used; ``None`` where nothing is recorded."""

    if not TYPE_CHECKING:  # a type checker would take every attribute to be there

        def __getattr__(self, name: str) -> Any:
            """Raise an error that says what to write, if TRL takes the adapter itself for a reward function."""
            if name in ("__call__", "__name__"):
                raise AttributeError(
                    "a RewardAdapter is not a reward function; pass its functions to the trainer: "
                    "reward_funcs=adapter.reward_funcs"
                )
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    @property
    def runtime(self) -> Scorer:
        """What scores; in a process that unpickled the adapter it is made when it is first asked for."""
        with self._making:
            if self._runtime is None:
                assert self._packed is not None
                _partial, content = pickle.loads(self._packed.settings)  # noqa: S301 - this process unpickled them
                runtime: Scorer = pickle.loads(content)  # noqa: S301 - the same
                self._runtime = runtime
                self._packed = _Packed(runtime, dict(runtime.weights), self._packed.settings)
            return self._runtime

    @runtime.setter
    def runtime(self, runtime: Scorer) -> None:
        self._runtime = runtime

    @property
    def reward_funcs(self) -> list[Any]:  # TRL wants a list of a union, and lists are invariant
        """A function for each reward, for TRL's ``reward_funcs``, in a new list that TRL may change."""
        return [self._functions.setdefault(name, AdaptedFunction(self, name)) for name in self.names]

    @property
    def total_func(self) -> Any:
        """One function for the weighted total, for trainers that add up rewards without weights.

        It gives ``None`` for a completion that ``partial`` leaves out.
        """
        return AdaptedFunction(self, None)

    @property
    def weights(self) -> list[float]:
        """The weights for TRL's ``reward_weights``, in the order of :attr:`reward_funcs`."""
        return [self.runtime.weights[name] for name in self.names]

    @property
    def names(self) -> list[str]:
        """The rewards' names, in the order of :attr:`reward_funcs`; without those that only shadow another one."""
        return [name for name in self.runtime.rewards if name not in self._shadows]

    @property
    def ranks(self) -> Ranks:
        """The processes of the training, once the trainer is known."""
        return self._ranks

    @property
    def group_rewards(self) -> list[str]:
        """Names of the rewards that score whole groups, or have a part that does."""
        return [name for name, reward in self.runtime.rewards.items() if reward.scores_groups]

    def gives_credit(self, reward: str) -> bool:
        """Return whether a reward gives each turn of a completion a number."""
        return reward in self.runtime.rewards and self.runtime.rewards[reward].credit is not None

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

    def attach(self, trainer: object) -> RewardAdapter:
        """Add :attr:`callback` to a trainer that lacks it, and know the trainer from now on; return the adapter.

        Then weights can change, and rewards come and go, while it trains. Without it the adapter knows the trainer from
        the first batch on, and changes none of its lists.

        Raises:
            ConfigError: It is not a trainer of TRL's, it weighs our functions otherwise than the adapter does, or it
                drops a column that a reward reads.
            DataError: A data set of its has no prompts, or a workspace that it names is missing, or lies where none
                may.
            MissingColumnError: A data set of its lacks a column that a reward needs.
        """
        callback = self.callback
        if not (hasattr(trainer, "reward_funcs") and hasattr(trainer, "callback_handler")):
            raise ConfigError(f"attach({trainer!r}): expected a GRPOTrainer or RLOOTrainer")
        check_workspaces(self.runtime.rewards.values(), getattr(trainer, "train_dataset", None), "dataset")
        callbacks = trainer.callback_handler.callbacks
        callbacks[:] = [
            callback,
            *(other for other in callbacks if other is not callback),
        ]  # before those that report logs
        self._know(trainer, begun=False)
        if self.capture is not None:
            self.capture.attach(trainer)
        if self.updates is not None:
            self.updates.attach(trainer)
        return self

    def overlapping(self, *, waves: int = 1) -> OverlappedRollout:
        """Return TRL's ``rollout_func`` that has completions scored while others are generated: rewardkit.overlap."""
        return OverlappedRollout(self, waves)

    def begin_early(self, step: int | None, epoch: float | None) -> EarlyScores | None:
        """Begin a batch whose completions are scored as each ends; ``None`` where the rewards are at a server."""
        runtime = self.runtime.changeable
        return None if runtime is None else self._early.begin(runtime, step, epoch)

    def record_in(self, record: str | os.PathLike[str] | Recorder) -> None:
        """Record every batch that is scored from now on; :meth:`close` closes the recorder.

        Raises:
            RecordError: The run has a record, or the place cannot be written.
        """
        from trainer_adapter.capture import Capture, recorder_of  # it brings numpy along

        about = {"rewards": self.runtime.weights, "partial": self._partial}
        self.capture = Capture(recorder_of(record, self._env, *self._health[1:]), self.runtime.rewards, about)
        self.capture.check_health(*self._health)
        if self.runtime.changeable is None:
            return
        from trainer_adapter.updating import AdapterUpdates

        self.updates = AdapterUpdates(self, self.capture.recorder.path)

    def check_handover(self, args: object, trainer: object) -> None:
        """Check what a trainer, or its settings alone where it is unknown, was handed: functions, weights, data sets.

        Raises:
            ConfigError, DataError, MissingColumnError: As :meth:`attach`.
        """
        weights = dict(zip(self.names, self.weights, strict=True))
        if is_trainer(trainer):
            check_handover(trainer, self.runtime.rewards, weights)
        else:
            check_listed_weights(args, weights)

    def check_weights(self, weights: Mapping[str, float]) -> None:
        """Raise :class:`~rewardkit.RewardDefinitionError` for a weight that is too large for TRL's arithmetic."""
        for name, weight in weights.items():
            if abs(weight) > MAX_SCORE:
                raise RewardDefinitionError(f"weight of {name!r} is {weight!r}: expected at most {MAX_SCORE:g}")

    def take(self, runtime: Scorer, shadows: frozenset[str]) -> None:
        """Score with another runtime from now on; the trainer does not see its ``shadows``. The old one stays open."""
        self.runtime, self._shadows = runtime, shadows
        self._scorings.clear()  # scores of the rewards before
        self._early.close()
        if self.capture is not None:
            self.capture.take(runtime.rewards, shadows)

    def close(self) -> None:
        """End the workers, and write what is still to be recorded. A second call does nothing."""
        if self.updates is not None:
            self.updates.end()
        self._early.close()
        if self._runtime is not None:
            self._runtime.close()
        if self.capture is not None:
            self.capture.close()

    def __enter__(self) -> RewardAdapter:
        return self.start()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self.capture is not None:
            self.capture.error = error
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as the settings: rewards, weights, options and ``partial``."""
        packed = self._packed
        is_stale = (
            packed is not None
            and self._runtime is not None
            and (packed.runtime is not self._runtime or packed.weights != dict(self._runtime.weights))
        )
        if packed is None or is_stale:
            settings = pickle.dumps((self._partial, pickle.dumps(self.runtime, protocol=5)), protocol=5)
            packed = self._packed = _Packed(self.runtime, dict(self.runtime.weights), settings)
        _COPIES.put(packed.settings, self)
        return _rebuild, (packed.settings,)

    def answer(
        self,
        reward: str | None,
        prompts: Sequence[Any],
        completions: Sequence[Any],
        completion_ids: Sequence[Any] | None,
        keywords: Mapping[str, Any],
    ) -> Scores:
        """Return one reward's scores of a batch, as its function does; with ``reward=None`` the weighted totals.

        ``keywords`` are the columns, and the trainer's own objects; ``completion_ids`` is ``None`` if it passes none.
        """
        with self._lock:
            began = time.monotonic()
            try:
                self._check_async_grpo(reward)
                self._know(getattr(keywords.get("log_metric"), "__self__", None))  # TRL's is a method of its trainer
                ranks = self._ranks if "trainer_state" in keywords else Ranks()

                def freeze() -> FrozenBatch:
                    loop = getattr(self._trainer(), "async_loop", None)
                    rewards = self.runtime.rewards.values()
                    columns = self._environments.with_environments(keywords, completions, rewards, loop)
                    return FrozenBatch(prompts, completions, completion_ids, columns)

                return self._answer(reward, freeze, ranks, keywords.get("log_metric"), began)
            finally:
                self._seconds += time.monotonic() - began

    def _answer(
        self, reward: str | None, freeze: Callable[[], FrozenBatch], ranks: Ranks, log_metric: object, began: float
    ) -> Scores:
        """Return one reward's scores of a batch, and score the batch first if that is not done yet."""
        batches: list[FrozenBatch] = []  # holds the batch that ask() freezes, which no process sends to the others

        def ask() -> RankCall:
            """Freeze the batch, after changes of the rewards if it is fresh, and return what other processes hear."""
            batch = freeze()
            batches.append(batch)
            fresh = not self._scorings.has(batch.digest, reward)
            if fresh and self.updates is not None:
                trainer = self._trainer()
                self.updates.begin(batch.step, trains=trainer is None or split_of(trainer) == "train")
            return RankCall(reward, tuple(self.runtime.rewards), len(batch), fresh, socket.gethostname())

        calls = ranks.share(ask)
        check_same_rewards(calls)
        (batch,) = batches
        if any(call.fresh for call in calls):
            self._score(batch, ranks, calls, log_metric)
        scores = self._scorings.take(batch.digest, reward)
        self._add_wait(time.monotonic() - began)
        return scores

    def _add_wait(self, seconds: float) -> None:
        """Add to the time that the trainer waited for the last batch."""
        timing = self._timings.pop()
        self._timings.append(timing._replace(wall_s=timing.wall_s + seconds))

    def _score(self, batch: FrozenBatch, ranks: Ranks, calls: Sequence[RankCall], log_metric: object) -> None:
        """Score a batch with the other processes, record and log it, and keep the scores for the functions that ask."""

        def score(rollouts: list[Rollout]) -> ScoreBatch:
            early = self._early.score(rollouts, batch.step, batch.epoch)
            scored = early or self.runtime.score(rollouts, step=batch.step, epoch=batch.epoch)
            trainer_scores.check_size(scored, batch.step, self._shadows)
            return scored

        scored = score_together(ranks, batch, self._owners(calls), score)
        scores = trainer_scores.for_trainer(scored, self._partial)
        self.turns = batch_turns(scored, self.runtime.rewards)
        if self.capture is not None:
            self.capture.attach(getattr(log_metric, "__self__", None))
            self.capture.record(scored, dict(scores), batch.step, batch.epoch)
        logged = [*trainer_scores.metrics(scored), *([] if self.capture is None else self.capture.health_metrics())]
        if callable(log_metric):
            for metric, value in logged:
                log_metric(metric, value)
        else:
            self.waiting_metrics.add(logged)
        self._timings.append(BatchTiming(batch.step, len(batch), 0.0))
        summed = {name: column for name, column in scores.items() if name not in self._shadows}
        waiting = dict[str | None, Scores](scores.items())
        waiting[None] = trainer_scores.totals(summed, scored.weights)
        self._scorings.put(batch.digest, waiting)

    def _owners(self, calls: Sequence[RankCall]) -> list[list[int]]:
        """Return, for each process and each of its rows, the process that scores it."""
        counts = [call.rows for call in calls]
        leaves = [leaf for reward in self.runtime.rewards.values() for leaf in reward.leaves]
        if len({call.host for call in calls}) > 1 and any(leaf.on_one_host for leaf in leaves):
            return [[0] * count for count in counts]
        trainer = self._trainer()
        generations = None if trainer is None else generations_of(trainer.args, split_of(trainer))
        if len(counts) > 1 and generations and self.group_rewards:
            return owners(counts, generations)
        return [[rank] * count for rank, count in enumerate(counts)]

    def _know(self, trainer: object, *, begun: bool = True) -> None:
        """Know the trainer, and with it the other processes, from now on; ``begun`` once it calls our functions."""
        if self._trainer() is trainer or not is_trainer(trainer):
            return
        processes = getattr(trainer.accelerator, "num_processes", 1)
        if processes > 1:
            check_groups(self.group_rewards, trainer.args)
        self.check_handover(trainer.args, trainer)
        advice = None if getattr(trainer, "takes_credit", False) else "TurnCreditTrainer takes one a turn"
        tell_of_one_number(self.runtime.rewards, type(trainer).__name__, advice)
        self._trainer, self._ranks = weakref.ref(trainer), Ranks.of(processes) or Ranks()
        rollout = getattr(trainer, "rollout_func", None)
        if isinstance(rollout, OverlappedRollout):
            rollout.attach(trainer)
        take_over(trainer, self.runtime.rewards.values(), begun=begun, recorded=self.capture is not None)

    def _check_async_grpo(self, reward: str | None) -> None:
        """Raise in AsyncGRPO's own process, which adds up rewards without weights, where weights would be lost."""
        if reward is not None and self._is_copy and _ASYNC_GRPO in sys.modules and set(self.weights) != {1.0}:
            raise ConfigError(
                f"AsyncGRPO adds up rewards without weights, but {', '.join(self.names)} have {self.weights}; pass "
                "reward_funcs=adapter.total_func to the trainer"
            )


_COPIES: Copies[RewardAdapter] = Copies()  # The adapters that pickles stand for in this process


def _rebuild(settings: bytes) -> RewardAdapter:
    """Return the adapter that a pickle stands for; a new one makes its runtime when it is first needed."""

    def unpickle() -> RewardAdapter:
        adapter = RewardAdapter.__new__(RewardAdapter)
        partial, _runtime = pickle.loads(settings)  # noqa: S301 - this process unpickled what held them
        adapter._prepare(partial)
        adapter._packed, adapter._is_copy = _Packed(None, {}, settings), True
        return adapter

    return _COPIES.get(settings, unpickle)
