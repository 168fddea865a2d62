"""A run's record as values: what every view uses, the command line as well as pages and notebooks."""

from __future__ import annotations

import itertools
import json
import math
import os
import sqlite3
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rewardkit.errors import RecordError
from rewardkit.record.database import file_of, reading
from rewardkit.record.rows import LETTERS, text_back
from rewardkit.record.writer import unpacked
from rewardkit.types import Cause, Outcome, Status, Text, Unanswered

_STATUS = {letter: status for status, letter in LETTERS.items()}
PAGE = 500
"""Completions that are fetched at once."""


class StepSummary(NamedTuple):
    """One reward's outcomes at one step of one split, over all ranks.

    Attributes:
        step: Optimizer steps done; ``None`` where nobody said.
        split: ``"train"`` or ``"eval"``.
        reward: The reward's name.
        version: The number of its version in this run, from 1.
        scored: Calls with a score.
        skipped: Calls that did not apply.
        failed: Failed calls, by cause.
        mean: Of the scores as the trainer was told them; ``None`` without any.
        std: Their standard deviation (``ddof=1``).
        low: The lowest.
        high: The highest.
        p50_s: Median seconds of a call; over several batches, the largest of their medians.
        p95_s: 95th percentile, in the same way.
        groups: Groups with two scores or more.
        flat_groups: Those whose scores are all the same.
    """

    step: int | None
    split: str
    reward: str
    version: int
    scored: int
    skipped: int
    failed: Mapping[str, int]
    mean: float | None
    std: float | None
    low: float | None
    high: float | None
    p50_s: float | None
    p95_s: float | None
    groups: int
    flat_groups: int


@dataclass(frozen=True, slots=True)
class Version:
    """A reward as it stood in a run.

    Attributes:
        reward: Its name.
        number: 1 for the first that the run had, and so on.
        digits: Its fingerprint, 12 hexadecimal digits.
        source: Its source, where it was known.
        settings: Its settings.
        first_step: The step at which it first scored.
        began: When it was recorded, in seconds since 1970.
    """

    reward: str
    number: int
    digits: str
    source: str | None
    settings: Mapping[str, Any]
    first_step: int | None
    began: float


@dataclass(frozen=True, slots=True)
class Completion:
    """One recorded completion.

    Attributes:
        id: Its number in the record, in the order of recording.
        step: Optimizer steps done when it was scored.
        epoch: Passes over the data done.
        split: ``"train"`` or ``"eval"``.
        rank: The process that scored it.
        prompt_index: The prompt's number, in the order in which prompts were first seen.
        group: The number of its group in its batch.
        prompt: The prompt.
        columns: The row's columns.
        completion: What the model produced; ``None`` where the text was left out.
        tokens: Its length in tokens; ``None`` where nobody knew.
        truncated: Whether it was cut at the most tokens allowed.
        outcomes: What each reward said, by name.
        versions: The number of each reward's version, by name.
        total: The plain sum of the scores.
        reward: The weighted sum, as the trainer computes it.
        advantage: What the trainer made of it.
    """

    id: int
    step: int | None
    epoch: float | None
    split: str
    rank: int
    prompt_index: int
    group: int
    prompt: Text = field(repr=False)
    columns: Mapping[str, Any] = field(repr=False)
    completion: Text | None
    tokens: int | None
    truncated: bool | None
    outcomes: Mapping[str, Outcome] = field(repr=False)
    versions: Mapping[str, int]
    total: float | None
    reward: float | None
    advantage: float | None

    @property
    def scores(self) -> dict[str, float | None]:
        """The scores by reward."""
        return {name: outcome.score for name, outcome in self.outcomes.items()}


class Run:
    """A recorded run, read lazily. ``Run.open("runs/one")``.

    Reading does not disturb a process that is writing. A ``Run`` belongs to the thread that opened it.
    """

    def __init__(self, run: str | os.PathLike[str]) -> None:
        self.path = file_of(run)
        self._connection = reading(self.path)

    @classmethod
    def open(cls, run: str | os.PathLike[str]) -> Run:
        """Return the run of a folder or file.

        Raises:
            RecordError: It is missing, empty, not a record, or of another version of records.
        """
        return cls(run)

    @property
    def name(self) -> str:
        """The run's name: that of its folder."""
        return self.path.absolute().parent.name if self.path.name == "record.db" else self.path.stem

    def close(self) -> None:
        """Close the file. A second call does nothing."""
        self._connection.close()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Run {self.name!r}: {self.count():,} completions, {len(self.steps())} steps>"

    @property
    def rewards(self) -> list[str]:
        """The rewards' names, in the order in which they were first recorded."""
        return [name for (name,) in self._rows("SELECT reward FROM version GROUP BY reward ORDER BY min(id)")]

    @property
    def versions(self) -> list[Version]:
        """All versions of all rewards, oldest first."""
        found = self._rows(
            "SELECT version.*, text.body AS body FROM version LEFT JOIN text ON text.id = version.source ORDER BY version.id"
        )
        return [
            Version(
                row["reward"], row["number"], row["digits"], None if row["body"] is None else unpacked(row["body"]),
                json.loads(row["settings"]), row["first_step"], row["began"],
            )
            for row in found
        ]  # fmt: skip

    @property
    def sessions(self) -> list[dict[str, Any]]:
        """The processes that recorded: rank, begin, end, configuration, packages, machine."""
        return [dict(row) | {"about": json.loads(row["about"])} for row in self._rows("SELECT * FROM session")]

    def count(self) -> int:
        """Return how many completions there are."""
        return int(self._rows("SELECT count(*) FROM completion")[0][0])

    def steps(self, split: str = "train") -> list[int]:
        """Return the steps at which something was scored, in order."""
        found = self._rows("SELECT DISTINCT step FROM batch WHERE split = ? AND step IS NOT NULL ORDER BY step", split)
        return [step for (step,) in found]

    def summaries(self, reward: str | None = None, split: str | None = "train") -> list[StepSummary]:
        """Return each step's sums, oldest first, of one reward or of all."""
        rows = self._rows(
            "SELECT batch.step, batch.split, version.reward, version.number, summary.* FROM summary"
            " JOIN batch ON batch.id = summary.batch JOIN version ON version.id = summary.version"
            " WHERE (?1 IS NULL OR version.reward = ?1) AND (?2 IS NULL OR batch.split = ?2)"
            " ORDER BY batch.step, version.id, batch.id",
            reward, split,
        )  # fmt: skip
        keyed = itertools.groupby(rows, lambda row: (row["step"], row["split"], row["reward"], row["number"]))
        return [_added(key, list(parts)) for key, parts in keyed]

    def metrics(self, name: str, split: str = "train") -> list[tuple[int, float]]:
        """Return the steps and values of one of the trainer's metrics."""
        found = self._rows("SELECT step, value FROM metric WHERE split = ? AND name = ? ORDER BY step", split, name)
        return [(step, value) for step, value in found]

    def completions(
        self,
        *,
        step: int | None = None,
        prompt: int | None = None,
        reward: str | None = None,
        min_score: float | None = None,
        max_score: float | None = None,
        status: str | Status | None = None,
        split: str | None = None,
        after: int = 0,
    ) -> Iterator[Completion]:
        """Yield completions in the order of recording, those that fit all that is given.

        Args:
            step: Of this step.
            prompt: Of the prompt with this index.
            reward: With an outcome of this reward; the scores and status below are its.
            min_score: At least this score; without ``reward``, this total.
            max_score: At most this score or total.
            status: With this status; needs ``reward``.
            split: ``"train"`` or ``"eval"``.
            after: Only those with a greater ``id``: the next page goes on after the last one's.

        Raises:
            RecordError: There is no such reward, or ``status`` is given without one.
        """
        if reward is not None and reward not in self.rewards:
            raise RecordError(f"{self.name}: no reward {reward!r}; it has {', '.join(self.rewards)}")
        if status is not None and reward is None:
            raise RecordError("status= is one reward's: give reward= as well")
        fits = _Fits(reward, min_score, max_score, None if status is None else Status(status))
        for batches in self._batches(step, split, fits, prompt):
            yield from self._of_batches(batches, prompt, fits, after)

    def _batches(self, step: int | None, split: str | None, fits: _Fits, prompt: int | None) -> Iterator[list[int]]:
        """Yield the batches in which completions may fit, by what their sums say, several at once for one prompt."""
        low, high = fits.bounds
        found = self._rows(
            "SELECT batch.id FROM batch WHERE (?1 IS NULL OR step = ?1) AND (?2 IS NULL OR split = ?2) AND"
            " (?3 IS NULL OR EXISTS (SELECT 1 FROM summary JOIN version ON version.id = summary.version"
            "  WHERE summary.batch = batch.id AND version.reward = ?3 AND (?4 IS NULL OR summary.max >= ?4)"
            "  AND (?5 IS NULL OR summary.min <= ?5) AND (?6 IS NULL OR CASE ?6 WHEN 'failed' THEN summary.failed"
            "  WHEN 'skipped' THEN summary.skipped ELSE summary.scored END > 0))) ORDER BY batch.id",
            step, split, fits.reward, low if fits.reward else None, high if fits.reward else None, fits.status,
        )  # fmt: skip
        ids = [row[0] for row in found]
        size = 1 if prompt is None else 500
        yield from (ids[start : start + size] for start in range(0, len(ids), size))

    def _of_batches(self, batches: Sequence[int], prompt: int | None, fits: _Fits, after: int) -> Iterator[Completion]:
        marks = ",".join("?" * len(batches))
        while True:
            rows = self._rows(
                "SELECT completion.*, batch.step, batch.split, batch.versions, session.rank FROM completion"
                " JOIN batch ON batch.id = completion.batch JOIN session ON session.id = batch.session"
                f" WHERE completion.batch IN ({marks}) AND completion.id > ?"
                + (" AND completion.prompt = ?" if prompt is not None else "")
                + " ORDER BY completion.id LIMIT ?",
                *batches, after, *([] if prompt is None else [prompt]), PAGE,
            )  # fmt: skip
            for row in rows:
                named = self._named(json.loads(row["versions"]))
                if fits.match(row, named):
                    yield self._completion(row, named)
            if len(rows) < PAGE:
                return
            after = rows[-1]["id"]

    def _named(self, versions: Sequence[int]) -> dict[str, tuple[int, int, str]]:
        """Return, by reward, a version's id, number and digits."""
        known: dict[int, tuple[str, int, str]] = {
            row["id"]: (row["reward"], row["number"], row["digits"]) for row in self._rows("SELECT * FROM version")
        }
        return {known[one][0]: (one, known[one][1], known[one][2]) for one in versions}

    def _completion(self, row: sqlite3.Row, named: Mapping[str, tuple[int, int, str]]) -> Completion:
        prompt, columns = self._rows(
            "SELECT p.body, c.body FROM prompt JOIN text p ON p.id = prompt.prompt JOIN text c ON c.id = prompt.columns"
            " WHERE prompt.id = ?",
            row["prompt"],
        )[0]
        body = self._text(row["completion"])
        said = {one["version"]: one for one in self._rows("SELECT * FROM said WHERE completion = ?", row["id"])}
        scores = struct.unpack(f"<{len(named)}d", row["scores"])
        seconds = struct.unpack(f"<{len(named)}f", row["seconds"])
        outcomes = {
            name: self._outcome(letter, score, took, digits, said.get(version))
            for (name, (version, _, digits)), letter, score, took in zip(
                named.items(), row["status"], scores, seconds, strict=True
            )
        }
        return Completion(
            row["id"], row["step"], row["epoch"], row["split"], row["rank"], row["prompt"], row["team"],
            text_back(unpacked(prompt)), json.loads(unpacked(columns)), None if body is None else text_back(body),
            row["tokens"], None if row["truncated"] is None else bool(row["truncated"]), outcomes,
            {name: number for name, (_, number, _) in named.items()}, row["total"], row["weighted"], row["advantage"],
        )  # fmt: skip

    def _outcome(self, letter: str, score: float, took: float, digits: str, said: sqlite3.Row | None) -> Outcome:
        status, value = _STATUS[letter.lower()], None if math.isnan(score) else score
        if said is None:
            return Outcome(status, value, duration_s=took, version=digits, cached=letter.isupper())
        return Outcome(
            status, value, said["reason"], json.loads(said["metrics"] or "{}"),
            None if said["cause"] is None else Cause(said["cause"]), said["error"], self._text(said["traceback"]),
            said["attempts"], took, self._text(said["logs"]) or "", digits, letter.isupper(),
            tuple(Unanswered(**one) for one in json.loads(said["unanswered"] or "[]")),
        )  # fmt: skip

    def _text(self, number: int | None) -> str | None:
        return None if number is None else unpacked(self._rows("SELECT body FROM text WHERE id = ?", number)[0][0])

    def _rows(self, words: str, *values: Any) -> list[sqlite3.Row]:
        try:
            return self._connection.execute(words, values).fetchall()
        except sqlite3.Error as reason:
            raise RecordError(f"{self.path}: {reason}") from reason


class _Fits(NamedTuple):
    """Which completions a search wants."""

    reward: str | None
    low: float | None
    high: float | None
    status: Status | None

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        return self.low, self.high

    def match(self, row: sqlite3.Row, named: Mapping[str, Any]) -> bool:
        """Whether a row fits."""
        value, letter = row["total"], None
        if self.reward is not None:
            if self.reward not in named:
                return False
            place = list(named).index(self.reward)
            (number,) = struct.unpack_from("<d", row["scores"], 8 * place)
            value, letter = (None if math.isnan(number) else number), row["status"][place].lower()
        if self.status is not None and letter != LETTERS[self.status]:
            return False
        if self.low is None and self.high is None:
            return True
        return (
            value is not None and (self.low is None or value >= self.low) and (self.high is None or value <= self.high)
        )


def _added(key: tuple[Any, ...], parts: Sequence[sqlite3.Row]) -> StepSummary:
    """Return the sums of a step's batches, exact where they add up."""
    causes: dict[str, int] = {}
    for part in parts:
        for cause, number in json.loads(part["causes"]).items():
            causes[cause] = causes.get(cause, 0) + number
    known = [part for part in parts if part["mean"] is not None]
    sizes = [part["scored"] + part["failed"] for part in known]
    mean = sum(part["mean"] * size for part, size in zip(known, sizes, strict=True)) / sum(sizes) if known else None
    return StepSummary(
        *key,
        scored=sum(part["scored"] for part in parts),
        skipped=sum(part["skipped"] for part in parts),
        failed=causes,
        mean=mean,
        std=known[0]["std"] if len(known) == 1 else _pooled(known, sizes, mean),
        low=min((part["min"] for part in known), default=None),
        high=max((part["max"] for part in known), default=None),
        p50_s=max((part["p50_s"] for part in parts if part["p50_s"] is not None), default=None),
        p95_s=max((part["p95_s"] for part in parts if part["p95_s"] is not None), default=None),
        groups=sum(part["groups"] for part in parts),
        flat_groups=sum(part["flat_groups"] for part in parts),
    )


def _pooled(parts: Sequence[sqlite3.Row], sizes: Sequence[int], mean: float | None) -> float | None:
    """Return the standard deviation over several batches, of theirs."""
    if mean is None or sum(sizes) < 2:
        return None
    inside = sum((part["std"] or 0.0) ** 2 * (size - 1) for part, size in zip(parts, sizes, strict=True))
    between = sum(size * (part["mean"] - mean) ** 2 for part, size in zip(parts, sizes, strict=True))
    return math.sqrt((inside + between) / (sum(sizes) - 1))
