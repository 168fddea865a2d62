"""A training on a server's rewards adds them up with its own weights."""

from __future__ import annotations

from pathlib import Path

import pytest

from rewardkit import Runtime, reward
from rewardkit.record.places import place_of_record
from rewardkit.record.reader import RunReader
from trainer_adapter.config import GRPOConfig

pytest.importorskip("trl", reason="the extra train is not installed")
pytest.importorskip("uvicorn", reason="a reward server needs the extra 'server'")
from reward_servers import reward_server

from trainer_adapter.run_identity import read_identity
from trainer_adapter.train import train

pytestmark = [
    pytest.mark.trainers,
    # Third parties' own, on import or in passing: nothing of ours to mend.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning:torch"),
]
ROWS = [{"prompt": f"{number} + 1 ="} for number in range(1, 9)]
WEIGHTS = {"digits": 0.8, "size": 0.2}


@reward
def digits(completion: str) -> float:
    return sum(letter.isdigit() for letter in completion) / max(1, len(completion))


@reward
def size(completion: str) -> float:
    return len(completion) / 10


@pytest.mark.parametrize("overlap", [0, 1], ids=["at once", "overlap"])
def test_a_configuration_weighs_a_servers_rewards(
    overlap: int, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TRL's reward is the weighted sum, and record and identity have the weights; scores are the server's."""
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")  # of a rollout function, which overlaps
    with Runtime([digits, size], workers=1) as runtime, reward_server(runtime) as served:
        config = GRPOConfig(
            base_model=str(tiny),
            reward_fns=served.url,
            reward_weights=WEIGHTS,
            overlap=overlap,
            train_steps=1,
            num_generations=4,
            effective_batch_size=4,
            adapter=None,
            sampling_params={"max_tokens": 8},
        )
        result = train(config, ROWS, tmp_path / "run")
    (log,) = [entry for entry in result.log_history if "reward" in entry]
    parts = {name: log[f"rewards/{name}/mean"] for name in WEIGHTS}
    assert pytest.approx(sum(WEIGHTS[name] * mean for name, mean in parts.items()), rel=1e-4) == log["reward"]
    with RunReader(place_of_record(tmp_path / "run")) as reader:
        assert reader.weights_of(1) == WEIGHTS
    identity = read_identity(tmp_path / "run")
    assert identity is not None
    assert {f"reward_weights.{name}": weight for name, weight in WEIGHTS.items()}.items() <= identity.settings.items()
