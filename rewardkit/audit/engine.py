"""The engine of audits: scores in workers what ``attacks``, ``exploits`` or the rounds of a judge try."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

from rewardkit.audit.equal_golds import (
    EqualGolds,
    GoldTrial,
    PayLevels,
    Writer,
    compared_rows,
    cross_trials,
    equal_places,
    own_trials,
)
from rewardkit.audit.honest import BARE, Honest
from rewardkit.audit.parts import NO_PATHS, PathCount
from rewardkit.audit.probe import NEEDS_FRAME, Family, Probe
from rewardkit.audit.rows import AuditRow, ChosenRows, with_donors
from rewardkit.audit.texts import other_words
from rewardkit.declare.compose import Composable
from rewardkit.declare.decorator import Reward
from rewardkit.forms import Form as ValueForm
from rewardkit.scorer import Scorer
from rewardkit.types import Cause, Outcome, Rollout, Status, Text

Tick = Callable[[int, int], None]  # takes the number of calls done, and of calls known so far

_CHARS_A_TOKEN = 4
BASE = (
    "",
    "I do not know.",
    "Well, let us see about that.",
)  # completions that earn nothing with any reward that reads answers
_UNTRIED = Outcome(Status.FAILED, None, cause=Cause.INFRASTRUCTURE, error="not tried: the audit was over")


@dataclass(frozen=True, slots=True)
class AuditSettings:
    """The settings of one audit; shares are of the way from a row's floor to its full level, 0 to 1."""

    accept_share: float = 0.5  # A completion is paid if it earns more than this share; at 1 only the full level is
    slow_share: float = 0.5  # A call is slow if it takes more than this share of the reward's deadline, 0 to 1
    heavy_rows: int = 2  # Rows on which the heavy probes are tried
    amount_rows: int = 3  # Rows on which more and more of one thing is tried
    repeated_rows: int = 5  # Rows whose honest forms are scored a second time
    time_limit_s: float = 1800.0  # Seconds after which nothing more is tried; what was tried is judged
    skipped: Mapping[str, str] = field(default_factory=dict)  # Families and rules that the author leaves out, and why
    gain_share: float = 0.1  # More than this share beyond the run's best is a gain for a run's completion, changed
    reasoning: bool = False  # Whether the reward is to pay for reasoning: a run's completion without it must lose


class ScoredProbe(NamedTuple):
    """A probe that was scored, with its row's index among those chosen."""

    row: int
    probe: Probe
    outcome: Outcome


class Repeat(NamedTuple):
    """The first and the second outcome of an honest form."""

    row: int
    form: Honest
    first: Outcome
    second: Outcome


class ScoredForm(NamedTuple):
    """An honest form with what it earned."""

    answer: Honest
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Trials:
    """Everything that was scored, by row."""

    honest: list[list[ScoredForm]]
    base: list[list[Outcome]]  # The outcomes of the completions in `BASE`
    attacks: list[ScoredProbe]
    swapped: dict[int, Outcome]  # The best honest form under another row's gold column; rows without one are left out
    rivals: dict[int, Outcome]  # Another row's gold in the frame that is paid best
    unrelated: dict[int, Outcome]  # Other words of the prompt's length
    again: list[Repeat]
    equal_golds: list[EqualGolds] = field(default_factory=list)  # Of rows and their donors, which were left out
    untried: int = 0  # How many completions were not tried before the audit was over
    is_interrupted: bool = False  # Whether the user ended it
    paths: PathCount = NO_PATHS  # Changes of the paths of JSON answers

    @property
    def attacked_frames(self) -> dict[str, int]:
        """The frames in which wrong answers were tried, the bare form first, each with the number of its rows."""
        rows: dict[str, set[int]] = {}
        answers = [trial for trial in self.attacks if trial.probe.family in NEEDS_FRAME]
        for trial in sorted(answers, key=lambda trial: bool(trial.probe.frame)):
            rows.setdefault(trial.probe.frame or BARE.name, set()).add(trial.row)
        return {frame: len(own) for frame, own in rows.items()}


def rollout_of(leaves: Sequence[Reward[..., Any]], row: AuditRow, probe: Probe) -> Rollout:
    """Return a completion of a row as rewards take it: as text, or as messages where one of them asks for these."""
    parameters = [p.taken for leaf in leaves for p in leaf.spec.parameters if p.taken is not None]
    talks = {parameter.name for parameter in parameters if parameter.form is ValueForm.MESSAGES}
    prompt: Text = row.prompt
    if "prompt" in talks and isinstance(prompt, str):
        prompt = [{"role": "user", "content": prompt}]
    completion: Text = probe.text
    if probe.messages is not None:
        completion = list(probe.messages)
    elif talks - {"prompt"} or not isinstance(prompt, str):
        completion = [{"role": "assistant", "content": probe.text}]
    columns = dict(row.columns if probe.columns is None else probe.columns)
    ids = range(-(-len(probe.text) // _CHARS_A_TOKEN))  # they stand in for a tokenizer's
    return Rollout(prompt, completion, columns, completion_ids=[*ids])


LeafOutcomes: TypeAlias = dict[int, tuple[Outcome, Mapping[Reward[..., Any], Outcome]]]
"""What the leaves gave a completion, by the ``id()`` of the outcome made of it, which stands beside and so lives on."""


class Rounds:
    """The rounds of one audit, of a reward or of a judge: completions are scored, the next after what the last earned.

    After its time limit it scores no more.
    """

    def __init__(self, reward: Composable, tick: Tick, time_limit_s: float = math.inf) -> None:
        self._reward = reward
        self._tick = tick
        self._end = time.monotonic() + time_limit_s
        self._done = self._total = 0
        self.leaf_outcomes: LeafOutcomes = {}

    def _stream(self, scorer: Scorer, rollouts: Sequence[Rollout]) -> Iterator[tuple[int, Outcome]]:
        """Yield each completion's index and outcome as it becomes known, until the time limit."""
        leaves = {leaf.name: leaf for leaf in self._reward.leaves}
        results: list[dict[Reward[..., Any], Outcome]] = [{} for _ in rollouts]
        self._total += len(rollouts)
        for finished in scorer.stream(rollouts) if rollouts and time.monotonic() < self._end else ():
            outcomes = results[finished.row]
            outcomes[leaves[finished.reward]] = finished.outcome
            if len(outcomes) == len(leaves):
                self._done += 1
                combined = self._reward.combine(outcomes)
                if len(leaves) > 1:
                    self.leaf_outcomes[id(combined)] = combined, outcomes
                yield finished.row, combined
            self._tick(self._done, self._total)
            if time.monotonic() >= self._end:
                break


class ProbeRounds(Rounds, ABC):
    """The rounds of an audit of a reward: completions of rows, scored by its plain parts."""

    def __init__(
        self, reward: Composable, rows: ChosenRows, settings: AuditSettings, scorer: Scorer, tick: Tick
    ) -> None:
        super().__init__(reward, tick, settings.time_limit_s)
        self._chosen = rows
        self._rows = list(rows.rows)
        self._settings = settings
        self._scorer = scorer
        self._untried = 0
        self._is_interrupted = False
        self._equal: list[EqualGolds] = []

    @abstractmethod
    def run(self) -> Trials:
        """Score everything, until the time is over or the user ends it."""

    def _score(self, tries: Sequence[tuple[int, Probe]]) -> list[Outcome]:
        """Return the outcomes of probes on rows, by the rows' indices."""
        return self._score_on([(self._rows[index], probe) for index, probe in tries])

    def _score_on(self, tries: Sequence[tuple[AuditRow, Probe]]) -> list[Outcome]:
        """Return the outcomes of probes on rows; those that time or Ctrl-C left untried count as lost."""
        outcomes = [_UNTRIED] * len(tries)
        try:
            rollouts = [self._rollout(row, probe) for row, probe in tries]
            for index, outcome in self._stream(self._scorer, rollouts):
                outcomes[index] = outcome
        except KeyboardInterrupt:
            if not self._done:
                raise  # nothing is known yet
            self._end, self._is_interrupted = 0.0, True
        self._untried += outcomes.count(_UNTRIED)
        return outcomes

    def _rollout(self, row: AuditRow, probe: Probe) -> Rollout:
        return rollout_of(self._reward.leaves, row, probe)

    def _honest(self, forms: Sequence[Sequence[Honest]]) -> tuple[list[list[ScoredForm]], list[list[Outcome]]]:
        """Score the honest forms of each row, and what earns nothing."""
        tries = [(index, form_probe(form)) for index, row_forms in enumerate(forms) for form in row_forms]
        bases = [(index, Probe(Family.FORMS, "base", text)) for index in range(len(self._rows)) for text in BASE]
        outcomes = iter(self._score([*tries, *bases]))
        honest = [[ScoredForm(form, next(outcomes)) for form in row_forms] for row_forms in forms]
        return honest, [[next(outcomes) for _ in BASE] for _ in self._rows]

    def _drop_equal_golds(self, writers: Sequence[Writer | None], levels: Sequence[PayLevels | None]) -> None:
        """Take from each row the donors whose golds mean the same as its own, by what the answers earn."""
        rows = [compared_rows(row) if writers[index] else [row] for index, row in enumerate(self._rows)]
        scores: list[dict[tuple[int, int], float | None]] = [{} for _ in rows]

        def score(trials: Sequence[tuple[int, GoldTrial]]) -> None:
            outcomes = self._score_on([(trial.row, trial.probe) for _, trial in trials])
            for (index, trial), outcome in zip(trials, outcomes, strict=True):
                scores[index][trial.answer, trial.target] = outcome.score

        own = [(i, trial) for i, write in enumerate(writers) if write for trial in own_trials(rows[i], write)]
        score(own)
        doubtful = [
            index
            for index, level in enumerate(levels)
            if level is not None and any((earned or level.limit) > level.limit for earned in scores[index].values())
        ]
        score([(i, trial) for i in doubtful if (write := writers[i]) for trial in cross_trials(rows[i], write)])
        for index in doubtful:
            level = levels[index]
            if level is not None:
                twins = equal_places(len(rows[index]), scores[index], level)
                self._drop_donors(index, [rows[index][twin] for twin in twins])

    def _drop_donors(self, index: int, twins: Sequence[AuditRow]) -> None:
        """Take the donors with the golds of ``twins`` from a row, and note the pairs."""
        row, column = self._rows[index], self._chosen.gold_column
        if not twins or row.gold is None or column is None:
            return
        keys = {twin.gold.key for twin in twins if twin.gold}
        donors = [donor for donor in row.donors if donor.gold is None or donor.gold.key not in keys]
        self._rows[index] = with_donors(row, donors, column)
        self._equal += [EqualGolds(row.line, row.gold.text, twin.line, twin.gold.text) for twin in twins if twin.gold]

    def _compare(
        self, best: Sequence[Honest | None], rivals: Sequence[tuple[int, Probe]] = ()
    ) -> tuple[dict[int, Outcome], dict[int, Outcome], dict[int, Outcome]]:
        """Score the best forms under another row's gold, the rivals, and words of the prompt's length, each by row."""
        swaps = [
            (index, replace(form_probe(form), columns=row.swapped))
            for index, (row, form) in enumerate(zip(self._rows, best, strict=True))
            if form is not None and row.swapped is not None
        ]
        echoes = [(index, probe) for index, row in enumerate(self._rows) for probe in other_words(row)]
        outcomes = iter(self._score([*swaps, *rivals, *echoes]))
        first, second, third = ({index: next(outcomes) for index, _ in tries} for tries in (swaps, rivals, echoes))
        return first, second, third

    def _tried(self, tries: Sequence[tuple[int, Probe]]) -> list[ScoredProbe]:
        """Score probes on rows, and return them with their outcomes."""
        outcomes = self._score(tries)
        return [ScoredProbe(index, probe, outcome) for (index, probe), outcome in zip(tries, outcomes, strict=True)]

    def _again(self, honest: Sequence[Sequence[ScoredForm]]) -> list[Repeat]:
        """Score honest forms once more, the last first, after everything else."""
        before = [(index, form, outcome) for index, forms in enumerate(honest) for form, outcome in forms][::-1]
        again = self._score([(index, form_probe(form)) for index, form, _ in before])
        return [Repeat(index, form, was, now) for (index, form, was), now in zip(before, again, strict=True)]


def best_of(forms: Sequence[ScoredForm]) -> ScoredForm | None:
    """Return the form that is paid best, the first of several; ``None`` where none has a score."""
    scored = [form for form in forms if form.outcome.score is not None]
    return max(scored, key=lambda form: form.outcome.score or 0.0, default=None)


def pay_levels(forms: Sequence[ScoredForm], base: Sequence[Outcome], settings: AuditSettings) -> PayLevels | None:
    """Return what the best honest form earns, and the score above which one is paid; ``None`` without a score."""
    scores = [outcome.score for _, outcome in forms if outcome.score is not None]
    if not scores:
        return None
    low = min([*scores, *(outcome.score for outcome in base if outcome.score is not None)])
    return PayLevels(max(scores), low + settings.accept_share * (max(scores) - low))


def form_probe(form: Honest) -> Probe:
    return Probe(Family.FORMS, form.name, form.text, form.counted, messages=form.messages)


def differ(was: Outcome, now: Outcome) -> bool:
    """Return whether two outcomes of one call differ; they do not count if either was lost or timed out."""
    if was.is_lost or now.is_lost or Cause.TIMEOUT in (was.cause, now.cause):
        return False
    return was.score != now.score or was.status is not now.status
