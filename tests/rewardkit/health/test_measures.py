"""Laws of the detectors' arithmetic."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rewardkit.health.measures import by_group


@pytest.mark.parametrize("seed", range(20))
def test_groups_without_a_value_change_no_bound(seed: int) -> None:
    """A reward that skips whole groups, as in mixed data, is judged by the others as if these stood alone."""
    random = np.random.default_rng(seed)
    size, groups, skipped = (int(random.integers(*bounds)) for bounds in ((1, 9), (2, 30), (1, 200)))
    values = (random.random(size * groups) < random.random()).astype(float)
    alone = by_group(values, np.repeat(np.arange(groups), size))
    mixed_values = np.concatenate([np.full(size * skipped, np.nan), values])
    mixed = by_group(mixed_values, np.repeat(np.arange(groups + skipped), size))
    assert (alone.low, alone.high) == pytest.approx((mixed.low, mixed.high))


def test_without_a_value_no_bound_is_known() -> None:
    empty = by_group(np.full(8, np.nan), np.arange(8) // 4)
    assert math.isnan(empty.low)
    assert math.isnan(empty.high)
