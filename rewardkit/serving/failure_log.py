"""The log's lines about rewards that fail: a reward's first failure at once, and what its calls came to at the end.

In between, the runtime warns of rewards that score too seldom, and ``/metrics`` counts every call.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from rewardkit.runtime.row_names import without_place
from rewardkit.serving.contract import ToldRow
from rewardkit.shown.text import counted, shortened
from rewardkit.types import Outcome, Status

_MOST_ERRORS = 100  # Errors of a reward that are told apart; completions may write them
_log = logging.getLogger("rewardkit.serving")


@dataclass(slots=True)
class _Calls:
    """What a reward's calls came to since the server's start."""

    calls: int = 0
    failed: int = 0
    skipped: int = 0
    errors: Counter[str] = field(default_factory=Counter)  # Cause and error, by how many calls

    def add(self, outcomes: Sequence[Outcome]) -> None:
        self.calls += len(outcomes)
        for outcome in outcomes:
            self.skipped += outcome.status is Status.SKIPPED
            if outcome.cause is not None:
                self.failed += 1
                error = f"{outcome.cause}: {shortened(without_place(outcome.error or 'no error'), 300)}"
                if error in self.errors or len(self.errors) < _MOST_ERRORS:
                    self.errors[error] += 1

    @property
    def first_failure(self) -> str:
        """The line after the first failure."""
        count = f"{self.failed:,} of the first {counted(self.calls, 'call')} failed"
        return f"{count}: {self.errors.most_common(1)[0][0]}; /metrics counts further failures"

    @property
    def summary(self) -> str:
        """The line at the end; empty where a score came of at least half of the calls."""
        if 2 * (self.failed + self.skipped) <= self.calls:
            return ""
        fates = {"failed": self.failed, "skipped": self.skipped}
        parts = " and ".join(f"{count:,} {fate}" for fate, count in fates.items() if count)
        text = f"of {counted(self.calls, 'call')} {parts}"
        if not self.failed:
            return text
        error, count = self.errors.most_common(1)[0]
        return f"{text}, {count:,} of them with: {error}" if count < self.failed else f"{text}: {error}"


class FailureLog:
    """Warnings of rewards whose calls fail, each reward's first failure and its sum at the end."""

    def __init__(self) -> None:
        self._rewards: defaultdict[str, _Calls] = defaultdict(_Calls)

    def note(self, rows: Sequence[ToldRow]) -> None:
        """Count the outcomes of rows that are answered, and log a reward's first failure."""
        for name in rows[0].outcomes if rows else ():
            calls = self._rewards[name]
            failed_before = calls.failed
            calls.add([row.outcomes[name] for row in rows])
            if calls.failed and not failed_before:
                _log.warning("reward %r: %s", name, calls.first_failure)

    def flush(self) -> None:
        """Log each reward of whose calls more than half gave no score, as the server ends."""
        for name, calls in self._rewards.items():
            if calls.summary:
                _log.warning("reward %r, since the start: %s", name, calls.summary)
