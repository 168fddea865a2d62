"""The seam of the examinations of ``check``: trials of a row, the flaws that their outcomes show, and the result.

An examination tries completions whose worth is known on each row: right ones, empty ones, wrong ones. What a reward
pays for them shows which rows cannot train anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple, Protocol

from rewardkit.audit.engine import rollout_of
from rewardkit.audit.probe import Probe
from rewardkit.audit.rows import AuditRow
from rewardkit.declare.decorator import Reward
from rewardkit.runtime.row_names import id_column, without_place
from rewardkit.types import Outcome, Rollout, Status

ScoreAll = Callable[[Sequence[Rollout]], Sequence[Outcome]]


class RowTrial(NamedTuple):
    """A completion that is tried on a row, and its role there, which the examination gives a meaning."""

    role: str
    probe: Probe


class RowTrialResult(NamedTuple):
    """A trial and what it earned."""

    trial: RowTrial
    outcome: Outcome


class FlawKind(NamedTuple):
    """A kind of flaw: what it says of a row, and whether such a row fails the check."""

    meaning: str
    is_failure: bool


class Flaw(NamedTuple):
    """A flaw of one row: its kind by name, and what was seen of it."""

    kind: str
    detail: str


class Examination(Protocol):
    """What an examination says of itself, and what it makes of a row."""

    @property
    def name(self) -> str:
        """Its name in JSON, a noun such as ``"programs"``."""

    @property
    def kinds(self) -> Mapping[str, FlawKind]:
        """The kinds of flaws that it looks for, by name, the worst first."""

    @property
    def untold_reason(self) -> str:
        """Why the outcomes of a row may tell nothing, in words."""

    def suits(self, reward: Reward[..., Any], gold_column: str | None) -> bool:
        """Return whether a reward reads what is examined; the data's golds are in ``gold_column``."""

    def applies(self, row: AuditRow) -> bool:
        """Return whether a row has what is examined."""

    def trials(self, row: AuditRow) -> Sequence[RowTrial]:
        """Return what is tried on a row."""

    def flaws(
        self, reward: Reward[..., Any], row: AuditRow, results: Sequence[RowTrialResult]
    ) -> Sequence[Flaw] | None:
        """Return the flaws that the outcomes of a row's trials show; ``None`` where they tell nothing."""


@dataclass(frozen=True, slots=True)
class RowFlaw:
    """A flaw with its row's line and id; the id is the line where the data has no column of ids."""

    line: int
    row_id: str
    flaw: Flaw

    def as_json(self) -> dict[str, Any]:
        return {"line": self.line, "id": self.row_id, "kind": self.flaw.kind, "detail": self.flaw.detail}


@dataclass(frozen=True, slots=True)
class ExaminationResult:
    """What an examination found with one reward in so many of the data's rows."""

    name: str
    kinds: Mapping[str, FlawKind]
    rows: int  # Rows examined, without those that the reward skips
    total_rows: int  # Rows of the data
    trials: int  # Completions tried on them
    flaws: Sequence[RowFlaw] = field(default=())
    untold: int = 0  # Rows examined whose outcomes tell nothing
    untold_reason: str = ""  # Why they tell nothing
    lines: Sequence[int] = ()  # Lines of the rows examined
    skipped: Sequence[int] = ()  # Lines of the rows on which the reward skipped every completion, and said of no flaw
    failed: Sequence[int] = ()  # Lines of those rows that tell nothing on which a completion failed
    failure: str = ""  # How many completions of them failed, of how many, and the first's error
    has_comments: bool = True  # Whether a comment in the reward's own source can accept a kind of flaw
    accepted: Mapping[str, str] = field(default_factory=dict)  # Kinds of flaws that are meant so, with the reasons

    @property
    def has_failures(self) -> bool:
        """Whether a row has a flaw that fails the check."""
        return any(self.kinds[flaw.flaw.kind].is_failure for flaw in self.flaws)

    @property
    def open_flaws(self) -> list[RowFlaw]:
        """The flaws of kinds that nobody accepted."""
        return [flaw for flaw in self.flaws if flaw.flaw.kind not in self.accepted]

    def by_kind(self) -> dict[str, list[RowFlaw]]:
        """Return the flaws of each kind, kinds without any left out."""
        flaws = {kind: [flaw for flaw in self.flaws if flaw.flaw.kind == kind] for kind in self.kinds}
        return {kind: rows for kind, rows in flaws.items() if rows}

    def as_json(self) -> dict[str, Any]:
        """Return it ready for JSON: the flaws by kind, each kind with its count, its first row and all lines."""
        kinds = {
            kind: {
                "meaning": self.kinds[kind].meaning,
                "fails": self.kinds[kind].is_failure,
                "accepted": self.accepted.get(kind),
                "rows": len(flaws),
                "first": flaws[0].as_json(),
                "lines": [flaw.line for flaw in flaws],
            }
            for kind, flaws in self.by_kind().items()
        }
        counts = {"rows": self.rows, "total_rows": self.total_rows, "trials": self.trials, "untold": self.untold}
        lines = {"skipped_lines": list(self.skipped), "failed_lines": list(self.failed)}
        return {"examination": self.name, **counts, **lines, "flaws": kinds}


def rows_to_examine(
    examination: Examination,
    reward: Reward[..., Any],
    rows: Iterable[AuditRow],
    most: int,
    gold_column: str | None = None,
) -> list[AuditRow]:
    """Return the first rows, at most so many, to which an examination applies; no row after them is looked at."""
    return list(islice(filter(examination.applies, rows), most)) if examination.suits(reward, gold_column) else []


class _ExaminedRow(NamedTuple):
    """A row, what its trials earned, and the flaws that this shows; ``None`` where it tells nothing."""

    row: AuditRow
    results: list[RowTrialResult]
    flaws: Sequence[Flaw] | None

    @property
    def is_skipped(self) -> bool:
        """Whether the reward skips the row, as it does in mixed data, and says of no flaw that makes it do so."""
        return not self.flaws and all(result.outcome.status is Status.SKIPPED for result in self.results)

    @property
    def failures(self) -> list[Outcome]:
        """The calls that failed, where it tells nothing."""
        outcomes = [result.outcome for result in self.results] if self.flaws is None else []
        return [outcome for outcome in outcomes if outcome.status is Status.FAILED]


def examine(
    examination: Examination,
    reward: Reward[..., Any],
    rows: Iterable[AuditRow],
    total_rows: int,
    score: ScoreAll,
    most: int | None = None,
) -> ExaminationResult:
    """Examine rows: score the trials of all of them, and return the flaws that the outcomes show.

    Args:
        examination: What is tried, and what its outcomes show.
        reward: The reward that scores it.
        rows: The rows, as :func:`rows_to_examine` chooses them.
        total_rows: Rows of the whole data.
        score: Scores completions by the reward and returns their outcomes in order.
        most: Rows to examine; those that the reward skips do not count. All unless given.
    """
    examined: list[_ExaminedRow] = []
    skipped: list[int] = []
    waiting = iter(rows)
    while chunk := list(islice(waiting, None if most is None else most - len(examined))):
        tried = _try_rows(examination, reward, chunk, score)
        skipped += [result.row.line for result in tried if result.is_skipped]
        examined += [result for result in tried if not result.is_skipped]
    row_flaws = [
        RowFlaw(row.line, row_id(row.columns, row.line), flaw) for row, _, flaws in examined for flaw in flaws or ()
    ]
    untold = sum(result.flaws is None for result in examined)
    counts = (len(examined), total_rows, sum(len(result.results) for result in examined))
    reason = examination.untold_reason if untold else ""
    lines = tuple(result.row.line for result in examined)
    failed = [result for result in examined if result.failures]
    return ExaminationResult(
        examination.name,
        examination.kinds,
        *counts,
        row_flaws,
        untold,
        reason,
        lines,
        tuple(skipped),
        tuple(result.row.line for result in failed),
        _describe_failures(failed),
    )


def _describe_failures(rows: Sequence[_ExaminedRow]) -> str:
    """Return how many completions of rows failed, with the first error; empty where none did."""
    outcomes = [outcome for row in rows for outcome in row.failures]
    if not outcomes:
        return ""
    calls = sum(len(row.results) for row in rows)
    count = f"{len(outcomes):,} of {calls:,} completions failed" if len(outcomes) < calls else "every completion failed"
    return f"{count}, {outcomes[0].cause}: {without_place(outcomes[0].error or '')}"


def _try_rows(
    examination: Examination, reward: Reward[..., Any], rows: Sequence[AuditRow], score: ScoreAll
) -> list[_ExaminedRow]:
    """Score the trials of rows, and return what they show of each row."""
    trials = [(row, trial) for row in rows for trial in examination.trials(row)]
    outcomes = score([rollout_of([reward], row, trial.probe) for row, trial in trials])
    results: dict[int, list[RowTrialResult]] = {row.line: [] for row in rows}
    for (row, trial), outcome in zip(trials, outcomes, strict=True):
        results[row.line].append(RowTrialResult(trial, outcome))
    return [_ExaminedRow(row, results[row.line], examination.flaws(reward, row, results[row.line])) for row in rows]


def row_id(columns: Mapping[str, Any], line: int) -> str:
    """Return what names a row: its id, or its line where it has none."""
    column = id_column(columns)
    return str(line) if column is None else str(columns[column])
