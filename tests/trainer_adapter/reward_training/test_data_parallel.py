"""Reward models are trained by several processes as by one."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from tiny_grpo import third_party_warnings
from tiny_reward import tiny_encoder

pytest.importorskip("trl", reason="real training runs need the extra 'train'")

from builtin_rewards.reward_model import read_description

pytestmark = [third_party_warnings, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


@pytest.mark.full
@pytest.mark.slow
def test_two_processes_on_uneven_shards_train_as_one(tmp_path: Path) -> None:
    """Of all kinds, loss and gradient of each step are those of one process, also where it has one prompt for both."""
    import reward_model_ranks
    import torch

    base = str(tiny_encoder(tmp_path / "base"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torch.multiprocessing.start_processes(
        reward_model_ranks.on_a_rank, (base, str(tmp_path), port), nprocs=2, start_method="spawn"
    )
    ranks = [torch.load(tmp_path / f"rank{rank}") for rank in range(2)]
    for kind in reward_model_ranks.KINDS:
        one = reward_model_ranks.gradients_of(base, str(tmp_path / "one" / kind), kind, 1)
        assert one["steps"] == len(one["gradients"]) == len(one["losses"]) == 4
        assert ranks[0][kind]["losses"] == pytest.approx(one["losses"], abs=1e-6), kind
        for two in (each[kind] for each in ranks):
            assert two["scores"] == pytest.approx(one["scores"], abs=1e-6), kind
            for expected, found in zip(one["gradients"], two["gradients"], strict=True):
                apart = float((expected - found).abs().max())
                assert apart < min(1e-6, 1e-3 * float(expected.abs().max())), kind
        assert read_description(tmp_path / kind) is not None
