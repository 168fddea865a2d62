"""What an audit gives: levels, examples, verdicts of families, findings, and the whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rewardkit.audit.families import Family
from rewardkit.audit.lint import Mistake
from rewardkit.types import Status


@dataclass(frozen=True, slots=True)
class Level:
    """What a row's completions can earn.

    Attributes:
        floor: What a wrong answer earns.
        full: What the best honest form earns.
    """

    floor: float
    full: float

    def progress(self, score: float | None) -> float | None:
        """Return how far a score is on the way from floor to full, 1 at full; ``None`` for none."""
        return None if score is None else (score - self.floor) / (self.full - self.floor)


@dataclass(frozen=True, slots=True)
class Example:
    """One completion that tells something.

    Attributes:
        line: Its row's line in the file.
        name: What it is.
        completion: Its text.
        status: What became of the call.
        score: What it earns, for a failed call what stands in for its score; ``None`` for nothing.
        full: What the best honest form of that row earns.
        said: The reward's reason, or the error.
        seconds: What the call took.
        frame: The frame that it is written in; ``""`` for the bare form.
        thumb: The rule of thumb that is broken where it is paid, by its name in :data:`~rewardkit.audit.thumbs.THUMBS`.
        point: The part of the text that matters; ``""`` for its end.
        gold: The row's gold.
    """

    line: int
    name: str
    completion: str
    status: Status
    score: float | None
    full: float | None
    said: str | None
    seconds: float
    frame: str = ""
    thumb: str = ""
    point: str = ""
    gold: str | None = None


@dataclass(slots=True)
class FamilyVerdict:
    """What a family of probes found.

    Attributes:
        tried: Completions scored.
        judged: Those of them whose being paid, or refused, was judged.
        accepted: Those that were wrongly paid, the best paid first.
        refused: Those that were wrongly refused.
        slow: Those that took too long.
        crashed: Those on which the reward failed.
        lost: Those lost through no fault of the reward or the completion.
        not_applicable: Why nothing was judged; ``None`` where it was.
    """

    tried: int = 0
    judged: int = 0
    accepted: list[Example] = field(default_factory=list)
    refused: list[Example] = field(default_factory=list)
    slow: list[Example] = field(default_factory=list)
    crashed: list[Example] = field(default_factory=list)
    lost: int = 0
    not_applicable: str | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong with the reward as a whole.

    Attributes:
        name: ``constant``, ``ignores_gold`` or ``unsteady``.
        words: What was seen.
    """

    name: str
    words: str


@dataclass(frozen=True, slots=True)
class Traits:
    """What the reward was seen to read.

    Attributes:
        declares_gold: The gold's column is a parameter of it.
        depends: Its score falls where the gold's column is another row's.
        tells_apart: Its score falls where the answer is another row's.
        tests: It reads columns of tests, and the rows have them.
        prompt: It reads the prompt.
    """

    declares_gold: bool
    depends: bool
    tells_apart: bool
    tests: bool
    prompt: bool

    @property
    def answer(self) -> bool:
        """Whether it is to tell right answers from wrong ones."""
        return self.declares_gold or self.depends or self.tells_apart or self.tests


@dataclass(slots=True)
class Audit:
    """The result for one reward.

    Attributes:
        reward: Its name.
        rows: Rows audited with.
        total_rows: Rows in the file.
        gold_column: The gold's column.
        traits: What it was seen to read.
        unaudited: Rows that say nothing about it, by line, with the reason.
        paid_forms: By honest form: rows on which it was paid, and tried.
        families: By family.
        findings: What is wrong with it as a whole.
        lint: Mistakes in its source.
        unread: Parts of it whose source could not be read.
        untried: Completions that were not tried, for the time was over.
        left_out: Rules of thumb that the author left out within their families, with the reasons.
        unit: What the numbers of rows count: lines of a file, or rows.
    """

    reward: str
    rows: int
    total_rows: int
    gold_column: str | None
    traits: Traits
    unaudited: dict[int, str]
    paid_forms: dict[str, tuple[int, int]]
    families: dict[Family, FamilyVerdict]
    findings: list[Finding]
    lint: list[Mistake]
    unread: list[str]
    untried: int = 0
    left_out: Mapping[str, str] = field(default_factory=dict)
    unit: str = "line"

    @property
    def flaws(self) -> dict[str, list[Example]]:
        """By rule of thumb, what is evidence that it is broken: wrongly paid, slow, crashed."""
        found: dict[str, list[Example]] = {}
        for one in self.families.values():
            for example in one.accepted:
                found.setdefault(example.thumb, []).append(example)
        for name, examples in (
            ("slow", [example for one in self.families.values() for example in one.slow]),
            ("crashed", [example for one in self.families.values() for example in one.crashed]),
        ):
            if examples:
                found[name] = examples
        return found

    @property
    def false_accepts(self) -> int:
        """Completions wrongly paid."""
        return sum(len(one.accepted) for one in self.families.values())

    @property
    def false_reject_share(self) -> float:
        """Honest forms refused, as a share of those tried."""
        forms = self.families[Family.FORMS]
        return len(forms.refused) / forms.judged if forms.judged else 0.0

    @property
    def failed(self) -> int:
        """Calls that were slow or crashed."""
        return sum(len(one.slow) + len(one.crashed) for one in self.families.values())

    @property
    def audited(self) -> int:
        """Rows that say something about it."""
        return self.rows - len(self.unaudited)


def passed(audit: Audit, limits: Mapping[str, Any]) -> bool:
    """Whether an audit tried all that it has, within the limits ``false_accept``, ``false_reject`` and ``failed``."""
    return (
        audit.audited > 0
        and not audit.untried
        and not audit.findings
        and audit.false_accepts <= limits["false_accept"]
        and audit.false_reject_share <= limits["false_reject"]
        and audit.failed <= limits["failed"]
    )
