"""What is tried on the rows of a file: honest forms first, then attacks in the frames that were paid."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from rewardkit.audit.answers import of_other_rows, on_the_gold, wrong_work
from rewardkit.audit.bulk import bombs, long_texts
from rewardkit.audit.engine import AuditSettings, ProbeRounds, ScoredForm, ScoredProbe, Trials, best_of, form_probe
from rewardkit.audit.honest import BARE, FRAMES, THINK_ANSWER, Frame, right_answers, spellings_in
from rewardkit.audit.probe import Family, Probe, Wrong, first_of_each
from rewardkit.audit.programs import endless_programs, programs
from rewardkit.audit.rows import AuditRow
from rewardkit.audit.texts import broken_frames, echo, empty_frames, for_a_judge, nothing
from rewardkit.types import Cause, Outcome

_PAID_FRAMES = 3


class AttackRounds(ProbeRounds):
    """The rounds of an audit on rows."""

    def run(self) -> Trials:
        """Score honest forms, then attacks, then the honest forms again."""
        honest, base = self._honest([right_answers(row) for row in self._rows])
        frames = [paid_frames(forms, outcomes, self._settings) for forms, outcomes in zip(honest, base, strict=True)]
        self._spell(honest, frames)
        rivals = [
            (index, frames[index][0].probe(Family.FORMS, Wrong("rival", row.others[0].text)))
            for index, row in enumerate(self._rows)
            if row.others and frames[index]
        ]
        best = [best_of(forms) for forms in honest]
        comparisons = self._compare([None if form is None else form.answer for form in best], rivals)
        light = ((index, probe) for index, row in enumerate(self._rows) for probe in attacks_on(row, frames[index]))
        attacks = self._tried(_once(light)) + self._heavy(frames)
        again = self._again(honest[: self._settings.repeated_rows])
        return Trials(honest, base, attacks, *comparisons, again, self._untried, self._is_interrupted)

    def _spell(self, honest: list[list[ScoredForm]], frames: Sequence[Sequence[Frame]]) -> None:
        """Score the gold's spellings in each row's best paid frame, and add them to ``honest``."""
        tries = [
            (index, form)
            for index, row in enumerate(self._rows)
            if row.gold is not None and frames[index] and not row.is_code
            for form in spellings_in(row.gold, frames[index][0])
        ]
        outcomes = self._score([(index, form_probe(form)) for index, form in tries])
        for (index, form), outcome in zip(tries, outcomes, strict=True):
            honest[index].append(ScoredForm(form, outcome))

    def _heavy(self, frames: Sequence[Sequence[Frame]]) -> list[ScoredProbe]:
        """Try the heavy probes row by row; what was slow on one row is not tried on the next."""
        done: list[ScoredProbe] = []
        slow: set[str] = set()
        for index, row in enumerate(self._rows[: self._settings.heavy_rows]):
            endless = endless_programs(row) if row.is_code else ()
            probes = chain(bombs(row.gold, frames[index]), long_texts(row.gold), endless)
            trials = self._tried(_once((index, probe) for probe in probes if probe.full_name not in slow))
            slow |= {trial.probe.full_name for trial in trials if trial.outcome.cause is Cause.TIMEOUT}
            done += trials
        return done


def attacks_on(row: AuditRow, frames: Sequence[Frame]) -> Iterator[Probe]:
    """Yield the attacks for one row, without the heavy ones."""
    yield from nothing(row)
    yield from echo(row, frames)
    yield from for_a_judge(row, frames)
    yield from of_other_rows(row)
    if row.is_code:
        yield from programs(row)
        return
    yield from empty_frames(frames)
    if frames and all(frame.tags for frame in frames):
        yield from broken_frames(frames)
    if row.gold is not None:
        yield from on_the_gold(row, frames or (BARE, FRAMES[1], THINK_ANSWER))
        yield from wrong_work(row)


def paid_frames(forms: Sequence[ScoredForm], base: Sequence[Outcome], settings: AuditSettings) -> tuple[Frame, ...]:
    """Return the three best paid frames, the reference's own last, and all paid ones that are the data's own."""
    scores = [outcome.score for _, outcome in forms if outcome.score is not None]
    if not scores:
        return ()
    low = min([*scores, *(outcome.score for outcome in base if outcome.score is not None)])
    full = max(scores)
    limit = low + settings.accept_share * (full - low)
    paid = [
        (form.frame, outcome.score)
        for form, outcome in forms
        if form.frame is not None and outcome.score is not None and (outcome.score > limit or outcome.score == full)
    ]
    paid.sort(key=lambda pair: (not pair[0].common, -pair[1]))  # a reference's own frame last
    return tuple(frame for rank, (frame, _) in enumerate(paid) if rank < _PAID_FRAMES or frame.data)


def _once(tries: Iterable[tuple[int, Probe]]) -> list[tuple[int, Probe]]:
    """Leave out what a family tries twice on a row."""
    return first_of_each(tries, lambda pair: (pair[0], pair[1].key))
