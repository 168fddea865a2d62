"""What results are worth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builtin_rewards.judge.strengths import bradley_terry, expected_win_rates, mean_ranks, rank_scores, win_rates
from builtin_rewards.judge.tournament import Match, round_robin, swiss

few = settings(max_examples=30)
CLOSE = 1e-6
PRIORS = st.sampled_from([0.1, 0.5, 1.0, 3.0])


@st.composite
def tournaments(draw: st.DrawFn, least: int = 2) -> tuple[int, list[Match]]:
    """A group and any matches in it, failed and repeated ones included."""
    n = draw(st.integers(least, 7))
    pair = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda pair: pair[0] != pair[1])
    result = st.sampled_from([0.0, 0.5, 1.0, 0.8, None])
    return n, draw(st.lists(st.builds(lambda pair, result: Match(*pair, result), pair, result), max_size=15))


def known(strengths: Sequence[float | None]) -> list[float]:
    """The strengths of a group in which all have one."""
    assert None not in strengths
    return [strength for strength in strengths if strength is not None]


def close(expected: Sequence[float | None], tolerance: float = CLOSE) -> Any:
    return [None if value is None else pytest.approx(value, abs=tolerance) for value in expected]


def newton(n: int, matches: Sequence[Match], prior: float) -> list[float]:
    """The maximum of the same log-posterior, by Newton's method on it; all must have a result.

    The log-posterior is Σ r log s(d) + (1 - r) log s(-d) with d the difference of a match's log-strengths and s the
    logistic function, over the matches and over ties of weight prior / (n - 1) between all pairs.
    """
    weighted = [(match.first, match.second, match.result, 1.0) for match in matches if match.result is not None]
    weighted += [(low, high, 0.5, prior / (n - 1)) for high in range(n) for low in range(high)]

    def posterior(logs: Any) -> float:
        return -sum(
            weight * (result * np.logaddexp(0, logs[j] - logs[i]) + (1 - result) * np.logaddexp(0, logs[i] - logs[j]))
            for i, j, result, weight in weighted
        )

    logs = np.zeros(n)
    for _ in range(100):
        slope, bend = np.zeros(n), np.full((n, n), 1.0 / n)
        for i, j, result, weight in weighted:
            chance = 1 / (1 + math.exp(logs[j] - logs[i]))
            slope[[i, j]] += weight * (result - chance) * np.array([1, -1])
            bend[np.ix_([i, j], [i, j])] += weight * chance * (1 - chance) * np.array([[1, -1], [-1, 1]])
        step = np.linalg.solve(bend, slope)
        while posterior(logs + step) < posterior(logs) and np.abs(step).max() > 1e-12:
            step /= 2
        logs = logs + step
        if np.abs(step).max() < 1e-11:
            break
    return (logs - logs.mean()).tolist()


@few
@given(tournaments(), PRIORS)
def test_strengths_maximise_the_posterior(tournament: tuple[int, list[Match]], prior: float) -> None:
    """Another method on the same function, over the completions with a result, ends at the same point."""
    n, matches = tournament
    strengths = bradley_terry(n, matches, prior=prior)
    rated = [index for index in range(n) if strengths[index] is not None]
    if rated:
        place = {index: row for row, index in enumerate(rated)}
        among = [Match(place[m.first], place[m.second], m.result) for m in matches if m.result is not None]
        assert close(newton(len(rated), among, prior)) == [strengths[index] for index in rated]


@pytest.mark.parametrize("n", [5, 24])
@pytest.mark.parametrize("plan", [round_robin, swiss])
def test_a_total_order_is_solved_too(plan: Any, n: int) -> None:
    """Where the better always wins, the iterations are many and still enough."""
    matches: list[Match] = []
    while pairs := plan(n, matches):
        matches += [Match(first, second, float(first < second)) for first, second in pairs]
    assert close(newton(n, matches, 1.0)) == bradley_terry(n, matches)


@pytest.mark.parametrize(
    ("wins", "losses", "prior"), [(1, 0, 1.0), (3, 1, 1.0), (3, 1, 0.1), (0, 7, 0.01), (2, 2, 1.0)]
)
def test_strengths_of_two_by_hand(wins: int, losses: int, prior: float) -> None:
    """Of two the odds are (wins + prior / 2) / (losses + prior / 2), for a prior between two is ``prior`` ties."""
    matches = [Match(0, 1, 1.0)] * wins + [Match(1, 0, 1.0)] * losses
    log_odds = math.log((wins + prior / 2) / (losses + prior / 2))
    assert close([log_odds / 2, -log_odds / 2]) == bradley_terry(2, matches, prior=prior)
    assert close([1 / (1 + math.exp(-log_odds)), 1 / (1 + math.exp(log_odds))]) == expected_win_rates(
        bradley_terry(2, matches, prior=prior)
    )


def test_a_tie_is_half_a_win_for_both() -> None:
    """Two ties say what a win and a loss say."""
    others = [Match(0, 1, 1.0), Match(1, 2, 1.0)]
    ties = bradley_terry(3, [*others, Match(0, 2, 0.5), Match(0, 2, 0.5)])
    assert close(ties) == bradley_terry(3, [*others, Match(0, 2, 1.0), Match(0, 2, 0.0)])


@pytest.mark.parametrize(
    "matches",
    [
        [Match(0, 1, 1.0), Match(0, 2, 1.0), Match(0, 3, 1.0)],
        [Match(0, 1, 1.0), Match(2, 3, 1.0)],
        [Match(0, 1, 1.0), Match(1, 2, 1.0), Match(2, 3, 1.0)] * 100,
    ],
    ids=["one wins all", "two parts", "hundreds"],
)
def test_the_prior_keeps_strengths_finite(matches: list[Match]) -> None:
    """Where the likelihood alone has no maximum; expected win rates stay inside (0, 1), with mean one half."""
    strengths = known(bradley_terry(4, matches))
    rates = known(expected_win_rates(strengths))
    assert all(math.isfinite(strength) for strength in strengths)
    assert pytest.approx(0.0, abs=CLOSE) == sum(strengths)
    assert all(0 < rate < 1 for rate in rates)
    assert pytest.approx(0.5) == sum(rates) / 4


@few
@given(tournaments())
def test_one_without_a_result_has_no_rating(tournament: tuple[int, list[Match]]) -> None:
    """Neither zero nor one half, in any rating; failed matches change nothing for the rest."""
    n, matches = tournament
    results = [match for match in matches if match.result is not None]
    without = set(range(n)) - {index for match in results for index in (match.first, match.second)}
    strengths = bradley_terry(n, matches)
    for ratings in (strengths, win_rates(n, matches), expected_win_rates(strengths), rank_scores(strengths)):
        assert without == {index for index, rating in enumerate(ratings) if rating is None}
    assert strengths == bradley_terry(n, results)
    assert win_rates(n, matches) == win_rates(n, results)


@few
@given(tournaments().flatmap(lambda drawn: st.tuples(st.just(drawn), st.permutations(range(drawn[0])))))
def test_names_make_no_difference(drawn: tuple[tuple[int, list[Match]], list[int]]) -> None:
    """Completions in another order, and matches told from the other side, have the same strengths."""
    (n, matches), new = drawn
    renamed = [Match(new[m.second], new[m.first], None if m.result is None else 1 - m.result) for m in matches]
    strengths, others = bradley_terry(n, matches), bradley_terry(n, renamed[::-1])
    assert close(strengths) == [others[new[index]] for index in range(n)]


@few
@given(
    st.integers(2, 7).flatmap(lambda n: st.tuples(st.just(n), st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=21)))
)
def test_a_round_robin_is_ordered_by_wins(drawn: tuple[int, list[float]]) -> None:
    """More wins are more strength, equal wins equal strength."""
    n, results = drawn
    matches = [Match(*pair, result) for pair, result in zip(round_robin(n, []), results, strict=False)]
    rates, strengths = known(win_rates(n, matches)), known(bradley_terry(n, matches))
    for one in range(n):
        for other in range(n):
            if rates[one] > rates[other] + CLOSE:
                assert strengths[one] > strengths[other] + CLOSE
            elif rates[one] == pytest.approx(rates[other]):
                assert pytest.approx(strengths[other], abs=CLOSE) == strengths[one]
    assert close(known(rank_scores(rates))) == rank_scores(strengths)


@few
@given(tournaments(least=3), st.data())
def test_a_win_more_never_lowers_a_strength(tournament: tuple[int, list[Match]], data: st.DataObject) -> None:
    """A win more, and a loss turned into a win, raise the winner's strength and expected win rate, or leave them."""
    n, matches = tournament
    matches = [*(Match(index, (index + 1) % n, 0.5) for index in range(n)), *matches]
    winner = data.draw(st.integers(0, n - 1))
    loser = data.draw(st.integers(0, n - 1).filter(lambda index: index != winner))
    before, less, more = (
        bradley_terry(n, matches + extra) for extra in ([], [Match(loser, winner, 1.0)], [Match(winner, loser, 1.0)])
    )
    for rating in (known, lambda strengths: known(expected_win_rates(strengths))):
        assert rating(less)[winner] - CLOSE <= rating(before)[winner] <= rating(more)[winner] + CLOSE


@pytest.mark.parametrize("prior", [0.0, -1.0, math.nan, math.inf])
def test_a_senseless_prior_is_named(prior: float) -> None:
    """Without a prior there may be no finite strengths."""
    with pytest.raises(ValueError, match="prior: expected a finite number above 0"):
        bradley_terry(2, [], prior=prior)


def test_win_rates_are_shares_of_matches_with_a_result() -> None:
    """A tie is half a win; a failed match is no match."""
    matches = [Match(0, 1, 1.0), Match(2, 0, 0.5), Match(0, 3, None), Match(1, 2, 0.8)]
    assert close([0.75, 0.4, 0.35, None]) == win_rates(4, matches)


@pytest.mark.parametrize(
    ("strengths", "rates"),
    [
        ([], []),
        ([0.0], [None]),
        ([None, 1.0], [None, None]),
        ([0.0, None, 0.0], [0.5, None, 0.5]),
        ([math.log(3), 0.0], [0.75, 0.25]),
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


@pytest.mark.parametrize(
    ("values", "ranks"),
    [
        ([], []),
        ([7.0], [1.0]),
        ([3.0, 1.0, 2.0], [3.0, 1.0, 2.0]),
        ([1.0, 1.0, 2.0], [1.5, 1.5, 3.0]),
        ([5.0, 5.0, 5.0], [2.0, 2.0, 2.0]),
    ],
    ids=repr,
)
def test_equal_values_share_their_mean_rank(values: list[float], ranks: list[float]) -> None:
    """The smallest has rank 1."""
    assert ranks == mean_ranks(values)


def test_values_within_the_tolerance_are_equal() -> None:
    """Neighbours no further apart than the tolerance share a rank."""
    assert [1.5, 1.5, 3.0] == mean_ranks([0.0, 0.1, 0.3], tolerance=0.1)
