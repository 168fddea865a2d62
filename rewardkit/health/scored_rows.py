"""Rows that ``rewardkit score --out`` wrote, as the batch they were: outcomes are read, and nothing is scored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rewardkit.errors import DataError
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Cause, Outcome, Rollout, Status


def are_scored(rollouts: Sequence[Rollout]) -> bool:
    """Whether rollouts are rows of ``rewardkit score --out``: they have ``example`` and ``rewards``, both objects."""
    return bool(rollouts) and all(isinstance(rollouts[0].example.get(key), Mapping) for key in ("example", "rewards"))


def batch_of(rollouts: Sequence[Rollout], where: str) -> ScoreBatch:
    """Return the batch that such rows were; every reward weighs 1, because the rows have no weights.

    Raises DataError with the row's number, from 0, where its rewards are not the first row's or not outcomes.
    """
    names = list(rollouts[0].example["rewards"])
    outcomes: dict[str, list[Outcome]] = {name: [] for name in names}
    batch_rollouts = []
    for index, row in enumerate(rollouts):
        outcomes_of, example = row.example.get("rewards"), row.example.get("example")
        if not isinstance(outcomes_of, Mapping) or not isinstance(example, Mapping) or list(outcomes_of) != names:
            raise DataError(f"{where}: row {index}: expected the outcomes of {', '.join(names)}, as in row 0")
        for name in names:
            outcomes[name].append(_outcome(outcomes_of[name], f"{where}: row {index}, reward {name!r}"))
        batch_rollouts.append(Rollout(row.prompt, row.completion, example, row.completion_ids))
    return ScoreBatch(batch_rollouts, outcomes, dict.fromkeys(names, 1.0))


def _outcome(fields: Any, where: str) -> Outcome:
    """Return the outcome in a row's fields; raise DataError where they are not those of an outcome."""
    try:
        score, cause = fields["score"], fields.get("cause")
        return Outcome(
            Status(fields["status"]),
            None if score is None else float(score),
            cause=None if cause is None else Cause(cause),
            duration_s=float(fields.get("duration_s", 0.0)),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"{where}: expected an outcome with status and score: {type(error).__name__}: {error}"
        ) from None
