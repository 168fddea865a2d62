"""What the results of a group's matches are worth: Bradley-Terry strengths, win rates, ranks.

Owns the ratings only; which matches are played is in ``tournament``. A failed match counts for nothing, and a
completion without any result has no rating, never a middling one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from builtin_rewards.judge.tournament import Match

TOLERANCE = 1e-9
"""The strengths are done when no log-strength moves further than this in one iteration."""
MAX_ITERATIONS = 20_000
"""Each iteration raises the likelihood, so strengths that are cut off here are the best so far."""
_SAME_STRENGTH = 1e-6
"""Strengths no further apart than this share a rank: more than the iterations leave, less than any result makes."""


def bradley_terry(n: int, matches: Sequence[Match], *, prior: float = 1.0) -> list[float | None]:
    """Gives log-strengths θ under which i beats j with probability 1 / (1 + exp(θ_j - θ_i)).

    They maximise the likelihood of the matches, a tie as half a win for both, times a prior: as if each completion
    had also played ``prior`` matches in all, spread evenly over the others, each a tie. The prior keeps strengths
    finite where one wins all its matches or the matches do not connect all completions, treats all alike, and changes
    no order in a round robin. Simulated groups of 8 and 16 put the expected win rates nearer to the true ones with a
    prior of 1 than with 0.3 or less.

    Found by the iteration λ_i ← w_i / Σ_j n_ij / (λ_i + λ_j), λ = exp θ, w_i the wins of i, n_ij the matches of i
    with j, for all i at once: Hunter, MM Algorithms for Generalized Bradley-Terry Models, Annals of Statistics 32(1)
    (2004), 384-406, equation 3. It ends at :data:`TOLERANCE`, or after :data:`MAX_ITERATIONS`. The clearer the order
    and the larger the group, the more it needs: where the better always wins, a round robin takes 270 iterations for
    a group of 8, 800 for 16, 6,200 for 64; Swiss rounds take 370 for 64.

    Args:
        n: How many completions there are.
        matches: Their matches; those that failed are left out.
        prior: Weight of the prior, in matches a completion; above 0.

    Returns:
        For each completion its log-strength, with mean 0; ``None`` for one without any result.

    Raises:
        ValueError: ``prior`` is not a finite number above 0.
    """
    if not 0 < prior < math.inf:
        raise ValueError(f"prior: expected a finite number above 0, got {prior}")
    import numpy as np

    played = [match for match in matches if match.result is not None]
    rated = sorted({index for match in played for index in (match.first, match.second)})
    if not rated:
        return [None] * n
    place = {index: row for row, index in enumerate(rated)}
    games = np.full((len(rated), len(rated)), prior / (len(rated) - 1))
    np.fill_diagonal(games, 0)
    wins = np.full(len(rated), prior / 2)
    for match in played:
        first, second, result = place[match.first], place[match.second], match.result or 0.0
        games[first, second] += 1
        games[second, first] += 1
        wins[first] += result
        wins[second] += 1 - result
    logs = np.zeros(len(rated))
    for _ in range(MAX_ITERATIONS):
        strengths = np.exp(logs)
        new = np.log(wins / (games / (strengths[:, None] + strengths)).sum(axis=1))
        new -= new.mean()
        moved, logs = np.abs(new - logs).max(), new
        if moved <= TOLERANCE:
            break
    ratings: list[float | None] = [None] * n
    for index, log in zip(rated, logs.tolist(), strict=True):
        ratings[index] = log
    return ratings


def win_rates(n: int, matches: Sequence[Match]) -> list[float | None]:
    """Gives the share of its matches that each completion won, a tie as half; ``None`` for one without any result.

    Args:
        n: How many completions there are.
        matches: Their matches; those that failed are left out.
    """
    won: list[list[float]] = [[] for _ in range(n)]
    for match in matches:
        if match.result is not None:
            won[match.first].append(match.result)
            won[match.second].append(1 - match.result)
    return [math.fsum(results) / len(results) if results else None for results in won]


def expected_win_rates(strengths: Sequence[float | None]) -> list[float | None]:
    """Gives how often each completion is expected to win against another of its group, in (0, 1).

    Formula: the mean over the others of 1 / (1 + exp(θ_j - θ_i)). The group's mean is one half.

    Args:
        strengths: Log-strengths, as :func:`bradley_terry` gives them; ``None`` for one that has none and is left out.

    Returns:
        ``None`` for one that has no strength, or no other to compare with.
    """
    rated = [strength for strength in strengths if strength is not None]
    if len(rated) < 2:
        return [None] * len(strengths)
    # Over all, itself included at one half, which is then taken off.
    return [
        None if own is None else (math.fsum(_sigmoid(own - other) for other in rated) - 0.5) / (len(rated) - 1)
        for own in strengths
    ]


def rank_scores(strengths: Sequence[float | None]) -> list[float | None]:
    """Gives each completion's place in its group: 1.0 for the strongest, 0.0 for the weakest, evenly between.

    Formula: (rank - 1) / (k - 1) among the k that have a strength, rank 1 the weakest; equals share the mean of their
    ranks.

    Args:
        strengths: Log-strengths or win rates; ``None`` for one that has none and is left out.

    Returns:
        ``None`` for one that has no strength, or no other to compare with.
    """
    rated = [index for index, strength in enumerate(strengths) if strength is not None]
    scores: list[float | None] = [None] * len(strengths)
    if len(rated) > 1:
        ranks = mean_ranks([strengths[index] or 0.0 for index in rated], _SAME_STRENGTH)
        for index, rank in zip(rated, ranks, strict=True):
            scores[index] = (rank - 1) / (len(rated) - 1)
    return scores


def _sigmoid(difference: float) -> float:
    # exp of a large positive number overflows; of a large negative one it is 0.
    if difference < 0:
        return 1 - _sigmoid(-difference)
    return 1 / (1 + math.exp(-difference))


def mean_ranks(values: Sequence[float], tolerance: float = 0.0) -> list[float]:
    """Gives each value's rank from 1, the smallest; equal ones share the mean of their ranks.

    Args:
        values: Finite numbers.
        tolerance: Neighbours in the order that are no further apart than this count as equal.
    """
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    start = 0
    for end in range(1, len(order) + 1):
        if end == len(order) or values[order[end]] - values[order[end - 1]] > tolerance:
            for index in order[start:end]:
                ranks[index] = (start + 1 + end) / 2
            start = end
    return ranks
