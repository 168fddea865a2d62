"""A policy that may hang, trained by TRL: it does not learn to."""

from __future__ import annotations

import warnings
from pathlib import Path
from statistics import fmean

import pytest

pytest.importorskip("trl", reason="the extra train is not installed")

from tiny_grpo import third_party_warnings, tiny_model, train

from rewardkit import RewardDefinitionWarning, reward
from trainer_adapter import RewardAdapter

pytestmark = [pytest.mark.trainers, third_party_warnings]


def by_first_letter(completion: str) -> float:
    """Score one of three kinds of completions best, one worst, and hang on the third."""
    kind = ord(completion[0]) % 3 if completion else 2
    while kind == 0:
        pass
    return -0.1 if kind == 1 else -1.5


def _hangs(folder: Path, default: float | str, steps: int) -> list[float]:
    """Return the share of hanging calls at each step of a training."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RewardDefinitionWarning)
        scored = reward(timeout_s=0.1, score_range=(-2, 0), default=default)(by_first_letter)  # type: ignore[call-overload]
    rows = [{"prompt": f"say {number}"} for number in range(16)]
    with RewardAdapter([scored], workers=4) as adapter:
        run = train(
            folder,
            adapter,
            rows,
            steps=steps,
            max_completion_length=1,
            num_generations=8,
            per_device_train_batch_size=32,
            learning_rate=3e-3,
        )
    return run.logged("reward_timeouts/by_first_letter")


@pytest.mark.full
def test_a_policy_does_not_learn_to_hang(tmp_path: Path) -> None:
    """With the worst score for a hang its share falls; with 0.0, the best score, the policy does little else."""
    folder = tiny_model(tmp_path / "model")
    hangs = _hangs(folder, "worst", 40)
    paid = _hangs(folder, 0.0, 40)
    assert fmean(hangs[:5]) > 0.1
    assert fmean(hangs[-5:]) < fmean(hangs[:5])
    assert fmean(paid[-5:]) > fmean(paid[:5])
