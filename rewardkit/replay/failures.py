"""Failed calls of both versions of a reward by cause and error, with the first completion of each kind."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rewardkit.runtime.row_names import without_place
from rewardkit.types import Outcome, Status

_NUMBERS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class FailureKind:
    """Failures of one version with one cause and one error, numbers in it aside; id, step and error of the first."""

    side: str  # `"old"` or `"new"`
    cause: str
    calls: int
    id: int  # The completion's number in the record, or its row in the file, from 0
    step: int | None  # Optimizer steps done; `None` outside a run
    error: str  # Empty where the call has none

    def as_json(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        return dataclasses.asdict(self)


class Failures:
    """Counts failed calls as their outcomes come in."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, str, str], FailureKind] = {}

    def add(self, side: str, step: int | None, outcomes: Iterable[tuple[int, Outcome]]) -> None:
        """Add a version's outcomes, each with its completion's number; those that did not fail are passed over."""
        for number, outcome in outcomes:
            if outcome.status is not Status.FAILED:
                continue
            error = without_place(outcome.error or "")
            key = side, str(outcome.cause), _NUMBERS.sub("#", error)
            first = self._kinds.get(key) or FailureKind(side, str(outcome.cause), 0, number, step, error)
            self._kinds[key] = dataclasses.replace(first, calls=first.calls + 1)

    @property
    def kinds(self) -> list[FailureKind]:
        """The kinds of failures, the most frequent first."""
        return sorted(self._kinds.values(), key=lambda kind: -kind.calls)
