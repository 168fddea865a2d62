"""Rewards as TRL's GRPOTrainer and RLOOTrainer call them.

TRL calls reward functions one after another, each with the whole batch. :class:`RewardAdapter` hands it one
callable a reward; the first one called scores ALL rewards on the batch at once, in the runtime's workers, and
the others answer from that result. So a step costs the slowest reward, not the sum.

Decided here: which scores leave the baseline, which metrics are logged, what stops training. What a reward is and how
it is run is rewardkit's.
"""

from __future__ import annotations

import dataclasses
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, Unpack

from rewardkit import Cause, Outcome, RewardDefinitionError, RewardError, Runtime, ScoreBatch, Status
from trainer_adapter.columns import FrozenBatch
from trainer_adapter.models import needing_extra
from trainer_adapter.timing import BatchTiming, busy_s, p95

if TYPE_CHECKING:
    from trainer_adapter.callback import RewardCallback

MAX_SCORE = 1e16
"""The largest score or weighted sum handed to TRL. It computes in float32 (at most 3.4e38) and squares scores for a
group's spread; beyond this an infinite spread or reward would silently void the group, or destroy the weights."""
MAX_TIMINGS = 100_000
"""Scored batches whose timings are kept."""

Scores: TypeAlias = list[float | None]
_Answer: TypeAlias = Callable[[str, Sequence[Any], Sequence[Any], Sequence[Any] | None, Mapping[str, Any]], Scores]


class Partial(StrEnum):
    """What becomes of a rollout for which some rewards have a score and another has none."""

    LEAVE_OUT = "leave_out"
    """A skipped reward counts for nothing; a reward that failed with nothing to stand in takes the rollout out, and
    so does the want of any score that has weight."""
    SUM = "sum"
    """Every missing score counts for nothing, whatever the reason, as TRL has it."""


class RuntimeOptions(TypedDict, total=False):
    """The keyword options of :class:`rewardkit.Runtime` that an adapter passes on."""

    workers: int | None
    lane: str
    memory_bytes: int | None
    load_timeout_s: float
    cache_entries: int
    max_infrastructure_rate: float
    on_failure: str


class RewardFunction:
    """One reward, as TRL calls it; several share one scoring of the batch."""

    __name__: str

    def __init__(self, name: str, answer: _Answer) -> None:
        self.__name__ = name
        self._answer = answer

    def __call__(
        self,
        /,  # a dataset may have a column named "self"
        *,
        prompts: Sequence[Any],
        completions: Sequence[Any],
        completion_ids: Sequence[Any] | None = None,
        **keywords: Any,
    ) -> Scores:
        """Return this reward's scores, one a completion; ``None`` leaves it out of the sum."""
        return self._answer(self.__name__, prompts, completions, completion_ids, keywords)

    def __repr__(self) -> str:
        return f"<RewardFunction {self.__name__}>"


@dataclasses.dataclass(slots=True)
class _Scored:
    """One scoring of a batch, and who has yet to take its part of it."""

    digest: bytes
    scores: dict[str, Scores]
    busy_s: float


class RewardAdapter:
    """Rewards for TRL: scored in isolated workers, all at once, each answer given to the completion it is for.

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

    A step's result is found again by the content of the call (prompts, completions, token ids, columns,
    step and epoch), never by its place or time. A call that differs in anything is scored anew.

    Args:
        rewards: What :class:`rewardkit.Runtime` takes.
        weights: Each reward's weight in TRL's sum; the default is Runtime's. Hand :attr:`weights` on to TRL.
        partial: ``"leave_out"`` or ``"sum"``, see :class:`Partial`.
        options: The other options of :class:`rewardkit.Runtime`.

    Raises:
        RewardDefinitionError: Two rewards of one name, weights that do not match, or an option's value is wrong.
        RewardLoadError: A reference leads nowhere.
        RewardTransportError: A reward cannot travel to a worker process.
    """

    def __init__(
        self,
        rewards: Any,
        *,
        weights: Sequence[float] | Mapping[str, float] | None = None,
        partial: str | Partial = Partial.LEAVE_OUT,
        **options: Unpack[RuntimeOptions],
    ) -> None:
        try:
            self._partial = Partial(partial)
        except ValueError:
            raise RewardDefinitionError(f"partial={partial!r}: expected 'leave_out' or 'sum'") from None
        self.runtime = Runtime(rewards, weights=weights, **options)
        for name, weight in self.runtime.weights.items():
            if abs(weight) > MAX_SCORE:
                raise RewardDefinitionError(f"weight of {name!r} is {weight!r}: expected at most {MAX_SCORE:g}")
        self._functions = [RewardFunction(name, self._answer) for name in self.runtime.names]
        self._timings: deque[BatchTiming] = deque(maxlen=MAX_TIMINGS)
        self._seconds = 0.0
        self._lost: set[str] = set()
        self._scored: _Scored | None = None
        self._callback: RewardCallback | None = None
        # Protects what is above from two trainer threads: one scores, the other waits and takes its part of the result.
        self._lock = threading.Lock()

    if not TYPE_CHECKING:  # a type checker would take every attribute to be there

        def __getattr__(self, name: str) -> Any:
            """Tell TRL, where it is handed the adapter itself and takes it for a function, what to write."""
            if name in ("__call__", "__name__"):
                raise AttributeError(
                    "a RewardAdapter is no reward function; hand the trainer its functions: "
                    "reward_funcs=adapter.reward_funcs"
                )
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    @property
    def reward_funcs(self) -> list[Any]:  # TRL wants a list of a union, and lists are invariant
        """The :class:`RewardFunction` objects for TRL's ``reward_funcs``, one a reward.

        A new list each time, for TRL keeps the list it is given and changes it.
        """
        return list(self._functions)

    @property
    def weights(self) -> list[float]:
        """The weights for TRL's ``reward_weights``, in the order of :attr:`reward_funcs`."""
        return list(self.runtime.weights.values())

    @property
    def names(self) -> list[str]:
        """The rewards' names, in the order of :attr:`reward_funcs`."""
        return self.runtime.names

    @property
    def group_rewards(self) -> list[str]:
        """Names of the rewards that score a whole group, or are composed of one that does."""
        rewards = self.runtime.rewards.items()
        return [name for name, reward in rewards if any(leaf.spec.kind == "group" for leaf in reward.leaves)]

    @property
    def timings(self) -> list[BatchTiming]:
        """One entry a scored batch, oldest first; the newest 100,000."""
        return list(self._timings)

    @property
    def seconds(self) -> float:
        """Wall-clock seconds that the trainer has waited for rewards so far."""
        return self._seconds

    @property
    def callback(self) -> RewardCallback:
        """The ``transformers.TrainerCallback`` for TRL's ``callbacks``; imports transformers when first asked for."""
        if self._callback is None:
            with needing_extra():
                from trainer_adapter.callback import RewardCallback

            self._callback = RewardCallback(self)
        return self._callback

    def start(self) -> RewardAdapter:
        """Starts the workers without waiting for them. Gives itself."""
        self.runtime.start()
        return self

    def close(self) -> None:
        """Ends the workers. A second call does nothing."""
        self.runtime.close()

    def __enter__(self) -> RewardAdapter:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.close()

    def _answer(
        self,
        name: str,
        prompts: Sequence[Any],
        completions: Sequence[Any],
        completion_ids: Sequence[Any] | None,
        keywords: Mapping[str, Any],
    ) -> Scores:
        """Return one reward's scores, from the step's result or by making it."""
        with self._lock:
            began = time.monotonic()
            try:
                batch = FrozenBatch(prompts, completions, completion_ids, keywords)
                scored = self._scored
                if scored is None or scored.digest != batch.digest or name not in scored.scores:
                    self._scored = None
                    scored = self._scored = self._score(batch, keywords.get("log_metric"))
                    self._timings.append(BatchTiming(batch.where.step, len(batch), 0.0, scored.busy_s, 0.0))
                scores = scored.scores.pop(name)
                if not scored.scores:
                    self._scored = None
                self._add_wait(time.monotonic() - began)
                return scores
            finally:
                self._seconds += time.monotonic() - began

    def _add_wait(self, wait_s: float) -> None:
        """Count a call's time to the newest batch, which it is about."""
        newest = self._timings[-1]
        wall_s = newest.wall_s + wait_s
        busy_s = min(newest.busy_s, wall_s)
        self._timings[-1] = dataclasses.replace(newest, wall_s=wall_s, busy_s=busy_s, overhead_s=wall_s - busy_s)

    def _score(self, batch: FrozenBatch, log_metric: object) -> _Scored:
        """Scores the batch with every reward."""
        rewards = self.runtime.rewards
        scored = self.runtime.score(batch.rollouts(), step=batch.where.step, epoch=batch.where.epoch)
        scores = self._scores(scored, batch.where.step)
        if callable(log_metric):
            for name, value in self._metrics(scored):
                log_metric(name, value)
        return _Scored(batch.digest, scores, busy_s(scored, rewards, self.runtime.workers))

    def _scores(self, batch: ScoreBatch, step: int | None) -> dict[str, Scores]:
        """Return what TRL is told, by reward."""
        _check_size(batch, step)
        scores = batch.scores
        if self._partial is Partial.SUM:
            return scores
        counting = [column for name, column in batch.items() if batch.weights[name] != 0]
        for row in range(len(batch.rollouts)):
            parts = [column[row] for column in counting]
            if any(map(_is_unknown, parts)) or (parts and all(part.score is None for part in parts)):
                for column in scores.values():
                    column[row] = None
        return scores

    def _metrics(self, batch: ScoreBatch) -> Iterator[tuple[str, float]]:
        """Return names and finite values for TRL's logs."""
        for name, outcomes in batch.items():
            if not outcomes:
                continue
            causes = [outcome.cause for outcome in outcomes if outcome.status is Status.FAILED]
            timeouts, lost = causes.count(Cause.TIMEOUT), causes.count(Cause.INFRASTRUCTURE)
            skipped = sum(outcome.status is Status.SKIPPED for outcome in outcomes)
            yield f"reward_time/{name}/p95", p95([outcome.duration_s for outcome in outcomes if not outcome.cached])
            yield f"reward_errors/{name}", (len(causes) - timeouts) / len(outcomes)
            yield f"reward_timeouts/{name}", timeouts / len(outcomes)
            yield f"reward_skipped/{name}", skipped / len(outcomes)
            if lost or name in self._lost:
                self._lost.add(name)  # from then on also when 0, or TRL's mean would be over the bad steps alone
                yield f"reward_infrastructure/{name}", lost / len(outcomes)
            for metric, values in _said(outcomes).items():
                yield f"reward_metrics/{name}/{metric}", math.fsum(values) / len(values)


def _said(outcomes: Sequence[Outcome]) -> dict[str, list[float]]:
    """Return the metrics that a reward's scores came with, each with its values."""
    found: dict[str, list[float]] = {}
    for outcome in outcomes:
        for metric, value in outcome.metrics.items():
            found.setdefault(metric, []).append(value)
    return found


def _is_unknown(outcome: Outcome) -> bool:
    """Tells whether a call failed with nothing to stand in."""
    return outcome.status is Status.FAILED and outcome.score is None


def _check_size(batch: ScoreBatch, step: int | None) -> None:
    """Raise where a score, or a rollout's weighted sum, is too large for TRL's arithmetic."""
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
