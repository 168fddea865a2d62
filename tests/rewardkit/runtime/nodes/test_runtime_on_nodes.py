"""The tests of the runtime once more, with two nodes beside this machine's workers.

Each ``Runtime`` that names no lane has ``lane="ray"`` here, over hosts in this process, and each job waits until the
nodes have joined, so that they have a part in it. Some run always; with ``--full`` all do that are not in the table.
A file's fixtures that every test has are of all tests here.
"""

from __future__ import annotations

import re
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

FOLDER = Path(__file__).parents[1]
JOIN_S = 5.0
"""Seconds that a job waits for nodes; those of a reward that cannot be loaded never join."""
FILES = (
    "test_runtime", "test_worker_faults", "test_malformed_answers", "test_hostile_calls", "test_replacement",
    "test_warden_faults", "test_batch", "test_nested", "test_open_batch",
)  # fmt: skip
"""The files whose tests run with nodes."""
THERE = "it counts what this machine's workers write beside the reward file; on a node that file lies elsewhere"
EXCLUDED = {
    "test_an_ascore_cancelled_before_its_batch_has_begun_makes_no_calls": "it watches how a WorkerPool is told, and "
    "what has not been sent anywhere is dropped before any is",
    "test_the_runtime_survives_the_loss_of_its_warden": "it takes every child of this process for the runtime's own "
    "warden, and the hosts, which are in this process here, have wardens too",
    "test_a_load_during_which_the_pool_stood_still_has_its_time_anew": "it halts every WorkerPool of this process in "
    "the middle of a turn, and the hosts' are among them here",
    "test_what_a_fork_would_share_is_loaded_anew": THERE,
    "test_replacements_draw_the_random_numbers_of_a_fresh_load": THERE,
    "test_a_group_is_scored_once_all_of_it_is_there": "it reads every file of a folder that holds the hosts' cache too",
    "test_a_fault_of_the_pool_ends_every_batch": "it looks at what a WorkerPool listens to; a node has the same pool",
    "test_attempt": "all of the file: it makes no runtime",
    "test_names": "all of the file: its runtimes have lane='inline', and what is missing is told before a lane is used",
    "test_fuzz_workers": "all of the file: it draws calls that harm a WorkerPool, in a process of its own; a node has "
    "the same pool",
    "test_open_files": "all of the file: it limits the descriptors of processes of its own; a node has the same pool",
    "test_leavings": "all of the file: what a call leaves meets the worker of its own pool; a node has the same",
    "test_card": "all of the file: errors of a card have the same reading there, and its other tests need a card",
    "test_many_workers": "all of the file: it counts what a WorkerPool loads and takes; a node has the same pool",
    "test_surroundings": "all of the file: a worker puts back what a call changed, whoever's pool it is of",
    "test_run_code": "all of the file: one of its tests has nodes",
    "test_soak": "all of the file: it counts descriptors, children and memory of this process, in which the hosts are "
    "here",
}
"""Tests that do not hold with nodes, and files of which none is run with them, and why."""
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


def _modules() -> Iterator[Any]:
    """Return the modules of :data:`FILES`, each loaded once more."""
    import importlib.util
    import sys

    for name in FILES:
        spec = importlib.util.spec_from_file_location(f"on_nodes_{name}", FOLDER / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        yield module


def _tests() -> dict[str, Any]:
    """Return the tests and fixtures of the files."""
    found: dict[str, Any] = {}
    for module in _modules():
        for key, value in vars(module).items():
            if key.startswith("test_") and key not in EXCLUDED:
                assert key not in found, f"two files have {key}"
                found[key] = value if key in ALWAYS else pytest.mark.full(value)
            elif type(value).__name__ == "FixtureFunctionDefinition":
                found[key] = value
    return found


def test_a_test_of_the_runtime_runs_with_nodes_or_says_why_not() -> None:
    """The table has every file that is not run, and nothing that is not there."""
    there = {file.stem: file.read_text(encoding="utf-8") for file in FOLDER.glob("test_*.py")}
    assert sorted({*FILES} | {*EXCLUDED} & {*there}) == sorted(there)
    assert not {*FILES} & {*EXCLUDED}
    tests = {name for file in FILES for name in re.findall(r"^(?:async )?def (test_\w+)", there[file], re.MULTILINE)}
    assert {*EXCLUDED} - {*there} <= tests
    assert tests - {*EXCLUDED} == {name for name in globals() if name.startswith("test_")} - {_OWN}


_OWN = test_a_test_of_the_runtime_runs_with_nodes_or_says_why_not.__name__
globals().update(_tests())
