"""What an audit of a run's completions found, as an event of the run's record: who reads the run sees it too."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rewardkit.record.notes import add_notes
from rewardkit.record.place import RecordPlace
from rewardkit.record.reader import RunReader

KIND = "audit"  # The kind of the event
MOST_IDS = 20  # Completions of an exploit that are noted, at most


class NotedExploit(BaseModel):
    """One kind of change after which completions are still paid, and should not be."""

    model_config = ConfigDict(frozen=True)

    name: str  # The change, such as `other_answer`
    paid: int = Field(ge=1)  # How many of the changed completions are wrongly paid
    judged: int = Field(ge=1)  # Of how many
    completions: tuple[int, ...] = ()  # Numbers of the run's completions that were changed so


class AuditNote(BaseModel):
    """An audit of one reward on a run's completions."""

    model_config = ConfigDict(frozen=True)

    reward: str
    version: int  # The number of the version that was audited
    rows: int  # Completions that it was audited with
    exploits: tuple[NotedExploit, ...] = ()


def note_audits(run: RecordPlace, notes: Sequence[AuditNote]) -> None:
    """Write audits into a record; raise RecordError where that cannot be done."""
    add_notes(run, KIND, [note.model_dump() for note in notes])


def audit_notes(run: RunReader) -> dict[str, AuditNote]:
    """Return the newest audit of each reward; what is no audit's note is left out."""
    notes = {}
    for event in run.events:
        if event["kind"] == KIND:
            try:
                note = AuditNote.model_validate(event["body"])
            except ValidationError:
                continue
            notes[note.reward] = note
    return notes
