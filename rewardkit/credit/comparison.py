"""Advantages of turns: numbers of several rewards in one, returns, and what a turn is compared with; pure functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from rewardkit.advantages import EPS
from rewardkit.credit.earnings import TurnNumbers
from rewardkit.errors import ObjectiveError

NORMALIZATIONS = ("turn", "group", "batch", "none")
"""What a turn's number is compared with.

- ``"turn"``: less the mean of the same turn (first with first, second with second) in its group, over their standard
  deviation, as MT-GRPO has it (arXiv 2505.11821, 3.2).
- ``"group"``: the same with all turns of the group together, as GRPO with process supervision has it (arXiv 2402.03300,
  4.1.3).
- ``"batch"``: less the mean of the same turn in its group, over the standard deviation of all turns of the batch.
- ``"none"``: the number as it is.
"""
RETURNS = ("own", "to_go")
"""What a turn answers for: its own number, or the discounted sum of its own and those of later turns."""
_Turns: TypeAlias = Sequence[float | None]


def turn_totals(
    rewards: Sequence[Sequence[TurnNumbers]], weights: Sequence[float], num_generations: int
) -> list[list[float | None]]:
    """Return the weighted sum of several rewards' numbers, for each completion and turn, over those that are known.

    Where a call failed, what stands in for it counts for each of the completion's turns, or the worst number that a
    turn of its group has from that reward where this is worse. So a failure earns no more than any turn beside it.

    Args:
        rewards: For each reward one entry a completion, the completions of a prompt side by side.
        weights: One a reward.
        num_generations: Completions a group.

    Raises:
        ObjectiveError: The completions make no whole groups, or rewards and weights do not match.
    """
    if len(rewards) != len(weights):
        raise ObjectiveError(f"{len(rewards)} rewards with credit and {len(weights)} weights: give one each")
    columns = [
        _with_stand_ins(column, weight, num_generations) for column, weight in zip(rewards, weights, strict=True)
    ]
    totals: list[list[float | None]] = []
    for rows in zip(*columns, strict=True):
        longest = max(map(len, rows))
        terms = [
            [weight * row[turn] for row, weight in zip(rows, weights, strict=True) if _is_known(row, turn)]
            for turn in range(longest)
        ]
        totals.append([math.fsum(summands) if summands else None for summands in terms])
    return totals


def _is_known(row: _Turns, turn: int) -> bool:
    return turn < len(row) and row[turn] is not None


def _with_stand_ins(column: Sequence[TurnNumbers], weight: float, num_generations: int) -> list[Any]:
    """Return one reward's numbers with what stands in for calls that failed, group by group."""
    _check_groups(len(column), num_generations)
    rows: list[_Turns] = []
    worst = max if weight < 0 else min
    for first in range(0, len(column), num_generations):
        group = column[first : first + num_generations]
        numbers = [number for row in group for number in row.numbers if number is not None]
        for row in group:
            if row.stand_in is None:
                rows.append(row.numbers)
            else:
                rows.append([worst([row.stand_in, *numbers])] * len(row.numbers))
    return rows


def turn_advantages(
    turns: Sequence[_Turns],
    num_generations: int,
    *,
    normalize: str = "turn",
    returns: str = "own",
    discount: float = 1.0,
    ddof: int = 1,
    eps: float = EPS,
) -> list[list[float]]:
    """Return the advantage of each turn: its return, compared with others of its group.

    Args:
        turns: For each completion the numbers of its turns, ``None`` or ``nan`` where one is not known; the completions
            of a prompt side by side.
        num_generations: Completions a group, 1 or more.
        normalize: One of :data:`NORMALIZATIONS`.
        returns: One of :data:`RETURNS`. A number that is not known adds nothing to the returns of turns before it.
        discount: What a number is multiplied by for each turn between it and the one that answers for it, above 0 and
            at most 1; for ``"to_go"``.
        ddof: Taken from the count in a standard deviation, 1 as in TRL.
        eps: Added to a standard deviation.

    Returns:
        One a turn: 0 where the number is not known, and where nothing is known to compare it with.

    Raises:
        ObjectiveError: The completions make no whole groups, a number is infinite, or a setting is out of range.
    """
    for name, value, names in (("normalize", normalize, NORMALIZATIONS), ("returns", returns, RETURNS)):
        if value not in names:
            raise ObjectiveError(f"{name}={value!r}: expected {', '.join(map(repr, names[:-1]))} or {names[-1]!r}")
    if isinstance(discount, bool) or not isinstance(discount, int | float) or not 0 < discount <= 1:
        raise ObjectiveError(f"discount={discount!r}: expected a number above 0 and at most 1")
    _check_groups(len(turns), num_generations)
    table = _table(turns)
    if not table.size:
        return [[] for _ in turns]
    if returns == "to_go":
        table = _to_go(table, discount)
    if normalize != "none":
        table = _normalized(table, num_generations, normalize, ddof, eps)
    table = np.where(np.isnan(table), 0.0, table)
    return [table[row, : len(numbers)].tolist() for row, numbers in enumerate(turns)]


def _table(turns: Sequence[_Turns]) -> Any:
    """Return the numbers as an array, (completions, turns); ``nan`` where one is not known or there is no turn."""
    table = np.full((len(turns), max(map(len, turns), default=0)), np.nan)
    for row, numbers in enumerate(turns):
        table[row, : len(numbers)] = [math.nan if number is None else number for number in numbers]
    if np.isinf(table).any():
        row, turn = map(int, np.argwhere(np.isinf(table))[0])
        raise ObjectiveError(f"completion {row}, turn {turn}: an infinite number; expected a finite one, nan or None")
    return table


def _to_go(table: Any, discount: float) -> Any:
    """Return each known number with the discounted sum of the known ones behind it."""
    returns, later = np.full_like(table, np.nan), np.zeros(len(table))
    for turn in reversed(range(table.shape[1])):
        own = table[:, turn]
        later = np.where(np.isnan(own), 0.0, own) + discount * later
        returns[:, turn] = np.where(np.isnan(own), np.nan, later)
    return returns


def _normalized(table: Any, num_generations: int, normalize: str, ddof: int, eps: float) -> Any:
    """Return the numbers less a mean over a standard deviation, by one of the ways but ``"none"``."""
    groups = table.reshape(-1, num_generations, table.shape[1])
    axes = (1, 2) if normalize == "group" else (1,)
    centred = groups - _mean(groups, axes)
    spread = _deviation(table[None], (1, 2), ddof) if normalize == "batch" else _deviation(groups, axes, ddof)
    return (centred / (spread + eps)).reshape(table.shape)


def _mean(values: Any, axes: tuple[int, ...]) -> Any:
    """Return the mean of what is known along some axes; ``nan`` where nothing is."""
    present = ~np.isnan(values)
    count = present.sum(axis=axes, keepdims=True)
    total = np.where(present, values, 0.0).sum(axis=axes, keepdims=True)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _deviation(values: Any, axes: tuple[int, ...], ddof: int) -> Any:
    """Return the standard deviation of what is known along some axes; ``nan`` where too little is."""
    present = ~np.isnan(values)
    count = present.sum(axis=axes, keepdims=True)
    squares = np.where(present, (values - _mean(values, axes)) ** 2, 0.0).sum(axis=axes, keepdims=True)
    return np.where(count > ddof, np.sqrt(squares / np.maximum(count - ddof, 1)), np.nan)


def _check_groups(count: int, num_generations: int) -> None:
    is_count = isinstance(num_generations, int) and not isinstance(num_generations, bool) and num_generations >= 1
    if not is_count or count % num_generations:
        raise ObjectiveError(f"{count} completions make no whole groups of num_generations={num_generations!r}")
