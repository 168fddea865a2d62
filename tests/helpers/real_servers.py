"""Servers that others wrote, for tests: LiteLLM's proxy and llmock, installed once into an environment of their own."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rewardkit.loading.packages import cache_folder

_PACKAGES = ("litellm[proxy]==1.106.2", "llmock==0.2.2")
_INSTALL_S, _START_S = 900.0, 600.0
_LISTENING = re.compile(r"running on (http://127\.0\.0\.1:\d+)")


def _programs() -> Path:
    """Return the folder of the servers' programs.

    Raises:
        RuntimeError: They cannot be fetched; the message ends with what the package manager said at last.
    """
    words = "-".join(re.sub(r"\W+", "-", package) for package in _PACKAGES)
    folder = cache_folder() / "test-servers" / f"{words}-python{sys.version_info[0]}.{sys.version_info[1]}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "ready").exists():
            shutil.rmtree(folder, ignore_errors=True)
            _run([sys.executable, "-m", "venv", str(folder)])
            python, uv = str(folder / "bin" / "python"), shutil.which("uv")
            pip = [python, "-m", "pip", "install", "--no-compile", "--disable-pip-version-check"]
            _run([*([uv, "pip", "install", "--python", python] if uv else pip), "--quiet", *_PACKAGES])
            (folder / "ready").touch()
    return folder / "bin"


def _run(command: Sequence[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_INSTALL_S, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"{command[-1]}: not installed within {_INSTALL_S:g} s") from None
    if done.returncode != 0:
        raise RuntimeError(f"{command[-1]} cannot be installed: {done.stderr.strip()[-500:]}")


class RealServer:
    """A server for a ``with`` block, on a free port of loopback.

    Attributes:
        base_url: Where it listens, as judges take it.

    Raises:
        RuntimeError: It cannot be fetched, or does not start; the message ends with its log.
    """

    base_url: str

    def __init__(self, folder: Path, program: str, *options: str) -> None:
        self._log, self._command = folder / f"{program}.log", [program, *options, "--host", "127.0.0.1", "--port", "0"]

    def __enter__(self) -> RealServer:
        programs = _programs()
        plain = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                [str(programs / self._command[0]), *self._command[1:]],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**plain, "PYTHONUNBUFFERED": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
            )
        end = time.monotonic() + _START_S
        while (found := _LISTENING.search(self.log)) is None:
            if self._process.poll() is not None or time.monotonic() > end:
                self.__exit__()
                raise RuntimeError(f"{self._command[0]} did not start: {self.log[-500:]}")
            time.sleep(0.1)
        self.base_url = f"{found[1]}/v1"
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    @property
    def log(self) -> str:
        """What it has written so far."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    @property
    def asked(self) -> int:
        """How many completions it has been asked for, by its own log."""
        return self.log.count('"POST /v1/chat/completions')

    def call(self, path: str, body: Any = None) -> Any:
        """Return what it answers at a path beside ``/v1``, as JSON."""
        sent = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(self.base_url.removesuffix("/v1") + path, sent, timeout=60) as reply:
            return json.load(reply)
