"""What a cluster of three nodes on this machine costs and gains: ``python tests/benchmarks/bench_ray.py``.

Needs the extra ``ray``. The nodes share this machine's cores, so rewards that compute gain nothing here; those that
wait 10 ms stand for programs that run elsewhere. Figures of batches in which no node is lost are the median of three.
A score that is lost or another row's ends it with an error. That a killed driver leaves no process is for a test to
show, in ``tests/rewardkit/runtime/nodes/test_ray_cluster.py``.
"""

from __future__ import annotations

import contextlib
import logging
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil

from rewardkit import Rollout, Runtime

REWARDS = """
import time
from rewardkit import group_reward, reward

@reward
def correct(completion: str, answer: str) -> float:
    return float(completion.strip() == answer)

@reward
def words(completion: str) -> float:
    return float(len(completion.split()))

@group_reward
def shortest(completions: list[str]) -> list[float]:
    least = min(map(len, completions))
    return [float(len(one) == least) for one in completions]

@reward
def slow(completion: str) -> float:
    time.sleep(0.01)
    return float(completion.split(maxsplit=1)[0].removeprefix("word"))
"""
FIGURES: list[str] = []
"""What was found, printed at the end: Ray writes pages when a node is lost."""
TRIVIAL = ("correct", "words", "shortest")


@contextlib.contextmanager
def cluster(nodes: int) -> Iterator[Any]:
    """A head, on which this process is, and further nodes; all of it ends with the block."""
    import ray
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        for _ in range(nodes):
            made.add_node(num_cpus=1)
        ray.init(address=made.address, log_to_driver=False, logging_level="ERROR")
        yield made
    finally:
        ray.shutdown()
        made.shutdown()


def joined(runtime: Runtime, nodes: int) -> Runtime:
    """Return a runtime once so many nodes take calls."""
    runtime.start()
    end = time.monotonic() + 120
    while len(runtime.nodes) < nodes and time.monotonic() < end:
        time.sleep(0.02)
    assert nodes == len(runtime.nodes)
    return runtime


def seconds(work: Callable[[], object], times: int = 3) -> float:
    """Return the median time of some work."""
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def rollouts(count: int) -> list[Rollout]:
    """Return rollouts of some 2 kB in groups of eight, each with its number in it."""
    return [Rollout(f"prompt {n // 8}", f"word{n} " * (500 // (1 + n % 3)), {"answer": "4"}) for n in range(count)]


def measure(file: str, made: Any) -> None:
    """Take all figures."""
    rows = rollouts(10_000)
    names = [f"{file}:{name}" for name in TRIVIAL]
    with Runtime(names, workers=1) as runtime:
        expected = runtime.score(rows)
        here_s = seconds(lambda: runtime.score(rows))
    began = time.perf_counter()
    with joined(Runtime(names, workers=1, lane="ray"), 2) as runtime:
        FIGURES.append(f"nodes joined after {time.perf_counter() - began:.1f} s")
        equal = runtime.score(rows).scores == expected.scores
        there_s = seconds(lambda: runtime.score(rows))
    FIGURES.append(
        f"10,000 rows, three trivial rewards: {here_s:.2f} s here, {there_s:.2f} s with nodes "
        f"({there_s / here_s:.2f} times; aim: 2.2 or less), scores {'equal' if equal else 'DIFFER'}"
    )
    assert equal

    rows = rows[:1000]
    with Runtime([f"{file}:slow"], workers=1) as runtime:
        runtime.score(rows[:8])
        here_s = seconds(lambda: runtime.score(rows), 1)
    with joined(Runtime([f"{file}:slow"], workers=1, lane="ray"), 2) as runtime:
        runtime.score(rows[:100])
        there_s = seconds(lambda: runtime.score(rows))
        FIGURES.append(
            f"1,000 calls of 10 ms: {here_s:.2f} s here, {there_s:.2f} s with three nodes "
            f"({here_s / 3 / there_s:.2f} of the ideal speed-up; aim: 0.85 or more)"
        )
        lost(runtime, rows, here_s, made)


def lost(runtime: Runtime, rows: list[Rollout], here_s: float, made: Any) -> None:
    """Kill a node, then freeze the other one, then go on without any."""
    first, second = made.list_all_nodes()[1:3]
    threading.Timer(1.5, lambda: made.remove_node(first, allow_graceful=False)).start()
    ideal_s = 1.5 + (here_s - 4.5) / 2
    told(
        "one of three nodes killed at 1.5 s", runtime, rows, f"ideal {ideal_s:.2f} s; aim: {1.4 * ideal_s:.2f} or less"
    )
    raylet = psutil.Process(second.all_processes["raylet"][0].process.pid)
    frozen = [raylet, *raylet.children(recursive=True)]
    for process in frozen:
        process.suspend()
    try:
        told("the other one frozen", runtime, rows, "aim: 15 or less")
    finally:
        for process in frozen:
            process.resume()
    told("no node left", runtime, rows, f"this machine alone: {here_s:.2f} s")


def told(what: str, runtime: Runtime, rows: list[Rollout], beside: str) -> None:
    """Note how long a batch took, and whether every score is right."""
    began = time.perf_counter()
    batch = runtime.score(rows)
    taken_s = time.perf_counter() - began
    missing = sum(outcome.score is None for outcome in batch["slow"])
    wrong = sum(outcome.score != number for number, outcome in enumerate(batch["slow"])) - missing
    FIGURES.append(
        f"{what}: {taken_s:.2f} s ({beside}); of {len(rows):,} scores {missing} lost, {wrong} of another row"
    )
    assert not missing + wrong


def main() -> None:
    """Measure."""
    logging.getLogger("rewardkit").setLevel(logging.ERROR)  # what is lost here is lost on purpose
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "bench_rewards.py"
        file.write_text(REWARDS)
        try:
            with cluster(2) as made:
                measure(str(file), made)
        finally:
            print("", *FIGURES, sep="\n")


if __name__ == "__main__":
    main()
