"""Passes: completions of a run that were scored again, kept beside what the training saw and never in its place."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rewardkit.declare.compose import Composable
from rewardkit.record.batch_rows import LETTERS, details_of
from rewardkit.record.description import describe
from rewardkit.record.place import RecordPlace
from rewardkit.record.recorder import Recorder
from rewardkit.record.store import RecordConnection, transaction
from rewardkit.record.table import CompletionTable, Floats, Whole, Words
from rewardkit.types import Outcome


@dataclass(frozen=True, slots=True)
class Pass:
    """One time that completions were scored again with a version of a reward."""

    id: int  # Its number in the record, from 1
    reward: str  # The reward's name in the run
    version: int  # The number of the version
    completions: int  # How many it scored
    began: float  # When it began, in seconds since 1970
    ended: float | None  # When it ended; `None` where it was cut short or is still going on
    about: Mapping[str, Any]  # What it was asked to do


class PassColumns(NamedTuple):
    """The numbers of a pass, one entry a completion."""

    ids: Whole  # The completions' numbers in the record, in order
    scores: Floats  # The scores; `nan` for a completion without a score
    status: Words  # `s` for scored, `k` for skipped, `f` for failed
    seconds: Floats  # How long the calls took


class PassWriter:
    """Writes one pass; use it in a ``with`` statement. What :meth:`add` was given is in the file when it returns.

    A version of the reward that the run does not know becomes a further one of this name. ``about`` is what the pass
    was asked to do, as JSON can hold it. The values of ``env``, the workers' variables, reach no record. ``id`` and
    ``version`` are the record's numbers. Raises RecordError where the record cannot be written.
    """

    def __init__(
        self,
        run: str | os.PathLike[str] | RecordPlace,
        name: str,
        reward: Composable,
        *,
        about: Mapping[str, Any] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._recorder = Recorder(run, append=True, purpose="rescore", env=env)
        try:
            self._connection = self._recorder.path.connect_to_write()
            with self._transaction() as connection:
                self._version = self._recorder.version(connection, name, describe(reward), None, "rescore")
                request = json.dumps(dict(about or {}), default=repr)
                self.id = connection.insert("pass", {"version": self._version, "began": time.time(), "about": request})
                query = "SELECT number FROM version WHERE id = ?"
                self.version = int(connection.execute(query, (self._version,)).fetchone()[0])
        except BaseException:
            self._recorder.close()
            raise

    def add(self, ids: Sequence[int], outcomes: Sequence[Outcome]) -> None:
        """Write one outcome for each of the completions with these ids, in one transaction."""
        rows = [
            (self.id, number, LETTERS[outcome.status], outcome.score, outcome.duration_s)
            for number, outcome in zip(ids, outcomes, strict=True)
        ]
        with self._transaction() as connection:
            connection.insert_all("rescored", rows)
            self._recorder.write_details(connection, details_of(0, outcomes), ids, [self._version], self.id)

    def __enter__(self) -> PassWriter:
        return self

    def __exit__(self, kind: object, *error: object) -> None:
        try:
            if kind is None:
                with self._transaction() as connection:
                    connection.execute("UPDATE pass SET ended = ? WHERE id = ?", (time.time(), self.id))
        finally:
            self._connection.close()
            self._recorder.close()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[RecordConnection]:
        with self._recorder.path.errors(), transaction(self._connection):
            yield self._connection


def columns_of(rows: Sequence[tuple[Any, ...]]) -> PassColumns:
    """Return the numbers of a pass from its rows, which have completion, score, status and seconds."""
    columns: Sequence[Sequence[Any]] = list(zip(*rows, strict=True)) or [()] * len(PassColumns._fields)
    ids, scores, status, seconds = columns
    return PassColumns(
        np.array(ids, np.int64),
        np.array(scores, np.float64),  # None becomes nan
        np.array(status, "<U1"),
        np.array(seconds, np.float64),
    )


def second_scores(table: CompletionTable, passes: Sequence[tuple[Pass, PassColumns]]) -> dict[str, Floats]:
    """Return, by reward, the second scores: of a pass with the same version that first scored the completion.

    The newest of several passes counts. There is one entry a completion, ``nan`` where there is no second score; a
    reward without any is left out.
    """
    scores: dict[str, Floats] = {}
    for scoring, columns in passes:
        if scoring.reward not in table.versions:
            continue
        places = np.searchsorted(table.ids, columns.ids)
        is_second = (places < len(table)) & (columns.status == "s")
        is_second[is_second] = table.ids[places[is_second]] == columns.ids[is_second]
        is_second[is_second] = table.versions[scoring.reward][places[is_second]] == scoring.version
        if is_second.any():
            second = scores.setdefault(scoring.reward, np.full(len(table), np.nan))
            second[places[is_second]] = columns.scores[is_second]
    return scores
