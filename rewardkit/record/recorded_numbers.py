"""The part of a reader that tells of all completions at once: their numbers, and the texts in which is searched."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from rewardkit.record.batch_numbers import BatchNumbers, read_batches
from rewardkit.record.batch_rows import text_back
from rewardkit.record.place import RecordPlace
from rewardkit.record.sums import RecordedSums
from rewardkit.record.texts import unpacked
from rewardkit.types import Text

_TEXTS = (
    "SELECT completion.id, completion.prompt, text.body FROM completion"
    " LEFT JOIN text ON text.id = completion.completion WHERE completion.id IN ({})"
)
_NOTES = (
    "SELECT said.completion, said.version, reason, error, trace.body, log.body FROM said"
    " LEFT JOIN text trace ON trace.id = said.traceback LEFT JOIN text log ON log.id = said.logs"
    " WHERE said.pass = 0 AND said.completion IN ({}) ORDER BY said.completion, said.version"
)


class CallTexts(NamedTuple):
    """What a call said beside its number."""

    reward: str
    reason: str | None
    error: str | None
    traceback: str | None
    output: str | None  # What it printed and logged


class RecordedNumbers(RecordedSums):
    """The part of a reader that tells of all completions at once."""

    def __init__(self, run: str | os.PathLike[str] | RecordPlace) -> None:
        super().__init__(run)
        self._versions: dict[int, tuple[str, int, str]] = {}

    def batch_numbers(self, after: int, limit: int) -> list[BatchNumbers]:
        """Return the numbers of the completions of the next batches, at most ``limit``, behind a batch's number."""
        with self._errors(), self._decoding():
            has_blocks = self._connection.has_table("numbers")
            return read_batches(self._tuples, self._named, after, limit, has_blocks=has_blocks)

    def packed_seconds(self, first: int, last: int) -> list[bytes]:
        """Return how long the calls took, packed by completion in order, of the batches from one number to another."""
        query = "SELECT seconds FROM completion WHERE batch BETWEEN ? AND ? ORDER BY id"
        return [packed for (packed,) in self._tuples(query, first, last)]

    def searched_texts(self, ids: Sequence[int]) -> dict[int, tuple[int, Text | None]]:
        """Return completions' prompts, by their index, and texts; ``None`` for a text that was left out."""
        rows = self._rows_in(_TEXTS, ids)
        with self._decoding():
            return {
                number: (prompt, None if body is None else text_back(unpacked(body))) for number, prompt, body in rows
            }

    def call_texts(self, ids: Sequence[int]) -> dict[int, list[CallTexts]]:
        """Return what the calls of completions said, by completion; those that said nothing are left out."""
        texts: dict[int, list[CallTexts]] = {}
        rows = self._rows_in(_NOTES, ids)
        with self._decoding():
            for number, version, reason, error, trace, log in rows:
                ((reward, _, _),) = self._named([version])
                bodies = (None if body is None else unpacked(body) for body in (trace, log))
                texts.setdefault(number, []).append(CallTexts(reward, reason, error, *bodies))
        return texts

    def _named(self, versions: Sequence[int]) -> list[tuple[str, int, str]]:
        """Return the reward's name, the number and the digits of each version."""
        if any(version not in self._versions for version in versions):
            rows = self._rows("SELECT id, reward, number, digits FROM version")
            self._versions = {row["id"]: (row["reward"], row["number"], row["digits"]) for row in rows}
        return [self._versions[version] for version in versions]
