"""What the results of a group's comparisons are worth: Bradley-Terry strengths, win rates by them, ranks.

Results are a table: ``wins[i][j]`` is how often i won against j, a tie half a win for both; what failed is in none. A
completion without any result has no rating, ``None``, never a middling one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

Wins: TypeAlias = Sequence[Sequence[float]]
Ratings: TypeAlias = list[float | None]

_TOLERANCE, _MAX_ITERATIONS = 1e-9, 20_000
"""The iteration ends when no log-strength moves further; each raises the likelihood, so the last is the best so far."""
_SAME_STRENGTH = 1e-6
"""Strengths no further apart than this share a rank: more than the iterations leave, less than any result makes."""


def bradley_terry(wins: Wins) -> Ratings:
    """Gives log-strengths θ, of mean 0, under which i beats j with probability 1 / (1 + exp(θ_j - θ_i)).

    They maximise the likelihood of the results times a prior: as if each completion had also played one match in all,
    spread evenly over the others, each a tie. The prior keeps strengths finite where one wins all its matches or the
    results do not connect all completions, and changes no order where all meet.

    Found by the iteration λ_i ← w_i / Σ_j n_ij / (λ_i + λ_j), λ = exp θ, w_i the wins of i, n_ij the matches of i
    with j, for all i at once: Hunter, MM Algorithms for Generalized Bradley-Terry Models, Annals of Statistics 32(1)
    (2004), 384-406, equation 3. Where the better always wins, it takes 270 iterations for a group of 8, 6,200 for 64.
    """
    import numpy as np

    won = np.array(wins, dtype=float).reshape(len(wins), len(wins))
    rated = np.flatnonzero((won + won.T).sum(axis=1))
    ratings: Ratings = [None] * len(wins)
    if not len(rated):
        return ratings
    won = won[np.ix_(rated, rated)] + 0.5 / (len(rated) - 1)
    np.fill_diagonal(won, 0)
    logs = np.zeros(len(rated))
    for _ in range(_MAX_ITERATIONS):
        strengths = np.exp(logs)
        new = np.log(won.sum(axis=1) / ((won + won.T) / (strengths[:, None] + strengths)).sum(axis=1))
        new -= new.mean()
        moved, logs = np.abs(new - logs).max(), new
        if moved <= _TOLERANCE:
            break
    for index, log in zip(rated, logs.tolist(), strict=True):
        ratings[index] = log
    return ratings


def expected_win_rates(strengths: Sequence[float | None]) -> Ratings:
    """Gives how often each is expected to win against another of its group, from 0 to 1, of mean one half.

    Formula: the mean over the others that have a strength of 1 / (1 + exp(θ_j - θ_i)); ``None`` without others.
    """
    return _against_others(strengths, lambda ahead: 0.5 + math.tanh(ahead / 2) / 2)  # the same, and never too large


def rank_scores(strengths: Sequence[float | None]) -> Ratings:
    """Gives each one's place in its group: 1.0 for the strongest, 0.0 for the weakest, evenly between.

    Formula: the share of the others that have a strength which are weaker, equals as half; ``None`` without others.
    """
    return _against_others(strengths, lambda ahead: 0.5 if abs(ahead) <= _SAME_STRENGTH else float(ahead > 0))


def _against_others(strengths: Sequence[float | None], beats: Callable[[float], float]) -> Ratings:
    rated = [strength for strength in strengths if strength is not None]
    if len(rated) < 2:
        return [None] * len(strengths)
    # Over all, itself included at one half, which is then taken off.
    return [
        None if own is None else (math.fsum(beats(own - other) for other in rated) - 0.5) / (len(rated) - 1)
        for own in strengths
    ]
