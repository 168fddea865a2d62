"""What ``rewardkit score --record`` does with the scored rows."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from rewardkit.groups import group_places
from rewardkit.loading.registry import RewardSet
from rewardkit.record.places import run_path
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Rollout

Keep: TypeAlias = Callable[[ScoreBatch], None]


@contextlib.contextmanager
def recording(run: str | None, reward_set: RewardSet, about: Mapping[str, Any], *, append: bool) -> Iterator[Keep]:
    """Give a function that records batches; nothing is recorded where no run is named.

    A run without a batch, because an error came first, is taken away again. Raises RecordError where the run has a
    record and ``append`` is false, or it cannot be written, and OSError where not all of it is in the file.
    """
    if run is None:
        yield lambda batch: None
        return
    from rewardkit.record.recorder import Recorder  # it brings numpy and sqlite3 along

    record = run_path(run)
    is_new = not record.exists()
    recorder = Recorder(record, append=append, about=about, env=reward_set.env)
    batches = 0

    def keep(batch: ScoreBatch) -> None:
        nonlocal batches
        recorder.record(batch, rewards=reward_set.rewards)
        batches += 1
        if not recorder.flush():  # one batch at a time, so that no text is left out
            raise OSError(f"{recorder.path}: cannot be written; the scores are not recorded")

    try:
        yield keep
    finally:
        written = recorder.close()
        if is_new and not batches:
            record.remove()
    if not written:
        raise OSError(f"{recorder.path}: not all was written; the record is not whole")


def chunks_of_groups(rollouts: Sequence[Rollout], rows: int, is_finished: Callable[[int], bool]) -> Iterator[list[int]]:
    """Yield the places of rollouts, ``rows`` or more at a time, those of a group together.

    A group in which one place is not finished is left out.
    """
    chunk: list[int] = []
    for places in group_places(rollouts):
        if all(map(is_finished, places)):
            chunk += places
        if len(chunk) >= rows:
            yield sorted(chunk)
            chunk = []
    if chunk:
        yield sorted(chunk)
