"""The groups that a column of the data makes of the prompts: its values, ranges of its numbers, and the rest."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import re
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from rewardkit.breakdown.run_scores import Tick
from rewardkit.coercion.plain_json import legible
from rewardkit.errors import RecordError
from rewardkit.record.reader import RunReader
from rewardkit.record.table import Floats, Whole
from rewardkit.shown.text import near_names

MOST_GROUPS = 20  # Groups that are told apart unless more are asked for
MOST_NUMBERS = 12  # Different numbers that are groups of their own; more of them are ranges
RANGES = 8  # Ranges of numbers, each with about as many prompts
VALUE_CHARS = 200  # Characters of a value that are kept; a longer one is told apart by a digest of the rest
NO_COLUMN, NO_VALUE = "(missing)", "null"
"""What the groups of rows without the column, and of rows that have no value in it, are called."""
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)

Cell: TypeAlias = "str | int | float | bool | None"
Key: TypeAlias = tuple[str, Cell]
"""A value as it is told apart: its kind, and what it is. ``1`` and ``True`` are not the same, ``1`` and ``1.0`` are."""


class Grouping(NamedTuple):
    """Groups of prompts by a column."""

    column: str  # The column's name
    labels: Sequence[str]  # What the groups are called; the rest, where there is one, comes last
    codes: Whole  # By prompt, the place of its group among the labels
    values: int  # How many different values the column has
    rest: int  # How many of them are in the rest; 0 where each has a group
    are_ranges: bool  # Whether the groups are ranges of numbers


class DataColumn:
    """The values of one column by prompt, read a part at a time; threads may share it."""

    def __init__(self, name: str) -> None:
        self._lock = threading.Lock()
        self._name = name
        self._codes: list[int] = []
        self._keys: dict[Key, int] = {}
        self._columns: dict[str, None] = {}

    def read(self, run: RunReader, budget_s: float | None = None, tick: Tick | None = None) -> tuple[int, int]:
        """Read the values of new prompts, for a limited time unless it is ``None``; return how many, and of how many.

        ``tick`` is called with both now and then.
        """
        with self._lock:
            count = run.prompt_count
            until = None if budget_s is None else time.monotonic() + budget_s
            for prompt in itertools.islice(run.prompts(len(self._codes) - 1), max(0, count - len(self._codes))):
                self._columns |= dict.fromkeys(prompt.columns)
                key = _key(prompt.columns, self._name)
                self._codes.append(self._keys.setdefault(key, len(self._keys)))
                if tick is not None:
                    tick(len(self._codes), count)
                if until is not None and time.monotonic() > until:
                    break
            return len(self._codes), count

    @property
    def columns(self) -> list[str]:
        """The columns of the prompts that were read."""
        return list(self._columns)

    def grouping(self, completions: Whole, most: int = MOST_GROUPS) -> Grouping:
        """Return the groups of the prompts; those without completions, and those not read yet, are in none.

        Numbers of more than :data:`MOST_NUMBERS` different values become :data:`RANGES` ranges with about as many
        prompts each. Other values are groups of their own: numbers by size, texts from the most completions down. Of
        more than ``most`` those with the most completions are told apart, and the others are the rest.

        Args:
            completions: By prompt, how many completions are grouped.
            most: Groups that are told apart, at most.

        Raises:
            RecordError: No prompt that was read has the column.
        """
        with self._lock:
            codes, keys, columns = np.array(self._codes, np.int64), list(self._keys), list(self._columns)
        if len(codes) and self._name not in columns:
            raise RecordError(f"no column {self._name!r} in the data{near_names(self._name, columns)}")
        counts = np.bincount(codes, completions[: len(codes)], minlength=len(keys)).astype(np.int64)
        codes = np.concatenate([codes, np.full(max(0, len(completions) - len(codes)), -1)])[: len(completions)]
        codes[completions == 0] = -1
        present = [code for code in np.argsort(-counts, kind="stable").tolist() if counts[code] > 0]
        numbers = {code: number for code in present if (number := _as_number(keys[code])) is not None}
        are_numbers = all(keys[code][0] in ("missing", "null") or code in numbers for code in present)
        if are_numbers and len(numbers) > MOST_NUMBERS:
            return self._ranges(codes, [keys[code] for code in present], present, numbers)
        if are_numbers:
            present.sort(key=lambda code: numbers.get(code, math.inf))
        return self._by_value(codes, keys, present, counts, most)

    def _by_value(
        self, codes: Whole, keys: Sequence[Key], present: Sequence[int], counts: Whole, most: int
    ) -> Grouping:
        frequent = set(sorted(present, key=lambda code: -counts[code])[:most])
        chosen = [code for code in present if code in frequent]
        rest = len(present) - len(chosen)
        places = np.full(len(keys) + 1, len(chosen) if rest else -1, np.int64)
        places[chosen] = np.arange(len(chosen))
        places[-1] = -1  # a prompt without completions
        labels = _labels([keys[code] for code in chosen])
        more = [f"the rest ({rest:,} values)" if rest > 1 else "the rest (1 value)"] if rest else []
        return Grouping(self._name, [*labels, *more], places[codes], len(present), rest, are_ranges=False)

    def _ranges(
        self, codes: Whole, keys: Sequence[Key], present: Sequence[int], numbers: Mapping[int, float]
    ) -> Grouping:
        """Return ranges of numbers, each from its lower edge on and below its upper one, the last with both."""
        others = [(code, key) for code, key in zip(present, keys, strict=True) if code not in numbers]
        by_code = np.full(len(self._keys) + 1, np.nan)
        for code, number in numbers.items():
            by_code[code] = number
        values = by_code[codes]
        edges = _edges(values[~np.isnan(values)])
        places = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
        places[np.isnan(values)] = -1
        for index, (code, _) in enumerate(others):
            places[codes == code] = len(edges) - 1 + index
        labels = [f"{low:.6g} to <{high:.6g}" for low, high in itertools.pairwise(edges.tolist())]
        labels[-1] = labels[-1].replace("<", "")
        return Grouping(
            self._name, [*labels, *_labels([key for _, key in others])], places, len(present), 0, are_ranges=True
        )


def _key(columns: Mapping[str, object], name: str) -> Key:
    """Return what tells the value of a column apart, ``missing`` where the row has no such column."""
    if name not in columns:
        return "missing", None
    match columns[name]:
        case None:
            return "null", None
        case bool(value):
            return "truth", value
        case int(value) if abs(value) >= 2**63:
            return "json", _bounded(str(value))
        case int(value) | float(value):
            return ("number", value) if value == value else ("number", "nan")
        case str(value):
            return "text", _bounded(value)
        case value:
            return "json", _bounded(json.dumps(value, ensure_ascii=False, sort_keys=True, default=legible))


def _bounded(text: str) -> str:
    """Return a text, or of a long one the beginning and a digest of all of it."""
    if len(text) <= VALUE_CHARS:
        return text
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{text[:VALUE_CHARS]}… ({digest})"


def _as_number(key: Key) -> float | None:
    """Return the number that a value is, or that its text says; ``None`` for another one, or one that is not finite."""
    kind, value = key
    if kind == "text" and isinstance(value, str) and _NUMBER.fullmatch(value):
        value = float(value)
    elif kind != "number" or isinstance(value, str | None):
        return None
    number = float(value)
    return number if math.isfinite(number) else None


def _labels(keys: Sequence[Key]) -> list[str]:
    """Return what the values are called; where two would be called the same, texts stand in quotation marks."""
    labels = [_label(key) for key in keys]
    doubled = {label for label, count in Counter(labels).items() if count > 1} | {NO_COLUMN, NO_VALUE, ""}
    return [
        json.dumps(label, ensure_ascii=False) if key[0] == "text" and label in doubled else label
        for key, label in zip(keys, labels, strict=True)
    ]


def _label(key: Key) -> str:
    kind, value = key
    if kind in ("missing", "null"):
        return NO_COLUMN if kind == "missing" else NO_VALUE
    if kind == "number" and isinstance(value, float) and math.isfinite(value):
        return f"{value:.12g}"
    return str(value).lower() if kind == "truth" else str(value)


def _edges(values: Floats) -> Floats:
    """Return edges of ranges with about as many values each, rounded to three digits where that keeps them apart."""
    exact = np.unique(np.quantile(values, np.linspace(0, 1, RANGES + 1)))
    rounded = np.array([float(f"{edge:.3g}") for edge in exact[1:-1]])
    edges = np.concatenate([exact[:1], rounded, exact[-1:]])
    return edges if (np.diff(edges) > 0).all() else exact
