"""What is asked of a judge, and what came of it: answers in, verdicts out, in the same workers as in training."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from builtin_rewards.judge.audit.families import Family
from builtin_rewards.judge.audit.rows import JudgeRow
from builtin_rewards.judge.audit.subject import Subject
from builtin_rewards.judge.fallback import JudgeReward
from rewardkit import Outcome, Rollout, Runtime, Status
from rewardkit.cli.screen import Ticker

Progress = Callable[[int], AbstractContextManager[Ticker]]
"""Gives what is told of each call that is finished, of so many."""
_PAIR_COLUMN = "audit-judge pair"
"""Keeps two comparisons on one row apart, which would otherwise be one group of four. No judge reads it."""


@dataclass(frozen=True, slots=True)
class Trial:
    """An answer to be judged.

    Attributes:
        row: The row's place among those chosen.
        text: The answer.
        against: The answer it is compared with by a pairwise judge.
        second: Whether it stands second in the comparison.
        family: The family it is of; ``None`` for a bare answer.
        name: Which of the family's attacks it is; ``""`` for its benign twin.
    """

    row: int
    text: str
    against: str = ""
    second: bool = False
    family: Family | None = None
    name: str = ""


class Verdict(NamedTuple):
    """What became of a trial.

    Attributes:
        score: From 0 to 1 over the judge's range; of a comparison 1 won, 0.5 drawn, 0 lost; ``None`` without one.
        failed: Whether the call failed; one without a score that did not fail was skipped.
        said: The judge's reason, or the error.
    """

    score: float | None
    failed: bool = False
    said: str | None = None


class Scorer:
    """Puts trials to a judge."""

    def __init__(self, subject: Subject, rows: Sequence[JudgeRow], runtime: Runtime, progress: Progress) -> None:
        self._subject = subject
        self._rows = rows
        self._runtime = runtime
        self._progress = progress

    def score(self, trials: Sequence[Trial]) -> list[Verdict]:
        """Gives the verdicts on answers, in their order."""
        if not trials:
            return []
        rollouts = [one for place, trial in enumerate(trials) for one in self._rollouts(trial, place)]
        outcomes: list[Outcome | None] = [None] * len(rollouts)
        with self._progress(len(rollouts)) as tick:
            for finished in self._runtime.stream(rollouts):
                outcomes[finished.row] = finished.outcome
                tick(failed=finished.outcome.status is Status.FAILED)
        each = 2 if self._subject.pairwise else 1
        return [self._verdict(outcomes[each * place + trial.second]) for place, trial in enumerate(trials)]

    def _rollouts(self, trial: Trial, place: int) -> list[Rollout]:
        row = self._rows[trial.row]
        if not self._subject.pairwise:
            return [Rollout(row.prompt, trial.text, row.columns)]
        columns = {**row.columns, _PAIR_COLUMN: place}
        texts = (trial.against, trial.text) if trial.second else (trial.text, trial.against)
        return [Rollout(row.prompt, text, columns) for text in texts]

    def _verdict(self, outcome: Outcome | None) -> Verdict:
        assert outcome is not None
        if outcome.status is Status.FAILED:
            return Verdict(None, True, outcome.error)
        if outcome.score is None:
            return Verdict(None, False, outcome.reason)
        low, high = self._subject.score_range
        return Verdict((outcome.score - low) / (high - low), False, outcome.reason)


@contextmanager
def scorer(
    subject: Subject, judge: JudgeReward, rows: Sequence[JudgeRow], progress: Progress, *, inline: bool
) -> Iterator[Scorer]:
    """Gives a scorer for a judge or a copy of it, whose workers end with it."""
    with Runtime([judge], workers=1, lane="inline" if inline else "worker") as runtime:
        yield Scorer(subject, rows, runtime, progress)
