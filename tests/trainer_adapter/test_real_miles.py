"""Miles' own samples and computation of rewards call our functions, which slime calls in the same way."""

from __future__ import annotations

from typing import Any

import pytest
from fault_mix import FATES, SKIPPED, UNKNOWN
from trainer_environment import HERE, seen_by

pytestmark = pytest.mark.trainers

NUMBERS = [number for _, number in FATES.values()]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return seen_by("real_miles", HERE / "miles_0_0.txt", folder=str(tmp_path_factory.mktemp("miles")))


def test_each_fate_is_told_as_the_table_says(seen: dict[str, Any]) -> None:
    """One sample at a time and in a batch; a sample without a total is not trained on."""
    assert NUMBERS == seen["rewards"] == seen["batch"]
    assert [fate in (SKIPPED, UNKNOWN) for fate, _ in FATES.values()] == seen["removed"]


def test_a_sample_without_a_total_counts_in_no_mean(seen: dict[str, Any]) -> None:
    """The rewards of a group are relative to those that are known."""
    raw, processed = seen["processed"]
    assert NUMBERS == raw
    assert [0.0] * 5 == [value for value, removed in zip(processed, seen["removed"], strict=True) if removed]
    assert abs(sum(processed)) < 1e-6


def test_turns_and_groups_come_as_the_table_says(seen: dict[str, Any]) -> None:
    """Calls and answers stand in the response; a batch is a group."""
    assert (2.0, [2.0, 0.0, 1.0]) == (seen["calls"], seen["ranked"])


def test_a_function_that_moves_in_scores_as_in_miles(seen: dict[str, Any]) -> None:
    """By the sample's names."""
    theirs, ours = seen["moved"]
    assert [1.5, 1.0] == theirs == ours
