"""The tutorial's commands print what the page shows, in a folder that was empty before."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

_BLOCK = re.compile(r"^```(python|yaml|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# ([\w-]+\.(?:py|yaml))\n")
_TIME = re.compile(r"\b[\d.,]+ (?:µs|ms|s|rows/s)(?!\w)")


def _lines(text: str) -> list[str]:
    """Return lines without what differs from run to run: times, widths and blanks."""
    plain = re.sub(r"─+", "─", _TIME.sub("TIME", text))
    return [" ".join(line.split()) for line in plain.splitlines() if line.strip()]


def _follows(shown: list[str], printed: list[str]) -> bool:
    """Return whether lines were printed as shown; a line ``...`` stands for any number of them."""
    pattern = "".join(r"(?:.*\n)*?" if line == "..." else re.escape(line) + r"\n" for line in shown)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in printed)) is not None


@pytest.mark.slow
def test_the_commands_print_what_the_page_shows(root: Path, tmp_path: Path) -> None:
    """All of them, in order; what Python blocks write is there when a command asks for it."""
    text = (root / "docs" / "tutorial" / "first-reward.md").read_text(encoding="utf-8")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {**os.environ, "COLUMNS": "80", "PATH": path, "PYTHONPATH": str(root), "HF_HUB_OFFLINE": "1"}
    script, run = "import json\nfrom pathlib import Path\n", 0
    for language, block in _BLOCK.findall(text):
        if (name := _FILE.match(block)) is not None:
            (tmp_path / name[1]).write_text(block, encoding="utf-8")
        elif language == "python" and "write_text(" in block:
            script += block
            subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=env, check=True, timeout=60)
        elif language == "console":
            command, _, shown = block.removeprefix("$ ").partition("\n")
            done = subprocess.run(["bash", "-c", command], cwd=tmp_path, env=env, capture_output=True, text=True,
                                  timeout=300)  # fmt: skip
            printed = done.stdout + done.stderr
            assert _follows(_lines(shown), _lines(printed)), f"$ {command}\n{printed}"
            run += 1
    assert run == 6
