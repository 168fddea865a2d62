"""``rewardkit serve`` with a reward model: ranks share its one copy, and a full server loses no score."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from serve_processes import serving

from builtin_rewards.reward_model import RewardModelReward
from rewardkit import Rollout
from rewardkit.serving import RemoteRuntime

pytest.importorskip("torch")
tiny = pytest.importorskip("tiny_reward_model")

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")


def test_ranks_share_one_copy_of_a_reward_model(tmp_path: Path) -> None:
    """Two clients ask for more rows than the server holds: each has its own scores, of one process with the model."""
    folder = tiny.saved_model(tmp_path / "rm")
    (tmp_path / "rm.py").write_text(
        "from builtin_rewards.reward_model import RewardModelReward\n"
        f"helpful = RewardModelReward({str(folder)!r}, device='cpu', text_form='chat')\n"
    )
    texts = ["the cat sat", "badly", "a dog ran on the mat", "two and two is four ."] * 8
    rollouts = [Rollout("is it well ?", f"{text} a{' a' * (place % 7)}") for place, text in enumerate(texts)]
    expected = RewardModelReward(folder, device="cpu", text_form="chat").score_batch(rollouts)
    results: dict[int, Any] = {}

    def rank(number: int, url: str) -> None:
        with RemoteRuntime(url, retry_s=60) as runtime:
            results[number] = runtime.score(rollouts[number::2]).scores["rm"]

    with serving(f"{tmp_path}/rm.py", "--max-rows", "20") as server:
        ranks = [threading.Thread(target=rank, args=(number, server.url)) for number in range(2)]
        for thread in ranks:
            thread.start()
        for thread in ranks:
            thread.join(120)
        with_torch = [
            child for child in server.children() if any("libtorch" in part.path for part in child.memory_maps())
        ]
    for number in range(2):
        assert pytest.approx(expected[number::2], abs=1e-5) == results[number]
    assert len(with_torch) == 1
