"""The file in which a training of a reward model says what it was started with."""

from __future__ import annotations

from pathlib import Path

import pytest

from rewardkit import ConfigError
from trainer_adapter.reward_training.state import STATE_FILE, begin, counts_of

NO_STATE = {
    "no JSON": ("{", f"{STATE_FILE}: cannot be read: .*; give another output_dir"),
    "another thing": ('{"identity": 1}', f"{STATE_FILE}: is not the state of a reward model's training; give another"),
}


@pytest.mark.parametrize(("text", "message"), NO_STATE.values(), ids=NO_STATE)
@pytest.mark.parametrize("resume", [True, False])
def test_a_folder_whose_state_cannot_be_read_is_refused(tmp_path: Path, text: str, message: str, resume: bool) -> None:
    """The refusal comes with ``--no-resume`` too, because what lies there may be something else."""
    (tmp_path / STATE_FILE).write_text(text)
    with pytest.raises(ConfigError, match=message):
        begin(tmp_path, {}, resume)


def test_a_folder_without_a_state_has_no_counts(tmp_path: Path) -> None:
    assert {} == counts_of(tmp_path)
