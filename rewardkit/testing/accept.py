"""Accepting what came: the expected scores in a file of cases changed in place, and nothing else in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rewardkit.testing.source import Entry, Span, Steps, parse
from rewardkit.testing.table import Table
from rewardkit.testing.verdict import CaseResult
from rewardkit.types import Outcome, Status

NEVER = "a failed call is never accepted; write {failed: CAUSE} if it is meant"
_BORROWED = "its expectation cannot be changed alone (an alias, a merge, a layout of its own); change it by hand"


class Change(NamedTuple):
    """One expectation that is to be changed."""

    verdict: CaseResult  # the case it is of
    was: str  # the expectation in words
    score: float | None  # the score that is expected from now on; ``None`` for a skip
    steps: Steps  # where it stands in the case
    span: Span  # where it stands in the file's text

    @property
    def now(self) -> str:
        """The score as both JSON and YAML read it."""
        return "null" if self.score is None else repr(self.score)


@dataclass(frozen=True, slots=True)
class Acceptance:
    """What accepting comes to."""

    text: str  # the file's new text
    changes: Sequence[Change]  # what was changed
    refused: Mapping[str, str]  # reasons why some cases were left as they are, by case id

    @property
    def accepted(self) -> set[str]:
        """Ids of the cases that hold now."""
        return {change.verdict.case.id for change in self.changes} - set(self.refused)


def accept(table: Table, verdicts: Iterable[CaseResult]) -> Acceptance:
    """Return the table's text with the actual scores as the expected ones. Nothing is written.

    Args:
        table: A table read from a file.
        verdicts: The results of its cases.
    """
    assert table.path is not None
    wanted: list[Change] = []
    refused: dict[str, str] = {}
    for verdict in verdicts:
        for change in _changes(verdict):
            if isinstance(change, str):
                refused[verdict.case.id] = change
            else:
                wanted.append(change)
    changes = wanted
    if not _changes_only(table, wanted):  # one of them changes another value as well: find out which
        changes = []
        for change in wanted:
            if _changes_only(table, [*changes, change]):
                changes.append(change)
            else:
                refused[change.verdict.case.id] = _BORROWED
    return Acceptance(_edit(table.text, changes), changes, refused)


def _changes(verdict: CaseResult) -> Iterable[Change | str]:
    """Yield the changes that make a case pass, or the reason against one."""
    entry = verdict.case.entry
    for index, expected, outcome in verdict.differences():
        if outcome.status is Status.FAILED:
            yield NEVER
            continue
        steps = _steps(verdict, index, outcome)
        span = entry.span(steps)
        if span is None:
            yield _BORROWED
        else:
            yield Change(verdict, str(expected), outcome.score, steps, span)


def _steps(verdict: CaseResult, index: int, outcome: Outcome) -> Steps:
    """Return where the expectation of a completion stands in its case."""
    steps: Steps = ("expect",)
    value = verdict.case.entry.values["expect"]
    if verdict.case.group:
        steps, value = (*steps, index), value[index]
    if outcome.score is not None and isinstance(value, Mapping) and "score" in value:
        return (*steps, "score")  # its tolerance stays
    return steps


def _edit(text: str, changes: Iterable[Change]) -> str:
    """Return the text with the changes made, the last one first, so that the spans of the others stay right."""
    for change in sorted(changes, key=lambda change: change.span, reverse=True):
        text = text[: change.span.start] + _room(text, change.span) + change.now + text[change.span.end :]
    return text


def _room(text: str, span: Span) -> str:
    """Return the space that a value needs before it: after a bare colon, and in place of a block of lines.

    A block list may stand as far left as its key, where a number may not.
    """
    if span.start == span.end:
        return " "
    begins_line = not text[: span.start].rpartition("\n")[2].strip()
    return "  " if begins_line and "\n" in text[span.start : span.end] else ""


def _changes_only(table: Table, changes: Sequence[Change]) -> bool:
    """Return whether the edited text differs from the file in these expectations alone."""
    assert table.path is not None
    try:
        after = parse(table.path, _edit(table.text, changes))
        before = parse(table.path, table.text)
    except Exception:
        return False
    entries = {case.where: index for index, case in enumerate(table.cases)}
    for change in changes:
        _put(before.entries[entries[change.verdict.case.where]], change.steps, change.score)
    return [entry.values for entry in before.entries] == [entry.values for entry in after.entries] and (
        before.settings.values == after.settings.values
    )


def _put(entry: Entry, steps: Steps, score: float | None) -> None:
    value: Any = entry.values
    for step in steps[:-1]:
        value = value[step]
    value[steps[-1]] = score
