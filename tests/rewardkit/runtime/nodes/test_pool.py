"""The pool over several nodes, on hosts in this process: equal scores, lost and frozen nodes, who takes part."""

from __future__ import annotations

import math
import pickle
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from node_cluster import ThreadCluster, ThreadHost, other_python, other_version
from patience import wait_for
from typer.testing import CliRunner

from rewardkit import (
    Cause,
    ClusterError,
    RewardDefinitionError,
    Rollout,
    Runtime,
    RuntimeClosedError,
    group_reward,
    reward,
)
from rewardkit.cli import doctor
from rewardkit.cli.program import app
from rewardkit.runtime.nodes import members, ray_cluster, recruiting, schedule
from rewardkit.runtime.nodes.host import NodeHost
from rewardkit.runtime.nodes.survey import survey
from sandbox import Level
from sandbox.diagnosis import LevelTrial


@reward
def slow_length(completion: str) -> float:
    time.sleep(0.005)
    return float(len(completion))


@reward(concurrency=4)
def waiting(completion: str) -> float:
    return float(len(completion))


@reward
async def thinking(completion: str) -> float:
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
    """Return rows of which each has another length."""
    return [Rollout(f"p{n // 4}", "x" * n + str(n), {}) for n in range(count)]


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[ThreadCluster]:
    """Two nodes beside this process's own, which a runtime with ``lane="ray"`` finds."""
    made = ThreadCluster("a", "b")
    monkeypatch.setattr(ray_cluster, "connect", lambda address: made)
    yield made
    for host in made.hosts.values():
        host.kill()


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("REWARDKIT_CACHE", str(tmp_path / "cache"))


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


def _are_right(rollouts: list[Rollout], runtime: Runtime) -> bool:
    return [float(len(one.completion)) for one in rollouts] == [
        outcome.score for outcome in runtime.score(rollouts)["slow_length"]
    ]


def test_a_killed_node_costs_no_call(cluster: ThreadCluster, caplog: pytest.LogCaptureFixture) -> None:
    with _joined(Runtime([slow_length], workers=1, lane="ray")) as runtime:
        threading.Timer(0.3, cluster.hosts["a"].kill).start()
        assert _are_right(_rollouts(600), runtime)
        assert wait_for(lambda: ["b"] == runtime.nodes)
    assert "machine-a is lost: the actor died" in caplog.text


def test_a_frozen_node_is_given_up_and_a_late_answer_dropped(
    cluster: ThreadCluster, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule, "GIVE_UP_S", 2.0)
    with _joined(Runtime([slow_length], workers=1, lane="ray")) as runtime:
        cluster.hosts["a"].frozen = True
        assert _are_right(_rollouts(300), runtime)
        wait_for(lambda: ["b"] == runtime.nodes)
    assert "machine-a is lost: it has said nothing for" in caplog.text


def test_without_any_node_scoring_goes_on_here_and_that_is_said_once(
    cluster: ThreadCluster, caplog: pytest.LogCaptureFixture
) -> None:
    with _joined(Runtime([slow_length], workers=1, lane="ray")) as runtime:
        for host in cluster.hosts.values():
            threading.Timer(0.2, host.kill).start()
        assert _are_right(_rollouts(300), runtime)
        assert wait_for(lambda: [] == runtime.nodes)
        assert _are_right(_rollouts(20), runtime)
    assert 1 == caplog.text.count("goes on with this machine's workers alone")


@pytest.mark.full
def test_a_node_that_comes_later_is_used(cluster: ThreadCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recruiting, "LOOK_S", 0.1)
    cluster.names = []
    with Runtime([slow_length], workers=1, lane="ray") as runtime:
        assert _are_right(_rollouts(20), runtime)
        cluster.names = ["late"]
        _joined(runtime, 1)
        assert _are_right(_rollouts(100), runtime)
        assert "take" in cluster.hosts["late"].asked


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("method", "told", "words"),
    [
        ("hello", other_python, "it runs Python 3.1, and the driver"),
        ("hello", lambda facts: facts._replace(rewardkit="0.0.1"), "it has rewardkit 0.0.1, and the driver"),
        ("prepare", lambda ready: ready._replace(level="seccomp-only"), "its jails reach level 'seccomp-only', and"),
        ("prepare", other_version, "reward 'slow_length' has version 000000000000 there"),
    ],
)
def test_a_node_that_could_score_otherwise_is_refused_by_name(
    cluster: ThreadCluster, caplog: pytest.LogCaptureFixture, method: str, told: Any, words: str
) -> None:
    cluster.names = ["odd"]
    cluster.on_host = lambda name, host: host.told.update({method: told})
    with Runtime([slow_length], workers=1, lane="ray") as runtime:
        wait_for(lambda: words in caplog.text)
        assert _are_right(_rollouts(20), runtime)
        assert [] == runtime.nodes
    assert "node machine-odd takes no part in scoring: " in caplog.text


def _all(numbers: bool, *said: Any) -> Any:
    """Return what makes of all answers of a node such with this in them."""
    return lambda answers: [(job, numbers, [(one[0], *said) for one in some]) for job, _, some in answers]


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("method", "told"),
    [
        ("hello", lambda facts: ("machine",)),
        ("prepare", lambda ready: ready._replace(versions=None)),
        ("prepare", lambda ready: ready._replace(workers=0)),
        ("answers", _all(True, 2.0)),
        ("answers", _all(True, math.nan, 0.1)),
        ("answers", _all(False, "odd", 1.0, 0.1, "", "")),
    ],
)
def test_a_node_that_says_what_no_host_says_costs_no_call(
    cluster: ThreadCluster, caplog: pytest.LogCaptureFixture, method: str, told: Any
) -> None:
    """Its answers are used whole or not at all, and its calls go out again."""
    cluster.on_host = lambda name, host: host.told.update({method: told}) if name == "a" else None
    with Runtime([slow_length], workers=1, lane="ray") as runtime:
        runtime.start()
        wait_for(lambda: "b" in runtime.nodes)
        assert _are_right(_rollouts(200), runtime)
        # A node that joined after those calls is asked by the next.
        assert wait_for(
            lambda: _are_right(_rollouts(20), runtime) and "machine-a" in caplog.text and runtime.nodes == ["b"]
        )


@pytest.mark.full
def test_a_full_store_sends_no_call_twice_to_its_end(cluster: ThreadCluster, caplog: pytest.LogCaptureFixture) -> None:
    full = ClusterError("the cluster's object store is full: 1 GB")
    with _joined(Runtime([slow_length], workers=1, lane="ray")) as runtime:
        for host in cluster.hosts.values():
            host.refusals["take"] = full
        assert _are_right(_rollouts(100), runtime)
    assert "the cluster's object store is full: 1 GB" in caplog.text


def test_a_cluster_that_does_not_answer_holds_nothing_up(
    cluster: ThreadCluster, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.fault = ClusterError("no answer")
    with Runtime([slow_length], workers=1, lane="ray") as runtime:
        assert _are_right(_rollouts(20), runtime)
        wait_for(lambda: "does not say which nodes it has" in caplog.text)


@pytest.mark.full
def test_what_waits_stays_here(cluster: ThreadCluster) -> None:
    """A reward with concurrency, or of ``async def``, has a limit that is to hold as a whole."""
    with _joined(Runtime([waiting, slow_length, thinking], workers=1, lane="ray")) as runtime:
        batch = runtime.score(_rollouts(40))
        assert batch.scores["slow_length"] == batch.scores["waiting"] == batch.scores["thinking"]
        assert all([1] == list(host.host._numbers) for host in cluster.hosts.values())


@pytest.mark.parametrize("alone", [waiting, thinking], ids=["concurrency", "async def"])
def test_a_set_of_which_nothing_may_leave_asks_no_node(cluster: ThreadCluster, alone: Any) -> None:
    with Runtime([alone], workers=1, lane="ray") as runtime:
        assert [1.0] == runtime.score([Rollout("p", "x", {})]).totals
    assert {} == cluster.hosts


@pytest.mark.full
def test_leaving_a_stream_early_stops_the_nodes(cluster: ThreadCluster) -> None:
    with _joined(Runtime([slow_length], workers=1, lane="ray")) as runtime:
        for count, _ in enumerate(runtime.stream(_rollouts(2000))):
            if count == 20:
                break
        wait_for(lambda: all("drop" in host.asked for host in cluster.hosts.values()))
        assert _are_right(_rollouts(20), runtime)


def test_closing_ends_a_batch_on_its_way(cluster: ThreadCluster) -> None:
    runtime = _joined(Runtime([slow_length], workers=1, lane="ray"))
    threading.Timer(0.3, runtime.close).start()
    with pytest.raises(RuntimeClosedError):
        runtime.score(_rollouts(5000))
    wait_for(lambda: all(host.dead.is_set() for host in cluster.hosts.values()))


@pytest.mark.full
def test_a_reward_file_travels_with_what_it_imports(cluster: ThreadCluster, tmp_path: Path) -> None:
    """Its folder is not there on another machine: only what travelled is."""
    (tmp_path / "helper_of_nodes.py").write_text("FACTOR = 3.0\n")
    (tmp_path / "far_rewards.py").write_text(
        "import sys, threading, time\n"
        "from rewardkit import reward\n"
        "lock = threading.Lock()\n"
        "@reward\n"
        "def far(completion: str) -> float:\n"
        "    import helper_of_nodes\n"
        "    time.sleep(0.005)\n"
        "    return helper_of_nodes.FACTOR if 'carried' in ' '.join(sys.path) else -helper_of_nodes.FACTOR\n"
    )
    with _joined(Runtime([str(tmp_path / "far_rewards.py")], workers=1, lane="ray")) as runtime:
        scores = {outcome.score for outcome in runtime.score(_rollouts(100))["far"]}
    assert {3.0, -3.0} == scores


def test_a_reward_that_cannot_be_loaded_on_a_node_is_named(
    cluster: ThreadCluster, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    (tmp_path / "needy_rewards.py").write_text(
        "import sys\n"
        "if 'carried' in ' '.join(sys.path):\n"
        "    import package_that_is_not_there\n"
        "from rewardkit import reward\n"
        "@reward\n"
        "def needy(completion: str) -> float:\n"
        "    return 1.0\n"
    )
    with Runtime([str(tmp_path / "needy_rewards.py")], workers=1, lane="ray") as runtime:
        wait_for(lambda: 2 == caplog.text.count("takes no part in scoring"))
        assert [1.0] == [outcome.score for outcome in runtime.score([Rollout("p", "x", {})])["needy"]]
    assert (
        "'needy' cannot be loaded in a worker: ModuleNotFoundError: No module named 'package_that_is_not_there'; "
        "install it on every node, or name it among the configuration's packages\n"
    ) in caplog.text


def test_a_call_that_loses_its_node_again_and_again_is_lost_to_infrastructure(
    cluster: ThreadCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nodes die of what they are sent, and come back at once."""
    monkeypatch.setattr(recruiting, "LOOK_S", 0.05)
    monkeypatch.setattr(members, "REST_S", 0.0)

    def dies(host: ThreadHost) -> None:
        host.told["take"] = lambda taken: host.kill()

    with _joined(Runtime([slow_length], workers=1, lane="ray", max_infrastructure_rate=1.0)) as runtime:
        cluster.on_host = lambda name, host: dies(host)
        for host in cluster.hosts.values():
            dies(host)
        rollouts = _rollouts(500)
        outcomes = runtime.score(rollouts)["slow_length"]
    lost = [outcome for outcome in outcomes if outcome.cause is Cause.INFRASTRUCTURE]
    assert all("was lost: the actor died, as were 2 nodes before with this call" in str(one.error) for one in lost)
    assert {True} == {
        outcome.score == len(one.completion)
        for one, outcome in zip(rollouts, outcomes, strict=True)
        if outcome.cause is None
    }
    assert len(rollouts) == len(outcomes)


def test_a_runtime_on_nodes_pickles_as_its_settings(cluster: ThreadCluster) -> None:
    with Runtime([slow_length], workers=1, lane="ray", ray_address="auto") as runtime:
        copy = pickle.loads(pickle.dumps(runtime))
    with copy:
        assert _are_right(_rollouts(5), copy)
        assert ("ray", "auto") == (copy._options["lane"], copy._options["ray_address"])


def test_doctor_tells_of_every_node(cluster: ThreadCluster) -> None:
    """One that answers, one of another Python, one that cannot be reached."""
    cluster.names = ["a", "b", "c"]

    def odd(name: str, host: ThreadHost) -> None:
        if name == "b":
            host.told["hello"] = other_python
            host.host.trials = list  # type: ignore[method-assign]  # in one process only one can try levels at a time
        if name == "c":
            host.refusals["hello"] = ClusterError("no route")

    cluster.on_host = odd
    found = {report.node: report for report in survey(cluster)}
    assert found["machine-a"].why_not is None
    assert {"strict", "standard", "seccomp-only"} == {level for level, _, _ in found["machine-a"].levels}
    assert "it runs Python 3.1" in str(found["machine-b"].why_not)
    assert "no route" == found["machine-c"].why_not
    assert all(host.dead.is_set() for host in cluster.hosts.values())


@pytest.mark.parametrize(
    ("reached", "code", "words"),
    [
        (("strict", "standard"), 0, "can be run here and on every node"),
        (("seccomp-only",), 1, "is not reached here and"),
    ],
    ids=["isolates", "does not"],
)
def test_the_command_says_whether_every_node_isolates(
    monkeypatch: pytest.MonkeyPatch, reached: tuple[str, ...], code: int, words: str
) -> None:
    """``doctor --ray`` ends with 1 where this machine would do and a node would not."""
    asked: list[Any] = []

    def connect(address: str, *, with_own: bool) -> ThreadCluster:
        asked.append((address, with_own))
        return ThreadCluster("a")

    here = [LevelTrial(level, True, "", {}) for level in (Level.STRICT, Level.STANDARD)]
    monkeypatch.setattr(doctor, "trials", lambda: here)
    monkeypatch.setattr(ray_cluster, "connect", connect)
    monkeypatch.setattr(NodeHost, "trials", lambda self: [(level, True, "") for level in reached])
    done = CliRunner().invoke(app, ["doctor", "--ray", "--ray-address", "head:6379"], env={"COLUMNS": "120"})
    assert (code, [("head:6379", True)]) == (done.exit_code, asked)
    assert "machine-a" in done.stdout
    assert words in done.stdout


def test_ray_is_never_started_silently() -> None:
    with pytest.raises(ClusterError, match=r"Ray is never started silently|pip install 'ray"):
        Runtime([slow_length], lane="ray")


def test_an_address_without_the_lane_is_refused() -> None:
    with pytest.raises(RewardDefinitionError, match="only lane='ray' has a cluster"):
        Runtime([slow_length], ray_address="auto")
