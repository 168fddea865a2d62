"""Two versions of a reward over a run's completions: recorded scores where there are some, and new ones elsewhere.

The other rewards of the run make up the total with the compared one, by their recorded scores and weights, and the
advantages are made as those in the record were made.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from rewardkit.errors import ConfigError, RecordError, RewardLoadError
from rewardkit.loading.registry import RewardSet
from rewardkit.record.reader import RunReader
from rewardkit.record.table import Floats, Whole
from rewardkit.record.values import Version
from rewardkit.replay.compare import PARTIAL, Column, Places, Setting, compare, formula_of
from rewardkit.replay.difference import SHOWN, Both, ChangedCompletion, Describe, Difference
from rewardkit.replay.graded_folders import GradedFolders
from rewardkit.replay.recorded_version import RecordedVersion, recorded_version
from rewardkit.replay.rescore import score
from rewardkit.replay.single_scorer import Ahead, CostSum, Count, Portion, SingleScorer, Tick, UnitCost, obstacle
from rewardkit.replay.stored import (
    NO_TEXT,
    Needs,
    Read,
    Stored,
    is_label,
    needs_of,
    portions,
    version_of,
    with_their_groups,
)
from rewardkit.replay.versions import VersionFinder
from rewardkit.types import Outcome, Rollout

_BATCHES = 8  # Batches from which it is read how advantages were made


@dataclass(frozen=True, slots=True)
class Subject:
    """One side of a difference as a caller names it."""

    label: str  # What it is called: `format@2`, or a reference
    version: Version | None = None  # The recorded version; `None` for a reward that is scored now
    rewards: RewardSet | None = None  # The reward that is scored now, alone in its set; `None` for a recorded version


def subject_of(run: RunReader, text: str, load: Callable[[str], RewardSet]) -> Subject:
    """Return the side that a text names: a version of the run, as ``format@2``, or a reward that is scored now.

    ``load`` returns the reward of a reference, alone in its set. Raises RewardError where it names neither, or a
    reward that recorded completions cannot be scored by.
    """
    if is_label(run, text):
        version = version_of(run, text)
        return Subject(version.label, version=version)
    try:
        rewards = load(text)
    except RewardLoadError as absent:
        if any(letter in text for letter in ":/") or text.endswith(".py"):
            raise
        raise ConfigError(f"{text}: no reward of the run, which has {', '.join(run.rewards)}; {absent}") from None
    wrong = obstacle(next(iter(rewards.rewards.values())))
    if wrong is not None:
        raise ConfigError(f"{text}: {wrong}")
    return Subject(text, rewards=rewards)


class _Part(NamedTuple):
    """What one side says of a portion of completions."""

    column: Column  # Scores and status; an empty status where it can say nothing
    outcome: Callable[[int], Outcome]  # Returns the whole outcome of one of them
    new: Mapping[int, Outcome]  # The outcomes of now, by the completion's index


@dataclass(slots=True)
class _VersionSide:
    """One side while it is being read: what the record has of it, and what scores the rest."""

    subject: Subject
    recorded: RecordedVersion | None = None  # What the record has of it; `None` for a reward that is scored now
    has_outcome: Places = field(default_factory=lambda: np.zeros(0, bool))  # Where the record has an outcome
    rewards: RewardSet | None = None  # What scores completions without a recorded outcome; `None` where nothing can
    why: str = ""  # Why nothing can
    scorer: SingleScorer | None = None
    cost: CostSum = field(default_factory=CostSum)

    def start(self, mask: Places, stack: contextlib.ExitStack, lane: Mapping[str, Any]) -> int:
        """Start a scorer for the completions without a recorded outcome; return how many these are."""
        lacking = int((mask & ~self.has_outcome).sum())
        if not lacking or self.rewards is None:
            return 0
        self.scorer = stack.enter_context(SingleScorer(self.rewards, **lane))
        return lacking

    def part(
        self, run: RunReader, stored: Stored, portion: Portion, count: Count, meanwhile: Callable[[], None]
    ) -> _Part:
        """Return what the version says of a portion, recorded or scored now; add up what the calls of now cost."""
        size = len(portion.ids)
        scores, status, new = np.full(size, np.nan), np.full(size, "", "<U1"), dict[int, Outcome]()
        recorded = self.recorded
        if recorded is not None:
            indices = np.searchsorted(stored.table.ids, portion.ids)
            scores, status = recorded.column.scores[indices], recorded.column.status[indices]
        lacking = np.flatnonzero(status == "").tolist()
        if lacking and self.scorer is not None:
            wanted = list(range(size)) if self.scorer.grouped else lacking
            answers = score(run, self.scorer, _part(portion, wanted), count, meanwhile)
            self.cost = self.scorer.cost
            new = {index: answer for index, answer in zip(wanted, answers, strict=True) if status[index] == ""}
            column = Column.of(list(new.values()))
            scores[list(new)], status[list(new)] = column.scores, column.status

        def outcome(index: int) -> Outcome:
            if index in new or recorded is None:
                return new[index]
            return recorded.outcomes(run, stored, [portion.ids[index]])[portion.ids[index]]

        return _Part(Column(scores, status), outcome, new)

    def unit_cost(self, run: RunReader, stored: Stored, compared: Whole) -> UnitCost:
        """Return what 1,000 completions take: those that were scored now, or without any the recorded ones."""
        if self.scorer is None and self.recorded is not None:
            return self.recorded.cost(run, stored, np.searchsorted(stored.table.ids, compared))
        return self.cost.total()


def of_run(
    run: RunReader,
    old: Subject,
    new: Subject,
    stored: Stored,
    *,
    weight: float | None = None,
    limit: int | None = None,
    tick: Tick = lambda *numbers: None,
    examples: int = SHOWN,
    **lane: Any,
) -> Difference:
    """Return the difference in a run where one version of a reward replaces another.

    The stored completions are whole batches, of which only the groups among the first ``limit`` count. ``weight`` is
    that of the run unless given, and 1 for a reward that the run has not. ``examples`` is how many completions to name;
    ``tick`` and ``lane`` are those of :func:`~rewardkit.replay.rescore.rescore`. Raises RecordError, which says why,
    where there is nothing to compare, and MissingColumnError where the run's rows lack a column.
    """
    name = _name(run, old, new)
    left_out: Counter[str] = Counter()
    both = Both(examples)
    with VersionFinder() as finder, contextlib.ExitStack() as stack:
        sides = [_side(run, subject, stored, finder) for subject in (old, new)]
        mask = _comparable(run, sides, stored, left_out)
        left_out.update(_unscored_notes(sides) if not mask.any() else {})
        if limit is not None:
            mask &= np.isin(stored.table.groups, stored.table.groups[mask][:limit])
        calls = sum(side.start(mask, stack, lane) for side in sides)
        ids = stored.table.ids[mask]
        comparison = _Comparison(run, sides, stored, ids, both, left_out, Count(tick, calls))
        if calls:
            comparison.add_outcomes()
        else:
            comparison.add_recorded()
        ids = both.ids
        if not len(ids):
            raise RecordError(f"{run.name}: nothing to compare: {'; '.join(left_out) or 'no completions'}")
        old_cost, new_cost = (side.unit_cost(run, stored, ids) for side in sides)
    compared = stored.of(ids)
    setting, notes = _setting(stored, compared, name, weight)
    return Difference(
        old.label,
        new.label,
        compare(*both.columns, setting),
        both.examples,
        old_cost,
        new_cost,
        beside={other: float(weights[-1]) for other, weights in setting.other_weights.items() if weights[-1]},
        weight=float(setting.weights[-1]),
        formula=setting.formula,
        partial=setting.partial,
        left_out=dict(left_out),
        notes=[*notes, *_parts(run, name, setting)],
        failures=both.failures.kinds,
    )


def _name(run: RunReader, old: Subject, new: Subject) -> str:
    """Return the name under which the run has the reward that is replaced; RecordError if the versions are of two."""
    recorded = [subject.version for subject in (old, new) if subject.version is not None]
    if len(recorded) == 2 and recorded[0].reward != recorded[1].reward:
        raise RecordError(f"{old.label} and {new.label} are versions of two rewards; name two versions of one")
    if recorded:
        return recorded[0].reward
    names = [next(iter(subject.rewards.rewards)) for subject in (old, new) if subject.rewards is not None]
    return next((name for name in names if name in run.rewards), names[0])


def _side(run: RunReader, subject: Subject, stored: Stored, finder: VersionFinder) -> _VersionSide:
    """Return a side with its recorded outcomes, and the reward that can score the others."""
    if subject.version is None:
        return _VersionSide(subject, has_outcome=np.zeros(len(stored), bool), rewards=subject.rewards)
    version = subject.version
    recorded = recorded_version(run, version, stored)
    has_outcome = recorded.is_there
    if has_outcome.all():
        return _VersionSide(subject, recorded, has_outcome)
    reward, why, _ = finder.find(version)
    rewards = None if reward is None else RewardSet({version.reward: reward})
    return _VersionSide(subject, recorded, has_outcome, rewards, why)


def _comparable(run: RunReader, sides: Sequence[_VersionSide], stored: Stored, left_out: Counter[str]) -> Places:
    """Return a mask of the completions that both sides have or can score; count the others in ``left_out``."""
    recorded = [side.has_outcome for side in sides if side.subject.version is not None]
    mask = np.logical_or.reduce(recorded) if recorded else np.ones(len(stored), bool)
    for side in sides:
        if side.rewards is None:
            lacking = int((mask & ~side.has_outcome).sum())
            if lacking:
                left_out[f"{side.subject.label} has not scored them and cannot be had: {side.why}"] += lacking
            mask = mask & side.has_outcome
    return np.asarray(mask)


def _unscored_notes(sides: Sequence[_VersionSide]) -> dict[str, int]:
    """Return notes on the versions that scored none of the completions, with their count, for an empty difference."""
    count = len(sides[0].has_outcome)
    absent = [side for side in sides if side.subject.version is not None and not side.has_outcome.any()]
    reason = "has scored none of these completions; choose steps at which it did"
    return {f"{side.subject.label} {reason}": count for side in absent}


class _Comparison(NamedTuple):
    """Completions of a run over which two versions are compared, and what is added up of them."""

    run: RunReader
    sides: Sequence[_VersionSide]
    stored: Stored
    ids: Whole  # The numbers of those that are compared
    both: Both  # What both versions said of each
    left_out: Counter[str]  # Completions that cannot be compared, by the reason
    new_outcomes: Count  # Learns of each one

    def add_outcomes(self) -> None:
        """Add both versions' outcomes, recorded or scored now."""
        run, stored, ids = self.run, self.stored, self.ids
        needs = _needs_of_all(self.sides)
        to_read = with_their_groups(stored, ids) if needs.groups else stored.of(ids)
        with GradedFolders(run.path.home) as folders:
            ahead = Ahead(portions(run, to_read, needs, self.left_out, folders=folders))
            for read in ahead:
                old, new = (side.part(run, stored, read.portion, self.new_outcomes, ahead.fetch) for side in self.sides)
                is_compared = np.isin(read.portion.ids, ids) & (old.column.status != "") & (new.column.status != "")
                chosen = np.flatnonzero(is_compared)
                if len(chosen):
                    before, after = (
                        Column(part.column.scores[chosen], part.column.status[chosen]) for part in (old, new)
                    )
                    chosen_ids = np.array(read.portion.ids, np.int64)[chosen]
                    for side, part in (("old", old), ("new", new)):
                        outcomes = [(index, part.new[index]) for index in chosen.tolist() if index in part.new]
                        ids_of_new = ((read.portion.ids[index], outcome) for index, outcome in outcomes)
                        self.both.failures.add(side, read.portion.step, ids_of_new)
                    self.both.add(chosen_ids, before, after, _describe(read, old, new, chosen.tolist()))

    def add_recorded(self) -> None:
        """Add both versions' recorded outcomes, whose texts are read for those that are named alone."""
        run = self.run
        without_text = run.left_out_ids() if run.left_out else []
        with_text = self.ids[~np.isin(self.ids, without_text)]
        if len(with_text) < len(self.ids):
            self.left_out[NO_TEXT] += len(self.ids) - len(with_text)
        indices = np.searchsorted(self.stored.table.ids, with_text)
        recorded = [side.recorded for side in self.sides if side.recorded is not None]
        columns = [Column(part.column.scores[indices], part.column.status[indices]) for part in recorded]

        def describe(index: int) -> ChangedCompletion:
            number = int(with_text[index])
            (row,) = run.by_id([number], ())
            old, new = (part.outcomes(run, self.stored, [number])[number] for part in recorded)
            return ChangedCompletion(number, row.step, Rollout(row.prompt, row.completion or "", row.columns), old, new)

        if len(with_text):
            self.both.add(with_text, columns[0], columns[1], describe)


def _describe(read: Read, old: _Part, new: _Part, chosen: Sequence[int]) -> Describe:
    """Return what names the chosen completions of a portion."""

    def describe(number: int) -> ChangedCompletion:
        index = chosen[number]
        completion = read.completions[index]
        outcomes = old.outcome(index), new.outcome(index)
        return ChangedCompletion(completion.id, completion.step, read.portion.rollouts[index], *outcomes)

    return describe


def _needs_of_all(sides: Sequence[_VersionSide]) -> Needs:
    """Return what scoring both sides needs; nothing for a side that is recorded."""
    needs = [needs_of(side.scorer.reward) for side in sides if side.scorer is not None]
    return functools.reduce(Needs.__or__, needs, Needs(position=False, groups=False))


def _setting(stored: Stored, compared: Stored, name: str, weight: float | None) -> tuple[Setting, list[str]]:
    """Return the groups, weights and other rewards that a reward is compared in, and notes on them."""
    table = compared.table
    formula, partial, over_ranks = _recorded_rule(stored)
    notes = [] if formula is not None else ["the recorded advantages follow none of TRL's formulas; GRPO's is used"]
    weights = np.full(len(table), 1.0 if weight is None else weight)
    if weight is None and name in table.weights:
        has_reward = table.versions[name] > 0
        last = table.weights[name][has_reward][-1] if has_reward.any() else 1.0
        weights = np.where(has_reward, table.weights[name], last)
    setting = _of_table(compared, name, weights, over_ranks=over_ranks)
    return dataclasses.replace(setting, formula=formula or "group", partial=partial), notes


def _of_table(stored: Stored, name: str, weights: Floats, *, over_ranks: bool = False) -> Setting:
    """Return the setting of completions; where groups span several ranks, a step and a prompt make one group."""
    table = stored.table
    others = {other: Column(table.scores[other], table.status[other]) for other in table.scores if other != name}
    groups, batches = table.groups, stored.batches
    if over_ranks:
        pairs = np.stack([table.steps, table.prompts])
        groups = np.unique(pairs, axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)
        batches = table.steps
    return Setting(groups, batches, weights, others, {other: table.weights[other] for other in others})


class _Rule(NamedTuple):
    """How recorded advantages were made."""

    formula: str | None  # `None` where none of `FORMULAS` gives them
    partial: str  # What became of completions that some reward could not score
    over_ranks: bool  # Whether groups span several ranks


def _recorded_rule(stored: Stored) -> _Rule:
    """Return how the recorded advantages were made, judged by the first batches in which one is not 0."""
    table = stored.table
    has_advantage = np.nan_to_num(table.advantages) != 0
    if not table.scores or not has_advantage.any():
        return _Rule("group", PARTIAL[0], over_ranks=False)
    name = next(iter(table.scores))  # any reward will do: all of them make up the same total
    whole = _of_table(stored, name, table.weights[name])
    column = Column(table.scores[name], table.status[name])
    totals = {rule: dataclasses.replace(whole, partial=rule).rewards(column) for rule in PARTIAL}
    partial = next((rule for rule, total in totals.items() if _alike(total, table.rewards)), PARTIAL[0])
    first_batches = np.unique(stored.batches[has_advantage])[:_BATCHES]
    for over_ranks in (False, True):
        inside = np.isin(stored.batches, first_batches)
        sample = stored.where(np.isin(table.steps, table.steps[inside]) if over_ranks else inside)
        column = Column(sample.table.scores[name], sample.table.status[name])
        setting = _of_table(sample, name, sample.table.weights[name], over_ranks=over_ranks)
        formula = formula_of(dataclasses.replace(setting, partial=partial), column, sample.table.advantages)
        if formula is not None:
            return _Rule(formula, partial, over_ranks)
    return _Rule(None, partial, over_ranks=False)


def _alike(left: Floats, right: Floats) -> bool:
    return bool(np.allclose(left, right, rtol=1e-5, atol=1e-6, equal_nan=True))


def _parts(run: RunReader, name: str, setting: Setting) -> Iterator[str]:
    """Yield a note on each composition that the compared reward is a part of."""
    counting = {other for other, weights in setting.other_weights.items() if weights.any()}
    for version in run.versions:
        parts = version.settings.get("parts")
        if version.reward in counting and isinstance(parts, dict) and name in parts:
            counting.discard(version.reward)
            yield f"{version.reward} has {name} as a part, and keeps its scores here: compare {version.reward} itself"


def _part(portion: Portion, indices: Sequence[int]) -> Portion:
    return portion._replace(
        ids=[portion.ids[index] for index in indices], rollouts=[portion.rollouts[index] for index in indices]
    )
