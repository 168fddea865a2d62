"""The how-to as a stranger follows it: each line of curl, and what keeps the server running."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from serve_processes import WAIT_S, Serving, serving

from rewardkit.serving.app import ADDRESSES, OPEN
from rewardkit.serving.server import DRAIN_S, END_S, LINGER_S

REWARDS = """
from rewardkit import reward

@reward
def correct(completion: str, answer: str = "4") -> float:
    return float(completion.endswith(answer))
"""


@pytest.fixture(scope="module")
def page() -> str:
    return (Path(__file__).parents[3] / "docs" / "how-to" / "serve-rewards.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    path = tmp_path_factory.mktemp("how_to") / "my_rewards.py"
    path.write_text(REWARDS)
    with serving(path) as made:
        yield made


def _block(page: str, kind: str) -> str:
    found = re.search(rf"^```{kind}\n(.*?)^```", page, re.M | re.S)
    assert found is not None
    return found[1]


def test_each_line_of_curl_is_answered(page: str, served: Serving) -> None:
    """As it stands on the page, each address once, and every reward of the right completion is 1.0."""
    if shutil.which("curl") is None:
        pytest.skip("no curl on this machine")
    lines = re.findall(r"^\$ (curl \$url(\S+).*)$", page, re.M)
    assert set(ADDRESSES) == {path for _, path in lines}
    rewards = {
        "/v1/score": "totals",
        "/get_reward": "rewards",
        "/verify": "reward",
        "/evaluate": "score",
        "/score": "scores",
    }
    for line, path in lines:
        shell = ["bash", "-c", f"url={served.url}; {line} --silent --show-error --fail"]
        done = subprocess.run(shell, capture_output=True, text=True, timeout=WAIT_S)
        assert (0, "") == (done.returncode, done.stderr), line
        if path == "/slime":
            assert "1.0" == done.stdout
        elif path in rewards:
            assert json.loads(done.stdout)[rewards[path]] in (1.0, [1.0])


def test_systemd_waits_until_the_server_has_drained(page: str) -> None:
    """The unit's time to stop is longer than the server takes at most."""
    found = re.search(r"^TimeoutStopSec=(\d+)$", _block(page, "ini"), re.M)
    assert found is not None
    assert int(found[1]) > DRAIN_S + LINGER_S + END_S


def test_kubernetes_asks_and_waits_as_the_server_answers(page: str) -> None:
    """Probes ask addresses without a token, at the server's port, and the pod's end is later than the server's."""
    pod = yaml.safe_load(_block(page, "yaml"))["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        asked = container[probe]["httpGet"]
        assert asked["path"] in OPEN
        assert container["ports"][0]["containerPort"] == asked["port"] == 8000
    sleep_s = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    assert pod["terminationGracePeriodSeconds"] > sleep_s + DRAIN_S + LINGER_S + END_S
    assert ["REWARDKIT_SERVE_TOKEN"] == [one["name"] for one in container["env"]]
