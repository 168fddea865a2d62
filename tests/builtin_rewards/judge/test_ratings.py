"""What results are worth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builtin_rewards.judge.pairwise import bradley_terry, expected_win_rates, rank_scores

few = settings(max_examples=30)
CLOSE = 1e-6
RESULTS = (0.0, 0.5, 1.0, 2.0)


def table(n: int, results: Sequence[tuple[int, int, float]]) -> list[list[float]]:
    """The wins that results make: who met whom, and what the first had of one match."""
    wins = [[0.0] * n for _ in range(n)]
    for first, second, result in results:
        wins[first][second] += result
        wins[second][first] += 1 - result
    return wins


@st.composite
def tables(draw: st.DrawFn, met: bool = False) -> list[list[float]]:
    """The wins of a group; of some pairs none unless all met."""
    n = draw(st.integers(3, 7))
    wins = [[0.0] * n for _ in range(n)]
    for low in range(n):
        for high in range(low + 1, n):
            if met or draw(st.booleans()):
                wins[low][high], wins[high][low] = draw(st.sampled_from(RESULTS)), draw(st.sampled_from((0.5, 1.0)))
    return wins


def known(ratings: Sequence[float | None]) -> list[float]:
    """The ratings of a group in which all have one."""
    assert None not in ratings
    return [rating for rating in ratings if rating is not None]


def close(expected: Sequence[float | None]) -> Any:
    return [None if value is None else pytest.approx(value, abs=CLOSE) for value in expected]


def newton(wins: Sequence[Sequence[float]]) -> list[float]:
    """The maximum of the same log-posterior, by Newton's method on it; all must have a result.

    The log-posterior is Σ w_ij log s(θ_i - θ_j) with s the logistic function, over the wins and a tie of weight
    1 / (n - 1) between all pairs.
    """
    n = len(wins)
    won = np.array(wins) + (1 - np.eye(n)) / 2 / (n - 1)

    def loss(logs: Any) -> float:
        return float((won * np.logaddexp(0, logs[None, :] - logs[:, None])).sum())

    logs = np.zeros(n)
    for _ in range(100):
        chance = 1 / (1 + np.exp(logs[None, :] - logs[:, None]))
        slope = (won * (1 - chance) - won.T * chance).sum(axis=1)
        bend = -(won + won.T) * chance * (1 - chance)
        np.fill_diagonal(bend, 0)
        step = np.linalg.solve(np.diag(-bend.sum(axis=1)) + bend + 1 / n, slope)
        while loss(logs + step) > loss(logs) and np.abs(step).max() > 1e-12:
            step /= 2
        logs = logs + step
        if np.abs(step).max() < 1e-11:
            break
    return (logs - logs.mean()).tolist()


@few
@given(tables())
def test_strengths_maximise_the_posterior(wins: list[list[float]]) -> None:
    """Another method on the same function, over the completions with a result, ends at the same point."""
    strengths = bradley_terry(wins)
    rated = [index for index, strength in enumerate(strengths) if strength is not None]
    if rated:
        assert close(newton([[wins[one][other] for other in rated] for one in rated])) == [strengths[i] for i in rated]


@pytest.mark.parametrize("n", [5, 24])
def test_a_total_order_is_solved_too(n: int) -> None:
    """Where the better always wins, the iterations are many and still enough."""
    wins = [[float(first < second) for second in range(n)] for first in range(n)]
    assert close(newton(wins)) == bradley_terry(wins)


@pytest.mark.parametrize(("won", "lost"), [(1, 0), (3, 1), (0, 7), (2, 2)])
def test_strengths_of_two_by_hand(won: int, lost: int) -> None:
    """Of two the odds are (wins + 1/2) / (losses + 1/2), for the prior between two is one tie."""
    log_odds = math.log((won + 0.5) / (lost + 0.5))
    strengths = bradley_terry([[0.0, won], [lost, 0.0]])
    assert close([log_odds / 2, -log_odds / 2]) == strengths
    assert close([1 / (1 + math.exp(-log_odds)), 1 / (1 + math.exp(log_odds))]) == expected_win_rates(strengths)


HARD = {
    "one wins all": [(0, 1, 1.0), (0, 2, 1.0), (0, 3, 1.0)],
    "two parts": [(0, 1, 1.0), (2, 3, 1.0)],
    "hundreds": [(0, 1, 1.0), (1, 2, 1.0), (2, 3, 1.0)] * 100,
}


@pytest.mark.parametrize("results", HARD.values(), ids=HARD)
def test_the_prior_keeps_strengths_finite(results: list[tuple[int, int, float]]) -> None:
    """Where the likelihood alone has no maximum; expected win rates stay inside (0, 1), with mean one half."""
    strengths = known(bradley_terry(table(4, results)))
    rates = known(expected_win_rates(strengths))
    assert all(math.isfinite(strength) for strength in strengths)
    assert pytest.approx(0.0, abs=CLOSE) == sum(strengths)
    assert all(0 < rate < 1 for rate in rates)
    assert pytest.approx(0.5) == sum(rates) / 4


@few
@given(tables())
def test_one_without_a_result_has_no_rating(wins: list[list[float]]) -> None:
    """Neither zero nor one half, in any rating."""
    n = len(wins)
    without = {one for one in range(n) if not any(wins[one][other] or wins[other][one] for other in range(n))}
    strengths = bradley_terry(wins)
    for ratings in (strengths, expected_win_rates(strengths), rank_scores(strengths)):
        assert without == {index for index, rating in enumerate(ratings) if rating is None}


@few
@given(tables().flatmap(lambda wins: st.tuples(st.just(wins), st.permutations(range(len(wins))))))
def test_names_make_no_difference(drawn: tuple[list[list[float]], list[int]]) -> None:
    """Completions in another order have the same strengths."""
    wins, order = drawn
    strengths = bradley_terry(wins)
    renamed = bradley_terry([[wins[one][other] for other in order] for one in order])
    assert close([strengths[index] for index in order]) == renamed


@few
@given(st.integers(2, 7), st.lists(st.sampled_from((0.0, 0.5, 1.0)), min_size=21, max_size=21))
def test_where_all_meet_once_wins_decide(n: int, results: list[float]) -> None:
    """More wins are more strength, equal wins equal strength."""
    pairs = [(low, high) for high in range(n) for low in range(high)]
    wins = table(n, [(*pair, result) for pair, result in zip(pairs, results, strict=False)])
    rates, strengths = [sum(row) / (n - 1) for row in wins], known(bradley_terry(wins))
    for one in range(n):
        for other in range(n):
            if rates[one] > rates[other] + CLOSE:
                assert strengths[one] > strengths[other] + CLOSE
            elif rates[one] == pytest.approx(rates[other]):
                assert pytest.approx(strengths[other], abs=CLOSE) == strengths[one]
    assert close(known(rank_scores(rates))) == rank_scores(strengths)


@few
@given(tables(met=True), st.data())
def test_a_win_more_never_lowers_a_strength(wins: list[list[float]], data: st.DataObject) -> None:
    """A win more, and a loss turned into a win, raise the winner's strength and expected win rate, or leave them."""
    winner, loser = data.draw(st.permutations(range(len(wins))))[:2]
    strengths = []
    for row, column in ((loser, winner), (None, None), (winner, loser)):
        more = [list(one) for one in wins]
        if row is not None and column is not None:
            more[row][column] += 1
        strengths.append(bradley_terry(more))
    for ratings in (strengths, [expected_win_rates(one) for one in strengths]):
        less, before, more_of = (known(one)[winner] for one in ratings)
        assert less - CLOSE <= before <= more_of + CLOSE


@pytest.mark.parametrize(
    ("strengths", "rates"),
    [
        ([], []),
        ([0.0], [None]),
        ([None, 1.0], [None, None]),
        ([0.0, None, 0.0], [0.5, None, 0.5]),
        ([math.log(3), 0.0, 0.0], [0.75, (0.25 + 0.5) / 2, (0.25 + 0.5) / 2]),
        ([800.0, -800.0], [1.0, 0.0]),
    ],
    ids=repr,
)
def test_expected_win_rates_by_hand(strengths: list[float | None], rates: list[float | None]) -> None:
    """The mean over the others of the chance to win; nobody to compare with is no rate."""
    assert close(rates) == expected_win_rates(strengths)


@pytest.mark.parametrize(
    ("strengths", "scores"),
    [
        ([], []),
        ([1.0], [None]),
        ([None, 1.0], [None, None]),
        ([2.0, -1.0, 0.0], [1.0, 0.0, 0.5]),
        ([2.0, None, 2.0, 0.0], [0.75, None, 0.75, 0.0]),
        ([1.0, 1.0 + 1e-9], [0.5, 0.5]),
    ],
    ids=repr,
)
def test_rank_scores_share_ties(strengths: list[float | None], scores: list[float | None]) -> None:
    """Places are evenly spread from 0 to 1; strengths that differ by rounding alone are equal."""
    assert scores == rank_scores(strengths)
