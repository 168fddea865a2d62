"""Columns of numbers come back from a block as they were."""

from __future__ import annotations

import math

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies

from rewardkit.record.number_blocks import STATES, NumberBlock, packed_columns
from rewardkit.types import Cause, Status

NUMBERS = strategies.one_of(
    strategies.floats(),
    strategies.floats(width=32),
    strategies.integers(0, 255).map(float),
    strategies.integers(0, 2**34).map(float),
    strategies.sampled_from([0.0, 1.0, math.nan, math.inf, -1.0]),
)


@hypothesis.given(strategies.integers(0, 300).flatmap(lambda n: strategies.lists(
    strategies.one_of(strategies.lists(NUMBERS, min_size=n, max_size=n), NUMBERS.map(lambda value: [value] * n)),
    max_size=4,
)))  # fmt: skip
def test_columns_come_back_exactly(columns: list[list[float]]) -> None:
    """Whole numbers, small floats, few levels, a constant, none at all."""
    arrays = [np.array(column, np.float64) for column in columns]
    block = NumberBlock.of(packed_columns(arrays, len(columns[0]) if columns else 0))
    for index, array in enumerate(arrays):
        np.testing.assert_array_equal(array, block.column(index))


@pytest.mark.parametrize(
    ("column", "most_bytes"),
    [
        (np.zeros(1000), 8),
        (np.arange(1000) % 2, 1000),
        (np.arange(1000.0), 2000),
        (np.arange(1000) % 10 / 10, 1100),
        (np.random.default_rng(0).random(1000), 8000),
    ],
    ids=["constant", "truth values", "whole numbers", "tenths", "any"],
)
def test_a_column_takes_few_bytes(column: np.ndarray, most_bytes: int) -> None:
    """As many as what stands in it needs."""
    assert len(packed_columns([column.astype(np.float64)], 1000)) <= most_bytes + 20


def test_each_status_and_cause_has_a_number_of_its_own() -> None:
    """They stand in records, so they stay."""
    assert {*Status, *Cause} == set(STATES)
    assert len(STATES) == len(set(STATES.values()))
    assert [1.0, 2.0, 3.0, 4.0, 5.0] == [
        STATES[name] for name in ("scored", "skipped", "failed", "exception", "timeout")
    ]
