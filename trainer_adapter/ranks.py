"""The processes of one training, its ranks: what they tell each other of a batch, and which of them scores which row.

A trainer hands each rank its own rows. Where a group's rows are split between ranks, they travel to the rank that holds
the group's first row, and their outcomes travel back. Whatever one rank raises on the way, all raise, so that nobody
waits for a rank that has given up. It knows torch.distributed and no trainer; what a rank does with its rows is the
caller's.

Ranks exchange pickles: they are the processes of one training, which run one script.
"""

from __future__ import annotations

import bisect
import importlib
import itertools
import pickle
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from rewardkit import InfrastructureError, Outcome, RewardError, Rollout, ScoreBatch
from trainer_adapter.columns import FrozenBatch, PackedRows

_T = TypeVar("_T")
_OURS = ("rewardkit", "builtin_rewards", "trainer_adapter", "sandbox")
"""Packages whose errors keep their class on other ranks, beside Python's own: all ranks have them."""


class RankFault(NamedTuple):
    """An error of one rank, as the others raise it too."""

    rank: int  # The rank that it befell
    module: str  # Where its class is defined
    name: str  # The class
    message: str  # Its message

    @classmethod
    def of(cls, error: Exception, rank: int) -> RankFault:
        """Return an error as it travels."""
        return cls(rank, type(error).__module__, type(error).__qualname__, str(error))

    def error(self) -> Exception:
        """Return the error to raise, the same on every rank, whose message names the rank."""
        kind: Any = None
        if self.module == "builtins" or self.module.partition(".")[0] in _OURS:
            kind = getattr(importlib.import_module(self.module), self.name, None)
        try:
            error = kind(f"rank {self.rank}: {self.message}")
        except TypeError:  # no class, or one that is made of something else than a message
            error = None
        return error if isinstance(error, Exception) else RewardError(f"rank {self.rank}: {self.name}: {self.message}")


class RankCall(NamedTuple):
    """What a process says of a call to the others."""

    reward: str | None  # Whose scores the trainer asks for
    names: tuple[str, ...]  # The rewards that score
    rows: int  # Rows that the trainer handed to this process
    fresh: bool  # Whether the batch has to be scored
    host: str  # The host's name


@dataclass(frozen=True, slots=True)
class Ranks:
    """The ranks of a training, as one of them sees them; one rank alone exchanges nothing."""

    rank: int = 0  # This process's rank, from 0
    count: int = 1  # How many ranks there are

    @classmethod
    def of(cls, processes: int) -> Ranks | None:
        """Return the ranks of torch's default process group; ``None`` where a trainer's processes are not those."""
        if processes == 1:
            return cls()
        distributed = sys.modules.get("torch.distributed")  # a trainer with several processes has loaded it
        if distributed is None or not distributed.is_available() or not distributed.is_initialized():
            return None
        return cls(distributed.get_rank(), processes) if distributed.get_world_size() == processes else None

    def share(self, make: Callable[[], _T]) -> list[_T]:
        """Return what each rank made, by rank. All ranks call it together.

        What ``make`` raises on the first rank on which it does is raised on every rank, naming that rank. A rank that
        is gone, or does not come in the time of the process group, is an ``InfrastructureError``.
        """
        if self.count == 1:
            return [make()]
        fault = cause = value = None
        try:
            value = make()
        except Exception as error:
            fault, cause = RankFault.of(error, self.rank), error
        results = self._gather((fault, value))
        first = next((fault for fault, _ in results if fault is not None), None)
        if first is not None:
            raise first.error() from cause
        return [value for _, value in results]

    def _gather(self, own: tuple[RankFault | None, object]) -> list[Any]:
        """Return what each rank has, by rank."""
        try:
            pickles = _exchange(pickle.dumps(own, protocol=5), self.count)
        except (RuntimeError, ValueError) as reason:  # without a process group torch raises a ValueError
            raise InfrastructureError(
                f"rank {self.rank}: the processes of this training cannot exchange rewards any more ({reason}): one of "
                "them has ended, or kept the others waiting for longer than the trainer's ddp_timeout; look for the "
                "error of that one"
            ) from reason
        return [own if rank == self.rank else pickle.loads(data) for rank, data in enumerate(pickles)]  # noqa: S301


def check_same_rewards(calls: Sequence[RankCall]) -> None:
    """Raise where the processes of a training ask for different rewards."""
    for rank, other in enumerate(calls):
        if (other.reward, other.names) != (calls[0].reward, calls[0].names):
            raise RewardError(
                f"the processes of this training ask for different rewards: rank 0 for {calls[0].reward!r} of "
                f"{', '.join(calls[0].names)}, rank {rank} for {other.reward!r} of {', '.join(other.names)}; give "
                "all of them the same rewards"
            )


def _exchange(own: bytes, count: int) -> list[memoryview]:
    """Return the bytes of each rank of the default process group, by rank."""
    import torch
    import torch.distributed as dist

    device = torch.device("cpu")
    if "cpu" not in str(dist.get_backend_config()):  # such as "cuda:nccl", which carries what a GPU has
        device = torch.device("cuda", torch.cuda.current_device())
    sizes = [torch.zeros(1, dtype=torch.int64, device=device) for _ in range(count)]
    dist.all_gather(sizes, torch.tensor([len(own)], dtype=torch.int64, device=device))
    lengths = [int(size) for size in sizes]
    padded = torch.zeros(max(lengths), dtype=torch.uint8)  # all ranks must send as much
    padded[: len(own)] = torch.frombuffer(bytearray(own), dtype=torch.uint8)
    buffers = [torch.empty(max(lengths), dtype=torch.uint8, device=device) for _ in range(count)]
    dist.all_gather(buffers, padded.to(device))
    return [memoryview(buffer.cpu().numpy().data)[:length] for buffer, length in zip(buffers, lengths, strict=True)]


def owners(counts: Sequence[int], generations: int) -> list[list[int]]:
    """Return, for each rank and each of its rows, the rank that holds the first row of the row's group.

    The trainer cuts all rows, in the order of the ranks, into groups.

    >>> owners([6, 6], 4)
    [[0, 0, 0, 0, 0, 0], [0, 0, 1, 1, 1, 1]]
    """
    starts = list(itertools.accumulate(counts, initial=0))
    return [
        [bisect.bisect_right(starts, row // generations * generations) - 1 for row in range(start, start + count)]
        for start, count in zip(starts, counts, strict=False)
    ]


def score_together(
    ranks: Ranks, batch: FrozenBatch, owned: Sequence[Sequence[int]], score: Callable[[list[Rollout]], ScoreBatch]
) -> ScoreBatch:
    """Return the outcomes of this rank's rows. All ranks call it together; each scores the rows that it owns."""
    rank, rollouts = ranks.rank, batch.rollouts()
    away = [row for row, owner in enumerate(owned[rank]) if owner != rank]  # their group began on another rank
    guests: list[tuple[int, Rollout]] = []
    if any(owner != holder for holder, rows in enumerate(owned) for owner in rows):  # on any rank: all must share
        guests = _guests(ranks.share(lambda: batch.pack(away)), owned, rank)
    own_rollouts = [rollout for row, rollout in enumerate(rollouts) if owned[rank][row] == rank]
    batches: list[ScoreBatch] = []  # holds the batch that outcomes_of_guests() scores

    def outcomes_of_guests() -> dict[int, list[tuple[Outcome, ...]]]:
        """Score, and return the outcomes of each guest, by the rank that sent it."""
        scored = score([*own_rollouts, *(rollout for _, rollout in guests)])
        batches.append(scored)
        outcomes: dict[int, list[tuple[Outcome, ...]]] = {}
        for row, (sender, _) in enumerate(guests, start=len(own_rollouts)):
            outcomes.setdefault(sender, []).append(tuple(column[row] for column in scored.values()))
        return outcomes

    answers = [iter(outcomes.get(rank, ())) for outcomes in ranks.share(outcomes_of_guests)]  # by rank, of rows away
    (own_batch,) = batches
    if not guests and not away:
        return own_batch
    own = iter(zip(*own_batch.values(), strict=True))
    rows = [next(own) if owner == rank else next(answers[owner]) for owner in owned[rank]]
    columns = dict(zip(own_batch, map(list, zip(*rows, strict=True)), strict=True))
    return ScoreBatch(rollouts, columns, own_batch.weights)


def _guests(shares: Sequence[PackedRows], owned: Sequence[Sequence[int]], rank: int) -> list[tuple[int, Rollout]]:
    """Return the rows of other ranks that this one scores, each with its rank, in the trainer's order."""
    guests = []
    for sender, packed in enumerate(shares):
        hosts = [owner for owner in owned[sender] if owner != sender]  # of the rows that it packed, in their order
        rows = packed.only([row for row, host in enumerate(hosts) if host == rank])
        guests += [(sender, rollout) for rollout in rows.rollouts()]
    return guests
