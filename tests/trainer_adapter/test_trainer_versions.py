"""A trainer of another version than the tested ones is warned of: once, as the rewards are made, with what to do."""

from __future__ import annotations

import importlib.metadata
import logging

import pytest

from trainer_adapter import TrainerAsks, TrainerRewards, TrainerVersions, openrlhf, swift, trainer_versions, verl


@pytest.fixture(autouse=True)
def _forgotten() -> None:
    trainer_versions._WARNED.clear()


def _installed(monkeypatch: pytest.MonkeyPatch, distribution: str, version: str) -> None:
    real = importlib.metadata.version
    monkeypatch.setattr(importlib.metadata, "version", lambda name: version if name == distribution else real(name))


@pytest.mark.parametrize(
    ("module", "distribution", "version", "setting"),
    [
        (verl, "verl", "0.6.1", "reward.custom_reward_function.path"),
        (verl, "verl", "0.10.0.dev3", "reward.custom_reward_function.path"),
        (openrlhf, "openrlhf", "0.12.0", "--remote_rm_url"),
        (swift, "ms-swift", "3.12.6", "--reward_funcs"),
    ],
)
def test_another_version_is_warned_of_once(
    module: object,
    distribution: str,
    version: str,
    setting: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The warning names the version, those that are tested, and the setting; rewards are made all the same."""
    _installed(monkeypatch, distribution, version)
    asks: TrainerAsks = module._ASKS  # type: ignore[attr-defined]
    with caplog.at_level(logging.WARNING, "trainer_adapter"):
        for _ in range(2):
            TrainerRewards("builtin_rewards.matching:exact_match", asks=asks)
    (warning,) = caplog.messages
    assert asks.tested is not None
    for part in (asks.trainer, version, asks.tested.first, setting, f"{distribution}>={asks.tested.first},<"):
        assert part in warning


@pytest.mark.parametrize("version", ["1.2", "1.2.0", "1.9.1rc1", "v1.3"])
def test_a_tested_version_and_none_are_silent(
    version: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The first version counts, that after the last does not; where nothing is installed there is nothing to say."""
    _installed(monkeypatch, "some-trainer", version)
    TrainerVersions("some-trainer", "1.2", "2").warn_of_another("trainer", "--reward")
    TrainerVersions("another-trainer", "1.2", "2").warn_of_another("trainer", "--reward")
    assert [] == caplog.messages
    TrainerVersions("some-trainer", "1.0", "1.2").warn_of_another("trainer", "--reward")
    assert 1 == len(caplog.messages)
