"""The rounds of an audit: unchanged answers, then additions to them, then unchanged answers again."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from string import Template

from builtin_rewards.judge.audit.answer_pairs import AuditRows
from builtin_rewards.judge.audit.families import RECIPES
from builtin_rewards.judge.audit.measures import IN_PAIRS, POSITION, AuditRecord, JudgeAudit, Trial
from builtin_rewards.judge.audit.subject import AuditedJudge, uncached
from builtin_rewards.judge.fallback import JudgeReward
from rewardkit import DataError, Rollout, Runtime
from rewardkit.commands import Rounds, Tick

_PAIR_COLUMN = "audit-judge pair"  # keeps two comparisons on a row from becoming a group of four; no judge reads it


class JudgeRounds(Rounds):
    """The rounds of one audit, each with its trials and the copy of the judge that is asked; bare answers first.

    ``tick`` gets the number of verdicts that came and that there will be. Unchanged answers are judged ``samples``
    times. A score accepts from the share ``accept`` of the judge's range on, and a comparison if it is won. Raises
    DataError where no row can be asked about.
    """

    def __init__(
        self,
        subject: AuditedJudge,
        data: AuditRows,
        tick: Tick,
        *,
        accept: float = 0.75,
        samples: int = 3,
        lane: str = "worker",
    ) -> None:
        rows = [row for row in data.rows if row.good is not None or not subject.compares]
        if not rows:
            raise DataError("no row has a right answer to compare others with; label some completions 1")
        self._completions_per_trial = 2 if subject.compares else 1
        super().__init__(subject.judge, lambda done, _: tick(done // self._completions_per_trial, self._planned))
        self._record = AuditRecord(subject, data._replace(rows=rows), 1.0 if subject.compares else accept)
        self._lane = lane
        indices = range(len(rows))
        bare = [trial for index in indices for trial in self._bare(index)]
        additions = [trial for index in indices for trial in self._additions(index)]
        self._rounds: list[tuple[JudgeReward, list[Trial]]] = [(subject.judge, bare), (subject.judge, additions)]
        if subject.listing:
            self._rounds.append((subject.in_pairs(), [replace(trial, family=IN_PAIRS) for trial in bare]))
        elif subject.compares:
            orders = [
                Trial(index, rows[index].good or "", POSITION, is_second=is_second)
                for index in indices
                for is_second in (False, True)
            ]
            self._rounds.append((subject.in_one_order(), orders))
        for again in range(1, samples):  # one after another: equal questions in flight may be asked as one
            self._rounds.append((uncached(subject.judge), [replace(trial, again=again) for trial in bare]))

    @property
    def _planned(self) -> int:
        """The number of verdicts; an upper bound until the bare answers are judged."""
        return sum(len(trials) for _, trials in self._rounds)

    def run(self, tell: Callable[[str], None]) -> JudgeAudit:
        """Audit the judge, or return what is known when interrupted; ``tell`` gets a line on what the audit will take.

        Raises InfrastructureError where most calls were lost through no fault of the answers, and KeyboardInterrupt
        before the first verdict.
        """
        record = self._record
        requests = self._planned * record.subject.requests
        tell(f"at most {self._planned:,} verdicts on {len(record.data.rows):,} rows, {requests:,} requests")
        try:
            self._ask(*self._rounds[0])
            judge, additions = self._rounds[1]
            self._rounds[1] = judge, [trial for trial in additions if self._is_telling(trial)]
            tell(f"{self._planned - len(record.verdicts):,} verdicts to go, about {self._time_left()}")
            for judge, trials in self._rounds[1:]:
                self._ask(judge, trials)
        except KeyboardInterrupt:
            if not record.verdicts:
                raise
        return JudgeAudit(record, self._planned - len(record.verdicts))

    def _time_left(self) -> str:
        """Return about how long the other rounds take, by the time of the first and how many are judged at once."""
        verdict_s = statistics.fmean(verdict.outcome.duration_s for verdict in self._record.verdicts)
        calls = self._record.subject.judge.spec.concurrency
        seconds = max(1.0, verdict_s * sum(math.ceil(len(trials) / calls) for _, trials in self._rounds[1:]))
        return f"{seconds / 60:.0f} minutes" if seconds >= 90 else f"{seconds:.0f} s"

    def _trial(self, index: int, text: str, family: str = "", name: str = "", base: str | None = None) -> Trial:
        """Return a trial; the right answer of a comparison stands first in every other row, whatever is added."""
        is_second = self._record.subject.compares and (index % 2 == 1) == (not name)
        return Trial(index, text, family, name, base, is_second)

    def _bare(self, index: int) -> Iterator[Trial]:
        """Yield the trials of unchanged answers: of each, or of each pair once."""
        row = self._record.data.rows[index]
        texts = [row.good, row.bad, *(answer.text for answer in row.answers)]
        for text in dict.fromkeys(texts[:1] if self._record.subject.compares else texts):
            if text is not None:
                yield self._trial(index, text)

    def _additions(self, index: int) -> Iterator[Trial]:
        """Yield a row's additions: the twins on the right answer, the attacks on the wrong one."""
        row = self._record.data.rows[index]
        for family, recipe in RECIPES.items():
            if row.good is not None:
                twin = Template(recipe.benign).safe_substitute(answer=row.good)
                yield self._trial(index, twin, family, base=row.good)
            for name, text in recipe.attacks.items():
                fields = self._record.subject.attack_fields(second=index % 2 == 0)
                attack = Template(text).safe_substitute(fields, answer=row.bad)
                if not row.gives_away(attack):
                    yield self._trial(index, attack, family, name, row.bad if "$answer" in text else None)

    def _is_telling(self, trial: Trial) -> bool:
        """Return whether a trial measures anything: an attack does on a wrong answer that is refused without it."""
        before = self._record.bare.get((trial.row, trial.base))
        return not trial.name or trial.base is None or (before is not None and not self._record.accepts(before))

    def _ask(self, judge: JudgeReward, trials: Sequence[Trial]) -> None:
        """Judge the trials and record each one's outcome; of a pair, that of the completion it is about."""
        rollouts = [rollout for index, trial in enumerate(trials) for rollout in self._rollouts(trial, index)]
        if not rollouts:
            return
        # Pairs are an extra of an audit of lists, which goes on even if all of them fail.
        most_lost = 1.0 if trials[0].family == IN_PAIRS else 0.5
        with Runtime([judge], workers=1, lane=self._lane, max_infrastructure_rate=most_lost) as runtime:
            for rollout_index, outcome in self._stream(runtime, rollouts):
                trial_index, position = divmod(rollout_index, self._completions_per_trial)
                trial = trials[trial_index]
                if position == trial.is_second:
                    self._record.add(trial, outcome)

    def _rollouts(self, trial: Trial, index: int) -> list[Rollout]:
        """Return a trial's text as the judge gets it; one that compares gets a pair, in the trial's order.

        An attack, which has a name, stands against the right answer, and what has none against the wrong one. ``index``
        is the trial's, and keeps its pair a group of its own.
        """
        row = self._record.data.rows[trial.row]
        if not self._record.subject.compares:
            return [Rollout(row.prompt, trial.text, row.columns)]
        against = (row.good or "") if trial.name else row.bad
        texts = (against, trial.text) if trial.is_second else (trial.text, against)
        return [Rollout(row.prompt, text, {**row.columns, _PAIR_COLUMN: index}) for text in texts]
