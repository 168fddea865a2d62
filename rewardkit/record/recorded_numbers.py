"""The part of a reader that tells of all completions at once: their numbers, and the texts in which is searched."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from rewardkit.record.as_text import whole_text
from rewardkit.record.batch_numbers import BatchNumbers, read_batches
from rewardkit.record.batch_rows import text_back
from rewardkit.record.place import RecordPlace
from rewardkit.record.sums import RecordedSums
from rewardkit.record.texts import beginning, unpacked
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
_SAID = (
    "SELECT said.completion, said.{} FROM said JOIN version ON version.id = said.version"
    " WHERE said.completion > ? AND said.completion <= ? AND said.pass = 0 AND version.reward = ?"
    " AND said.{} IS NOT NULL ORDER BY said.completion"
)
_KEYS: Final[Mapping[str, str]] = {
    "completion": "SELECT completion.id, text.body FROM completion JOIN text ON text.id = completion.completion"
    " WHERE completion.id > ? AND completion.id <= ? ORDER BY completion.id",
    "prompt_text": "SELECT prompt.id, text.body FROM prompt JOIN text ON text.id = prompt.prompt"
    " WHERE prompt.id > ? AND prompt.id <= ? ORDER BY prompt.id",
    **{kind: _SAID.format(kind, kind) for kind in ("reason", "error")},
}
"""What asks for the texts of a field by the numbers of their completions or prompts."""
KEY_BYTES = 256  # Bytes of a text, in UTF-8, by which it is sorted


class TextField(NamedTuple):
    """Texts by which completions are sorted."""

    kind: str  # `completion`, `prompt_text`, or of a reward `reason` or `error`
    reward: str | None = None

    @property
    def name(self) -> str:
        """What it is called in an order."""
        return self.kind if self.reward is None else f"{self.reward}.{self.kind}"

    @property
    def is_of_prompts(self) -> bool:
        """Whether each prompt has one of these texts, and not each completion."""
        return self.kind == "prompt_text"


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

    def group_numbers(self, first: int, last: int) -> list[int]:
        """Return the numbers of the completions' groups in their batches, of the batches from one number to another."""
        query = 'SELECT "group" FROM completion WHERE batch BETWEEN ? AND ? ORDER BY id'
        return [group for (group,) in self._tuples(query, first, last)]

    def searched_texts(self, ids: Sequence[int]) -> dict[int, tuple[int, Text | None]]:
        """Return completions' prompts, by their index, and texts; ``None`` for a text that was left out."""
        rows = self._rows_in(_TEXTS, ids)
        with self._decoding():
            return {
                number: (prompt, None if body is None else text_back(unpacked(body))) for number, prompt, body in rows
            }

    def text_keys(self, field: TextField, after: int, until: int) -> list[tuple[int, bytes]]:
        """Return how the texts of a field begin, with the numbers of their completions or prompts, in their order.

        Those with ``after < number <= until`` that have one. The order of these bytes is that of the texts' characters.
        """
        query = _KEYS[field.kind]
        if field.reward is not None:
            rows = self._tuples(query, after, until, field.reward)
            return [(number, text[:KEY_BYTES].encode("utf-8", "replace")[:KEY_BYTES]) for number, text in rows]
        rows = self._tuples(query, after, until)
        with self._decoding():
            return [(number, _key(body)) for number, body in rows]

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


def _key(body: bytes) -> bytes:
    """Return how a stored text begins, a conversation with the text of its messages."""
    raw = beginning(body, KEY_BYTES + 1)
    if raw.startswith(b"\x01"):
        return whole_text(text_back(unpacked(body)))[:KEY_BYTES].encode("utf-8", "surrogatepass")[:KEY_BYTES]
    return raw.removeprefix(b"\x02")[:KEY_BYTES]
