"""Where rewards cannot run, or run with less around them, one line says so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rewardkit.cli.doctor import advice
from sandbox import machine

NO_JAIL = str(Path(__file__).parents[2] / "helpers" / "no_jail")


def _ran(code: str, folder: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **env}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, cwd=folder)


@pytest.mark.parametrize("package", ["sandbox", "rewardkit", "builtin_rewards", "trainer_adapter"])
def test_windows_is_told_at_the_first_import(package: str) -> None:
    """Before a module that only POSIX has is missed."""
    lacking = "sys.modules['fcntl'] = sys.modules['resource'] = None"
    done = _ran(f"import sys; sys.platform = 'win32'; {lacking}; import {package}")
    said = done.stderr.strip().splitlines()[-1]
    assert said.startswith("ImportError: rewardkit runs rewards in forked processes, which Windows does not have")
    assert "wsl --install" in said


@pytest.mark.parametrize(
    ("prepared", "env", "words"),
    [
        ("", {"COLAB_RELEASE_TAG": "release-1"}, "Google Colab: "),
        ("sys.platform = 'darwin'", {}, "macOS: rewards run in workers, without the memory limit"),
    ],
)
def test_doctor_says_what_is_otherwise_there(prepared: str, env: dict[str, str], words: str) -> None:
    """A line each, none on a plain Linux."""
    code = (
        "import sys, json; from sandbox import machine; from rewardkit.cli.doctor import advice; facts = machine(); "
        f"{prepared}\nprint(json.dumps(advice(facts)))"
    )
    (line,) = json.loads(_ran(code, **env).stdout)
    assert line.startswith(words)


WITHOUT_A_JAIL = """
from rewardkit import InfrastructureError, Rollout, Runtime, reward_from_source
from builtin_rewards.code import code_tests
from builtin_rewards.math import math_answer

if __name__ == "__main__":
    with Runtime([math_answer], workers=1) as runtime:
        print(runtime.score([Rollout("1+1", "2", {"answer": "2"})]).totals)
    given_as_text = reward_from_source("def long(completion: str) -> float:\\n    return 1.0\\n")
    for needs_a_jail in (code_tests, given_as_text):
        try:
            with Runtime([needs_a_jail], workers=1) as runtime:
                runtime.score([Rollout("p", "```python\\nx = 1\\n```", {"tests": "assert x == 1"})])
        except InfrastructureError as error:
            print(error)
"""


def test_without_a_jail_rewards_score_and_code_is_refused_with_the_way_out(tmp_path: Path) -> None:
    """In workers, as on macOS; no completion's code runs, and none gets a score for it."""
    (tmp_path / "without.py").write_text(WITHOUT_A_JAIL)
    done = _ran("import runpy; runpy.run_path('without.py', run_name='__main__')", tmp_path, PYTHONPATH=NO_JAIL)
    assert "" == done.stderr
    score, *refusals = done.stdout.splitlines()
    assert "[1.0]" == score
    assert 2 == len(refusals)
    for line in refusals:
        assert "no jail for rewards: untrusted code can be run on Linux on x86_64 and aarch64 only" in line
        assert "use a container or a virtual machine with Linux" in line
        assert "`rewardkit serve`" in line


def test_doctor_without_a_jail_names_no_language_that_would_run() -> None:
    """Each is missing for the same reason, and the exit code says that no level is reached."""
    done = _ran("from builtin_rewards.command import main; import sys; sys.argv[1:] = ['doctor', '--json']; main()",
                PYTHONPATH=NO_JAIL)  # fmt: skip
    report = json.loads(done.stdout)
    assert (1, None, {"no jail here"}) == (
        done.returncode,
        report["level"],
        {row["why_not"] for row in report["languages"]},
    )
    assert all("a virtual machine with Linux" in row["why_not"] for row in report["levels"])


def test_a_plain_linux_needs_no_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has none of the differences."""
    monkeypatch.delenv("COLAB_RELEASE_TAG", raising=False)
    assert [] == advice(machine())
