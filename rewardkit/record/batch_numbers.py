"""Batches of a record with the numbers of their completions: from their blocks, or from the rows of those without."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from rewardkit.record.columns import Named, Tuples
from rewardkit.record.number_blocks import NO_BLOCK, OWN, NumberBlock, block_of_columns
from rewardkit.record.outcomes import weights_in
from rewardkit.record.table import Floats, Whole

MOST_ROWS = 20_000  # Completions whose rows are read at once, of batches without a block
_BATCHES = "SELECT id, session, step, epoch, split, versions, weights FROM batch WHERE id > ? ORDER BY id LIMIT ?"
_COUNTS = "SELECT batch, count(*) FROM completion WHERE batch BETWEEN ? AND ? GROUP BY batch"
_BLOCKS = "SELECT batch, first, body FROM numbers WHERE batch BETWEEN ? AND ?"
_COUNT = "SELECT count(*) FROM completion WHERE batch BETWEEN ? AND ?"
_ROWS = (
    "SELECT id, prompt, tokens, truncated, total, weighted, advantage, status, scores FROM completion"
    " WHERE batch = ? ORDER BY id"
)
_CAUSES = (
    "SELECT said.completion, said.version, said.cause FROM said JOIN completion ON completion.id = said.completion"
    " WHERE said.pass = 0 AND said.cause IS NOT NULL AND completion.batch = ?"
)


class BatchNumbers(NamedTuple):
    """The completions of one batch in numbers."""

    id: int  # The batch's number in the record
    ids: Whole  # The completions' numbers, in order
    session: int  # The number of the session, of which each process has one
    step: int | None
    epoch: float | None
    split: str
    versions: Mapping[str, tuple[int, int]]  # By reward, its place in the batch and the number of its version
    weights: tuple[float, ...]  # In the order of the places
    block: NumberBlock

    def column(self, name: str, reward: str | None = None) -> Floats:
        """Return a column, of :data:`OWN`, or ``score``, ``state``, ``version`` or ``weight`` of a reward.

        What is not known of this batch is ``nan``, and 0 for the state of a call that there is not.
        """
        count = len(self.ids)
        if reward is None:
            own = {"id": self.ids, "step": self.step, "epoch": self.epoch, "train": self.split == "train"}
            if name in own:
                value = np.nan if own[name] is None else own[name]
                return np.broadcast_to(np.asarray(value, np.float64), (count,))
            return self.block.column(OWN.index(name))
        if reward not in self.versions:
            return np.full(count, 0.0 if name == "state" else np.nan)
        column, version = self.versions[reward]
        if name in ("version", "weight"):
            return np.full(count, version if name == "version" else self.weights[column], np.float64)
        return self.block.column(len(OWN) + 2 * column + ("score", "state").index(name))


def read_batches(tuples_of: Tuples, named: Named, after: int, limit: int, *, has_blocks: bool) -> list[BatchNumbers]:
    """Return the next batches behind the number ``after``, at most ``limit``, and fewer where rows must be read.

    A batch without completions is among them. ``has_blocks`` says whether the record has a table of them. Raises
    ValueError and struct.error where a block holds what no recorder writes.
    """
    batches = tuples_of(_BATCHES, after, limit)
    if not batches:
        return []
    bounds = batches[0][0], batches[-1][0]
    blocks = (
        {batch: (first, NumberBlock.of(bytes(body))) for batch, first, body in tuples_of(_BLOCKS, *bounds)}
        if has_blocks
        else {}
    )
    ((count,),) = tuples_of(_COUNT, *bounds)
    is_whole = count == sum(block.size for _, block in blocks.values())
    counts: dict[int, int] | None = None if is_whole else dict(tuples_of(_COUNTS, *bounds))
    result = []
    rows_left = MOST_ROWS
    for number, session, step, epoch, split, versions, weights in batches:
        names = named(json.loads(versions))
        places = {name: (column, version) for column, (name, version, _) in enumerate(names)}
        first, block = blocks.get(number, (0, NO_BLOCK))
        if counts is None or counts.get(number, 0) == block.size:
            ids = np.arange(first, first + block.size)
        else:  # written by an older release, or some were taken away
            if rows_left <= 0:
                break
            rows_left -= counts.get(number, 0)
            ids, block = _from_rows(tuples_of, named, number, places)
        if block.size and len(block.columns) != len(OWN) + 2 * len(names):
            raise ValueError(f"the numbers of batch {number} are of other rewards")
        of_rewards = weights_in(weights, len(names))
        result.append(BatchNumbers(number, ids, session, step, epoch, split, places, of_rewards, block))
    return result


def _from_rows(
    tuples_of: Tuples, named: Named, batch: int, places: Mapping[str, tuple[int, int]]
) -> tuple[Whole, NumberBlock]:
    """Return the numbers of a batch's completions, and the block that its rows make.

    Their lengths in characters are not known.
    """
    rows = tuples_of(_ROWS, batch)
    cells: Sequence[Sequence[Any]] = list(zip(*rows, strict=True)) or [()] * 9
    ids, prompts, tokens, truncated, plain_sums, totals, advantages, status, scores = cells
    own = (prompts, tokens, truncated, [None] * len(rows), plain_sums, totals, advantages)
    row_of = {number: row for row, number in enumerate(ids)}
    causes = [
        (row_of[completion], places[name][0], cause)
        for completion, version, cause in tuples_of(_CAUSES, batch)
        for name, _, _ in named([version])
        if completion in row_of and name in places
    ]
    return np.array(ids, np.int64), NumberBlock.of(block_of_columns(own, status, scores, causes))
