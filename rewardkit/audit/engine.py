"""The engine of audits: scores in workers, until the time is over, what ``attacks`` or ``exploits`` try."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

from rewardkit.audit.honest import Honest
from rewardkit.audit.probe import Family, Probe
from rewardkit.audit.rows import AuditRow, ChosenRows
from rewardkit.audit.texts import other_words
from rewardkit.declare.compose import Composable
from rewardkit.declare.decorator import Reward
from rewardkit.forms import Form as ValueForm
from rewardkit.scorer import Scorer
from rewardkit.types import Cause, Outcome, Rollout, Status, Text

Tick = Callable[[int, int], None]  # takes the number of calls done, and of calls known so far

_CHARS_A_TOKEN = 4
BASE = ("", "I do not know.")  # completions that earn nothing with any reward that reads answers


@dataclass(frozen=True, slots=True)
class AuditSettings:
    """The settings of one audit; shares are of the way from a row's floor to its full level, 0 to 1."""

    accept_share: float = 0.5  # A completion is paid if it earns more than this share; at 1 only the full level is
    slow_share: float = 0.5  # A call is slow if it takes more than this share of the reward's deadline, 0 to 1
    heavy_rows: int = 2  # Rows on which the heavy probes are tried
    repeated_rows: int = 5  # Rows whose honest forms are scored a second time
    time_limit_s: float = 1800.0  # Seconds after which nothing more is tried; what was tried is judged
    skipped: Mapping[str, str] = field(default_factory=dict)  # Families and rules that the author leaves out, and why
    gain_share: float = 0.1  # More than this share beyond the run's best is a gain for a run's completion, changed
    reasoning: bool = False  # Whether the reward is to pay for reasoning: a run's completion without it must lose


class ScoredProbe(NamedTuple):
    """A probe that was scored, with its row's index among those chosen; ``mutation`` is how a mutant was made."""

    row: int
    probe: Probe
    outcome: Outcome
    mutation: str = ""


Form: TypeAlias = tuple[Honest, Outcome]  # an honest form with what it earned


@dataclass(frozen=True, slots=True)
class Trials:
    """Everything that was scored, by row."""

    honest: list[list[Form]]
    base: list[list[Outcome]]  # The outcomes of the completions in `BASE`
    attacks: list[ScoredProbe]
    swapped: dict[int, Outcome]  # The best honest form under another row's gold column; rows without one are left out
    rivals: dict[int, Outcome]  # Another row's gold in the frame that is paid best
    unrelated: dict[int, Outcome]  # Other words of the prompt's length
    again: list[tuple[int, Honest, Outcome, Outcome]]  # Honest forms with their first and second outcome
    untried: int = 0  # How many completions were not tried before the time was over


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


class TimedScorer:
    """Scores completions in a runtime of the reward's plain parts; after its time limit it scores no more.

    What was not tried in time, ``untried`` completions, counts as lost, as calls of a lost worker do.
    """

    def __init__(self, reward: Composable, scorer: Scorer, time_limit_s: float, tick: Tick) -> None:
        self._reward = reward
        self.leaves = reward.leaves
        self._source = scorer
        self._tick = tick
        self._end = time.monotonic() + time_limit_s
        self._done = self._total = self.untried = 0

    def score(self, rollouts: Sequence[Rollout]) -> list[Outcome]:
        """Return the outcomes of completions, in their order."""
        results: list[dict[str, Outcome]] = [{} for _ in rollouts]
        self._total += len(rollouts)
        if rollouts and time.monotonic() < self._end:
            for finished in self._source.stream(rollouts):
                results[finished.row][finished.reward] = finished.outcome
                self._done += len(results[finished.row]) == len(self.leaves)
                self._tick(self._done, self._total)
                if time.monotonic() >= self._end:
                    break
        self.untried += sum(len(outcomes) < len(self.leaves) for outcomes in results)
        return [self._combined(outcomes) for outcomes in results]

    def _combined(self, outcomes: dict[str, Outcome]) -> Outcome:
        if len(outcomes) < len(self.leaves):
            return Outcome(Status.FAILED, None, cause=Cause.INFRASTRUCTURE, error="not tried: the time was over")
        return self._reward.combine({leaf: outcomes[leaf.name] for leaf in self.leaves})


class Rounds(ABC):
    """The rounds of one audit: completions of rows are made and scored, the next after what the last ones earned."""

    def __init__(self, rows: ChosenRows, settings: AuditSettings, scorer: TimedScorer) -> None:
        self._rows = rows.rows
        self._settings = settings
        self._scorer = scorer

    @abstractmethod
    def run(self) -> Trials:
        """Score everything."""

    def _score(self, tries: Sequence[tuple[int, Probe]]) -> list[Outcome]:
        return self._scorer.score([self._rollout(self._rows[index], probe) for index, probe in tries])

    def _rollout(self, row: AuditRow, probe: Probe) -> Rollout:
        return rollout_of(self._scorer.leaves, row, probe)

    def _honest(self, forms: Sequence[Sequence[Honest]]) -> tuple[list[list[Form]], list[list[Outcome]]]:
        """Score the honest forms of each row, and what earns nothing."""
        tries = [(index, form_probe(form)) for index, listed in enumerate(forms) for form in listed]
        bases = [(index, Probe(Family.FORMS, "base", text)) for index in range(len(self._rows)) for text in BASE]
        outcomes = iter(self._score([*tries, *bases]))
        honest = [[(form, next(outcomes)) for form in listed] for listed in forms]
        return honest, [[next(outcomes) for _ in BASE] for _ in self._rows]

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
        outcomes = self._score(tries)
        return [ScoredProbe(index, probe, outcome) for (index, probe), outcome in zip(tries, outcomes, strict=True)]

    def _again(self, honest: Sequence[Sequence[Form]]) -> list[tuple[int, Honest, Outcome, Outcome]]:
        """Score honest forms once more, the last first, after everything else."""
        first = [(index, form, outcome) for index, forms in enumerate(honest) for form, outcome in forms][::-1]
        second = self._score([(index, form_probe(form)) for index, form, _ in first])
        return [(index, form, was, now) for (index, form, was), now in zip(first, second, strict=True)]


def best_of(forms: Sequence[Form]) -> Form | None:
    """Return the form that is paid best, the first of several; ``None`` where none has a score."""
    scored = [pair for pair in forms if pair[1].score is not None]
    return max(scored, key=lambda pair: pair[1].score or 0.0) if scored else None


def form_probe(form: Honest) -> Probe:
    return Probe(Family.FORMS, form.name, form.text, messages=form.messages)
