"""A curve in one line of text."""

from __future__ import annotations

import math

import pytest

from rewardkit.shown.sparkline import sparkline


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([], ""),
        ([0.0, 1.0], "▁█"),
        ([1.0, 0.5, 0.0], "█▅▁"),
        ([0.5, 0.5], "▄▄"),
        ([0.0, None, 1.0], "▁·█"),
        ([None, math.nan, math.inf], "···"),
        ([-1e308, 1e308], "▁█"),
        ([0.0, 5e-324], "▄▄"),
        (range(8), "▁▂▃▄▅▆▇█"),
    ],
)
def test_the_lowest_and_the_highest_number_set_the_scale(values: list[float | None], shown: str) -> None:
    """What is no number is a gap, and numbers that are all the same have a middle height."""
    assert shown == sparkline(values)


def test_many_numbers_are_averaged_into_the_places() -> None:
    """The width is never exceeded."""
    assert "▁▃▆█" == sparkline([float(n) for n in range(1000)], 4)
