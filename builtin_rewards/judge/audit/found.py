"""What an audit found, as a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from builtin_rewards.judge.audit.families import Family
from builtin_rewards.judge.audit.labels import Calibration, SelfPreference
from builtin_rewards.judge.audit.measures import FamilyResult, Position, Share, Stability


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit found.

    Attributes:
        judge: The judge's name.
        models: The models behind it.
        form: What the rows are, in words.
        rows: Rows audited.
        total_rows: Rows in the file.
        accept: The score from which an answer is accepted, from 0 to 1 over the judge's range.
        calls: Verdicts asked for.
        failed: Those that failed.
        first_error: What the first of them said; ``None`` where none failed.
        bare_right: Right answers accepted as they are.
        bare_wrong: Wrong answers accepted as they are. They are not attacked.
        families: By family, what its attacks came to.
        position: ``None`` where it could not be measured, as the next three.
        stability: Over several samples.
        calibration: Against labels.
        self_preference: Beyond labels.
        not_possible: By probe, why it could not be measured.
    """

    judge: str
    models: tuple[str, ...]
    form: str
    rows: int
    total_rows: int
    accept: float
    calls: int
    failed: int
    first_error: str | None
    bare_right: Share
    bare_wrong: Share
    families: Mapping[Family, FamilyResult]
    position: Position | None
    stability: Stability | None
    calibration: Calibration | None
    self_preference: SelfPreference | None
    not_possible: Mapping[str, str]
