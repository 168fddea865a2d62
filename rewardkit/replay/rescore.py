"""A reward on the stored completions of a run: nothing is generated, and the scores are kept as a further pass."""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rewardkit.errors import RecordError
from rewardkit.loading.registry import RewardSet
from rewardkit.record.passes import PassWriter
from rewardkit.record.reader import RunReader
from rewardkit.record.table import CompletionTable, Floats, Whole
from rewardkit.record.values import Completion
from rewardkit.replay.graded_folders import GradedFolders
from rewardkit.replay.single_scorer import Ahead, Count, Portion, SingleScorer, Tick, UnitCost, obstacle
from rewardkit.replay.stored import Stored, needs_of, portions, with_their_groups
from rewardkit.replay.versions import VersionFinder
from rewardkit.runtime.plan import check_rollouts
from rewardkit.types import Cause, Outcome, Status


@dataclass(frozen=True, slots=True)
class Rescored:
    """What one pass came to."""

    number: int  # The pass's number in the record
    label: str  # The version that scored, such as `format@2`
    completions: int  # How many it scored or tried to
    scored: int  # Completions with a score of its own
    skipped: int  # Completions to which it did not apply
    failed: Mapping[str, int]  # Completions that it failed on, by cause
    mean: float | None  # Of its own scores; `None` without any
    before: float | None  # The mean of the scores that the run has of the same completions, under the same name
    cost: UnitCost  # What 1,000 completions take
    left_out: Mapping[str, int]  # Completions that could not be scored, by the reason


def rescore(
    run: RunReader,
    name: str,
    rewards: RewardSet,
    stored: Stored,
    *,
    wanted: Whole | None = None,
    about: Mapping[str, Any] | None = None,
    tick: Tick = lambda *numbers: None,
    **lane: Any,
) -> Rescored:
    """Score stored completions with a reward, alone in its set, and keep the scores as a pass.

    ``wanted`` has the numbers of those to score, all unless given; ``about`` is what is asked, for the record. ``tick``
    is called with the calls done, those known and those failed; ``lane`` has ``workers``, ``lane`` and
    ``load_timeout_s`` of a :class:`~rewardkit.replay.single_scorer.SingleScorer`. Raises RecordError where nothing can
    be scored, or the record cannot be written, and MissingColumnError where the run's rows lack a column.
    """
    numbers = stored.table.ids if wanted is None else wanted
    left_out: Counter[str] = Counter()
    outcomes = _Outcomes()
    recorded = _own_scores(stored.table, name)
    with SingleScorer(rewards, **lane) as scorer, contextlib.ExitStack() as stack:
        writer: PassWriter | None = None
        for read, answers in score_portions(run, scorer, stored, numbers, left_out, tick):
            if writer is None:  # not before something was scored: what does not load leaves no pass
                writer = stack.enter_context(PassWriter(run.path, name, scorer.reward, about=about, env=rewards.env))
            writer.add([completion.id for completion in read], answers)
            before = np.searchsorted(stored.table.ids, [completion.id for completion in read])
            outcomes.add(recorded[before], answers)
        if writer is None:
            reasons = [f"{count:,}: {reason}" for reason, count in left_out.items()]
            why = "; ".join(reasons) or "it has no completions there"
            raise RecordError(f"{run.name}: no completions to score with {name!r}: {why}")
        return outcomes.total(writer.id, f"{name}@{writer.version}", scorer.cost.total(), left_out)


def score_portions(
    run: RunReader,
    scorer: SingleScorer,
    stored: Stored,
    wanted: Whole,
    left_out: Counter[str],
    tick: Tick,
    rewards: Collection[str] = (),
) -> Iterator[tuple[Sequence[Completion], Sequence[Outcome]]]:
    """Yield completions with a reward's outcomes now, a portion at a time; groups are scored whole.

    ``left_out`` counts those that cannot be scored, by the reason; ``tick`` is called with the calls done, those known
    and those failed. The completions have the recorded outcomes of ``rewards``. Raises RecordError where the reward
    reads what a record does not keep, and MissingColumnError where the run's rows lack a column.
    """
    wrong = obstacle(scorer.reward)
    if wrong is not None:
        raise RecordError(f"{run.name}: {wrong}")
    needs = needs_of(scorer.reward)
    chosen = with_their_groups(stored, wanted) if needs.groups else stored.of(wanted)
    wanted_ids = set(wanted.tolist())
    count = Count(tick, len(chosen))
    with GradedFolders(run.path.home) as folders:
        ahead = Ahead(portions(run, chosen, needs, left_out, rewards, folders=folders))
        for read in ahead:
            outcomes = score(run, scorer, read.portion, count, ahead.fetch)
            pairs = [
                (completion, answer)
                for completion, answer in zip(read.completions, outcomes, strict=True)
                if completion.id in wanted_ids
            ]
            if pairs:
                yield [completion for completion, _ in pairs], [answer for _, answer in pairs]


def score(
    run: RunReader,
    scorer: SingleScorer,
    portion: Portion,
    count: Count,
    meanwhile: Callable[[], None] = lambda: None,
) -> list[Outcome]:
    """Return a reward's outcomes of a portion; an error on a missing column says that the run lacks it."""
    check_rollouts(scorer.reward.leaves, portion.rollouts, whose=f"a row of the run {run.name!r}")
    return scorer.score(portion, count, meanwhile)


def unanswered_completions(run: RunReader, stored: Stored, name: str, version: int | None = None) -> Stored:
    """Return the completions whose call was lost through no fault of theirs, and that no pass has answered since.

    Only passes of ``version`` answer; ``None`` for the version that failed. Raises RecordError without such a reward.
    """
    table = stored.table
    if name not in table.causes:
        raise RecordError(f"{run.name}: no reward {name!r}; it has {', '.join(table.causes) or 'none'}")
    lost = stored.where(np.isin(table.causes[name], [cause for cause in Cause if cause.is_loss]))
    ids = lost.table.ids
    answered = np.zeros(len(ids), dtype=bool)
    for scoring in (scoring for scoring in run.passes if scoring.reward == name):
        answers = run.rescored(scoring.id, ids.tolist())
        counts = lost.table.versions[name] == scoring.version if version is None else version == scoring.version
        has_answer = [key in answers and not answers[key].is_lost for key in ids.tolist()]
        answered |= np.array(has_answer, dtype=bool) & counts
    return lost.where(~answered)


def ask_again(
    run: RunReader,
    name: str,
    stored: Stored,
    *,
    limit: int | None = None,
    about: Mapping[str, Any] | None = None,
    tick: Tick = lambda *numbers: None,
    **lane: Any,
) -> list[Rescored]:
    """Score again what a reward failed on through no fault of the completions, with the version that failed.

    Whole batches are needed. Only the first ``limit`` of the unanswered are asked; see :func:`rescore` for the other
    options. Returns one pass a version; none where nothing is unanswered. Raises RecordError, which says why, where
    there is no such reward, or a version cannot be had again.
    """
    lost = unanswered_completions(run, stored, name)
    lost = lost.of(lost.table.ids[:limit])
    numbers = lost.table.versions[name]
    versions = {version.number: version for version in run.versions if version.reward == name}
    passes = []
    with VersionFinder() as finder:
        rewards = {}
        for number in np.unique(numbers).tolist():
            reward, why, address = finder.find(versions[number])
            if reward is None:
                name_it = "name one with --reward" if address is None else f"give --reward {address}"
                raise RecordError(f"{versions[number].label} cannot be asked again: {why}; {name_it}")
            rewards[number] = RewardSet({name: reward})
        for number, reward_set in rewards.items():
            wanted = lost.table.ids[numbers == number]
            passes.append(rescore(run, name, reward_set, stored, wanted=wanted, about=about, tick=tick, **lane))
    return passes


def _own_scores(table: CompletionTable, name: str) -> Floats:
    """Return the scores that a reward gave itself in the run; ``nan`` for a completion without one."""
    if name not in table.scores:
        return np.full(len(table), np.nan)
    return np.where(table.status[name] == "s", table.scores[name], np.nan)


class _Outcomes:
    """Numbers of a pass, added up portion by portion."""

    def __init__(self) -> None:
        self._status: Counter[Status] = Counter()
        self._causes: Counter[str] = Counter()
        self._before: list[float] = []
        self._now: list[float] = []  # The scores that it gave itself, those before in the run

    def add(self, before: Floats, now: Sequence[Outcome]) -> None:
        """Add a portion's recorded scores, ``nan`` without one, and the outcomes of this pass."""
        self._status.update(outcome.status for outcome in now)
        self._causes.update(outcome.cause.value for outcome in now if outcome.cause is not None)
        self._before += before[~np.isnan(before)].tolist()
        self._now += [outcome.score for outcome in now if outcome.status is Status.SCORED and outcome.score is not None]

    def total(self, number: int, label: str, cost: UnitCost, left_out: Mapping[str, int]) -> Rescored:
        return Rescored(
            number=number,
            label=label,
            completions=sum(self._status.values()),
            scored=self._status[Status.SCORED],
            skipped=self._status[Status.SKIPPED],
            failed=dict(self._causes),
            mean=_mean(self._now),
            before=_mean(self._before),
            cost=cost,
            left_out=dict(left_out),
        )


def _mean(scores: Sequence[float]) -> float | None:
    return math.fsum(scores) / len(scores) if scores else None
