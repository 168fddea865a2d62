"""Rows that ``rewardkit score --out`` wrote, as the batch they were: outcomes are read, and nothing is scored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rewardkit.errors import DataError
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Outcome, Rollout


def are_scored(rollouts: Sequence[Rollout]) -> bool:
    """Whether rollouts are rows of ``rewardkit score --out``: they have ``example`` and ``rewards``, both objects."""
    return bool(rollouts) and all(isinstance(rollouts[0].example.get(key), Mapping) for key in ("example", "rewards"))


def batch_of(rollouts: Sequence[Rollout], labels: Sequence[str]) -> ScoreBatch:
    """Return the batch that such rows were, with the weights that the first row names, or that make up the totals.

    Rows of an older release have no weights: where the totals do not tell them either, every reward weighs 1. Raises
    DataError with the row's label where its rewards are not the first row's or not outcomes.
    """
    names = list(rollouts[0].example["rewards"])
    outcomes: dict[str, list[Outcome]] = {name: [] for name in names}
    batch_rollouts = []
    for index, row in enumerate(rollouts):
        outcomes_of, example = row.example.get("rewards"), row.example.get("example")
        if not isinstance(outcomes_of, Mapping) or not isinstance(example, Mapping) or list(outcomes_of) != names:
            raise DataError(f"{labels[index]}: expected the outcomes of {', '.join(names)}, as in {labels[0]}")
        for name in names:
            outcomes[name].append(_outcome(outcomes_of[name], f"{labels[index]}: reward {name!r}"))
        batch_rollouts.append(Rollout(row.prompt, row.completion, example, row.completion_ids))
    weights = _weights(rollouts[0].example.get("weights"), names) or _weights_of_totals(rollouts, outcomes)
    return ScoreBatch(batch_rollouts, outcomes, weights)


def _weights(fields: Any, names: Sequence[str]) -> dict[str, float] | None:
    """Return the weights in a row; ``None`` where it has none of all these rewards."""
    if not isinstance(fields, Mapping) or not all(isinstance(fields.get(name), int | float) for name in names):
        return None
    return {name: float(fields[name]) for name in names}


def _weights_of_totals(rollouts: Sequence[Rollout], outcomes: Mapping[str, Sequence[Outcome]]) -> dict[str, float]:
    """Return the weights with which the scores add up to the rows' totals; 1 for each where no others are sure."""
    import numpy as np  # few files need it

    equal = dict.fromkeys(outcomes, 1.0)
    totals = [row.example.get("total") for row in rollouts]
    chosen = [index for index, total in enumerate(totals) if isinstance(total, int | float)]
    table = np.array([[column[index].score or 0.0 for column in outcomes.values()] for index in chosen], float)
    sums = np.array([totals[index] for index in chosen], float)
    if not len(table) or np.allclose(table.sum(axis=1), sums, atol=1e-9):
        return equal
    weights, _, rank, _ = np.linalg.lstsq(table, sums, rcond=None)
    if rank < len(outcomes) or not np.allclose(table @ weights, sums, rtol=1e-6, atol=1e-9):
        return equal
    return dict(zip(outcomes, weights.round(9).tolist(), strict=True))


def _outcome(fields: Any, where: str) -> Outcome:
    """Return the outcome in a row's fields; raise DataError where they are not those of an outcome."""
    try:
        score = fields["score"]
        outcome = Outcome.from_json({**fields, "score": None if score is None else float(score)})
        return outcome._replace(duration_s=float(outcome.duration_s), attempts=int(outcome.attempts))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"{where}: expected an outcome with status and score: {type(error).__name__}: {error}"
        ) from None
