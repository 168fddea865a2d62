"""Pages of what rewards said: forwards or backwards from any place, by filters, with a bound on the time of a page.

A search reads windows of completions that follow one another. Failed and skipped calls are counted in the sums of each
batch, so a search for them opens only the batches that have some. Where a page takes longer than it may, it ends early
and says how far it came; the next one goes on from there.
"""

from __future__ import annotations

import functools
import json
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from rewardkit.record.batch_rows import LETTERS
from rewardkit.record.outcomes import outcome_of
from rewardkit.record.store import RecordRow
from rewardkit.record.texts import unpacked
from rewardkit.record.values import LogEntry
from rewardkit.types import Cause, Status

Ask: TypeAlias = Callable[..., list[Any]]
Named: TypeAlias = Callable[[Sequence[int]], list[tuple[str, int, str]]]

BUDGET_S = 0.015  # Seconds after which a page answers with what it has
SEARCH_S = 0.1  # The same for a page of a search for a text, which opens what it looks at
_CHUNK = 500
_FIRST_WINDOW, _LARGEST_WINDOW = 500, 4000
_BATCHES = 100
_END = 2**62


class LogPlace(NamedTuple):
    """Where an entry stands among all: by completion, and by the number of the reward's version in the record."""

    completion: int
    version: int


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which entries a page shows."""

    versions: tuple[int, ...] | None = None  # Of these versions, by their numbers in the record; of all unless given
    first: int | None = None  # From this step on
    last: int | None = None  # Up to this step
    split: str | None = None  # `"train"` or `"eval"`
    status: Status | None = None  # With this status
    cause: Cause | None = None  # Failed with this cause
    text: str | None = None  # With this text in output, error, traceback or reason, whatever the case

    @property
    def counted(self) -> str | None:
        """The column of a batch's sums that counts such calls; ``None`` where the sums do not count them."""
        if self.cause is not None or self.status is Status.FAILED:
            return "failed"
        return "skipped" if self.status is Status.SKIPPED else None


class LogPage(NamedTuple):
    """A page of entries."""

    entries: list[tuple[LogPlace, LogEntry]]  # The entries with their places, in the order that was asked for
    end: LogPlace  # Where the next page goes on
    step: int | None  # The step there; `None` without a step
    ended: bool  # Whether there is nothing beyond it


def newest(last_id: int) -> LogPlace:
    """Return the place behind all entries of the completions up to one."""
    return LogPlace(last_id, _END)


def read_page(
    ask: Ask,
    named: Named,
    wanted: Wanted,
    start: LogPlace | None,
    *,
    backwards: bool,
    limit: int,
    budget_s: float | None,
) -> LogPage:
    """Return the entries that follow a place, or that stand before it.

    The place itself is left out; ``None`` is the beginning or the end. ``backwards`` puts the newest first. The page
    ends early after ``budget_s`` seconds; ``None`` for the default.
    """
    search = _Search(ask, named, wanted, backwards)
    position = start or (LogPlace(_END, _END) if backwards else LogPlace(0, 0))
    if budget_s is None:
        budget_s = BUDGET_S if wanted.text is None else SEARCH_S
    end = time.monotonic() + budget_s
    positions: list[LogPlace] = []
    for span in search.spans(position):
        while len(positions) < limit:
            keys, whole, position = search.keys(span, position, limit - len(positions))
            positions += keys
            if whole or time.monotonic() > end:
                break
        if len(positions) >= limit or time.monotonic() > end:
            return LogPage(search.entries(positions), position, search.step_at(position), ended=False)
    return LogPage(search.entries(positions), position, search.step_at(position), ended=True)


@dataclass(frozen=True, slots=True)
class _Search:
    """A search for the entries of a page, in windows of completions."""

    ask: Ask
    named: Named
    wanted: Wanted
    backwards: bool

    @property
    def _beyond(self) -> str:
        return "<" if self.backwards else ">"

    @property
    def _order(self) -> str:
        return "DESC" if self.backwards else "ASC"

    def spans(self, position: LogPlace) -> Iterator[tuple[int, int]]:
        """Yield ranges (first, last) of ids of completions that may have such entries, in the order of the search."""
        start = self._first_completion(position)
        if self.wanted.counted is not None:
            yield from self._spans_of_batches(start)
            return
        low, high = self._bounds()
        if low is None or high is None:
            return
        at = min(high, start) if self.backwards else max(low, start)
        size = _FIRST_WINDOW
        while low <= at <= high:
            yield (max(low, at - size + 1), at) if self.backwards else (at, min(high, at + size - 1))
            at += -size if self.backwards else size
            size = min(2 * size, _LARGEST_WINDOW)

    def _first_completion(self, position: LogPlace) -> int:
        """Return the completion that the search opens first: the place's, or the next if all of that was read."""
        if self.backwards:
            return position.completion if position.version > 0 else position.completion - 1
        return position.completion if position.version < _END else position.completion + 1

    def _bounds(self) -> tuple[int | None, int | None]:
        """Return the numbers of the first and the last completion of the wanted steps; ``None`` without one."""
        if self.wanted.first is None and self.wanted.last is None:
            low, high = self.ask(_ENDS)[0]
            return low, high
        query = (
            "SELECT min(id), max(id) FROM batch WHERE split IN ('train', 'eval') AND step IS NOT NULL"
            " AND (:first IS NULL OR step >= :first) AND (:last IS NULL OR step <= :last)"
        )
        batches = self.ask(query, first=self.wanted.first, last=self.wanted.last)[0]
        low, high = self.ask(f"SELECT {_FIRST_OF.format('?')}, {_LAST_OF.format('?')}", *batches)[0]
        return low, high

    def _spans_of_batches(self, start: int) -> Iterator[tuple[int, int]]:
        """Yield the spans of batches that have such calls; spans of batches that follow one another are joined."""
        versions = _listed("summary.version", self.wanted.versions)
        cause = "" if self.wanted.cause is None else " AND instr(summary.causes, :cause)"
        query = (
            f"SELECT batch.id, {_FIRST_OF.format('batch.id')} AS low, {_LAST_OF.format('batch.id')} AS high FROM batch"  # noqa: S608 - words of ours
            f" WHERE batch.id {self._beyond} :at AND (:first IS NULL OR step >= :first)"
            " AND (:last IS NULL OR step <= :last) AND (:split IS NULL OR split = :split) AND EXISTS (SELECT 1 FROM"
            f" summary WHERE summary.batch = batch.id AND summary.{self.wanted.counted} > 0{versions}{cause})"
            f" ORDER BY batch.id {self._order} LIMIT {_BATCHES}"
        )
        at = self._batch_before(start)
        while rows := self.ask(
            query,
            at=at,
            first=self.wanted.first,
            last=self.wanted.last,
            split=self.wanted.split,
            cause=f'"{self.wanted.cause}"',
        ):
            yield from _merge([(row["low"], row["high"]) for row in rows if row["low"] is not None], self.backwards)
            at = rows[-1]["id"]

    def _batch_before(self, start: int) -> int:
        """Return a batch number just before the batch of a completion, in the order of the search."""
        rows = self.ask(_BATCH_AT.format(self._beyond, self._order), start)
        if not rows:
            return 0 if self.backwards else _END
        return int(rows[0][0]) + (1 if self.backwards else -1)

    def keys(self, span: tuple[int, int], position: LogPlace, limit: int) -> tuple[list[LogPlace], bool, LogPlace]:
        """Return the places of a span's fitting entries, whether the span ends with them, and where the search is."""
        low, high = span
        if self.backwards:
            high = min(high, position.completion)
        else:
            low = max(low, position.completion)
        is_filtered = self.wanted.text is not None or self.wanted.status in (Status.SCORED, Status.SKIPPED)
        most = _CHUNK if is_filtered else limit
        where = f"(said.completion, said.version) {self._beyond} (:completion, :version)"
        causes = " AND said.cause IS NOT NULL" if self.wanted.status is Status.FAILED else ""
        causes += "" if self.wanted.cause is None else " AND said.cause = :cause"
        query = (
            "SELECT said.completion, said.version, said.reason, said.error, said.traceback, said.logs,"  # noqa: S608 - words of ours
            " completion.status, batch.versions FROM said CROSS JOIN completion ON completion.id = said.completion"
            " CROSS JOIN batch ON batch.id = completion.batch"
            f" WHERE said.pass = 0 AND said.completion BETWEEN :low AND :high AND {where}{causes}"
            f"{_listed('said.version', self.wanted.versions)} AND (:first IS NULL OR batch.step >= :first)"
            " AND (:last IS NULL OR batch.step <= :last) AND (:split IS NULL OR batch.split = :split)"
            f" ORDER BY said.completion {self._order}, said.version {self._order} LIMIT :most"
        )
        rows = self.ask(
            query,
            low=low,
            high=high,
            completion=position.completion,
            version=position.version,
            cause=self.wanted.cause,
            first=self.wanted.first,
            last=self.wanted.last,
            split=self.wanted.split,
            most=most,
        )
        fitting = [LogPlace(row["completion"], row["version"]) for row in self._filter(rows)]
        if len(fitting) > limit:
            return fitting[:limit], False, fitting[limit - 1]
        if len(rows) < most:
            end = LogPlace(span[0], 0) if self.backwards else LogPlace(span[1], _END)
            return fitting, True, end
        return fitting, False, LogPlace(rows[-1]["completion"], rows[-1]["version"])

    def _filter(self, rows: list[Any]) -> list[Any]:
        """Return the rows whose call has the wanted status, and the wanted text in what it said."""
        status, text = self.wanted.status, self.wanted.text
        if status is not None and status is not Status.FAILED:
            rows = [row for row in rows if _letter(row).lower() == LETTERS[status]]
        if text is None or not rows:
            return rows
        bodies = self._texts({row[name] for row in rows for name in ("traceback", "logs")} - {None})
        needle = text.casefold()
        return [
            row
            for row in rows
            if any(
                body and needle in body.casefold()
                for body in (row["reason"], row["error"], bodies.get(row["logs"]), bodies.get(row["traceback"]))
            )
        ]

    def _texts(self, ids: set[int]) -> dict[int, str]:
        marks = ",".join("?" * len(ids))
        return {row["id"]: unpacked(row["body"]) for row in self.ask(_TEXTS.format(marks), *ids)}

    def entries(self, places: Sequence[LogPlace]) -> list[tuple[LogPlace, LogEntry]]:
        """Return entries by their places."""
        if not places:
            return []
        values = ",".join(f"({int(position.completion)},{int(position.version)})" for position in places)
        rows = self.ask(f"WITH place(completion, version) AS (VALUES {values}) {_ENTRY}")
        unpack = functools.cache(unpacked)
        entries = {LogPlace(row["completion"], row["version"]): entry_of(row, self.named, unpack) for row in rows}
        return [(position, entries[position]) for position in places if position in entries]

    def step_at(self, position: LogPlace) -> int | None:
        """Return the step of the completion at a place."""
        query = "SELECT batch.step FROM completion JOIN batch ON batch.id = completion.batch WHERE completion.id = ?"
        rows = self.ask(query, position.completion)
        return rows[0][0] if rows else None


def entry_of(row: RecordRow, named: Named, unpack: Callable[[bytes], str] = unpacked) -> LogEntry:
    """Return the log entry of a call, from a row that joins the call, its completion and its batch.

    The row has the columns of ``said`` with ``trace_body`` and ``log_body``, and ``letters``, ``scores``, ``seconds``,
    ``step``, ``epoch``, ``split``, ``versions`` and ``rank``.
    """
    index = json.loads(row["versions"]).index(row["version"])
    ((name, number, digits),) = named([row["version"]])
    (score,) = struct.unpack_from("<d", row["scores"], 8 * index)
    (seconds,) = struct.unpack_from("<f", row["seconds"], 4 * index)
    outcome = outcome_of(row["letters"][index], score, seconds, digits, row, unpack)
    return LogEntry(row["completion"], row["step"], row["epoch"], row["split"], row["rank"], name, number, outcome)


def _letter(row: RecordRow) -> str:
    """Return the letter of a call's status among those of its completion."""
    letters: str = row["status"]
    return letters[_versions(row["versions"]).index(row["version"])]


@functools.lru_cache(maxsize=256)
def _versions(text: str) -> list[int]:
    versions: list[int] = json.loads(text)
    return versions


def _merge(spans: Sequence[tuple[int, int]], backwards: bool) -> Iterator[tuple[int, int]]:
    """Yield spans in their order, and join those that touch, up to the largest window."""
    if not spans:
        return
    first, last = spans[0]
    for low, high in spans[1:]:
        touch = high + 1 == first if backwards else last + 1 == low
        if touch and max(high, last) - min(low, first) < _LARGEST_WINDOW:
            first, last = min(low, first), max(high, last)
        else:
            yield first, last
            first, last = low, high
    yield first, last


def _listed(column: str, numbers: tuple[int, ...] | None) -> str:
    """Return a condition that a column has one of these numbers; none for ``None``."""
    return "" if numbers is None else f" AND {column} IN ({','.join(str(int(number)) for number in numbers)})"


_ENDS = "SELECT (SELECT min(id) FROM completion), (SELECT max(id) FROM completion)"  # both at once read all
_BATCH_AT = "SELECT batch FROM completion WHERE id {}= ? ORDER BY id {} LIMIT 1"
_TEXTS = "SELECT id, body FROM text WHERE id IN ({})"
_FIRST_OF = "(SELECT id FROM completion WHERE batch = {} ORDER BY id LIMIT 1)"
_LAST_OF = "(SELECT id FROM completion WHERE batch = {} ORDER BY id DESC LIMIT 1)"
_ENTRY = (
    "SELECT said.*, completion.status AS letters, completion.scores, completion.seconds, completion.epoch,"
    " batch.step, batch.split, batch.versions, session.rank, trace.body AS trace_body, log.body AS log_body"
    " FROM place CROSS JOIN said ON said.completion = place.completion AND said.version = place.version"
    " AND said.pass = 0 JOIN completion ON completion.id = said.completion JOIN batch ON batch.id = completion.batch"
    " JOIN session ON session.id = batch.session LEFT JOIN text trace ON trace.id = said.traceback"
    " LEFT JOIN text log ON log.id = said.logs"
)
