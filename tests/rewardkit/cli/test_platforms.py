"""Where rewards cannot run, or run with less around them, one line says so."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from rewardkit.cli.doctor import advice
from sandbox import machine


def _ran(code: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env={**os.environ, **env}
    )


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


def test_a_plain_linux_needs_no_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has none of the differences."""
    monkeypatch.delenv("COLAB_RELEASE_TAG", raising=False)
    assert [] == advice(machine())
