"""The scores of a run as arrays that grow with it, and what is measured of them: the reward, or one reward's scores."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from rewardkit.errors import RecordError
from rewardkit.record.batch_rows import LETTERS
from rewardkit.record.columns import ScorePart
from rewardkit.record.reader import RunReader
from rewardkit.record.table import Bytes, Floats, Mask, Whole
from rewardkit.shown.text import near_names
from rewardkit.types import Status

STRETCH = 20_000  # Completions that are read with one query
TOTAL_NAMES = ("reward", "total")
"""What the weighted sum is called where a score is named; a reward of the run that has this name goes before it."""
SCORED, SKIPPED, FAILED = (ord(LETTERS[status]) for status in (Status.SCORED, Status.SKIPPED, Status.FAILED))

S = TypeVar("S", bound=np.generic)
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
    """The scores of a run, read a stretch at a time and kept while the run grows. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._forget()

    def _forget(self) -> None:
        self._last = 0
        self._batches = (0, 0)
        self._parts: dict[str, list[_Part]] = {}
        self._ordinals: dict[tuple[int, str, int], int] = {}  # batches so far of a session at a step
        self._moments: dict[tuple[int, str, int], int] = {}  # the numbers of moments, which processes share
        self._moment_of: dict[int, int] = {}  # by batch
        self._splits: dict[str, tuple[int, Scores]] = {}

    def read(self, run: RunReader, budget_s: float | None = None, tick: Tick | None = None) -> tuple[int, int]:
        """Read what is new, for a limited time unless it is ``None``; return how far it came, and how far there is.

        Both are numbers of completions. Where batches were taken away, all is read again. ``tick`` is called with both
        after each stretch.
        """
        with self._lock:
            last = run.last_id
            if self._batches != run.batches_until(self._last):
                self._forget()
            until = None if budget_s is None else time.monotonic() + budget_s
            while self._last < last:
                stretch = min(self._last + STRETCH, last)
                self._add(run.score_part(self._last, stretch))
                self._last = stretch
                if tick is not None:
                    tick(self._last, last)
                if until is not None and time.monotonic() > until:
                    break
            self._batches = run.batches_until(self._last)
            return self._last, last

    def of(self, split: str) -> Scores:
        """Return the completions of ``"train"`` or ``"eval"`` that were read."""
        with self._lock:
            last, scores = self._splits.get(split, (-1, None))
            if scores is None or last != self._last:
                scores = self._joined(split)
                self._splits[split] = (self._last, scores)
            return scores

    def _add(self, part: ScorePart) -> None:
        """Keep a stretch; number the batches of each process within a step, which tells groups apart."""
        for number, moment in sorted(part.moments.items()):
            if number not in self._moment_of:
                key = (moment.step, moment.split, moment.session)
                ordinal = self._ordinals[key] = self._ordinals.get(key, -1) + 1
                # batches without a step are of no one moment: each is one of its own
                own = (moment.step, moment.split, ordinal if moment.step >= 0 else number)
                self._moment_of[number] = self._moments.setdefault(own, len(self._moments))
        batches, places = np.unique(part.batches, return_inverse=True)
        moments = [part.moments[number] for number in batches.tolist()]
        steps = np.array([moment.step for moment in moments], np.int64)[places]
        numbers = np.array([self._moment_of[number] for number in batches.tolist()], np.int64)[places]
        for split in dict.fromkeys(moment.split for moment in moments):
            mask = np.array([moment.split == split for moment in moments], np.bool_)[places]
            self._parts.setdefault(split, []).append(_Part(part, steps[mask], numbers[mask], mask))

    def _joined(self, split: str) -> Scores:
        parts = self._parts.get(split, [])
        names = list(dict.fromkeys(itertools.chain.from_iterable(own.part.scores for own in parts)))

        def whole(column: Callable[[_Part], Whole]) -> Whole:
            return np.concatenate([np.zeros(0, np.int64), *map(column, parts)])

        def by_name(column: Callable[[ScorePart], Mapping[str, NDArray[S]]], empty: S) -> dict[str, NDArray[S]]:
            return {name: _column([(column(own.part).get(name), own.mask) for own in parts], empty) for name in names}

        prompts = whole(lambda own: own.part.prompts[own.mask])
        return Scores(
            ids=whole(lambda own: own.part.ids[own.mask]),
            steps=whole(lambda own: own.steps),
            prompts=prompts,
            visits=_numbered(whole(lambda own: own.moments), whole(lambda own: own.part.groups[own.mask]), prompts),
            totals=np.concatenate([np.zeros(0), *(own.part.totals[own.mask] for own in parts)]),
            scores=by_name(lambda part: part.scores, np.float64("nan")),
            status=by_name(lambda part: part.status, np.uint8(0)),
            versions=by_name(lambda part: part.versions, np.int64(0)),
            weights=by_name(lambda part: part.weights, np.float64(0.0)),
        )


class _Part(NamedTuple):
    """A stretch, and its completions of one split."""

    part: ScorePart
    steps: Whole  # Of the split's completions
    moments: Whole  # The numbers of their moments
    mask: Mask  # Which completions of the stretch are of the split


def _numbered(*columns: Whole) -> Whole:
    """Return a number for each combination of the columns' values."""
    numbers, size = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        width = int(column.max(initial=0)) + 1
        if size * width >= 2**62:
            numbers, size = np.unique(numbers, return_inverse=True)[1].reshape(-1), len(numbers) + 1
        numbers, size = numbers * width + column, size * width
    return numbers


def _column(parts: Sequence[tuple[NDArray[S] | None, Mask]], empty: S) -> NDArray[S]:
    """Return a column over several stretches; one that has it not is ``empty`` there."""
    return np.concatenate(
        [
            np.full(int(mask.sum()), empty, empty.dtype) if array is None else array[mask].astype(empty.dtype)
            for array, mask in parts
        ]
    )
