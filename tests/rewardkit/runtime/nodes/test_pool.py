"""The pool over several nodes, on hosts in this process: equal scores, lost and frozen nodes, who takes part."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from node_cluster import ThreadCluster, ThreadHost, other_python, other_version
from patience import wait_for

from rewardkit import Cause, ClusterError, RewardDefinitionError, Rollout, Runtime, Status, group_reward, reward
from rewardkit.runtime.nodes import members, ray_cluster, recruiting, schedule


@reward
def slow_length(completion: str) -> float:
    time.sleep(0.005)
    return float(len(completion))


@reward(concurrency=4)
def waiting(completion: str) -> float:
    return float(len(completion))


@reward(retries=1)
def failing(completion: str) -> float:
    if completion.endswith("7"):
        raise ValueError(completion)
    return 1.0


@group_reward
def ranks(completions: list[str]) -> list[float]:
    time.sleep(0.005)
    return [float(sorted(completions).index(one)) for one in completions]


def _rollouts(count: int) -> list[Rollout]:
    return [Rollout(f"p{n // 4}", "x" * (n % 50) + str(n), {}) for n in range(count)]


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[ThreadCluster]:
    """Two nodes beside this process's own, which a runtime with ``lane="ray"`` finds."""
    made = ThreadCluster("a", "b")
    monkeypatch.setattr(ray_cluster, "connect", lambda address: made)
    yield made
    for host in made.hosts.values():
        host.kill()


def _joined(runtime: Runtime, count: int = 2) -> Runtime:
    runtime.start()
    wait_for(lambda: len(runtime.nodes) == count)
    return runtime


def test_scores_are_those_of_one_machine_and_every_node_has_a_part(cluster: ThreadCluster) -> None:
    rewards = [slow_length, waiting, failing, ranks]
    rollouts = _rollouts(400)
    with Runtime(rewards, workers=1) as runtime:
        expected = runtime.score(rollouts, step=3)
    with _joined(Runtime(rewards, workers=1, lane="ray")) as runtime:
        batch = runtime.score(rollouts, step=3)
    assert expected.scores == batch.scores
    assert [one.attempts for one in expected["failing"]] == [one.attempts for one in batch["failing"]]
    assert all("take" in host.asked for host in cluster.hosts.values())


def test_a_killed_node_costs_no_call(cluster: ThreadCluster, caplog: pytest.LogCaptureFixture) -> None:
    with _joined(Runtime([slow_length], workers=1, lane="ray")) as runtime:
        rollouts = _rollouts(600)
        threading.Timer(0.3, cluster.hosts["a"].kill).start()
        batch = runtime.score(rollouts)
        assert [float(len(one.completion)) for one in rollouts] == [one.score for one in batch["slow_length"]]
        assert ["b"] == runtime.nodes
    assert "machine-a is lost: the actor died" in caplog.text
