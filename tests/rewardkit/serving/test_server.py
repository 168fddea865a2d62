"""The command: what it prints, checks and refuses, and that it ends with all its processes."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from served import free_port
from typer.testing import CliRunner

from rewardkit.cli.program import app

WAIT_S = 60
REWARDS = """
from rewardkit import group_reward, reward

@reward
def right(completion: str, answer: str) -> float:
    return float(completion == answer)
"""
GROUPS = """
@group_reward
def shortest(completions: list[str]) -> list[float]:
    return [1.0] * len(completions)
"""


@pytest.fixture
def rewards(tmp_path: Path) -> Path:
    path = tmp_path / "rewards_of_a_server.py"
    path.write_text(REWARDS)
    return path


@contextlib.contextmanager
def _started(*arguments: str | Path) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """Start the command, and give it with what it printed as JSON."""
    command = [sys.executable, "-m", "rewardkit", "serve", *map(str, arguments), "--workers", "1", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            lines: list[str] = []
            while not lines or lines[-1].rstrip() != "}":
                lines.append(process.stdout.readline())
                assert lines[-1], process.stderr and process.stderr.read()
            yield process, json.loads("".join(lines))
        finally:
            process.kill()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130), (signal.SIGHUP, 0)])
def test_it_serves_and_leaves_no_process(rewards: Path, number: signal.Signals, code: int) -> None:
    """It answers at the address that it printed, and a signal ends it with its workers."""
    port = free_port()
    with _started(rewards, "--port", str(port)) as (process, told):
        assert (f"http://127.0.0.1:{port}", ["right"]) == (told["url"], list(told["rewards"]))
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_S)) as connection:
            body = json.dumps({"query": ["p4"], "prompts": ["p"], "labels": ["4"]})
            connection.request("POST", "/get_reward", body)
            assert [1.0] == json.loads(connection.getresponse().read())["rewards"]
        children = psutil.Process(process.pid).children(recursive=True)
        assert children
        process.send_signal(number)
        assert code == process.wait(WAIT_S)
        _, alive = psutil.wait_procs(children, WAIT_S)
        assert [] == alive


def test_it_checks_and_stops(rewards: Path) -> None:
    """With --check the rewards are loaded and told, with what is better known before a trainer asks."""
    rewards.write_text(REWARDS + GROUPS)
    done = CliRunner().invoke(
        app, ["serve", str(rewards), "--check", "--json", "--workers", "1", "--port", str(free_port())]
    )
    told = json.loads(done.stdout)
    assert (0, ["right", "shortest"]) == (done.exit_code, list(told["rewards"]))
    assert "--group-size N answers all" in told["warnings"][0]
    done = CliRunner().invoke(
        app, ["serve", f"{rewards}:right", "--group-size", "4", "--check", "--workers", "1", "--port", str(free_port())]
    )
    assert (0, "loaded right\n") == (done.exit_code, done.stdout)
    assert "no reward scores groups" in done.stderr


def test_a_file_that_does_not_import_is_said_at_once(rewards: Path) -> None:
    """The command ends with the mistake, and listens nowhere."""
    rewards.write_text("import no_such_module_anywhere\n")
    done = CliRunner().invoke(app, ["serve", str(rewards), "--check", "--json"])
    assert 2 == done.exit_code or done.exception is not None
    assert "no_such_module_anywhere" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--host", "0.0.0.0"], "others can reach this address; give a --token"),
        (["--token", "with space"], "--token: expected at most 200"),
        (["--host", "0.0.0.0", "--token", "short"], "give a --token of 8 characters or more"),
        (["--group-size", "8", "--max-rows", "4", "--check"], "--group-size 8: no group would ever be whole"),
        (["--host", "0.0.0.0", "--check"], "others can reach this address; give a --token"),
        (
            ["--host", "203.0.113.7", "--token", "long-enough", "--check"],
            "--host 203.0.113.7: no address of this machine",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused(rewards: Path, arguments: list[str], said: str) -> None:
    """An address that others reach needs a token that fits into an address; a group must have room."""
    done = CliRunner().invoke(app, ["serve", str(rewards), "--json", "--workers", "1", *arguments])
    assert said in json.loads(done.stdout)["error"]["message"]


def test_a_port_that_is_taken_is_an_error(rewards: Path) -> None:
    """A trainer is told one port, so that no other is tried."""
    port = free_port()
    with _started(rewards, "--port", str(port)):
        for more in ([], ["--check"]):
            asked = ["serve", str(rewards), "--port", str(port), "--json", "--workers", "1", *more]
            message = json.loads(CliRunner().invoke(app, asked).stdout)["error"]["message"]
            assert f"--port {port}: is not free" in message
            assert message.endswith("end what listens there, or give another --port")


def test_no_web_framework_is_loaded_without_a_server() -> None:
    """Joined calls and the client need none of what the extra installs."""
    probe = "import sys, rewardkit.serving; print([m for m in ('starlette', 'uvicorn', 'orjson') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, env=dict(os.environ))
    assert ("[]\n", "") == (done.stdout, done.stderr)
