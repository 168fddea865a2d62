"""The tests of the runtime once more, with two nodes beside this machine's workers.

Each ``Runtime`` that names no lane has ``lane="ray"`` here, over hosts in this process, and each job waits until the
nodes have joined, so that they have a part in it. Some run always; with ``--full`` all do that are not in the table.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from node_cluster import ThreadCluster

from rewardkit import Runtime
from rewardkit.runtime.nodes import ray_cluster
from rewardkit.runtime.nodes.pool import NodePool
from sandbox.workers import Call, Job

JOIN_S = 5.0
"""Seconds that a job waits for nodes; those of a reward that cannot be loaded never join."""
EXCLUDED = {
    "test_an_ascore_cancelled_before_its_batch_has_begun_makes_no_calls": "it watches how a WorkerPool is told, and "
    "what has not been sent anywhere is dropped before any is",
    "test_the_runtime_survives_the_loss_of_its_warden": "it takes every child of this process for the runtime's own "
    "warden, and the hosts, which are in this process here, have wardens too",
}
"""Tests that do not hold with nodes, and why."""
ALWAYS = {
    "test_a_fault_costs_its_own_call_alone",
    "test_children_that_a_call_leaves_behind_are_ended",
}
"""Tests that run without ``--full`` as well."""


@pytest.fixture(autouse=True)
def _on_nodes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    clusters: list[ThreadCluster] = []

    def connect(address: str | None) -> ThreadCluster:
        clusters.append(ThreadCluster("a", "b"))
        return clusters[-1]

    def submit(pool: NodePool, job: Job, calls: Sequence[Call], *, complete: bool = True) -> None:
        pool.start()
        end = time.monotonic() + JOIN_S
        while len(pool.nodes) < 2 and time.monotonic() < end:
            time.sleep(0.01)
        real_submit(pool, job, calls, complete=complete)

    real_submit = NodePool.submit
    monkeypatch.setattr(ray_cluster, "connect", connect)
    monkeypatch.setattr(NodePool, "submit", submit)
    monkeypatch.setitem(Runtime.__init__.__kwdefaults__, "lane", "ray")  # type: ignore[arg-type,index]
    monkeypatch.setenv("REWARDKIT_CACHE", str(tmp_path / "cache"))
    yield
    for cluster in clusters:
        for host in cluster.hosts.values():
            host.kill()


def _tests_of(*names: str) -> dict[str, Any]:
    """Return the tests and fixtures of modules beside this one's folder."""
    import importlib.util
    import sys

    found: dict[str, Any] = {}
    for name in names:
        file = Path(__file__).parents[1] / f"{name}.py"
        spec = importlib.util.spec_from_file_location(f"on_nodes_{name}", file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        for key, value in vars(module).items():
            if key.startswith("test_") and key not in EXCLUDED:
                found[key] = value if key in ALWAYS else pytest.mark.full(value)
            elif type(value).__name__ == "FixtureFunctionDefinition":
                found[key] = value
    return found


globals().update(_tests_of("test_runtime", "test_worker_faults", "test_malformed_answers"))
