"""What the audit takes from a record: the newest completions of a run, with what one reward gave them."""

from __future__ import annotations

from collections import deque

from rewardkit.audit.exploits import PaidCompletion
from rewardkit.declare.compose import Composable
from rewardkit.errors import RecordError
from rewardkit.record.reader import RunReader
from rewardkit.replay.versions import VersionFinder
from rewardkit.types import Status

NEWEST = 5_000
"""How many of a run's completions are looked at, the newest, because a policy drifts to what it is paid for."""


def pool_of(run: RunReader, reward: str, newest: int = NEWEST) -> list[PaidCompletion]:
    """Return the newest completions of a run with the score that a reward gave them, the oldest first.

    The score is ``None`` where the call was skipped or failed: a default in its place does not make it a completion
    that was paid. For a reward that the run does not know it is the total of those that it does. Completions whose
    text was left out are passed over.

    Raises:
        RecordError: The run has no such completions.
    """
    known = reward in run.rewards
    found: deque[PaidCompletion] = deque(maxlen=newest)
    for one in run.completions(after=max(0, run.count() - newest)):
        outcome = one.outcomes.get(reward)
        own = outcome.score if outcome is not None and outcome.status is Status.SCORED else None
        if one.completion is not None:
            score = own if known else one.total
            found.append(PaidCompletion(one.id, one.prompt, one.completion, one.columns, score, one.tokens))
    if not found:
        raise RecordError(f"{run.path}: no completions with their texts in this record")
    if all(one.score is None for one in found):
        raise RecordError(f"{run.path}: no completion was scored by {reward!r} among the newest {len(found):,}")
    return list(found)


def rewards_of(run: RunReader, finder: VersionFinder) -> dict[str, Composable]:
    """Return the rewards of a run by name, each as its newest version's reference has it now, or as it was recorded.

    Raises:
        RecordError: The run has no rewards, or one of them cannot be had.
    """
    newest = {one.reward: one for one in run.own_versions}
    if not newest:
        raise RecordError(f"{run.path}: no rewards in this record; name some before --run")
    found = {name: finder.find_now(version) for name, version in newest.items()}
    lost = next((name for name, one in found.items() if one.reward is None), None)
    if lost is not None:
        raise RecordError(
            f"{run.path}: {lost!r} cannot be had: {found[lost].why}; "
            "name rewards before --run, as in: rewardkit audit rewards.py --run RUN"
        )
    return {name: one.reward for name, one in found.items() if one.reward is not None}
