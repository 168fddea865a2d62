"""Which completions of two records are of one question, of one row of the data, or the same: digests of their texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from rewardkit.record.table import Whole
from rewardkit.record.texts import digest_of, unpacked

Tuples = Callable[..., list[tuple[Any, ...]]]
NO_TEXT = 0  # The digest of a completion whose text was left out
_PAGE = 500
_COMPLETIONS = "SELECT id, completion FROM completion ORDER BY id"
_PROMPTS = "SELECT id, digest, prompt FROM prompt ORDER BY id"
_DIGESTS = "SELECT pairs FROM digests"
_BODIES = "SELECT id, body FROM text WHERE id IN ({})"


class Identities(NamedTuple):
    """Digests that are equal for equal texts, in every record; one entry a completion."""

    questions: Whole  # Of the prompt alone: the solutions of a question share it, whatever their other columns say
    rows: Whole  # Of the prompt and all columns of the data
    completions: Whole  # Of the completion's own text; `NO_TEXT` where it was left out


def read_identities(tuples_of: Tuples, ids: Whole, prompts: Whole) -> Identities:
    """Return the identities of completions, whose numbers ``ids`` and prompts' indices are as a table has them."""
    numbers, texts = _columns(tuples_of(_COMPLETIONS), 2)
    own = texts[np.searchsorted(numbers, ids)] if len(numbers) else texts
    indices, rows, questions = _columns(tuples_of(_PROMPTS), 3)
    positions = np.searchsorted(indices, prompts)
    digests = _digests_of(tuples_of, np.unique(np.concatenate([own, questions])))
    return Identities(digests(questions[positions]), rows[positions], digests(own))


def read_questions(tuples_of: Tuples) -> Whole:
    """Return, for each prompt of a record in order, the index of the first prompt with the same text."""
    _, _, texts = _columns(tuples_of(_PROMPTS), 3)
    _, first, inverse = np.unique(texts, return_index=True, return_inverse=True)
    return np.asarray(first[inverse.reshape(-1)], np.int64)


def _columns(rows: Sequence[tuple[Any, ...]], count: int) -> list[Whole]:
    """Return rows of numbers as columns; 0 stands for NULL, which is no text's number."""
    columns = zip(*rows, strict=True) if rows else [()] * count
    return [np.array([value or 0 for value in column], np.int64) for column in columns]


def _digests_of(tuples_of: Tuples, texts: Whole) -> Callable[[Whole], Whole]:
    """Return what looks up the digests of texts by their numbers, for those of ``texts``; of 0 it is `NO_TEXT`."""
    pairs = [np.frombuffer(pairs, "<i8").reshape(-1, 2) for (pairs,) in tuples_of(_DIGESTS)]
    table = np.concatenate([np.zeros((1, 2), np.int64), *pairs])
    lacking = texts[~np.isin(texts, table[:, 1])].tolist()
    if lacking:  # of a run that several processes write, some are noted later
        table = np.concatenate([table, np.array(list(_read_digests(tuples_of, lacking).items()), np.int64)[:, ::-1]])
    order = np.argsort(table[:, 1], kind="stable")
    numbers, digests = table[order, 1], table[order, 0]
    return lambda wanted: np.asarray(digests[np.searchsorted(numbers, wanted)])


def _read_digests(tuples_of: Tuples, texts: Sequence[int]) -> Mapping[int, int]:
    """Return the digests of texts by their numbers, from the texts themselves."""
    digests: dict[int, int] = {}
    for start in range(0, len(texts), _PAGE):
        chunk = texts[start : start + _PAGE]
        rows = tuples_of(_BODIES.format(",".join("?" * len(chunk))), *chunk)
        digests |= {number: digest_of(unpacked(body)) for number, body in rows}
    return digests
