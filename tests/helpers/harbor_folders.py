"""A small task in Harbor's form, written into a folder, with files that stand in the place of its own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

TASK = """version = "1.0"
[metadata]
difficulty = "easy"
[verifier]
timeout_sec = 60.0
[environment]
cpus = 1
"""
DOCKERFILE = """FROM python:3.11-slim
# what people want to have
RUN apt-get update && apt-get install -y tmux curl \\
    && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY . /app
"""
TEST_SCRIPT = """#!/bin/bash
apt-get update
curl -LsSf https://example.org/uv/install.sh | sh
source $HOME/.local/bin/env
if [ "$PWD" = "/" ]; then
    echo "no working folder"
    exit 1
fi
uvx \\
  -p 3.13 \\
  -w pytest==8.4.1 \\
  -w pytest-json-ctrf==0.3.5 \\
  pytest --ctrf /logs/verifier/ctrf.json /tests/test_outputs.py -rA

if [ $? -eq 0 ]; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
"""
TESTS = """
import sys
from pathlib import Path

import pytest

sys.path.insert(0, "/app")
from shapes import area

def test_file():
    assert Path("/app/shapes.py").stat().st_size > 8

@pytest.mark.parametrize("side, expected", [(7, 49), (12, 144)])
def test_area(side, expected):
    assert area(side) == expected
"""
START = "def area(side):\n    return side * 2\n"
SOLVED = "def area(side):\n    return side * side\n"
SOLUTION = f"#!/bin/bash\ncat > /app/shapes.py << 'EOF'\n{SOLVED}EOF\n"
FILES: Mapping[str, str] = {
    "task.toml": TASK,
    "instruction.md": "Make `area` in /app/shapes.py right.\n",
    "environment/Dockerfile": DOCKERFILE,
    "environment/shapes.py": START,
    "tests/test.sh": TEST_SCRIPT,
    "tests/test_outputs.py": TESTS,
    "solution/solve.sh": SOLUTION,
}


def write_task(folder: Path, files: Mapping[str, str | bytes | None] | None = None) -> Path:
    """Write the task into a folder; ``files`` stand in the place of its own, ``None`` for one that is left out."""
    for name, text in {**FILES, **(files or {})}.items():
        if text is not None:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode() if isinstance(text, str) else text)
    return folder
