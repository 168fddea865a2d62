"""One batch on its way: the calls it needs, results as they come in, outcomes in their places.

A lane (worker pool or inline) hands results to :meth:`Scoring.take`, which decides what is tried
again and fills in outcomes; it is called from one thread at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rewardkit.decorator import Reward
from rewardkit.errors import InfrastructureError, RewardFailedError
from rewardkit.options import OnInfrastructure, RewardOptions
from rewardkit.runtime import attempt as found
from rewardkit.runtime.cache import Key, OutcomeCache, as_cached
from rewardkit.runtime.plan import cache_key, places_of
from rewardkit.runtime.retry import delay_before_next
from rewardkit.spec import CallContext
from rewardkit.types import Cause, Outcome, Rollout, Status
from sandbox.workers.job import Call, CallResult, CallStatus


class Finished(NamedTuple):
    """An outcome as it becomes known.

    Attributes:
        row: The rollout's place in the batch.
        reward: The reward's name.
        outcome: What became of it.
    """

    row: int
    reward: str
    outcome: Outcome


@dataclass(slots=True, eq=False)
class RewardCall(Call):
    """One call of a reward: ``target`` is the reward's number, ``places`` its rollouts' places.

    Attributes:
        attempts: How often it has been answered for.
        key: Its key in the cache; ``None`` for a reward that is not cached.
    """

    attempts: int = 0
    key: Key | None = None


_make = tuple.__new__

Listener = Callable[[Finished], None]

_CAUSES = {
    CallStatus.TIMEOUT: Cause.TIMEOUT,
    CallStatus.CRASHED: Cause.CRASHED,
    CallStatus.INFRASTRUCTURE: Cause.INFRASTRUCTURE,
}


class Scoring:
    """The outcomes of one batch in the making.

    Args:
        rewards: The rewards; a call's ``target`` is a place in this list.
        rollouts: The batch.
        context: Where in training it is.
        cache: Outcomes of earlier calls.
        raise_failures: Whether the first failure ends the batch with :class:`RewardFailedError`.
        listener: Told of every outcome as it becomes known.

    Attributes:
        calls: What must be run: not what the cache knows, and equal calls of a cached reward once.
    """

    def __init__(
        self,
        rewards: Sequence[Reward[..., Any]],
        rollouts: Sequence[Rollout],
        context: CallContext,
        cache: OutcomeCache,
        *,
        raise_failures: bool,
        listener: Listener | None,
    ) -> None:
        self._rewards = rewards
        self._rollouts = rollouts
        self._versions = [reward.version for reward in rewards]
        self._context = context
        self._cache = cache
        self._raise = raise_failures
        self._listener = listener
        self._outcomes: list[list[Outcome | None]] = [[None] * len(rollouts) for _ in rewards]
        self._waiting: dict[Key, list[tuple[int, ...]]] = {}
        self.calls: list[RewardCall] = []
        for number in range(len(rewards)):
            self._plan(number)

    def _plan(self, number: int) -> None:
        spec = self._rewards[number].spec
        timeout_s = spec.options.timeout_s
        if not spec.options.cache:
            self.calls += [RewardCall(number, places, timeout_s) for places in places_of(spec, self._rollouts)]
            return
        for places in places_of(spec, self._rollouts):
            key = cache_key(number, spec, [self._rollouts[place] for place in places], self._context)
            known = self._cache.get(key)
            if known is not None:
                self._fill(number, places, known)
            elif key in self._waiting:
                self._waiting[key].append(places)
            else:
                self._waiting[key] = []
                self.calls.append(RewardCall(number, places, timeout_s, key=key))

    def take(self, results: list[CallResult]) -> list[tuple[float, Call]]:
        """Take results and give the calls to make again, each after so many seconds.

        Raises:
            RewardFailedError: A call failed for good and the caller asked to stop there.
            InfrastructureError: A call was lost and its reward says ``on_infrastructure="raise"``.
        """
        again: list[tuple[float, Call]] = []
        for result in results:
            call = result.call
            assert isinstance(call, RewardCall)
            call.attempts += 1
            answer = result.answer
            if answer is not None and answer[0] == found.SCORED and call.key is None and call.attempts == 1:
                self._fill_scored(call, result, answer)  # by far the most common, and the shortest way
                continue
            options = self._rewards[call.target].spec.options
            outcomes = self._read(call, result)
            cause = outcomes[0].cause
            if cause is not None and len({outcome.cause for outcome in outcomes}) == 1:
                given_up = result.status is CallStatus.INFRASTRUCTURE
                delay_s = None if given_up else delay_before_next(options, cause, call.attempts)
                if delay_s is not None:
                    again.append((delay_s, call))
                    continue
            self._settle(call, outcomes, options)
        return again

    def _fill_scored(self, call: RewardCall, result: CallResult, answer: found.Finding) -> None:
        number, place = call.target, call.places[0]
        reason, metrics = answer[2:] if len(answer) > 2 else (None, {})
        fields = (Status.SCORED, answer[1], reason, metrics, None, None, None, 1)
        # a named tuple's own way of being made is several times slower, and this is once a call
        outcome = _make(Outcome, (*fields, result.duration_s, result.logs, self._versions[number], False))
        self._outcomes[number][place] = outcome
        if self._listener is not None:
            self._listener(Finished(place, self._rewards[number].name, outcome))

    def _read(self, call: RewardCall, result: CallResult) -> tuple[Outcome, ...]:
        """Gives the outcomes, one a rollout, that a result makes."""
        reward = self._rewards[call.target]
        if result.status is not CallStatus.ANSWERED:
            finding: found.Finding = [found.FAILED, _CAUSES[result.status], result.message, None]
        else:
            finding = result.answer
        findings = finding[1] if finding[0] == found.GROUP else [finding] * len(call.places)
        return tuple(
            _outcome(one, reward.spec.options, reward.version, call.attempts, result.duration_s, result.logs)
            for one in findings
        )

    def _settle(self, call: RewardCall, outcomes: tuple[Outcome, ...], options: RewardOptions) -> None:
        for place, outcome in zip(call.places, outcomes, strict=True):
            if outcome.status is Status.FAILED:
                self._check_failure(options, place, outcome)
        self._fill(call.target, call.places, outcomes)
        if call.key is not None:
            self._cache.put(call.key, outcomes)
            for places in self._waiting.pop(call.key):
                self._fill(call.target, places, as_cached(outcomes))

    def _check_failure(self, options: RewardOptions, place: int, outcome: Outcome) -> None:
        step = "" if self._context.step is None else f" at step {self._context.step}"
        words = f"reward {options.name!r} failed{step} on row {place} ({outcome.cause}): {outcome.error}"
        if outcome.cause is Cause.INFRASTRUCTURE and options.on_infrastructure is OnInfrastructure.RAISE:
            raise InfrastructureError(words)
        if self._raise:
            raise RewardFailedError(words)

    def _fill(self, number: int, places: Sequence[int], outcomes: Sequence[Outcome]) -> None:
        column = self._outcomes[number]
        for place, outcome in zip(places, outcomes, strict=True):
            column[place] = outcome
            if self._listener is not None:
                self._listener(Finished(place, self._rewards[number].name, outcome))

    def columns(self) -> Mapping[Reward[..., Any], Sequence[Outcome]]:
        """Gives each reward's outcomes, when every call has been answered for."""
        columns: dict[Reward[..., Any], Sequence[Outcome]] = {}
        for reward, column in zip(self._rewards, self._outcomes, strict=True):
            complete = [outcome for outcome in column if outcome is not None]
            if len(complete) != len(self._rollouts):
                raise InfrastructureError(f"reward {reward.name!r}: {len(column) - len(complete)} outcomes are missing")
            columns[reward] = complete
        return columns


def _outcome(
    finding: found.Finding, options: RewardOptions, version: str, attempts: int, duration_s: float, logs: str
) -> Outcome:
    kind = finding[0]
    if kind == found.FAILED:
        cause, error, trace = Cause(finding[1]), finding[2], finding[3]
        score = _stand_in(options, cause)
        return Outcome(
            Status.FAILED, score, None, {}, cause, error, trace, attempts, duration_s, logs, version
        )  # fmt: skip
    reason, metrics = finding[-2:] if len(finding) > 2 else (None, {})
    status, score = (Status.SKIPPED, None) if kind == found.SKIPPED else (Status.SCORED, finding[1])
    return Outcome(status, score, reason, metrics, None, None, None, attempts, duration_s, logs, version)


def _stand_in(options: RewardOptions, cause: Cause) -> float | None:
    """Gives the score that stands in for a failed call, or ``None``."""
    if cause is Cause.INFRASTRUCTURE and options.on_infrastructure is not OnInfrastructure.DEFAULT:
        return None
    return options.default


def lost_share(outcomes: Sequence[Outcome]) -> float:
    """Gives the share of outcomes that were lost to infrastructure, 0 to 1."""
    causes = [outcome.cause for outcome in outcomes if outcome.cause is not None]
    return causes.count(Cause.INFRASTRUCTURE) / len(outcomes) if outcomes else 0.0
