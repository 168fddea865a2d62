"""Warnings of a reward that scores too seldom, each given once, in the log ``rewardkit``.

Failing on most completions is normal early in a run. A batch or the first calls of a run without a single score, and
newest calls that all fail, most likely mean a broken reward, or data that the reward does not suit.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rewardkit.runtime.row_names import id_text, without_place
from rewardkit.shown.text import shortened
from rewardkit.types import Outcome, Rollout, Status

ENOUGH_CALLS = 32
"""Calls before a reward is called silent (none scored) or is warned of (more than half failed)."""

ENOUGH_SKIPS = 16
"""Calls before a reward is called silent that has skipped every one: data that it cannot read costs a whole run."""

_log = logging.getLogger("rewardkit")


class _Failure(NamedTuple):
    """A failed call: its outcome, its error, and the id of its row; ``""`` without one."""

    outcome: Outcome
    error: str
    row: str

    def __str__(self) -> str:
        return self.error + (f" ({self.row})" if self.row else "")


@dataclass(slots=True)
class _Count:
    """What a reward's calls came to."""

    calls: int = 0
    scored: int = 0
    skipped: int = 0
    failed: int = 0  # without what was lost to infrastructure
    skip_reason: str = ""  # of the first skipped call that says why
    examples: dict[str, _Failure] = field(default_factory=dict)  # a failure of each error; two are enough

    def add(self, outcomes: Sequence[Outcome], rollouts: Sequence[Rollout]) -> None:
        """Count outcomes by their status, and keep two failures with different errors as examples."""
        scored = [outcome.status for outcome in outcomes].count(Status.SCORED)
        self.calls += len(outcomes)
        self.scored += scored
        if scored == len(outcomes):
            return
        for outcome, rollout in zip(outcomes, rollouts, strict=True):
            if outcome.status is Status.SKIPPED:
                self.skipped += 1
                self.skip_reason = self.skip_reason or outcome.reason or ""
            elif outcome.status is Status.FAILED and not outcome.is_lost:
                self.failed += 1
                if len(self.examples) < 2:
                    error = without_place(outcome.error or "")  # one error on two rows is one
                    self.examples.setdefault(error, _Failure(outcome, error, id_text(rollout.example)))

    def join(self, other: _Count) -> None:
        """Add another count to this one."""
        self.calls += other.calls
        self.scored += other.scored
        self.skipped += other.skipped
        self.failed += other.failed
        self.skip_reason = self.skip_reason or other.skip_reason
        for error, failure in other.examples.items():
            if len(self.examples) < 2:
                self.examples.setdefault(error, failure)

    def silence(self, completions: str) -> str:
        """Return a sentence on calls of which none scored, and why; ``completions`` is its subject."""
        if not self.failed:
            fate = "was skipped" if self.skipped == self.calls else "was skipped or lost"
            if self.skip_reason:
                return f"{completions} {fate}, the first because: {self.skip_reason}"
            return f"{completions} {fate}; None says that a row has no answer, and is no score for a completion"
        example = next(iter(self.examples.values()))
        score = example.outcome.score
        default = f"; {self.failed:,} got the reward's default score, {score:g}" if score else ""
        if self.failed == self.calls:
            alike = " with one error; the reward is most likely broken" if len(self.examples) == 1 else ""
            return f"{completions} failed{alike}{default}: {example}"
        return f"{completions} failed or was skipped, for example ({example.outcome.cause}): {example}"


class Alarms:
    """Counts failures and skips over a scorer's life."""

    def __init__(self) -> None:
        self._counts: defaultdict[str, _Count] = defaultdict(_Count)
        self._stretches: defaultdict[str, _Count] = defaultdict(_Count)  # The newest calls, of small batches together
        self._warned: set[tuple[str, int]] = set()

    def look_at(
        self, columns: Mapping[str, Sequence[Outcome]], rollouts: Sequence[Rollout], step: int | None = None
    ) -> None:
        """Count a batch's outcomes by the rewards' names; log each new kind of trouble once, with the step."""
        for name, outcomes in columns.items():
            batch, count = _Count(), self._counts[name]
            batch.add(outcomes, rollouts)
            count.join(batch)
            stretch = self._stretches[name]
            stretch.join(batch)
            if stretch.calls >= ENOUGH_CALLS:
                del self._stretches[name]
            enough = ENOUGH_SKIPS if count.skipped == count.calls else ENOUGH_CALLS
            if count.calls >= enough and (batch.failed or batch.skipped):
                self._warn(name, count, batch, stretch, "" if step is None else f" at step {step}")

    def _warn(self, name: str, count: _Count, batch: _Count, stretch: _Count, at: str) -> None:
        """Log that no call so far, of this batch or lately has scored, or that most fail; each level once a reward."""
        level = logging.ERROR
        if not count.scored:
            message = count.silence(f"every one of the first {count.calls} completions")
        elif not batch.scored and batch.calls >= ENOUGH_CALLS:
            message = batch.silence(f"every one of the {batch.calls} completions of a batch")
        elif ENOUGH_CALLS <= stretch.calls == stretch.failed:
            message = stretch.silence(f"every one of the last {stretch.calls} completions")
        elif count.failed > count.calls / 2:
            level, example = logging.WARNING, next(iter(count.examples.values()))
            message = f"{count.failed} of {count.calls} calls failed so far, "
            message += f"for example ({example.outcome.cause}): {example}"
        else:
            return
        if (name, level) not in self._warned:
            self._warned.add((name, level))
            _log.log(level, "reward %r%s: %s", name, at, shortened(message))  # an error may quote the completion
