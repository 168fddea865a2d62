"""What a grading says of each test and of the whole."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from rewardkit.errors import SuiteError
from rewardkit.shown.text import beginning
from rewardkit.types import Score

_MOST_NAMED = 3
_MOST_CHARS = 8_000  # of a reason before its digest, which a record must not cut off
_DIGEST = re.compile(r"(?:^|; )folder ([0-9a-f]{64})\Z")


class SuiteStatus(StrEnum):
    """What became of a grading.

    ``UNSUITABLE`` is the task's own fault, such as a suite without tests: its score is not applicable.
    """

    PASSED = "passed"
    FAILED = "failed"
    FORGED = "forged"
    UNSUITABLE = "unsuitable"


@dataclass(frozen=True, slots=True)
class SuiteResult:
    """What became of one test.

    Attributes:
        name: As pytest names it, such as ``"tests/test_shapes.py::test_area[square]"``.
        outcome: ``passed``, ``failed``, ``skipped``, ``missing`` where it did not appear, or ``forged`` where it passes
            whatever it expects.
        duration_s: Seconds that it took, as the jail says.
        message: Why it did not pass.
    """

    name: str
    outcome: str
    duration_s: float = 0.0
    message: str = ""


@dataclass(frozen=True, slots=True)
class SuiteVerdict:
    """What a suite says of a folder.

    Attributes:
        status: Whether all expected tests pass, and none of them passes whatever it expects.
        results: The expected tests, and what became of each.
        groups: The names of the expected tests by group, as they were given.
        left_out: The agent's files that did not go into the jail, and why.
        weak: The tests for which no canary says that they cannot be forged.
        runs: How often the suite was run, canaries included.
        bound: The most probable forgery of a test that is not weak: the chance that an answer which does not depend on
            the truth is told right by all runs; 1.0 where every test is weak, or none was run as a canary.
        digest: Of the folder that was graded.
        duration_s: Seconds that the runs took.
        error: Why it could not be graded, or why all failed at once.
        cached: Whether it is the verdict of an equal folder that was graded before.
    """

    status: SuiteStatus
    results: tuple[SuiteResult, ...] = ()
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    weak: tuple[str, ...] = ()
    runs: int = 0
    bound: float = 1.0
    digest: str = ""
    duration_s: float = 0.0
    error: str = ""
    cached: bool = False

    @property
    def passed(self) -> bool:
        return self.status is SuiteStatus.PASSED

    def share(self, group: str | None = None) -> float:
        """Return the share of the expected tests that pass, of all or of a group; 0.0 where any is forged.

        Raises:
            SuiteError: There is no such group.
        """
        if group is not None and group not in self.groups:
            raise SuiteError(f"group {group!r:.80}: expected one of {', '.join(map(repr, self.groups)) or 'none'}")
        names = [result.name for result in self.results] if group is None else self.groups[group]
        if self.status is SuiteStatus.FORGED or not names:
            return 0.0
        passed = {result.name for result in self.results if result.outcome == "passed"}
        return math.fsum(name in passed for name in names) / len(names)

    def score(self, weights: Mapping[str, float] | None = None) -> Score:
        """Return it as a reward's score: 1.0 where all pass, else 0.0, or the weighted mean of groups' shares.

        Args:
            weights: The weight of each group; what it does not name counts for nothing.

        Raises:
            SuiteError: There is no such group, or the weights are not finite numbers above 0 together.
        """
        if self.status is SuiteStatus.UNSUITABLE:
            return Score(None, self._with_digest(self.error))
        value = float(self.passed)
        if weights is not None:
            total = math.fsum(weights.values())
            if not total > 0 or not all(0 <= weight < math.inf for weight in weights.values()):
                raise SuiteError(f"weights {dict(weights)!r:.200}: expected numbers of 0 or more, not all 0")
            value = math.fsum(weight * self.share(group) for group, weight in weights.items()) / total
        metrics = {f"share_{group}": self.share(group) for group in self.groups if len(self.groups) > 1}
        counts = {"tests": len(self.results), "passed": sum(r.outcome == "passed" for r in self.results)}
        return Score(value, self.reason(), {**counts, "runs": self.runs, "suite_s": self.duration_s, **metrics})

    def reason(self) -> str:
        """Return in words what became of the tests; its end is the digest of the folder, by which it is found again."""
        passed = [result for result in self.results if result.outcome == "passed"]
        parts = [self.error] if self.error else []
        parts.append(f"{len(passed)} of {len(self.results)} tests pass")
        for outcome in ("forged", "failed", "skipped", "missing"):
            names = [_described(result) for result in self.results if result.outcome == outcome]
            if names:
                parts.append(f"{outcome}: {_listed(names)}")
        if self.weak:
            parts.append(f"weak, for no canary guards them: {_listed(self.weak)}")
        if self.left_out:
            parts.append(f"left out: {_listed([f'{name} ({why})' for name, why in self.left_out.items()])}")
        if self.cached:
            parts.append("as an equal folder before")
        return self._with_digest("; ".join(parts))

    def _with_digest(self, text: str) -> str:
        short = beginning(text, _MOST_CHARS)
        return f"{short}; folder {self.digest}" if self.digest else short


def graded_digest(reason: str) -> str | None:
    """Return the digest of the folder that was graded from what :meth:`SuiteVerdict.reason` wrote; else ``None``."""
    match = _DIGEST.search(reason)
    return match[1] if match else None


def _described(result: SuiteResult) -> str:
    return f"{result.name} ({result.message})" if result.message else result.name


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more
