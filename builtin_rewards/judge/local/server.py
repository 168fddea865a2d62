"""The local judge server as a child process: started, waited for until it answers, and ended.

Covered: it listens on loopback unless told otherwise; it gets none of this process's environment but what a program
needs to run, so no key; it ends with the ``with`` block, and by itself when this process dies, by SIGKILL too.

Not covered: it asks nobody for a key, so with another ``host`` whoever reaches the port may use it.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import IO, Any

from builtin_rewards.judge.errors import JudgeSetupError, JudgeUnavailableError
from builtin_rewards.judge.local.setup import Installation, Tell, prepare

LOOPBACK = ("127.0.0.1", "::1", "localhost")
"""Hosts that only this machine reaches."""

_SCRIPT = Path(__file__).with_name("server.mjs")
_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH")
_STOP_S = 5.0
_SHOWN_LINES = 12


class LocalJudgeServer:
    """A small model behind an OpenAI-compatible server on this machine, for a ``with`` block.

    It answers ``POST /v1/chat/completions``, ``GET /v1/models`` and ``GET /health``. A reply can be held to a JSON
    schema, and log-probabilities are those of what was drawn from: after temperature, top-p and schema.

    Args:
        folder: Where what it needs is fetched to, the first time; by default ``judge-server`` in rewardkit's cache.
        model: A GGUF file of a chat model, instead of SmolLM2-135M-Instruct; served under its name in small letters.
        host: The address it listens on.
        port: 0 for any that is free.
        threads: Threads for the arithmetic, 1 to 64. Keep it below the number of idle cores.
        context: Tokens of a prompt with its reply, 256 or more.
        log: A file for its log; a passing one by default. Prompts and replies are not in it.
        start_s: How long it may take to start, in seconds, once everything is fetched.
        tell: Told of every step of the setting-up that takes long.

    Raises:
        JudgeSetupError: A setting is out of its range.

    Example:
        >>> with LocalJudgeServer() as server:  # doctest: +SKIP
        ...     judge = LLMJudge(server.model, base_url=server.base_url, criteria=[...])
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        model: Path | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        threads: int = 1,
        context: int = 4096,
        log: Path | None = None,
        start_s: float = 120.0,
        tell: Tell = lambda words: None,
    ) -> None:
        for name, value, low, high in (
            ("port", port, 0, 65535),
            ("threads", threads, 1, 64),
            ("context", context, 256, 1 << 20),
        ):
            if not low <= value <= high:
                raise JudgeSetupError(f"{name}={value!r}: expected a number from {low} to {high}")
        if start_s <= 0:
            raise JudgeSetupError(f"start_s={start_s!r}: expected seconds, more than 0")
        self._folder, self._model, self._host, self._port = folder, model, host, port
        self._threads, self._context = threads, context
        self._log_path, self._start_s, self._tell = log, start_s, tell
        self._log: IO[bytes] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._ready: dict[str, Any] = {}
        self._name = ""

    def __enter__(self) -> LocalJudgeServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def base_url(self) -> str:
        """Where it listens, as judges and the openai client take it: ``http://127.0.0.1:8089/v1``."""
        self._running()
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._ready['port']}/v1"

    @property
    def model(self) -> str:
        """The name under which the model is served."""
        self._running()
        return self._name

    @property
    def context(self) -> int:
        """Tokens of a prompt with its reply, as the model has them: ``context`` rounded up."""
        self._running()
        return int(self._ready["context"])

    @property
    def pid(self) -> int:
        """The server's process."""
        return self._running().pid

    def start(self) -> None:
        """Fetch what is not there, start the server and wait until it answers.

        Raises:
            JudgeSetupError: There is no such model file, or the machine is of a kind that is not supported.
            JudgeUnavailableError: Something could not be fetched, or the server did not start; the message ends
                with the last lines of its log.
        """
        if self._process is not None:
            raise JudgeSetupError("the server is running already; stop() comes before another start()")
        installation = prepare(self._folder, model=self._model, tell=self._tell)
        self._tell(f"starting {installation.name} ...")
        self._name = installation.name
        self._log = open(self._log_path, "w+b") if self._log_path else tempfile.TemporaryFile()  # noqa: SIM115 - stop()
        try:
            self._process = self._spawn(installation, self._log)
            self._ready = self._first_line(self._process)
        except BaseException:
            self.stop()
            raise

    def wait(self) -> int:
        """Wait until the server ends, and give its exit code."""
        return self._running().wait()

    def stop(self) -> None:
        """End the server, and wait for its end. A second call does nothing."""
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            if process.stdout is not None:
                process.stdout.close()
        if self._log is not None:
            self._log.close()
            self._log = None

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise JudgeSetupError("the server is not running: start() it, or use it in a with block")
        return self._process

    def _spawn(self, installation: Installation, log: IO[bytes]) -> subprocess.Popen[bytes]:
        settings = {
            "runtime": installation.runtime,
            "model": installation.model,
            "name": installation.name,
            "host": self._host,
            "port": self._port,
            "threads": self._threads,
            "context": self._context,
            "parent": os.getpid(),
        }
        flags = [f"--{name}={value}" for name, value in settings.items()]
        return subprocess.Popen(  # noqa: S603
            [str(installation.node), str(_SCRIPT), *flags],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            env={name: os.environ[name] for name in _PASSED_ON if name in os.environ},
            start_new_session=True,  # Ctrl-C reaches this process alone, which then ends the server
        )

    def _first_line(self, process: subprocess.Popen[bytes]) -> dict[str, Any]:
        """Gives what the server prints when it is ready."""
        assert process.stdout is not None
        end, line = time.monotonic() + self._start_s, b""
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while not line.endswith(b"\n"):
                if not selector.select(max(0.0, end - time.monotonic())):
                    raise JudgeUnavailableError(f"the server was not ready in {self._start_s:g} s{self._tail()}")
                read = os.read(process.stdout.fileno(), 4096)
                if not read:
                    code = process.wait()
                    raise JudgeUnavailableError(f"the server ended with code {code} as it started{self._tail()}")
                line += read
        ready: dict[str, Any] = json.loads(line)
        return ready

    def _tail(self) -> str:
        assert self._log is not None
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").strip().splitlines()[-_SHOWN_LINES:]
        return ":\n" + "\n".join(lines) if lines else "; its log is empty"
