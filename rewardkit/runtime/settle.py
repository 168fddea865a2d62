"""Results of calls in, outcomes in their places out; and what is tried again.

A lane (worker pool or inline) hands results to a :class:`Settler`, from one thread at a time. Another thread may still
be planning the batch's later calls, and hands over what the cache has of them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from rewardkit.declare.decorator import Reward
from rewardkit.declare.options import OnInfrastructure, RewardOptions
from rewardkit.errors import InfrastructureError, RewardFailedError
from rewardkit.runtime.cache import OutcomeCache, as_cached
from rewardkit.runtime.finding import CallFinding, decode, failure
from rewardkit.runtime.plan import CachedCall, CachedReply, Plan, RewardCall
from rewardkit.runtime.retry import delay_before_next
from rewardkit.runtime.row_names import id_text, without_place
from rewardkit.types import Cause, Outcome, Rollout, Status
from sandbox.workers import Call, CallResult, CallStatus


class Finished(NamedTuple):
    """An outcome as it becomes known.

    Attributes:
        row: The rollout's place in the batch.
        reward: The reward's name.
        outcome: Its outcome.
    """

    row: int
    reward: str
    outcome: Outcome


class Execution(NamedTuple):
    """How the last run of a call went."""

    attempts: int  # how often the reward was run
    duration_s: float  # seconds that the last run took
    logs: str  # what it printed
    version: str  # the reward's fingerprint


Listener = Callable[[Finished], None]

_LOGS = Outcome._fields.index("logs")
_make = tuple.__new__
_in_order = operator.itemgetter(
    *map(("status", "cached", *CallFinding._fields, *Execution._fields).index, Outcome._fields)
)


class Settler:
    """The outcomes of one batch in the making.

    Args:
        plan: The plan of the batch's calls.
        cache: Keeps the outcomes of cached rewards.
        raise_failures: Whether the first failure ends the batch with :class:`RewardFailedError`.
        shared: Whether the batch is several callers', so that no failure ends it; each caller's are looked at after.
        spared: The rewards whose failures end no batch.
        listener: Told of every outcome as it becomes known.

    Attributes:
        plan, spared: As given.
    """

    def __init__(
        self,
        plan: Plan,
        cache: OutcomeCache,
        *,
        raise_failures: bool,
        listener: Listener | None = None,
        shared: bool = False,
        spared: Collection[Reward[..., Any]] = (),
    ) -> None:
        self.plan = plan
        self._rewards = plan.rewards
        self._versions = [reward.version for reward in plan.rewards]
        # by reward, what a bare score's outcome has from its logs on
        self._tails = [Outcome(Status.SCORED, None, version=version)[_LOGS:] for version in self._versions]
        self._cache = cache
        self._raise = raise_failures
        self._shared = shared
        self.spared = spared
        self._listener = listener
        self._outcomes: list[list[Outcome | None]] = [[None] * len(plan.rollouts) for _ in plan.rewards]

    def take_cached(self, replies: Sequence[CachedReply]) -> None:
        """Take the outcomes of calls that need not be made."""
        for reply in replies:
            self._fill(reply.target, reply.places, reply.outcomes)

    def take(self, results: list[CallResult]) -> list[tuple[float, Call]]:
        """Take results and return the calls to make again, each with the seconds to wait first.

        Raises:
            RewardFailedError: A call failed for good and the caller asked to stop there.
            InfrastructureError: A call was lost and its reward says ``on_infrastructure="raise"``.
        """
        retries: list[tuple[float, Call]] = []
        for result in results:
            call = result.call
            assert isinstance(call, RewardCall)
            call.attempts += 1
            options = self._rewards[call.target].spec.options
            if result.status is CallStatus.ANSWERED:
                finding = decode(result.answer, len(call.places))
            else:
                cancelled = result.status is CallStatus.CANCELLED
                finding = failure(Cause.EXCEPTION if cancelled else Cause(result.status), result.message)
            outcomes = self._outcomes_of(call, finding, result)
            cause = outcomes[0].cause
            if cause is not None and len({outcome.cause for outcome in outcomes}) == 1:
                is_final = result.status is CallStatus.INFRASTRUCTURE or finding.is_final
                delay_s = None if is_final else delay_before_next(options, cause, call.attempts)
                if delay_s is not None:
                    retries.append((delay_s, call))
                    continue
            self._settle(call, outcomes, options)
        return retries

    def take_numbers(self, answers: list[tuple[Call, float, float]]) -> list[tuple[float, Call]]:
        """Take calls that answered with a bare number, each with the number and the seconds it ran.

        Raises as :meth:`take` does.
        """
        retries: list[tuple[float, Call]] = []
        outcomes, listener, scored = self._outcomes, self._listener, Status.SCORED
        for call, number, duration_s in answers:
            assert isinstance(call, RewardCall)
            places = call.places
            if call.attempts or len(places) != 1 or type(call) is CachedCall:
                retries += self.take([CallResult(call, CallStatus.ANSWERED, number, duration_s)])
                continue
            call.attempts = 1
            # a named tuple's own way of being made is several times slower, and this is once a call
            head: tuple[object, ...] = (scored, number, None, {}, None, None, None, 1, duration_s)
            outcome = _make(Outcome, head + self._tails[call.target])
            outcomes[call.target][places[0]] = outcome
            if listener is not None:
                listener(Finished(places[0], self._rewards[call.target].name, outcome))
        return retries

    def finish(self) -> None:
        """Fill in the calls that were planned after their equal had been answered; call when all are answered for."""
        for call in self.plan.cached_calls.values():
            self._repeat(call)

    def columns(self) -> Mapping[Reward[..., Any], Sequence[Outcome]]:
        """Return each reward's outcomes, once all are settled; raise InfrastructureError where some are missing."""
        columns: dict[Reward[..., Any], Sequence[Outcome]] = {}
        for reward, column in zip(self._rewards, self._outcomes, strict=True):
            complete = [outcome for outcome in column if outcome is not None]
            if len(complete) != len(column):
                raise InfrastructureError(f"reward {reward.name!r}: {len(column) - len(complete)} outcomes are missing")
            columns[reward] = complete
        return columns

    def settled(self) -> Mapping[Reward[..., Any], Mapping[int, Outcome]]:
        """Return each reward's outcomes by row, of the rows that have one."""
        return {
            reward: {row: outcome for row, outcome in enumerate(column) if outcome is not None}
            for reward, column in zip(self._rewards, self._outcomes, strict=True)
        }

    def _outcomes_of(self, call: RewardCall, finding: CallFinding, result: CallResult) -> tuple[Outcome, ...]:
        """Return the outcomes of a finding, one a rollout."""
        options, version = self._rewards[call.target].spec.options, self._versions[call.target]
        execution = Execution(call.attempts, result.duration_s, result.logs, version)
        sign = self.plan.signs[call.target]
        return tuple(_outcome(row, execution, options, sign) for row in finding.rows or (finding,) * len(call.places))

    def _settle(self, call: RewardCall, outcomes: tuple[Outcome, ...], options: RewardOptions) -> None:
        """Fill in outcomes that are final; raise for a failure that ends the batch."""
        spared = self._shared or self._rewards[call.target] in self.spared
        for row, outcome in zip(call.places, outcomes, strict=True):
            if outcome.status is Status.FAILED and not spared:
                row_columns = self.plan.rollouts[row].example
                check_failure(options, outcome, row, self.plan.context.step, columns=row_columns, every=self._raise)
        self._fill(call.target, call.places, outcomes)
        if isinstance(call, CachedCall):
            self._cache.put(call.key, outcomes)
            self._repeat(call)

    def _repeat(self, call: CachedCall) -> None:
        """Fill in the calls equal to this one that have been planned so far; the planning thread may add more."""
        column = self._outcomes[call.target]
        while call.repeats:
            outcomes = tuple(outcome for row in call.places if (outcome := column[row]) is not None)
            self._fill(call.target, call.repeats.pop(), as_cached(outcomes))

    def _fill(self, number: int, places: Sequence[int], outcomes: Sequence[Outcome]) -> None:
        column = self._outcomes[number]
        for row, outcome in zip(places, outcomes, strict=True):
            column[row] = outcome
            if self._listener is not None:
                self._listener(Finished(row, self._rewards[number].name, outcome))


def check_failure(
    options: RewardOptions, outcome: Outcome, row: int, step: int | None, *, columns: Mapping[str, Any], every: bool
) -> None:
    """Raise for a failure that ends its batch; the error names the row by its place and by its id, if it has one.

    A lost call raises InfrastructureError where its reward says ``on_infrastructure="raise"``; any failure raises
    RewardFailedError where ``every`` is set.
    """
    if outcome.status is not Status.FAILED:
        return
    at = "" if step is None else f" at step {step}"
    about = ", ".join(filter(None, (id_text(columns), str(outcome.cause))))
    message = f"reward {options.name!r} failed{at} on row {row} ({about}): {without_place(outcome.error or '')}"
    if outcome.is_lost and options.on_infrastructure is OnInfrastructure.RAISE:
        raise InfrastructureError(message)
    if every:
        raise RewardFailedError(message)


def check_failures(
    columns: Mapping[Reward[..., Any], Sequence[Outcome]],
    rollouts: Sequence[Rollout],
    step: int | None,
    *,
    every: bool,
) -> None:
    """Raise for the first failure of each reward's outcomes that ends its batch, as :func:`check_failure` does."""
    for reward, column in columns.items():
        for row, outcome in enumerate(column):
            if outcome.cause is not None:
                check_failure(reward.options, outcome, row, step, columns=rollouts[row].example, every=every)


def _outcome(finding: CallFinding, execution: Execution, options: RewardOptions, sign: int) -> Outcome:
    """Return a finding's outcome; the score of a failure is what stands in for it."""
    status = Status.SKIPPED if finding.score is None else Status.SCORED
    score, cause = finding.score, finding.cause
    if cause is not None:
        status, score = Status.FAILED, options.stand_in(cause, sign)
    return _make(Outcome, _in_order((status, False, score, *finding[1:], *execution)))
