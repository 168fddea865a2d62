"""What is tried on the rows of a file: honest forms first, then attacks in the frames that were paid."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

from rewardkit.audit.amounts import content_free, ladders
from rewardkit.audit.answers import of_other_rows, on_the_gold, on_the_references, wrong_work
from rewardkit.audit.bulk import bombs, long_texts
from rewardkit.audit.constant_outputs import constant_programs
from rewardkit.audit.engine import (
    AuditSettings,
    ProbeRounds,
    ScoredForm,
    ScoredProbe,
    Trials,
    best_of,
    form_probe,
    pay_levels,
)
from rewardkit.audit.equal_golds import Writer
from rewardkit.audit.gold import in_words
from rewardkit.audit.honest import (
    BARE,
    FRAMES,
    JSON_FENCE,
    REFERENCE,
    THINK_ANSWER,
    TRUTH_WORDS,
    Frame,
    in_calls,
    right_answers,
    spellings_in,
)
from rewardkit.audit.parts import PathCoverage
from rewardkit.audit.polyglot_programs import endless_polyglot_programs, polyglot_programs
from rewardkit.audit.probe import Family, Probe, Wrong, first_of_each
from rewardkit.audit.programs import code_language, endless_programs, programs
from rewardkit.audit.rows import AuditRow
from rewardkit.audit.texts import broken_frames, echo, empty_frames, for_a_judge, nothing
from rewardkit.types import Cause, Outcome
from sandbox import PYTHON

_PAID_FRAMES = 3


class AttackRounds(ProbeRounds):
    """The rounds of an audit on rows."""

    def run(self) -> Trials:
        """Score honest forms, then attacks, then the honest forms again."""
        honest, base = self._honest([right_answers(row) for row in self._rows])
        for index, forms in enumerate(honest):
            self._take_word(index, forms)
        frames = [paid_frames(forms, outcomes, self._settings) for forms, outcomes in zip(honest, base, strict=True)]
        levels = [pay_levels(forms, outcomes, self._settings) for forms, outcomes in zip(honest, base, strict=True)]
        writers = [_writer(forms, row_frames) for forms, row_frames in zip(honest, frames, strict=True)]
        self._drop_equal_golds(writers, levels)
        self._spell(honest, frames)
        rivals = [
            (index, frames[index][0].probe(Family.FORMS, Wrong("rival", row.others[0].text)))
            for index, row in enumerate(self._rows)
            if row.others and frames[index]
        ]
        best = [best_of(forms) for forms in honest]
        comparisons = self._compare([None if form is None else form.answer for form in best], rivals)
        paths, rows = PathCoverage(self._chosen.seed), enumerate(self._rows)
        light = ((index, probe) for index, row in rows for probe in attacks_on(row, frames[index], paths))
        attacks = self._tried(_once(light)) + self._tried(self._amounts(best)) + self._heavy(frames)
        again = self._again(honest[: self._settings.repeated_rows])
        trials = Trials(honest, base, attacks, *comparisons, again, self._equal, self._untried, self._is_interrupted)
        return replace(trials, paths=paths.count())

    def _take_word(self, index: int, forms: Sequence[ScoredForm]) -> None:
        """Write a row's gold and its donors' in other words for true and false, where these are paid best."""
        row, column, best = self._rows[index], self._chosen.gold_column, best_of(forms)
        if row.gold is None or column is None or best is None or not best.answer.word:
            return
        pair = next(pair for pair in TRUTH_WORDS if best.answer.word in pair)
        donors = [replace(donor, gold=in_words(donor.gold, pair)) for donor in row.donors if donor.gold]
        others = tuple(in_words(gold, pair) for gold in row.others)
        self._rows[index] = replace(row, gold=in_words(row.gold, pair), others=others, donors=tuple(donors))

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

    def _amounts(self, best: Sequence[ScoredForm | None]) -> list[tuple[int, Probe]]:
        """Return more and more of one thing around the best honest form of the first rows."""
        forms = [(index, form) for index, form in enumerate(best) if form is not None and form.answer.messages is None]
        rows = [(index, self._rows[index], form) for index, form in forms if not self._rows[index].is_code]
        tries = [
            (i, probe)
            for i, row, form in rows[: self._settings.amount_rows]
            for probe in ladders(row, form.answer.text)
        ]
        return tries + [(i, probe) for i, row, _ in rows[: self._settings.amount_rows] for probe in content_free(row)]

    def _heavy(self, frames: Sequence[Sequence[Frame]]) -> list[ScoredProbe]:
        """Try the heavy probes row by row; what was slow on one row is not tried on the next."""
        done: list[ScoredProbe] = []
        slow: set[str] = set()
        for index, row in enumerate(self._rows[: self._settings.heavy_rows]):
            endless = _endless(row) if row.is_code else ()
            probes = chain(bombs(row.gold, frames[index]), long_texts(row.gold), endless)
            trials = self._tried(_once((index, probe) for probe in probes if probe.full_name not in slow))
            slow |= {trial.probe.full_name for trial in trials if trial.outcome.cause is Cause.TIMEOUT}
            done += trials
        return done


def attacks_on(row: AuditRow, frames: Sequence[Frame], paths: PathCoverage) -> Iterator[Probe]:
    """Yield the attacks for one row, without the heavy ones and without what is a reference of it."""
    return (probe for probe in _attacks_on(row, frames, paths) if not row.is_reference(probe.text, probe.messages))


def _attacks_on(row: AuditRow, frames: Sequence[Frame], paths: PathCoverage) -> Iterator[Probe]:
    yield from nothing(row)
    yield from echo(row, frames)
    yield from for_a_judge(row, frames)
    yield from of_other_rows(row)
    if row.is_code:
        language = code_language(row)
        yield from programs(row) if language == PYTHON else polyglot_programs(row, language)
        yield from constant_programs(row)
        return
    yield from empty_frames(frames)
    if frames and all(frame.tags for frame in frames):
        yield from broken_frames(frames)
    if row.gold is not None:
        yield from on_the_gold(row, frames or (BARE, FRAMES[1], THINK_ANSWER), paths)
        yield from wrong_work(row)
    else:
        yield from on_the_references(row)


def _endless(row: AuditRow) -> Iterator[Probe]:
    language = code_language(row)
    return endless_programs(row) if language == PYTHON else endless_polyglot_programs(row, language)


def paid_frames(forms: Sequence[ScoredForm], base: Sequence[Outcome], settings: AuditSettings) -> tuple[Frame, ...]:
    """Return the three best paid frames, the reference's own last, and of the paid ones all fences of JSON and of the
    data's own.
    """
    levels = pay_levels(forms, base, settings)
    if levels is None:
        return ()
    paid = [
        (form.frame, outcome.score)
        for form, outcome in forms
        if form.frame is not None
        and outcome.score is not None
        and (outcome.score > levels.limit or outcome.score == levels.full)
    ]
    paid.sort(key=lambda pair: (not pair[0].common, -pair[1]))  # a reference's own frame last
    ranked = enumerate(frame for frame, _ in paid)
    return tuple(frame for rank, frame in ranked if rank < _PAID_FRAMES or frame.data or frame == JSON_FENCE)


def _writer(forms: Sequence[ScoredForm], frames: Sequence[Frame]) -> Writer | None:
    """Return what writes another row's answer as it is paid on this one: in a frame, as calls, or as its reference."""
    if frames:
        return lambda row: frames[0].probe(Family.FORMS, Wrong("rival", row.gold.text)) if row.gold else None
    best = best_of(forms)
    if best is None or best.answer.frame is not None:
        return None
    name = best.answer.name
    if name == REFERENCE:
        return lambda row: Probe(Family.FORMS, "rival", row.references[0]) if row.references else None
    return lambda row: (
        next((form_probe(form) for form in in_calls(row.gold) if form.name == name), None) if row.gold else None
    )


def _once(tries: Iterable[tuple[int, Probe]]) -> list[tuple[int, Probe]]:
    """Leave out what a family tries twice on a row."""
    return first_of_each(tries, lambda pair: (pair[0], pair[1].key))
