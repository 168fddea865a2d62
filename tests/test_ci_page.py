"""The workflow that the page on CI shows: its commands pass with a sound reward, and fail a pull request otherwise."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
import yaml

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "test-rewards.md"
SOUND = '''\
"""A sum's answer."""
from builtin_rewards.math import math_answer
from rewardkit import reward


@reward
def correct(completion: str, answer: str) -> float:
    """1.0 if the final answer is the right one."""
    return math_answer(completion=completion, answer=answer).value or 0.0
'''
GAMED = SOUND.replace("math_answer(completion=completion, answer=answer).value or 0.0", "float(answer in completion)")
ROWS = [{"prompt": f"What is {n} + {n + 7}?", "answer": str(2 * n + 7)} for n in (12, 23, 34, 45)]
CASES = """\
reward: ../correct.py:correct
cases:
- {completion: "31", answer: 31, expect: 1.0}
- {completion: "30", answer: 31, expect: 0.0}
- {completion: "30 or 31", answer: 31, expect: 0.0}
"""


def _commands() -> dict[str, str]:
    """The commands of the workflow by step, the installation aside."""
    block = re.search(r"```yaml\n([^`]*?\njobs:.*?)```", PAGE.read_text(), re.DOTALL)
    assert block is not None
    (job,) = yaml.safe_load(block[1])["jobs"].values()
    found = {step["name"]: step["run"] for step in job["steps"] if "run" in step}
    assert 'pip install "${{ vars.REWARDKIT }}"' == found.pop("install")
    return found


@pytest.mark.parametrize(
    ("source", "codes"),
    [(SOUND, {"check": 0, "cases": 0, "audit": 0}), (GAMED, {"check": 0, "cases": 1, "audit": 1})],
    ids=["sound", "gamed"],
)
def test_a_reward_that_can_be_gamed_fails_the_pull_request(source: str, codes: dict[str, int], tmp_path: Path) -> None:
    """By its cases and by its audit, each with its report."""
    folder = tmp_path / "rewards"
    (folder / "cases").mkdir(parents=True)
    (folder / "correct.py").write_text(source)
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    (folder / "cases" / "correct.yaml").write_text(CASES)
    (tmp_path / "rewardkit").write_text(f'#!/bin/sh\nexec {sys.executable} -m rewardkit "$@"\n')
    (tmp_path / "rewardkit").chmod(0o755)
    found = {}
    for name, command in _commands().items():
        line = f'PATH="$PWD:$PATH"; {command}'
        done = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, timeout=300)
        found[name] = done.returncode
    assert codes == found, done.stdout + done.stderr
    assert str(codes["cases"]) == ElementTree.parse(tmp_path / "cases.xml").getroot().get("failures")
    assert json.loads((tmp_path / "audit.json").read_text())
