"""How a run ended is told from what its recorder wrote, and from its process."""

from __future__ import annotations

import contextlib
import os
import platform
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from patience import wait_for

from rewardkit import Outcome, Rollout, Runtime, ScoreBatch, Status, reward
from rewardkit.record import sessions
from rewardkit.record.reader import RunReader
from rewardkit.record.recorder import Recorder
from rewardkit.record.run_end import RunEnd, RunState, run_end
from rewardkit.record.sessions import is_alive, process_start

PROGRAM = """
import os, signal, sys
from rewardkit import Rollout
from rewardkit.record.recorder import Recorder
from rewardkit.score_batch import ScoreBatch
from rewardkit.types import Outcome, Status
recorder = Recorder(sys.argv[1])
recorder.record(ScoreBatch([Rollout("p", "c")], {{"a": [Outcome(Status.SCORED, 1.0)]}}, {{"a": 1.0}}), step=0)
assert recorder.flush()
{body}
"""


def ended(body: str, run: Path) -> RunEnd:
    """Return how a program's run ended."""
    subprocess.run([sys.executable, "-c", PROGRAM.format(body=body), str(run)], check=False, stderr=subprocess.DEVNULL)
    with RunReader(run) as opened:
        return opened.end


@pytest.mark.parametrize(
    ("body", "state", "reason"),
    [
        ("", RunState.FINISHED, None),
        ("recorder.close()", RunState.FINISHED, None),
        ("raise SystemExit(0)", RunState.FINISHED, None),
        ("raise ValueError('no  such\\nthing')", RunState.STOPPED, "ValueError: no such thing"),
        ("raise KeyboardInterrupt", RunState.STOPPED, "KeyboardInterrupt"),
        ("with recorder:\n    raise OSError('disk')", RunState.STOPPED, "OSError: disk"),
        ("with recorder:\n    sys.exit('out of memory')", RunState.STOPPED, "SystemExit: out of memory"),
        ("with recorder:\n    pass\nraise ValueError('later')", RunState.FINISHED, None),
        ("os.kill(os.getpid(), signal.SIGKILL)", RunState.KILLED, "no end was written"),
        ("os.kill(os.getpid(), signal.SIGTERM)", RunState.KILLED, "no end was written"),
        ("os._exit(0)", RunState.KILLED, "no end was written"),
    ],
    ids=["end", "closed", "exit 0", "error", "interrupt", "with", "exit", "after", "SIGKILL", "SIGTERM", "_exit"],
)
def test_a_run_ends_as_its_program_does(tmp_path: Path, body: str, state: RunState, reason: str | None) -> None:
    """Closed or not, an error is named; what left no end was killed."""
    end = ended(body, tmp_path / "one")
    assert (state, True) == (end.state, end.reason == reason or str(end.reason).startswith(f"{reason}; process "))


def test_the_error_of_a_with_statement_ends_the_run(tmp_path: Path) -> None:
    """A runtime hands it on, unless a recorder is shared that another statement holds."""

    @reward
    def length(completion: str) -> float:
        return float(len(completion))

    with contextlib.suppress(ValueError), Runtime([length], lane="inline", record=tmp_path / "own") as runtime:
        runtime.score([Rollout("p", "c")], step=0)
        raise ValueError("mine")
    with Recorder(tmp_path / "shared") as recorder:
        with contextlib.suppress(ValueError), Runtime([length], lane="inline", record=recorder) as runtime:
            runtime.score([Rollout("p", "c")], step=0)
            raise ValueError("caught")
        with RunReader(tmp_path / "shared") as opened:
            assert RunState.RUNNING is opened.end.state
    for name, state in (("own", RunEnd(RunState.STOPPED, "ValueError: mine")), ("shared", RunEnd(RunState.FINISHED))):
        with RunReader(tmp_path / name) as opened:
            assert state == opened.end


@pytest.mark.parametrize("waits", [False, True], ids=["idle", "with a batch that waits"])
def test_a_recorder_that_nobody_uses_any_more_ends(tmp_path: Path, waits: bool) -> None:
    """Its run is finished, and its thread and connection are gone; also where a batch was the last to hold it."""
    recorder = Recorder(tmp_path)
    assert recorder.flush()
    threads = [thread for thread in threading.enumerate() if thread.name == "rewardkit-record"]
    with contextlib.closing(sqlite3.connect(tmp_path / "record.db")) as other:
        if waits:
            other.execute("BEGIN IMMEDIATE")
        outcomes = {"a": [Outcome(Status.SCORED, 1.0)]}
        recorder.record(ScoreBatch([Rollout("p", "c")], outcomes, {"a": 1.0}), step=0)
        del recorder
        other.rollback()

    def is_over() -> bool:
        with RunReader(tmp_path) as run:
            return run.end.state is RunState.FINISHED and not any(thread.is_alive() for thread in threads)

    assert wait_for(is_over)
    with RunReader(tmp_path) as run:
        assert 1 == run.count()


def test_the_last_start_decides(tmp_path: Path) -> None:
    """A run that was killed and went on is finished, whatever its earlier processes left."""
    assert RunState.KILLED is ended("os._exit(1)", tmp_path / "one").state
    with Recorder(tmp_path / "one", append=True):
        pass
    with RunReader(tmp_path / "one") as opened:
        assert RunEnd(RunState.FINISHED) == opened.end
    with Recorder(tmp_path / "one", append=True, purpose="rescore"), RunReader(tmp_path / "one") as opened:
        assert RunState.RUNNING is opened.end.state


def session(number: int = 1, rank: int = 0, **more: Any) -> dict[str, Any]:
    """Return a session of this process."""
    about = {"process": os.getpid(), "machine": {"host": platform.node()}, "process_start": process_start()}
    row = {"id": number, "rank": rank, "purpose": "run", "ended": None, "began": time.time(), "seen": time.time()}
    return {**row, "about": about, **more}


def test_of_several_processes_one_that_was_killed_is_told() -> None:
    """Of the ranks of the last start; those of an earlier one count no longer."""
    gone = {"process": 2**22 + 1, "machine": {"host": platform.node()}, "process_start": process_start()}
    closed, killed = {"ended": 1.0}, {"about": gone}
    assert RunState.KILLED is run_end([session(1, **closed), session(2, 1, **killed)], []).state
    rows = [session(1, **killed), session(2, 1, **killed), session(3, **closed), session(4, 1, **closed)]
    assert RunState.FINISHED is run_end(rows, []).state
    assert RunState.RUNNING is run_end([*rows, session(5, 1)], []).state


@pytest.mark.parametrize(
    ("start", "host", "silent_s", "alive"),
    [
        ({}, None, 0.0, True),
        ({"ticks": 1}, None, 0.0, False),
        ({"namespace": "pid:[1]"}, None, 0.0, True),
        ({"namespace": "pid:[1]"}, None, 800.0, True),
        ({"namespace": "pid:[1]"}, None, 1000.0, False),
        ({"boot": "another"}, "elsewhere", 800.0, True),
        ({"boot": "another"}, "elsewhere", 1000.0, False),
        ({"boot": "another"}, None, 1e9, False),
    ],
    ids=["itself", "id given again", "container", "quiet", "silent", "machine", "silent machine", "booted since"],
)
def test_a_process_is_looked_up_where_it_can_be_seen(
    start: dict[str, Any], host: str | None, silent_s: float, alive: bool
) -> None:
    """By id and start; of another container, machine or boot its last sign counts, one each five minutes."""
    about = {
        "process": os.getpid(), "machine": {"host": host or platform.node()}, "sign_s": 300.0,
        "process_start": {**process_start(), **start},
    }  # fmt: skip
    assert alive == is_alive(session(about=about, seen=time.time() - silent_s))


def test_a_process_that_stands_still_runs() -> None:
    """A stopped process may go on; one that is dead and that nobody has waited for does not."""
    child = subprocess.Popen([sys.executable, "-c", "print(flush=True); input()"], stdin=-1, stdout=-1)
    assert child.stdout is not None
    child.stdout.readline()
    ticks = sessions._stat(child.pid)[1]
    about = {"process": child.pid, "machine": {"host": platform.node()},
             "process_start": {**process_start(), "ticks": ticks}}  # fmt: skip
    child.send_signal(signal.SIGSTOP)
    assert is_alive(session(about=about))
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not is_alive(session(about=about))
    child.communicate()


def test_a_recorder_with_nothing_to_write_gives_signs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So another machine can tell a slow training from a dead one."""
    monkeypatch.setattr("rewardkit.record.writer.SIGN_S", 0.05)
    with Recorder(tmp_path) as recorder:
        database = recorder.path.home / "record.db"

        def seen() -> float:
            with contextlib.closing(sqlite3.connect(database)) as connection:
                return float(connection.execute("SELECT seen FROM session").fetchone()[0])

        first, until = seen(), time.monotonic() + 30
        while seen() == first and time.monotonic() < until:
            time.sleep(0.05)
        assert seen() > first
