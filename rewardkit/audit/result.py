"""The result of an audit: examples, counts of each family, findings, and the whole, also as JSON."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple, TypeAlias

from rewardkit.audit.equal_golds import EqualGolds
from rewardkit.audit.lint import Mistake
from rewardkit.audit.parts import NO_PATHS, PathCount
from rewardkit.audit.probe import Family, Probe
from rewardkit.audit.rules_of_thumb import RULES_OF_THUMB, cause_of, rule_of
from rewardkit.shown.text import beginning, counted
from rewardkit.types import Outcome

_OF_ANY_REWARD = frozenset({Family.FORMS, Family.ECHO, Family.AMOUNT})
"""Families that say nothing of what a reward is for: what it pays for the prompt or for more of the same."""
JSON_EXAMPLES = 10  # examples of a kind that are in the JSON for a family; the counts tell of all
_JSON_CHARS = 2_000


class PayRange(NamedTuple):
    """What a row's completions can earn: ``floor`` for a wrong answer, ``full`` for the best honest form."""

    floor: float
    full: float

    def progress(self, score: float | None) -> float | None:
        """Return how far a score is on the way from floor to full, 1 at full; ``None`` without a score."""
        return None if score is None else (score - self.floor) / (self.full - self.floor)


@dataclass(frozen=True, slots=True)
class Example:
    """One completion that is evidence, with its row's line and gold, and ``full``, what the best honest form earns."""

    line: int
    probe: Probe
    outcome: Outcome
    full: float | None
    gold: str | None
    payer: str | None = None  # The addend of a composition that pays it, where the whole pays less than counts as paid

    @property
    def completion(self) -> str:
        """The text that was tried, or its messages as JSON."""
        messages = self.probe.messages
        return self.probe.text if messages is None else json.dumps(list(messages), ensure_ascii=False)

    @property
    def pay(self) -> float:
        """What it earns, over what the best honest form does."""
        return (self.outcome.score or 0.0) / (abs(self.full or 0.0) or 1.0)

    @property
    def comment(self) -> str | None:
        """The reward's reason, or the error."""
        outcome = self.outcome
        return outcome.reason if outcome.cause is None else f"{outcome.cause}: {outcome.error}"

    def as_json(self) -> dict[str, Any]:
        """Return it ready for JSON, a long completion shortened."""
        probe, outcome = self.probe, self.outcome
        return {
            "line": self.line,
            "name": probe.name,
            "completion": beginning(self.completion, _JSON_CHARS),
            "status": outcome.status,
            "score": outcome.score,
            "full": self.full,
            "said": self.comment,
            "seconds": outcome.duration_s,
            "frame": probe.frame,
            "rule": rule_of(probe),
            "point": probe.point,
            "gold": self.gold,
            "payer": self.payer,
        }


@dataclass(slots=True)
class FamilyCounts:
    """What a family of probes found: how many were tried and judged, and examples."""

    tried: int = 0
    judged: int = 0
    accepted: list[Example] = field(default_factory=list)  # Wrongly paid, the best paid first
    refused: list[Example] = field(default_factory=list)  # Wrongly not paid
    slow: list[Example] = field(default_factory=list)
    crashed: list[Example] = field(default_factory=list)
    lost: int = 0  # Lost through no fault of theirs
    not_applicable: str | None = None  # Why nothing was judged
    unjudged: Counter[str] = field(default_factory=Counter)  # Trials that say nothing, by why, of a family that applies

    json_counts: ClassVar[Sequence[str]] = ("not_applicable", "tried", "judged", "lost")
    json_kinds: ClassVar[Mapping[str, str]] = {kind: kind for kind in ("accepted", "refused", "slow", "crashed")}

    def finish(self) -> None:
        """Put the best paid and the slowest first, and note why nothing was judged where nothing was."""
        if not self.judged and self.not_applicable is None:
            (reason, _), *_ = self.unjudged.most_common(1) or [("nothing of the kind can be made of these rows", 0)]
            self.not_applicable = reason
        self.sort()

    def sort(self) -> None:
        """Put the best paid and the slowest first."""
        self.accepted.sort(key=lambda example: -example.pay)
        self.slow.sort(key=lambda example: -example.outcome.duration_s)

    def as_json(self) -> dict[str, Any]:
        """Return the counts, and the first examples of each kind."""
        kinds: dict[str, list[Example]] = {name: getattr(self, kind) for name, kind in self.json_kinds.items()}
        return {
            **{name: getattr(self, name) for name in self.json_counts},
            **{name: len(examples) for name, examples in kinds.items()},
            "examples": {
                name: [example.as_json() for example in examples[:JSON_EXAMPLES]] for name, examples in kinds.items()
            },
        }


class AuditFinding(NamedTuple):
    """A fault of the reward as a whole, such as ``constant`` or ``silence_pays``, and what was seen."""

    name: str
    words: str


class AuditVerdict(StrEnum):
    """What an audit comes to; :func:`~rewardkit.cli.exits.audit_code` has the exit code of each."""

    PASSED = "passed"  # what the reward reads was attacked, and nothing exceeds a limit
    NOT_PASSED = "NOT passed"  # something exceeds a limit, or was not tried
    NOT_JUDGED = "not judged"  # nothing speaks against it, and nothing of its kind could be judged


AuditLimits: TypeAlias = Mapping[str, float]  # the limits of an audit: false_accept, false_reject and failed


@dataclass(frozen=True, slots=True)
class Traits:
    """What the reward was seen to read."""

    declares_gold: bool  # The gold's column is a parameter of it
    depends: bool  # Its score falls where the gold's column is another row's
    tells_apart: bool  # Its score falls where the answer is another row's
    tests: bool  # It reads columns of tests, and the rows have them
    references: bool  # It reads the data's right completions, and no gold
    prompt: bool  # It reads the prompt

    @property
    def answer(self) -> bool:
        """Whether it is to tell right answers from wrong ones."""
        return self.declares_gold or self.depends or self.tells_apart or self.tests or self.references


@dataclass(kw_only=True)
class AuditResult(ABC):
    """What every audit comes to, be it of a reward or of a judge; the limits are those of its kind."""

    rows: int  # Rows audited with, of `total_rows` that there are
    total_rows: int
    unit: str  # What the numbers of rows count: lines of a file, rows, or a run's completions
    untried: int  # Completions that were not tried, because the time was over or the user ended it
    is_interrupted: bool  # Whether the user ended it

    @abstractmethod
    def breaches(self, limits: AuditLimits) -> list[str]:
        """Return what keeps it from passing, in words: what exceeds a limit, or was not tried."""

    @property
    def why_unjudged(self) -> str | None:
        """Why nothing of its kind could be judged; ``None`` where something was."""
        return None

    def verdict(self, limits: AuditLimits) -> AuditVerdict:
        if self.breaches(limits):
            return AuditVerdict.NOT_PASSED
        return AuditVerdict.PASSED if self.why_unjudged is None else AuditVerdict.NOT_JUDGED

    def passed(self, limits: AuditLimits) -> bool:
        return self.verdict(limits) is AuditVerdict.PASSED

    def as_json(self, limits: AuditLimits) -> dict[str, Any]:
        """Return everything about it, ready for JSON."""
        breaches = self.breaches(limits)
        values = {name: getattr(self, name) for name in ("rows", "total_rows", "untried")}
        verdict = self.verdict(limits)
        judged = {"verdict": verdict.lower(), "passed": verdict is AuditVerdict.PASSED, "breaches": breaches}
        return {**judged, "not_judged": self.why_unjudged, "limits": dict(limits), **values}


@dataclass(kw_only=True)
class Audit(AuditResult):
    """What an audit found of one reward, by its name, be it on rows or on a run's completions."""

    reward: str
    gold_column: str | None
    traits: Traits
    unaudited: dict[int, str]  # Rows that tell nothing about it, by line, with the reason
    findings: list[AuditFinding]  # What is wrong with it as a whole
    unpaid_references: int = 0  # Rows with references, where all of these earn nothing
    refused_references: Mapping[int, str] = field(
        default_factory=dict
    )  # By line, of rows whose references earn nothing
    equal_golds: list[EqualGolds] = field(default_factory=list)  # Golds that it pays in each other's place: one answer
    paths: PathCount = NO_PATHS  # Changes of the paths of JSON answers that were tried
    lint: list[Mistake] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)  # Parts of it whose source could not be read

    @property
    @abstractmethod
    def counts(self) -> Collection[FamilyCounts]:
        """What was tried, and what became of it."""

    @property
    def flaws(self) -> dict[str, list[Example]]:
        """The evidence by the rule of thumb that is broken: wrongly paid, slow, crashed."""
        flaws: dict[str, list[Example]] = {}
        for counts in self.counts:
            for example in counts.accepted:
                flaws.setdefault(rule_of(example.probe), []).append(example)
        for kind in ("slow", "crashed"):
            examples = [example for counts in self.counts for example in getattr(counts, kind)]
            if examples:
                flaws[kind] = examples
        return flaws

    @property
    def false_accepts(self) -> int:
        """Completions wrongly paid."""
        return sum(len(counts.accepted) for counts in self.counts)

    @property
    def false_reject_share(self) -> float:
        """Honest forms refused, as a share of those tried; 0 where none are tried."""
        return 0.0

    @property
    def failed(self) -> int:
        """Calls that were slow or crashed."""
        return sum(len(counts.slow) + len(counts.crashed) for counts in self.counts)

    @property
    def audited(self) -> int:
        """Rows that tell something about it."""
        return self.rows - len(self.unaudited)

    @property
    def refuses_references(self) -> bool:
        """Whether it is to tell right answers from wrong ones, and pays no reference of the data."""
        return self.traits.answer and self.unpaid_references > 0

    def breaches(self, limits: AuditLimits) -> list[str]:
        checks = {
            f"{self.untried:,} not tried": self.untried > 0,
            counted(len(self.findings), "finding"): bool(self.findings),
            f"all {counted(self.unpaid_references, 'reference')} refused": self.refuses_references,
            f"{self.false_accepts:,} wrongly paid": self.false_accepts > limits["false_accept"],
            f"{self.false_reject_share:.0%} refused": self.false_reject_share > limits["false_reject"],
            f"{self.failed:,} slow or crashed": self.failed > limits["failed"],
        }
        return [text for text, is_breach in checks.items() if is_breach]

    def as_json(self, limits: AuditLimits) -> dict[str, Any]:
        return super().as_json(limits) | {
            "reward": self.reward,
            "audited_rows": self.audited,
            "unaudited": {str(line): reason for line, reason in self.unaudited.items()},
            "gold_column": self.gold_column,
            "reads": asdict(self.traits),
            "false_accepts": self.false_accepts,
            "failed_calls": self.failed,
            "findings": [finding._asdict() for finding in self.findings],
            "unpaid_references": self.unpaid_references,
            "refused_references": {str(line): reason for line, reason in self.refused_references.items()},
            "equal_golds": [pair._asdict() for pair in self.equal_golds],
            "paths": self.paths._asdict(),
            "lint": [asdict(mistake) for mistake in self.lint],
            "unread": self.unread,
        }


@dataclass(kw_only=True)
class RewardAudit(Audit):
    """The result for one reward, on rows."""

    paid_forms: dict[str, tuple[int, int]]  # By honest form: rows on which it was paid, and tried
    families: dict[Family, FamilyCounts]
    left_out: Mapping[str, str] = field(default_factory=dict)  # Rules of thumb that the author left out, and why
    hint: str = ""  # What would have more judged, such as a column to name
    frames: Mapping[str, int] = field(default_factory=dict)  # Rows by the frame in which wrong answers were tried
    graded_rows: int = 0  # Rows on which answers near the gold earn by degrees, so that only full pay counts

    @property
    def counts(self) -> Collection[FamilyCounts]:
        return self.families.values()

    @property
    def why_unjudged(self) -> str | None:
        if self.false_accepts:
            return None
        if not self.audited:
            return f"nothing of this reward's kind was tried: no right answer is known on any row{self.hint}"
        if any(counts.judged for family, counts in self.families.items() if family not in _OF_ANY_REWARD):
            return None
        return f"nothing of this reward's kind was tried{self.hint}"

    @property
    def payers(self) -> dict[str, int]:
        """The addends of a composition that pay what the whole does not count as paid, with how much of that."""
        payers = Counter(example.payer for counts in self.counts for example in counts.accepted)
        return {name: count for name, count in payers.most_common() if name is not None}

    @property
    def false_reject_share(self) -> float:
        forms = self.families[Family.FORMS]
        return len(forms.refused) / forms.judged if forms.judged else 0.0

    def as_json(self, limits: AuditLimits) -> dict[str, Any]:
        return super().as_json(limits) | {
            "false_reject_share": self.false_reject_share,
            "left_out": dict(self.left_out),
            "frames": dict(self.frames),
            "graded_rows": self.graded_rows,
            "payers": self.payers,
            "flaws": {
                name: {
                    "rule": RULES_OF_THUMB[name].rule,
                    "cause": cause_of(name, [example.probe for example in examples]),
                    "count": len(examples),
                }
                for name, examples in self.flaws.items()
            },
            "families": {str(family): counts.as_json() for family, counts in self.families.items()},
            "forms": {name: {"paid": paid, "tried": tried} for name, (paid, tried) in self.paid_forms.items()},
        }
