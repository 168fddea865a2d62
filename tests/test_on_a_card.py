"""What is measured on a card, in its short form, which needs none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "benchmarks/on_a_card.sh"


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.trainers
def test_the_script_for_a_card_runs_on_a_cpu(tmp_path: Path) -> None:
    """Every part ends well: scaling, memory, the tests of a card, which say why they skip, and a training."""
    environment = {"PATH": "/usr/bin:/bin", "PYTHON": sys.executable, "HOME": str(tmp_path)}
    command = ["bash", str(SCRIPT), "--short", str(tmp_path / "figures")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, env=environment)
    assert 0 == done.returncode, done.stdout[-3000:] + done.stderr[-1000:]
    assert {"machine.txt", "cores.txt", "memory.txt", "tests.txt", "grpo.txt"} <= {
        file.name for file in (tmp_path / "figures").iterdir()
    }
    assert "trivial" in (tmp_path / "figures/cores.txt").read_text()
