"""Calls a second by the number of workers: what is measured, and what is made of it."""

from __future__ import annotations

import pytest

from rewardkit import reward
from rewardkit.cli import core_scaling
from rewardkit.cli.core_scaling import ScalingRow, carried, measure, serial_share, table_rows, verdict, worker_steps

ROWS = [
    ScalingRow("trivial", 1, 1000.0, 1.0, 5.0),
    ScalingRow("trivial", 2, 1500.0, 0.75, 6.0),
    ScalingRow("jailed", 1, 100.0, 1.0, 50.0),
    ScalingRow("jailed", 2, 195.0, 0.975, 50.0),
    ScalingRow("jailed", 4, 330.0, 0.825, 50.0),
]


@pytest.mark.parametrize(
    ("most", "expected"),
    [(1, [1]), (2, [1, 2]), (3, [1, 2, 3]), (12, [1, 2, 4, 8, 12]), (256, [1 << n for n in range(9)])],
)
def test_workers_double_up_to_the_cores(most: int, expected: list[int]) -> None:
    """The cores themselves are among them."""
    assert expected == worker_steps(most)


@pytest.mark.parametrize(
    ("workers", "speedup", "expected"),
    [(1, 1.0, 0.0), (2, 2.0, 0.0), (2, 1.0, 1.0), (16, 9.7, 0.0433), (2, 2.1, 0.0), (4, 0.5, 1.0), (2, 0.0, 0.0)],
)
def test_the_serial_share_is_amdahls(workers: int, speedup: float, expected: float) -> None:
    """It is between 0 and 1 whatever was measured, and gives the speedup back."""
    share = serial_share(workers, speedup)
    assert expected == pytest.approx(share, abs=1e-4)
    if 0 < share < 1:
        assert speedup == pytest.approx(1 / (share + (1 - share) / workers))


def test_a_machine_carries_the_workers_that_keep_their_efficiency() -> None:
    """For each kind by itself, in words."""
    assert 1 == carried(ROWS, "trivial")
    assert 4 == carried(ROWS, "jailed")
    assert "1 (trivial), 4 (jailed)" in verdict(ROWS)
    assert ("jailed", "2", "195", "0.97", "0.026", "50.0 us") == table_rows(ROWS)[3]


@reward
def fails(completion: str) -> float:
    """Fail."""
    raise ValueError(completion)


def test_calls_are_counted_and_a_failed_one_is_no_figure() -> None:
    """A short round has a speed, a share of linear and the main process's part; an error ends the measuring."""
    labels: list[str] = []
    kinds = {"trivial": core_scaling.SHORT_KINDS["trivial"]}
    first, second = measure(kinds, [1, 2], round_s=0.01, rounds=1, say=labels.append)
    assert (1, 2) == (first.workers, second.workers)
    assert 1.0 == first.efficiency
    assert second.calls_per_s == pytest.approx(second.efficiency * 2 * first.calls_per_s)
    assert 0 < first.main_us < 1e6
    assert ["trivial, 1 workers", "trivial, 2 workers"] == labels
    with pytest.raises(RuntimeError, match="ValueError"):
        measure({"fails": (fails, 4)}, [1], round_s=0.01, rounds=1)
