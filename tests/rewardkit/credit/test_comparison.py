"""Advantages of turns: each choice against a few lines of numpy, and what is unknown or failed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardkit.credit import NORMALIZATIONS, RETURNS, TurnNumbers, turn_advantages, turn_spans, turn_totals
from rewardkit.errors import ObjectiveError

G = 3
"""Completions a group."""
TURNS: list[list[float | None]] = [[1, 0], [0, None, 2], [0.5, 0.5], [3], [1, 2, 1], [2, None]]
"""Two groups of completions with one to three turns, some of whose numbers are not known."""


def _padded(turns: list[list[float | None]]) -> Any:
    widest = max(map(len, turns))
    rows = [[math.nan if number is None else number for number in row] for row in turns]
    return np.array([row + [math.nan] * (widest - len(row)) for row in rows])


def _reference(turns: list[list[float | None]], normalize: str, returns: str, discount: float) -> list[list[float]]:
    """Compute the advantages as a paper would write them."""
    rows = _padded(turns)
    if returns == "to_go":
        ahead = [
            [
                np.nansum([discount ** (later - turn) * row[later] for later in range(turn, len(row))])
                for turn in range(len(row))
            ]
            for row in rows
        ]
        rows = np.where(np.isnan(rows), math.nan, ahead)
    groups = rows.reshape(-1, G, rows.shape[1])
    advantages = groups.copy()
    for group in range(len(groups)):
        for turn in range(groups.shape[2]):
            column = groups[group, :, turn]
            mean = np.nanmean(groups[group]) if normalize == "group" else np.nanmean(column)
            among = {"turn": column, "group": groups[group], "batch": groups}.get(normalize)
            if among is None:
                continue
            known = among[~np.isnan(among)]
            spread = known.std(ddof=1) if len(known) > 1 else math.nan
            advantages[group, :, turn] = (column - mean) / (spread + 1e-4)
    flat = np.nan_to_num(advantages.reshape(rows.shape), nan=0.0)
    return [list(flat[index, : len(row)]) for index, row in enumerate(turns)]


@pytest.mark.filterwarnings("ignore:Mean of empty slice:RuntimeWarning")
@pytest.mark.parametrize("returns", RETURNS)
@pytest.mark.parametrize("normalize", NORMALIZATIONS)
def test_each_choice_is_its_formula(normalize: str, returns: str) -> None:
    discount = 0.5 if returns == "to_go" else 1.0
    advantages = turn_advantages(TURNS, G, normalize=normalize, returns=returns, discount=discount)
    expected = _reference(TURNS, normalize, returns, discount)
    assert [len(row) for row in TURNS] == [len(row) for row in advantages]
    for row, expected_row in zip(advantages, expected, strict=True):
        np.testing.assert_allclose(row, expected_row, rtol=1e-12, atol=1e-12)


_NUMBER = st.none() | st.floats(-10, 10)
_ROWS = st.lists(st.lists(_NUMBER, max_size=4), min_size=2, max_size=4)


@given(_ROWS, st.sampled_from(NORMALIZATIONS), st.sampled_from(RETURNS))
def test_a_number_that_is_not_known_teaches_nothing_and_changes_no_baseline(
    rows: list[list[float | None]], normalize: str, returns: str
) -> None:
    """Its advantage is 0, and all others are what they are without the completion's unknown last turn."""
    longer = [*rows[:-1], [*rows[-1], None]]
    own = turn_advantages(longer, len(rows), normalize=normalize, returns=returns)
    assert all(value == 0 for row, said in zip(longer, own, strict=True)
               for number, value in zip(row, said, strict=True) if number is None)  # fmt: skip
    without = turn_advantages(rows, len(rows), normalize=normalize, returns=returns)
    shortened = [*own[:-1], own[-1][:-1]]
    for row, expected in zip(shortened, without, strict=True):
        np.testing.assert_allclose(row, expected, rtol=1e-9, atol=1e-9)
    assert all(math.isfinite(value) for row in own for value in row)


@given(
    st.lists(st.lists(_NUMBER, min_size=2, max_size=2), min_size=2, max_size=4),
    st.floats(-10, 10),
    st.sampled_from([-2.0, 0.5, 1.0]),
    st.sampled_from(NORMALIZATIONS),
    st.sampled_from(RETURNS),
)
def test_a_failure_is_never_paid(
    rows: list[list[float | None]], stand_in: float, weight: float, normalize: str, returns: str
) -> None:
    """Whatever stands in for a call that failed, none of its turns has a better advantage than one beside it."""
    column = [TurnNumbers((None, None), stand_in), *(TurnNumbers(tuple(row)) for row in rows)]
    totals = turn_totals([column], [weight], len(column))
    failed, *others = turn_advantages(totals, len(column), normalize=normalize, returns=returns)
    for turn, advantage in enumerate(failed):
        for numbers, row in zip(rows, others, strict=True):
            if all(number is not None for number in numbers):
                assert advantage <= row[turn] + 1e-9


def test_a_failure_without_a_stand_in_is_unknown() -> None:
    column = [TurnNumbers((None, None)), TurnNumbers((1.0, 0.0))]
    assert [[None, None], [0.5, 0.0]] == turn_totals([column], [0.5], 2)


def test_several_rewards_add_up_over_those_that_are_known() -> None:
    first = [TurnNumbers((1.0, None)), TurnNumbers((0.0, 2.0))]
    second = [TurnNumbers((None, None)), TurnNumbers((1.0, 1.0))]
    assert [[1.0, None], [-2.0, 0.0]] == turn_totals([first, second], [1.0, -2.0], 2)


def test_runs_of_the_models_tokens_are_spans() -> None:
    assert [] == turn_spans([0, 0])
    assert [(0, 1), (2, 4)] == turn_spans([True, False, 1, 1])


_WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "groups that are not whole": ({"num_generations": 2}, "whole groups"),
    "an unknown normalization": ({"normalize": "rank"}, "'turn', 'group', 'batch' or 'none'"),
    "unknown returns": ({"returns": "all"}, "'own' or 'to_go'"),
    "a discount above 1": ({"discount": 1.5}, "at most 1"),
}


@pytest.mark.parametrize(("settings", "words"), _WRONG.values(), ids=_WRONG)
def test_wrong_settings_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ObjectiveError) as caught:
        turn_advantages([[1.0], [2.0], [3.0]], **{"num_generations": 3, **settings})
    assert words in str(caught.value)
    with pytest.raises(ObjectiveError, match="completion 1, turn 0"):
        turn_advantages([[1.0], [math.inf]], 2)
