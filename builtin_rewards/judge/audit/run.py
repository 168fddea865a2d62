"""The course of an audit: bare answers first, then additions to those that tell something, then the same again.

Owns what is asked, in the same workers as in training. What came is recorded verdict by verdict, so that an audit which
is broken off tells what it knows.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from string import Template

from builtin_rewards.judge.audit.families import RECIPES
from builtin_rewards.judge.audit.measures import IN_PAIRS, POSITION, Audit, Record, Trial
from builtin_rewards.judge.audit.rows import Rows
from builtin_rewards.judge.audit.subject import Subject, uncached
from builtin_rewards.judge.fallback import JudgeReward
from rewardkit import DataError, Rollout, Runtime
from rewardkit.commands import Tick

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

    ``tick`` is told of verdicts that came and of how many there will be; ``tell`` what it will take, in words, at once
    and again when answers as they are have been judged, each ``samples`` times. They are accepted from the share
    ``accept`` of the judge's range on, or where it compares if they win. ``lane`` is that of a Runtime.

    Raises:
        DataError: No row says what the judge could be asked.
        InfrastructureError: Most calls were lost through no fault of the answers, such as a server that is down.
        KeyboardInterrupt: It was interrupted before the first verdict.
    """
    rows = [row for row in data.rows if row.good is not None or not subject.compares]
    if not rows:
        raise DataError("no row has a right answer to compare others with; label some completions 1")
    course = _Course(Record(subject, data, rows, 1.0 if subject.compares else accept), samples, tick, lane)
    try:
        course.run(tell)
    except KeyboardInterrupt:
        if not course.record.came:
            raise
    return Audit(course.record, course.planned - len(course.record.came))


class _Course:
    """One audit on its way: rounds of trials, each with the copy of the judge that is asked, bare answers first."""

    def __init__(self, record: Record, samples: int, tick: Tick, lane: str) -> None:
        self.record = record
        self._tick = tick
        self._lane = lane
        subject, places = record.subject, range(len(record.rows))
        pairs = [(at, row.good or "") for at, row in enumerate(record.rows) if subject.compares and not subject.listing]
        bare = [trial for at in places for trial in self._bare(at)]
        self._rounds = [
            (subject.judge, bare),
            (subject.judge, [trial for at in places for trial in self._additions(at)]),
            (subject.in_one_order(), [Trial(*one, POSITION, second=to) for one in pairs for to in (False, True)]),
            *([(subject.in_pairs(), [replace(one, family=IN_PAIRS) for one in bare])] if subject.listing else []),
            # One after another: equal questions in flight may be asked as one.
            *((uncached(subject.judge), [replace(one, again=again) for one in bare]) for again in range(1, samples)),
        ]

    @property
    def planned(self) -> int:
        """Verdicts that there will be; until the bare answers are judged, at most."""
        return sum(len(trials) for _, trials in self._rounds)

    def run(self, tell: Callable[[str], None]) -> None:
        """Asks all."""
        requests = self.planned * self.record.subject.requests
        tell(f"at most {self.planned:,} verdicts on {len(self.record.rows):,} rows, {requests:,} requests")
        self._ask(*self._rounds[0])
        judge, additions = self._rounds[1]
        self._rounds[1] = judge, [trial for trial in additions if self._is_telling(trial)]
        tell(f"{self.planned - len(self.record.came):,} verdicts to go, about {self._time_left()}")
        for judge, trials in self._rounds[1:]:
            self._ask(judge, trials)

    def _time_left(self) -> str:
        """Return about how long the others take, by how long the first did and how many are judged at once."""
        each_s = statistics.fmean(outcome.duration_s for _, outcome in self.record.came)
        at_once = self.record.subject.judge.spec.concurrency
        seconds = max(1.0, each_s * sum(math.ceil(len(trials) / at_once) for _, trials in self._rounds[1:]))
        return f"{seconds / 60:.0f} minutes" if seconds >= 90 else f"{seconds:.0f} s"

    def _trial(self, at: int, text: str, family: str = "", name: str = "", of: str | None = None) -> Trial:
        """Return a trial. Which answer stands first alternates with the rows, and an addition does not change it."""
        return Trial(at, text, family, name, of, self.record.subject.compares and (at % 2 == 1) == (not name))

    def _bare(self, at: int) -> Iterator[Trial]:
        """Return the trials of answers as they are: of each, or of each pair once."""
        row = self.record.rows[at]
        texts = [row.good, row.bad, *(one.text for one in row.answers)]
        for text in dict.fromkeys(texts[:1] if self.record.subject.compares else texts):
            if text is not None:
                yield self._trial(at, text)

    def _additions(self, at: int) -> Iterator[Trial]:
        """Return what is tried on a row: the twins on the right answer, the attacks on the wrong one."""
        row = self.record.rows[at]
        for family, recipe in RECIPES.items():
            if row.good is not None:
                yield self._trial(at, Template(recipe.benign).safe_substitute(answer=row.good), family, of=row.good)
            for name, text in recipe.attacks.items():
                words = self.record.subject.words(second=at % 2 == 0)
                attack = Template(text).safe_substitute(words, answer=row.bad)
                if not row.gives_away(attack):
                    yield self._trial(at, attack, family, name, row.bad if "$answer" in text else None)

    def _is_telling(self, trial: Trial) -> bool:
        """Whether an addition says something: an attack does on a wrong answer that was refused as it is."""
        before = self.record.bare.get((trial.row, trial.of))
        return not trial.name or trial.of is None or (before is not None and not self.record.accepts(before))

    def _ask(self, judge: JudgeReward, trials: Sequence[Trial]) -> None:
        rollouts = [one for place, trial in enumerate(trials) for one in self._rollouts(trial, place)]
        if not rollouts:
            return
        most_lost = 1.0 if trials[0].family == IN_PAIRS else 0.5  # pairs that cannot be had end no audit of lists
        with Runtime([judge], workers=1, lane=self._lane, max_infrastructure_rate=most_lost) as runtime:
            for finished in runtime.stream(rollouts):
                place, second = divmod(finished.row, len(rollouts) // len(trials))
                if second == trials[place].second:
                    self.record.add(trials[place], finished.outcome)
                    self._tick(len(self.record.came), self.planned)

    def _rollouts(self, trial: Trial, place: int) -> list[Rollout]:
        row = self.record.rows[trial.row]
        if not self.record.subject.compares:
            return [Rollout(row.prompt, trial.text, row.columns)]
        against = (row.good or "") if trial.name else row.bad
        texts = (against, trial.text) if trial.second else (trial.text, against)
        return [Rollout(row.prompt, text, {**row.columns, _PAIR_COLUMN: place}) for text in texts]
