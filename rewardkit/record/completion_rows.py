"""Completions of a record from their rows: what many have in common, such as batch and prompt, is read once."""

from __future__ import annotations

import functools
import json
import struct
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from rewardkit.record import questions
from rewardkit.record.batch_rows import text_back
from rewardkit.record.outcomes import object_of, outcome_of
from rewardkit.record.texts import unpacked
from rewardkit.record.values import Completion
from rewardkit.types import Text

RowsIn = Callable[..., list[Any]]
"""Returns the rows of a query with ``IN ({})`` for many numbers, as :meth:`OpenedRecord._rows_in` does."""
Named = Callable[[Sequence[int]], list[tuple[str, int, str]]]
_FLAT = (str, int, float, bool, type(None))


class _Batch(NamedTuple):
    """What is the same for all completions of a batch."""

    step: int | None
    split: str
    rank: int
    calls: Sequence[tuple[int, str, str]]  # Of each reward: its version's id, its name, its digits
    numbers: Mapping[str, int]  # The numbers of the rewards' versions, by name


class _Prompt:
    """A prompt and its row's columns as they are stored; each completion gets its own, which a reward may change."""

    def __init__(self, prompt_body: bytes, columns_body: bytes) -> None:
        self._prompt, self._columns = unpacked(prompt_body), unpacked(columns_body)
        self._text = None if self._prompt.startswith("\x01") else text_back(self._prompt)
        columns = object_of(self._columns)
        self._flat = columns if all(isinstance(value, _FLAT) for value in columns.values()) else None

    @property
    def text(self) -> Text:
        return text_back(self._prompt) if self._text is None else self._text

    @property
    def columns(self) -> dict[str, Any]:
        return object_of(self._columns) if self._flat is None else dict(self._flat)


def read_completions(
    rows_in: RowsIn, named: Named, ids: Sequence[int], rewards: Collection[str] | None
) -> dict[int, Completion]:
    """Return completions by their numbers, with the outcomes of these rewards; of all for ``None``.

    Those that are not there, or whose batch was taken away meanwhile, are left out.
    """
    rows = rows_in(questions.COMPLETION, ids)
    batches = _read_batches(rows_in, named, sorted({row["batch"] for row in rows}))
    rows = [row for row in rows if row["batch"] in batches]
    prompts = {
        row["id"]: _Prompt(row["prompt_body"], row["columns_body"])
        for row in rows_in(questions.PROMPTS, sorted({row["prompt"] for row in rows}))
    }
    details = _read_details(rows_in, ids, batches.values(), rewards)
    return {row["id"]: _completion(row, batches[row["batch"]], prompts, details, rewards) for row in rows}


def _read_batches(rows_in: RowsIn, named: Named, ids: Sequence[int]) -> dict[int, _Batch]:
    batches = {}
    for row in rows_in(questions.OF_BATCHES, ids):
        versions = json.loads(row["versions"])
        names = named(versions)
        batches[row["id"]] = _Batch(
            row["step"], row["split"], row["rank"],
            [(version, name, digits) for version, (name, _, digits) in zip(versions, names, strict=True)],
            {name: number for name, number, _ in names},
        )  # fmt: skip
    return batches


def _read_details(
    rows_in: RowsIn, ids: Sequence[int], batches: Collection[_Batch], rewards: Collection[str] | None
) -> Mapping[tuple[int, int], Any]:
    """Return the details of the calls that said something, by completion and version."""
    query = f"{questions.SAID} WHERE said.pass = 0 AND said.completion IN ({{}})"
    if rewards is not None:
        versions = {version for batch in batches for version, name, _ in batch.calls if name in rewards}
        if not versions:
            return {}
        query += f" AND said.version IN ({','.join(map(str, sorted(versions)))})"
    return {(row["completion"], row["version"]): row for row in rows_in(query, ids)}


def _completion(
    row: Any,
    batch: _Batch,
    prompts: Mapping[int, _Prompt],
    details: Mapping[tuple[int, int], Any],
    rewards: Collection[str] | None,
) -> Completion:
    """Return a completion from its row, its batch and prompt, and the details of its calls."""
    number, prompt, letters, body = row["id"], prompts[row["prompt"]], row["status"], row["completion_body"]
    scores, seconds = (
        _doubles(len(batch.calls)).unpack(row["scores"]),
        _singles(len(batch.calls)).unpack(row["seconds"]),
    )
    outcomes = {
        name: outcome_of(letter, score, duration_s, digits, details.get((number, version)))
        for (version, name, digits), letter, score, duration_s in zip(
            batch.calls, letters, scores, seconds, strict=True
        )
        if rewards is None or name in rewards
    }
    truncated = row["truncated"]
    return Completion(
        number, batch.step, row["epoch"], batch.split, batch.rank, row["prompt"], row["group"], prompt.text,
        prompt.columns, None if body is None else text_back(unpacked(body)), row["tokens"],
        None if truncated is None else bool(truncated), outcomes, dict(batch.numbers), row["total"], row["weighted"],
        row["advantage"], row["batch"],
    )  # fmt: skip


@functools.cache
def _doubles(count: int) -> struct.Struct:
    return struct.Struct(f"<{count}d")


@functools.cache
def _singles(count: int) -> struct.Struct:
    return struct.Struct(f"<{count}f")
