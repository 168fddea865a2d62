"""Which calls a batch needs, and the bytes that travel to the workers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from rewardkit.blocks.nested import dumps
from rewardkit.declare.decorator import Reward
from rewardkit.declare.spec import CallContext, Kind
from rewardkit.errors import DataError, MissingColumnError
from rewardkit.forms import why_no_text
from rewardkit.groups import group_places
from rewardkit.own_columns import ENVIRONMENTS_COLUMN, LiveObject
from rewardkit.runtime.cache import Key, OutcomeCache, cache_key
from rewardkit.runtime.names import hint_at
from rewardkit.runtime.row_names import row_name
from rewardkit.shown.text import shorten
from rewardkit.types import Cause, Outcome, Rollout, Status
from sandbox.workers import Call, CollectorPaused

ABSENT = Rollout("", "", {})  # Stands for a rollout that no call of a portion reads
PIECE_ROWS = 4096  # Rows of a batch that are prepared at once; the workers score them while the next are being prepared


@dataclass(slots=True, eq=False)
class RewardCall(Call):
    """One call of a reward: ``target`` is the reward's number, ``places`` its rollouts' places."""

    attempts: int = 0  # how often it has been answered for


@dataclass(slots=True, eq=False, kw_only=True)
class CachedCall(RewardCall):
    """One call of a reward whose outcomes are kept.

    Attributes:
        repeats: Places of equal calls in the same batch, which take this call's outcomes.
    """

    key: Key  # Its key in the cache
    repeats: list[tuple[int, ...]] = field(default_factory=list)


class CachedReply(NamedTuple):
    """The outcomes of a call that is not made: the cache has them, or its group is not whole."""

    target: int
    places: tuple[int, ...]
    outcomes: Sequence[Outcome]


class CallerRows(NamedTuple):
    """One caller's rows of a batch that several callers share.

    Attributes:
        late: Why the groups among them are not whole; their group rewards are not run, and the calls count as lost to
            infrastructure. ``None`` where the groups are whole.
    """

    rollouts: Sequence[Rollout]  # The rows; groups are made among these alone
    late: str | None = None


class BatchPortion(NamedTuple):
    """Some calls of a batch whose other rows are not there yet.

    Attributes:
        rows: Rows that rewards of single completions are called on.
        groups: Groups that rewards of groups are called on, each with the rows of its completions.
    """

    rows: Collection[int]
    groups: Sequence[tuple[int, ...]]


class Piece(NamedTuple):
    """What some rows of a batch need."""

    calls: list[RewardCall]  # the calls to make
    segments: list[bytes]  # the bytes of further rows, in order, so that every row that these calls read is there
    cached: list[CachedReply]  # the calls that need not be made
    complete: bool  # whether this is the last piece


class Plan:
    """The calls that a batch needs, in pieces: the first run while the next are being prepared.

    Args:
        rewards: The plain rewards; a call's ``target`` is a place in this list.
        rollouts: The batch.
        context: Where in training it is.
        cache: Outcomes of earlier calls.
        parts: The callers' rows that the batch is made of, in order; one caller's unless given.
        signs: The sign of each reward's weight, as :meth:`RewardOptions.stand_in` takes it; 1 unless given.
        portion: The only calls to plan, where other rollouts are :data:`ABSENT`; nothing is checked before the batch is
            whole.

    Attributes:
        cached_calls: The calls of cached rewards, by key.

    Raises:
        DataError: The rollouts are wrong, or a row cannot be grouped.
    """

    def __init__(
        self,
        rewards: Sequence[Reward[..., Any]],
        rollouts: Iterable[Rollout],
        context: CallContext,
        cache: OutcomeCache,
        parts: Sequence[CallerRows] | None = None,
        signs: Mapping[Reward[..., Any], int] | None = None,
        portion: BatchPortion | None = None,
    ) -> None:
        self.rewards = rewards
        self.signs = [(signs or {}).get(reward, 1) for reward in rewards]
        self.rollouts = _with_live(rewards, _as_list(rollouts))
        self.context = context
        self.cached_calls: dict[Key, CachedCall] = {}
        self._cache = cache
        self._machine = machine_of(rewards)
        self._late: dict[int, str] = {}
        self._portion = portion
        self._groups: list[tuple[int, ...]] = [] if portion is None else list(portion.groups)
        if portion is not None:
            return
        check_rollouts(rewards, self.rollouts)
        if Kind.GROUP in [reward.spec.kind for reward in rewards]:
            self._group([CallerRows(self.rollouts)] if parts is None else parts)

    def pieces(self) -> Iterator[Piece]:
        """Yield the calls of all rows in their order, in pieces; those of groups come with the last piece.

        Raises:
            DataError: A row cannot travel to a worker process.
        """
        rows, packed = len(self.rollouts), 0
        for start in range(0, max(1, rows), PIECE_ROWS):
            stop = min(start + PIECE_ROWS, rows)
            cached: list[CachedReply] = []
            with CollectorPaused():
                calls = self._calls(range(start, stop), cached)
                segments = segments_of(self.rewards, self.rollouts[packed:stop], packed) if calls else []
            packed += len(segments)
            yield Piece(calls, segments, cached, stop == rows)

    def _group(self, parts: Sequence[CallerRows]) -> None:
        """Find the groups of each part, and the rows whose groups are not whole."""
        first = 0
        for part in parts:
            if part.late is None:
                self._groups += [tuple(first + index for index in group) for group in group_places(part.rollouts)]
            else:
                self._late.update(dict.fromkeys(range(first, first + len(part.rollouts)), part.late))
            first += len(part.rollouts)

    def _lost(self, number: int) -> Iterator[CachedReply]:
        """Yield the outcomes of a group reward on the rows whose groups are not whole."""
        for row, reason in self._late.items():
            yield CachedReply(number, (row,), (self._lost_outcome(number, reason),))

    def _lost_outcome(self, number: int, reason: str) -> Outcome:
        """Return the outcome of a call that was lost to infrastructure before it was made."""
        reward, cause = self.rewards[number], Cause.INFRASTRUCTURE
        score = reward.options.stand_in(cause, self.signs[number])
        return Outcome(Status.FAILED, score, cause=cause, error=reason, version=reward.version)

    def _calls(self, rows: range, cached: list[CachedReply]) -> list[RewardCall]:
        """Return the calls that some rows need; add to ``cached`` those that need not be made."""
        calls: list[RewardCall] = []
        single_rows = rows if self._portion is None else [row for row in rows if row in self._portion.rows]
        for number, reward in enumerate(self.rewards):
            spec = reward.spec
            timeout_s = spec.options.timeout_s
            if spec.kind is Kind.SINGLE:
                row_groups: list[tuple[int, ...]] = [(row,) for row in single_rows]
            else:
                row_groups = self._groups if rows.stop == len(self.rollouts) else []
                cached += self._lost(number) if rows.stop == len(self.rollouts) else ()
            if spec.options.cache:
                calls += self._uncached_calls(number, row_groups, cached)
            else:
                calls += [RewardCall(number, places, timeout_s) for places in row_groups]
        return calls

    def _uncached_calls(
        self, number: int, row_groups: Sequence[tuple[int, ...]], cached: list[CachedReply]
    ) -> Iterator[RewardCall]:
        """Yield the calls that the cache lacks, the first of equal ones; add replies that it has to ``cached``."""
        spec = self.rewards[number].spec
        for places in row_groups:
            key = cache_key(number, spec, [self.rollouts[row] for row in places], self.context, self._machine)
            first = self.cached_calls.get(key)
            if first is not None:
                first.repeats.append(places)
            elif (outcomes := self._cache.get(key)) is not None:
                cached.append(CachedReply(number, places, outcomes))
            else:
                call = self.cached_calls[key] = CachedCall(number, places, spec.options.timeout_s, key=key)
                yield call


def machine_of(rewards: Sequence[Reward[..., Any]]) -> str:
    """Return a digest of the jail's compilers where scores of a jail are kept, which other compilers would change."""
    if not any(
        reward.options.cache and any(part.spec.jailed for part in (reward, *reward.inner)) for reward in rewards
    ):
        return ""
    from sandbox import machine_stamp  # late: few runs keep such scores, and it has all languages

    return machine_stamp()


def _as_list(rollouts: Iterable[Rollout]) -> list[Rollout]:
    if isinstance(rollouts, Rollout):
        raise DataError("expected a list of rollouts, got one Rollout; score([rollout])")
    if not isinstance(rollouts, Iterable):
        raise DataError(f"expected a list of rollouts, got {shorten(rollouts)}")
    return list(rollouts)


def _with_live(rewards: Sequence[Reward[..., Any]], rollouts: list[Rollout]) -> list[Rollout]:
    """Return the rollouts, with environments that travel as tickets where a reward takes them."""
    if not any(reward.spec.wants_environments for reward in rewards):
        return rollouts
    return [_with_ticket(rollout) for rollout in rollouts]


def _with_ticket(rollout: Rollout) -> Rollout:
    """Return a rollout whose environment is a ticket; one without an environment, or a wrong one, as it is."""
    column = ENVIRONMENTS_COLUMN
    if not (isinstance(rollout, Rollout) and isinstance(rollout.example, Mapping) and column in rollout.example):
        return rollout
    return replace(rollout, example={**rollout.example, column: LiveObject.of(rollout.example[column])})


def _check_rollout(rollout: object, index: int) -> None:
    """Raise ``DataError`` for anything but a rollout with an example, a prompt and a completion."""
    if not isinstance(rollout, Rollout):
        raise DataError(
            f"row {index}: expected a Rollout, got {type(rollout).__name__}; "
            "Rollout(prompt, completion, {'answer': '4'}) is one"
        )
    if not isinstance(rollout.example, Mapping):
        raise DataError(f"row {index}: expected a dict as example, got {type(rollout.example).__name__}")
    for part, text in (("prompt", rollout.prompt), ("completion", rollout.completion)):
        if not isinstance(text, str | list | tuple):
            raise DataError(f"row {index}: expected a string or messages as {part}, got {type(text).__name__}")
        flaw = why_no_text(text)
        if flaw is not None:
            raise DataError(f"row {index}: {part}: {flaw}")


def check_rollouts(
    rewards: Iterable[Reward[..., Any]], rollouts: Sequence[Rollout], *, whose: str | None = None
) -> None:
    """Refuse anything but a rollout, and a rollout that lacks a column which a reward needs, before anything runs.

    Args:
        rewards: The rewards.
        rollouts: The rollouts.
        whose: What the error calls a row that lacks a column; ``example 3``, by its place, and its id unless given.

    Raises:
        DataError: Something in the batch is not a rollout.
        MissingColumnError: Names reward, column, row and near names.
    """
    for index, rollout in enumerate(rollouts):
        if (
            type(rollout) is Rollout
            and type(rollout.example) is dict
            and type(rollout.prompt) is str
            and type(rollout.completion) is str
        ):
            continue  # the usual case: isinstance of abstract types is slow
        _check_rollout(rollout, index)
    for reward in rewards:
        for column in reward.spec.required_columns:
            for index, rollout in enumerate(rollouts):
                if column not in rollout.example:
                    lacking = row_name(f"example {index}", rollout.example) if whose is None else whose
                    raise _missing(reward, column, rollout.example, lacking)


def check_columns(rewards: Iterable[Reward[..., Any]], columns: Mapping[str, Any], whose: str) -> None:
    """Raise MissingColumnError for a column that a reward needs and the rows of ``whose`` data, all alike, lack."""
    for reward in rewards:
        for column in reward.spec.required_columns:
            if column not in columns:
                raise _missing(reward, column, columns, whose)


def _missing(reward: Reward[..., Any], column: str, columns: Mapping[str, Any], lacking: str) -> MissingColumnError:
    hint = hint_at(column, [str(name) for name in columns], reward.spec.kind)
    return MissingColumnError(f"reward {reward.name!r} needs column {column!r}, which {lacking} lacks; {hint}")


def segments_of(rewards: Sequence[Reward[..., Any]], rollouts: Sequence[Rollout], first: int = 0) -> list[bytes]:
    """Return the bytes of consecutive rollouts, with the parts that rewards read; ``first`` is the row of the first.

    Raises DataError where a row holds what cannot travel to a worker process.
    """
    columns = [reward.spec.wanted_columns for reward in rewards]
    wanted = None if None in columns else frozenset().union(*(names for names in columns if names is not None))
    with_ids = any(reward.spec.wants_completion_ids for reward in rewards)
    segments: list[bytes] = []
    for rollout in rollouts:
        if rollout is ABSENT:
            segments.append(b"")
            continue
        example = rollout.example
        if wanted is not None:
            example = {column: example[column] for column in wanted if column in example} if wanted else {}
        ids = rollout.completion_ids if with_ids else None
        try:
            segments.append(dumps((rollout.prompt, rollout.completion, example, ids)))
        except Exception as error:
            raise DataError(f"row {first + len(segments)} cannot travel to a worker process: {error}") from error
    return segments
