"""What the command line adds up of penalties is what a training pays: a penalty that fails counts at its worst."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rewardkit import Rollout, Runtime
from rewardkit.cli.program import app

REWARDS = """
from rewardkit import clip, gate, reward

@reward(score_range=(0, 1))
def good(completion: str) -> float:
    return 0.5

@reward(score_range=(0, 1))
def toxic(completion: str) -> float:
    if completion == "fails":
        raise ValueError("no verdict")
    return 0.25

difference = (good - 0.5 * toxic).named("difference")
clipped = clip(difference, -1, 1).named("clipped")
gated = gate(good, 1 - toxic).named("gated")
"""
PENALTIES: dict[str, tuple[str, list[float] | None]] = {
    "a weight below zero": ("good,toxic", [1.0, -0.5]),
    "a difference": ("difference", None),
    "a difference beside its parts": ("good,toxic,difference", None),
    "clipped": ("clipped", None),
    "one less it": ("gated", None),
    "turned twice": ("good,difference", [1.0, -1.0]),
}


@pytest.mark.parametrize(("names", "weights"), PENALTIES.values(), ids=PENALTIES)
def test_score_pays_a_failed_penalty_what_a_runtime_pays(
    tmp_path: Path, names: str, weights: list[float] | None
) -> None:
    """Never more than its worst score: the total of each row is that of a runtime with the same weights."""
    file = tmp_path / "penalised.py"
    file.write_text(REWARDS)
    completions = ["answers", "fails"]
    rows, out = tmp_path / "rows.jsonl", tmp_path / "out.jsonl"
    rows.write_text("".join(json.dumps({"prompt": "p", "completion": text}) + "\n" for text in completions))
    references = [f"{file}:{name}" for name in names.split(",")]
    with Runtime(references, weights=weights, lane="inline") as runtime:
        expected = runtime.score([Rollout("p", text) for text in completions]).totals
    options = [] if weights is None else [f"--weights={','.join(map(str, weights))}"]
    done = CliRunner().invoke(app, ["score", ",".join(references), str(rows), "--inline", "--out", str(out), *options])
    assert 0 == done.exit_code, done.output
    assert expected == [json.loads(line)["total"] for line in out.read_text().splitlines()]
