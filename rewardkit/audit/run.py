"""The course of an audit: honest forms first, then attacks in the frames that were paid, all in workers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from rewardkit.audit.answers import of_other_rows, on_the_gold, wrong_work
from rewardkit.audit.bulk import bombs, long_texts
from rewardkit.audit.honest import BARE, FRAMES, THINK_ANSWER, Frame, Honest, framed, spelled
from rewardkit.audit.probe import Family, Probe, Wrong
from rewardkit.audit.programs import endless_programs, programs
from rewardkit.audit.rows import AuditRow, ChosenRows
from rewardkit.audit.texts import broken_frames, echo, empty_frames, for_a_judge, nothing, other_words
from rewardkit.declare.compose import Composable
from rewardkit.declare.decorator import Reward
from rewardkit.forms import Form
from rewardkit.scorer import Scorer
from rewardkit.types import Cause, Outcome, Rollout, Status, Text

Tick = Callable[[int, int], None]
"""Told of calls done and calls known so far."""

_PAID_FRAMES = 3
_CHARS_A_TOKEN = 4
BASE = ("", "I do not know.")
"""Completions that earn nothing with any reward that reads answers."""


@dataclass(frozen=True, slots=True)
class AuditSettings:
    """The settings of one audit.

    Attributes:
        accept_share: A completion is paid if its score is more than this share of the way from the row's floor
            to its full level, 0 to 1; at 1 only the full level is.
        slow_share: A call is slow if it takes more than this share of the reward's deadline, 0 to 1.
        heavy_rows: Rows on which the heavy probes are tried.
        repeated_rows: Rows whose honest forms are scored a second time.
        time_limit_s: Seconds after which nothing more is tried; what was tried is judged.
        skipped: Families and rules of thumb that the author calls not applicable, with the reason.
        gain_share: What a run's completion, changed, may earn beyond the run's best, as a share of the way from the
            floor to its full level; more is a gain.
        reasoning: Whether the reward is to pay for the reasoning, so that a run's completion without it must lose.
    """

    accept_share: float = 0.5
    slow_share: float = 0.5
    heavy_rows: int = 2
    repeated_rows: int = 5
    time_limit_s: float = 1800.0
    skipped: Mapping[str, str] = field(default_factory=dict)
    gain_share: float = 0.1
    reasoning: bool = False


@dataclass(frozen=True, slots=True)
class ScoredProbe:
    """A probe that was scored, with its row's place among those chosen."""

    row: int
    probe: Probe
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Trials:
    """Everything that was scored, by row.

    Attributes:
        base: The outcomes of the completions in :data:`BASE`.
        swapped: The best honest form under another row's gold column; rows without one are left out.
        rivals: Another row's gold in the frame that is paid best.
        unrelated: Other words of the prompt's length.
        again: Honest forms with their first and second outcome.
        untried: How many completions were not tried before the time was over.
    """

    honest: list[list[tuple[Honest, Outcome]]]
    base: list[list[Outcome]]
    attacks: list[ScoredProbe]
    swapped: dict[int, Outcome]
    rivals: dict[int, Outcome]
    unrelated: dict[int, Outcome]
    again: list[tuple[int, Honest, Outcome, Outcome]]
    untried: int = 0


def rollout_of(leaves: Sequence[Reward[..., Any]], row: AuditRow, probe: Probe) -> Rollout:
    """Return a completion of a row as rewards take it: as text, or as messages where one of them asks for these."""
    taken = [p.taken for leaf in leaves for p in leaf.spec.parameters if p.taken is not None]
    talks = {one.name for one in taken if one.form is Form.MESSAGES}
    prompt: Text = row.prompt
    if "prompt" in talks and isinstance(prompt, str):
        prompt = [{"role": "user", "content": prompt}]
    completion: Text = probe.text
    if probe.said is not None:
        completion = list(probe.said)
    elif talks - {"prompt"} or not isinstance(prompt, str):
        completion = [{"role": "assistant", "content": probe.text}]
    columns = dict(row.columns if probe.columns is None else probe.columns)
    ids = range(-(-len(probe.text) // _CHARS_A_TOKEN))  # they stand in for a tokenizer's
    return Rollout(prompt, completion, columns, completion_ids=[*ids])


def run(reward: Composable, rows: ChosenRows, settings: AuditSettings, scorer: Scorer, tick: Tick) -> Trials:
    """Score honest forms and attacks in a runtime of the reward's plain parts, without a cache.

    Raises:
        RewardError: The reward cannot be run at all: a column it needs is missing, a worker cannot load it.
    """
    return _Course(rows.rows, settings, TimedScorer(reward, scorer, settings.time_limit_s, tick)).run()


class TimedScorer:
    """Scores completions in a runtime of the reward's plain parts; after its time limit it scores no more.

    What was not tried in time counts as lost through no fault of the reward, as calls of a lost worker do.

    Attributes:
        untried: How many completions were not tried in time.
    """

    def __init__(self, reward: Composable, scorer: Scorer, time_limit_s: float, tick: Tick) -> None:
        self._reward = reward
        self.leaves = reward.leaves
        self._scorer = scorer
        self._tick = tick
        self._end = time.monotonic() + time_limit_s
        self._done = self._known = self.untried = 0

    def score(self, rollouts: Sequence[Rollout]) -> list[Outcome]:
        """Return the outcomes of completions, in their order."""
        found: list[dict[str, Outcome]] = [{} for _ in rollouts]
        self._known += len(rollouts)
        if rollouts and time.monotonic() < self._end:
            for finished in self._scorer.stream(rollouts):
                found[finished.row][finished.reward] = finished.outcome
                self._done += len(found[finished.row]) == len(self.leaves)
                self._tick(self._done, self._known)
                if time.monotonic() >= self._end:
                    break
        self.untried += sum(len(outcomes) < len(self.leaves) for outcomes in found)
        return [self._combined(outcomes) for outcomes in found]

    def _combined(self, outcomes: dict[str, Outcome]) -> Outcome:
        if len(outcomes) < len(self.leaves):
            return Outcome(Status.FAILED, None, cause=Cause.INFRASTRUCTURE, error="not tried: the time was over")
        return self._reward.combine({leaf: outcomes[leaf.name] for leaf in self.leaves})


class _Course:
    """One audit on its way: makes completions of rows and has them scored."""

    def __init__(self, rows: Sequence[AuditRow], settings: AuditSettings, scorer: TimedScorer) -> None:
        self._rows = rows
        self._settings = settings
        self._scorer = scorer

    def run(self) -> Trials:
        honest, base = self._honest()
        frames = [paid_frames(forms, outcomes, self._settings) for forms, outcomes in zip(honest, base, strict=True)]
        self._spell(honest, frames)
        swapped, rivals, unrelated = self._compare(honest, frames)
        light = [(place, probe) for place, row in enumerate(self._rows) for probe in attacks_on(row, frames[place])]
        attacks = self._tried(_once(light)) + self._heavy(frames)
        again = self._again(honest)
        return Trials(honest, base, attacks, swapped, rivals, unrelated, again, self._scorer.untried)

    def _score(self, tries: Sequence[tuple[int, Probe]]) -> list[Outcome]:
        """Return the outcomes of completions, in their order."""
        leaves = self._scorer.leaves
        return self._scorer.score([rollout_of(leaves, self._rows[place], probe) for place, probe in tries])

    def _honest(self) -> tuple[list[list[tuple[Honest, Outcome]]], list[list[Outcome]]]:
        forms = [framed(row) for row in self._rows]
        tries = [(place, form_probe(one)) for place, listed in enumerate(forms) for one in listed]
        bases = [(place, Probe(Family.FORMS, "base", text)) for place in range(len(self._rows)) for text in BASE]
        outcomes = iter(self._score([*tries, *bases]))
        honest = [[(one, next(outcomes)) for one in listed] for listed in forms]
        return honest, [[next(outcomes) for _ in BASE] for _ in self._rows]

    def _spell(self, honest: list[list[tuple[Honest, Outcome]]], frames: Sequence[Sequence[Frame]]) -> None:
        """Add the spellings of the gold in the frame that is paid best."""
        tries: list[tuple[int, Honest]] = []
        for place, row in enumerate(self._rows):
            if row.gold is not None and frames[place] and not row.is_code:
                tries += [(place, one) for one in spelled(row.gold, frames[place][0])]
        outcomes = self._score([(place, form_probe(one)) for place, one in tries])
        for (place, one), outcome in zip(tries, outcomes, strict=True):
            honest[place].append((one, outcome))

    def _compare(
        self, honest: Sequence[Sequence[tuple[Honest, Outcome]]], frames: Sequence[Sequence[Frame]]
    ) -> tuple[dict[int, Outcome], dict[int, Outcome], dict[int, Outcome]]:
        """Score what tells whether the reward reads the gold and the prompt."""
        swaps, rivals, echoes = [], [], []
        for place, row in enumerate(self._rows):
            best = best_of(honest[place])
            if best is not None and row.swapped is not None:
                swaps.append((place, replace(form_probe(best[0]), columns=row.swapped)))
            if row.others and frames[place]:
                rival = Wrong("rival", row.others[0].text)
                rivals.append((place, frames[place][0].probe(Family.FORMS, rival)))
            echoes += [(place, probe) for probe in other_words(row)]
        outcomes = iter(self._score([*swaps, *rivals, *echoes]))
        first, second, third = ({place: next(outcomes) for place, _ in tries} for tries in (swaps, rivals, echoes))
        return first, second, third

    def _heavy(self, frames: Sequence[Sequence[Frame]]) -> list[ScoredProbe]:
        """Try the heavy probes row by row; what was slow on one row is not tried on the next."""
        done: list[ScoredProbe] = []
        slow: set[str] = set()
        for place in range(min(self._settings.heavy_rows, len(self._rows))):
            row = self._rows[place]
            endless = endless_programs(row) if row.is_code else ()
            probes = chain(bombs(row.gold, frames[place]), long_texts(row.gold), endless)
            tries = [(place, probe) for probe in probes if probe.full_name not in slow]
            found = self._tried(_once(tries))
            slow |= {one.probe.full_name for one in found if one.outcome.cause is Cause.TIMEOUT}
            done += found
        return done

    def _again(self, honest: Sequence[Sequence[tuple[Honest, Outcome]]]) -> list[tuple[int, Honest, Outcome, Outcome]]:
        """Score honest forms once more, the last first, after everything else."""
        first = [
            (place, form, outcome)
            for place in range(min(self._settings.repeated_rows, len(self._rows)))
            for form, outcome in honest[place]
        ][::-1]
        second = self._score([(place, form_probe(form)) for place, form, _ in first])
        return [(place, form, was, now) for (place, form, was), now in zip(first, second, strict=True)]

    def _tried(self, tries: Sequence[tuple[int, Probe]]) -> list[ScoredProbe]:
        outcomes = self._score(tries)
        return [ScoredProbe(place, probe, outcome) for (place, probe), outcome in zip(tries, outcomes, strict=True)]


def attacks_on(row: AuditRow, frames: Sequence[Frame]) -> Iterator[Probe]:
    """Return the attacks for one row, without the heavy ones."""
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


def paid_frames(
    forms: Sequence[tuple[Honest, Outcome]], base: Sequence[Outcome], settings: AuditSettings
) -> tuple[Frame, ...]:
    """Return the frames that are paid on a row, the best first: at most three, and the data's own in any case.

    A reference's own words come last among the three.
    """
    scores = [outcome.score for _, outcome in forms if outcome.score is not None]
    if not scores:
        return ()
    low, full = min([*scores, *(one.score for one in base if one.score is not None)]), max(scores)
    limit = low + settings.accept_share * (full - low)
    paid = [
        (form.frame, outcome.score)
        for form, outcome in forms
        if form.frame is not None and outcome.score is not None and (outcome.score > limit or outcome.score == full)
    ]
    paid.sort(key=lambda pair: (not pair[0].common, -pair[1]))
    return tuple(frame for place, (frame, _) in enumerate(paid) if place < _PAID_FRAMES or frame.data)


def best_of(forms: Sequence[tuple[Honest, Outcome]]) -> tuple[Honest, Outcome] | None:
    """Return the form that is paid best, the first of several; ``None`` where none has a score."""
    scored = [pair for pair in forms if pair[1].score is not None]
    return max(scored, key=lambda pair: pair[1].score or 0.0) if scored else None


def form_probe(form: Honest) -> Probe:
    """Return an honest form as what is tried."""
    return Probe(Family.FORMS, form.name, form.text, said=form.said)


def _once(tries: Sequence[tuple[int, Probe]]) -> list[tuple[int, Probe]]:
    """Leave out what a family tries twice on a row."""
    kept: dict[tuple[int, Family, str, str], tuple[int, Probe]] = {}
    for place, probe in tries:
        said = "" if probe.said is None else repr(probe.said)
        kept.setdefault((place, probe.family, probe.text, said), (place, probe))
    return list(kept.values())
