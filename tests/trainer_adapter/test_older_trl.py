"""RewardAdapter on the TRL that people have: the oldest one trains, logs and records as the newest does."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from trainer_environment import HERE, seen_by

from rewardkit import ConfigError, reward
from trainer_adapter import RewardAdapter, trainer_versions
from trainer_adapter.models import needing_extra
from trainer_adapter.trainer_scores import WaitingMetrics


@reward
def one(completion: str) -> float:
    """1 for each."""
    return 1.0


OLDER = HERE / "older_trl.txt"


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Train for two steps on the oldest TRL."""
    return seen_by("any_trl", OLDER, folder=str(tmp_path_factory.mktemp("older")))


@pytest.mark.full
@pytest.mark.trainers
def test_the_oldest_trl_trains_with_every_reward(seen: dict[str, Any]) -> None:
    """Each step is scored once, and a completion that failed is in the record as such."""
    assert seen["trl"].startswith("0.22.")
    assert (seen["steps"], seen["scored"]) == (2, [8, 8])
    assert (seen["recorded"], seen["failed"]) == (16, 4)


@pytest.mark.full
@pytest.mark.trainers
def test_metrics_reach_a_trainer_that_gives_functions_no_way_to_log(seen: dict[str, Any]) -> None:
    """They are in its logs, from where reporters take them, and in the record."""
    own = {"reward_errors/sometimes", "reward_time/chars/p95", "reward_skipped/chars", "reward_timeouts/chars"}
    assert own <= set(seen["logged"])
    assert own <= set(seen["metrics"])


@pytest.mark.full
@pytest.mark.trainers
def test_recorded_advantages_are_those_of_the_oldest_trl(seen: dict[str, Any]) -> None:
    """It takes 0 for a completion without a score, and the record has what the trainer made of that."""
    assert seen["advantages"] == 16
    assert seen["apart"] < 1e-5


def test_metrics_wait_for_the_log_of_their_split() -> None:
    """Of several batches the mean is logged, once, under the name that TRL gives an evaluation."""
    waiting = WaitingMetrics()
    waiting.add([("reward_errors/a", 0.0)])
    waiting.belong_to("train")
    waiting.add([("reward_errors/a", 1.0)])
    waiting.belong_to("eval")
    waiting.add([("reward_errors/a", 0.5)])
    waiting.belong_to("train")
    assert waiting.take("train") == {"reward_errors/a": 0.25}
    assert waiting.take("eval") == {"eval_reward_errors/a": 1.0}
    assert waiting.take("train") == {}


@pytest.mark.parametrize(
    ("version", "counts"), [("0.22.2", True), ("1.5.1", True), ("1.6.0", False), ("1.16.0", False)]
)
def test_a_trl_that_counts_an_unknown_reward_as_0_is_told(
    version: str, counts: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Once, with what to do about it."""
    monkeypatch.setitem(trainer_versions.sys.modules, "trl", type("Trl", (), {"__version__": version}))
    monkeypatch.setattr(trainer_versions, "_WARNED", set())
    for _ in range(2):
        trainer_versions.check_trl_version()
    assert [message.startswith(f"trl {version} takes 0") for message in caplog.messages] == [True] * counts


@pytest.mark.parametrize("version", ["0.21.0", "0.9.6"])
def test_a_trl_that_is_too_old_is_refused_before_training_begins(
    version: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By the callback, each time, with what to install."""
    with RewardAdapter([one], workers=1, record=tmp_path / "run") as adapter:
        monkeypatch.setitem(trainer_versions.sys.modules, "trl", SimpleNamespace(__version__=version))
        for _ in range(2):
            with pytest.raises(ConfigError, match=f"trl {version} is too old.*pip install 'trl>=0.22,<1.17'"):
                adapter.callback.on_train_begin(SimpleNamespace(reward_weights=None), SimpleNamespace(), None)


def test_what_transformers_hides_is_named() -> None:
    """Its error for a class that needs torch has no name; that of its cause has."""
    with pytest.raises(ModuleNotFoundError, match="training needs torch: pip install") as missed, needing_extra():
        raise ModuleNotFoundError("Could not import module") from ModuleNotFoundError("No torch", name="torch")
    assert "torch" == missed.value.name


def test_the_pins_name_the_oldest_version_that_is_promised() -> None:
    """The range that the adapter warns outside of begins with what is tested."""
    first = trainer_versions.TESTED_TRL.first
    assert f"trl=={first}." in Path(OLDER).read_text()
