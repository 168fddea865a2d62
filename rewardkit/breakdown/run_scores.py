"""The scores of a run as arrays that grow with it, and what is measured of them: the reward, or one reward's scores."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np

from rewardkit.errors import RecordError
from rewardkit.record.batch_rows import LETTERS
from rewardkit.record.number_blocks import STATES
from rewardkit.record.reader import RunReader
from rewardkit.record.run_numbers import RunNumbers
from rewardkit.record.table import Bytes, Floats, Mask, Whole
from rewardkit.shown.text import near_names
from rewardkit.types import Status

_BATCHES = 64  # Batches whose groups are read at once
TICK_S = 0.2  # Seconds between two words on how far a reading is
TOTAL_NAMES = ("reward", "total")
"""What the weighted sum is called where a score is named; a reward of the run that has this name goes before it."""
SCORED, SKIPPED, FAILED = (ord(LETTERS[status]) for status in (Status.SCORED, Status.SKIPPED, Status.FAILED))
_STATUS_OF = np.array([0, SCORED, SKIPPED] + [FAILED] * len(STATES), np.uint8)
"""The letter of a status as a number, by the state of a call."""
Tick = Callable[[int, int], object]


@dataclass(frozen=True, slots=True)
class Scores:
    """The completions of a split in the order of recording; every array has one entry a completion."""

    ids: Whole  # Their numbers in the record
    steps: Whole  # Optimizer steps done; -1 where that is not known
    prompts: Whole  # The numbers of their prompts
    visits: Whole  # The number of the group: a visit to a prompt, also where its completions are of several processes
    totals: Floats  # The weighted sums, as the trainer computes them; `nan` for a completion without one
    scores: Mapping[str, Floats]  # By reward, what it scored; `nan` where it did not
    status: Mapping[str, Bytes]  # By reward, the letter of the status as a number; 0 where it was not asked
    versions: Mapping[str, Whole]  # By reward, the number of its version; 0 where it was not asked
    weights: Mapping[str, Floats]  # By reward, its weight in the total; 0 where it was not asked

    def __len__(self) -> int:
        return len(self.ids)

    def by_question(self, questions: Whole) -> Scores:
        """Return the completions with the prompts of one text taken as one, whose number is that of the first of them.

        A visit is then all completions of a text at one step, or at no step. ``questions`` has that number by prompt.
        """
        prompts = questions[self.prompts]
        return replace(self, prompts=prompts, visits=_numbered(self.steps + 1, prompts))

    def where(self, chosen: Mask) -> Scores:
        """Return the completions where a mask is true."""
        parts: dict[str, Any] = {}
        for part in fields(self):
            value = getattr(self, part.name)
            is_named = isinstance(value, Mapping)
            parts[part.name] = {name: array[chosen] for name, array in value.items()} if is_named else value[chosen]
        return Scores(**parts)


class Measured(NamedTuple):
    """What is measured of completions: the total or one reward's own score, with what became of the others.

    Attributes:
        values: The total, or the score; ``nan`` for a completion without one, and where a call failed: what stands in
            is no score, and a total with it would pass for a low one.
        skipped: Where there is no value and nothing failed: the reward did not apply.
        failed: Where the reward failed; of a total, where a reward failed that weighs anything.
        has_call: Where the reward was asked; of a total everywhere.
    """

    name: str  # `reward` for the total, else the reward's name
    is_total: bool
    values: Floats
    skipped: Mask
    failed: Mask
    has_call: Mask


def measure(scores: Scores, rewards: Sequence[str], name: str | None = None) -> Measured:
    """Return what is measured: the total, or the scores of the reward with this name.

    Raises:
        RecordError: The run has no such reward.
    """
    if name is None or (name in TOTAL_NAMES and name not in rewards):
        failed = np.zeros(len(scores), np.bool_)
        for reward, status in scores.status.items():
            failed |= (scores.weights[reward] != 0) & (status == FAILED)
        values = np.where(failed, np.nan, scores.totals)
        return Measured("reward", True, values, np.isnan(values) & ~failed, failed, np.ones(len(scores), np.bool_))
    if name not in rewards:
        raise RecordError(f"no reward {name!r}{near_names(name, [*rewards, *TOTAL_NAMES])}")
    status = scores.status.get(name, np.zeros(len(scores), np.uint8))
    values = scores.scores.get(name, np.full(len(scores), np.nan))
    return Measured(name, False, values, status == SKIPPED, status == FAILED, status != 0)


class RunScores:
    """The scores of a run, read a part at a time and kept while the run grows. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = RunNumbers()
        self._groups: list[_BatchGroups] = []
        self._splits: dict[str, tuple[tuple[int, int], Scores]] = {}

    def read(self, run: RunReader, budget_s: float | None = None, tick: Tick | None = None) -> tuple[int, int]:
        """Read what is new, for a limited time unless it is ``None``; return how far it came, and how far there is.

        Both are numbers of completions. Where batches were taken away, all is read again. ``tick`` is called with both
        now and then.
        """
        with self._lock:
            while True:
                until = time.monotonic() + (TICK_S if budget_s is None else budget_s)
                of = self._numbers.update(run, until - time.monotonic()).of
                self._read_groups(run, until)
                done = sum(len(own.groups) for own in self._groups)
                if tick is not None:
                    tick(done, of)
                if budget_s is not None or done >= self._numbers.count >= of:
                    return (of, of) if done >= self._numbers.count >= of else (done, of)

    def _read_groups(self, run: RunReader, until: float) -> None:
        """Read the groups of the batches whose numbers were read, at least of some."""
        batches, own = self._numbers.batches, self._groups
        while own and (len(own) > len(batches) or own[-1].batch != batches[len(own) - 1].id):
            own.pop()  # some were taken away, or are read again
        while len(own) < len(batches):
            chunk = batches[len(own) : len(own) + _BATCHES]
            rows = iter(run.group_numbers(chunk[0].id, chunk[-1].id))
            for batch in chunk:
                groups = np.array(list(itertools.islice(rows, len(batch.ids))), np.int64)
                if len(groups) < len(batch.ids):  # taken away just now
                    return
                own.append(_BatchGroups(batch.id, groups))
            if time.monotonic() > until:
                return

    def of(self, split: str) -> Scores:
        """Return the completions of ``"train"`` or ``"eval"`` that were read."""
        with self._lock:
            now = self._numbers.state, len(self._groups)
            state, scores = self._splits.get(split, (None, None))
            if scores is None or state != now:
                scores = self._scores(split)
                self._splits[split] = (now, scores)
            return scores

    def _scores(self, split: str) -> Scores:
        numbers = self._numbers
        groups = np.concatenate([np.zeros(0, np.int64), *(own.groups for own in self._groups)])
        own = (numbers.column("train") == (split == "train")) & (np.arange(numbers.count) < len(groups))
        names = dict.fromkeys(name for batch in numbers.batches if batch.split == split for name in batch.versions)

        def whole(values: Floats, absent: int = 0) -> Whole:
            return np.where(np.isnan(values[own]), absent, values[own]).astype(np.int64)

        prompts = whole(numbers.column("prompt"))
        return Scores(
            ids=whole(numbers.column("id")),
            steps=whole(numbers.column("step"), -1),
            prompts=prompts,
            visits=_numbered(self._moments()[own], groups[own[: len(groups)]], prompts),
            totals=numbers.column("total")[own],
            scores={name: numbers.own_scores(name)[own] for name in names},
            status={name: _STATUS_OF[whole(numbers.column("state", name))] for name in names},
            versions={name: whole(numbers.column("version", name)) for name in names},
            weights={name: np.nan_to_num(numbers.column("weight", name)[own]) for name in names},
        )

    def _moments(self) -> Whole:
        """Return the number of each completion's moment: the processes of a run share those of a step, in order."""
        ordinals: dict[tuple[int | None, str, int], int] = {}  # Batches so far of a session at a step
        moments: dict[tuple[int | None, str, int], int] = {}
        own: list[int] = []
        for batch in self._numbers.batches:
            key = (batch.step, batch.split, batch.session)
            ordinal = ordinals[key] = ordinals.get(key, -1) + 1
            # batches without a step are of no one moment: each is one of its own
            moment = (batch.step, batch.split, batch.id if batch.step is None else ordinal)
            own.append(moments.setdefault(moment, len(moments)))
        return np.repeat(np.array(own, np.int64), [len(batch.ids) for batch in self._numbers.batches])


class _BatchGroups(NamedTuple):
    """To which group of its batch each completion belongs."""

    batch: int  # The batch's number in the record
    groups: Whole


def _numbered(*columns: Whole) -> Whole:
    """Return a number for each combination of the columns' values."""
    numbers, size = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        width = int(column.max(initial=0)) + 1
        if size * width >= 2**62:
            numbers, size = np.unique(numbers, return_inverse=True)[1].reshape(-1), len(numbers) + 1
        numbers, size = numbers * width + column, size * width
    return numbers
