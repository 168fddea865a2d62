"""What the table of prompts sorts and filters by: a few numbers a prompt, added up as the run grows."""

from __future__ import annotations

import functools
import itertools
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from rewardkit.dashboard.as_json import plain
from rewardkit.record.as_text import value_text
from rewardkit.record.reader import RunReader
from rewardkit.record.table import Floats, Whole
from rewardkit.record.values import Progress, PromptSums, RecordedPrompt

SLICE_S = 0.1  # Seconds of reading after which an answer says how far it came; the next one goes on from there
STRETCH = 20_000  # Completions that are summed in one query
VALUE_CHARS = 200  # Characters of a column's value, and of a prompt's text, by which prompts are sorted and filtered
SEARCHES = 8  # Searches whose matches stay in memory, the latest ones
REWARDS = 8  # Rewards whose scores stay in memory for sorting, the latest ones
ORDERS = 16  # Orders that stay in memory, the latest ones: each is a number a prompt
COLUMNS = 200  # Columns by which prompts can be sorted and filtered, the first in the run: each is a number a prompt
_EPOCHS = 1 << 20  # a prompt and an epoch in one number

Mask = NDArray[np.bool_]
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class PromptIndex:
    """The prompts of a run in numbers, for several threads; the ``lock`` also guards what :meth:`of` returns."""

    def __init__(
        self, reward: str | None = None, beside: PromptIndex | None = None, *, per_question: bool = False
    ) -> None:
        """Make an index of the totals, or of a reward's scores beside one of the totals, with which it shares texts.

        With ``per_question`` the first prompt of each text stands for all prompts with it, and the others for nothing.
        """
        self.lock: AbstractContextManager[bool] = threading.RLock() if beside is None else beside.lock
        self._texts: _Texts = _Texts() if beside is None else beside._texts
        self._searches: dict[str, _Search] = {} if beside is None else beside._searches
        self._reward = reward
        self._is_per_question = per_question
        self._by_kind: dict[tuple[str | None, bool], PromptIndex] = {}
        self._forget()

    def of(self, reward: str | None, *, per_question: bool = False) -> PromptIndex:
        """Return the index of a reward's scores, of the totals for ``None``, by prompt or by question."""
        if reward is None and per_question == self._is_per_question:
            return self
        make = functools.partial(PromptIndex, reward, self, per_question=per_question)
        return _get_or_compute(self._by_kind, (reward, per_question), make, REWARDS)

    def _forget(self) -> None:
        self._last = self._count = 0
        self.questions = np.zeros(0, np.int64)  # The prompt that stands for each: itself, or the first with its text
        self._batches = (0, 0)
        self.completions = np.zeros(0, np.int64)
        self._scored = np.zeros(0, np.int64)
        self._sums = np.zeros(0)
        self.best = np.zeros(0)
        self.epochs = np.zeros(0, np.int64)
        self.first_epoch = np.zeros(0, np.int64)
        self.last_epoch = np.zeros(0, np.int64)
        self._pairs = np.zeros(0, np.int64)
        self._pair_counts = np.zeros(0, np.int64)
        self._pair_sums = np.zeros(0)
        self._orders: dict[tuple[str, bool, int], Whole] = {}

    def __len__(self) -> int:
        return int((self.questions == np.arange(self._count)).sum())

    @property
    def mean(self) -> Floats:
        """The mean total of each prompt; ``nan`` where no completion has one."""
        means: Floats = np.divide(self._sums, self._scored, out=np.full(self._count, np.nan), where=self._scored > 0)
        return means

    @property
    def first_mean(self) -> Floats:
        """The mean total of each prompt in its first epoch; ``nan`` where none is known."""
        return self._mean_in(self.first_epoch)

    @property
    def last_mean(self) -> Floats:
        """The mean total of each prompt in its latest epoch; ``nan`` where none is known."""
        return self._mean_in(self.last_epoch)

    @property
    def change(self) -> Floats:
        """By how much the mean total changed from the first to the latest epoch; ``nan`` where there is but one."""
        return np.where(self.first_epoch < self.last_epoch, self.last_mean - self.first_mean, np.nan)

    def _mean_in(self, epochs: Whole) -> Floats:
        """Return the mean total of each prompt in an epoch of its own; ``nan`` for an epoch of -1."""
        means = np.full(self._count, np.nan)
        prompts = np.flatnonzero(epochs >= 0)
        places = np.searchsorted(self._pairs, _pairs_of(prompts, epochs[prompts]))
        counts = self._pair_counts[places]
        means[prompts] = np.divide(self._pair_sums[places], counts, out=np.full(len(prompts), np.nan), where=counts > 0)
        return means

    @property
    def column_names(self) -> list[str]:
        return list(self._texts.columns)

    def update(self, run: RunReader, budget_s: float = SLICE_S) -> Progress:
        """Add the completions recorded since the last call, for a limited time; start over if batches were removed."""
        last = run.last_id
        if self._batches != run.batches_until(self._last):
            self._forget()
        self._grow(run.prompt_count, run)
        until = time.monotonic() + budget_s
        while self._last < last:
            stretch = min(self._last + STRETCH, last)
            self._add(run.prompt_sums(self._last, stretch, self._reward))
            self._last = stretch
            if time.monotonic() > until:
                break
        self._batches = run.batches_until(self._last)
        return Progress("completions", self._last, last)

    def _grow(self, count: int, run: RunReader) -> None:
        """Make room for prompts up to ``count``, without completions."""
        more = count - self._count
        if more <= 0:
            return
        for name, fill in (
            ("completions", 0), ("_scored", 0), ("_sums", 0.0), ("best", np.nan),
            ("epochs", 0), ("first_epoch", -1), ("last_epoch", -1),
        ):  # fmt: skip
            old = getattr(self, name)
            setattr(self, name, np.concatenate([old, np.full(more, fill, old.dtype)]))
        self._count = count
        self.questions = run.questions[:count] if self._is_per_question else np.arange(count)
        self._orders.clear()

    def _add(self, rows: list[PromptSums]) -> None:
        """Add the sums of a stretch of completions, by prompt and epoch."""
        if not rows:
            return
        prompts, epochs, counts, scored, best, sums = zip(*rows, strict=True)
        where = self.questions[np.array(prompts, np.int64)]
        np.add.at(self.completions, where, np.array(counts, np.int64))  # += counts a repeated prompt once
        np.add.at(self._scored, where, np.array(scored, np.int64))
        totals = np.array([total or 0.0 for total in sums])
        np.add.at(self._sums, where, totals)
        np.fmax.at(self.best, where, np.array([np.nan if value is None else value for value in best]))
        in_epoch = np.array([-1 if epoch is None else epoch for epoch in epochs], np.int64)
        timed = in_epoch >= 0
        self._add_epochs(where[timed], in_epoch[timed], np.array(scored, np.int64)[timed], totals[timed])
        self._orders.clear()

    def _add_epochs(self, prompts: Whole, epochs: Whole, counts: Whole, sums: Floats) -> None:
        """Add sums to the pairs of prompt and epoch, which stay sorted, and note the first and last epochs."""
        pairs = _pairs_of(prompts, epochs)
        places = np.searchsorted(self._pairs, pairs)
        is_present = places < len(self._pairs)
        is_present[is_present] = self._pairs[places[is_present]] == pairs[is_present]  # absent pairs get a place too
        fresh = np.unique(pairs[~is_present])
        new = np.searchsorted(self._pairs, fresh)
        self._pairs = np.insert(self._pairs, new, fresh)
        self._pair_counts = np.insert(self._pair_counts, new, 0)
        self._pair_sums = np.insert(self._pair_sums, new, 0.0)
        places = np.searchsorted(self._pairs, pairs)
        np.add.at(self._pair_counts, places, counts)
        np.add.at(self._pair_sums, places, sums)
        np.add.at(self.epochs, fresh // _EPOCHS, 1)
        np.maximum.at(self.last_epoch, prompts, epochs)
        firsts = np.where(self.first_epoch < 0, _EPOCHS, self.first_epoch)
        np.minimum.at(firsts, prompts, epochs)
        self.first_epoch = np.where(firsts == _EPOCHS, -1, firsts)

    def read_texts(self, run: RunReader) -> Progress:
        """Learn lengths and columns of prompts that were not read yet, for a limited time."""
        self._texts.read(run, self._count)
        return Progress("prompts", self._texts.done, self._count)

    def search(self, run: RunReader, text: str) -> tuple[Mask, Progress]:
        """Return a mask of the prompts with a text, in any case, and how far the search came in its limited time."""
        search = _get_or_compute(self._searches, text, lambda: _Search(text), SEARCHES)
        search.read(run, self._count)
        mask = np.zeros(self._count, np.bool_)
        mask[search.matches] = True
        return mask, Progress("prompts", search.done, self._count)

    def column_mask(self, column: str, text: str) -> Mask:
        """Return a mask of the prompts that have a text in a column; of those not read yet it is false."""
        mask = np.zeros(self._count, np.bool_)
        if (values := self._texts.columns.get(column)) is not None:
            has_text = np.array([text.casefold() in value.casefold() for value in values.values] + [False])
            codes = np.array(values.codes, np.int64)
            mask[self.questions[: len(codes)][has_text[codes]]] = True
        return mask

    def order(self, by: str, *, descending: bool) -> Whole:
        """Return the prompts by a key of ``SORTS`` or ``column:NAME``; those without a value stand last."""

        def sort() -> Whole:
            values = self._values(by)
            order = np.argsort(-values if descending else values, kind="stable")
            firsts: Whole = order[self.questions[order] == order]
            return firsts

        return _get_or_compute(self._orders, (by, descending, self._texts.done), sort, ORDERS)

    def _values(self, by: str) -> Floats:
        """Return what prompts are sorted by; ``nan`` for a prompt that was not read yet."""
        if by.startswith("column:"):
            return self._padded(self._texts.ranks(by.removeprefix("column:")))
        if by == "text":
            return self._padded(_ranks(self._texts.beginnings))
        if by == "length":
            return self._padded(np.array(self._texts.lengths, np.float64))
        if by == "index":
            return np.arange(self._count, dtype=np.float64)
        values: Floats = np.asarray(getattr(self, by), np.float64)
        return values

    def _padded(self, values: Floats) -> Floats:
        return np.concatenate([values, np.full(self._count - len(values), np.nan)])


def _get_or_compute(cache: dict[K, V], key: K, compute: Callable[[], V], limit: int) -> V:
    """Return a value of a cache, after computing it if missing; drop the values used longest ago above the limit."""
    value = cache.pop(key) if key in cache else compute()
    cache[key] = value
    while len(cache) > limit:
        del cache[next(iter(cache))]
    return value


def _pairs_of(prompts: Whole, epochs: Whole) -> Whole:
    pairs: Whole = prompts * _EPOCHS + np.minimum(epochs, _EPOCHS - 1)  # sorted by prompt, then epoch
    return pairs


class _Column:
    """The values of one column, each distinct one once."""

    def __init__(self, before: int) -> None:
        self.values: list[str] = []
        self.codes: list[int] = [-1] * before  # -1 where a row has no such column
        self._code_of: dict[str, int] = {}

    def add(self, value: str | None) -> None:
        """Add the value of the next prompt; ``None`` where its row has no such column."""
        if value is None:
            self.codes.append(-1)
            return
        code = self._code_of.setdefault(value, len(self.values))
        if code == len(self.values):
            self.values.append(value)
        self.codes.append(code)

    def ranks(self) -> Floats:
        """Return each prompt's place among the distinct values: numbers by size where all are numbers."""
        numbers = [_as_number(value) for value in self.values]
        ranks = np.append(_ranks(self.values if None in numbers else numbers), np.nan)
        ordered: Floats = ranks[np.array(self.codes, np.int64)]
        return ordered


def _ranks(keys: Sequence[Any]) -> Floats:
    """Return the place of each key among all of them, in order."""
    ranks = np.full(len(keys), np.nan)
    ranks[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(len(keys), dtype=np.float64)
    return ranks


class _Texts:
    """Beginnings, lengths and columns of the prompts that were unpacked."""

    def __init__(self) -> None:
        self.beginnings: list[str] = []
        self.lengths: list[int] = []
        self.columns: dict[str, _Column] = {}

    @property
    def done(self) -> int:
        return len(self.lengths)

    def read(self, run: RunReader, count: int) -> None:
        """Read further prompts, for a limited time; a column that is new had no value before."""
        for prompt in _prompts_in_time(run, self.done, count):
            columns = prompt.columns
            for name in columns:
                if name not in self.columns and len(self.columns) < COLUMNS:
                    self.columns[name] = _Column(self.done)
            for name, values in self.columns.items():
                values.add(value_text(columns[name])[:VALUE_CHARS] if name in columns else None)
            text = plain(prompt.prompt)
            self.beginnings.append(text[:VALUE_CHARS].casefold())
            self.lengths.append(len(text))

    def ranks(self, name: str) -> Floats:
        column = self.columns.get(name)
        return np.zeros(0) if column is None else column.ranks()


class _Search:
    """A search through the prompts that goes on where it stopped."""

    def __init__(self, text: str) -> None:
        self._text = text.casefold()
        self.done = 0
        self.matches: list[int] = []

    def read(self, run: RunReader, count: int) -> None:
        for prompt in _prompts_in_time(run, self.done, count):
            if self._text in plain(prompt.prompt).casefold():
                self.matches.append(self.done)
            self.done += 1


def _prompts_in_time(
    run: RunReader, start: int, count: int, clock: Callable[[], float] = time.monotonic
) -> Iterator[RecordedPrompt]:
    """Yield the prompts from index ``start`` to below ``count``, until :data:`SLICE_S` seconds are over."""
    until = clock() + SLICE_S
    for prompt in itertools.islice(run.prompts(start - 1), max(0, count - start)):
        yield prompt
        if clock() > until:
            return


def _as_number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return None if np.isnan(value) else value
