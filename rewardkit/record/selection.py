"""Which completions of a run are wanted, by conditions such as ``judge<0.2``, in an order, with a text in them."""

from __future__ import annotations

import itertools
import json
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rewardkit.errors import RecordError
from rewardkit.record.batch_rows import LETTERS
from rewardkit.record.reader import RunReader
from rewardkit.record.table import CompletionTable, Floats, Whole
from rewardkit.record.values import Completion
from rewardkit.types import Cause, Status, Text

Mask = NDArray[np.bool_]

_CONDITION = re.compile(r"\s*(?P<name>.+?)\s*(?P<sign><=|>=|!=|==|=|<|>)\s*(?P<value>.*?)\s*")
_SIGNS: Mapping[str, Callable[[Any, Any], Any]] = {
    "<=": operator.le, ">=": operator.ge, "!=": operator.ne, "==": operator.eq, "=": operator.eq, "<": operator.lt,
    ">": operator.gt,
}  # fmt: skip
_NUMBERS: Mapping[str, Callable[[CompletionTable], Any]] = {
    "reward": lambda table: table.rewards,
    "total": lambda table: table.rewards,
    "plain_sum": lambda table: table.plain_sums,
    "advantage": lambda table: table.advantages,
    "tokens": lambda table: table.tokens,
    "step": lambda table: np.where(table.steps < 0, np.nan, table.steps),
    "prompt": lambda table: table.prompts,
    "id": lambda table: table.ids,
}
"""What every completion has, by the name that a condition gives it."""
_AT_ONCE = 200  # Completions whose texts are read at once


class Condition(NamedTuple):
    """A condition on completions: a name, a sign and a value, as text."""

    name: str
    sign: str
    value: str

    @classmethod
    def of(cls, text: str) -> Condition:
        """Return the condition in a text such as ``judge<0.2``; RecordError for another text."""
        match = _CONDITION.fullmatch(text)
        if match is None:
            raise RecordError(f"condition {text!r}: expected a name, a sign and a value, such as judge<0.2")
        return cls(match["name"], match["sign"], match["value"])


class Selection:
    """The completions of a split that fit all conditions, in an order.

    Args:
        run: The run.
        split: ``"train"`` or ``"eval"``.
        conditions: Each on a number (``reward``, ``plain_sum``, ``advantage``, ``tokens``, ``step``, ``prompt``,
            ``id``), on a reward (its own score, a status or a cause; ``NAME.version`` and ``NAME.seconds``), or on a
            column of the data. One of a reward that did not score a completion fits no number.
        sort: Such a number or a reward, the lowest first, or with ``-`` before it the highest; the order of recording
            unless given. What has no value stands last.

    Raises:
        RecordError: There is no such name, or the value is of another kind.
    """

    def __init__(self, run: RunReader, split: str, conditions: Sequence[Condition], sort: str | None = None) -> None:
        self._run = run
        self._table = run.table(split=split)
        mask = np.ones(len(self._table), np.bool_)
        for condition in conditions:
            mask &= self._mask(condition)
        matches = np.flatnonzero(mask)
        if sort is not None:
            values = self._numbers(sort.removeprefix("-"))[matches]
            matches = matches[np.argsort(-values if sort.startswith("-") else values, kind="stable")]
        self.ids: Whole = self._table.ids[matches]
        """Their numbers in the record, in the order."""

    def completions(self, grep: str | None = None) -> Iterator[Completion]:
        """Yield them, or of them those with a match of this regular expression, as they are read.

        It is looked for in completion, prompt, columns, reasons, errors and output.

        Raises:
            RecordError: It is not a regular expression.
        """
        try:
            pattern = None if grep is None else re.compile(grep)
        except re.error as wrong:
            raise RecordError(f"grep={grep!r}: not a regular expression: {wrong}") from None
        ids = iter(self.ids.tolist())
        while chunk := list(itertools.islice(ids, _AT_ONCE)):
            for row in self._run.by_id(chunk):
                if pattern is None or any(pattern.search(text) for text in _texts(row)):
                    yield row

    def _mask(self, condition: Condition) -> Mask:
        name, sign, value = condition
        compare = _SIGNS[sign]
        kind = next((part for part in (*Status, *Cause) if part == value), None)
        if kind is not None and name in self._table.status:
            column, wanted = (
                (self._table.status[name], LETTERS[kind]) if isinstance(kind, Status)
                else (self._table.causes[name], kind.value)
            )  # fmt: skip
            if compare not in (operator.eq, operator.ne):
                raise RecordError(f"condition {name}{sign}{value}: a status or a cause is = or != another")
            has_call = self._table.status[name] != ""
            return np.asarray(has_call & compare(column, wanted))
        if not self._has_numbers(name):
            return self._data_mask(condition)
        try:
            number = float(value)
        except ValueError:
            states = ", ".join((*Status, *Cause))
            more = f", or of a reward one of {states}" if name in self._table.scores else ""
            raise RecordError(f"condition {name}{sign}{value}: expected a number{more}") from None
        values = self._numbers(name)
        return np.asarray(~np.isnan(values) & compare(values, number))

    def _has_numbers(self, name: str) -> bool:
        return name in _NUMBERS or name in self._table.scores or self._part(name) is not None

    def _part(self, name: str) -> Any:
        """Return the column of ``NAME.version`` or ``NAME.seconds``; ``None`` where no reward has this name."""
        reward, _, part = name.rpartition(".")
        columns = {"version": self._table.versions, "seconds": self._table.seconds}.get(part, {})
        return columns.get(reward)

    def _numbers(self, name: str) -> Floats:
        """Return what a name stands for, ``nan`` where there is no value; a reward's own score before all else."""
        if name in self._table.scores:
            return np.where(self._table.status[name] == "s", self._table.scores[name], np.nan)
        if name in _NUMBERS:
            return np.asarray(_NUMBERS[name](self._table), np.float64)
        if (part := self._part(name)) is not None:
            return np.where(self._table.status[name.rpartition(".")[0]] == "", np.nan, part)
        raise RecordError(f"no number {name!r}; there are {', '.join(self._names())}")

    def _names(self) -> list[str]:
        return [*self._table.scores, *(name for name in _NUMBERS if name not in self._table.scores)]

    def _data_mask(self, condition: Condition) -> Mask:
        """Return where the row's column fits: as a number where both are, else as text."""
        compare = _SIGNS[condition.sign]
        names: dict[str, None] = {}
        fitting = []
        for prompt in self._run.prompts():
            names |= dict.fromkeys(prompt.columns)
            if condition.name in prompt.columns and _fits(prompt.columns[condition.name], condition.value, compare):
                fitting.append(prompt.index)
        if condition.name not in names:
            choices = ", ".join([*self._names(), *list(names)[:40]])
            raise RecordError(f"nothing is called {condition.name!r}; there are {choices}")
        return np.isin(self._table.prompts, fitting)


def _fits(value: object, wanted: str, compare: Callable[[Any, Any], Any]) -> bool:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    try:
        return bool(compare(float(text), float(wanted)))
    except ValueError:
        return bool(compare(text, wanted))


def _whole(text: Text) -> str:
    """Return a text, or the contents and calls of all messages, each on a line."""
    if isinstance(text, str):
        return text
    parts = (message.get(key) for message in text for key in ("content", "tool_calls"))
    return "\n".join(part if isinstance(part, str) else json.dumps(part, default=str) for part in parts if part)


def _texts(row: Completion) -> Iterator[str]:
    """Yield the texts of a completion in which is searched."""
    yield from (_whole(text) for text in (row.completion, row.prompt) if text is not None)
    yield from (value if isinstance(value, str) else json.dumps(value, default=str) for value in row.columns.values())
    for outcome in row.outcomes.values():
        yield from filter(None, (outcome.reason, outcome.error, outcome.traceback, outcome.logs))
