"""One batch on its way: the calls it needs, results as they come in, outcomes in their places.

A lane (worker pool or inline) hands results to :meth:`Scoring.take`, which decides what is tried
again and fills in outcomes; it is called from one thread at a time, which may be another than the one
that still plans the batch's later calls.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rewardkit.decorator import Reward
from rewardkit.errors import InfrastructureError, RewardFailedError
from rewardkit.groups import group_places
from rewardkit.options import OnInfrastructure, RewardOptions
from rewardkit.runtime import attempt as found
from rewardkit.runtime.cache import Key, OutcomeCache, as_cached
from rewardkit.runtime.plan import cache_key
from rewardkit.runtime.retry import delay_before_next
from rewardkit.spec import CallContext, Kind
from rewardkit.types import Cause, Outcome, Rollout, Status
from sandbox.workers import Call, CallResult, CallStatus


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
    CallStatus.CANCELLED: Cause.EXCEPTION,
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

    Raises:
        DataError: A row cannot be grouped.
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
        self._lock = threading.Lock()  # protects _waiting: calls are planned while the first are being scored
        kinds = [reward.spec.kind for reward in rewards]
        self._groups = group_places(rollouts) if Kind.GROUP in kinds else []

    def plan(self, rows: range) -> list[RewardCall]:
        """Return the calls that some rows need, in the rows' order; with the last row, also every group's.

        Left out is what the cache knows, and an equal call of a cached reward.
        """
        calls: list[RewardCall] = []
        for number, reward in enumerate(self._rewards):
            spec = reward.spec
            timeout_s = spec.options.timeout_s
            if spec.kind is Kind.SINGLE:
                every: list[tuple[int, ...]] = [(row,) for row in rows]
            else:
                every = self._groups if rows.stop == len(self._rollouts) else []
            if spec.options.cache:
                calls += self._plan_cached(number, every)
            else:
                calls += [RewardCall(number, places, timeout_s) for places in every]
        return calls

    def _plan_cached(self, number: int, every: Sequence[tuple[int, ...]]) -> Iterator[RewardCall]:
        spec = self._rewards[number].spec
        for places in every:
            key = cache_key(number, spec, [self._rollouts[place] for place in places], self._context)
            with self._lock:
                waiting = self._waiting.get(key)
                if waiting is not None:
                    waiting.append(places)
                    continue
                known = self._cache.get(key)
                if known is None:
                    self._waiting[key] = []
            if known is not None:
                self._fill(number, places, known)
            else:
                yield RewardCall(number, places, spec.options.timeout_s, key=key)

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
            options = self._rewards[call.target].spec.options
            outcomes = self._read(call, result)
            cause = outcomes[0].cause
            if cause is not None and len({outcome.cause for outcome in outcomes}) == 1:
                given_up = result.status is CallStatus.INFRASTRUCTURE or _is_final(call, result)
                delay_s = None if given_up else delay_before_next(options, cause, call.attempts)
                if delay_s is not None:
                    again.append((delay_s, call))
                    continue
            self._settle(call, outcomes, options)
        return again

    def take_numbers(self, answers: list[tuple[Call, float, float]]) -> list[tuple[float, Call]]:
        """Take calls that answered with a bare number, each with the number and the seconds it ran.

        Raises:
            RewardFailedError: As :meth:`take`.
        """
        again: list[tuple[float, Call]] = []
        outcomes, versions, listener, scored = self._outcomes, self._versions, self._listener, Status.SCORED
        for call, number, duration_s in answers:
            assert isinstance(call, RewardCall)
            if call.attempts or call.key is not None:
                again += self.take([CallResult(call, CallStatus.ANSWERED, number, duration_s)])
                continue
            call.attempts = 1
            # a named tuple's own way of being made is several times slower, and this is once a call
            fields: tuple[Any, ...] = (
                scored,
                number,
                None,
                {},
                None,
                None,
                None,
                1,
                duration_s,
                "",
                versions[call.target],
            )
            outcome = _make(Outcome, (*fields, False))
            outcomes[call.target][call.places[0]] = outcome
            if listener is not None:
                listener(Finished(call.places[0], self._rewards[call.target].name, outcome))
        return again

    def _read(self, call: RewardCall, result: CallResult) -> tuple[Outcome, ...]:
        """Return the outcomes, one a rollout, that a result makes."""
        reward = self._rewards[call.target]
        if result.status is not CallStatus.ANSWERED:
            finding: found.Finding = [found.FAILED, _CAUSES[result.status], result.message, None]
        else:
            finding = found.decode(result.answer, len(call.places))
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
            with self._lock:
                self._cache.put(call.key, outcomes)
                waiting = self._waiting.pop(call.key)
            for places in waiting:
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
        """Return each reward's outcomes, when every call has been answered for."""
        columns: dict[Reward[..., Any], Sequence[Outcome]] = {}
        for reward, column in zip(self._rewards, self._outcomes, strict=True):
            complete = [outcome for outcome in column if outcome is not None]
            if len(complete) != len(self._rollouts):
                raise InfrastructureError(f"reward {reward.name!r}: {len(column) - len(complete)} outcomes are missing")
            columns[reward] = complete
        return columns


def _is_final(call: RewardCall, result: CallResult) -> bool:
    return result.status is CallStatus.ANSWERED and found.is_final(found.decode(result.answer, len(call.places)))


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
    """Return the score that stands in for a failed call, or ``None``."""
    if cause is Cause.INFRASTRUCTURE and options.on_infrastructure is not OnInfrastructure.DEFAULT:
        return None
    return options.default


def lost_share(outcomes: Sequence[Outcome]) -> float:
    """Return the share of outcomes that were lost to infrastructure, 0 to 1."""
    causes = [outcome.cause for outcome in outcomes if outcome.cause is not None]
    return causes.count(Cause.INFRASTRUCTURE) / len(outcomes) if outcomes else 0.0
