"""The columns of the data by prompt, for conditions and orders on them: each distinct value once."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from rewardkit.record.as_text import value_text
from rewardkit.record.conditions import Condition, Mask, as_number
from rewardkit.record.reader import RunReader
from rewardkit.record.table import Floats, Whole
from rewardkit.record.values import Progress

MOST_COLUMNS = 8  # Columns whose values stay in memory, the latest ones


class PromptColumns:
    """The names of all columns, and the values of those that were asked for; :meth:`update` reads on."""

    def __init__(self) -> None:
        self._columns: dict[str, _Column] = {}
        self._done = 0
        self.names: dict[str, None] = {}
        """The names of the columns of the prompts that were read, in the order in which they were first seen."""

    def update(self, run: RunReader, wanted: Sequence[str] = (), budget_s: float | None = None) -> Progress:
        """Read the names, and the values of some columns, of the prompts that were not read yet; for a limited time."""
        count = run.prompt_count
        if self._done > count:  # made anew
            self.__init__()  # type: ignore[misc]
        for name in wanted:
            column = self._columns.pop(name, None)
            self._columns[name] = column or _Column()
        while len(self._columns) > max(MOST_COLUMNS, len(wanted)):
            del self._columns[next(iter(self._columns))]
        columns = [self._columns[name] for name in wanted]
        until = None if budget_s is None else time.monotonic() + budget_s
        start = min([self._done, *(len(column.codes) for column in columns)])
        if start < count:
            for prompt in run.prompts(start - 1):
                if prompt.index >= self._done:
                    self.names |= dict.fromkeys(prompt.columns)
                    self._done = prompt.index + 1
                for name, column in zip(wanted, columns, strict=True):
                    if prompt.index >= len(column.codes):
                        column.add(prompt.columns.get(name))
                start = prompt.index + 1
                if until is not None and time.monotonic() > until:
                    break
        return Progress("prompts", start, max(count, start))

    def mask(self, condition: Condition) -> Mask:
        """Return which prompts fit a condition; one without the column fits none but ``NAME=none``."""
        column = self._columns[condition.name]
        if condition.is_absence:
            condition.check_equality("that there is no value")
            has = np.array(column.codes, np.int64) >= 0
            return has if condition.negates else ~has
        fitting = np.array([*(condition.fits(value) for value in column.values), False], np.bool_)
        return fitting[np.array(column.codes, np.int64)]

    def ranks(self, name: str) -> Floats:
        """Return the place of each prompt's value among all values: numbers by size, then texts; ``nan`` without."""
        column = self._columns[name]
        keys = [_sort_key(value) for value in column.values]
        order = sorted(range(len(keys)), key=keys.__getitem__)
        ranks = np.full(len(keys) + 1, np.nan)
        last, rank = None, -1
        for index in order:
            rank += keys[index] != last
            last = keys[index]
            ranks[index] = rank
        return ranks[np.array(column.codes, np.int64)]


def of_completions(prompts: Floats, by_prompt: Floats | Mask) -> Floats:
    """Return what each completion's prompt has; ``nan`` for a prompt that was not read yet."""
    count = len(by_prompt)
    numbers: Whole = np.where((prompts >= 0) & (prompts < count), prompts, count).astype(np.int64)
    return np.append(by_prompt.astype(np.float64), np.nan)[numbers]


class _Column:
    """The values of one column as text, each distinct one once."""

    def __init__(self) -> None:
        self.values: list[str] = []
        self.codes: list[int] = []  # By prompt, the place of its value; -1 where its row has no such column
        self._code_of: dict[str, int] = {}

    def add(self, value: object) -> None:
        """Add the value of the next prompt; ``None`` where its row has none."""
        if value is None:
            self.codes.append(-1)
            return
        text = value_text(value)
        code = self._code_of.setdefault(text, len(self.values))
        if code == len(self.values):
            self.values.append(text)
        self.codes.append(code)


def _sort_key(text: str) -> tuple[int, float, str]:
    number = as_number(text)
    return (1, 0.0, text) if number is None else (0, number, "")
