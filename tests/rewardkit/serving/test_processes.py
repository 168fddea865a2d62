"""Several server processes on one port: they answer as one, are replaced when they end, and end together."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest
from patience import wait_for
from serve_processes import WAIT_S, Serving, serving
from served import free_port
from typer.testing import CliRunner

from rewardkit.cli.program import app
from rewardkit.serving.metrics import Counts
from rewardkit.serving.shared_counts import SharedCounts, bury

REWARDS = """
import os, time
from rewardkit import Score, group_reward, reward

@reward(timeout_s=30)
def right(completion: str, answer: str) -> Score:
    if completion == "slow":
        time.sleep(1.5)
    if completion == "hang":
        time.sleep(25)
    return Score(float(completion == answer), metrics={"worker": os.getpid()})
"""
GROUPS = """
@group_reward
def shortest(completions: list[str]) -> list[float]:
    return [float(len(text) == min(map(len, completions))) for text in completions]
"""


@pytest.fixture
def rewards(tmp_path: Path) -> Path:
    path = tmp_path / "rewards_of_many.py"
    path.write_text(REWARDS)
    return path


def _rows(completion: str, rows: int = 1) -> dict[str, Any]:
    return {"rollouts": [{"prompt": "p", "completion": completion, "example": {"answer": "4"}}] * rows}


def _worker_of(served: Serving, completion: str = "4") -> int:
    """Ask for a score, and return the worker that gave it."""
    reply = served.ask("POST", "/v1/score", _rows(completion))
    assert 200 == reply.status, reply.body
    assert [float(completion == "4")] == reply.json["totals"]
    return int(reply.json["rows"][0]["outcomes"]["right"]["metrics"]["worker"])


def _members(served: Serving) -> set[int]:
    """Return the server processes."""
    members = set()
    for child in psutil.Process(served.process.pid).children():
        with contextlib.suppress(psutil.NoSuchProcess):  # also one that has ended and is not reaped
            if any("spawn_main" in argument for argument in child.cmdline()):
                members.add(child.pid)
    return members


def _counted(served: Serving, name: str) -> float:
    text = served.ask("GET", "/metrics").body.decode()
    match = re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
    return float(match[1]) if match else 0.0


@pytest.mark.slow
def test_they_answer_as_one_and_a_dead_one_is_replaced(rewards: Path) -> None:
    """All of them score, the counters are those of all, also after one was killed, and so are the versions."""
    scored = 'rewardkit_rollouts_total{fate="scored"}'
    with serving(rewards, "--processes", "2") as served:
        assert 2 == served.told["processes"]
        members = _members(served)
        workers: set[int] = set()
        asked = 0
        while len(workers) < 2 and asked < 500:
            workers.add(_worker_of(served))
            asked += 1
        assert 2 == len(workers)
        assert wait_for(lambda: all(_counted(served, scored) == asked for _ in range(6)))
        version = served.ask("GET", "/v1/rewards").json["versions"]
        rewards.write_text(REWARDS.replace("== answer", "!= answer"))
        dead = min(members)
        its = [child.pid for child in psutil.Process(dead).children(recursive=True)]
        os.kill(dead, signal.SIGKILL)
        assert wait_for(lambda: len(_members(served) - {dead}) == 2)
        replaced = _members(served)
        assert wait_for(lambda: not any(map(psutil.pid_exists, its)))
        assert "a server process ended (signal 9); another is started at once" in served.logged
        new = (replaced - members).pop()
        assert wait_for(lambda: psutil.Process(new).children() and _worker_of(served) not in workers)
        assert version == served.ask("GET", "/v1/rewards").json["versions"]
        assert wait_for(lambda: _counted(served, scored) > asked)
        served.process.terminate()
        assert 0 == served.process.wait(WAIT_S)
        assert wait_for(lambda: not any(map(psutil.pid_exists, replaced)))


@pytest.mark.cases(1)
@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130), (signal.SIGHUP, 0)])
def test_a_signal_drains_all(rewards: Path, number: signal.Signals, code: int) -> None:
    """What each has taken is answered, and no process is left; the port is free for the next server."""
    with serving(rewards, "--processes", "2") as served, ThreadPoolExecutor(6) as threads:
        slow = [threads.submit(served.ask, "POST", "/v1/score", _rows("slow")) for _ in range(6)]
        assert wait_for(lambda: _counted(served, "rewardkit_rows_inside") == 6)
        family = served.children()
        served.process.send_signal(number)
        assert {(200, 0.0)} == {(reply.status, reply.json["totals"][0]) for reply in (one.result() for one in slow)}
        assert code == served.process.wait(WAIT_S)
        _, left = psutil.wait_procs(family, WAIT_S)
        assert [] == left
        with serving(rewards, "--processes", "2", port=served.port) as again:
            _worker_of(again)


@pytest.mark.slow
def test_a_second_signal_ends_all_at_once(rewards: Path) -> None:
    """Rows that are being scored are given up."""
    with serving(rewards, "--processes", "2") as served, ThreadPoolExecutor(1) as threads:
        hanging = threads.submit(served.ask, "POST", "/v1/score", _rows("hang"))
        assert wait_for(lambda: _counted(served, "rewardkit_rows_inside") == 1)
        family = served.children()
        served.process.terminate()
        assert wait_for(lambda: len(_members(served)) == 1)  # the idle one has drained
        served.process.terminate()
        assert 0 == served.process.wait(WAIT_S)
        assert hanging.exception(WAIT_S) is not None or hanging.result().status >= 500
        _, left = psutil.wait_procs(family, WAIT_S)
        assert [] == left


@pytest.mark.slow
def test_a_parent_that_is_killed_leaves_no_process(rewards: Path) -> None:
    """The others drain and end by themselves."""
    with serving(rewards, "--processes", "2") as served, ThreadPoolExecutor(1) as threads:
        slow = threads.submit(served.ask, "POST", "/v1/score", _rows("slow"))
        assert wait_for(lambda: _counted(served, "rewardkit_rows_inside") == 1)
        family = served.children()
        served.process.kill()
        assert 200 == slow.result(WAIT_S).status
        _, left = psutil.wait_procs(family, WAIT_S)
        assert [] == left


@pytest.mark.slow
def test_a_taken_port_and_rewards_that_do_not_load_are_errors(rewards: Path) -> None:
    """Nothing is served by half of the processes."""
    many = [sys.executable, "-m", "rewardkit", "serve", str(rewards), "--processes", "2", "--workers", "1", "--json"]
    port = free_port()
    with serving(rewards, "--processes", "2", port=port):
        refused = subprocess.run([*many, "--port", str(port)], capture_output=True, text=True, timeout=WAIT_S)
    assert f"--port {port}: is not free" in json.loads(refused.stdout)["error"]["message"]
    rewards.write_text(f"from sandbox.workers import INSIDE\nimport os\n1 / (INSIDE not in os.environ)\n{REWARDS}")
    refused = subprocess.run([*many, "--port", str(free_port())], capture_output=True, text=True, timeout=WAIT_S)
    assert refused.returncode != 0
    assert "cannot be loaded in a worker" in json.loads(refused.stdout)["error"]["message"]


@pytest.mark.parametrize(("value", "reason"), [("0", "greater than or equal to 1"), ("two", "a valid integer")])
def test_a_number_that_makes_no_sense_is_refused(rewards: Path, value: str, reason: str) -> None:
    """The message names the option, and what it takes."""
    refused = CliRunner().invoke(app, ["serve", str(rewards), "--processes", value])
    assert 2 == refused.exit_code
    assert "--processes" in refused.output
    assert reason in " ".join(refused.output.split())


def test_groups_that_single_requests_make_are_refused(rewards: Path) -> None:
    """Their rows might reach different processes; a group size that no reward needs is no reason."""
    rewards.write_text(REWARDS + GROUPS)
    options = [
        "--processes",
        "2",
        "--group-size",
        "4",
        "--workers",
        "1",
        "--port",
        str(free_port()),
        "--check",
        "--json",
    ]
    refused = CliRunner().invoke(app, ["serve", str(rewards), *options])
    message = json.loads(refused.stdout)["error"]["message"]
    assert "reward 'shortest' scores the completions of a prompt together" in message
    assert "leave --processes away, or have whole groups sent to /v1/score" in message
    assert 0 == CliRunner().invoke(app, ["serve", f"{rewards}:right", *options]).exit_code


def test_numbers_of_all_processes_are_added(tmp_path: Path) -> None:
    """Rows inside a process that has ended are inside no more; what it counted stands."""
    first, second = (SharedCounts(str(tmp_path), number) for number in (0, 1))
    counts = Counts(rows_inside=3)
    counts.requests["/slime", 200] += 2
    counts.seconds["/slime"].note(0.2)
    counts.outcomes["right", "failed", "timeout"] += 1
    counts.rollouts["scored"] += 5
    counts.batches.note(7)
    first.publish(counts)
    total = second.with_others(counts)
    assert (6, 4, 10) == (total.rows_inside, total.requests["/slime", 200], total.rollouts["scored"])
    assert (2, pytest.approx(0.4)) == (sum(total.seconds["/slime"].counts), total.seconds["/slime"].total)
    assert (2, 14.0) == (total.outcomes["right", "failed", "timeout"], total.batches.total)
    bury(str(tmp_path), 0)
    bury(str(tmp_path), 9)
    total = second.with_others(Counts())
    assert (0, 2, 5) == (total.rows_inside, total.requests["/slime", 200], total.rollouts["scored"])
