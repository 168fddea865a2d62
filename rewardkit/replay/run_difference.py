"""Two versions of a reward over a run's completions: recorded scores where there are some, and new ones elsewhere.

The other rewards of the run make up the total with the compared one, by their recorded scores and weights, and the
advantages are made as those in the record were made.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rewardkit.errors import ConfigError, RecordError, RewardLoadError
from rewardkit.loading.registry import RewardSet
from rewardkit.record.reader import RunReader
from rewardkit.record.table import Floats
from rewardkit.record.values import Version
from rewardkit.replay.compare import PARTIAL, Column, Places, Setting, compare, formula_of
from rewardkit.replay.difference import SHOWN, Both, Difference
from rewardkit.replay.rescore import score
from rewardkit.replay.single_scorer import CostSum, Count, Portion, SingleScorer, Tick, group_sizes, why_not
from rewardkit.replay.stored import (
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
from rewardkit.types import Outcome

_BATCHES = 8
"""Batches from which it is read how advantages were made."""


@dataclass(frozen=True, slots=True)
class Given:
    """One side of a difference as a caller names it.

    Attributes:
        label: What it is called: ``format@2``, or a reference.
        version: The recorded version; ``None`` for a reward that is scored now.
        found: The reward that is scored now; ``None`` for a recorded version.
    """

    label: str
    version: Version | None = None
    found: RewardSet | None = None


def given(run: RunReader, words: str, load: Callable[[str], RewardSet]) -> Given:
    """Return the side that words name: a version of the run, such as ``format@2``, or a reward that is scored now.

    Args:
        run: The run.
        words: What a person wrote.
        load: Returns the reward of a reference, alone in its set.

    Raises:
        RewardError: They name neither, or a reward that recorded completions cannot be scored by.
    """
    if is_label(run, words):
        version = version_of(run, words)
        return Given(version.label, version=version)
    try:
        found = load(words)
    except RewardLoadError as absent:
        if any(one in words for one in ":/") or words.endswith(".py"):
            raise
        raise ConfigError(f"{words}: no reward of the run, which has {', '.join(run.rewards)}; {absent}") from None
    wrong = why_not(next(iter(found.rewards.values())))
    if wrong is not None:
        raise ConfigError(f"{words}: {wrong}")
    return Given(words, found=found)


@dataclass(slots=True)
class _VersionSide:
    """One side while it is being read: what the record has of it, and what scores the rest."""

    given: Given
    passes: Sequence[int] = ()
    known: Places = field(default_factory=lambda: np.zeros(0, bool))
    """Where the record has an outcome."""
    found: RewardSet | None = None
    """What scores completions without a recorded outcome; ``None`` where nothing can."""
    why: str = ""
    """Why nothing can."""
    scorer: SingleScorer | None = None
    cost: CostSum = field(default_factory=CostSum)

    @property
    def grouped(self) -> bool:
        """Whether one call scores a group."""
        if self.scorer is not None:
            return self.scorer.grouped
        return self.given.version is not None and self.given.version.settings.get("kind") == "group"

    def outcomes(self, run: RunReader, read: Read, count: Count) -> list[Outcome | None]:
        """Return what this version says of a portion."""
        said = self._recorded(run, read)
        lacking = [place for place, one in enumerate(said) if one is None]
        if lacking and self.scorer is not None:
            places = range(len(said)) if self.scorer.grouped else lacking
            for place, outcome in zip(places, score(run, self.scorer, _part(read, places), count), strict=True):
                said[place] = said[place] or outcome
        there = [one for one in said if one is not None]
        if len(there) == len(said):
            self.cost.add(there, group_sizes(read.portion.rollouts) if self.grouped else None)
        return said

    def _recorded(self, run: RunReader, read: Read) -> list[Outcome | None]:
        version = self.given.version
        if version is None:
            return [None] * len(read.completions)
        name, number = version.reward, version.number
        said = [one.outcomes[name] if one.versions.get(name) == number else None for one in read.completions]
        for each in self.passes:
            lacking = [one.id for one, known in zip(read.completions, said, strict=True) if known is None]
            found = run.rescored(each, lacking) if lacking else {}
            said = [known or found.get(one.id) for one, known in zip(read.completions, said, strict=True)]
        return said


def of_run(
    run: RunReader,
    old: Given,
    new: Given,
    stored: Stored,
    *,
    weight: float | None = None,
    limit: int | None = None,
    tick: Tick = lambda *numbers: None,
    shown: int = SHOWN,
    **lane: Any,
) -> Difference:
    """Return what changes in a run where one version of a reward takes the place of another.

    Args:
        run: The run.
        old: The version before.
        new: The version after.
        stored: The completions, whole batches.
        weight: The reward's weight; ``None`` for that of the run, and 1 for a reward that the run has not.
        limit: Only the groups among the first so many completions; ``None`` for all.
        tick: Is called with the calls done, those known and those failed.
        shown: Completions to name.
        lane: ``workers``, ``lane`` and ``load_timeout_s`` of a :class:`~rewardkit.replay.single_scorer.SingleScorer`.

    Raises:
        RecordError: There is nothing to compare; says why.
        MissingColumnError: A reward needs a column that the run's rows lack.
    """
    name = _name(run, old, new)
    left_out: Counter[str] = Counter()
    both = Both(shown)
    with VersionFinder() as finder, contextlib.ExitStack() as stack:
        sides = [_side(run, given, stored, finder) for given in (old, new)]
        mask = _compared(run, sides, stored, left_out)
        left_out.update(_unasked(sides) if not mask.any() else {})
        if limit is not None:
            mask &= np.isin(stored.table.groups, stored.table.groups[mask][:limit])
        calls = 0
        for side in sides:
            lacking = int((mask & ~side.known).sum())
            if lacking and side.found is not None:
                side.scorer = stack.enter_context(SingleScorer(side.found, **lane))
                calls += lacking
        _read(run, sides, stored, stored.table.ids[mask], both, left_out, Count(tick, calls))
    if not both.ids:
        raise RecordError(f"{run.name}: nothing to compare: {'; '.join(left_out) or 'no completions'}")
    compared = stored.of(np.array(both.ids, np.int64))
    setting, notes = _setting(stored, compared, name, weight)
    return Difference(
        old=old.label,
        new=new.label,
        comparison=compare(*both.columns, setting),
        examples=both.examples,
        old_cost=sides[0].cost.total(),
        new_cost=sides[1].cost.total(),
        beside={one: float(weights[-1]) for one, weights in setting.other_weights.items() if weights[-1]},
        weight=float(setting.weights[-1]),
        formula=setting.formula,
        partial=setting.partial,
        left_out=dict(left_out),
        notes=[*notes, *_parts(run, name, setting)],
    )


def _name(run: RunReader, old: Given, new: Given) -> str:
    """Return the name of the reward that is compared, under which the run has the one whose place is taken.

    Raises:
        RecordError: The versions are of two rewards.
    """
    recorded = [one.version for one in (old, new) if one.version is not None]
    if len(recorded) == 2 and recorded[0].reward != recorded[1].reward:
        raise RecordError(f"{old.label} and {new.label} are versions of two rewards; name two versions of one")
    if recorded:
        return recorded[0].reward
    names = [next(iter(one.found.rewards)) for one in (old, new) if one.found is not None]
    return next((name for name in names if name in run.rewards), names[0])


def _side(run: RunReader, given: Given, stored: Stored, finder: VersionFinder) -> _VersionSide:
    """Return a side with what the record has of it, and what can score the rest."""
    if given.version is None:
        return _VersionSide(given, known=np.zeros(len(stored), bool), found=given.found)
    version = given.version
    table = stored.table
    known = table.versions.get(version.reward, np.zeros(len(table), np.int64)) == version.number
    passes = [one.id for one in run.passes if (one.reward, one.version) == (version.reward, version.number)][::-1]
    for number in passes:
        known = known | np.isin(table.ids, run.pass_columns(number).ids)
    if known.all():
        return _VersionSide(given, passes, known)
    reward, why = finder.find(version)
    found = None if reward is None else RewardSet({version.reward: reward})
    return _VersionSide(given, passes, known, found, why)


def _compared(run: RunReader, sides: Sequence[_VersionSide], stored: Stored, left_out: Counter[str]) -> Places:
    """Return which completions are compared: those of which the record knows a side, and the other can be had."""
    recorded = [side.known for side in sides if side.given.version is not None]
    mask = np.logical_or.reduce(recorded) if recorded else np.ones(len(stored), bool)
    for side in sides:
        if side.found is None:
            lacking = int((mask & ~side.known).sum())
            if lacking:
                left_out[f"{side.given.label} has not scored them and cannot be had: {side.why}"] += lacking
            mask = mask & side.known
    return np.asarray(mask)


def _unasked(sides: Sequence[_VersionSide]) -> dict[str, int]:
    """Return which recorded versions have scored none of the completions, to explain an empty difference."""
    absent = [side for side in sides if side.given.version is not None and not side.known.any()]
    return {
        f"{side.given.label} has scored none of these completions; choose steps at which it did": len(side.known)
        for side in absent
    }


def _read(
    run: RunReader,
    sides: Sequence[_VersionSide],
    stored: Stored,
    wanted: Any,
    both: Both,
    left_out: Counter[str],
    count: Count,
) -> None:
    """Read or score what both versions say of the completions that are wanted."""
    scorers = [side.scorer for side in sides if side.scorer is not None]
    every = [needs_of(one.reward) for one in scorers]
    needs = Needs(any(one.position for one in every), any(one.groups for one in every))
    chosen = with_their_groups(stored, wanted) if needs.groups else stored.of(wanted)
    keep = set(wanted.tolist())
    for read in portions(run, chosen, needs, left_out):
        old, new = (side.outcomes(run, read, count) for side in sides)
        rows = [
            (one, rollout, before, after)
            for one, rollout, before, after in zip(read.completions, read.portion.rollouts, old, new, strict=True)
            if one.id in keep and before is not None and after is not None
        ]
        if rows:
            portion = Portion([one.id for one, *_ in rows], [rollout for _, rollout, *_ in rows])
            steps = [one.step for one, *_ in rows]
            both.add(portion, [before for *_, before, _ in rows], [after for *_, after in rows], steps)


def _setting(stored: Stored, compared: Stored, name: str, weight: float | None) -> tuple[Setting, list[str]]:
    """Return what the reward stands in, and what is to be said of it."""
    table = compared.table
    formula, partial, over_ranks = _as_recorded(stored)
    notes = [] if formula is not None else ["the recorded advantages follow none of TRL's formulas; GRPO's is used"]
    weights = np.full(len(table), 1.0 if weight is None else weight)
    if weight is None and name in table.weights:
        asked = table.versions[name] > 0
        weights = np.where(asked, table.weights[name], table.weights[name][asked][-1] if asked.any() else 1.0)
    setting = _of_table(compared, name, weights, over_ranks=over_ranks)
    return dataclasses.replace(setting, formula=formula or "group", partial=partial), notes


def _of_table(stored: Stored, name: str, weights: Floats, *, over_ranks: bool = False) -> Setting:
    """Return the setting of completions; where groups lie over several ranks, those of a step and prompt are one."""
    table = stored.table
    others = {one: Column(table.scores[one], table.status[one]) for one in table.scores if one != name}
    groups, batches = table.groups, stored.batches
    if over_ranks:
        pairs = np.stack([table.steps, table.prompts])
        groups = np.unique(pairs, axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)
        batches = table.steps
    return Setting(groups, batches, weights, others, {one: table.weights[one] for one in others})


def _as_recorded(stored: Stored) -> tuple[str | None, str, bool]:
    """Return by which formula and rule the recorded advantages were made, and whether groups lie over several ranks."""
    table = stored.table
    telling = ~np.isnan(table.advantages) & (np.abs(np.nan_to_num(table.advantages)) > 0)
    if not table.scores or not telling.any():
        return "group", PARTIAL[0], False
    name = next(iter(table.scores))
    whole = _of_table(stored, name, table.weights[name])
    every = Column(table.scores[name], table.status[name])
    partial = next(
        (one for one in PARTIAL if _alike(dataclasses.replace(whole, partial=one).rewards(every), table.rewards)),
        PARTIAL[0],
    )
    first = np.unique(stored.batches[telling])[:_BATCHES]
    for over_ranks in (False, True):
        inside = np.isin(stored.batches, first)
        some = stored.where(np.isin(table.steps, table.steps[inside]) if over_ranks else inside)
        column = Column(some.table.scores[name], some.table.status[name])
        setting = _of_table(some, name, some.table.weights[name], over_ranks=over_ranks)
        found = formula_of(dataclasses.replace(setting, partial=partial), column, some.table.advantages)
        if found is not None:
            return found, partial, over_ranks
    return None, partial, False


def _alike(one: Floats, two: Floats) -> bool:
    return bool(np.allclose(one, two, rtol=1e-5, atol=1e-6, equal_nan=True))


def _parts(run: RunReader, name: str, setting: Setting) -> Iterator[str]:
    """Yield what is to be known of compositions that the compared reward is a part of."""
    counting = {one for one, weights in setting.other_weights.items() if weights.any()}
    for version in run.versions:
        parts = version.settings.get("parts")
        if version.reward in counting and isinstance(parts, dict) and name in parts:
            counting.discard(version.reward)
            yield f"{version.reward} has {name} as a part, and keeps its scores here: compare {version.reward} itself"


def _part(read: Read, places: Sequence[int]) -> Portion:
    portion = read.portion
    return portion._replace(
        ids=[portion.ids[place] for place in places], rollouts=[portion.rollouts[place] for place in places]
    )
