"""Which completions a search wants, and whether the scores of a batch fit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rewardkit.errors import RecordError
from rewardkit.record.batch_rows import LETTERS
from rewardkit.types import Status


class Fits(NamedTuple):
    """Which completions a search wants."""

    reward: str | None
    low: float | None
    high: float | None
    status: Status | None

    @property
    def only_failed(self) -> bool:
        """Whether all failed calls fit, which have a row of their own, so that no scores are opened."""
        return self.status is Status.FAILED and self.low is None and self.high is None

    @property
    def takes_all(self) -> bool:
        """Whether every completion of a batch that has the reward fits."""
        return self.low is None and self.high is None and self.status is None

    @property
    def of_totals(self) -> bool:
        """Whether totals alone decide."""
        return self.reward is None and not self.takes_all

    @property
    def columns_sql(self) -> str:
        """What to select behind the id so that :meth:`ids` can decide, as SQL; the id again where all fit."""
        if self.takes_all:
            return "completion.id"
        return "completion.weighted" if self.reward is None else "completion.scores, completion.status"

    def ids(self, rows: Sequence[tuple[Any, ...]], names: Sequence[str]) -> list[int]:
        """Return the ids of the completions that fit, of one batch with these rewards.

        A row holds an id and :attr:`columns_sql`, or the id alone of a completion that is known to fit.
        """
        if self.reward is not None and self.reward not in names:
            return []
        if not rows or len(rows[0]) == 1 or self.takes_all:
            return [row[0] for row in rows]
        fitting = np.ones(len(rows), bool)
        if self.reward is None:
            values = np.array([math.nan if row[1] is None else row[1] for row in rows])
        else:
            column = names.index(self.reward)
            values = np.frombuffer(b"".join([row[1] for row in rows]), "<f8").reshape(len(rows), -1)[:, column]
            status = self.status or Status.SCORED  # a default that stands in for a failed call is no score
            fitting = np.array([row[2][column].lower() == LETTERS[status] for row in rows])
        if self.low is not None:
            fitting &= values >= self.low
        if self.high is not None:
            fitting &= values <= self.high
        return [rows[index][0] for index in np.flatnonzero(fitting).tolist()]


def check_split(split: str | None) -> None:
    """Raise RecordError where a split is not ``"train"``, ``"eval"`` or ``None``."""
    if split not in (None, "train", "eval"):
        raise RecordError(f"split={split!r}: expected 'train' or 'eval', or None for both")


def status_of(status: str | Status) -> Status:
    """Return a status by its name; RecordError where no status has it."""
    try:
        return Status(status)
    except ValueError:
        raise RecordError(f"status {status!r}: expected {', '.join(Status)}") from None
