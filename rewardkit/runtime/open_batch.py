"""A batch whose completions become known one after another: those that are there are scored while others are made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rewardkit.declare.decorator import Reward
from rewardkit.declare.spec import CallContext, Kind
from rewardkit.groups import content_bytes, group_places
from rewardkit.runtime.batch import Columns
from rewardkit.runtime.cache import Key, cache_key
from rewardkit.runtime.lanes import RunningBatch
from rewardkit.runtime.plan import ABSENT, BatchPortion, check_rollouts, machine_of
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Rollout


class OpenBatch:
    """A batch that is scored while its completions are being made; :meth:`Runtime.open_batch` makes one.

    ::

        with runtime.open_batch(step=3) as batch:
            for row, rollout in finished_one_by_one():
                batch.add({row: rollout})
            scores = batch.score(rollouts)

    The scores are those of :meth:`Runtime.score` on the same rollouts. What was added counts where the batch has an
    equal rollout in that row; everything else is called when the batch is scored. One thread at a time uses it.
    """

    def __init__(
        self,
        leaves: Sequence[Reward[..., Any]],
        context: CallContext,
        begin: Callable[[Sequence[Rollout], BatchPortion], RunningBatch],
        finish: Callable[[Sequence[Rollout], Columns], ScoreBatch],
    ) -> None:
        self._leaves = leaves
        self._context = context
        self._begin = begin
        self._finish = finish
        self._scores_groups = any(leaf.spec.kind is Kind.GROUP for leaf in leaves)
        self._keeping = [
            (number, leaf.spec)
            for number, leaf in enumerate(leaves)
            if leaf.options.cache and leaf.spec.kind is Kind.SINGLE
        ]
        self._machine = machine_of(leaves)
        self._rollouts: list[Rollout] = []
        self._contents: dict[int, bytes] = {}  # By row; bytes that are equal for equal rollouts
        self._begun: dict[int, RunningBatch] = {}  # By row, what calls the rewards of single completions
        self._groups: dict[tuple[int, ...], RunningBatch] = {}
        self._runs: list[RunningBatch] = []
        self._asked: set[Key] = set()  # Calls of rewards with ``cache=True``, which are made once

    @property
    def begun(self) -> int:
        """How many rows are being scored, or have been."""
        return len(self._begun)

    def add(self, rollouts: Mapping[int, Rollout], groups: Iterable[Sequence[int]] = ()) -> None:
        """Begin to score some rows, and return at once.

        Args:
            rollouts: The rollouts by their row in the batch, from 0; a row counts as it was added first.
            groups: Groups of which all rows have been added, each with its rows in their order; rewards of groups score
                them. A group that is not given is scored with the batch.

        Raises:
            DataError: A row cannot travel to a worker process.
            RewardLoadError: A worker cannot load a reward.
            RuntimeClosedError: The runtime is closed.
        """
        rows: list[int] = []
        for row, rollout in rollouts.items():
            content = _content_of(rollout)
            if content is None or row in self._contents:
                continue
            self._rollouts += [ABSENT] * (row + 1 - len(self._rollouts))
            self._rollouts[row], self._contents[row] = rollout, content
            if self._may_begin(rollout):
                rows.append(row)
        whole = [group for group in map(tuple, groups) if self._is_open(group)]
        if rows or whole:
            run = self._run(self._rollouts, BatchPortion(rows, whole))
            self._begun.update(dict.fromkeys(rows, run))
            self._groups.update(dict.fromkeys(whole, run))

    def _is_open(self, group: tuple[int, ...]) -> bool:
        """Return whether a group is whole and has not been begun."""
        return self._scores_groups and group not in self._groups and all(row in self._contents for row in group)

    def score(self, rollouts: Iterable[Rollout]) -> ScoreBatch:
        """Score the whole batch: call what has not been called, wait for all, and raise as :meth:`Runtime.score` does.

        Args:
            rollouts: All of them, in their order.
        """
        batch = list(rollouts)
        try:
            check_rollouts(self._leaves, batch)
            columns = self._columns(batch)
        finally:
            self.close()
        return self._finish(batch, columns)

    def _columns(self, batch: Sequence[Rollout]) -> Columns:
        """Return the outcomes of each reward on the whole batch."""
        same = {
            row for row, content in self._contents.items() if row < len(batch) and content == _content_of(batch[row])
        }
        runs = {row: run for row, run in self._begun.items() if row in same}
        all_groups = group_places(batch) if self._scores_groups else []
        groups: dict[tuple[int, ...], RunningBatch] = {}
        for group in all_groups:
            if group in self._groups and same.issuperset(group):
                groups[group] = self._groups[group]
        lacking = [group for group in all_groups if group not in groups]
        rest = [row for row in range(len(batch)) if row not in runs]
        at_once = [row for row in rest if self._may_begin(batch[row])]
        later = sorted(set(rest).difference(at_once))
        for rows, whole in ((at_once, lacking), (later, [])):
            if rows or whole:
                run = self._run(batch, BatchPortion(rows, whole))
                runs.update(dict.fromkeys(rows, run))
                groups.update(dict.fromkeys(whole, run))
            for waited in (*runs.values(), *groups.values()):
                waited.done.result()
        runs_by_group = {row: run for group, run in groups.items() for row in group}
        settled = {id(run): run.settler.settled() for run in (*runs.values(), *groups.values())}
        return {
            leaf: [
                settled[id((runs_by_group if leaf.spec.kind is Kind.GROUP else runs)[row])][leaf][row]
                for row in range(len(batch))
            ]
            for leaf in self._leaves
        }

    def close(self) -> None:
        """Stop what has not been run. A second call does nothing."""
        runs, self._runs = self._runs, []
        for run in runs:
            run.cancel()

    def __enter__(self) -> OpenBatch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self, rollouts: Sequence[Rollout], portion: BatchPortion) -> RunningBatch:
        read = {*portion.rows, *(row for group in portion.groups for row in group)}
        run = self._begin([rollout if row in read else ABSENT for row, rollout in enumerate(rollouts)], portion)
        self._runs.append(run)
        return run

    def _may_begin(self, rollout: Rollout) -> bool:
        """Return whether no reward keeps the outcome of a call that is under way for an equal row, and note the calls.

        That row waits for the batch's end, when the outcome is there: equal calls have one outcome.
        """
        keys = {cache_key(number, spec, [rollout], self._context, self._machine) for number, spec in self._keeping}
        if not self._asked.isdisjoint(keys):
            return False
        self._asked.update(keys)
        return True


def _content_of(rollout: Rollout) -> bytes | None:
    """Return bytes that are equal for equal rollouts; ``None`` where it cannot be compared by its bytes."""
    try:
        return content_bytes((rollout.prompt, rollout.completion, rollout.example, rollout.completion_ids))
    except Exception:  # pickling runs the value's own code, which may raise anything
        return None
