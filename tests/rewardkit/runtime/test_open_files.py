"""Workers where few files may be open, as on macOS, whose soft limit is 256."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from patience import LONG_S

SCORES = """
import resource
from rewardkit import Rollout, Runtime, reward

def plain(completion: str) -> float:
    with open(__file__):
        return 1.0

async def awaits(completion: str) -> float:
    return 2.0

REWARDS = [reward(name="serial")(plain), reward(name="threads", concurrency=4)(plain), reward(name="loop")(awaits)]

def scores(soft: int, hard: int) -> list[float]:
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    with Runtime(REWARDS, workers=2) as runtime:
        return runtime.score([Rollout("p", "c")] * 4).totals

if __name__ == "__main__":
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    print(*(scores(soft, hard) for soft in (256, 64)))
    print(*(scores(limit, limit) for limit in (400, 256, 128, 64)))
    try:
        scores(16, 16)
    except OSError as error:
        print(error)
"""


def test_workers_score_where_few_files_may_be_open(tmp_path: Path) -> None:
    """A soft limit is raised in the workers; below a low hard limit they take lower numbers, or name the limit."""
    script = tmp_path / "scores.py"
    script.write_text(SCORES)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, timeout=LONG_S)
    raised, lowered, refused = done.stdout.splitlines()
    assert " ".join(["[4.0, 4.0, 4.0, 4.0]"] * 2) == raised
    assert " ".join(["[4.0, 4.0, 4.0, 4.0]"] * 4) == lowered
    assert "this process may have 16 files open" in refused
    assert "ulimit -n (up to 16)" in refused
