"""The same on Ray: a head and two nodes on this machine, of which one is frozen, one killed and one comes later.

The nodes have a folder of their own for what they keep, as other machines do.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import textwrap
import threading
import time
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from patience import alive, wait_for

from rewardkit import RewardFunctionsConfig, RewardFunctionsRuntimeConfig, Rollout, Runtime
from rewardkit.runtime.nodes import members, recruiting, schedule
from rewardkit.runtime.nodes.pool import NodePool

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

OWN = 1.0

@reward(default=None, retries=0)
def mortal(completion: str) -> float:
    import os
    import helper_of_ray
    time.sleep(0.005)
    if completion == "end":
        os._exit(1)
    return helper_of_ray.FACTOR + OWN

@reward
def slow(completion: str) -> float:
    time.sleep(0.01)
    return float(completion.split()[0].removeprefix("word"))
"""


@pytest.fixture(scope="module")
def cache_of_nodes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cache folder of the nodes."""
    return tmp_path_factory.mktemp("nodes")


@pytest.fixture(scope="module")
def cluster(cache_of_nodes: Path) -> Iterator[Any]:
    """A head, on which this process is, and two nodes."""
    if "REWARDKIT_REQUIRE_REAL" not in os.environ:
        pytest.importorskip("ray", reason="the extra ray is not installed")
    import ray

    before = set(psutil.Process().children(recursive=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REWARDKIT_CACHE", str(cache_of_nodes))
        try:
            made = _three_nodes(before)
            ray.init(address=made.address, log_to_driver=False, logging_level="ERROR")
            yield made
            ray.shutdown()
            made.shutdown()
        finally:
            ray.shutdown()
            _end_all_but(before)


def _three_nodes(before: set[psutil.Process]) -> Any:
    """Return a head and two nodes; Ray gives each 30 seconds to start, which a busy machine may not have at once."""
    from ray.cluster_utils import Cluster

    for tries_left in (3, 2, 1, 0):
        try:
            made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
            made.add_node(num_cpus=1)
            made.add_node(num_cpus=1)
            break
        except Exception as error:
            _end_all_but(before)
            if not tries_left or "timed out during startup" not in str(error):
                raise
    return made


def _end_all_but(before: set[psutil.Process]) -> None:
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
    assert wait_for(lambda: len(runtime.nodes) == count)
    return runtime


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many calls each node has answered so far."""
    counts: Counter[str] = Counter()
    real = NodePool.on_answers

    def on_answers(pool: NodePool, node: str, answers: Any) -> None:
        counts[node] += sum(len(some) for _, _, some in answers)
        real(pool, node, answers)

    monkeypatch.setattr(NodePool, "on_answers", on_answers)
    return counts


def _is_right(rollouts: list[Rollout], runtime: Runtime) -> bool:
    """Whether each row has its own number as its score."""
    expected = [float(number) for number in range(len(rollouts))]
    return expected == [outcome.score for outcome in runtime.score(rollouts)["slow"]]


def test_scores_on_three_nodes_are_those_of_one(cluster: Any, rewards: str, told: Counter[str], full: bool) -> None:
    """Of 2 kB each, with a group reward among them; in full as many as a large step has."""
    names = [f"{rewards}:{name}" for name in ("correct", "words", "shortest", *(() if full else ("slow",)))]
    rollouts = _rollouts(10_000 if full else 400)
    with Runtime(names, workers=1) as runtime:
        expected = runtime.score(rollouts)
    with _joined(Runtime(names, workers=1, lane="ray"), 2) as runtime:
        nodes = runtime.nodes
        batch = runtime.score(rollouts)
    assert expected.scores == batch.scores
    assert {"scored"} == {str(one.status) for outcomes in batch.outcomes.values() for one in outcomes}
    assert full or all(told[node] > 20 for node in nodes)  # what is trivial stays here, the driver's node


@pytest.mark.parametrize("edited", ["rewards_of_ray.py", "helper_of_ray.py"])
def test_workers_that_start_later_on_nodes_run_what_the_run_began_with(
    cluster: Any, rewards: str, told: Counter[str], edited: str
) -> None:
    """Neither the reward's file nor a module that it imports late changes a run by an edit."""
    file = Path(rewards).with_name(edited)
    with _joined(Runtime([f"{rewards}:mortal"], workers=1, lane="ray"), 2) as runtime:
        nodes = runtime.nodes
        file.write_text(file.read_text().replace("= 2.0", "= -2.0").replace("OWN = 1.0", "OWN = -1.0"))
        rollouts = [Rollout("p", "end" if number % 40 == 7 else "word") for number in range(400)]
        outcomes = runtime.score(rollouts)["mortal"]
    assert {("end", "crashed", None), ("word", None, 3.0)} == {
        (rollout.completion, outcome.cause and str(outcome.cause), outcome.score)
        for rollout, outcome in zip(rollouts, outcomes, strict=True)
    }
    assert all(told[node] > 20 for node in nodes)


@pytest.mark.full
def test_packages_are_installed_on_the_nodes(
    cluster: Any, tmp_path: Path, cache_of_nodes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each machine makes the overlay for itself; what is in it is imported there."""
    monkeypatch.setenv("REWARDKIT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "needy.py").write_text(f"NODES = {str(cache_of_nodes)!r}\n{NEEDY}")
    settings = RewardFunctionsRuntimeConfig(packages=[str(_wheel(tmp_path))])
    config = RewardFunctionsConfig(functions={"needy": f"{tmp_path / 'needy.py'}:needy"}, runtime=settings)
    with _joined(Runtime(config, workers=1, lane="ray"), 2) as runtime:
        assert {0.0, 1.0} == {outcome.score for outcome in runtime.score(_rollouts(60))["needy"]}


NEEDY = """
import time
from rewardkit import reward

@reward
def needy(completion: str) -> float:
    import package_of_nodes
    time.sleep(0.02)
    return float(package_of_nodes.__file__.startswith(NODES))
"""


def _wheel(folder: Path) -> Path:
    """Return a wheel with one module, as a registry would give it."""
    path, info = folder / "package_of_nodes-1.0-py3-none-any.whl", "package_of_nodes-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("package_of_nodes.py", "")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: package-of-nodes\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return path


def test_doctor_shows_what_each_node_gives(cluster: Any) -> None:
    from rewardkit.runtime.nodes.ray_cluster import connect
    from rewardkit.runtime.nodes.survey import survey

    reports = survey(connect(None, with_own=True))
    assert 3 == len(reports)
    assert {None} == {report.why_not for report in reports}
    assert {("strict", "standard", "seccomp-only")} == {tuple(level for level, _, _ in one.levels) for one in reports}


def test_a_driver_that_is_killed_leaves_no_process(cluster: Any, rewards: str, tmp_path: Path) -> None:
    """Neither an actor nor a worker on any node, in the middle of a batch; another driver goes on beside it."""
    script = tmp_path / "driver.py"
    script.write_text(
        textwrap.dedent(f"""
        import time
        from rewardkit import Rollout, Runtime
        runtime = Runtime(["{rewards}:slow"], workers=1, lane="ray", ray_address="{cluster.address}").start()
        while len(runtime.nodes) < 2:
            time.sleep(0.05)
        for count, _ in enumerate(runtime.stream([Rollout("p", "word1", {{}})] * 100_000)):
            if count == 50:
                print("scores", flush=True)
        """)
    )
    with _joined(Runtime([f"{rewards}:slow"], workers=1, lane="ray"), 2) as runtime:
        ours = _hosts(cluster)
        assert len(ours) == 2
        with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as driver:
            assert driver.stdout is not None
            assert "scores\n" in iter(driver.stdout.readline, "")
            theirs = [one for one in _hosts(cluster) if one not in ours]
            assert len(theirs) == 2
            families = [one.children(recursive=True) for one in (psutil.Process(driver.pid), *theirs)]
            assert all(len(one) >= 2 for one in families)  # a warden and a worker, here and on each node
            assert _is_right(_rollouts(60), runtime)
            driver.kill()
        assert [] == alive([*theirs, *(one for family in families for one in family)])
        assert _is_right(_rollouts(60), runtime)
        assert ours == _hosts(cluster)
    assert [] == alive(ours)


def _hosts(cluster: Any) -> list[psutil.Process]:
    """Return the actors on the nodes."""
    raylets = [psutil.Process(node.all_processes["raylet"][0].process.pid) for node in cluster.list_all_nodes()[1:]]
    found = []
    for one in (child for raylet in raylets for child in raylet.children()):
        with contextlib.suppress(psutil.NoSuchProcess):
            if "NodeHost" in " ".join(one.cmdline()):
                found.append(one)
    return found


@pytest.mark.full
def test_an_actor_that_is_killed_costs_no_call_and_comes_back(
    cluster: Any, rewards: str, told: Counter[str], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the kernel kills one for memory: its workers end with it, and another one is made."""
    monkeypatch.setattr(recruiting, "LOOK_S", 0.2)
    monkeypatch.setattr(members, "REST_S", 0.2)
    with _joined(Runtime([f"{rewards}:slow"], workers=1, lane="ray"), 2) as runtime:
        victim = _hosts(cluster)[0]
        workers = victim.children(recursive=True)
        threading.Timer(0.3, victim.kill).start()
        assert _is_right(_rollouts(300), runtime)
        assert "is lost" in caplog.text
        assert [] == alive([victim, *workers])
        assert wait_for(lambda: len(runtime.nodes) == 2)
        told.clear()
        assert _is_right(_rollouts(300), runtime)
        assert all(told[node] for node in runtime.nodes)


def test_a_frozen_node_and_then_a_killed_one_cost_no_call(
    cluster: Any,
    rewards: str,
    told: Counter[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    full: bool,
) -> None:
    """The frozen one is given up; with the other killed, scoring goes on here alone, and one that comes is used."""
    monkeypatch.setattr(schedule, "GIVE_UP_S", 10.0 if full else 3.0)
    frozen, killed = cluster.list_all_nodes()[1:3]
    with _joined(Runtime([f"{rewards}:slow"], workers=1, lane="ray"), 2) as runtime:
        stopped = _with_children(frozen)
        try:
            for one in stopped:
                one.suspend()
            began = time.monotonic()
            assert _is_right(_rollouts(300), runtime)
            assert time.monotonic() - began < (15 if full else 60)
            assert 1 == len(runtime.nodes)
        finally:
            for one in stopped:
                one.resume()
        assert "is lost: it has said nothing for" in caplog.text
        cluster.remove_node(killed, allow_graceful=False)
        assert _is_right(_rollouts(100), runtime)
        assert wait_for(lambda: [] == runtime.nodes)  # its actor lives on for moments
        assert _is_right(_rollouts(20), runtime)
        assert "goes on with this machine's workers alone" in caplog.text
        monkeypatch.setattr(recruiting, "LOOK_S", 0.2)
        cluster.add_node(num_cpus=1)
        rollouts = _rollouts(300)
        while not sum(told[node] for node in runtime.nodes):  # it joins in the middle of a batch
            assert _is_right(rollouts, runtime)


def _with_children(node: Any) -> list[psutil.Process]:
    raylet = psutil.Process(node.all_processes["raylet"][0].process.pid)
    return [raylet, *raylet.children(recursive=True)]
