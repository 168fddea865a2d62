"""From a record's rows to a :class:`~rewardkit.record.table.CompletionTable`: packed scores become columns."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from rewardkit.record.outcomes import weights_in
from rewardkit.record.questions import OF_QUESTION
from rewardkit.record.table import CAUSE_TYPE, CompletionTable, Floats, Whole, Words
from rewardkit.record.values import PromptSums

Tuples = Callable[..., list[tuple[Any, ...]]]
Named = Callable[[Sequence[int]], list[tuple[str, int, str]]]

_ROWS = (
    'SELECT completion.id, completion.batch, completion.prompt, completion."group", tokens, truncated, total, weighted,'
    " advantage, status, scores, seconds FROM completion JOIN batch ON batch.id = completion.batch"
)
_BATCHES = "SELECT id, step, versions, weights, split, session FROM batch WHERE id IN ({})"
_MOST_ASKED = 500  # Batches that are asked for in one query
_CAUSES = (
    "SELECT said.completion, said.version, said.cause FROM said JOIN completion ON completion.id = said.completion"
    " JOIN batch ON batch.id = completion.batch WHERE said.pass = 0 AND said.cause IS NOT NULL"
)


class _Batch(NamedTuple):
    """What is the same for all completions of a batch."""

    step: int
    versions: str
    weights: str
    split: str
    session: int


class _Layout(NamedTuple):
    """How the scores of some completions are packed: which rewards, and where these completions stand."""

    versions: tuple[int, ...]
    weights: tuple[float, ...]
    places: Whole


def read_table(
    tuples_of: Tuples,
    named: Named,
    low: int | None,
    high: int | None,
    split: str | None,
    prompt: int | None,
    question: int | None = None,
) -> CompletionTable:
    """Return completions as columns: from step ``low`` to ``high``, of a split and a prompt; ``None`` for all.

    ``question`` is a prompt whose text those of all its rows share, whatever their other columns say.
    """
    bounds = {
        "batch.step >= ?": low,
        "batch.step <= ?": high,
        "batch.split = ?": split,
        "completion.prompt = ?": prompt,
        f"completion.prompt IN ({OF_QUESTION})": question,
    }
    conditions = {bound: value for bound, value in bounds.items() if value is not None}  # what is None stops no index
    where, values = " AND ".join(conditions) or "TRUE", list(conditions.values())
    rows = tuples_of(f"{_ROWS} WHERE {where}", *values)
    batches = _batches(tuples_of, sorted({batch for _, batch, *_ in rows}))
    # Sorted here, where they come in stretches; without those whose batch was taken away between the two queries.
    rows = sorted(row for row in rows if row[1] in batches)  # the second column is the batch
    columns: Sequence[Sequence[Any]] = list(zip(*rows, strict=True)) or [()] * _COLUMNS
    ids, of_batch, prompts, groups, tokens, truncated, plain, totals, advantages, status, scores, seconds = columns
    cells = _Cells.of(len(rows), batches, of_batch, named)
    cells.fill(status, scores, seconds)
    numbers = np.array(ids, np.int64)
    for number, version, cause in tuples_of(f"{_CAUSES} AND {where}", *values):
        index = int(np.searchsorted(numbers, number))
        if index < len(numbers) and numbers[index] == number:
            ((name, _, _),) = named([version])
            cells.causes[name][index] = cause
    return CompletionTable(
        ids=numbers,
        steps=np.array([batches[number].step for number in of_batch], np.int64),
        prompts=np.array(prompts, np.int64),
        groups=_groups(of_batch, groups),
        tokens=_floats(tokens),
        truncated=_floats(truncated),
        plain_sums=_floats(plain),
        rewards=_floats(totals),
        advantages=_floats(advantages),
        scores=cells.scores,
        status=cells.status,
        causes=cells.causes,
        seconds=cells.seconds,
        versions=cells.versions,
        weights=cells.weights,
    )


_COLUMNS = 12
_SCORES = "SELECT batch, prompt, CAST(epoch AS INTEGER), status, scores FROM completion WHERE id > ? AND id <= ?"


def score_sums(tuples_of: Tuples, named: Named, reward: str, after: int, until: int) -> list[PromptSums]:
    """Return sums of a reward's scores over completions with ``after < id <= until``, by prompt and by whole epoch.

    All its versions count together. What it skipped or failed at counts as a completion, and is in no sum.
    """
    rows = tuples_of(_SCORES, after, until)
    batches = _batches(tuples_of, sorted({batch for batch, *_ in rows}))
    rows = [row for row in rows if row[0] in batches]  # without those whose batch was taken away in between
    columns: Sequence[Sequence[Any]] = list(zip(*rows, strict=True)) or [()] * 5
    of_batch, prompts, epochs, status, packed_scores = columns
    scores = np.full(len(of_batch), np.nan)
    for layout in _layouts(batches, of_batch):
        names = [name for name, _, _ in named(layout.versions)]
        if reward not in names:
            continue
        column, indices = names.index(reward), layout.places.tolist()
        packed = b"".join([packed_scores[index] for index in indices])
        scored = np.array([status[index][column] in "sS" for index in indices])
        scores[layout.places[scored]] = np.frombuffer(packed, "<f8").reshape(len(indices), -1)[scored, column]
    scores_of: dict[tuple[int, int | None], list[float]] = {}
    for prompt, epoch, score in zip(prompts, epochs, scores.tolist(), strict=True):
        scores_of.setdefault((prompt, epoch), []).append(score)
    sums = []
    for (prompt, epoch), values in scores_of.items():
        numbers = [value for value in values if not math.isnan(value)]  # it stands for no score
        best, total = (max(numbers), sum(numbers)) if numbers else (None, None)
        sums.append(PromptSums(prompt, epoch, len(values), len(numbers), best, total))
    return sums


def _batches(tuples_of: Tuples, ids: Sequence[int]) -> dict[int, _Batch]:
    """Return batches by number; one that was taken away is not among them."""
    batches: dict[int, _Batch] = {}
    for start in range(0, len(ids), _MOST_ASKED):
        chunk = ids[start : start + _MOST_ASKED]
        for number, step, *rest in tuples_of(_BATCHES.format(",".join("?" * len(chunk))), *chunk):
            batches[number] = _Batch(-1 if step is None else step, *rest)
    return batches


class _Cells(NamedTuple):
    """What the rewards said, by reward one entry a completion; see :class:`~rewardkit.record.table.CompletionTable`."""

    layouts: Sequence[_Layout]
    named: Named
    scores: dict[str, Floats]
    seconds: dict[str, Floats]
    weights: dict[str, Floats]
    versions: dict[str, Whole]
    status: dict[str, Words]
    causes: dict[str, Words]

    @classmethod
    def of(cls, count: int, batches: Mapping[int, _Batch], of_batch: Sequence[int], named: Named) -> _Cells:
        """Return empty cells for ``count`` completions, whose batches are ``of_batch``."""
        layouts = _layouts(batches, of_batch)
        names = list(dict.fromkeys(name for layout in layouts for name, _, _ in named(layout.versions)))
        return cls(
            layouts,
            named,
            scores={name: np.full(count, np.nan) for name in names},
            seconds={name: np.full(count, np.nan) for name in names},
            weights={name: np.zeros(count) for name in names},
            versions={name: np.zeros(count, np.int64) for name in names},
            status={name: np.full(count, "", "<U1") for name in names},
            causes={name: np.full(count, "", CAUSE_TYPE) for name in names},
        )

    def fill(self, status: Sequence[str], scores: Sequence[bytes], seconds: Sequence[bytes]) -> None:
        """Unpack the columns of the completions."""
        for layout in self.layouts:
            indices = layout.places.tolist()
            shape = (len(indices), -1)  # a row for each completion, a column for each reward
            layout_scores = np.frombuffer(b"".join([scores[index] for index in indices]), "<f8").reshape(shape)
            layout_seconds = np.frombuffer(b"".join([seconds[index] for index in indices]), "<f4").reshape(shape)
            letters = np.array(list("".join([status[index] for index in indices]).lower()), "<U1").reshape(shape)
            for column, (name, number, _) in enumerate(self.named(layout.versions)):
                self.scores[name][layout.places] = layout_scores[:, column]
                self.seconds[name][layout.places] = layout_seconds[:, column]
                self.status[name][layout.places] = letters[:, column]
                self.versions[name][layout.places] = number
                self.weights[name][layout.places] = layout.weights[column]


def _layouts(batches: Mapping[int, _Batch], of_batch: Sequence[int]) -> list[_Layout]:
    """Return the layouts of completions: those whose batches have the same versions and weights share one."""
    kinds: dict[tuple[str, str], int] = {}
    kind_of = {key: kinds.setdefault((batch.versions, batch.weights), len(kinds)) for key, batch in batches.items()}
    kind = np.array([kind_of[number] for number in of_batch], np.int64)
    return [
        _Layout(ids, weights_in(weights, len(ids)), np.flatnonzero(kind == number))
        for (versions, weights), number in kinds.items()
        if (ids := tuple(json.loads(versions)))
    ]


def _groups(of_batch: Sequence[int], groups: Sequence[int]) -> Whole:
    """Return numbers of groups that are unique over all batches."""
    numbers: dict[tuple[int, int], int] = {}
    return np.array([numbers.setdefault(pair, len(numbers)) for pair in zip(of_batch, groups, strict=True)], np.int64)


def _floats(column: Sequence[Any]) -> Floats:
    return np.array(column, np.float64)  # None becomes nan
