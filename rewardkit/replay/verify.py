"""Whether recorded scores still hold: a sample is scored again, by the very versions that gave them.

Only what a reward decides is compared: scores, skips, and failures that lie in the completion. A timeout, a crash and
a server that was down say nothing of the reward, then or now; such calls are counted and not judged.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np

from rewardkit.errors import DataError, RecordError, RewardDefinitionError, RewardLoadError, RewardTransportError
from rewardkit.loading.registry import RewardSet
from rewardkit.record.reader import RunReader
from rewardkit.record.table import Whole
from rewardkit.record.values import Completion, Version
from rewardkit.replay.rescore import score_portions
from rewardkit.replay.single_scorer import SingleScorer, Tick
from rewardkit.replay.stored import Stored
from rewardkit.replay.versions import VersionFinder
from rewardkit.suites.verdict_cache import VERDICTS_VARIABLE
from rewardkit.types import Cause, Outcome

SAMPLE = 100  # Completions of each version that are scored again, unless it is said otherwise
SHOWN = 3  # Completions that are named for each version that differs
TRIED_TWICE = 50
"""Completions that differ and are tried once more, to tell what is nondeterministic from what has changed."""
_BY_CHANCE = frozenset(cause for cause in Cause if cause.is_by_chance)


class Holds(StrEnum):
    """What was found of a recorded version."""

    SAME = "same"  # Every score that was tried again is the recorded one
    NONDETERMINISTIC = "nondeterministic"
    """Scores differ from the recorded ones, and from each other when they are tried twice."""
    DIFFERENT = "different"
    """Scores differ from the recorded ones and agree with each other: something that it reads has changed."""
    NOT_REPRODUCIBLE = "not reproducible"  # The version cannot be had again
    NOT_JUDGED = "not judged"  # There was nothing that could be compared


class Differing(NamedTuple):
    """A completion whose score is not the recorded one."""

    completion: Completion  # The completion, with its recorded outcomes
    recorded: Outcome  # What the record says
    now: Outcome  # What the version says now


@dataclass(frozen=True, slots=True)
class VersionCheck:
    """What became of one recorded version.

    Attributes:
        not_judged: Calls that were not compared, by the reason.
    """

    label: str  # The version, such as `format@2`
    result: Holds  # What was found
    calls: int  # How many scores the run has of it, of the steps looked at
    same: int = 0  # Scores that are the recorded ones
    different: int = 0  # Scores that are not
    not_judged: Mapping[str, int] = dataclasses.field(default_factory=dict)
    why: str = ""  # Why it is not reproducible
    examples: Sequence[Differing] = ()  # Some completions that differ


def verify(
    run: RunReader,
    stored: Stored,
    *,
    rewards: Collection[str] = (),
    sample: int | None = SAMPLE,
    seed: int = 0,
    tick: Tick = lambda *numbers: None,
    **lane: Any,
) -> Iterator[VersionCheck]:
    """Yield a check of each version that the run used, oldest first; of all rewards unless some are named.

    Of each version ``sample`` completions of the whole batches are chosen at random with ``seed`` and scored again;
    ``None`` for all. A reward that reads a workspace gets the folder that it graded, where that was kept, and no
    verdict is taken from an equal folder. ``tick`` and ``lane`` are those of
    :func:`~rewardkit.replay.rescore.rescore`. Raises RecordError where the run has no such reward.
    """
    unknown = [name for name in rewards if name not in run.rewards]
    if unknown:
        raise RecordError(f"{run.name}: no reward {unknown[0]!r}; it has {', '.join(run.rewards)}")
    with VersionFinder() as finder:
        for version in run.versions:
            scored = _of_version(stored, version)
            if not len(scored) or (rewards and version.reward not in rewards):
                continue
            reward, why, _ = finder.find(version)
            if reward is None:
                yield VersionCheck(version.label, Holds.NOT_REPRODUCIBLE, len(scored), why=why)
                continue
            completions, not_judged = _choose_completions(scored, version.reward, sample, seed)
            try:
                reward_set = RewardSet({version.reward: reward}, env={VERDICTS_VARIABLE: "off"})
                yield _check_version(run, version, reward_set, stored, completions, not_judged, len(scored), tick, lane)
            except (RewardLoadError, RewardTransportError, RewardDefinitionError, DataError) as fault:
                message = str(fault).strip().splitlines()[-1]
                yield VersionCheck(
                    version.label, Holds.NOT_REPRODUCIBLE, len(scored), why=f"it cannot be run: {message}"
                )


def _of_version(stored: Stored, version: Version) -> Stored:
    """Return the completions that a version scored in the run."""
    numbers = stored.table.versions.get(version.reward)
    return stored.where(np.zeros(len(stored), bool) if numbers is None else numbers == version.number)


def _choose_completions(version: Stored, reward: str, sample: int | None, seed: int) -> tuple[Whole, Counter[str]]:
    """Return the ids of the completions to score again, and how many failed by chance in the run, by the reason.

    Completions that are left out by sampling are not counted.
    """
    causes = version.table.causes[reward]
    failed_by_chance = np.isin(causes, list(_BY_CHANCE))
    not_judged = Counter(f"failed by {cause} in the run" for cause in causes[failed_by_chance].tolist())
    ids = version.table.ids[~failed_by_chance]
    if sample is not None and sample < len(ids):
        ids = np.sort(np.random.default_rng(seed).choice(ids, sample, replace=False))
    return ids, not_judged


def _check_version(
    run: RunReader,
    version: Version,
    rewards: RewardSet,
    stored: Stored,
    chosen: Whole,
    not_judged: Counter[str],
    calls: int,
    tick: Tick,
    lane: Mapping[str, Any],
) -> VersionCheck:
    """Score completions again, twice where they differ; add what cannot be judged to ``not_judged``."""
    same, different, left_out = 0, 0, Counter[str]()
    differing: list[Differing] = []
    steady = True
    with SingleScorer(rewards, **lane) as scorer:
        for completions, outcomes in score_portions(run, scorer, stored, chosen, left_out, tick, [version.reward]):
            for completion, now in zip(completions, outcomes, strict=True):
                recorded = completion.outcomes[version.reward]
                if now.cause in _BY_CHANCE:
                    not_judged[f"failed by {now.cause} now"] += 1
                elif _equal(recorded, now):
                    same += 1
                else:
                    different += 1
                    if len(differing) < TRIED_TWICE:  # all of them are counted, and some are tried again
                        differing.append(Differing(completion, recorded, now))
        if differing:
            steady = _is_steady(run, scorer, stored, differing, tick)
    not_judged.update(left_out)
    result = Holds.DIFFERENT if steady else Holds.NONDETERMINISTIC
    if not differing:
        result = Holds.SAME if same else Holds.NOT_JUDGED
    examples = differing[:SHOWN]
    return VersionCheck(version.label, result, calls, same, different, dict(not_judged), examples=examples)


def _is_steady(
    run: RunReader, scorer: SingleScorer, stored: Stored, differing: Sequence[Differing], tick: Tick
) -> bool:
    """Return whether scoring the completions that differ once more gives the same outcomes."""
    now = {example.completion.id: example.now for example in differing}
    again = score_portions(run, scorer, stored, np.array(sorted(now), np.int64), Counter(), tick)
    return all(
        outcome.cause in _BY_CHANCE or _equal(now[completion.id], outcome)
        for completions, outcomes in again
        for completion, outcome in zip(completions, outcomes, strict=True)
    )


def _equal(recorded: Outcome, now: Outcome) -> bool:
    """Return whether two outcomes are equal; scores may differ by what another order of a sum of floats changes."""
    if recorded.status is not now.status or recorded.cause is not now.cause:
        return False
    if recorded.score is None or now.score is None:
        return recorded.score is now.score
    return math.isclose(recorded.score, now.score, rel_tol=1e-9, abs_tol=1e-12)
