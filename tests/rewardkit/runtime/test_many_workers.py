"""Many more workers than cores: what they score, load and take of the memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from patience import LONG_S

from rewardkit import Cause, Rollout, Runtime, Status
from sandbox.workers.pool import MANY_WORKERS

pytestmark = pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="needs Linux")
WORKERS = 32
MODULE = """
import os, random, threading, time
from pathlib import Path
from rewardkit import reward

with open(Path(__file__).parent / "loads", "a") as file:
    file.write(f"{{os.getpid()}}\\n")
ballast = bytes(range(256)) * (40 << 12)  # 40 MiB that nobody writes
{at_load}

@reward(timeout_s={timeout_s})
def scored(completion: str) -> float:
    if completion == "bad":
        os._exit(3)
    if completion == "late":
        time.sleep(600)
    if completion == "drawn":
        time.sleep(0.02)
        return random.random() + os.getpid()
    until = time.thread_time() + 0.002
    while time.thread_time() < until:
        pass
    return float(len(completion))
"""

BUSY = """
import time
from rewardkit import reward

@reward(timeout_s=0.5)
def busy(completion: str) -> float:
    began, until = time.monotonic(), time.thread_time() + 0.15
    while completion == "endless" or time.thread_time() < until:
        pass
    print(time.monotonic() - began)
    return 1.0
"""


def _reference(folder: Path, at_load: str = "", timeout_s: float = LONG_S) -> str:
    (folder / "rewards.py").write_text(MODULE.format(at_load=at_load, timeout_s=timeout_s))
    return f"{folder / 'rewards.py'}:scored"


def _loads(folder: Path) -> int:
    return len((folder / "loads").read_text().split())


def _alone_bytes(process: int) -> int:
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))


def test_many_workers_score_right_and_share_what_they_load(tmp_path: Path) -> None:
    """The first and the process that forks the others load; 40 MiB of the module are in no worker's own memory."""
    rollouts = [Rollout("p", "x" * (n % 50)) for n in range(20 * WORKERS)]
    with Runtime([_reference(tmp_path)], workers=WORKERS) as runtime:
        runtime.wait_loaded()
        for _ in range(2):
            assert [float(n % 50) for n in range(len(rollouts))] == runtime.score(rollouts).scores["scored"]
        assert 1 + 1 + 1 == _loads(tmp_path)  # here, the first worker, and what forks the others
        alone = sorted(map(_alone_bytes, runtime.processes))
        assert WORKERS == len(alone)
        assert alone[-2] < 20 << 20  # all but the first
        drawn = {
            outcome.score and outcome.score % 1 for outcome in runtime.score([Rollout("p", "drawn")] * 96)["scored"]
        }
        assert 96 == len(drawn)


def test_few_workers_load_by_themselves(tmp_path: Path) -> None:
    """Below that number nothing is forked that has loaded."""
    with Runtime([_reference(tmp_path)], workers=3) as runtime:
        runtime.wait_loaded()
        assert 1 + 3 == _loads(tmp_path)


def test_many_workers_whose_loading_cannot_be_shared_load_by_themselves(tmp_path: Path) -> None:
    """A thread that loading leaves would be in no fork."""
    thread = "threading.Thread(target=time.sleep, args=(600,), daemon=True).start()"
    at_load = f'if "REWARDKIT_INSIDE_WORKER" in os.environ:\n    {thread}'
    with Runtime([_reference(tmp_path, at_load)], workers=MANY_WORKERS) as runtime:
        runtime.wait_loaded()
        assert [3.0] * 64 == runtime.score([Rollout("p", "xxx")] * 64).scores["scored"]
        assert 1 + MANY_WORKERS + 1 <= _loads(tmp_path)


@pytest.fixture
def single_processor() -> Iterator[None]:
    """All that the test starts shares one processor."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    yield
    os.sched_setaffinity(0, allowed)


@pytest.mark.usefixtures("single_processor")
@pytest.mark.skipif(not os.path.exists("/proc/self/schedstat"), reason="this kernel does not say who waits")
def test_waiting_for_a_processor_is_not_charged(tmp_path: Path) -> None:
    """Twelve calls of 0.15 s on one processor take longer than each one's 0.5 s; one that never ends is ended."""
    (tmp_path / "busy.py").write_text(BUSY)
    with Runtime([f"{tmp_path / 'busy.py'}:busy"], workers=12) as runtime:
        runtime.wait_loaded()
        outcomes = runtime.score([Rollout("p", "endless" if n == 7 else "x") for n in range(24)])["busy"]
        clock = "".join(outcome.logs for outcome in outcomes).split()
    assert [Cause.TIMEOUT if n == 7 else None for n in range(24)] == [outcome.cause for outcome in outcomes]
    assert max(map(float, clock)) > 0.5  # so that the test says something


def test_faults_among_many_workers_are_their_own(tmp_path: Path) -> None:
    """Where a call ends its process and another never returns, all others have their scores."""
    completions = ["x" * (1 + n % 9) for n in range(300)]
    completions[40], completions[170] = "bad", "late"
    with Runtime([_reference(tmp_path, timeout_s=5.0)], workers=WORKERS) as runtime:
        outcomes = runtime.score([Rollout("p", completion) for completion in completions])["scored"]
    causes = {"bad": Cause.CRASHED, "late": Cause.TIMEOUT}
    for completion, outcome in zip(completions, outcomes, strict=True):
        assert causes.get(completion) == outcome.cause, (completion, outcome)
        if completion not in causes:
            assert (Status.SCORED, len(completion)) == (outcome.status, outcome.score)
