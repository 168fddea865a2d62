"""What the audit takes from a record: the best paid completions of a run, and the rewards that paid them."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rewardkit.audit.probe import first_of_each
from rewardkit.audit.rows import ChosenRows, choose_rows
from rewardkit.declare.compose import Composable
from rewardkit.errors import RecordError
from rewardkit.record.reader import RunReader
from rewardkit.replay.versions import VersionFinder
from rewardkit.rows.reader import Row
from rewardkit.types import Status, Text

NEWEST = 5_000
"""How many of a run's completions are looked at, the newest, because a policy drifts to what it is paid for."""
UNIT = "completion"  # what the numbers of the rows count


@dataclass(frozen=True, slots=True)
class PaidCompletion:
    """A completion of a run as it was recorded."""

    id: int  # Its number in the record
    prompt: Text
    completion: Text
    columns: Mapping[str, Any]
    score: float | None = None  # What the reward gave it then; `None` where it was not asked
    tokens: int | None = None  # Its length in tokens, where the record has it


def pool_of(run: RunReader, reward: str, newest: int = NEWEST) -> list[PaidCompletion]:
    """Return the newest completions of a run that have a text, with a reward's score for each, the oldest first.

    The score is ``None`` where the call was skipped or failed, and the total for a reward that the run does not know.
    Raises RecordError where the run has no such completions.
    """
    in_run = reward in run.rewards
    pool: deque[PaidCompletion] = deque(maxlen=newest)
    for row in run.completions(after=max(0, run.count() - newest)):
        outcome = row.outcomes.get(reward)
        own = outcome.score if outcome is not None and outcome.status is Status.SCORED else None
        if row.completion is not None:
            score = own if in_run else row.total
            pool.append(PaidCompletion(row.id, row.prompt, row.completion, row.columns, score, row.tokens))
    if not pool:
        raise RecordError(f"{run.path}: no completions with their texts in this record")
    if all(completion.score is None for completion in pool):
        raise RecordError(f"{run.path}: no completion was scored by {reward!r} among the newest {len(pool):,}")
    return list(pool)


def rewards_of(run: RunReader, finder: VersionFinder) -> dict[str, Composable]:
    """Return a run's rewards by name, each as its newest version's reference now loads it, or as it was recorded.

    Raises RecordError where the run has no rewards, or one of them cannot be loaded.
    """
    newest = {version.reward: version for version in run.own_versions}
    if not newest:
        raise RecordError(f"{run.path}: no rewards in this record; name some before --run")
    matches = {name: finder.find_now(version) for name, version in newest.items()}
    lost = next((name for name, match in matches.items() if match.reward is None), None)
    if lost is not None and (address := matches[lost].address) is not None:
        raise RecordError(
            f"{run.path}: {lost!r} was scored by a server; name its address, as in: rewardkit audit {address} --run RUN"
        )
    if lost is not None:
        raise RecordError(
            f"{run.path}: {lost!r} cannot be had: {matches[lost].why}; "
            "name rewards before --run, as in: rewardkit audit rewards.py --run RUN"
        )
    return {name: match.reward for name, match in matches.items() if match.reward is not None}


def rows_of(
    pool: Sequence[PaidCompletion], count: int, *, seed: int, gold: str | None, named: Sequence[str], where: str
) -> ChosenRows:
    """Return the ``count`` best paid of a pool as rows, one of each prompt as long as there are others.

    Of equal scores the latest are taken. The column ``gold`` is looked for where it is ``None``, first among those
    ``named`` by the reward. ``where`` is what errors call the run.
    """
    lines = [Row(paid.id, {**paid.columns, "prompt": paid.prompt, "completion": paid.completion}) for paid in pool]
    places = best_places(pool, count)
    picked = choose_rows(lines, where, count=count, seed=seed, gold=gold, named=named, places=places)
    return replace(
        picked,
        rows=[replace(row, references=(row.own,)) if row.own else row for row in picked.rows],
        unit=UNIT,
        scores={paid.id: paid.score for paid in pool},
        tokens={paid.id: paid.tokens for paid in pool if paid.tokens is not None},
    )


def best_places(pool: Sequence[PaidCompletion], count: int) -> list[int]:
    """Return at most ``count`` indices of the best paid, from the middle between lowest and highest score upwards.

    Those of new prompts come first, then the latest.
    """
    scores = [paid.score for paid in pool if paid.score is not None]
    middle = (min(scores) + max(scores)) / 2 if scores else 0.0
    upper = [(paid.score, index) for index, paid in enumerate(pool) if paid.score is not None and paid.score >= middle]
    best = [index for _, index in sorted(upper, reverse=True)]
    different = first_of_each(best, lambda index: (repr(pool[index].prompt), repr(pool[index].completion)))
    of_new_prompts = first_of_each(different, lambda index: repr(pool[index].prompt))
    return sorted([*dict.fromkeys([*of_new_prompts, *different])][:count])
