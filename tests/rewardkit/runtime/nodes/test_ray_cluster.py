"""The same on Ray: a head and two nodes on this machine, of which one is frozen, one killed and one comes later."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from patience import wait_for

from rewardkit import Rollout, Runtime

pytestmark = [
    pytest.mark.ray,
    # Ray's own, of files and sockets that it leaves to the collector
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
REWARDS = """
import time, threading
from rewardkit import group_reward, reward

lock = threading.Lock()

@reward
def correct(completion: str, answer: str) -> float:
    return float(completion.strip() == answer)

@reward
def words(completion: str) -> float:
    import helper_of_ray
    with lock:
        return helper_of_ray.FACTOR * len(completion.split())

@group_reward
def shortest(completions: list[str]) -> list[float]:
    least = min(map(len, completions))
    return [float(len(one) == least) for one in completions]

@reward
def slow(completion: str) -> float:
    time.sleep(0.01)
    return float(len(completion))
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head, on which this process is, and two nodes."""
    if "REWARDKIT_REQUIRE_REAL" not in os.environ:
        pytest.importorskip("ray", reason="the extra ray is not installed")
    import ray
    from ray.cluster_utils import Cluster

    before = set(psutil.Process().children(recursive=True))
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        made.add_node(num_cpus=1)
        made.add_node(num_cpus=1)
        ray.init(address=made.address, log_to_driver=False, logging_level="ERROR")
        yield made
    finally:
        ray.shutdown()
        made.shutdown()
        left = [one for one in psutil.Process().children(recursive=True) if one not in before]
        for one in left:
            one.kill()
        psutil.wait_procs(left, 10)


@pytest.fixture
def rewards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("REWARDKIT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "helper_of_ray.py").write_text("FACTOR = 2.0\n")
    (tmp_path / "rewards_of_ray.py").write_text(REWARDS)
    return str(tmp_path / "rewards_of_ray.py")


def _rollouts(count: int) -> list[Rollout]:
    return [
        Rollout(f"prompt {n // 8}", f"word{n} " * (300 // (1 + n % 3)), {"answer": f"word{n}"}) for n in range(count)
    ]


def _joined(runtime: Runtime, count: int) -> Runtime:
    runtime.start()
    wait_for(lambda: len(runtime.nodes) == count)
    return runtime


def _is_right(rollouts: list[Rollout], runtime: Runtime) -> bool:
    expected = [float(len(one.completion)) for one in rollouts]
    return expected == [outcome.score for outcome in runtime.score(rollouts)["slow"]]


def test_scores_on_three_nodes_are_those_of_one(cluster: Any, rewards: str) -> None:
    names = [f"{rewards}:{name}" for name in ("correct", "words", "shortest", "slow")]
    rollouts = _rollouts(400)
    with Runtime(names, workers=1) as runtime:
        expected = runtime.score(rollouts)
    with _joined(Runtime(names, workers=1, lane="ray"), 2) as runtime:
        assert expected.scores == runtime.score(rollouts).scores


def test_doctor_shows_what_each_node_gives(cluster: Any) -> None:
    from rewardkit.runtime.nodes.ray_cluster import connect
    from rewardkit.runtime.nodes.survey import survey

    reports = survey(connect(None, with_own=True))
    assert 3 == len(reports)
    assert {None} == {report.why_not for report in reports}
    assert {("strict", "standard", "seccomp-only")} == {tuple(level for level, _, _ in one.levels) for one in reports}


def test_a_driver_that_is_killed_leaves_no_process(cluster: Any, rewards: str, tmp_path: Path) -> None:
    """Neither an actor nor a worker, on any node."""
    script = tmp_path / "driver.py"
    script.write_text(
        textwrap.dedent(f"""
        import os, signal, sys, time
        from rewardkit import Rollout, Runtime
        runtime = Runtime(["{rewards}:slow"], workers=1, lane="ray", ray_address="{cluster.address}").start()
        while len(runtime.nodes) < 2:
            time.sleep(0.05)
        print("ready", flush=True)
        runtime.score([Rollout("p", "x", {{}})] * 10_000)
        """)
    )
    mark = f"REWARDKIT_TEST_DRIVER={tmp_path}"
    name, _, value = mark.partition("=")
    before = _processes()
    driver = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, env={**os.environ, name: value}, text=True
    )
    assert driver.stdout is not None
    with driver.stdout:
        assert "ready\n" in iter(driver.stdout.readline, "")
    born = _processes() - before
    assert len(born) >= 3 + 2 * 3  # the driver and its worker, and on each node an actor, a warden and a worker
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    wait_for(lambda: not [one for one in born & _processes() if _is_ours(one)])


def _processes() -> set[psutil.Process]:
    return set(psutil.process_iter())


def _is_ours(process: psutil.Process) -> bool:
    """Whether a process is a host or a worker that is alive; Ray keeps idle processes of its own."""
    try:
        words = " ".join(process.cmdline())
        return process.status() != psutil.STATUS_ZOMBIE and ("NodeHost" in words or "sandbox.workers" in words)
    except psutil.Error:
        return False


def test_a_frozen_node_and_then_a_killed_one_cost_no_call(
    cluster: Any, rewards: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The frozen one is given up within 15 s; with the other killed, scoring goes on here alone."""
    frozen, killed = cluster.list_all_nodes()[1:3]
    with _joined(Runtime([f"{rewards}:slow"], workers=1, lane="ray"), 2) as runtime:
        stopped = _with_children(frozen)
        try:
            for one in stopped:
                one.suspend()
            began = time.monotonic()
            assert _is_right(_rollouts(300), runtime)
            assert time.monotonic() - began < 60
            assert 1 == len(runtime.nodes)
        finally:
            for one in stopped:
                one.resume()
        assert "has said nothing for 10 s" in caplog.text
        cluster.remove_node(killed, allow_graceful=False)
        assert _is_right(_rollouts(100), runtime)
        wait_for(lambda: [] == runtime.nodes)  # its actor lives on for moments
        assert _is_right(_rollouts(20), runtime)
    assert "goes on with this machine's workers alone" in caplog.text


def _with_children(node: Any) -> list[psutil.Process]:
    raylet = psutil.Process(node.all_processes["raylet"][0].process.pid)
    return [raylet, *raylet.children(recursive=True)]
