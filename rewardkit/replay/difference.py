"""Two versions of a reward over the same completions, a portion at a time: numbers of all, words of a few."""

from __future__ import annotations

import dataclasses
import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from rewardkit.groups import group_numbers
from rewardkit.loading.registry import RewardSet
from rewardkit.record.table import Whole
from rewardkit.replay.compare import ZERO, Column, Comparison, Setting, compare
from rewardkit.replay.failures import FailureKind, Failures
from rewardkit.replay.single_scorer import PORTION_ROWS, Count, Portion, SingleScorer, Tick, UnitCost
from rewardkit.shown.text import counted
from rewardkit.types import Outcome, Rollout

SHOWN = 5  # Completions that are named, those that change most


class ChangedCompletion(NamedTuple):
    """A completion whose score changes much."""

    id: int  # Its number in the record, or its row in the file, from 0
    step: int | None  # Optimizer steps done; `None` outside a run
    rollout: Rollout  # Prompt, completion and row
    old: Outcome  # What the version before says
    new: Outcome  # What the version after says

    def as_json(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        rollout = self.rollout
        texts = {"prompt": rollout.prompt, "completion": rollout.completion, "example": dict(rollout.example)}
        return {"id": self.id, "step": self.step, **texts, "old": self.old.as_json(), "new": self.new.as_json()}


@dataclass(frozen=True, slots=True)
class Difference:
    """What a change of a reward does, and what it costs.

    Attributes:
        beside: The weights of the rewards that make up the total with it, by name; the last that the run had.
    """

    old: str  # What the version before is called
    new: str  # What the version after is called
    comparison: Comparison  # The numbers
    examples: Sequence[ChangedCompletion]  # The completions that change most, the largest change first
    old_cost: UnitCost | None  # What 1,000 completions take with the version before; `None` where it was not scored now
    new_cost: UnitCost | None  # The same of the version after
    beside: Mapping[str, float] = field(default_factory=dict)
    weight: float = 1.0  # The compared reward's own weight, the last that the run had
    formula: str = "group"  # How the advantages are made, see `FORMULAS`
    partial: str = "leave_out"  # What becomes of completions that a reward could not score
    left_out: Mapping[str, int] = field(default_factory=dict)  # Completions that could not be compared, by the reason
    notes: Sequence[str] = ()  # What else is to be known, each a sentence
    failures: Sequence[FailureKind] = ()  # The calls of now that failed, by kind, the most frequent first

    @property
    def told_notes(self) -> list[str]:
        """The notes on the numbers that every reader needs, each a sentence."""
        numbers = self.comparison
        beside = ", ".join(f"{weight:g} {name}" for name, weight in self.beside.items())
        notes = [f"{counted(numbers.completions, 'completion')} in {counted(numbers.groups, 'group')}"]
        if beside:
            notes[0] += f"; the total has weight {self.weight:g} for this reward, and beside it {beside}"
        if not numbers.grouped:
            notes.append("no prompt has two completions or more, so there are no advantages")
        if numbers.weightless:
            notes.append("the reward has the weight 0, so no advantage changes")
        if numbers.old.stand_ins + numbers.new.stand_ins:
            notes.append("a failed call has no score of its own; the advantages count it with its reward's default")
        notes += [f"left out: {counted(count, 'completion')}: {why}" for why, count in self.left_out.items()]
        return [*notes, *self.notes]

    def as_json(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        numbers = dataclasses.asdict(self.comparison)
        costs = {"old_cost": _cost(self.old_cost), "new_cost": _cost(self.new_cost)}
        setting = {"weight": self.weight, "beside": dict(self.beside), "formula": self.formula, "partial": self.partial}
        return {
            **numbers, "old_version": self.old, "new_version": self.new, **setting, **costs,
            "left_out": dict(self.left_out), "notes": list(self.notes),
            "failures": [kind.as_json() for kind in self.failures],
            "examples": [example.as_json() for example in self.examples],
        }  # fmt: skip


Describe = Callable[[int], ChangedCompletion]
"""Returns the completion at an index with both outcomes; it is asked for the few that are named."""


class Both:
    """Both versions' outcomes as they come in: the numbers of all, and how to name those whose score changes most."""

    def __init__(self, limit: int = SHOWN) -> None:
        self._limit, self.failures = limit, Failures()
        self._columns: tuple[list[Column], list[Column]] = [], []
        self._ids: list[Whole] = []
        self._changed: list[tuple[float, int, int, Describe]] = []  # A heap by change and number

    @property
    def ids(self) -> Whole:
        """The completions' numbers, in the order in which they came in."""
        return np.concatenate([np.zeros(0, np.int64), *self._ids])

    @property
    def examples(self) -> list[ChangedCompletion]:
        """The completions that change most, the largest change first."""
        largest = sorted(self._changed, key=lambda entry: entry[:2], reverse=True)
        return [describe(index) for _, _, index, describe in largest]

    @property
    def columns(self) -> tuple[Column, Column]:
        """The column of each version."""
        old, new = (
            Column(
                np.concatenate([column.scores for column in parts]), np.concatenate([column.status for column in parts])
            )
            for parts in self._columns
        )
        return old, new

    def add(self, ids: Sequence[int] | Whole, old: Column, new: Column, describe: Describe) -> None:
        """Add what both versions say of completions; a change is one of scores that the versions gave themselves."""
        for parts, column in zip(self._columns, (old, new), strict=True):
            parts.append(column)
        numbers = np.asarray(ids, np.int64)
        self._ids.append(numbers)
        changes = np.nan_to_num(np.abs(new.own - old.own))
        largest = np.lexsort((numbers, -changes))[: self._limit]
        for index in largest[changes[largest] > ZERO].tolist():
            heapq.heappush(self._changed, (float(changes[index]), -int(numbers[index]), index, describe))
            if len(self._changed) > self._limit:
                heapq.heappop(self._changed)


def of_data(
    old: RewardSet,
    new: RewardSet,
    rollouts: Sequence[Rollout],
    *,
    tick: Tick = lambda *numbers: None,
    examples: int = SHOWN,
    **lane: Any,
) -> Difference:
    """Return the difference of two rewards on the rollouts of a file, whose groups share a prompt and a row.

    Each reward is alone in its set. ``tick`` is called with the calls done, those known and those failed; ``lane`` has
    ``workers``, ``lane`` and ``load_timeout_s`` of a :class:`~rewardkit.replay.single_scorer.SingleScorer`.
    """
    groups = np.array(group_numbers(rollouts), np.int64)
    both = Both(examples)
    with SingleScorer(old, **lane) as first, SingleScorer(new, **lane) as second:
        size = len(rollouts) if first.grouped or second.grouped else PORTION_ROWS
        count = Count(tick, 2 * len(rollouts))
        for start in range(0, len(rollouts), size):
            portion = Portion(range(start, min(start + size, len(rollouts))), rollouts[start : start + size])
            before, after = first.score(portion, count), second.score(portion, count)
            for side, outcomes in (("old", before), ("new", after)):
                both.failures.add(side, portion.step, zip(portion.ids, outcomes, strict=True))
            both.add(portion.ids, Column.of(before), Column.of(after), describe_in(portion, before, after))
    setting = Setting(groups, np.zeros(len(rollouts), dtype=np.int64), np.ones(len(rollouts)))
    names = (first.name, second.name)
    costs = first.cost.total(), second.cost.total()
    changes = compare(*both.columns, setting)
    return Difference(*names, changes, both.examples, *costs, failures=both.failures.kinds)


def describe_in(portion: Portion, old: Sequence[Outcome], new: Sequence[Outcome]) -> Describe:
    """Return what names the completions of a portion."""
    return lambda index: ChangedCompletion(
        portion.ids[index], portion.step, portion.rollouts[index], old[index], new[index]
    )


def _cost(cost: UnitCost | None) -> dict[str, Any] | None:
    return None if cost is None else {"seconds": cost.seconds, **cost.metrics}
