"""ms-swift's own samples and computation of rewards call our classes."""

from __future__ import annotations

from typing import Any

import pytest
from fault_mix import FATES, SKIPPED, UNKNOWN
from trainer_environment import HERE, seen_by

pytestmark = [pytest.mark.trainers, pytest.mark.full]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return seen_by("real_swift", HERE / "ms_swift_4_6.txt", folder=str(tmp_path_factory.mktemp("swift")))


def test_each_fate_is_told_as_the_table_says(seen: dict[str, Any]) -> None:
    """Sync and async: totals, and the default where there is none."""
    expected = [-5.0 if fate in (SKIPPED, UNKNOWN) else number for fate, number in FATES.values()]
    assert [expected, expected] == seen["fates"]


def test_the_prompt_has_its_own_turns_and_the_completion_the_models(seen: dict[str, Any]) -> None:
    """A question behind an earlier answer is the prompt; by token ids or their number two turns are the completion.

    The prompt's own answer is one turn of the conversation.
    """
    assert [[4.0]] == seen["asked"]
    assert [[1.0 + 3.0] * 2, [2.0, 2.0], [4.0, 4.0]] == seen["turns"]
    assert [[1.0 + 1.0]] == seen["one turn"]


def test_groups_and_images_come_as_the_table_says(seen: dict[str, Any]) -> None:
    """A process's batch is cut into groups; images are a column."""
    assert [[1.0, 0.0, 0.0, 1.0]] == seen["ranked"]
    assert [[1.0]] == seen["images"]
