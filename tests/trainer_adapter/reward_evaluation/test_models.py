"""``rm eval`` of a reward model's folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from builtin_rewards.reward_model import RewardModelReward
from rewardkit import ConfigError, Rollout, Runtime
from trainer_adapter.reward_evaluation.commands import eval_command

tiny = pytest.importorskip("tiny_reward_model")
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")

PAIRS = [
    ("is the cat well ?", "the cat is well", "a dog ran"),
    ("two and two ?", "four .", "one ."),
    ("a dog ?", "the dog sat on the mat", "badly"),
]


@pytest.mark.full
def test_a_models_folder_is_measured_on_pairs(tmp_path: Path) -> None:
    """The share of pairs whose chosen completion its own score is higher for; a folder without a model is named."""
    model = tiny.saved_model(tmp_path / "model")
    pairs = tmp_path / "pairs.jsonl"
    rows = [dict(zip(("prompt", "chosen", "rejected"), row, strict=True)) for row in PAIRS]
    pairs.write_text("".join(json.dumps(row) + "\n" for row in rows))
    scored = RewardModelReward(model)
    with Runtime({"it": scored}) as runtime:
        known = [runtime.score([Rollout(row["prompt"], row[side]) for row in rows]) for side in ("chosen", "rejected")]
    won = [first > second for first, second in zip(*(one.totals for one in known), strict=True)]
    app = typer.Typer()
    app.command()(eval_command)
    done = CliRunner().invoke(app, [str(model), str(pairs), "--json"])
    assert done.exit_code == 0, done.output
    assert sum(won) / 3 == pytest.approx(json.loads(done.stdout)["overall"]["accuracy"]["rate"])
    (tmp_path / "empty").mkdir()
    refused = CliRunner().invoke(app, [str(tmp_path / "empty"), str(pairs)])
    assert isinstance(refused.exception, ConfigError)
    assert "so no reward model" in str(refused.exception)
