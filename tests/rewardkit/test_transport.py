"""How rewards travel to workers: from whatever folder, and what a file defines with its file."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rewardkit.transport import load_file

REWARD_WITH_HELPERS = """
from dataclasses import dataclass

@dataclass(frozen=True)
class Grader:
    reply: object

    async def __call__(self, completion: str) -> float:
        return self.reply(completion)

def says(completion: str) -> float:
    return float(len(completion))

from rewardkit import reward
graded = reward(name="graded")(Grader(says))
"""


def _score(folder: Path, code: str) -> str:
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert 0 == done.returncode, done.stderr[-2000:]
    return done.stdout.strip()


def test_a_built_in_travels_from_any_folder(tmp_path: Path) -> None:
    """A module that an editable installation finds is found in the worker too, and does not travel by value."""
    if not any("editable" in getattr(finder, "__module__", "") for finder in sys.meta_path):
        pytest.skip("rewardkit is not installed as editable here")
    code = (
        "from rewardkit import Rollout, Runtime\n"
        "from builtin_rewards.structured import json_valid\n"
        "with Runtime([json_valid], workers=1) as runtime:\n"
        "    print(runtime.score([Rollout('p', '{}')]).totals)\n"
    )
    assert "[1.0]" == _score(tmp_path, code)


def test_what_a_file_defines_is_found_by_its_path(tmp_path: Path) -> None:
    """Also where a reward of that file holds a function of it as a setting."""
    (tmp_path / "mine.py").write_text(REWARD_WITH_HELPERS)
    code = (
        "from rewardkit import Rollout, Runtime\n"
        "with Runtime(['mine.py:graded'], workers=1) as runtime:\n"
        "    print(runtime.score([Rollout('p', 'abc')]).totals)\n"
    )
    assert "[3.0]" == _score(tmp_path, code)


def test_a_file_saved_twice_within_a_second_runs_as_it_is_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's cached bytecode counts as current by the file's size and second: here both stay as they were."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    rewards = tmp_path / "rewards.py"
    for score in ("1.0", "0.5"):
        rewards.write_text(f"SCORE = {score}\n")
        os.utime(rewards, (1_700_000_000, 1_700_000_000))
        module = load_file(rewards)
        del sys.modules[module.__name__]
        assert module.SCORE == float(score)
