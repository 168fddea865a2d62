"""A rendezvous for groups: rows that arrive one by one wait until the group of their prompt is whole.

verl, OpenRLHF and others ask for one completion at a time, and a reward that compares the completions of a prompt
needs all of them. This module owns which row belongs to which group, how long a group may take, and which row is one
that was sent before. :mod:`~rewardkit.serving.joining` scores the groups.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import pickle
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rewardkit.errors import DataError, InfrastructureError, RewardDefinitionError
from rewardkit.groups import group_key
from rewardkit.runtime.plan import CallerRows
from rewardkit.score_batch import ScoreBatch
from rewardkit.serving.joining import Joining
from rewardkit.types import Outcome, Rollout

GROUP_WAIT_S = 120.0  # Seconds that a group may take to become whole, from its first row on
REMEMBERED = 16_384  # Answers that are kept for a row that is sent again
REMEMBERED_S = 300.0  # Seconds for which they are

Context = tuple[int | None, float | None]


@dataclass(slots=True, eq=False)
class Seat:
    """The place of one row in its group."""

    digest: bytes  # What a row that is sent again has in common with the first time
    answer: asyncio.Future[Mapping[str, Outcome]]  # The row's outcomes by reward
    callers: int = 0  # How many wait for it now
    until: float = math.inf  # When it is forgotten, on the loop's clock; never before it is answered


@dataclass(slots=True, eq=False)
class _Group:
    """The rows of a prompt and an example that have come so far."""

    key: tuple[bytes, Context]
    rollouts: list[Rollout] = field(default_factory=list)
    seats: list[Seat] = field(default_factory=list)
    timer: asyncio.TimerHandle | None = None


class Gathering:
    """Scores rows in whole groups, though each may be asked for alone.

    A group is the rows of one prompt and one example. Its ``size``-th row makes it whole; a further row begins the next
    group. A group that is not whole ``wait_s`` seconds after its first row is late: its rows are scored, but the
    rewards that score groups are not run, and their calls are failed with cause ``infrastructure``.

    A row that is sent again gets the answer of the first time, and no second place in a group. With a ``sample`` it is
    known by prompt, example, completion and sample. Without one it is known by the first three, and only if whoever
    sent the first has hung up: two completions of a prompt are often equal.
    """

    def __init__(self, joining: Joining, size: int, wait_s: float = GROUP_WAIT_S) -> None:
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise RewardDefinitionError(f"group_size={size!r}: expected a whole number, 1 or more")
        if isinstance(wait_s, bool) or not isinstance(wait_s, int | float) or not 0 < wait_s < math.inf:
            raise RewardDefinitionError(f"group_wait_s={wait_s!r}: expected a number of seconds above 0")
        self._joining, self._size, self._wait_s = joining, size, wait_s
        self._open: dict[tuple[bytes, Context], _Group] = {}
        self._by_sample: dict[bytes, Seat] = {}  # By digest, of the rows that have a sample
        self._left: defaultdict[bytes, list[Seat]] = defaultdict(list)  # By digest, of those whose callers hung up
        self._answered: deque[Seat] = deque()  # Those that are remembered, the oldest first
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def waiting(self) -> int:
        """Rows that wait for the rest of their group."""
        return sum(len(group.seats) for group in self._open.values())

    async def score(
        self,
        rollouts: Sequence[Rollout],
        *,
        samples: Sequence[str | None] | None = None,
        step: int | None = None,
        epoch: float | None = None,
        within_s: float | None = None,
    ) -> ScoreBatch:
        """Score rows, each together with its group, and return and raise as :meth:`JoinedRuntime.score` does."""
        rollouts = list(rollouts)
        self._joining.runtime.check(rollouts)
        labels = [None] * len(rollouts) if samples is None else samples
        digests = [_digest(rollout, label, (step, epoch)) for rollout, label in zip(rollouts, labels, strict=True)]
        self._joining.admit(len(rollouts))  # before a seat is taken, so that a full server changes no group
        seats = [
            self._seat(rollout, digest, (step, epoch), is_named=label is not None)
            for rollout, digest, label in zip(rollouts, digests, labels, strict=True)
        ]
        try:
            async with asyncio.timeout(within_s):
                if seats:
                    await asyncio.wait({seat.answer for seat in seats})  # not gather: it would cancel others' answers
        except TimeoutError:
            raise InfrastructureError(f"{len(rollouts):,} rows were not scored within {within_s:g} s") from None
        finally:
            for seat in seats:
                self._leave(seat)
        answers = [seat.answer.result() for seat in seats]
        names = list(answers[0]) if answers else self._joining.runtime.names
        outcomes = {name: [answer[name] for answer in answers] for name in names}
        return ScoreBatch(rollouts, outcomes, self._joining.runtime.weights)

    def flush(self, why: str) -> None:
        """Score what waits, as groups that are late."""
        for group in list(self._open.values()):
            self._close(group, why)

    def _seat(self, rollout: Rollout, digest: bytes, context: Context, *, is_named: bool) -> Seat:
        """Return the seat of a row: that of the first time, if it is sent again, else the next in its group."""
        seat = self._earlier_seat(digest, is_named=is_named)
        if seat is not None:
            self._joining.release(1)  # the first time still counts
        else:
            seat = self._new_seat(rollout, digest, context)
            if is_named:
                self._by_sample[digest] = seat
        seat.callers += 1
        return seat

    def _earlier_seat(self, digest: bytes, *, is_named: bool) -> Seat | None:
        """Return the seat of a row that is sent again, which no longer counts as left; ``None`` for a new row."""
        now = asyncio.get_running_loop().time()
        while self._answered and self._answered[0].until <= now:
            self._forget(self._answered.popleft())
        if is_named:
            return self._by_sample.get(digest)
        left = self._left.get(digest)
        if left is None:
            return None
        seat = left.pop()
        if not left:
            del self._left[digest]
        return seat

    def _new_seat(self, rollout: Rollout, digest: bytes, context: Context) -> Seat:
        """Return the next seat of a row's group, which is scored once it is whole; the first row begins one."""
        loop = asyncio.get_running_loop()
        key = group_key(rollout), context
        group = self._open.get(key)
        if group is None:
            group = self._open[key] = _Group(key)
            group.timer = loop.call_later(self._wait_s, self._give_up, group)
        seat = Seat(digest, loop.create_future())
        group.rollouts.append(rollout)
        group.seats.append(seat)
        if len(group.seats) == self._size:
            self._close(group, None)
        return seat

    def _leave(self, seat: Seat) -> None:
        """Note that a caller no longer waits; one that left without its answer may send the row again."""
        seat.callers -= 1
        if seat.callers or self._by_sample.get(seat.digest) is seat:
            return
        if not seat.answer.done():
            self._left[seat.digest].append(seat)

    def _give_up(self, group: _Group) -> None:
        """Score a group that is not whole in time."""
        count = f"{len(group.seats)} of the {self._size} completions of the prompt"
        self._close(group, f"the group is not whole: {count} came within {self._wait_s:g} s")

    def _close(self, group: _Group, late: str | None) -> None:
        """Take no more rows into a group and score it; ``late`` says why it is not whole."""
        assert group.timer is not None
        group.timer.cancel()
        del self._open[group.key]
        task = asyncio.create_task(self._score(group, late))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _score(self, group: _Group, late: str | None) -> None:
        """Score a group, and give each of its seats its outcomes or the error."""
        try:
            _, (step, epoch) = group.key
            batch = await self._joining.score_admitted(CallerRows(group.rollouts, late), step, epoch)
        except Exception as error:
            for seat in group.seats:
                seat.answer.set_exception(error)
                seat.answer.exception()  # who asked may be gone
        else:
            for row, seat in enumerate(group.seats):
                seat.answer.set_result({name: column[row] for name, column in batch.items()})
        finally:
            self._joining.release(len(group.seats))
            for seat in group.seats:
                if not seat.answer.done():
                    seat.answer.cancel()
                self._remember(seat)

    def _remember(self, seat: Seat) -> None:
        """Remember an answer for a row that may be sent again, and forget the oldest; a fault is not remembered."""
        if seat.answer.cancelled() or seat.answer.exception() is not None:
            self._forget(seat)
        elif self._by_sample.get(seat.digest) is seat or seat in self._left.get(seat.digest, ()):
            seat.until = asyncio.get_running_loop().time() + REMEMBERED_S
            self._answered.append(seat)
        while len(self._answered) > REMEMBERED:
            self._forget(self._answered.popleft())

    def _forget(self, seat: Seat) -> None:
        """Forget a seat, so that a row that is sent again is a new one."""
        if self._by_sample.get(seat.digest) is seat:
            del self._by_sample[seat.digest]
        left = self._left.get(seat.digest, [])
        if seat in left:
            left.remove(seat)
        if not left:
            self._left.pop(seat.digest, None)


def _digest(rollout: Rollout, sample: str | None, context: Context) -> bytes:
    """Return a digest of a row, the same if it is sent again; DataError where the completion does not pickle."""
    try:
        content = pickle.dumps((rollout.completion, sample, context), protocol=5)
    except Exception as error:
        raise DataError(f"the completion cannot be told from others: {error}") from error
    return hashlib.blake2b(group_key(rollout) + content, digest_size=16).digest()
