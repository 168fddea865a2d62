"""Which rewards a file has: those with a public name, and no helpers of theirs."""

from __future__ import annotations

from pathlib import Path

from rewardkit.loading.registry import resolve_all

SOURCE = """from builtin_rewards.structured import json_fields
from rewardkit import reward

_compare = json_fields(abs=0.005).with_options(name="compare")


@reward
def fields(completion: str, gold: dict) -> float:
    return _compare(completion=completion, answer=gold).value


_alias = fields
"""


def test_a_name_with_an_underscore_is_no_reward_of_the_file(tmp_path: Path) -> None:
    """It is one where it is named, and a reward with a public name too is one of the file."""
    file = tmp_path / "helped.py"
    file.write_text(SOURCE)
    assert ["fields"] == [reward.name for reward in resolve_all(str(file))]
    assert ["compare"] == [reward.name for reward in resolve_all(f"{file}:_compare")]
