"""Which completions meet, and how the matches of a round run."""

from __future__ import annotations

import asyncio
import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builtin_rewards.judge.tournament import Match, Pair, Plan, play, round_robin, swiss

few = settings(max_examples=60)
PLANS = pytest.mark.parametrize("plan", [round_robin, swiss])
RESULTS = st.sampled_from([0.0, 0.5, 1.0, 0.8])


def played(plan: Plan, n: int, result: Callable[[int, int], float | None]) -> list[Match]:
    """Plays a tournament without waiting."""
    matches: list[Match] = []
    while pairs := plan(n, matches):
        matches += [Match(first, second, result(first, second)) for first, second in pairs]
    return matches


def rounds(matches: Sequence[Match], n: int) -> list[list[Match]]:
    """The Swiss rounds that matches were played in."""
    return [list(matches[start : start + n // 2]) for start in range(0, len(matches), n // 2)]


def parts(n: int, matches: Sequence[Match]) -> int:
    """How many parts no result connects."""
    part = list(range(n))
    for match in matches:
        if match.result is not None:
            old, new = part[match.first], part[match.second]
            part = [new if own == old else own for own in part]
    return len(set(part))


def met(matches: Sequence[Match]) -> Counter[frozenset[int]]:
    """How often any two met."""
    return Counter(frozenset((match.first, match.second)) for match in matches)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 8, 13])
def test_a_round_robin_is_one_round_of_all_pairs(n: int) -> None:
    """Everyone meets everyone once, and each is named first in half its matches, give or take one."""
    pairs = round_robin(n, [])
    firsts, seconds = (Counter(pair[side] for pair in pairs) for side in (0, 1))
    assert {frozenset(pair) for pair in itertools.combinations(range(n), 2)} == {frozenset(pair) for pair in pairs}
    assert n * (n - 1) // 2 == len(pairs)
    assert all(abs(firsts[index] - seconds[index]) <= 1 for index in range(n))
    assert [] == round_robin(n, [Match(0, 1, None)])


@few
@given(st.data(), st.integers(2, 40))
def test_swiss_plays_few_matches_evenly(data: st.DataObject, n: int) -> None:
    """Whatever the results: n/2 log2 n matches, everyone as many give or take one, and few meet twice."""
    matches = played(swiss, n, lambda first, second: data.draw(RESULTS))
    number = math.ceil(math.log2(n))
    counts = Counter(index for match in matches for index in (match.first, match.second))
    assert number * (n // 2) == len(matches)
    assert {number, number - n % 2} >= {counts[index] for index in range(n)}
    assert sum(times - 1 for times in met(matches).values()) <= max(1, n // 4)
    for number, matches_of_round in enumerate(rounds(matches, n)):
        assert n // 2 * 2 == len({index for match in matches_of_round for index in (match.first, match.second)}), number


@pytest.mark.parametrize("result", [0.5, 1.0, 0.0], ids=["all ties", "first named wins", "second named wins"])
@pytest.mark.parametrize("n", [2, 3, 4, 5, 8, 16, 17, 33, 64])
def test_swiss_connects_a_group_without_an_order(n: int, result: float) -> None:
    """Ties throughout leave the standing as it is, which must not split the group."""
    assert 1 == parts(n, played(swiss, n, lambda first, second: result))


@pytest.mark.parametrize("n", [4, 8, 16, 32])
def test_swiss_lets_the_strong_meet(n: int) -> None:
    """In the last round the only one without a loss meets one with the best results of the rest."""
    matches = played(swiss, n, lambda first, second: float(first < second))
    losses = Counter(match.second if match.result else match.first for match in matches)
    assert [0] == [index for index in range(n) if not losses[index]]
    last = next(match for match in rounds(matches, n)[-1] if 0 in (match.first, match.second))
    assert 1 == losses[max(last.first, last.second)]


@pytest.mark.parametrize("n", [2, 5, 16])
def test_swiss_ends_where_all_matches_of_a_round_fail(n: int) -> None:
    """A judge that is not to be had is not waited for round after round."""
    assert n // 2 == len(played(swiss, n, lambda first, second: None))


@PLANS
@pytest.mark.parametrize("n", [0, 1])
def test_nobody_plays_alone(plan: Plan, n: int) -> None:
    """A group of one has no matches."""
    assert [] == plan(n, [])


@PLANS
def test_plans_repeat(plan: Plan) -> None:
    """The same results give the same matches."""
    first, second = (played(plan, 11, lambda one, other: (one * 7 + other) % 3 / 2) for _ in range(2))
    assert first == second


def test_swiss_names_everyone_first_sometimes() -> None:
    """The one named first less often goes first."""
    matches = played(swiss, 16, lambda first, second: float((first * 5 + second) % 7 < 3))
    firsts = Counter(match.first for match in matches)
    assert all(1 <= firsts[index] <= 3 for index in range(16))


@pytest.mark.parametrize(
    ("match", "words"),
    [((2, 2, 1.0), "2 twice"), ((0, 1, 1.5), "0 against 1.*1.5"), ((0, 1, math.nan), "nan"), ((0, 1, -1.0), "-1.0")],
    ids=repr,
)
def test_a_senseless_match_is_refused(match: tuple[int, int, float], words: str) -> None:
    """A result is from 0 to 1; a failure is None, not -1."""
    with pytest.raises(ValueError, match=words):
        Match(*match)


@dataclass(frozen=True, slots=True)
class Judged(Match):
    """A match with what the judge said."""

    reason: str = ""


class Comparator:
    """Answers only when as many comparisons wait as are expected together."""

    def __init__(self, together: int) -> None:
        self.together = together
        self.waiting: list[asyncio.Future[None]] = []
        self.cancelled: list[Pair] = []
        self.asked = asyncio.Semaphore(0)

    async def __call__(self, first: int, second: int) -> Judged:
        ready = asyncio.get_running_loop().create_future()
        self.waiting.append(ready)
        self.asked.release()
        if len(self.waiting) == self.together:
            for other in self.waiting:
                other.set_result(None)
            self.waiting.clear()
        try:
            await ready
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            self.cancelled.append((first, second))
            raise
        return Judged(first, second, float(first < second), reason=f"{first} against {second}")


@PLANS
def test_matches_of_a_round_run_together(plan: Plan) -> None:
    """A comparator that answers only when the whole round has asked gets its answers out, in the plan's order."""
    together = len(plan(8, []))
    matches = asyncio.run(play(plan, 8, Comparator(together)))
    assert played(plan, 8, lambda first, second: float(first < second)) == [
        Match(match.first, match.second, match.result) for match in matches
    ]
    assert all(f"{match.first} against {match.second}" == match.reason for match in matches)


def test_an_error_ends_the_tournament_and_its_matches() -> None:
    """The comparator's own error comes out as it is, when the other matches have been cancelled and are over."""
    comparator = Comparator(together=99)

    async def compare(first: int, second: int) -> Match:
        if (first, second) == (0, 1):
            await asyncio.sleep(0)
            raise LookupError("a bug")
        return await comparator(first, second)

    with pytest.raises(LookupError, match="a bug"):
        asyncio.run(play(swiss, 8, compare))
    assert [(2, 3), (4, 5), (6, 7)] == comparator.cancelled


def test_a_cancelled_tournament_cancels_its_matches() -> None:
    """Nothing is left running when the deadline of the whole passes."""
    comparator = Comparator(together=99)

    async def cancelled() -> None:
        tournament = asyncio.create_task(play(swiss, 4, comparator))
        for _ in range(2):
            await comparator.asked.acquire()
        tournament.cancel()
        with pytest.raises(asyncio.CancelledError):
            await tournament
        assert [(0, 1), (2, 3)] == comparator.cancelled

    asyncio.run(cancelled())
