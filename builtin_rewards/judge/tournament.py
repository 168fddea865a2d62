"""Which completions of a group are compared with each other, round by round.

Owns the plans (:func:`round_robin`, :func:`swiss`) and the driver that runs the matches of a round together
(:func:`play`). How two completions are compared is the caller's; what the results are worth is in ``strengths``.

A plan is a function of how many completions there are and of all matches so far; it gives the pairs of the next
round, and none when the tournament is over. It keeps no state and draws nothing at random.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar


@dataclass(frozen=True, slots=True)
class Match:
    """Two completions of a group, compared.

    Attributes:
        first: Index of the one that was named first.
        second: Index of the other.
        result: 1.0 if the first won, 0.0 if the second did, 0.5 for a tie, or a preference between; ``None`` if the
            comparison failed. A failed match is no tie: it counts for nothing.

    Raises:
        ValueError: A completion against itself, or a result outside [0, 1].
    """

    first: int
    second: int
    result: float | None

    def __post_init__(self) -> None:
        if self.first == self.second:
            raise ValueError(f"a match needs two completions, got {self.first} twice")
        if self.result is not None and not 0 <= self.result <= 1:
            raise ValueError(f"result of {self.first} against {self.second}: expected 0 to 1, got {self.result}")


Pair: TypeAlias = tuple[int, int]
"""Indices of two completions, the one to be named first before the other."""

Plan: TypeAlias = Callable[[int, Sequence[Match]], list[Pair]]
"""Gives the pairs of the next round for a number of completions and the matches so far; none at the end."""

M = TypeVar("M", bound=Match)


async def play(plan: Plan, n: int, compare: Callable[[int, int], Awaitable[M]]) -> list[M]:
    """Plays a tournament, all matches of a round at the same time.

    Args:
        plan: Which matches are played.
        n: How many completions there are.
        compare: Compares two completions by index. A comparison that fails is a match with no result; what this
            raises ends the tournament and cancels the matches under way.

    Returns:
        The matches in the order of the plan.
    """
    matches: list[M] = []
    while pairs := plan(n, matches):
        tasks = [asyncio.ensure_future(compare(first, second)) for first, second in pairs]
        try:
            matches += await asyncio.gather(*tasks)
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise
    return matches


def round_robin(n: int, matches: Sequence[Match]) -> list[Pair]:
    """Everyone against everyone: n (n - 1) / 2 matches, which do not depend on each other, in one round.

    Each completion is named first in half of its matches, give or take one.

    Args:
        n: How many completions there are.
        matches: Those so far.
    """
    if matches:
        return []
    pairs = itertools.combinations(range(n), 2)
    return [(low, high) if (high - low) % 2 else (high, low) for low, high in pairs]


def swiss(n: int, matches: Sequence[Match]) -> list[Pair]:
    """Swiss rounds: ⌈log2 n⌉ rounds of ⌊n / 2⌋ matches, so about (n / 2) log2 n in all.

    Each round pairs neighbours in the standing (wins less losses, then the opponents' standing, then the index), for
    a match between equals says most. Chosen before merge sort, which needs as many matches at best, but takes each
    single result for the truth, compares some completions more often than others, and has about n comparisons wait
    for each other, not log2 n.

    - Every completion plays the same number of matches, give or take one: of an odd number the last in the standing
      that has not sat out yet sits out. Sitting out is neither a win nor a loss.
    - Each meets the nearest in the standing whom no match connects it with yet, else the nearest whom it has not met,
      and somebody a second time where nobody else is left. Failed matches do not connect.
    - After a round in which every match failed the tournament is over: the comparator is not to be had.

    What it costs in precision, in a simulation of 100 groups of 16 with normal strengths of standard deviation 2: the
    strengths' rank correlation with the true ones is 0.79, that of a fixed plan with as many matches 0.76, that of a
    round robin with 120 matches in place of 32 0.93.

    Args:
        n: How many completions there are.
        matches: Those so far, the failed ones too.
    """
    if n < 2:
        return []
    size = n // 2
    played = len(matches) // size
    if played == (n - 1).bit_length() or (matches and all(match.result is None for match in matches[-size:])):
        return []
    standing = _standing(n, matches)
    if n % 2:
        standing.remove(_sits_out(standing, matches, played))
    cost = _costs(n, matches)
    return _sides_shared(_neighbours(standing, cost), matches)


_Cost: TypeAlias = Callable[[int, int], int]

_REMATCH = 2
"""More than a match inside a part."""


def _standing(n: int, matches: Sequence[Match]) -> list[int]:
    """Gives the completions from the first place to the last."""
    points = [0.0] * n
    for match in matches:
        if match.result is not None:
            points[match.first] += match.result - 0.5
            points[match.second] -= match.result - 0.5
    opposition = [0.0] * n
    for match in matches:
        if match.result is not None:
            opposition[match.first] += points[match.second]
            opposition[match.second] += points[match.first]
    return sorted(range(n), key=lambda index: (-points[index], -opposition[index], index))


def _sits_out(standing: Sequence[int], matches: Sequence[Match], played: int) -> int:
    """Gives the last in the standing that has played every round."""
    counts = dict.fromkeys(standing, 0)
    for match in matches:
        counts[match.first] += 1
        counts[match.second] += 1
    return next(index for index in reversed(standing) if counts[index] == played)


def _costs(n: int, matches: Sequence[Match]) -> _Cost:
    """Gives what it costs to pair two: nothing across parts, something inside one, most where they have met."""
    part = list(range(n))
    met = {frozenset((match.first, match.second)) for match in matches}
    for match in matches:
        if match.result is not None:
            old, new = part[match.first], part[match.second]
            part = [new if own == old else own for own in part]

    def cost(one: int, other: int) -> int:
        return _REMATCH if frozenset((one, other)) in met else int(part[one] == part[other])

    return cost


def _neighbours(standing: Sequence[int], cost: _Cost) -> list[Pair]:
    """Pairs from the top, each with the nearest of those that cost least."""
    waiting = list(standing)
    pairs = []
    while waiting:
        one = waiting.pop(0)
        other = min(waiting, key=lambda candidate: cost(one, candidate))
        waiting.remove(other)
        pairs.append((one, other))
    return pairs


def _sides_shared(pairs: Sequence[Pair], matches: Sequence[Match]) -> list[Pair]:
    """Names the one first that has been named first less often so far."""
    firsts = [match.first for match in matches]
    return [pair if firsts.count(pair[0]) <= firsts.count(pair[1]) else pair[::-1] for pair in pairs]
