"""What `make` does: the first setup, with a stand-in for Python and its pip, and which tests `make test` runs."""

from __future__ import annotations

import os
import runpy
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MARKERS = ("browser", "fuzz", "real_model", "servers", "slow", "soak", "trainers")
PIP = """\
Collecting torch==2.13.0 (from rewardkit==0.1.0)
  Downloading torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl (178.7 MB)
  Downloading typer-1.0-py3-none-any.whl.metadata (9.5 kB)
  Using cached numpy-2.4.0-cp311-cp311-manylinux_2_28_x86_64.whl (16.2 MB)
Installing collected packages: numpy, torch
Successfully installed numpy-2.4.0 torch-2.13.0
"""


@pytest.mark.parametrize("code", [0, 3])
def test_setup_shows_what_takes_long_and_fails_where_pip_fails(tmp_path: Path, code: int) -> None:
    """A line for each large package, and one before they are installed."""
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(f"#!/bin/sh\ncat <<'E'\n{PIP}E\nexit {code}\n")
    python.chmod(0o755)
    plain = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    done = subprocess.run(
        ["make", "setup", f"VENV={tmp_path}"], cwd=ROOT, env=plain, capture_output=True, text=True, timeout=120
    )
    assert (code != 0) == (done.returncode != 0)
    assert (code == 0) == (tmp_path / ".ready").exists()
    shown = [line for line in done.stdout.splitlines() if line.startswith("  ")]
    assert ["  torch (178.7 MB)", "  numpy (16.2 MB)", "  installing ..."] * (2 if code == 0 else 1) == shown


def test_what_runs_in_full_only_has_a_like_that_always_runs(
    request: pytest.FixtureRequest, later: list[pytest.Item]
) -> None:
    """Of each marker of slow tests, `make test` tries some."""
    options = request.config.option
    if options.markexpr or options.keyword or request.config.args != request.config.getini("testpaths"):
        pytest.skip("only some of the tests are collected")

    def families(items: list[pytest.Item]) -> set[str]:
        return {mark.name for item in items for mark in item.iter_markers()} & {*MARKERS}

    assert {*MARKERS} == families(request.session.items) >= families(later)


def test_the_floors_are_those_of_the_project(tmp_path: Path) -> None:
    """``make test-floors`` installs the lowest version of each requirement, but for those that others raise."""
    run = runpy.run_path(str(ROOT / "tests" / "helpers" / "floors.py"))
    pyproject = tmp_path / "pyproject.toml"
    pyproject.write_text(
        '[project]\ndependencies = ["typer>=0.19", "numpy>=1.26"]\n[project.optional-dependencies]\n'
        'a = ["psycopg[binary]>=3.2.1"]\nb = ["trl>=1.16,<2"]\n'
    )
    assert ["numpy==2.0", "psycopg==3.2.1", "trl==1.16", "typer==0.19"] == list(run["floors"](pyproject, ["a", "b"]))
    project = list(run["floors"](ROOT / "pyproject.toml", ["rewards", "server"]))
    assert {*run["RAISED"]} <= {line.partition("==")[0] for line in project}
