"""Which completions of a run are wanted, by conditions such as ``judge<0.2``, and in which order."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from rewardkit.errors import RecordError
from rewardkit.record.call_metrics import CallMetrics
from rewardkit.record.conditions import NONE, Condition, Mask, unknown_name
from rewardkit.record.number_blocks import FAILED, STATES
from rewardkit.record.prompt_columns import PromptColumns, of_completions
from rewardkit.record.reader import RunReader
from rewardkit.record.recorded_numbers import TextField
from rewardkit.record.run_numbers import RunNumbers
from rewardkit.record.table import Floats, Whole
from rewardkit.record.text_orders import TextOrders
from rewardkit.record.values import Progress
from rewardkit.types import Status

NUMBERS: Final[Mapping[str, str]] = {
    "reward": "total", "total": "total", "plain_sum": "plain_sum", "advantage": "advantage", "tokens": "tokens",
    "characters": "characters", "step": "step", "epoch": "epoch", "prompt": "prompt", "id": "id",
    "truncated": "truncated",
}  # fmt: skip
"""What every completion has, by the name that a condition gives it: the columns of the run's numbers."""
OF_ANY = ("outcome", "cause")  # What became of any call of a completion
SPLIT = "split"  # The part of the run: `eval` or `train`
TEXTS = ("prompt_text", "completion")  # What is sorted by how it begins
_TEXTS_OF_CALLS = ("reason", "error")
_PARTS = ("version", "status", "cause", "seconds", *_TEXTS_OF_CALLS)


class Name(NamedTuple):
    """What a name in a condition or an order stands for."""

    # `"number"`, `"score"`, `"version"`, `"seconds"`, `"state"`, `"any"`, `"split"`, `"metric"`, `"data"` or a text's
    kind: str
    name: str  # The column, or the reward
    version: int | None = None  # The version of the reward whose scores are meant; all unless given
    metric: str = ""  # The reward's metric that is meant

    @property
    def text(self) -> TextField | None:
        """The texts that are meant; ``None`` for a name of no texts."""
        if self.kind == "text":
            return TextField(self.name)
        return TextField(self.kind, self.name) if self.kind in _TEXTS_OF_CALLS else None


class RunTable:
    """What selections of a run are made of, as far as it was read: numbers, and columns of the data."""

    def __init__(self) -> None:
        self.numbers = RunNumbers()
        self.columns = PromptColumns()
        self.texts = TextOrders()
        self.metrics = CallMetrics()

    def update(self, run: RunReader, names: Iterable[str] = (), budget_s: float | None = None) -> Progress:
        """Read on for a limited time: the numbers, then the texts and columns of the data that some names stand for.

        Raises:
            RecordError: A name stands for nothing in the run.
        """
        progress = self.numbers.update(run, budget_s)
        if progress.unfinished:
            return progress
        meanings = {name: self._of_completions(name) for name in names}
        texts = [meaning.text for meaning in meanings.values() if meaning is not None and meaning.text is not None]
        progress = self.texts.update(run, texts, budget_s) or progress
        wanted = [name for name, meaning in meanings.items() if meaning is None]
        if not progress.unfinished and wanted:
            owners = dict.fromkeys(reward for name in wanted for reward, _ in self._owners(name))
            progress = self.metrics.update(run, owners, budget_s) or progress
            wanted = [name for name in wanted if self._of_completions(name) is None]
        if progress.unfinished or not wanted:
            return progress
        data = [name.removeprefix("column.") for name in wanted]
        reading = self.columns.update(run, sorted({*data, *wanted}), budget_s)
        if not reading.unfinished:
            for name in wanted:
                self.meaning(name)
            return progress
        return reading

    def meaning(self, name: str) -> Name:
        """Return what a name stands for; RecordError, which names what is near, where it is nothing.

        A reward goes first, then what every completion has, then ``NAME@2``, ``NAME.version`` and ``NAME.METRIC``, and
        last a column of the data; ``reward.NAME`` and ``column.NAME`` say which of them is meant.
        """
        meaning = self._of_completions(name)
        if meaning is not None:
            return meaning
        column = next((part for part in (name, name.removeprefix("column.")) if part in self.columns.names), None)
        if column is not None:
            return Name("data", column)
        raise unknown_name(name, self.names)

    @property
    def names(self) -> list[str]:
        """All names that can be compared and sorted by."""
        rewards = self.numbers.rewards
        versions = [f"{name}@{version}" for name, numbers in rewards.items() if len(numbers) > 1 for version in numbers]
        parts = [f"{name}.{part}" for name in rewards for part in _PARTS]
        own = [*self.columns.names, *self.metrics.all_names]
        return [*rewards, *NUMBERS, SPLIT, *TEXTS, *OF_ANY, *versions, *own, *parts]

    def _of_completions(self, name: str) -> Name | None:
        rewards = self.numbers.rewards
        if name in rewards:
            return Name("score", name)
        if name in NUMBERS:
            return Name("number", NUMBERS[name])
        if name in OF_ANY:
            return Name("any", name)
        if name == SPLIT or name in TEXTS:
            return Name(SPLIT if name == SPLIT else "text", name)
        reward, _, version = name.rpartition("@")
        if reward in rewards and version.isdecimal():
            return Name("score", reward, int(version))
        reward, _, part = name.rpartition(".")
        if reward in rewards and part in _PARTS:
            return Name("state" if part in ("status", "cause") else part, reward)
        for reward, metric in self._owners(name):
            if metric in self.metrics.names(reward):
                return Name("metric", reward, metric=metric)
        prefix, _, own = name.partition(".")
        if prefix != "reward" or own in NUMBERS.keys() - rewards.keys():
            return None
        return self._of_completions(own) if own else None

    def _owners(self, name: str) -> list[tuple[str, str]]:
        """Return the rewards one of whose metrics a name may be, each with the metric's own name."""
        names = (name, name.removeprefix("reward."))
        rewards = [reward for reward in self.numbers.rewards if any(own.startswith(f"{reward}.") for own in names)]
        return [(reward, own.removeprefix(f"{reward}.")) for reward in rewards for own in names if own != reward]


class Selection:
    """The completions of a split that fit all conditions, in an order.

    Args:
        table: What was read of the run.
        run: The run, for what is not in the table.
        split: ``"train"`` or ``"eval"``; ``None`` for both.
        conditions: Each on a name of :meth:`RunTable.meaning`. A reward that did not score a completion fits no number.
        sort: A name, the lowest first, or with ``-`` before it the highest; the order of recording unless given. What
            has no value stands last.
        until: Only completions up to this number in the record, so that pages stay as they are while the run grows.

    Raises:
        RecordError: There is no such name, or the value is of another kind.
    """

    def __init__(
        self,
        run: RunReader,
        split: str | None,
        conditions: Sequence[Condition],
        sort: str | None = None,
        *,
        table: RunTable | None = None,
        until: int | None = None,
    ) -> None:
        self._run = run
        if table is None:
            table = RunTable()
            table.update(run, names_of(conditions, sort))
        self._table = table
        masks = [self._mask(condition) for condition in conditions]
        if split is not None and table.numbers.splits != {split}:  # most runs have one, which needs no mask
            masks.append(table.numbers.column("train") == (split == "train"))
        if until is not None and until < table.numbers.last_id:
            masks.append(table.numbers.column("id") <= until)
        count = table.numbers.count
        self._matches = np.flatnonzero(functools.reduce(operator.and_, masks)) if masks else np.arange(count)
        self._keys: Floats | None = None
        self._order = np.zeros(0, np.int64)
        if sort is not None:
            values = self._values(sort.removeprefix("-"))[self._matches]
            self._keys = -values if sort.startswith("-") else values

    def __len__(self) -> int:
        return len(self._matches)

    @property
    def ids(self) -> Whole:
        """Their numbers in the record, in the order."""
        return self.page(0, len(self))

    def page(self, start: int, count: int) -> Whole:
        """Return the numbers of some of them, from a place in the order on."""
        stop = min(start + count, len(self))
        matches = (
            self._matches[start:stop] if self._keys is None else self._matches[self._first(self._keys, stop)[start:]]
        )
        return self._table.numbers.column("id")[matches].astype(np.int64)

    def _first(self, keys: Floats, count: int) -> Whole:
        """Return the places of the first ``count`` matches in the order, equal ones in the order of recording."""
        if len(self._order) < count:
            self._order = _first_places(keys, count)
        return self._order[:count]

    def _mask(self, condition: Condition) -> Mask:
        meaning, numbers = self._table.meaning(condition.name), self._table.numbers
        if meaning.kind == "data":
            by_prompt = self._table.columns.mask(condition._replace(name=meaning.name))
            return np.asarray(of_completions(numbers.column("prompt"), by_prompt) == 1)
        if meaning.kind in ("state", "any") or (meaning.kind == "score" and condition.value in STATES):
            return self._state_mask(condition, meaning)
        if meaning.text is not None and not condition.is_absence:
            reason = f"a text is searched for, with --grep or on the page; {condition.name}={NONE} is what has no text"
            raise RecordError(f"condition {condition.text}: {reason}")
        if meaning.kind == SPLIT:
            return self._split_mask(condition)
        also = f", or of a reward one of {', '.join(STATES)}, {NONE}" if meaning.kind == "score" else ""
        return condition.mask(self._values(condition.name), also)

    def _state_mask(self, condition: Condition, meaning: Name) -> Mask:
        """Return where what became of a reward's call, or of any reward's, is a status or a cause."""
        condition.check_equality("a status or a cause")
        value, numbers = condition.value, self._table.numbers
        if value not in STATES and value != NONE:
            raise RecordError(f"condition {condition.text}: expected {', '.join(STATES)} or {NONE}")
        rewards = list(numbers.rewards) if meaning.kind == "any" else [meaning.name]
        fits = np.zeros(numbers.count, np.bool_)
        has_call = np.zeros(numbers.count, np.bool_)
        for reward in rewards:
            state = self._states(reward, meaning.version)
            has_call |= state > 0
            fits |= state >= FAILED if value == Status.FAILED else state == STATES.get(value, 0.0)
        if value == NONE:
            return has_call if condition.negates else ~has_call
        return has_call & ~fits if condition.negates else fits

    def _split_mask(self, condition: Condition) -> Mask:
        condition.check_equality("a split")
        if condition.value not in ("train", "eval"):
            raise RecordError(f"condition {condition.text}: expected train or eval")
        is_train = self._table.numbers.column("train") == 1
        return np.asarray(is_train if (condition.value == "train") != condition.negates else ~is_train)

    def _states(self, reward: str, version: int | None) -> Floats:
        state = self._table.numbers.column("state", reward)
        if version is None:
            return state
        return np.where(self._table.numbers.column("version", reward) == version, state, 0.0)

    def _values(self, name: str) -> Floats:
        """Return what a name stands for as numbers, ``nan`` where there is no value."""
        meaning, numbers = self._table.meaning(name), self._table.numbers
        if meaning.kind == "data":
            return of_completions(numbers.column("prompt"), self._table.columns.ranks(meaning.name))
        if meaning.text is not None:
            owner = "prompt" if meaning.text.is_of_prompts else "id"
            return self._table.texts.ranks(meaning.text, numbers.column(owner))
        if meaning.kind == SPLIT:
            return numbers.column("train")
        if meaning.kind == "score":
            return numbers.own_scores(meaning.name, meaning.version)
        if meaning.kind == "metric":
            return self._table.metrics.values(meaning.name, meaning.metric, numbers.column("id"))
        if meaning.kind == "seconds":
            return numbers.seconds(self._run, meaning.name)
        if meaning.kind in ("state", "any"):
            rewards = list(numbers.rewards) if meaning.kind == "any" else [meaning.name]
            states = np.max([self._states(reward, None) for reward in rewards], axis=0)
            return np.where(states > 0, states, np.nan)
        return numbers.column("version", meaning.name) if meaning.kind == "version" else numbers.column(meaning.name)


def _first_places(keys: Floats, count: int) -> Whole:
    """Return the places of the least keys in their order, at least ``count``; equal ones stay as they are."""
    if count < len(keys) // 8:  # without sorting all
        bound = np.partition(keys, count)[count]
        if not np.isnan(bound):
            candidates = np.flatnonzero(keys <= bound)
            return candidates[np.argsort(keys[candidates], kind="stable")]
    return np.argsort(keys, kind="stable")


def names_of(conditions: Iterable[Condition], sort: str | None) -> list[str]:
    """Return the names that conditions and an order speak of."""
    names = [condition.name for condition in conditions]
    return names if sort is None else [*names, sort.removeprefix("-")]
