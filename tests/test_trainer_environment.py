"""The environment of the trainers' own code: where it cannot be made, a test is skipped, or fails if it must run."""

from __future__ import annotations

from pathlib import Path

import pytest
import trainer_environment


@pytest.mark.parametrize("required", [True, False])
def test_without_the_trainers_a_test_is_skipped_or_fails(
    required: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason is pip's, and the next try begins anew."""
    pins = tmp_path / "pins.txt"
    pins.write_text("./there-is-no-such-wheel.whl\n")
    monkeypatch.setattr(trainer_environment, "ROOT", tmp_path)
    monkeypatch.setenv("REWARDKIT_REQUIRE_REAL", "1" if required else "0")
    expected = RuntimeError if required else pytest.skip.Exception
    with pytest.raises(expected, match=r"the trainers cannot be installed: .*there-is-no-such-wheel"):
        trainer_environment.trainer_python(pins)
    assert [] == list(tmp_path.glob(".venv-trainers/*/ready"))
