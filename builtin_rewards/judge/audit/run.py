"""The course of an audit: bare answers first, then additions to those that tell something, then the same again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from builtin_rewards.judge.audit.families import RECIPES, Family, content_free_texts, filled
from builtin_rewards.judge.audit.found import Audit
from builtin_rewards.judge.audit.labels import Calibration, SelfPreference, calibration, self_preference
from builtin_rewards.judge.audit.measures import (
    FamilyResult,
    Position,
    Share,
    Stability,
    Tried,
    family_result,
    is_accepted,
    position,
    stability,
)
from builtin_rewards.judge.audit.rows import Labelled, Rows
from builtin_rewards.judge.audit.subject import Subject
from builtin_rewards.judge.audit.trials import Progress, Scorer, Trial, Verdict, scorer
from builtin_rewards.judge.fallback import JudgeReward
from rewardkit import DataError

_ALONE = Verdict(None)
"""In place of the verdict without an addition, where the text is no addition to anything."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What an audit does.

    Attributes:
        accept: The score from which an answer is accepted, from 0 to 1 over the judge's range.
        samples: How often the same answer is judged; 1 measures no stability.
        inline: Whether the judge runs in this process, without isolation.
    """

    accept: float = 0.75
    samples: int = 3
    inline: bool = False


def run(subject: Subject, data: Rows, settings: Settings, progress: Progress) -> Audit:
    """Audits a judge.

    Raises:
        DataError: No row says what the judge could be asked.
        InfrastructureError: Most calls were lost through no fault of the answers, such as a server that is down.
    """
    return _Course(subject, data, settings, progress).audit()


class _Course:
    """One audit on its way. Answers as they are have their verdicts in ``bare``, by row and text."""

    def __init__(self, subject: Subject, data: Rows, settings: Settings, progress: Progress) -> None:
        self.subject = subject
        self.data = data
        self.rows = [row for row in data.rows if row.good is not None or not subject.pairwise]
        if not self.rows:
            raise DataError("no row has a right answer to compare others with; label some completions 1")
        self.settings = settings
        self.progress = progress
        self.verdicts: list[Verdict] = []
        self.bare: dict[tuple[int, str], Verdict] = {}
        self.not_possible: dict[str, str] = {}

    def audit(self) -> Audit:
        bare = self._bare()
        with self._scorer(self.subject.judge) as asked:
            once = self._score(asked, bare)
            self._note(bare, once)
            tried = self._tried(asked)
        families = self._families(tried)
        measured = self._position(), self._stability(bare, once), self._calibration(), self._self_preference()
        failures = [one for one in self.verdicts if one.failed]
        return Audit(
            judge=self.subject.name,
            models=self.subject.models,
            form=self.data.form,
            rows=len(self.rows),
            total_rows=self.data.total,
            accept=self.settings.accept,
            calls=len(self.verdicts),
            failed=len(failures),
            first_error=failures[0].said if failures else None,
            bare_right=self._accepted([row.good for row in self.rows]),
            bare_wrong=self._accepted([row.bad for row in self.rows]),
            families=families,
            position=measured[0],
            stability=measured[1],
            calibration=measured[2],
            self_preference=measured[3],
            not_possible=self.not_possible,
        )

    def _scorer(self, judge: JudgeReward) -> AbstractContextManager[Scorer]:
        return scorer(self.subject, judge, self.rows, self.progress, inline=self.settings.inline)

    def _score(self, asked: Scorer, trials: Sequence[Trial]) -> list[Verdict]:
        verdicts = asked.score(trials)
        self.verdicts += verdicts
        return verdicts

    def _trial(self, place: int, text: str, family: Family | None, name: str, *, is_good: bool) -> Trial:
        """Gives a trial. In comparisons a right answer meets the wrong one, and every other text the right one.

        Which of them stands first alternates with the rows, and an addition does not change it.
        """
        row = self.rows[place]
        if not self.subject.pairwise:
            return Trial(place, text, family=family, name=name)
        against = row.bad if is_good else row.good
        return Trial(place, text, against or "", self._second(place, is_good=is_good), family, name)

    @staticmethod
    def _second(place: int, *, is_good: bool) -> bool:
        return (place % 2 == 1) == is_good

    def _bare(self) -> list[Trial]:
        """Gives the trials of answers as they are: of each, or of each pair once."""
        trials = []
        for place, row in enumerate(self.rows):
            texts = [row.good] if self.subject.pairwise else [row.good, row.bad, *(one.text for one in row.answers)]
            for text in dict.fromkeys(text for text in texts if text is not None):
                trials.append(self._trial(place, text, None, "", is_good=True))
        return trials

    def _note(self, trials: Sequence[Trial], verdicts: Sequence[Verdict]) -> None:
        for trial, verdict in zip(trials, verdicts, strict=True):
            self.bare[trial.row, trial.text] = verdict
            if self.subject.pairwise:
                lost = None if verdict.score is None else 1 - verdict.score
                self.bare[trial.row, trial.against] = verdict._replace(score=lost)

    def _accepted(self, texts: Sequence[str | None]) -> Share:
        """Gives how many of these texts, one a row, are accepted as they are."""
        verdicts = [self.bare[place, text] for place, text in enumerate(texts) if text is not None]
        scored = [one for one in verdicts if one.score is not None]
        return Share(sum(is_accepted(one, self.settings.accept) for one in scored), len(scored))

    def _tried(self, asked: Scorer) -> list[Tried]:
        pairs = [pair for place in range(len(self.rows)) for pair in self._additions(place)]
        verdicts = self._score(asked, [trial for trial, _ in pairs])
        return [Tried(trial, verdict, before) for (trial, before), verdict in zip(pairs, verdicts, strict=True)]

    def _additions(self, place: int) -> Iterator[tuple[Trial, Verdict]]:
        """Gives what is tried on a row, each with the verdict on the same answer as it is."""
        row = self.rows[place]
        before = self.bare[place, row.bad]
        attacked = before.score is not None and not is_accepted(before, self.settings.accept)
        words = {is_good: self.subject.words(self._second(place, is_good=is_good)) for is_good in (True, False)}
        for family, recipe in RECIPES.items():
            if row.good is not None:
                twin = filled(recipe.benign, row.good, words[True])
                yield self._trial(place, twin, family, "", is_good=True), self.bare[place, row.good]
            for name, text in recipe.attacks.items():
                attack = filled(text, row.bad, words[False])
                if attacked and not row.gives_away(attack):
                    yield self._trial(place, attack, family, name, is_good=False), before
        for text in content_free_texts(place):
            if not row.gives_away(text):
                yield self._trial(place, text, Family.CONTENT_FREE, repr(text), is_good=False), _ALONE

    def _families(self, tried: Sequence[Tried]) -> Mapping[Family, FamilyResult]:
        found = {}
        for family in Family:
            own = [one for one in tried if one.trial.family is family]
            found[family] = family_result(own, self.rows, self.settings.accept)
            attacks = [one for one in own if one.trial.name]
            if not attacks:
                self.not_possible[family] = "no wrong answer that the judge refuses as it is, and was scored"
            elif not found[family].accepted.of:
                self.not_possible[family] = "none of its attacks was scored"
        if all(row.good is None for row in self.rows):
            self.not_possible["benign drift"] = "no row has a right answer"
        return found

    def _position(self) -> Position | None:
        if not self.subject.pairwise:
            self.not_possible["position"] = "the judge grades one answer at a time; a PairwiseJudge has positions"
            return None
        trials = [
            Trial(place, row.good or "", row.bad, second)
            for second in (False, True)
            for place, row in enumerate(self.rows)
        ]
        with self._scorer(self.subject.in_one_order()) as asked:
            verdicts = self._score(asked, trials)
        return position(verdicts[: len(self.rows)], verdicts[len(self.rows) :])

    def _stability(self, trials: Sequence[Trial], once: list[Verdict]) -> Stability | None:
        if self.settings.samples < 2:
            self.not_possible["stability"] = "each answer was judged once; raise --samples"
            return None
        with self._scorer(self.subject.without_cache()) as asked:
            # One round after another: equal questions in flight would be asked as one.
            again = [self._score(asked, trials) for _ in range(self.settings.samples - 1)]
        return stability([once, *again], self.settings.accept)

    def _labelled(self) -> list[tuple[Labelled, Verdict]]:
        """Gives the labelled answers that were judged; of a pairwise judge those of whole pairs."""
        return [
            (one, self.bare[place, one.text])
            for place, row in enumerate(self.rows)
            if row.is_pair or not self.subject.pairwise
            for one in row.answers
        ]

    def _calibration(self) -> Calibration | None:
        judged = self._labelled()
        if not judged:
            needs = "chosen and rejected" if self.subject.pairwise else "chosen and rejected, or completion and label"
            self.not_possible["calibration"] = f"the rows have no {needs}"
            return None
        pairs = [
            (self.bare[place, row.good], self.bare[place, row.bad])
            for place, row in enumerate(self.rows)
            if row.is_pair and row.good is not None
        ]
        alone = [] if self.subject.pairwise else judged
        return calibration(alone, pairs, self.settings.accept, graded=self.data.graded)

    def _self_preference(self) -> SelfPreference | None:
        judged = self._labelled()
        models = sorted({one.model for one, _ in judged if one.model is not None})
        if not models:
            why = "no column says which model wrote an answer (chosen_model and rejected_model, or model)"
        elif self.data.graded:
            why = "labels are grades, not right and wrong"
        else:
            found = self_preference(judged, self.subject.models, self.settings.accept)
            if found is not None:
                return found
            of = ", ".join(self.subject.models) or "no model"
            why = f"it takes answers of the judge's own family ({of}) and of others; there are {', '.join(models)}"
        self.not_possible["self-preference"] = why
        return None
