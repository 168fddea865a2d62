"""The course of an audit: bare answers first, then additions to those that tell something, then the same again.

Owns what is asked, in the same workers as in training. What came is recorded verdict by verdict, so that an audit which
is broken off tells what it knows.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from builtin_rewards.judge.audit.families import RECIPES, filled
from builtin_rewards.judge.audit.measures import POSITION, Audit, Record, Trial, measured
from builtin_rewards.judge.audit.rows import JudgeRow, Rows
from builtin_rewards.judge.audit.subject import Subject
from builtin_rewards.judge.fallback import JudgeReward
from rewardkit import DataError, Rollout, Runtime
from rewardkit.audit.run import Tick

_PAIR_COLUMN = "audit-judge pair"
"""Keeps two comparisons on one row apart, which would otherwise be one group of four. No judge reads it."""


def run(
    subject: Subject,
    data: Rows,
    tick: Tick,
    tell: Callable[[str], None],
    *,
    accept: float = 0.75,
    samples: int = 3,
    lane: str = "worker",
) -> Audit:
    """Audits a judge; interrupted, gives what is known by then.

    Args:
        subject: The judge.
        data: The rows.
        tick: Told of verdicts that came, and of how many there will be.
        tell: Told what it will take, in words: at once, and again when answers as they are have been judged.
        accept: The score from which an answer is accepted, from 0 to 1 over the judge's range.
        samples: How often the same answer is judged; 1 measures no stability.
        lane: Where the judge runs, as of a Runtime.

    Raises:
        DataError: No row says what the judge could be asked.
        InfrastructureError: Most calls were lost through no fault of the answers, such as a server that is down.
        KeyboardInterrupt: It was interrupted before the first verdict.
    """
    rows = [row for row in data.rows if row.good is not None or not subject.compares]
    if not rows:
        raise DataError("no row has a right answer to compare others with; label some completions 1")
    course = _Course(Record(subject, rows, accept), samples, tick, lane)
    try:
        course.run(tell)
    except KeyboardInterrupt:
        if not course.record.came:
            raise
    return measured(course.record, data, course.planned - len(course.record.came))


class _Course:
    """One audit on its way."""

    def __init__(self, record: Record, samples: int, tick: Tick, lane: str) -> None:
        self.record = record
        self._subject = record.subject
        self._tick = tick
        self._lane = lane
        rows = list(enumerate(record.rows))
        self._bare = [trial for at, row in rows for trial in self._bare_of(at, row)]
        self._additions = [trial for at, row in rows for trial in self._additions_to(at, row)]
        self._ordered = [
            Trial(at, row.good or "", POSITION, against=row.bad, second=second)
            for second in ((False, True) if self._subject.compares else ())
            for at, row in rows
        ]
        self._rounds = [[replace(one, again=again) for one in self._bare] for again in range(1, samples)]

    @property
    def planned(self) -> int:
        """Verdicts that there will be; until the bare answers are judged, at most."""
        return sum(map(len, (self._bare, self._additions, self._ordered, *self._rounds)))

    def run(self, tell: Callable[[str], None]) -> None:
        """Asks all."""
        requests = self.planned * self._subject.requests
        tell(f"at most {self.planned:,} verdicts on {len(self.record.rows):,} rows, {requests:,} requests")
        with self._runtime(self._subject.judge) as runtime:
            self._ask(runtime, self._bare)
            self._additions = [trial for trial in self._additions if self._is_telling(trial)]
            tell(f"{self.planned - len(self._bare):,} verdicts to go, about {self._time_left()}")
            self._ask(runtime, self._additions)
        if self._ordered:
            with self._runtime(self._subject.in_one_order()) as runtime:
                self._ask(runtime, self._ordered)
        if self._rounds:
            with self._runtime(self._subject.without_cache()) as runtime:
                for trials in self._rounds:  # one after another: equal questions in flight may be asked as one
                    self._ask(runtime, trials)

    def _time_left(self) -> str:
        """Gives about how long the others take, by how long the first did and how many are judged at once."""
        each_s = statistics.fmean(outcome.duration_s for _, outcome in self.record.came)
        batches = (self._additions, self._ordered, *self._rounds)
        rounds = sum(math.ceil(len(trials) / self._subject.judge.spec.concurrency) for trials in batches)
        seconds = max(1.0, rounds * each_s)
        return f"{seconds / 60:.0f} minutes" if seconds >= 90 else f"{seconds:.0f} s"

    def _runtime(self, judge: JudgeReward) -> Runtime:
        return Runtime([judge], workers=1, lane=self._lane)

    def _bare_of(self, at: int, row: JudgeRow) -> Iterator[Trial]:
        """Gives the trials of answers as they are: of each, or of each pair once."""
        texts = [row.good] if self._subject.compares else [row.good, row.bad, *(one.text for one in row.answers)]
        for text in dict.fromkeys(text for text in texts if text is not None):
            yield self._met(Trial(at, text), row, is_good=True)

    def _additions_to(self, at: int, row: JudgeRow) -> Iterator[Trial]:
        """Gives what is tried on a row: the twins on the right answer, the attacks on the wrong one."""
        for_good, for_bad = (self._subject.words(_is_second(at, is_good=is_good)) for is_good in (True, False))
        for family, recipe in RECIPES.items():
            if row.good is not None:
                twin = filled(recipe.benign, row.good, for_good)
                yield self._met(Trial(at, twin, family, of=row.good), row, is_good=True)
            for name, text in recipe.attacks.items():
                attack = Trial(at, filled(text, row.bad, for_bad), family, name, row.bad if "$answer" in text else None)
                if not row.gives_away(attack.text):
                    yield self._met(attack, row, is_good=False)

    def _met(self, trial: Trial, row: JudgeRow, *, is_good: bool) -> Trial:
        """Gives a trial with what it meets in a comparison: a right answer the wrong one, and all else the right one.

        Which of them stands first alternates with the rows, and an addition does not change it.
        """
        if not self._subject.compares:
            return trial
        return replace(
            trial, against=row.bad if is_good else row.good or "", second=_is_second(trial.row, is_good=is_good)
        )

    def _is_telling(self, trial: Trial) -> bool:
        """Whether an addition says something: an attack does on a wrong answer that was refused as it is."""
        before = self.record.bare.get((trial.row, trial.of))
        return not trial.name or trial.of is None or (before is not None and not self.record.accepts(before))

    def _ask(self, runtime: Runtime, trials: Sequence[Trial]) -> None:
        rollouts = [one for place, trial in enumerate(trials) for one in self._rollouts(trial, place)]
        each = 2 if self._subject.compares else 1
        for finished in runtime.stream(rollouts) if rollouts else ():
            place, second = divmod(finished.row, each)
            if second == trials[place].second:
                self.record.add(trials[place], finished.outcome)
                self._tick(len(self.record.came), self.planned)

    def _rollouts(self, trial: Trial, place: int) -> list[Rollout]:
        row = self.record.rows[trial.row]
        if not self._subject.compares:
            return [Rollout(row.prompt, trial.text, row.columns)]
        columns = {**row.columns, _PAIR_COLUMN: place}
        texts = (trial.against, trial.text) if trial.second else (trial.text, trial.against)
        return [Rollout(row.prompt, text, columns) for text in texts]


def _is_second(place: int, *, is_good: bool) -> bool:
    return (place % 2 == 1) == is_good
