"""Whether a run is still being written is told from its processes."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from typing import Any

import pytest

from rewardkit import Rollout, Run, Runtime, reward
from rewardkit.errors import RecordError
from rewardkit.record.recorder import Recorder
from rewardkit.record.sessions import QUIET_S, is_alive


def _session(**more: Any) -> dict[str, Any]:
    about = {"process": os.getpid(), "machine": {"host": platform.node()}}
    return {"ended": None, "began": time.time(), "seen": time.time(), "about": about, **more}


def test_a_session_is_alive_while_its_process_is() -> None:
    """One that ended is not, nor one whose process is gone, or whose number another process has now."""
    assert is_alive(_session())
    assert not is_alive(_session(ended=time.time()))
    assert not is_alive(_session(began=time.time() - 10 * 365 * 86400))
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert not is_alive(_session(about={"process": gone.pid, "machine": {"host": platform.node()}}))


def test_a_killed_process_is_not_alive_before_anybody_waits_for_it() -> None:
    """What the kernel keeps of a dead process records nothing."""
    dead = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    dead.kill()
    os.waitid(os.P_PID, dead.pid, os.WEXITED | os.WNOWAIT)
    assert not is_alive(_session(about={"process": dead.pid, "machine": {"host": platform.node()}}))
    dead.communicate()


def test_of_another_machine_the_last_sign_counts() -> None:
    """Its processes cannot be seen from here."""
    about = {"process": 1, "machine": {"host": "another"}}
    assert is_alive(_session(about=about))
    assert not is_alive(_session(about=about, seen=time.time() - QUIET_S - 1))
    assert is_alive(_session(about={}))


def test_a_run_is_running_until_its_recorder_is_closed(place: Any) -> None:
    """A reader sees that, and that something was written since it looked."""
    recorder = Recorder(place)
    with Run.open(place) as run:
        before = run.data_version
        assert run.running
        recorder.close()
        assert before != run.data_version
        assert not run.running


def test_prompts_are_read_once_each(place: Any) -> None:
    """In the order in which they came, with their columns; an index that there is not is named."""

    @reward
    def length(completion: str) -> float:
        return float(len(completion))

    rollouts = [Rollout(f"{n % 3}+1=", "x" * n, {"answer": n % 3}) for n in range(7)]
    with Runtime([length], lane="inline", record=place) as runtime:
        runtime.score(rollouts, step=0)
    with Run.open(place) as run:
        assert [(n, f"{n}+1=", {"answer": n}) for n in range(3)] == [
            (one.index, one.prompt, one.columns) for one in run.prompts()
        ]
        assert ("2+1=", 3, 7, 0) == (run.prompt(2).prompt, run.prompt_count, run.last_id, run.left_out)
        assert [1, 2] == run.ranked(0, 2, best=False)
        assert [7, 6] == run.ranked(0, 2, best=True)
        assert [] == run.ranked(None, 2, best=True)
        for index in (3, -1):
            with pytest.raises(RecordError, match=f"no prompt {index}; it has those from 0 to 2"):
                run.prompt(index)
