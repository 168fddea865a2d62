"""Trainers' real code in an environment of its own: made once, kept beside the checkout, never the project's own.

``real_trainers.txt`` names what is in it. Everything else, such as torch, comes from the environment that the tests run
in. :func:`seen_by` runs one of the programs here in it, and returns what the program prints.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PINS = HERE / "real_trainers.txt"
REQUIRED = "REWARDKIT_REQUIRE_REAL"
_MADE_WITHIN_S = 600
_RUN_WITHIN_S = 300


def trainer_python(pins: Path = PINS) -> Path:
    """Return the environment's interpreter, making the environment where it is not there.

    Where it cannot be made the test is skipped with the reason; with ``REWARDKIT_REQUIRE_REAL=1`` it fails instead.

    Args:
        pins: What is in it beside the project's own environment.
    """
    about = pins.read_text(), sys.version, sysconfig.get_path("purelib")
    key = hashlib.sha256(repr(about).encode()).hexdigest()[:12]
    home = ROOT / ".venv-trainers"
    home.mkdir(exist_ok=True)
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # processes of one test run share it
        made = home / f"{pins.stem}-{key}"
        if not (made / "ready").exists():
            _make(made, pins)
    return made / "bin" / "python"


def _make(folder: Path, pins: Path) -> None:
    for old in folder.parent.glob(f"{pins.stem}-*/"):
        shutil.rmtree(old)
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    inner = Path(_said(python, "import sysconfig; print(sysconfig.get_path('purelib'))"))
    # Behind its own packages the environment sees ours, with what is installed there in editable form.
    (inner / "project.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python), "install"]
    done = subprocess.run(
        [*pip, "--quiet", "--no-deps", "--no-compile", "--requirement", str(pins)],
        capture_output=True,
        text=True,
        timeout=_MADE_WITHIN_S,
    )
    if done.returncode != 0:
        words = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()
        reason = f"the trainers cannot be installed: {' '.join(words[:2])}"
        if os.environ.get(REQUIRED) == "1":
            raise RuntimeError(reason)
        pytest.skip(f"{reason} ({REQUIRED}=1 makes this a failure)")
    (folder / "ready").touch()


def _said(python: Path, program: str) -> str:
    return subprocess.run(
        [python, "-c", program], capture_output=True, text=True, check=True, timeout=60
    ).stdout.strip()


def seen_by(program: str, pins: Path = PINS, **settings: Any) -> dict[str, Any]:
    """Run ``<program>.py`` of this folder with the trainers, and return the object that its last line is.

    Args:
        program: The name of the file.
        pins: What is in the environment.
        settings: What it is told, as JSON.
    """
    paths = [str(ROOT), str(HERE)]
    done = subprocess.run(
        [trainer_python(pins), "-W", "ignore", str(HERE / f"{program}.py"), json.dumps(settings)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "RAY_USAGE_STATS_ENABLED": "0"},
        cwd=settings.get("folder", HERE),
        capture_output=True,
        text=True,
        timeout=_RUN_WITHIN_S,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    seen: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return seen
