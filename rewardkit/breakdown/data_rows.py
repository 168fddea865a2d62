"""Prompts of a run as the rows of a data set: what a trainer read, to be read again."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from rewardkit.record.pictures.sources import key_in
from rewardkit.record.reader import RunReader
from rewardkit.record.table import Whole
from rewardkit.record.values import RecordedPrompt

_AT_ONCE = 500  # Prompts that are read at once
_SURROGATES = re.compile("[\ud800-\udfff]")


class DataForm(NamedTuple):
    """What the rows of a data set have in common, which every reader asks for, and what it takes to make them so."""

    prompts: Sequence[int]  # The prompts that are rows, or of one text parts of a row, in order
    columns: Sequence[str]  # The columns of all of them, in the order in which they were first seen
    are_messages: bool  # Whether prompts are messages; text becomes one, where some are
    texts_as_messages: int  # Prompts that are text, where others are messages
    filled: int  # Rows that lack a column which others have, and get null in it
    empty: int  # Prompts that are empty, which no trainer takes: they are no rows
    own: Sequence[str]  # Columns that are of a completion, for they differ within most texts: they are in no row
    pictures: int  # Rows in which a reference stands for a picture, whose original the record has not


def data_form(run: RunReader, prompts: Collection[int], questions: Whole | None = None) -> DataForm:
    """Return the form of the data set that has these prompts as rows.

    With ``questions``, the number of the first prompt with the same text by prompt, all rows of these texts are meant:
    columns that differ within half of the texts are of a completion, and left out.
    """
    columns: dict[str, None] = {}
    widths: dict[int, int] = {}
    cells: dict[int, dict[str, str]] = {}
    differing: dict[str, set[int]] = {}
    texts = empty = pictures = 0
    chosen = prompts if questions is None else np.flatnonzero(np.isin(questions, list(prompts))).tolist()
    for prompt in _chosen(run, chosen):
        if not prompt.prompt:
            empty += 1
            continue
        columns |= dict.fromkeys(name for name in prompt.columns if name != "prompt")
        texts += isinstance(prompt.prompt, str)
        pictures += _has_reference([prompt.prompt, prompt.columns])
        widths[prompt.index] = len(prompt.columns)
        if questions is not None:
            question = int(questions[prompt.index])
            values = {name: json.dumps(value, sort_keys=True) for name, value in prompt.columns.items()}
            first = cells.setdefault(question, values)
            for name in first.keys() | values.keys():
                if first.get(name) != values.get(name):
                    differing.setdefault(name, set()).add(question)
    own = [name for name in columns if 2 * len(differing.get(name, ())) >= max(1, len(cells))]
    are_messages = texts < len(widths)
    filled = sum(width < len(columns) for width in widths.values())
    return DataForm(
        list(widths), [name for name in columns if name not in own], are_messages, texts if are_messages else 0, filled,
        empty, own, pictures,
    )  # fmt: skip


def data_rows(run: RunReader, form: DataForm) -> Iterator[Mapping[str, Any]]:
    """Return the rows of a data set: ``prompt`` and the columns of the data as the record has them.

    Rows that differ only in columns of a completion are one row. Every row has the same columns, ``null`` where its own
    lacks one, and prompts are all text or all messages, because readers of data sets ask for that. A number that is not
    finite is ``null``, and half of a surrogate pair is U+FFFD: JSON and UTF-8 have neither.
    """
    return (row for _, row in numbered_rows(run, form))


def numbered_rows(run: RunReader, form: DataForm) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the rows of :func:`data_rows`, each behind the number of its prompt."""
    seen = set()
    for prompt in _chosen(run, form.prompts):
        row = _row(prompt, form)
        if form.own:  # rows that differed in these alone are one row
            digest = hashlib.blake2b(json.dumps(row).encode(), digest_size=16).digest()
            if digest in seen:
                continue
            seen.add(digest)
        yield prompt.index, row


def _chosen(run: RunReader, prompts: Collection[int]) -> Iterator[RecordedPrompt]:
    numbers = sorted(prompts)
    for start in range(0, len(numbers), _AT_ONCE):
        yield from run.prompts_by_index(numbers[start : start + _AT_ONCE])


def _has_reference(value: object) -> bool:
    """Return whether a reference to a picture is somewhere in a value of JSON."""
    if isinstance(value, str):
        return key_in(value) is not None
    if isinstance(value, Mapping):
        return any(map(_has_reference, value.values()))
    return isinstance(value, list) and any(map(_has_reference, value))


def _row(prompt: RecordedPrompt, form: DataForm) -> dict[str, Any]:
    text = prompt.prompt
    if form.are_messages and isinstance(text, str):
        text = [{"role": "user", "content": text}]
    values = {"prompt": text, **{name: prompt.columns.get(name) for name in form.columns}}
    return {str(_plain(name)): _plain(value) for name, value in values.items()}


def _plain(value: Any) -> Any:
    """Return a value as every reader of JSON takes it."""
    if isinstance(value, str):
        return value if value.isascii() else _SURROGATES.sub("\ufffd", value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {_plain(name): _plain(part) for name, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list) else value
